"""A schema that is bought: bin edges, ranges and categories of the columns for which nobody has declared them.

All of it is bought from the rows that the release is made from, after the split and the truncation, before the method
runs. What is bought, in which order and at what price is public (:func:`prices`); which columns these are, the number
of their bins or categories at most, and the range of numbers where it is known, are declared. Every part is a
:class:`Draw`; categories carry a δ₀ (:mod:`core.privacy.partitions`), bins none (:mod:`core.privacy.quantiles`).

Proof: each column's parts are mechanisms proved there; ρ and δ₀ of all columns add up (adaptive composition), and what
follows is calibrated to what is left. Which cells are missing is not bought: a bought column always may be empty.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from core.errors import ProjectError
from core.privacy.accounting import Budget
from core.privacy.curator import Spending
from core.privacy.draws import Draw
from core.privacy.mechanisms import gumbel_scale, noisy_max
from core.privacy.partitions import find_categories, rho_beside, threshold_for
from core.privacy.quantiles import (
    TAIL,
    calls_of_edges,
    choose_edges,
    choose_range,
    grid_of,
    levels_of,
    range_grid,
    score_sensitivity,
)
from core.privacy.unit import Unit
from core.project.file import Project
from core.project.plan import Plan
from core.project.schema import Column, Schema
from core.tables.table import Table

POOL = "schema"

SLIPS = 0.25
"""The part of δ that the thresholds of all text columns may take together."""

TEXTS = 2.0
"""How much of ρ a text column gets for each part of a column of numbers: a category that is not found is lost."""

NONE = "(none)"
"""The only category of a column in which none came through."""

_LESS = 1 - 1e-12


@dataclass(frozen=True)
class Part:
    """One thing to buy of ``column``: its draw, and what each call of it costs."""

    column: Column
    draw: Draw
    call: float


def budget_of(project: Project, budget: Budget) -> Budget:
    """The whole budget of a plan: where categories are bought, ρ is that of (ε, δ − Σδ₀)."""
    slips = _slips(project.schema, project.plan, budget.delta)
    return replace(budget, rho=rho_beside(budget.epsilon, budget.delta, slips)) if slips else budget


def prices(project: Project, budget: Budget) -> list[Part]:
    """What is bought, in order, and at what price. Reads no data; raises :class:`ProjectError` for what cannot be."""
    plan, schema = project.plan, project.schema
    open_ = [c for c in schema.columns if c.undeclared]
    if not open_:
        return []
    named = ", ".join(c.name for c in open_[:5])
    if not plan.schema_share:
        raise ProjectError(
            f"no bins or categories are declared for {named}: declare them, or give the plan a schema_share, such as "
            "0.05, that buys them",
            key="schema_share",
        )
    if plan.person is not None and plan.neighbors == "replace-one":
        raise ProjectError(
            "a schema cannot be bought from a table that is filled up to a declared total: choose add-remove",
            key="schema_share",
        )
    unit = Unit(plan.neighbors, plan.rows_per_person)
    weight = {c.name: 1.0 if c.kind == "numeric" else TEXTS for c in open_}
    slips = _slips(schema, plan, budget.delta)
    out: list[Part] = []
    for column in open_:
        rho = _LESS * plan.schema_share * budget.rho * weight[column.name] / math.fsum(weight.values())
        out += _numbers(column, unit, rho) if column.kind == "numeric" else [_texts(column, unit, rho, slips[0])]
    return out


def _slips(schema: Schema, plan: Plan, delta: float) -> list[float]:
    """δ₀ of each text column that is bought."""
    count = sum(c.undeclared and c.kind != "numeric" for c in schema.columns)
    return [SLIPS * delta / count] * count if count and plan.schema_share else []


def _numbers(column: Column, unit: Unit, rho: float) -> list[Part]:
    calls = calls_of_edges(column.bins, unit)
    each = rho / (calls + (0 if column.range else 2))
    out = []
    if column.range is None:
        sensitivity = score_sensitivity(unit, TAIL)
        out.append(_choice(column, f"range of {column.name}", 2 * each, each, sensitivity, len(range_grid())))
    levels = levels_of(column.bins)
    what = f"bin edges of {column.name}: {column.bins} bins at most, {levels} level{'s' * (levels > 1)} of halving"
    candidates = 0 if column.range is None else len(grid_of(*column.range, integer=column.integer))
    out.append(_choice(column, what, calls * each, each, unit.rows_per_person, candidates))
    return out


def _choice(column: Column, what: str, rho: float, each: float, sensitivity: int, candidates: int) -> Part:
    scale = sensitivity / math.sqrt(2 * each)
    draw = Draw("schema", what, (column.name,), POOL, 0, float(sensitivity), scale, rho, candidates=candidates)
    return Part(column, draw, each)


def _texts(column: Column, unit: Unit, rho: float, delta: float) -> Part:
    recipe = threshold_for(unit, rho, delta)
    what = (
        f"categories of {column.name}: those of {recipe.threshold:,} noisy rows or more, the {column.at_most} largest "
        f"at most (δ₀ = {recipe.delta:.2g})"
    )
    draw = Draw(
        "schema", what, (column.name,), POOL, column.at_most, unit.count_sensitivity, recipe.sigma, rho, recipe.delta
    )
    return Part(column, draw, rho)


def buy(table: Table, unit: Unit, parts: Sequence[Part], delta: float, spending: Spending) -> Schema:
    """The schema of ``table`` with the undeclared columns described. All ``parts`` are paid before any row is read.

    ``table`` is what the release is made from: split and truncated. ``delta`` is the plan's δ. What a column's texts
    and numbers do not say, and what no category was bought for, counts as missing.
    """
    spending.debit(part.draw for part in parts)
    count = sum(part.column.kind != "numeric" for part in parts)
    found: dict[str, Column] = {}
    for name, of_one in itertools.groupby(parts, key=lambda part: part.column.name):
        bought = list(of_one)
        column = bought[0].column
        if column.kind == "numeric":
            found[name] = _bought_bins(table, column, unit, [part.call for part in bought])
        else:
            recipe = threshold_for(unit, bought[0].call, SLIPS * delta / count)
            shown = find_categories(table.text_counts(name), recipe, column.at_most)
            kept = tuple(sorted(shown.counts)) or (NONE,)
            found[name] = Column(name, column.kind, kept, missing=True, unknown="missing")
    return replace(table.schema, columns=tuple(found.get(c.name, c) for c in table.schema.columns))


def _bought_bins(table: Table, column: Column, unit: Unit, calls: Sequence[float]) -> Column:
    values, low_high = table.numbers(column.name), column.range
    if low_high is None:
        low_high = choose_range(values, unit, _chooser(calls[0]), calls[0])
    low, high = low_high
    if column.integer:
        low, high = math.floor(low), math.ceil(high)
        high = max(high, low + 2)
    grid = grid_of(low, high, integer=column.integer)
    edges = choose_edges(values, grid, column.bins, unit, _chooser(calls[-1]), calls[-1])
    return Column(column.name, "numeric", edges=edges, integer=column.integer, missing=True, unknown="missing")


def _chooser(rho: float) -> Callable[[Sequence[int], int], int]:
    def choose(scores: Sequence[int], sensitivity: int) -> int:
        return noisy_max(list(scores), gumbel_scale(sensitivity, rho))

    return choose


def left(budget: Budget, spending: Spending) -> Budget:
    """What the method may spend: the whole ρ less what the schema took."""
    return replace(budget, rho=_LESS * (budget.rho - spending.rho)) if spending.draws else budget


def described(table: Table, schema: Schema) -> Table:
    """``table`` as its bought schema sees it."""
    codes = dict(table.codes)
    for column in schema.columns:
        old = table.schema[column.name]
        if not old.undeclared:
            continue
        if column.kind == "numeric":
            numbers = table.numbers(column.name)
            inner = np.asarray(column.edges[1:-1], dtype=np.float64)
            bins = np.searchsorted(inner, numbers, side="right")
            codes[column.name] = np.where(np.isnan(numbers), column.values, bins)
        else:
            read = table.texts[column.name]
            codes[column.name] = column.encode(read.values)[read.codes]
    return replace(table, schema=schema, codes=codes, texts={})
