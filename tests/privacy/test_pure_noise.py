"""Pure draws: discrete Laplace noise with the recorded scale, L1 sensitivities, and values of ε that add up."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from espalier.core.errors import BudgetError
from espalier.core.privacy import mechanisms
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.draws import Draw
from espalier.core.privacy.gradient import LogisticGradient
from espalier.core.privacy.question_recipes.recipes import CountHistogram, QuestionSums, WorstQuestion
from espalier.core.privacy.scores import EdgeScore
from espalier.core.privacy.spending import Spending
from espalier.core.privacy.tails import bound_in_sigmas
from espalier.core.privacy.unit import Unit
from espalier.core.project.question_types import Count, Question
from tests.privacy.test_question_recipes import ASKED, COUNT, ROWS, SIZES, UNITS_OF_PRIVACY, table, vectors

FALSE_ALARM = 1e-7


def largest_move(each: np.ndarray, unit: Unit) -> float:
    """Return the largest L1 change of sums, over all ways in which the rows of one person may change."""
    whole = np.array(
        [
            sum(each[i] for i in rows)
            for rows in itertools.combinations_with_replacement(range(27), unit.rows_per_person)
        ]
    )
    if unit.neighbors == "add-remove":
        return float(np.abs(whole).sum(axis=1).max())
    return max(float(np.abs(whole - v).sum(axis=1).max()) for v in whole)


@pytest.mark.parametrize("unit", UNITS_OF_PRIVACY, ids=str)
@pytest.mark.parametrize(
    "recipe",
    [QuestionSums(ASKED, (COUNT,), SIZES), QuestionSums(ASKED[:1], (COUNT,), SIZES), CountHistogram(COUNT, SIZES)],
    ids=["questions", "one question", "a count"],
)
def test_the_l1_sensitivity_is_reached_and_never_passed(recipe, unit):
    assert largest_move(vectors(recipe).astype(float), unit) == recipe.total_sensitivity(unit)


@pytest.mark.parametrize("unit", UNITS_OF_PRIVACY, ids=str)
def test_counts_move_by_the_rows_of_one_person(unit):
    cells = np.array([np.eye(9)[3 * a + b] for a, b, _ in ROWS])
    assert largest_move(cells, unit) == unit.rows_moved


@pytest.mark.parametrize("epsilon", [0.03, 0.7, 3.0])
@pytest.mark.parametrize("sensitivity", [1, 2, 9])
def test_no_answer_is_likelier_by_more_than_the_promise(sensitivity, epsilon):
    """Over all answers to a count, the likelihood ratio of two tables Δ rows apart reaches exp(ε) and no more."""
    sigma = mechanisms.laplace_scale(sensitivity, epsilon**2 / 2)
    b = mechanisms.laplace_parameter(sigma)
    answers = np.arange(-400, 400)
    ratios = (np.abs(answers - sensitivity) - np.abs(answers)) / b
    assert ratios.max() <= epsilon
    assert ratios.max() == pytest.approx(epsilon, rel=1e-9)


def test_small_noise_is_a_discrete_laplace():
    sigma = 1.3
    b = mechanisms.laplace_parameter(sigma)
    draws = mechanisms.add_laplace(np.zeros(6_000, dtype=np.int64), sigma)
    support = np.arange(-4, 5)
    seen = np.array([(draws == k).sum() for k in support])
    mass = np.exp(-np.abs(support) / b)
    assert stats.chisquare(seen, mass / mass.sum() * seen.sum()).pvalue > FALSE_ALARM
    wrong = np.exp(-(support**2) / (2 * sigma**2))
    assert stats.chisquare(seen, wrong / wrong.sum() * seen.sum()).pvalue < FALSE_ALARM


@pytest.mark.parametrize("unit", [Unit(), Unit("add-remove", 2)], ids=str)
def test_drawn_noise_has_the_booked_scale(unit):
    """The mean size of 400 answers is b; its standard error is b/20, and 25 % is five of them."""
    c = PrivateCurator(table(ROWS), unit, Budget.of_pure(60.0), 100)
    rho = (0.1**2) / 2
    noise = np.concatenate([c.measure({("a",): rho})[0].values - 9 for _ in range(134)])
    booked = c.spending.draws[0]
    assert (booked.noise, booked.sensitivity) == ("laplace", unit.rows_moved)
    assert booked.scale == pytest.approx(math.sqrt(2) * unit.rows_moved / 0.1, rel=1e-9)
    assert np.abs(noise).mean() == pytest.approx(booked.scale / math.sqrt(2), rel=0.25)
    assert np.all(noise == np.rint(noise))


def test_laplace_noise_takes_no_seed():
    zeros = np.zeros(50, dtype=np.int64)
    np.random.seed(0)  # noqa: NPY002
    first = mechanisms.add_laplace(zeros, 100.0)
    np.random.seed(0)  # noqa: NPY002
    assert not np.array_equal(first, mechanisms.add_laplace(zeros, 100.0))


def test_a_pure_budget_buys_no_gaussian_draw_and_no_more_than_its_epsilon():
    c = PrivateCurator(table(ROWS), Unit(), Budget.of_pure(1.0), 1000)
    half, eighth = 0.5**2 / 2 * (1 - 1e-9), 0.5**2 / 8 * (1 - 1e-9)
    with pytest.raises(BudgetError, match="pure accounting cannot pay for"):
        c.measure_sums(LogisticGradient("a", ("b",), {"a": np.zeros((1, 2)), "b": np.zeros((3, 2))}), half)
    with pytest.raises(BudgetError, match="pure accounting cannot pay for"):
        c.measure_scores(EdgeScore(lambda pair: np.ones((3, 3))), [("a", "b")], half, "scores")
    assert not c.spending.draws
    c.measure({("a",): half})
    c.choose_question(WorstQuestion(QuestionSums(ASKED, (COUNT,), SIZES), np.zeros(5)), eighth)
    assert c.spending.epsilon_at(0.0) == pytest.approx(1.0, rel=1e-8)
    assert c.spending.epsilon_at(0.0) <= 1.0
    assert c.spending.rho == pytest.approx(0.5**2 / 2 + 0.5**2 / 8, rel=1e-6)  # although ρ of up to ½ would remain
    with pytest.raises(BudgetError, match="nothing was read"):
        c.measure({("b",): 1e-6})


def test_a_draw_with_a_delta_of_its_own_is_refused():
    spending = Spending.of(Budget.of_pure(1.0))
    draw = Draw("schema", "categories", ("a",), "schema", 3, 1.0, 5.0, 0.02, delta=1e-9, noise="laplace")
    with pytest.raises(BudgetError, match="a separate δ"):
        spending.debit([draw])


@pytest.mark.parametrize("laplace", [False, True])
def test_bounds_in_sigmas_hold_for_all_numbers_together(laplace):
    rng, numbers, runs = np.random.default_rng(2), 40, 4000
    noise = rng.laplace(0, 1 / math.sqrt(2), (runs, numbers)) if laplace else rng.normal(0, 1, (runs, numbers))
    outside = (np.abs(noise).max(axis=1) > bound_in_sigmas(numbers, 0.05, laplace=laplace)).mean()
    assert outside < 0.05
    if laplace:
        assert (np.abs(noise).max(axis=1) > bound_in_sigmas(numbers, 0.05)).mean() > 0.05, "it needs its own bound"


def test_an_answer_of_many_questions_costs_their_number():
    """One row changes all of five questions: the noise of each is five times that of a single question."""
    five = tuple(Question(f"q{i}", ({"a": (0,)},)) for i in range(5))
    sums = QuestionSums(five, (), SIZES)
    assert sums.total_sensitivity(Unit()) == 5 * sums.units
    assert CountHistogram(Count("n", {"a": (1,)}, 1), SIZES).total_sensitivity(Unit("add-remove", 3)) == 3 * sums.units
