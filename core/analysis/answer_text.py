"""Answers as text: sentences, tables to copy, plain values for JSON, and advice on how to obtain a missing interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from espalier.core.analysis.answers import Answer
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
from espalier.core.analysis.missing_text import listed, missing_json, of_rows, percent, warning
from espalier.core.analysis.quantiles import Quantile
from espalier.core.graph.adjustment import Effect, verdict
from espalier.core.methods import METHODS, method_of
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
"""Name of each kind of badge on screen."""


def adjusted_for(project: Project, figure: StandardisedEffect) -> str:
    """Return sentences about an effect: the reason why its adjustment set is valid under the drawing, its form, and its
    caveats.
    """
    question = Effect(project.dag, figure.treatment, figure.outcome)
    said = verdict(question, figure.adjust).sentence
    forms = {
        "saturated": "The groups are compared within each stratum.",
        "logistic": "There are too many strata for the number of rows, so a regression with main effects replaces "
        "them. If the effect differs between strata, this is a different estimand.",
    }
    alone = "The crude figures are therefore the effect itself, and there are no adjusted figures."
    parts = [said, forms[figure.form] if figure.adjust else alone, "", question.caveat]
    if figure.event is None:
        parts[2] = f"{figure.outcome} was counted in bins; the figures use the midpoints of the bins."
    return " ".join(filter(None, parts))


def asked(schema: Schema, figure: Figure) -> str:
    """Describe a figure, including the values that the question left at their defaults."""
    levels = getattr(figure, "among", ())
    among = [f"{level.column} = {value_name(schema[level.column], level.code)}" for level in levels]
    within = f", among those with {' and '.join(among)}" if among else ""
    return _asked(schema, figure) + within + of_rows(tuple(name for name in figure.columns if name in figure.missing))


def _asked(schema: Schema, figure: Figure) -> str:
    def value(level: Level) -> str:
        return f"{level.column} = {value_name(schema[level.column], level.code)}"

    def unit(column: str) -> str:
        return f"{column} ({schema[column].unit})" if schema[column].unit else column

    def outcome(name: str, event: int | None) -> str:
        return f"the mean of {unit(name)}" if event is None else f"the share with {value(Level(name, event))}"

    match figure:
        case Proportion(event):
            return f"the share of rows with {value(event)}"
        case Difference(event, one, other):
            return f"the difference in the share with {value(event)}: {value(one)} minus {value(other)}"
        case Mean(column, _):
            return f"the mean of {unit(column)}"
        case Quantile(column, _):
            return f"the {figure.parts()[0].name} of {unit(column)}"
        case MeanDifference(column, _, one, other):
            return f"the difference in the mean of {unit(column)}: {value(one)} minus {value(other)}"
        case OddsRatio(event, instead, one, other):
            against = value_name(schema[instead.column], instead.code)
            return f"the odds ratio of {value(event)} against {against}: {value(one)} relative to {value(other)}"
        case Regression(event=None):
            return f"a linear regression: changes in {unit(figure.outcome)}"
        case Regression(event=int(code)):
            return f"a logistic regression: odds ratios of {value(Level(figure.outcome, code))}"
        case StandardisedEffect():
            return f"the effect of {figure.treatment} on {outcome(figure.outcome, figure.event)}"
        case _:
            return ", ".join(figure.columns)


def value_name(column: Column, code: int) -> str:
    """Return a category as shown to people: its text, and its label if it has one."""
    return text_with_label(column, column.labels[code])


def value_names(column: Column) -> list[str]:
    """Return all categories of a column as shown to people."""
    return [text_with_label(column, text) for text in column.labels]


def event_name(schema: Schema, event: str) -> str:
    """Return ``column=value`` with the value's label in brackets. A bare column name is returned unchanged.

    A name may contain ``=`` too, so the longest column name that matches is used.
    """
    found = [c for c in schema.columns if event.startswith(f"{c.name}=")]
    if event in schema or not found:
        return event
    column = max(found, key=lambda c: len(c.name))
    return f"{column.name}={text_with_label(column, event[len(column.name) + 1 :])}"


def text_with_label(column: Column, text: str) -> str:
    """Return a value and its label in brackets, if it has one."""
    label = column.label_of(text)
    return f"{text} ({label})" if label else text


def sentence(answer: Answer) -> str:
    """Return one or two sentences: the number with its interval, or the reason why it has none.

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
        return f"{answer.name}: cannot be estimated. {answer.badge.sentence}"
    said, rows = f"{answer.name}: {shown(answer.value)}", of_rows(answer.observed)
    if answer.low is None or answer.high is None:
        return f"{said}{rows}, without an interval. {answer.badge.sentence}"
    promise = "" if answer.badge.promised else " given the model"
    ends = f"{covering(answer)} {shown(answer.low)} to {shown(answer.high)}{promise}"
    inside = ""
    if answer.at_midpoints is not None:
        low, high = map(shown, answer.at_midpoints)
        inside = f"If every number were at the middle of its bin, the interval would be {low} to {high}."
    return " ".join(filter(None, [f"{said} ({ends}){rows}.", inside, answer.badge.sentence, why_wide(answer)]))


def covering(answer: Answer) -> str:
    """Return the name of an answer's interval: its level, and the number of intervals that hold simultaneously."""
    together = f", together with {answer.family - 1} others," if answer.family > 1 else ""
    return f"{100 * answer.level:g} % interval{together}"


def why_wide(answer: Answer) -> str:
    """Return a sentence that explains the interval's width; empty without an interval."""
    if answer.width is None:
        return ""
    width = answer.width
    group = f"the smallest group has about {width.rows:,.0f} rows" if math.isfinite(width.rows) else "all rows are used"
    causes = {
        "noise": f"the noise ({group}, with noise of ± {width.noise:,.0f})",
        "few rows": f"the number of rows ({group}, with noise of ± {width.noise:,.0f})",
        "weak overlap": "weak overlap (some strata contain few rows of one compared group)",
        "bins": "the bins (the counts do not show where the numbers lie inside them)",
        "missing": f"missing cells ({percent(answer.left_out)} of the rows are left out)",
    }
    first, *others = (causes[cause] for cause in width.causes)
    return f"The width of the interval comes mostly from {first}{f', and from {listed(others)}' if others else ''}."


def remedy(project: Project, figure: Figure, answers: Sequence[Answer]) -> str:
    """Return advice on changing the plan so that the missing intervals become available; empty if no answer rests on an
    assumption. The advice depends only on the plan, so it reveals nothing beyond the release.
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
        return f"The fence separates {kept[0]} and {kept[1]}, so no plan with this fence can count them together."
    steps, able = method.guidance.counts_with(project, outcome, others, treatment), method
    if not steps:
        ways = ((other.guidance.counts_with(project, outcome, others, treatment), other) for other in METHODS.values())
        steps, able = next((way for way in ways if way[0]), ("", method))
    if not steps:
        return ""
    chosen = "" if able is method else f"choose the method {able.title}, "
    return (
        f"An interval requires another release, which spends budget again. On the Plan page, {chosen}{steps}. "
        "Even then, the figure needs enough rows relative to its noise."
    )


def shown(value: float) -> str:
    """Format a number with three significant digits, never in scientific notation."""
    digits = 3 if value == 0 or not math.isfinite(value) else max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(digits, 6)}f}"


def to_json(schema: Schema, answer: Answer) -> dict[str, Any]:
    """Return an answer as plain values, with `None` for a number that cannot be estimated."""
    number = answer.value if math.isfinite(answer.value) else None
    return {
        "name": answer.name,
        "value": number,
        "low": answer.low,
        "high": answer.high,
        "at_midpoints": None if answer.at_midpoints is None else list(answer.at_midpoints),
        "level": answer.level,
        "family": answer.family,
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
    """Return a table to copy: one line per number, cells separated by tabs."""
    level = f"{100 * answers[0].level:g} %" if answers else "95 %"
    lines = [f"figure\testimate\tlow ({level})\thigh ({level})\tanswer"]
    for a in answers:
        ends = ["" if end is None else shown(end) for end in (a.low, a.high)]
        lines.append("\t".join([a.name, shown(a.value), *ends, BADGES[a.badge.kind]]))
    return "\n".join(lines) + "\n"


def lines(answers: Sequence[Answer]) -> list[Mapping[str, str]]:
    """Return the rows of `table` for display, each a dictionary by column heading."""
    head, *lines = [line.split("\t") for line in table(answers).splitlines()]
    return [dict(zip(head, line, strict=True)) for line in lines]
