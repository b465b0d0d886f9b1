"""Engines to which Ibis connects: opening a relation, reading its rows, and the settings of each connection.

Connections are read-only, except those of :func:`connect_to_write`. The queries are in
`espalier.core.tables.encoding_query`. Only these two modules import Ibis.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlparse, urlsplit

import ibis
from ibis.backends.sql import SQLBackend

from espalier.core.errors import TableError
from espalier.core.sqlite_steps import heed_signals, limit_steps, most_rows
from espalier.core.tables import duckdb_apart, mariadb, spark_warehouse
from espalier.core.tables.catalogue import ROWS, Origin, origin
from espalier.core.tables.connection import LOCKED, parts_of
from espalier.core.tables.postgres_names import columns_of, lock, with_schema
from espalier.core.tables.postgres_session import OPEN, settings, transaction
from espalier.core.tables.stream import CHANGED, Stream
from espalier.core.tables.unpacking import changes, check_ordinary

CHANGED_COLUMNS = "the columns changed after the table was opened; open it again"
WHOLE = ("mysql", "singlestoredb", "sqlite")
"""Engines that Ibis reads through pandas, all rows at once."""
FIRST = {
    "mssql": ("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",),
    "mysql": (
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "SET SESSION time_zone = '+00:00'",
        # only MariaDB reads the second variable; without it, a versioned table may show its rows at another time
        "SET SESSION sql_select_limit = 18446744073709551615 /*M!100304 , system_versioning_asof = DEFAULT */",
        f"SET SESSION lock_wait_timeout = {LOCKED}",
    ),
}
"""Session settings: each statement sees one consistent state of the rows, times are in UTC, and a query returns all
current rows and no earlier ones.
"""


def open_url(url: str, name: str) -> tuple[Any, Any, str | None, Origin, Callable[[], None], Callable[[], None]]:
    """Open a relation in one of `ENGINES`. Return the connection, the relation, a query over `ROWS` that compares text
    byte by byte, the kind of the relation, a function that locks it, and a check that its kind has not changed.
    """
    backend = _spark(url) if url.startswith("pyspark://") else _postgres(url)
    with closed_on_error(backend):
        if backend.name != "postgres":
            spark_warehouse.find(backend._session, urlsplit(url).path, name)
            return *_binary(backend, _named(backend, name)), origin_of(backend, name), lambda: None, lambda: None
        with transaction(backend.con, closed=False):
            _use_schema(backend)
            name = with_schema(backend.con, name)
            columns = columns_of(backend.con, name)
            table = _as_made(_named(backend, name), columns)
        with transaction(backend.con):
            kind = origin_of(backend, name)
            locks, check = partial(lock, backend.con, name), partial(_check_same, backend, name, kind, columns)
            return *_binary(backend, table), kind, locks, check


@contextmanager
def closed_on_error(backend: Any) -> Iterator[None]:
    """Close the connection if the block fails."""
    try:
        yield
    except BaseException:
        with suppress(Exception):
            disconnect(backend)
        raise


def origin_of(backend: Any, name: str) -> Origin:
    """Return the kind of the relation ``name`` in the catalogue."""
    return origin(backend, _named(backend, name))


def keeps_codes(backend: Any) -> bool:
    """Return whether the engine may keep codes in a temporary table until a release ends."""
    if backend.name != "postgres":
        return False
    from espalier.core.tables.postgres_rows import keeps_codes as asked

    with transaction(backend.con):
        return asked(backend.con)


def open_stream(url: str, name: str, shown: str) -> Stream:
    """Return the rows of a table in an engine that does not encode them.

    This supports every engine with an Ibis backend. Raises :class:`TableError` for others.
    """
    scheme = url.partition("://")[0]
    if scheme not in (known := sorted(entry.name for entry in entry_points(group="ibis.backends"))):
        raise TableError(f"{scheme} is not a known engine. Use one of {', '.join(known)}, or a file")
    file = _file_of(url, scheme) if scheme in ("duckdb", "sqlite") else None
    seen = changes(file) if scheme == "duckdb" and file is not None else None
    if seen is not None and file is not None:
        duckdb_apart.check_catalogue(file)
    options: dict[str, Any] = {"read_only": True} if scheme == "duckdb" else {}
    if scheme == "mysql":
        mariadb.use_pymysql()
        url, options = mariadb.connection_to(url)
    with warnings.catch_warnings(action="ignore"):  # a MySQL server may know time zones only by offset; see `FIRST`
        backend = _sqlite(url) if scheme == "sqlite" else ibis.connect(url, **options)
    if scheme == "duckdb":
        _shut(backend)
    if scheme == "sqlite" and backend.con.execute("PRAGMA encoding").fetchone() != ("UTF-8",):
        raise TableError(
            f"{shown} is stored as UTF-16, in which damaged text may be misread, so that two people may be "
            "treated as one; copy its rows into a new SQLite file"
        )
    for statement in FIRST.get(scheme, ()):
        backend.raw_sql(statement).close()
    table = _as_declared(backend, _named(backend, name)) if scheme == "sqlite" else _named(backend, name)
    if scheme == "duckdb" and table.op().namespace.catalog not in (None, backend.current_catalog):
        raise TableError(f"{shown} is in another attached database; name the file of that database in the URL")
    if scheme == "duckdb":
        table = _without_huge(backend, table)
    if scheme == "mysql":
        place, types = table.op(), table.schema()
        text = mariadb.query_of_texts(backend.con, place.name, place.namespace.database, list(types))
        table = table if text is None else backend.sql(text, schema=types)
    kinds = {column: _stored(kind, scheme) for column, kind in table.schema().items()}
    kind = origin_of(backend, name)
    most = partial(most_rows, file) if file and scheme == "sqlite" and kind == "table" else None
    return Stream(
        backend, table, kinds, shown, file if seen else None, seen, most, kind, partial(origin_of, backend, name)
    )


def answers(backend: Any, query: Any, rows: int, file: Path | None = None) -> Generator[Any]:
    """Yield the result of ``query``, about ``rows`` rows at a time: Arrow batches, or lists of a Python driver's rows.

    DuckDB reads its ``file`` in another process.

    Ibis's own readers of `WHOLE` would hold all rows, and convert whole numbers to floats in a column with a NULL.
    """
    if backend.name == "duckdb":  # Ibis's own reader holds all rows
        text = str(backend.compile(query))
        if file is not None and duckdb_apart.APART:
            yield from duckdb_apart.answered(file, [text], rows)
        else:
            yield from backend.con.sql(text).to_arrow_reader(rows)
    elif backend.name in WHOLE or type(backend).to_pyarrow_batches is SQLBackend.to_pyarrow_batches:
        with backend._safe_raw_sql(backend.compile(query)) as cursor:
            if [column[0] for column in cursor.description] != list(query.columns):
                raise TableError(CHANGED_COLUMNS)
            while part := cursor.fetchmany(rows):
                yield list(part)
    else:
        yield from backend.to_pyarrow_batches(query, chunk_size=rows)


def _named(backend: Any, name: str) -> Any:
    *catalog, own = parts_of(name)
    return backend.table(own, database=tuple(catalog) or None)


def _as_made(table: Any, columns: Sequence[tuple[str, int, str]]) -> Any:
    """Return ``table`` with an unknown type for PostgreSQL's domains, composites, ranges and geometric types.

    Ibis mistakes such a type for another one if another engine has a type with the same name, such as ``tinyint`` or
    ``string``. A user-defined cast of the underlying type would then read each cell.
    """
    made = {column for column, _, kind in columns if kind not in ("b", "e")}
    made |= {column for column, kind in table.schema().items() if kind.is_geospatial()}  # read by PostGIS's functions
    types = {column: ibis.expr.datatypes.unknown if column in made else kind for column, kind in table.schema().items()}
    return table.op().copy(schema=ibis.schema(types)).to_expr()


def _check_same(backend: Any, name: str, kind: Origin, columns: Sequence[tuple[str, int, str]]) -> None:
    """Refuse a relation of PostgreSQL whose kind has changed since it was opened, for example if a view has replaced a
    table.

    Call it in the transaction that reads the rows, after its first statement, which locks the relation.
    """
    if columns_of(backend.con, name) != columns or origin_of(backend, name) != kind:
        raise TableError(CHANGED.format(f"the relation {name!r}"))


def _file_of(url: str, scheme: str) -> Path:
    """Return the file that a DuckDB or SQLite URL names. Refuse anything but an ordinary file, because DuckDB would
    wait for a pipe. For DuckDB, also refuse another program's file, because DuckDB would load an extension for it.
    """
    _check_url(url, scheme)
    file = _path_of(url)
    check_ordinary(file)
    if scheme == "duckdb":
        duckdb_apart.check_program(file)
    return file


def _check_url(url: str, scheme: str) -> None:
    """Refuse a URL that may name a different file from the one it appears to name, because an engine ignores the text
    after the path.
    """
    if "#" in url or "%00" in url or any(letter < " " for letter in url) or ("?" in url and scheme == "sqlite"):
        raise TableError(
            f"the {scheme} URL contains '#', '?', options or a control character, so it may name another file; "
            "write # as %23 and ? as %3F in a SQLite URL, or rename the file"
        )


def _without_huge(backend: Any, table: Any) -> Any:
    """Return ``table`` with DuckDB's unsigned 128-bit numbers as text, because Arrow reads the upper half of their
    range as negative.
    """
    kinds = backend.con.sql(str(backend.compile(table))).types
    huge = [name for name, kind in zip(table.columns, kinds, strict=True) if str(kind) == "UHUGEINT"]
    return table.mutate(**{name: table[name].cast("string") for name in huge}) if huge else table


def _sqlite(url: str) -> Any:
    """Return a SQLite file opened read-only, for all threads. A missing file is not created."""
    import sqlite3

    from ibis.backends.sqlite import Backend

    class Backing(Backend):  # type: ignore[misc]
        def _parse_type(self, typ: str, nullable: bool) -> Any:
            """Return the type for a name in the catalogue, without its length if Ibis does not know it, as INT(11)."""
            for known in (typ, typ.partition("(")[0]):
                with suppress(Exception):
                    return super()._parse_type(known, nullable)
            return ibis.dtype("decimal", nullable=nullable)  # as in SQLite, which calls it NUMERIC

    path = _path_of(url)
    con = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, check_same_thread=False)
    limit_steps(con, path)
    try:
        con.execute("SELECT 1 FROM sqlite_master LIMIT 1").close()  # reads the catalogue
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
            raise TableError("cannot open the SQLite file, because its catalogue is damaged") from None
        raise
    heed_signals(con)
    return Backing.from_connection(con)


def _path_of(url: str) -> Path:
    """Return the file that a DuckDB or SQLite URL names; only a SQLite URL may contain escapes."""
    parts = urlsplit(url)
    path = parts.netloc + parts.path
    return Path(unquote(path) if parts.scheme == "sqlite" else path).absolute()


def _as_declared(backend: Any, table: Any) -> Any:
    """Return ``table`` with the types declared in SQLite's catalogue, and text for columns without one, such as
    expressions.

    For such a column Ibis would use the type of the first row's cell, so one row would decide how all others are read.
    Only text is accepted there, since 7 and '7' may identify two people.
    """
    place = table.op()
    asked = "SELECT name FROM pragma_table_info(?, ?) WHERE coalesce(type, '') = ''"
    found = {name for (name,) in backend.con.execute(asked, (place.name, place.namespace.database or "main"))}
    types = {name: ibis.dtype("string") if name in found else kind for name, kind in table.schema().items()}
    return place.copy(schema=ibis.schema(types)).to_expr()


def _stored(kind: Any, engine: str) -> Any:
    """Return the type in which cells of ``kind`` arrive: text for types without an equivalent.

    SQLite has 64-bit whole numbers, floats, text and bytes. A date, a decimal or any other declared type may contain
    anything.
    """
    if kind.is_uuid() or (kind.is_decimal() and kind.scale is None):
        return ibis.dtype("string")
    if engine == "mysql" and kind.is_geospatial():
        return ibis.dtype("binary")
    if engine == "mysql" and kind.is_array():
        return ibis.dtype("string")  # a SET, which Ibis mistakes for a list
    if engine in WHOLE and kind.is_integer() and kind.nbytes < 8:
        return ibis.dtype("int64")  # SQLite's INT2 has 64 bits, and Ibis gives a YEAR one byte
    stored = kind.is_integer() or kind.is_floating() or kind.is_boolean() or kind.is_string() or kind.is_binary()
    return kind if engine != "sqlite" or stored or kind.is_null() else ibis.dtype("string")


def fetched(backend: Any, query: str) -> list[tuple[Any, ...]]:
    """Return the result of ``query``, in memory."""
    if backend.name == "pyspark":
        return [tuple(row) for row in backend._session.sql(query).collect()]
    with transaction(backend.con):
        return list(backend.con.execute(query).fetchall())


def at_random(table: Any, rows: int, total: int) -> Any:
    """Return each of the ``total`` rows of ``table`` with the same probability, so that about ``rows`` rows are
    returned.
    """
    return table if total <= rows else table.filter(ibis.random() <= rows / total)


def streamed_rows(
    backend: Any,
    query: str,
    rows: int = 1 << 16,
    lock: Callable[[], None] = lambda: None,
    check: Callable[[], None] = lambda: None,
) -> Iterator[list[Any]]:
    """Yield the rows for ``query`` in an engine of `ENGINES`, ``rows`` at a time; ``lock`` and ``check`` run before and
    after the statement, in its transaction.
    """
    if backend.name == "pyspark":
        left = iter(backend._session.sql(query).toLocalIterator())
        while part := [tuple(row) for row in itertools.islice(left, rows)]:
            yield part
        return
    with transaction(backend.con), backend.con.cursor("espalier_rows") as cursor:
        lock()
        cursor.execute(query)
        check()
        while part := cursor.fetchmany(rows):
            yield part


def disconnect(backend: Any) -> None:
    """Close the connection. A Spark session is shared within this process and ends with it."""
    if backend.name != "pyspark":
        backend.disconnect()


def _postgres(url: str) -> Any:
    """Return a connection to PostgreSQL that leaves no setting and no prepared statement in its session.

    Ibis sets the time zone of the session, which is undone here: each transaction has its own settings.
    """
    from ibis.backends.postgres import Backend
    from ibis.backends.sql.datatypes import PostgresType

    class Types(PostgresType):  # type: ignore[misc]
        @classmethod
        def from_string(cls, type_string: str, nullable: bool | None = None) -> Any:
            """Return an unknown type for a name that Ibis cannot read, such as numeric(3,5)."""
            with suppress(Exception):
                return super().from_string(type_string, nullable=nullable)
            return ibis.expr.datatypes.unknown

    class Compiler(type(Backend.compiler)):  # type: ignore[misc]
        __slots__ = ()
        type_mapper = Types

    class Backing(Backend):  # type: ignore[misc]
        compiler = Compiler()

        def _post_connect(self) -> None:
            with self.con.transaction(force_rollback=True):
                self.con.execute(settings(closed=False))
                super()._post_connect()

    parsed = urlparse(url)
    return Backing()._from_url(parsed, **dict(parse_qsl(parsed.query)) | {"prepare_threshold": None})


def _spark(url: str) -> Any:
    """Return Spark on this machine: ``pyspark:///WAREHOUSE?setting=value&…``, or the existing session.

    Its log is off, because an error there may quote a cell.
    """
    from pyspark.sql import SparkSession

    parts = urlsplit(url)
    settings = {"spark.master": "local[*]", "spark.app.name": "espalier", "spark.ui.enabled": "false"}
    settings |= {"spark.sql.warehouse.dir": parts.path} if parts.path.strip("/") else {}
    builder = SparkSession.builder
    for name, value in (settings | dict(parse_qsl(parts.query))).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    if not session.sparkContext.master.startswith("local"):
        raise TableError("Spark must run on this machine (spark.master=local[*]), not on a cluster")
    session.sparkContext.setLogLevel("OFF")
    return ibis.pyspark.connect(session)


def connect_to_write(url: str) -> Any:
    """Return a connection that may write, for a URL of one of `ENGINES`; creates no file."""
    if url.startswith("duckdb://"):
        _file_of(url, "duckdb")
    return ibis.connect(url) if url.startswith("duckdb://") else _postgres(url)


def begin(backend: Any) -> None:
    """Begin a transaction that may write."""
    backend.con.execute("BEGIN")
    if backend.name == "postgres":
        backend.con.execute(settings(closed=False))
        _use_schema(backend)


def _use_schema(backend: Any) -> None:
    """Search the schema that a PostgreSQL URL names, if any, until the transaction ends."""
    if path := backend._con_kwargs.get("schema"):
        backend.con.execute("SELECT pg_catalog.set_config('search_path', %s, true)", [path])
        backend.con.execute(OPEN)


def _shut(backend: Any) -> None:
    """Restrict DuckDB to its own file. A relation's name or a view can then reach no other file, no network and no
    table of this process, and DuckDB does not spill to disk.

    All connections of this process to one file share these settings, so a later one has them too. DuckDB does not allow
    them to be relaxed later. A lock on all settings would reject the time zone that Ibis sets on a second connection.
    """
    closed = backend.con.execute("SELECT current_setting('enable_external_access')").fetchall() != [(True,)]
    for statement in duckdb_apart.QUIET if closed else (*duckdb_apart.QUIET, *duckdb_apart.SHUT):
        backend.con.execute(statement)


def _binary(backend: Any, table: Any) -> tuple[Any, Any, str | None]:
    """Return the columns with text compared byte by byte, because a collation may treat two ids as equal and so merge
    two people.
    """
    import sqlglot as sg
    from sqlglot import expressions as e

    texts = [name for name, kind in table.schema().items() if kind.is_string()]
    if not texts:
        return backend, table, None
    dialect, bytewise = backend.dialect, "UTF8_BINARY" if backend.name == "pyspark" else '"C"'

    def plain(name: str) -> Any:
        column = sg.column(name, quoted=True)
        if name not in texts:
            return column
        return sg.alias(e.Collate(this=e.cast(column, "TEXT"), expression=e.Var(this=bytewise)), name, quoted=True)

    source = sg.parse_one(backend.compile(table), read=dialect)
    query = sg.select(*map(plain, table.columns)).from_(source.subquery("t"))
    return backend, ibis.table(table.schema(), name=ROWS), str(query.sql(dialect))
