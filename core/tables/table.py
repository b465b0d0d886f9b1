"""Private table in memory, with encoded columns and answers to a curator's questions about them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import TableError
from espalier.core.graph.separations import Clique
from espalier.core.project.linked import Pair
from espalier.core.project.public_grid import counts_on
from espalier.core.project.schema import MISSING, HierarchyToBuy, Schema, smallest_unsigned
from espalier.core.tables import random_rows
from espalier.core.tables.counting import Cells, cells_of, count_many
from espalier.core.tables.gradient import Weights, residual_sums
from espalier.core.tables.refusals import together
from espalier.core.tables.source import NO_VISITS, More, check_limited
from espalier.core.tables.text_table import TextColumn, TextTable


@dataclass(frozen=True, repr=False)
class Table:
    """Rows as codes. ``codes[name]`` has one code per row, in the smallest unsigned type.

    ``source`` is the digest of the whole table as read. A table with some of its rows has the same digest. ``person``
    is the person identifier of each row, a whole number from 0; ``person_column`` is its column in the table as read.
    Both are `None` if no column was named. The person column is not a column of this table, so it is never counted or
    released. ``row_limit`` is the row limit per person; see :meth:`limited`. A table that was filled or cut to a
    declared total keeps its ``person_column`` but has no ``person``. ``values`` are the numbers of numeric columns as
    read, one per row, NaN for missing cells. The codes of these columns are the bins of these numbers. ``texts`` are
    the text values, as read, of columns whose categories are to be bought.
    """

    schema: Schema
    codes: Mapping[str, NDArray[Any]]
    rows: int
    source: bytes = b""
    person: NDArray[Any] | None = None
    person_column: str | None = None
    row_limit: int | None = None
    values: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    texts: Mapping[str, TextColumn] = field(default_factory=dict)
    deal: random_rows.Deal | None = None
    """Function that returns the lots by which rows are chosen; `None` for fresh lots."""
    origin: str | None = None
    """Kind of relation that was read (`espalier.core.tables.catalogue`); `None` for files and frames."""

    def __post_init__(self) -> None:
        """Copy the codes, check them against the schema, and freeze them; raises :class:`TableError`."""
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
            raise TableError("the table must have exactly one person identifier per row")
        if self.person is not None and (self.person.dtype.kind not in "iu" or (self.person < 0).any()):
            raise TableError("person identifiers must be whole numbers from 0, one for each row")
        if self.person is not None and self.person_column is None:
            raise TableError("a table with person identifiers must name the column that they come from")
        if any(numbers.shape != (self.rows,) for numbers in self.values.values()):
            raise TableError("a numeric column must have exactly one number per row")
        object.__setattr__(self, "codes", kept)

    @classmethod
    def encode(cls, text: TextTable, schema: Schema, person: str | None = None) -> Table:
        """Return the table as ``schema`` describes it, without columns that the schema does not name.

        ``person`` is the person column. Raises :class:`TableError` for a column that the table does not have, an
        undeclared value, or a row without a person.
        """
        codes, values, texts = {}, {}, {}
        for column in schema.columns:  # a missing column is reported before any cell is judged
            column_of(text, column.name)
        wrong: list[TableError] = []
        for column in schema.columns:
            read = column_of(text, column.name)
            try:
                lookup = column.encode(read.values).astype(smallest_unsigned(column.size))
            except TableError as error:
                wrong.append(error)
                continue
            codes[column.name] = lookup[read.codes]
            if column.kind == "numeric":
                values[column.name] = column.numbers(read.values)[read.codes]
            elif column.reads_texts:
                texts[column.name] = read
        if wrong:
            raise together(wrong)
        if person is None:
            return cls(schema, codes, text.rows, text.digest, values=values, texts=texts)
        people = person_codes(text, person)
        return cls(schema, codes, text.rows, text.digest, people.codes, person, values=values, texts=texts)

    @property
    def names_people(self) -> bool:
        """True if each row still has its person identifier."""
        return self.person is not None

    @property
    def digest(self) -> bytes:
        """Digest of the table as read, or otherwise of its codes. PRIVATE; see `TextTable`."""
        if self.source:
            return self.source
        parts = (name.encode() + b":" + codes.tobytes() for name, codes in self.codes.items())
        return hashlib.sha256(b"|".join(parts)).digest()

    @property
    def lot_key(self) -> str:
        """Key of the row limits: empty, because :attr:`deal` chooses the rows."""
        return ""

    def dealt_by(self, deal: random_rows.Deal) -> Self:
        """Return the same rows; random parts are chosen with the lots of ``deal``."""
        return replace(self, deal=deal)

    @property
    def in_memory(self) -> Table:
        """The table itself, because its rows are in memory."""
        return self

    @property
    def counts_only(self) -> bool:
        """False, because the rows are in memory."""
        return False

    def encodes(self, schema: Schema) -> bool:
        """Return whether the rows were encoded for ``schema``."""
        return self.schema == schema

    def count(self, clique: Clique) -> NDArray[np.int64]:
        """Return exact counts of a marginal in rows, one axis per column."""
        shape = tuple(self.schema[name].size for name in clique)
        if len(clique) == 0:
            return np.array(self.rows, dtype=np.int64)
        flat = self.codes[clique[0]].astype(np.int64)
        for name, size in zip(clique[1:], shape[1:], strict=True):
            flat *= size
            flat += self.codes[name]
        return np.bincount(flat, minlength=math.prod(shape)).reshape(shape)

    def count_many(self, cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        """Return the counts of each of ``cliques``, in one pass over the rows for many of them
        (`espalier.core.tables.counting`).
        """
        return count_many(self.codes, self.schema.sizes, self.rows, cliques)

    def cells(self, cliques: Sequence[Clique]) -> Iterator[Cells]:
        """Yield the exact counts of each clique, by cell."""
        sizes = self.schema.sizes
        return (cells_of(self.codes, sizes, clique) for clique in cliques)

    def batches(self) -> Iterator[Mapping[str, NDArray[Any]]]:
        """Yield all rows as codes, in one batch."""
        yield self.codes

    def numbers(self, column: str) -> NDArray[np.float64]:
        """Return the values of a numeric column, one per row, with NaN for missing cells.

        Raises :class:`TableError` if the table holds only codes.
        """
        if column not in self.values:
            said = f"this table holds only the codes of {column!r}, not its numbers; read it again"
            raise TableError(said, column=column)
        return self.values[column]

    def residual_sums(self, target: str, columns: Sequence[str], weights: Weights) -> NDArray[np.int64]:
        """Return the exact gradient of a logistic fit of ``target``; see `espalier.core.tables.gradient`."""
        return residual_sums(self.codes, target, columns, self.schema.sizes, weights)

    def step_counts(self, pairs: Sequence[Pair]) -> list[NDArray[np.int64]]:  # noqa: ARG002
        """Refuse, because a single table has no visits."""
        raise TableError(NO_VISITS)

    def step_echoes(self, columns: Sequence[str]) -> NDArray[np.int64]:  # noqa: ARG002
        """Refuse, because a single table has no visits."""
        raise TableError(NO_VISITS)

    def visit_counts(self, column: str) -> NDArray[np.int64]:  # noqa: ARG002
        """Refuse, because a single table has no visits."""
        raise TableError(NO_VISITS)

    def return_counts(self, column: str, bins: int) -> NDArray[np.int64]:  # noqa: ARG002
        """Refuse, because a single table has no visits."""
        raise TableError(NO_VISITS)

    def text_counts(self, column: str) -> dict[str, int]:
        """Return the number of rows with each text of a column whose categories are to be bought."""
        read = self.texts[column]
        counts = np.bincount(read.codes, minlength=len(read.values))
        return dict(zip(read.values, counts.tolist(), strict=True))

    def leaf_counts(self, column: str) -> NDArray[np.int64]:
        """Return the number of rows with each code of a column's hierarchy."""
        read, described = self.texts[column], self.schema[column]
        assert isinstance(described, HierarchyToBuy)
        return np.bincount(described.leaves(read.values)[read.codes], minlength=described.tree.codes)

    def grid_counts(self, column: str, grid: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the number of values between adjacent points of ``grid``. The first and the last cell include the
        values outside.
        """
        return counts_on(self.numbers(column), grid)

    def take(self, rows: NDArray[Any]) -> Table:
        """Return some of the rows, such as a holdout or a fold."""
        person = None if self.person is None else self.person[rows]
        codes = {n: c[rows] for n, c in self.codes.items()}
        values = {n: v[rows] for n, v in self.values.items()}
        texts = {n: TextColumn(t.values, t.codes[rows]) for n, t in self.texts.items()}
        return replace(
            self, codes=codes, rows=int(np.arange(self.rows)[rows].size), person=person, values=values, texts=texts
        )

    def observed(self, column: str) -> Table:
        """Return the rows in which ``column`` is not missing; the table itself if no cell is missing."""
        described = self.schema[column]
        keep = self.codes[column] < described.values
        return self if not described.missing or keep.all() else self.take(keep)

    def sample(self, most: int, rng: np.random.Generator) -> Table:  # noqa: ARG002
        """Return the table itself, because its rows are in memory."""
        return self

    def split(self, share: float, size: int | None = None) -> tuple[Table, Table]:
        """Return (rest, held): each person, or each row, is held with probability ``share``; or exactly ``size`` rows
        are held.
        """
        if self.person is not None:
            held = random_rows.by_chance(int(self.person.max(initial=-1)) + 1, share, self.deal)[self.person]
        elif size is None:
            held = random_rows.by_chance(self.rows, share, self.deal)
        else:
            held = np.zeros(self.rows, dtype=np.bool_)
            held[random_rows.first(random_rows.lots_for(self.rows, self.deal), size)] = True
        return self.take(~held), self.take(held)

    def limited(self, most: int) -> Table:
        """Return at most ``most`` rows of each person, chosen at random."""
        if self.person is None:
            raise TableError("this table was read without its person column; read it again with that column")
        kept = random_rows.first_of_each(self.person, random_rows.lots_for(self.rows, self.deal), most)
        return replace(self.take(kept), row_limit=most)

    def to_total(self, total: int) -> Table:
        """Return ``total`` rows: others are left out at random, or invented rows are added.

        An invented row has a random code in each column. A numeric column also gets the midpoint of that bin.
        """
        check_limited(self)
        chosen = np.sort(random_rows.first(random_rows.lots_for(self.rows, self.deal), total))
        short = total - len(chosen)
        invented = {c.name: random_rows.invented_codes(short, c.size, self.deal) for c in self.schema.columns}
        codes = {name: np.concatenate([own[chosen], invented[name]]) for name, own in self.codes.items()}
        values = {
            name: np.concatenate([numbers[chosen], self.schema[name].middles[invented[name]]])
            for name, numbers in self.values.items()
        }
        return replace(self, codes=codes, values=values, rows=total, person=None)

    def recoded(self, schema: Schema) -> Table:
        """Return the rows as ``schema`` describes them, from the numbers and the text as they were read."""
        codes = dict(self.codes)
        for column in schema.columns:
            if column == self.schema[column.name]:
                continue
            if column.kind == "numeric":
                numbers = self.numbers(column.name)
                codes[column.name] = np.where(np.isnan(numbers), column.values, column.bins_of(numbers))
            else:
                read = self.texts[column.name]
                codes[column.name] = column.encode(read.values)[read.codes]
        return replace(self, schema=schema, codes=codes, texts={})

    def widened(self, schema: Schema, more: More) -> Table:
        """Return the rows with additional columns of ``schema``, which ``more`` computes from the codes."""
        return replace(self, schema=schema, codes={**self.codes, **more(self.codes)})

    def close(self) -> None:
        """Do nothing, because the rows are in memory."""


def person_codes(text: TextTable, person: str) -> TextColumn:
    """Return the person column; raises :class:`TableError` for an empty cell and for ambiguous identifiers."""
    people = column_of(text, person)
    if people.ambiguous:
        raise unclear_person(text.source, person)
    if MISSING in people.values:
        row = int(np.flatnonzero(people.codes == people.values.index(MISSING))[0]) + 1
        raise TableError(
            f"{text.source}: the person column {person!r} has an empty cell in data row {row:,}; enter the person's "
            "identifier there, or remove all rows without an identifier from the table",
            column=person,
            row=row,
        )
    return replace(people, codes=people.codes.astype(np.int64))


def unclear_person(shown: str, person: str) -> TableError:
    """Return the error for a person column in which one text value may identify two people, or two values may identify
    one person.
    """
    return TableError(
        f"{shown}: the person column {person!r} mixes types, may have lost digits, or is not UTF-8, so one identifier "
        "may denote two people (7 and the text 7), or one person may have two identifiers; store them all as text",
        column=person,
    )


def column_of(text: TextTable, name: str) -> TextColumn:
    """Return a column of a table as read; raises :class:`TableError` if the table has no column of this name."""
    if name not in text.columns:
        known = ", ".join(list(text.columns)[:12]) + (", …" if len(text.columns) > 12 else "")
        raise TableError(f"{text.source}: there is no column {name!r}; the table has {known}", column=name)
    return text.columns[name]
