"""Questions to a release, built from columns and values, and their answers."""

from __future__ import annotations

import streamlit as st

from espalier.core.analysis import answer_text, figure_from_text
from espalier.core.analysis.effect import StandardisedEffect
from espalier.core.analysis.estimands import (
    Difference,
    Figure,
    Level,
    Mean,
    MeanDifference,
    OddsRatio,
    Proportion,
    Regression,
)
from espalier.core.analysis.figure_from_text import of_observed
from espalier.core.analysis.missing_text import missing_sentences
from espalier.core.analysis.study import Study
from espalier.core.errors import EspalierError
from espalier.core.graph.adjustment import Effect, choices
from espalier.core.methods import planned_effect
from espalier.core.project.file import Project
from espalier.pages.common.text import name, names, plain

FEW = 8
"""Number of figures up to which their sentences are unfolded."""
KINDS = ("Association, adjusted", "Effect, by the drawing", "Odds ratio", "Difference", "Proportion", "Mean")
MEANING = {
    "counted": "these columns were counted together, so the interval's coverage is promised",
    "outcome pairs counted": "each column was counted with the outcome, and their joint pattern is modelled. The "
    "interval holds if the model does; its coverage is not promised",
    "thin": "there are too few rows for their noise, so the number has no interval",
    "assumed": "these columns were not counted together. What the table shows is an assumption, so it has no interval",
    "no overlap": "in some strata one of the compared groups has no rows, so nothing shows what the outcome would be "
    "there, and there is no number",
}


def ask(project: Project, key: str, rows: int) -> Figure | None:
    """The fields of a question; None while something is still to be chosen."""
    kind = st.segmented_control("What to ask", KINDS, default=KINDS[0], required=True, key=f"{key}-kind")
    if kind == KINDS[0]:
        return _regression(project, key)
    if kind == KINDS[1]:
        return _effect(project, key, rows)
    if kind == "Mean":
        return _mean(project, key)
    columns = [c.name for c in project.schema.columns if c.size > 1]
    target = project.plan.target
    left, right = st.columns(2)
    with left:
        event = st.selectbox(
            "Column",
            columns,
            columns.index(target) if target in columns else None,
            key=f"{key}-event",
            placeholder="Choose a column",
        )
        happens = None if event is None else _value(project, event, "How often is it", f"{key}-event", last=True)
    with right:
        among = st.selectbox(
            "Among rows with" if kind == "Proportion" else "Groups by",
            [c for c in columns if c != event],
            None,
            key=f"{key}-group",
            placeholder="all rows" if kind == "Proportion" else "Choose a column",
        )
        one = None if among is None else _value(project, among, "the value", f"{key}-one-{among}", last=True)
        other = None
        if among is not None and kind != "Proportion":
            other = _value(project, among, "against", f"{key}-other-{among}", last=False)
    if happens is None:
        return None
    if kind == "Proportion":
        return of_observed(project.schema, Proportion(happens, () if one is None else (one,)))
    if one is None or other is None:
        return None
    if one == other:
        st.info("Choose two values that differ.")
        return None
    if kind == "Difference":
        return of_observed(project.schema, Difference(happens, one, other))
    values = project.schema[happens.column].values
    two = values == 2 and happens.code < values
    instead = Level(happens.column, 1 - happens.code) if two else None
    if instead is None:
        with left:
            instead = _value(project, happens.column, "instead of", f"{key}-instead-{happens.column}", last=False)
    if instead == happens:
        st.info("Choose two values that differ.")
        return None
    return of_observed(project.schema, OddsRatio(happens, instead, one, other))


def _mean(project: Project, key: str) -> Mean | MeanDifference | None:
    numbers = [c.name for c in project.schema.columns if c.kind == "numeric"]
    if not numbers:
        st.info("This release has no numeric column, so there is no mean to ask for.")
        return None
    left, right = st.columns(2)
    with left:
        column = st.selectbox("Mean of", numbers, None, key=f"{key}-mean", placeholder="Choose a number")
    with right:
        columns = [c.name for c in project.schema.columns if c.size > 1 and c.name != column]
        group = st.selectbox("Groups by", columns, None, key=f"{key}-mean-group", placeholder="no groups")
        one = None if group is None else _value(project, group, "the value", f"{key}-mean-one-{group}", last=True)
        other = None if group is None else _value(project, group, "against", f"{key}-mean-other-{group}", last=False)
    if column is None:
        return None
    if one is None or other is None:
        return figure_from_text.mean(project.schema, column)
    if one == other:
        st.info("Choose two values that differ.")
        return None
    scores = figure_from_text.middles(project.schema[column])
    return of_observed(project.schema, MeanDifference(column, scores, one, other))


def _regression(project: Project, key: str) -> Regression | None:
    columns = [c.name for c in project.schema.columns if c.size > 1]
    target = project.plan.target
    left, right = st.columns(2)
    with left:
        outcome = st.selectbox(
            "Outcome",
            columns,
            columns.index(target) if target in columns else None,
            key=f"{key}-outcome",
            placeholder="Choose a column",
        )
    with right:
        predictors = st.multiselect(
            "Predictors, each adjusted for the others",
            [c for c in columns if c != outcome],
            key=f"{key}-predictors",
            placeholder="Choose columns",
        )
    if outcome is None or not predictors:
        return None
    column = project.schema[outcome]
    event = outcome
    if column.kind != "numeric":
        with left:
            level = _value(project, outcome, "Value to predict", f"{key}-outcome-{outcome}", last=True)
        event = f"{outcome}={column.labels[level.code]}"
    return figure_from_text.regression(project.schema, event, predictors)


def _effect(project: Project, key: str, rows: int) -> StandardisedEffect | None:
    columns = [c.name for c in project.schema.columns if c.size > 1]
    target, effect = project.plan.target, planned_effect(project.plan)
    planned = effect.treatment if effect else None
    left, right = st.columns(2)
    with left:
        treatment = st.selectbox(
            "Effect of",
            columns,
            columns.index(planned) if planned in columns else None,
            key=f"{key}-treatment",
            placeholder="Choose the treatment",
        )
    with right:
        outcome = st.selectbox(
            "on",
            columns,
            columns.index(target) if target in columns else None,
            key=f"{key}-effect-outcome",
            placeholder="Choose a column",
        )
    if treatment is None or outcome is None or treatment == outcome:
        return None
    if not project.dag.edges:
        st.info("This release has no drawing, so it has no adjustment set.")
        return None
    try:
        valid = choices(Effect(project.dag, treatment, outcome), project.schema.sizes)
        chosen = None
        if len(valid) > 1:
            chosen = st.selectbox(
                "Adjusted for (valid sets of the drawing, the cheapest first)",
                [c.columns for c in valid],
                format_func=lambda c: ", ".join(c) or "nothing",
                key=f"{key}-adjust-{treatment}-{outcome}",
            )
        figure = figure_from_text.effect_by_drawing(project, treatment, outcome, chosen, rows)
    except EspalierError as error:
        st.error(plain(error))
        return None
    adjusted = f"**Adjusted for {names(figure.adjust, 40)}.** " if figure.adjust else ""
    st.markdown(adjusted + plain(answer_text.adjusted_for(project, figure)))
    return figure


def _value(project: Project, column: str, label: str, key: str, *, last: bool) -> Level:
    labels = project.schema[column].labels
    first = figure_from_text.last(project.schema[column]) if last else 0
    code = st.selectbox(label, range(len(labels)), first, format_func=labels.__getitem__, key=f"{key}-{column}-value")
    if project.schema[column].kind == "numeric":
        chosen = "missing cells alone" if code > figure_from_text.last(project.schema[column]) else "this one bin alone"
        st.caption(f"{name(column)} is counted in bins: what is asked is about {chosen}.")
    return Level(column, code)


def show(study: Study, figure: Figure) -> None:
    """The numbers with their intervals and badges, in a table, in sentences, and as text to copy."""
    answers = study.ask(figure)
    if isinstance(figure, Regression):
        how = "Odds ratios by logistic regression" if figure.event is not None else "Linear regression"
        st.markdown(f"**{how}** of {name(figure.outcome)} on {names(figure.predictors, 40)}.")
    else:
        st.markdown(f"**What is asked:** {plain(answer_text.asked(study.project.schema, figure))}.")
    st.dataframe(answer_text.lines(answers), hide_index=True, width="stretch")
    said, warnings = missing_sentences(study.project.schema, answers)
    if warnings:
        st.warning("\n\n".join(plain(warning) for warning in warnings))
    if said:
        with st.expander("Missing cells", expanded=len(said) <= FEW):
            st.markdown("\n".join(f"- {plain(line)}" for line in said))
    for kind in dict.fromkeys(a.badge.kind for a in answers):
        st.markdown(f"- **{answer_text.BADGES[kind].capitalize()}**: {MEANING[kind]}.")
    if steps := answer_text.remedy(study.project, figure, answers):
        st.info(plain(steps))
    with st.expander("Sentences", expanded=len(answers) <= FEW):
        st.markdown("\n".join(f"- {plain(answer_text.sentence(a))}" for a in answers))
    with st.expander("Table to copy"):
        st.code(answer_text.table(answers), None)
