"""Candidates for the cliques that may be added to a tree, within the frame and the width."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from espalier.core.graph.separations import Clique, Separation
from espalier.core.methods.select.greedy_tree import Growth

MAX_CELLS = 250_000
"""Maximum number of cells in a clique. A fit with several cliques of this size takes seconds, and larger tables have
too few rows per cell.
"""

MOST_ROUNDS = 40
"""Maximum number of further cliques. With more, each would get too little budget to be chosen or measured well."""


def further_cliques(
    sizes: Mapping[str, int],
    cliques: Sequence[Clique],
    separations: Sequence[Separation],
    width: int,
    max_cells: int = MAX_CELLS,
    largest: int | None = None,
) -> list[Clique]:
    """Yield cliques of two to ``width`` + 1 columns, in schema order, that may join the measured ``cliques``.

    ``largest`` is the maximum number of columns in a candidate, if it is below ``width`` + 1.

    The graph of ``cliques`` must be chordal (a forest is) and stays chordal, that is, *decomposable*: a pair (a, b) may
    be linked if their common neighbours, S, separate them, and then S ∪ {a, b} is a clique of the graph (Deshpande,
    Garofalakis & Jordan 2001; Giudici & Green 1999). The largest clique of the model is therefore the largest clique of
    this graph. Its limits, ``width`` + 1 columns and ``max_cells`` cells, are known before anything is measured. A pair
    that would close a path around a separation is not linked.

    The candidates are {a, b}, its unions with subsets of S, and existing cliques of the graph, whose counts may be
    refined. New cliques come first, largest tables first, because a rehearsal takes the first candidate.
    """
    names = [name for name in sizes if sizes[name] > 1]
    values = [sizes[name] for name in names]
    near = _neighbours(names, cliques)
    parts: dict[int, list[int]] = {}
    most = min(width + 1, largest or width + 1)
    held = [(math.prod(values[v] for v in q), q) for q in _inside(near, most)]
    new: dict[tuple[int, ...], int] = {}
    for a, b in _allowed(tuple(sizes), names, near, separations):
        shared = near[a] & near[b]
        if shared.bit_count() >= width:
            continue
        if shared not in parts:
            parts[shared] = _parts(near, shared)
        if parts[shared][a] == parts[shared][b]:
            continue
        others = list(_members(shared))
        if math.prod(values[v] for v in others) * values[a] * values[b] <= max_cells:
            for k in range(min(len(others), most - 2) + 1):
                for some in itertools.combinations(others, k):
                    q = tuple(sorted((a, b, *some)))
                    new[q] = math.prod(values[v] for v in q)
    order = [*sorted((-cells, q) for q, cells in new.items()), *sorted((-cells, q) for cells, q in held)]
    return [tuple(names[v] for v in q) for _, q in order]


def first_new_pair(
    sizes: Mapping[str, int],
    cliques: Sequence[Clique],
    pairs: Sequence[Clique],
    width: int,
    max_cells: int,
    may_link: Callable[[Clique], bool],
) -> Clique | None:
    """Return the first of ``pairs`` that `further_cliques` would yield as a new link.

    Rehearsals of wide tables use this function, because it stops at the first pair.
    """
    names = [name for name in sizes if sizes[name] > 1]
    place = {name: i for i, name in enumerate(names)}
    near = _neighbours(names, cliques)
    parts: dict[int, list[int]] = {}
    for pair in pairs:
        a, b = place[pair[0]], place[pair[1]]
        shared = near[a] & near[b]
        if near[a] >> b & 1 or shared.bit_count() >= width:
            continue
        if shared not in parts:
            parts[shared] = _parts(near, shared)
        cells = sizes[pair[0]] * sizes[pair[1]] * math.prod(sizes[names[v]] for v in _members(shared))
        if parts[shared][a] != parts[shared][b] and cells <= max_cells and may_link(pair):
            return pair
    return None


def rounds(columns: int, width: int, most: int = MOST_ROUNDS) -> int:
    """Return the number of further cliques to choose, at most ``most``. It is the number of links that a graph of this
    width can have in addition to a tree: w·d − w(w + 1)/2 − (d − 1), as in a w-tree.
    """
    w = min(width, columns - 1)
    return min(most, max(0, w * columns - w * (w + 1) // 2 - (columns - 1)))


def _neighbours(names: Sequence[str], cliques: Iterable[Clique]) -> list[int]:
    """Return each column's neighbours, as a bit mask."""
    place = {name: i for i, name in enumerate(names)}
    near = [0] * len(names)
    for clique in cliques:
        for a, b in itertools.combinations([place[name] for name in clique if name in place], 2):
            near[a] |= 1 << b
            near[b] |= 1 << a
    return near


def _allowed(
    every: tuple[str, ...], names: Sequence[str], near: Sequence[int], separations: Sequence[Separation]
) -> Iterator[tuple[int, int]]:
    """Yield the pairs that are not linked yet and close no path around a separation."""
    growth = Growth(every, separations)
    for a, mask in enumerate(near):
        for b in _members(mask >> a << a):
            growth.link((names[a], names[b]))
    first, second = np.triu_indices(len(names), 1)
    fine = growth.may_link([(names[a], names[b]) for a, b in zip(first.tolist(), second.tolist(), strict=True)])
    for a, b in zip(first[fine].tolist(), second[fine].tolist(), strict=True):
        if not near[a] >> b & 1:
            yield a, b


def _parts(near: Sequence[int], without: int) -> list[int]:
    """Return the component of each column after removing the columns ``without``."""
    part = [-1] * len(near)
    for start in range(len(near)):
        waiting = 0 if without >> start & 1 or part[start] >= 0 else 1 << start
        while waiting:
            v = waiting.bit_length() - 1
            waiting &= ~(1 << v)
            part[v] = start
            for u in _members(near[v] & ~without & ~waiting):
                if part[u] < 0:
                    waiting |= 1 << u
    return part


def _inside(near: Sequence[int], most: int) -> list[tuple[int, ...]]:
    """Return all cliques of the graph with two to ``most`` columns."""
    found: list[tuple[int, ...]] = []

    def extend(clique: tuple[int, ...], common: int) -> None:
        for v in _members(common):
            larger = (*clique, v)
            found.append(larger)
            if len(larger) < most:
                extend(larger, common & near[v] & ~((1 << (v + 1)) - 1))

    for a, mask in enumerate(near):
        extend((a,), mask >> (a + 1) << (a + 1))
    return found


def _members(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
