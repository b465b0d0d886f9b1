"""Faults that an outside tester found in the readers: vanishing rows, the wrong file, and one person with two texts."""

from __future__ import annotations

import datetime as dt
import enum
import gzip
import io
import os
import re
import shutil
import threading
import zipfile
from decimal import Decimal
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from espalier.core.errors import TableError
from espalier.core.project.schema import Column, Schema
from espalier.core.project.schema_json import schema_from_json
from espalier.core.tables import csv_batches, excel, reading
from espalier.core.tables.frames import as_table, located, read_data, text_of
from espalier.core.tables.reading import read_table
from espalier.core.tables.relation import open_relation
from espalier.core.tables.table import Table, person_codes

SCHEMA = Schema((Column("a", "categorical", categories=("x", "y")),))
NUMBERS = Schema((Column("a", "numeric", edges=(0.0, 10.0, 20.0)),))
CALLED = UUID(int=7)


def streamed(path, schema=SCHEMA):
    snapshot = located(str(path)).snapshot(schema)
    return np.concatenate([batch["a"] for batch in snapshot.batches()]).tolist()


def stored(path, values):
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table({"a": values}), path)


@pytest.mark.parametrize("read", [read_data, read_table, located])
def test_a_pipe_is_refused_and_not_read(tmp_path, read):
    """Previously, the check for Parquet consumed the first bytes: a private cell became the header, and 2,000 rows were
    gone."""
    path = tmp_path / "pipe.csv"
    os.mkfifo(path)

    def write():
        with path.open("wb") as pipe:
            pipe.write(b"a\n" + b"secret\n" * 5000)

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    with pytest.raises(TableError, match="a pipe or a device") as refused:
        read(str(path))
    assert "secret" not in str(refused.value)
    assert len(path.read_bytes()) == 35002  # no byte was consumed
    writer.join(10)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_small_file_that_is_written_while_it_is_read_is_refused(tmp_path, monkeypatch, name):
    """Previously, only large files were compared before and after, so a row that was moved could be read twice."""
    path = tmp_path / name
    path.write_bytes(b"a\nx\ny\n") if name == "t.csv" else stored(path, ["x", "y"])
    assert read_table(path).rows == 2

    class Written(io.FileIO):
        def read(self, *size):
            data = super().read(*size)
            path.write_bytes(b"a\nx\n" * 100)
            return data

    monkeypatch.setattr(reading, "open_ordinary", Written)
    with pytest.raises(TableError, match="changed while it was being read"):
        read_table(path)


def test_a_path_like_a_url_names_its_own_file(tmp_path, monkeypatch):
    """Previously, PyArrow took the path file:/… of an existing file for a URL and read another file."""
    stored(tmp_path / "other" / "t.parquet", ["y"])
    monkeypatch.chdir(tmp_path)
    named = f"file:{tmp_path}/other/t.parquet"
    stored(tmp_path / "own.parquet", ["x", "x"])
    (tmp_path / named).parent.mkdir(parents=True)
    shutil.copy(tmp_path / "own.parquet", tmp_path / named)
    assert streamed(named) == [0, 0]
    assert streamed(named.removesuffix("/t.parquet")) == [0, 0]


def test_a_link_to_a_folder_is_refused(tmp_path):
    stored(tmp_path / "table" / "a.parquet", ["x"])
    stored(tmp_path / "rest" / "b.parquet", ["y"])
    (tmp_path / "table" / "more").symlink_to(tmp_path / "rest")
    with pytest.raises(TableError, match="more, a link to another folder"):
        streamed(tmp_path / "table")


@pytest.mark.parametrize("name", ["synthetic", "visits"], ids=["one table", "linked tables"])
def test_a_release_inside_the_table_s_folder_is_refused(tmp_path, name):
    """Previously, after ``--out TABLE/out --as parquet``, the next release counted the synthetic rows as rows."""
    stored(tmp_path / "table" / "a.parquet", ["x"])
    stored(tmp_path / "table" / "out" / f"{name}.parquet", ["y"])
    assert streamed(tmp_path / "table") == [0, 1], "a part with this name"
    (tmp_path / "table" / "out" / "release.json").touch()
    with pytest.raises(TableError, match="out, a release, whose synthetic rows"):
        streamed(tmp_path / "table")
    assert streamed(tmp_path / "table" / "out") == [1], "the release itself can be read"


def test_a_part_with_another_ending_is_refused(tmp_path):
    """Previously, the rows of that part were left out."""
    stored(tmp_path / "a.parquet", ["x"])
    stored(tmp_path / "_metadata", ["y"])
    assert streamed(tmp_path) == [0]
    stored(tmp_path / "b.parq", ["y"])
    with pytest.raises(TableError, match=r"contains b\.parq, a Parquet or gzip file whose name does not end"):
        streamed(tmp_path)


@pytest.mark.parametrize("start", [b"PARE", b"\x1f\x8b\x08\0"], ids=["encrypted", "gzip"])
def test_a_packed_or_encrypted_part_is_refused(tmp_path, start):
    """Previously, its rows were left out without a message."""
    stored(tmp_path / "a.parquet", ["x"])
    (tmp_path / "b.snappy").write_bytes(start + b"rest")
    with pytest.raises(TableError, match=r"contains b\.snappy, a Parquet or gzip file"):
        streamed(tmp_path)


@pytest.mark.parametrize(
    ("log", "rows", "name"),
    [
        ("_delta_log/00000000000000000001.json", "t", "Delta Lake"),
        (".hoodie/20240101000000000.commit", "t", "Hudi"),
        ("metadata/v2.metadata.json", "t/data", "Iceberg"),
    ],
)
def test_a_folder_that_keeps_changed_rows_is_refused(tmp_path, log, rows, name):
    """Previously, a person whose row was changed counted once for each change."""
    stored(tmp_path / rows / "0.parquet", ["x", "y"])
    stored(tmp_path / rows / "1.parquet", ["x"])  # the row as it was changed
    assert len(streamed(tmp_path / "t")) == 3
    (tmp_path / "t" / log).parent.mkdir(exist_ok=True)
    (tmp_path / "t" / log).write_text("{}")
    with pytest.raises(TableError, match=f"belongs to a {name} table"):
        read_data(tmp_path / "t")
    for read in (read_data, read_table, streamed):
        with pytest.raises(TableError, match=rf"0\.parquet belongs to a {name} table"):
            read(tmp_path / rows / "0.parquet")
    (tmp_path / "t" / "year=2024").mkdir()
    shutil.move(tmp_path / rows / "0.parquet", tmp_path / "t" / "year=2024" / "0.parquet")
    with pytest.raises(TableError, match=f"belongs to a {name} table"):
        read_data(tmp_path / "t" / "year=2024")


def test_two_damaged_folder_names_are_not_one_cell(tmp_path):
    for name in ("k=%FF", "k=%FE"):
        stored(tmp_path / name / "a.parquet", ["x"])
    with pytest.raises(TableError, match="the name of its folder is not UTF-8"):
        streamed(tmp_path)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("nowhere")], ids=["pipe", "broken link"])
def test_a_part_that_is_no_file_is_refused(tmp_path, make):
    stored(tmp_path / "a.parquet", ["x"])
    make(tmp_path / "b.parquet")
    with pytest.raises(TableError, match=r"b\.parquet: it is a broken link or a pipe"):
        streamed(tmp_path)


class Colour(str, enum.Enum):  # noqa: UP042 (its text is Colour.RED)
    """A text that is written differently from the equal plain text."""

    RED = "red"


EQUAL = [
    [10**17, 1e17],
    [2**53, float(2**53)],
    [1, True],
    [Decimal("7.5"), Decimal("7.50")],
    [Decimal("1E+3"), Decimal("1000")],
    [np.datetime64("2024-01-01", "ns"), pd.Timestamp("2024-01-01")],
    [np.timedelta64(1, "ns"), np.timedelta64(1000, "ps")],
    [pd.Timedelta(days=1), dt.timedelta(days=1)],
    [Colour.RED, "red"],
    [dt.datetime(2024, 1, 1, tzinfo=dt.UTC), dt.datetime(2024, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1)))],
]
"""Equal cells that have two texts."""


@pytest.mark.parametrize("cells", [*EQUAL, [CALLED, str(CALLED)]], ids=str)
def test_one_person_never_becomes_two_in_a_frame(cells):
    frame = pd.DataFrame({"a": ["x"] * len(cells), "person": pd.Series(cells, dtype=object)})
    with pytest.raises(TableError, match="mixes types|use one plain value per cell"):
        as_table(frame, SCHEMA, "person")


@pytest.mark.parametrize("cells", [[7, 7.0], [7, 8.0], ["A1", 7], [Decimal("7.5"), Decimal("7.0")]], ids=str)
def test_persons_of_one_form_stay_allowed(cells):
    frame = pd.DataFrame({"a": ["x"] * len(cells), "person": pd.Series(cells, dtype=object)})
    assert as_table(frame, SCHEMA, "person").names_people


def test_a_decimal_that_is_no_number_is_nobody():
    frame = pd.DataFrame({"a": ["x", "x"], "person": [Decimal("NaN"), Decimal("1")]})
    with pytest.raises(TableError, match="has an empty cell in data row 1"):
        as_table(frame, SCHEMA, "person")


def test_both_zeros_of_decimals_are_one_person():
    frame = pd.DataFrame({"a": ["x", "x"], "person": [Decimal("-0"), Decimal("0")]})
    assert as_table(frame, SCHEMA, "person").person.tolist() == [0, 0]


@pytest.mark.parametrize("odd", [0.5, None], ids=str)
@pytest.mark.parametrize("several", [False, True])
def test_one_cell_of_an_index_never_changes_another(odd, several):
    """Previously, because of one odd cell, pandas' reset_index turned all whole numbers of an index into floats."""
    large = 2**53 + 1
    index = pd.Index([large, odd], dtype=object, name="a")
    frame = pd.DataFrame({"b": ["x", "y"]}, index=pd.MultiIndex.from_arrays([index]) if several else index)
    if several:
        with pytest.raises(TableError, match="pandas may have merged"):
            text_of(frame)
        return
    read = text_of(frame).columns["a"]
    assert read.values[read.codes[0]] == str(large)


ODD_CATEGORIES = [
    (True, 1),
    ("yes\0", "yes"),
    (Decimal("7.50"), Decimal("7.5")),
    (1.0, True),
]
"""Pairs of cells that pandas treats as one category, which is then written as the first of them."""


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize(("odd", "plain"), ODD_CATEGORIES, ids=str)
def test_one_cell_never_names_the_category_of_others(odd, plain, several):
    """Previously, one cell True turned all cells that hold 1 into True; a “yes” with a zero character renamed all cells
    “yes”."""
    cells = pd.Series([odd, plain, "other"], dtype=object, name="a")
    frame = pd.DataFrame({"a": cells, "b": range(3)})
    frame = frame.set_index(["a", "b"], drop=True).assign(c=1) if several else frame.astype({"a": "category"})
    with pytest.raises(TableError, match="column 'a' has categories that pandas may have merged"):
        text_of(frame)


@pytest.mark.parametrize("cells", [["x", "y", None], [dt.date(2024, 1, 1), None], [CALLED, "x"]], ids=str)
@pytest.mark.parametrize("several", [False, True])
def test_categories_that_pandas_never_merges(cells, several):
    frame = pd.DataFrame({"a": pd.Series(cells, dtype=object), "b": range(len(cells))})
    frame = frame.set_index(["a", "b"]).assign(c=1) if several else frame.astype({"a": "category"})
    read = text_of(frame).columns["a"]
    assert [read.values[code] for code in read.codes] == ["" if cell is None else str(cell) for cell in cells]


@pytest.mark.parametrize("odd", [3, 2.5, None], ids=str)
def test_a_query_of_ibis_is_no_frame(tmp_path, odd):
    """Ibis reads SQLite through pandas. Previously, one cell without a number removed the last digits of all whole
    numbers."""
    import sqlite3

    import ibis

    with sqlite3.connect(tmp_path / "t.db") as con:
        con.execute("CREATE TABLE t (a INTEGER)")
        con.executemany("INSERT INTO t VALUES (?)", [(2**53 + 1,), (2**53,), (odd,)])
    con.close()
    with pytest.raises(TableError, match="an Ibis query"):
        text_of(ibis.sqlite.connect(tmp_path / "t.db").table("t"))


def test_a_number_of_very_many_digits_is_refused():
    """Previously, this ended in a traceback."""
    with pytest.raises(TableError, match="'a' has a number with too many digits"):
        text_of(pd.DataFrame({"a": pd.Series([1, 10**5000], dtype=object)}))


def test_moments_of_different_nanoseconds_have_different_texts():
    """Previously, a nanosecond after midnight was read as midnight."""
    read = text_of(pa.table({"a": pa.array([0, 1], pa.timestamp("ns"))})).columns["a"]
    assert read.values == ("1970-01-01", "1970-01-01T00:00:00.000000001")


@pytest.mark.parametrize("text", ["", "x"])
def test_one_row_never_hides_others_of_a_transport_file(tmp_path, text):
    """Blank rows at the end are padding. Previously, an empty last row therefore removed all empty rows before it."""
    pyreadstat = pytest.importorskip("pyreadstat")
    path = tmp_path / "t.xpt"
    pyreadstat.write_xport(pd.DataFrame({"a": ["x", *[""] * 20, text]}), str(path), file_format_version=5)
    with pytest.raises(TableError, match="only text columns"):
        read_table(path)
    pyreadstat.write_xport(pd.DataFrame({"a": ["x", *[""] * 20, text]}), str(path), file_format_version=8)
    assert read_table(path).rows == 22


def test_a_number_of_blanks_in_a_transport_file_is_refused(tmp_path):
    """A row that holds only such numbers is padding too."""
    pyreadstat = pytest.importorskip("pyreadstat")
    path = tmp_path / "t.xpt"
    pyreadstat.write_xport(pd.DataFrame({"a": [1.0, 2.0]}), str(path), file_format_version=5)
    data = path.read_bytes().replace(bytes.fromhex("4110000000000000"), b" " * 8)
    with pytest.raises(TableError, match="'a' contains a number whose bytes are all blanks"):
        read_table(data, "t.xpt")


def test_a_missing_cell_of_a_whole_number_level():
    index = pd.MultiIndex(levels=[[2**53 + 1, 7]], codes=[[0, -1]], names=["a"])
    assert text_of(pd.DataFrame({"b": ["x", "y"]}, index=index)).columns["a"].values == (str(2**53 + 1), "")


DICTIONARIES = [
    pa.array(["x", None]),
    pa.array([True, None]),
    pa.array([Decimal("1.5"), None], pa.decimal32(5, 2)),
    pa.array([np.float16(1.5), None], pa.float16()),
    pa.array([UUID(int=7).bytes, None], pa.uuid()),
    pa.nulls(2),
    pa.DictionaryArray.from_arrays([0, None], pa.array(["x"])),
]


@pytest.mark.parametrize("values", DICTIONARIES, ids=lambda values: str(values.type))
def test_a_second_part_of_a_column_changes_no_cell(values):
    """Previously, Arrow failed to join the parts' dictionaries, and read the bits of narrow floats as whole numbers."""
    part = pa.DictionaryArray.from_arrays([0, 1], values)
    alone, twice = (text_of(pa.table({"a": pa.chunked_array([part] * n)})).columns["a"] for n in (1, 2))
    assert alone.values == twice.values
    assert twice.codes.tolist() == [*alone.codes.tolist()] * 2


def test_a_frame_that_fails_quotes_no_cell():
    """Previously, DuckDB's error, which quotes a cell, was shown."""
    import duckdb

    with pytest.raises(TableError, match="cannot be read as a table") as refused:
        text_of(duckdb.sql("SELECT CAST(x AS INT) AS a FROM (VALUES ('1'), ('secret')) AS t(x)"))
    assert "secret" not in str(refused.value)


def test_half_a_surrogate_pair_is_refused():
    """Previously, this ended in a traceback that quotes the cell if rows were cut."""
    frame = pd.DataFrame({"a": ["x"] * 2, "person": pd.Series(["\ud800"] * 2, dtype=object)})
    with pytest.raises(TableError, match="'person' has text that is not valid Unicode"):
        as_table(frame, SCHEMA, "person")


def test_damaged_gzip_is_refused_where_it_is_read_in_place(tmp_path):
    packed = gzip.compress(b"a\n" + np.random.default_rng(0).bytes(9000).hex().encode() + b"\nx\n")
    damaged = bytearray(packed)
    damaged[3000] ^= 255
    for data in (packed[:2], packed[:-9], packed[:-8] + bytes(8), packed + b"more", bytes(damaged)):
        (tmp_path / "t.csv").write_bytes(data)
        with pytest.raises(TableError, match="is a damaged gzip file"):
            streamed(tmp_path / "t.csv")


def test_a_packed_line_without_end_is_refused(tmp_path):
    """Previously, 400 kB took 400 MB of memory, because the limit on unpacked bytes was missing for files read in
    place."""
    with gzip.open(tmp_path / "t.csv", "wb", 1) as file:
        file.write(b"a\nx\n" + bytes(60_000_000).replace(b"\0", b"x"))
    with pytest.raises(TableError, match="more than 150 times its size"):
        streamed(tmp_path / "t.csv")


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_batches, "BLOCK", 100)
    monkeypatch.setattr(csv_batches, "LINE", 1000)
    (tmp_path / "t.csv").write_bytes(b"a\nx\n" + b"x" * 5000)
    with pytest.raises(TableError, match="has a line of more than"):
        streamed(tmp_path / "t.csv")


@pytest.mark.parametrize("size", range(1, 9))
def test_the_kind_of_line_break_is_the_same_in_all_blocks(tmp_path, monkeypatch, size):
    """Previously, a line feed at the start of a block joined the header's carriage return, so the block's rows ended
    differently.
    """
    monkeypatch.setattr(csv_batches, "BLOCK", size)
    (tmp_path / "t.csv").write_bytes(b"a\rx\r\nx\ny\nx")
    for read in (streamed, read_table):
        with pytest.raises(TableError, match="line feed"):
            read(tmp_path / "t.csv")


def test_too_many_columns_are_refused_at_once():
    """Previously, a hundred thousand columns took half a minute."""
    names = ",".join(f"c{i}" for i in range(20_000))
    with pytest.raises(TableError, match="has 20,000 columns"):
        read_table(f"{names}\n{names}\n".encode(), "t.csv")


def test_a_hidden_first_sheet_is_refused():
    """Previously, the hidden sheet's rows were released instead of those that Excel shows."""
    import openpyxl

    book = openpyxl.Workbook()
    for cells in (["a"], ["x"]):
        book.active.append(cells)
        book.create_sheet() if cells == ["a"] else book.worksheets[1].append(cells)
    book.active.sheet_state = "hidden"
    book.active = 1
    book.save(out := io.BytesIO())
    with pytest.raises(TableError, match="the first sheet of t.xlsx is hidden"):
        read_table(out.getvalue(), "t.xlsx")


def test_a_workbook_of_very_many_parts_is_refused_at_once():
    """Previously, the directory of an archive of 200 MB took more than 3 GB."""
    with zipfile.ZipFile(out := io.BytesIO(), "w") as parts:
        for i in range(10_001):
            parts.writestr(f"{i}", b"")
    with pytest.raises(TableError, match="more than 10,000 parts"):
        read_table(out.getvalue(), "t.xlsx")


def test_a_small_workbook_of_very_many_texts_is_refused_at_once():
    """Previously, a workbook of 12 kB took ten seconds, and one of 120 kB took minutes."""
    with zipfile.ZipFile(out := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as parts:
        parts.writestr("xl/sharedStrings.xml", b"<sst>" + b"<si/>" * 1_100_000 + b"</sst>")
    with pytest.raises(TableError, match="more than 100 times its size"):
        read_table(out.getvalue(), "t.xlsx")


@pytest.fixture
def shared(tmp_path):
    """A DuckDB file that this process already has open, with a view of a file outside it."""
    import duckdb

    (tmp_path / "outside.csv").write_text("a\nx\n")
    with duckdb.connect(str(tmp_path / "other.duckdb")) as other:
        other.execute("CREATE TABLE q AS SELECT 'x' AS a")
    with duckdb.connect(str(tmp_path / "own.duckdb")) as own:
        own.execute("CREATE TABLE t AS SELECT 'x' AS a")
        own.execute(f"CREATE VIEW v AS FROM read_csv('{tmp_path}/outside.csv')")
    with duckdb.connect(str(tmp_path / "own.duckdb"), read_only=True) as con:
        yield con


def test_directories_that_a_process_allows_are_closed(shared, tmp_path):
    shared.execute(f"SET allowed_directories = ['{tmp_path}/']")
    with pytest.raises(TableError, match="cannot open the duckdb relation 'v'"):
        located(f"duckdb://{tmp_path}/own.duckdb", "v").snapshot(SCHEMA)


@pytest.mark.parametrize("name", ["t", "main.t", "own.main.t"])
def test_another_database_of_the_process_is_not_read(shared, tmp_path, name):
    shared.execute(f"ATTACH '{tmp_path}/other.duckdb' AS o (READ_ONLY)")
    with pytest.raises(TableError, match="in another attached database"):
        located(f"duckdb://{tmp_path}/own.duckdb", "o.main.q")
    assert located(f"duckdb://{tmp_path}/own.duckdb", name).columns == {"a": "string"}


def sheet(rows, change=str):
    """An Excel workbook with its sheet's XML changed."""
    import openpyxl

    book, plain, out = openpyxl.Workbook(), io.BytesIO(), io.BytesIO()
    for row in rows:
        book.active.append(row)
    book.save(plain)
    with zipfile.ZipFile(plain) as parts, zipfile.ZipFile(out, "w") as changed:
        for name in parts.namelist():
            text = parts.read(name)
            changed.writestr(name, change(text.decode()) if name.endswith("sheet1.xml") else text)
    return out.getvalue()


@pytest.mark.parametrize("second", ["1E+17", "TRUE", "a date"])
def test_one_person_never_becomes_two_in_excel(second):
    cell = {"1E+17": 7, "TRUE": True, "a date": dt.datetime(2024, 1, 1)}[second]
    stored = {"<v>7</v>": "<v>1E+17</v>", "<v>8</v>": f"<v>{10**17}</v>"}
    data = sheet(
        [["a", "person"], ["x", 8], ["x", cell]], lambda xml: re.sub("<v>[78]</v>", lambda v: stored[v[0]], xml)
    )
    with pytest.raises(TableError, match="mixes types"):
        as_table(read_table(data, "t.xlsx"), SCHEMA, "person")


@pytest.mark.parametrize(
    "cells",
    [
        ["#N/A", "#N/A", "q"],
        [dt.datetime(2020, 1, 1, 0, 0, 0, 100), dt.datetime(2020, 1, 1, 0, 0, 0, 200), dt.datetime(2021, 1, 1)],
        [dt.timedelta(microseconds=100), dt.timedelta(microseconds=200), dt.timedelta(1)],
        [True, True, "q"],  # also written as 2
        [1234567890123450, 1234567890123450, 7],  # Excel stores 1234567890123456 like this
        [12.1, 12.1, 7.5],  # also typed as 12.10, and stored as 12.1
        [0.0, 0.0, 7],  # also stored as 1E-400
    ],
    ids=["errors", "moments", "durations", "truth values", "long numbers", "fractions", "tiny numbers"],
)
def test_people_whom_excel_gives_one_text_are_refused(cells):
    """Previously, all people without a result of a lookup were one person, and times and fractions were rounded."""
    data = sheet([["p", "a"], *zip(cells, "xyx", strict=True)], lambda xml: xml.replace("<v>0</v>", "<v>1E-400</v>"))
    with pytest.raises(TableError, match="the person column 'p' mixes types, may have lost digits"):
        as_table(read_table(data, "t.xlsx"), SCHEMA, "p")


def shared_texts(*items):
    """A workbook whose column p has these items of its shared texts, as Excel writes it."""
    rows = "".join(f'<row><c t="s"><v>{place}</v></c></row>' for place in range(len(items) + 1))
    made = "".join(f"<si>{item}</si>" for item in ("<t>p</t>", *items))
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    texts = f'<Override PartName="/xl/sharedStrings.xml" ContentType="{kind}.sharedStrings+xml"/>'
    data, out = (
        sheet([["p"]], lambda xml: re.sub("<sheetData>.*</sheetData>", f"<sheetData>{rows}</sheetData>", xml)),
        io.BytesIO(),
    )
    with zipfile.ZipFile(io.BytesIO(data)) as parts, zipfile.ZipFile(out, "w") as changed:
        for name in parts.namelist():
            text = parts.read(name).decode()
            if name == "[Content_Types].xml":
                text = re.sub(r"<Override [^>]*sharedStrings[^>]*>", "", text).replace("</Types>", f"{texts}</Types>")
            if name != "xl/sharedStrings.xml":
                changed.writestr(name, text)
        main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
        changed.writestr("xl/sharedStrings.xml", f'<sst xmlns="{main}">{made}</sst>')
    return out.getvalue()


@pytest.mark.parametrize(
    ("first", "second"),
    [("ab", "ax005F_b"), ("_x0041_", "_x005F_x0041_"), ("", "x005F_"), ("a b", "a  b"), ("<![CDATA[a]]>", "_a")],
)
def test_shared_texts_that_differ_are_two_people(first, second):
    """Previously, the letters x005F_ vanished, so ``ab`` and ``ax005F_b`` were one person."""
    read = read_table(shared_texts(f"<t>{first}</t>", f"<t>{second}</t>"), "t.xlsx")
    assert len(read.columns["p"].values) == 2
    assert not read.columns["p"].ambiguous


@pytest.mark.parametrize(
    ("text", "read", "exact"),
    [
        ("<r><t>a</t></r><r><rPr/><t>b</t></r>", "ab", True),
        ("<t>ab</t><rPh><t>x</t></rPh>", "ab", True),
        ("<t>a</t><t>b</t>", "ab", False),
        ("<t>a</t><r><t>b</t></r>", "ab", False),
        ("<t>ab<x>c</x></t>", "ab", False),
        ("<t>a\r\nb</t>", "a\nb", False),
    ],
)
def test_a_shared_text_of_which_something_is_dropped_identifies_no_one(text, read, exact):
    column = read_table(shared_texts(text), "t.xlsx").columns["p"]
    assert (column.values, column.ambiguous) == ((read,), not exact)


@pytest.mark.parametrize(
    ("stored", "exact"),
    [
        *(("7", True), ("-7", True), ("0", True), ("999999999999999", True)),
        *(("7.0000000000000001", False), ("123456789.000000001", False), ("999999999999999.01", False)),
        *(("7.0", False), ("07", False), ("1_0", False), (" 7", False), ("-0", False), ("7E0", False), ("٧", False)),
    ],
)
def test_only_whole_numbers_in_one_spelling_identify_people_in_excel(stored, exact):
    """Previously, 7 and 7.0000000000000001 were one person."""
    data = sheet([["p"], [1000]], lambda xml: xml.replace("<v>1000</v>", f"<v>{stored}</v>"))
    assert read_table(data, "t.xlsx").columns["p"].ambiguous is not exact


@pytest.mark.parametrize("end", ["</row>", "</c>", "</sheetData>", "</worksheet>"])
def test_a_sheet_of_many_small_elements_is_refused(monkeypatch, end):
    """Previously, a workbook of 60 kB took 440 MB, and one of 230 kB took minutes."""
    monkeypatch.setattr(excel, "EXCEL_ELEMENTS", 1000)
    monkeypatch.setattr(excel, "EXCEL_DENSITY", 0)
    data = sheet([["a"], ["x"]], lambda xml: xml.replace(end, "<a/>" * 2000 + end, 1))
    with pytest.raises(TableError, match="too many XML elements"):
        read_table(data, "t.xlsx")


@pytest.mark.parametrize("many", ["<row>" + "<c/>" * 600 + "</row>", "<a>" * 600 + "</a>" * 600])
def test_few_elements_of_a_sheet_are_in_memory(monkeypatch, many):
    monkeypatch.setattr(excel, "EXCEL_HELD", 500)
    data = sheet([["a"], ["x"]], lambda xml: xml.replace("</sheetData>", f"{many}</sheetData>"))
    with pytest.raises(TableError, match="too many XML elements"):
        read_table(data, "t.xlsx")


def test_parts_that_are_parsed_as_a_whole_have_a_limit(monkeypatch):
    """Previously, styles of 63 kB took 650 MB and 25 s."""
    monkeypatch.setattr(excel, "EXCEL_HELD", 20)
    with pytest.raises(TableError, match="too many XML elements"):
        read_table(sheet([["a"], ["x"]]), "t.xlsx")


def test_cells_out_of_order_are_refused():
    """Previously, the cells to the right of the last one vanished."""
    data = sheet([["a", "b"], ["x", "y"]], lambda xml: xml.replace('r="A2"', 'r="C2"'))
    with pytest.raises(TableError, match="row 2: the cells of this row are not in order"):
        read_table(data, "t.xlsx")


def test_a_row_beyond_excel_is_refused_at_once():
    data = sheet([["a"], ["x"]], lambda xml: xml.replace('<row r="2"', '<row r="1000000000"'))
    with pytest.raises(TableError, match="Excel allows 1,048,576 rows"):
        read_table(data, "t.xlsx")


def test_cells_far_to_the_right_are_refused():
    """Previously, each such row took two milliseconds: a workbook of 30 MB took half an hour."""
    data = sheet([["a"], *[["x"]] * 3], lambda xml: xml.replace("</row>", '<c r="ZZZ9"/></row>'))
    with pytest.raises(TableError, match="Excel allows 16,384 columns"):
        read_table(data, "t.xlsx")


def test_a_decimal_beyond_its_precision_is_refused_where_it_is_read_in_place(tmp_path):
    """Previously, the upper 64 bits were dropped, so memory and file gave two codes."""
    path = tmp_path / "t.parquet"
    cells = pa.array([Decimal(2**64 + 7), Decimal(7)], pa.decimal128(38, 0))
    parquet.write_table(pa.table({"a": cells}), path, store_schema=False, use_dictionary=False, write_statistics=False)
    data = path.read_bytes()
    size = int.from_bytes(data[-8:-4], "little")
    foot = data[-8 - size : -8].replace(b"\x4c", b"\x0a")  # the precision, 38 and 5, as Thrift writes it
    path.write_bytes(data[: -8 - size] + foot + data[-8:])
    assert parquet.read_schema(path).field("a").type == pa.decimal128(5, 0)
    with pytest.raises(TableError, match="cannot be written as text"):
        streamed(path, NUMBERS)


@pytest.mark.parametrize("kind", [pa.decimal32(5, 1), pa.decimal64(12, 1)], ids=str)
def test_narrow_decimals(tmp_path, kind):
    table = pa.table({"a": pa.array([Decimal("7.0"), Decimal("15.5")], kind)})
    assert as_table(table, NUMBERS).codes["a"].tolist() == [0, 1]
    parquet.write_table(table, tmp_path / "t.parquet")
    assert streamed(tmp_path / "t.parquet", NUMBERS) == [0, 1]


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_texts_written_as_differences(tmp_path, encoding):
    """Arrow cannot read such texts as dictionaries. Previously, whole files were refused as damaged."""
    path = tmp_path / "t.parquet"
    table = pa.table({"a": ["x", "y", "x"]})
    parquet.write_table(table, path, use_dictionary=False, column_encoding={"a": encoding})
    assert as_table(read_table(path), SCHEMA).codes["a"].tolist() == [0, 1, 0]
    assert streamed(path) == [0, 1, 0]


def test_a_later_row_group_written_as_differences(tmp_path, monkeypatch):
    """The rows before it are read once."""
    monkeypatch.setattr("espalier.core.tables.parquet_files.BATCH_ROWS", 2)
    opened = parquet.ParquetFile.iter_batches

    def failing(file, *given, **named):
        for i, batch in enumerate(opened(file, *given, **named)):
            if i == 1 and pa.types.is_dictionary(batch.column(0).type):
                raise OSError("Not yet implemented")
            yield batch

    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", failing)
    stored(tmp_path / "t.parquet", ["x", "y", "x", "x", "y"])
    assert streamed(tmp_path / "t.parquet") == [0, 1, 0, 0, 1]


def test_damaged_text_that_no_row_has():
    damaged = pa.array([b"x", b"\xff"], pa.binary()).view(pa.string())
    with pytest.raises(TableError, match="column 'a' contains a value that cannot be written as text"):
        text_of(pa.table({"a": pa.DictionaryArray.from_arrays(pa.array([0, 0]), damaged)}))


@pytest.mark.parametrize("place", [-1, 5])
def test_a_frame_that_contradicts_itself(place):
    cells = pa.DictionaryArray.from_arrays(pa.array([0, place]), pa.array(["x", "y"]), safe=False)
    with pytest.raises(TableError, match="is damaged"):
        text_of(pa.table({"a": cells}))


def test_an_index_named_like_a_column():
    with pytest.raises(TableError, match="names column 'a' twice"):
        text_of(pd.DataFrame({"a": ["x"]}, index=pd.Index(["y"], name="a")))


def test_the_largest_unsigned_number_is_not_negative(tmp_path):
    """Previously, Arrow took DuckDB's largest number for −1."""
    import duckdb

    with duckdb.connect(str(tmp_path / "t.duckdb")) as con:
        con.execute("CREATE TABLE t (a UHUGEINT, person UHUGEINT)")
        con.executemany("INSERT INTO t VALUES (?, ?)", [(2**128 - 1, 2**128 - 1), (1, 1)])
    relation = located(f"duckdb://{tmp_path}/t.duckdb", "t")
    assert relation.sample().columns["person"].values == (str(2**128 - 1), "1")
    assert relation.snapshot(NUMBERS, "person", 1).count(("a",)).tolist() == [1, 1]


@pytest.mark.parametrize("scheme", ["sqlite", "duckdb"])
@pytest.mark.parametrize("name", ["t.db#2", "t.db%00", "t.db\n", "t.db?mode=ro"])
def test_a_url_of_a_file_names_no_other_file(tmp_path, scheme, name):
    """Previously, all of these read t.db, and an option was ignored."""
    import sqlite3

    import duckdb

    for con in (sqlite3.connect(tmp_path / "sqlite.db"), duckdb.connect(str(tmp_path / "duckdb.db"))):
        con.execute("CREATE TABLE t AS SELECT 'x' AS a")
        con.commit()
        con.close()
    (tmp_path / f"{scheme}.db").rename(tmp_path / "t.db")
    with pytest.raises(TableError, match="may name another file|cannot open"):
        located(f"{scheme}://{tmp_path}/{name}", "t")


@pytest.fixture
def in_postgres(postgres):
    """Make a table of these columns and rows; return its name."""
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as con:

        def make(columns, *rows):
            con.execute("DROP TABLE IF EXISTS outsider")
            con.execute(f"CREATE TABLE outsider ({columns})")
            for row in rows:
                con.execute(f"INSERT INTO outsider VALUES ({','.join(['%s'] * len(row))})", row)
            return "outsider"

        yield make
        con.execute("DROP TABLE IF EXISTS outsider")


def counts(url, name, column, person=None):
    relation = located(url, name)
    try:
        return relation.snapshot(Schema((column,)), person, 1).count((column.name,)).tolist()
    finally:
        relation.close()


def test_a_decimal_that_is_no_number_is_nobody_in_postgres(postgres, in_postgres):
    """Previously, all rows with such an identifier were one person named NaN."""
    name = in_postgres("a text, person numeric(20,0)", ("x", "NaN"), ("x", "NaN"), ("x", 1))
    with pytest.raises(TableError, match="'person' has an empty cell"):
        counts(postgres, name, SCHEMA["a"], "person")


def test_far_and_infinite_decimals_are_read_alike_in_postgres(postgres, in_postgres):
    """Previously, an infinity was counted in the outermost bin, and 1e400 ended the release."""
    cells = ["Infinity", "-Infinity", "NaN", "1e400", "-1e400", "1e-400", "15"]
    name = in_postgres("a numeric", *[(cell,) for cell in cells])
    column = Column("a", "numeric", edges=(0.0, 10.0, 20.0), missing=True, unknown="missing")
    frame = pd.DataFrame({"a": pd.Series([Decimal(cell) for cell in cells], dtype=object)})
    assert counts(postgres, name, column) == as_table(frame, Schema((column,))).count(("a",)).tolist() == [2, 2, 3]


def test_a_category_never_ends_its_literal_in_postgres(postgres, in_postgres):
    """A server may read a backslash in a literal as an escape. Previously, a category of a project file then became
    SQL."""
    name = in_postgres("a text", ("a\\b",), ("\\'",))
    column = Column("a", "categorical", categories=("a\\b", "\\'"))
    assert counts(f"{postgres}&options=-cstandard_conforming_strings%3Doff", name, column) == [1, 1]


DROPPED = {
    "date64": pa.array([86_400_001, 86_400_002], pa.int64()).view(pa.date64()),
    "time64": pa.array([1_001, 1_002], pa.int64()).view(pa.time64("ns")),
    "double": pa.array([2.0**53, 2.0**53 + 2]),
    "float": pa.array([2.0**24, 2.0**24 + 2], pa.float32()),
}
"""Identifiers whose types drop digits: of a day, of a time, or of whole numbers that a frame's producer converted."""


@pytest.mark.parametrize("kind", DROPPED)
@pytest.mark.parametrize("coded", [False, True], ids=["plain", "dictionary"])
def test_persons_of_a_type_that_drops_digits_are_refused(kind, coded):
    """Previously, two values of date64 or time64 had one text, so two people became one."""
    cells = DROPPED[kind].dictionary_encode() if coded else DROPPED[kind]
    with pytest.raises(TableError, match="the person column 'p' mixes types, may have lost digits"):
        as_table(pa.table({"a": ["x", "y"], "p": cells}), SCHEMA, "p")


@pytest.mark.parametrize("cells", [[7.0, 8.0], [2.0**53 - 1, 7.5]], ids=str)
def test_persons_of_smaller_numbers_stay_allowed(cells):
    assert as_table(pa.table({"a": ["x", "y"], "p": cells}), SCHEMA, "p").person.tolist() == [0, 1]


@pytest.mark.parametrize("categories", [False, True])
def test_whole_numbers_that_pandas_made_floats_are_no_persons(categories):
    """Previously, one fraction turned all whole numbers into floats, and 2⁵³ and 2⁵³ + 1 became one person."""
    cells = pd.Series([2**53, 2**53 + 1, 0.5], dtype="category" if categories else None)
    with pytest.raises(TableError, match="'p' has categories of numbers beyond 2⁵³|'p' mixes types, may have lost"):
        as_table(pd.DataFrame({"a": ["x"] * 3, "p": cells}), SCHEMA, "p")


@pytest.mark.parametrize("several", [False, True])
def test_a_fraction_never_renames_categories_of_whole_numbers(several):
    """Previously, the text of 10¹⁸ was 1e+18 if another cell held a fraction."""
    large, odd = pd.Series([10**18, 7], dtype="category", name="a"), pd.Series([10**18, 0.5], dtype="category")
    assert set(text_of(pd.DataFrame({"a": large})).columns["a"].values) == {str(10**18), "7"}
    frame = pd.DataFrame({"a": odd, "b": range(2)})
    frame = frame.set_index(["a", "b"]).assign(c=1) if several else frame
    with pytest.raises(TableError, match="column 'a' has categories of numbers beyond 2⁵³"):
        text_of(frame)


@pytest.mark.parametrize("last", [None, ""], ids=["no value", "an empty text"])
def test_a_line_of_a_sheet_is_a_row_if_it_holds_a_cell(last):
    """Whether a line is a row depends on that line alone: a sheet's number of rows is a function of its lines."""
    for before in (["x"], ["x", "y"], ["y"] * 5):
        for count in (1, 2):
            data = sheet([["a"], *([cell] for cell in before), *([last] for _ in range(count))], _empty_texts)
            read = read_table(data, "t.xlsx")
            column = read.columns["a"]
            assert [column.values[code] for code in column.codes] == [*before, *([""] * count if last == "" else [])]


def _empty_texts(xml):
    """Excel's own way to write a cell with an empty text."""
    return re.sub(r'<c r="(\w+)" t="inlineStr"\s*/>', r'<c r="\1" t="inlineStr"><is><t></t></is></c>', xml)


@pytest.mark.parametrize("encoding", ["UTF-16le", "UTF-16be"])
def test_a_sqlite_file_of_utf_16_is_refused(tmp_path, encoding):
    """Previously, half of a damaged pair was read as the text of another person."""
    import sqlite3

    con = sqlite3.connect(tmp_path / "t.db")
    con.execute(f"PRAGMA encoding = '{encoding}'")
    con.execute("CREATE TABLE t (a TEXT)")
    con.execute("INSERT INTO t VALUES (CAST(x'3dd86100' AS TEXT)), (?)", ["👡"])
    con.commit()
    con.close()
    with pytest.raises(TableError, match="is stored as UTF-16"):
        open_relation(f"sqlite:///{tmp_path / 't.db'}", "t")


TEXTS_WITHOUT_DICTIONARY = {
    "the difference from the previous text": {"column_encoding": {"a": "DELTA_BYTE_ARRAY"}, "compression": "none"},
    "whole texts, packed": {"compression": "zstd"},
}


@pytest.mark.parametrize("read", [read_table, streamed])
@pytest.mark.parametrize("how", TEXTS_WITHOUT_DICTIONARY.values(), ids=TEXTS_WITHOUT_DICTIONARY)
def test_a_small_parquet_file_of_many_long_texts_is_refused_before_they_are_read(tmp_path, read, how):
    """Previously, a file of 1,144 bytes took 2 GB."""
    path = tmp_path / "t.parquet"
    long = pa.array([b"x" * 500_000] * 200).cast(pa.string())
    parquet.write_table(pa.table({"a": long}), path, use_dictionary=False, **how)
    with pytest.raises(TableError, match="unpacks to more than 150 times its size"):
        read(path)
    short = pa.array([f"{i % 7:04d}" for i in range(200_000)])
    parquet.write_table(pa.table({"a": short}), path, use_dictionary=False, **how)
    wanted = [int(text) for text in short.to_pylist()]
    schema = Schema((Column("a", "categorical", categories=tuple(f"{i:04d}" for i in range(7))),))
    found = streamed(path, schema) if read is streamed else Table.encode(read_table(path), schema).codes["a"].tolist()
    assert found == wanted


@pytest.mark.parametrize("legacy", [True, False])
def test_moments_that_a_format_may_have_rounded_are_no_persons(tmp_path, legacy):
    """Previously, INT96 timestamps of one microsecond were one person, so three people became one."""
    moments = pa.array([1, 2, 3, 2000], pa.timestamp("ns"))
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"who": moments, "x": list("abab")}), path, use_deprecated_int96_timestamps=legacy)
    for read in (read_table(path), text_of(pd.DataFrame({"who": moments.to_pandas().astype(object)}))):
        with pytest.raises(TableError, match="person column 'who'"):
            person_codes(read, "who")


@pytest.mark.parametrize(
    "kind", [pa.timestamp("s"), pa.timestamp("us", "UTC"), pa.time32("s"), pa.time64("us"), pa.duration("us")]
)
def test_a_person_column_is_text_or_a_number_and_never_a_moment(kind):
    numbers = pa.array([1, 2], pa.int64() if kind.bit_width == 64 else pa.int32())
    with pytest.raises(TableError, match="person column 'who'"):
        person_codes(text_of(pa.table({"who": numbers.cast(kind)})), "who")


def test_a_day_of_a_zone_is_read_in_memory_and_refused_in_place(tmp_path):
    """Previously, the documents stated that every source refuses it."""
    days = {"name": "d", "kind": "date", "dates": {"from": "2020-01-01", "to": "2020-12-31", "by": "month"}}
    schema, path = schema_from_json([days]), tmp_path / "t.parquet"
    midnight = 1_580_511_600  # the first of February in Berlin
    parquet.write_table(
        pa.table({"d": pa.array([midnight - 1, midnight], pa.timestamp("s", "Europe/Berlin"))}), path, version="2.6"
    )
    assert as_table(read_table(path), schema).codes["d"].tolist() == [0, 1]
    with pytest.raises(TableError, match="timestamps with a time zone, so their day depends on the zone"):
        located(str(tmp_path)).snapshot(schema)
