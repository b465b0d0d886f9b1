"""The fields of the Structure page: causes, target, roles."""

from __future__ import annotations

import streamlit as st

from core.errors import EspalierError
from pages.parts import words
from pages.parts.session import Session
from pages.parts.words import plain


def show(state: Session) -> None:
    """Draw the fields; what they take goes into the project at once."""
    assert state.project is not None
    project, columns = state.project, list(state.project.schema.names)
    left, right = st.columns(2, gap="medium")
    with left:
        st.subheader("Causes", anchor=False)
        first = state.drafts.get("effect") or project.plan.target or next(iter(project.roles.outcome), columns[0])
        effect = st.selectbox(
            "Effect",
            columns,
            index=columns.index(first) if first in columns else 0,
            key=f"effect-{state.opened}",
            format_func=lambda c: f"{c}  ({len(project.dag.parents(c))} causes)" if project.dag.parents(c) else c,
        )
        state.drafts["effect"] = effect
        refused = state.drafts.get("causes", {}).get(effect)
        key = f"causes-{state.opened}-{effect}"
        st.multiselect(
            "Causes of it",
            [c for c in columns if c != effect],
            key=key,
            on_change=_take_causes,
            args=(state, effect, key),
            default=[c for c in (refused[0] if refused else project.dag.parents(effect)) if c in columns],
            placeholder="Choose its direct causes",
            wrap=True,
        )
        if refused:
            st.error(f"{plain(refused[1])}. The graph is unchanged; your choice is still in the field.")
        st.selectbox(
            "Target",
            columns,
            index=columns.index(project.plan.target) if project.plan.target else None,
            key=f"target-structure-{state.opened}",
            on_change=_take_target,
            args=(state, f"target-structure-{state.opened}"),
            help="The column that somebody will want to predict from the table. PRISM spends most of the budget on it.",
            placeholder="The column to predict",
        )
    with right:
        st.subheader("Roles", anchor=False)
        for role, meaning in words.ROLES.items():
            st.multiselect(
                role.capitalize(),
                columns,
                default=list(getattr(project.roles, role)),
                help=meaning,
                wrap=True,
                key=f"role-{state.opened}-{role}",
                on_change=_take_role,
                args=(state, role),
                placeholder=meaning,
            )


def _take_causes(state: Session, effect: str, key: str) -> None:
    """Arrows into ``effect`` as chosen; a cycle is refused and what was chosen stays in the field."""
    chosen = st.session_state[key]
    refused = state.drafts.setdefault("causes", {})
    try:
        state.change_causes(effect, chosen)
        refused.pop(effect, None)
    except EspalierError as error:
        refused[effect] = (chosen, str(error))


def _take_role(state: Session, role: str) -> None:
    """A role as chosen; a column that had another role moves."""
    state.change_role(role, st.session_state[f"role-{state.opened}-{role}"])
    assert state.project is not None
    for other, cols in state.project.roles.items():
        st.session_state[f"role-{state.opened}-{other}"] = list(cols)


def _take_target(state: Session, key: str) -> None:
    """The column that the table is for predicting."""
    state.change_plan(target=st.session_state[key])
