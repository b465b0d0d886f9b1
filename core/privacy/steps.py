"""Recipes for counts over people's visits. In pooled counts over steps, each person has weight 1.

A step is a visit after the first (`espalier.core.project.linked`). A person with m steps has weight 1/m at each of
them. Each person's first k visits are chosen from that person's rows alone, so neighbouring tables stay neighbours: one
person with all visits is added, removed or replaced. All weights are whole numbers of units, ``units`` = lcm(1, …, k −
1) per person.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from espalier.core.privacy.unit import Unit
from espalier.core.project.linked import Pair
from espalier.core.tables.source import Source

FINEST = 1024
"""Minimum number of units per person in a score. Expected counts are rounded to these units."""
LARGEST = 1e9
"""Bound to which expected counts in people are clipped. The sum over all cells is clipped to 2⁶¹ units, so a score fits
into 64 bits.
"""


@dataclass(frozen=True)
class StepCounts:
    """Counts h of one pair over all steps: h = Σ_i 1/m_i · Σ_t e(cell of step t of person i), flat, row by row."""

    pair: Pair
    shape: tuple[int, int]
    units: int
    is_open: bool = False
    """True if the plan leaves the choice of the pair open; ``pair`` is then the largest candidate."""
    kind: Literal["sums"] = field(default="sums", init=False)
    recipe: str = field(default="step-counts", init=False)

    @property
    def what(self) -> str:
        """Description of the counts, for the report."""
        if self.is_open:
            return "steps of a pair chosen at release (largest shown)"
        return f"steps of {self.pair[0]} × {self.pair[1]}"

    @property
    def cells(self) -> int:
        """Length of the vector."""
        return self.shape[0] * self.shape[1]

    def given(self, unit: Unit) -> tuple[tuple[str, float], ...]:  # noqa: ARG002
        """Return no numbers: the sensitivity depends on the unit alone."""
        return ()

    def check(self, sizes: Mapping[str, int]) -> None:  # noqa: ARG002
        """Raise :class:`ValueError` for a table that cannot be counted."""
        if self.cells < 1 or self.units < 1:
            raise ValueError("steps need at least one cell and one unit")

    def sensitivity(self, unit: Unit) -> float:
        """Return the sensitivity: one person under add-remove and √2 under replace-one, in units rounded up.

        Proof. A person's part of h is u = (1/m)·Σ_t e_t, with m unit vectors e_t of single cells. So u ≥ 0 and ‖u‖₁ = 1
        (0 for a person without steps), hence ‖u‖₂ ≤ ‖u‖₁ ≤ 1, reached where all steps share a cell. A person who is
        added or removed moves h by u. A replaced person moves it by u − v with u, v ≥ 0: ‖u − v‖² = ‖u‖² + ‖v‖² − 2⟨u,
        v⟩ ≤ 2.
        """
        return _of_one_person(self.units, unit)

    def sums(self, source: Source) -> NDArray[np.int64]:
        """Return the exact counts, in units. For the curator only."""
        (counts,) = source.step_counts([self.pair])
        if counts.shape != self.shape:
            raise ValueError(f"the table returned inconsistent counts for {self.what}")
        return counts.ravel()


@dataclass(frozen=True)
class Echoes:
    """For each column, Σ_i 1/m_i · Σ_t 1[this visit repeats the value of the visit before the last]."""

    columns: tuple[str, ...]
    units: int
    kind: Literal["sums"] = field(default="sums", init=False)
    recipe: str = field(default="echoes", init=False)

    @property
    def what(self) -> str:
        """Description of the sums, for the report."""
        return f"repeats: steps that repeat the visit before the last ({len(self.columns)} columns)"

    @property
    def cells(self) -> int:
        """Length of the vector."""
        return len(self.columns)

    def given(self, unit: Unit) -> tuple[tuple[str, float], ...]:  # noqa: ARG002
        """Return the number of columns; the vector has one entry for each."""
        return (("columns", len(self.columns)),)

    def check(self, sizes: Mapping[str, int]) -> None:  # noqa: ARG002
        """Raise :class:`ValueError` if there is no column."""
        if not self.columns or self.units < 1:
            raise ValueError("repeats need at least one column")

    def sensitivity(self, unit: Unit) -> float:
        """Return the sensitivity: √d people for d columns under both relations, in units rounded up.

        Proof. A person's part of one entry is between 0 and (1/m)·m = 1. So each entry moves by at most 1, whether the
        person is added, removed or replaced, and d entries together by at most √d in L2.
        """
        _check_unit(unit)
        square = len(self.columns) * self.units * self.units
        root = math.isqrt(square)
        return float(root if root * root == square else root + 1)

    def sums(self, source: Source) -> NDArray[np.int64]:
        """Return the exact sums, in units. For the curator only."""
        return source.step_echoes(self.columns)


@dataclass(frozen=True)
class VisitCounts:
    """Numbers of people with each value of ``column`` at their second, third, … kept visit, as one flat vector, visit
    by visit.

    ``visits`` is the number of these visits, k − 1. A person weighs 1 at each.
    """

    column: str
    size: int
    visits: int
    units: int = field(default=1, init=False)
    kind: Literal["sums"] = field(default="sums", init=False)
    recipe: str = field(default="visit-counts", init=False)

    @property
    def what(self) -> str:
        """Description of the sums, for the report."""
        return f"{self.column} at each visit after the first"

    @property
    def cells(self) -> int:
        """Length of the vector."""
        return self.visits * self.size

    def given(self, unit: Unit) -> tuple[tuple[str, float], ...]:  # noqa: ARG002
        """Return the number of counted visits."""
        return (("visits", self.visits),)

    def check(self, sizes: Mapping[str, int]) -> None:  # noqa: ARG002
        """Raise :class:`ValueError` for counts without a cell."""
        if self.cells < 1:
            raise ValueError("counts at each visit need at least one visit and one value")

    def sensitivity(self, unit: Unit) -> float:
        """Return the sensitivity: √(k − 1) under add-remove, √(2(k − 1)) under replace-one, rounded up.

        Proof. A person's part u has a 1 for each of their visits after the first. There are at most k − 1 of them, in
        cells of different visits. So u ≥ 0 and ‖u‖² ≤ k − 1. A person who is added or removed moves the counts by u. A
        replaced person moves them by u − v with u, v ≥ 0: ‖u − v‖² = ‖u‖² + ‖v‖² − 2⟨u, v⟩ ≤ 2(k − 1).
        """
        _check_unit(unit)
        moved = self.visits if unit.neighbors == "add-remove" else 2 * self.visits
        return math.nextafter(math.sqrt(moved), math.inf)

    def sums(self, source: Source) -> NDArray[np.int64]:
        """Return the exact counts. For the curator only."""
        counts = source.visit_counts(self.column)
        if counts.shape != (self.visits, self.size):
            raise ValueError(f"the table returned inconsistent counts for {self.what}")
        return counts.ravel()


@dataclass(frozen=True)
class ReturnCounts:
    """Weighted counts of visits by the value of ``column`` and by what follows: the next kept visit is in one of the
    first ``bins`` bins of the days between visits, it is later, or no further visit is kept.

    For a person with n kept visits, the first min(n, k − 1) are counted, each with weight 1/min(n, k − 1). What follows
    the k-th kept visit is unknown, so that visit is left out. A next visit on an unknown day counts as later.
    """

    column: str
    size: int
    bins: int
    units: int
    kind: Literal["sums"] = field(default="sums", init=False)
    recipe: str = field(default="return-counts", init=False)

    @property
    def what(self) -> str:
        """Description of the sums, for the report."""
        return f"returns after each value of {self.column}"

    @property
    def cells(self) -> int:
        """Length of the vector."""
        return 3 * self.size

    def given(self, unit: Unit) -> tuple[tuple[str, float], ...]:  # noqa: ARG002
        """Return no numbers: the sensitivity depends on the unit alone."""
        return ()

    def check(self, sizes: Mapping[str, int]) -> None:  # noqa: ARG002
        """Raise :class:`ValueError` for counts without a cell, a bin or a unit."""
        if self.size < 1 or self.bins < 1 or self.units < 1:
            raise ValueError("counts of returns need at least one value, one bin and one unit")

    def sensitivity(self, unit: Unit) -> float:
        """Return the sensitivity: one person under add-remove and √2 under replace-one, in units rounded up.

        Proof. Each of a person's m = min(n, k − 1) ≥ 1 counted visits is in exactly one cell. So the person's part is u
        = (1/m)·Σ_t e_t with m unit vectors e_t of single cells, as in `StepCounts`: u ≥ 0 and ‖u‖₂ ≤ ‖u‖₁ = 1, reached
        where all these visits share a cell. A person who is added or removed moves the counts by u. A replaced person
        moves them by u − v with u, v ≥ 0: ‖u − v‖² ≤ ‖u‖² + ‖v‖² ≤ 2, reached by two people in different cells. m ≤ k −
        1 divides ``units`` = lcm(1, …, k − 1), so each weight is a whole number of units.
        """
        return _of_one_person(self.units, unit)

    def sums(self, source: Source) -> NDArray[np.int64]:
        """Return the exact counts, in units. For the curator only."""
        counts = source.return_counts(self.column, self.bins)
        if counts.shape != (self.size, 3):
            raise ValueError(f"the table returned inconsistent counts for {self.what}")
        return counts.ravel()


class StepScore:
    """Distance of a pair's counts from their expectation: ‖h − E‖₁ in people, minus a public penalty for noise.

    E and the penalty are computed from earlier noisy answers alone. E is rounded once to whole fine units, so the score
    is a whole number of these. The score of pairs without the plan's target is divided by ``weaker`` and rounded down.

    Sensitivity: one person under add-remove, two under replace-one. Proof: E and the penalty are the same for two
    neighbouring tables, so by the triangle inequality the score moves by at most ‖h − h′‖₁. This is ‖u‖₁ ≤ 1 if a
    person is added or removed, and ‖u − v‖₁ ≤ 2 if a person is replaced (u, v as in `StepCounts`). Dividing by
    ``weaker`` ≥ 1 and rounding down never moves two whole numbers farther apart.
    """

    recipe = "step-score"

    def __init__(
        self,
        expected: Callable[[Pair], NDArray[np.float64]],
        units: int,
        per_cell: float = 0.0,
        target: str = "",
        weaker: int = 3,
    ) -> None:
        """``expected(pair)`` is E in people; ``units`` are the units of the counts; ``per_cell`` is in people."""
        self._expected, self._per_cell, self._target, self._weaker = expected, per_cell, target, weaker
        self.finer = max(1, FINEST // units)
        self.units = units * self.finer

    def sensitivity(self, unit: Unit) -> int:
        """Return the sensitivity: one or two people, in units."""
        _check_unit(unit)
        return self.units * (2 if unit.neighbors == "replace-one" else 1)

    def value(self, pair: Pair, counts: NDArray[np.int64]) -> int:
        """Return the score, in units, of the exact ``counts`` of ``pair``. For the curator only."""
        table = self._expected(pair)
        if table.shape != counts.shape or not np.isfinite(table).all():
            raise ValueError(f"the expected table of {pair} must contain one number per cell")
        most = min(self.units * LARGEST, 2.0**61 / table.size)
        expected = np.rint(np.clip(self.units * table, 0, most)).astype(np.int64)
        found = int(np.abs(self.finer * counts - expected).sum()) - round(self.units * self._per_cell * counts.size)
        is_other = self._target and not any(name.split("@")[0] == self._target for name in pair)
        return found // self._weaker if is_other else found


def _of_one_person(units: int, unit: Unit) -> float:
    """Return the sensitivity of counts in which each person has a total weight of 1: 1 under add-remove and √2 under
    replace-one, in ``units`` rounded up.
    """
    _check_unit(unit)
    return float(units if unit.neighbors == "add-remove" else math.isqrt(2 * units * units) + 1)


def _check_unit(unit: Unit) -> None:
    """Raise :class:`ValueError` unless the unit is one row per person, which stands for the person with all visits."""
    if unit.rows_per_person != 1:
        raise ValueError("the unit of linked tables is one person with all visits")
