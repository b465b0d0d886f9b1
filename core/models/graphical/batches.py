"""Even draws of rows in batches. Quotas cover the whole output, while only one batch is in memory.

:mod:`espalier.core.models.graphical.sampling` gives category v ⌊n_s p(v|s)⌋ of the n_s rows in group s, or one more,
and shuffles them within the group. Everything except the shuffle can be computed without rows. A node's quotas are a
table: for each combination of its columns, the number of rows in the whole output. Every node's groups are a margin of
its parent's table. Each batch then takes rows out of these tables *without replacement*: the number of a batch's rows
in group s that get category v is hypergeometric, drawn category by category, and a fresh permutation decides which rows
they are. Cutting a random permutation of the whole group into batches gives the same distribution, so the output is
distributed as if it had been drawn without batches. Consecutive columns (`runs`) share a permutation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.graph.junction_tree import FloatArray, JunctionTree, Node
from espalier.core.models.graphical.sampling import Codes, _code_type, _groups, draw_rows

BATCH_ROWS = 1 << 18
CHUNK = 1 << 14
"""Number of rows processed at a time, chosen to fit the processor's cache."""
MOST_BITS = 34
"""Bits for group and row in a sorted number, which leaves 30 random bits."""
Counts = NDArray[np.int64]


def draw_batches(
    tree: JunctionTree, conditionals: Sequence[FloatArray], n: int, rng: np.random.Generator, *, step: int = BATCH_ROWS
) -> Iterator[dict[str, Codes]]:
    """Yield ``n`` rows, spread evenly over the whole output, in batches of at most ``step``, as codes by column."""
    if n <= step:
        yield draw_rows(tree, conditionals, n, rng, even=True)
        return
    left, together = quotas(tree, conditionals, n, rng), runs(tree.nodes)
    for start in range(0, n, step):
        rows = min(step, n - start)
        drawn: dict[int, Codes] = {}
        for run in together:
            drawn |= _take(run, left, _groups(run[0], drawn), rows, rng)
        yield {
            name: drawn[tree.position[name]] if name in tree.position else np.zeros(rows, dtype=np.uint8)
            for name in tree.sizes
        }


def runs(nodes: Sequence[Node]) -> list[list[Node]]:
    """Group nodes into runs that are drawn together: each node is conditioned on the columns of the first node's
    condition and on all nodes before it in the run.

    Shuffling one column within its groups, and then the next within the groups of both columns, shuffles their pairs
    within the first column's groups: all orders of the pairs are equally likely.
    """
    out: list[list[Node]] = []
    ends: dict[tuple[int, ...], list[Node]] = {}
    for node in nodes:
        run = ends.pop(node.given, None)
        if run is None:
            out.append(run := [])
        run.append(node)
        ends[*node.given, node.own] = run
    return out


def quotas(tree: JunctionTree, conditionals: Sequence[FloatArray], n: int, rng: np.random.Generator) -> list[Counts]:
    """Return, for each node, the number of the ``n`` rows with each combination of ``given`` (flat) and each
    category."""
    out: list[Counts] = []
    for node, conditional in zip(tree.nodes, conditionals, strict=True):
        if node.given:
            parent = tree.nodes[node.parent]
            groups = out[node.parent].reshape(parent.shape).sum(axis=node.drop).ravel()
        else:
            groups = np.array([n], dtype=np.int64)
        steps = np.cumsum(conditional.reshape(len(groups), -1), axis=1)
        steps /= steps[:, -1:]
        marks = np.floor(steps * groups[:, None] + rng.random((len(groups), 1)))
        marks[:, -1] = groups
        np.minimum(marks, groups[:, None], out=marks)
        out.append(np.diff(marks, axis=1, prepend=0.0).astype(np.int64))
    return out


def _take(
    run: Sequence[Node], left: Sequence[Counts], group: NDArray[Any] | None, rows: int, rng: np.random.Generator
) -> dict[int, Codes]:
    """Take one batch out of ``left``, and return its columns of ``run`` in random order within each group."""
    groups = len(left[run[0].own])
    wanted = np.array([rows]) if group is None else np.bincount(group, minlength=groups)
    cells = np.flatnonzero(wanted)
    counts = wanted[cells]
    for node in run:
        cells, counts = _deal(left[node.own], cells, counts, rng)
    together = math.prod(node.shape[-1] for node in run)
    joint = np.empty(rows, dtype=_code_type(together))
    joint[_shuffled(group, groups, rows, rng)] = np.repeat((cells % together).astype(joint.dtype), counts)
    out = {}
    for node in reversed(run[1:]):
        above = joint // joint.dtype.type(node.shape[-1])
        out[node.own] = (joint - above * joint.dtype.type(node.shape[-1])).astype(_code_type(node.shape[-1]))
        joint = above
    return out | {run[0].own: joint.astype(_code_type(run[0].shape[-1]), copy=False)}


def _deal(
    left: Counts, groups: NDArray[np.int64], wanted: Counts, rng: np.random.Generator
) -> tuple[NDArray[np.int64], Counts]:
    """Take ``wanted`` rows of each of ``groups`` out of ``left``; return the occupied cells and their counts."""
    size, have = left.shape[1], left[groups]
    short, pool = wanted, have.sum(axis=1)
    taken = np.zeros_like(have)
    for value in range(size - 1):
        pool = pool - have[:, value]
        taken[:, value] = rng.hypergeometric(have[:, value], pool, short)
        short = short - taken[:, value]
    taken[:, -1] = short
    left[groups] = have - taken
    at, found = np.nonzero(taken)
    return groups[at] * size + found, taken[at, found]


@lru_cache(maxsize=2)
def _numbers(rows: int) -> NDArray[np.uint64]:
    return np.arange(rows, dtype=np.uint64)


def _shuffled(group: NDArray[Any] | None, groups: int, rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the row indices, group by group, in random order within each group.

    Group, random bits and row number are sorted as one 64-bit number, which is faster than sorting positions. Two rows
    of a group with the same random bits stay in order; 2¹⁶ groups and batches of 2¹⁸ leave 30 random bits.
    """
    above, below = (groups - 1).bit_length(), max(rows - 1, 1).bit_length()
    if above + below > MOST_BITS:
        assert group is not None
        order = rng.permutation(rows)
        return np.asarray(order[np.argsort(group[order], kind="stable")])
    keys = rng.integers(
        0, (1 << 64) - 1, rows, dtype=np.uint64, endpoint=True
    )  # all 64 bits are used, so no draw is rejected
    mask = np.uint64((1 << below) - 1)
    for start in range(0, rows, CHUNK):
        part = keys[start : start + CHUNK]
        if group is not None and above:
            part >>= np.uint64(above)
            part |= group[start : start + CHUNK].astype(np.uint64) << np.uint64(64 - above)
        part &= ~mask
        part |= _numbers(rows)[start : start + CHUNK]
    keys.sort()
    keys &= mask
    return keys.view(np.int64)
