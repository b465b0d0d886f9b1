"""Fields for arrows from one visit to the next, with the same choices as the drawing."""

from __future__ import annotations

from functools import partial

import streamlit as st

from espalier.core.errors import EspalierError
from espalier.core.project.linked import Pair
from espalier.pages.common.fields import field, taken
from espalier.pages.common.text import called, name, plain
from espalier.pages.session.session import Session


def show(state: Session) -> None:
    """Show the field for a column's causes at the previous visit."""
    project, link = state.project, state.project.linked
    assert link is not None
    columns = list(link.step_columns(project.schema))
    shown, last = partial(called, project.schema), state.drafts.board.later
    box = field(state, "next-effect", last if last in columns else columns[0], columns)
    effect = st.selectbox(
        "Column of the next visit",
        columns,
        columns.index(box.default),
        format_func=shown,
        key=box.key,
        on_change=_take_effect,
        args=(state,),
    )
    causes = [a for a, b in link.arrows if b == effect]
    box = field(state, f"next-causes-{effect}", causes, columns)
    st.multiselect(
        "Its causes at the previous visit",
        columns,
        default=box.default,
        format_func=shown,
        key=box.key,
        on_change=_take,
        args=(state, effect),
        placeholder="Choose its direct causes at this visit",
        wrap=True,
    )
    if "next-visit" in state.trouble:
        st.error(plain(state.trouble.pop("next-visit")))
    st.markdown("\n".join(sentences(state)) or "No arrow leads from one visit to the next yet.")


def sentences(state: Session) -> list[str]:
    """Return the arrows from one visit to the next as lines of a list."""
    project = state.project
    arrows = project.linked.arrows if project.linked else ()
    return [f"- {name(a, project.schema)} at a visit → {name(b, project.schema)} at the next" for a, b in arrows]


def _take_effect(state: Session) -> None:
    state.drafts.board.later = taken(state, "next-effect")


def _take(state: Session, effect: str) -> None:
    """Draw the chosen arrows."""
    project = state.project
    assert project.linked is not None
    causes = taken(state, f"next-causes-{effect}")
    kept: list[Pair] = [(a, b) for a, b in project.linked.arrows if b != effect]
    try:
        state.editor.redraw(between=(*kept, *((a, effect) for a in causes)))
    except EspalierError as error:
        state.trouble["next-visit"] = str(error)
