"""The app of a clone: ``streamlit run app.py``. The installed package starts it with ``espalier app``."""

from espalier import app

app.main()
