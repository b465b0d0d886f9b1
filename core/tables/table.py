"""Where the private rows live: encoded columns, and the two questions a curator may ask of them: *count this marginal*
and *the gradient of a logistic fit*."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from core.errors import TableError
from core.privacy.draws import Clique
from core.privacy.gradient import Weights, residual_sums
from core.project.schema import MISSING, Schema, smallest_unsigned
from core.tables.reading import TextColumn, TextTable

if TYPE_CHECKING:
    from core.privacy.accounting import Unit


@dataclass(frozen=True, repr=False)
class Table:
    """Rows as codes: ``codes[name]`` has one code per row, in the smallest unsigned type that holds them.

    ``source`` is the digest of the whole table as it was read, also where these are only some of its rows.
    ``person`` says, by row, whose it is, as whole numbers from 0, and ``person_column`` which column of the table as
    read says so; None where nobody named one. It is no column of this table: it is never counted and never released.
    ``kept`` is how many rows of a person are left at most, once :func:`core.privacy.contribution.bounded` saw to it; a table
    that it filled or cut to a declared total has its ``person_column`` still, but no ``person``.
    """

    schema: Schema
    codes: Mapping[str, NDArray[Any]]
    rows: int
    source: bytes = b""
    person: NDArray[Any] | None = None
    person_column: str | None = None
    kept: int | None = None

    def __post_init__(self) -> None:
        """Codes are copied, checked against the schema and frozen; raises :class:`TableError`."""
        kept = {}
        for column in self.schema.columns:
            codes = np.array(self.codes[column.name], dtype=smallest_unsigned(column.size))
            if codes.shape != (self.rows,) or (self.rows and int(np.max(self.codes[column.name])) >= column.size):
                raise TableError(
                    f"column {column.name!r} does not fit its schema or the number of rows", column=column.name
                )
            codes.setflags(write=False)
            kept[column.name] = codes
        if self.person is not None and self.person.shape != (self.rows,):
            raise TableError("there is not exactly one person to each row")
        if self.person is not None and (self.person.dtype.kind not in "iu" or (self.person < 0).any()):
            raise TableError("people are numbered by whole numbers from 0; a row without a person belongs to nobody")
        if self.person is not None and self.person_column is None:
            raise TableError("a table that says whose its rows are must say which column said so")
        object.__setattr__(self, "codes", kept)

    @classmethod
    def encode(cls, text: TextTable, schema: Schema, person: str | None = None) -> Table:
        """A table as its schema sees it. Columns the schema does not name are left out; ``person`` is one of them.

        Raises :class:`TableError` for a column that is not there, an undeclared value, or a row without a person.
        """
        codes = {}
        for column in schema.columns:
            read = _column(text, column.name)
            lookup = column.encode(read.values).astype(smallest_unsigned(column.size))
            codes[column.name] = lookup[read.codes]
        if person is None:
            return cls(schema, codes, text.rows, text.digest)
        whose = _column(text, person)
        if MISSING in whose.values:
            row = int(np.flatnonzero(whose.codes == whose.values.index(MISSING))[0]) + 1
            raise TableError(
                f"{text.source}: the person column {person!r} is empty, first in data row {row:,}; write there whose "
                "row it is, or take such rows out of the table",
                column=person, row=row,
            )  # fmt: skip
        return cls(schema, codes, text.rows, text.digest, whose.codes, person)

    @classmethod
    def left_out(cls, text: TextTable, schema: Schema) -> tuple[str, ...]:
        """Columns of ``text`` that the schema does not name."""
        return tuple(name for name in text.columns if name not in schema)

    def count(self, clique: Clique) -> NDArray[np.int64]:
        """Exact counts of a marginal in rows, one axis per column. Private: for the curator and the diagnostics."""
        shape = tuple(self.schema[name].size for name in clique)
        if len(clique) == 0:
            return np.array(self.rows, dtype=np.int64)
        flat = self.codes[clique[0]].astype(np.int64)
        for name, size in zip(clique[1:], shape[1:], strict=True):
            flat *= size
            flat += self.codes[name]
        return np.bincount(flat, minlength=math.prod(shape)).reshape(shape)

    def residual_sums(self, target: str, columns: Sequence[str], weights: Weights) -> NDArray[np.int64]:
        """Exact gradient of a logistic fit of ``target``, see `core.privacy.gradient`. Private: for the curator."""
        return residual_sums(self.codes, target, columns, self.schema.sizes, weights)

    def take(self, rows: NDArray[Any]) -> Table:
        """The table of some rows only (a hold-out, a fold)."""
        person = None if self.person is None else self.person[rows]
        codes = {n: c[rows] for n, c in self.codes.items()}
        return replace(self, codes=codes, rows=int(np.arange(self.rows)[rows].size), person=person)

    def known_rows(self, unit: Unit) -> int | None:
        """How many rows a curator may take for public under ``unit``: n under replace-one, else None.

        With a person column n is public only once the table was filled or cut to a declared total. Raises
        :class:`TableError` where a person may have more rows than ``unit`` says, or the total was declared for
        replace-one and ``unit`` says add-remove: the unit's sensitivities would not hold.
        """
        if self.person_column is not None:
            if self.kept is None or self.kept > unit.rows_per_person:
                left = "any number" if self.kept is None else str(self.kept)
                raise TableError(
                    f"the table names people (column {self.person_column!r}) and keeps {left} of each one's rows, but "
                    f"the unit of privacy says at most {unit.rows_per_person}; pass it through "
                    "core.privacy.contribution.bounded first",
                    column=self.person_column,
                )
            if self.person is not None:
                return None
            if unit.neighbors == "add-remove":
                raise TableError(
                    "the table was filled or cut to a declared total, which protects people under replace-one only",
                    column=self.person_column,
                )
        return self.rows if unit.neighbors == "replace-one" else None

    @property
    def digest(self) -> bytes:
        """What tells this table from others: that of its source, or else of its codes. PRIVATE, see `TextTable`."""
        if self.source:
            return self.source
        parts = (name.encode() + b":" + codes.tobytes() for name, codes in self.codes.items())
        return hashlib.sha256(b"|".join(parts)).digest()


def _column(text: TextTable, name: str) -> TextColumn:
    if name not in text.columns:
        known = ", ".join(list(text.columns)[:12]) + (", …" if len(text.columns) > 12 else "")
        raise TableError(f"{text.source}: there is no column {name!r}; the table has {known}", column=name)
    return text.columns[name]
