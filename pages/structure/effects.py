"""The effect of one column on another according to the drawing: valid adjustment sets and open paths."""

from __future__ import annotations

from functools import partial

import streamlit as st

from espalier.core.errors import EspalierError
from espalier.core.graph.adjustment import Effect, choices, verdict, ways
from espalier.core.graph.paths import arrows_of
from espalier.core.methods import planned_effect
from espalier.pages.common.text import called, name, names, plain
from espalier.pages.session.session import Session


def show(state: Session) -> None:
    """Show two columns to choose, the valid adjustment sets, and the paths under the chosen set."""
    project = state.project
    with st.expander("Effect of one column on another: what to adjust for"):
        columns, target = list(project.schema.names), project.plan.target
        effect = planned_effect(project.plan)
        planned = effect.treatment if effect else None
        left, right = st.columns(2)
        treatment = left.selectbox(
            "Effect of",
            columns,
            columns.index(planned) if planned in columns else None,
            format_func=partial(called, project.schema),
            key=f"effect-of-{state.opened}",
            placeholder="Choose the treatment",
        )
        outcome = right.selectbox(
            "Effect on",
            columns,
            columns.index(target) if target in columns else None,
            format_func=partial(called, project.schema),
            key=f"effect-on-{state.opened}",
            placeholder="Choose the outcome",
        )
        if treatment is None or outcome is None:
            return
        try:
            question = Effect(project.dag, treatment, outcome)
        except EspalierError as error:
            st.info(plain(error))
            return
        _answer(state, question)


def asked(state: Session) -> tuple[Effect, tuple[str, ...]] | None:
    """Return the chosen effect and adjustment set, or None if no effect is chosen or it is not defined."""
    project = state.project
    kept, planned = st.session_state, planned_effect(project.plan)
    treatment = kept.get(f"effect-of-{state.opened}", planned.treatment if planned else None)
    outcome = kept.get(f"effect-on-{state.opened}", project.plan.target)
    if treatment not in project.schema or outcome not in project.schema:
        return None
    try:
        question = Effect(project.dag, treatment, outcome)
    except EspalierError:
        return None
    tried = kept.get(_set_key(state, question))
    if tried is None:
        valid = choices(question, project.schema.sizes)
        tried = valid[0].columns if valid else ()
    return question, tuple(tried)


def marks(question: Effect, tried: tuple[str, ...]) -> tuple[dict[str, list[str]], set[tuple[str, str]]]:
    """Return each column's mark in the drawing, and the arrows of open paths that are not part of the effect."""
    said = {question.treatment: ["treatment"], **{column: ["adjusted for"] for column in tried}}
    lit = {
        arrow
        for way in ways(question, tried)
        if way.open and not way.causal
        for arrow in arrows_of(way.path, question.edges)
    }
    return said, lit


def _set_key(state: Session, question: Effect) -> str:
    return f"effect-set-{state.opened}-{question.treatment}-{question.outcome}"


def _answer(state: Session, question: Effect) -> None:
    project = state.project
    schema = project.schema
    valid = choices(question, schema.sizes)
    if not question.on_causal_paths - {question.outcome} and question.outcome not in question.on_causal_paths:
        st.markdown(
            f"The drawing has no directed path from {name(question.treatment, schema)}, so it implies no effect."
        )
    if valid:
        listed = "\n".join(f"- {names(c.columns, 40, 'nothing', schema)} ({c.strata:,} strata)" for c in valid[:8])
        st.markdown(f"**Valid sets to adjust for**, the cheapest first:\n{listed}")
    else:
        st.warning("No set of columns blocks every path that is not part of the effect.")
    chosen = st.multiselect(
        "Set to try",
        [n for n in schema.names if n not in (question.treatment, question.outcome)],
        schema.clique(valid[0].columns) if valid else [],
        format_func=partial(called, schema),
        key=_set_key(state, question),
        placeholder="No adjustment",
    )
    found = verdict(question, chosen)
    (st.success if found.valid else st.error)(plain(found.sentence))
    lines = [f"- {plain(way.sentence)}" for way in ways(question, chosen)]
    if lines:
        head = "**Paths between them**; open paths that are not part of the effect are red in the drawing"
        st.markdown("\n".join([head, *lines]))
    st.caption(
        f"This is valid if the drawing is right. {plain(question.caveat)} To count the columns that it needs, "
        "choose the effect regime on the Plan page."
    )
