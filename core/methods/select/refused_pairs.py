"""Pairs that a frame refused, and the cost of refusing them, estimated from bought scores."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from espalier.core.graph.separations import Clique, Separation
from espalier.core.methods.select.greedy_tree import Growth
from espalier.core.privacy.draws import ScoreMeasurement


def refused_pairs(sizes: Mapping[str, int], separations: Sequence[Separation], edges: Iterable[Clique]) -> list[Clique]:
    """Return the pairs of columns, in schema order, that would close a path around a separation if they joined
    ``edges``.

    They include pairs that a separation names, and pairs with a column that ``edges`` put on one side. Greedy selection
    refuses no other pairs, because a clash is permanent.
    """
    growth = Growth(tuple(sizes), separations)
    for edge in edges:
        growth.link(edge)
    pairs = list(itertools.combinations([name for name in sizes if sizes[name] > 1], 2))
    may = growth.may_link(pairs)
    return [pair for pair, fine in zip(pairs, may.tolist(), strict=True) if not fine]


@dataclass(frozen=True)
class FenceCost:
    """Cost of the fence to the tree according to the bought noisy scores; q and ``noise`` are in rows.

    ``tree`` is q of the released tree, ``free`` is q of the best tree if refused pairs may join it, and ``swaps`` are
    the refused pairs that would join. ``noise`` is the standard deviation of ``free`` − ``tree``, a difference that is
    biased upward: noise can make a refused pair look strong.
    """

    tree: float
    free: float
    swaps: tuple[Clique, ...]
    noise: float


def fence_cost_of(scores: ScoreMeasurement, edges: Sequence[Clique]) -> FenceCost:
    """Return q (PrivCI §V-B1) of the tree ``edges`` and of the best tree over its edges and the refused pairs.

    If the greedy choices were right, no other pair can be in the best tree of all pairs, because edges at least as
    strong already link the same columns.
    """
    value = dict(zip(scores.cliques, scores.values.tolist(), strict=True))
    best = strongest_tree(value)
    tree = set(edges)
    changed = len(tree ^ set(best))
    return FenceCost(
        sum(value[e] for e in edges),
        sum(value[e] for e in best),
        tuple(e for e in best if e not in tree),
        scores.sigma * changed**0.5,
    )


def strongest_tree(value: Mapping[Clique, float]) -> list[Clique]:
    """Return the spanning forest over the pairs in ``value`` with the largest sum of values (Kruskal)."""
    part: dict[str, str] = {}

    def root(name: str) -> str:
        while part.setdefault(name, name) != name:
            name = part[name]
        return name

    best = []
    for pair in sorted(value, key=lambda p: -value[p]):
        a, b = root(pair[0]), root(pair[1])
        if a != b:
            part[a] = b
            best.append(pair)
    return best
