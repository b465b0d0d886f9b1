"""Page configuration and navigation; each page asks by itself who is there. Start with ``streamlit run app.py``."""

import streamlit as st

from pages.parts import doors

st.set_page_config(page_title="Espalier", page_icon="🌿", layout="wide")

pages = [st.Page("pages/shared.py", title="Shared", icon=":material/share:")]
if doors.role() == "steward":
    pages = [
        st.Page("pages/home.py", title="Home", icon=":material/home:", default=True),
        st.Page("pages/data.py", title="Data", icon=":material/table_view:"),
        st.Page("pages/structure.py", title="Structure", icon=":material/account_tree:"),
        st.Page("pages/plan.py", title="Plan", icon=":material/tune:"),
        st.Page("pages/release.py", title="Release", icon=":material/publish:"),
        st.Page("pages/analyse.py", title="Analyse", icon=":material/query_stats:"),
        st.Page("pages/diagnostics.py", title="Diagnostics", icon=":material/monitoring:"),
        st.Page("pages/compare.py", title="Compare", icon=":material/balance:"),
        st.Page("pages/ledger.py", title="Ledger", icon=":material/account_balance:"),
        st.Page("pages/glossary.py", title="Glossary", icon=":material/menu_book:"),
        *(pages if doors.guarded() else []),
    ]
st.navigation(pages).run()
