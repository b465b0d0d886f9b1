"""Selection of bin edges for a numeric column that make its values nearly uniform inside each bin.

Synthetic values are drawn uniformly inside a bin, which is wrong if the real values are not uniform there. The error of
the count on either side of any cut is at most the largest distance between the cumulative count inside the bin and the
straight line between its two ends. A bin with many rows also hides differences between these rows in other columns. The
chosen bins minimise the sum of both costs. As a result, a value shared by many rows gets a separate bin, a long tail
gets bins although it has few rows, and flat stretches are cut into bins with similar numbers of rows.

Everything is computed from noisy counts of the cells between the cuts, so it is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

BRIDGE = math.sqrt(math.pi / 2) * math.log(2)
"""Expected largest distance of a Brownian bridge of unit length from 0 (Kolmogorov's distribution). Noise alone adds
about this value times σ·√(m − 1) to a flat bin of m cells.
"""

LUMPED = 0.2
"""Weight of the lumping cost, which is added to the cost of unevenness. Lumping costs this weight times p²/m rows for a
bin of p rows out of m; m excludes the rows of single cells that have more than their share.
"""

WORTH = 0.01
"""Smallest gain, in σ, that justifies an additional bin."""


def flattest(
    cuts: Sequence[float], counts: NDArray[np.float64], sigma: float, bins: int, *, integer: bool
) -> list[int]:
    """Return the indices of the ``cuts`` (increasing) to keep, including the first and the last: at most ``bins`` bins.

    ``counts`` are the noisy rows of the cells between the cuts, with noise of ``sigma`` each. The best division is
    found exactly, by dynamic programming.
    """
    below = np.concatenate([[0.0], np.cumsum(counts)])
    cost = _unevenness(_places(cuts, integer), below, sigma) + _lumped(counts, below, bins)
    cells = len(counts)
    best, came = np.full(cells + 1, np.inf), list[NDArray[np.intp]]()
    best[0] = 0.0
    totals = []
    for _ in range(min(bins, cells)):
        ways = best[:, None] + cost
        came.append(ways.argmin(axis=0))
        best = ways.min(axis=0)
        totals.append(best[-1])
    kept = [cells]
    for step in reversed(came[: int(np.argmin(totals)) + 1]):
        kept.append(int(step[kept[-1]]))
    return kept[::-1]


def _places(cuts: Sequence[float], integer: bool) -> NDArray[np.float64]:
    """Return the position of each cut on the axis on which flatness is judged. For whole numbers, this is how many of
    them lie below the cut.
    """
    at = np.asarray(cuts, dtype=np.float64)
    return np.append(np.ceil(at[:-1]), math.floor(at[-1]) + 1.0) if integer else at


def _unevenness(places: NDArray[np.float64], below: NDArray[np.float64], sigma: float) -> NDArray[np.float64]:
    """Return the cost of a bin from cut i to cut j, in rows; infinite if j is not above i."""
    cells = len(places) - 1
    cost = np.full((cells + 1, cells + 1), np.inf)
    for i in range(cells):
        x, y = places[i:] - places[i], below[i:] - below[i]
        away = np.abs(y - (y[1:] / x[1:])[:, None] * x)
        inside = np.tril(np.ones(away.shape, dtype=np.bool_), k=1)
        far = np.where(inside, away, 0.0).max(axis=1)
        noise = BRIDGE * sigma * np.sqrt(np.arange(cells - i))
        cost[i, i + 1 :] = np.maximum(far - noise, 0.0) + WORTH * sigma
    return cost


def _lumped(counts: NDArray[np.float64], below: NDArray[np.float64], bins: int) -> NDArray[np.float64]:
    """Return the lumping cost of a bin from cut i to cut j; 0 for a single cell, which cannot be cut."""
    rows = np.maximum(below[None, :] - below[:, None], 0.0)
    rows[np.arange(len(counts)), np.arange(1, len(below))] = 0.0
    spread = counts[counts <= max(below[-1], 0.0) / bins].sum()
    return np.asarray(LUMPED * rows**2 / max(float(spread), 1.0))
