"""New table in an engine for synthetic rows. It is created and filled in one transaction, and never replaces another
table.

No URL, user or password is stored or appears in a message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any

from espalier.core.errors import TableError
from espalier.core.tables.connection import parts_of, while_opening
from espalier.core.tables.engine_errors import BUGS, OURS

TAKE_ROWS = ("duckdb", "postgres", "postgresql")
"""URL schemes of the engines that Espalier can write to. Spark is not one of them, because it has no transactions."""
LONGEST_NAME = 63
"""Maximum number of bytes in a name: PostgreSQL truncates longer names."""


@dataclass(frozen=True)
class Destination:
    """Table ``name`` to be created at ``url``, with quotes as in SQL; ``schema.name`` outside the default schema."""

    name: str
    url: str = field(repr=False)

    def check(self, columns: Any) -> None:
        """Raise :class:`TableError` unless a table with these ``columns`` (an Arrow schema) can be created there now.

        Creating the table and rolling back tests names, types and permissions before any budget is spent.
        """
        for name in (*parts_of(self.name), *columns.names):
            if len(name.encode()) > LONGEST_NAME:
                raise TableError(f"the name {name!r} is too long for a database; use at most {LONGEST_NAME} bytes")
        with self._created(columns) as (_, con):
            con.execute("ROLLBACK")

    def write(self, columns: Any, batches: Iterator[Any]) -> None:
        """Create the table and fill it with Arrow ``batches``, all with the schema ``columns``, or leave no trace."""
        with self._created(columns) as (fill, con):
            try:
                fill(con, self._sql, columns, batches)
                con.execute("COMMIT")
            except BaseException:
                con.execute("ROLLBACK")
                raise

    @property
    def _sql(self) -> str:
        return ".".join(map(_quoted, parts_of(self.name)))

    def _create(self, columns: Any) -> str:
        cells = ", ".join(f"{_quoted(column.name)} {_TYPES[str(column.type)]}" for column in columns)
        return f"CREATE TABLE {self._sql} ({cells})"

    @contextmanager
    def _created(self, columns: Any) -> Iterator[tuple[Callable[..., None], Any]]:
        """Create the table in a transaction, and yield the function that fills it, and the connection.

        Errors name only a cause: an engine's own messages may contain the URL.
        """
        from espalier.core.tables import engines

        shown = f"the table {self.name!r} cannot be written"
        try:
            backend = engines.connect_to_write(self.url)
        except TableError:
            raise
        except Exception as error:
            why = while_opening(error)
            raise TableError(f"{shown}: the database cannot be opened for writing: {why}") from None
        engine, con = backend.name, backend.con
        try:
            engines.begin(backend)
            con.execute(self._create(columns))
            if engine == "postgres" and con.execute(_TEMPORARY, [self._sql]).fetchone() != (False,):
                raise TableError(
                    f"{shown}: this name belongs to a temporary schema or to the system. Name a schema: SCHEMA.NAME"
                )
            yield (_copy if engine == "postgres" else _insert), con
        except (*OURS, *BUGS):
            raise
        except Exception as error:
            there = type(error).__name__ == "DuplicateTable" or "already exists" in str(error)
            why = "it already exists, and nothing is overwritten" if there else type(error).__name__
            raise TableError(f"{shown}: {why}") from None
        finally:
            con.close()


_TEMPORARY = (
    "SELECT relpersistence = 't' OR relnamespace = 'pg_catalog'::pg_catalog.regnamespace FROM pg_catalog.pg_class "
    "WHERE oid = pg_catalog.to_regclass(%s)"
)
"""Query whether the rows would be written to a temporary table, or to a system table of the new table's name."""
_TYPES = {"string": "text", "int64": "bigint", "double": "double precision", "date32[day]": "date"}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _copy(con: Any, table: str, columns: Any, batches: Iterator[Any]) -> None:  # noqa: ARG001
    with con.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN") as lines:
        for batch in batches:
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                lines.write_row(row)


def _insert(con: Any, table: str, columns: Any, batches: Iterator[Any]) -> None:
    import pyarrow as pa

    rows = f"espalier_rows_{token_hex(8)}"  # no table of the database has this name
    con.register(rows, pa.RecordBatchReader.from_batches(columns, batches))
    con.execute(f"INSERT INTO {table} SELECT * FROM {rows}")
    con.unregister(rows)
