"""Training steps of a decoder that account for the noise in each gradient.

Each step is a natural-gradient step (Martens & Grosse 2015, K-FAC) with a ridge set by the noise. If a layer's weights
W (inputs × outputs) change by dW, the summed gradient changes by −A·dW·B. A is the sum over rows of x·xᵀ, where x is
the layer's input and each row is weighted by its clipping factor and the variance of its prediction. B is the mean
covariance of the outputs. Both are computed from rows drawn from the decoder, never from the table, so they are
post-processing.

The mean of T steps with Gaussian noise of scale σ has the noise variance s² = σ²/T. If an arrow's weights are assumed
normal around their start with variance τ², their posterior mean given the mean gradient g at W is the fixed point of

    W ← W + rate · M⁻¹[A·g·B − (s²/τ²)·(W − W₀)],   M = A² ⊗ B² + s²/τ²,

so a weight whose signal is lost in noise stays near its start, and a well-measured weight moves freely. τ² is estimated
for every arrow from its weights (expectation maximisation, as in automatic relevance determination: MacKay 1994,
Tipping 2001), with `STRENGTH` as a prior equivalent to `PRIOR_WEIGHTS` weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.models.decoder import Decoder, draw, logits, probabilities
from espalier.core.privacy.draws import SumMeasurement
from espalier.core.privacy.softmax_heads import CONSTANT, FloatArray, Heads

RATE = 0.2
"""Learning rate: the fraction of each step to take."""

LEFT_OUT = 1 / 3
"""Share of initial steps left out of the average, because the parameters have not settled yet."""

STRENGTH = 2.0
"""Prior standard deviation of an arrow's weights."""

PRIOR_WEIGHTS = 2.0

INTERCEPT = 2.0 / CONSTANT
"""Prior standard deviation of an intercept around its start, which is computed from the one-way counts."""

DRAWN_ROWS = 2000
RENEWED = 5
"""Number of steps after which new rows are drawn and the arrows' variances are estimated again."""

LARGEST_BLOCK = 128
"""Maximum number of a head's inputs in one block. A longer head is split into parts, which are treated as independent.
"""

LEAST_NOISE = 1.0
"""Smallest noise, in rows; below it, the drawn rows are the larger source of error."""

LEAST_RIDGE = 1e-12
"""Share of a matrix's trace that is added to its diagonal, which keeps it invertible with many rows and little
noise.
"""

LEAST_SPREAD = 1e-9
LARGEST_WEIGHT = 50.0
"""Bound on the parameters. Beyond it, probabilities are 0 or 1."""


class Descent:
    """State of the training: the current ``parameters``, and their ``mean`` without the first steps."""

    def __init__(self, start: Decoder, clip: float, steps: int, counted: Decoder | None = None) -> None:
        """Prepare to take ``steps`` steps from ``start``, whose ``total`` is the (noisy) number of rows.

        Columns with a table in ``counted`` have no causes in ``start``; drawn rows follow their tables.
        """
        self._start, self._clip, self._steps, self._counted = start, clip, steps, counted or start
        self.parameters = start.parameters
        self._layers = list(_layers(start.heads))
        self._variances = [_first_variances(layer) for layer in self._layers]
        self._solvers: list[_Solver] = []
        self._sum, self._taken, self._met = np.zeros_like(start.parameters), 0, 0

    @property
    def mean(self) -> FloatArray:
        """Mean of the parameters, without the first steps."""
        return self._sum / self._taken if self._taken else self.parameters

    def step(self, gradient: SumMeasurement, rng: np.random.Generator) -> None:
        """Take one step along ``gradient``; ``rng`` draws rows from the decoder."""
        if self._met % RENEWED == 0:
            self._renew(max(gradient.sigma, LEAST_NOISE) ** 2 / self._steps, rng)
        moved = self.parameters.copy()
        for layer, solver in zip(self._layers, self._solvers, strict=True):
            away = layer.of(self.parameters) - layer.of(self._start.parameters)
            layer.of(moved)[:] += min(RATE, 1 / layer.parts) * solver.solve(layer.of(gradient.values), away)
        self.parameters = np.clip(moved, -LARGEST_WEIGHT, LARGEST_WEIGHT)
        self._met += 1
        if self._met > LEFT_OUT * self._steps:
            self._sum += self.parameters
            self._taken += 1

    def _renew(self, noise: float, rng: np.random.Generator) -> None:
        """Estimate the arrows' variances again (except at the start), and recompute A and B on new rows."""
        if self._solvers:
            for i, (layer, solver) in enumerate(zip(self._layers, self._solvers, strict=True)):
                away = layer.of(self.mean) - layer.of(self._start.parameters)
                self._variances[i] = solver.variances(away, layer.groups, self._variances[i])
        rows = _drawn(self._start.heads, self.mean, self._counted, self._clip, rng)
        self._solvers = [
            _Solver(*rows.information(layer, self._start.total), noise / variances[layer.groups])
            for layer, variances in zip(self._layers, self._variances, strict=True)
        ]


@dataclass(frozen=True)
class _Layer:
    """Some inputs of the head of ``name``, or of the encoder if ``name`` is None, each with its weights to all outputs.

    ``inputs`` are their positions in the head. ``span`` is the position of their weights in the flat parameters, and
    the head is split into ``parts`` parts. ``groups`` maps each input to its group of weights: 0 is the intercept, then
    one for each arrow.
    """

    name: str | None
    inputs: slice
    span: slice
    outputs: int
    parts: int
    groups: NDArray[np.intp]

    def of(self, flat: FloatArray) -> FloatArray:
        """Return a view into a flat vector of parameters, inputs × outputs."""
        return flat[self.span].reshape(-1, self.outputs)


def _layers(heads: Heads) -> Iterator[_Layer]:
    """Yield every head and the encoder, with long layers split into parts."""
    blocks, encoder = heads.blocks(np.arange(heads.parameters))
    whole: list[tuple[str | None, NDArray[Any], list[int]]] = []
    for name, block in blocks.items():
        if len(block):
            arrows = [heads.sizes[cause] - 1 for cause in heads.inputs(name)]
            whole.append((name, block, [1, *arrows, *([heads.latent] * bool(heads.latent))]))
    if heads.latent:
        whole.append((None, encoder, [1, heads.width - 1]))
    for layer, places, lengths in whole:
        groups = np.repeat(np.arange(len(lengths)), lengths)
        for at in range(0, len(places), LARGEST_BLOCK):
            part = slice(at, at + LARGEST_BLOCK)
            span = slice(int(places[part][0, 0]), int(places[part][-1, -1]) + 1)
            parts = math.ceil(len(places) / LARGEST_BLOCK)
            yield _Layer(layer, part, span, places.shape[1], parts, groups[part])


def _first_variances(layer: _Layer) -> FloatArray:
    variances = np.full(layer.groups.max() + 1, STRENGTH**2)
    variances[0] = INTERCEPT**2
    return variances


class _Solver:
    """M of one layer in the eigenbasis of B: one matrix of the inputs for each nonzero eigenvalue."""

    def __init__(self, inputs: FloatArray, outputs: FloatArray, ridge: FloatArray) -> None:
        """``inputs`` is A, ``outputs`` is B, ``ridge`` is s²/τ² of every input."""
        values, vectors = np.linalg.eigh(outputs)
        kept = values > 1e-9
        self._inputs, self._values, self._vectors, self._ridge = inputs, values[kept], vectors[:, kept], ridge
        square = inputs @ inputs
        floor = np.maximum(ridge, LEAST_RIDGE * (np.trace(square) * self._values[:, None] ** 2 + ridge.max()))
        self._inverse = np.linalg.inv(
            square * self._values[:, None, None] ** 2 + floor[:, :, None] * np.eye(len(ridge))
        )

    def solve(self, gradient: FloatArray, away: FloatArray) -> FloatArray:
        """Return the step for weights at the distance ``away`` from their start."""
        pull = (self._inputs @ (gradient @ self._vectors)) * self._values
        pull -= self._ridge[:, None] * (away @ self._vectors)
        return np.asarray(np.einsum("kij,jk->ik", self._inverse, pull) @ self._vectors.T)

    def variances(self, away: FloatArray, groups: NDArray[np.intp], before: FloatArray) -> FloatArray:
        """Return τ² of every group: the mean square of its weights, including their posterior variance."""
        errors = np.diagonal(self._inverse, axis1=1, axis2=2).T * (self._ridge * before[groups])[:, None]
        squares = ((away @ self._vectors) ** 2 + errors).sum(axis=1)
        many = np.bincount(groups, minlength=len(before)) * len(self._values)
        sums = np.bincount(groups, squares, minlength=len(before))
        found = (PRIOR_WEIGHTS * STRENGTH**2 + sums) / (PRIOR_WEIGHTS + many)
        found[0] = before[0]
        return np.asarray(found)


@dataclass(frozen=True)
class _Drawn:
    """Rows drawn from a decoder: one-hot entries (entries × rows), z, the probabilities of every head, and the clipping
    factors.
    """

    heads: Heads
    hot: NDArray[np.float32]
    z: FloatArray
    chances: dict[str, FloatArray]
    factors: FloatArray

    def information(self, layer: _Layer, total: float) -> tuple[FloatArray, FloatArray]:
        """Return A and B of ``layer`` in a table of ``total`` rows."""
        if layer.name is None:
            read, weight = self.hot[layer.inputs], self.factors
            outputs = np.diag(np.repeat([1.0, 0.5], len(self.z)))
        else:
            p = self.chances[layer.name]
            spread = (p * (1 - p)).sum(axis=0)
            spread /= max(spread.mean(), LEAST_SPREAD)
            read = np.vstack([self.hot[self.heads.features[layer.name]], self.z])[layer.inputs]
            weight = self.factors * self.heads.weight(layer.name) * (0.1 + 0.9 * spread)
            outputs = np.diag(p.mean(axis=1)) - p @ p.T / p.shape[1]
        return np.asarray((read * weight) @ read.T * (total / len(weight)), dtype=np.float64), outputs


def _drawn(heads: Heads, parameters: FloatArray, counted: Decoder, clip: float, rng: np.random.Generator) -> _Drawn:
    """Draw `DRAWN_ROWS` rows from the decoder with the tables in ``counted``, and compute the factors by which clipping
    would shorten their gradients.
    """
    blocks, _ = heads.blocks(parameters)
    z = rng.standard_normal((heads.latent, DRAWN_ROWS))
    hot = np.zeros((heads.width, DRAWN_ROWS), dtype=np.float32)
    hot[0] = CONSTANT
    made: dict[str, NDArray[np.intp]] = {}
    chances = {}
    squares = np.zeros(DRAWN_ROWS)
    for name in counted.heads.order:
        known = name in counted.tables
        odds = counted.odds(blocks[name], name, made, z) if known else logits(heads, blocks[name], name, made, z)
        made[name] = draw(odds, rng.random(DRAWN_ROWS))
        span = heads.spans[name]
        hot[made[name] + span.start, np.arange(DRAWN_ROWS)] = 1.0
        if heads.sizes[name] > 1:
            chances[name] = probabilities(odds)
            residual = heads.weight(name) * (hot[span] - chances[name])
            reads = (hot[heads.features[name]] ** 2).sum(axis=0) + (z**2).sum(axis=0)
            squares += (residual**2).sum(axis=0) * reads
    return _Drawn(heads, hot, z, chances, np.minimum(1.0, clip / np.sqrt(np.maximum(squares, 1e-12))))
