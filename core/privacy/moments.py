"""Two sums over the rows for a private regression, in whole numbers: a histogram and a moment matrix.

Only the classes in ``ROW_BY_ROW`` compute a row's contribution. They look it up in public tables, so it cannot depend
on the row's position or on other rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from espalier.core.privacy.regression_features import Codes, Surface, Tables, clipped, longest, side_by_side
from espalier.core.privacy.unit import Unit
from espalier.core.project.numeric_axis import Axis
from espalier.core.tables.source import Source

BLOCK = 2**14
"""Maximum number of rows whose products are added at a time."""

LARGEST = 2**63 - 1
"""Largest sum that is represented exactly."""

DIAGONAL, BESIDE = 29, 41
"""Whole-number weights of a matrix's diagonal and of its off-diagonal entries: 2·29² − 41² = 1, so 41/29 is √2 minus
6·10⁻⁴."""


@dataclass(frozen=True)
class Reading:
    """Public rule that maps rows to whole numbers from 0. Numeric columns have ``axes``, and so do the columns in
    ``ordered``, whose codes are used as numbers. All other columns keep their codes; ``sizes`` has their numbers of
    categories.
    """

    axes: Mapping[str, Axis]
    ordered: tuple[str, ...]
    sizes: Mapping[str, int]

    def check(self, sizes: Mapping[str, int]) -> None:
        """Raise :class:`ValueError` unless the columns to read match a table with columns of ``sizes``."""
        for name in (*self.axes, *self.sizes):
            if name not in sizes or self.sizes.get(name, sizes[name]) != sizes[name]:
                raise ValueError(f"{name!r} belongs to another table")

    def only(self, *names: str) -> Reading:
        """Return the same rule, restricted to the columns ``names``."""
        return Reading(
            {n: a for n, a in self.axes.items() if n in names},
            self.ordered,
            {n: s for n, s in self.sizes.items() if n in names},
        )

    def blocks(self, source: Source) -> Iterator[dict[str, NDArray[np.int64]]]:
        """Yield the rows of ``source``, at most ``BLOCK`` at a time. Private: for the curator."""
        values = {name: source.numbers(name) for name in self.axes if name not in self.ordered}
        done = 0
        for batch in source.batches():
            rows = len(next(iter(batch.values())))
            for start in range(0, rows, BLOCK):
                part = slice(start, min(start + BLOCK, rows))
                out = {}
                for name, axis in self.axes.items():
                    there = slice(done + part.start, done + part.stop)
                    held = batch[name][part].astype(np.float64) if name in self.ordered else values[name][there]
                    out[name] = axis.code(held)
                yield out | {name: np.asarray(batch[name][part], dtype=np.int64) for name in self.sizes}
            done += rows


@dataclass(frozen=True)
class Bin:
    """Bin of one column: a bin of its axis, or the category if it has no axis."""

    name: str
    axis: Axis | None

    def of(self, codes: Codes) -> NDArray[np.int64]:
        """Return the index of each row's bin."""
        held = np.asarray(codes[self.name], dtype=np.int64)
        return held if self.axis is None else self.axis.bin_of(held)


@dataclass(frozen=True)
class Left:
    """Bin of the target's residual on ``axis`` after a fitted ``surface``; ``edges`` are public."""

    surface: Surface
    axis: Axis
    edges: tuple[float, ...]

    def of(self, codes: Codes) -> NDArray[np.int64]:
        """Return the index of each row's bin."""
        left = self.axis.middles[codes[self.axis.name]] - self.surface.at(codes)
        return np.searchsorted(np.asarray(self.edges[1:-1]), left, side="right").astype(np.int64)


@dataclass(frozen=True)
class Scored:
    """Normal ``scores`` by tick, concatenated and clipped to ``length``, followed by the category indicators
    ``marks``."""

    scores: Tables
    marks: Tables
    length: int

    @property
    def size(self) -> int:
        """Number of entries."""
        return sum(int(t.shape[1]) for t in (*self.scores.values(), *self.marks.values()))

    @property
    def square(self) -> int:
        """Largest squared length."""
        return self.length**2 + longest(list(self.marks.values()))

    def of(self, codes: Codes) -> NDArray[np.int64]:
        """Return the features, one line per row."""
        short = clipped(side_by_side(codes, self.scores), self.length**2)
        return np.hstack([short, side_by_side(codes, self.marks)]) if self.marks else short


@dataclass(frozen=True)
class WithOutcome:
    """A row's features, and the residual of the target on ``axis`` after ``surface``, a fit on these features.

    ``half``, in the target's unit, is the clipping bound; it maps to the largest length of the features.
    """

    surface: Surface
    axis: Axis
    half: float

    @property
    def size(self) -> int:
        """Number of entries."""
        return self.surface.features.size + 1

    @property
    def square(self) -> int:
        """Largest squared length."""
        return self.surface.features.square + math.isqrt(self.surface.features.square) ** 2

    def of(self, codes: Codes) -> NDArray[np.int64]:
        """Return the features and the residual, one line per row."""
        phi, length = self.surface.features.of(codes), math.isqrt(self.surface.features.square)
        left = self.axis.middles[codes[self.axis.name]] - self.surface.of(phi)
        with np.errstate(invalid="ignore", divide="ignore"):
            part = np.nan_to_num(np.clip(left / self.half, -1, 1))  # 0 if the bounds are too wide for a fit in floats
        return np.hstack([phi, np.trunc(length * part).astype(np.int64)[:, None]])


ROW_BY_ROW: tuple[type, ...] = (Bin, Left, Scored, WithOutcome)
"""Permitted functions of a row. Each depends on that row alone, because its values are found by lookup."""


@dataclass(frozen=True)
class Histogram:
    """Number of rows in each of ``bins`` bins, which are numbered from 0. ``group`` is a public function that maps a
    row to its bin.

    ``together`` adjacent bins are counted as one. A value outside the range is counted in the nearest bin, so each row
    is counted exactly once.
    """

    what: str
    bins: int
    reading: Reading
    group: Bin | Left
    together: int = 1
    kind: Literal["sums"] = field(default="sums", init=False)
    units: int = field(default=1, init=False)
    recipe: str = field(default="histogram", init=False)

    @property
    def cells(self) -> int:
        """Length of the vector of counts."""
        return -(-self.bins // self.together)

    def check(self, sizes: Mapping[str, int]) -> None:
        """Raise :class:`ValueError` unless the columns match the table and the bins are found row by row."""
        _check(self.reading, self.group, sizes)

    def given(self, unit: Unit) -> tuple[tuple[str, float], ...]:  # noqa: ARG002
        """Return no numbers: the sensitivity in rows depends on the unit alone."""
        return ()

    def sensitivity(self, unit: Unit) -> float:
        """Return the L2 sensitivity of the counts: k under add-remove, √2·k under replace-one.

        Proof. Each row adds 1 to exactly one entry, for any ``group`` and ``together``. Both are public, because they
        were computed from earlier noisy answers. So these are the counts of one clique, and the proof in
        :attr:`Unit.count_sensitivity` applies.
        """
        return unit.count_sensitivity

    def sums(self, source: Source) -> NDArray[np.int64]:
        """Return the exact counts. For the curator only."""
        total = np.zeros(self.cells, dtype=np.int64)
        for codes in self.reading.blocks(source):
            bins = np.clip(self.group.of(codes) // self.together, 0, self.cells - 1)
            total += np.bincount(bins, minlength=self.cells)
        return total


@dataclass(frozen=True)
class Moments:
    """Σ over the rows of v·vᵀ, v being ``vectors`` of a row: whole numbers, Σ v² at most ``square``.

    A longer row contributes zeros. The answer is the upper triangle, row by row, with the diagonal times ``DIAGONAL``
    and the rest times 41. One row is ``DIAGONAL`` times ``square`` units, so the longest row has ‖v‖² = 1.
    """

    what: str
    reading: Reading
    vectors: Scored | WithOutcome
    kind: Literal["sums"] = field(default="sums", init=False)
    recipe: str = field(default="moments", init=False)

    @property
    def square(self) -> int:
        """Largest permitted Σ v²."""
        return self.vectors.square

    @property
    def units(self) -> int:
        """Units per row: the weight of the longest row."""
        return DIAGONAL * self.square

    @cached_property
    def cells(self) -> int:
        """Length of the upper triangle, including the diagonal."""
        return self.vectors.size * (self.vectors.size + 1) // 2

    def check(self, sizes: Mapping[str, int]) -> None:
        """Raise :class:`ValueError` unless the columns match the table and the lines are found row by row."""
        _check(self.reading, self.vectors, sizes)

    def given(self, unit: Unit) -> tuple[tuple[str, float], ...]:  # noqa: ARG002
        """Return no numbers: the sensitivity in rows depends on the unit alone."""
        return ()

    def sensitivity(self, unit: Unit) -> float:
        """Return the sensitivity: 29·k·s under add-remove and 29·√2·k·s under replace-one, with s = ``square``.

        Proof. Let w be the weighted upper triangle of M = v·vᵀ. Since 41² < 2·29², ‖w‖² = 29²·Σ M_ii² + 41²·Σ_{i<j}
        M_ij² ≤ 29²·(Σ M_ii² + 2·Σ_{i<j} M_ij²) = 29²·‖M‖_F², even if M is a difference of two such matrices. Also
        ‖v·vᵀ‖_F = ‖v‖² ≤ s, since a row beyond s contributes zeros. A row that is added or removed moves the sum by one
        w, at most 29·s. A row that changes from u to v moves it by the w of v·vᵀ − u·uᵀ, and ‖v·vᵀ − u·uᵀ‖_F² = ‖v‖⁴ +
        ‖u‖⁴ − 2·(u·v)² ≤ 2·s². k rows move the sum at most k times as far, by the triangle inequality. A row's
        contribution is found by lookup in whole numbers and depends on no other row. Rounding is upward.
        """
        step = DIAGONAL * self.square * unit.rows_per_person
        return float(step if unit.neighbors == "add-remove" else math.isqrt(2 * step * step) + 1)

    def sums(self, source: Source) -> NDArray[np.int64]:
        """Return the weighted sums, exact within int64 and clipped to it. For the curator only.

        The number of rows may be private, so a table of any size is accepted. Clipping never moves two sums farther
        apart, so the sensitivity is unchanged. Raises :class:`OverflowError` for a ``square`` (which is public) too
        large for floats to sum.
        """
        p, block = self.vectors.size, (2**53 - 1) // self.square
        if not block:
            raise OverflowError(f"squares up to {self.square:,} are too large to be summed")
        large = source.rows * self.square * BESIDE > LARGEST
        total = np.zeros((p, p), dtype=object if large else np.int64)
        for codes in self.reading.blocks(source):
            lines = self.vectors.of(codes)
            for start in range(0, len(lines), block):
                v = lines[start : start + block].astype(np.float64)  # unlike int64 squares, these never wrap around
                v = np.where((v * v).sum(axis=1, keepdims=True) <= self.square, v, 0)
                total += (v.T @ v).astype(np.int64)  # each partial sum is a whole number below 2⁵³, hence exact
        weighted = (total * _weights(p))[np.triu_indices(p)]
        return np.clip(weighted, -LARGEST, LARGEST).astype(np.int64) if large else weighted

    def matrix(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a noisy answer (in rows) as a symmetric matrix: Σ v·vᵀ over the rows, in units of ``square``."""
        p = self.vectors.size
        out = np.zeros((p, p))
        out[np.triu_indices(p)] = values
        out *= DIAGONAL / _weights(p)
        return out + np.triu(out, 1).T

    @staticmethod
    def noise(sigma: float) -> float:
        """Return σ of an off-diagonal matrix entry, given the answer's ``sigma``."""
        return sigma * DIAGONAL / BESIDE


def _check(reading: Reading, by: object, sizes: Mapping[str, int]) -> None:
    reading.check(sizes)
    if type(by) not in ROW_BY_ROW:
        raise ValueError("a row's contribution must be computed by a recipe that reads only that row")


def _weights(p: int) -> NDArray[np.int64]:
    return np.where(np.eye(p, dtype=bool), DIAGONAL, BESIDE)
