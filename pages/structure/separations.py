"""Separations in addition to the fence of the roles: list, add, remove."""

from __future__ import annotations

import streamlit as st

from espalier.core.errors import GraphError
from espalier.core.graph.separations import Separation
from espalier.core.methods import METHODS, may_be_fenced, offered
from espalier.pages.common import text
from espalier.pages.common.text import names, plain
from espalier.pages.session.session import Session


def show(state: Session) -> None:
    """The further separations of the open project."""
    project = state.project
    listed = project.separations
    fenced = "; ".join(METHODS[n].title for n in offered(project) if METHODS[n].capabilities.fence != "never")
    with st.expander(
        f"Further separations ({len(listed)})" if listed else "Further separations", expanded=bool(listed)
    ):
        st.markdown(
            "In addition to the fence of the roles, you can require more: *these columns must show no link to those, "
            f"except through the gate*. A plan with a fence ({fenced}) keeps all of them at once."
        )
        for i, s in enumerate(listed):
            left, right = st.columns([6, 1], vertical_alignment="center")
            left.markdown(
                f"- {names(s.left, 40)} and {names(s.right, 40)}: "
                + (f"only through {names(s.given, 40)}" if s.given else "no link at all")
                + (f"  \n  :small[{plain(s.why)}]" if s.why else "")
            )
            right.button(
                "Remove", key=f"separation-off-{state.opened}-{i}", on_click=_remove, args=(state, i), width="stretch"
            )
        columns = list(project.schema.names)
        key = f"separation-{state.opened}"
        a, b, c = st.columns(3)
        a.multiselect("These columns", columns, key=f"{key}-left", placeholder="Choose columns")
        b.multiselect("and these", columns, key=f"{key}-right", placeholder="Choose columns")
        c.multiselect("only through (the gate)", columns, key=f"{key}-given", placeholder="Nothing: no link at all")
        st.text_input("Why (for screen and report)", key=f"{key}-why", placeholder="such as: required by section 4")
        st.button("Add this separation", key=f"{key}-add", on_click=_add, args=(state, key))
        if trouble := state.trouble.get("separation"):
            st.error(plain(trouble))
        if listed and not may_be_fenced(project.plan):
            st.warning(
                f"The plan's method, {text.method(project.plan.method)}, does not keep these; choose one with a fence "
                "on the Plan page."
            )
    if kept := state.editor.aside.separations:
        st.caption(
            f"Set aside because some of their columns are left out on Data: {len(kept)} of the further separations."
        )


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
