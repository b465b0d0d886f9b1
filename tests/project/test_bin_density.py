"""Numbers inside their bins follow a straight line where the neighbouring bins suggest one, and never leave their
bin.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from espalier.core.project.bin_density import places, tilts
from espalier.core.project.schema import Column
from espalier.core.release.output import numbers

EDGES = (0.0, 1.0, 2.0, 4.0, 8.0)


def test_slopes_go_with_both_neighbours_and_stop_at_peaks():
    t = tilts(EDGES, np.array([40, 30, 40, 10]))
    assert t == pytest.approx([0, -(10 / 1.5) / 2 / 30, -17.5 / 3 / 20, -1])  # the densities are 40, 30, 20 and 2.5
    assert tilts((0, 1, 2, 3), np.array([1, 5, 1]))[1] == 0
    assert tilts((0, 1, 2, 3), np.array([0, 5, 0])).tolist() == [0, 0, 0]
    assert tilts((0, 1), np.array([5])).tolist() == [0]


def test_a_place_has_the_density_that_was_meant():
    codes = np.repeat([0, 1, 2, 3], [80_000, 60_000, 40_000, 20_000])
    rng, t = np.random.default_rng(0), tilts((0, 1, 2, 3, 4), np.array([80, 60, 40, 20]))
    u = places((0, 1, 2, 3, 4), codes, rng)
    assert u.min() >= 0
    assert u.max() < 1
    for k in range(4):  # ∫ u·(1 + t(2u − 1)) du = 1/2 + t/6
        assert u[codes == k].mean() == pytest.approx(0.5 + t[k] / 6, abs=0.006)


@pytest.mark.parametrize("integer", [False, True])
def test_decoded_numbers_are_nearer_to_a_falling_density_than_flat_ones_and_stay_in_their_bins(integer):
    column = Column("x", "numeric", edges=(0, 10, 20, 40, 80), integer=integer, missing=True)
    rng = np.random.default_rng(1)
    real = np.clip(rng.exponential(14, 20_000), 0, 80)
    real = np.floor(real) if integer else real
    codes = np.append(column.encode([f"{x:.6f}" for x in real]), np.full(500, column.values))
    texts = column.decode(codes, rng)
    assert np.array_equal(column.encode(texts), codes)
    drawn = column.numbers(texts[:20_000])
    low, high = np.array(column.edges[:-1])[codes[:20_000]], np.array(column.edges[1:])[codes[:20_000]]
    flat = low + rng.random(20_000) * (high - low)
    flat = np.floor(flat) if integer else flat
    assert wasserstein_distance(drawn, real) < 0.6 * wasserstein_distance(flat, real)
    fast = numbers(column, codes, rng)[:20_000]
    assert wasserstein_distance(fast, real) < 0.6 * wasserstein_distance(flat, real)
    assert ((fast >= low) & (fast <= high)).all()
