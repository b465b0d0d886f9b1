"""Training of a decoder from noisy sums alone. Everything here is post-processing of the curator's answers.

A share of ρ buys one-way counts, which set the intercepts. Full-batch noisy gradient steps follow (`decoder_steps`). At
the end, the intercepts are raked to the same counts. `espalier.core.privacy.clipped` explains why every step reads all
rows instead of a Poisson sample.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.models.decoder import Causes, Decoder, causes_of, draw, probabilities
from espalier.core.models.decoder_steps import Descent
from espalier.core.models.even import uniforms
from espalier.core.privacy.draws import SumMeasurement
from espalier.core.privacy.softmax_heads import CONSTANT, FloatArray, Heads
from espalier.core.progress import Report, silent

COUNTS_SHARE = 0.3
"""Share of ρ for the one-way counts with which training starts and ends. It was chosen by the same comparison as the
number of steps and the rate.
"""

RAKING_ROWS = 20_000
RAKING_ROUNDS = 30
RAKING_ERROR = 2e-4
"""Number of rows drawn for raking the intercepts, maximum number of rounds, and L1 tolerance for the shares."""

SMALL_EFFECT, FALSE_ALARM = 0.1, 0.05
"""An effect size (Cohen's w; for two binary columns, their correlation), and the largest probability that an arrow with
this effect is reported as having none.
"""


@dataclass(frozen=True)
class NoisyInteraction:
    """Noisy counts of interacting ``causes`` with their effect, whose axis is last."""

    causes: Causes
    values: FloatArray
    sigma: float


NoisySum = Callable[[FloatArray, int], SumMeasurement]
"""(parameters, step) → the noisy clipped gradient sum, in rows, laid out like the parameters. The function pays for
each call.
"""


@dataclass(frozen=True)
class Training:
    """Number of a decoder's training steps, and the norm to which a row's gradient is clipped.

    The defaults were chosen on tables that no benchmark reports (`benchmarks.decoder choose`).
    """

    steps: int = 25
    clip: float = 1.5

    def __post_init__(self) -> None:
        if not 1 <= self.steps <= 1000:
            raise ValueError(f"steps ({self.steps}) must be between 1 and 1000")


def train(
    heads: Heads,
    counts: Mapping[str, FloatArray],
    noisy_sum: NoisySum,
    training: Training,
    rng: np.random.Generator,
    report: Report = silent,
    counted: Decoder | None = None,
) -> Decoder:
    """Return a decoder from noisy one-way ``counts`` (rows) and ``training.steps`` calls of ``noisy_sum``, not raked
    yet.

    Every step is a step of `decoder_steps.Descent`, and the decoder has the mean of the steps' parameters. ``rng``
    initialises the encoder's weights and draws the rows on which steps are computed. Privacy does not depend on it.
    Columns with a table in ``counted`` have no causes in ``heads``, and follow their tables in these rows. ``report``
    is called at every step; if it raises an exception, the training is cancelled. The function uses one BLAS thread,
    because two were six to nine times slower on a busy machine.
    """
    from threadpoolctl import threadpool_limits

    rows = math.fsum(float(v.sum()) for v in counts.values()) / len(counts)
    with threadpool_limits(1):
        start = _start(heads, distributions(counts), rng)
        descent = Descent(Decoder(heads, start, max(rows, 1.0)), training.clip, training.steps, counted)
        for step in range(training.steps):
            report(step / training.steps, f"Training step {step + 1} of {training.steps}")
            descent.step(noisy_sum(descent.parameters, step), rng)
        return Decoder(heads, descent.mean, steps=training.steps)


def rake(
    decoder: Decoder,
    targets: Mapping[str, FloatArray],
    rng: np.random.Generator,
    interactions: Mapping[str, Sequence[NoisyInteraction]] | None = None,
) -> Decoder:
    """Return the decoder with its intercepts adjusted until every column has its distribution in ``targets``.

    Columns are processed in topological order. With the preceding columns drawn, a column's intercepts are scaled
    (iterative proportional fitting of one margin) until the mean of its conditional probabilities is the target. The
    factors of its ``interactions`` are scaled likewise, until the column has its measured distribution, with the noise
    shrunk, for every combination of the interacting causes.
    """
    heads = decoder.heads
    parameters, tables = decoder.parameters.copy(), dict(decoder.tables)
    blocks, _ = heads.blocks(parameters)
    z = rng.standard_normal((heads.latent, RAKING_ROWS))
    made: dict[str, NDArray[Any]] = {}
    factors: dict[str, dict[Causes, FloatArray]] = {}
    for name in heads.order:
        block = blocks[name]
        odds = decoder.odds(block, name, made, z)
        together = [_Raked.of(one, made, odds) for one in (interactions or {}).get(name, ())]
        if len(block):
            for _ in range(RAKING_ROUNDS):
                error = max((one.rake(odds) for one in together), default=0.0)
                mean = probabilities(odds).mean(axis=1)
                if max(error, np.abs(mean - targets[name]).sum()) < RAKING_ERROR:
                    break
                moved = np.log(targets[name] / np.maximum(mean, 1e-12))
                if name in tables:
                    table = tables[name] * np.exp(moved)
                    tables[name] = table / table.sum(axis=-1, keepdims=True)
                else:
                    block[0] += moved / CONSTANT
                odds += moved[:, None]
        if together:
            factors[name] = {one.causes: one.factors for one in together}
        made[name] = draw(odds, uniforms(RAKING_ROWS, causes_of(heads, name, made), rng))
    return replace(decoder, parameters=parameters, tables=tables, interactions=factors)


@dataclass
class _Raked:
    """Factors of one interaction, raked to ``targets`` in the rows with each combination of its causes (``cells``)."""

    causes: Causes
    factors: FloatArray
    cells: NDArray[np.intp]
    rows: FloatArray
    targets: FloatArray

    @classmethod
    def of(cls, counted: NoisyInteraction, made: Mapping[str, NDArray[Any]], odds: FloatArray) -> _Raked:
        shape = counted.values.shape
        places = [made[cause].astype(np.intp) for cause in counted.causes]
        cells = np.asarray(np.ravel_multi_index(places, shape[:-1]))
        rows = np.bincount(cells, minlength=math.prod(shape[:-1])).astype(np.float64)
        out = cls(counted.causes, np.zeros(shape), cells, rows, np.zeros(0))
        alone = out._means(odds).reshape(shape)
        out.targets = family_table(counted.values, counted.sigma, alone).reshape(-1, shape[-1])
        return out

    def rake(self, odds: FloatArray) -> float:
        """Scale the factors and ``odds`` once; return the previous L1 distance from the targets."""
        means = self._means(odds)
        moved = np.where(self.rows[:, None] > 0, np.log(self.targets / means), 0.0)
        self.factors += moved.reshape(self.factors.shape)
        odds += moved[self.cells].T
        return float((np.abs(means - self.targets).sum(axis=1) @ self.rows) / self.rows.sum())

    def _means(self, odds: FloatArray) -> FloatArray:
        """Return the mean probabilities for each combination of the causes, combinations × categories."""
        sums = np.stack([np.bincount(self.cells, p, len(self.rows)) for p in probabilities(odds)], axis=1)
        means = (sums + 1e-9) / (self.rows[:, None] + 1e-9 * len(odds))
        return np.asarray(means / means.sum(axis=1, keepdims=True))


def family_table(noisy: FloatArray, sigma: float, alone: FloatArray) -> FloatArray:
    """Return p(column | causes) from noisy counts of a family, the column's axis last.

    The rows of each combination of causes are distributed like ``alone``, the column's distribution without the causes
    (one, or one for each combination), plus deviations. Rows and deviations are `shrunk`. The deviations of each
    combination are then shrunk again, by the share of their squares that the remaining noise explains.
    """
    size, every = noisy.shape[-1], noisy.sum(axis=-1, keepdims=True)
    each = size - 2 + size * float((alone**2).sum(axis=-1).mean())  # variances of a combination's deviations over σ²
    apart, left = shrunk(noisy - every * alone, each * sigma**2)
    rows = np.maximum(shrunk(every, size * sigma**2)[0], 0.0)
    by_noise = (size - 1) * left * sigma**2 / np.maximum((apart**2).sum(axis=-1, keepdims=True), 1e-12)
    kept = np.maximum(rows * alone + np.maximum(1 - by_noise, 0.0) * apart, 0.0) + 1e-6 * alone
    return np.asarray(kept / kept.sum(axis=-1, keepdims=True))


def shrunk(values: FloatArray, noise: float) -> tuple[FloatArray, float]:
    """Return ``values`` with less noise, and the remaining share of their variance.

    All axes but the last are causes, and ``noise`` is the variance of each combination of causes. The values are
    divided into their mean, the main effects of causes, the two-way interactions, and the rest. These parts are
    orthogonal, so each has noise in proportion to its degrees of freedom. Each part is shrunk by the share of its
    squares that noise explains (James & Stein). Additive effects are therefore not lost in the noise of interactions
    that do not exist.
    """
    axes = range(values.ndim - 1)
    cells = math.prod(values.shape[:-1])
    parts: dict[tuple[int, ...], FloatArray] = {}
    rest = values
    for order in range(min(2, len(axes)) + 1):
        for some in itertools.combinations(axes, order):
            part = values.mean(axis=tuple(a for a in axes if a not in some), keepdims=True)
            for lower in itertools.chain.from_iterable(itertools.combinations(some, k) for k in range(order)):
                part = part - parts[lower]
            parts[some], rest = part, rest - part
    out, left = np.zeros_like(values), 0.0
    each = [(part, math.prod(values.shape[a] - 1 for a in some)) for some, part in parts.items()]
    free = cells - sum(degrees for _, degrees in each)
    for part, degrees in (*each, (rest, free)):
        squares = float((part**2).sum()) * values.size / part.size
        kept = max(0.0, 1 - noise * degrees / squares) if squares > 0 else 0.0
        out = out + kept * part
        left += kept**2 * degrees / cells
    return out, left


def without_effect(noisy: FloatArray, sigma: float, axis: int) -> bool:
    """Return whether a family's noisy counts contradict an effect of the cause on ``axis``.

    The statistic is χ² of the counts relative to the counts expected if the column is independent of the cause given
    the other causes. It is compared with its distribution, a noncentral χ², under an effect of size `SMALL_EFFECT`
    spread evenly over the cells. If the effect has this size or more, the function returns True with probability at
    most `FALSE_ALARM`.
    """
    from scipy.stats import ncx2

    given = np.maximum(noisy.sum(axis=-1, keepdims=True), 0.0)
    others = np.maximum(noisy.sum(axis=axis, keepdims=True), 0.0)
    all_others = np.maximum(others.sum(axis=-1, keepdims=True), 1.0)
    expected = given * others / all_others
    square = float(np.sum((noisy - expected) ** 2 / (sigma**2 + expected)))
    degrees = noisy.size / (noisy.shape[axis] * noisy.shape[-1]) * (noisy.shape[axis] - 1) * (noisy.shape[-1] - 1)
    seen = SMALL_EFFECT**2 * float(np.sum(expected**2 / (sigma**2 + expected + 1e-9)))
    return bool(square < ncx2.ppf(FALSE_ALARM, degrees, max(seen, 1e-9)))


def distributions(counts: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Return each column's noisy counts as shares."""
    return {name: _distribution(values) for name, values in counts.items()}


def _distribution(counts: FloatArray) -> FloatArray:
    """Return noisy counts as shares that sum to 1, with each count raised to at least a tenth of a row."""
    kept = np.maximum(counts, 0.1)
    return np.asarray(kept / kept.sum())


def _start(heads: Heads, targets: Mapping[str, FloatArray], rng: np.random.Generator) -> FloatArray:
    """Return the parameters of independent columns. A latent z gets small random weights, because its gradient is 0 at
    0.
    """
    parameters = np.zeros(heads.parameters)
    blocks, encoder = heads.blocks(parameters)
    for name, block in blocks.items():
        if len(block):
            block[0] = np.log(targets[name]) / CONSTANT
            if heads.latent:
                block[len(block) - heads.latent :] = 0.1 * rng.standard_normal((heads.latent, block.shape[1]))
    encoder[:] = 0.1 * rng.standard_normal(encoder.shape)
    return parameters
