"""Effect of a trained model on each protected group: AUC, calibration, and their uncertainty.

Intervals are percentile intervals of the bootstrap over the tested rows: they cover the sampling of these rows, but not
the noise of the release.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.evaluation.classifier import FloatArray, auc

REPEATS = 400
"""Bootstrap samples."""
STEPS = 500
"""Number of steps to which scores are rounded while an AUC is resampled. The AUC itself is exact."""
BINS = 10
"""Bins of equal width for calibration."""

Interval = tuple[float, float]


@dataclass(frozen=True)
class CalibrationBin:
    """Rows whose predicted probability falls into one bin: the mean prediction, and the observed frequency."""

    predicted: float
    observed: float
    rows: int

    def to_json(self) -> dict[str, Any]:
        """Return the output of ``evaluate``."""
        return vars(self)


def differences(counts: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
    """Return the (equalized odds, demographic parity) differences of counts over (…, group, truth, guess), with binary
    truth and guess. Equalized odds is the larger of the spreads in the true and false positive rates, over groups that
    have such a rate. The result is NaN if fewer than two groups have such a rate.
    """
    rows = counts.sum(axis=-1)
    rate = np.divide(counts[..., 1], rows, out=np.full(rows.shape, np.nan), where=rows > 0)
    both = np.isfinite(rate).all(axis=-1)
    rate = np.where(both[..., None], rate, np.nan)
    group = rows.sum(axis=-1)
    selected = np.divide(counts[..., 1].sum(axis=-1), group, out=np.full(group.shape, np.nan), where=group > 0)
    return _spread(rate, axis=-2).max(axis=-1), _spread(selected, axis=-1)


def _spread(rates: FloatArray, axis: int) -> FloatArray:
    known = np.isfinite(rates)
    high = np.where(known, rates, -np.inf).max(axis=axis)
    low = np.where(known, rates, np.inf).min(axis=axis)
    return np.where(known.sum(axis=axis) > 1, high - low, np.nan)


def difference_intervals(
    group: NDArray[np.int64], truth: NDArray[Any], guess: NDArray[Any], rng: np.random.Generator
) -> tuple[Interval | None, Interval | None]:
    """Return 95 % intervals of the equalized odds and demographic parity differences; None for a difference without
    one.
    """
    groups = int(group.max()) + 1
    cells = (group * 2 + truth) * 2 + guess
    counts = np.bincount(cells, minlength=groups * 4)
    drawn = rng.multinomial(len(group), counts / len(group), size=REPEATS).reshape(REPEATS, groups, 2, 2)
    odds, parity = differences(drawn)
    return _interval(odds), _interval(parity)


def auc_interval(score: FloatArray, truth: NDArray[Any], rng: np.random.Generator) -> Interval | None:
    """Return the 95 % interval of the AUC of a binary target; ``score`` is any monotone score of the rows."""
    steps = np.unique(np.quantile(score, np.linspace(0, 1, STEPS + 1)))
    place = np.searchsorted(steps, score)
    size = len(steps) + 1
    counts = np.bincount(place * 2 + truth, minlength=2 * size)
    used = np.flatnonzero(counts)
    drawn = np.zeros((REPEATS, 2 * size))
    drawn[:, used] = rng.multinomial(len(score), counts[used] / len(score), size=REPEATS)
    negative, positive = drawn[:, 0::2], drawn[:, 1::2]
    below = np.cumsum(negative, axis=1) - negative
    pairs = negative.sum(axis=1) * positive.sum(axis=1)
    won = (positive * (below + negative / 2)).sum(axis=1)
    return _interval(np.divide(won, pairs, out=np.full(REPEATS, np.nan), where=pairs > 0))


def _interval(values: FloatArray) -> Interval | None:
    known = values[np.isfinite(values)]
    if len(known) < REPEATS / 2:
        return None
    low, high = np.quantile(known, (0.025, 0.975))
    return float(low), float(high)


def group_auc(scores: FloatArray, truth: NDArray[Any], rng: np.random.Generator) -> tuple[float, Interval | None]:
    """Return AUC and its 95 % interval in one group's rows. ``scores`` are log-probabilities, rows × 2.

    ``truth`` contains both values of the target.
    """
    with np.errstate(invalid="ignore"):
        odds = scores[:, 1] - scores[:, 0]
    rank = np.unique(np.nan_to_num(odds, nan=0.0, posinf=1e300, neginf=-1e300), return_inverse=True)[1]
    return auc(scores, truth), auc_interval(rank.astype(np.float64), truth, rng)


def probability(scores: FloatArray) -> FloatArray:
    """Return P(second code) from log-probabilities up to a constant, rows × 2."""
    top = scores.max(axis=1, keepdims=True)
    weight = np.exp(scores - top)
    return np.asarray(weight[:, 1] / weight.sum(axis=1))


def calibration(predicted: FloatArray, truth: NDArray[Any]) -> tuple[CalibrationBin, ...]:
    """Return predicted and observed frequencies in `BINS` bins of equal width; empty bins are left out."""
    place = np.minimum((predicted * BINS).astype(np.int64), BINS - 1)
    rows = np.bincount(place, minlength=BINS)
    mean, seen = np.bincount(place, predicted, BINS), np.bincount(place, truth, BINS)
    return tuple(
        CalibrationBin(float(mean[b] / rows[b]), float(seen[b] / rows[b]), int(rows[b])) for b in range(BINS) if rows[b]
    )


def calibration_error(bins: tuple[CalibrationBin, ...]) -> float:
    """Return the mean |predicted − observed| over rows, bin by bin (the expected calibration error)."""
    return sum(b.rows * abs(b.predicted - b.observed) for b in bins) / sum(b.rows for b in bins)
