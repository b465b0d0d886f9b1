"""Finest public codes of a column that is to be bought: a grid for numbers, and the declared codes for a hierarchy.

Bins are cut only at points of a public grid, and a hierarchy is never finer than its codes. A table in a database or a
large file is therefore read once into these codes (:func:`as_read`), and a schema is bought from their counts. Nothing
here reads a row.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import ProjectError, SchemaError
from espalier.core.project.schema import CategoriesToBuy, Column, HierarchyToBuy, Numbers, NumbersToBuy, Schema

Values = NDArray[np.float64]

MOST_POINTS = 4096
"""Maximum number of grid points. A finer grid takes more time, and noise would hide the added detail."""

MOST_WHOLE, MOST_REAL = 2**53, 1e300
"""Largest whole number of a grid, up to which floats are exact, and largest other number."""


def as_read(schema: Schema) -> Schema:
    """Return ``schema`` with each column to be bought replaced by its finest public codes.

    Raises :class:`ProjectError` if these are unknown: a numeric column without a range, or a text column without a
    hierarchy.
    """
    if not schema.undeclared:
        return schema
    return replace(schema, columns=tuple(map(_finest, schema.columns)))


def _finest(column: Column) -> Column:
    match column:
        case HierarchyToBuy():
            return column.finest()
        case NumbersToBuy(range=(_, _) as ends):
            edges = tuple(column_grid(column, ends).tolist())
            return Numbers(column.name, "numeric", edges, missing=True, unknown="missing")
        case NumbersToBuy():
            lacks, has, declare = (
                "its bins",
                "a numeric column without a range has",
                "the bins or a range for them",
            )
        case CategoriesToBuy():
            lacks, has, declare = (
                "its categories",
                "a text column without declared categories has",
                "the categories or a hierarchy",
            )
        case _:
            return column
    raise ProjectError(
        f"column {column.name!r}: {lacks} cannot be bought from a database or a large file, because the "
        f"rows are read once, as codes that must be known beforehand, and {has} no such codes. Declare {declare}, or "
        "release from a file that fits into memory",
        column=column.name,
        key="schema_share",
    )


def column_grid(column: Column, low_high: tuple[float, float]) -> Values:
    """Return the points at which a column of numbers in ``low_high`` may be cut, including `round_points`."""
    low, high = low_high
    if column.integer:
        low, high = math.floor(low), math.ceil(high)
        high = max(high, low + 2)
    return grid_of(low, high, integer=column.integer)


def counts_on(values: Values, grid: Values) -> NDArray[np.int64]:
    """Count the ``values`` between adjacent points of ``grid``; values outside the grid count in the first or last
    cell.
    """
    known = np.asarray(values, dtype=np.float64)
    places = np.searchsorted(grid[1:-1], known[~np.isnan(known)], side="right")
    return np.bincount(places, minlength=len(grid) - 1)


def codes_in(finest: Column, bought: Column) -> NDArray[np.int64]:
    """Return the code in ``bought`` for each of the column's finest public codes."""
    if finest.kind == "numeric":
        codes = bought.bins_of(np.asarray(finest.edges[:-1]))
    else:
        codes = bought.encode(finest.categories)
    return np.append(codes, bought.values) if finest.missing else codes


def grid_of(low: float, high: float, *, integer: bool, points: int = 1024) -> Values:
    """Return the public grid from ``low`` to ``high``, both included.

    It contains all whole numbers if there are at most ``points`` of them, and otherwise evenly spaced points and
    `round_points`. Round points separate a value that many rows share, such as no capital gain, from its neighbours.
    Raises :class:`SchemaError` for an impossible range.
    """
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise SchemaError(f"a range must go from a number up to a larger one, not from {low:g} to {high:g}")
    if max(-low, high) > (MOST_WHOLE if integer else MOST_REAL):
        raise SchemaError(f"a range from {low:g} to {high:g} is too wide for floats; give the column another unit")
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
    """Return both ends, 0, and the points in the range that are 1, 2, 5, 10, … steps from either end or from 0.

    These points are public, so a column may be cut at them without a private choice.
    """
    top = math.floor(math.log10(high - low))
    steps = np.array([float(f"{m}e{power}") for power in range(0 if integer else top - 4, top + 1) for m in (1, 2, 5)])
    points = np.concatenate([[low, high, 0.0], low + steps, high - steps, steps, -steps])
    return np.unique(points[(points >= low) & (points <= high)])
