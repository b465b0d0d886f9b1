"""Bought categories: distances by enumeration, the price from the noise's own distribution, and the released
categories.

A test of unseeded noise fails by chance less than once in a million runs.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import binom

from espalier.core.errors import BudgetError
from espalier.core.privacy.accounting import epsilon_of, rho_of
from espalier.core.privacy.partitions import (
    cost,
    distances,
    epsilon_beside,
    find_categories,
    rho_beside,
    threshold_for,
)
from espalier.core.privacy.unit import Unit

UNITS = [Unit(relation, k) for relation in ("replace-one", "add-remove") for k in (1, 2)]


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_histograms_move_by_the_distances_and_reach_them(unit):
    """All tables of up to four rows over five texts (and none: a missing cell), and all their neighbours."""
    k, worst = unit.rows_per_person, [0, 0.0, 0]
    texts = [*"abcde", ""]
    for rows in (k, k + 1, k + 2):
        for others in itertools.combinations_with_replacement(texts, rows - k):
            for left in itertools.combinations_with_replacement(texts, k):
                came = [()] if unit.neighbors == "add-remove" else itertools.combinations_with_replacement(texts, k)
                here = Counter(t for t in (*others, *left) if t)
                for new in came:
                    there = Counter(t for t in (*others, *new) if t)
                    moves = [abs(here[t] - there[t]) for t in texts]
                    worst[0] = max(worst[0], sum(m > 0 for m in moves))
                    worst[1] = max(worst[1], math.sqrt(sum(m * m for m in moves)))
                    worst[2] = max(worst[2], *moves)
    d = distances(unit)
    assert worst == [d.keys, pytest.approx(d.l2, abs=1e-12), d.most]


def discrete_gaussian_tail(sigma: float, at_least: int) -> float:
    """Return P[Z ≥ at_least] of the discrete Gaussian, from its definition."""
    width = int(40 * sigma) + abs(at_least) + 10
    z = np.arange(-width, width + 1, dtype=float)
    weight = np.exp(-z * z / (2 * sigma * sigma))
    return float(weight[z >= at_least].sum() / weight.sum())


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize(("rho", "delta"), [(0.01, 1e-7), (0.2, 1e-3), (3e-4, 1e-10)])
def test_a_recipe_costs_at_most_its_price(unit, rho, delta):
    recipe = threshold_for(unit, rho, delta)
    assert recipe.rho <= rho
    assert recipe.delta <= delta
    assert recipe.rho == pytest.approx(rho, rel=1e-6)
    assert recipe.sigma == pytest.approx(unit.count_sensitivity / math.sqrt(2 * rho))
    assert cost(unit, recipe.sigma, recipe.threshold - 1)[1] > delta, "a lower threshold would cost more"
    # new texts of one person are released with probability at most δ₀, however the k rows are divided among texts
    k = unit.rows_per_person
    for parts in [(k,), (1,) * k]:
        slips = 1 - math.prod(1 - discrete_gaussian_tail(recipe.sigma, recipe.threshold - t) for t in parts)
        assert slips <= recipe.delta * (1 + 1e-6)


def test_a_text_of_one_person_comes_through_as_often_as_delta_says_and_no_more():
    """δ₀ = 0.2 for one row under add-remove, in 3,000 runs. In 10⁻⁷ of such tests, the count is further off."""
    recipe = threshold_for(Unit("add-remove"), 0.01, 0.2)
    hits = sum("rare" in find_categories({"rare": 1, "crowd": 10_000}, recipe, 5).counts for _ in range(3000))
    assert hits <= binom.isf(1e-7, 3000, 0.2)
    assert hits >= binom.isf(1 - 1e-7, 3000, 0.15), "a mechanism that costs far less than its price would waste budget"


def test_large_texts_come_through_and_small_ones_do_not():
    """At σ = 10, a count of 10,000 stays below, or a count of 1 rises above, with probability below 10⁻¹²."""
    recipe = threshold_for(Unit("replace-one"), 0.01, 1e-13)
    counts = {"big": 10_000, "bigger": 20_000, "once": 1, "": 50_000, "x" * 500: 50_000}
    found = find_categories(counts, recipe, 50)
    assert list(found.counts) == ["bigger", "big"]
    assert found.counts["big"] == pytest.approx(10_000, abs=100)
    assert list(find_categories(counts, recipe, 1).counts) == ["bigger"]
    assert find_categories({}, recipe, 5).counts == {}


def test_noise_has_the_scale_that_is_said():
    recipe = threshold_for(Unit("replace-one"), 0.02, 1e-6)
    drawn = [find_categories({"a": 10**6}, recipe, 1).counts["a"] - 10**6 for _ in range(4000)]
    assert np.std(drawn) == pytest.approx(recipe.sigma, rel=0.07)  # more than six standard errors
    assert abs(np.mean(drawn)) < 6 * recipe.sigma / math.sqrt(4000)


def test_rho_is_converted_at_what_the_thresholds_leave_of_delta():
    assert rho_beside(1.0, 1e-6, []) == rho_of(1.0, 1e-6)
    assert rho_beside(1.0, 1e-6, [2e-7, 3e-7]) == pytest.approx(rho_of(1.0, 5e-7), rel=1e-6)
    assert rho_beside(1.0, 1e-6, [2e-7, 3e-7]) < rho_of(1.0, 1e-6)
    rho = rho_beside(1.0, 1e-6, [4e-7])
    assert epsilon_beside(rho, 1e-6, [4e-7]) <= 1.0
    assert epsilon_beside(rho, 1e-6, [4e-7]) > epsilon_of(rho, 1e-6)
    for deltas in ([1e-6], [5e-7, 6e-7]):
        with pytest.raises(BudgetError, match="reduce their share"):
            rho_beside(1.0, 1e-6, deltas)


def test_a_delta_that_no_threshold_reaches_is_refused():
    """Previously, a threshold beyond 64 bits ended in a traceback."""
    with pytest.raises(BudgetError, match="set a larger delta"):
        threshold_for(Unit("replace-one", 2), 1e-3, 1e-301)


def test_what_cannot_be_bought():
    for rho, delta in ((0.0, 1e-6), (0.1, 0.0), (0.1, 1.0), (math.inf, 0.1), (math.nan, 0.1)):
        with pytest.raises(BudgetError, match="positive"):
            threshold_for(Unit(), rho, delta)
    with pytest.raises(ValueError, match="at_most"):
        find_categories({}, threshold_for(Unit(), 0.1, 1e-6), 0)


def test_fewer_rows_never_cost_more_delta():
    """The proof for a part that is held out by row needs this: for j of k rows, δ₀ and ρ are no larger."""
    for relation, k in itertools.product(("replace-one", "add-remove"), (2, 3, 5)):
        recipe = threshold_for(Unit(relation, k), 0.05, 1e-6)
        for j in range(1, k):
            rho, delta = cost(Unit(relation, j), recipe.sigma, recipe.threshold)
            assert delta <= recipe.delta
            assert rho <= recipe.rho * (j / k) ** 2 * (1 + 1e-9)
