"""Explanation of why two columns of a released model are linked, or are not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from espalier.core.graph.separations import Separation


@dataclass(frozen=True)
class Link:
    """Relation of columns ``a`` and ``b`` in the graph of measured cliques.

    ``path`` is a shortest path between them, or empty; for two columns that were measured together it is the pair.
    ``refused`` is the separation that forbids measuring them together, and ``around`` is the path from its left to its
    right side that the pair would open. They are `None` and empty if nothing forbids the pair. ``gate`` are the columns
    of ``path`` through which a separation allows the two to be linked.
    """

    a: str
    b: str
    path: tuple[str, ...]
    refused: Separation | None = None
    around: tuple[str, ...] = ()
    gate: tuple[str, ...] = ()

    @property
    def together(self) -> bool:
        """True if the two columns were measured together."""
        return len(self.path) == 2

    def sentence(self, show: Callable[[str], str] = str) -> str:
        """Return the answer as a sentence; ``show`` formats a column's name."""
        a, b = show(self.a), show(self.b)
        line = " – ".join(map(show, self.path))
        if self.together:
            return (
                f"{a} and {b} were measured together, so any link between them in the real table may appear directly."
            )
        if self.refused is None:
            start = f"The frame allows measuring {a} and {b} together, but other pairs were chosen first"
            if not self.path:
                return f"{start}, and no path of measured pairs connects them, so the table shows no link between them."
            through = ", ".join(map(show, self.path[1:-1]))
            return f"{start}. They are linked only through {through}: {line}."
        gate = ", ".join(map(show, self.refused.given))
        walk = " – ".join(map(show, self.around))
        direct = self.around in ((self.a, self.b), (self.b, self.a))
        why = (
            f"{a} and {b} are not measured together: the frame forbids the pair"
            if direct
            else f"{a} and {b} are not measured together: the pair would open the path {walk}"
            + (f", which avoids {gate}" if gate else "")
        )
        sides = f"{_names(self.refused.left, show)} and {_names(self.refused.right, show)}"
        rule = f"{sides} may be linked only through {gate}" if gate else f"nothing may link {sides}"
        if not self.path:
            return f"{why}; {rule}. No path connects them, so the table shows no link between them."
        if self.gate:
            return f"{why}; {rule}. Any link between them runs through {_names(self.gate, show)}: {line}."
        return f"{why}; {rule}. Any link between them runs along {line}."


def link_of(a: str, b: str, edges: Iterable[tuple[str, str]], separations: Sequence[Separation]) -> Link:
    """Return the relation of ``a`` and ``b`` in the graph of ``edges`` under ``separations``."""
    edges = list(edges)
    path = Separation((a,), (b,), ()).path(edges) or ()
    if len(path) == 2:
        return Link(a, b, path)
    for s in separations:
        around = s.path([*edges, (a, b)])
        if around is not None and s.holds(edges):
            return Link(a, b, path, s, around, tuple(n for n in path if n in s.given))
    return Link(a, b, path)


def _names(names: Sequence[str], show: Callable[[str], str]) -> str:
    return ", ".join(map(show, names))


def sides(columns: Iterable[str], edges: Iterable[tuple[str, str]], separation: Separation) -> dict[str, str]:
    """Return each column's side: "left", "right", "gate", or "free" (linked to neither side except through the gate).

    A column is on a side if a path that avoids the gate links it to one of the side's columns.
    """
    edges = list(edges)
    out = {}
    for name in columns:
        if name in separation.given:
            out[name] = "gate"
        elif Separation((name,), separation.left, separation.given).path(edges):
            out[name] = "left"
        elif Separation((name,), separation.right, separation.given).path(edges):
            out[name] = "right"
        else:
            out[name] = "free"
    return out
