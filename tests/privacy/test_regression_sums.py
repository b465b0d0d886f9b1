"""Sums for a bought regression: the enumerated sensitivity, the terms of the sums, and broken copies that are
caught.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.regression_sums import GRID, ONE, Fit, RegressionSums, corners, design_of, whole
from espalier.core.privacy.unit import Unit
from espalier.core.project.regressions import BoughtRegression
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.table import Table


def schema(missing=False):
    return Schema(
        (
            Column("g", "categorical", tuple("abc"), missing=missing),
            Column("x", "numeric", edges=(0, 1, 2, 3, 4)),
            Column("b", "categorical", ("no", "yes")),
            Column("y", "numeric", edges=(0, 1, 2, 3)),
        )
    )


def sums(part="moments", on=("g", "x", "b"), outcome="y", pairs=(), missing=False, counted=False):
    columns = schema(missing)
    design = design_of(BoughtRegression("r", outcome, on, interactions=pairs), columns)
    if part == "moments":
        return columns, RegressionSums("r", design, part, counted)
    means = np.rint(ONE / (1 + np.exp(-8 * GRID))).astype(np.int64)
    weights = np.rint(4 * ONE * (means / ONE) * (1 - means / ONE)).astype(np.int64)
    slopes = whole(np.linspace(3, -3, design.width) * (0.01 if part == "curvature" else 1))
    clip = ONE if part != "spread" else ONE // 3
    return columns, RegressionSums("r", design, part, True, Fit(slopes, means, weights, clip))


def every_row(columns):
    return list(itertools.product(*(range(c.size) for c in columns.columns)))


def table(columns, rows):
    codes = np.array(rows, dtype=np.int64).reshape(len(rows), len(columns.columns))
    return Table(columns, dict(zip(columns.names, codes.T, strict=True)), len(rows))


def each_alone(columns, recipe):
    """The sums of each possible row, in floats."""
    return np.array([recipe.sums(table(columns, [row])) for row in every_row(columns)], dtype=float)


def farthest(single, relation):
    if relation == "add-remove":
        return float(np.sqrt((single**2).sum(axis=1).max()))
    squares = (single**2).sum(axis=1)
    apart = squares[:, None] + squares[None] - 2 * single @ single.T
    return float(np.sqrt(apart.max()))


CASES = [
    ({}, 0.999),
    ({"counted": True}, 0.999),
    ({"missing": True, "counted": True}, 0.999),
    ({"outcome": "y=1 – <2"}, 0.999),
    ({"on": ("x",)}, 0.999),
    ({"on": ("b", "x")}, 0.999),
    ({"on": ("g", "b", "x"), "pairs": (("g", "b"),)}, 0.98),
    ({"on": ("g", "b", "x"), "pairs": (("x", "b"),)}, 0.7),
    ({"part": "gradient", "outcome": "b", "on": ("x", "g")}, 0.5),
    ({"part": "curvature", "outcome": "b", "on": ("x", "g")}, 0.8),
    ({"part": "spread", "outcome": "b", "on": ("x", "g"), "missing": True}, 0.4),
]
"""Regressions, and the share of the bound that some neighbours reach. Weighted sums reach it for some fits only."""


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize(("given", "reached"), CASES)
def test_no_neighbour_lies_farther_and_some_lie_as_far(given, reached, relation):
    columns, recipe = sums(**given)
    recipe.check(columns.sizes)
    bound = recipe.sensitivity(Unit(relation))
    found = farthest(each_alone(columns, recipe), relation)
    assert reached * bound <= found <= bound
    assert recipe.sensitivity(Unit(relation, 3)) == pytest.approx(3 * bound, rel=1e-6)
    (_, squared), *_ = recipe.given(Unit(relation))
    assert np.sqrt(squared) == pytest.approx(bound / recipe.units, rel=1e-6)


@pytest.mark.parametrize("part", ["moments", "gradient", "curvature", "spread"])
def test_rows_add_up_and_rows_with_a_missing_cell_add_nothing(part):
    columns, recipe = sums(part, outcome="b" if part != "moments" else "y", on=("g", "x"), missing=True, counted=True)
    rng = np.random.default_rng(3)
    rows = [row for row in every_row(columns) for _ in range(rng.integers(0, 3))]
    whole_table = recipe.sums(table(columns, rows))
    assert np.array_equal(whole_table, sum(recipe.sums(table(columns, [row])) for row in rows))
    kept = [row for row in rows if row[0] < 3]
    assert len(kept) < len(rows)
    assert np.array_equal(whole_table, recipe.sums(table(columns, kept)))


@pytest.mark.parametrize("given", [{}, {"counted": True}, {"outcome": "y=1 – <2"}, {"pairs": (("x", "b"),)}])
def test_the_matrix_of_all_products_follows_from_those_that_are_bought(given):
    columns, recipe = sums(**given)
    rows = every_row(columns)[::2]
    scores, outcome = recipe.design.of(table(columns, rows).codes)
    v = np.hstack([scores, (2 * outcome - ONE)[:, None]]) / ONE
    linear, constant = recipe.expansion
    made = linear @ (recipe.sums(table(columns, rows)) / recipe.units) + len(rows) * constant * (not recipe.counted)
    assert np.allclose(made, v.T @ v)
    assert recipe.cells < len(v.T) * (len(v.T) + 1) // 2


@pytest.mark.parametrize("many", [2, 3, 7, 40])
def test_scores_of_categories_are_as_long_for_each_and_never_too_long(many):
    lines = corners(many)
    assert (lines**2).sum(axis=1).max() <= ONE**2
    assert (lines**2).sum(axis=1).min() >= 0.97 * ONE**2
    assert np.linalg.matrix_rank(np.vstack([lines.T, np.ones(many)])) == many


class OutcomeForgotten(RegressionSums):
    """A broken copy: the higher weight of products with the outcome is ignored."""

    def sensitivity(self, unit):
        return round(super().sensitivity(unit) * 5 / 7)


class AsIfAdded(RegressionSums):
    """A broken copy: a row that changes is treated as one that is added."""

    def squared(self, replace):  # noqa: ARG002
        return super().squared(False)


class LongScores(RegressionSums):
    """A broken copy: scores twice as long as their bound."""

    def sums(self, source):
        return 4 * super().sums(source)


@pytest.mark.parametrize("broken", [OutcomeForgotten, AsIfAdded, LongScores])
def test_broken_copies_are_caught(broken):
    columns, recipe = sums()
    wrong = broken(recipe.what, recipe.design, recipe.part, recipe.counted)
    assert farthest(each_alone(columns, wrong), "replace-one") > wrong.sensitivity(Unit())
    curator = PrivateCurator(table(columns, every_row(columns)), Unit(), Budget(1.0, 1e-6, 0.05), 10**6)
    with pytest.raises(TypeError, match="proved"):
        curator.measure_sums(wrong, 0.01)


def test_tables_that_leave_their_bounds_are_refused():
    columns, recipe = sums()
    block = recipe.design.blocks[0]
    for design in (
        replace(recipe.design, blocks=(replace(block, lines=2 * block.lines), *recipe.design.blocks[1:])),
        replace(
            recipe.design, blocks=(replace(block, lines=np.full_like(block.lines, -(2**63))), *recipe.design.blocks[1:])
        ),
        replace(recipe.design, outcome=recipe.design.outcome + 1),
        replace(recipe.design, sizes={**recipe.design.sizes, "b": 3}),
    ):
        with pytest.raises(ValueError, match=r"bounds|too long|another table"):
            replace(recipe, design=design).check(columns.sizes)
    with pytest.raises(ValueError, match="need"):
        replace(recipe, part="gradient").check(columns.sizes)
