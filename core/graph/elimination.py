"""Search for elimination orders that keep intermediate tables small. A set of cliques is a graph, in which two columns
are joined if some clique contains both. Eliminating a column joins its remaining neighbours to each other. The column
and those neighbours form a clique of the junction tree. Finding the best order is NP-hard; min-fill and min-weight are
the usual greedy rules (Koller & Friedman 2009, section 9.4.3). Both are tried. If the graph without one column is a
forest (a star and a tree of the others), the order with that column last is tried too. Its tables have at most as many
cells as the forest's tables times that column's categories, and the greedy rules can miss it. The order with the fewest
cells wins, and schema order breaks ties, so a graph always gives the same tree. Neighbourhoods are bit masks: one
Python integer per column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from heapq import heapify, heappop, heappush
from math import exp, log, prod

from espalier.core.graph.separations import Clique

Bucket = tuple[str, Clique]
"""A column and its neighbours when it was eliminated."""


def eliminate(sizes: Mapping[str, int], cliques: Iterable[Clique]) -> list[Bucket]:
    """Return the buckets of the best elimination order found, in the order of elimination.

    Columns with one category are left out, because they do not enlarge any table. Every other column of ``sizes``
    appears once, even if no clique covers it. Within a bucket the neighbours keep the order of ``sizes``.
    """
    columns = [name for name, size in sizes.items() if size > 1]
    position = {name: i for i, name in enumerate(columns)}
    masks = _neighbourhoods(cliques, position)
    weights = [log(sizes[name]) for name in columns]
    peeled, rest = _peel(masks)
    found = [_greedy(masks, rest, weights, rule) for rule in ("fill", "weight")]
    for hub in _hubs(masks, rest, weights):
        without = [mask & ~(1 << hub) for mask in masks]
        forest = _greedy(without, [v for v in rest if v != hub], weights, "fill")
        found.append(_follow(masks, [*(v for v, _ in forest), hub]))
    best = min(found, key=lambda order: _cells(order, weights))
    return [(columns[v], tuple(columns[u] for u in _members(mask))) for v, mask in peeled + best]


class Order:
    """One elimination order, and the ``cells`` of its buckets' tables. Cliques can be added to the graph without a new
    search.

    Columns are numbered in the order of elimination. The lowest neighbour in a bucket is therefore the next of these
    neighbours to be eliminated, and its own bucket contains the others. A new neighbour moves up that path until a
    bucket contains it.
    """

    def __init__(self, sizes: Mapping[str, int], buckets: Sequence[Bucket]) -> None:
        self._place = {own: v for v, (own, _) in enumerate(buckets)}
        self._sizes = [sizes[own] for own, _ in buckets]
        self._masks = [sum(1 << self._place[name] for name in given) for _, given in buckets]
        self.cells = [sizes[own] * prod(sizes[name] for name in given) for own, given in buckets]

    def joined(self, clique: Clique) -> Order:
        """Return this order for the graph with ``clique`` added."""
        other = copy(self)
        other._masks, other.cells = list(self._masks), list(self.cells)
        members = sorted(self._place[name] for name in clique if name in self._place)
        for i, v in enumerate(members):
            other._add(v, sum(1 << u for u in members[i + 1 :]))
        return other

    def _add(self, v: int, neighbours: int) -> None:
        while new := neighbours & ~self._masks[v]:
            self.cells[v] *= prod(self._sizes[u] for u in _members(new))
            self._masks[v] |= new
            first = self._masks[v] & -self._masks[v]
            neighbours = self._masks[v] ^ first
            v = first.bit_length() - 1


def _neighbourhoods(cliques: Iterable[Clique], position: Mapping[str, int]) -> list[int]:
    masks = [0] * len(position)
    for clique in cliques:
        members = [position[name] for name in clique if name in position]
        whole = 0
        for v in members:
            whole |= 1 << v
        for v in members:
            masks[v] |= whole
    return [mask & ~(1 << v) for v, mask in enumerate(masks)]


def _members(mask: int) -> list[int]:
    if mask.bit_count() > 8:
        return [v for v, bit in enumerate(bin(mask)[:1:-1]) if bit == "1"]
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def _peel(masks: list[int]) -> tuple[list[tuple[int, int]], list[int]]:
    """Eliminate columns with at most one neighbour until none is left. This is always optimal, and eliminates a whole
    forest. Changes ``masks``; returns the buckets and the columns that remain.
    """
    order: list[tuple[int, int]] = []
    gone = [False] * len(masks)
    waiting = [v for v in range(len(masks) - 1, -1, -1) if masks[v].bit_count() <= 1]
    while waiting:
        v = waiting.pop()
        if gone[v]:
            continue
        gone[v] = True
        order.append((v, masks[v]))
        if masks[v]:
            u = masks[v].bit_length() - 1
            masks[u] &= ~(1 << v)
            if masks[u].bit_count() == 1:
                waiting.append(u)
    return order, [v for v in range(len(masks)) if not gone[v]]


def _hubs(masks: Sequence[int], columns: Sequence[int], weights: Sequence[float]) -> list[int]:
    """Return up to four columns, those with the fewest categories first, each of which leaves a forest when it is
    removed.
    """
    twice = sum(masks[v].bit_count() for v in columns)
    few = [v for v in columns if twice // 2 - masks[v].bit_count() <= len(columns) - 2]
    found: list[int] = []
    for v in sorted(few, key=lambda v: (weights[v], v)):
        without = [mask & ~(1 << v) for mask in masks]
        without[v] = 0
        if len(found) < 4 and not _peel(without)[1]:
            found.append(v)
    return found


SLACK = 1e-6
"""A bound on the rounding error of a weight that is updated by additions and subtractions."""


def _greedy(start: Sequence[int], columns: Sequence[int], weights: Sequence[float], rule: str) -> list[tuple[int, int]]:
    """Return one greedy order of ``columns``: each step takes the column with the smallest (fill, weight, position).

    The heap contains lower bounds of the weights. A weight is summed exactly only when its bound is the smallest, so a
    column with many neighbours, whose weight changes at nearly every step, takes little time.
    """
    masks, by_fill = list(start), rule == "fill"
    fills = {v: _fill(masks, v) if by_fill else 0 for v in columns}
    about = {v: _weight(masks, v, weights) for v in columns}
    exact: dict[int, float | None] = dict(about)

    def entry(v: int) -> tuple[int, float, int]:
        weight = exact[v]
        return fills[v], about[v] - SLACK if weight is None else weight, v

    current = {v: entry(v) for v in columns}
    heap = list(current.values())
    heapify(heap)
    order: list[tuple[int, int]] = []
    while heap:
        least = heappop(heap)
        v = least[2]
        if current.get(v) != least:
            continue
        if exact[v] is None:
            about[v] = exact[v] = _weight(masks, v, weights)
            current[v] = entry(v)
            heappush(heap, current[v])
            continue
        del current[v]
        order.append((v, masks[v]))
        around = [(u, masks[u]) for u in _members(masks[v])]
        if by_fill:
            stale = _remove(masks, v, fills)
        else:
            stale = masks[v]
            _join(masks, v)
        for u, before in around:
            about[u] += sum(weights[w] for w in _members(masks[u] & ~before)) - weights[v]
            exact[u] = None
        for u in _members(stale):
            fresh = entry(u)
            if fresh != current[u]:
                current[u] = fresh
                heappush(heap, fresh)
    return order


def _remove(masks: list[int], v: int, fills: dict[int, int]) -> int:
    """Eliminate ``v`` as `_join` does and keep ``fills`` up to date; return the affected columns.

    ``fills`` count the pairs of a column's neighbours that are not joined. A new edge joins one such pair of each
    common neighbour of its ends, and gives each end a neighbour.
    """
    mask = stale = masks[v]
    for u in _members(mask):
        masks[u] &= ~(1 << v)
        fills[u] -= (masks[u] & ~mask).bit_count()
    for a in _members(mask):
        for b in _members((mask & ~masks[a]) >> (a + 1) << (a + 1)):
            both = masks[a] & masks[b]
            for w in _members(both):
                fills[w] -= 1
            fills[a] += (masks[a] & ~both).bit_count()
            fills[b] += (masks[b] & ~both).bit_count()
            masks[a] |= 1 << b
            masks[b] |= 1 << a
            stale |= both
    return stale


def _join(masks: list[int], v: int) -> None:
    """Eliminate ``v``: join its neighbours to each other and remove it."""
    mask = masks[v]
    for u in _members(mask):
        masks[u] = (masks[u] | mask) & ~(1 << u) & ~(1 << v)


def _follow(start: Sequence[int], order: Sequence[int]) -> list[tuple[int, int]]:
    """Return the buckets of a given order."""
    masks = list(start)
    buckets = []
    for v in order:
        buckets.append((v, masks[v]))
        _join(masks, v)
    return buckets


def _fill(masks: Sequence[int], v: int) -> int:
    """Return the number of edges that eliminating ``v`` would add."""
    mask = masks[v]
    return sum((mask & ~masks[u]).bit_count() - 1 for u in _members(mask)) // 2


def _weight(masks: Sequence[int], v: int, weights: Sequence[float]) -> float:
    return weights[v] + sum(weights[u] for u in _members(masks[v]))


def _cells(order: Sequence[tuple[int, int]], weights: Sequence[float]) -> float:
    return sum(exp(min(weights[v] + sum(weights[u] for u in _members(mask)), 700.0)) for v, mask in order)
