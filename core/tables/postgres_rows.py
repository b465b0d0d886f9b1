"""Codes streamed by PostgreSQL if the role cannot create a temporary table: on a replica, or in a read-only session.

PostgreSQL encodes each row separately (`espalier.core.tables.encoding_query`), joins the codes into a few whole
numbers, and sends them through one cursor, which sees one consistent state of the rows. Neither rows nor text values
leave the server, except the person identifier if there is one. Numbers arrive in PostgreSQL's binary form, so no number
is parsed from text.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from espalier.core.project.schema import Schema
from espalier.core.tables.code_file import PERSON
from espalier.core.tables.encoding import Batch
from espalier.core.tables.packing import unpacked
from espalier.core.tables.postgres_session import transaction
from espalier.core.tables.row_limits import runs

BATCH_ROWS = 1 << 17


def keeps_codes(connection: Any) -> bool:
    """Return whether a temporary table can be created, which requires the role's privilege, a server that is not a
    replica, and a writable session.
    """
    asked = (
        "SELECT has_database_privilege(current_database(), 'TEMP') AND NOT pg_is_in_recovery() "
        "AND current_setting('default_transaction_read_only') = 'off'"
    )
    return bool(connection.execute(asked).fetchone()[0])


def streamed(
    connection: Any,
    query: str,
    schema: Schema,
    person: bool,
    pulse: Callable[[], None],
    lock: Callable[[], None] = lambda: None,
    check: Callable[[], None] = lambda: None,
) -> Generator[Batch]:
    """Yield the codes that ``query`` (of :func:`espalier.core.tables.encoding_query.packed`) returns.

    ``lock`` and ``check`` run before and after it, in the same transaction. An exception raised by ``pulse`` ends the
    cursor and its transaction.
    """
    import pyarrow as pa

    names = [f"n{i}" for i in range(len(runs([column.size + 2 for column in schema.columns])))]
    with transaction(connection), connection.cursor("espalier_codes", binary=True) as cursor:
        lock()
        cursor.execute(query)
        check()
        while rows := cursor.fetchmany(BATCH_ROWS):
            pulse()
            columns = list(zip(*rows, strict=True))
            made = {name: np.fromiter(cells, np.int64, len(rows)) for name, cells in zip(names, columns, strict=False)}
            whose = {PERSON: pa.array(columns[-1], pa.string())} if person else {}
            yield unpacked(pa.record_batch({**made, **whose}), schema)
