"""Fields that build a question about a release from columns and values, and the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import streamlit as st

from espalier.core.analysis import answer_text, figure_from_text
from espalier.core.analysis.answers import Answer
from espalier.core.analysis.estimands import Figure, Level, Regression
from espalier.core.analysis.missing_text import missing_sentences
from espalier.core.analysis.study import Study
from espalier.core.errors import EspalierError
from espalier.core.graph.adjustment import Effect, choices
from espalier.core.methods import planned_effect
from espalier.core.project.asked import AskedQuestion
from espalier.core.project.file import Project
from espalier.pages.common.text import called, name, names, plain

FEW = 8
"""Maximum number of figures whose sentences are shown without a click."""
KINDS = (
    "Adjusted association",
    "Causal effect",
    "Odds ratio",
    "Difference",
    "Proportion",
    "Mean",
    "Quantile",
)
MEANING = {
    "counted": "these columns were counted together, so the interval has its stated coverage",
    "outcome pairs counted": "each column was counted with the outcome, and their joint pattern comes from the model. "
    "The interval is valid only if the model is; its coverage is not guaranteed",
    "thin": "the noise is too large for so few rows, so the number has no interval",
    "assumed": "these columns were not counted together. The table's value rests on an assumption, so it has no "
    "interval",
    "no overlap": "in some strata one of the compared groups has no rows, so its outcome there is unknown, and no "
    "number can be given",
}


def ask(study: Study, key: str) -> AskedQuestion | None:
    """Show the fields of a question and return the question, or None until it is complete. The fields keep their values
    when the page changes.
    """
    kind = st.segmented_control(
        "What to ask", KINDS, default=KINDS[0], required=True, key=f"{key}-kind", persist_state="session"
    )
    asked = _asked(study, kind, key)
    simple = kind not in KINDS[:2]
    with st.expander("Conditions and level" if simple else "Level"):
        among = tuple(_conditions(study.project, key)) if simple else ()
        level = st.number_input(
            "Level of the intervals (%)", 50.0, 99.9, 95.0, key=f"{key}-level", persist_state="session"
        )
    if asked is None:
        return None
    return replace(asked, among=asked.among + among, level=round(level / 100, 6))


def _conditions(project: Project, key: str) -> list[str]:
    values = {
        f"{c.name}={label}": f"{c.name} = {answer_text.value_name(c, code)}"
        for c in project.schema.columns
        if c.size > 1
        for code, label in enumerate(c.labels)
    }
    return st.multiselect(
        "Only rows with all of these",
        list(values),
        key=f"{key}-among",
        placeholder="all rows",
        format_func=values.__getitem__,
        persist_state="session",
    )


def _asked(study: Study, kind: str, key: str) -> AskedQuestion | None:
    project = study.project
    if kind == KINDS[0]:
        return _regression(project, key)
    if kind == KINDS[1]:
        return _effect(project, key, study.rows)
    if kind == "Mean":
        return _mean(study, key)
    if kind == "Quantile":
        return _quantile(project, key)
    columns = [c.name for c in project.schema.columns if c.size > 1]
    left, right = st.columns(2)
    with left:
        event = _column("Column", columns, f"{key}-event", project, start=project.plan.target)
        happens = None if event is None else _value(project, event, "Value", f"{key}-event")
    with right:
        share = kind == "Proportion"
        among = _column(
            "Column that selects the rows" if share else "Group by",
            [c for c in columns if c != event],
            f"{key}-group",
            project,
            nothing="all rows" if share else "Choose a column",
        )
        one = other = None
        if among is not None:
            first, second = usual(study, among)
            label = "Value of the selected rows" if share else "Group"
            one = _value(project, among, label, f"{key}-one-{among}", second)
            if not share:
                other = _value(project, among, "Compared with", f"{key}-other-{among}", first)
    if event is None or happens is None:
        return None
    if share:
        return AskedQuestion("proportion", _said(project, happens), among=() if one is None else (_said(project, one),))
    if one is None or other is None or among is None:
        return None
    if one == other:
        st.info("Choose two values that differ.")
        return None
    group = f"{_said(project, one)}:{project.schema[among].labels[other.code]}"
    if kind == "Difference":
        return AskedQuestion("difference", _said(project, happens), group=group)
    values = project.schema[event].values
    instead = 1 - happens.code if values == 2 and happens.code < values else None
    if instead is None:
        with left:
            instead = _value(project, event, "Alternative value", f"{key}-instead-{event}", 0).code
    if instead == happens.code:
        st.info("Choose two values that differ.")
        return None
    text = f"{_said(project, happens)}:{project.schema[event].labels[instead]}"
    return AskedQuestion("odds_ratio", text, group=group)


def usual(study: Study, column: str) -> tuple[int, int]:
    """Return the default values to compare: neighbours in the middle of an ordered column, or the two most frequent
    values of any other column. They depend on the released model alone.
    """
    described = study.project.schema[column]
    rows = study.model.marginal((column,))[: described.values]
    if described.values < 2:
        return 0, 0
    if described.kind in ("numeric", "ordinal"):
        pairs = rows[:-1] + rows[1:]
        first = int(pairs.argmax())
        return first, first + 1
    first, second = (int(code) for code in rows.argsort()[::-1][:2])
    return min(first, second), max(first, second)


def _mean(study: Study, key: str) -> AskedQuestion | None:
    project = study.project
    numbers = [c.name for c in project.schema.columns if c.kind == "numeric"]
    if not numbers:
        st.info("This release has no numeric column, so there is no mean to ask for.")
        return None
    left, right = st.columns(2)
    with left:
        column = _column("Mean of", numbers, f"{key}-mean", project, nothing="Choose a number")
    with right:
        columns = [c.name for c in project.schema.columns if c.size > 1 and c.name != column]
        group = _column("Group by", columns, f"{key}-mean-group", project, nothing="no groups")
        one = other = None
        if group is not None:
            first, second = usual(study, group)
            one = _value(project, group, "Group", f"{key}-mean-one-{group}", second)
            other = _value(project, group, "Compared with", f"{key}-mean-other-{group}", first)
    if column is None:
        return None
    if one is None or other is None or group is None:
        return AskedQuestion("mean", column)
    if one == other:
        st.info("Choose two values that differ.")
        return None
    return AskedQuestion(
        "mean_difference", column, group=f"{_said(project, one)}:{project.schema[group].labels[other.code]}"
    )


def _quantile(project: Project, key: str) -> AskedQuestion | None:
    numbers = [c.name for c in project.schema.columns if c.kind == "numeric"]
    if not numbers:
        st.info("This release has no numeric column, so there is no quantile to ask for.")
        return None
    left, right = st.columns(2)
    with left:
        column = _column("Quantile of", numbers, f"{key}-quantile", project, nothing="Choose a number")
    with right:
        percent = st.number_input(
            "Share of the rows below it (%)", 0.1, 99.9, 50.0, key=f"{key}-quantile-at", persist_state="session"
        )
    return None if column is None else AskedQuestion("quantile", column, at=round(percent / 100, 6))


def _regression(project: Project, key: str) -> AskedQuestion | None:
    columns = [c.name for c in project.schema.columns if c.size > 1]
    left, right = st.columns(2)
    with left:
        outcome = _column("Outcome", columns, f"{key}-outcome", project, start=project.plan.target)
    with right:
        predictors = st.multiselect(
            "Predictors, each adjusted for the others",
            [c for c in columns if c != outcome],
            key=f"{key}-predictors",
            placeholder="Choose columns",
            format_func=partial(called, project.schema),
            persist_state="session",
        )
    if outcome is None or not predictors:
        return None
    event = outcome
    if project.schema[outcome].kind != "numeric":
        with left:
            event = _said(project, _value(project, outcome, "Value to predict", f"{key}-outcome-{outcome}"))
    return AskedQuestion("regression", event, on=tuple(predictors))


def _effect(project: Project, key: str, rows: int) -> AskedQuestion | None:
    columns = [c.name for c in project.schema.columns if c.size > 1]
    effect = planned_effect(project.plan)
    left, right = st.columns(2)
    with left:
        planned = effect.treatment if effect else None
        treatment = _column("Effect of", columns, f"{key}-treatment", project, "Choose the treatment", planned)
    with right:
        outcome = _column("Effect on", columns, f"{key}-effect-outcome", project, start=project.plan.target)
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
                persist_state="session",
            )
        figure = figure_from_text.effect_by_drawing(project, treatment, outcome, chosen, rows)
    except EspalierError as error:
        st.error(plain(error))
        return None
    adjusted = f"**Adjusted for {names(figure.adjust, 40)}.** " if figure.adjust else ""
    st.markdown(adjusted + plain(answer_text.adjusted_for(project, figure)))
    return AskedQuestion("effect", outcome, treatment=treatment, on=figure.adjust)


def _column(
    label: str,
    columns: Sequence[str],
    key: str,
    project: Project,
    nothing: str = "Choose a column",
    start: str | None = None,
) -> str | None:
    index = columns.index(start) if start in columns else None
    return st.selectbox(
        label,
        columns,
        index,
        key=key,
        placeholder=nothing,
        format_func=partial(called, project.schema),
        persist_state="session",
    )


def _said(project: Project, level: Level) -> str:
    return f"{level.column}={project.schema[level.column].labels[level.code]}"


def _value(project: Project, column: str, label: str, key: str, start: int | None = None) -> Level:
    described = project.schema[column]
    labels = [answer_text.value_name(described, code) for code in range(len(described.labels))]
    first = figure_from_text.last(described) if start is None else start
    code = st.selectbox(
        label,
        range(len(labels)),
        first,
        format_func=labels.__getitem__,
        key=f"{key}-{column}-value",
        persist_state="session",
    )
    if described.kind == "numeric":
        chosen = "missing cells only" if code > figure_from_text.last(described) else "this bin only"
        st.caption(f"{name(column)} is counted in bins: the question is about {chosen}.")
    return Level(column, code)


def show(study: Study, figure: Figure, answers: Sequence[Answer]) -> None:
    """Show the numbers, intervals and badges in a table, in sentences, and as text to copy."""
    if isinstance(figure, Regression):
        how = "Odds ratios by logistic regression" if figure.event is not None else "Linear regression"
        st.markdown(f"**{how}** of {name(figure.outcome)} on {names(figure.predictors, 40)}.")
    else:
        st.markdown(f"**Question:** {plain(answer_text.asked(study.project.schema, figure))}.")
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
