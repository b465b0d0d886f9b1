"""Editor for a study's planned analyses: desired half-widths, assumptions, and promised half-widths."""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st

from espalier.core.analysis.answer_text import event_name, text_with_label
from espalier.core.analysis.expected_regressions import coefficients
from espalier.core.analysis.planned_analyses import unpromised
from espalier.core.analysis.planned_text import asked, sentence
from espalier.core.errors import EspalierError
from espalier.core.graph.adjustment import Effect, choices
from espalier.core.planning.preview import Preview
from espalier.core.project.analyses import PlannedAnalysis, read_analysis
from espalier.core.project.column import Column
from espalier.core.project.regressions import BoughtRegression
from espalier.core.project.schema import ToBuy
from espalier.pages.common import shell
from espalier.pages.common.text import plain
from espalier.pages.plan import listed
from espalier.pages.plan.regression_editor import FAMILIES, outcomes
from espalier.pages.session.session import Session

_ABOUT = (
    "List the figures that the study will estimate, and how wide each 95 % interval may be. The plan then "
    "promises half-widths from your assumptions alone, and states the ε needed for all desired half-widths. The "
    "release buys exactly the counts that the figures need, or the sums of the regression."
)
_KINDS = {
    "proportion": "proportion",
    "difference": "difference of shares",
    "odds_ratio": "odds ratio",
    "effect": "causal effect according to the drawing",
    "regression": "coefficient of a regression",
    "survival": "survival table",
}


def show(state: Session) -> Any:
    """Show the analyses, the builder and the share of the budget. Return the place where a conflict is shown."""
    folder = shell.folded("Planned analyses", partial(_fields, state), bool(state.project.analyses), "analysis-")
    spot = folder.container()
    if reason := state.trouble.get("analyses"):
        spot.error(plain(reason))
    return spot


def _fields(state: Session) -> None:
    analyses = state.project.analyses
    st.markdown(_ABOUT)
    for i, one in enumerate(analyses):
        wanted = "" if one.half_width is None else f", ± {one.half_width:g}"
        listed.line(
            f"**{plain(one.name)}**: {_KINDS[one.kind]}: {plain(asked(one.to_json()))}{wanted}",
            f"analyses-{i}-{state.opened}",
            f"Remove the analysis {one.name}",
            *(_take, state, (*analyses[:i], *analyses[i + 1 :])),
        )
    _build(state)
    if analyses:
        listed.share(
            state,
            "analysis_share",
            "Share of the budget for analyses (%)",
            "The method gets the rest. The share is divided among the analyses according to their needs.",
        )


def _build(state: Session) -> None:
    schema, at = state.project.schema, f"{state.opened}-{len(state.project.analyses)}"
    columns = [c for c in schema.columns if not isinstance(c, ToBuy) and c.values > 1]
    kind = st.selectbox("Figure", list(_KINDS), format_func=_KINDS.__getitem__, key=f"analysis-kind-{at}")
    further = {"regression": _regression, "survival": _survival}
    found = further[kind](state, columns, at) if kind in further else _counts(state, kind, columns, at)
    if found is None:
        return
    found["half_width"] = st.number_input(
        "Desired half-width", 0.001, 10.0, 0.05, key=f"analysis-width-{at}", help="For an odds ratio, on the log scale."
    )
    called = st.text_input("Name", key=f"analysis-name-{at}", placeholder="a short name for the report")
    found["name"] = called.strip()
    st.button(
        "Add the analysis",
        on_click=_add,
        args=(state, found),
        disabled=not found["name"],
        key=f"analysis-add-{at}",
        icon=":material/add:",
    )


def _regression(state: Session, columns: list[Column], at: str) -> dict[str, Any] | None:
    """Show the fields of a regression; return None until all choices are made."""
    schema = state.project.schema
    family = st.selectbox("Family", list(FAMILIES), format_func=FAMILIES.__getitem__, key=f"analysis-family-{at}")
    outcome = st.selectbox(
        "Outcome",
        outcomes(columns, family),
        index=None,
        format_func=partial(event_name, schema),
        key=f"analysis-outcome-{family}-{at}",
    )
    if outcome is None:
        return None
    name, _, value = (outcome, "", "") if outcome in schema else outcome.partition("=")
    others = [c.name for c in columns if c.name != name]
    on = st.multiselect("Predictors", others, key=f"analysis-on-{at}", placeholder="columns")
    if not on:
        return None
    found: dict[str, Any] = {"kind": "regression", "outcome": outcome, "on": on, "family": family}
    try:
        regression = BoughtRegression.from_json({"name": "new", **{k: found[k] for k in ("outcome", "on", "family")}})
        regression.check(schema)
        found["term"] = st.selectbox(
            "Coefficient", coefficients(regression, schema), key=f"analysis-term-{'-'.join(on)}-{at}"
        )
    except EspalierError as error:
        st.error(plain(error))
        return None
    column = schema[name]
    if not value and column.kind == "numeric":
        low, high = column.edges[0], column.edges[-1]
        mean = st.number_input("Assumed mean of the outcome", value=(low + high) / 2, key=f"analysis-mean-{name}-{at}")
        spread = st.number_input(
            "Assumed standard deviation of the outcome", value=(high - low) / 12**0.5, key=f"analysis-sd-{name}-{at}"
        )
        found["assume"] = {"means": {name: mean}, "spreads": {name: spread}}
    elif column.values == 2:
        share = st.number_input("Assumed share of the event", 0.01, 0.99, 0.5, key=f"analysis-share-{outcome}-{at}")
        code = column.value_names.index(value) if value else 1
        found["assume"] = {"shares": {name: [share, 1 - share] if code == 0 else [1 - share, share]}}
    st.caption(
        "The promise assumes that the values of each predictor are evenly spread and that predictors are independent. "
        "The project file can state other assumptions."
    )
    return found


def _adjustment(state: Session, treatment: str, outcome: str, at: str) -> list[str]:
    """Show the columns for which an effect is adjusted. The default is the drawing's cheapest valid set."""
    project = state.project
    drawn = {name for edge in project.dag.edges for name in edge}
    valid = (
        choices(Effect(project.dag, treatment, outcome), project.schema.sizes) if {treatment, outcome} <= drawn else ()
    )
    others = [c.name for c in project.schema.columns if c.name not in (treatment, outcome)]
    return st.multiselect(
        "Adjusted for",
        others,
        list(valid[0].columns) if valid else [],
        key=f"analysis-adjust-{treatment}-{outcome}-{at}",
        help="The set must be valid according to the drawing. Its strata are counted together.",
    )


def _survival(state: Session, columns: list[Column], at: str) -> dict[str, Any] | None:
    """Show the fields of a survival table; return None until all choices are made."""
    schema = state.project.schema
    times = [c.name for c in columns if c.kind != "categorical" and c.dates is None]
    time = st.selectbox(
        "Time from the start to the event or the last visit",
        times,
        index=None,
        key=f"analysis-time-{at}",
        placeholder="numbers in bins",
    )
    if time is None:
        return None
    others = [c for c in columns if c.name != time]
    event = st.selectbox(
        "Event at that time",
        [f"{c.name}={value}" for c in others for value in c.value_names],
        index=None,
        format_func=partial(event_name, schema),
        key=f"analysis-survived-{time}-{at}",
        placeholder="column=value",
    )
    if event is None:
        return None
    found: dict[str, Any] = {"kind": "survival", "time": time, "event": event}
    groups = [c.name for c in others if c.name != event.partition("=")[0]]
    group = st.selectbox(
        "Groups to compare", groups, index=None, key=f"analysis-arm-{time}-{at}", placeholder="none (a single table)"
    )
    if group is not None:
        names, shown = schema[group].value_names, partial(text_with_label, schema[group])
        one = st.selectbox("Group", names, len(names) - 1, format_func=shown, key=f"analysis-one-{group}-{at}")
        other = st.selectbox("Compared with", names, 0, format_func=shown, key=f"analysis-other-{group}-{at}")
        found["group"] = f"{group}={one}:{other}"
    numeric, ends = schema[time].kind == "numeric", schema[time].value_names
    found["at"] = st.selectbox(
        "Survival beyond this time",
        schema[time].edges[1:] if numeric else ends,
        index=(len(ends) - 1) // 2,
        format_func=(lambda x: f"{x:g}") if numeric else str,
        key=f"analysis-at-{time}-{at}",
        help="The promise is for survival beyond this time. The release contains the whole table.",
    )
    found["assume"] = {"shares": [_assumed(i, 1 + (group is not None), at) for i in range(1 + (group is not None))]}
    st.caption("The promise assumes that times are spread evenly over the intervals.")
    return found


def _assumed(i: int, shares: int, at: str) -> float:
    label = f"Assumed share of the event in group {i + 1}" if shares > 1 else "Assumed share of the event"
    return st.number_input(label, 0.01, 0.99, 0.5, key=f"analysis-assumed-{i}-{at}")


def _counts(state: Session, kind: str, columns: list[Column], at: str) -> dict[str, Any] | None:
    """Show the fields of a question about counts; return None until all choices are made."""
    schema = state.project.schema
    events = [f"{c.name}={value}" for c in columns for value in c.value_names]
    event = st.selectbox(
        "Event",
        events,
        index=None,
        format_func=partial(event_name, schema),
        key=f"analysis-event-{at}",
        placeholder="column=value",
    )
    if event is None:
        return None
    found: dict[str, Any] = {"kind": kind, "event": event}
    shares = 1
    if kind != "proportion":
        group = st.selectbox("Group by", [c.name for c in columns], index=None, key=f"analysis-group-{at}")
        if group is None:
            return None
        names, shares, shown = schema[group].value_names, 2, partial(text_with_label, schema[group])
        one = st.selectbox("Group", names, len(names) - 1, format_func=shown, key=f"analysis-one-{group}-{at}")
        other = st.selectbox("Compared with", names, 0, format_func=shown, key=f"analysis-other-{group}-{at}")
        found["group"] = f"{group}={one}:{other}"
        if kind == "effect":
            found["adjust"] = _adjustment(state, group, event.partition("=")[0], at)
    found["assume"] = {"shares": [_assumed(i, shares, at) for i in range(shares)]}
    return found


def _add(state: Session, found: dict[str, Any]) -> None:
    try:
        _take(state, (*state.project.analyses, read_analysis(found)))
    except EspalierError as error:
        state.trouble["analyses"] = str(error)


def _take(state: Session, taken: tuple[PlannedAnalysis, ...]) -> None:
    share = state.project.plan.analysis_share or (0.2 if taken else 0.0)
    try:
        state.editor.change_analyses(taken, share if taken else 0.0)
        state.trouble.pop("analyses", None)
    except EspalierError as error:
        state.trouble["analyses"] = str(error)


def planned(seen: Preview) -> None:
    """Show the promised half-width of each analysis, before any row is read."""
    if not seen.analyses:
        return
    st.subheader("Promised half-widths of your analyses", anchor=False)
    st.markdown("\n".join(f"- {plain(sentence(one.plan()))}" for one in seen.analyses))
    if why := unpromised(seen.analyses, seen.budget):
        st.info(plain(why))
    if (reaches := seen.analyses_epsilon) is not None:
        st.markdown(f"With these shares of the budget, all desired half-widths together need ε = {reaches:.3g}.")
    st.caption("If the assumptions hold, 9 of 10 releases achieve the promised half-width of each figure.")
