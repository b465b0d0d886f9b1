"""A model's effect on each group, compared with fairlearn and with figures by hand; and the coverage of its
intervals.
"""

from __future__ import annotations

import numpy as np
import pytest
from fairlearn.metrics import demographic_parity_difference, equalized_odds_difference
from sklearn.metrics import roc_auc_score

from espalier.core.evaluation.dependence import cmi
from espalier.core.evaluation.groups import (
    auc_interval,
    calibration,
    calibration_error,
    difference_intervals,
    differences,
    group_auc,
    probability,
)
from espalier.core.evaluation.quality import best_tree_quality, dependence, tree_quality
from espalier.core.graph.separations import Separation
from tests.support.tables import random_table, schema_of, table_of


def test_differences_are_fairlearns():
    rng = np.random.default_rng(1)
    for groups in (2, 3, 5):
        g, t, y = rng.integers(0, groups, 400), rng.integers(0, 2, 400), rng.integers(0, 2, 400)
        counts = np.zeros((groups, 2, 2))
        np.add.at(counts, (g, t, y), 1)
        odds, parity = differences(counts)
        assert odds == pytest.approx(equalized_odds_difference(t, y, sensitive_features=g))
        assert parity == pytest.approx(demographic_parity_difference(t, y, sensitive_features=g))


def test_a_group_without_a_rate_does_not_count():
    counts = np.array([[[5, 5], [2, 8]], [[4, 6], [1, 9]], [[0, 0], [9, 1]], [[0, 0], [0, 0]]], dtype=float)
    odds, parity = differences(counts)
    assert odds == pytest.approx(0.1)
    assert parity == pytest.approx(0.75 - 0.1)
    assert np.isnan(differences(counts[:1])[0])


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    """100 tables of 600 rows whose differences are known: coverage of about 95 % is expected, and less than 83 % fails
    (80 % for a largest difference). So does an AUC interval wider than 0.12.
    """
    rng = np.random.default_rng(2)
    odds_in = parity_in = auc_in = 0
    for _ in range(100):
        g, t = rng.integers(0, 2, 600), rng.integers(0, 2, 600)
        y = (rng.random(600) < np.where(g == 1, 0.7, 0.3)).astype(int)  # both differences are 0.4
        odds, parity = difference_intervals(g, t, y, rng)
        parity_in += parity[0] <= 0.4 <= parity[1]
        odds_in += odds[0] <= 0.4 <= odds[1]
        score = rng.normal(size=600) + t  # AUC Φ(1/√2)
        low, high = auc_interval(score, t, rng)
        auc_in += low <= 0.76025 <= high
        assert high - low < 0.12
    assert 83 <= parity_in <= 100
    assert 80 <= odds_in <= 100, "a largest difference is biased slightly upward"
    assert 83 <= auc_in <= 100


def test_auc_of_a_group_and_its_interval_with_ties_and_certainty():
    truth = np.array([0, 0, 1, 1, 1, 0] * 20)
    scores = np.log(np.array([[0.5, 0.5], [0.9, 0.1], [0.5, 0.5], [0.2, 0.8], [0.1, 0.9], [0.8, 0.2]] * 20))
    scores[3] = (-np.inf, 0.0)
    area, (low, high) = group_auc(scores, truth, np.random.default_rng(0))
    odds = np.nan_to_num(scores[:, 1] - scores[:, 0], posinf=99)
    assert area == pytest.approx(roc_auc_score(truth, odds))
    assert low <= area <= high <= 1


def test_calibration_by_hand():
    predicted = np.array([0.05, 0.07, 0.31, 0.39, 0.99, 1.0])
    truth = np.array([0, 1, 0, 1, 1, 1])
    bins = calibration(predicted, truth)
    assert [(round(b.predicted, 3), b.observed, b.rows) for b in bins] == [
        (0.06, 0.5, 2),
        (0.35, 0.5, 2),
        (0.995, 1.0, 2),
    ]
    assert calibration_error(bins) == pytest.approx((0.44 + 0.15 + 0.005) / 3)
    assert probability(np.array([[0.0, np.log(3)], [-np.inf, 0.0], [5.0, -np.inf]])) == pytest.approx([0.75, 1, 0])


@pytest.mark.nightly
@pytest.mark.parametrize("sizes", [(3, 4, 2, 1500), (2, 2, 60, 300)], ids=["plenty of rows", "few rows a stratum"])
def test_a_true_separation_exceeds_the_floor_in_one_table_of_twenty(sizes):
    """150 tables: 5 % is 7.5; the binomial bounds give a false alarm less than once in a million runs."""
    nx, ny, nz, rows = sizes
    schema, rng = schema_of(x=nx, y=ny, z=nz), np.random.default_rng(3)
    above = 0
    for _ in range(150):
        z = rng.integers(0, nz, rows)
        x, y = ((rng.random(rows) * size * (0.5 + 0.5 * (z % 2))).astype(int) for size in (nx, ny))
        found = cmi(table_of(schema, x=x, y=y, z=z), Separation(("x",), ("y",), ("z",)))
        above += found.value > found.floor
        assert found.chance < found.floor
    assert 1 <= above <= 23


def test_a_false_separation_exceeds_the_floor():
    schema, rng = schema_of(x=2, y=2, z=2), np.random.default_rng(4)
    z, x = rng.integers(0, 2, 1000), rng.integers(0, 2, 1000)
    y = np.where(rng.random(1000) < 0.3, x, rng.integers(0, 2, 1000))
    found = cmi(table_of(schema, x=x, y=y, z=z), Separation(("x",), ("y",), ("z",)))
    assert found.value > found.floor


def test_q_of_a_tree_is_the_sum_of_its_edges_and_the_best_tree_has_most():
    schema = schema_of(a=2, b=3, c=4, d=2)
    table = random_table(schema, 300, 5)
    counts = table.count(("a", "b")).astype(float)
    product = np.outer(counts.sum(1), counts.sum(0)) / 300
    assert dependence(table, ("a", "b")) == pytest.approx(np.abs(counts - product).sum())
    tree = [("a", "b"), ("b", "c"), ("a", "d")]
    assert tree_quality(table, tree) == pytest.approx(sum(dependence(table, e) for e in tree))
    weakest = min((*tree[:2], ("a", "c")), key=lambda e: dependence(table, e))
    loop = [*tree, ("a", "c")]
    assert tree_quality(table, loop) == pytest.approx(
        sum(dependence(table, e) for e in loop) - dependence(table, weakest)
    )
    assert best_tree_quality(table) >= tree_quality(table, loop)
