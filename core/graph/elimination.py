"""Elimination orders: the order of summing out columns that keeps intermediate tables small.

A set of cliques is a graph (two columns are joined when some clique holds both). Eliminating a column joins
its remaining neighbours to each other; the column and those neighbours form a clique of the junction tree.
Finding the best order is NP-hard; min-fill and min-weight are the usual greedy rules (Koller & Friedman 2009,
section 9.4.3). Both are tried. If the graph without one column is a forest (a star and a tree of the others), the order
with that column last is tried too: it costs no more than the forest's tables times that column, which the greedy rules
can miss. The order with the fewest cells wins, and schema order breaks ties, so a graph always gives the same
tree. Neighbourhoods are bit masks: one Python integer per column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from math import exp, log

from espalier.core.graph.separations import Clique

Bucket = tuple[str, Clique]
"""A column and the neighbours it had when it was eliminated."""


def eliminate(sizes: Mapping[str, int], cliques: Iterable[Clique]) -> list[Bucket]:
    """The buckets of the best elimination order found, first eliminated first.

    Columns with one category are left out: they never cost anything. Every other column of ``sizes`` appears
    once, whether a clique covers it or not. Within a bucket the neighbours keep the order of ``sizes``.
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


def follow(sizes: Mapping[str, int], cliques: Iterable[Clique], order: Sequence[str]) -> list[Bucket]:
    """The buckets of one elimination ``order`` of the columns with two categories or more, without a search."""
    position = {name: i for i, name in enumerate(name for name, size in sizes.items() if size > 1)}
    columns = list(position)
    buckets = _follow(_neighbourhoods(cliques, position), [position[name] for name in order])
    return [(columns[v], tuple(columns[u] for u in _members(mask))) for v, mask in buckets]


def _neighbourhoods(cliques: Iterable[Clique], position: Mapping[str, int]) -> list[int]:
    masks = [0] * len(position)
    for clique in cliques:
        members = [position[name] for name in clique if name in position]
        whole = sum(1 << v for v in members)
        for v in members:
            masks[v] |= whole & ~(1 << v)
    return masks


def _members(mask: int) -> list[int]:
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def _peel(masks: list[int]) -> tuple[list[tuple[int, int]], list[int]]:
    """Eliminate columns with at most one neighbour while there are any: always optimal, and enough for a
    forest. Changes ``masks``; returns the buckets and the columns that remain."""
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
    """Columns without which the graph is a forest: at most four of them, those with fewest categories first."""
    twice = sum(masks[v].bit_count() for v in columns)
    few = [v for v in columns if twice // 2 - masks[v].bit_count() <= len(columns) - 2]
    found: list[int] = []
    for v in sorted(few, key=lambda v: (weights[v], v)):
        without = [mask & ~(1 << v) for mask in masks]
        without[v] = 0
        if len(found) < 4 and not _peel(without)[1]:
            found.append(v)
    return found


def _greedy(start: Sequence[int], columns: Sequence[int], weights: Sequence[float], rule: str) -> list[tuple[int, int]]:
    """One greedy order of ``columns``; scores are kept in a heap and refreshed where the graph changed."""
    masks = list(start)

    def score(v: int) -> tuple[float, float, int]:
        weight = weights[v] + sum(weights[u] for u in _members(masks[v]))
        return (_fill(masks, v), weight, v) if rule == "fill" else (weight, 0.0, v)

    current = {v: score(v) for v in columns}
    heap = list(current.values())
    heapify(heap)
    order: list[tuple[int, int]] = []
    while heap:
        entry = heappop(heap)
        v = entry[2]
        if current.get(v) != entry:
            continue
        del current[v]
        mask = masks[v]
        order.append((v, mask))
        stale, filled = mask, False
        for u in _members(mask):
            joined = (masks[u] | mask) & ~(1 << u) & ~(1 << v)
            filled = filled or (joined & ~masks[u]) != 0
            masks[u] = joined
        if filled and rule == "fill":
            for u in _members(mask):
                stale |= masks[u]
        for u in _members(stale):
            if u in current and (mask >> u & 1 or (masks[u] & mask).bit_count() > 1):
                fresh = score(u)
                if fresh != current[u]:
                    current[u] = fresh
                    heappush(heap, fresh)
    return order


def _follow(start: Sequence[int], order: Sequence[int]) -> list[tuple[int, int]]:
    """The buckets of a given order."""
    masks = list(start)
    buckets = []
    for v in order:
        mask = masks[v]
        buckets.append((v, mask))
        for u in _members(mask):
            masks[u] = (masks[u] | mask) & ~(1 << u) & ~(1 << v)
    return buckets


def _fill(masks: Sequence[int], v: int) -> int:
    """Return the number of edges that eliminating ``v`` would add."""
    mask = masks[v]
    return sum((mask & ~masks[u]).bit_count() - 1 for u in _members(mask)) // 2


def _cells(order: Sequence[tuple[int, int]], weights: Sequence[float]) -> float:
    return sum(exp(min(weights[v] + sum(weights[u] for u in _members(mask)), 700.0)) for v, mask in order)
