"""Page configuration and navigation; each page checks for itself who the visitor is."""

from pathlib import Path

import streamlit as st

from espalier.pages.common import housekeeping, sign_in

# Streamlit resolves relative paths against the script that it runs, and would show a docstring on the page.
FOLDER = Path(sign_in.__file__).resolve().parent.parent


def main() -> None:
    """Show the page that the visitor asked for. Streamlit calls this on every rerun."""
    housekeeping.start()
    st.set_page_config(page_title="Espalier", page_icon="🌿", layout="wide")
    shared = st.Page(FOLDER / "11_shared.py", title="Shared", icon=":material/share:")
    if sign_in.role() != "steward":
        st.navigation([shared]).run()
        return
    pages = [
        st.Page(FOLDER / "01_home.py", title="Home", icon=":material/home:", default=True),
        st.Page(FOLDER / "02_data.py", title="Data", icon=":material/table_view:"),
        st.Page(FOLDER / "03_structure.py", title="Structure", icon=":material/account_tree:"),
        st.Page(FOLDER / "04_plan.py", title="Plan", icon=":material/tune:"),
        st.Page(FOLDER / "05_release.py", title="Release", icon=":material/publish:"),
        st.Page(FOLDER / "06_analyse.py", title="Analyse", icon=":material/query_stats:"),
        st.Page(FOLDER / "07_diagnostics.py", title="Diagnostics", icon=":material/monitoring:"),
        st.Page(FOLDER / "08_compare.py", title="Compare", icon=":material/balance:"),
        st.Page(FOLDER / "09_ledger.py", title="Ledger", icon=":material/account_balance:"),
        st.Page(FOLDER / "10_glossary.py", title="Glossary", icon=":material/menu_book:"),
        *([shared] if sign_in.guarded() else []),
    ]
    st.navigation(pages).run()


if __name__ == "__main__":
    main()
