"""Unit of privacy: the change between two tables that a release must not reveal."""

from __future__ import annotations

import math
from dataclasses import dataclass

from espalier.core.project.plan import Neighbors


@dataclass(frozen=True)
class Unit:
    """Unit of privacy: the change that one person can make.

    ``replace-one``: n is public, and up to ``rows_per_person`` rows change in place. ``add-remove``: n is private, and
    up to ``rows_per_person`` rows are added or removed; that the table has at least one row is treated as public.
    ``rows_per_person`` is a promise of the plan's author, unless a person column enforces it
    (:func:`espalier.core.privacy.contribution.bounded` has the proof).
    """

    neighbors: Neighbors = "replace-one"
    rows_per_person: int = 1

    def in_words(self, person: str | None = None, *, linked: bool = False) -> str:
        """Return the unit as a clause, for every screen and the report.

        ``person`` is the person column's name as shown. ``linked`` is true if the person has rows in two linked tables.
        """
        if person is not None:
            change = "becoming another, or no one" if self.neighbors == "replace-one" else "being there or not"
            if linked:
                return f"one person with all their rows in both tables ({person}) {change}"
            return f"one person with all their rows ({person}, at most {self.rows_per_person} of them kept) {change}"
        rows = "one row" if self.rows_per_person == 1 else f"up to {self.rows_per_person} rows"
        change = "changing in place" if self.neighbors == "replace-one" else "being there or not"
        return f"{rows} of one person {change}"

    @property
    def rows_moved(self) -> int:
        """L1 sensitivity, in rows, of one clique's counts: the rows that one person moves.

        Proof. The count vector moves by u − v as in `count_sensitivity`, and ‖u − v‖₁ ≤ ‖u‖₁ + ‖v‖₁ ≤ 2k (replace-one);
        with add-remove by u alone, ‖u‖₁ ≤ k. Both are reached when all k rows leave a cell and enter another.
        """
        return self.rows_per_person * (2 if self.neighbors == "replace-one" else 1)

    @property
    def count_sensitivity(self) -> float:
        """L2 sensitivity Δ, in rows, of one clique's counts.

        Proof. With k rows leaving cells and k rows entering cells (replace-one), the count vector moves by u − v with
        u, v ≥ 0 and ‖u‖₁ ≤ k, ‖v‖₁ ≤ k, so ‖u − v‖₂² ≤ ‖u‖₂² + ‖v‖₂² ≤ 2k²; with k rows added or removed (add-remove)
        it moves by u alone, ‖u‖₂ ≤ k. Both are reached when all k rows share a cell. The joint sensitivity of d cliques
        is √d times as large; paying ρ for each clique separately is equivalent.
        """
        if self.neighbors == "add-remove":
            return float(self.rows_per_person)
        return math.nextafter(math.nextafter(math.sqrt(2), 2) * self.rows_per_person, math.inf)  # never below √2·k
