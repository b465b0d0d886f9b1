"""The purpose of the table: the recommended method, the reason, and the parts of the drawing that the plan ignores."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from espalier.core.methods.purpose import PURPOSES, Advice, advise, unused
from espalier.pages.common import shell
from espalier.pages.common.text import plain
from espalier.pages.session.session import Session


def show(state: Session, take: Callable[[Session, Advice], None]) -> None:
    """Ask for the purpose, show the recommendation, and offer a button that follows it."""
    project = state.project
    chosen = st.pills("What is the table for?", list(PURPOSES), format_func=PURPOSES.__getitem__, key="purpose")
    if chosen is not None:
        advice = advise(project, chosen)
        with st.container(border=True):
            options = ", ".join(f"{key}: {value}" for key, value in advice.changes.items())
            st.markdown(f"**{plain(advice.method.title)}**{f' ({plain(options)})' if options else ''}. {advice.why}")
            options_now = project.plan.options
            followed = project.plan.method == advice.method.name and all(
                options_now.get(k, usual) == v
                for k, v in advice.changes.items()
                for usual in [getattr(advice.method.options(), k, None)]
            )
            if followed and not advice.lacking:
                st.markdown(":material/check: The plan below does so.")
            elif not followed:
                st.button("Plan so", on_click=take, args=(state, advice), key="purpose-take", type="primary")
            if advice.lacking:
                st.info(plain(advice.lacking))
                if "Structure" in advice.lacking:
                    shell.link_to("Structure", "Go to Structure", primary=False)


def left_aside(state: Session) -> None:
    """Show, on request, the parts of the drawing that the plan ignores. This is seldom a fault."""
    if found := unused(state.project):
        with st.expander("More: what of the drawing this plan leaves aside"):
            st.markdown(
                "This is no fault: a method uses what serves its purpose. To use more of the drawing, choose another "
                "method or regime.\n" + "\n".join(f"- {plain(sentence)}" for sentence in found)
            )
