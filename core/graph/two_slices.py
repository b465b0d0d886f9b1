"""Separations over people and all their visits: the arrows that they allow, and the certificate that they hold.

The generator of linked tables is a chain graph. Its first block is undirected: the columns of a person, the number of
visits and the first visit. A directed network then draws one visit after another, each from the person and the two
previous visits. A separation of this graph holds exactly in the tables drawn from it: left ⊥ right | given holds if
`given` separates the two in the moral graph of their ancestors (Lauritzen 1996, Proposition 3.27).

A separation of a project, (left, right, given), promises the following for every visit t: the left columns of the
person and of visit t are independent of the right columns of the person and of all visits up to t, conditional on the
``given`` columns of the person and of all visits up to t. If only the columns of visit t were given, paths through
earlier visits would stay open.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from espalier.core.graph.separations import Separation

Arc = tuple[str, str]
"""A column of the person or of an earlier visit (or the number of visits), and the column of this visit to which it
leads.
"""


@dataclass(frozen=True)
class TwoSlices:
    """Columns of linked tables: ``person`` with the number of visits, ``first`` for the first visit, ``steps`` for
    each later visit. At most ``visits`` visits are kept.
    """

    person: tuple[str, ...]
    number: str
    first: tuple[str, ...]
    steps: tuple[str, ...]
    visits: int
    drawn: tuple[tuple[str, str], ...] = ()
    """Drawn arrows within a visit and from one visit to the next, by the names of their columns."""

    def red(self, separation: Separation, also: Iterable[str] = ()) -> frozenset[str]:
        """Return the *red* columns, which may depend on ``separation.right`` even given the columns
        ``separation.given``.

        They are the right columns, ``also``, and the columns that these lead to in the drawing. Paths end at given and
        left columns.
        """
        stop = {*separation.given, *separation.left, self.number}
        found = list(dict.fromkeys([*separation.right, *(name for name in also if name not in stop)]))
        for name in found:  # grows during the loop
            found += [b for a, b in self.drawn if a == name and b not in stop and b not in found]
        return frozenset(found)

    def widened(self, separation: Separation, also: Iterable[str] = ()) -> Separation:
        """Return the separation of the first block that the whole panel needs: red columns against all others.

        The number of visits is among the others. Otherwise the promise would hold at each visit that exists, but not
        for all visits pooled.
        """
        red = self.red(separation, also)
        names = (*self.person, *self.first)
        right = tuple(name for name in names if name in red)
        left = tuple(name for name in names if name not in red and name not in separation.given)
        why = f"{separation.why}; at every visit, given the values at all visits up to that visit"
        return Separation(left, right, separation.given, why)

    def allows(self, separation: Separation, parent: str, child: str) -> bool:
        """Return whether a ``widened`` separation allows an arc from ``parent`` to ``child``, for any visits of the
        two.

        A red column leads only to red columns, and only red and given columns lead to it.
        """
        if child in separation.right:
            return parent in separation.right or parent in separation.given
        return parent not in separation.right


@dataclass(frozen=True)
class Unrolled:
    """Whole generator: the links of its first block, and the parents of each column of a step.

    ``within``, ``before`` and ``earlier`` contain arcs from this visit, the previous visit and the visit before that;
    ``whole`` contains arcs from the person.
    """

    slices: TwoSlices
    block: Sequence[tuple[str, str]]
    whole: Sequence[Arc] = ()
    within: Sequence[Arc] = ()
    before: Sequence[Arc] = ()
    earlier: Sequence[Arc] = ()

    def name(self, column: str, visit: int) -> str:
        """Return the node of a column at a visit, counted from 1. A person's column has one node."""
        return column if column in self.slices.person else f"{column} at visit {visit}"

    def parents(self, column: str, visit: int) -> list[str]:
        """Return the parents of a column of a visit after the first. The number of visits is one of them, because it
        determines whether the visit exists.
        """
        arcs = [(self.whole, visit), (self.within, visit), (self.before, visit - 1), (self.earlier, visit - 2)]
        found = [self.name(a, at) for some, at in arcs for a, b in some if b == column and self._exists(a, at)]
        return [*dict.fromkeys(found)]

    def _exists(self, column: str, visit: int) -> bool:
        names = self.slices.first if visit == 1 else self.slices.steps
        return column in self.slices.person or (visit >= 1 and column in names)

    def path(self, separation: Separation) -> tuple[str, ...] | None:
        """Return a path that violates ``separation`` at some visit; `None` if it holds at every visit."""
        for visit in range(1, self.slices.visits + 1):
            if found := self._path(separation, visit):
                return found
        return None

    def _path(self, separation: Separation, visit: int) -> tuple[str, ...] | None:
        def nodes(columns: Iterable[str], visits: Iterable[int]) -> list[str]:
            every = [(c, at) for c in columns for at in visits if self._exists(c, at)]
            return [*dict.fromkeys(self.name(c, at) for c, at in every)]

        up_to = range(1, visit + 1)
        left, right, given = (
            nodes(separation.left, [visit]),
            nodes(separation.right, up_to),
            nodes(separation.given, up_to),
        )
        if not left or not right:
            return None
        return Separation(tuple(left), tuple(right), tuple(given)).path(self._moral([*left, *right, *given]))

    def _moral(self, of: Iterable[str]) -> list[tuple[str, str]]:
        """Return the edges of the moral graph of some nodes' ancestors, which include the whole first block."""
        slices = self.slices
        first = {self.name(c, 1) for c in (*slices.person, *slices.first)}
        edges = [(self.name(a, 1), self.name(b, 1)) for a, b in self.block]
        parents = {self.name(c, t): self.parents(c, t) for t in range(2, slices.visits + 1) for c in slices.steps}
        seen, queue = set(of), [name for name in dict.fromkeys(of) if name not in first]
        for node in queue:  # grows during the loop
            above = parents[node]
            edges += [(p, node) for p in above]
            edges += [(p, q) for i, p in enumerate(above) for q in above[i + 1 :]]
            queue += [p for p in above if p not in first and p not in seen]
            seen.update(above)
        return edges


def largest(slices: TwoSlices, separations: Sequence[Separation]) -> Unrolled:
    """Return the generator with every link and arc that ``separations`` (widened) allow. Every generator with fewer
    arcs has the same separations, because its moral graphs have fewer edges.
    """
    names = (*slices.person, *slices.first)

    def linked(a: str, b: str) -> bool:
        return not any((a in s.right and b in s.left) or (a in s.left and b in s.right) for s in separations)

    def may(parent: str, child: str) -> bool:
        return all(slices.allows(s, parent, child) for s in separations)

    block = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :] if linked(a, b)]
    steps, order = slices.steps, drawing_order(slices.steps, separations)
    past = [(a, b) for a in steps for b in steps if may(a, b)]
    within = [(a, b) for i, a in enumerate(order) for b in order[i + 1 :] if may(a, b)]
    whole = [(a, b) for a in slices.person for b in steps if may(a, b)]
    return Unrolled(slices, block, whole, within, past, past)


def drawing_order(columns: Iterable[str], separations: Sequence[Separation]) -> tuple[str, ...]:
    """Return the columns of a visit with red columns last: other columns may lead to red columns, never the reverse."""
    return tuple(sorted(columns, key=lambda name: any(name in s.right for s in separations)))
