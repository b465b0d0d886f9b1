"""Separations, which make up a frame, and the check that a graph respects them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from espalier.core.errors import GraphError, first_twice

Clique = tuple[str, ...]
"""A marginal's columns, in schema order."""


@dataclass(frozen=True)
class Separation:
    """Requirement that every path from ``left`` to ``right`` in the fitted model's graph pass through ``given``.

    Then left ⊥ right | given holds exactly in the model (global Markov property). The three are disjoint tuples of
    column names in schema order. ``why`` is a reason in plain words, for the screen and the report. ``links`` are pairs
    that public constraints join in every model of the plan, in addition to the measured pairs.

    >>> import espalier as es
    >>> fence = es.Separation(("hired",), ("gender",), given=("interview",))
    >>> fence.holds([("gender", "interview"), ("interview", "hired")])
    True
    >>> fence.holds([("gender", "hired")])
    False
    """

    left: tuple[str, ...]
    right: tuple[str, ...]
    given: tuple[str, ...]
    why: str = ""
    links: tuple[tuple[str, str], ...] = ()

    def holds(self, edges: Iterable[tuple[str, str]]) -> bool:
        """Return whether the undirected graph with these ``edges`` respects the separation."""
        return self.path(edges) is None

    def path(self, edges: Iterable[tuple[str, str]]) -> tuple[str, ...] | None:
        """Return a path from ``left`` to ``right`` that avoids ``given``, or `None` if there is none."""
        blocked, goal = set(self.given), set(self.right)
        around: dict[str, list[str]] = {}
        for a, b in (*self.links, *edges):
            around.setdefault(a, []).append(b)
            around.setdefault(b, []).append(a)
        came_from: dict[str, str | None] = {name: None for name in self.left if name not in blocked}
        queue = list(came_from)
        for name in queue:  # breadth-first search; the list grows during the loop
            if name in goal:
                walk = [name]
                while (before := came_from[walk[-1]]) is not None:
                    walk.append(before)
                return tuple(reversed(walk))
            for other in around.get(name, ()):
                if other not in blocked and other not in came_from:
                    came_from[other] = name
                    queue.append(other)
        return None

    def forbids(self, a: str, b: str) -> bool:
        """Return whether the pair itself is a path from left to right."""
        return (a in self.left and b in self.right) or (b in self.left and a in self.right)

    def check_columns(self, names: Iterable[str]) -> None:
        """Raise :class:`GraphError` unless the columns ``names`` can meet this requirement."""
        known = set(names)
        for side, columns in (("left", self.left), ("right", self.right), ("given", self.given)):
            for column in columns:
                if column not in known:
                    raise GraphError(f"separation: {side} names {column!r}, which is not a column", column=column)
        if not self.left or not self.right:
            raise GraphError("separation: left and right need at least one column each")
        every = [*self.left, *self.right, *self.given]
        if (twice := first_twice(every)) is not None:
            raise GraphError(f"separation: {twice!r} is listed twice; list it once", column=twice)

    def to_json(self) -> dict[str, Any]:
        """Return the separation as ``release.json`` and the project file store it."""
        return {
            "left": list(self.left),
            "right": list(self.right),
            "given": list(self.given),
            "why": self.why,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Separation:
        """Return the separation stored in ``release.json``."""
        return cls(tuple(data["left"]), tuple(data["right"]), tuple(data["given"]), data.get("why", ""))

    @classmethod
    def read(cls, data: Any) -> Separation:
        """Return the separation in the project file; raise :class:`GraphError`."""
        if not isinstance(data, Mapping):
            raise GraphError("each separation must be an object with left, right and given")
        if odd := set(data) - {"left", "right", "given", "why"}:
            raise GraphError(f"separation: unknown key {sorted(odd)[0]!r}; use left, right, given or why")
        for side in ("left", "right", "given"):
            names = data.get(side, [])
            if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
                raise GraphError(f"separation: {side} must be a list of column names")
        if not isinstance(data.get("why", ""), str):
            raise GraphError("separation: why must be text")
        return cls.from_json({"left": [], "right": [], "given": [], **data})


def clique_edges(cliques: Iterable[tuple[str, ...]]) -> tuple[tuple[str, str], ...]:
    """Return all pairs inside the cliques, without repetition. The model is Markov with respect to this graph."""
    pairs = {(a, b): None for c in cliques for i, a in enumerate(c) for b in c[i + 1 :]}
    return tuple(pairs)
