"""The two-stage method: α from the requested threshold, its disclosure, its regression and the paper's measures."""

from __future__ import annotations

import numpy as np
import pytest

from espalier.core.blurring.disclosure import membership_auc, reidentified
from espalier.core.blurring.inputs import (
    alpha_for,
    bound,
    disclosed,
    hypercube,
    matched,
    mixed,
    nearness,
    thresholds,
)
from espalier.core.blurring.kernel import Kernel, fit
from espalier.core.blurring.stages import Numbers, Options, synthesize
from espalier.core.errors import ProjectError, SizeError, TableError
from espalier.core.evaluation.marketing import delta_mse, elasticity, mapd, optimal_markup, profit_ratio


def uniform(n=500, d=3, seed=0):
    return np.random.default_rng(seed).random((n, d))


@pytest.mark.parametrize("d", [1, 3, 8])
@pytest.mark.parametrize("lid", [0.05, 0.15, 0.4, 0.9])
def test_alpha_reproduces_the_lid_asked_wherever_it_can(d, lid):
    real, rng = uniform(400, d), np.random.default_rng(1)
    synthetic = matched(real, hypercube(real, rng), rng)
    near = nearness(real, synthetic, thresholds(0.001, np.zeros(d)))
    if disclosed(near, 0.0) > lid:
        with pytest.raises(ProjectError, match="cannot be reached") as refused:
            alpha_for(near, lid)
        assert refused.value.data["best"] == disclosed(near, 0.0)
        return
    alpha = alpha_for(near, lid)
    made = mixed(real, synthetic, alpha).values
    measured = float(np.mean((np.abs(made - real) <= 0.001).any(axis=1)))
    assert measured == pytest.approx(lid, abs=1e-9)
    assert disclosed(near, alpha + 1e-3 * (1 - alpha)) > lid  # no larger α stays within the threshold


def test_the_papers_bound_fails_after_matching():
    real, rng = uniform(1000, 3), np.random.default_rng(2)
    near = nearness(real, matched(real, hypercube(real, rng), rng), thresholds(0.001, np.zeros(3)))
    for alpha in (0.2, 0.5, 0.8):
        assert disclosed(near, alpha) > 3 * bound(0.001, alpha, 3)


def test_whole_numbers_count_as_disclosed_when_they_round_to_the_real_one():
    real = np.array([[3.0], [3.0], [3.0]])
    before = np.array([[3.49], [3.51], [2.6]])
    near = nearness(real, before, thresholds(0.1, np.array([1.0])))
    assert (near <= 1).tolist() == [True, False, True]
    assert (np.abs(np.rint(before) - real) <= 0.1)[:, 0].tolist() == [True, False, True]


def test_the_hypercube_keeps_distributions_and_correlation():
    rng = np.random.default_rng(3)
    z = rng.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], 1000)
    real = np.column_stack([z[:, 0], np.exp(z[:, 1])])
    made = hypercube(real, rng)
    assert abs(np.corrcoef(np.log(made[:, 1].clip(0.01)), made[:, 0])[0, 1] - 0.7) < 0.08
    assert np.abs(np.quantile(made, [0.1, 0.5, 0.9], axis=0) - np.quantile(real, [0.1, 0.5, 0.9], axis=0)).max() < 0.25
    assert hypercube(np.ones((50, 2)), rng).tolist() == np.ones((50, 2)).tolist()


def test_matching_uses_each_row_once_also_in_blocks(monkeypatch):
    real, made, rng = uniform(120), uniform(120, seed=5), np.random.default_rng(6)
    for size in (5000, 32):
        monkeypatch.setattr("espalier.core.blurring.inputs.BLOCK", size)
        out = matched(real, made, rng)
        assert np.array_equal(np.sort(out, axis=0), np.sort(made, axis=0))
        assert np.linalg.norm(out - real) < np.linalg.norm(made - real)


@pytest.mark.parametrize("d", [1, 3, 8])
@pytest.mark.parametrize("name", ["wendland", "gauss"])
def test_kernels_are_positive_definite_in_every_dimension(name, d):
    gram = Kernel(name, 1.5).of(uniform(150, d), uniform(150, d))
    assert np.linalg.eigvalsh(gram).min() > -1e-9


@pytest.mark.nightly
def test_regression_follows_a_curve_and_landmarks_nearly_as_well():
    rng = np.random.default_rng(7)
    x = rng.random((600, 2))
    y = np.sin(6 * x[:, 0]) + x[:, 1] ** 2
    test = rng.random((200, 2))
    truth = np.sin(6 * test[:, 0]) + test[:, 1] ** 2
    for landmarks in (None, 150):
        model = fit(x, y + 0.1 * rng.normal(size=600), rng, landmarks)
        assert np.mean((model.at(test) - truth) ** 2) < 0.02 * truth.var()
        assert 0.08 < model.left.std() < 0.13
    with pytest.raises(SizeError, match="set landmarks"):
        fit(np.zeros((5001, 1)), np.zeros(5001), rng)


def test_linkage_and_membership_find_a_copy_and_nothing_in_fresh_rows():
    real, fresh, others = uniform(300), uniform(300, seed=8), uniform(300, seed=9)
    order = np.random.default_rng(10).permutation(300)
    assert reidentified(real, real[order], order) == 1.0
    assert reidentified(real, fresh, np.arange(300)) < 0.05
    assert reidentified(np.ones((4, 1)), np.ones((4, 1)), np.arange(4)) == pytest.approx(0.25)
    assert membership_auc(real, others, real) == 1.0
    assert abs(membership_auc(real, others, fresh) - 0.5) < 0.1


def numbers(n=300, seed=0):
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.rint(20 + 60 * rng.random(n)), rng.random(n)])
    group = np.eye(2)[rng.integers(0, 2, n)]
    y = x[:, 0] + 20 * x[:, 1] ** 2 + 10 * group[:, 1] + rng.normal(size=n)
    return Numbers(x, np.array([[0, 100], [0, 1.0]]), np.array([1.0, 0]), group, y, (0.0, 150.0), 0.1)


@pytest.mark.nightly
def test_rows_made_are_shuffled_within_bounds_at_their_precision_and_linked():
    real = numbers()
    made = synthesize(real, Options(lid=0.4, eta=0.001), np.random.default_rng(1))
    assert made.dumps() is None
    assert np.array_equal(made.anonymized[:, 0], np.rint(made.anonymized[:, 0]))
    assert np.array_equal(made.untouched, real.untouched[made.whose])
    assert not np.array_equal(made.whose, np.arange(300))
    assert made.disclosure.lid_inputs == pytest.approx(0.4, abs=1e-9)
    assert made.disclosure.linked > 0.5
    assert made.disclosure.membership > 0.6
    assert np.corrcoef(made.outcome, real.outcome[made.whose])[0, 1] > 0.9
    noisy = synthesize(real, Options(alpha=0.9, residual_noise=True), np.random.default_rng(1))
    assert noisy.outcome.std() > 0


def test_what_cannot_be_is_refused():
    for wrong in ({"eta": 0.0}, {"lid": 15}, {"alpha": 1.0}):
        with pytest.raises(ProjectError):
            Options(**wrong)
    real = numbers()
    with pytest.raises(TableError, match="empty cells"):
        Numbers(real.anonymized, real.bounds, real.steps, real.untouched, np.full(300, np.nan), (0, 1))
    with pytest.raises(ProjectError, match="cannot be reached"):
        synthesize(real, Options(lid=0.0, eta=0.05), np.random.default_rng(0))


def test_the_papers_measures():
    assert delta_mse(2.0, 0.5) == 0.75
    assert optimal_markup(-1.5) == 2.0
    assert profit_ratio(-1.5, -1.5) == 1.0
    assert 0.9 < profit_ratio(-1.7, -1.5) < 1.0
    assert mapd(np.array([-1.0, -2.2]), np.array([-1.0, -2.0])) == pytest.approx(0.05)
    x = np.log(np.array([1.5, 2.0, 3.0]))
    assert elasticity(x, -1.7 * x) == pytest.approx(-1.7)
