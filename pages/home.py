"""Home: what Espalier is for, what a release takes, and where to begin."""

import streamlit as st

from espalier.pages.parts import doors, home, shell
from espalier.pages.parts.glossary import term

doors.enter("steward")
state = shell.start(
    "Espalier",
    f"Share a useful table about people without sharing the people: invented rows, "
    f"{term('a proven limit', 'differential privacy')} on what these rows reveal about anyone, and only the links that "
    "your experts stand behind.",
    mark=home.MARK,
)
home.steps()
st.subheader("Begin with an example", anchor=False)
home.samples(state)
st.subheader("Or with your own table", anchor=False)
st.markdown("Nothing leaves this machine, and nothing is spent until you say so on the Release page.")
shell.link_to("Data", "Open my own table", primary=False)
home.tour(state)
shell.sidebar(state)
