"""The choice of what to count by predicted error: its arithmetic, the frame and the cap."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from espalier.core.graph.separations import Separation
from espalier.core.methods.select.marginals import (
    FITTED,
    LEVELS,
    MEAN,
    MOST_MISSES,
    Candidate,
    Room,
    best_subset,
    noisy_cells,
    shrunk,
)
from espalier.core.privacy.draws import ScoreMeasurement

SIZES = {"a": 2, "b": 3, "c": 4, "d": 2}


def room(separations=(), held=(), cap=1000):
    return Room(SIZES, held, separations, cap)


def test_a_pair_is_taken_when_its_error_is_above_its_noise_and_not_below():
    noise, cells = 10.0, 6.0
    brings = FITTED * MEAN * noise * cells
    assert best_subset([Candidate(("a", "b"), 1.01 * brings, 1.0, cells)], noise, room())
    assert not best_subset([Candidate(("a", "b"), 0.99 * brings, 1.0, cells)], noise, room())


def test_the_subset_errs_as_little_as_the_best_one():
    """In 30 draws, the greedy choice is within a hundredth of the best predicted error of all subsets."""
    rng = np.random.default_rng(0)
    pairs = list(itertools.combinations(SIZES, 2))
    for _ in range(30):
        cells = rng.integers(2, 12, len(pairs)).astype(float)
        errors = rng.gamma(1.0, 60.0, len(pairs))
        given = [Candidate(q, e, 1.0, c) for q, e, c in zip(pairs, errors, cells, strict=True)]

        def predicted(chosen, given=given):
            taken = math.fsum(c.cells ** (2 / 3) for c in chosen)
            return FITTED * MEAN * 5.0 * taken**1.5 + math.fsum(c.error for c in given if c not in chosen)

        best = min(predicted(s) for k in range(7) for s in itertools.combinations(given, k))
        assert predicted(best_subset(given, 5.0, room())) <= 1.01 * best


def test_frame_and_cap_hold():
    candidates = [Candidate(q, 1e6, 1.0, 1.0) for q in itertools.combinations(SIZES, 2)]
    apart = Separation(("a",), ("d",), ("b",), "")
    held = room((apart,))
    best_subset(candidates, 1.0, held)
    assert apart.holds([q for q in held.held if len(q) == 2])
    small = room(cap=12)
    assert {math.prod(SIZES[n] for n in c.clique) for c in best_subset(candidates, 1.0, small)} <= set(range(13))
    with pytest.raises(ValueError, match="forbids"):
        room((apart,), [("a", "d")])
    assert not room((apart,)).take(("a", "c", "d"))


def test_noise_takes_spread_away_and_exact_scores_stay():
    values = np.array([10.0, 50.0, 90.0])
    cliques = (("a", "b"), ("a", "c"), ("a", "d"))
    assert shrunk(ScoreMeasurement(cliques, values, 1e-9, 1.0, 1.0)) == pytest.approx(values, abs=90 / LEVELS)
    alike = shrunk(ScoreMeasurement(cliques, values, 200.0, 1.0, 1.0))
    assert np.ptp(alike) < 8
    assert (np.diff(alike) > 0).all()
    assert shrunk(ScoreMeasurement(cliques, -values, 10.0, 1.0, 1.0)).max() < 5


def test_few_large_scores_stay_large_among_many_small_ones():
    """A linear estimate shrinks all scores by the same factor: it would keep half of each distance from the mean, and
    leave 47 of the noise in the small scores.
    """
    exact = np.repeat([0.0, 1000.0], [190, 10])
    cliques = tuple((f"c{i}", "d") for i in range(len(exact)))
    noisy = exact + np.random.default_rng(5).normal(0, 150.0, len(exact))
    found = shrunk(ScoreMeasurement(cliques, noisy, 150.0, 1.0, 1.0))
    linear = noisy.mean() + (1 - 150.0**2 / noisy.var()) * (noisy - noisy.mean())
    assert np.abs(found - exact).mean() < 0.3 * np.abs(linear - exact).mean()
    assert found[exact > 0].min() > 800


def test_cells_as_noise_sees_them():
    assert noisy_cells(np.array([1e9, 0.5 * MEAN * 10, 0.0, -3.0]), 10.0) == pytest.approx(1.5)


def test_the_search_ends_once_the_model_is_full():
    """Previously, a plan of 50 columns looked for room for each of a thousand pairs, which took two seconds."""

    class Full:
        asked = 0

        def take(self, clique):
            self.asked += 1
            return clique == ("c0", "d")

    full: Any = Full()
    found = best_subset([Candidate((f"c{i}", "d"), 1000.0 - i, 1.0, 4) for i in range(200)], 0.1, full)
    assert [c.clique for c in found] == [("c0", "d")]
    assert full.asked == 1 + MOST_MISSES
