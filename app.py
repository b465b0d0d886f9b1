"""Entry point of a checkout: ``streamlit run app.py``. The installed package starts the app with ``espalier app``."""

from espalier import app

app.main()
