"""Intervals contain the truth as often as they claim, and are no wider than needed. Simulated with fixed seeds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from espalier.core.evaluation.private.intervals import (
    Interval,
    area_interval,
    distance_interval,
    entropy_bound,
    hidden,
    information,
    information_interval,
    share_interval,
)


def given(found: Interval | str) -> Interval:
    """Return the interval; fail if a reason was returned instead."""
    assert isinstance(found, Interval), found
    return found


def noisy(rng, counts, sigma):
    return counts + np.rint(rng.normal(0, sigma, counts.shape))


def coverage(make, truth, times):
    """Return the share of intervals that contain the truth, and that share for intervals of 0.6 times the width."""
    found = [make() for _ in range(times)]
    assert all(i.low <= i.value <= i.high for i in found)
    inside = [i.low <= truth <= i.high for i in found]
    narrow = [i.value - 0.6 * (i.value - i.low) <= truth <= i.value + 0.6 * (i.high - i.value) for i in found]
    return float(np.mean(inside)), float(np.mean(narrow))


@pytest.mark.parametrize(
    ("n", "p", "sigma", "k"), [(600, 0.72, 23, 1), (5000, 0.8, 26, 1), (400, 0.9, 4, 1), (600, 0.7, 5, 3)]
)
def test_shares(n, p, sigma, k):
    rng = np.random.default_rng(n)

    def make():
        right = k * rng.binomial(n // k, p)  # k equal rows per person
        return share_interval(noisy(rng, np.array([n - right, right]), sigma), sigma, n, 0.0, k)

    held, narrow = coverage(make, p, 3000)
    assert 0.93 < held < 0.98
    assert narrow < 0.87


def test_a_share_of_rows_whose_number_is_private():
    rng, sigma, n = np.random.default_rng(3), 20.0, 700

    def make():
        right = rng.binomial(n, 0.95)
        h = noisy(rng, np.array([n - right, right]), sigma)
        return share_interval(h, sigma, float(h.sum()), math.sqrt(2) * sigma, 1)

    held, narrow = coverage(make, 0.95, 2000)
    assert held > 0.93
    assert narrow < 0.9


@pytest.mark.parametrize(
    ("n", "positive", "sigma"), [(600, 0.35, 8), (5000, 0.24, 10), (2000, 0.5, 1), (1200, 0.15, 6)]
)
def test_areas(n, positive, sigma):
    rng = np.random.default_rng(n)
    cuts = np.linspace(-1, 2.2, 9)
    off, on = (np.diff(np.r_[0, stats.norm.cdf(cuts - m), 1]) for m in (0, 1.2))
    truth = float(on @ (np.cumsum(off) - off / 2))
    both = np.stack([(1 - positive) * off, positive * on])

    def make():
        h = rng.multinomial(n, both.ravel()).reshape(both.shape)
        return area_interval([(noisy(rng, h, sigma), sigma)], 1, 3.0)

    held, narrow = coverage(make, truth, 1500)
    assert held > 0.93
    assert narrow < 0.9


@pytest.mark.parametrize("apart", [0.5, 1.0, 2.0])
def test_the_upper_end_includes_what_bins_of_normal_scores_cost(apart):
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.normal(0, 1, 200_000), rng.normal(apart, 1, 200_000)])
    truth = np.repeat([0, 1], 200_000)
    bins = np.searchsorted(np.quantile(scores, np.arange(1, 10) / 10), scores)
    h = np.array([np.bincount(bins[truth == t], minlength=10) for t in (0, 1)], dtype=float)
    whole = float(stats.norm.cdf(apart / 2**0.5))
    found = given(area_interval([(h, 1e-9)], 1, 3.0))
    assert hidden(whole, 10) == pytest.approx(whole - found.value, abs=2e-3)
    assert 0.5 < hidden(whole, 10) / hidden(whole, 20) / 4 < 1.5, "half the bins, about four times the cost"
    assert found.high - found.value == pytest.approx(found.value - found.low + hidden(found.value, 10))


@pytest.mark.parametrize("won", [0.0, 1.0])
def test_the_bound_of_an_area_holds_whatever_the_order_inside_bins(won):
    """If scores rank all rows of a bin wrongly, or all correctly, the interval is for a different AUC."""
    rng, n, sigma = np.random.default_rng(1), 4000, 4.0
    cuts = np.linspace(-1, 2.2, 9)
    off, on = (np.diff(np.r_[0, stats.norm.cdf(cuts - m), 1]) for m in (0, 1.2))
    truth = float(on @ (np.cumsum(off) - (1 - won) * off))
    found = []
    for _ in range(800):
        h = rng.multinomial(n, np.stack([0.7 * off, 0.3 * on]).ravel()).reshape(2, 10)
        found.append(given(area_interval([(noisy(rng, h, sigma), sigma)], 1, 3.0)))
    assert np.mean([one.low <= truth <= one.high for one in found]) < 0.05
    assert 0.95 < np.mean([one.bound[0] <= truth <= one.bound[1] for one in found]) < 0.995
    assert all(one.bound[0] <= one.low <= one.high <= one.bound[1] for one in found)


def test_the_bound_of_an_area_is_that_of_the_rows_with_every_pair_in_a_bin_lost_or_won():
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(2)
    truth = rng.integers(0, 2, 3000)
    score = np.clip(truth + rng.integers(-2, 4, 3000), 0, 5)
    h = np.array([np.bincount(score[truth == t], minlength=6) for t in (0, 1)], dtype=float)
    found = given(area_interval([(h, 1e-9)], 1, 3.0))
    lost, won = (roc_auc_score(truth, score + side * 0.5 * truth) for side in (-1, 1))
    assert found.bound[0] < lost < found.value < won < found.bound[1]
    half = found.value - found.low
    assert lost - found.bound[0] == pytest.approx(half, rel=0.3)
    assert found.bound[1] - won == pytest.approx(half, rel=0.3)


@pytest.mark.parametrize(
    ("p", "usual"),
    [((0.9, 0.1), 0.42), ((0.5, 0.3, 0.2), 1.09), ((0.97, 0.01, 0.01, 0.01), 0.55), ((0.52, 0.48), 0.694)],
)
def test_the_entropy_of_a_column_is_at_most_its_bound(p, usual):
    rng, n, sigma = np.random.default_rng(4), 900, 12.0
    entropy = -float(np.array(p) @ np.log(p))
    bounds = [entropy_bound(noisy(rng, rng.multinomial(n, p), sigma), sigma, n, 1) for _ in range(2000)]
    assert np.mean([bound >= entropy for bound in bounds]) > 0.93
    assert max(bounds) <= math.log(len(p))
    assert np.mean(bounds) < usual
    assert entropy_bound(np.array([0.0, 900.0]), 0.1, 900, 1) < 0.02


def test_an_area_is_that_of_the_rows_where_there_is_no_noise():
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 500)
    score = np.clip(truth + rng.integers(-2, 4, 500), 0, 5)
    h = np.array([np.bincount(score[truth == t], minlength=6) for t in (0, 1)], dtype=float)
    found = given(area_interval([(h, 1e-9)], 1, 3.0))
    assert found.value == pytest.approx(roc_auc_score(truth, score))
    assert "few" in str(area_interval([(h, 100.0)], 1, 3.0))


def test_the_area_of_several_values_is_over_all_of_them_whatever_noise_does_to_a_rare_one():
    h = np.array([[300.0, 100.0], [50.0, 150.0]])
    rare = np.array([[598.0, 1.0], [1.0, 0.0]])
    one = given(area_interval([(h, 2.0)], 1, 3.0))
    assert given(area_interval([(h, 2.0), (h, 2.0)], 1, 3.0)).value == one.value
    mixed = given(area_interval([(h, 2.0), (rare, 2.0)], 1, 3.0))
    assert mixed.value == pytest.approx(one.value / 2 + 0.25)
    assert mixed.low == pytest.approx(one.low / 2)
    assert mixed.high == pytest.approx(one.high / 2 + 0.5)
    assert "1 of them have too few rows" in mixed.method
    assert (
        one.high - one.low
        < given(area_interval([(h, 2.0)], 4, 3.0)).high - given(area_interval([(h, 2.0)], 4, 3.0)).low
    )


@pytest.mark.parametrize(
    ("sizes", "n", "sigma", "error", "where"),
    [
        ([6, 2, 4, 2, 4], 800, 15, 0.0, "one"),
        ([6, 2, 4, 2, 4], 800, 15, 0.05, "one"),
        ([6, 2, 4, 2, 4], 800, 15, 0.03, "all"),
        ([10] * 8, 5000, 40, 0.02, "all"),
        ([10] * 8, 40000, 5, 0.01, "all"),
    ],
)
def test_one_way_errors(sizes, n, sigma, error, where):
    """Whether the error is in one cell or in all, the interval contains it and distinguishes large errors from small
    ones.
    """
    rng = np.random.default_rng(n)
    shares = [rng.dirichlet(np.full(m, 3.0)) for m in sizes]
    truths = []
    for q in shares:
        d = np.zeros(len(q))
        if where == "one":
            d[[q.argmax(), q.argmin()]] = (-error, error)
        else:
            d = q * np.where(np.arange(len(q)) % 2, 1, -1)
            d = (d - q * d.sum()) * error / (np.abs(d - q * d.sum()).sum() / 2)
        truths.append(q + d)
    truth = float(np.mean([np.abs(p - q).sum() / 2 for p, q in zip(truths, shares, strict=True)]))
    widths, hit = [], 0
    for _ in range(120):
        h = [noisy(rng, rng.multinomial(n, p), sigma) for p in truths]
        m = min(n, 2000)
        errors = [rng.multinomial(m, q, size=400) / m - q for q in shares]
        sampling = np.concatenate(errors, axis=1) * math.sqrt(m / n)
        found = given(distance_interval(h, shares, sampling, [sigma] * len(sizes), n, 0.0, rng))
        assert found.low <= found.value <= found.high
        hit += found.low - 1e-12 <= truth <= found.high
        widths.append(found.high - found.low)
    assert hit >= 104, "of 120 intervals at 95 %, fewer than 104 cover once in 10,000 runs"
    blur = sum(sizes) / len(sizes) * math.hypot(sigma / n, math.sqrt(0.1 / n)) / 2
    assert np.mean(widths) < 2.5 * blur, "an interval that says nothing would pass the count above"


def conditional(beta, cells, rng):
    z, y = rng.dirichlet(np.full(cells, 8.0)), rng.uniform(0.3, 0.7, cells)
    base = rng.uniform(-1.5, 0.5, cells)
    x = 1 / (1 + np.exp(-(base + beta * np.array([[-0.5], [0.5]]))))  # indexed by y and z
    weight = np.stack([1 - y, y]) * z
    return np.stack([(1 - x) * weight, x * weight])


@pytest.mark.parametrize(("n", "sigma", "beta"), [(2000, 4.5, 0.0), (2000, 4.5, 0.8), (20_000, 14, 1.5)])
def test_conditional_information(n, sigma, beta):
    rng = np.random.default_rng(7)
    p = conditional(beta, 12, rng)
    truth = float(information(p)[()])
    hit, widths = 0, []
    for _ in range(40):
        h = noisy(rng, rng.multinomial(n, p.ravel()).reshape(p.shape), sigma)
        found = information_interval(h, sigma, [[0], [1], [2]], 1, rng)
        hit += isinstance(found, str) or found.low - 1e-12 <= truth <= found.high
        widths += [] if isinstance(found, str) else [found.high - found.low]
    assert len(widths) > 30
    assert hit >= 32, "of 40 intervals at 95 %, fewer than 32 cover once in 8,000 runs"
    assert np.mean(widths) < 0.06
    if truth > 0.03:
        assert np.mean(widths) < truth, "a large dependence is distinguished from none"


def test_strata_with_too_few_rows_are_left_out_or_stop_the_figure():
    rng, sigma = np.random.default_rng(4), 6.0
    p = conditional(0.0, 8, rng)
    few = p.copy()
    few[:, :, :2] *= 1e-3  # two strata with hardly any rows
    draw = [noisy(rng, 6000 * t / t.sum(), sigma) for t in (p, few)]
    assert "over" not in given(information_interval(draw[0], sigma, [[0], [1], [2]], 1, rng)).method
    some = given(information_interval(draw[1], sigma, [[0], [1], [2]], 1, rng))
    assert "over the 6 of 8 strata" in some.method
    assert some.low == 0.0, "noise in empty strata does not pass for dependence"
    assert "too many strata" in str(information_interval(draw[0] / 40, sigma, [[0], [1], [2]], 1, rng))


def test_information_is_zero_for_independence_and_the_entropy_for_identity():
    apart = np.einsum("xz,yz,z->xyz", [[0.3, 0.6], [0.7, 0.4]], [[0.5, 0.1], [0.5, 0.9]], [0.4, 0.6])
    assert float(information(apart)[()]) == pytest.approx(0.0, abs=1e-12)
    same = np.zeros((2, 2, 1))
    same[0, 0], same[1, 1] = 25, 75
    assert float(information(same)[()]) == pytest.approx(-0.25 * math.log(0.25) - 0.75 * math.log(0.75))


def test_axes_say_which_column_is_which():
    rng = np.random.default_rng(2)
    p = conditional(1.5, 6, rng)
    h = rng.multinomial(50_000, p.ravel()).reshape(p.shape)
    one = given(information_interval(h, 1.0, [[0], [1], [2]], 1, np.random.default_rng(0)))
    other = given(information_interval(np.transpose(h, (2, 0, 1)), 1.0, [[1], [2], [0]], 1, np.random.default_rng(0)))
    assert one == other
    assert one.low < float(information(p)[()]) < one.high


def test_luck_promises_nothing():
    """Noisy shares that are exact by chance, and counts that are independent by chance, do not prove perfection."""
    rng = np.random.default_rng(1)
    q = [np.full(5, 0.2)] * 3
    sampling = np.concatenate([rng.multinomial(500, p, size=400) / 500 - p for p in q], axis=1)
    found = given(distance_interval([500 * p for p in q], q, sampling, [10.0] * 3, 500, 0.0, rng))
    usual = given(distance_interval(None, q, sampling, [10.0] * 3, 500, 0.0, rng))
    assert found.low == found.value == 0.0
    assert found.high == pytest.approx(usual.high, rel=0.1)
    assert found.high > 0.01
    apart = np.full((2, 2, 4), 200.0)
    lucky = given(information_interval(apart, 6.0, [[0], [1], [2]], 1, rng))
    assert lucky.low == 0.0
    assert lucky.high > 0.001


def test_no_rows_are_no_figure():
    assert isinstance(share_interval(np.zeros(2), 3.0, 0.4, 1.0, 1), str)
    assert isinstance(information_interval(np.zeros((2, 2, 2)), 3.0, [[0], [1], [2]], 1, np.random.default_rng(0)), str)
    assert isinstance(
        distance_interval(
            [np.zeros(2)], [np.ones(2) / 2], np.zeros((400, 2)), [3.0], -5.0, 1.0, np.random.default_rng(0)
        ),
        str,
    )


@pytest.mark.nightly
@pytest.mark.parametrize("sigma", [22, 60])
def test_dependence_that_noise_hides_is_still_inside(sigma):
    """With the fewest rows for which CMI is bought. Of 150 intervals at 95 %, fewer than 129 cover once in 100,000
    runs."""
    rng, share, hit = np.random.default_rng(sigma), np.array([0.35, 0.45]), 0
    groups = np.array([0.6, 0.4])
    p = np.stack([groups * (1 - share), groups * share])[:, :, None]
    truth, n = float(information(p)[()]), 48 * sigma
    for _ in range(150):
        counts = noisy(rng, rng.multinomial(n, p.ravel()).reshape(p.shape), sigma)
        found = information_interval(counts, sigma, [[0], [1], [2]], 1, rng)
        hit += isinstance(found, str) or found.low <= truth <= found.high
    assert hit >= 129
