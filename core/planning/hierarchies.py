"""What of a hierarchy is told apart: as a plan foresees it, and as a release ended.

A synthetic row carries the code where it was told apart, and else the name of the group: an invented code inside a
group that nobody counted would look like a finding. Whoever needs codes may draw one of the group's, which the released
schema lists.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from espalier.core.privacy.draws import Draw
from espalier.core.project.hierarchy import expected
from espalier.core.project.schema import HierarchyToBuy, Schema

SHOWN = 5
"""Groups that a plan names."""

CARRIED = "Rows carry the code where it is told apart, else the name of its group; no code is made up inside a group."


@dataclass(frozen=True)
class Foreseen:
    """A column with a hierarchy, in a plan: ``codes`` in ``levels``, ``top`` of them and their groups at the top.

    ``sigma`` is the noise of each count in rows. ``divided`` are groups at the top with how many parts they have and
    how many rows, by their noisy count, divide them. ``evenly`` is how many values would be told apart if ``rows`` were
    spread evenly over the codes (None where their number is not known).
    """

    column: str
    codes: int
    levels: int
    top: int
    at_most: int
    sigma: float
    divided: tuple[tuple[str, int, float], ...]
    rows: int | None
    evenly: int | None

    def to_json(self) -> dict[str, Any]:
        """Plain values, for the command line."""
        groups = [{"group": group, "parts": parts, "rows_needed": rows} for group, parts, rows in self.divided]
        return {**vars(self), "divided": groups}

    def __str__(self) -> str:
        text = (
            f"{self.column}: {self.codes:,} codes in {self.levels} level{'s' * (self.levels > 1)}. The {self.top:,} "
            f"codes and groups at the top are told apart, and parts of those with rows enough: {self.at_most:,} values "
            "at most."
        )
        if self.divided:
            listed = "; ".join(f"{group} ({parts} parts) from {rows:,.0f} rows" for group, parts, rows in self.divided)
            text += f" A group is divided where its noisy count is large enough: {listed}."
        if self.evenly is not None:
            text += f" If the {self.rows:,} rows were spread evenly, {self.evenly:,} values would be told apart."
        return f"{text} {CARRIED}"


def foreseen(schema: Schema, draws: Iterable[Draw], rows: int | None) -> tuple[Foreseen, ...]:
    """What ``draws`` of a schema will tell apart of its hierarchies; reads no data."""
    scales = {draw.columns: draw.scale for draw in draws}
    return tuple(_foreseen(c, scales[(c.name,)], rows) for c in schema.hierarchies)


def _foreseen(column: HierarchyToBuy, sigma: float, rows: int | None) -> Foreseen:
    tree = column.tree
    groups = [n for n in tree.children[-1] if len(tree.children.get(n, ())) > 1]
    groups.sort(key=lambda n: -len(tree.children[n]))
    named = [(tree.labels[n], len(tree.children[n]), tree.rows_needed(n, sigma)) for n in groups[:SHOWN]]
    return Foreseen(
        column.name,
        len(tree.texts),
        tree.depth,
        len(tree.children[-1]) - tree.missing,
        column.at_most,
        sigma,
        tuple(named),
        rows,
        None if rows is None else len(expected(tree, rows, sigma, column.size).cut) - tree.missing,
    )


@dataclass(frozen=True)
class ToldApart:
    """A released column with a hierarchy: of ``codes``, ``alone`` are values of their own, the others in ``groups``."""

    column: str
    codes: int
    levels: int
    alone: int
    groups: int

    def to_json(self) -> dict[str, Any]:
        """As it stands in ``release.json``; which code is in which group says the released project's schema."""
        return dict(vars(self))


def told_apart(planned: Schema, released: Schema) -> tuple[ToldApart, ...]:
    """What a release tells apart of the hierarchies of the plan's schema. Made of what was bought: public."""
    return tuple(
        ToldApart(
            c.name,
            len(c.tree.texts),
            c.tree.depth,
            released[c.name].values - len(released[c.name].groups),
            len(released[c.name].groups),
        )
        for c in planned.hierarchies
    )
