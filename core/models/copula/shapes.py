"""A column's noisy distribution, and values drawn from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from core.project.axes import Axis

CLEAR = 2.5
"""Standard deviations beyond which a difference is no noise."""


@dataclass(frozen=True)
class Shape:
    """A noisy distribution over an axis: ``chances`` of its bins, each flat inside its bin."""

    axis: Axis
    chances: NDArray[np.float64]

    @cached_property
    def below(self) -> NDArray[np.float64]:
        """The share below each bin edge."""
        return np.asarray(np.append(0.0, np.cumsum(self.chances)) / self.chances.sum())

    def share_below(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The share below each value."""
        return np.interp(values, np.asarray(self.axis.edges), self.below)

    def value_at(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """The value below which each share lies, at the declared precision.

        With a precision the value v stands for [v, v + step): v is what comes out.
        """
        held = np.flatnonzero(self.chances > 0)
        edges = np.asarray(self.axis.edges)
        bins = held[np.clip(np.searchsorted(self.below[held + 1], shares, side="right"), 0, len(held) - 1)]
        inside = (shares - self.below[bins]) / np.diff(self.below)[bins]
        values = edges[bins] + np.clip(inside, 0, 1) * np.diff(edges)[bins]
        if self.axis.step:
            values = np.floor(values / self.axis.step + 1e-9) * self.axis.step
        return self.axis.rounded(values)


def to_chances(counts: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """The distribution nearest to noisy ``counts`` in least squares: none below 0, summing to 1.

    Duchi et al. (2008), Figure 1: the projection onto a simplex takes one number off every count and stops at 0, so
    that noise in empty bins does not add up to a tail. ``total`` is the public or noisy number of rows.
    """
    wanted = max(total, 1.0)
    down = np.sort(counts)[::-1]
    off = (np.cumsum(down) - wanted) / np.arange(1, len(down) + 1)
    last = int(np.flatnonzero(down - off > 0)[-1])
    kept = np.maximum(counts - off[last], 0.0)
    return np.asarray(kept / kept.sum())


def smoothed(counts: NDArray[np.float64], widths: NDArray[np.float64], sigma: float) -> NDArray[np.float64]:
    """Noisy ``counts`` of bins of these ``widths`` with what does not stand out of the noise taken for even.

    ``sigma`` is the noise of one count. Halves are compared, then halves of halves: where their densities differ by
    less than ``CLEAR`` of the standard deviations that noise gives them, the half's rows are spread by width and only
    what is inside each may still differ (Haar's wavelets with a hard threshold, Donoho & Johnstone 1994).
    """
    if len(counts) == 1:
        return counts
    middle = len(counts) // 2
    parts = [(smoothed(counts[s], widths[s], sigma), widths[s]) for s in (slice(middle), slice(middle, None))]
    sums, wide = np.array([c.sum() for c, _ in parts]), np.array([w.sum() for _, w in parts])
    noise = sigma * math.sqrt(float(np.sum([len(c) / w.sum() ** 2 for c, w in parts])))
    even = np.zeros(2) if abs(np.subtract(*(sums / wide))) > CLEAR * noise else sums.sum() * wide / wide.sum() - sums
    return np.concatenate([c + more * w / w.sum() for (c, w), more in zip(parts, even, strict=True)])
