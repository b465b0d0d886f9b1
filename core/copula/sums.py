"""The sums that this method asks of the rows: whole numbers, each with its sensitivity and a proof.

A recipe is public. It says which whole numbers one row contributes, by lookup in public tables: no float is computed
from a row, so that what a row contributes cannot depend on where it stands in the table or on which rows surround it.
Only a curator adds the rows up, and only with noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from core.privacy.unit import Unit

Codes = Mapping[str, NDArray[Any]]
"""Rows as whole numbers from 0, one array per column (`core.copula.axes` makes them from numbers)."""

BLOCK = 2**17
"""Rows whose products are added at a time, at most."""

DIAGONAL, BESIDE = 29, 41
"""Whole-number weights of a matrix's diagonal and of the entries beside it: 2·29² − 41² = 1, so 41/29 is √2 less
6·10⁻⁴."""


class Recipe(Protocol):
    """One vector of whole numbers, summed over the rows."""

    @property
    def what(self) -> str:
        """What is summed, in words."""
        ...

    @property
    def entries(self) -> int:
        """The length of the vector."""
        ...

    def sums(self, codes: Codes) -> NDArray[np.int64]:
        """The exact sums over the rows. Private: for the curator."""
        ...

    def sensitivity(self, unit: Unit) -> float:
        """How far the sums of two neighbouring tables lie apart at most, in L2."""
        ...


@dataclass(frozen=True)
class Histogram:
    """How many rows have each value of a public function ``group`` of their codes; values from 0 to ``entries`` − 1.

    A value outside is counted at the nearer end, so that each row counts exactly once.
    """

    what: str
    entries: int
    group: Callable[[Codes], NDArray[np.int64]]

    def sums(self, codes: Codes) -> NDArray[np.int64]:
        """The exact counts in rows. Private: for the curator."""
        groups = np.clip(self.group(codes), 0, self.entries - 1)
        return np.bincount(groups, minlength=self.entries).astype(np.int64)

    def sensitivity(self, unit: Unit) -> float:
        """Of counts: k under add-remove, √2·k under replace-one.

        Proof. Each row adds 1 to exactly one entry, whatever ``group`` is, and ``group`` is public: made before, from
        noisy answers. So these are the counts of one clique, and :attr:`Unit.count_sensitivity` proves the figure.
        """
        return unit.count_sensitivity


@dataclass(frozen=True)
class Moments:
    """Σ over the rows of v·vᵀ, v being ``vectors`` of a row: whole numbers of ``entries_of_row`` entries.

    ``square`` is the largest Σ v² allowed to a row; a row beyond it counts as zeros. The answer is the upper triangle,
    row by row, the diagonal times ``DIAGONAL`` and the rest times ``BESIDE``.
    """

    what: str
    entries_of_row: int
    square: int
    vectors: Callable[[Codes], NDArray[np.int64]]

    @property
    def entries(self) -> int:
        """The length of the upper triangle, diagonal included."""
        return self.entries_of_row * (self.entries_of_row + 1) // 2

    def sums(self, codes: Codes) -> NDArray[np.int64]:
        """The exact weighted sums. Private: for the curator. Raises :class:`OverflowError` where int64 is too small."""
        p = self.entries_of_row
        rows = len(next(iter(codes.values())))
        block = min(BLOCK, (2**53 - 1) // self.square)
        if not block or max(rows, 1) * self.square * BESIDE >= 2**63:
            raise OverflowError(f"sums of {rows:,} rows of squares up to {self.square:,} do not fit")
        total = np.zeros((p, p), dtype=np.int64)
        for start in range(0, rows, block):
            v = self.vectors({name: held[start : start + block] for name, held in codes.items()})
            v = np.where((v * v).sum(axis=1, keepdims=True) <= self.square, v, 0).astype(np.float64)
            total += (v.T @ v).astype(np.int64)  # every partial sum is a whole number below 2⁵³, hence exact
        return (total * _weights(p))[np.triu_indices(p)]

    def sensitivity(self, unit: Unit) -> float:
        """29·k·s under add-remove and 29·√2·k·s under replace-one, with s = ``square``.

        Proof. Let w be the weighted upper triangle of M = v·vᵀ. Since 41² < 2·29², ‖w‖² = 29²·Σ M_ii² + 41²·Σ_{i<j}
        M_ij² ≤ 29²·(Σ M_ii² + 2·Σ_{i<j} M_ij²) = 29²·‖M‖_F², also where M is a difference of two such matrices; and
        ‖v·vᵀ‖_F = ‖v‖² ≤ s, since a row beyond s counts as zeros. A row that comes or goes moves the sum by one such w:
        at most 29·s. A row that changes from u to v moves it by the w of v·vᵀ − u·uᵀ, and ‖v·vᵀ − u·uᵀ‖_F² = ‖v‖⁴ +
        ‖u‖⁴ − 2·(u·v)² ≤ 2·s². k rows move it k times as far at most, by the triangle inequality. What a row adds is
        found by lookup in whole numbers and depends on no other row. Rounding is upward.
        """
        step = DIAGONAL * self.square * unit.rows_per_person
        if unit.neighbors == "add-remove":
            return float(step)
        return float(math.isqrt(2 * step * step) + 1)

    def matrix(self, answer: NDArray[np.float64]) -> NDArray[np.float64]:
        """A noisy answer as a symmetric matrix, in units of v·v summed over rows."""
        p = self.entries_of_row
        out = np.zeros((p, p))
        out[np.triu_indices(p)] = answer
        out /= _weights(p)
        return out + np.triu(out, 1).T

    def noise(self, scale: float) -> float:
        """σ of a matrix entry beside the diagonal, where the answer's was ``scale``."""
        return scale / BESIDE


def clipped(vectors: NDArray[np.int64], square: int) -> NDArray[np.int64]:
    """``vectors`` shortened, where Σ v² > ``square``, to at most that length: in whole numbers, row by row.

    Proof. With q = ⌊√square⌋ and r = ⌊√Σv²⌋ + 1 > √Σv², |v|·q ÷ r rounded down is at most |v|·q/√Σv² in every entry,
    so the squares sum to at most q² ≤ square. A float's square root may round up to a whole number, never past the
    next one.
    """
    length = (vectors * vectors).sum(axis=1, keepdims=True)
    r = np.floor(np.sqrt(length.astype(np.float64))).astype(np.int64) + 1
    shorter = np.sign(vectors) * (np.abs(vectors) * math.isqrt(square) // r)
    return np.where(length > square, shorter, vectors)


def looked_up(codes: Codes, tables: Mapping[str, NDArray[np.int64]]) -> NDArray[np.int64]:
    """Σ over columns of each row's line in that column's table, of one width."""
    return np.asarray(sum(tables[name][codes[name]] for name in tables), dtype=np.int64)


def side_by_side(codes: Codes, tables: Mapping[str, NDArray[np.int64]]) -> NDArray[np.int64]:
    """Each row's lines in the columns' tables, one after the other."""
    return np.hstack([tables[name][codes[name]] for name in tables])


def longest(tables: Sequence[NDArray[np.int64]]) -> int:
    """The largest Σ v² that lines of ``tables`` side by side can have."""
    return int(sum(int((t * t).sum(axis=1).max()) for t in tables))


def _weights(p: int) -> NDArray[np.int64]:
    return np.where(np.eye(p, dtype=bool), DIAGONAL, BESIDE)
