"""The test of a drawing: calibration, power, strength, statements. All draws are seeded.

The noise here is NumPy's normal distribution instead of the curator's discrete Gaussian of the same scale.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from espalier.core.analysis.independence_fit import Counts, Null, residuals
from espalier.core.analysis.independence_test import holm, judged, p_value
from espalier.core.analysis.strength import associated, noticed, power, strength
from espalier.core.graph.dag import Dag
from espalier.core.graph.separations import Separation
from espalier.core.graph.statements import check_statement, statements
from tests.support.graphs import d_separated


def draw(expected: np.ndarray, n: int, sigma: float, rng: np.random.Generator, ordered: bool = True) -> Counts:
    rows = rng.multinomial(n, (expected / expected.sum()).ravel()).reshape(expected.shape)
    return Counts(rows + rng.normal(0, sigma, rows.shape), sigma, ordered=ordered)


@pytest.mark.parametrize(
    ("shape", "n", "sigma"),
    [((2, 2, 4), 5000, 30.0), ((3, 3, 4), 1000, 50.0), ((4, 3, 6), 5000, 30.0), ((2, 3, 1), 800, 1.0)],
)
def test_false_alarms_are_as_rare_as_promised(shape, n, sigma):
    rng = np.random.default_rng(1)
    null = Null.uniform(shape, n, sigma)
    ps = np.array([p_value(draw(null.expected, n, sigma, rng), rng, 199) for _ in range(200)])
    assert 0.01 <= np.mean(ps <= 0.05) <= 0.09
    assert 0.35 <= np.mean(ps <= 0.5) <= 0.65


def test_people_with_several_rows_raise_no_false_alarms():
    """Each of 500 people has four equal rows. If the rows counted as 2,000 people, they would contradict every
    drawing."""
    rng = np.random.default_rng(2)
    null = Null.uniform((3, 3, 2), 500, 0.0)
    alone, together = [], []
    for _ in range(150):
        values = 4 * draw(null.expected, 500, 0.0, rng).values + rng.normal(0, 3.0, (3, 3, 2))
        alone.append(p_value(Counts(values, 3.0), rng, 99))
        together.append(p_value(Counts(values, 3.0, rows_per_person=4), rng, 99))
    assert np.mean(np.array(alone) <= 0.05) > 0.4
    assert np.mean(np.array(together) <= 0.05) < 0.1


def test_an_odds_ratio_stated_as_noticeable_is_noticed_four_times_in_five():
    rng = np.random.default_rng(3)
    null = Null.uniform((2, 2, 4), 5000, 30.0)
    ratio = noticed(null, 0.05)
    assert power(null, ratio, 0.05) == pytest.approx(0.8, abs=1e-3)
    hits = [p_value(draw(associated(null, math.log(ratio)), 5000, 30.0, rng), rng, 199) <= 0.05 for _ in range(200)]
    assert 0.7 <= np.mean(hits) <= 0.9
    assert noticed(null, 0.01) > ratio
    assert noticed(Null.uniform((4, 4, 20), 200, 300.0), 0.05) is None


def test_the_association_has_the_margins_of_the_null_and_the_odds_ratio_asked_for():
    null = Null.fit(np.array([[[30.0, 10], [20, 40]], [[10, 20], [60, 30]]]), 0.0)
    table = associated(null, math.log(3.0))
    assert np.allclose(table.sum(axis=0), null.expected.sum(axis=0))
    assert np.allclose(table.sum(axis=1), null.expected.sum(axis=1))
    assert np.allclose(table[1, 1] * table[0, 0] / table[0, 1] / table[1, 0], 3.0)
    wide = associated(Null.uniform((3, 4, 2), 100, 0.0), math.log(5.0))
    assert np.allclose(wide[2, 3] * wide[0, 0] / wide[0, 3] / wide[2, 0], 5.0)


@pytest.mark.parametrize("shape", [(2, 2, 4), (3, 4, 2)])
def test_the_interval_of_the_odds_ratio_covers_it(shape):
    rng = np.random.default_rng(4)
    expected = associated(Null.uniform(shape, 8000, 20.0), math.log(2.0))
    found = [strength(draw(expected, 8000, 20.0, rng)) for _ in range(100)]
    assert np.mean([s.low <= 2.0 <= s.high for s in found]) >= 0.89
    assert np.median([s.value for s in found]) == pytest.approx(2.0, rel=0.1)


def test_without_noise_the_odds_ratio_is_that_of_the_table():
    got = strength(Counts(np.array([[40.0, 20], [15, 60]])[:, :, None], 0.0))
    assert got.value == pytest.approx(40 * 60 / 20 / 15, rel=1e-3)
    woolf = math.sqrt(1 / 40 + 1 / 20 + 1 / 15 + 1 / 60)
    assert math.log(got.high / got.value) == pytest.approx(1.96 * woolf, rel=0.05)


def test_the_interval_of_information_covers_it():
    rng = np.random.default_rng(5)
    p = np.array([[0.2, 0.05, 0.1], [0.05, 0.2, 0.05], [0.05, 0.05, 0.25]])
    truth = float((p * np.log(p / p.sum(1, keepdims=True) / p.sum(0))).sum())
    weak = 0.8 * np.outer(p.sum(1), p.sum(0)) + 0.2 * p
    weak_truth = float((weak * np.log(weak / weak.sum(1, keepdims=True) / weak.sum(0))).sum())
    found = [strength(draw(weak[:, :, None], 5000, 15.0, rng, ordered=False)) for _ in range(100)]
    assert np.mean([s.low <= weak_truth <= s.high for s in found]) >= 0.87
    none = [strength(draw(np.ones((3, 3, 2)), 5000, 15.0, rng, ordered=False)) for _ in range(60)]
    assert np.mean([s.low == 0 for s in none]) >= 0.9
    strong = strength(draw(p[:, :, None], 20_000, 5.0, rng, ordered=False))
    assert strong.low > 0.5 * truth


def test_covariance_is_that_of_simulated_residuals():
    rng = np.random.default_rng(6)
    null = Null.uniform((2, 3, 2), 4000, 20.0)
    sums = residuals(null.simulate(4000, rng), 20.0).reshape(4000, 6)
    assert np.allclose(np.cov(sums.T), null.covariance(), atol=0.1 * null.covariance().max())


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx((0.03, 0.06, 0.06))
    assert holm([0.5, 0.6]) == (1.0, 1.0)


def test_sentences_lead_with_strength():
    rng = np.random.default_rng(7)
    null = Null.uniform((2, 2, 2), 20_000, 5.0)
    strong = draw(associated(null, math.log(2.0)), 20_000, 5.0, rng)
    clean, blind = draw(null.expected, 20_000, 5.0, rng), draw(null.expected, 20_000, 2000.0, rng)
    found = judged([strong, clean, blind], rng)
    assert [t.contradicted() for t in found] == [True, False, False]
    assert [t.telling for t in found] == [True, True, False]
    said = [t.sentence("age", "sleep", ["sex"]) for t in found]
    assert said[0].startswith("age and sleep, given sex: odds ratio ")
    assert said[0].endswith("contradicts the drawing here: an arrow between them may be missing.")
    assert "would have been detected four times in five" in said[1]
    assert "too few rows for a verdict" in said[2]
    nominal = judged([Counts(strong.values, 5.0, ordered=False)], rng)[0].sentence("age", "sleep", [])
    assert "nats of information" in nominal


@pytest.mark.parametrize(
    ("values", "sigma", "k", "says"),
    [
        (np.ones((2, 2)), 1.0, 1, "three axes"),
        (np.ones((1, 2, 2)), 1.0, 1, "two categories"),
        (np.ones((2, 2, 2)), -1.0, 1, "sigma"),
        (np.ones((2, 2, 2)), 1.0, 0, "rows_per_person"),
    ],
)
def test_counts_that_cannot_be(values, sigma, k, says):
    with pytest.raises(ValueError, match=says):
        Counts(values, sigma, k)


DRAWN = Dag((("age", "drug"), ("age", "death"), ("drug", "death"), ("sex", "death"), ("u", "sex"), ("u", "job")))
SIZES = {"age": 4, "drug": 2, "death": 2, "sex": 2, "job": 5, "other": 3}


def test_statements_are_implied_and_put_the_target_first():
    found = statements(DRAWN, SIZES, ["drug"], latent=["u"], most=10)
    assert all(d_separated(DRAWN, s.left, s.right, s.given) for s in found)
    touching = ["drug" in (*s.left, *s.right) for s in found]
    assert touching == sorted(touching, reverse=True)
    assert {frozenset((*s.left, *s.right)) for s in found} == {
        frozenset(p) for p in (("drug", "sex"), ("drug", "job"), ("age", "sex"), ("age", "job"), ("death", "job"))
    }
    assert not any({"u", "other"} & {*s.left, *s.right, *s.given} for s in found)
    given = {(*s.left, *s.right): s.given for s in found}
    assert given["death", "job"] == ("sex",)
    assert given["drug", "sex"] == ()
    assert len(statements(DRAWN, SIZES, latent=["u"], most=2)) == 2
    assert statements(DRAWN, SIZES) == statements(DRAWN, dict(SIZES))


def test_a_statement_that_the_drawing_does_not_imply_names_the_open_path():
    assert check_statement(DRAWN, Separation(("drug",), ("sex",), ())) == ""
    assert "drug – death – sex stays open" in check_statement(DRAWN, Separation(("drug",), ("sex",), ("death",)))
    assert "two columns" in check_statement(DRAWN, Separation(("drug", "age"), ("sex",), ()))
