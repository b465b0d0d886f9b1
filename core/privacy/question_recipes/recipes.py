"""Questions and counts over whole rows as recipes for a curator: sums with their sensitivity, and a private choice.

`espalier.core.privacy.question_recipes.sensitivity` has the proofs for one row. It computes the exact sensitivity of a
workload over every row that the schema can encode, including rows that a project declares impossible.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from espalier.core.privacy.question_recipes.lowering import lower
from espalier.core.privacy.question_recipes.prediction import check_cost
from espalier.core.privacy.question_recipes.sensitivity import sensitivity
from espalier.core.privacy.unit import Unit
from espalier.core.project.question_types import Condition, Count, Question, allowed
from espalier.core.tables.source import Source

UNITS = 2**20
"""Units per row. Rounding up the irrational sensitivity adds less than a millionth of a row."""

CHOICE_UNITS = 2**10
"""Units per row of a choice's scores, the same as for other scores."""

LARGEST = 2.0**36
"""Bound to which expected answers are clipped, far above the number of rows of any table."""


@dataclass(frozen=True)
class QuestionSums:
    """Number of rows that satisfy each of ``questions``, as one vector. ``sizes`` covers all columns of the table.
    ``less`` is a public number of rows to subtract from every answer, the same for two neighbouring tables.

    Sensitivity under replace-one: k · √max_{x,x'} Σ_j (q_j(x) − q_j(x'))², under add-remove k · √max_x Σ_j q_j(x).
    Proof: when k rows of one person change (are added or removed), the vector moves by a sum of k vectors. Each is at
    most as long as the maximum over all pairs of rows (all rows) that can be encoded, so the triangle inequality gives
    the bound. Both maxima are exact. If there are too many pairs of rows for one table, the maximum over pairs is
    replaced by the proved bound min(2 max_x Σ_j q_j(x), questions). A count in a condition is a function of the row
    like any other. The sensitivity is at least one row per person, and exactly one for a single question, whose answer
    is 0 or 1 for each row.
    """

    questions: tuple[Question, ...]
    counts: tuple[Count, ...]
    sizes: Mapping[str, int]
    less: float = 0.0
    kind: Literal["sums"] = "sums"
    units: int = UNITS
    recipe: str = "questions"

    @property
    def what(self) -> str:
        """Description of the sums, for the report."""
        return f"answers to {len(self.questions):,} questions" if len(self.questions) > 1 else "answer to one question"

    @property
    def cells(self) -> int:
        """Length of the vector: one number for each question."""
        return len(self.questions)

    def check(self, sizes: Mapping[str, int]) -> None:
        """Raise :class:`ValueError` unless the questions were written for a table with exactly these columns."""
        if dict(self.sizes) != dict(sizes) or not self.questions:
            raise ValueError("these questions are about another table, or there are none")

    @cached_property
    def _squared(self) -> dict[bool, int]:
        return {}

    def squared(self, replace: bool) -> int:
        """Return Δ² in rows for one row per person. Raises :class:`SizeError` if the questions together need too many
        cells.
        """
        if len(self.questions) == 1:
            return 1
        if replace not in self._squared:
            lowered = lower(self.sizes, self.questions, self.counts)
            check_cost(lowered)
            self._squared[replace] = max(1, sensitivity(lowered, replace=replace).squared)
        return self._squared[replace]

    def given(self, unit: Unit) -> tuple[tuple[str, float], ...]:
        """Return Δ² in rows for one row per person, on which the sensitivity depends."""
        return (("squared", self.squared(unit.neighbors == "replace-one")),)

    def sensitivity(self, unit: Unit) -> int:
        """Return the L2 sensitivity in units, rounded up."""
        square = self.squared(unit.neighbors == "replace-one") * (unit.rows_per_person * self.units) ** 2
        root = math.isqrt(square)
        return root if root * root == square else root + 1

    def total_sensitivity(self, unit: Unit) -> int:
        """Return the L1 sensitivity in units: k · Δ², where Δ is the L2 sensitivity for one row per person.

        Proof: every answer is 0 or 1 for each row, so Σ_j |q_j(x) − q_j(x')| = Σ_j (q_j(x) − q_j(x'))², and Σ_j q_j(x)
        = Σ_j q_j(x)². `squared` is the largest value of each sum. For k rows, apply the triangle inequality.
        """
        return self.squared(unit.neighbors == "replace-one") * unit.rows_per_person * self.units

    def sums(self, source: Source) -> NDArray[np.int64]:
        """Return the exact answers, in units. For the curator only."""
        found = self.units * answers(source, self.questions, self.counts, self.sizes)
        return found - round(self.units * min(max(self.less, -LARGEST), LARGEST))


@dataclass(frozen=True)
class CountHistogram:
    """Number of rows with each value of a count. This is one histogram, however many conditions are counted.

    Sensitivity: k·√2 rows under replace-one and k under add-remove, as for any marginal. Proof: every row has exactly
    one value of the count, so the histogram is like that of one column; see :meth:`Unit.count_sensitivity`.
    """

    count: Count
    sizes: Mapping[str, int]
    kind: Literal["sums"] = "sums"
    units: int = UNITS
    recipe: str = "count-histogram"

    @property
    def what(self) -> str:
        """Description of the sums, for the report."""
        return f"histogram of the count {self.count.name}"

    @property
    def cells(self) -> int:
        """Length of the vector: one number for each value of the count."""
        return self.count.size

    def check(self, sizes: Mapping[str, int]) -> None:
        """Raise :class:`ValueError` unless the count is over a table of exactly these columns."""
        if dict(self.sizes) != dict(sizes):
            raise ValueError("this count is over another table")

    def given(self, unit: Unit) -> tuple[tuple[str, float], ...]:  # noqa: ARG002
        """Return no numbers: the sensitivity depends on the unit alone."""
        return ()

    def sensitivity(self, unit: Unit) -> int:
        """Return the L2 sensitivity in units, rounded up."""
        square = (2 if unit.neighbors == "replace-one" else 1) * (unit.rows_per_person * self.units) ** 2
        root = math.isqrt(square)
        return root if root * root == square else root + 1

    def total_sensitivity(self, unit: Unit) -> int:
        """Return the L1 sensitivity in units: `Unit.rows_moved` rows, as for the histogram of one column."""
        return unit.rows_moved * self.units

    def sums(self, source: Source) -> NDArray[np.int64]:
        """Return the exact histogram, in units. For the curator only."""
        found = np.zeros(self.cells, dtype=np.int64)
        for batch in source.batches():
            found += np.bincount(self.count.values(batch), minlength=self.cells)
        return self.units * found


@dataclass(frozen=True)
class WorstQuestion:
    """A private choice of the question, and the sign, for which the ``expected`` answer (in rows) is most wrong.

    Candidate j of the first half has the score c_j − e_j, and candidate j of the second half e_j − c_j. Sensitivity: k
    rows under both units. Proof: e is public and rounded once. A row that changes, is added or is removed moves c_j by
    at most 1, because q_j is 0 or 1. By the triangle inequality, k rows move c_j by at most k.
    """

    asked: QuestionSums
    expected: NDArray[np.float64]
    units: int = CHOICE_UNITS

    @property
    def candidates(self) -> int:
        """Number of candidates: each question, above or below its expected answer."""
        return 2 * self.asked.cells

    def sensitivity(self, unit: Unit) -> int:
        """Return the sensitivity: k rows, in units."""
        return self.units * unit.rows_per_person

    def scores(self, exact: NDArray[np.int64]) -> list[int]:
        """Return the score of every candidate, in units, from the exact answers in rows. For the curator only."""
        if self.expected.shape != exact.shape or not np.isfinite(self.expected).all():
            raise ValueError("the expected answers must be one number for each question")
        wanted = np.rint(self.units * np.clip(self.expected, -LARGEST, LARGEST)).astype(np.int64)
        apart = self.units * exact - wanted
        return [*apart.tolist(), *(-apart).tolist()]

    def question_of(self, candidate: int) -> tuple[int, int]:
        """Return a candidate's question and sign (1: more rows than expected, −1: fewer)."""
        return candidate % self.asked.cells, 1 if candidate < self.asked.cells else -1


def answers(
    source: Source, questions: Sequence[Question], counts: Sequence[Count], sizes: Mapping[str, int]
) -> NDArray[np.int64]:
    """Return the exact number of rows that satisfy each question. For the curator and for diagnostics."""
    every = {**sizes, **{count.name: count.size for count in counts}}
    found = np.zeros(len(questions), dtype=np.int64)
    for batch in source.batches():
        rows: dict[str, NDArray[Any]] = {**batch, **{count.name: count.values(batch) for count in counts}}
        masks: dict[tuple[str, tuple[int, ...]], NDArray[np.bool_]] = {}

        def met(condition: Condition, rows: Any = rows, masks: Any = masks) -> NDArray[np.bool_]:
            out: NDArray[np.bool_] | None = None
            for name, codes in condition.items():
                if (name, codes) not in masks:
                    masks[name, codes] = allowed(codes, every[name])[rows[name]]
                out = masks[name, codes] if out is None else out & masks[name, codes]
            assert out is not None  # no condition is empty
            return out

        for j, question in enumerate(questions):
            whole = met(question.alternatives[0])
            for condition in question.alternatives[1:]:
                whole = whole | met(condition)
            found[j] += int(np.count_nonzero(whole))
    return found
