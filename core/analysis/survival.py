"""Survival from noisy counts of rows with the event (d) and without it (c) in each interval of time.

The hazard of interval t is the share of events among the rows at risk, h_t = d_t / r_t, where r_t is the number of rows
whose time is in t or later. The survival after t is S_t = Π (1 − h_s) over the intervals up to t. Rows without the
event leave during their interval. The counts do not show whether they leave before or after its events. If all leave
before the events, r_t is smaller by c_t. The exact Kaplan–Meier estimate at the end of t lies between the products for
these two cases, because the factor of each event increases with the number of rows at risk. The low end of a confidence
interval therefore counts none of the leaving rows as at risk, the high end counts all of them, and the estimate counts
half of them (the actuarial table). If each interval contains a single time, all leaving rows are counted, as Kaplan and
Meier do.

Sampling and noise. The ends for S solve (Ŝ − S)² = z² (k S (1 − S) / m + V): Wilson's interval for a share of m rows,
with k rows per person, widened by the variance V of the noise (delta method: σ² times the squared gradient of Ŝ in
every count). m is the effective number of rows: S (1 − S) divided by Greenwood's variance, with half an event added,
spread over the intervals (Rothman 1978). The ends for a hazard solve
(d − h r)² = z² (k h (1 − h) r + σ² ((1 − h)² + (a − 1) h²)), where a cells are summed in r (Fieller 1954). Estimates
stop before the first interval in which the rows at risk do not clearly exceed their noise.

Everything here is post-processing of released counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Z = 1.959963984540054
"""Quantile of the standard normal distribution for 95 % intervals."""
CLEAR = 3.0
"""Rows at risk must exceed this many standard deviations of their noise."""
HALF = 0.5
"""Number of events added, over all intervals, to estimate a variance; and the smallest number of rows that survive an
interval.
"""

FloatArray = NDArray[np.float64]


class Ends(NamedTuple):
    """Estimates and the ends of their confidence intervals, one for each interval of time; NaN if the noise is too
    large.
    """

    value: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True)
class Survival:
    """A survival table: noisy rows ``at_risk`` at the start of each interval, ``events`` in it, hazards and survival.

    ``early`` and ``late`` are the survival if rows without the event leave before the events of their interval, and
    after them.
    """

    at_risk: FloatArray
    events: FloatArray
    hazard: Ends
    survival: Ends
    early: Ends
    late: Ends


def survival(counts: FloatArray, sigma: float, k: int = 1, *, exact: bool = False) -> Survival:
    """Return the table of ``counts`` (… × interval × event or not) with noise of standard deviation ``sigma``.

    ``k`` is the number of rows per person. ``exact``: each interval contains a single time.
    """
    least, middle = (1.0, 1.0) if exact else (0.0, 0.5)
    parts = {w: _part(counts, sigma, k, w) for w in {least, middle, 1.0}}
    clear = parts[least].clear
    early, late, between = (_ends(parts[w].survived, clear) for w in (least, 1.0, middle))
    value = np.clip(np.minimum.accumulate(between.value, axis=-1), early.low, late.high)
    low, high = parts[1.0].hazards.low, parts[least].hazards.high  # with more rows at risk, the hazard is smaller
    hazard = Ends(np.clip(parts[middle].hazards.value, low, high), low, high)
    return Survival(
        parts[middle].rows,
        counts[..., 0],
        _ends(hazard, clear),
        Ends(value, early.low, late.high),
        early,
        late,
    )


def difference(one: Survival, other: Survival, at: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return S₁ − S₂ after interval ``at`` with the ends of its interval. The groups have independent counts.

    Each end combines the distances of both groups' ends from their estimates (Newcombe 1998), for the unfavourable
    order of events and leaving rows in each group.
    """

    def end(a: Ends, b: Ends, side: str, opposite: str) -> FloatArray:
        apart = getattr(a, side)[..., at] - a.value[..., at], getattr(b, opposite)[..., at] - b.value[..., at]
        return np.asarray(np.hypot(*apart))

    low = one.early.value[..., at] - other.late.value[..., at] - end(one.early, other.late, "low", "high")
    high = one.late.value[..., at] - other.early.value[..., at] + end(one.late, other.early, "high", "low")
    value = one.survival.value[..., at] - other.survival.value[..., at]
    low, high = np.maximum(low, -1.0), np.minimum(high, 1.0)
    return np.clip(value, low, high), low, high


@dataclass(frozen=True)
class _Part:
    """Table if this share of the leaving rows is at risk in their interval; ``rows`` are at risk at the start of
    each interval.
    """

    rows: FloatArray
    hazards: Ends
    survived: Ends
    clear: NDArray[np.bool_]


def _part(counts: FloatArray, sigma: float, k: int, w: float) -> _Part:
    d, c = counts[..., 0], counts[..., 1]
    many = counts.shape[-2]
    later = np.cumsum((d + c)[..., ::-1], axis=-1)[..., ::-1]
    risk = later - (1 - w) * c
    cells = np.arange(2 * many - 1, 0, -2, dtype=np.float64) + w**2  # summed in r
    clear = np.logical_and.accumulate(risk > np.maximum(CLEAR * sigma * np.sqrt(cells), 0.0), axis=-1)
    r = np.where(clear, risk, 1.0)
    h = np.where(clear, d / r, 0.0)
    left = np.maximum(1 - h, HALF / r)  # 1 − h
    survived = np.cumprod(left, axis=-1)
    with np.errstate(all="ignore"):
        smoothed = np.clip((np.maximum(d, 0.0) + HALF / many) / (r + 2 * HALF / many), 1e-12, 1 - 1e-12)
        rough = np.cumprod(1 - smoothed, axis=-1)
        greenwood = np.cumsum(smoothed / (r * (1 - smoothed)), axis=-1)
        rows = (1 - rough) / (rough * greenwood)
    noise = sigma**2 * _squared_gradient(survived, r, left, w)
    return _Part(later, _hazards(d, r, cells, sigma, k), _wilson(survived, rows, noise, k), clear)


def _squared_gradient(survived: FloatArray, r: FloatArray, left: FloatArray, w: float) -> FloatArray:
    """Return Σ (∂S_t / ∂count)² over all counts. Let a = 1/(r − d) − 1/r, and let s be the sum of a up to the earlier
    of t and u. The derivative of log S_t with respect to d_u is s, minus 1/(r_u − d_u) if u ≤ t. The derivative with
    respect to c_u is s, minus (1 − w) a_u if u ≤ t.
    """
    many = r.shape[-1]
    inverse = 1 / (r * left)
    a = inverse - 1 / r
    total = np.cumsum(a, axis=-1)
    up_to = np.cumsum((total - inverse) ** 2 + (total - (1 - w) * a) ** 2, axis=-1)
    after = 2 * np.arange(many - 1, -1, -1) * total**2
    return np.asarray(survived**2 * (up_to + after))


def _wilson(share: FloatArray, rows: FloatArray, noise: FloatArray, k: int) -> Ends:
    """Return the ends of (ŝ − s)² ≤ z² (k s (1 − s) / rows + noise)."""
    a = Z**2 * k / np.maximum(rows, HALF)
    middle = 2 * share + a
    root = np.sqrt(np.maximum(middle**2 - 4 * (1 + a) * (share**2 - Z**2 * noise), 0.0))
    low, high = ((middle + side * root) / (2 + 2 * a) for side in (-1, 1))
    return Ends(np.clip(share, 0, 1), np.clip(low, 0, 1), np.clip(high, 0, 1))


def _hazards(d: FloatArray, r: FloatArray, cells: FloatArray, sigma: float, k: int) -> Ends:
    """Return d / r with the ends of (d − h r)² ≤ z² (k h (1 − h) r + σ² ((1 − h)² + (cells − 1) h²))."""
    noise = (Z * sigma) ** 2
    a = r**2 + Z**2 * k * r - noise * cells
    b = d * r + Z**2 * k * r / 2 - noise
    root = np.sqrt(np.maximum(b**2 - a * (d**2 - noise), 0.0))
    with np.errstate(all="ignore"):
        low, high = (np.clip((b + side * root) / a, 0, 1) for side in (-1, 1))
    return Ends(np.clip(d / r, low, high), low, high)


def _ends(found: Ends, clear: NDArray[np.bool_]) -> Ends:
    return Ends(*(np.where(clear, part, np.nan) for part in found))
