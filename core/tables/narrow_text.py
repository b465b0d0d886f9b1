"""Reader of some columns of a large table as text, in batches.

Each row is stored as one small number per column, and each distinct text is stored once. Thus 10⁷ rows of ten columns
with few distinct values take about 100 MB. Cells become text one by one, as in `espalier.core.tables.arrow_text`, and
no batch affects how another batch is read. A column of whole numbers that is read only for its order needs no text,
only 8 bytes per row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import TableError
from espalier.core.project.schema import smallest_unsigned
from espalier.core.tables.arrow_text import from_arrow, value_type
from espalier.core.tables.catalogue import TRUSTED
from espalier.core.tables.encoding import check_person
from espalier.core.tables.engine_errors import OURS, engine_errors
from espalier.core.tables.relation import Feed, Relation, state_of
from espalier.core.tables.text_table import Cells, TextColumn, TextTable

Ranks = dict[str, NDArray[np.int64]]


@dataclass
class _Column:
    """A growing column, with the distinct text values so far and their codes, and the codes of each batch."""

    place: dict[str, int] = field(default_factory=dict)
    parts: list[NDArray[Any]] = field(default_factory=list)
    ambiguous: bool = False

    def add(self, column: TextColumn) -> None:
        codes = np.array([self.place.setdefault(v, len(self.place)) for v in column.values], dtype=np.int64)
        self.parts.append(codes.astype(smallest_unsigned(len(self.place)))[column.codes])
        self.ambiguous |= column.ambiguous  # depends on the type or on single cells

    def column(self) -> TextColumn:
        """Return the whole column and release its parts."""
        codes = np.concatenate([np.empty(0, np.uint8), *self.parts]).astype(smallest_unsigned(len(self.place)))
        self.parts = []
        return TextColumn(tuple(self.place), codes, self.ambiguous)


def whole_text(relation: Relation, most_cells: int) -> TextTable:
    """Return all rows and columns as text; raises :class:`TableError` for a table of more than ``most_cells``."""
    names = list(relation.columns)
    return narrow_text(relation, names, most=max(1, most_cells // max(len(names), 1)))[0]


def narrow_text(
    relation: Relation, names: Sequence[str], ordering: Sequence[str] = (), most: int | None = None
) -> tuple[TextTable, Ranks]:
    """Return the columns ``names`` of all rows as text, and the ranks of those ``ordering`` columns that hold whole
    numbers.

    An ``ordering`` column of another type is returned as text. Raises :class:`TableError` for a column that the table
    does not have, for files that change while they are read, for a table without rows, and for a table of more than
    ``most`` rows.
    """
    wanted = list(dict.fromkeys([*names, *ordering]))
    if lacking := [name for name in wanted if name not in relation.columns]:
        known = ", ".join(list(relation.columns)[:12])
        raise TableError(
            f"{relation.shown}: there is no column {lacking[0]!r}; the table has {known}", column=lacking[0]
        )
    files = relation.feed.files if relation.feed is not None else ()
    before = state_of(files)
    with engine_errors(f"{relation.shown}: the engine failed while it read the table", OURS):
        if relation.feed is None:
            (columns, rows), ranks = _from_rows(relation, wanted, most), Ranks()
        else:
            ranked = set(ordering) - set(names)
            columns, rows, ranks = _from_batches(relation.feed, wanted, ranked, relation.shown, most)
    if state_of(files) != before:
        raise TableError(f"{relation.shown} changed while it was being read; start again after it has been written")
    if not rows:
        raise TableError("the table has a header but no rows")
    plain = _identifying(relation, list(columns))
    columns = {name: replace(c, ambiguous=c.ambiguous or name not in plain) for name, c in columns.items()}
    return TextTable(columns, rows, relation.shown, relation.origin), ranks


def _identifying(relation: Relation, names: Sequence[str]) -> set[str]:
    """Return the columns among ``names`` whose type and cells, as read, give each person exactly one identifier."""
    from espalier.core.tables.encoding_query import person_text

    feed, found = relation.feed, set[str]()
    types = {} if feed is None else {field.name: value_type(field.type) for field in feed.schema(names)}
    for name in names:
        with suppress(TableError):
            if feed is None:
                person_text(relation.table[name])
                if relation.merges(name):
                    continue
            else:
                check_person(name, types[name], relation.shown)
            found.add(name)
    return found if feed is None else found - feed.unclear


def notices(tables: Iterable[Any]) -> list[str]:
    """Return the notices of the relations among ``tables`` that are read this way; see `Relation.notice`."""
    kept = (
        "A release reads the table once, in batches. Codes of the required columns are kept in memory until the "
        "release ends."
    )
    origins = {table.origin for table in tables if isinstance(table, Relation)}
    return sorted(" ".join([kept, *([TRUSTED[origin]] if origin in TRUSTED else [])]) for origin in origins)


def _check_rows(rows: int, most: int | None, shown: str) -> None:
    """Raise :class:`TableError` for more than ``most`` rows."""
    if most is not None and rows > most:
        raise TableError(f"{shown} has more than {most:,} rows, which is too many for the app. Use the command line")


def _from_rows(relation: Relation, names: Sequence[str], most: int | None) -> tuple[dict[str, TextColumn], int]:
    """Return the columns from an engine that sends Python objects, in one statement."""
    from espalier.core.tables.engines import streamed_rows

    growing, rows = [Cells() for _ in names], 0
    query = relation.query_of(names)
    for part in streamed_rows(relation.backend, query, lock=relation.lock, check=relation.check):
        rows += len(part)
        _check_rows(rows, most, relation.shown)
        for cells, column in zip(growing, zip(*part, strict=True), strict=True):
            for cell in column:
                cells.add(cell)
    return {name: cells.column() for name, cells in zip(names, growing, strict=True)}, rows


def _from_batches(
    feed: Feed, names: Sequence[str], ordering: set[str], shown: str, most: int | None
) -> tuple[dict[str, TextColumn], int, Ranks]:
    """Return the columns of Arrow batches, and the ranks of the columns of ``ordering`` that hold whole numbers."""
    schema = feed.schema(names)
    numbered = {name: list[Any]() for name in ordering if _is_whole(schema.field(name).type)}
    growing, rows = {name: _Column() for name in names if name not in numbered}, 0
    for batch in _batches(feed, names, schema):
        for name, parts in numbered.items():
            parts.append(batch.column(name))
        for name, column in _texts(batch.select(list(growing)), shown).items():
            growing[name].add(column)
        rows += batch.num_rows
        _check_rows(rows, most, shown)
    return {n: c.column() for n, c in growing.items()}, rows, {n: _ranks(parts) for n, parts in numbered.items()}


def _batches(feed: Feed, names: Sequence[str], schema: Any) -> Iterator[Any]:
    with closing(feed.batches(names)) as batches:
        for batch in batches:
            yield batch.cast(schema)


def _texts(batch: Any, shown: str) -> dict[str, TextColumn]:
    import pyarrow as pa

    try:
        return from_arrow(pa.Table.from_batches([batch]), shown).columns
    except TableError as error:
        if "row" not in error.data:
            raise
        name = error.data["column"]  # the row number would be relative to the batch
        raise TableError(
            f"{shown}: column {name!r} contains a value that cannot be written as text; correct it", column=name
        ) from None


def _is_whole(kind: Any) -> bool:
    import pyarrow as pa

    kind = value_type(kind)
    return bool(pa.types.is_integer(kind) and not pa.types.is_uint64(kind))


def _ranks(parts: Sequence[Any]) -> NDArray[np.int64]:
    """Return the rank of each whole number; empty cells come last."""
    import pyarrow as pa

    whole = pa.chunked_array(parts).cast(pa.int64()).combine_chunks()
    empty = np.asarray(whole.is_null().to_numpy(zero_copy_only=False), dtype=bool)
    numbers = whole.fill_null(0).to_numpy(zero_copy_only=False)
    found, places = np.unique(numbers, return_inverse=True)
    return np.where(empty, len(found), places).astype(np.int64)
