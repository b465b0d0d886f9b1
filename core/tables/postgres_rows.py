"""Codes streamed by PostgreSQL if the role cannot create a temporary table: on a replica, or in a read-only session.

PostgreSQL encodes each row by itself (`espalier.core.tables.encoding_query`), joins the codes to a few whole numbers,
and sends them by one COPY statement, which sees one state of the rows. Neither rows nor texts leave the server but the
person identifier, where there is one. Whole numbers come in binary rows of one length; with a person, rows are lines of
CSV. Both are read with declared types: nothing is guessed from them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import numpy as np

from espalier.core.errors import TableError
from espalier.core.project.schema import Schema
from espalier.core.tables.code_file import PERSON
from espalier.core.tables.encoding import Batch
from espalier.core.tables.packing import unpacked
from espalier.core.tables.row_limits import runs

BATCH_ROWS = 1 << 17
HEADER, TRAILER = 19, b"\xff\xff"
"""Bytes before the first binary row, and after the last."""


def keeps_codes(connection: Any) -> bool:
    """Whether a temporary table can be created: the role may, the server is not a replica, and the session is
    writable.
    """
    asked = (
        "SELECT has_database_privilege(current_database(), 'TEMP') AND NOT pg_is_in_recovery() "
        "AND current_setting('default_transaction_read_only') = 'off'"
    )
    return bool(connection.execute(asked).fetchone()[0])


def streamed(connection: Any, query: str, schema: Schema, person: bool, pulse: Callable[[], None]) -> Generator[Batch]:
    """Yield the codes that ``query`` (of :func:`espalier.core.tables.encoding_query.packed`) returns.

    Raising from ``pulse`` cancels the statement.
    """
    names = [f"n{i}" for i in range(len(runs([column.size + 2 for column in schema.columns])))]
    made = _lines(connection, query, names, pulse) if person else _binary(connection, query, names, pulse)
    for batch in made:
        yield unpacked(batch, schema)


def _binary(connection: Any, query: str, names: Sequence[str], pulse: Callable[[], None]) -> Iterator[Any]:
    """Yield rows of whole numbers: each is a count of fields, and for each field its length and its 8 bytes."""
    import pyarrow as pa

    fields = [x for name in names for x in ((f"length {name}", ">i4"), (name, ">i8"))]
    row, start = np.dtype([("fields", ">i2"), *fields]), HEADER
    for block in _copied(connection, f"COPY ({query}) TO STDOUT (FORMAT binary)", pulse):
        data = memoryview(block)[start:]
        start = 0
        rows = np.frombuffer(data[: len(data) - len(data) % row.itemsize], row)
        rest = bytes(data[rows.nbytes :])
        whole = (rows["fields"] == len(names)).all() and all((rows[f"length {n}"] == 8).all() for n in names)
        if not whole or rest not in (b"", TRAILER):
            raise TableError("PostgreSQL streamed rows of another form than was asked for")
        if len(rows):
            yield pa.record_batch({name: rows[name].astype(np.int64) for name in names})


def _lines(connection: Any, query: str, names: Sequence[str], pulse: Callable[[], None]) -> Iterator[Any]:
    """Yield rows of whole numbers and a person, read from CSV."""
    import pyarrow as pa
    from pyarrow import csv

    kinds = dict.fromkeys(names, pa.int64()) | {PERSON: pa.string()}
    read = csv.ReadOptions(column_names=list(kinds), use_threads=False)
    parse = csv.ParseOptions(newlines_in_values=True)
    convert = csv.ConvertOptions(
        column_types=kinds, strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""]
    )
    for lines in _copied(connection, f"COPY ({query}) TO STDOUT (FORMAT csv, FORCE_QUOTE *)", pulse):
        table = csv.read_csv(io.BytesIO(lines), read_options=read, parse_options=parse, convert_options=convert)
        yield from table.combine_chunks().to_batches()


def _copied(connection: Any, statement: str, pulse: Callable[[], None]) -> Iterator[bytes]:
    """Yield whole rows of a COPY, `BATCH_ROWS` at a time: PostgreSQL sends each row as one message."""
    from psycopg.pq import ExecStatus

    server = connection.pgconn
    result = server.exec_(statement.encode("utf-8"))
    if result.status != ExecStatus.COPY_OUT:
        raise TableError("PostgreSQL does not stream this relation; grant SELECT on it")
    done = False
    try:
        while not done:
            lines: list[Any] = []
            while len(lines) < BATCH_ROWS:
                size, data = server.get_copy_data(0)
                if size < 0:
                    done = True
                    break
                lines.append(data)
            pulse()
            if lines:
                yield b"".join(lines)
        while (end := server.get_result()) is not None:
            if end.status == ExecStatus.FATAL_ERROR:
                raise TableError("PostgreSQL failed while streaming the table")
    finally:
        if not done:
            connection.cancel()
            while server.get_copy_data(0)[0] >= 0:
                pass
            while server.get_result() is not None:
                pass
