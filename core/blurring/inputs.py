"""Stage one: Latin hypercube inputs, matched to the real inputs and mixed with them.

NOT private. This is Algorithm 1 of Liu et al., steps 1–3, with the corrections described in the docstrings below.
Values are scaled to the declared range, from 0 at the lower bound to 1 at the upper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr, ndtri
from scipy.stats import rankdata

from espalier.core.errors import ProjectError

BLOCK = 5_000
"""Maximum number of rows matched at a time. The cost of matching grows with the square of this number."""

GRID = 1_024
"""Number of points at which a column's distribution is estimated."""


@dataclass(frozen=True)
class Mixed:
    """Inputs after stage one, aligned with the real rows: ``values``, the ``alpha`` of the mixture, and the requested
    LID.

    ``alpha`` is the weight of the real row.
    """

    values: NDArray[np.float64]
    alpha: float


def hypercube(real: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Return as many synthetic rows as ``real`` has, with each column's distribution and the correlation of the normal
    scores.

    The paper uses the covariance of the raw columns (step 1(2)), with which R is not standard normal and Φ(R) is not
    uniform. The construction needs the correlation of normal scores. Constant columns stay unchanged.
    """
    n, d = real.shape
    parts = rng.permuted(np.tile(np.arange(n), (d, 1)), axis=1).T
    v = ndtri(np.clip((parts + rng.random((n, d))) / n, 1e-12, 1 - 1e-12))
    if n > d + 1:
        wanted = np.linalg.cholesky(_correlation(_scores(real)))
        given = np.linalg.cholesky(_correlation(v))
        v = v @ np.linalg.solve(given.T, wanted.T)
    return np.column_stack([_inverse(real[:, j], ndtr(v[:, j])) for j in range(d)])


def independent(real: NDArray[np.float64], source: str, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return inputs from the paper's alternative first stages (§5): independent draws, mapped to 0 … 1 in each column.

    ``source`` is "uniform", "weibull" (λ = 1, k = 8) or "cauchy" (x₀ = 0, γ = 1). The paper does not state how draws
    outside the range are mapped into it. Here, Weibull draws are clipped, and Cauchy draws pass through their
    distribution's logistic counterpart, x ↦ 1/(1 + e^(−x)).
    """
    if source == "uniform":
        return rng.random(real.shape)
    if source == "weibull":
        return np.clip(rng.weibull(8.0, real.shape), 0, 1)
    return np.asarray(expit(rng.standard_cauchy(real.shape)))


def _scores(real: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(ndtri((rankdata(real, axis=0) - 0.5) / len(real)))


def _correlation(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a correlation matrix that has a Cholesky factor; columns without variance are uncorrelated."""
    centred = columns - columns.mean(axis=0)
    length = np.sqrt((centred**2).sum(axis=0))
    centred = np.divide(centred, length, out=np.zeros_like(centred), where=length > 1e-12)
    known = centred.T @ centred
    np.fill_diagonal(known, 1.0)
    values, vectors = np.linalg.eigh(known)
    out = (vectors * np.maximum(values, 1e-6)) @ vectors.T
    scale = np.sqrt(np.diag(out))
    return np.asarray(out / np.outer(scale, scale))


def _inverse(values: NDArray[np.float64], shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the quantiles at ``shares`` of a kernel density estimate (Gaussian, Silverman's width) within its range.

    The estimate's distribution function is a mean of normal distribution functions, so no quadrature is needed.
    """
    spread = min(float(values.std()), float(np.subtract(*np.percentile(values, [75, 25]))) / 1.349 or math.inf)
    width = 0.9 * spread * len(values) ** -0.2
    if not width > 0 or not math.isfinite(width):
        return np.quantile(values, shares)
    low, high = float(values.min()), float(values.max())
    grid = np.linspace(low, high, GRID)
    counts, edges = np.histogram(values, bins=GRID, range=(low, high))
    below = np.zeros(GRID)
    middles = (edges[1:] + edges[:-1]) / 2
    for start in range(0, GRID, 128):
        below[start : start + 128] = ndtr((grid[start : start + 128, None] - middles) / width) @ counts
    below = (below - below[0]) / (below[-1] - below[0])
    return np.interp(shares, below, grid)


def matched(real: NDArray[np.float64], synthetic: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Reorder ``synthetic`` so that each real row, in order, takes the nearest remaining synthetic row (step 3(1)).

    Above ``BLOCK`` rows, matching is done within random blocks of that size, because the cost grows with the square of
    the number of rows.
    """
    out = np.empty_like(synthetic)
    order, pool = rng.permutation(len(real)), rng.permutation(len(real))
    if len(real) <= BLOCK:
        order = pool = np.arange(len(real))
    for start in range(0, len(real), BLOCK):
        rows, left = order[start : start + BLOCK], synthetic[pool[start : start + BLOCK]].copy()
        alive = np.ones(len(rows), dtype=bool)
        for row in rows:
            distance = ((left - real[row]) ** 2).sum(axis=1)
            distance[~alive] = np.inf
            nearest = int(distance.argmin())
            out[row], alive[nearest] = left[nearest], False
    return out


def thresholds(eta: float, steps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return, for each column, the distance below which a value counts as disclosed, before rounding to ``steps``.

    Real values are whole multiples of a step. A value that is rounded to such a multiple is within ``eta`` of a real
    value if it was within (⌊eta/step⌋ + ½)·step before rounding. Without a step (0), the distance is ``eta``.
    """
    safe = np.where(steps > 0, steps, 1.0)
    return np.asarray(np.where(steps > 0, (np.floor(eta / safe + 1e-9) + 0.5) * safe, eta))


def nearness(real: NDArray[np.float64], other: NDArray[np.float64], limits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return m: for each row, the smallest distance in any column, in units of that column's limit."""
    return np.asarray((np.abs(real - other) / limits).min(axis=1))


def disclosed(near: NDArray[np.float64], alpha: float) -> float:
    """Return LID(α), the share of rows with (1 − α)·m ≤ 1: location-based interval disclosure (Definition 2.1)."""
    return float(np.mean((1 - alpha) * near <= 1))


def alpha_for(near: NDArray[np.float64], lid: float) -> float:
    """Return the largest α of a mixture whose LID is at most ``lid`` (0 to 1), from the matched distances ``near``.

    x − (αx + (1−α)s) = (1−α)(x − s), so row i is disclosed if m_i ≤ 1/(1−α). At most k = ⌊lid·n⌋ rows are disclosed as
    long as m₍k+1₎ > 1/(1−α); α is set below 1 − 1/m₍k+1₎ by a millionth of the distance. The paper's equation (10) is a
    bound for rows drawn independently; after matching, LID is several times larger, so this function does not use the
    bound. Raises :class:`ProjectError` if even α = 0 discloses more. The error's ``data`` contains ``best``, the share
    that was reached, and ``offer``, a share that another Latin hypercube will almost surely reach (`None` if only 1
    would be reached).
    """
    k = math.floor(lid * len(near) + 1e-9)
    if k >= len(near):
        return 1.0
    next_row = float(np.partition(near, k)[k])
    alpha = 1 - (1 + 1e-6) / next_row if next_row > 0 else -math.inf
    if alpha < 0:
        best = disclosed(near, 0.0)
        room = 3 * math.sqrt(best * (1 - best) / len(near))
        offer = math.ceil(100 * (best + room)) / 100
        asked = f'Ask for {offer:.0%} ("lid": {offer:g}), leave' if offer < 1 else "Leave"
        raise ProjectError(
            f"a LID of {lid:.1%} cannot be reached, because even rows that contain no part of a real row come within "
            f"eta of a real row in {best:.1%} of cases. {asked} columns with few distinct whole "
            "numbers out of anonymize, or choose a smaller eta if the numbers are not whole",
            key="lid",
            best=best,
            offer=offer if offer < 1 else None,
        )
    return alpha


def bound(eta: float, alpha: float, columns: int) -> float:
    """Return the bound that equation (10) claims on LID for uniform columns: 1 − (1 − 2η/(1−α))^d. The bound does not
    hold after matching.
    """
    return float(1 - max(0.0, 1 - 2 * eta / (1 - alpha)) ** columns) if alpha < 1 else 1.0


def mixed(real: NDArray[np.float64], synthetic: NDArray[np.float64], alpha: float) -> Mixed:
    """Return α times the real row plus 1 − α times the synthetic one (step 3(3))."""
    return Mixed(alpha * real + (1 - alpha) * synthetic, alpha)
