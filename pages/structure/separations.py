"""Separations in addition to the fence that follows from the roles: list, add and remove them."""

from __future__ import annotations

from functools import partial

import streamlit as st

from espalier.core.errors import GraphError
from espalier.core.graph.separations import Separation
from espalier.core.methods import METHODS, may_be_fenced, offered
from espalier.pages.common import text
from espalier.pages.common.text import called, names, plain
from espalier.pages.session.session import Session


def show(state: Session) -> None:
    """Show the open project's further separations."""
    project = state.project
    listed, named = project.separations, partial(names, cap=40, schema=project.schema)
    fenced = "; ".join(METHODS[n].title for n in offered(project) if METHODS[n].capabilities.fence != "never")
    with st.expander(
        f"Further separations ({len(listed)})" if listed else "Further separations", expanded=bool(listed)
    ):
        st.markdown(
            "In addition to the fence that follows from the roles, you can require that *these columns show no link to "
            f"those columns, except through a gate*. A plan with a fence ({fenced}) keeps all of them at once."
        )
        for i, s in enumerate(listed):
            left, right = st.columns([6, 1], vertical_alignment="center")
            left.markdown(
                f"- {named(s.left)} and {named(s.right)}: "
                + (f"only through {named(s.given)}" if s.given else "no link at all")
                + (f"  \n  :small[{plain(s.why)}]" if s.why else "")
            )
            right.button(
                "Remove", key=f"separation-off-{state.opened}-{i}", on_click=_remove, args=(state, i), width="stretch"
            )
        columns = list(project.schema.names)
        key = f"separation-{state.opened}"
        ends = (("First group", "left", "Choose columns"), ("Second group", "right", "Choose columns"))
        gate = ("Gate", "given", "None (no link at all)")
        for place, (label, side, hint) in zip(st.columns(3), (*ends, gate), strict=True):
            place.multiselect(
                label, columns, format_func=partial(called, project.schema), key=f"{key}-{side}", placeholder=hint
            )
        st.text_input(
            "Reason (shown on screen and in the report)",
            key=f"{key}-why",
            placeholder="for example, required by section 4",
        )
        st.button("Add this separation", key=f"{key}-add", on_click=_add, args=(state, key))
        if trouble := state.trouble.get("separation"):
            st.error(plain(trouble))
        if listed and not may_be_fenced(project.plan):
            st.warning(
                f"The plan's method, {text.method(project.plan.method)}, does not keep these separations; choose "
                "one with a fence on the Plan page."
            )
    if kept := state.editor.aside.separations:
        are = "separations are" if len(kept) > 1 else "separation is"
        st.caption(f"{len(kept)} further {are} set aside because some columns are left out on the Data page.")


def _add(state: Session, key: str) -> None:
    clique, chosen = state.project.schema.clique, st.session_state
    left, right, given = (clique(chosen[f"{key}-{side}"]) for side in ("left", "right", "given"))
    new = Separation(left, right, given, chosen[f"{key}-why"])
    try:
        state.editor.change_separations([*state.project.separations, new])
    except GraphError as error:
        state.trouble["separation"] = str(error)
        return
    state.trouble.pop("separation", None)
    for side in ("left", "right", "given"):
        chosen[f"{key}-{side}"] = []
    chosen[f"{key}-why"] = ""


def _remove(state: Session, i: int) -> None:
    kept = list(state.project.separations)
    del kept[i]
    state.editor.change_separations(kept)
