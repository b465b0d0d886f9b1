"""Source: everything that a curator needs from a private table, however its rows are stored.

Callers never check which class implements it. `Table` holds its rows in memory, `Snapshot` holds their codes in an
unnamed file, and `PostgresSnapshot` leaves them in a database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import TableError
from espalier.core.graph.separations import Clique
from espalier.core.project.linked import Pair
from espalier.core.project.schema import Schema
from espalier.core.tables.counting import Cells
from espalier.core.tables.gradient import Weights
from espalier.core.tables.random_rows import Deal

if TYPE_CHECKING:
    from espalier.core.tables.table import Table

NO_VISITS = "these rows have no linked visits; read both tables of the project again"

More = Callable[[Mapping[str, NDArray[Any]]], Mapping[str, NDArray[Any]]]
"""Function that computes additional columns of codes from the codes of some rows."""


class Source(Protocol):
    """A private table. Its answers are exact, so only a curator and confidential diagnostics may request them."""

    # Properties of the table ------------------------------------------------------------------------------------------

    @property
    def schema(self) -> Schema:
        """Public description of the table's columns."""
        ...

    @property
    def rows(self) -> int:
        """Number of rows."""
        ...

    @property
    def person_column(self) -> str | None:
        """Column of the table as read that identifies a row's person; `None` if none was named."""
        ...

    @property
    def names_people(self) -> bool:
        """True if each row still has its person identifier."""
        ...

    @property
    def origin(self) -> str | None:
        """Kind of relation that was read (`espalier.core.tables.catalogue`); `None` for a file or frame."""
        ...

    @property
    def row_limit(self) -> int | None:
        """Row limit per person; `None` if no limit was applied."""
        ...

    @property
    def digest(self) -> bytes:
        """Digest that identifies the table. PRIVATE. It leaves this machine only through a keyed fingerprint."""
        ...

    @property
    def lot_key(self) -> str:
        """Key by which rows of each person were chosen when the table was read. It need not be secret. Empty if there
        is no key.
        """
        ...

    def dealt_by(self, deal: Deal) -> Self:
        """Return the same rows; random parts are chosen with the lots of ``deal``."""
        ...

    @property
    def in_memory(self) -> Table | None:
        """Rows as a table in memory; `None` if they are stored elsewhere."""
        ...

    @property
    def counts_only(self) -> bool:
        """True if the rows stay in a server that answers only counts and sums."""
        ...

    def encodes(self, schema: Schema) -> bool:
        """Return whether the rows were encoded for ``schema``."""
        ...

    # Requests of the curator ------------------------------------------------------------------------------------------

    def count(self, clique: Clique) -> NDArray[np.int64]:
        """Return exact counts in rows, one axis per column of ``clique``."""
        ...

    def count_many(self, cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        """Return the counts of each of ``cliques``, counted together if that is cheaper."""
        ...

    def residual_sums(self, target: str, columns: Sequence[str], weights: Weights) -> NDArray[np.int64]:
        """Return the exact gradient of a logistic fit; see `espalier.core.tables.gradient`."""
        ...

    def batches(self) -> Iterator[Mapping[str, NDArray[Any]]]:
        """Yield all rows as codes, in batches: one array per column, all of the same length."""
        ...

    def numbers(self, column: str) -> NDArray[np.float64]:
        """Return the values of a numeric column, with NaN for missing cells.

        Raises :class:`TableError` if the source holds only codes.
        """
        ...

    # Linked tables ----------------------------------------------------------------------------------------------------

    def step_counts(self, pairs: Sequence[Pair]) -> list[NDArray[np.int64]]:
        """Return the weighted counts of each pair over all steps, in units of 1/lcm (`espalier.core.project.linked`).

        Raises :class:`TableError` for a source without visits.
        """
        ...

    def step_echoes(self, columns: Sequence[str]) -> NDArray[np.int64]:
        """Return, for each column, the weighted number of steps that repeat the visit before the previous one, in
        units.
        """
        ...

    def visit_counts(self, column: str) -> NDArray[np.int64]:
        """Return the number of people with each code of ``column`` at their second, third, … kept visit.

        One row per visit after the first.
        """
        ...

    def return_counts(self, column: str, bins: int) -> NDArray[np.int64]:
        """Return the weighted number of kept visits with each code of ``column``, in units, without each person's k-th
        visit.

        Its three columns count visits whose next kept visit comes within the first ``bins`` bins of days, visits whose
        next one comes later or on an unknown day, and visits without a next one. A person's visits have a total weight
        of 1.
        """
        ...

    # Counts from which a schema is bought -----------------------------------------------------------------------------

    def text_counts(self, column: str) -> Mapping[str, int]:
        """Return the number of rows with each text of a column whose categories are to be bought."""
        ...

    def leaf_counts(self, column: str) -> NDArray[np.int64]:
        """Return the number of rows with each code of a column whose hierarchy is to be expanded."""
        ...

    def grid_counts(self, column: str, grid: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the number of rows between adjacent points of a public ``grid``, for a column whose bins are to be
        bought. The first and the last cell include the values outside; rows without a number are not counted.
        """
        ...

    # Diagnostics: confidential and not charged to the budget ----------------------------------------------------------

    def cells(self, cliques: Sequence[Clique]) -> Iterator[Cells]:
        """Yield the exact counts of each clique by cell: every cell of a small marginal, the occupied cells of a large
        one.

        Raises :class:`TableError` if a large marginal cannot be counted in the database.
        """
        ...

    def sample(self, most: int, rng: np.random.Generator) -> Table:
        """Return ``most`` random rows as a table in memory. A table that is in memory already is returned whole."""
        ...

    # Tables derived from this one -------------------------------------------------------------------------------------

    def take(self, rows: NDArray[Any]) -> Self:
        """Return some of the rows, chosen by a mask or by their numbers."""
        ...

    def split(self, share: float, size: int | None = None) -> tuple[Self, Self]:
        """Return (rest, held); see :func:`espalier.core.privacy.contribution.split` for the guarantee."""
        ...

    def limited(self, most: int) -> Self:
        """Return at most ``most`` rows of each person; see :func:`espalier.core.privacy.contribution.bounded`.

        Raises :class:`TableError` for rows without a person identifier.
        """
        ...

    def to_total(self, total: int) -> Self:
        """Return exactly ``total`` rows of a :meth:`limited` source: surplus rows are left out at random, and missing
        ones are invented. The rows no longer have person identifiers.
        """
        ...

    def recoded(self, schema: Schema) -> Self:
        """Return the same rows as ``schema`` describes them, after bins or categories were bought."""
        ...

    def widened(self, schema: Schema, more: More) -> Self:
        """Return the same rows with the additional columns of ``schema``, which ``more`` computes from the codes."""
        ...

    def close(self) -> None:
        """Release the space on disk or in the engine; the source cannot be used afterwards."""
        ...


def check_limited(source: Source, most: int | None = None) -> None:
    """Raise :class:`TableError` unless ``source`` limits the rows of each person, to at most ``most``."""
    limit = source.row_limit
    if source.names_people and limit is not None and (most is None or limit <= most):
        return
    kept = "a limited number of" if most is None else f"at most {most}"
    raise TableError(f"the table was not limited to {kept} rows of each person; read it again with its person column")
