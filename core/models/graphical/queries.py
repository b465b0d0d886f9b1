"""Marginals of columns that share no clique, computed by variable elimination (multiply and sum, one column at a time).

A fitted model is a product of conditional distributions p(v | given), one per node of its junction tree. Only the nodes
between the wanted columns and the root matter, because all nodes below sum to one. Variable elimination (Koller &
Friedman 2009, section 9.3) runs in plain probabilities, which is safe here because every factor is a distribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from string import ascii_letters

import numpy as np

from espalier.core.graph.junction_tree import FloatArray, JunctionTree
from espalier.core.models.graphical.size import too_large


@dataclass(frozen=True)
class Factor:
    """A table with one axis for each tree position in ``columns``."""

    columns: tuple[int, ...]
    table: FloatArray


def joint(
    tree: JunctionTree,
    conditionals: Sequence[FloatArray],
    wanted: Sequence[int],
    limit: int,
) -> FloatArray:
    """Return the joint distribution of the tree positions ``wanted`` (sorted), with axes in that order.

    ``conditionals`` belong to the calibrated tree. Raises `SizeError` if the answer or an intermediate table would have
    more than ``limit`` cells.
    """
    target = tuple(wanted)
    _check(tree, target, limit, "This marginal")
    needed: set[int] = set()
    waiting = list(target)
    while waiting:
        c = waiting.pop()
        if c not in needed:
            needed.add(c)
            waiting.extend(tree.nodes[c].given)
    factors = [Factor((*tree.nodes[c].given, c), conditionals[c]) for c in sorted(needed)]
    hidden = needed - set(target)
    while hidden:
        column = min(hidden, key=lambda c: (_cost(tree, factors, c), -c))
        hidden.discard(column)
        touching = [factor for factor in factors if column in factor.columns]
        factors = [factor for factor in factors if column not in factor.columns]
        union = _union(touching, without=column)
        _check(tree, union, limit, "Computing this marginal")
        factors.append(_product(touching, union))
    return _product(factors, target).table


def _union(factors: Sequence[Factor], without: int = -1) -> tuple[int, ...]:
    return tuple(sorted({c for factor in factors for c in factor.columns} - {without}))


def _cost(tree: JunctionTree, factors: Sequence[Factor], column: int) -> int:
    touching = [factor for factor in factors if column in factor.columns]
    return prod(tree.sizes[tree.columns[c]] for c in _union(touching))


def _product(factors: Sequence[Factor], keep: tuple[int, ...]) -> Factor:
    """Return the product of the factors, summed over every column that is not in ``keep``."""
    if not factors:
        return Factor((), np.ones(()))
    held, *rest = sorted(factors, key=lambda factor: factor.table.size)
    for i, factor in enumerate(rest):
        union = _union((held, factor))
        out = union if i + 1 < len(rest) else keep
        letter = dict(zip(union, ascii_letters, strict=False))
        first, second, result = ("".join(letter[c] for c in part) for part in (held.columns, factor.columns, out))
        table = np.einsum(f"{first},{second}->{result}", held.table, factor.table, optimize=True)
        held = Factor(out, table)
    dropped = tuple(axis for axis, c in enumerate(held.columns) if c not in keep)
    return Factor(keep, np.add.reduce(held.table, axis=dropped)) if dropped else held


def _check(tree: JunctionTree, columns: tuple[int, ...], limit: int, what: str) -> None:
    if prod(tree.sizes[tree.columns[c]] for c in columns) > limit:
        raise too_large(tree.sizes, tree.names(columns), limit, what)
