"""Home: the purpose of Espalier, the three steps of a release, and ways to start."""

import streamlit as st

from espalier.pages.common import shell, sign_in
from espalier.pages.glossary.terms import term
from espalier.pages.home import introduction

sign_in.enter("steward")
state = shell.start(
    "Espalier",
    f"Share a useful table about people without sharing the people: invented rows, "
    f"{term('a proven limit', 'differential privacy')} on what these rows reveal about anyone, and only the links that "
    "your experts stand behind.",
    mark=introduction.MARK,
)


def own_table() -> None:
    """Make the Data page show the upload fields first, even if a project is open."""
    state.drafts.own_table = True


introduction.steps()
st.subheader("Begin with an example", anchor=False)
introduction.samples(state)
st.subheader("Or with your own table", anchor=False)
st.markdown("Nothing leaves this machine, and nothing is spent until you press the button on the Release page.")
shell.link_to("Data", "Open my own table", primary=False, on_click=own_table)
introduction.tour(state)
shell.sidebar(state)
