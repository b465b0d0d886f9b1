"""The source: all that a curator needs of a private table, wherever its rows live."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from espalier.core.graph.separations import Clique
from espalier.core.project.schema import Schema
from espalier.core.tables.gradient import Weights


class Source(Protocol):
    """A private table. Nothing that it answers may leave without noise: only a curator and diagnostics may ask.

    ``person_column`` is the column that says whose a row is, None where none was named; ``kept`` how many rows of a
    person are left at most, None where nobody has seen to it (see :mod:`espalier.core.privacy.contribution`).
    """

    @property
    def schema(self) -> Schema:
        """What is public about its columns."""
        ...

    @property
    def rows(self) -> int:
        """How many rows."""
        ...

    @property
    def person_column(self) -> str | None:
        """The column that says whose a row is."""
        ...

    @property
    def names_people(self) -> bool:
        """Does each row still say whose it is?"""
        ...

    @property
    def kept(self) -> int | None:
        """How many rows of a person are left at most."""
        ...

    @property
    def digest(self) -> bytes:
        """What tells this table from others."""
        ...

    def count(self, clique: Clique) -> NDArray[np.int64]:
        """Exact counts, one axis per column of ``clique``."""
        ...

    def count_many(self, cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        """The counts of each of ``cliques``, in one go where that is cheaper."""
        ...

    def residual_sums(self, target: str, columns: Sequence[str], weights: Weights) -> NDArray[np.int64]:
        """Exact gradient of a logistic fit, see `espalier.core.tables.gradient`."""
        ...

    def batches(self) -> Iterator[Mapping[str, NDArray[Any]]]:
        """All rows as codes, some at a time: one array per column, of one length."""
        ...

    def numbers(self, column: str) -> NDArray[np.float64]:
        """The values of a numeric column as numbers, NaN where a cell is missing."""
        ...

    def take(self, rows: NDArray[Any]) -> Source:
        """The table of some rows only."""
        ...

    def close(self) -> None:
        """Give back what it holds on disk or in an engine; nothing can be asked afterwards."""
        ...
