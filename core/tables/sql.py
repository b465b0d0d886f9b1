"""The schema's encoding as a query that Ibis writes for each engine. The only module that imports Ibis.

The query turns each declared column into whole numbers 0 … size − 1, as
:meth:`espalier.core.project.schema.Column.encode` would its texts. NULL and NaN come first: several engines find NaN
larger than every number. A category is compared in the column's own type, never in a cast to text, since engines
write `1.0`, `true` or a date in different ways. Two numbers beyond the codes mark refused cells: ``size`` an undeclared
value, ``size + 1`` an empty cell.
"""

from __future__ import annotations

import datetime as dt
import re
import warnings
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import ibis
import numpy as np
from ibis.backends.sql import SQLBackend
from numpy.typing import NDArray

from espalier.core.code_books import code_book
from espalier.core.errors import TableError
from espalier.core.project.schema import MISSING, Column, Schema
from espalier.core.tables.catalogue import Origin, origin
from espalier.core.tables.code_file import PERSON
from espalier.core.tables.connection import LOCKED, parts_of, time_limit
from espalier.core.tables.lots import runs
from espalier.core.tables.relation import ROWS
from espalier.core.tables.stream import Stream

MEMORY = "384MB"
"""Memory limit of DuckDB. It never spills to disk: a scan needs no more."""
FEW = 32
"""Largest number of bin edges that a row is compared with one after another."""
WHOLE = ("mysql", "singlestoredb", "sqlite")
"""Engines that Ibis reads through pandas, all rows at once."""
FIRST = {
    "mssql": ("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",),
    "mysql": (
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "SET SESSION time_zone = '+00:00'",
        "SET SESSION sql_select_limit = 18446744073709551615",
        f"SET SESSION lock_wait_timeout = {LOCKED}",
    ),
}
"""Session settings: one statement sees one state of the rows, times are in UTC, and no row is left out."""
_ISO_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_DATE = f"^[ \t\n\r\f\v]*{_ISO_DAY}([T ][0-9]{{2}}:[0-9]{{2}}[^ \t\n\r\f\v]*)?[ \t\n\r\f\v]*$"
_NUMBER = "^[ \t\n\r\f\v]*[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?[ \t\n\r\f\v]*$"
_FAR = "[eE][+-]?0*[1-9][0-9]{4,}[ \t\n\r\f\v]*$"
"""The exponent of a number beyond PostgreSQL's decimals, unless its digits make up for it."""
_SHORT = 9_000
"""Letters of a number whose digits cannot make up for such an exponent."""


def open_url(url: str, name: str) -> tuple[Any, Any, str | None]:
    """(an engine of `ENGINES`, the relation, the query for it as `ROWS` with texts compared byte by byte)."""
    backend = _spark(url) if url.startswith("pyspark://") else ibis.connect(url)
    if backend.name == "postgres":  # else a backslash in a category could end its literal
        backend.con.execute("SET standard_conforming_strings = on")
        backend.con.execute(f"SET statement_timeout = '{time_limit()}s'")
        backend.con.execute(f"SET lock_timeout = '{LOCKED}s'")
    return _binary(backend, _named(backend, name))


def origin_of(backend: Any, name: str) -> Origin:
    """Return the kind of the relation ``name`` in the catalogue."""
    return origin(backend, _named(backend, name))


def keeps_codes(backend: Any) -> bool:
    """Whether the engine may keep codes in a temporary table until a release ends."""
    if backend.name != "postgres":
        return False
    from espalier.core.tables.postgres_rows import keeps_codes as asked

    return asked(backend.con)


def open_stream(url: str, name: str, shown: str) -> Stream:
    """The rows of a table of an engine that encodes none itself.

    Any engine that Ibis has a backend for. Raises :class:`TableError` where it has none.
    """
    scheme = url.partition("://")[0]
    if scheme not in (known := sorted(entry.name for entry in entry_points(group="ibis.backends"))):
        raise TableError(f"{scheme} is no engine that is known here: {', '.join(known)}, or a file")
    if scheme in ("duckdb", "sqlite"):
        _check_url(url, scheme)
    with warnings.catch_warnings(action="ignore"):  # a MySQL server may know its zones by number only, see `FIRST`
        backend = _sqlite(url) if scheme == "sqlite" else ibis.connect(url, **_options(scheme))
    if scheme == "duckdb":
        _shut(backend)
    if scheme == "sqlite" and backend.con.execute("PRAGMA encoding").fetchone() != ("UTF-8",):
        raise TableError(
            f"{shown} is stored as UTF-16, where damaged text reads as other text, so that two persons could be one; "
            "copy its rows into a new SQLite file"
        )
    for statement in FIRST.get(scheme, ()):
        backend.raw_sql(statement).close()
    table = _as_declared(backend, _named(backend, name)) if scheme == "sqlite" else _named(backend, name)
    if scheme == "duckdb" and table.op().namespace.catalog not in (None, backend.current_catalog):
        raise TableError(f"{shown} is in another database that this process attached; name that file in the URL")
    if scheme == "duckdb":
        table = _without_huge(backend, table)
    kinds = {column: _stored(kind, scheme) for column, kind in table.schema().items()}
    return Stream(backend, table, kinds, shown)


def answers(backend: Any, query: Any, rows: int) -> Iterator[Any]:
    """Yield the answers of ``query``, about ``rows`` at a time: Arrow batches, or lists of rows of a Python driver.

    Ibis' own readers of `WHOLE` would keep all rows, and convert whole numbers to floats in a column with a NULL.
    """
    if backend.name == "duckdb":  # Ibis' own reader keeps all rows
        yield from backend.con.sql(str(backend.compile(query))).to_arrow_reader(rows)
    elif backend.name in WHOLE or type(backend).to_pyarrow_batches is SQLBackend.to_pyarrow_batches:
        for part in backend._cursor_batches(query, chunk_size=rows):
            yield list(part)
    else:
        yield from backend.to_pyarrow_batches(query, chunk_size=rows)


def _named(backend: Any, name: str) -> Any:
    *catalog, own = parts_of(name)
    return backend.table(own, database=tuple(catalog) or None)


def _check_url(url: str, scheme: str) -> None:
    """Refuse a URL that names another file than it seems to: an engine ignores what follows the path's end."""
    if "#" in url or "%00" in url or any(letter < " " for letter in url) or ("?" in url and scheme == "sqlite"):
        raise TableError(
            f"the {scheme} URL holds '#', '?', options or a control character, so that it may name another file; "
            "write # as %23 and ? as %3F in a SQLite URL, or rename the file"
        )


def _without_huge(backend: Any, table: Any) -> Any:
    """``table`` with DuckDB's unsigned numbers of 128 bits as text: Arrow takes the upper half for negative ones."""
    kinds = backend.con.sql(str(backend.compile(table))).types
    huge = [name for name, kind in zip(table.columns, kinds, strict=True) if str(kind) == "UHUGEINT"]
    return table.mutate(**{name: table[name].cast("string") for name in huge}) if huge else table


def _sqlite(url: str) -> Any:
    """A SQLite file that is only read, whichever thread asks; one that is not there is not made."""
    import sqlite3

    parts = urlsplit(url)
    path = Path(unquote(parts.netloc + parts.path)).absolute()
    return ibis.sqlite.from_connection(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, check_same_thread=False))


def _as_declared(backend: Any, table: Any) -> Any:
    """``table`` with the types that SQLite's catalogue declares, and text where it declares none, as of an expression.

    Ibis would take the type of the first row's cell for such a column: one row would decide how all others are read.
    Only text is accepted there, since 7 and '7' may be two people.
    """
    place = table.op()
    asked = "SELECT name FROM pragma_table_info(?, ?) WHERE coalesce(type, '') = ''"
    found = {name for (name,) in backend.con.execute(asked, (place.name, place.namespace.database or "main"))}
    types = {name: ibis.dtype("string") if name in found else kind for name, kind in table.schema().items()}
    return place.copy(schema=ibis.schema(types)).to_expr()


def _options(scheme: str) -> dict[str, Any]:
    """DuckDB: a file that is only read. MySQL: rows as they come, and all of Unicode, where two ids would else both be
    written as question marks."""
    if scheme == "duckdb":
        return {"read_only": True}
    if scheme != "mysql":
        return {}
    from MySQLdb.cursors import SSCursor

    return {"charset": "utf8mb4", "cursorclass": SSCursor}


def _stored(kind: Any, engine: str) -> Any:
    """The type that cells of ``kind`` come as: text for what has none here.

    SQLite has whole numbers of 64 bits, floats, texts and bytes; a date, a decimal or any other declared type may
    contain anything.
    """
    if kind.is_uuid() or (kind.is_decimal() and kind.scale is None):
        return ibis.dtype("string")
    if engine in WHOLE and kind.is_integer() and kind.nbytes < 8:
        return ibis.dtype("int64")  # SQLite's INT2 holds 64 bits, and Ibis gives a YEAR one byte
    stored = kind.is_integer() or kind.is_floating() or kind.is_boolean() or kind.is_string() or kind.is_binary()
    return kind if engine != "sqlite" or stored or kind.is_null() else ibis.dtype("string")


def fetched(backend: Any, query: str) -> list[tuple[Any, ...]]:
    """The rows that answer ``query``, in memory."""
    if backend.name == "pyspark":
        return [tuple(row) for row in backend._session.sql(query).collect()]
    return list(backend.con.execute(query).fetchall())


def disconnect(backend: Any) -> None:
    """Close the connection. A Spark session is shared by all who use it in this process, and ends with it."""
    if backend.name != "pyspark":
        backend.disconnect()


def _spark(url: str) -> Any:
    """Spark on this machine: ``pyspark:///WAREHOUSE?setting=value&…``, or the session that there is.

    Its log is off: an error there may quote a cell.
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
        raise TableError("Spark is read where it runs on this machine (spark.master=local[*]), not on a cluster")
    session.sparkContext.setLogLevel("OFF")
    return ibis.pyspark.connect(session)


def connect_to_write(url: str) -> tuple[str, Any]:
    """(the engine's name, a connection that may write) for a URL of one of `ENGINES`; makes no file of its own."""
    if url.startswith("duckdb://") and not Path(url.removeprefix("duckdb://").partition("?")[0]).exists():
        raise FileNotFoundError
    backend = ibis.connect(url)
    return backend.name, backend.con


def _shut(backend: Any) -> None:
    """Let DuckDB read its own file and nothing else: no file or network by a relation's name or by a view, no table of
    this process, no spill to disk.

    All connections of this process to one file share these settings, so that a later one finds them. DuckDB lets no
    one open it up again. A lock on all settings would refuse what Ibis sets (the time zone) on a second connection.
    """
    backend.con.execute("SET enable_progress_bar = false")
    backend.con.execute("SET python_enable_replacements = false")
    if backend.con.execute("SELECT current_setting('enable_external_access')").fetchall() == [(True,)]:
        for setting in (
            f"memory_limit = '{MEMORY}'",
            "temp_directory = ''",
            "allowed_directories = []",  # these two would stay open
            "allowed_paths = []",
            "enable_external_access = false",
        ):
            backend.con.execute(f"SET {setting}")


def _binary(backend: Any, table: Any) -> tuple[Any, Any, str | None]:
    """A collation may find two ids equal and so merge two people: texts are compared byte by byte instead."""
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


def code_name(index: int) -> str:
    """Return the name of the codes of column number ``index``: no name of the table gets into a snapshot."""
    return f"c{index}"


def encoding(table: Any, schema: Schema, dialect: str, person: str | None = None) -> Any:
    """The query for the codes of ``table``, one column per column of ``schema``.

    ``dialect`` is the engine's name. ``person`` adds the person identifier of each row, as text.
    Raises :class:`TableError` for a column that is not there or whose type no cell of a table can have.
    """
    made = {}
    for i, column in enumerate(schema.columns):
        made[code_name(i)] = _code(_column(table, column.name), column, dialect).cast("int32")
    if person is not None:
        made[PERSON] = _person(_column(table, person))
    return table.select(**made)


def packed(codes: Any, schema: Schema) -> Any:
    """The answer of :func:`encoding` with its codes joined to a few whole numbers n0, n1, …, cheaper to write.

    Each column has ``size + 2`` codes, with the two that mark refused cells.
    """
    radices = [column.size + 2 for column in schema.columns]
    made = {}
    for i, run in enumerate(runs(radices)):
        number: Any = ibis.literal(0, "int64")
        for place in range(len(radices))[run]:
            number = number * radices[place] + codes[code_name(place)].cast("int64")
        made[f"n{i}"] = number
    return codes.select(**made, **{name: codes[name] for name in (PERSON,) if name in codes.columns})


def lots_of(rows: Any, numbers: Sequence[str], key: str) -> NDArray[np.uint64]:
    """The lots (`espalier.core.tables.lots`) of an Arrow table's rows, in order: of its ``numbers``, ``i`` and
    ``person``.
    """
    joined = " || ',' || ".join(numbers)
    text = f"$1 || ':' || {joined} || ':' || i || ':' || person"
    with _hashing().cursor() as con:
        con.register(ROWS, rows)
        found = con.execute(f"SELECT ('0x' || left(md5({text}), 16))::UBIGINT AS lot FROM {ROWS}", [key]).fetchnumpy()
    return np.asarray(found["lot"])


@lru_cache(maxsize=1)
def _hashing() -> Any:
    """An embedded engine that keeps nothing: one thread, so that rows stay in order, and no place to spill."""
    import duckdb

    return duckdb.connect(config={"threads": 1, "temp_directory": ""})


def _column(table: Any, name: str) -> Any:
    if name not in table.columns:
        known = ", ".join(list(table.columns)[:12]) + (", …" if len(table.columns) > 12 else "")
        raise TableError(f"there is no column {name!r}; the table has {known}", column=name)
    return table[name]


def _person(value: Any) -> Any:
    """The person identifier as text, for types with the same text in every engine."""
    kind = value.type()
    if kind.is_decimal() and kind.scale == 0:
        return value.cast("string").nullif("NaN")  # which PostgreSQL's decimals may be
    if kind.is_string() or kind.is_integer() or kind.is_uuid():
        return value.cast("string")
    raise TableError(
        f"the person column {value.get_name()!r} holds {kind} values; give the identifiers as text or whole numbers",
        column=value.get_name(),
    )


def _code(value: Any, column: Column, dialect: str) -> Any:
    kind = value.type()
    if column.number_style or (column.code_book and code_book(column.code_book).by_rule):
        why = "counts longer codes as codes of a code book" if column.code_book else "writes numbers in its own style"
        raise TableError(
            f"column {column.name!r} {why}, which this engine cannot do. Release from a file, or give the column plain "
            "values in a view",
            column=column.name,
        )
    missing = value.isnull()
    if kind.is_floating():
        missing |= value.isnan()
    elif kind.is_decimal() and dialect == "postgres":
        missing |= value.cast("string") == "NaN"
    elif kind.is_string():
        missing |= value == MISSING
    if marks := [x for x in (_as_typed(text, kind) for text in column.missing_marks) if x is not None]:
        missing |= value.isin(marks)
    empty = column.values if column.missing else column.size + 1
    unknown = column.values if column.unknown == "missing" else column.size
    if column.dates is not None:
        codes = _periods(value, column, _int(unknown), dialect)
    elif column.kind == "numeric":
        codes = _bins(value, column, _int(unknown), dialect)
    else:
        codes = _categories(value, column, _int(unknown))
    return ibis.cases((missing, _int(empty)), else_=codes)


def _int(code: int) -> Any:
    return ibis.literal(code, "int32")


def _exact(number: float) -> Any:
    """A float as the engine reads it off its shortest text: a plain literal may be a decimal first, rounded twice."""
    return ibis.literal(repr(float(number))).cast("float64")


def _read_number(text: Any, dialect: str) -> Any:
    """A decimal, or a text that is written like a number, as the nearest float. PostgreSQL refuses numbers beyond its
    floats, and beyond its decimals."""
    if dialect != "postgres":
        return text.try_cast("float64")
    number = text.cast("decimal")
    largest, least = (ibis.literal(x).cast("decimal") for x in ("1e300", "1e-300"))
    zero = ibis.literal("0").cast("decimal")
    bounded = ibis.least(ibis.greatest(number, -largest), largest)
    tiny = ibis.cases((number == zero, zero), (number > zero, least), else_=-least)
    near = ibis.cases((bounded.abs() < least, tiny), else_=bounded).cast("float64")
    if not text.type().is_string():
        return near
    vanishes = text.re_search("^[^1-9eE]*[eE]") | text.re_search("[eE]-")
    edge = ibis.cases((vanishes, _exact(0.0)), (text.re_search("^[^0-9]*-"), _exact(-1e300)), else_=_exact(1e300))
    return ibis.cases((text.re_search(_FAR) & (text.length() <= _SHORT), edge), else_=near)


def _is_like(text: Any, pattern: str, dialect: str) -> Any:
    """Is all of ``text`` as ``pattern`` says? In Java a closing $ would let a line break of Unicode follow."""
    return text.re_search(pattern.removesuffix("$") + r"\z" if dialect == "pyspark" else pattern)


def _bins(value: Any, column: Column, unknown: Any, dialect: str) -> Any:
    kind = value.type()
    if kind.is_string():
        odd, number = ~_is_like(value, _NUMBER, dialect), _read_number(value, dialect)
    elif kind.is_floating():
        number = value.cast("float64")
        odd = number.isinf()
    elif kind.is_decimal() and kind.scale is None and dialect == "postgres":
        odd, number = value.cast("string").isin(["Infinity", "-Infinity"]), _read_number(value, dialect)
    elif kind.is_integer() or kind.is_decimal():
        odd, number = None, value.cast("float64")
    else:
        _refuse_nested(value)
        return unknown  # True or a date is not a number
    bins = _between(number, [_exact(edge) for edge in column.edges[1:-1]])
    return bins if odd is None else ibis.cases((odd, unknown), else_=bins)


def _between(value: Any, edges: Sequence[Any], first: int = 0) -> Any:
    """How many of ``edges`` (increasing) are at or below ``value``, and ``first`` more: by halving where they are many,
    so that a row is compared with few of them."""
    if len(edges) <= FEW:
        steps = [(value < edge, _int(first + i)) for i, edge in enumerate(edges)]
        last = _int(first + len(edges))
        return ibis.cases(*steps, else_=last) if steps else last
    middle = len(edges) // 2
    upper = _between(value, edges[middle + 1 :], first + middle + 1)
    return ibis.cases((value < edges[middle], _between(value, edges[:middle], first)), else_=upper)


def _periods(value: Any, column: Column, unknown: Any, dialect: str) -> Any:
    """The calendar bins of days: of dates, of moments without a time zone, and of texts written as ISO dates."""
    kind = value.type()
    if kind.is_timestamp() and kind.timezone is not None:
        raise TableError(
            f"column {column.name!r} holds moments with a time zone, whose day depends on the zone; give them as dates",
            column=column.name,
        )
    if kind.is_string():
        day = value.re_extract(_ISO_DAY, 0)
        odd = ~_is_like(value, _DATE, dialect) | ~_in_calendar(day)
    elif kind.is_date() or kind.is_timestamp():
        last = "9999-12-31" if kind.is_date() else "9999-12-31 23:59:59.999999"
        day, odd = value, (value < _day("0001-01-01", kind)) | (value > _day(last, kind))  # infinities
    else:
        _refuse_nested(value)
        return unknown  # a number or a time of day is no date
    ends = (dt.date.fromordinal(int(edge)).isoformat() for edge in column.edges[1:-1])
    steps = [(day < _day(end, kind), _int(i)) for i, end in enumerate(ends)]
    return ibis.cases((odd, unknown), *steps, else_=_int(column.values - 1))


def _day(text: str, kind: Any) -> Any:
    return ibis.literal(text) if kind.is_string() else ibis.literal(text).cast(kind)


def _in_calendar(day: Any) -> Any:
    """Is a text of ten characters, written as a date, a day of the calendar? By comparing texts: nothing is cast."""
    century, year, month, last = (day.substr(at, 2) for at in (0, 2, 5, 8))
    fours = [f"{i:02d}" for i in range(0, 100, 4)]
    leap = ibis.ifelse(year == "00", century.isin(fours), year.isin(fours))
    february = ibis.ifelse(leap, "29", "28")
    most = ibis.cases((month == "02", february), (month.isin(["04", "06", "09", "11"]), "30"), else_="31")
    return (day.substr(0, 4) != "0000") & month.between("01", "12") & last.between("01", most)


def _categories(value: Any, column: Column, unknown: Any) -> Any:
    _refuse_nested(value)
    place = {category: i for i, category in enumerate(column.categories)}
    texts: dict[int, list[str]] = {i: [category] for category, i in place.items()}
    for group, members in column.groups:
        texts[place[group]] += members
    kind = value.type()
    if kind.is_string():
        found_at = sorted(
            (text.encode("utf-8", "surrogatepass"), text, code) for code, said in texts.items() for text in said
        )
        return _looked_up(value, [(text, code) for _, text, code in found_at], unknown)
    compared = value
    if kind.is_floating():
        compared = value.cast("float64")
    elif kind.is_uuid() or (kind.is_decimal() and kind.scale is None):
        compared = value.cast("string")
    found = []
    for code, said in texts.items():
        same = [x for x in (_as_typed(text, kind) for text in said) if x is not None]
        if same:
            found.append((compared.isin(same), _int(code)))
    return ibis.cases(*found, else_=unknown) if found else unknown


def _looked_up(value: Any, texts: Sequence[tuple[str, int]], unknown: Any) -> Any:
    """The code of a text among ``texts`` (in the order of their bytes, which is how engines compare here), by halving
    where they are many."""
    if len(texts) > FEW:
        middle = len(texts) // 2
        below, above = (_looked_up(value, part, unknown) for part in (texts[:middle], texts[middle:]))
        return ibis.cases((value < ibis.literal(texts[middle][0]), below), else_=above)
    same: dict[int, list[str]] = {}
    for text, code in texts:
        same.setdefault(code, []).append(text)
    return ibis.cases(*((value.isin(said), _int(code)) for code, said in same.items()), else_=unknown)


def _as_typed(text: str, kind: Any) -> Any:
    """The value of type ``kind`` that a table reader would write as ``text``; None where there is none."""
    try:
        if kind.is_string() or kind.is_uuid():
            return ibis.literal(text)
        if kind.is_boolean():
            return {"True": ibis.literal(True), "False": ibis.literal(False)}.get(text)
        if kind.is_integer():
            low, high = (0, 1 << 64) if kind.is_uint64() else (1 - (1 << 63), 1 << 63)
            known = str(int(text)) == text and low <= int(text) < high
            return ibis.literal(int(text), "uint64" if kind.is_uint64() else "int64") if known else None
        if kind.is_floating():
            number = float(text)
            whole = number.is_integer() and abs(number) < 2**53
            return _exact(number) if (str(int(number)) if whole else repr(number)) == text else None
        if kind.is_decimal():
            return _as_decimal(text, kind)
        if kind.is_date():
            return ibis.literal(text).cast("date") if dt.date.fromisoformat(text).isoformat() == text else None
        if kind.is_timestamp():
            return _as_timestamp(text, kind)
        if kind.is_time():
            return ibis.literal(text).cast("time") if dt.time.fromisoformat(text).isoformat() == text else None
    except (ValueError, OverflowError, InvalidOperation):
        pass
    return None


def _as_decimal(text: str, kind: Any) -> Any:
    if kind.scale is None:
        return ibis.literal(text)
    scaled = Decimal(text).quantize(Decimal(1).scaleb(-kind.scale))
    return ibis.literal(text).cast(kind) if str(scaled) == text else None


def _as_timestamp(text: str, kind: Any) -> Any:
    """A moment: a date alone is its midnight where there is no time zone."""
    if kind.timezone is None and re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        return ibis.literal(text).cast(kind)
    moment = dt.datetime.fromisoformat(text)
    plain = (moment.tzinfo is None) == (kind.timezone is None) and moment.isoformat() == text
    midnight = moment.tzinfo is None and moment.time() == dt.time()
    return ibis.literal(text).cast(kind) if plain and not midnight else None


def _refuse_nested(value: Any) -> None:
    kind = value.type()
    if kind.is_unknown():
        raise TableError(
            f"column {value.get_name()!r} has a type that Espalier cannot read. Name a view that casts it to text.",
            column=value.get_name(),
        )
    if not (kind.is_primitive() or kind.is_string() or kind.is_temporal() or kind.is_decimal() or kind.is_uuid()):
        raise TableError(
            f"column {value.get_name()!r} holds {kind} values; give one plain value per cell", column=value.get_name()
        )
