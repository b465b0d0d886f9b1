"""Functions shared by sources that store codes instead of values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import TableError
from espalier.core.graph.separations import Clique
from espalier.core.project.linked import Pair
from espalier.core.project.public_grid import codes_in
from espalier.core.project.schema import Schema
from espalier.core.tables.source import NO_VISITS


class CodesOnly:
    """A source whose rows are codes. It counts the codes, and refuses requests for the original values."""

    schema: Schema
    origin: str | None = None
    """Kind of relation that was read (`espalier.core.tables.catalogue`); `None` for files."""

    def count(self, clique: Clique) -> NDArray[np.int64]:
        """Return the number of rows in each cell of ``clique``."""
        raise NotImplementedError

    def numbers(self, column: str) -> NDArray[np.float64]:
        """Refuse, because only the bins are stored, not the numbers."""
        raise TableError(
            f"column {column!r}: the numbers stay in the engine, and only their bins were read", column=column
        )

    def text_counts(self, column: str) -> dict[str, int]:
        """Refuse, because only the codes of text cells are available."""
        raise TableError(
            f"column {column!r}: the text values stay in the engine, and only their codes were read", column=column
        )

    def step_counts(self, pairs: Sequence[Pair]) -> list[NDArray[np.int64]]:  # noqa: ARG002
        """Refuse, because linked tables are read into memory."""
        raise TableError(NO_VISITS)

    def step_echoes(self, columns: Sequence[str]) -> NDArray[np.int64]:  # noqa: ARG002
        """Refuse, because linked tables are read into memory."""
        raise TableError(NO_VISITS)

    def visit_counts(self, column: str) -> NDArray[np.int64]:  # noqa: ARG002
        """Refuse, because linked tables are read into memory."""
        raise TableError(NO_VISITS)

    def return_counts(self, column: str, bins: int) -> NDArray[np.int64]:  # noqa: ARG002
        """Refuse, because linked tables are read into memory."""
        raise TableError(NO_VISITS)

    def leaf_counts(self, column: str) -> NDArray[np.int64]:
        """Return the number of rows with each code of a column's hierarchy, which are the codes of this source."""
        return self.count((column,))

    def grid_counts(self, column: str, grid: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the number of rows between adjacent points of ``grid``, on which the column was read."""
        described = self.schema[column]
        if not np.array_equal(described.edges, grid):
            raise TableError(f"column {column!r} was read with a different grid; read the table again", column=column)
        return self.count((column,))[: described.values]


def new_codes(before: Schema, after: Schema) -> dict[int, NDArray[np.int64]]:
    """Return the new code of each old code for every column that ``after`` describes differently, by the column's
    index.
    """
    pairs = enumerate(zip(before.columns, after.columns, strict=True))
    return {i: codes_in(finest, bought) for i, (finest, bought) in pairs if finest != bought}
