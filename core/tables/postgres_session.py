"""PostgreSQL transactions that set their own session settings.

A pooler such as PgBouncer in transaction mode may run each transaction in a different server session, and shares each
session among many clients. A session setting would then be lost or would affect other clients. Each transaction
therefore applies every setting on which its answers depend, and leaves none behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from espalier.core.tables.connection import LOCKED, time_limit

READS = {
    "standard_conforming_strings": "on",  # a category is the declared text, even if it contains a backslash
    "client_encoding": "UTF8",
    "extra_float_digits": "1",  # floats are written with all their digits
    "TimeZone": "UTC",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "bytea_output": "hex",
    "lock_timeout": f"{LOCKED}s",
    "idle_in_transaction_session_timeout": "0",  # a fit between two counts may take long
}
"""Settings for each transaction."""
OWN = ("role", "search_path", "default_transaction_read_only", "row_security")
"""Settings that each transaction takes from the user's own defaults, regardless of what another client left in the
session.
"""
CLOSED = "SET LOCAL search_path = pg_catalog, pg_temp"
"""Statement that closes the search path, because others may create relations and functions with the names that a
release uses.
"""


OPEN = (
    "SELECT pg_catalog.set_config('search_path', pg_catalog.current_setting('search_path') || ', pg_temp', true) "
    "WHERE pg_catalog.current_schema() IS NOT NULL"
)
"""Statement that searches temporary tables last, because another client may have left some in a session of a pooler.
Otherwise, PostgreSQL searches them first. Without a schema, tables would be created among the temporary ones.
"""


def settings(*, closed: bool = True) -> str:
    """Return the statements that follow a BEGIN. The search path is the user's unless it is ``closed``."""
    wanted = {**READS, "statement_timeout": f"{time_limit()}s"}
    own = [f"SET LOCAL {name} TO DEFAULT" for name in OWN]
    more = [f"SET LOCAL {name} = '{value}'" for name, value in wanted.items()]
    return "; ".join([*own, *more, CLOSED if closed else OPEN])


@contextmanager
def transaction(connection: Any, *, closed: bool = True) -> Iterator[None]:
    """Run the block in one transaction with these settings."""
    with connection.transaction():
        connection.execute(settings(closed=closed))
        yield
