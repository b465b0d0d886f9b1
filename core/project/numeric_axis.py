"""Numeric columns as public axes: bounds, precision, bins to count in and ticks to look values up by."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

TICKS = 2048
"""Ticks of a column at most, about."""

BINS = 64
"""Bins that a column is counted in at least, where its values allow."""


@dataclass(frozen=True)
class Axis:
    """A numeric column as its schema declares it: public bounds ``low`` and ``high``, both in the column's unit.

    ``edges`` are the edges of the bins that it is counted in, from ``low`` on. ``step`` is the declared precision, a
    value being a multiple of it; 0 for none. With one, the bin of a single value v is [v, v + step), so that the last
    edge lies a step above ``high``. Each bin holds ``parts`` ticks of equal width.
    """

    name: str
    edges: tuple[float, ...]
    high: float
    step: float = 0.0
    parts: int = 32

    @classmethod
    def declared(cls, name: str, edges: Sequence[float], step: float = 0.0, bins: int = BINS) -> Axis:
        """An axis from a schema's public edges, its bins cut evenly until there are ``bins``.

        With a ``step`` no bin is cut narrower than it and each cut falls on a value: whole numbers are counted one by
        one where they are few.
        """
        high_end = float(edges[-1])
        edges = [*edges[:-1], high_end + step]
        cut = [float(edges[0])]
        each = max(1, math.ceil(bins / (len(edges) - 1)))
        for low, high in itertools.pairwise(edges):
            most = max(1, math.floor((high - low) / step + 1e-9)) if step else each
            inner = np.linspace(low, high, min(each, most) + 1)[1:]
            if step:  # an edge between two values would draw the lower one too often
                inner = np.unique([*np.ceil(inner[:-1] / step - 1e-9) * step, high])
            cut += inner.tolist()
        return cls(name, tuple(cut), high_end, step, max(1, min(32, TICKS // (len(cut) - 1))))

    @property
    def low(self) -> float:
        """The lower bound."""
        return self.edges[0]

    @property
    def bins(self) -> int:
        """Number of bins."""
        return len(self.edges) - 1

    @cached_property
    def ticks(self) -> NDArray[np.float64]:
        """Edges of the ticks."""
        edges = np.asarray(self.edges)
        inner = edges[:-1, None] + np.diff(edges)[:, None] * np.arange(self.parts) / self.parts
        return np.append(inner.ravel(), edges[-1])

    @cached_property
    def middles(self) -> NDArray[np.float64]:
        """The middle of each tick."""
        return (self.ticks[1:] + self.ticks[:-1]) / 2

    def code(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """The tick of each value: by comparisons alone, values outside going to the outermost ones."""
        return np.searchsorted(self.ticks[1:-1], values, side="right").astype(np.int64)

    def bin_of(self, ticks: NDArray[np.int64]) -> NDArray[np.int64]:
        """The bin of each tick."""
        return ticks // self.parts

    def rounded(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values kept within the bounds and brought to the declared precision."""
        if self.step:
            first, last = math.ceil(self.low / self.step - 1e-9), math.floor(self.high / self.step + 1e-9)
            return np.asarray(np.clip(np.rint(values / self.step), first, last) * self.step)
        return np.asarray(np.clip(values, self.low, self.high))
