"""Purpose of the table: the recommended method, the reason, and the parts of the drawing that the plan ignores."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from espalier.core.methods.purpose import PURPOSES, Advice, advise, drawing_unused, unused
from espalier.core.project.file import Project
from espalier.pages.common import shell
from espalier.pages.common.text import plain
from espalier.pages.session.session import Session


def show(state: Session, take: Callable[[Session, Advice], None]) -> None:
    """Ask for the purpose. A choice changes the plan at once and is remembered."""
    key = f"purpose-{state.opened}"

    def choose() -> None:
        chosen = state.drafts.plan.purpose = st.session_state[key]
        if chosen is not None:
            take(state, advise(state.project, chosen))

    chosen = state.drafts.plan.purpose
    st.session_state[key] = chosen
    st.pills(
        "What is the table for?", list(PURPOSES), format_func=PURPOSES.__getitem__, key=key, on_change=choose, wrap=True
    )
    if chosen is None:
        return
    advice = advise(state.project, chosen)
    with st.container(border=True):
        options = ", ".join(f"{key}: {value}" for key, value in advice.changes.items())
        st.markdown(f"**{plain(advice.method.title)}**{f' ({plain(options)})' if options else ''}. {advice.why}")
        if not _followed(state.project, advice):
            st.markdown("You changed the method or its options after you chose this purpose.")
            st.button("Use this method again", on_click=take, args=(state, advice), key="purpose-take")
        elif not advice.lacking:
            st.markdown(":material/check: The plan below uses this method.")
            if unread := drawing_unused(state.project):
                st.markdown(plain(unread))
        if advice.lacking:
            st.info(plain(advice.lacking))
            if "Structure" in advice.lacking:
                shell.link_to("Structure", "Go to Structure", primary=False)


def _followed(project: Project, advice: Advice) -> bool:
    """Return whether the plan has the method and the options of this advice."""
    usual = advice.method.options()
    given = project.plan.options
    return project.plan.method == advice.method.name and all(
        given.get(key, getattr(usual, key, None)) == value for key, value in advice.changes.items()
    )


def left_aside(state: Session) -> None:
    """Show, on request, the parts of the drawing that the plan ignores. This is rarely a mistake."""
    if found := unused(state.project):
        with st.expander("More: parts of the drawing that this plan ignores"):
            st.markdown(
                "This is not a mistake: a method uses only the parts it needs. To use more of the drawing, choose "
                "another method or regime.\n" + "\n".join(f"- {plain(sentence)}" for sentence in found)
            )
