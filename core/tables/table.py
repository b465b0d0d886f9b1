"""Where the private rows live: encoded columns, and the two questions a curator may ask of them: *count this marginal*
and *the gradient of a logistic fit*."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import TableError
from espalier.core.graph.separations import Clique
from espalier.core.project.schema import MISSING, Schema, smallest_unsigned
from espalier.core.tables.counting import count_many
from espalier.core.tables.gradient import Weights, residual_sums
from espalier.core.tables.reading import TextColumn, TextTable


@dataclass(frozen=True, repr=False)
class Table:
    """Rows as codes: ``codes[name]`` has one code per row, in the smallest unsigned type that holds them.

    ``source`` is the digest of the whole table as it was read, also where these are only some of its rows.
    ``person`` says, by row, whose it is, as whole numbers from 0, and ``person_column`` which column of the table as
    read says so; None where nobody named one. It is no column of this table: it is never counted and never released.
    ``kept`` is how many rows of a person are left at most, once :func:`espalier.core.privacy.contribution.bounded` saw
    to it; a table that it filled or cut to a declared total has its ``person_column`` still, but no ``person``.
    ``values`` are the numbers of numeric columns as they were read, one per row, NaN where a cell is missing; binning
    is the schema's view of them. ``texts`` are the texts of columns whose categories are still to be bought, as read.
    """

    schema: Schema
    codes: Mapping[str, NDArray[Any]]
    rows: int
    source: bytes = b""
    person: NDArray[Any] | None = None
    person_column: str | None = None
    kept: int | None = None
    values: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    texts: Mapping[str, TextColumn] = field(default_factory=dict)

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
        if any(numbers.shape != (self.rows,) for numbers in self.values.values()):
            raise TableError("there is not exactly one number to each row of a numeric column")
        object.__setattr__(self, "codes", kept)

    @classmethod
    def encode(cls, text: TextTable, schema: Schema, person: str | None = None) -> Table:
        """A table as its schema sees it. Columns the schema does not name are left out; ``person`` is one of them.

        Raises :class:`TableError` for a column that is not there, an undeclared value, or a row without a person.
        """
        codes, values, texts = {}, {}, {}
        for column in schema.columns:  # a wrong file is told by what it lacks, before any cell of it is judged
            _column(text, column.name)
        for column in schema.columns:
            read = _column(text, column.name)
            lookup = column.encode(read.values).astype(smallest_unsigned(column.size))
            codes[column.name] = lookup[read.codes]
            if column.kind == "numeric":
                values[column.name] = column.numbers(read.values)[read.codes]
            elif column.undeclared:
                texts[column.name] = read
        if person is None:
            return cls(schema, codes, text.rows, text.digest, values=values, texts=texts)
        whose = _column(text, person)
        if whose.ambiguous:
            raise TableError(
                f"{text.source}: the person column {person!r} mixes types, so that one identifier may be two people "
                "(7 and the text 7), or one person may have two identifiers; give all identifiers as text",
                column=person,
            )
        if MISSING in whose.values:
            row = int(np.flatnonzero(whose.codes == whose.values.index(MISSING))[0]) + 1
            raise TableError(
                f"{text.source}: the person column {person!r} is empty, first in data row {row:,}; write there whose "
                "row it is, or take such rows out of the table",
                column=person,
                row=row,
            )
        return cls(schema, codes, text.rows, text.digest, whose.codes, person, values=values, texts=texts)

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

    def count_many(self, cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        """The counts of each of ``cliques``, one pass over the rows for many of them
        (`espalier.core.tables.counting`).
        """
        return count_many(self.codes, self.schema.sizes, self.rows, cliques)

    def batches(self) -> Iterator[Mapping[str, NDArray[Any]]]:
        """All rows as codes, in one go. Private: for the curator."""
        yield self.codes

    def numbers(self, column: str) -> NDArray[np.float64]:
        """The values of a numeric column, one per row, NaN where a cell is missing. Private: for the curator.

        Raises :class:`TableError` where the table holds its codes only.
        """
        if column not in self.values:
            raise TableError(f"the values of {column!r} as numbers are not in this table; read it again", column=column)
        return self.values[column]

    def residual_sums(self, target: str, columns: Sequence[str], weights: Weights) -> NDArray[np.int64]:
        """Exact gradient of a logistic fit of ``target``, see `espalier.core.tables.gradient`. Private: for the
        curator.
        """
        return residual_sums(self.codes, target, columns, self.schema.sizes, weights)

    def take(self, rows: NDArray[Any]) -> Table:
        """The table of some rows only (a hold-out, a fold)."""
        person = None if self.person is None else self.person[rows]
        codes = {n: c[rows] for n, c in self.codes.items()}
        values = {n: v[rows] for n, v in self.values.items()}
        texts = {n: TextColumn(t.values, t.codes[rows]) for n, t in self.texts.items()}
        return replace(
            self, codes=codes, rows=int(np.arange(self.rows)[rows].size), person=person, values=values, texts=texts
        )

    def observed(self, column: str) -> Table:
        """The rows where ``column`` is not missing; the table itself where no cell is."""
        described = self.schema[column]
        keep = self.codes[column] < described.values
        return self if not described.missing or keep.all() else self.take(keep)

    def text_counts(self, column: str) -> dict[str, int]:
        """How many rows have each text of a column whose categories are to be bought. Private: for the curator."""
        read = self.texts[column]
        counts = np.bincount(read.codes, minlength=len(read.values))
        return dict(zip(read.values, counts.tolist(), strict=True))

    def close(self) -> None:
        """Nothing to give back: its rows are in memory."""

    @property
    def names_people(self) -> bool:
        """Does each row still say whose it is?"""
        return self.person is not None

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
