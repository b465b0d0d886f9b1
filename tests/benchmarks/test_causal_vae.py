"""The two splits of the causal-VAE paper's attack: only one distinguishes a model's fingerprint from a member."""

from __future__ import annotations

import numpy as np

from benchmarks.causal_vae import split_both_ways


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
