"""Codes streamed by PostgreSQL if the role cannot create a temporary table: on a replica, or in a read-only session.

PostgreSQL encodes each row by itself (`espalier.core.tables.encoding_query`), joins the codes to a few whole numbers,
and sends them by one COPY statement, which sees one state of the rows. Neither rows nor texts leave the server except
the person identifier, if there is one. The lines are read with declared types: nothing is guessed from them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Generator, Iterator
from typing import Any

from espalier.core.errors import TableError
from espalier.core.project.schema import Schema
from espalier.core.tables.code_file import PERSON
from espalier.core.tables.encoding import Batch
from espalier.core.tables.packing import unpacked
from espalier.core.tables.row_limits import runs

BATCH_ROWS = 1 << 17


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
    import pyarrow as pa
    from pyarrow import csv

    names = [f"n{i}" for i in range(len(runs([column.size + 2 for column in schema.columns])))]
    kinds = dict.fromkeys(names, pa.int64()) | ({PERSON: pa.string()} if person else {})
    read = csv.ReadOptions(column_names=list(kinds), use_threads=False)
    parse = csv.ParseOptions(newlines_in_values=True)
    convert = csv.ConvertOptions(
        column_types=kinds, strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""]
    )
    for lines in _copied(connection, f"COPY ({query}) TO STDOUT (FORMAT csv, FORCE_QUOTE *)", pulse):
        table = csv.read_csv(io.BytesIO(lines), read_options=read, parse_options=parse, convert_options=convert)
        for batch in table.combine_chunks().to_batches():
            yield unpacked(batch, schema)


def _copied(connection: Any, statement: str, pulse: Callable[[], None]) -> Iterator[bytes]:
    """Yield whole lines of a COPY, `BATCH_ROWS` at a time: PostgreSQL sends each line as one message."""
    from psycopg.pq import ExecStatus

    server = connection.pgconn
    result = server.exec_(statement.encode("utf-8"))
    if result.status != ExecStatus.COPY_OUT:
        raise TableError("PostgreSQL does not stream this relation; grant SELECT on it")
    done = False
    try:
        while not done:
            lines: list[bytes] = []
            while len(lines) < BATCH_ROWS:
                size, data = server.get_copy_data(0)
                if size < 0:
                    done = True
                    break
                lines.append(bytes(data))
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
