"""The membership game: the control is detected, chance is not, intervals cover, and a random split leaks visibly."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pytest
from scipy.stats import norm

from espalier.core.cli import attack as attack_command
from espalier.core.errors import Cancelled
from espalier.core.evaluation.membership.attack import (
    BLIND,
    Attack,
    AttackResult,
    Classifier,
    ResampledInterval,
    _auc,
    _classified,
    ceiling,
    run,
)
from espalier.core.evaluation.membership.attack_features import SUMMARIES, correlation, densities, histogram, naive
from espalier.core.evaluation.membership.game import Game, choose_targets, folds_by_model, publish, shadow_releases
from espalier.core.privacy.unit import Unit

SIZES = {"a": 4, "b": 3, "c": 5, "d": 2, "e": 6, "f": 4}


def game(models=48, pool=120):
    rng = np.random.default_rng(0)
    rows = {n: np.minimum(rng.geometric(0.5, pool) - 1, k - 1).astype(np.uint8) for n, k in SIZES.items()}
    return Game(rows, SIZES, pool // 2, models)


def independent(codes, rng):
    """Rows that depend on nothing private."""
    n = len(next(iter(codes.values())))
    return {name: rng.integers(0, size, n) for name, size in SIZES.items()}


def played(synthesise, attack="density", models=48, count=8):
    g, rng = game(models), np.random.default_rng(1)
    targets = choose_targets(g, count, rng)
    return run(attack, g, shadow_releases(g, synthesise, rng), targets, rng)


def test_published_rows_are_told_and_noise_is_not():
    control, nothing = played(publish), played(independent)
    assert control.auc.value >= 0.95
    assert control.advantage.value > 0.7
    assert control.outlying >= 0.95
    assert abs(nothing.auc.value - 0.5) < 0.12
    assert nothing.auc.low < 0.5 < nothing.auc.high
    assert control.says(control).startswith("the release reveals members")
    assert nothing.says(control).startswith("no better than chance")


def test_an_attack_that_cannot_tell_the_control_says_so_and_no_more():
    poor = AttackResult("naive", ResampledInterval(0.6, 0.5, 0.7), ResampledInterval(0.1, 0, 0.2), (0.6,), 0.6, 0.6)
    assert poor.says(poor).startswith(BLIND)
    with pytest.raises(ValueError, match="same attack"):
        poor.says(played(publish))


@pytest.mark.parametrize("attack", [pytest.param("naive", marks=pytest.mark.nightly), "histogram"])
def test_summaries_are_judged_too_and_miss_much_of_a_copy(attack):
    found = played(publish, attack, count=4)
    assert found.auc.low <= found.auc.value <= found.auc.high
    assert found.auc.value < played(publish, count=4).auc.value


def test_every_target_is_in_half_of_the_models_and_pairs_share_a_fold():
    g, rng = game(), np.random.default_rng(2)
    shadows = shadow_releases(g, publish, rng)
    assert (shadows.inside.sum(axis=0) == g.models // 2).all()
    assert (shadows.inside.sum(axis=1) == g.rows).all()
    folds = folds_by_model(g, 6, rng)
    assert sorted(np.concatenate(folds)) == list(range(g.models))
    assert all((m ^ 1) in part for part in folds for m in part)


def test_outlying_targets_have_the_rarest_values():
    g = game()
    targets, outlying = choose_targets(g, 10, np.random.default_rng(3))
    assert len(set(targets)) == 10
    assert outlying.sum() == 5
    score = sum(np.log(np.bincount(c, minlength=SIZES[n]) / g.pool_rows)[c] for n, c in g.pool.items())
    assert set(targets[outlying]) == set(np.argsort(score, kind="stable")[:5])


def test_the_ceiling_is_that_of_gaussians_and_counts_units():
    rho = 0.03
    rng = np.random.default_rng(5)
    ins, outs = rng.normal(math.sqrt(2 * rho), 1, 200_000), rng.normal(0, 1, 200_000)
    found = _auc(np.concatenate([ins, outs]), np.arange(400_000) < 200_000)
    assert ceiling(rho, Unit("replace-one")) == pytest.approx(found, abs=0.006)
    assert ceiling(rho, Unit("add-remove")) == pytest.approx(norm.cdf(math.sqrt(4 * rho)))
    assert ceiling(rho, Unit("replace-one", 2), rows_per_target=2) == ceiling(rho, Unit("replace-one"))


def test_auc_counts_ties_as_half():
    assert _auc(np.array([1.0, 1.0, 2.0, 0.0]), np.array([True, False, True, False])) == 0.875
    assert _auc(np.array([1.0, 2.0]), np.array([True, True])) == 0.5


def test_features_are_what_they_say():
    rows = {"x": np.array([0, 0, 1, 1]), "y": np.array([0, 0, 1, 1]), "z": np.array([0, 0, 0, 0])}
    sizes = {"x": 2, "y": 2, "z": 2}
    assert naive(rows, sizes)[:5].tolist() == [0.5, 0.5, 0.25, 0.5, 2.0]
    assert histogram(rows, sizes).tolist() == [0.5, 0.5, 0.5, 0.5, 1.0, 0.0]
    assert sorted(np.round(correlation(rows, sizes), 9))[:2] == [-1.0, -1.0]
    assert np.count_nonzero(correlation(rows, sizes)) == 4
    near, far = densities(rows, {"x": 0, "y": 0, "z": 0}), densities(rows, {"x": 0, "y": 1, "z": 1})
    assert (near > far).all()


def test_progress_cancels_and_bad_games_are_refused():
    def stop(fraction, _):
        if fraction > 0.2:
            raise Cancelled("enough")

    with pytest.raises(Cancelled):
        shadow_releases(game(), publish, np.random.default_rng(0), stop)
    with pytest.raises(ValueError, match="20 models"):
        game(models=8)
    with pytest.raises(ValueError, match="fewer than the 120 rows"):
        Game(game().pool, SIZES, 120)
    with pytest.raises(ValueError, match="targets"):
        choose_targets(game(), 1000, np.random.default_rng(0))


@pytest.mark.parametrize("classifier", get_args(Classifier))
def test_every_classifier_finds_a_difference_that_is_there(classifier):
    rng = np.random.default_rng(3)
    inside = np.arange(60) % 2 == 0
    x = rng.normal(size=(60, 4)) + 3.0 * inside[:, None]
    scores = _classified(classifier, x[:40], inside[:40], x[40:])
    assert np.mean((scores > 0) == inside[40:]) > 0.85
    assert not _classified(classifier, x[:40], np.ones(40, bool), x[40:]).any()


def test_the_ensemble_is_all_three_summaries():
    released = {"a": np.array([0, 1, 1]), "b": np.array([0, 0, 1])}
    sizes = {"a": 2, "b": 2}
    parts = [SUMMARIES[name](released, sizes) for name in ("naive", "histogram", "correlation")]
    assert SUMMARIES["ensemble"](released, sizes).tolist() == np.concatenate(parts).tolist()


def test_the_command_line_names_the_attacks_and_classifiers_there_are():
    assert get_args(Attack) == attack_command.ATTACKS
    assert get_args(Classifier) == attack_command.CLASSIFIERS
