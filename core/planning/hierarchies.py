"""Codes of a hierarchy that a plan is expected to distinguish, and codes that a release distinguished.

A synthetic row contains its code if the release distinguished it, and otherwise the name of its group. An invented code
would look like a finding although it was never counted. Users who need codes can draw them from the group's codes in
the released schema.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from espalier.core.privacy.draws import Draw
from espalier.core.project.hierarchy import expected
from espalier.core.project.schema import HierarchyToBuy, Schema

SHOWN = 5
"""Maximum number of groups named in a plan."""

CARRIED = "A row contains its code if that code is distinguished, otherwise the name of its group. No code is invented."


@dataclass(frozen=True)
class Foreseen:
    """A column with a hierarchy, in a plan: ``codes`` in ``levels``, ``top`` codes and groups at the top level.

    ``sigma`` is the noise of each count in rows. ``divided`` are groups at the top, with their number of parts and the
    noisy count at which they are divided. ``evenly`` is the number of values that would be distinguished if
    ``rows`` were spread evenly over the codes (None if ``rows`` is not known).
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
        """Return plain values, for the command line."""
        groups = [{"group": group, "parts": parts, "rows_needed": rows} for group, parts, rows in self.divided]
        return {**vars(self), "divided": groups}

    def __str__(self) -> str:
        text = (
            f"{self.column}: {self.codes:,} codes in {self.levels} level{'s' * (self.levels > 1)}. The {self.top:,} "
            f"codes and groups at the top are distinguished, and so are the parts of those with enough rows: at most "
            f"{self.at_most:,} values."
        )
        if self.divided:
            listed = "; ".join(f"{group} ({parts} parts) from {rows:,.0f} rows" for group, parts, rows in self.divided)
            text += f" A group is divided if its noisy count is large enough: {listed}."
        if self.evenly is not None:
            text += f" If the {self.rows:,} rows were spread evenly, {self.evenly:,} values would be distinguished."
        return f"{text} {CARRIED}"


def foreseen(schema: Schema, draws: Iterable[Draw], rows: int | None) -> tuple[Foreseen, ...]:
    """Return the codes that ``draws`` of a schema will distinguish in its hierarchies. This reads no data."""
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
    """A released column with a hierarchy. Of its ``codes``, ``alone`` are separate values, and the others are in
    ``groups``.
    """

    column: str
    codes: int
    levels: int
    alone: int
    groups: int

    def to_json(self) -> dict[str, Any]:
        """Return the entries of ``release.json``. The released project's schema states the group of each code."""
        return dict(vars(self))


def told_apart(planned: Schema, released: Schema) -> tuple[ToldApart, ...]:
    """Return the codes that a release distinguishes in the hierarchies of the plan's schema. They are public, because
    they come from answers that were paid for.
    """
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
