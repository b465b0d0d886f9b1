"""One row never changes how another row is read: the faults that a hostile review found, and the encoder's theorem."""

from __future__ import annotations

import datetime as dt
import io
import itertools
import math
import os
import uuid
import zipfile
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from openpyxl import Workbook
from pyarrow import parquet

from espalier.core.errors import TableError
from espalier.core.ledger.ledger import Ledger
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.project.schema_json import column_from_json, schema_from_json
from espalier.core.release.spend import release
from espalier.core.tables import excel, unpacking
from espalier.core.tables.arrow_text import from_arrow
from espalier.core.tables.encoding import Encoder
from espalier.core.tables.frames import as_table, read_data, text_of
from espalier.core.tables.reading import read_table
from espalier.core.tables.relation import open_relation
from espalier.core.tables.table import Table

OPEN = {"missing": True, "unknown": "missing"}


def numeric(name, *edges, **more):
    return Column(name, "numeric", edges=edges, **(OPEN | more))


def categorical(name, *texts, **more):
    return Column(name, "categorical", texts, **(OPEN | more))


def counts(relation, name):
    """The counts of column ``name``, which is the schema's only one."""
    return relation.count((name,)).tolist()


# The faults that the review found. Each of these tests failed before the encoder existed.


@pytest.mark.parametrize("odd", [7.3, None, math.nan])
def test_statistics_of_a_file_change_no_bin(tmp_path, odd):
    """Previously, DuckDB took isnan(x) and x < edge from a file's statistics, from which PyArrow leaves NaN out."""
    schema = Schema((numeric("x", 0.0, 0.5, 5.0, 9.0),))
    parquet.write_table(pa.table({"x": [1.0, math.nan] * 500 + [odd]}), tmp_path / "t.parquet", row_group_size=100)
    got = counts(open_relation(tmp_path / "t.parquet").snapshot(schema), "x")
    assert got == [0, 500, int(odd == 7.3), 500 + int(odd != 7.3)]


@pytest.fixture
def folder(tmp_path):
    """A function that makes a folder of files, one per table."""

    def made(*tables, names=None):
        path = tmp_path / "folder"
        path.mkdir(exist_ok=True)
        for i, table in enumerate(tables):
            file = path / (names[i] if names else f"{i}.parquet")
            file.parent.mkdir(exist_ok=True)
            parquet.write_table(pa.table(table), file)
        return path

    return made


@pytest.mark.parametrize(
    ("first", "second", "types"),
    [
        ([5], ["07"], ("int64", "string")),
        ([5.0, None], [2**53 + 1], ("double", "int64")),
        (pa.array([5], pa.int32()), [5], ("int32", "int64")),
        (
            pa.array([1], pa.timestamp("ms")),
            pa.array([1], pa.timestamp("us")),
            (r"timestamp\[ms\]", r"timestamp\[us\]"),
        ),
    ],
)
def test_files_of_a_folder_that_differ_in_the_type_of_a_used_column_are_refused(folder, tmp_path, first, second, types):
    path = folder({"x": first, "a": ["x"] * len(first)}, {"x": second, "a": ["x"] * len(second)})
    schema = Schema((categorical("x", "5"), categorical("a", "x")))
    ledger = Ledger(tmp_path / "ledger.db", create=True)
    ledger.open_table("t", epsilon=9.0, delta=1e-6, delta_for_draws=5e-7)
    with pytest.raises(TableError, match=f"'x' is {types[1]} in the file 1.parquet, but {types[0]} in 0.parquet"):
        release(Project("t", schema, Plan("mst", 1.0)), open_relation(path), ledger=ledger.account("t"))
    assert ledger.population_of("t").entries == ()
    with pytest.raises(TableError, match="'x' is"):
        open_relation(path).snapshot(Schema((schema["a"],)), "x", 1)
    assert open_relation(path).snapshot(Schema((schema["a"],))).rows == len(first) + len(second), "x is not read"


def test_texts_in_another_layout_and_in_other_order_of_columns_are_one_type(folder):
    texts = pa.array(["x", "y", None])
    tables = [{"a": texts, "n": [1, 2, 3]}, {"n": [4, 5, 6], "a": texts.dictionary_encode()}]
    tables.append({"a": texts.cast(pa.large_string()), "n": [7, 8, 9]})
    snapshot = open_relation(folder(*tables)).snapshot(Schema((categorical("a", "x", "y"), numeric("n", 0, 5, 10))))
    assert snapshot.count(("a", "n")).tolist() == [[2, 1, 0], [1, 2, 0], [1, 2, 0]]


def test_a_column_that_a_file_lacks_is_refused(folder):
    path = folder({"a": ["x"], "b": ["x"]}, {"b": ["x"]})
    with pytest.raises(TableError, match="'a' is missing from the file 1.parquet, but is in 0.parquet"):
        open_relation(path).snapshot(Schema((categorical("a", "x"),)))
    assert open_relation(path).snapshot(Schema((categorical("b", "x"),))).rows == 2


SCHEMA = Schema((categorical("a", "mine", "another"),))


@pytest.mark.parametrize(
    ("mine", "another"), [("cohort[1]", "cohort1"), ("t[1].parquet", "t1.parquet"), ("a*", "ab"), ("a?", "ab")]
)
def test_glob_characters_in_a_name_are_ordinary_characters(tmp_path, mine, another):
    for name, cell in ((mine, "mine"), (another, "another")):
        if name.endswith(".parquet"):
            parquet.write_table(pa.table({"a": [cell]}), tmp_path / name)
        else:
            (tmp_path / name).mkdir()
            parquet.write_table(pa.table({"a": [cell]}), tmp_path / name / "0.parquet")
    assert counts(open_relation(tmp_path / mine).snapshot(SCHEMA), "a") == [1, 0, 0]


def test_every_file_of_a_folder_is_read_whatever_the_case_of_its_suffix(folder):
    path = folder({"a": ["mine"]}, {"a": ["another"]}, names=["0.parquet", "1.PARQUET"])
    assert counts(open_relation(path).snapshot(SCHEMA), "a") == [1, 1, 0]


def test_unfinished_files_are_refused_and_other_files_are_ignored(folder):
    path = folder({"a": ["mine"]})
    (path / "_SUCCESS").touch()
    (path / ".0.parquet.crc").touch()
    assert open_relation(path).snapshot(SCHEMA).rows == 1
    folder({"a": ["mine"]}, names=["_temporary/1.parquet"])
    with pytest.raises(TableError, match=r"contains _temporary/1\.parquet: .* unfinished files"):
        open_relation(path)


def test_folders_that_name_a_cell_are_a_text_column(folder):
    names = ["year=2023/0.parquet", "year=2024/0.parquet", "year=__HIVE_DEFAULT_PARTITION__/0.parquet"]
    path = folder(*[{"a": ["mine", "another"]}] * 3, names=names)
    relation = open_relation(path)
    assert relation.columns == {"a": "string", "year": "string"}
    for year in (categorical("year", "2023", "2024"), numeric("year", 2023, 2024, 2025)):
        assert counts(relation.snapshot(Schema((year,))), "year") == [2, 2, 2]
        assert relation.snapshot(Schema((year, SCHEMA["a"]))).count(("year", "a")).tolist() == [[1, 1, 0]] * 3
    assert relation.sample().columns["year"].values == ("2023", "2024", "")
    folder({"a": ["mine"]}, names=["1.parquet"])
    with pytest.raises(TableError, match="name different columns; use the same folder levels"):
        open_relation(path)


def test_a_file_that_changed_after_it_was_opened_is_refused_or_read_as_it_is(folder):
    path = folder({"a": ["mine"]}, {"a": ["mine"]})
    relation = open_relation(path)
    parquet.write_table(pa.table({"a": [7]}), path / "1.parquet")
    with pytest.raises(TableError, match="was changed after it was opened"):
        relation.snapshot(SCHEMA)
    relation = open_relation(path / "0.parquet")
    parquet.write_table(pa.table({"a": ["another"]}), path / "another.parquet")
    assert relation.snapshot(SCHEMA).rows == 1, "only the file that is read is watched"


def hostile_csv(path):
    path.write_text("a,v\nx,1\n" + 'x,"1\nx,1\n' + "x,1\n" * 20 + 'x",1\n')


def test_duckdb_reads_no_file_by_a_relation_or_a_view(tmp_path):
    """DuckDB's own CSV reader lets one quoted line hide the rows of others."""
    hostile_csv(tmp_path / "t.csv")
    base = tmp_path / "t.duckdb"
    with duckdb.connect(str(base)) as con:
        con.execute(f"CREATE VIEW v AS SELECT * FROM read_csv('{tmp_path / 't.csv'}')")
        con.execute("CREATE TABLE t AS SELECT 'x' AS a, 1 AS v")
        con.execute("CREATE VIEW of_t AS SELECT * FROM t")
    schema = Schema((categorical("a", "x"),))
    for relation in (str(tmp_path / "t.csv"), "v", "t.csv", "rows_here"):
        rows_here = pa.table({"a": ["x"]})  # DuckDB would find a table of this process
        with pytest.raises(TableError) as refused:
            open_relation(f"duckdb://{base}", relation).snapshot(schema)
        assert "rows" not in str(refused.value).replace("rows_here", ""), rows_here
    for relation in ("t", "of_t", "main.t"):
        opened = open_relation(f"duckdb://{base}", relation)
        assert opened.snapshot(schema).rows == open_relation(f"duckdb://{base}", relation).snapshot(schema).rows == 1
        with pytest.raises(duckdb.Error):
            cast(Any, opened.feed).backend.con.execute("SET enable_external_access = true")
        opened.close()


@pytest.mark.parametrize("unit", ["TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP", "TIMESTAMP_NS", "DATE"])
def test_moments_of_any_resolution_are_days(tmp_path, unit):
    column = {"name": "m", "kind": "date", "dates": {"from": "2024-01-01", "to": "2024-12-31", "by": "quarter"}, **OPEN}
    cells = ["2024-03-31 23:59:59", "2024-04-01 00:00:00", "1960-01-01 12:00:00", "2099-01-01", None]
    with duckdb.connect(str(tmp_path / "t.duckdb")) as con:
        con.execute(f"CREATE TABLE t (m {unit})")
        con.executemany("INSERT INTO t VALUES (?)", [(cell,) for cell in cells])
        con.execute(f"COPY t TO '{tmp_path / 't.parquet'}'")
        expected = [2, 1, 0, 1, 1]
        rows = con.execute("SELECT CAST(m AS VARCHAR) FROM t").fetchall()
    assert len(rows) == len(cells)
    for relation in (open_relation(f"duckdb://{tmp_path / 't.duckdb'}", "t"), open_relation(tmp_path / "t.parquet")):
        assert counts(relation.snapshot(schema_from_json([column])), "m") == expected


def sheet(*rows):
    book = Workbook()
    for row in rows:
        book.active.append(row)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


MIXED = [(7, "7"), (1.5, "1.5"), (True, "True"), (dt.datetime(2020, 1, 2), "2020-01-02"), (dt.time(10), "10:00:00")]
WHO = Schema((categorical("a", "x"),))


@pytest.mark.parametrize(("typed", "text"), MIXED)
def test_a_person_column_that_mixes_types_is_refused(typed, text):
    """Previously, 7 and "7" became one person."""
    whole = pd.DataFrame({"id": pd.Series([typed, text], dtype=object), "a": ["x", "x"]})
    for table in (read_table(sheet(("id", "a"), (typed, "x"), (text, "x"))), text_of(whole)):
        with pytest.raises(TableError, match="'id' mixes types") as refused:
            Table.encode(table, WHO, "id")
        assert text not in str(refused.value).replace("7 and the text 7", "")
    categories = whole.assign(id=whole["id"].astype("category"))
    with pytest.raises(TableError, match="'id' has categories that pandas may have merged"):
        as_table(categories, WHO, "id")


def test_person_columns_that_mix_no_types_are_read():
    for ids in ([7, 8, 7], ["7", "007", "x"], [7, "A7", "n/a"], [7, 8.0, None]):
        table = read_table(sheet(("id", "a"), *((who, "x") for who in ids)))
        if None in ids:
            with pytest.raises(TableError, match="has an empty cell in data row 3"):
                Table.encode(table, WHO, "id")
        else:
            assert len(set(Table.encode(table, WHO, "id").person.tolist())) == len(set(ids))


@pytest.mark.parametrize("other", [1, 0.5, True, "x", None, np.float32(0.5), Decimal("1.50")])
def test_no_cell_of_an_object_column_says_how_the_others_are_read(other):
    """Previously, Arrow read 2⁶⁰ + 1 as a float if another cell of the column was a float."""
    frame = pd.DataFrame({"n": pd.Series([2**60 + 1, "y", other], dtype=object)})
    texts = text_of(frame).columns["n"]
    assert [texts.values[code] for code in texts.codes][:2] == [str(2**60 + 1), "y"]
    assert as_table(frame, Schema((categorical("n", str(2**60 + 1)),))).count(("n",)).tolist() == [1, 2]


def test_frames_that_are_no_table_are_refused_and_an_index_with_a_name_is_a_column():
    frame = pd.DataFrame({"a": ["x", "y"]}, index=pd.Index([7, "7"], name="id"))
    assert set(text_of(frame).columns) == {"a", "id"}
    with pytest.raises(TableError, match="'id' mixes"):
        as_table(frame, Schema((categorical("a", "x", "y"),)), "id")
    for odd in ([[1]], [{"a": 1}], [b"x"], [object()]):
        with pytest.raises(TableError, match="'o' contains .* values; use one plain value per cell"):
            text_of(pd.DataFrame({"o": pd.Series(odd, dtype=object)}))
    with pytest.raises(TableError, match="whose name is not text"):
        text_of(pd.DataFrame({1: ["x"]}))
    with pytest.raises(TableError, match="twice"):
        text_of(pd.DataFrame([["x", "y"]], columns=["a", "a"]))


def packed_sheet(text, **others):
    """A workbook whose sheet is ``text``."""
    made, out = sheet(("a", "b"), (1, 2)), io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(made)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for part in old.infolist():
            new.writestr(part, text if part.filename == "xl/worksheets/sheet1.xml" else old.read(part))
        for name, held in others.items():
            new.writestr(name, held)
    return out.getvalue()


def test_an_excel_file_that_unpacks_to_much_is_refused_before_it_is_unpacked(monkeypatch):
    size = 60_000_000
    data = packed_sheet(b"<worksheet>" + os.urandom(size // 125) + b" " * size)
    assert size / 150 < len(data) < size / 100, "the general limit on files that unpack would let it through"

    def fails(*_, **__):
        raise AssertionError("it was opened")

    monkeypatch.setattr("openpyxl.reader.excel.ExcelReader", fails)
    with pytest.raises(TableError, match="unpacks to more than 100 times its size"):
        read_table(data)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b'<x:worksheet xmlns:x="y"><x:sheetData><x:row>' + b"<x:c/>" * 300, "more than 200 cells"),
        (b"<worksheet><sheetData><row>" + b'<c r="A1"><v>1</v></c>' * 300, "more than 200 cells"),
        (b"<worksheet><sheetData><row><c><is><t>" + b"a" * (3 << 20), "longer than Excel allows"),
        (b'<?xml version="1.0" encoding="utf-16"?><worksheet/>', "not plain UTF-8"),
        ("<worksheet/>".encode("utf-16"), "not plain UTF-8"),
        (b"<!DOCTYPE x [<!ENTITY a '<c/>'>]><worksheet/>", "not plain UTF-8"),
    ],
)
def test_a_sheet_of_too_many_cells_is_refused_before_it_is_parsed(monkeypatch, text, words):
    monkeypatch.setattr(excel, "EXCEL_CELLS", 200)

    def fails(*_):
        raise AssertionError("it was parsed")

    monkeypatch.setattr("openpyxl.reader.excel.ExcelReader", fails)
    with pytest.raises(TableError, match=words):
        read_table(packed_sheet(text))


def test_shared_texts_have_a_limit(monkeypatch):
    monkeypatch.setattr(excel, "EXCEL_TEXTS", 1000)
    with pytest.raises(TableError, match="distinct text; use CSV or Parquet"):
        read_table(packed_sheet(b"<worksheet/>", **{"xl/more.xml": b"a" * 2000}))


def test_an_ordinary_sheet_of_a_million_rows_is_within_the_limits():
    """Judged by the sizes of a sheet of a thousand rows, with 20 columns of numbers and texts."""
    rng, rows = np.random.default_rng(0), 1_000
    row = [*("17", "x", 0.5) * 6, "text", 7]
    data = sheet([f"c{i}" for i in range(20)], *([*row[:-1], int(i)] for i in rng.integers(0, 9999, rows)))
    with zipfile.ZipFile(io.BytesIO(data)) as parts:
        held = parts.getinfo("xl/worksheets/sheet1.xml")
    assert held.file_size * 1000 < unpacking.MAX_BYTES
    assert held.file_size < 50 * held.compress_size
    assert excel.EXCEL_CELLS > 20 * 1_000_000
    assert read_table(data).rows == rows


# The theorem.

MOMENTS = [dt.datetime(1, 1, 1), dt.datetime(2024, 3, 31, 23, 59, 59, 999_999), dt.datetime(9999, 12, 31, 23), None]
DAYS = {"kind": "date", "dates": {"from": "2024-01-01", "to": "2024-12-31", "by": "quarter"}, **OPEN}
CELLS = {
    **{f"i{bits}": pa.array([0, 7, 100, -100, None], getattr(pa, f"int{bits}")()) for bits in (8, 16, 32, 64)},
    **{f"u{bits}": pa.array([0, 7, 200, None], getattr(pa, f"uint{bits}")()) for bits in (8, 16, 32, 64)},
    "far": pa.array([2**53, 2**53 + 1, 2**53 + 2, 2**63 - 1, -(2**63), None]),
    "top": pa.array([2**64 - 1, 2**63, 2**53 + 1, 0], pa.uint64()),
    "f32": pa.array([0.1, 7.0, -0.0, math.nan, math.inf, -math.inf, 1e-45, None], pa.float32()),
    "f16": pa.array([0.1, 7.0, -0.0, math.nan, math.inf, 6e-8, None], pa.float16()),
    "f64": pa.array([0.1, 0.1 + 0.2, 7.0, -0.0, 0.0, math.nan, math.inf, 5e-324, 1e300, 2.0**53, 2.0**53 + 2, None]),
    "dec": pa.array([Decimal(x) for x in ("7.00", "7.50", "-0.01", "0.30", "0.00")] + [None], pa.decimal128(10, 2)),
    "wide": pa.array([Decimal(7), Decimal(2**53 + 1), Decimal(10**30), None], pa.decimal128(38, 0)),
    "more": pa.array([Decimal("7.50"), Decimal("-3.25"), None], pa.decimal256(40, 2)),
    "bool": pa.array([True, False, None]),
    "text": pa.array(["7", " 7 ", "7.0", "x", "X", "x ", "", "e\u0301", "\u00e9", "1e400", "-0", "١", "nan", None]),
    "date": pa.array([dt.date(2024, 3, 31), dt.date(2024, 4, 1), dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
    "date64": pa.array([dt.date(2024, 3, 31), dt.date(2024, 4, 1), None], pa.date64()),
    **{f"t_{unit}": pa.array(MOMENTS, pa.timestamp(unit)) for unit in ("s", "ms", "us")},
    "t_ns": pa.array([0, 1, -1, 1_711_929_599_999_999_999, 1_711_929_600_000_000_000, None], pa.timestamp("ns")),
    "t_zone": pa.array([0, 1_711_929_600_000_000, None], pa.timestamp("us", "Europe/Berlin")),
    "time": pa.array([dt.time(10), dt.time(10, 0, 0, 5), None]),
    "lasts": pa.array([dt.timedelta(1), None], pa.duration("us")),
    "uuid": pa.array([uuid.UUID(int=7).bytes, None], pa.uuid()),
    "view": pa.array(["x", "y", "x", None], pa.string_view()),
    "nothing": pa.nulls(3),
}
TEXTS: tuple[str, ...] = (
    "7",
    "0.1",
    "0.10000000149011612",
    "0",
    "inf",
    "7.50",
    "True",
    "x",
    "X",
    "2024-04-01",
    "10:00:00",
)
TEXTS += ("9007199254740993", "9007199254740992", "9007199254740994.0", "2024-03-31T23:59:59.999999", "e\u0301")
TEXTS += ("1970-01-01", "1970-01-01T01:00:00+01:00", str(uuid.UUID(int=7)), "1 day, 0:00:00", "5e-324", "-0", "nan")
EDGES = (-(2.0**63), -0.01, 0, 0.1, 0.3, 7.0, 7.5, 2.0**53, 2.0**53 + 2, 1e300)
VIEWS = [
    categorical("x", *TEXTS),
    categorical("x", "other", "7", groups=(("other", TEXTS[1:9]),)),
    categorical("x", "x", "0", missing_marks=("7", "inf", "7.50", "2024-04-01", "True")),
    numeric("x", *EDGES),
    numeric("x", *EDGES, missing_marks=("7", "0.1", "7.50", "-0.01", "9007199254740993", "inf")),
    numeric("x", 0, 1),
    column_from_json({"name": "x", **DAYS}),
    column_from_json({"name": "x", **DAYS, "missing_marks": ["2024-04-01", "7"]}),
]


def streamed(cells, view):
    """The codes of the cells, from one batch."""
    rows = pa.table({"x": cells})
    encode = Encoder(Schema((view,)), rows.schema, "t")
    return np.concatenate([encode(batch).codes[0] for batch in rows.to_batches()]).tolist()


@pytest.mark.parametrize(
    "view", VIEWS, ids=lambda c: f"{c.kind}{'-days' * bool(c.dates)}{'-marks' * bool(c.missing_marks)}"
)
@pytest.mark.parametrize("name", CELLS)
def test_the_encoder_gives_the_codes_of_the_canonical_texts(name, view):
    """The code is the same in one batch, in every order of two cells, alone, as a slice and from a dictionary."""
    cells = CELLS[name]
    expected = Table.encode(from_arrow(pa.table({"x": cells}), "t"), Schema((view,))).codes["x"].tolist()
    if name == "t_zone" and view.dates:
        with pytest.raises(TableError, match="depends on the zone"):
            streamed(cells, view)
        return
    assert streamed(cells, view) == expected
    for i, code in enumerate(expected):
        assert streamed(cells.slice(i, 1), view) == [code], "alone"
    for i, j in itertools.permutations(range(len(cells)), 2):
        pair = pa.concat_arrays([cells.slice(i, 1), cells.slice(j, 1)])
        assert streamed(pair, view) == [expected[i], expected[j]]
    if name not in ("uuid", "f16", "view", "nothing"):
        assert streamed(cells.dictionary_encode(), view) == expected
        assert streamed(cells.dictionary_encode().slice(1), view) == expected[1:]


def test_a_hundred_thousand_cells_have_the_codes_of_their_texts():
    rng, n = np.random.default_rng(0), 100_000
    units = rng.integers(-(10**6), 10**6, n)
    many = {
        "whole": pa.array(rng.integers(-(2**40), 2**40, n)),
        "narrow": pa.array(rng.integers(-128, 128, n).astype(np.int8)),
        "high": pa.array(rng.integers(2**63 - 1000, 2**63 - 1, n)),
        "real": pa.array(rng.normal(size=n) * 10.0 ** rng.integers(-300, 300, n)),
        "money": pa.array([Decimal(int(u)).scaleb(-2) for u in units], pa.decimal128(18, 2)),
        "moment": pa.array(rng.integers(0, 2 * 10**18, n), pa.timestamp("ns")),
    }
    for name, cells in many.items():
        view = VIEWS[6] if name == "moment" else numeric("x", -1e300, -5e11, -100, -1.01, 0, 0.3, 17, 2.0**63, 1e301)
        expected = Table.encode(from_arrow(pa.table({"x": cells}), "t"), Schema((view,))).codes["x"].tolist()
        assert streamed(cells, view) == expected, name
        assert len(set(expected)) > 1


DAMAGED = [None, pa.py_buffer(np.array([0, 1], np.int32).tobytes()), pa.py_buffer(b"\xff")]
WITHOUT_TEXT = {
    "moment": pa.array([10**18], pa.timestamp("s")),
    "date": pa.array([2**31 - 1], pa.date32()),
    "damaged text": pa.Array.from_buffers(pa.string(), 1, DAMAGED),
}


@pytest.mark.parametrize("cells", WITHOUT_TEXT.values(), ids=WITHOUT_TEXT)
def test_a_cell_without_a_text_is_refused_as_from_memory(cells):
    for view in (VIEWS[0], VIEWS[6], VIEWS[7]):
        with pytest.raises(TableError, match="'x' contains a value that cannot be written as text"):
            streamed(cells, view)
    with pytest.raises(TableError, match="'x' contains a value that cannot be written as text"):
        from_arrow(pa.table({"x": cells}), "t")


@pytest.mark.parametrize(
    "kind",
    [pa.list_(pa.int64()), pa.struct([("a", pa.int64())]), pa.binary(), pa.binary(4), pa.month_day_nano_interval()],
)
def test_types_without_plain_cells_are_refused(kind):
    rows = pa.table({"x": pa.nulls(1, kind)})
    for read in (lambda: streamed(rows["x"], VIEWS[0]), lambda: from_arrow(rows, "t")):
        with pytest.raises(TableError, match="'x' contains .* values; use one plain value per cell"):
            read()


def test_another_type_than_the_encoder_was_made_for_is_refused():
    encode = Encoder(Schema((VIEWS[0],)), pa.schema([("x", pa.int64())]), "t")
    assert encode(pa.record_batch({"x": [7]})).codes[0].tolist() == [0]
    for cells in ([7.0], ["7"], pa.array([7], pa.int32())):
        with pytest.raises(TableError, match="'x' changed its type"):
            encode(pa.record_batch({"x": cells}))


@pytest.mark.parametrize("name", ["i64", "wide", "text", "uuid"])
def test_person_identifiers_are_canonical_texts(name):
    view, cells = categorical("a", "x"), CELLS[name]
    rows = pa.table({"x": cells, "a": ["x"] * len(cells)})
    (batch,) = rows.to_batches()
    made = Encoder(Schema((view,)), rows.schema, "t", "x")(batch).person
    texts = from_arrow(rows, "t").columns["x"]
    assert [x or "" for x in made.to_pylist()] == [texts.values[code] for code in texts.codes]
    for odd in ("f64", "bool", "date", "dec", "t_us"):
        with pytest.raises(TableError, match="as text or whole numbers"):
            Encoder(Schema((view,)), pa.schema([("x", CELLS[odd].type), ("a", pa.string())]), "t", "x")


@pytest.mark.parametrize("kind", ["parquet", "groups", "folder", "csv", "duckdb", "frame"])
def test_every_layout_gives_the_same_codes(tmp_path, kind):
    cells = {"text": list("xyX") * 40 + ["", None, " 7 "], "n": [*range(120), None, 7, -3]}
    rows, schema = pa.table(cells), Schema((categorical("text", "x", "y"), numeric("n", 0, 7, 50, 100)))
    expected = Table.encode(from_arrow(rows, "t"), schema).count(("text", "n")).tolist()
    path = tmp_path / "t.parquet"
    relation: Any
    if kind == "duckdb":
        with duckdb.connect(str(tmp_path / "t.duckdb")) as con:
            con.register("rows", rows)
            con.execute("CREATE TABLE t AS SELECT * FROM rows")
        relation = open_relation(f"duckdb://{tmp_path / 't.duckdb'}", "t")
    elif kind == "csv":
        frame = rows.to_pandas(types_mapper=pd.ArrowDtype)
        frame.to_csv(tmp_path / "t.csv", index=False)
        relation = open_relation(tmp_path / "t.csv")
    elif kind == "folder":
        path = tmp_path / "folder"
        path.mkdir()
        for i in range(0, len(rows), 10):
            parquet.write_table(rows.slice(i, 10), path / f"{i}.parquet", write_statistics=bool(i % 20))
        relation = read_data(path)
    elif kind == "frame":
        got = as_table(rows.to_pandas(types_mapper=pd.ArrowDtype), schema)
        relation = SimpleNamespace(snapshot=lambda _: got)
    else:
        parquet.write_table(rows, path, row_group_size=7 if kind == "groups" else None)
        relation = open_relation(path)
    assert relation.snapshot(schema).count(("text", "n")).tolist() == expected
