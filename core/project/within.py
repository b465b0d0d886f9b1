"""Where a number lies inside its bin: not flat where the bins on either side say more.

The released rows say how many numbers lie in each bin, and so how the density goes on from bin to bin. Inside a bin it
is taken to be a straight line with the smaller of the two slopes towards its neighbours, flat at a peak or in a hollow,
never below 0 (van Leer 1979). Every bin keeps its numbers. Rows that were paid for are looked at and no others, so
this costs no privacy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

CHUNK = 1 << 14
"""Numbers that are worked on while they are in the processor's cache."""


def tilts(edges: Sequence[float], counts: NDArray[Any]) -> NDArray[np.float64]:
    """By how much the density rises from the middle of each bin to its upper end, as a share of its mean: −1 to 1.

    The outermost bins fall away from their only neighbour; where it holds less they are flat, as a peak is.
    """
    ends = np.asarray(edges, dtype=np.float64)
    width, middle = np.diff(ends), (ends[1:] + ends[:-1]) / 2
    density = np.asarray(counts, dtype=np.float64) / width
    if len(density) < 2:
        return np.zeros(len(density))
    between = np.diff(density) / np.diff(middle)
    below, above = np.append(max(between[0], 0.0), between), np.append(between, min(between[-1], 0.0))
    slope = np.where(below * above > 0, np.sign(below) * np.minimum(np.abs(below), np.abs(above)), 0.0)
    rise = slope * width / 2
    return np.asarray(np.clip(np.divide(rise, density, out=np.zeros_like(rise), where=density > 0), -1, 1))


def places(
    edges: Sequence[float], codes: NDArray[Any], rng: np.random.Generator, counts: NDArray[Any] | None = None
) -> NDArray[np.float64]:
    """Where in its bin each number lies, from 0 (the lower end) to below 1, for ``codes`` of bins (all others: flat).

    ``counts`` are those of all codes, where ``codes`` are only some of the rows.
    """
    last = len(edges) - 1
    inside = Inside(edges, np.bincount(codes, minlength=last) if counts is None else counts)
    out = np.empty(len(codes))
    for start in range(0, len(codes), CHUNK):
        part = slice(start, start + CHUNK)
        out[part] = inside.draw(np.minimum(codes[part], last).astype(np.intp), rng)
    return out


class Inside:
    """Draws of where a number lies in its bin, for bins with ``counts`` numbers each.

    A density of 1 + t·(2u − 1) has the distribution u + t·(u² − u), solved for u here.
    """

    def __init__(self, edges: Sequence[float], counts: NDArray[Any]) -> None:
        t = np.append(tilts(edges, counts[: len(edges) - 1]), 0.0)  # beyond the bins: flat
        self._flat, self._steep, self._squared = 1 - t, 4 * t, (1 - t) ** 2

    def draw(self, bins: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.float64]:
        """From 0 to below 1, for a few numbers (`CHUNK` at a time is quick), given by their bins."""
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
