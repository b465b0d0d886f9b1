"""Reading: any delimiter and encoding, Parquet, Excel; what is broken is named with its row."""

from __future__ import annotations

import datetime as dt
import gzip
import io

import numpy as np
import pyarrow as pa
import pytest
from openpyxl import Workbook
from pyarrow import parquet

from core.errors import TableError
from core.project import Project
from core.schema import Column, LeftOut, Schema
from core.tables.guess import guess_schema, identifiers
from core.tables.read import TextColumn, TextTable, misread, read_table
from core.tables.table import Table


def cells(table):
    return {n: [c.values[i] for i in c.codes] for n, c in table.columns.items()}


@pytest.mark.parametrize("delimiter", list(",;\t|"))
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_csv_of_any_kind(delimiter, encoding, end):
    rows = [["größe", "b c"], ["1", "Ä"], ["", "x"]]
    text = end.join(delimiter.join(r) for r in rows) + end
    assert cells(read_table(text.encode(encoding))) == {"größe": ["1", ""], "b c": ["Ä", "x"]}


def test_quotes_newlines_and_words_that_other_readers_lose():
    got = cells(read_table(b'a,b\n"x, ""y""\nz",NA\nnull,None\n'))
    assert got == {"a": ['x, "y"\nz', "null"], "b": ["NA", "None"]}


def test_a_single_column_keeps_its_empty_cells():
    assert cells(read_table(b"a\nx\n\ny\n")) == {"a": ["x", "", "y"]}


def test_one_rows_bytes_do_not_change_how_others_read():
    rows = "\n".join(["a,b", *["Zürich,x"] * 3]).encode()
    assert cells(read_table(rows + b"\nBern,\xe9\n"))["a"] == ["Zürich"] * 3 + ["Bern"]
    assert cells(read_table(rows + b"\nBern,\xe9\n"))["b"][-1] == "é"


def test_names_with_commas_between_tabs():
    assert list(read_table(b"a,b\tc,d\te\n1\t2\t3\n").columns) == ["a,b", "c,d", "e"]


def test_gzip():
    assert cells(read_table(gzip.compress(b"a,b\n1,2\n"))) == {"a": ["1"], "b": ["2"]}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"  \n \n", "is empty"),
        (b"a,b\n1,2\n3\n", "row 3: 1 cells where the header names 2"),
        (b"a,b\n1,2,3\n", "row 2: 3 cells"),
        (b"a,a\n1,2\n", "names column 'a' twice"),
        (b",\n1,2\n", "more than one column without a name"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "binary"),
        (bytes(range(1, 256)) * 20, "binary|header|row|CSV"),
        (b'a,b\n0,"Z\n1,2\n3,4\n', "never closed"),
        (b"\x1f\x8bjunk", "damaged gzip"),
        (b"PAR1junk", "damaged Parquet"),
        (b"PK\x03\x04junk", "Excel"),
    ],
)
def test_broken_tables(data, words):
    with pytest.raises(TableError, match=words):
        read_table(data)


def test_no_such_file(tmp_path):
    with pytest.raises(TableError, match="No such file"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(TableError, match="cannot read"):
        read_table(tmp_path)


def test_an_error_shows_no_cell_of_a_ragged_row():
    with pytest.raises(TableError) as error:
        read_table(b"a,b\n1,2\nsecret\n")
    assert "secret" not in str(error.value)


MIXED = {
    "whole": [1, 2, None],
    "float": [1.0, 2.5, None],
    "flag": [True, False, None],
    "day": [dt.datetime(2024, 5, 1), dt.datetime(2024, 5, 1, 13, 30), None],
    "text": ["x", "", "NA"],
}
EXPECTED = {
    "whole": ["1", "2", ""],
    "float": ["1", "2.5", ""],
    "flag": ["True", "False", ""],
    "day": ["2024-05-01", "2024-05-01T13:30:00", ""],
    "text": ["x", "", "NA"],
}


def test_parquet():
    out = io.BytesIO()
    parquet.write_table(pa.table(MIXED), out)
    assert cells(read_table(out.getvalue())) == EXPECTED


def test_parquet_with_categories_and_nested_values():
    out = io.BytesIO()
    parquet.write_table(pa.table({"c": pa.array(["a", None, "a"]).dictionary_encode()}), out)
    assert cells(read_table(out.getvalue())) == {"c": ["a", "", "a"]}
    out = io.BytesIO()
    parquet.write_table(pa.table({"c": [[1], [2]]}), out)
    with pytest.raises(TableError, match="one plain value per cell"):
        read_table(out.getvalue())


def test_excel():
    book = Workbook()
    book.active.append(list(MIXED))
    for row in zip(*MIXED.values(), strict=True):
        book.active.append(list(row))
    out = io.BytesIO()
    book.save(out)
    assert cells(read_table(out.getvalue())) == EXPECTED


SCHEMA = Schema((
    Column("kind", "categorical", ("x", "y"), missing=True),
    Column("n", "numeric", edges=(0, 10, 20), integer=True),
))  # fmt: skip


def test_encode_counts_and_leaves_out():
    text = read_table(b"n,extra,kind\n3,1,x\n12,2,\n19,3,y\n")
    table = Table.encode(text, SCHEMA)
    assert Table.left_out(text, SCHEMA) == ("extra",)
    assert table.count(("kind", "n")).tolist() == [[1, 0], [0, 1], [0, 1]]
    assert table.count(("n",)).tolist() == [1, 2]
    assert all(c.dtype == np.uint8 for c in table.codes.values())
    assert "x" not in repr(table) or "codes" not in repr(table), "a table does not print its rows"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"kind\nx\n", "no column 'n'"),
        (b"kind,n\nq,1\n", "column 'kind': the value 'q'"),
        (b"kind,n\nx,many\n", "'many' is not a number"),
        (b"kind,n\nx,\n", "column 'n' has empty cells"),
        (b"kind,n\n", "no rows"),
    ],
)
def test_tables_that_do_not_fit(data, words):
    with pytest.raises(TableError, match=words):
        Table.encode(read_table(data), SCHEMA)


def test_a_table_is_checked_and_frozen():
    good = {"kind": np.array([0, 2]), "n": np.array([1, 1])}
    table = Table(SCHEMA, good, 2)
    with pytest.raises(ValueError, match="read-only"):
        table.codes["kind"][0] = 1
    good["kind"][0] = 2
    assert table.codes["kind"].tolist() == [0, 2], "the table has its own copy"
    for bad, rows in (({**good, "n": np.array([1, 2])}, 2), (good, 3), ({**good, "n": np.array([1, 257])}, 2)):
        with pytest.raises(TableError, match="does not fit"):
            Table(SCHEMA, bad, rows)


def test_count_agrees_with_a_loop():
    rng = np.random.default_rng(3)
    schema = Schema(tuple(Column(n, "categorical", tuple("pqr")) for n in "abc"))
    codes = {n: rng.integers(0, 3, 200).astype(np.uint8) for n in "abc"}
    table = Table(schema, codes, 200)
    slow = np.zeros((3, 3), dtype=int)
    for i in range(200):
        slow[codes["a"][i], codes["c"][i]] += 1
    assert table.count(("a", "c")).tolist() == slow.tolist()
    assert table.take(np.arange(10)).rows == 10


def test_a_guess_fits_its_table_and_is_marked(samples):
    for path in sorted(samples.glob("*.csv")):
        text = read_table(path)
        schema = guess_schema(text)
        assert Table.encode(text, schema).rows == text.rows
        assert all(set(c.guessed) >= {"kind"} for c in schema.columns)
        assert all(("categories" in c.guessed) != ("edges" in c.guessed) for c in schema.columns)


def test_a_guess_of_odd_columns():
    text = read_table(b"empty,same,neg\n,1,-3\n,1,-3\n")
    schema = guess_schema(text)
    assert schema["empty"].missing
    assert Table.encode(text, schema).rows == 2


def test_bundled_projects_fit_their_tables(samples):
    for name in ("readmission", "hiring", "services"):
        project = Project.load(samples / f"{name}.json")
        Table.encode(read_table(samples / f"{name}.csv"), project.schema)


def test_what_hardly_repeats_looks_like_an_identifier():
    columns = {
        "number": [str(1000 + i) for i in range(60)],
        "text": [f"p{i}" for i in range(60)],
        "visits of 31 people": [str(i % 31) for i in range(60)],
        "half": [str(i % 30) for i in range(60)],
        "measured": [str(i + 0.5) for i in range(60)],
        "mostly empty": [str(i) if i < 25 else "" for i in range(60)],
        "few": [str(i) if i < 20 else "" for i in range(60)],
    }
    text = TextTable({n: TextColumn.of(cells) for n, cells in columns.items()}, 60)
    assert identifiers(text) == ("number", "text", "visits of 31 people", "mostly empty")
    guess = guess_schema(text)
    assert guess.names == ("half", "measured", "few")
    assert guess.left_out == tuple(map(LeftOut, identifiers(text)))
    assert guess.unconfirmed == (*guess.names, *identifiers(text))


def test_every_field_of_a_guess_that_the_rows_decide_is_marked(samples):
    """Only the name, the policy for undeclared values and the (empty) groups do not come from the rows."""
    for path in sorted(samples.glob("*.csv")):
        for column in guess_schema(read_table(path)).columns:
            stated = {k for k, v in vars(column).items() if v not in ((), False)} - {"name", "unknown", "guessed"}
            assert stated | {"missing"} <= set(column.guessed)
            assert column.unknown == "refuse"
            assert ("integer" in column.guessed) == (column.kind == "numeric")


@pytest.mark.parametrize(
    ("data", "looks"),
    [
        (b'hello "world\n1,2,3\n"unclosed,4\n', True),
        (b"a\n1;2\n3;4\n5\n", True),
        (b"a\n1;2\n3\n5\n", False),
        (b'a,b\n"1,2",3\n', False),
    ],
)
def test_several_columns_read_as_one_are_noticed(data, looks):
    assert misread(read_table(data)) == looks


def test_what_a_table_has_is_cut_short_visibly():
    text = read_table(",".join(f"c{i}" for i in range(14)).encode() + b"\n" + b",".join([b"1"] * 14) + b"\n")
    with pytest.raises(TableError, match="c11, …$"):
        Table.encode(text, Schema((Column("gender", "categorical", ("x",)),)))
