"""The junction tree, and the one dynamic program that runs on it.

The tree has one clique per column: the column ``v`` and the columns ``given`` it had as neighbours when it was
eliminated (a *bucket tree*, Dechter 1999; Koller & Friedman 2009, chapter 10). The separator to the parent is
``given`` itself. Going up, each clique eliminates its own column and adds the message to its parent; coming
down, each clique is completed by what its parent knows. What "eliminate" means is the semiring:

=============  =======================  ==========================  ==================================
semiring       up                       kept on the way             down
=============  =======================  ==========================  ==================================
sum-product    log Σ exp (log space)    p(v | given)                marginals, or one draw per row
max-plus       max                      the best category of v      the most likely row
=============  =======================  ==========================  ==================================

With p(v | given) kept, the way down needs no logarithm: p(clique) = p(v | given) p(given), and drawing rows is
ancestral sampling in a Bayesian network whose parents are ``given``.

All arrays have their axes in *tree order* (last eliminated first, so that ``v`` is always the last axis and no
message is ever transposed); ``JunctionTree.place`` maps a clique in schema order into it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from espalier.core.graph.elimination import eliminate
from espalier.core.graph.separations import Clique

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]

MAX_CELLS = 10_000_000
"""The default limit on the cells of one clique of the junction tree, and of one answer."""

IMPOSSIBLE = -1e300
"""−∞ in log space: its exponential is exactly zero, and sums of it stay finite."""


@dataclass(frozen=True)
class Zeros:
    """A public structural impossibility: no row may fall into the cells of ``clique`` where ``mask`` is true.

    ``mask`` has one axis per column of ``clique``.
    """

    clique: Clique
    mask: NDArray[np.bool_]


@dataclass(frozen=True)
class Node:
    """One clique of the tree: the column ``own`` and the columns ``given``, as tree positions.

    ``shape`` has one axis per given column and the own one last. ``parent`` is the node that holds all of
    ``given`` (−1 at a root); ``lift`` is the shape in which a message over ``given`` is added to the parent's
    table; ``drop`` the axes of the parent's table that are summed over to get back to ``given``.
    """

    own: int
    given: tuple[int, ...]
    shape: tuple[int, ...]
    parent: int
    lift: tuple[int, ...]
    drop: tuple[int, ...]


@dataclass(frozen=True)
class Place:
    """The place of a clique in a tree.

    ``columns`` are its tree positions in tree order (columns with one category left out) and ``shape`` their
    sizes; ``node`` the node that holds them all (−1 for the empty clique); ``lift`` and ``drop`` as in `Node`.
    ``outer`` is the shape in the order the clique was given, ``axes`` the transposition from there.
    """

    columns: tuple[int, ...]
    shape: tuple[int, ...]
    node: int
    lift: tuple[int, ...]
    drop: tuple[int, ...]
    outer: tuple[int, ...]
    axes: tuple[int, ...]

    def inward(self, values: NDArray[np.generic]) -> FloatArray:
        """An array with one axis per column of the clique as given, in tree order."""
        squeezed = np.asarray(values, dtype=np.float64).reshape([n for n in self.outer if n > 1])
        return squeezed.transpose(self.axes)

    def outward(self, values: FloatArray) -> FloatArray:
        """The inverse of `inward`: axes as in the clique as given, those of one category included."""
        return values.transpose(np.argsort(self.axes)).reshape(self.outer)


@dataclass(frozen=True)
class JunctionTree:
    """A rooted forest with one node per column of two or more categories, parents before children.

    ``columns[i]`` is the name of the column that node ``i`` owns; ``sizes`` are those of all columns.
    """

    sizes: Mapping[str, int]
    columns: tuple[str, ...]
    nodes: tuple[Node, ...]
    position: Mapping[str, int] = field(repr=False)

    def place(self, clique: Sequence[str]) -> Place:
        """Return the place of ``clique``. Raises ``LookupError`` if no node holds all of its columns."""
        names = [name for name in clique if self.sizes[name] > 1]
        spots = [self.position[name] for name in names]
        axes = tuple(sorted(range(len(spots)), key=spots.__getitem__))
        columns = tuple(spots[i] for i in axes)
        node = columns[-1] if columns else -1
        lift, drop = self._within(columns, node)
        shape = tuple(self.sizes[self.columns[c]] for c in columns)
        return Place(columns, shape, node, lift, drop, tuple(self.sizes[name] for name in clique), axes)

    def _within(self, columns: tuple[int, ...], node: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        if node < 0:
            return (), ()
        return _embed(columns, self.nodes[node])

    def names(self, columns: Iterable[int]) -> Clique:
        """The names of tree positions, in schema order."""
        wanted = {self.columns[c] for c in columns}
        return tuple(name for name in self.sizes if name in wanted)

    def tables(self) -> list[FloatArray]:
        """One table of zeros per node."""
        return [np.zeros(node.shape) for node in self.nodes]


def _embed(columns: tuple[int, ...], node: Node) -> tuple[tuple[int, ...], tuple[int, ...]]:
    held = (*node.given, node.own)
    inside = set(columns)
    if not inside <= set(held):
        raise LookupError("no clique of the junction tree holds all of these columns")
    lift = tuple(n if c in inside else 1 for c, n in zip(held, node.shape, strict=True))
    drop = tuple(axis for axis, c in enumerate(held) if c not in inside)
    return lift, drop


def junction_tree(sizes: Mapping[str, int], cliques: Iterable[Clique]) -> JunctionTree:
    """The junction tree of the graph in which every clique is complete. Allocates no table."""
    buckets = eliminate(sizes, cliques)[::-1]
    columns = tuple(name for name, _ in buckets)
    position = {name: i for i, name in enumerate(columns)}
    nodes: list[Node] = []
    for own, (name, neighbours) in enumerate(buckets):
        given = tuple(sorted(position[n] for n in neighbours))
        shape = (*(sizes[columns[g]] for g in given), sizes[name])
        parent = given[-1] if given else -1
        lift, drop = _embed(given, nodes[parent]) if given else ((), ())
        nodes.append(Node(own, given, shape, parent, lift, drop))
    return JunctionTree(dict(sizes), columns, tuple(nodes), position)


Eliminate = Callable[[FloatArray], tuple[FloatArray, NDArray[np.generic]]]
"""A semiring: table → (message with the last axis eliminated, what to keep for the way down)."""


def sum_product(table: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log Σ exp over the last axis, and the conditional distribution of that axis. Overwrites ``table``."""
    peak = np.maximum.reduce(table, axis=-1)
    np.subtract(table, peak[..., None], out=table)
    np.exp(table, out=table)
    mass = np.add.reduce(table, axis=-1)
    np.divide(table, mass[..., None], out=table)
    return peak + np.log(mass), table


def max_plus(table: FloatArray) -> tuple[FloatArray, IndexArray]:
    """The maximum over the last axis, and where it is."""
    return np.maximum.reduce(table, axis=-1), np.argmax(table, axis=-1)


def max_only(table: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The maximum over the last axis, when only the score is wanted."""
    peak = np.maximum.reduce(table, axis=-1)
    return peak, peak


def collect(
    tree: JunctionTree, tables: list[FloatArray], semiring: Eliminate
) -> tuple[float, list[NDArray[np.generic]]]:
    """The way up: log partition function (or best score) and what each node kept.

    ``tables`` are log potentials, one per node in the node's shape; they are overwritten.
    """
    total = 0.0
    kept: list[NDArray[np.generic]] = [np.empty(0)] * len(tables)
    for node in reversed(tree.nodes):
        message, kept[node.own] = semiring(tables[node.own])
        if node.parent < 0:
            total += float(message)
        else:
            above = tables[node.parent]
            np.add(above, message.reshape(node.lift), out=above)
    return total, kept


def distribute(tree: JunctionTree, conditionals: Sequence[FloatArray], total: float = 1.0) -> list[FloatArray]:
    """The way down of sum-product: the marginal of every node, summing to ``total``."""
    marginals: list[FloatArray] = []
    for node, conditional in zip(tree.nodes, conditionals, strict=True):
        if node.parent < 0:
            marginals.append(conditional * total)
            continue
        above = marginals[node.parent]
        if node.drop:
            above = np.add.reduce(above, axis=node.drop)
        marginals.append(conditional * above[..., None])
    return marginals


def derivative(
    tree: JunctionTree, conditionals: Sequence[FloatArray], marginals: Sequence[FloatArray], tables: list[FloatArray]
) -> list[FloatArray]:
    """How fast the marginals of all nodes change when the log potentials do by ``tables``, which are overwritten.

    The derivative of sum-product, up and down (``conditionals`` and ``marginals`` are what it found): each node
    hands up the expectation of its table over its own column and keeps what is left, d log p(v | given).
    """
    for node in reversed(tree.nodes):
        table = tables[node.own]
        message = np.einsum("...v,...v->...", conditionals[node.own], table)
        table -= message[..., None]
        if node.parent >= 0:
            above = tables[node.parent]
            np.add(above, message.reshape(node.lift), out=above)
    changes: list[FloatArray] = []
    for node, conditional, marginal, table in zip(tree.nodes, conditionals, marginals, tables, strict=True):
        np.multiply(marginal, table, out=table)
        if node.parent >= 0:
            above = changes[node.parent]
            if node.drop:
                above = np.add.reduce(above, axis=node.drop)
            table += conditional * above[..., None]
        changes.append(table)
    return changes


def decode(tree: JunctionTree, choices: Sequence[IndexArray]) -> list[int]:
    """The way down of max-plus: one category per node, of the highest score."""
    row: list[int] = []
    for node in tree.nodes:
        row.append(int(choices[node.own][tuple(row[g] for g in node.given)]))
    return row


def cells(tree: JunctionTree) -> int:
    """Return the number of cells in all tables of the tree."""
    return sum(prod(node.shape) for node in tree.nodes)
