"""The rows of an engine that makes no snapshot of its own, in Arrow batches, as one statement answers them.

One SELECT of the columns that a release needs sees one state of the table. It compares and computes nothing. Its rows
pass through this process in batches, `espalier.core.tables.encoding` turns them into codes, and none is kept. So every
engine gets the same encoding and the same lots: ids are compared here, byte by byte, and no collation, optimiser or
dialect there merges two people.

A driver's cells must be of the type that the catalogue says. One that is not is refused, never guessed at: SQLite keeps
a text in a column of whole numbers, and another driver's surprises are not known.
"""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from espalier.core.errors import EspalierError, TableError
from espalier.core.tables.reading import _text

BATCH_ROWS = 1 << 16
"""Rows that pass through at a time: a driver gives most of them as Python objects, cell by cell."""


@dataclass(frozen=True, repr=False)
class Stream:
    """The table ``table`` of the engine ``backend``, called ``shown`` in messages.

    ``kinds`` is the type that each column's cells come as; where it is not the one that the catalogue says, a cell is
    written as text.
    """

    backend: Any
    table: Any
    kinds: Mapping[str, Any]
    shown: str
    rows = None
    files = ()

    @property
    def columns(self) -> dict[str, str]:
        """Names and types of the columns, from the catalogue."""
        return {name: str(kind) for name, kind in self.kinds.items()}

    def statements(self, names: Sequence[str]) -> list[str]:
        """The one statement that asks for these columns, as text."""
        return [str(self.backend.compile(self.table.select(*names)))]

    def schema(self, names: Sequence[str]) -> Any:
        """The Arrow schema of :meth:`batches`."""
        import pyarrow as pa

        return pa.schema([(name, self.kinds[name].to_pyarrow()) for name in names])

    def batches(self, names: Sequence[str], most: int | None = None) -> Generator[Any]:
        """All rows, or the first ``most``; raises :class:`TableError` that names a column and quotes no cell."""
        from espalier.core.tables.sql import answers

        asked = self.table.select(*names)
        try:
            for part in answers(self.backend, asked if most is None else asked.limit(most), BATCH_ROWS):
                yield self._batch(part, names) if isinstance(part, list) else self._cast(part, names)
        except (EspalierError, MemoryError):
            raise
        except Exception as error:  # a driver's own message, of whatever kind, may quote a cell
            raise TableError(
                f"{self.shown}: the engine gave up while it read the table ({type(error).__name__})"
            ) from None

    def close(self) -> None:
        """Disconnect, as often as it is called."""
        with suppress(Exception):  # MySQL's driver minds a second time
            self.backend.disconnect()

    def _cast(self, batch: Any, names: Sequence[str]) -> Any:
        """An engine's batch with the types of :meth:`schema`."""
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
            f"{self.shown}: column {name!r} holds a cell that is not of its type, {declared} (the cell is not shown). "
            "Correct the table, or name a view that casts the column to text.",
            column=name,
        )

    def _batch(self, rows: Sequence[Sequence[Any]], names: Sequence[str]) -> Any:
        """A driver's rows as one batch."""
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
    """What a cell of this type must go through before Arrow takes it; None for what Arrow checks by itself.

    It would cut 7.25 to a whole number, and take bytes for a text.
    """
    if kind.is_boolean():
        return _as_bool
    if kind.is_integer():
        return operator.index
    if kind.is_string():
        return _only_text
    return _as_time if kind.is_time() else None


def _as_bool(cell: Any) -> bool:
    """Engines without booleans give 0 and 1."""
    if isinstance(cell, int) and cell in (0, 1):
        return bool(cell)
    raise ValueError


def _only_text(cell: Any) -> str:
    if isinstance(cell, str):
        return cell
    raise ValueError


def _as_text(cell: Any) -> str:
    """What is stored, as a table reader writes it."""
    if isinstance(cell, bytes):
        raise ValueError
    return _text(cell)


def _as_stored(cell: Any) -> str:
    """What SQLite keeps, which need not be what it declares: a text that spells a number may be another person than
    the number. (A table turns such a text into the number; a view, or a column of type ANY, may hold both.)"""
    if isinstance(cell, str):
        for number in (int, float):
            with suppress(ValueError):
                if _text(number(cell)) == cell:
                    break
        else:
            return cell
        raise ValueError
    return _as_text(cell)


def _as_time(cell: Any) -> dt.time:
    """MySQL's drivers give a time of day as the time since midnight; -1 h and 25 h are none."""
    if isinstance(cell, dt.timedelta):
        if not dt.timedelta(0) <= cell < dt.timedelta(days=1):
            raise ValueError
        return (dt.datetime.min + cell).time()
    if isinstance(cell, dt.time):
        return cell
    raise ValueError
