"""Parser of figures: column names and values in text become recipes over codes.

Each figure leaves out rows with a missing cell in its columns. ``column=`` and ``column=(missing)`` ask about the
missing cells themselves, so rows where that column is missing are kept.

A group is written ``column``, ``column=value`` or ``column=value:other``. ``value`` defaults to the last value.
``other`` defaults to the first value, or to the second if ``value`` is the first. Every function raises
:class:`ProjectError` for a column or value that the schema does not declare.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

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
from espalier.core.analysis.quantiles import Quantile
from espalier.core.errors import GraphError, ProjectError
from espalier.core.graph.adjustment import Effect, checked, choices, verdict
from espalier.core.methods import planned_effect
from espalier.core.project.asked import AskedQuestion
from espalier.core.project.file import Project
from espalier.core.project.schema import Column, Schema

F = TypeVar("F", Proportion, Difference, OddsRatio, Mean, MeanDifference, Quantile)


Among = str | Sequence[str] | None
"""Conditions, each written ``column=value``. A single condition may be a plain string."""


def of_observed(schema: Schema, figure: F) -> F:
    """Return ``figure`` restricted to rows where its columns are observed. Columns whose missing cells the question
    asks about are exempt.

    Raises :class:`ProjectError` for a figure that names a column twice.
    """
    if len(set(figure.columns)) < len(figure.columns):
        twice = next(name for name in figure.columns if figure.columns.count(name) > 1)
        raise ProjectError(
            f"The question names {twice!r} twice. Each condition needs a different column.", column=twice
        )
    levels = [value for value in vars(figure).values() if isinstance(value, Level)] + [*figure.among]
    return replace(figure, missing=_missing(schema, figure.columns, levels))


def _missing(schema: Schema, columns: Sequence[str], asked: Sequence[Level]) -> dict[str, int]:
    """Return the columns that can have missing cells, with the code of a missing cell, except those that ``asked``
    names."""
    codes = {name: schema[name].values for name in columns if schema[name].missing}
    return {name: code for name, code in codes.items() if Level(name, code) not in asked}


def _among(schema: Schema, among: Among) -> tuple[Level, ...]:
    texts = [among] if isinstance(among, str) else among or ()
    return tuple(_level(schema, text) for text in texts)


def proportion(schema: Schema, event: str, among: Among = None) -> Proportion:
    """Return the proportion P(event | among). The event and each condition are written ``column=value``.

    >>> import espalier as es
    >>> columns = [es.Column(name, "categorical", ("no", "yes")) for name in ("smoker", "sick")]
    >>> es.proportion(es.Schema(tuple(columns)), "sick=yes", among="smoker=no").columns
    ('sick', 'smoker')
    """
    return of_observed(schema, Proportion(_level(schema, event), _among(schema, among)))


def mean(schema: Schema, column: str, among: Among = None) -> Mean:
    """Return the mean of a numeric column in the rows ``among`` (``column=value``).

    The estimate places every number at the middle of its bin. The interval is valid for any positions of the numbers
    inside their bins.

    >>> import espalier as es
    >>> es.mean(es.Schema((es.Column("age", "numeric", edges=(0.0, 50.0, 100.0)),)), "age").columns
    ('age',)
    """
    scores, ranges = _inside(schema, column)
    return of_observed(schema, Mean(column, scores, _among(schema, among), ranges=ranges))


def quantile(schema: Schema, column: str, probability: float = 0.5, among: Among = None) -> Quantile:
    """Return a quantile of a numeric column in the rows ``among``; the median unless ``probability`` is given.

    >>> import espalier as es
    >>> es.quantile(es.Schema((es.Column("age", "numeric", edges=(0.0, 50.0, 100.0)),)), "age").columns
    ('age',)
    """
    if not 0 < probability < 1:
        raise ProjectError(f"The probability of a quantile ({probability:g}) must be between 0 and 1.", key="at")
    _scores(schema, column)
    return of_observed(schema, Quantile(column, probability, tuple(schema[column].edges), _among(schema, among)))


def mean_difference(schema: Schema, column: str, group: str, among: Among = None) -> MeanDifference:
    """Return the difference of a numeric column's means between two groups. Its interval is computed as for `mean`."""
    (one, other), (scores, ranges) = _apart(schema, column, group), _inside(schema, column)
    figure = MeanDifference(column, scores, one, other, among=_among(schema, among), ranges=ranges)
    return of_observed(schema, figure)


def difference(schema: Schema, event: str, group: str, among: Among = None) -> Difference:
    """Return the difference of P(event) between two groups.

    >>> import espalier as es
    >>> columns = [es.Column(name, "categorical", ("no", "yes")) for name in ("smoker", "sick")]
    >>> es.difference(es.Schema(tuple(columns)), "sick=yes", "smoker=yes:no").columns
    ('sick', 'smoker')
    """
    happens, _ = _pair(schema, event)
    return of_observed(schema, Difference(happens, *_apart(schema, event, group), among=_among(schema, among)))


def odds_ratio(schema: Schema, event: str, group: str, among: Among = None) -> OddsRatio:
    """Return the odds ratio of ``event`` between two groups; ``event`` is written like a group.

    >>> import espalier as es
    >>> columns = [es.Column(name, "categorical", ("no", "yes")) for name in ("smoker", "sick")]
    >>> es.odds_ratio(es.Schema(tuple(columns)), "sick", "smoker").columns
    ('sick', 'smoker')
    """
    apart = _apart(schema, event, group)
    return of_observed(schema, OddsRatio(*_pair(schema, event), *apart, among=_among(schema, among)))


def regression(schema: Schema, outcome: str, predictors: Sequence[str]) -> Regression:
    """Return a regression of ``outcome``: logistic for ``column=value``, linear for the name of a numeric column.

    A numeric predictor is represented by its bin midpoints, any other by its categories.

    >>> import espalier as es
    >>> columns = [es.Column(name, "categorical", ("no", "yes")) for name in ("smoker", "sick")]
    >>> es.regression(es.Schema(tuple(columns)), "sick=yes", ["smoker"]).columns
    ('smoker', 'sick')
    """
    name = outcome.partition("=")[0]
    for each in (name, *predictors):
        _column(schema, each)
    if not predictors or name in predictors:
        raise ProjectError("A regression needs at least one predictor other than its outcome.", key="predictors")
    scores = {n: middles(schema[n]) for n in (name, *predictors) if schema[n].kind == "numeric"}
    event = None if name in scores and _bare(schema, outcome) else _pair(schema, outcome)[0].code
    sizes = {n: schema[n].size for n in (name, *predictors)}
    labels = {n: schema[n].labels for n in predictors}
    missing = _missing(schema, tuple(sizes), [] if event is None else [Level(name, event)])
    return Regression(name, tuple(predictors), sizes, event, scores, labels=labels, missing=missing)


def effect(
    schema: Schema, treatment: str, outcome: str, adjust: Sequence[str], rows: int, reference: str | None = None
) -> StandardisedEffect:
    """Return the crude and adjusted effect of a treatment; ``outcome`` is written as for :func:`regression`.

    The effect is stratified if there are enough rows in the strata. Otherwise it uses a logistic or linear regression
    with main effects. A numeric outcome is compared by its bin midpoints.
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
    """Return :func:`effect` with an adjustment set that the drawing allows.

    ``adjust`` defaults to the plan's set, or else to the cheapest valid set. Raises an :class:`EspalierError` that
    names an open path if the set is not valid, or if there is no valid set.
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
            raise GraphError(f"No set of columns blocks every other path. {verdict(question, ()).sentence}")
        adjust = found[0].columns
    return effect(schema, treatment, outcome, schema.clique(checked(question, adjust)), rows)


def figure_of(project: Project, asked: AskedQuestion, rows: int) -> Figure:
    """Return the figure of a question; ``rows`` is the number of rows of a copy."""
    schema = project.schema
    match asked.kind:
        case "proportion":
            return proportion(schema, asked.of, asked.among)
        case "difference":
            return difference(schema, asked.of, asked.group, asked.among)
        case "odds_ratio":
            return odds_ratio(schema, asked.of, asked.group, asked.among)
        case "mean":
            return mean(schema, asked.of, asked.among)
        case "quantile":
            return quantile(schema, asked.of, asked.at, asked.among)
        case "mean_difference":
            return mean_difference(schema, asked.of, asked.group, asked.among)
        case "regression":
            return regression(schema, asked.of, asked.on or ())
        case "effect":
            return effect_by_drawing(project, asked.treatment, asked.of, asked.on, rows)


def middles(column: Column) -> tuple[float, ...]:
    """Return the midpoint of each bin of a numeric column."""
    return tuple((low + high) / 2 for low, high in pairwise(column.edges))


def _inside(schema: Schema, name: str) -> tuple[tuple[float, ...], tuple[tuple[float, float], ...]]:
    """Return the middle of each bin of a numeric column, and the smallest and largest number that the bin can contain.

    Bins are half-open, the last one closed. There are no ranges if each bin contains a single whole number.
    """
    _scores(schema, name)
    column = schema[name]
    ranges = list(pairwise(column.edges))
    if column.integer:
        whole = [(float(math.ceil(low)), float(math.ceil(high) - 1)) for low, high in ranges]
        ranges = [*whole[:-1], (whole[-1][0], float(math.floor(column.edges[-1])))]
    middle = tuple((low + high) / 2 for low, high in ranges)
    return middle, tuple(ranges) if any(low < high for low, high in ranges) else ()


def last(column: Column) -> int:
    """Return the code of the last value that is not missing, which is the default in a question."""
    return column.values - 1


def _column(schema: Schema, name: str) -> Column:
    if name not in schema:
        known = ", ".join(c.name for c in schema.columns[:12]) + (", …" if len(schema.columns) > 12 else "")
        raise ProjectError(f"The release has no column {name!r}; it has {known}.", column=name)
    return schema[name]


def _scores(schema: Schema, name: str) -> tuple[float, ...]:
    column = _column(schema, name)
    if column.kind != "numeric":
        raise ProjectError(
            f"{name!r} has categories, so it has no mean or quantile. Ask for a proportion.", column=name
        )
    return middles(column)


def _codes(column: Column) -> dict[str, int]:
    """Return the code of each value by its text. An empty string stands for a missing cell, if there can be any."""
    written = {label: code for code, label in reversed(list(enumerate(column.labels)))}
    return written | ({"": column.values} if column.missing else {})


def _code(column: Column, value: str) -> int:
    codes = _codes(column)
    if value not in codes:
        known = ", ".join(column.labels[:12]) + (" …" if column.size > 12 else "")
        raise ProjectError(f"{column.name!r} has no value {value!r}; it has {known}", column=column.name)
    return codes[value]


def _bare(schema: Schema, text: str) -> bool:
    """Return whether the text names no value. ``column=`` names the missing cell of a column that can have missing
    cells."""
    name, given, value = text.partition("=")
    return not value and not (given and schema[name].missing)


def _level(schema: Schema, text: str) -> Level:
    name, _, value = text.partition("=")
    column = _column(schema, name)
    if _bare(schema, text):
        raise ProjectError(f"Name a value of {name!r}, for example {name}={column.labels[-1]}.", column=name)
    return Level(name, _code(column, value))


def _pair(schema: Schema, text: str) -> tuple[Level, Level]:
    """Return the named value, and the value with which it is compared."""
    name, _, value = text.partition("=")
    column = _column(schema, name)
    codes = _codes(column)
    if column.size < 2:
        raise ProjectError(f"{name!r} has only one value, so there is nothing to compare.", column=name)
    for i in (i for i, mark in enumerate(value) if mark == ":"):
        if value[:i] in codes and value[i + 1 :] in codes:
            return Level(name, codes[value[:i]]), Level(name, codes[value[i + 1 :]])
    one = last(column) if _bare(schema, text) else _code(column, value)
    return Level(name, one), Level(name, 1 if one == 0 else 0)


def _apart(schema: Schema, event: str, group: str) -> tuple[Level, Level]:
    one, other = _pair(schema, group)
    if one.column == event.partition("=")[0]:
        raise ProjectError(
            f"The event and the groups both use {one.column!r}. Choose two different columns.",
            column=one.column,
        )
    return one, other
