"""Whole-number scores for private selection, as named recipes, each with its sensitivity and the proof.

A score's value is a whole number of *units*, with ``per_row`` units to a row, computed in exact integer arithmetic. Its
sensitivity therefore needs no allowance for floating-point rounding. Selection names a recipe. Only the curator
evaluates recipes, and no exact value leaves it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from espalier.core.graph.separations import Clique
from espalier.core.privacy.unit import Unit

FIXED_POINT = 1024
"""Units per row for scores that are not fractions with a public denominator."""
LARGEST = 2.0**36
"""Bound to which expected counts are clipped, far above the number of rows of any table. Sums stay within 64 bits for
fewer than 2^53 expected rows in total.
"""


class Score(Protocol):
    """Interface through which the curator uses a score. ``recipe`` is its name in
    `espalier.core.privacy.draws.PROOFS`.
    """

    recipe: str

    def given(self, n: int | None) -> tuple[tuple[str, float], ...]:
        """Return the public numbers on which its sensitivity depends in addition to the unit; ``n`` as in
        `sensitivity`.
        """
        ...

    def fits(self, clique: Clique) -> bool:
        """Return whether the score is defined for ``clique``."""
        ...

    def per_row(self, n: int | None) -> int:
        """Return the number of units per row. ``n`` is the public number of rows, or `None` under add-remove."""
        ...

    def sensitivity(self, unit: Unit, n: int | None) -> int:
        """Return the largest change, in units, of the score between neighbouring tables."""
        ...

    def value(self, clique: Clique, counts: NDArray[np.int64], n: int | None) -> int:
        """Return the score, in units, of the exact ``counts`` of ``clique``. For the curator only."""
        ...


def vector_sensitivity(score: Score, count: int, unit: Unit, n: int | None) -> int:
    """Return the L2 sensitivity, in units rounded up, of ``count`` values of one score released together: √count · Δ.

    Proof. Each value moves by at most Δ between neighbouring tables, so the squares add up to at most count · Δ². A row
    affects every pair of columns at once, so no smaller bound holds in general: this bound is attained if every pair's
    counts rise in cells above expectation and fall in cells below it.
    """
    square = count * score.sensitivity(unit, n) ** 2
    root = math.isqrt(square)
    return root if root * root == square else root + 1


class EdgeScore:
    """Distance of a clique's counts from their expectation: ‖c − E‖₁ in rows, minus a public penalty for their noise.

    MST (McKenna, Miklau & Sheldon 2021) and PrivCI (§IV) expect the product of the noisy one-way marginals. E may be
    any table computed from earlier *noisy* answers, such as the marginal of a model fitted to them, and is therefore
    public. It is rounded once to 1/1024 row and is the same for two neighbouring tables. So is the penalty ``per_cell``
    · cells, the L1 error that measuring the clique would cause (AIM's score, McKenna et al. 2022), which is 0 for MST
    and PrivCI as published.

    Sensitivity: 2k rows under replace-one, k under add-remove. Proof: E and the penalty are fixed, so by the triangle
    inequality the score moves by at most ‖c − c′‖₁; k rows that change cells move the counts by at most 2k in L1, and k
    rows that are added or removed by at most k. Both bounds are attained when every cell that gains lies above E and
    every cell that loses lies below it. (PrivCI's Algorithm 1 claims "unit sensitivity"; see its corrections.) The
    number of columns in the clique does not matter, because its joint table is one histogram.
    """

    recipe = "edge-score"

    def __init__(self, expected: Callable[[Clique], NDArray[np.float64]], per_cell: float = 0.0) -> None:
        """``expected(clique)`` is E in rows, from noisy answers only; ``per_cell`` in rows."""
        self._expected, self._per_cell = expected, per_cell

    def given(self, n: int | None) -> tuple[tuple[str, float], ...]:  # noqa: ARG002
        """Return no numbers: the sensitivity depends on the unit alone."""
        return ()

    def fits(self, clique: Clique) -> bool:
        """Return whether the clique has two columns or more, or none. The empty clique means "measure nothing" and has
        score 0 on every table.
        """
        return len(clique) != 1

    def per_row(self, n: int | None) -> int:  # noqa: ARG002
        """Return 1024, the number of units per row."""
        return FIXED_POINT

    def sensitivity(self, unit: Unit, n: int | None) -> int:  # noqa: ARG002
        """Return the sensitivity: 2k or k rows, in units."""
        return FIXED_POINT * (2 if unit.neighbors == "replace-one" else 1) * unit.rows_per_person

    def value(self, clique: Clique, counts: NDArray[np.int64], n: int | None) -> int:  # noqa: ARG002
        """Return ‖1024·c − round(1024·E)‖₁ − round(1024·penalty), a whole number."""
        table = self._expected(clique)
        if table.shape != counts.shape or not np.isfinite(table).all():
            raise ValueError(f"the expected table of {clique} must contain one number per cell")
        expected = np.rint(FIXED_POINT * np.clip(table, 0, LARGEST)).astype(np.int64)
        return int(np.abs(FIXED_POINT * counts - expected).sum()) - round(FIXED_POINT * self._per_cell * counts.size)


class FeatureScore:
    """Association of one column with others in rows: n·TV = ½‖c_xy − c_x·c_y/n‖₁ (PrivBayes' R score).

    y is a value of the target (of the child, in a network), and x a joint value of the other columns: a value of a
    feature, or a combination of values of all parents. The proofs below hold for two-way tables of any shape, and the
    order of the columns in the clique does not matter.

    This score replaces the clipped χ²/n of PRISM §5.2, whose sensitivity is not O(1/n): replacing one row can move that
    score across its whole range.

    Sensitivity under replace-one: 3k + 2k²/n rows. Proof: k replaced rows move c_xy by at most 2k in L1, and c_x, c_y
    by u, v with ‖u‖₁, ‖v‖₁ ≤ 2k. The product (c_x + u)(c_y + v) − c_x c_y = u c_y + c_x v + u v has L1 norm at most
    2kn + 2kn + 4k², so the score moves by at most ½(2k + 4k + 4k²/n) = 3k + 2k²/n. In units of 1/(2n) row, n public,
    the score Σ|n·c_xy − c_x·c_y| and the bound 6kn + 4k² are whole numbers.

    Under add-remove: less than 2k rows. Proof for one row entering cell (x, y), with p = c_x/n, q = c_y/n: the counts
    move by 1, and n·pq becomes (np + e_x)(nq + e_y)/(n + 1), which differs from n·pq by [−n·pq + n·p e_y + n·e_x q +
    e_x e_y]/(n + 1), L1 norm at most (3n + 1)/(n + 1) < 3. So ½(1 + 3) = 2 is never attained (for n = 0 the score is 0
    before and after); k rows by the triangle inequality. n is private here, so the score is rounded down to 1/1024 row.
    Rounding adds nothing: two numbers less than M apart, for a whole number M, are at most M apart when rounded down.
    So Δ is 2048k units. Under replace-one with a private (or unknown) n, a replaced row counts as one removed and one
    added: 4096k units.
    """

    recipe = "feature-score"

    def __init__(self, target: str | Mapping[Clique, str]) -> None:
        """``target`` is the target column, or a mapping from each clique to its target; it must be public."""
        self._target = target

    def _of(self, clique: Clique) -> str | None:
        return self._target if isinstance(self._target, str) else self._target.get(clique)

    def given(self, n: int | None) -> tuple[tuple[str, float], ...]:
        """Return the number of rows, if it is public."""
        return () if n is None else (("rows", n),)

    def fits(self, clique: Clique) -> bool:
        """Return whether the clique contains the target and at least one other column."""
        return len(clique) >= 2 and self._of(clique) in clique

    def per_row(self, n: int | None) -> int:
        """Return the number of units per row: 2n if n is public, else 1024."""
        return FIXED_POINT if n is None else 2 * n

    def sensitivity(self, unit: Unit, n: int | None) -> int:
        """Return the sensitivity: 3k + 2k²/n rows (replace-one, n public), 4k rows (replace-one) or 2k rows
        (add-remove), in units.
        """
        k = unit.rows_per_person
        if unit.neighbors == "add-remove" or n is None:
            return 2 * FIXED_POINT * k * (1 if unit.neighbors == "add-remove" else 2)
        return 6 * k * n + 4 * k * k

    def value(self, clique: Clique, counts: NDArray[np.int64], n: int | None) -> int:
        """Return Σ|m·c_xy − c_x·c_y| with m = Σc: unscaled if n is public, else times 1024/(2m), rounded down."""
        axis = [name == self._of(clique) for name in clique].index(True)
        counts = np.moveaxis(counts, axis, -1).reshape(-1, counts.shape[axis])
        rows = int(counts.sum())
        product = np.outer(counts.sum(axis=1), counts.sum(axis=0))
        total = int(np.abs(rows * counts - product).sum())
        if n is not None or rows == 0:
            return total
        return FIXED_POINT * total // (2 * rows)


class ConditionalScore:
    """Association of two columns given the target, in rows: Σ_y ½‖c_aby − c_ay·c_by/c_y‖₁, PRISM's pairs (§5.3).

    This score replaces the paper's conditional mutual information. It measures what a three-way table adds to the
    two-way tables, and is 0 if a and b are independent given y.

    Sensitivity: 2k rows under add-remove, 4k under replace-one. Proof: a row that is added or removed is in one stratum
    y. That stratum's part is the score of :class:`FeatureScore` on the stratum alone, so it moves by less than 2 rows
    (by the proof for add-remove, with n = c_y). The other strata do not change. Each stratum's part is rounded down to
    1/1024 row, and two numbers less than M apart, for a whole number M, are at most M apart when rounded down: 2048
    units. k rows follow by the triangle inequality; a replaced row counts as one removed and one added.
    """

    recipe = "conditional-score"

    def __init__(self, target: str) -> None:
        """``target`` is the conditioning column."""
        self._target = target

    def given(self, n: int | None) -> tuple[tuple[str, float], ...]:  # noqa: ARG002
        """Return no numbers: the sensitivity depends on the unit alone."""
        return ()

    def fits(self, clique: Clique) -> bool:
        """Return whether the clique contains the target and two other columns."""
        return len(clique) == 3 and self._target in clique

    def per_row(self, n: int | None) -> int:  # noqa: ARG002
        """Return 1024, the number of units per row."""
        return FIXED_POINT

    def sensitivity(self, unit: Unit, n: int | None) -> int:  # noqa: ARG002
        """Return the sensitivity: 4k or 2k rows, in units."""
        return 2 * FIXED_POINT * (2 if unit.neighbors == "replace-one" else 1) * unit.rows_per_person

    def value(self, clique: Clique, counts: NDArray[np.int64], n: int | None) -> int:  # noqa: ARG002
        """Return Σ_y ⌊1024 · Σ|c_y·c_aby − c_ay·c_by| / (2 c_y)⌋, a whole number."""
        total = 0
        for stratum in np.moveaxis(counts, clique.index(self._target), 0):
            if rows := int(stratum.sum()):
                product = np.outer(stratum.sum(axis=1), stratum.sum(axis=0))
                total += FIXED_POINT * int(np.abs(rows * stratum - product).sum()) // (2 * rows)
        return total
