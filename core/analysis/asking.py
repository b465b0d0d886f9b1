"""Figures asked for in words: column names and values as text, turned into recipes over codes.

Each figure leaves out the rows where a column of it is missing. ``column=`` and ``column=(missing)`` ask about the
missing cells themselves; that column is then not left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeVar

from espalier.core.analysis.answers import Answer
from espalier.core.analysis.effect import StandardisedEffect, suggested_form
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
from espalier.core.analysis.missing_text import listed, missing_json, of_rows, percent, warning
from espalier.core.errors import GraphError, ProjectError
from espalier.core.graph.adjustment import Effect, checked, choices, verdict
from espalier.core.methods import METHODS, method_of, planned_effect
from espalier.core.methods.frame import fence
from espalier.core.project.file import Project
from espalier.core.project.schema import Column, Schema

BADGES = {
    "counted": "counted",
    "outcome pairs counted": "given the model",
    "thin": "too few rows",
    "assumed": "assumed",
    "no overlap": "no overlap",
}
"""What a badge is called on screen."""

F = TypeVar("F", Proportion, Difference, OddsRatio, Mean, MeanDifference)


def of_observed(schema: Schema, figure: F) -> F:
    """``figure`` in the rows where all its columns are observed, but for those whose missing cells it asks about."""
    levels = [value for value in vars(figure).values() if isinstance(value, Level)]
    return replace(figure, missing=_missing(schema, figure.columns, levels))


def _missing(schema: Schema, columns: Sequence[str], asked: Sequence[Level]) -> dict[str, int]:
    """The columns that may be missing, and the code of such a cell; without columns for which ``asked`` names it."""
    codes = {name: schema[name].values for name in columns if schema[name].missing}
    return {name: code for name, code in codes.items() if Level(name, code) not in asked}


def proportion(schema: Schema, event: str, among: str | None = None) -> Proportion:
    """P(event | among), each as ``column=value``; raises :class:`ProjectError` for what is not declared.

    >>> import espalier as es
    >>> columns = [es.Column(name, "categorical", ("no", "yes")) for name in ("smoker", "sick")]
    >>> es.proportion(es.Schema(tuple(columns)), "sick=yes", among="smoker=no").columns
    ('sick', 'smoker')
    """
    return of_observed(schema, Proportion(_level(schema, event), None if among is None else _level(schema, among)))


def mean(schema: Schema, column: str, among: str | None = None) -> Mean:
    """The mean of a numeric column, by the middles of its bins, in the rows ``among`` (``column=value``)."""
    return of_observed(schema, Mean(column, _scores(schema, column), None if among is None else _level(schema, among)))


def mean_difference(schema: Schema, column: str, group: str) -> MeanDifference:
    """The mean of a numeric column in one group less that in another; ``group`` as :func:`odds_ratio` takes it."""
    scores = _scores(schema, column)
    return of_observed(schema, MeanDifference(column, scores, *_apart(schema, column, group)))


def difference(schema: Schema, event: str, group: str) -> Difference:
    """P(event) in one group less that in another; ``group`` as :func:`odds_ratio` takes it.

    >>> import espalier as es
    >>> columns = [es.Column(name, "categorical", ("no", "yes")) for name in ("smoker", "sick")]
    >>> es.difference(es.Schema(tuple(columns)), "sick=yes", "smoker=yes:no").columns
    ('sick', 'smoker')
    """
    happens, _ = _pair(schema, event)
    return of_observed(schema, Difference(happens, *_apart(schema, event, group)))


def odds_ratio(schema: Schema, event: str, group: str) -> OddsRatio:
    """Each side as ``column``, ``column=value`` or ``column=value:other``.

    Without a value it is the last one; without another value to compare with, the first one that is not it.

    >>> import espalier as es
    >>> columns = [es.Column(name, "categorical", ("no", "yes")) for name in ("smoker", "sick")]
    >>> es.odds_ratio(es.Schema(tuple(columns)), "sick", "smoker").columns
    ('sick', 'smoker')
    """
    return of_observed(schema, OddsRatio(*_pair(schema, event), *_apart(schema, event, group)))


def regression(schema: Schema, outcome: str, predictors: Sequence[str]) -> Regression:
    """A logistic regression of the ``outcome`` (``column`` or ``column=value``), linear for a numeric one.

    A numeric column enters by the middles of its bins, any other by its categories.

    >>> import espalier as es
    >>> columns = [es.Column(name, "categorical", ("no", "yes")) for name in ("smoker", "sick")]
    >>> es.regression(es.Schema(tuple(columns)), "sick=yes", ["smoker"]).columns
    ('smoker', 'sick')
    """
    name = outcome.partition("=")[0]
    for each in (name, *predictors):
        _column(schema, each)
    if not predictors or name in predictors:
        raise ProjectError("a regression needs predictors other than its outcome", key="predictors")
    scores = {n: middles(schema[n]) for n in (name, *predictors) if schema[n].kind == "numeric"}
    event = None if name in scores and _bare(schema, outcome) else _pair(schema, outcome)[0].code
    sizes = {n: schema[n].size for n in (name, *predictors)}
    labels = {n: schema[n].labels for n in predictors}
    missing = _missing(schema, tuple(sizes), [] if event is None else [Level(name, event)])
    return Regression(name, tuple(predictors), sizes, event, scores, labels=labels, missing=missing)


def effect(
    schema: Schema, treatment: str, outcome: str, adjust: Sequence[str], rows: int, reference: str | None = None
) -> StandardisedEffect:
    """The effect of a treatment, crude and adjusted; ``outcome`` as :func:`regression` takes it.

    Strata are used as they are where they hold enough rows, else a logistic (linear) regression of main effects. A
    numeric outcome is compared by the middles of its bins.
    """
    name = outcome.partition("=")[0]
    for each in (treatment, name, *adjust):
        _column(schema, each)
    sizes = {n: schema[n].size for n in (treatment, name, *adjust)}
    linear = schema[name].kind == "numeric" and _bare(schema, outcome)
    event, scores = (None, middles(schema[name])) if linear else (_pair(schema, outcome)[0].code, ())
    code = 0 if reference is None else _code(schema[treatment], reference)
    values = {n: schema[n].values for n in sizes}
    form = suggested_form(rows, values, treatment, tuple(adjust))
    labels = {treatment: schema[treatment].labels}
    asked = [Level(treatment, code), *([] if event is None else [Level(name, event)])]
    missing = _missing(schema, tuple(sizes), asked)
    return StandardisedEffect(treatment, name, tuple(adjust), sizes, event, scores, code, form, labels, missing)


def effect_by_drawing(
    project: Project, treatment: str, outcome: str, adjust: Sequence[str] | None, rows: int
) -> StandardisedEffect:
    """:func:`effect` with ``adjust`` checked against the drawing; None takes the plan's set, or the cheapest valid one.

    Raises :class:`EspalierError` with the open path where a set is not valid, or none is.
    """
    schema, name = project.schema, outcome.partition("=")[0]
    for each in (treatment, name, *(adjust or ())):
        _column(schema, each)
    question, planned = Effect(project.dag, treatment, name), planned_effect(project.plan)
    if adjust is None and planned and (planned.treatment, planned.outcome) == (treatment, name):
        adjust = planned.adjust
    if adjust is None:
        found = choices(question, schema.sizes)
        if not found:
            raise GraphError(f"no columns of the table close every other path. {verdict(question, ()).sentence}")
        adjust = found[0].columns
    return effect(schema, treatment, outcome, schema.clique(checked(question, adjust)), rows)


def adjusted_for(project: Project, figure: StandardisedEffect) -> str:
    """What the effect is adjusted for and why that is right, as far as the drawing is; the form; hidden causes."""
    question = Effect(project.dag, figure.treatment, figure.outcome)
    said = verdict(question, figure.adjust).sentence
    forms = {
        "saturated": "Each stratum is compared as it is.",
        "logistic": "The strata are too many for so many rows: a regression with main effects stands for them, which "
        "is another estimand where the effect differs between strata.",
    }
    alone = "The crude figures are then the effect; there are no adjusted ones beside them."
    parts = [said, forms[figure.form] if figure.adjust else alone, "", question.caveat]
    if figure.event is None:
        parts[2] = f"{figure.outcome} was counted in bins; the figures are of their middles."
    return " ".join(filter(None, parts))


def asked(schema: Schema, figure: Figure) -> str:
    """What the numbers of a figure are of, in words: the values that are meant where the question left them out."""
    return _asked(schema, figure) + of_rows(tuple(name for name in figure.columns if name in figure.missing))


def _asked(schema: Schema, figure: Figure) -> str:
    def value(level: Level) -> str:
        return f"{level.column} = {schema[level.column].labels[level.code]}"

    def outcome(name: str, event: int | None) -> str:
        return f"the mean of {name}" if event is None else f"the share with {value(Level(name, event))}"

    match figure:
        case Proportion(event, None):
            return f"the share of rows with {value(event)}"
        case Proportion(event, Level() as among):
            return f"the share of rows with {value(event)}, among those with {value(among)}"
        case Difference(event, one, other):
            return f"the share with {value(event)}: where {value(one)}, less where {value(other)}"
        case Mean(column, _, None):
            return f"the mean of {column}"
        case Mean(column, _, Level() as among):
            return f"the mean of {column}, among rows with {value(among)}"
        case MeanDifference(column, _, one, other):
            return f"the mean of {column}: where {value(one)}, less where {value(other)}"
        case OddsRatio(event, instead, one, other):
            against = schema[instead.column].labels[instead.code]
            return f"the odds of {value(event)} against {against}: where {value(one)}, over where {value(other)}"
        case Regression(event=None):
            return f"a linear regression: what is added to {figure.outcome}"
        case Regression(event=int(code)):
            return f"a logistic regression: odds ratios of {value(Level(figure.outcome, code))}"
        case StandardisedEffect():
            return f"an effect on {outcome(figure.outcome, figure.event)}"
        case _:
            return ", ".join(figure.columns)


def middles(column: Column) -> tuple[float, ...]:
    """The middle of each bin of a numeric column."""
    return tuple((low + high) / 2 for low, high in pairwise(column.edges))


def sentence(answer: Answer) -> str:
    """The number with its interval, or why it has none.

    >>> import espalier as es, pandas as pd
    >>> frame = pd.DataFrame({"smoker": ["yes", "no"] * 500, "sick": ["yes", "no", "no", "no"] * 250})
    >>> columns = [es.Column(name, "categorical", ("no", "yes")) for name in frame]
    >>> project = es.Project("clinic", es.Schema(tuple(columns)), es.Plan("mst", epsilon=1, delta=1e-6))
    >>> study = es.Study.of(es.release(project, frame)).with_copies(5)
    >>> [answer] = study.ask(es.proportion(project.schema, "sick=yes"))
    >>> es.sentence(answer).split(":")[0]
    'proportion'
    """
    if not math.isfinite(answer.value):
        return f"{answer.name}: cannot be told. {answer.badge.sentence}"
    said, rows = f"{answer.name}: {shown(answer.value)}", of_rows(answer.observed)
    if answer.low is None or answer.high is None:
        return f"{said}{rows}, without an interval. {answer.badge.sentence}"
    promise = "" if answer.badge.promised else " given the model"
    ends = f"95 % interval {shown(answer.low)} to {shown(answer.high)}{promise}"
    return " ".join(filter(None, [f"{said} ({ends}){rows}.", answer.badge.sentence, why_wide(answer)]))


def why_wide(answer: Answer) -> str:
    """A sentence on what makes the interval wide; empty without an interval."""
    if answer.width is None:
        return ""
    width = answer.width
    group = f"its smallest group has about {width.rows:,.0f} rows" if math.isfinite(width.rows) else "it uses all rows"
    causes = {
        "noise": f"the noise ({group}, with noise of ± {width.noise:,.0f})",
        "few rows": f"the number of rows ({group}, with noise of ± {width.noise:,.0f})",
        "weak overlap": "weak overlap (in some strata one of the compared groups is rare)",
        "missing": f"missing cells ({percent(answer.left_out)} of the rows are left out)",
    }
    first, *others = (causes[cause] for cause in width.causes)
    return f"Its width comes mostly from {first}{f', and from {listed(others)}' if others else ''}."


def remedy(project: Project, figure: Figure, answers: Sequence[Answer]) -> str:
    """What a plan would have to say to earn the intervals that an assumption denies; empty where nothing is assumed.

    It reads the plan alone, so it tells nothing that the release does not.
    """
    if all(answer.badge.kind != "assumed" for answer in answers):
        return ""
    treatment = figure.treatment if isinstance(figure, StandardisedEffect) else None
    outcome = getattr(figure, "outcome", None) or next(
        (name for name in figure.columns if name in project.plan.weights), figure.columns[0]
    )
    others = [name for name in figure.columns if name not in (outcome, treatment)]
    needed = [(outcome, name) for name in (*others, *([treatment] if treatment else []))]
    method = method_of(project.plan)
    fences = fence(project, []) if method.fenced(project.plan) else ()
    if kept := next((pair for pair in needed if any(s.forbids(*pair) for s in fences)), None):
        return f"The fence keeps {kept[0]} and {kept[1]} apart, so no plan that has it counts them together."
    steps, able = method.guidance.counts_with(project, outcome, others, treatment), method
    if not steps:
        ways = ((other.guidance.counts_with(project, outcome, others, treatment), other) for other in METHODS.values())
        steps, able = next((way for way in ways if way[0]), ("", method))
    if not steps:
        return ""
    chosen = "" if able is method else f"choose the method {able.title}, "
    return (
        f"For an interval another release is needed, which spends budget again. On the Plan page {chosen}{steps}. "
        "Even then the figure needs enough rows for its noise."
    )


def shown(value: float) -> str:
    """Three figures, never in powers of ten."""
    digits = 3 if value == 0 or not math.isfinite(value) else max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(digits, 6)}f}"


def to_json(schema: Schema, answer: Answer) -> dict[str, Any]:
    """An answer as plain values, None for what cannot be told."""
    number = answer.value if math.isfinite(answer.value) else None
    return {
        "name": answer.name,
        "value": number,
        "low": answer.low,
        "high": answer.high,
        "ratio": answer.ratio,
        "badge": answer.badge.kind,
        "promised": answer.badge.promised,
        "why": answer.badge.sentence,
        "apart": list(answer.badge.apart),
        "given": list(answer.badge.given),
        "observed": list(answer.observed),
        "left_out": answer.left_out,
        "missing": [missing_json(schema, found) for found in answer.missing],
        "warnings": [warning(found) for found in answer.missing if found.differ],
        "width": why_wide(answer),
        "width_from": [] if answer.width is None else list(answer.width.causes),
    }


def table(answers: Sequence[Answer]) -> str:
    """A table to copy: tabs between cells, a line for each number."""
    lines = ["figure\testimate\tlow (95 %)\thigh (95 %)\tanswer"]
    for a in answers:
        ends = ["" if end is None else shown(end) for end in (a.low, a.high)]
        lines.append("\t".join([a.name, shown(a.value), *ends, BADGES[a.badge.kind]]))
    return "\n".join(lines) + "\n"


def lines(answers: Sequence[Answer]) -> list[Mapping[str, str]]:
    """The same for a table on screen."""
    head, *lines = [line.split("\t") for line in table(answers).splitlines()]
    return [dict(zip(head, line, strict=True)) for line in lines]


def last(column: Column) -> int:
    """The code of the last value that is not missing: what is usually asked about."""
    return column.values - 1


def _column(schema: Schema, name: str) -> Column:
    if name not in schema:
        known = ", ".join(c.name for c in schema.columns[:12]) + (", …" if len(schema.columns) > 12 else "")
        raise ProjectError(f"there is no column {name!r} in the release; it has {known}", column=name)
    return schema[name]


def _scores(schema: Schema, name: str) -> tuple[float, ...]:
    column = _column(schema, name)
    if column.kind != "numeric":
        raise ProjectError(f"{name!r} has categories, so it has no mean; ask for a proportion", column=name)
    return middles(column)


def _codes(column: Column) -> dict[str, int]:
    """The code of each value as it may be written; an empty text is the missing cell, where there may be one."""
    written = {label: code for code, label in reversed(list(enumerate(column.labels)))}
    return written | ({"": column.values} if column.missing else {})


def _code(column: Column, value: str) -> int:
    codes = _codes(column)
    if value not in codes:
        known = ", ".join(column.labels[:12]) + (" …" if column.size > 12 else "")
        raise ProjectError(f"{column.name!r} has no value {value!r}; it has {known}", column=column.name)
    return codes[value]


def _bare(schema: Schema, text: str) -> bool:
    """Does ``column`` or ``column=value`` name no value? ``column=`` names the missing cell, where there may be one."""
    name, given, value = text.partition("=")
    return not value and not (given and schema[name].missing)


def _level(schema: Schema, text: str) -> Level:
    name, _, value = text.partition("=")
    column = _column(schema, name)
    if _bare(schema, text):
        raise ProjectError(f"say which value of {name!r} is meant: {name}={column.labels[-1]}, say", column=name)
    return Level(name, _code(column, value))


def _pair(schema: Schema, text: str) -> tuple[Level, Level]:
    """The value that is meant, and the one it is compared with."""
    name, _, value = text.partition("=")
    column = _column(schema, name)
    codes = _codes(column)
    if column.size < 2:
        raise ProjectError(f"{name!r} has only one value: there is nothing to compare", column=name)
    for i in (i for i, mark in enumerate(value) if mark == ":"):
        if value[:i] in codes and value[i + 1 :] in codes:
            return Level(name, codes[value[:i]]), Level(name, codes[value[i + 1 :]])
    one = last(column) if _bare(schema, text) else _code(column, value)
    return Level(name, one), Level(name, 1 if one == 0 else 0)


def _apart(schema: Schema, event: str, group: str) -> tuple[Level, Level]:
    one, other = _pair(schema, group)
    if one.column == event.partition("=")[0]:
        raise ProjectError("the two columns must differ", column=one.column)
    return one, other
