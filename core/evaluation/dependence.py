"""Conditional mutual information of the columns of a table, and its chance level when the true value is 0 (PrivCI
§III-B).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from espalier.core.graph.separations import Clique, Separation
from espalier.core.tables.table import Table

SHUFFLES = 199
"""Number of shuffled tables from which the chance level of the CMI is estimated. Under a true separation the CMI
exceeds the 190th of them, the floor, in exactly 5 % of cases (a permutation test); ties do not count as exceeding.
"""

LEVEL = 0.95

IntArray = NDArray[np.int64]


class Dependence(NamedTuple):
    """A plug-in CMI in nats, its mean under a true separation, and the value that it exceeds in 5 % of such tables."""

    value: float
    chance: float
    floor: float


def cmi(table: Table, separation: Separation) -> Dependence:
    """Return the plug-in I(left; right | given) of a table in nats, with its chance level when the true value is 0.

    I = Σ n(x,y,z)/n · log(n(x,y,z) n(z) / (n(x,z) n(y,z))) over the cells that occur (PrivCI §III-B), so no table is
    too large. With an empty ``given``, this is the mutual information. The chance level comes from `SHUFFLES` tables in
    which ``left`` is shuffled among the rows that agree on ``given`` (fixed seed). The separation is true in these
    tables, which have the same number of rows and the same margins. For sparse tables, the χ² distribution of the
    likelihood ratio would be too low.
    """
    x, y, z = (cells_of(table, names)[0] for names in (separation.left, separation.right, separation.given))
    value = _plug_in(x, y, z)
    chance = value + _shuffled(x, y, z, np.random.default_rng(0)) / table.rows
    floor = np.sort(chance)[int(np.ceil(LEVEL * (SHUFFLES + 1))) - 1]
    return Dependence(value, max(0.0, float(chance.mean())), max(0.0, float(floor)))


def link(table: Table, one: str, other: str) -> float:
    """Return the total variation between the joint distribution of two columns and the product of their distributions:
    ½ Σ|p(x,y) − p(x)p(y)|, 0 … 1.

    It is the smallest share of rows that must change to make the two independent without changing either column, up to
    rounding. The pair's whole table is counted.
    """
    p = table.count((one, other)) / table.rows
    return 0.5 * float(np.abs(p - np.outer(p.sum(axis=1), p.sum(axis=0))).sum())


def _shuffled(x: IntArray, y: IntArray, z: IntArray, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return `_joint_term` of tables with ``x`` shuffled inside each value of ``z``, minus that of the original table.

    A single sort shuffles the rows. Its keys contain z, random bits and x, from the highest bits to the lowest.
    """
    order = np.argsort(z, kind="stable")
    x, y, z = x[order], y[order], z[order]
    yz = _dense(z * (y.max() + 1) + y)
    low, high = (int(codes.max()).bit_length() for codes in (x, z))
    fixed = (z << (63 - high)) | x
    out = np.empty(SHUFFLES)
    for i in range(SHUFFLES):
        keys = rng.integers(0, 1 << (63 - low - high), len(x)) << low
        keys |= fixed
        keys.sort()
        out[i] = _joint_term(keys & ((1 << low) - 1), yz)
    return out - _joint_term(x, yz)


def _joint_term(x: IntArray, yz: IntArray) -> float:
    """Return Σ n(x,y,z) log n(x,y,z), the part of n · CMI that the margins n(x,z) and n(y,z) do not determine."""
    cells = yz * (x.max() + 1) + x
    few = int(cells.max()) <= 4 * len(x) + 10**6
    count = np.bincount(cells) if few else np.unique(cells, return_counts=True)[1]
    count = count[count > 1]
    return float((count * np.log(count)).sum())


def _plug_in(x: IntArray, y: IntArray, z: IntArray) -> float:
    xz, yz = _dense(x + z * (x.max() + 1)), _dense(y + z * (y.max() + 1))
    _, first, count = np.unique(xz * (yz.max() + 1) + yz, return_index=True, return_counts=True)
    n_xz, n_yz, n_z = np.bincount(xz), np.bincount(yz), np.bincount(z)
    ratio = np.log(count) + np.log(n_z[z[first]]) - np.log(n_xz[xz[first]]) - np.log(n_yz[yz[first]])
    return max(0.0, float((count * ratio).sum() / len(x)))


def cells_of(table: Table, names: Clique) -> tuple[IntArray, list[tuple[int, ...]]]:
    """Return the combination of ``names`` in each row, and the codes of the combinations that occur, in order."""
    cells = np.zeros(table.rows, dtype=np.int64)
    for name in names:
        cells = _dense(cells * table.schema[name].size + table.codes[name])
    first = np.unique(cells, return_index=True)[1]
    return cells, [tuple(int(table.codes[n][row]) for n in names) for row in first]


def _dense(cells: IntArray) -> IntArray:
    return np.unique(cells, return_inverse=True)[1].astype(np.int64)
