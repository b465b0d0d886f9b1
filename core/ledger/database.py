"""Connections to the database of a ledger: a PostgreSQL server or a SQLite file."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event

from espalier.core.errors import LedgerUnavailable
from espalier.core.ledger.reasons import PATIENCE
from espalier.core.ledger.secret_file import need_own
from espalier.core.sqlite_steps import limit_steps
from espalier.core.tables.postgres_session import OPEN

_SETTINGS = {
    "role": "DEFAULT",
    "search_path": "DEFAULT",
    "client_encoding": "'UTF8'",
    "standard_conforming_strings": "on",
    "extra_float_digits": "1",
    "statement_timeout": "DEFAULT",
    "lock_timeout": f"'{PATIENCE}s'",
    "idle_in_transaction_session_timeout": f"'{2 * PATIENCE}s'",
}
"""PostgreSQL's settings for each transaction. ``DEFAULT`` is the user's own default, whatever another client of a
pooler has set.
"""
_COMPUTED = """
SELECT 1 FROM sqlite_master AS made LEFT JOIN pragma_table_xinfo(made.name) AS part
WHERE made.name LIKE 'espalier%' AND made.type IN ('table', 'view')
AND (made.type = 'view' OR made.sql LIKE 'CREATE VIRTUAL%' OR part.hidden <> 0)
"""
"""Query that returns a row if a SQLite file has a view, a virtual table or a computed column with one of the ledger's
names. Reading any of these might never end.
"""


def engine_of(url: sa.URL, table: str) -> sa.Engine:
    """Return an engine that opens a connection for each use and keeps none, so that threads and forks share nothing.

    A SQLite file that has tables must have one named ``table``; otherwise it belongs to another program.
    """
    if url.get_backend_name() == "postgresql":
        # every statement sees all earlier commits, even if it waited for the lock
        served = sa.create_engine(
            url,
            poolclass=sa.NullPool,
            isolation_level="READ COMMITTED",
            connect_args={"connect_timeout": 10, "client_encoding": "utf8", "prepare_threshold": None},
        )

        @event.listens_for(served, "begin")
        def _set(connection: sa.Connection) -> None:  # set for this transaction only, because a pooler shares sessions
            settings = [f"SET LOCAL {name} TO {value}" for name, value in _SETTINGS.items()]
            connection.exec_driver_sql("; ".join([*settings, OPEN]), execution_options={"no_parameters": True})

        return served
    path = Path(url.database or "").absolute()

    def opened() -> sqlite3.Connection:
        _need_own_logs(path)
        file = f"{path.as_uri()}?mode=rw"  # never creates an empty ledger
        return sqlite3.connect(file, timeout=PATIENCE, uri=True)

    engine = sa.create_engine(url, poolclass=sa.NullPool, creator=opened)

    @event.listens_for(engine, "connect")
    def _connected(connection: Any, _: Any) -> None:
        limit_steps(connection, Path(url.database or ""))
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if names and table not in names:
            raise LedgerUnavailable(f"{url.database} is another program's database; name a new file for the ledger")
        if connection.execute(_COMPUTED).fetchone() is not None:
            raise LedgerUnavailable(
                f"{url.database} has computed columns where a ledger stores values; restore a backup"
            )
        connection.isolation_level = None  # transactions begin explicitly, below
        for pragma in ("journal_mode=DELETE", "synchronous=EXTRA", "secure_delete=ON"):  # answers leave no trace
            connection.execute(f"PRAGMA {pragma}").close()

    @event.listens_for(engine, "begin")
    def _begun(connection: sa.Connection) -> None:
        if not connection.get_execution_options().get("espalier_writes"):
            connection.exec_driver_sql("BEGIN")
            return
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        with suppress(FileExistsError):  # SQLite would use any existing file
            os.close(os.open(path.with_name(f"{path.name}-journal"), os.O_CREAT | os.O_EXCL, 0o600))
        _need_own_logs(path)

    return engine


def _need_own_logs(path: Path) -> None:
    """Raise :class:`LedgerUnavailable` if another user has put SQLite's log next to the file: that user could read what
    is written, and control what is rolled back.
    """
    for end in ("-journal", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            need_own(path.with_name(f"{path.name}{end}"))


def need_file(path: Path, create: bool) -> None:
    """Raise :class:`LedgerUnavailable` unless the file exists; ``create`` makes an empty one that only its owner can
    read.
    """
    if create:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    if create and path.is_file():
        need_own(path)
    if not path.is_file():
        there = "is not a file" if path.exists() else "does not exist"
        raise LedgerUnavailable(
            f"the ledger {path} {there}; opening a table's budget creates one", missing=not path.exists()
        )
