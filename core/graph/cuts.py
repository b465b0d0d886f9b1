"""Search for the cheapest set of columns that separates two columns of an undirected graph."""

from __future__ import annotations

import itertools
from collections import defaultdict, deque
from collections.abc import Callable, Iterable

Pair = tuple[str, str]
_End = tuple[str, bool]
"""A column's side: True where paths enter, False where they leave."""

_ENOUGH = 1e-9


def cheapest_cut(
    edges: Iterable[Pair], one: str, other: str, cost: Callable[[str], float] = lambda _: 1.0
) -> tuple[str, ...] | None:
    """Return the columns of smallest total ``cost`` that intersect every path from ``one`` to ``other``, sorted by
    name.

    ``cost`` must be positive; math.inf excludes a column. The result is `None` if no set works because the two are
    linked directly or only through excluded columns. If several cuts have equal cost, the one nearest to ``one`` is
    returned. The method is maximum flow with each column split in two (Even & Tarjan 1975; Edmonds & Karp 1972).
    """
    left: dict[_End, dict[_End, float]] = defaultdict(dict)
    for a, b in edges:
        for x, y in ((a, b), (b, a)):
            left[x, False][y, True] = float("inf")
            left[y, True].setdefault((x, False), 0.0)
    for name in {name for name, _ in left} - {one, other}:
        left[name, True][name, False] = cost(name)
        left[name, False].setdefault((name, True), 0.0)
    source, goal = (one, False), (other, True)
    while True:
        came_from = _reach(left, source, goal)
        if goal not in came_from:
            sides = {name for name, into in came_from if into and (name, False) not in came_from}
            return tuple(sorted(sides - {one, other}))
        walk = [goal]
        while walk[-1] != source:
            walk.append(came_from[walk[-1]])
        steps = [(here, there) for there, here in itertools.pairwise(walk)]
        room = min(left[here][there] for here, there in steps)
        if room == float("inf"):
            return None
        for here, there in steps:
            left[here][there] -= room
            left[there][here] += room


def _reach(left: dict[_End, dict[_End, float]], source: _End, goal: _End) -> dict[_End, _End]:
    """Return the nodes reachable from ``source``, each with its predecessor; stop at ``goal``."""
    came_from = {source: source}
    queue = deque([source])
    while queue:
        at = queue.popleft()
        for other, room in left[at].items():
            if room > _ENOUGH and other not in came_from:
                came_from[other] = at
                if other == goal:
                    return came_from
                queue.append(other)
    return came_from
