"""Every sensitivity, by enumeration over small neighbouring tables; sums without their bound are caught."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from unittest import mock

import numpy as np
import pytest

from espalier.core.errors import BudgetError
from espalier.core.models.copula.planned import fourier, polynomial
from espalier.core.privacy import moments as module
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.moments import BESIDE, DIAGONAL, Bin, Histogram, Left, Moments, Reading, Scored, WithOutcome
from espalier.core.privacy.regression_features import Surface, clipped, side_by_side
from espalier.core.privacy.unit import Unit
from espalier.core.project.numeric_axis import Axis
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.table import Table

GRID = np.array(list(itertools.product(range(-3, 4), repeat=2)), dtype=np.int64)
SQUARE = 9
SCHEMA = Schema((Column("i", "categorical", tuple(map(str, range(len(GRID))))),))
READING = Reading({}, (), {"i": len(GRID)})


@dataclass(frozen=True)
class Grid:
    """Lines of two entries, up to 18 in squared length; ``square`` is the promised bound."""

    square: int = SQUARE
    size: int = 2

    def of(self, codes):
        return GRID[codes["i"]]


@dataclass(frozen=True)
class Six:
    """Bins by a remainder; some values are outside."""

    def of(self, codes):
        return codes["i"] % 6


def moments(square=SQUARE):
    return Moments("m", READING, Grid(square))


def histogram(together=1):
    return Histogram("h", 4, READING, Six(), together)


def rows(*held):
    return Table(SCHEMA, {"i": np.array(held, dtype=np.int64)}, len(held))


def farthest(recipe, unit, values):
    """The largest distance between the sums of neighbouring tables, over all possible values of one or two rows."""
    single = [recipe.sums(rows(v)) for v in values]
    k = unit.rows_per_person
    if unit.neighbors == "add-remove":
        return max(float(np.linalg.norm(sum(c))) for c in itertools.combinations_with_replacement(single, k))
    steps = [a - b for a, b in itertools.permutations(single, 2)]
    return max(float(np.linalg.norm(s)) for s in steps) * k  # k equal steps are the farthest: the norm is convex


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize(
    ("recipe", "values"), [(moments(), range(len(GRID))), (histogram(), range(6)), (histogram(2), range(6))]
)
def test_no_neighbour_lies_farther_and_some_lie_as_far(recipe, values, relation, k):
    unit = Unit(relation, k)
    found = farthest(recipe, unit, values)
    assert found <= recipe.sensitivity(unit)
    assert found >= 0.98 * recipe.sensitivity(unit)


def test_bins_counted_as_one_are_their_sum():
    held = rows(*np.random.default_rng(2).integers(0, len(GRID), 100))
    single, pairs = histogram().sums(held), histogram(2).sums(held)
    assert pairs.tolist() == [single[0] + single[1], single[2] + single[3]]
    assert histogram(3).cells == 2


def test_rows_add_up_whatever_surrounds_them():
    recipe, rng = moments(), np.random.default_rng(1)
    held = rng.integers(0, len(GRID), 300)
    assert np.array_equal(recipe.sums(rows(*held)), sum(recipe.sums(rows(v)) for v in held))
    assert np.array_equal(recipe.sums(rows(*held[::-1])), recipe.sums(rows(*held)))


@dataclass(frozen=True)
class Unbounded(Moments):
    """A broken copy: rows beyond the bound count in full."""

    def sums(self, source):
        return moments(10**6).sums(source)


class RootForgotten(Moments):
    """A broken copy: each off-diagonal entry counts once."""

    def sensitivity(self, unit):
        return super().sensitivity(unit) / np.sqrt(2)


class OneRow(Moments):
    """A broken copy: k rows of a person are treated as one."""

    def sensitivity(self, unit):
        return super().sensitivity(Unit(unit.neighbors, 1))


@pytest.mark.parametrize("broken", [Unbounded, RootForgotten, OneRow])
def test_broken_copies_are_caught(broken):
    unit = Unit("replace-one", 2)
    recipe = broken("m", READING, Grid())
    assert farthest(recipe, unit, range(len(GRID))) > recipe.sensitivity(unit)


@pytest.mark.parametrize("broken", [Unbounded, RootForgotten, OneRow])
def test_a_curator_answers_no_other_recipe_and_no_other_way_of_reading_a_row(broken):
    curator = PrivateCurator(rows(*range(9)), Unit(), Budget(1.0, 1e-6, 0.05), 10**6)
    with pytest.raises(TypeError, match="proved"):
        curator.measure_sums(broken("m", READING, Grid()), 0.01)
    for recipe in (moments(), histogram()):  # their classes are defined in this test
        with pytest.raises(ValueError, match="reads only that row"):
            curator.measure_sums(recipe, 0.01)
    with pytest.raises(ValueError, match="another table"):
        curator.measure_sums(Histogram("h", 3, Reading({}, (), {"i": 3}), Bin("i", None)), 0.01)
    assert curator.spending.draws == []


def test_a_curator_pays_scales_and_answers_in_rows():
    unit = Unit("replace-one", 2)
    curator = PrivateCurator(rows(*[5] * 40), unit, Budget(1.0, 1e-6, 1e6), 10**6)
    with mock.patch.object(module, "ROW_BY_ROW", (Grid, Bin)):
        told = curator.measure_sums(moments(18), 5e5)
    assert told.sensitivity == pytest.approx(2 * math.sqrt(2), rel=1e-3)
    assert told.sigma == pytest.approx(told.sensitivity / 1000)
    true = 40 * np.outer(GRID[5], GRID[5]) / 18
    assert np.abs(moments(18).matrix(told.values) - true).max() < 10 * told.sigma
    with pytest.raises(BudgetError):
        curator.measure_sums(Histogram("h", len(GRID), READING, Bin("i", None)), 6e5)


def test_weights_are_within_the_proof():
    assert BESIDE**2 < 2 * DIAGONAL**2 < 1.002 * BESIDE**2


def test_matrix_undoes_the_weights():
    recipe = moments()
    i = int(np.flatnonzero((GRID == (1, -2)).all(axis=1))[0])
    told = recipe.sums(rows(i, i)) / recipe.units
    assert np.allclose(recipe.matrix(told), 2 * np.outer((1, -2), (1, -2)) / recipe.square)


def test_squares_too_large_for_floats_are_refused():
    with pytest.raises(OverflowError, match="^squares up to [0-9,]+ are too large to be summed$"):
        moments(2**60).sums(rows(0))


def test_no_number_of_rows_is_refused():
    """The number may be private. Previously, sums that could overflow int64 were refused from a certain number of rows
    on."""
    most = (2**63 - 1) // (2**52 * BESIDE)
    held = [i % len(GRID) for i in range(most + 1)]
    for table in (held[:-1], held):
        found = moments(2**52).sums(rows(*table))
        assert found.dtype == np.int64
        assert np.array_equal(found, moments(18).sums(rows(*table)))


def test_sums_that_are_cut_off_lie_no_farther_apart():
    recipe, held = moments(), [5, 30, 30, 40, 41]
    true = [recipe.sums(rows(*held, i)) for i in range(len(GRID))]
    with mock.patch.object(module, "LARGEST", 400):
        cut = [recipe.sums(rows(*held, i)) for i in range(len(GRID))]
    assert any((abs(sums) > 400).any() for sums in true)
    for one, sums in zip(true, cut, strict=True):
        assert np.array_equal(sums, np.clip(one, -400, 400))
    apart = [np.linalg.norm(a - b) for a, b in itertools.combinations(cut, 2)]
    assert max(apart) <= recipe.sensitivity(Unit("replace-one", 1))


def test_clipped_rows_are_never_too_long_and_others_untouched():
    v = np.array(list(itertools.product(range(-40, 41, 5), repeat=3)), dtype=np.int64)
    out = clipped(v, 1000)
    assert ((out**2).sum(axis=1) <= 1000).all()
    short = (v**2).sum(axis=1) <= 1000
    assert np.array_equal(out[short], v[short])
    assert ((out**2).sum(axis=1)[~short] > 700).all()


@pytest.mark.parametrize("kind", ["polynomial", "fourier"])
def test_features_never_pass_their_length(kind):
    scores = {"x": np.linspace(-3, 3, 9), "y": np.linspace(-1, 1, 7)}
    sizes = {"c": 2, "d": 3}
    rng = np.random.default_rng(0)
    made = polynomial(scores, sizes) if kind == "polynomial" else fourier(scores, sizes, 8, 1.0, rng)
    every = np.array(list(itertools.product(range(9), range(7), range(2), range(3))))
    codes = dict(zip(["x", "y", "c", "d"], every.T, strict=True))
    length = (made.of(codes) ** 2).sum(axis=1)
    assert made.of(codes).shape == (len(every), made.size)
    assert length.max() <= made.square
    assert length.max() >= 0.7 * made.square


def test_side_by_side_keeps_columns_apart():
    tables = {"a": np.array([[1], [2]]), "b": np.array([[3, 4], [5, 6]])}
    assert side_by_side({"a": np.array([1]), "b": np.array([0])}, tables).tolist() == [[2, 3, 4]]


@dataclass(frozen=True)
class NoNumber(Grid):
    """Lines with the value that NaN becomes as a whole number: its square wraps around to 0 in int64."""

    def of(self, codes):
        return np.column_stack([np.ones(len(codes["i"])), np.full(len(codes["i"]), np.nan)]).astype(np.int64)


@pytest.mark.filterwarnings("ignore:invalid value")
def test_a_line_whose_square_wraps_around_counts_as_zeros():
    assert not Moments("m", READING, NoNumber()).sums(rows(1, 2, 3)).any()


NUMBERS = Schema(
    (
        Column("x", "numeric", edges=(0, 1, 2)),
        Column("o", "ordinal", ("a", "b", "c")),
        Column("c", "categorical", ("u", "v")),
        Column("y", "numeric", edges=(-1, 1)),
    )
)


def numbers(rows, seed=0):
    """A table of numbers, and its ticks and codes found one row at a time."""
    rng = np.random.default_rng(seed)
    values = {"x": rng.uniform(-0.5, 2.5, rows), "y": rng.uniform(-1, 1, rows)}
    codes = {"x": rng.integers(0, 2, rows), "o": rng.integers(0, 3, rows), "c": rng.integers(0, 2, rows), "y": np.zeros(rows, int)}  # fmt: skip  # noqa: E501
    return Table(NUMBERS, codes, rows, values=values)


def every_way():
    """A recipe of each kind, over all columns."""
    axes = {"x": Axis.declared("x", (0, 1, 2)), "o": Axis.declared("o", range(3), 1.0, 3), "y": Axis.declared("y", (-1, 1))}  # fmt: skip  # noqa: E501
    reading = Reading(axes, ("o",), {"c": 2})
    scores = {n: np.linspace(-2, 2, len(axes[n].middles)) for n in "xo"}
    features = fourier(scores, {"c": 2}, 4, 1.0, np.random.default_rng(3))
    surface = Surface(features, np.linspace(-1, 1, features.size) / 4096, 0.1, 1.0)
    lines = {n: np.rint(100 * s)[:, None].astype(np.int64) for n, s in scores.items()}
    return [
        Histogram("of a number", axes["x"].bins, reading.only("x"), Bin("x", axes["x"])),
        Histogram("of five bins as one", axes["x"].bins, reading.only("x"), Bin("x", axes["x"]), 5),
        Histogram("of a category", 2, reading.only("c"), Bin("c", None)),
        Histogram("of what is left", 7, reading, Left(surface, axes["y"], tuple(np.linspace(-2, 2, 8).tolist()))),
        Moments("of scores", reading.only("x", "o", "c"), Scored(lines, {"c": 50 * np.eye(2, dtype=np.int64)}, 150)),
        Moments("of features", reading, WithOutcome(surface, axes["y"], 0.4)),
        Moments("of features", reading, WithOutcome(replace(surface, weights=np.zeros(features.size)), axes["y"], 1.5)),
        Moments("no fit", reading, WithOutcome(replace(surface, weights=np.full(features.size, np.nan)), axes["y"], 1)),
        Moments("no end", reading, WithOutcome(replace(surface, weights=np.full(features.size, np.inf)), axes["y"], 1)),
        Moments("no half", reading, WithOutcome(surface, axes["y"], np.nan)),
        Moments("half of 0", reading, WithOutcome(surface, axes["y"], 0.0)),
    ]


@pytest.mark.parametrize("at", range(11))
def test_what_a_row_adds_depends_on_that_row_alone_and_stays_within_the_bound(at, monkeypatch):
    table, recipe = numbers(60), every_way()[at]
    recipe.check(NUMBERS.sizes)
    single = [recipe.sums(table.take(np.array([i]))) for i in range(60)]
    assert np.array_equal(recipe.sums(table), sum(single))
    monkeypatch.setattr(module, "BLOCK", 7)
    assert np.array_equal(recipe.sums(table), sum(single))
    for k, relation in itertools.product((1, 3), ("add-remove", "replace-one")):
        steps = single if relation == "add-remove" else [a - b for a in single for b in single]
        moved = k * max(float(np.linalg.norm(s)) for s in steps)
        assert moved <= recipe.sensitivity(Unit(relation, k))
        if isinstance(recipe, Histogram):
            assert moved >= 0.99 * recipe.sensitivity(Unit(relation, k))
    assert recipe.sums(table).shape == (recipe.cells,)
