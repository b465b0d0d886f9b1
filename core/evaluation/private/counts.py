"""The counts of the held-out people: public, from the project alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from espalier.core.evaluation.utility import target_of
from espalier.core.graph.separations import Clique, Separation
from espalier.core.project.file import Project
from espalier.core.project.schema import Column, Schema

BINS = 10
"""Number of bins of a score, for each true value."""
MOST_VALUES = 8
"""Largest number of target values for an AUC: each value needs separate counts."""


@dataclass(frozen=True)
class HeldOutCounts:
    """The counts to be measured on the held-out part: public, from the project alone.

    ``schema`` has the project's columns and, after them, those of a classifier's predictions: ``right`` (was the
    guess right?) and for each value of the target in ``tells`` (code, is it that value?, bin of its score).
    If the target may be missing, so may the first two, and accuracy, AUC and CMI leave such rows out. The error of
    single columns counts a missing cell as one more value, whose share the synthetic table should also match.
    ``reasons`` names the figures that are impossible for any rows.
    """

    schema: Schema
    columns: tuple[str, ...]
    target: str | None = None
    right: str = ""
    tells: tuple[tuple[int, str, str], ...] = ()
    separation: Separation | None = None
    reasons: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, project: Project) -> HeldOutCounts:
        """The questions that a project raises."""
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
        return cls(Schema((*schema.columns, *made)), columns, target, right, tuple(tells), separation, reasons)

    @property
    def conditional(self) -> Clique:
        """The clique of the separation."""
        s = self.separation
        return () if s is None else self.schema.clique((*s.left, *s.right, *s.given))

    def cliques(self, figure: str) -> list[Clique]:
        """Return the columns counted for a figure."""
        if figure == "auc":
            return [(is_it, score) for _, is_it, score in self.tells]
        if figure == "cmi":
            return [self.conditional]
        return [(name,) for name in self.columns]
