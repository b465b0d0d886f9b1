"""Numeric columns as public axes: bounds, precision, bins for counting, and ticks for looking up values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

TICKS = 2048
"""Approximate maximum number of ticks of a column."""

BINS = 64
"""Minimum number of bins in which a column is counted, if its values allow."""


@dataclass(frozen=True)
class Axis:
    """A numeric column as declared by its schema, with public bounds ``low`` and ``high`` in the column's unit.

    ``edges`` are the edges of the bins in which it is counted; the first is ``low``. ``step`` is the declared
    precision: values are multiples of it, unless it is 0. With a precision, the bin of a single value v is [v, v +
    step), so the last edge is one step above ``high``. Each bin has ``parts`` ticks of equal width.
    """

    name: str
    edges: tuple[float, ...]
    high: float
    step: float = 0.0
    parts: int = 32

    @classmethod
    def declared(cls, name: str, edges: Sequence[float], step: float = 0.0, bins: int = BINS) -> Axis:
        """Return an axis from a schema's public edges, whose bins are divided evenly until there are ``bins`` bins.

        With a ``step``, no bin is narrower than the step, and each cut is at a value; a few whole numbers are counted
        separately.
        """
        high_end = float(edges[-1])
        edges = [*edges[:-1], high_end + step]
        cut = [float(edges[0])]
        each = max(1, math.ceil(bins / (len(edges) - 1)))
        for low, high in itertools.pairwise(edges):
            most = max(1, math.floor((high - low) / step + 1e-9)) if step else each
            inner = np.linspace(low, high, min(each, most) + 1)[1:]
            if step:  # with an edge between two values, the lower value would be drawn too often
                inner = np.unique([*np.ceil(inner[:-1] / step - 1e-9) * step, high])
            cut += inner.tolist()
        return cls(name, tuple(cut), high_end, step, max(1, min(32, TICKS // (len(cut) - 1))))

    @property
    def low(self) -> float:
        """Lower bound."""
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
        """Middle of each tick."""
        return (self.ticks[1:] + self.ticks[:-1]) / 2

    def code(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the tick of each value, using only comparisons. Values outside the bounds get the nearest tick."""
        return np.searchsorted(self.ticks[1:-1], values, side="right").astype(np.int64)

    def bin_of(self, ticks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the bin of each tick."""
        return ticks // self.parts

    def rounded(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values, clipped to the bounds and rounded to the declared precision."""
        if self.step:
            first, last = math.ceil(self.low / self.step - 1e-9), math.floor(self.high / self.step + 1e-9)
            return np.asarray(np.clip(np.rint(values / self.step), first, last) * self.step)
        return np.asarray(np.clip(values, self.low, self.high))
