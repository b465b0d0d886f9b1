"""Types with their special values, and the layouts in which tables are stored, for `tests.support.row_by_row`."""

from __future__ import annotations

import csv
import datetime as dt
import itertools
import sqlite3
import uuid
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from espalier.core.tables.frames import read_data
from espalier.core.tables.relation import open_relation
from tests.support.row_by_row import ROW, Cells, Kind, Layout, People

NAN, INF = float("nan"), float("inf")
NUMBERS, DAYS = ("numeric", "categorical"), ("dates", "categorical")
REALS = (1.0, 7.3, NAN, None, 0.0, -0.0, INF, -INF, 1e300, 5e-324, 0.1 + 0.2)
WRITTEN_REALS = ("1", "7.3", "0", "inf", "1e+300", "0.30000000000000004", "5e-324", "7.300000190734863")
WHOLE = (1, 7, None, 0, -7, 2**53, 2**53 + 1, 2**63 - 1, -(2**63))
WRITTEN_WHOLE = ("1", "7", "0", "9007199254740992", "9007199254740993", "9223372036854775807", "127")
TEXTS = (
    *("7", "07", " 7 ", "7.0", "", None, "NaN", "inf", "1e999", '"7"', "a,b", "é", "e\u0301", "a ", "٧"),
    *("0001-01-01", "2024-02-30"),
)
WRITTEN_TEXTS = (
    *("7", "07", "007", " 7 ", "7.0", "NaN", "nan", "inf", "True", '"7"', "a,b", "é", "e\u0301", "E", "a ", "٧"),
    *("0001-01-01", "9999-12-31", "x"),
)
DECIMALS = (Decimal("1.50"), Decimal("7.00"), None, Decimal("-99999999.99"), Decimal("0.00"), Decimal("0.30"))
DATES = (
    *(dt.date(2020, 1, 2), None, dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1970, 1, 1), dt.date(1582, 10, 10)),
    *(dt.date(2024, 2, 29), dt.date(1900, 2, 28)),
)
WRITTEN_DATES = ("2020-01-02", "0001-01-01", "9999-12-31", "1970-01-01", "2024-02-29")
MOMENTS = (
    *(dt.datetime(2020, 1, 2), None, dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59)),
    *(dt.datetime(1969, 12, 31, 23, 59, 59), dt.datetime(2020, 1, 2, 0, 0, 1)),
)
WRITTEN_MOMENTS = (*WRITTEN_DATES, "9999-12-31T23:59:59", "2020-01-02T00:00:01", "2020-01-02T00:00:00+00:00")
NEAR = (
    dt.datetime(2020, 1, 2),
    None,
    dt.datetime(1700, 1, 1),
    dt.datetime(2262, 1, 1),
    dt.datetime(2020, 1, 2, 0, 0, 1),
)
ZONED = tuple(None if m is None else m.replace(tzinfo=dt.UTC) for m in NEAR)
SPELLED = (
    *("31.12.2020", "12/31/2020", "1/2/2021 9:30 PM", "2020/12/31", "20201231", "05JAN2020:10:30", "5 Jan 2020", None),
    *("31.02.2020", "31.12.20", "2020-12-31", " 3-4-2022 ", "٣/٤/٢٠٢٢", ""),
)
ORDERS = ("dmy", "mdy", "ymd")
TIMES = (dt.time(10), None, dt.time(0), dt.time(23, 59, 59, 999999))
WRITTEN_TIMES = ("10:00:00", "00:00:00", "23:59:59.999999")


def _floats(width: int) -> tuple[Any, ...]:
    """Return the special numbers that a float of this width holds."""
    return REALS if width == 64 else tuple(x for x in REALS if x is None or not 1e5 < abs(x) < INF)


ARROW = [
    Kind("double", pa.float64(), (1.0, 2.0), REALS, NUMBERS, WRITTEN_REALS),
    Kind("constant", pa.float64(), (1.0, 1.0), REALS[:4], NUMBERS, WRITTEN_REALS),
    Kind("float", pa.float32(), (1.0, 2.0), _floats(32), NUMBERS, WRITTEN_REALS),
    Kind("half", pa.float16(), (1.0, 2.0), _floats(16)[:5], NUMBERS, WRITTEN_REALS),
    Kind("int64", pa.int64(), (1, 2), WHOLE, NUMBERS, WRITTEN_WHOLE),
    Kind("int8", pa.int8(), (1, 2), (1, 7, None, 127, -128), NUMBERS, WRITTEN_WHOLE),
    Kind("uint64", pa.uint64(), (1, 2), (1, None, 0, 2**53 + 1, 2**64 - 1), NUMBERS, (*WRITTEN_WHOLE, str(2**64 - 1))),
    Kind("decimal", pa.decimal128(10, 2), (Decimal("1.00"), Decimal("2.00")), DECIMALS, NUMBERS, ("1.50", "7.00", "1")),
    Kind("wide", pa.decimal128(38, 0), (Decimal(1), Decimal(2)), (Decimal(10**37), None, Decimal(-7)), NUMBERS, ("1",)),
    Kind("bool", pa.bool_(), (True, True), (True, False, None), NUMBERS, ("True", "False")),
    Kind("string", pa.string(), ("x", "1"), TEXTS, ("numeric", "categorical", "dates"), WRITTEN_TEXTS),
    Kind("spelled", pa.string(), ("1.2.2021", "x"), SPELLED, ORDERS, ()),
    Kind("digits", pa.int64(), (20210102, 7), (20201231, None, 20200231, 5, -20201231), ORDERS[2:], ()),
    Kind("large", pa.large_string(), ("x", "1"), TEXTS[:8], ("categorical",), WRITTEN_TEXTS),
    Kind("dictionary", pa.dictionary(pa.int32(), pa.string()), ("x", "1"), TEXTS[:8], NUMBERS, WRITTEN_TEXTS),
    Kind("date32", pa.date32(), (dt.date(2000, 1, 1), dt.date(2001, 5, 6)), DATES, DAYS, WRITTEN_DATES),
    Kind("date64", pa.date64(), (dt.date(2000, 1, 1), dt.date(2001, 5, 6)), DATES[:4], DAYS, WRITTEN_DATES),
    *(
        Kind(
            f"timestamp-{unit}",
            pa.timestamp(unit),
            (dt.datetime(2000, 1, 1), dt.datetime(2001, 5, 6, 7)),
            at,
            DAYS,
            said,
        )
        for unit, at, said in (
            *(("s", MOMENTS, WRITTEN_MOMENTS), ("ms", MOMENTS, WRITTEN_MOMENTS), ("us", MOMENTS, WRITTEN_MOMENTS)),
            ("ns", NEAR, WRITTEN_MOMENTS),
        )
    ),
    Kind(
        *("zoned", pa.timestamp("us", "Europe/Berlin"), (ZONED[0], ZONED[-1]), ZONED, DAYS),
        (*WRITTEN_MOMENTS, "2020-01-02T01:00:00+01:00"),
    ),
    Kind("time", pa.time64("us"), (dt.time(1), dt.time(2)), TIMES, ("categorical", "dates"), WRITTEN_TIMES),
    Kind("nothing", pa.null(), (None, None), (None,), NUMBERS, ("x",)),
]
PER_FILE = [Kind("number", None, (1, 2), (7, None, 0.4, 2.5), NUMBERS, ("1", "7", "2.5", "0.4"))]
"""Numbers whose type differs from file to file."""
CELLS = [
    Kind("cell", pa.string(), ("x", "1"), TEXTS, ("numeric", "categorical", "dates"), WRITTEN_TEXTS),
    Kind("spelled", pa.string(), ("1.2.2021", "x"), SPELLED, ORDERS, ()),
]
"""Columns of a text file."""
RAW = [
    Kind(
        "raw",
        None,
        ("x", "y"),
        ("7", '"7', '7"', '"7"', 'a"b', '""', "a\nb", "\\", "'", " 7", "\t", "#", ""),
        ("categorical",),
        ("x", "y", "7", '"7', '7"'),
    )
]
"""Cells written into a text file as they are, without quotation marks around them."""
SHEET = [
    Kind(
        *("cell", None, ("x", "y")),
        (7, "7", 7.5, 7.0, "07", True, "True", None, 1e300, "NaN", dt.datetime(2020, 1, 2), "2020-01-02", dt.time(10)),
        *(("numeric", "categorical", "dates"), ("x", "y", "7", "07", "True", "2020-01-02", "10:00:00")),
    ),
    Kind("spelled", None, ("1.2.2021", "x"), (*SPELLED, dt.datetime(2020, 1, 2), 20201231, 44196.0), ORDERS, ()),
]
OBJECTS = [
    Kind(
        *("object", None, ordinary, special, ("numeric", "categorical", "dates")),
        ("7", "7.5", "True", "x", "7.0", "7.00", "2020-01-02", "2020-01-02T00:00:00+00:00"),
    )
    for ordinary, special in (
        ((7, 7), (7, "7", 7.5, True, None, 2**53 + 1, Decimal("7.0"))),
        (("7", "x"), (7, "7", 7.5, True, None, NAN)),
        ((Decimal("7"), Decimal("7.5")), (Decimal("7"), Decimal("7.00"), None, 7, 7.5)),
        (
            (dt.date(2020, 1, 2), dt.date(2020, 1, 3)),
            (dt.date(2020, 1, 2), dt.datetime(2020, 1, 2), None, "2020-01-02"),
        ),
        (
            (dt.datetime(2020, 1, 2, tzinfo=dt.UTC),) * 2,
            (
                dt.datetime(2020, 1, 2, tzinfo=dt.UTC),
                dt.datetime(2020, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=2))),
                dt.datetime(2020, 1, 2),
                None,
            ),
        ),
    )
]
"""Mixed columns of a notebook frame; one kind at a time, because a whole frame is refused."""


def arrow_table(cells: Cells, kinds: Mapping[str, Kind | None]) -> pa.Table:
    """Return cells as an Arrow table of the declared types."""
    made = {}
    for name, column in cells.items():
        kind = kinds[name]
        declared = pa.string() if kind is None else kind.declared
        plain = declared.value_type if pa.types.is_dictionary(declared) else declared
        made[name] = pa.array(column, plain)
        if plain is not declared:
            made[name] = made[name].dictionary_encode()
    return pa.table(made)


def one_file(**options: Any) -> Callable[..., Path]:
    """Return a writer of one Parquet file."""

    def write(cells: Cells, kinds: Mapping[str, Kind | None], folder: Path) -> Path:
        parquet.write_table(arrow_table(cells, kinds), folder / "t.parquet", **options)
        return folder / "t.parquet"

    return write


def parts(cells: Cells, files: int = 3) -> list[dict[str, list[Any]]]:
    """Return the rows in order, in this many parts."""
    rows = len(cells[ROW])
    ends = [rows * i // files for i in range(files + 1)]
    return [{name: column[a:b] for name, column in cells.items()} for a, b in itertools.pairwise(ends)]


def folder_of(names: Sequence[str], **options: Any) -> Callable[..., Path]:
    """Return a writer of a folder with the rows in files of these names."""

    def write(cells: Cells, kinds: Mapping[str, Kind | None], folder: Path) -> Path:
        for name, part in zip(names, parts(cells, len(names)), strict=True):
            (folder / "t" / name).parent.mkdir(parents=True, exist_ok=True)
            parquet.write_table(arrow_table(part, kinds), folder / "t" / name, **options)
        return folder / "t"

    return write


def by_duckdb(cells: Cells, kinds: Mapping[str, Kind | None], folder: Path) -> Path:
    """Return a Parquet file written by DuckDB, with DuckDB's statistics."""
    import duckdb

    with duckdb.connect() as con:
        con.register("t", arrow_table(cells, kinds))
        con.sql("SELECT * FROM t").write_parquet(str(folder / "t.parquet"), row_group_size=2048)
    return folder / "t.parquet"


def by_pandas(cells: Cells, _: Mapping[str, Kind | None], folder: Path) -> Path:
    """Return a folder of files written by pandas, each with its own types: a null turns whole numbers into floats, and
    one text turns all cells into texts.
    """
    (folder / "t").mkdir()
    for i, part in enumerate(parts(cells)):
        typed = {name: list(map(str, c)) if any(isinstance(x, str) for x in c) else c for name, c in part.items()}
        pd.DataFrame(typed).to_parquet(folder / "t" / f"{i}.parquet")
    return folder / "t"


THREE = ("0.parquet", "1.parquet", "2.parquet")
PLAIN = {"write_statistics": False, "use_dictionary": False}
PARQUET: list[tuple[str, Callable[..., Path], bool]] = [
    ("one file", one_file(), False),
    ("plain file", one_file(**PLAIN), True),
    ("row groups", one_file(row_group_size=2), False),
    ("written by DuckDB", by_duckdb, True),
    ("folder, first", folder_of(THREE), True),
    ("folder, last", folder_of(THREE, **PLAIN), False),
    ("partitions", folder_of(("part=7/0.parquet", "part=07/0.parquet", "part=x/0.parquet")), False),
]


def as_relation(write: Callable[..., Path]) -> Callable[..., Any]:
    """Return the writer's file, read where it is."""
    return lambda cells, kinds, folder: open_relation(write(cells, kinds, folder))


def as_data(write: Callable[..., Path]) -> Callable[..., Any]:
    """Return the writer's file, read as the command line reads it: into memory where it is small."""
    return lambda cells, kinds, folder: read_data(write(cells, kinds, folder))


def text_file(cells: Cells, _: Mapping[str, Kind | None], folder: Path) -> Path:
    """Return a CSV file that is quoted where necessary."""
    with (folder / "t.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([list(cells), *zip(*cells.values(), strict=True)])
    return folder / "t.csv"


def raw_file(cells: Cells, _: Mapping[str, Kind | None], folder: Path) -> Path:
    """Return a CSV file with each cell as it is."""
    lines = [list(cells), *zip(*cells.values(), strict=True)]
    (folder / "t.csv").write_text("".join(",".join(line) + "\n" for line in lines), encoding="utf-8")
    return folder / "t.csv"


def sheet(cells: Cells, _: Mapping[str, Kind | None], folder: Path) -> Path:
    """Return an Excel workbook."""
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    inside = book.create_sheet()
    for line in [list(cells), *zip(*cells.values(), strict=True)]:
        inside.append(line)
    book.save(folder / "t.xlsx")
    return folder / "t.xlsx"


def frame(cells: Cells, kinds: Mapping[str, Kind | None], _: Path) -> Any:
    """Return a pandas frame of Arrow types."""
    return arrow_table(cells, kinds).to_pandas(types_mapper=pd.ArrowDtype)


def objects(cells: Cells, _: Mapping[str, Kind | None], __: Path) -> Any:
    """Return a pandas frame of Python objects."""
    return pd.DataFrame({name: pd.Series(column, dtype=object) for name, column in cells.items()})


MEMORY = [
    *(Layout(f"Parquet, {name}, data", as_data(write), first) for name, write, first in PARQUET[:3]),
    Layout("Arrow table", lambda cells, kinds, folder: arrow_table(cells, kinds)),
    Layout("pandas frame", frame, odd_first=True),
]
FILES = [
    Layout(f"Parquet, {name}, relation", as_relation(write), first, without=("half",) if write is by_duckdb else ())
    for name, write, first in PARQUET
]
TEXT_FILES = [
    Layout("CSV, data", as_data(text_file)),
    Layout("CSV, first, relation", as_relation(text_file), odd_first=True),
]
PER_FILE_LAYOUTS = [Layout("folder, a type for each file, relation", as_relation(by_pandas), odd_first=True)]
RAW_FILES = [
    Layout("CSV, data", as_data(raw_file)),
    Layout("CSV, relation", as_relation(raw_file)),
]
SHEETS = [Layout("Excel, last", as_data(sheet)), Layout("Excel, first", as_data(sheet), odd_first=True)]


# DuckDB, PostgreSQL, SQLite and MariaDB: cells are written as literals that each engine casts

SAID_REALS = ("1", "7.3", "nan", None, "0", "-0.0", "inf", "-inf", "1e300", "5e-324", "0.30000000000000004")
SAID_DAYS = ("2020-01-02", None, "0001-01-01", "9999-12-31", "1970-01-01", "2024-02-29", "infinity", "-infinity")
SAID_MOMENTS = (*SAID_DAYS, "9999-12-31 23:59:59.999999", "2020-01-02 00:00:01", "1969-12-31 23:59:59")
SAID_WHOLE = tuple(None if x is None else str(x) for x in WHOLE)
ANY_TEXT = ("numeric", "categorical", "dates")
ID = ("00000000-0000-0000-0000-000000000007", "00000000-0000-0000-0000-000000000008", None)


def _sql(name: str, declared: str, ordinary: tuple[Any, Any], special: Any, views: Any, said: Any) -> Kind:
    return Kind(name, declared, ordinary, tuple(special), views, said)


def _spelled(text: str, whole: str) -> list[Kind]:
    """Return dates in texts and in whole numbers."""
    digits = ("20201231", None, "20200231", "5", "-20201231")
    return [
        _sql("spelled", text, ("1.2.2021", "x"), SPELLED, ORDERS, ()),
        _sql("digits", whole, ("20210102", "7"), digits, ORDERS[2:], ()),
    ]


def _dates(name: str, declared: str, special: Sequence[Any]) -> Kind:
    return _sql(name, declared, ("2000-01-01", "2001-05-06"), special, DAYS, WRITTEN_MOMENTS)


DUCKDB = [
    _sql("double", "DOUBLE", ("1", "2"), SAID_REALS, NUMBERS, WRITTEN_REALS),
    _sql("constant", "DOUBLE", ("1", "1"), SAID_REALS[:4], NUMBERS, WRITTEN_REALS),
    _sql("float", "FLOAT", ("1", "2"), [x for x in SAID_REALS if x not in ("1e300", "5e-324")], NUMBERS, WRITTEN_REALS),
    _sql("bigint", "BIGINT", ("1", "2"), SAID_WHOLE, NUMBERS, WRITTEN_WHOLE),
    _sql("tiny", "TINYINT", ("1", "2"), ("7", None, "127"), NUMBERS, WRITTEN_WHOLE),
    _sql("ubigint", "UBIGINT", ("1", "2"), (str(2**64 - 1), None, "0"), NUMBERS, (*WRITTEN_WHOLE, str(2**64 - 1))),
    _sql("hugeint", "HUGEINT", ("1", "2"), ("7", None, str(2**100)), NUMBERS, (*WRITTEN_WHOLE, str(2**100))),
    _sql("decimal", "DECIMAL(10,2)", ("1.00", "2.00"), ("1.50", "7", None, "-99999999.99"), NUMBERS, ("1.50", "7.00")),
    _sql("boolean", "BOOLEAN", ("true", "true"), ("true", "false", None), NUMBERS, ("True", "False")),
    _sql("text", "VARCHAR", ("x", "1"), TEXTS, ANY_TEXT, WRITTEN_TEXTS),
    _sql("enum", "ENUM ('x', '1', '7', '07')", ("x", "1"), ("7", "07", None), NUMBERS, WRITTEN_TEXTS),
    *_spelled("VARCHAR", "BIGINT"),
    _dates("date", "DATE", SAID_DAYS),
    _dates("timestamp", "TIMESTAMP", SAID_MOMENTS),
    _dates("timestamp_s", "TIMESTAMP_S", SAID_MOMENTS[:6]),
    _dates("timestamp_ms", "TIMESTAMP_MS", SAID_MOMENTS[:6]),
    _dates("timestamp_ns", "TIMESTAMP_NS", ("2020-01-02", None, "1700-01-01", "2262-01-01", "2020-01-02 00:00:01")),
    _dates("timestamptz", "TIMESTAMPTZ", SAID_MOMENTS[:6]),
    _sql("time", "TIME", ("01:00", "02:00"), ("10:00", None, "23:59:59.999999"), ("categorical",), WRITTEN_TIMES),
    _sql("uuid", "UUID", ID[:2], ID, ("categorical",), (str(uuid.UUID(ID[0])),)),
    _sql("blob", "BLOB", ("x", "y"), ("7", None), ("categorical",), ("x", "7")),
    _sql("bit", "BIT", ("101", "111"), ("000", None), ("categorical",), ("101", "000")),
    _sql("interval", "INTERVAL", ("1 day", "2 days"), ("7 days", None), ("categorical",), ("1 day", "7 days")),
]
POSTGRES = [
    _sql("double", "float8", ("1", "2"), SAID_REALS, NUMBERS, WRITTEN_REALS),
    _sql(
        "float", "float4", ("1", "2"), [x for x in SAID_REALS if x not in ("1e300", "5e-324")], NUMBERS, WRITTEN_REALS
    ),
    _sql(
        "numeric",
        "numeric",
        ("1", "2"),
        ("1.50", "7", "7.0", None, "NaN", "0", "1e200", "1e-200", "Infinity", "-Infinity"),
        NUMBERS,
        ("1", "1.50", "7", "7.0", "0", "Infinity"),
    ),
    _sql("scaled", "numeric(10, 2)", ("1", "2"), ("1.50", "7", None, "NaN", "-99999999.99"), NUMBERS, ("1.50", "7.00")),
    _sql("bigint", "int8", ("1", "2"), SAID_WHOLE, NUMBERS, WRITTEN_WHOLE),
    _sql("small", "int2", ("1", "2"), ("7", None, "-32768"), NUMBERS, WRITTEN_WHOLE),
    _sql("boolean", "bool", ("true", "true"), ("true", "false", None), NUMBERS, ("True", "False")),
    _sql("text", "text", ("x", "1"), TEXTS, ANY_TEXT, WRITTEN_TEXTS),
    _sql("varchar", "varchar(40)", ("x", "1"), TEXTS[:8], NUMBERS, WRITTEN_TEXTS),
    _sql("padded", "char(5)", ("x", "1"), ("7", "07", " 7", "", None, "a ", "12345"), ANY_TEXT, (*WRITTEN_TEXTS, " 7")),
    _sql("enum", "espalier_kind", ("x", "1"), ("7", "07", None), NUMBERS, WRITTEN_TEXTS),
    *_spelled("text", "int4"),
    _dates("date", "date", (*SAID_DAYS, "0044-03-15 BC", "10000-01-01")),
    _dates("timestamp", "timestamp", (*SAID_MOMENTS, "0044-03-15 BC", "10000-01-01")),
    _dates("timestamptz", "timestamptz", SAID_MOMENTS[:8]),
    _sql(
        "time", "time", ("01:00", "02:00"), ("10:00", None, "23:59:59.999999", "24:00"), ("categorical",), WRITTEN_TIMES
    ),
    _sql("uuid", "uuid", ID[:2], ID, ("categorical",), (str(uuid.UUID(ID[0])),)),
    _sql("bytes", "bytea", ("x", "y"), ("7", None), ("categorical",), ("x", "7")),
    _sql("bit", "bit(3)", ("101", "111"), ("000", None), NUMBERS, ("101", "000")),
    _sql("varbit", "varbit", ("101", "11"), ("000", None), ("categorical",), ("101", "000")),
    _sql("interval", "interval", ("1 day", "2 days"), ("7 days", None), ("categorical",), ("1 day", "7 days")),
    _sql("inet", "inet", ("10.0.0.1", "10.0.0.2"), ("::1", None), ("categorical",), ("10.0.0.1", "::1")),
    _sql("json", "jsonb", ("1", "2"), ("7", None, "null"), NUMBERS, ("1", "7")),
]
SQLITE = [
    _sql(
        "real", "REAL", (1.0, 2.0), [x for x in REALS if x != x or x is None or abs(x) <= INF], NUMBERS, WRITTEN_REALS
    ),
    _sql("integer", "INTEGER", (1, 2), (*WHOLE, 7.25, "7x"), NUMBERS, WRITTEN_WHOLE),
    _sql("text", "TEXT", ("x", "1"), (*TEXTS, 7, 7.5, b"7"), ANY_TEXT, WRITTEN_TEXTS),
    _sql(
        "numeric",
        "DECIMAL(10,2)",
        (1, 2.5),
        (7, 7.25, None, "7x", "07", 1e300),
        NUMBERS,
        ("1", "2.5", "7", "7.25", "07"),
    ),
    *_spelled("TEXT", "INTEGER"),
    _sql("boolean", "BOOLEAN", (1, 1), (1, 0, None, 2, "true"), NUMBERS, ("True", "False", "1", "0")),
    _sql(
        "date",
        "DATE",
        ("2000-01-01", "2001-05-06"),
        ("2020-01-02", None, "0001-01-01", "9999-12-31", "infinity", 7, ""),
        DAYS,
        WRITTEN_DATES,
    ),
    _sql(
        "moment",
        "TIMESTAMP",
        ("2000-01-01", "2001-05-06 07:00"),
        ("2020-01-02", None, "9999-12-31 23:59:59", 7),
        DAYS,
        WRITTEN_MOMENTS,
    ),
    _sql("untyped", "", ("x", 1), (7, "7", 7.5, None, "07", b"7", 1.0), ANY_TEXT, WRITTEN_TEXTS),
    _sql("blob", "BLOB", (b"x", b"y"), (b"7", "7", 7, None), ("categorical",), ("x", "7")),
]
MARIA = [
    _sql(
        "double",
        "double",
        ("1", "2"),
        [x for x in SAID_REALS if x not in ("nan", "inf", "-inf")],
        NUMBERS,
        WRITTEN_REALS,
    ),
    _sql("float", "float", ("1", "2"), ("1", "7.3", None, "0", "-0.0"), NUMBERS, WRITTEN_REALS),
    _sql("decimal", "decimal(10, 2)", ("1.00", "2.00"), ("1.50", "7", None, "-99999999.99"), NUMBERS, ("1.50", "7.00")),
    _sql("bigint", "bigint", ("1", "2"), SAID_WHOLE, NUMBERS, WRITTEN_WHOLE),
    _sql("unsigned", "bigint unsigned", ("1", "2"), (str(2**64 - 1), None, "0"), NUMBERS, (str(2**64 - 1), "1")),
    _sql("boolean", "boolean", ("1", "1"), ("1", "0", None, "7"), NUMBERS, ("True", "False", "1", "0", "7")),
    _sql("text", "text", ("x", "1"), TEXTS, ANY_TEXT, WRITTEN_TEXTS),
    _sql("padded", "char(5)", ("x", "1"), ("7", "07", " 7", "", None, "a ", "12345"), ANY_TEXT, (*WRITTEN_TEXTS, " 7")),
    _sql("enum", "enum('x', '1', '7', '07')", ("x", "1"), ("7", "07", None), NUMBERS, WRITTEN_TEXTS),
    *_spelled("text", "int"),
    _dates("date", "date", (*SAID_DAYS[:6], "0000-00-00", "2020-00-00")),
    _dates(
        "datetime", "datetime(6)", (*SAID_DAYS[:6], "9999-12-31 23:59:59.999999", "0000-00-00", "2020-01-02 00:00:01")
    ),
    _dates("timestamp", "timestamp", ("2020-01-02", "1970-01-02", "2020-01-02 00:00:01")),
    _sql(
        "time",
        "time",
        ("01:00:00", "02:00:00"),
        ("10:00:00", None, "-01:00:00", "25:00:00"),
        ("categorical",),
        WRITTEN_TIMES,
    ),
    _sql("year", "year", ("2000", "2001"), ("2020", None, "0000"), NUMBERS, ("2000", "2020")),
    _sql("bit", "bit(3)", ("1", "2"), ("7", None), NUMBERS, ("1", "7")),
    _sql("blob", "blob", ("x", "y"), ("7", None), ("categorical",), ("x", "7")),
    _sql("json", "json", ("1", "2"), ("7", None, "null"), NUMBERS, ("1", "7")),
]


def declared(kinds: Mapping[str, Kind | None], cells: Cells, text: str) -> str:
    """Return the columns of a CREATE TABLE statement; ``text`` is the engine's type of texts."""
    types = {name: text if (kind := kinds[name]) is None else kind.declared for name in cells}
    return ", ".join(f'"{name}" {kind}' for name, kind in types.items())


def literal(cell: Any) -> str:
    """Return a text as a literal of SQL."""
    return "NULL" if cell is None else "'" + str(cell).replace("'", "''") + "'"


def values(cells: Cells) -> str:
    """Return all rows, as literals."""
    return ", ".join(f"({', '.join(map(literal, row))})" for row in zip(*cells.values(), strict=True))


def in_duckdb(cells: Cells, kinds: Mapping[str, Kind | None], folder: Path) -> Any:
    """Return a table of a DuckDB file."""
    import duckdb

    with duckdb.connect(str(folder / "t.duckdb")) as con:
        con.execute(f"CREATE TABLE t ({declared(kinds, cells, 'VARCHAR')})")
        con.execute(f"INSERT INTO t VALUES {values(cells)}")
    return open_relation(f"duckdb://{folder / 't.duckdb'}", "t")


def view_of_text(cells: Cells, kinds: Mapping[str, Kind | None], folder: Path) -> Any:
    """Return a view of DuckDB over a CSV file, which the engine's own reader would read."""
    import duckdb

    path = raw_file(cells, kinds, folder)
    with duckdb.connect(str(folder / "t.duckdb")) as con:
        con.execute(f"CREATE VIEW t AS SELECT * FROM '{path}'")
    return open_relation(f"duckdb://{folder / 't.duckdb'}", "t")


def path_as_relation(cells: Cells, kinds: Mapping[str, Kind | None], folder: Path) -> Any:
    """Return a CSV file named as the relation of an empty DuckDB file."""
    import duckdb

    path = raw_file(cells, kinds, folder)
    duckdb.connect(str(folder / "t.duckdb")).close()
    # a name with a dot is a schema and a table: only a path without one gets through
    bare = path.rename(folder / "t")
    return open_relation(f"duckdb://{folder / 't.duckdb'}", str(bare))


def in_sqlite(cells: Cells, kinds: Mapping[str, Kind | None], folder: Path) -> Any:
    """Return a table of a SQLite file."""
    con = sqlite3.connect(folder / "t.db")
    con.execute(f"CREATE TABLE t ({declared(kinds, cells, 'TEXT')})")
    con.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(cells))})", zip(*cells.values(), strict=True))
    con.commit()
    con.close()
    return open_relation(f"sqlite:///{folder / 't.db'}", "t")


def in_postgres(con: Any, url: str) -> Callable[..., Any]:
    """Return a writer of a table ``t`` on a PostgreSQL server."""
    con.execute("DROP TYPE IF EXISTS espalier_kind CASCADE; CREATE TYPE espalier_kind AS ENUM ('x', '1', '7', '07')")

    def write(cells: Cells, kinds: Mapping[str, Kind | None], _: Path) -> Any:
        con.execute("DROP TABLE IF EXISTS t")
        con.execute(f"CREATE TABLE t ({declared(kinds, cells, 'text')})")
        con.execute(f"INSERT INTO t VALUES {values(cells)}")
        return open_relation(url, "t")

    return write


def in_mariadb(con: Any, url: str) -> Callable[..., Any]:
    """Return a writer of a table ``t`` on a MariaDB server."""

    def write(cells: Cells, kinds: Mapping[str, Kind | None], _: Path) -> Any:
        with con.cursor() as cursor:
            cursor.execute("SET SESSION sql_mode = 'ANSI_QUOTES'")
            cursor.execute("DROP TABLE IF EXISTS t")
            cursor.execute(f"CREATE TABLE t ({declared(kinds, cells, 'varchar(40)')}) CHARACTER SET utf8mb4")
            cursor.execute(f"INSERT INTO t VALUES {values(cells)}".replace("%", "%%"))
        return open_relation(url, "t")

    return write


DUCKDB_LAYOUTS = [
    Layout("DuckDB, last, relation", in_duckdb),
    Layout("DuckDB, first, relation", in_duckdb, odd_first=True),
]
DUCKDB_TEXT = [
    Layout("DuckDB, view of CSV, relation", view_of_text),
    Layout("DuckDB, path, relation", path_as_relation),
]
SQLITE_LAYOUTS = [
    Layout("SQLite, last, relation", in_sqlite),
    Layout("SQLite, first, relation", in_sqlite, odd_first=True),
]

TEXT_IDS = ("7", "07", "007", "7.0", " 7", "7 ", "+7", "A", "a", "é", "e\u0301", "NaN", "nan", "True", '"7"')
TEXT_PEOPLE = People("text ids", Kind("id", pa.string(), ("", ""), (), (), ()), TEXT_IDS, ("7", "x", "0007", "E"))
WHOLE_PEOPLE = People(
    *("whole ids", Kind("id", pa.int64(), (0, 0), (), (), ()), (7, -7, 0, 2**53, 2**53 + 1)),
    (7, 8, 2**53 + 2, -(2**63)),
)
SHORT_PEOPLE = WHOLE_PEOPLE._replace(ids=(7, -7, 0), odd=(7, 8))
"""For Excel, whose numbers have 15 digits."""
PER_FILE_PEOPLE = People("ids of each file's type", None, (5, "7", "07", "007"), (5, 6, "x"))
MIXED_PEOPLE = [
    People(f"mixed ids {i}", None, ids, odd)
    for i, (ids, odd) in enumerate(
        (
            ((7, 8), ("7", 7, "x")),
            (("7", "8"), (7, 7.5)),
            ((True, False), ("True", 1)),
            ((dt.datetime(2020, 1, 2), dt.datetime(2020, 1, 3)), ("2020-01-02", dt.time(10))),
            ((7.5, 8.5), ("7.5",)),
        )
    )
]
"""Identifiers of mixed types, for layouts in which each cell has its own type."""
