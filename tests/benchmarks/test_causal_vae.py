"""The two splits of the causal-VAE paper's attack: only one distinguishes a model's fingerprint from a member."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from benchmarks.causal_vae import both_splits, predicted, split_both_ways
from espalier.core.evaluation.membership.attack import Classifier, learner


def test_releases_split_at_random_leak_the_model_and_models_do_not():
    """Each model's releases carry its fingerprint and nothing about the target."""
    rng = np.random.default_rng(4)
    inside = np.arange(40) % 2 == 0
    prints = rng.normal(size=(40, 20))
    x = np.repeat(prints, 15, axis=0) + 0.3 * rng.normal(size=(600, 20))
    for classifier in ("forest", "knn"):
        random, by_model = split_both_ways(x, inside, classifier, rng)
        assert random > 0.95
        assert by_model < 0.75


def test_what_membership_does_is_found_both_ways():
    rng = np.random.default_rng(5)
    inside = np.arange(30) % 2 == 0
    x = np.repeat(inside, 10)[:, None] + 0.1 * rng.normal(size=(300, 3))
    assert min(split_both_ways(x, inside, "knn", rng)) > 0.95


@pytest.mark.parametrize("classifier", get_args(Classifier))
def test_predictions_are_those_of_the_attack(classifier):
    rng = np.random.default_rng(6)
    x, new = rng.normal(size=(80, 40)) * 3 + 1, rng.normal(size=(200, 40)) * 3 + 1
    y = x[:, :3].sum(axis=1) + rng.normal(size=80) > 3
    plain = learner(classifier).fit(x, y).predict(new)
    assert predicted(classifier, x, y, new).tolist() == plain.tolist()
    assert 0 < plain.mean() < 1


def test_attack_and_absence_are_the_shares_of_either_side():
    """In half of the models, members look like non-members: all absent people are recognised, but only half of the
    present.
    """
    inside = np.arange(60) % 2 == 0
    marked = (np.arange(60) % 4 == 0).astype(float)
    x = np.repeat(marked, 5)[:, None]
    for accuracy, attack, absence in both_splits(x, inside, "forest", np.random.default_rng(7)).values():
        assert absence == 1.0
        assert 0.3 < attack < 0.7
        assert attack < accuracy < absence
