"""Bins merged from noisy counts: the best division is found, heavy values have bins, and Δ holds by enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from espalier.core.privacy import flat_bins
from espalier.core.privacy.flat_bins import flattest
from espalier.core.privacy.unit import Unit


def cost_of(cuts, counts, kept, bins):
    """The cost of the kept cuts, without noise, by definition."""
    below = np.concatenate([[0.0], np.cumsum(counts)])
    spread = counts[counts <= below[-1] / bins].sum()
    out = 0.0
    for i, j in itertools.pairwise(kept):
        line = below[i] + (below[j] - below[i]) * (cuts[i : j + 1] - cuts[i]) / (cuts[j] - cuts[i])
        out += np.abs(below[i : j + 1] - line).max()
        out += flat_bins.LUMPED * (below[j] - below[i]) ** 2 / max(spread, 1.0) if j > i + 1 else 0.0
    return out


def test_no_other_division_is_better():
    rng = np.random.default_rng(0)
    for _ in range(30):
        cells = int(rng.integers(2, 8))
        cuts = np.cumsum(rng.integers(1, 9, cells + 1)).astype(float)
        counts = rng.integers(0, 50, cells).astype(float)
        bins = int(rng.integers(1, cells + 1))
        kept = flattest(cuts, counts, 0.0, bins, integer=False)
        assert kept[0] == 0
        assert kept[-1] == cells
        assert len(kept) - 1 <= bins
        every = ((0, *inner, cells) for k in range(bins) for inner in itertools.combinations(range(1, cells), k))
        best = min(cost_of(cuts, counts, one, bins) for one in every)
        assert cost_of(cuts, counts, kept, bins) == pytest.approx(best, abs=1e-9)


def test_a_value_that_many_share_gets_a_bin_of_its_own():
    hours = np.full(99, 10.0)
    hours[39] = 3000.0  # at forty hours; each whole number from 1 to 98 is a cell, and 99 and 100 are the last
    cuts = np.arange(1.0, 101.0)
    edges = cuts[flattest(cuts, hours, 5.0, 6, integer=True)]
    assert {40.0, 41.0} <= set(edges)


def test_whole_numbers_lie_flat_by_how_many_they_are():
    """The last bin is closed: it contains the three numbers 4 to 6, so ten rows with each number are flat."""
    cuts = np.array([0.0, 2.0, 4.0, 6.0])
    assert np.diff(flat_bins._places(cuts, True)).tolist() == [2, 2, 3]
    cost = flat_bins._unevenness(flat_bins._places(cuts, True), np.array([0.0, 20, 40, 70]), 0.0)
    assert cost[0, 3] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("unit", [Unit(r, k) for r in ("replace-one", "add-remove") for k in (1, 2)], ids=str)
def test_one_person_moves_the_rows_between_cuts_by_at_most_delta(unit):
    """For all columns of four rows over three cells and missing, and all neighbours, ‖move‖₂ ≤ Δ, and Δ is reached."""
    inner, worst = np.array([1.0, 2.0]), 0.0

    def cells(rows):
        known = np.array([x for x in rows if x is not None], dtype=float)
        return np.bincount(np.searchsorted(inner, known, side="right"), minlength=3)

    places, k = (0.5, 1.5, 2.5, None), unit.rows_per_person
    for table in itertools.combinations_with_replacement(places, 4):
        for j in range(1, k + 1):
            for gone in itertools.combinations(range(4), j):
                rest = [x for i, x in enumerate(table) if i not in gone]
                came = [()] if unit.neighbors == "add-remove" else itertools.combinations_with_replacement(places, j)
                for new in came:
                    worst = max(worst, float(np.linalg.norm(cells(table) - cells([*rest, *new]))))
    assert worst == pytest.approx(unit.count_sensitivity)
    assert worst <= unit.count_sensitivity
