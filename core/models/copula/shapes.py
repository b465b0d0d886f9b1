"""A column's noisy distribution, and values drawn from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from core.project.axes import Axis


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
