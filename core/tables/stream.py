"""Rows of an engine that keeps no snapshot, in Arrow batches from one statement.

One SELECT of the columns that a release needs sees one consistent state of the table. The SELECT compares and computes
nothing. Its rows pass through this process in batches, `espalier.core.tables.encoding` turns them into codes, and no
row is kept. The same encoding and the same row limits therefore apply to every engine. Identifiers are compared here,
byte by byte, so no collation, optimiser or dialect merges two people.

A driver's cells must have the type that the catalogue states. Other cells are refused, never guessed: SQLite can store
text in a column of whole numbers, and other drivers may allow this too.
"""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from espalier.core.errors import TableError
from espalier.core.tables.engine_errors import OURS, engine_errors
from espalier.core.tables.text_table import cell_text
from espalier.core.tables.unpacking import changes

CHANGED = "{} was replaced by a relation of another kind after it was opened; open it again"
BATCH_ROWS, BATCH_CELLS = 1 << 16, 1 << 21
"""Maximum number of rows, and of cells, in a batch, because most drivers return Python objects, cell by cell."""


@dataclass(frozen=True, repr=False)
class Stream:
    """Table ``table`` of the engine ``backend``, called ``shown`` in messages.

    ``kinds`` contains the type in which each column's cells arrive. If this type differs from the catalogue's, the
    cells become text. ``file`` is the file of a DuckDB database, and ``seen`` its state when its catalogue was read.
    ``most`` returns the maximum number of rows that the file of a SQLite table can hold, because following the pages of
    a damaged file may never end. ``kind`` is the kind of the relation when it was opened, and ``kind_now`` returns its
    current kind.
    """

    backend: Any
    table: Any
    kinds: Mapping[str, Any]
    shown: str
    file: Path | None = None
    seen: tuple[int, ...] | None = None
    most: Callable[[], int] | None = None
    kind: str | None = None
    kind_now: Callable[[], str] | None = None
    unclear = frozenset[str]()
    rows = None
    files = states = ()

    @property
    def columns(self) -> dict[str, str]:
        """Names and types of the columns, from the catalogue."""
        return {name: str(kind) for name, kind in self.kinds.items()}

    def statements(self, names: Sequence[str]) -> list[str]:
        """Return the statement that reads these columns, as text."""
        return [str(self.backend.compile(self.table.select(*names)))]

    def schema(self, names: Sequence[str]) -> Any:
        """Return the Arrow schema of :meth:`batches`."""
        import pyarrow as pa

        return pa.schema([(name, self.kinds[name].to_pyarrow()) for name in names])

    def batches(self, names: Sequence[str], most: int | None = None) -> Generator[Any]:
        """Yield all rows, or the first ``most``. A :class:`TableError` names a column and quotes no cell."""
        query = self.table.select(*names)
        with engine_errors(f"{self.shown}: the engine failed while it read the table", OURS):
            yield from self._read(query if most is None else query.limit(most), names)

    def _read(self, query: Any, names: Sequence[str]) -> Generator[Any]:
        from espalier.core.tables.engines import answers

        rows, read = max(1, min(BATCH_ROWS, BATCH_CELLS // max(len(names), 1))), 0
        self._check_same()
        with self._one_state():
            with closing(answers(self.backend, query, rows, self.file)) as parts:
                for part in parts:
                    self._check_number(read := read + len(part))
                    yield self._batch(part, names) if isinstance(part, list) else self._cast(part, names)
            if self.kind_now is not None and self.kind_now() != self.kind:
                raise TableError(CHANGED.format(self.shown))
        self._check_same()

    @contextmanager
    def _one_state(self) -> Iterator[None]:
        """Read the rows and the catalogue in one consistent state if the engine can do this; otherwise read the
        catalogue afterwards.

        In MySQL, a statement locks the definitions of its tables until the transaction ends.
        """
        if self.backend.name not in ("mysql", "sqlite"):
            yield
            return
        self.backend.raw_sql("BEGIN").close()
        try:
            yield
        finally:
            with suppress(Exception):  # the connection may be lost, which the reader has reported
                self.backend.con.rollback()

    def _check_same(self) -> None:
        if self.file is not None and changes(self.file) != self.seen:
            raise TableError(f"{self.shown}: its file was changed after it was opened; open it again")

    def _check_number(self, rows: int) -> None:
        if self.most is not None and rows > self.most():
            raise TableError(f"{self.shown} returns more rows than its file can hold, so the file is damaged")

    def _few(self, query: Any) -> list[tuple[Any, ...]]:
        """Return the result of ``query``, which has few rows."""
        from espalier.core.tables.engines import answers

        found = answers(self.backend, query, 1000, self.file)
        parts = [part if isinstance(part, list) else part.to_pylist() for part in found]
        return [tuple(row.values()) if isinstance(row, dict) else tuple(row) for part in parts for row in part]

    def spread(self, names: Sequence[str], rows: int) -> Generator[Any]:
        """Yield each row with the same probability, so that about ``rows`` rows are sent."""
        from espalier.core.tables.engines import at_random

        table = self.table.select(*names)
        with engine_errors(f"{self.shown}: the engine failed while it read the table", OURS):
            counted = table if self.most is None else table.limit(self.most() + 1)
            ((total,),) = self._few(counted.aggregate(rows=counted.count()))
            self._check_number(total)
            yield from self._read(at_random(table, rows, total), names)

    def close(self) -> None:
        """Disconnect. Further calls do nothing."""
        with suppress(Exception):  # MySQL's driver fails on a second call
            self.backend.disconnect()

    def _cast(self, batch: Any, names: Sequence[str]) -> Any:
        """Return an engine's batch with the types of :meth:`schema`."""
        import pyarrow as pa

        schema, arrays = self.schema(names), []
        for field in schema:
            try:
                arrays.append(batch.column(field.name).cast(field.type))
            except pa.ArrowException:  # its text may quote the cell
                raise self._misfit(field.name) from None
        return pa.record_batch(arrays, schema=schema)

    def _misfit(self, name: str) -> TableError:
        declared = self.table.schema()[name]
        return TableError(
            f"{self.shown}: column {name!r} contains a cell that is not of its declared type, {declared} (the cell is "
            "not shown). Correct the table, or use a view that casts the column to text.",
            column=name,
        )

    def _batch(self, rows: Sequence[Sequence[Any]], names: Sequence[str]) -> Any:
        """Return a driver's rows as one batch."""
        import pyarrow as pa

        schema, types, arrays = self.schema(names), self.table.schema(), []
        for field, cells in zip(schema, zip(*rows, strict=True), strict=True):
            declared, kind = types[field.name], self.kinds[field.name]
            read = _reader(kind)
            if kind is not declared and kind.is_string():
                read = _as_stored if self.backend.name == "sqlite" else _as_text
            try:
                made = cells if read is None else [None if cell is None else read(cell) for cell in cells]
                arrays.append(pa.array(made, field.type))
            except (pa.ArrowException, ValueError, TypeError, OverflowError):  # its text may quote the cell
                raise self._misfit(field.name) from None
        return pa.record_batch(arrays, schema=schema)


def _reader(kind: Any) -> Callable[[Any], Any] | None:
    """Return the check for a cell of this type before Arrow converts it; `None` if Arrow's own check is enough.

    Arrow would truncate 7.25 to a whole number, and read bytes as text.
    """
    if kind.is_boolean():
        return _as_bool
    if kind.is_integer():
        return operator.index
    if kind.is_string():
        return _only_text
    return _as_time if kind.is_time() else None


def _as_bool(cell: Any) -> bool:
    """Convert a cell of an engine without booleans, which returns 0 and 1."""
    if isinstance(cell, int) and cell in (0, 1):
        return bool(cell)
    raise ValueError


def _only_text(cell: Any) -> str:
    if isinstance(cell, str):
        return cell
    raise ValueError


def _as_text(cell: Any) -> str:
    """Return a cell as a table reader writes it."""
    if isinstance(cell, bytes):
        raise ValueError
    return cell_text(cell)


def _as_stored(cell: Any) -> str:
    """Return a cell of SQLite, which may differ from the declared type.

    Text that spells a number may identify a different person from the number, so it is refused. (A table turns such
    text into the number; a view, or a column of type ANY, may contain both.)
    """
    if isinstance(cell, str):
        for number in (int, float):
            with suppress(ValueError):
                if cell_text(number(cell)) == cell:
                    break
        else:
            return cell
        raise ValueError
    return _as_text(cell)


def _as_time(cell: Any) -> dt.time:
    """Convert the time since midnight, as MySQL's drivers return it, to a time of day; refuse -1 h and 25 h."""
    if isinstance(cell, dt.timedelta):
        if not dt.timedelta(0) <= cell < dt.timedelta(days=1):
            raise ValueError
        return (dt.datetime.min + cell).time()
    if isinstance(cell, dt.time):
        return cell
    raise ValueError
