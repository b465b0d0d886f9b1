"""Sums of features of whole rows, and the choice of columns: enumerated sensitivities, exactness, and broken copies."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from espalier.core.privacy import class_features as module
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.class_features import TURN, UNIT, ClassSums, ColumnSets, RowFeatures, cell_of, coarse_counts
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.scores import FIXED_POINT
from espalier.core.privacy.unit import Unit
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.table import Table

SIZES = {"a": 3, "b": 2, "c": 2, "y": 2}
SCHEMA = Schema(tuple(Column(n, "categorical", tuple(map(str, range(k)))) for n, k in SIZES.items()))
HALF, QUARTER = TURN // 2, TURN // 4
PHASES = {
    "a": np.array([[0, 0, 0], [HALF, HALF, HALF], [QUARTER, 5, TURN - 1]], dtype=np.uint16),
    "b": np.array([[0, 7, 0], [0, 0, HALF]], dtype=np.uint16),
}
COARSE = {"b": np.array([0, 1]), "c": np.array([0, 1])}
EVERY = list(itertools.product(*(range(k) for k in SIZES.values())))
MARK = int(UNIT * math.sqrt(0.3))


def table(*rows):
    codes = np.array(rows, dtype=np.int64).reshape(len(rows), len(SIZES))
    return Table(SCHEMA, dict(zip(SIZES, codes.T, strict=True)), len(rows))


def sums(mark=MARK):
    return ClassSums(RowFeatures(PHASES, COARSE if mark else {}, mark), "y", 2)


def farthest(vectors, unit, norm):
    """Return the largest distance between neighbouring tables: k equal steps are the farthest, as norms are convex."""
    if unit.neighbors == "add-remove":
        return unit.rows_per_person * max(norm(v) for v in vectors)
    return unit.rows_per_person * max(norm(a - b) for a, b in itertools.permutations(vectors, 2))


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("mark", [0, MARK, UNIT])
def test_no_neighbour_lies_farther_and_some_lie_as_far(mark, relation, k):
    unit, recipe = Unit(relation, k), sums(mark)
    found = farthest([recipe.sums(table(row)) for row in EVERY], unit, lambda v: float(np.linalg.norm(v)))
    assert 0.98 * recipe.sensitivity(unit) <= found <= recipe.sensitivity(unit)


def test_replace_one_is_the_root_of_four_less_twice_the_marked_part():
    a = (MARK / UNIT) ** 2
    assert sums().sensitivity(Unit("replace-one")) / UNIT == pytest.approx(math.sqrt(4 - 2 * a), rel=1e-4)
    assert dict(sums().given(Unit()))["marked"] == pytest.approx(a)


class OneClassForgotten(ClassSums):
    """A broken copy: two rows of one class are treated as orthogonal."""

    def sensitivity(self, unit):
        return unit.rows_per_person * UNIT * math.sqrt(1 if unit.neighbors == "add-remove" else 2)


class Doubled(ClassSums):
    """A broken copy: each row counts twice."""

    def sums(self, source):
        return 2 * super().sums(source)


@pytest.mark.parametrize("broken", [OneClassForgotten, Doubled])
def test_broken_copies_are_caught_and_refused(broken):
    recipe, unit = broken(sums().features, "y", 2), Unit("replace-one")
    found = farthest([recipe.sums(table(row)) for row in EVERY], unit, lambda v: float(np.linalg.norm(v)))
    assert found > recipe.sensitivity(unit)
    curator = PrivateCurator(table(*EVERY), unit, Budget(1.0, 1e-6, 0.05), 10**6)
    with pytest.raises(TypeError, match="proved"):
        curator.measure_sums(recipe, 0.01)
    assert curator.spending.draws == []


def test_rows_add_up_to_the_last_bit_whatever_surrounds_them():
    """The last bits of a float matrix product depend on the other rows; a product of whole numbers is exact."""
    rng = np.random.default_rng(0)
    rows = [EVERY[i] for i in rng.integers(0, len(EVERY), 400)]
    alone = sum(sums().sums(table(row)) for row in rows)
    assert np.array_equal(sums().sums(table(*rows)), alone)
    assert np.array_equal(sums().sums(table(*rows[::-1])), alone)
    assert sums().sums(table(*rows)).dtype == np.int64


def test_features_are_truncated_towards_zero_and_never_too_long():
    phi = sums().features.of({n: np.array(c) for n, c in zip(SIZES, zip(*EVERY, strict=True), strict=True)})
    lengths = (phi.astype(np.int64) ** 2).sum(axis=1)
    assert lengths.max() <= UNIT**2
    assert lengths.min() > 0.999 * UNIT**2
    cos, sin = module._circle(3, MARK)
    assert np.array_equal(cos[: TURN // 2], -cos[TURN // 2 :])
    assert (cos.astype(np.int64) ** 2 + sin.astype(np.int64) ** 2).max() <= (UNIT**2 - MARK**2) / 3


def test_a_recipe_for_another_table_is_refused():
    for recipe, said in [
        (replace(sums(), classes=3), "another table"),
        (replace(sums(), target="b"), "among the features"),
        (ClassSums(RowFeatures({**PHASES, "c": np.zeros((3, 3), np.uint16)}, COARSE, MARK), "y", 2), "another table"),
        (ClassSums(RowFeatures({"a": PHASES["a"].astype(np.int64)}, COARSE, MARK), "y", 2), "16 bits"),
        (ClassSums(RowFeatures(PHASES, {"b": np.array([0, 2])}, MARK), "y", 2), "coarse bin"),
        (ClassSums(RowFeatures(PHASES, COARSE, UNIT + 1), "y", 2), "mark"),
        (ClassSums(RowFeatures(PHASES, {}, MARK), "y", 2), "mark"),
    ]:
        with pytest.raises(ValueError, match=said):
            recipe.check(SIZES)


def chosen(expected=0.0, penalty=0.0):
    sets = [("a", "b"), ("a", "b", "c"), ("b", "c")]
    coarse = {"a": np.array([0, 1, 1]), "b": np.array([0, 1]), "c": np.array([0, 1])}
    tables = [np.full(2 ** len(names) * 2, expected) for names in sets]
    return ColumnSets(coarse, "y", 2, sets, tables, [penalty] * len(sets))


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_scores_of_column_sets_move_by_their_sensitivity(relation):
    unit, moved = Unit(relation), 0
    plain, first = chosen(), table(EVERY[0]).codes
    bins = {name: plain.coarse[name][first[name]].astype(np.int32) for name in plain.coarse}
    near = [x.astype(float) for x in coarse_counts(bins, first["y"].astype(np.int32), 2, plain.candidates)]
    for recipe in (plain, chosen(0.5), replace(plain, expected=near)):
        for row, other in itertools.product(EVERY, EVERY):
            before = table(row) if relation == "replace-one" else table()
            apart = np.abs(np.array(recipe.scores(before)) - np.array(recipe.scores(table(other)))).max()
            assert apart <= recipe.sensitivity(unit)
            moved = max(moved, int(apart))
    assert moved == recipe.sensitivity(unit)


def test_scores_without_a_sensitivity_are_caught():
    """A broken copy: a replaced row is treated as one that comes or goes."""
    with pytest.MonkeyPatch.context() as patch:
        right = ColumnSets.sensitivity
        patch.setattr(
            ColumnSets, "sensitivity", lambda self, unit: right(self, Unit("add-remove", unit.rows_per_person))
        )
        with pytest.raises(AssertionError):
            test_scores_of_column_sets_move_by_their_sensitivity("replace-one")


def test_scores_are_those_of_the_coarse_counts():
    rng = np.random.default_rng(1)
    rows = [EVERY[i] for i in rng.integers(0, len(EVERY), 50)]
    held = table(*rows)
    for names, score in zip(chosen(3.0, 2.0).candidates, chosen(3.0, 2.0).scores(held), strict=True):
        cells = cell_of(held.codes, {n: chosen().coarse[n] for n in names}) * 2 + held.codes["y"]
        counts = np.bincount(cells, minlength=2 ** len(names) * 2)
        assert score == FIXED_POINT * (np.abs(counts - 3).sum() - 2)


def test_sets_that_share_a_beginning_are_counted_alike():
    rng = np.random.default_rng(2)
    bins = {name: rng.integers(0, 2, 30).astype(np.int32) for name in "abcd"}
    y = rng.integers(0, 3, 30).astype(np.int32)
    sets = [q for size in (2, 3) for q in itertools.combinations("abcd", size)]
    for names, counts in zip(sets, coarse_counts(bins, y, 3, sets), strict=True):
        assert counts.sum() == 30
        cell = np.ravel_multi_index([*(bins[n] for n in names), y], [2] * len(names) + [3])
        assert np.array_equal(counts, np.bincount(cell, minlength=len(counts)))


def test_a_curator_debits_before_it_chooses():
    curator = PrivateCurator(table(*EVERY * 20), Unit("add-remove", 2), Budget(1.0, 1e-6, 0.5), 10**6)
    names = curator.choose_columns(chosen(), 0.1, "embedding choice")
    (draw,) = curator.spending.draws
    assert names in chosen().candidates
    assert (draw.rho, draw.sensitivity, draw.recipe, draw.candidates) == (0.1, 2.0, "edge-score", 3)
    assert draw.columns == (*names, "y")
    told = curator.measure_sums(sums(), 0.1)
    assert told.sensitivity == pytest.approx(2.0)
    assert told.sigma == pytest.approx(2 / math.sqrt(0.2), rel=1e-3)
