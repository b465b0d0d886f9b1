"""Sums of features of whole rows by class, and the choice of columns whose joint cells become features.

The features are random cosines and sines of a row (Rahimi & Recht 2007), and an indicator of the row's cell over a few
columns in coarse bins. They are looked up in public tables of whole numbers. A row's features therefore depend on that
row alone, to the last bit. In a floating-point matrix product, they could vary with the neighbouring rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from espalier.core.graph.separations import Clique
from espalier.core.privacy.moments import Reading
from espalier.core.privacy.scores import FIXED_POINT, LARGEST
from espalier.core.privacy.unit import Unit
from espalier.core.tables.source import Source

Codes = Mapping[str, NDArray[Any]]
"""Rows as codes, one array per column."""

UNIT = 2**15
"""Length of a row's features in units."""

TURN = 2**16
"""Number of units in a full turn. Sums of 16-bit angles wrap around exactly at a full turn."""

BINS = 2
"""Number of coarse bins of a column."""


@dataclass(frozen=True)
class RowFeatures:
    """φ of a row: ``frequencies`` cosines, as many sines, and an indicator (the mark) of the row's coarse cell.

    ``phases`` hold, by column and code, the term of each frequency's angle, with ``TURN`` units to a full turn.
    ``coarse`` maps each code of the cell's columns to its bin; it is empty if there is no mark. ``mark`` is the length
    of the mark in units.

    Proof of the length. Each pair (cos, sin) is a point at most r from 0, rounded towards it, where r² · frequencies ≤
    UNIT² − mark². Exactly one entry of the cells is ``mark``. So ‖φ‖² ≤ UNIT².
    """

    phases: Mapping[str, NDArray[np.uint16]]
    coarse: Mapping[str, NDArray[np.int64]]
    mark: int

    @property
    def frequencies(self) -> int:
        """Number of random directions."""
        return int(next(iter(self.phases.values())).shape[1])

    @property
    def size(self) -> int:
        """Length of φ: two per frequency, and one per coarse cell."""
        return 2 * self.frequencies + self.cells

    @property
    def cells(self) -> int:
        """Number of coarse cells; 0 if there are no coarse columns."""
        return BINS ** len(self.coarse) if self.coarse else 0

    def check(self, sizes: Mapping[str, int]) -> None:
        """Raise :class:`ValueError` unless the tables match columns of ``sizes`` and respect the proved length."""
        lengths = [(name, len(table)) for held in (self.phases, self.coarse) for name, table in held.items()]
        if any(length != sizes.get(name) for name, length in lengths):
            raise ValueError("the features were made for another table")
        if any(t.dtype != np.uint16 or t.shape[1] != self.frequencies for t in self.phases.values()):
            raise ValueError("angles must be whole numbers of 16 bits, one for each frequency")
        if any(t.min() < 0 or t.max() >= BINS for t in self.coarse.values()):
            raise ValueError(f"a coarse bin must be a number from 0 to {BINS - 1}")
        if not 0 <= self.mark <= UNIT or bool(self.mark) is not bool(self.coarse):
            raise ValueError("a mark needs columns, and a length of at most one row")

    def of(self, codes: Codes) -> NDArray[np.int32]:
        """Return the features of each row, one line per row."""
        rows = len(next(iter(codes.values())))
        angle = np.zeros((rows, self.frequencies), dtype=np.uint16)
        for name, table in self.phases.items():
            angle += table[codes[name]]
        cos, sin = _circle(self.frequencies, self.mark)
        out = np.zeros((rows, self.size), dtype=np.int32)
        np.take(cos, angle, out=out[:, : self.frequencies])
        np.take(sin, angle, out=out[:, self.frequencies : 2 * self.frequencies])
        if self.coarse:
            out[np.arange(rows), 2 * self.frequencies + cell_of(codes, self.coarse)] = self.mark
        return out


@cache
def _circle(frequencies: int, mark: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the cosine and sine, in units, of each whole-number angle, truncated towards zero."""
    turns = np.arange(TURN) * (2 * math.pi / TURN)
    radius = math.sqrt((UNIT**2 - mark**2) / frequencies) * (1 - 1e-9)
    return np.trunc(radius * np.cos(turns)).astype(np.int32), np.trunc(radius * np.sin(turns)).astype(np.int32)


def cell_of(codes: Codes, coarse: Mapping[str, NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the index of each row's cell over the ``coarse`` bins."""
    cell = np.zeros(len(next(iter(codes.values()))), dtype=np.int64)
    for name, bins in coarse.items():
        cell = BINS * cell + bins[codes[name]]
    return cell


@dataclass(frozen=True)
class ClassSums:
    """Σ over the rows of φ(x) ⊗ e_y: for each class of ``target``, the sum of its rows' ``features``.

    ``classes`` is the number of the target's categories. The features do not use the target column.
    """

    features: RowFeatures
    target: str
    classes: int
    what: str = "features of whole rows by class"
    kind: Literal["sums"] = field(default="sums", init=False)
    units: int = field(default=UNIT, init=False)
    recipe: str = field(default="class-features", init=False)

    @property
    def cells(self) -> int:
        """Length of the vector: classes × features."""
        return self.classes * self.features.size

    def given(self, unit: Unit) -> tuple[tuple[str, float], ...]:  # noqa: ARG002
        """Return the mark's share of a row's squared length."""
        return (("marked", (self.features.mark / UNIT) ** 2),)

    def check(self, sizes: Mapping[str, int]) -> None:
        """Raise :class:`ValueError` unless it can be evaluated on a table with columns of ``sizes``."""
        self.features.check(sizes)
        if sizes.get(self.target) != self.classes or self.target in (*self.features.phases, *self.features.coarse):
            raise ValueError("the classes belong to another table, or are among the features")

    def sensitivity(self, unit: Unit) -> float:
        """Return the sensitivity: k·UNIT under add-remove, and under replace-one k·√(4·UNIT² − 2·mark²); rounded up.

        Proof. A row adds φ(x) to the part of its class, and ‖φ(x)‖ ≤ UNIT (:class:`RowFeatures`). A row that is added
        or removed moves the sums by this vector. A row that changes moves them by φ(x) ⊗ e_y − φ(x′) ⊗ e_y′. If the
        classes differ, the squared length is ‖φ(x)‖² + ‖φ(x′)‖² ≤ 2·UNIT². If they agree, each pair (cos, sin) moves by
        at most 2r and the marks by at most mark·√2, so the squared length is at most 4·(UNIT² − mark²) + 2·mark² =
        4·UNIT² − 2·mark². This bound covers both cases: it is at least 2·UNIT², because mark ≤ UNIT. k rows move the
        sums at most k times as far, by the triangle inequality. With a = (mark/UNIT)², Δ is √(4 − 2a) rows. A row's
        contribution is found by lookup in whole numbers and depends on no other row.
        """
        k = unit.rows_per_person
        square = UNIT**2 if unit.neighbors == "add-remove" else 4 * UNIT**2 - 2 * self.features.mark**2
        root = math.isqrt(k * k * square)
        return float(root if root * root == k * k * square else root + 1)

    def sums(self, source: Source) -> NDArray[np.int64]:
        """Return the exact sums. For the curator only."""
        total = np.zeros((self.classes, self.features.size), dtype=np.int64)
        names = dict.fromkeys([self.target, *self.features.phases, *self.features.coarse])
        for codes in Reading({}, (), {name: source.schema.sizes[name] for name in names}).blocks(source):
            total += by_class(self.features.of(codes), codes[self.target], self.classes)
        return total.ravel()


def by_class(phi: NDArray[np.int32], classes: NDArray[Any], number: int) -> NDArray[np.int64]:
    """Return the sum of ``phi`` over the rows of each class."""
    return np.stack([phi[classes == y].sum(axis=0, dtype=np.int64) for y in range(number)])


@dataclass(frozen=True)
class ColumnSets:
    """Score for sets of columns: the distance between their coarse joint counts with the target and the expected
    counts.

    ``coarse`` maps each code of each column to its coarse bin. ``expected(set)`` returns the counts, in rows, that a
    public model expects over coarse cells × classes; ``penalties`` are the numbers of rows that sampling alone
    explains. The score is computed as in `espalier.core.privacy.scores.EdgeScore`: ‖c − E‖₁ minus the penalty, in units
    of 1/1024 row.
    """

    coarse: Mapping[str, NDArray[np.int64]]
    target: str
    classes: int
    candidates: Sequence[Clique]
    expected: Sequence[NDArray[np.float64]]
    penalties: Sequence[float]

    def check(self, sizes: Mapping[str, int]) -> None:
        """Raise :class:`ValueError` unless it can be evaluated on a table with columns of ``sizes``."""
        if any(len(bins) != sizes.get(name) for name, bins in self.coarse.items()):
            raise ValueError("the coarse bins belong to another table")
        if sizes.get(self.target) != self.classes or not self.candidates:
            raise ValueError("a choice of columns needs candidates and the classes of the table's target")
        if not len(self.candidates) == len(self.expected) == len(self.penalties):
            raise ValueError("each set of columns needs its expected counts and its penalty")
        for names, table in zip(self.candidates, self.expected, strict=True):
            if self.target in names or len(table) != BINS ** len(names) * self.classes or not np.isfinite(table).all():
                raise ValueError("the expected counts of a set must contain one number per cell")

    def sensitivity(self, unit: Unit) -> int:
        """Return the sensitivity: 2k rows under replace-one, k under add-remove, in units of 1/1024 row.

        Proof. The coarse cell together with the class is a public function of one row, so c is a histogram. E and the
        penalty are public. The proof in `espalier.core.privacy.scores.EdgeScore` then applies unchanged.
        """
        return FIXED_POINT * (2 if unit.neighbors == "replace-one" else 1) * unit.rows_per_person

    def scores(self, source: Source) -> list[int]:
        """Return the exact scores. For the curator only."""
        names = {name: source.schema.sizes[name] for name in (*self.coarse, self.target)}
        parts = [
            ({n: self.coarse[n][codes[n]].astype(np.int32) for n in self.coarse}, codes[self.target].astype(np.int32))
            for codes in Reading({}, (), names).blocks(source)
        ]
        bins = {n: np.concatenate([part[n] for part, _ in parts]) for n in self.coarse} if parts else {}
        y = np.concatenate([part for _, part in parts]) if parts else np.zeros(0, np.int32)
        out = []
        for counts, table, penalty in zip(
            coarse_counts(bins, y, self.classes, self.candidates), self.expected, self.penalties, strict=True
        ):
            wanted = np.rint(FIXED_POINT * np.clip(table, 0, LARGEST)).astype(np.int64)
            out.append(int(np.abs(FIXED_POINT * counts - wanted).sum()) - round(FIXED_POINT * penalty))
        return out


def coarse_counts(
    bins: Mapping[str, NDArray[np.int32]], y: NDArray[np.int32], classes: int, sets: Sequence[Clique]
) -> Iterator[NDArray[np.int64]]:
    """Yield the rows in each coarse cell × class of each set; sets with a common prefix share its computation."""
    held: list[tuple[str, NDArray[np.int32]]] = []
    for names in sets:
        kept = sum(1 for _ in itertools.takewhile(lambda p: p[0] == p[1][0], zip(names, held, strict=False)))
        del held[kept:]
        for name in names[kept:]:
            held.append((name, (BINS * held[-1][1] if held else 0) + bins[name] if bins else y))
        cells = BINS ** len(names) * classes
        yield np.bincount(classes * held[-1][1] + y, minlength=cells) if bins else np.zeros(cells, dtype=np.int64)
