"""Sampling of rows from a fitted model, one column at a time and parents first.

Plain sampling is exact: every row is an independent draw from the model.

Rounded sampling spreads the rows over the categories as evenly as whole numbers allow. The rows that share the same
values of ``given`` are a group of n_s rows; category v gets ⌊n_s p(v|s)⌋ of them or one more, and a fresh random
permutation decides which rows. The expected count of every cell is therefore the model's. A measured pair is off by
about one row per cell instead of √count. Two columns that depend on the same parent stay independent given this parent,
because each is shuffled separately within the group. Counts vary less between tables than with independent rows. This
matters when several tables are combined, or when a variance is computed from one table. (A rounding that assigns
categories to two such columns in the *same* order couples them. In mbi before 2.0, their total variation was 0.6,
compared with 0.001 in the model.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.graph.junction_tree import FloatArray, JunctionTree, Node
from espalier.core.progress import Report

Codes = NDArray[np.unsignedinteger]


def draw_rows(
    tree: JunctionTree,
    conditionals: Sequence[FloatArray],
    n: int,
    rng: np.random.Generator,
    *,
    even: bool = False,
    report: Report | None = None,
) -> dict[str, Codes]:
    """Return ``n`` rows as one array of codes per column, in schema order, in the smallest unsigned type.

    ``conditionals`` are p(v | given) per node of the calibrated tree.
    """
    drawn: list[Codes] = []
    for node, conditional in zip(tree.nodes, conditionals, strict=True):
        if report is not None:
            report(node.own / len(tree.nodes), f"Drawing {tree.columns[node.own]}")
        group = _groups(node, drawn)
        table = conditional.reshape(-1, node.shape[-1])
        codes = _spread(table, group, n, rng) if even else _draw(table, group, n, rng)
        drawn.append(codes.astype(_code_type(node.shape[-1])))
    if report is not None:
        report(1.0, "Rows drawn")
    return {
        name: drawn[tree.position[name]] if name in tree.position else np.zeros(n, dtype=np.uint8)
        for name in tree.sizes
    }


def _code_type(size: int) -> type[np.unsignedinteger]:
    return np.uint8 if size <= 1 << 8 else np.uint16 if size <= 1 << 16 else np.uint32


def _groups(node: Node, drawn: Sequence[Codes] | Mapping[int, Codes]) -> NDArray[Any] | None:
    """Return the combination of the given columns in each row; None if only one combination exists."""
    if not node.given:
        return None
    kind = np.dtype(np.uint16 if math.prod(node.shape[:-1]) <= 1 << 16 else np.int64)
    group = drawn[node.given[0]].astype(kind)
    for g, size in zip(node.given[1:], node.shape[1:-1], strict=True):
        group *= kind.type(size)
        np.add(group, drawn[g], out=group, casting="unsafe")
    return group


def _draw(table: FloatArray, group: NDArray[Any] | None, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw one category per row by inversion of its group's distribution, with one binary search for all rows
    together.
    """
    groups, size = table.shape
    point = rng.random(n)
    if group is None:
        root: NDArray[np.int64] = np.searchsorted(_ladder(table)[0, :-1], point, side="right")
        return root
    reach = 1 << (size - 1).bit_length()  # steps are powers of two, the same for all rows
    ladder = np.full((groups, reach), np.inf)
    ladder[:, : size - 1] = _ladder(table)[:, :-1]
    flat, start = ladder.ravel(), group.astype(np.int64) * reach
    place: NDArray[np.int64] = start.copy()
    while reach := reach >> 1:
        place += reach * (flat[place + (reach - 1)] <= point)
    place -= start
    return place


def _ladder(table: FloatArray) -> FloatArray:
    """Return each row's distribution function."""
    ladder: FloatArray = np.cumsum(table, axis=1)
    ladder /= ladder[:, -1:]
    return ladder


def _spread(table: FloatArray, group: NDArray[Any] | None, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return categories with counts as even as whole numbers allow, in random order within each group."""
    size = table.shape[1]
    if group is None:
        counts = np.array([n])
        order = rng.permutation(n)
    else:
        counts = np.bincount(group, minlength=len(table))
        order = np.argsort(group + rng.random(n))
    occupied = np.flatnonzero(counts)
    steps = np.cumsum(table[occupied], axis=1)
    steps /= steps[:, -1:]
    steps *= counts[occupied][:, None]
    steps += rng.random(len(occupied))[:, None]
    marks = np.floor(steps)
    marks[:, -1] = counts[occupied]
    np.minimum(marks, counts[occupied][:, None], out=marks)
    quota = np.diff(marks, axis=1, prepend=0.0).astype(np.int64)
    codes = np.empty(n, dtype=np.int64)
    codes[order] = np.repeat(np.tile(np.arange(size), len(occupied)), quota.ravel())
    return codes
