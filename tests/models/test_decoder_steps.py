"""The decoder's training steps: they converge to the right point, and noise does not make weights diverge."""

from __future__ import annotations

import numpy as np
import pytest

from espalier.core.models import decoder_steps
from espalier.core.models.decoder import Decoder, parents_of
from espalier.core.models.decoder_steps import Descent
from espalier.core.privacy.clipped import UNITS, clipped_sums
from espalier.core.privacy.draws import SumMeasurement
from espalier.core.privacy.softmax_heads import Heads

SIZES = {"a": 3, "b": 2, "c": 2, "y": 3}
HEADS = Heads(SIZES, parents_of(SIZES, (("a", "y"), ("b", "y"), ("c", "y"), ("a", "c"))), {"y": 2.0})
CLIP = 4.0


def answer(values, sigma):
    return SumMeasurement("", values, sigma, 1.0, 1.0)


def descended(heads, rows, sigma, steps=60, seed=0):
    """The parameters after the last step on ``rows`` with noise of ``sigma`` rows, starting from zeros, and the mean
    over all steps.
    """
    rng, count = np.random.default_rng(seed), len(rows["a"])
    descent = Descent(Decoder(heads, np.zeros(heads.parameters), count), CLIP, steps)
    for step in range(steps):
        sums = clipped_sums(rows, heads, descent.parameters, CLIP, step) / UNITS
        descent.step(answer(sums + rng.normal(0, sigma, len(sums)), sigma), rng)
    return descent.parameters, descent.mean


def truth():
    return Decoder(HEADS, np.random.default_rng(4).normal(size=HEADS.parameters))


def test_the_solver_inverts_the_whole_matrix_and_rests_at_the_posterior_mean():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 50))
    p = rng.dirichlet(np.ones(3), 50).T
    inputs, outputs = x @ x.T, np.diag(p.mean(axis=1)) - p @ p.T / 50
    ridge = np.array([0.5, 1.0, 2.0, 2.0])
    solver = decoder_steps._Solver(inputs, outputs, ridge)
    whole = np.kron(inputs, outputs)
    found = rng.normal(size=(4, 3)) @ outputs  # a gradient; its entries for one input sum to 0
    away = rng.normal(size=(4, 3)) @ outputs
    prior = np.diag(np.repeat(ridge, 3))
    dense = np.linalg.solve(whole @ whole + prior, whole @ found.ravel() - prior @ away.ravel())
    assert solver.solve(found, away) == pytest.approx(dense.reshape(4, 3))
    mean = np.linalg.solve(whole @ whole + prior, whole @ found.ravel()).reshape(4, 3)
    left = found - inputs @ mean @ outputs  # the gradient at the posterior mean, given the gradient at 0
    assert np.abs(solver.solve(left, mean)).max() < 1e-9


@pytest.mark.parametrize("rows", [1e7, 1e9, 1e12])
def test_many_rows_of_one_value_and_little_noise_do_not_stop_the_training(rows):
    inputs = rows * np.ones((3, 3))
    solver = decoder_steps._Solver(inputs, np.array([[0.25, -0.25], [-0.25, 0.25]]), np.full(3, 1e-3))
    step = solver.solve(np.full((3, 2), 10.0) * [1, -1], np.zeros((3, 2)))
    assert np.isfinite(step).all()
    assert np.abs(inputs @ step - 10 / 0.5 * np.array([1, -1])).max() < 0.5, "it still recovers what the rows determine"


def test_noise_carries_weights_less_far_than_the_least_squares_answer_to_it():
    rows = truth().sample(3000, np.random.default_rng(1))
    flat = {name: np.random.default_rng(i).permutation(codes) for i, (name, codes) in enumerate(rows.items())}
    _, exact = descended(HEADS, flat, 0.0)
    sigma = 60 * 300.0
    noisy = [descended(HEADS, flat, sigma, seed=seed)[1] - exact for seed in range(5)]
    blocks = [HEADS.blocks(n)[0]["y"][1:] for n in noisy]
    assert np.abs(np.concatenate(blocks)).mean() < 0.5
    bold = Descent(Decoder(HEADS, np.zeros(HEADS.parameters), 3000), CLIP, 60)
    rng = np.random.default_rng(0)
    for _ in range(60):  # with the same noise, but declared as none
        bold.step(answer(rng.normal(0, sigma, HEADS.parameters), 0.0), rng)
    assert np.abs(HEADS.blocks(bold.mean)[0]["y"][1:]).mean() > 1.0


def test_long_heads_taken_in_parts_come_to_rest_where_whole_ones_do(monkeypatch):
    rows = truth().sample(4000, np.random.default_rng(1))
    whole, _ = descended(HEADS, rows, 0.0, steps=100)
    monkeypatch.setattr(decoder_steps, "LARGEST_BLOCK", 2)
    parts, _ = descended(HEADS, rows, 0.0, steps=200)
    one, other = (Decoder(HEADS, p).strength() for p in (whole, parts))
    assert one == pytest.approx(other, abs=0.03)
    assert one == pytest.approx(truth().strength(), abs=0.1)


def test_layers_cover_every_parameter_once():
    for latent in (0, 2):
        heads = Heads({**SIZES, "only": 1}, HEADS.parents, latent=latent)
        met = np.zeros(heads.parameters)
        for layer in decoder_steps._layers(heads):
            layer.of(met)[:] += 1
            assert len(layer.of(met)) == len(layer.groups)
        assert (met == 1).all()
