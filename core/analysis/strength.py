"""Strength of a conditional association from noisy counts, and the smallest strength that a test detects.

For ordered columns the strength is an odds ratio between the lowest and highest categories of both columns. This
assumes an association that is linear in evenly spaced scores (Agresti, Categorical Data Analysis, 3rd ed., section
10.5.1). For other columns the strength is their conditional mutual information in nats.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from espalier.core.analysis.independence_fit import Counts, FloatArray, Null, residuals

POWER = 0.8
FURTHEST = math.log(100)
"""Largest log odds ratio in the search."""
SWEEPS, CLOSE = 60, 1e-7
"""Maximum number of rounds when margins are fitted, and the distance of the factors from 1 at which the fit ends
early."""


@dataclass(frozen=True)
class Strength:
    """Strength of an association: ``value`` with its 95 % interval, an odds ratio or information, depending on
    ``kind``.

    The drawing implies an odds ratio of 1 and information of 0.
    """

    kind: Literal["odds ratio", "information"]
    value: float
    low: float
    high: float


def scores(size: int) -> FloatArray:
    """Return ``size`` scores, evenly spaced from 0 to 1."""
    return np.linspace(0.0, 1.0, size)


def associated(null: Null, theta: float) -> FloatArray:
    """Return expected counts with the margins of ``null`` in each stratum and an association exp(θ u v).

    ``theta`` is the log odds ratio between the lowest and highest categories of both columns. Iterative proportional
    fitting restores the margins (Deming & Stephan 1940).
    """
    u, v = scores(null.x.shape[1]), scores(null.y.shape[1])
    table = null.expected * np.exp(theta * np.outer(u, v))[:, :, None]
    rows, columns = (null.n[:, None] * null.x).T, (null.n[:, None] * null.y).T
    for _ in range(SWEEPS):
        table = table * (rows / table.sum(axis=1))[:, None, :]
        off = columns / table.sum(axis=0)
        table = table * off[None, :, :]
        if np.abs(off - 1).max() < CLOSE:
            break
    return table


def strength(counts: Counts) -> Strength:
    """Return the common odds ratio if both columns are ordered, else the information, with a 95 % interval."""
    return _odds_ratio(counts) if counts.ordered else _information(counts)


def _odds_ratio(counts: Counts) -> Strength:
    """Solve Σ_z w_z Σ u v (N − m(θ)) = 0. The variance is the variance of the sum at θ̂, divided by its squared
    slope.
    """
    null = counts.null
    w = null.weights
    product = np.outer(scores(null.x.shape[1]), scores(null.y.shape[1]))

    def total(values: FloatArray) -> float:
        return float(np.einsum("ijk,ij,k->", values, product, w))

    # the null and the counts have different margins, so compare residuals with residuals
    observed = float((residuals(counts.values, counts.sigma) * product).sum())
    base = total(null.expected)
    theta = _root(lambda t: total(associated(null, t)) - base - observed)
    step = 0.02
    moved = associated(null, theta + step) - associated(null, theta - step)
    slopes = np.einsum("ijk,ij->k", moved, product) / (2 * step)  # slope of Σ u v per stratum, equal to its variance
    spread = 0.0
    for x, y, weight, slope in zip(null.x, null.y, w, slopes, strict=True):
        a, b = np.eye(len(x)) - x[:, None], np.eye(len(y)) - y[:, None]
        noise = counts.sigma**2 * float(((a.T @ product @ b) ** 2).sum())
        spread += weight**2 * (null.rows_per_person * slope + noise)
    half = 1.96 * math.sqrt(max(spread, 0.0)) / max(float(w @ slopes), 1e-9)
    value, low, high = (math.exp(np.clip(t, -50, 50)) for t in (theta, theta - half, theta + half))
    return Strength("odds ratio", value, low, high)


def _root(function: Callable[[float], float]) -> float:
    """Return the root of an increasing function within ± `FURTHEST`, or the nearer end if there is none."""
    low, high = -FURTHEST, FURTHEST
    if function(low) >= 0:
        return low
    if function(high) <= 0:
        return high
    for _ in range(24):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) < 0 else (low, middle)
    return (low + high) / 2


def _information(counts: Counts) -> Strength:
    """Return the information in nats per row, by inverting a noncentral χ² for the statistic.

    The direction of the residuals fixes the ratio of information to noncentrality. With S the weighted sum of residuals
    and H its derivative with respect to the log-linear interactions Θ, the information is Θᵀ Σ_z n_z (C_x ⊗ C_y) Θ / 2n
    where H Θ = S.
    """
    from scipy.stats import ncx2

    null = counts.null
    size = null.x.shape[1] * null.y.shape[1]
    answer, weight = np.zeros((size, size)), np.zeros((size, size))
    for n, x, y, w in zip(null.n, null.x, null.y, null.weights, strict=True):
        c = n * np.kron(np.diag(x) - np.outer(x, x), np.diag(y) - np.outer(y, y))
        answer, weight = answer + w * c, weight + c
    sums = residuals(counts.values, counts.sigma).ravel()
    interactions = np.linalg.pinv(answer, rcond=1e-9, hermitian=True) @ sums
    info = float(interactions @ weight @ interactions) / (2 * float(null.n.sum()))
    statistic = float(sums @ np.linalg.pinv(null.covariance(), rcond=1e-9, hermitian=True) @ sums)
    df = (null.x.shape[1] - 1) * (null.y.shape[1] - 1)
    if statistic <= 0:
        return Strength("information", 0.0, 0.0, 0.0)
    scale = info / statistic

    def noncentrality(chance: float) -> float:
        """Return the λ at which a statistic this small or smaller has probability ``chance``; 0 if its probability is
        smaller even for λ = 0.
        """
        low, high = 0.0, 4 * statistic + 100
        if ncx2.cdf(statistic, df, 1e-12) <= chance:
            return 0.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if ncx2.cdf(statistic, df, middle) > chance else (low, middle)
        return low

    return Strength(
        "information", scale * max(statistic - df, 0.0), scale * noncentrality(0.975), scale * noncentrality(0.025)
    )


def power(null: Null, odds_ratio: float, level: float) -> float:
    """Return the power of the test at ``level`` for this odds ratio, by a noncentral χ²."""
    from scipy.stats import chi2, ncx2

    sums = np.einsum("ijk,k->ij", associated(null, math.log(odds_ratio)) - null.expected, null.weights).ravel()
    far = float(sums @ np.linalg.pinv(null.covariance(), rcond=1e-9, hermitian=True) @ sums)
    df = (null.x.shape[1] - 1) * (null.y.shape[1] - 1)
    return float(ncx2.sf(chi2.isf(level, df), df, max(far, 1e-12)))


def noticed(null: Null, level: float = 0.05) -> float | None:
    """Return the smallest odds ratio above 1 that the test detects with 80 % power; `None` if 100 goes undetected.

    With `Null.uniform` this is a prediction from public numbers, made before anything is spent.
    """
    if power(null, math.exp(FURTHEST), level) < POWER:
        return None
    low, high = 0.0, FURTHEST
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if power(null, math.exp(middle), level) < POWER else (low, middle)
    return math.exp(high)
