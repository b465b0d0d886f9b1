"""Signatures of a release (who drew, who confirmed the schema, who approved), stored in the project and the report."""

from __future__ import annotations

import streamlit as st

from espalier.core.project.file import SIGNOFF
from espalier.core.report.front import SIGNED
from espalier.pages.session.session import Session


def fields(state: Session) -> None:
    """Show one line for each signature. Empty lines are left out. If all are empty, the report says “no one is
    named”.
    """
    signed = state.project.signoff
    with st.expander(f"Who is responsible ({sum(key in signed for key in SIGNOFF)} of {len(SIGNOFF)} signed)"):
        for place, key in zip(st.columns(len(SIGNOFF)), SIGNOFF, strict=True):
            field = f"signoff-{state.opened}-{key}"

            def take(key: str = key, field: str = field) -> None:
                state.editor.sign({**state.project.signoff, key: str(st.session_state[field]).strip()})

            place.text_input(
                SIGNED[key],
                signed.get(key, ""),
                key=field,
                max_chars=120,
                on_change=take,
                help="A name or a role. It is saved in the project file and appears on the report's first page.",
            )
