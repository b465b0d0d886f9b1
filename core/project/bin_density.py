"""Density of a numeric column inside its bins: a straight line in each bin, with a slope derived from the neighbouring
bins.

The counts of the released rows show the change in density from bin to bin. Inside a bin the density is a straight line
with the smaller of the two slopes towards its neighbours (van Leer 1979). It is flat at a peak or in a trough, and
never negative. Every bin keeps its count. Only released rows are read, so this uses no budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

CHUNK = 1 << 14
"""Number of values processed at a time, chosen to fit the processor's cache."""


def tilts(edges: Sequence[float], counts: NDArray[Any]) -> NDArray[np.float64]:
    """Return the rise of the density from each bin's middle to its upper end, relative to its mean, from −1 to 1.

    In the first and last bins, the density decreases with the distance from the only neighbour. If that neighbour has a
    lower density, the bin is flat, as at a peak.
    """
    ends = np.asarray(edges, dtype=np.float64)
    if len(ends) < 3:
        return np.zeros(len(ends) - 1)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # bins at the limits of floats are flat
        width, middle = np.diff(ends), (ends[1:] + ends[:-1]) / 2
        density = np.asarray(counts, dtype=np.float64) / width
        between = np.diff(density) / np.diff(middle)
        below, above = np.append(max(between[0], 0.0), between), np.append(between, min(between[-1], 0.0))
        slope = np.where(below * above > 0, np.sign(below) * np.minimum(np.abs(below), np.abs(above)), 0.0)
        rise = slope * width / 2
        tilt = np.divide(rise, density, out=np.zeros_like(rise), where=density > 0)
    return np.asarray(np.clip(np.nan_to_num(tilt, nan=0.0, posinf=0.0, neginf=0.0), -1, 1))


def places(
    edges: Sequence[float], codes: NDArray[Any], rng: np.random.Generator, counts: NDArray[Any] | None = None
) -> NDArray[np.float64]:
    """Draw each number's position in its bin, from 0 (the lower end) to below 1.

    Codes beyond the bins get a uniform position. Pass ``counts`` of all rows if ``codes`` holds only some of them.
    """
    last = len(edges) - 1
    inside = Inside(edges, np.bincount(codes, minlength=last) if counts is None else counts)
    out = np.empty(len(codes))
    for start in range(0, len(codes), CHUNK):
        part = slice(start, start + CHUNK)
        out[part] = inside.draw(np.minimum(codes[part], last).astype(np.intp), rng)
    return out


class Inside:
    """Random positions inside bins that hold ``counts`` numbers each.

    A density of 1 + t·(2u − 1) has the distribution u + t·(u² − u), solved for u here.
    """

    def __init__(self, edges: Sequence[float], counts: NDArray[Any]) -> None:
        t = np.append(tilts(edges, counts[: len(edges) - 1]), 0.0)  # codes beyond the bins are flat
        self._flat, self._steep, self._squared = 1 - t, 4 * t, (1 - t) ** 2

    def draw(self, bins: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw a position from 0 to below 1 for each bin code in ``bins``. This is fastest with `CHUNK` codes at a
        time.
        """
        share = rng.random(len(bins))
        below = self._steep.take(bins, mode="clip")
        below *= share
        below += self._squared.take(bins, mode="clip")
        np.sqrt(below, out=below)
        below += self._flat.take(bins, mode="clip")
        below += 1e-300
        share *= 2
        share /= below
        return np.minimum(share, np.nextafter(1.0, 0.0), out=share)
