"""Functions shared by sources that store codes, not values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import TableError
from espalier.core.project.public_grid import codes_in
from espalier.core.project.schema import Column, Schema


def no_numbers(column: str) -> TableError:
    """Return the error for a request for a column's numbers."""
    return TableError(f"column {column!r}: the numbers stay in the engine; only their bins were read", column=column)


def no_texts(column: str) -> TableError:
    """Return the error for a request for a column's texts."""
    return TableError(f"column {column!r}: the texts stay in the engine; only their codes were read", column=column)


def on_grid(column: Column, counts: NDArray[np.int64], grid: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the ``counts`` of a column's bins without missing cells; the bins must be those of ``grid``."""
    if not np.array_equal(column.edges, grid):
        raise TableError(
            f"column {column.name!r} was read with a different grid; read the table again", column=column.name
        )
    return counts[: column.values]


def new_codes(before: Schema, after: Schema) -> dict[int, NDArray[np.int64]]:
    """Return, for the index of each column that ``after`` describes differently, the new code of each code."""
    pairs = enumerate(zip(before.columns, after.columns, strict=True))
    return {i: codes_in(finest, bought) for i, (finest, bought) in pairs if finest != bought}
