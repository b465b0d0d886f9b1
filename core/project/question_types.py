"""Questions (how many rows meet these conditions?) and counts (how many of these conditions does a row meet?).

Both are public descriptions, and nothing here reads a private row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from espalier.core.errors import EspalierError

Condition = Mapping[str, tuple[int, ...]]
"""Allowed codes of each named column. A column that is not named may have any code. A name may also be a count."""


@dataclass(frozen=True)
class Question:
    """A question about the number of rows that meet one or more of ``alternatives``. A single alternative is a
    conjunction; several form a disjunction.
    """

    name: str
    alternatives: tuple[Condition, ...]

    def __post_init__(self) -> None:
        if not self.alternatives:
            raise EspalierError(f"The question {self.name!r} has no condition.", question=self.name)

    def columns(self, order: Sequence[str]) -> tuple[str, ...]:
        """Return the columns and counts that the question names, in the order of ``order``."""
        named = {column for condition in self.alternatives for column in condition}
        return tuple(name for name in order if name in named)

    def check(self, sizes: Mapping[str, int]) -> None:
        """Raise `EspalierError` for a column or code that ``sizes`` (columns and counts) does not have."""
        for condition in self.alternatives:
            for column, codes in condition.items():
                _check(f"question {self.name!r}", column, codes, sizes)

    def holds(self, codes: Mapping[str, ArrayLike]) -> NDArray[np.bool_]:
        """Return a mask of the rows that meet the question; ``codes`` has an array for every named column and count."""
        found: NDArray[np.bool_] | None = None
        for condition in self.alternatives:
            rows = np.ones(len(np.asarray(next(iter(codes.values())))), dtype=bool)
            for column, allowed in condition.items():
                rows &= np.isin(np.asarray(codes[column]), allowed)
            found = rows if found is None else found | rows
        assert found is not None  # __post_init__ refuses an empty tuple
        return found


@dataclass(frozen=True)
class Count:
    """Number of the conditions ``members`` (column → codes) that a row meets: 0 … ``up_to``, where the last value
    means "or more".

    It is treated as a column of ``size`` categories. The last category is "up_to or more" unless there are fewer
    members.
    """

    name: str
    members: Condition
    up_to: int

    def __post_init__(self) -> None:
        if not self.members:
            raise EspalierError(f"The count {self.name!r} has no condition.", count=self.name)
        if self.up_to < 1:
            raise EspalierError(f"The count {self.name!r}: up_to ({self.up_to}) must be at least 1.", count=self.name)

    @property
    def size(self) -> int:
        """Number of distinct values."""
        return min(self.up_to, len(self.members)) + 1

    def check(self, sizes: Mapping[str, int]) -> None:
        """Raise `EspalierError` for a column or code that ``sizes`` does not have."""
        for column, codes in self.members.items():
            _check(f"count {self.name!r}", column, codes, sizes)

    def values(self, codes: Mapping[str, ArrayLike]) -> NDArray[np.intp]:
        """Return the count of every row."""
        met = sum(
            np.isin(np.asarray(codes[column]), allowed).astype(np.intp) for column, allowed in self.members.items()
        )
        return np.minimum(np.asarray(met, dtype=np.intp), self.size - 1)


def allowed(codes: Sequence[int], size: int) -> NDArray[np.bool_]:
    """Return the codes as a mask over all categories of a column."""
    mask = np.zeros(size, dtype=bool)
    mask[list(codes)] = True
    return mask


def _check(what: str, column: str, codes: Sequence[int], sizes: Mapping[str, int]) -> None:
    if column not in sizes:
        raise EspalierError(f"The {what} names {column!r}, which is neither a column nor a count.", column=column)
    for code in codes:
        if not 0 <= code < sizes[column]:
            raise EspalierError(
                f"The {what} names code {code} of {column!r}, which has {sizes[column]} categories.", column=column
            )
