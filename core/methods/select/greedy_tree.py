"""Private choice of a spanning tree inside a frame: one loop for MST, PrivCI, PreFair and PRISM's background.

MST (McKenna, Miklau & Sheldon 2021) grows a maximum spanning tree by Kruskal's rule under the exponential
mechanism; PrivCI (Algorithm 1) drops the candidates that would close a path around a separation. Here a frame is
any list of separations, and a step also drops the edges after which no spanning tree inside the frame would remain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from espalier.core.graph.separations import Clique, Separation
from espalier.core.methods.select.allocation import Choices
from espalier.core.privacy.scores import EdgeScore

SEARCH_LIMIT = 300
"""Maximum number of states in a search for a completion; beyond it, the result is "undecided"."""


def choose_tree(
    choices: Choices,
    separations: Sequence[Separation],
    score: EdgeScore,
    among: Sequence[Clique] | None = None,
    linked: Sequence[Clique] = (),
    start: Sequence[Clique] = (),
) -> tuple[list[Clique], float]:
    """Return the edges of a tree (or a forest) and the unspent share of the budget.

    Columns with one category are left out, because it is public that they are independent of all others. ``among`` are
    the pairs that may be edges (by default, all). ``linked`` are pairs that are measured anyway; they belong to the
    frame's graph but not to the tree, and may form loops with it. ``start`` are the tree's initial pairs, which are not
    returned. In each step, the exponential mechanism with ``score`` chooses among the edges that the frame allows. A
    step costs share/(maximum number of steps), or nothing if only one edge remains. Selection releases only the
    choices.
    """
    sizes, share = choices.curator.sizes, choices.share
    named = set(sizes) if among is None else {name for pair in among for name in pair}
    growth = Growth(tuple(sizes), separations, [c for c in sizes if sizes[c] > 1 and c in named], sizes)
    if among is not None:
        growth.keep(among)
    for clique in linked:
        growth.link(clique)
    for pair in start:
        growth.add(pair)
    steps = growth.parts - 1
    if steps < 1:
        return [], share
    chosen: list[Clique] = []
    paid = 0
    few = 2 if choices.curator.takes_first else None
    while candidates := growth.candidates(few):
        if len(candidates) == 1:
            edge = candidates[0]
        else:
            edge = choices.one(score, candidates, steps, "tree edge")
            paid += 1
        growth.add(edge)
        chosen.append(edge)
    return chosen, share * (steps - paid) / steps


def strongest_greedy(
    sizes: Mapping[str, int],
    separations: Sequence[Separation],
    value: Mapping[Clique, float],
    linked: Sequence[Clique] = (),
    start: Sequence[Clique] = (),
) -> list[Clique]:
    """Return the forest that `choose_tree` would grow by always taking the largest ``value``."""
    growth = Growth(tuple(sizes), separations, [c for c in sizes if sizes[c] > 1], sizes)
    growth.keep(value)
    for clique in linked:
        growth.link(clique)
    for pair in start:
        growth.add(pair)
    chosen = []
    while candidates := growth.candidates():
        chosen.append(max(candidates, key=value.__getitem__))
        growth.add(chosen[-1])
    return chosen


class Growth:
    """A forest over columns that grows edge by edge and never violates a separation.

    For every separation, the forest without ``given`` falls into blocks. A block may contain columns of ``left`` or of
    ``right``, but not of both. An edge is allowed if it joins two parts of the forest and if, for every separation, it
    joins no left block to a right block. In addition, a spanning tree inside the frame must still exist afterwards, if
    one existed before and a bounded search can decide this.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        separations: Sequence[Separation],
        columns: Sequence[str] | None = None,
        sizes: Mapping[str, int] | None = None,
    ) -> None:
        """``columns`` (default: all ``names``) are the columns to span; ``sizes`` determine the order of the
        candidates."""
        self._index = {n: i for i, n in enumerate(names)}
        self._columns = np.array(sorted(self._index[c] for c in (names if columns is None else columns)), dtype=np.intp)
        n = len(names)
        self._part = np.arange(n)
        self._gate = np.zeros((len(separations), n), dtype=bool)
        self._block = np.tile(np.arange(n), (len(separations), 1))
        self._side = np.zeros((len(separations), n), dtype=np.int8)  # side of each column's block: 1 left, 2 right
        for i, s in enumerate(separations):
            for bit, members in ((1, s.left), (2, s.right)):
                for name in members:
                    self._side[i, self._index[name]] |= bit
            for name in s.given:
                self._gate[i, self._index[name]] = True
        first, second = np.triu_indices(len(self._columns), 1)
        u, v = self._columns[first], self._columns[second]
        if sizes is not None:  # largest tables first, because a rehearsal shows the largest model
            cells = np.array([sizes[name] for name in names], dtype=np.float64)
            order = np.argsort(-(cells[u] * cells[v]), kind="stable")
            u, v = u[order], v[order]
        for edge in dict.fromkeys(e for s in separations for e in s.links):
            self.link(edge)
        self._u, self._v = u, v
        self._pairs: list[Clique] = [(names[a], names[b]) for a, b in zip(u.tolist(), v.tolist(), strict=True)]
        self._allowed = np.ones(len(u), dtype=bool)
        self._decided: dict[_State, bool | None] = {}
        self.complete: bool | None = None
        """True if a spanning tree inside the frame certainly exists; None if this is not checked yet or undecided."""

    @property
    def parts(self) -> int:
        """Number of trees in the forest."""
        return len(np.unique(self._part[self._columns]))

    def add(self, edge: Clique) -> None:
        """Add ``edge`` to the forest; raises :class:`ValueError` for a loop, or if the frame forbids it."""
        a, b = self._index[edge[0]], self._index[edge[1]]
        if self._part[a] == self._part[b]:
            raise ValueError(f"{edge} would close a loop")
        self.link(edge)
        self._part[self._part == self._part[b]] = self._part[a]

    def keep(self, among: Iterable[Clique]) -> None:
        """Restrict the candidates to the pairs ``among``."""
        kept = set(among)
        self._allowed &= np.array([(a, b) in kept or (b, a) in kept for a, b in self._pairs], dtype=bool)

    def link(self, edge: Clique) -> None:
        """Link ``edge`` in the frame's graph but not in the forest; raises :class:`ValueError` if the frame forbids
        it."""
        a, b = self._index[edge[0]], self._index[edge[1]]
        if self._clash(np.array([a]), np.array([b]))[0]:
            raise ValueError(f"the frame forbids {edge}")
        for i in range(len(self._gate)):
            if not (self._gate[i, a] or self._gate[i, b]):
                merged = (self._block[i] == self._block[i, a]) | (self._block[i] == self._block[i, b])
                self._side[i, merged] |= self._side[i, a] | self._side[i, b]
                self._block[i, merged] = self._block[i, a]

    def link_all(self, edges: Sequence[Clique]) -> bool:
        """`link` all ``edges``, or none if together they would close a path. Return whether they are linked."""
        gate, block, side = self._gate, self._block.copy(), self._side.copy()
        try:
            for edge in edges:
                self.link(edge)
        except ValueError:
            self._gate, self._block, self._side = gate, block, side
            return False
        return True

    def may_link(self, pairs: Sequence[Clique]) -> NDArray[np.bool_]:
        """Return which of ``pairs`` the frame allows in addition to the current links, loops included."""
        if not len(self._gate):
            return np.ones(len(pairs), dtype=bool)
        a, b = (np.array([self._index[pair[end]] for pair in pairs], dtype=np.intp) for end in (0, 1))
        return ~self._clash(a, b)

    def _settle(self) -> None:
        """Drop separations that no edge between the columns can still violate, and check whether a tree exists. If a
        column is in the gate of all remaining separations, a tree always exists, because every column may be linked to
        that column.
        """
        inside = self._columns
        sides = np.where(self._gate[:, inside], 0, self._side[:, inside])
        live = (sides & 1).any(axis=1) & (sides & 2).any(axis=1)
        self._gate, self._block, self._side = self._gate[live], self._block[live], self._side[live]
        easy = not live.any() or bool(self._gate[:, inside].all(axis=0).any())
        self._look_ahead = not easy
        self.complete = easy or self._completable(self._state()) is True

    def candidates(self, most: int | None = None) -> list[Clique]:
        """Return the edges that may be added next, largest marginal first; at most ``most`` of them."""
        if self.complete is None:
            self._settle()
        self._allowed &= self._part[self._u] != self._part[self._v]
        index = np.flatnonzero(self._allowed)
        clash = self._clash(self._u[index], self._v[index])
        self._allowed[index[clash]] = False  # blocks only grow, so a clash is permanent
        index = index[~clash]
        if self.complete and self._look_ahead:
            index = self._keep_completable(index)
        return [self._pairs[i] for i in index[:most].tolist()]

    def _clash(self, a: NDArray[np.intp], b: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return which of the edges (a, b) would join a left block to a right block, for some separation."""
        if not len(self._gate):
            return np.zeros(len(a), dtype=bool)
        free = ~(self._gate[:, a] | self._gate[:, b])
        return np.asarray((free & ((self._side[:, a] | self._side[:, b]) == 3)).any(axis=0))

    def _keep_completable(self, index: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the allowed edges after which a spanning tree can still be completed."""
        components, place = self._components()
        keep = np.zeros(len(index), dtype=bool)
        answers: dict[tuple[_Component, _Class, _Component, _Class], bool] = {}
        for k, e in enumerate(index.tolist()):
            (i, x), (j, y) = place[int(self._u[e])], place[int(self._v[e])]
            key = (components[i], x, components[j], y)
            if key not in answers:
                joined = _join(components[i], x, components[j], y)
                rest = [c for h, c in enumerate(components) if h not in (i, j)]
                answers[key] = joined is not None and self._completable(frozenset([*rest, joined])) is True
            keep[k] = answers[key]
        if len(index) and not keep.any():  # the search is undecided, so continue without it
            self.complete = False
            return index
        return index[keep]

    def _state(self) -> _State:
        return frozenset(self._components()[0])

    def _components(self) -> tuple[list[_Component], dict[int, tuple[int, _Class]]]:
        """Return the forest's trees in canonical form, and the position (tree, class) of each column."""
        trees: dict[int, list[int]] = {}
        for column in self._columns.tolist():
            trees.setdefault(int(self._part[column]), []).append(column)
        components: list[_Component] = []
        place: dict[int, tuple[int, _Class]] = {}
        for columns in trees.values():
            classes = [
                tuple(
                    None if self._gate[i, c] else (int(self._side[i, c]), int(self._block[i, c]))
                    for i in range(len(self._gate))
                )
                for c in columns
            ]
            names = _canonical(classes)
            for column, raw in zip(columns, classes, strict=True):
                place[column] = (len(components), names[raw])
            components.append(frozenset(names.values()))
        return components, place

    def _completable(self, state: _State) -> bool | None:
        """Return whether a spanning tree of the frame contains the forest ``state``; None if the search gave up."""
        if state not in self._decided:
            self._decided[state] = _search(state, self._decided, [SEARCH_LIMIT])
        return self._decided[state]


# A class is, for every separation, None (the column is in the gate) or (side of its block, number of its block);
# columns of one tree that share a class are interchangeable. A component is the set of classes of one tree, a state the
# set of components. Only one of several equal components is kept: if a component C is attached to a spanning tree T by
# an edge (c, w), a twin of C may also be attached by (c′, w), because the blocks of w already have every side of the
# twin.
_Class = tuple[tuple[int, int] | None, ...]
_Component = frozenset[_Class]
_State = frozenset[_Component]


def _canonical(classes: Iterable[_Class]) -> dict[_Class, _Class]:
    """Rename the classes of one tree: blocks are numbered in a fixed order."""
    numbers: dict[tuple[int, int], int] = {}
    new: dict[_Class, _Class] = {}
    for old in sorted(set(classes), key=_order):
        fresh: list[tuple[int, int] | None] = []
        for i, part in enumerate(old):
            if part is None:
                fresh.append(None)
            else:
                fresh.append((part[0], numbers.setdefault((i, part[1]), sum(1 for k in numbers if k[0] == i))))
        new[old] = tuple(fresh)
    return new


def _order(c: _Class) -> tuple[tuple[int, int], ...]:
    return (*((-1, -1) if p is None else (p[0], 0) for p in c), *((-1, -1) if p is None else p for p in c))


def _join(a: _Component, x: _Class, b: _Component, y: _Class) -> _Component | None:
    """Return the tree made by an edge from class ``x`` of ``a`` to class ``y`` of ``b``; None if the frame forbids
    it.
    """
    merged: dict[int, tuple[tuple[int, int], tuple[int, int], tuple[int, int]]] = {}
    for i, (p, q) in enumerate(zip(x, y, strict=True)):
        if p is not None and q is not None:
            if p[0] | q[0] == 3:
                return None
            merged[i] = (p, q, (p[0] | q[0], -1))

    def renamed(c: _Class, second: bool) -> _Class:
        out: list[tuple[int, int] | None] = []
        for i, part in enumerate(c):
            if part is None:
                out.append(None)
            elif i in merged and part == merged[i][second]:
                out.append(merged[i][2])
            else:
                out.append((part[0], 2 * part[1] + second))
        return tuple(out)

    return frozenset(_canonical([*(renamed(c, False) for c in a), *(renamed(c, True) for c in b)]).values())


def _search(state: _State, decided: dict[_State, bool | None], left: list[int]) -> bool | None:
    """Search depth first over the joins of one component. Every spanning tree has an edge at this component, and the
    joins may be made in any order.
    """
    if len(state) == 1:
        return True
    if state in decided and decided[state] is not None:
        return decided[state]
    if left[0] <= 0:
        return None
    left[0] -= 1
    first, *others = sorted(state, key=lambda c: (len(c), sorted(_order(x) for x in c)))
    gave_up = False
    for after in _joins(first, others):
        answer = _search(after, decided, left)
        if answer:
            decided[state] = True
            return True
        gave_up |= answer is None
    if gave_up:
        return None
    decided[state] = False
    return False


def _joins(first: _Component, others: Sequence[_Component]) -> Iterator[_State]:
    for other in others:
        rest = [c for c in others if c is not other]
        seen: set[_Component] = set()
        for x in sorted(first, key=_order):
            for y in sorted(other, key=_order):
                joined = _join(first, x, other, y)
                if joined is not None and joined not in seen:
                    seen.add(joined)
                    yield frozenset([*rest, joined])
