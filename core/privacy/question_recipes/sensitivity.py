"""Exact computation of one person's largest change to all answers together, by dynamic programming on the junction
tree.

**One row.** The answers are c_j = Σ_rows q_j(x), q_j(x) ∈ {0, 1}. Under add-remove, adding or removing a row x changes
them by the vector q(x), so Δ₂² = max_x Σ_j q_j(x)² = max_x Σ_j q_j(x), which takes one max-plus sweep with all weights
1. Under replace-one a row x becomes x', so Δ₂² = max_{x,x'} Σ_j (q_j(x) − q_j(x'))². This takes the same sweep over
pairs of rows: a column with c categories has c² pairs, and each cell of a table holds the number of statistics that
differ.

**The cap.** With pairs, the number of cells of every table is squared. If that is too large, the bound Δ₂² ≤ min(2
max_x Σ_j q_j(x), k) is used: each term is at most q_j(x) + q_j(x'), and the sum of these is at most twice the maximum.
Each of the k terms is also at most 1.

**Which rows.** The maximum is over every row that the schema can encode, even if the project declares it impossible: a
declaration describes the world, but the guarantee must hold for tables that contradict it. Of the impossible cells,
only the gates (`lower`) are kept, because they define hidden columns and exclude no row.

**Several rows.** k rows of one person change the answers by a sum of k such vectors, whose norm is at most k times as
large. A count that is released as a separate histogram is one marginal: a row moves from one cell to another (√2 under
replace-one), or is added or removed (1 under add-remove), for any number of values. The bound is `count_sensitivity` of
the unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nextafter, prod, sqrt

import numpy as np

from espalier.core.errors import EspalierError
from espalier.core.graph.junction_tree import IMPOSSIBLE, FloatArray, cells, collect, junction_tree, max_only
from espalier.core.privacy.question_recipes.lowering import Lowered

PAIR_CELLS = 20_000_000
"""Maximum number of cells over pairs of rows for the exact value. Above it, the cap is used."""


@dataclass(frozen=True)
class Sensitivity:
    """Δ₂ of all questions together, in rows, rounded up. ``squared`` is the whole number under the root for one row per
    person. ``exact`` is true if a row or a pair of rows attains the value, and false if the value is only the proved
    cap.
    """

    value: float
    squared: int
    exact: bool


def sensitivity(
    lowered: Lowered, *, replace: bool, rows_per_person: int = 1, pair_cells: int = PAIR_CELLS
) -> Sensitivity:
    """Return the L2 sensitivity of the vector of all questions' counts, under replace-one if ``replace`` is true,
    otherwise under add-remove.

    Proof: see above. Raises `EspalierError` for statistics that are not 0 or 1.
    """
    if rows_per_person < 1:
        raise ValueError(f"rows_per_person ({rows_per_person}) must be at least 1")
    for block in lowered.blocks:
        if block.matrix is None or not np.isin(block.matrix, (0.0, 1.0)).all():
            raise EspalierError("This sensitivity holds only for questions with answers 0 or 1 for every row.")
    most = _furthest(lowered, pairs=False)
    exact, squared = True, most
    if replace:
        squared = min(2 * most, len(lowered.order))
        exact = _pair_cells(lowered) <= pair_cells
        if exact:
            squared = _furthest(lowered, pairs=True)
    root = sqrt(squared)
    while root * root < squared:
        root = nextafter(root, inf)
    value = root if rows_per_person == 1 else nextafter(root * rows_per_person, inf)
    return Sensitivity(value, squared, exact)


def _pair_cells(lowered: Lowered) -> int:
    """Return the total number of cells in tables over pairs of rows, including the questions' tables before merging."""
    squares = {name: size * size for name, size in lowered.sizes.items()}
    held = cells(junction_tree(squares, dict.fromkeys(lowered.cliques)))
    return held + sum(prod(squares[name] for name in block.clique) for block in lowered.blocks)


def _furthest(lowered: Lowered, *, pairs: bool) -> int:
    """Return the largest number of questions that hold for one row or, with ``pairs``, whose answers differ between two
    rows."""
    sizes = {name: size * size if pairs else size for name, size in lowered.sizes.items()}
    tree = junction_tree(sizes, dict.fromkeys(lowered.cliques))
    tables = tree.tables()
    constant = 0.0
    for rule in lowered.zeros:
        forbidden, place = rule.mask, tree.place(rule.clique)
        if not place.columns:
            continue
        if pairs:
            flat = forbidden.ravel()
            forbidden = _paired((flat[:, None] | flat[None, :]).astype(np.float64), rule.mask.shape) > 0
        table = tables[place.node]
        table += place.inward(np.where(forbidden, IMPOSSIBLE, 0.0)).reshape(place.lift)
        np.maximum(table, IMPOSSIBLE, out=table)
    for block in lowered.blocks:
        assert block.matrix is not None  # checked by the caller
        matrix = block.matrix.reshape(len(block.matrix), -1)
        met, place = matrix.sum(axis=0), tree.place(block.clique)
        if pairs:
            apart = met[:, None] + met[None, :] - 2.0 * (matrix.T @ matrix)
            score = place.inward(_paired(apart, block.matrix.shape[1:]))
        else:
            score = place.inward(met.reshape(block.matrix.shape[1:]))
        if place.columns:
            tables[place.node] += score.reshape(place.lift)
        else:
            constant += float(score)
    return round(collect(tree, tables, max_only)[0] + constant)


def _paired(table: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """Return a table over (cell, cell') with one axis per column. The code on an axis is the code of x times the size,
    plus the code of x'.
    """
    k = len(shape)
    axes = [axis for i in range(k) for axis in (i, k + i)]
    return table.reshape(*shape, *shape).transpose(axes).reshape([n * n for n in shape])
