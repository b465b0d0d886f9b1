"""Shared parts of a plan's lists: questions, regressions and analyses each have entries and a share of the budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from espalier.pages.common.text import plain
from espalier.pages.session.session import Session


def line(text: str, key: str, help_: str, remove: Callable[..., None], *args: Any) -> None:
    """Show a list entry, in Markdown, with a button that calls ``remove(*args)``; ``help_`` is plain text."""
    left, right = st.columns([7, 1], vertical_alignment="center")
    left.markdown(text)
    right.button(
        "Remove",
        key=f"remove-{key}",
        icon=":material/close:",
        type="tertiary",
        on_click=remove,
        args=args,
        help=plain(help_),
    )


def share(state: Session, plan_key: str, title: str, help_: str) -> None:
    """Show the slider for a share of the budget, 0 to 90 %, stored in the plan as ``plan_key``."""
    key = f"{plan_key}-{state.opened}"
    st.session_state[key] = round(100 * getattr(state.project.plan, plan_key))

    def change() -> None:
        state.editor.change_plan(**{plan_key: st.session_state[key] / 100})

    st.slider(title, 0, 90, key=key, on_change=change, help=help_)
