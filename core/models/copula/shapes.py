"""Noisy distribution of a column, and values drawn from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from espalier.core.project.numeric_axis import Axis

CLEAR = 1.0
"""Number of standard deviations above which a difference is treated as real. It is small because removing a real
difference does more harm than keeping a little noise.
"""


@dataclass(frozen=True)
class Shape:
    """A noisy distribution over an axis: the probability of each bin (``chances``), uniform inside the bin."""

    axis: Axis
    chances: NDArray[np.float64]

    @cached_property
    def below(self) -> NDArray[np.float64]:
        """Cumulative share at each bin edge."""
        return np.asarray(np.append(0.0, np.cumsum(self.chances)) / self.chances.sum())

    def share_below(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the cumulative share at each value."""
        return np.interp(values, np.asarray(self.axis.edges), self.below)

    def value_at(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the value with each cumulative share, at the declared precision.

        With a precision, the value v stands for [v, v + step), and the result is v.
        """
        held = np.flatnonzero(self.chances > 0)
        edges = np.asarray(self.axis.edges)
        bins = held[np.clip(np.searchsorted(self.below[held + 1], shares, side="right"), 0, len(held) - 1)]
        inside = (shares - self.below[bins]) / np.diff(self.below)[bins]
        values = edges[bins] + np.clip(inside, 0, 1) * np.diff(edges)[bins]
        if self.axis.step:
            values = np.floor(values / self.axis.step + 1e-9) * self.axis.step
        return self.axis.rounded(values)


@dataclass(frozen=True)
class Pyramid:
    """Noisy counts of bins, of pairs of bins, of pairs of pairs and so on up to all of them, made consistent.

    Level 0 holds the bins. ``counts`` are estimates that include all counts below them, ``variance`` is their variance,
    ``widths`` are the bins' widths. ``kept`` states for each parent whether its halves differ. Hay et al., Boosting the
    accuracy of differentially private histograms (2010), combine such counts. Here, halves that differ by no more than
    the noise are also treated as equal (Kolaczyk & Nowak 2004, Multiscale likelihood analysis). Otherwise, the noise of
    many empty bins would add up to a tail.
    """

    counts: tuple[NDArray[np.float64], ...]
    variance: tuple[NDArray[np.float64], ...]
    widths: tuple[NDArray[np.float64], ...]
    kept: tuple[NDArray[np.bool_], ...]

    @classmethod
    def of(cls, answers: Mapping[int, NDArray[np.float64]], widths: NDArray[np.float64], sigma: float) -> Pyramid:
        """Build the pyramid from noisy counts of bins grouped by these numbers (1 among them), each with noise
        ``sigma``."""
        counts, variance, wide = [answers[1]], [np.full(len(widths), sigma**2)], [widths]
        gain, kept, together = np.zeros(len(widths)), [np.zeros(len(widths), dtype=np.bool_)], 1
        while len(counts[-1]) > 1:
            together *= 2
            at, pair = np.arange(0, len(counts[-1]), 2), np.arange(len(counts[-1])) // 2
            total, noise, width = (np.add.reduceat(x[-1], at) for x in (counts, variance, wide))
            apart = np.add.reduceat((counts[-1] - (total / width)[pair] * wide[-1]) ** 2 / variance[-1], at)
            gain = apart - CLEAR**2 * (np.bincount(pair) > 1) + np.add.reduceat(gain, at)
            kept.append(gain > 0)
            gain = np.maximum(gain, 0.0)
            if together in answers:
                both = 1 / (1 / noise + 1 / sigma**2)
                total, noise = both * (total / noise + answers[together] / sigma**2), both
            counts.append(total)
            variance.append(noise)
            wide.append(width)
        return cls(tuple(counts), tuple(variance), tuple(wide), tuple(kept))

    def chances(self, total: float) -> NDArray[np.float64]:
        """Return the distribution. Starting from all rows, each parent is split in proportion to its halves' counts
        (never below 0) or to their widths.
        """
        mass = np.array([max(total, 1.0)])
        for level in range(len(self.counts) - 1, 0, -1):
            counts, variance, widths = self.counts[level - 1], self.variance[level - 1], self.widths[level - 1]
            pair = np.arange(len(counts)) // 2
            off = mass - np.bincount(pair, counts)
            told = counts + (off / np.bincount(pair, variance))[pair] * variance
            even = (mass / self.widths[level])[pair] * widths
            mass = np.where(self.kept[level][pair], np.clip(told, 0.0, mass[pair]), even)
        return np.asarray(mass / mass.sum())
