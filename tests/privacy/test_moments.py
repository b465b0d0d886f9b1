"""Every sensitivity, by enumeration over small neighbouring tables; and sums without their bound, which are caught."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest
from core.privacy.unit import Unit

from core.copula.features import Fourier, Polynomial
from core.copula.sums import BESIDE, DIAGONAL, Histogram, Moments, clipped, side_by_side

GRID = np.array(list(itertools.product(range(-3, 4), repeat=2)), dtype=np.int64)
SQUARE = 9


def moments(square=SQUARE):
    return Moments("m", 2, square, lambda codes: GRID[codes["i"]])


def histogram():
    return Histogram("h", 4, lambda codes: codes["i"] % 6)


def rows(*held):
    return {"i": np.array(held, dtype=np.int64)}


def farthest(recipe, unit, values):
    """The largest distance between the sums of neighbouring tables, over all that one or two rows can be."""
    single = [recipe.sums(rows(v)) for v in values]
    k = unit.rows_per_person
    if unit.neighbors == "add-remove":
        return max(float(np.linalg.norm(sum(c))) for c in itertools.combinations_with_replacement(single, k))
    steps = [a - b for a, b in itertools.permutations(single, 2)]
    return max(float(np.linalg.norm(s)) for s in steps) * k  # k equal steps are the farthest: the norm is convex


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize(("recipe", "values"), [(moments(), range(len(GRID))), (histogram(), range(6))])
def test_no_neighbour_lies_farther_and_some_lie_as_far(recipe, values, relation, k):
    unit = Unit(relation, k)
    found = farthest(recipe, unit, values)
    assert found <= recipe.sensitivity(unit)
    assert found >= 0.98 * recipe.sensitivity(unit)


def test_rows_add_up_whatever_surrounds_them():
    recipe, rng = moments(), np.random.default_rng(1)
    held = rng.integers(0, len(GRID), 300)
    assert np.array_equal(recipe.sums(rows(*held)), sum(recipe.sums(rows(v)) for v in held))
    assert np.array_equal(recipe.sums(rows(*held[::-1])), recipe.sums(rows(*held)))


@dataclass(frozen=True)
class Unbounded(Moments):
    """A broken copy: rows beyond the bound count in full."""

    def sums(self, codes):
        return replace(moments(10**6), what=self.what).sums(codes)


class RootForgotten(Moments):
    """A broken copy: what lies beside the diagonal as if it were not there twice."""

    def sensitivity(self, unit):
        return super().sensitivity(unit) / np.sqrt(2)


class OneRow(Moments):
    """A broken copy: k rows of a person are taken for one."""

    def sensitivity(self, unit):
        return super().sensitivity(Unit(unit.neighbors, 1))


@pytest.mark.parametrize("broken", [Unbounded, RootForgotten, OneRow])
def test_broken_copies_are_caught(broken):
    sound = moments()
    recipe = broken(sound.what, sound.entries_of_row, sound.square, sound.vectors)
    unit = Unit("replace-one", 2)
    assert farthest(recipe, unit, range(len(GRID))) > recipe.sensitivity(unit)


def test_weights_are_within_the_proof():
    assert BESIDE**2 < 2 * DIAGONAL**2 < 1.002 * BESIDE**2


def test_matrix_undoes_the_weights():
    recipe = moments()
    i = int(np.flatnonzero((GRID == (1, -2)).all(axis=1))[0])
    assert np.allclose(recipe.matrix(recipe.sums(rows(i, i)).astype(float)), 2 * np.outer((1, -2), (1, -2)))


def test_too_many_rows_for_whole_numbers_are_refused():
    with pytest.raises(OverflowError):
        Moments("m", 2, 2**60, lambda codes: GRID[codes["i"]]).sums(rows(0))


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
    made = Polynomial.plan(scores, sizes) if kind == "polynomial" else Fourier.plan(scores, sizes, 8, 1.0, rng)
    every = np.array(list(itertools.product(range(9), range(7), range(2), range(3))))
    codes = dict(zip(["x", "y", "c", "d"], every.T, strict=True))
    length = (made.of(codes) ** 2).sum(axis=1)
    assert made.of(codes).shape == (len(every), made.size)
    assert length.max() <= made.square
    assert length.max() >= 0.7 * made.square


def test_side_by_side_keeps_columns_apart():
    tables = {"a": np.array([[1], [2]]), "b": np.array([[3, 4], [5, 6]])}
    assert side_by_side({"a": np.array([1]), "b": np.array([0])}, tables).tolist() == [[2, 3, 4]]
