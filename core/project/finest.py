"""The finest that is public about a column that is to be bought: the grid of its numbers, the codes of its hierarchy.

A number is cut at points of a public grid only, and codes of a hierarchy are told apart at most as they are. So a table
whose rows stay in a database or a large file is read into these (:func:`as_read`), once, and a schema is bought from
counts of them. Nothing here sees a row.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import ProjectError, SchemaError
from espalier.core.project.schema import Column, Schema

Values = NDArray[np.float64]

MOST_POINTS = 4096
"""Points of a grid at most: finer ones cost time and tell nothing that noise would leave."""

MOST_WHOLE, MOST_REAL = 2**53, 1e300
"""The largest whole number of a grid, up to which floats tell each from the next; and the largest other number."""


def as_read(schema: Schema) -> Schema:
    """``schema`` as rows that are read once into codes are read by it; itself where nothing is to be bought.

    Raises :class:`ProjectError` where the finest is not known: a number without a range, a text without a hierarchy.
    """
    if not schema.undeclared:
        return schema
    return replace(schema, columns=tuple(_finest(c) if c.undeclared else c for c in schema.columns))


def _finest(column: Column) -> Column:
    if column.hierarchy:
        return Column(column.name, column.kind, column.tree.texts, missing=column.missing, unknown=column.unknown)
    if column.range is None:
        lacks, has, declare = "its categories", "a text that nobody declared has", "them, or a hierarchy"
        if column.kind == "numeric":
            lacks, has, declare = "its bins", "a number without a range has", "a range for them, or the bins"
        raise ProjectError(
            f"column {column.name!r}: {lacks} cannot be bought from rows that stay in a database or a large file. "
            f"These are read once, as codes that are public beforehand, and {has} none: declare {declare}, or release "
            "from a file that fits into memory",
            column=column.name,
            key="schema_share",
        )
    edges = tuple(column_grid(column, column.range).tolist())
    return Column(column.name, "numeric", edges=edges, missing=True, unknown="missing")


def column_grid(column: Column, low_high: tuple[float, float]) -> Values:
    """The points at which a column of numbers from ``low_high`` may be cut; `round_points` are among them."""
    low, high = low_high
    if column.integer:
        low, high = math.floor(low), math.ceil(high)
        high = max(high, low + 2)
    return grid_of(low, high, integer=column.integer)


def grid_of(low: float, high: float, *, integer: bool, points: int = 1024) -> Values:
    """The public grid from ``low`` to ``high``, both of them in it: all whole numbers where ``points`` are enough for
    them, else evenly spaced ones, and 1, 2, 5, 10, … steps from either end and from 0.

    The latter part the many equal values that often stand there (no capital gain) from those beside them. Raises
    :class:`SchemaError` for a range that cannot be.
    """
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise SchemaError(f"a range must go from a number up to a larger one, not from {low:g} to {high:g}")
    if max(-low, high) > (MOST_WHOLE if integer else MOST_REAL):
        raise SchemaError(f"a range from {low:g} to {high:g} is too wide for floats: give the column another unit")
    if not 2 <= points <= MOST_POINTS:
        raise SchemaError(f"a grid has 2 to {MOST_POINTS} points, not {points}")
    if integer:
        low, high = math.ceil(low), math.floor(high)
        if low >= high:
            raise SchemaError(f"a range from {low:g} to {high:g} holds fewer than two whole numbers")
        if high - low < points:
            return np.arange(low, high + 1, dtype=np.float64)
    even = np.linspace(low, high, points)
    return np.unique(np.concatenate([np.rint(even) if integer else even, round_points(low, high, integer=integer)]))


def round_points(low: float, high: float, *, integer: bool) -> Values:
    """0 and the points 1, 2, 5, 10, … steps from either end and from 0, as far as they are in the range; and the ends.

    They are public, so a column may be cut at them though no choice has fallen there.
    """
    top = math.floor(math.log10(high - low))
    steps = np.array([float(f"{m}e{power}") for power in range(0 if integer else top - 4, top + 1) for m in (1, 2, 5)])
    points = np.concatenate([[low, high, 0.0], low + steps, high - steps, steps, -steps])
    return np.unique(points[(points >= low) & (points <= high)])
