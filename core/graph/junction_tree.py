"""Junction tree, and the dynamic program that runs on it.

The tree has one clique per column: the column ``v`` and the columns ``given`` that were its neighbours when it was
eliminated (a *bucket tree*, Dechter 1999; Koller & Friedman 2009, chapter 10). The separator to the parent is ``given``
itself. In the upward pass, each clique eliminates its own column and adds the message to its parent; in the downward
pass, each clique is completed from its parent. The semiring defines the meaning of "eliminate":

===========  =====================  ======================  =============================
semiring     up                     kept on the way         down
===========  =====================  ======================  =============================
sum-product  log Σ exp (log space)  p(v | given)            marginals, or one draw per row
max-plus     max                    the best category of v  the most likely row
===========  =====================  ======================  =============================

Because p(v | given) is kept, the downward pass needs no logarithm: p(clique) = p(v | given) p(given). Drawing rows is
ancestral sampling in a Bayesian network with the parents ``given``.

All arrays have their axes in *tree order* (last eliminated first, so that ``v`` is always the last axis and no message
is ever transposed); ``JunctionTree.place`` maps a clique from schema order to tree order.
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
"""Stand-in for −∞ in log space: its exponential is exactly zero, and sums of it stay finite."""


@dataclass(frozen=True)
class Zeros:
    """Public fact that some cells are impossible: no row may be in the cells of ``clique`` where ``mask`` is true.

    ``mask`` has one axis per column of ``clique``.
    """

    clique: Clique
    mask: NDArray[np.bool_]


@dataclass(frozen=True)
class Node:
    """One clique of the tree: the column ``own`` and the columns ``given``, as tree positions.

    ``shape`` has one axis per given column and one for its own column, which is last. ``parent`` is the node that
    contains all of ``given`` (−1 at a root). ``lift`` is the shape in which a message over ``given`` is added to the
    parent's table, and ``drop`` the axes of the parent's table that are summed out to return to ``given``.
    """

    own: int
    given: tuple[int, ...]
    shape: tuple[int, ...]
    parent: int
    lift: tuple[int, ...]
    drop: tuple[int, ...]


@dataclass(frozen=True)
class Place:
    """Place of a clique in a tree.

    ``columns`` are its tree positions in tree order (without columns of one category) and ``shape`` their sizes.
    ``node`` is the node that contains them all (−1 for the empty clique); ``lift`` and ``drop`` are as in `Node`.
    ``outer`` is the shape in the given order of the clique, ``axes`` the transposition from that order.
    """

    columns: tuple[int, ...]
    shape: tuple[int, ...]
    node: int
    lift: tuple[int, ...]
    drop: tuple[int, ...]
    outer: tuple[int, ...]
    axes: tuple[int, ...]

    def inward(self, values: NDArray[np.generic]) -> FloatArray:
        """Return an array with one axis per column of the clique, in its given order, with its axes in tree order."""
        squeezed = np.asarray(values, dtype=np.float64).reshape([n for n in self.outer if n > 1])
        return squeezed.transpose(self.axes)

    def outward(self, values: FloatArray) -> FloatArray:
        """Return the inverse of `inward`, with axes in the given order of the clique, including those of one
        category.
        """
        return values.transpose(np.argsort(self.axes)).reshape(self.outer)


@dataclass(frozen=True)
class JunctionTree:
    """A rooted forest with one node per column of two or more categories, parents before children.

    ``columns[i]`` is the name of node ``i``'s own column; ``sizes`` are the sizes of all columns.
    """

    sizes: Mapping[str, int]
    columns: tuple[str, ...]
    nodes: tuple[Node, ...]
    position: Mapping[str, int] = field(repr=False)

    def place(self, clique: Sequence[str]) -> Place:
        """Return the place of ``clique``. Raises ``LookupError`` if no node contains all of its columns."""
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
        """Return the names of tree positions, in schema order."""
        wanted = {self.columns[c] for c in columns}
        return tuple(name for name in self.sizes if name in wanted)

    def tables(self) -> list[FloatArray]:
        """Return one table of zeros per node."""
        return [np.zeros(node.shape) for node in self.nodes]


def _embed(columns: tuple[int, ...], node: Node) -> tuple[tuple[int, ...], tuple[int, ...]]:
    held = (*node.given, node.own)
    inside = set(columns)
    if not inside <= set(held):
        raise LookupError("no clique of the junction tree contains all of these columns")
    lift = tuple(n if c in inside else 1 for c, n in zip(held, node.shape, strict=True))
    drop = tuple(axis for axis, c in enumerate(held) if c not in inside)
    return lift, drop


def junction_tree(sizes: Mapping[str, int], cliques: Iterable[Clique]) -> JunctionTree:
    """Return the junction tree of the graph in which every clique is complete. No table is allocated."""
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
"""A semiring, as a function table → (message with the last axis eliminated, values to keep for the downward pass)."""


def sum_product(table: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log Σ exp over the last axis, and the conditional distribution of that axis. Overwrite ``table``."""
    peak = np.maximum.reduce(table, axis=-1)
    np.subtract(table, peak[..., None], out=table)
    np.exp(table, out=table)
    mass = np.add.reduce(table, axis=-1)
    np.divide(table, mass[..., None], out=table)
    return peak + np.log(mass), table


def max_plus(table: FloatArray) -> tuple[FloatArray, IndexArray]:
    """Return the maximum over the last axis, and its position."""
    return np.maximum.reduce(table, axis=-1), np.argmax(table, axis=-1)


def max_only(table: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the maximum over the last axis, if only the score is needed."""
    peak = np.maximum.reduce(table, axis=-1)
    return peak, peak


def collect(
    tree: JunctionTree, tables: list[FloatArray], semiring: Eliminate
) -> tuple[float, list[NDArray[np.generic]]]:
    """Return the results of the upward pass: the log partition function (or best score), and the values that each node
    keeps.

    ``tables`` are log potentials, one per node in the node's shape. They are overwritten.
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
    """Return the marginal of every node, summing to ``total``: the downward pass of sum-product."""
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
    """Return the derivative of all nodes' marginals in the direction ``tables`` of the log potentials; overwrites
    ``tables``.

    This is the derivative of sum-product, up and down; ``conditionals`` and ``marginals`` are its results. Each node
    passes up the expectation of its table over its own column, and keeps the remainder, d log p(v | given).
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
    """Return one category per node, with the highest score: the downward pass of max-plus."""
    row: list[int] = []
    for node in tree.nodes:
        row.append(int(choices[node.own][tuple(row[g] for g in node.given)]))
    return row


def cells(tree: JunctionTree) -> int:
    """Return the number of cells in all tables of the tree."""
    return sum(prod(node.shape) for node in tree.nodes)
