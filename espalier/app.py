"""Page configuration and navigation; each page checks by itself who is there."""

from pathlib import Path

import streamlit as st

from espalier.pages.parts import doors

# Absolute, because Streamlit resolves relative paths against the script it runs. (It shows strings, so this is none.)
FOLDER = Path(doors.__file__).resolve().parent.parent


def main() -> None:
    """Show the page that the visitor asked for. Streamlit calls this on every rerun."""
    st.set_page_config(page_title="Espalier", page_icon="🌿", layout="wide")
    shared = st.Page(FOLDER / "shared.py", title="Shared", icon=":material/share:")
    if doors.role() != "steward":
        st.navigation([shared]).run()
        return
    pages = [
        st.Page(FOLDER / "home.py", title="Home", icon=":material/home:", default=True),
        st.Page(FOLDER / "data.py", title="Data", icon=":material/table_view:"),
        st.Page(FOLDER / "structure.py", title="Structure", icon=":material/account_tree:"),
        st.Page(FOLDER / "plan.py", title="Plan", icon=":material/tune:"),
        st.Page(FOLDER / "release.py", title="Release", icon=":material/publish:"),
        st.Page(FOLDER / "analyse.py", title="Analyse", icon=":material/query_stats:"),
        st.Page(FOLDER / "diagnostics.py", title="Diagnostics", icon=":material/monitoring:"),
        st.Page(FOLDER / "compare.py", title="Compare", icon=":material/balance:"),
        st.Page(FOLDER / "ledger.py", title="Ledger", icon=":material/account_balance:"),
        st.Page(FOLDER / "glossary.py", title="Glossary", icon=":material/menu_book:"),
        *([shared] if doors.guarded() else []),
    ]
    st.navigation(pages).run()


if __name__ == "__main__":
    main()
