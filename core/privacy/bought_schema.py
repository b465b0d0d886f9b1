"""Schema bought from the budget: bin edges, ranges and categories of columns that do not declare them.

Everything is bought from the rows of the release, after the split and the row limits but before the method runs. The
purchases, their order and their prices are public (:func:`prices`). Each column is declared with its largest number of
bins or categories and, if known, its numeric range. Every part is a :class:`Draw`; categories cost a δ₀
(:mod:`espalier.core.privacy.partitions`), bins cost none (:mod:`espalier.core.privacy.quantiles`).

A table in a database or a large file is read once, into codes (:mod:`espalier.core.project.public_grid`). A column to
be bought is read at its finest public codes: the grid of a declared range, or the codes of a hierarchy. Everything here
is computed from counts of these codes, so the bought schema and the proof are the same as in memory.

For a column with a hierarchy (:mod:`espalier.core.project.hierarchy`) the codes are public, and the budget buys the
depth of expansion. The first call counts the groups at the top. Each further call counts the children of the groups
with enough rows.

Proof: each column's parts are mechanisms proved in those modules; ρ and δ₀ of all columns add up (adaptive
composition), and later draws are calibrated to the rest. Missingness is not bought: a bought column may always be
empty.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import ProjectError
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.draws import Draw
from espalier.core.privacy.flat_bins import flattest
from espalier.core.privacy.journal import Journal
from espalier.core.privacy.mechanisms import add_gaussian, gaussian_scale, gumbel_scale, noisy_max
from espalier.core.privacy.partitions import LONGEST, Threshold, find_categories, rho_beside, threshold_for
from espalier.core.privacy.quantiles import (
    calls_of_edges,
    choose_edges,
    levels_of,
    range_grid,
    range_of,
)
from espalier.core.privacy.spending import Spending
from espalier.core.privacy.unit import Unit
from espalier.core.project.file import Project
from espalier.core.project.hierarchy import Cut, descend
from espalier.core.project.plan import Plan
from espalier.core.project.public_grid import column_grid, grid_of, round_points
from espalier.core.project.schema import (
    Categories,
    CategoriesToBuy,
    Column,
    HierarchyToBuy,
    Numbers,
    NumbersToBuy,
    Schema,
    ToBuy,
)
from espalier.core.tables.source import Source

POOL = "schema"

FINER, MOST_CUTS = 4, 64
"""Private quantiles first cut a column into `FINER` times as many parts as it has bins, at most `MOST_CUTS`."""

CUTS, COUNTS = 0.1, 0.9
"""Fractions of a numeric column's share that pay for these quantiles and for the counts of the cells between them. Its
bins are built from these counts. On COMPAS and the bundled samples, other settings, including those of `FINER`, are no
better (`python -m benchmarks.schema settings`).
"""

RANGE = 0.2
"""Share spent first on a range, if the range is also bought."""

SLIPS = 0.25
"""Share of δ that the thresholds of all text columns may use together."""

TEXTS = 2.0
"""Weight of a text column, or of a column with a hierarchy, in the division of ρ, relative to a numeric column. It is
larger because a category that is not found is lost.
"""

NONE = "(none)"
"""Category of a column for which no category was found."""

_LESS = 1 - 1e-12

ESCAPED, NUMBER = 12, 27
"""Largest size in JSON, in bytes, of a letter and of a number with its comma."""


@dataclass(frozen=True)
class Part:
    """One purchase for ``column``: its draw, and the price of each call."""

    column: ToBuy
    draw: Draw
    call: float


def budget_of(project: Project, budget: Budget) -> Budget:
    """Return the whole budget of a plan; if categories are bought, ρ follows from (ε, δ − Σδ₀)."""
    slips = _slips(project.schema, project.plan, budget.delta)
    return replace(budget, rho=rho_beside(budget.epsilon, budget.delta, slips)) if slips else budget


def refuse_filled(project: Project) -> None:
    """Raise :class:`ProjectError` if a schema is to be bought under replace-one with a person column."""
    if project.schema.undeclared and project.plan.person is not None and project.plan.neighbors == "replace-one":
        raise ProjectError(
            "a schema cannot be bought from a table that is filled to a declared total; choose add-remove",
            key="neighbors",
        )


def prices(project: Project, budget: Budget) -> list[Part]:
    """Return the purchases, in order, with their prices. This reads no data. Raises :class:`ProjectError` for a bad
    plan.
    """
    plan, schema = project.plan, project.schema
    open_ = schema.undeclared
    if not open_:
        return []
    named = ", ".join(c.name for c in open_[:5])
    if not plan.schema_share:
        raise ProjectError(
            f"no bins or categories are declared for {named} (a hierarchy also needs a budget for its expansion): "
            "declare them, or set a schema_share in the plan, such as 0.05, to buy them",
            key="schema_share",
        )
    refuse_filled(project)
    unit = Unit(plan.neighbors, plan.rows_per_person)
    weight = {c.name: 1.0 if isinstance(c, NumbersToBuy) else TEXTS for c in open_}
    slips = _slips(schema, plan, budget.delta)
    out: list[Part] = []
    for column in open_:
        rho = _LESS * plan.schema_share * budget.rho * weight[column.name] / math.fsum(weight.values())
        match column:
            case NumbersToBuy():
                out += _numbers(column, unit, rho)
            case HierarchyToBuy():
                out += _levels(column, unit, rho)
            case CategoriesToBuy():
                out.append(_texts(column, unit, rho, slips[0]))
    return out


def _slips(schema: Schema, plan: Plan, delta: float) -> list[float]:
    """Return δ₀ of each text column that is bought."""
    count = sum(isinstance(c, CategoriesToBuy) for c in schema.columns)
    return [SLIPS * delta / count] * count if count and plan.schema_share else []


def _numbers(column: NumbersToBuy, unit: Unit, rho: float) -> list[Part]:
    """Return the purchases for a numeric column: a range if none is declared, cuts at private quantiles, and counts
    between the cuts.
    """
    out = []
    if column.range is None:
        sigma, cells = gaussian_scale(unit.count_sensitivity, RANGE * rho), len(range_grid()) - 1
        what = f"range of {column.name}: rows between 1, 2, 5, 10, … on either side of 0"
        draw = Draw(
            "schema", what, (column.name,), POOL, cells, unit.count_sensitivity, sigma, RANGE * rho, recipe="histogram"
        )
        out.append(Part(column, draw, RANGE * rho))
        rho *= 1 - RANGE
    cuts = _first_cuts(column.bins)
    levels, calls = levels_of(cuts), calls_of_edges(cuts, unit)
    each = CUTS * rho / calls
    what = f"cuts of {column.name} at quantiles: at most {cuts} parts, {levels} level{'s' * (levels > 1)} of halving"
    low, high = column.range or (range_grid()[0], range_grid()[-1])
    candidates = 0 if column.range is None else len(grid_of(low, high, integer=column.integer))
    cut = _choice(column, what, calls * each, each, unit.rows_per_person, candidates)
    out.append(replace(cut, draw=replace(cut.draw, recipe="quantiles", given=(("cuts", cuts),))))
    cells = cuts + len(round_points(low, high, integer=column.integer))
    what = f"rows between the cuts of {column.name}, which form at most {column.bins} bins"
    sigma = gaussian_scale(unit.count_sensitivity, COUNTS * rho)
    draw = Draw(
        "schema", what, (column.name,), POOL, cells, unit.count_sensitivity, sigma, COUNTS * rho, recipe="histogram"
    )
    return [*out, Part(column, draw, COUNTS * rho)]


def _first_cuts(bins: int) -> int:
    """Return the number of parts into which private quantiles first cut a column with this number of bins."""
    return min(FINER * bins, MOST_CUTS)


def _choice(column: ToBuy, what: str, rho: float, each: float, sensitivity: int, candidates: int) -> Part:
    scale = sensitivity / math.sqrt(2 * each)
    draw = Draw("schema", what, (column.name,), POOL, 0, float(sensitivity), scale, rho, candidates=candidates)
    return Part(column, draw, each)


def _texts(column: CategoriesToBuy, unit: Unit, rho: float, delta: float) -> Part:
    recipe = threshold_for(unit, rho, delta)
    what = (
        f"categories of {column.name}: those with {recipe.threshold:,} noisy rows or more, at most the "
        f"{column.at_most} largest (δ₀ = {recipe.delta:.2g})"
    )
    draw = Draw(
        "schema",
        what,
        (column.name,),
        POOL,
        column.at_most,
        unit.count_sensitivity,
        recipe.sigma,
        rho,
        recipe.delta,
        recipe="threshold",
        given=(("threshold", recipe.threshold),),
    )
    return Part(column, draw, rho)


def _levels(column: HierarchyToBuy, unit: Unit, rho: float) -> list[Part]:
    """Return the purchases for a hierarchy: one histogram of its groups for each level."""
    depth, each = column.tree.depth, rho / column.tree.depth
    sigma, most = gaussian_scale(unit.count_sensitivity, each), column.size
    out = []
    for level in range(1, depth + 1):
        what = f"rows of {column.name} by level {level} of {depth} of its hierarchy"
        cells = len(column.tree.children[-1]) if level == 1 else most
        draw = Draw(
            "schema", what, (column.name,), POOL, cells, unit.count_sensitivity, sigma, each, recipe="histogram"
        )
        out.append(Part(column, draw, each))
    return out


def buy(
    table: Source,
    wanted: Schema,
    unit: Unit,
    parts: Sequence[Part],
    delta: float,
    spending: Spending,
    journal: Journal | None = None,
) -> Schema:
    """Return ``wanted`` with the undeclared columns described. All ``parts`` are paid for before any row is read.

    ``table`` holds the rows of the release: split, limited, and encoded for ``wanted`` (`Source.encodes`). ``delta`` is
    the plan's δ. Text without a bought category, and text that is not a number, count as missing. The ``journal``
    stores the draws: each level of a hierarchy; the bins, or the categories, of each other column.
    """
    journal = journal or Journal()
    spending.debit(part.draw for part in parts)
    count = sum(isinstance(part.column, CategoriesToBuy) for part in parts)
    found: dict[str, Column] = {}
    for name, of_one in itertools.groupby(parts, key=lambda part: part.column.name):
        bought = list(of_one)
        calls = [part.call for part in bought]
        column = bought[0].column
        match column:
            case NumbersToBuy():
                found[name] = _bought_bins(table, column, unit, calls, journal)
            case HierarchyToBuy():
                found[name] = _expanded(table, column, unit, calls, journal)
            case CategoriesToBuy():
                recipe = threshold_for(unit, calls[0], SLIPS * delta / count)
                kept = tuple(_bought_texts(table, column, recipe, journal)) or (NONE,)
                found[name] = Categories(name, column.kind, kept, missing=True, unknown="missing", **column.about)
    return replace(table.schema, columns=tuple(found.get(c.name, c) for c in wanted.columns))


def _bought_texts(table: Source, column: CategoriesToBuy, recipe: Threshold, journal: Journal) -> list[str]:
    """Return the categories above the threshold, sorted."""

    def draw() -> list[str]:
        return sorted(find_categories(table.text_counts(column.name), recipe, column.at_most).counts)

    most = 2 + column.at_most * (ESCAPED * LONGEST + len('"", '))
    found: list[str] = journal.facts(("categories", column, recipe), most, draw)
    return found


def _expanded(table: Source, column: HierarchyToBuy, unit: Unit, calls: Sequence[float], journal: Journal) -> Column:
    """Return the column with its hierarchy expanded to the depth that the rows support, with one call for each level.

    The noisy answers of the levels above decide which groups a level divides. A level is one histogram: each row is in
    one of its groups, so Δ is `Unit.count_sensitivity`, and one person's effect is known before any row is read. The ρ
    of the levels add up (adaptive composition). A level that divides nothing ends the expansion; the rest of the price
    stays spent.
    """
    left = iter(calls)

    def ask(cut: Cut) -> tuple[NDArray[np.float64], float]:
        sigma = gaussian_scale(unit.count_sensitivity, next(left))

        def draw() -> NDArray[np.float64]:
            rows = np.zeros(len(cut), dtype=np.int64)
            np.add.at(rows, cut.groups, table.leaf_counts(column.name))
            return add_gaussian(rows, sigma)

        return journal.array(("level", column.name, cut.groups, sigma), (len(cut),), draw), sigma

    return column.expanded(descend(column.tree, ask, column.size).cut)


def _bought_bins(table: Source, column: NumbersToBuy, unit: Unit, calls: Sequence[float], journal: Journal) -> Column:
    """Return the bins of a numeric column; see `_numbers`.

    The cells are cut at points that are public or were chosen by earlier answers, so the counts are one histogram: a
    row is in one cell, or in none if its number is missing, and Δ is `Unit.count_sensitivity`.
    """
    name = column.name

    def draw() -> list[float]:
        grid = column_grid(column, column.range or _bought_range(table.grid_counts(name, range_grid()), unit, calls[0]))
        counts = table.grid_counts(name, grid)
        chosen = choose_edges(counts, grid, _first_cuts(column.bins), unit, _chooser(calls[-2]), calls[-2])
        public = round_points(chosen[0], chosen[-1], integer=column.integer)
        cuts = np.unique([*chosen, *public])
        cells = np.add.reduceat(counts, np.searchsorted(grid, cuts[:-1]))
        sigma = gaussian_scale(unit.count_sensitivity, calls[-1])
        kept = flattest(cuts.tolist(), add_gaussian(cells, sigma), sigma, column.bins, integer=column.integer)
        return [float(edge) for edge in cuts[kept]]

    edges = tuple(journal.facts(("bins", column, calls), 2 + NUMBER * (column.bins + 1), draw))
    about = {**column.about, "confirmed": column.confirmed, "shown": column.shown}
    return Numbers(name, "numeric", edges, column.integer, missing=True, unknown="missing", **about)


def _bought_range(counts: NDArray[np.int64], unit: Unit, rho: float) -> tuple[float, float]:
    """Return a range if none is declared, from ``counts`` on `range_grid`. The points are public, so the counts are one
    histogram, as in `_bought_bins`.
    """
    sigma = gaussian_scale(unit.count_sensitivity, rho)
    return range_of(add_gaussian(counts, sigma), sigma)


def _chooser(rho: float) -> Callable[[Sequence[int], int], int]:
    def choose(scores: Sequence[int], sensitivity: int) -> int:
        return noisy_max(list(scores), gumbel_scale(sensitivity, rho))

    return choose


def left(budget: Budget, spending: Spending) -> Budget:
    """Return the method's budget: the whole ρ minus the schema's share."""
    return replace(budget, rho=_LESS * (budget.rho - spending.rho)) if spending.draws else budget


def nothing_found(wanted: Schema, schema: Schema) -> tuple[str, ...]:
    """Return a sentence for each column for which no category was found. Computed from bought answers, so it is
    public.
    """
    return tuple(
        f"No category of {c.name} was found, so all its cells are empty. A category needs more rows than the "
        "threshold in the plan. Declare its categories, set a larger share, or declare it as a column of numbers "
        "or dates."
        for c in wanted.undeclared
        if schema[c.name].categories == (NONE,)
    )
