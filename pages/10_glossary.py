"""Glossary: each term of the field in one sentence."""

import streamlit as st

from espalier.pages.common import shell, sign_in
from espalier.pages.glossary.terms import TERMS

sign_in.enter("steward")
state = shell.start("Glossary", "The terms used on the other pages, each explained in one sentence.")
for name, meaning in TERMS.items():
    st.markdown(f"**{name}.** {meaning}")
shell.sidebar(state)
