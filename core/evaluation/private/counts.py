"""Definition of the counts that are measured on held-out people. It is public, because it follows from the project
alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.evaluation.utility import target_of
from espalier.core.graph.separations import Clique, Separation
from espalier.core.project.file import Project
from espalier.core.project.schema import Column, Schema

BINS = 10
"""Number of bins of a score, for each true value."""
MOST_VALUES = 8
"""Maximum number of target values for an AUC, because each value needs separate counts."""


@dataclass(frozen=True)
class Merged:
    """A column ``name``: the values of ``column`` in ``groups`` of neighbouring ones. Missing cells stay missing."""

    name: str
    column: str
    groups: int

    def codes(self, column: Column) -> NDArray[np.int64]:
        """Return the group of each code."""
        of = np.arange(column.values) * self.groups // column.values
        return np.append(of, self.groups) if column.missing else of


@dataclass(frozen=True)
class HeldOutCounts:
    """Counts to be measured on the held-out part. They are public, because they follow from the project alone.

    ``schema`` has the project's columns, followed by the columns of a classifier's predictions. ``right`` states
    whether the guess was right. For each value of the target, ``tells`` lists its code, a column that states whether
    the target has this value, and a column with the bin of its score. If the target may be missing, ``right`` and the
    columns of the target's values may be missing too; accuracy, AUC and CMI leave such rows out. The error of single
    columns treats a missing cell as an additional value, whose share the synthetic table should also match. ``reasons``
    names the figures that no rows could support. ``coarser`` lists separations with fewer strata, in which some
    admissible columns are replaced by ``merged`` ones. Each step halves the number of groups of the column with the
    most groups (the first, in a tie), until no condition is left. Which of these separations CMI uses depends only on
    the number of held-out rows.
    """

    schema: Schema
    columns: tuple[str, ...]
    target: str | None = None
    right: str = ""
    tells: tuple[tuple[int, str, str], ...] = ()
    separation: Separation | None = None
    reasons: dict[str, str] = field(default_factory=dict)
    coarser: tuple[Separation, ...] = ()
    merged: tuple[Merged, ...] = ()

    @classmethod
    def of(cls, project: Project) -> HeldOutCounts:
        """Return the counts that a project needs."""
        schema, roles = project.schema, project.roles
        columns = tuple(c.name for c in schema.columns if c.size > 1)
        target, reasons = target_of(project), {}
        if target is None or len(schema.columns) == 1:
            why = "there is no target, or no other column to predict it from"
            return cls(schema, columns, reasons=dict.fromkeys(("accuracy", "auc", "cmi"), why))
        made: list[Column] = []

        missing = schema[target].missing

        def add(name: str, values: Sequence[str], missing: bool = False) -> str:
            while name in schema or any(name == c.name for c in made):
                name += "′"
            made.append(Column(name, "ordinal", tuple(values), missing=missing))
            return name

        right = add(f"{target} guessed right", ("no", "yes"), missing)
        labels, tells = schema[target].labels[: schema[target].values], []
        if len(labels) > MOST_VALUES:
            reasons["auc"] = f"{target} has {len(labels)} values; AUC supports at most {MOST_VALUES}"
        else:
            bins = [str(b + 1) for b in range(BINS)]
            for code in [1] if len(labels) == 2 else range(len(labels)):
                is_it = add(f"{target} is {labels[code]}", ("no", "yes"), missing)
                tells.append((code, is_it, add(f"score of {target} is {labels[code]}", bins)))
        sides = schema.clique(roles.outcome), schema.clique(roles.protected), schema.clique(roles.admissible)
        separation = Separation(*sides) if sides[0] and sides[1] else None
        if separation is None:
            reasons["cmi"] = "the project marks no outcome or no protected column"
        coarser, merged = list[Separation](), list[Merged]()
        for asked, one in _coarsened(separation, schema) if separation is not None else ():
            if one is not None:
                numbered = [str(group + 1) for group in range(one.groups)]
                name = add(one.name, numbered, schema[one.column].missing)
                asked = replace(asked, given=tuple(name if x == one.name else x for x in asked.given))
                merged.append(replace(one, name=name))
            coarser.append(asked)
        every = Schema((*schema.columns, *made))
        return cls(every, columns, target, right, tuple(tells), separation, reasons, tuple(coarser), tuple(merged))

    @property
    def conditional(self) -> Clique:
        """Clique that contains all columns of the separation."""
        s = self.separation
        return () if s is None else self.schema.clique((*s.left, *s.right, *s.given))

    @property
    def cells(self) -> int:
        """Number of cells of `conditional`."""
        return math.prod(self.schema[name].size for name in self.conditional)

    def levels(self) -> Iterator[HeldOutCounts]:
        """Yield these counts with each separation that CMI may use, from the project's own to the coarsest."""
        yield self
        for one in self.coarser:
            yield replace(self, separation=one)

    def merging(self, rows: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return the merged columns of some rows. Each is a function of one row at a time."""
        return {one.name: one.codes(self.schema[one.column])[rows[one.column]] for one in self.merged}

    def given(self, names: Sequence[str]) -> str:
        """Return the condition of CMI if it differs from the project's own admissible columns; else an empty string."""
        by = {one.name: one for one in self.merged}
        if self.separation is None or tuple(names) == self.separation.given:
            return ""
        parts = [f"{by[n].column} in {by[n].groups} groups of neighbouring values" if n in by else n for n in names]
        left = [
            n for n in self.separation.given if n not in names and n not in {by[m].column for m in names if m in by}
        ]
        given = f"given {', '.join(parts)}" if parts else "without any condition"
        without = f" (not {', '.join(left)})" if left and parts else ""
        return f"{given}{without}, because there are too few held-out rows for every value of the admissible columns"

    def cliques(self, figure: str) -> list[Clique]:
        """Return the columns counted for a figure."""
        if figure == "auc":
            return [(is_it, score) for _, is_it, score in self.tells]
        if figure == "cmi":
            return [self.conditional]
        return [(name,) for name in self.columns]


def _coarsened(separation: Separation, schema: Schema) -> Iterator[tuple[Separation, Merged | None]]:
    """Yield separations with fewer and fewer strata, each with the merged column that is new, if any."""
    groups = {name: schema[name].values for name in separation.given}
    called = {name: name for name in groups}
    while groups:
        name = max(groups, key=lambda n: groups[n])
        groups[name] = (groups[name] + 1) // 2
        one = None
        if groups[name] > 1:
            one = Merged(f"{name} in {groups[name]} groups", name, groups[name])
            called[name] = one.name
        else:
            del groups[name]
        yield replace(separation, given=tuple(called[n] for n in groups)), one
