"""Exact search for the strongest spanning tree inside a frame, by branch and bound over the columns' sides.

PrivCI's Algorithm 1 grows its tree greedily. A frame is not a matroid, so the greedy tree need not be the strongest.
Here, all scores are bought together, and the search is post-processing.

Without a separation's gate (its ``given`` columns), a forest falls into blocks. The frame holds if and only if every
column outside the gate can be assigned to the left or the right side such that the separation's own columns are on
their sides and no edge joins the two sides. Once all sides are assigned, the allowed edges are fixed, and a maximum
spanning forest is optimal. If some columns are undecided, only edges between columns on different sides are excluded,
so the maximum spanning forest is an upper bound. If it respects the frame, it is the best in its branch. Otherwise a
path leads around the gate, some column on it is undecided, and the search branches on that column's side.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from espalier.core.graph.separations import Clique, Separation

LIMIT = 20_000
"""Number of branches after which the best tree so far is returned without a proof."""

Sides = Mapping[tuple[int, str], int]
"""Decided sides, 0 for left and 1 for right, by separation and column."""


@dataclass(frozen=True)
class BestTree:
    """Strongest tree (or forest) found, its ``value``, and a ``bound`` on the value of any tree inside the frame. Both
    are equal if the search was completed.
    """

    edges: tuple[Clique, ...]
    value: float
    bound: float

    @property
    def proved(self) -> bool:
        """True if the search proved that no tree inside the frame is stronger."""
        return self.value >= self.bound


def best_tree(
    value: Mapping[Clique, float],
    separations: Sequence[Separation],
    start: Sequence[Clique] = (),
    greedy: Sequence[Clique] = (),
    limit: int = LIMIT,
) -> BestTree:
    """Return the spanning forest over the pairs in ``value`` with the most edges, and among these the largest sum.

    ``start`` are its initial pairs, which must respect the frame and are not returned. ``greedy`` is a forest
    inside the frame, which is returned if the search finds nothing better within ``limit`` branches.
    """
    sides = {(i, n): side for i, s in enumerate(separations) for side in (0, 1) for n in (s.left, s.right)[side]}
    best = (len(greedy), sum(value[e] for e in greedy)), tuple(greedy)
    order = itertools.count()
    pairs = sorted(value, key=lambda p: -value[p])
    queue = [_branch(pairs, value, separations, start, sides, next(order))]
    for _ in range(limit):
        if not queue:
            break
        (edges_less, value_less), _, decided, tree = heapq.heappop(queue)
        if (-edges_less, -value_less) <= best[0]:  # the queue is ordered by bound
            queue = []
            break
        undecided = _around(tree, separations, start, decided)
        if undecided is None:
            best, queue = ((-edges_less, -value_less), tree), []
            break
        if undecided:
            for side in (0, 1):
                more = {**decided, undecided: side}
                queue.append(_branch(pairs, value, separations, start, more, next(order)))
            heapq.heapify(queue)
    bound = max([best[0], *((-a, -b) for (a, b), *_ in queue)])
    return BestTree(best[1], best[0][1], bound[1] if bound[0] == best[0][0] else float("inf"))


_Node = tuple[tuple[int, float], int, Sides, tuple[Clique, ...]]


def _branch(
    pairs: Sequence[Clique],
    value: Mapping[Clique, float],
    separations: Sequence[Separation],
    start: Sequence[Clique],
    sides: Sides,
    number: int,
) -> _Node:
    """Return a branch: its bound (negated, which puts the largest first), a number, the sides and the forest."""
    part: dict[str, str] = {}

    def root(name: str) -> str:
        while part.setdefault(name, name) != name:
            name = part[name]
        return name

    for a, b in start:
        part[root(a)] = root(b)
    tree = []
    for a, b in pairs:
        if root(a) == root(b):
            continue
        if all(
            sides.get((i, a), side) == side for i in range(len(separations)) if (side := sides.get((i, b))) is not None
        ):
            part[root(a)] = root(b)
            tree.append((a, b))
    return (-len(tree), -sum(value[e] for e in tree)), number, sides, tuple(tree)


def _around(
    tree: Sequence[Clique], separations: Sequence[Separation], start: Sequence[Clique], sides: Sides
) -> tuple[int, str] | tuple[()] | None:
    """Return the next column to decide: an undecided column on a path around a gate. `None` if there is no path, ``()``
    if all columns on the path are decided.
    """
    for i, separation in enumerate(separations):
        if path := separation.path([(a, b) for a, b in (*start, *tree)]):
            return next(((i, name) for name in path if (i, name) not in sides), ())
    return None
