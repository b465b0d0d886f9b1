"""Glossary: each term of the field in one sentence."""

import streamlit as st

from espalier.pages.parts import doors, shell
from espalier.pages.parts.glossary import TERMS

doors.enter("steward")
state = shell.start("Glossary", "The terms that the other pages use, one sentence each.")
for name, meaning in TERMS.items():
    st.markdown(f"**{name}.** {meaning}")
shell.sidebar(state)
