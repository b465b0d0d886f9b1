"""The noise has exactly the recorded scale, and protective noise cannot be seeded."""

from __future__ import annotations

import inspect
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from espalier.core.errors import BudgetError
from espalier.core.privacy import mechanisms
from espalier.core.privacy.accounting import Budget, delta_of, epsilon_of, guess_right, rho_of, round_up
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.scores import EdgeScore
from espalier.core.privacy.unit import Unit
from tests.support.tables import FakeSource, bought

FALSE_ALARM = 1e-7
"""Probability with which each of the checks below may fail by chance."""


class Fixed(FakeSource):
    """A table whose counts are all known."""

    def __init__(self, counts, **sizes):
        self.counts = np.asarray(counts, dtype=np.int64)
        super().__init__(int(self.counts.sum()), **sizes)

    def count(self, clique):  # noqa: ARG002
        return self.counts


def scale_interval(draws: np.ndarray, sigma: float) -> bool:
    """Return whether the sample's second moment agrees with variance ``sigma``² (χ² interval at FALSE_ALARM)."""
    low, high = stats.chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], len(draws))
    return bool(low <= float(np.sum(draws**2)) / sigma**2 <= high)


def curator(unit, rho, counts):
    return PrivateCurator(Fixed(counts, a=len(counts)), unit, Budget(1.0, 1e-9, rho), 10**6)


@pytest.mark.parametrize("unit", [Unit(), Unit("replace-one", 3), Unit("add-remove"), Unit("add-remove", 2)], ids=str)
def test_measured_noise_has_the_booked_scale(unit):
    rho, cells = 0.004, 4000
    made = curator(unit, rho, np.full(cells, 7)).measure({("a",): rho})[0]
    expected = unit.count_sensitivity / math.sqrt(2 * rho)
    assert made.sigma == pytest.approx(expected, rel=1e-12)
    draws = made.values - 7
    assert scale_interval(draws, made.sigma)
    assert not scale_interval(draws, made.sigma * 1.15), "noise smaller than recorded would pass"
    assert not scale_interval(draws, made.sigma / 1.15), "noise larger than recorded would pass"
    assert np.all(made.values == np.rint(made.values)), "counts are discrete"


def test_two_way_counts_get_the_booked_noise_too():
    """A clique of several columns is no exception, and every cell is drawn anew."""
    shape, rho = (50, 80), 0.004
    c = PrivateCurator(Fixed(np.full(shape, 3), a=50, b=80), Unit(), Budget(1.0, 1e-9, 1.0), 10**6)
    first, second = (c.measure({("a", "b"): rho})[0] for _ in range(2))
    for made in (first, second):
        draws = (made.values - 3).ravel()
        assert scale_interval(draws, made.sigma)
        assert not scale_interval(draws, made.sigma * 1.15)
        assert not scale_interval(draws, made.sigma / 1.15)
    assert scale_interval((first.values - second.values).ravel(), math.sqrt(2) * first.sigma)


@pytest.mark.parametrize("unit", [Unit(), Unit("add-remove", 2)], ids=str)
def test_bought_scores_carry_the_booked_noise(unit):
    """For 3,240 zero scores at once, the spread is the recorded scale, with Δ = √m times that of one score, in rows."""
    names = [f"c{i}" for i in range(81)]
    c = PrivateCurator(Fixed(np.full((2, 2), 4), **dict.fromkeys(names, 2)), unit, Budget(1.0, 1e-9, 0.5), 10**6)
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    made = c.measure_scores(EdgeScore(lambda pair: np.full((2, 2), 4.0)), pairs, 0.3, "scores", "explain")
    one = unit.rows_per_person * (2 if unit.neighbors == "replace-one" else 1)
    assert made.sensitivity == pytest.approx(math.sqrt(len(pairs)) * one, rel=1e-4)
    assert made.sigma == pytest.approx(made.sensitivity / math.sqrt(2 * 0.3), rel=1e-9)
    assert scale_interval(made.values, made.sigma)
    assert not scale_interval(made.values, made.sigma * 1.15)
    assert not scale_interval(made.values, made.sigma / 1.15)
    assert c.spending.rho == 0.3
    with pytest.raises(BudgetError):
        c.measure_scores(EdgeScore(lambda pair: np.full((2, 2), 4.0)), pairs, 0.3, "scores", "explain")
    assert len(bought(c.spending, "scores")) == len(c.spending.draws) == 1


@pytest.mark.parametrize("factor", [0.75, *(pytest.param(f, marks=pytest.mark.nightly) for f in (1.0, 1.3))])
def test_the_curators_choice_has_the_booked_odds(factor):
    """From counts to choice: two pairs whose scores are a known number of rows apart."""

    class Two(Fixed):
        def count(self, clique):
            return np.array([[8, 0], [0, 8]]) if clique == ("a", "b") else np.array([[4, 4], [4, 4]])

    flat = EdgeScore(lambda pair: np.full((2, 2), 4.0))  # the scores are 16 rows and 0 rows
    draws, rho = 6000, 0.0078
    table = Two([[16, 0], [0, 0]], a=2, b=2, c=2)
    c = PrivateCurator(table, Unit(), Budget(1.0, 1e-9, rho * draws), 100)
    wins = sum(c.choose(flat, [("a", "b"), ("b", "c")], rho * 0.999999, "edge") == ("a", "b") for _ in range(draws))
    odds = 1 / (1 + math.exp(-16 * factor / bought(c.spending, "choice")[0].scale))
    p = stats.binomtest(wins, draws, odds).pvalue
    assert p > FALSE_ALARM if factor == 1.0 else p < 1e-3


def test_small_noise_is_a_discrete_gaussian():
    sigma = 1.3
    draws = mechanisms.add_gaussian(np.zeros(20_000, dtype=np.int64), sigma)
    support = np.arange(-4, 5)
    mass = np.exp(-(support**2) / (2 * sigma**2))
    mass /= np.exp(-(np.arange(-30, 31) ** 2) / (2 * sigma**2)).sum()
    seen = np.array([(draws == k).sum() for k in support])
    inside = seen.sum()
    assert stats.chisquare(seen, mass / mass.sum() * inside).pvalue > FALSE_ALARM
    wrong = np.exp(-np.abs(support) / sigma)
    assert stats.chisquare(seen, wrong / wrong.sum() * inside).pvalue < FALSE_ALARM


@pytest.mark.parametrize("factor", [0.8, 1.0, 1.25])
def test_exponential_mechanism_chooses_with_the_booked_scale(factor):
    """Two candidates a known distance apart: the odds show the scale, and one that is off by a factor of 1.25 is
    detected.
    """
    gap, scale, draws = 3000, 2000.0, 6000
    wins = sum(mechanisms.noisy_max([gap, 0], scale * factor) == 0 for _ in range(draws))
    odds = 1 / (1 + math.exp(-gap / scale))
    p = stats.binomtest(wins, draws, odds).pvalue
    assert p > FALSE_ALARM if factor == 1.0 else p < 1e-4


@pytest.mark.parametrize("unit", [Unit(), Unit("add-remove", 2)], ids=str)
def test_choice_costs_what_is_booked(unit):
    rho = 0.02
    c = PrivateCurator(Fixed(np.full((3, 3), 5), a=3, b=3, c=3), unit, Budget(1, 1e-9, 0.1), 10**6)
    score = EdgeScore(lambda pair: np.full((3, 3), 5.0))
    c.choose(score, [("a", "b"), ("b", "c")], rho, "tree edge")
    booked = bought(c.spending, "choice")[0]
    k = unit.rows_per_person
    assert booked.sensitivity == (2 * k if unit.neighbors == "replace-one" else k)
    assert booked.scale == pytest.approx(booked.sensitivity / math.sqrt(2 * rho), rel=1e-12)
    assert c.spending.rho == rho


def test_noise_differs_between_runs_and_takes_no_seed():
    zeros = np.zeros(50, dtype=np.int64)
    np.random.seed(0)  # noqa: NPY002
    first = mechanisms.add_gaussian(zeros, 100.0)
    np.random.seed(0)  # noqa: NPY002
    assert not np.array_equal(first, mechanisms.add_gaussian(zeros, 100.0))
    for function in (mechanisms.add_gaussian, mechanisms.noisy_max):
        assert not {"seed", "rng", "generator"} & set(inspect.signature(function).parameters)


@pytest.mark.parametrize("epsilon", [0.01, 0.2, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("delta", [1e-12, 6.55e-10, 1e-5])
def test_conversion_is_tight_and_never_over(epsilon, delta):
    rho = rho_of(epsilon, delta)
    assert epsilon_of(rho, delta) <= epsilon
    assert delta_of(rho, epsilon) <= delta * (1 + 1e-9)
    assert epsilon_of(1.03 * rho, delta) > epsilon, "three per cent more would exceed the request"


def test_conversion_against_the_formula_by_numerical_integration():
    """δ = inf over α of exp((α−1)(αρ−ε))/(α−1)·(1−1/α)^α (Canonne, Kamath & Steinke 2020, Prop. 12)."""
    for rho, epsilon in ((0.0146, 1.0), (0.3, 4.0), (0.001, 0.2)):
        alpha = 1 + np.logspace(-3, 5, 400_000)
        log_delta = (alpha - 1) * (alpha * rho - epsilon) - np.log(alpha - 1) + alpha * np.log1p(-1 / alpha)
        assert delta_of(rho, epsilon) == pytest.approx(float(np.exp(log_delta.min())), rel=1e-3)


def test_40_marginals_need_the_noise_that_papers_readme_says():
    """σ ≈ 52 rows for 40 marginals at ε = 1, δ = 1/39073²."""
    rho = rho_of(1.0, 1 / 39073**2)
    assert math.sqrt(2) / math.sqrt(2 * rho / 40) == pytest.approx(52, abs=0.5)


def test_guessing():
    assert guess_right(0.0, 0.0) == 0.5
    assert guess_right(1.0, 0.0) == pytest.approx(math.e / (1 + math.e))


def test_what_was_spent_is_shown_rounded_up():
    assert round_up(0.123401) == "0.1235"
    assert round_up(1.0) == "1"
    assert round_up(0.0) == "0"
    assert round_up(73.1058) == "73.11"
    assert round_up(0.1) == "0.1"
    assert round_up(9.9991) == "10"
    assert round_up(1.0000000001) == "1.001"
    assert round_up(4.4444e-05) == "4.445e-05"


@given(st.floats(1e-300, 1e300), st.integers(1, 12))
@settings(max_examples=500)
def test_what_is_shown_of_a_figure_is_never_less_and_less_than_one_step_more(x, figures):
    shown = Fraction(round_up(x, figures))
    assert shown >= Fraction(repr(x))
    assert float(shown) >= x
    assert shown - Fraction(repr(x)) < Fraction(10) ** (Decimal(repr(x)).adjusted() - figures + 1)
