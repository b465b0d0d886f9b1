"""Tallies: the patterns of values that occur in some columns, and the number of rows with each pattern."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Tally:
    """Patterns and their rows. ``codes`` has a row per pattern and a column per name in ``columns``; ``weights`` are
    numbers of rows, which may be fractional.
    """

    columns: tuple[str, ...]
    codes: NDArray[np.int64]
    weights: NDArray[np.float64]

    @classmethod
    def of_rows(cls, rows: Mapping[str, NDArray[Any]], sizes: Mapping[str, int], columns: Sequence[str]) -> Tally:
        """Return the patterns of ``columns`` in a table of codes."""
        flat = np.zeros(len(rows[columns[0]]), dtype=np.int64)
        shape = tuple(sizes[name] for name in columns)
        if math.prod(shape) > 2**62:
            raise ValueError(f"{len(columns)} columns have too many combinations of values to tally")
        for name, size in zip(columns, shape, strict=True):
            flat *= size
            flat += rows[name]
        if math.prod(shape) <= 4 * len(flat):  # no need to sort
            every = np.bincount(flat, minlength=math.prod(shape))
            found = np.flatnonzero(every)
            counts = every[found]
        else:
            found, counts = np.unique(flat, return_counts=True)
        codes = np.stack(np.unravel_index(found, shape), axis=1).astype(np.int64)
        return cls(tuple(columns), codes, counts.astype(np.float64))

    def observed(self, missing: Mapping[str, int]) -> Tally:
        """Return the patterns without a missing cell; ``missing`` maps columns to the code of a missing cell."""
        keep = np.ones(len(self.weights), dtype=np.bool_)
        for name, code in missing.items():
            keep &= self.of(name) != code
        return self if keep.all() else Tally(self.columns, self.codes[keep], self.weights[keep])

    def of(self, column: str) -> NDArray[np.int64]:
        """Return the code of ``column`` in each pattern."""
        return self.codes[:, self.columns.index(column)]

    @property
    def total(self) -> float:
        """Number of rows."""
        return float(self.weights.sum())
