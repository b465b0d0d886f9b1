"""Tables are read with any delimiter and encoding, from Parquet and from Excel; damage is reported with its row."""

from __future__ import annotations

import datetime as dt
import gzip
import io
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl import Workbook
from pyarrow import parquet

from espalier.core.errors import TableError
from espalier.core.project.file import Project
from espalier.core.project.schema import Column, LeftOut, Schema
from espalier.core.tables import arrow_text, frames, unpacking
from espalier.core.tables.csv_batches import csv_batches
from espalier.core.tables.frames import read_data
from espalier.core.tables.guessing import guess_column, guess_schema, identifiers, possible_marks, reasons
from espalier.core.tables.narrow_text import narrow_text
from espalier.core.tables.reading import misread, read_table
from espalier.core.tables.relation import open_relation
from espalier.core.tables.table import Table, person_codes
from espalier.core.tables.text_table import TextColumn, TextTable


def cells(table):
    return {n: [c.values[i] for i in c.codes] for n, c in table.columns.items()}


@pytest.mark.parametrize("delimiter", list(",;\t|"))
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_csv_of_any_kind(delimiter, encoding, end):
    rows = [["größe", "b c"], ["1", "Ä"], ["", "x"]]
    text = end.join(delimiter.join(r) for r in rows) + end
    assert cells(read_table(text.encode(encoding))) == {"größe": ["1", ""], "b c": ["Ä", "x"]}


def test_quotes_and_words_that_other_readers_lose():
    got = cells(read_table(b'a,"b"\n"x, ""y"" z",NA\nnull,None\n"",""""\n'))
    assert got == {"a": ['x, "y" z', "null", ""], "b": ["NA", "None", '"']}


def test_a_single_column_keeps_its_empty_cells():
    assert cells(read_table(b'a\nx\n""\ny\n')) == {"a": ["x", "", "y"]}


MALFORMED = {
    "the line of the review": (b'x","0\n', "a quote inside a value"),
    "a quote inside a value": (b'x"y,0,1\n', "a quote inside a value"),
    "a quote after a blank": (b'x, "0",1\n', "a quote inside a value"),
    "text after a closing quote": (b'"x"y,0,1\n', "text after a closing quote"),
    "a blank after a closing quote": (b'"x" ,0,1\n', "text after a closing quote"),
    "a quote never closed": (b'x,"0,1\n', "opened but not closed"),
    "a quote that escapes its end": (b'x,0,"1""\n', "opened but not closed"),
    "a line break in quotes": (b'x,0,"1\n2"\n', "opened but not closed"),
    "two rows of one person": (b'x,0,"1\nq,0,1\nq,0,1\n",0,1\n', "opened but not closed"),
    "a carriage return": (b"x,0\r,1\n", "carriage return"),
    "two carriage returns": (b"x,0,1\r\r\n", "carriage return"),
    "a carriage return in quotes": (b'x,"0\ry",1\n', "carriage return"),
    "a zero byte": (b"x,\x000,1\n", "zero byte"),
    "no cell at all": (b"\n", "this line is empty"),
    "a line with a carriage return alone": (b"\r\n", "this line is empty"),
    "a short row": (b"x,0\n", "2 cells, but the header has 3 names"),
    "a long row": (b"x,0,1,2\n", "4 cells, but the header has 3 names"),
}


@pytest.mark.parametrize("name", MALFORMED)
@pytest.mark.parametrize("around", ["plain", "quoted", "last", "without a last line break"])
def test_a_malformed_row_is_refused_with_its_line_and_no_cell_is_quoted(name, around):
    """Otherwise one row could swallow others and decide the number of rows and everything that is counted."""
    row, words = MALFORMED[name]
    good = b'"Z; ""q""","",1\n' if around == "quoted" else b"Zelda,0,1\n"
    after = b"" if around in ("last", "without a last line break") else good * 3
    data = b"a,b,c\n" + good * 4 + row + after
    if around == "without a last line break":
        data = data.removesuffix(b"\n") if row.strip() else data
    with pytest.raises(TableError) as error:
        read_table(data, "people.csv")
    assert "people.csv, line 6: " in str(error.value)
    assert words in str(error.value)
    assert error.value.data["row"] == 6
    assert not any(cell in str(error.value) for cell in ("Zelda", "Z;", "x,", '"0'))


PIECES = ["x", ",", '"', '""', '","', "\r", "\x00", " ", ";", "\t", "\ufeff", "\u2028", "\x85", "\xe9", "0"]
LINES = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)


@given(
    rows=st.lists(st.tuples(LINES, st.sampled_from(["utf-8", "latin-1"])), min_size=1, max_size=5),
    header=st.sampled_from([b"a,b", b"a", b'"a",b', b"a\tb,c"]),
)
@settings(max_examples=600)
def test_each_row_reads_as_it_would_alone_and_a_file_is_refused_if_one_of_its_rows_is(rows, header):
    """This is the full claim: no line, however malformed, changes how another line is read."""
    lines = [text.encode(encoding, errors="replace") for text, encoding in rows]
    alone = []
    for number, line in enumerate(lines, start=2):
        try:
            alone.append(cells(read_table(header + b"\n" + line + b"\n")))
        except TableError:
            with pytest.raises(TableError, match=rf"line {number}:"):
                read_table(b"".join(x + b"\n" for x in (header, *lines[: number - 1])))
            return
    whole = read_table(b"".join(x + b"\n" for x in (header, *lines)))
    assert whole.rows == len(lines)
    assert cells(whole) == {name: [row[name][0] for row in alone] for name in whole.columns}


@pytest.mark.parametrize("delimiter", [b",", b";", b"\t"])
@pytest.mark.parametrize("quote", [b"", b'"'])
def test_an_odd_byte_changes_no_other_cell_of_its_line(delimiter, quote, tmp_path):
    """Previously, it decided how the whole line was read, and one person became two with twice the row limit."""
    jose = "José".encode()
    assert jose != "José".encode("latin-1")
    rows = [[jose, b"caf\xe9"], [jose, b"cafe"], ["José".encode("latin-1"), "Ü".encode()], [b"a b", b"\x85\xff"]]
    lines = [delimiter.join(quote + cell + quote for cell in row) for row in [[b"who", b"what"], *rows]]
    wanted = {"who": ["José", "José", "José", "a b"], "what": ["café", "cafe", "Ü", "\x85ÿ"]}
    assert cells(read_table(b"\n".join(lines))) == wanted
    (tmp_path / "t.csv").write_bytes(b"\n".join(lines))
    assert pa.Table.from_batches(csv_batches(tmp_path / "t.csv")).to_pydict() == wanted


@pytest.mark.parametrize("quote", [b"", b'"'])
def test_two_people_are_not_one_because_one_of_their_bytes_is_not_utf8(quote, tmp_path):
    """Previously, é in UTF-8 and é in Latin-1 were one person, though a release states that bytes are compared."""
    place, cells_of = tmp_path / "t.csv", [b"\xe9", "é".encode(), b"q"]
    place.write_bytes(b"x,id\n" + b"".join(b"\xe9," + quote + cell + quote + b"\n" for cell in cells_of))
    relation = open_relation(place)
    schema = Schema((Column("x", "categorical", ("é",)),))
    with pytest.raises(TableError, match="the person column 'id' mixes types, may have lost digits, or is not UTF-8"):
        person_codes(read_table(place), "id")
    with pytest.raises(TableError, match="the person column 'id' mixes types, may have lost digits, or is not UTF-8"):
        relation.snapshot(schema, "id", 1)
    with pytest.raises(TableError, match="the person column 'id' mixes types, may have lost digits, or is not UTF-8"):
        person_codes(narrow_text(open_relation(place), ["id"])[0], "id")
    place.write_bytes(place.read_bytes().replace(quote + cells_of[0] + quote + b"\n", b"e\n"))
    assert person_codes(read_table(place), "id").values == ("e", "é", "q")
    snapshot = open_relation(place).snapshot(schema, "id", 1)
    assert snapshot.rows == 3
    snapshot.close()


def test_a_file_whose_header_ends_in_a_carriage_return_has_no_other_line_break():
    assert cells(read_table(b"a,b\r1,2\r3,4")) == {"a": ["1", "3"], "b": ["2", "4"]}
    with pytest.raises(TableError, match="line 3: a line feed"):
        read_table(b"a,b\r1,2\r3,4\n5,6\r")


def test_a_long_quoted_file_is_read_in_time_that_grows_with_it():
    """A regular expression that backtracks at every quote would take hours."""
    row = b'"' + b'""' * 200_000 + b'",x\n'
    assert read_table(b"a,b\n" + row * 3).rows == 3
    with pytest.raises(TableError, match="line 5"):
        read_table(b"a,b\n" + row * 3 + row.replace(b'",x', b",x"))


def test_one_rows_bytes_do_not_change_how_others_read():
    rows = "\n".join(["a,b", *["Zürich,x"] * 3]).encode()
    assert cells(read_table(rows + b"\nBern,\xe9\n"))["a"] == ["Zürich"] * 3 + ["Bern"]
    assert cells(read_table(rows + b"\nBern,\xe9\n"))["b"][-1] == "é"


def test_names_with_commas_between_tabs():
    assert list(read_table(b"a,b\tc,d\te\n1\t2\t3\n").columns) == ["a,b", "c,d", "e"]


@pytest.mark.parametrize(
    ("row", "read"),
    [
        (rb"\xe9,a,\xff", ("é", "a", "ÿ", True, False, True)),
        (rb"\xc3\xa9,\xe9,b", ("é", "é", "b", False, True, False)),
        (rb"\xc3,\x80,\xe9", ("Ã", "\x80", "é", True, True, True)),
    ],
)
@pytest.mark.parametrize("quote", [b"", b'"'])
def test_each_cell_is_utf_8_or_latin_1(row, read, quote):
    """A line without letters in UTF-8 and without quotes is read as a whole, which is 20 times faster."""
    cells = row.decode("unicode_escape").encode("latin-1").split(b",")
    table = read_table(b"a,b,c\n" + b",".join(quote + cell + quote for cell in cells) + b"\n")
    columns = list(table.columns.values())
    assert (*(c.values[0] for c in columns), *(c.ambiguous for c in columns)) == read


def test_gzip():
    assert cells(read_table(gzip.compress(b"a,b\n1,2\n"))) == {"a": ["1"], "b": ["2"]}


def _parquet_file(cells):
    out = io.BytesIO()
    parquet.write_table(pa.table({"a": cells}), out)
    return out.getvalue()


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("letters", [(1 << 20) - 1, 1 << 20, (1 << 20) + 9])
def test_a_long_header_is_read_in_place(tmp_path, letters, end):
    """Previously, a header of more than 1 MiB was a file without rows."""
    names = [letter * 100_000 for letter in "abcdefghij"]
    names.append("k" * (letters - len(",".join(names)) - 1))
    (tmp_path / "t.csv").write_bytes(f"{','.join(names)}{end}{',' * 10}{end}".encode())
    assert list(open_relation(tmp_path / "t.csv").columns) == names
    assert [batch.num_rows for batch in csv_batches(tmp_path / "t.csv")] == [1]


def test_a_large_workbook_is_not_read_as_csv(tmp_path, monkeypatch):
    """Previously, a workbook of 101 MB was refused as binary text."""
    book = Workbook()
    book.active.append(["a"])
    book.active.append(["x"])
    book.save(tmp_path / "t.xlsx")
    monkeypatch.setattr(frames, "LARGE_BYTES", 100)
    assert read_data(tmp_path / "t.xlsx").rows == 1


@pytest.mark.parametrize("inner", [_parquet_file([1]), b"PK\x03\x04", b"$FL2", gzip.compress(b"a\n1\n")])
def test_gzip_around_a_packed_file_is_refused(inner):
    """Previously, 3 kB of gzip around a padded Parquet file took 5.4 GB."""
    with pytest.raises(TableError, match="is a gzip file that contains another compressed file; unpack it first"):
        read_table(gzip.compress(inner))


@pytest.mark.parametrize("data", [gzip.compress(b"a\n" + b"1\n" * 9000), _parquet_file([1] * 9000)])
def test_a_small_file_of_very_many_cells_is_refused(monkeypatch, data):
    """Previously, 2 MB of gzip with 150 million lines took 3.2 GB."""
    assert read_table(data).rows == 9000
    monkeypatch.setattr(unpacking, "BOMB_CELLS", 1000)
    monkeypatch.setattr(unpacking, "CELL_RATIO", 1)
    with pytest.raises(TableError, match="cells for each of its bytes"):
        read_table(data)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"  \n \n", "is empty"),
        (b"a,b\n1,2\n3\n", "line 3: 1 cells, but the header has 2 names"),
        (b"a,b\n1,2,3\n", "line 2: 3 cells"),
        (b"a,a\n1,2\n", "names column 'a' twice"),
        (b",\n1,2\n", "more than one column without a name"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "binary"),
        (bytes(range(1, 256)) * 20, "binary|header|row|CSV"),
        (b'a,b\n0,"Z\n1,2\n3,4\n', "line 2: a quote is opened but not closed"),
        (b'a,"b\n0,1\n', "line 1: the quotes in the header"),
        (b"\na,b\n0,1\n", "line 1: this line is empty"),
        ("a,b\n0,1\n".encode("utf-16"), "save it as UTF-8"),
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


def workbook(*rows, before=lambda sheet: None):
    book = Workbook()
    for row in rows:
        book.active.append(list(row))
    before(book.active)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ((("a", "b"), (1, 2), (3, "=SUM(B2:B2)")), "row 3 contains a formula"),
        ((("a", "=A1"), (1, 2)), "row 1 contains a formula"),
        ((("a", "b"), (1, 2), (), (5, 6)), "row 3: this row is empty"),
        ((("a", "b"), (1, 2), (3, 4, "Zelda")), "row 3: this row has more cells"),
    ],
)
def test_a_row_of_a_sheet_that_leans_on_others_is_refused(rows, words):
    with pytest.raises(TableError, match=words) as error:
        read_table(workbook(*rows))
    assert "Zelda" not in str(error.value)


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf" * 2, b"\xef\xbb\xbf" * 3])
def test_marks_of_joined_files_do_not_let_one_row_decide_how_others_read(mark):
    for last in ("09", "x"):
        got = cells(read_table(mark + f"a,b\n007,NA\nNA,1\n{last},2\n".encode()))
        assert got == {"a": ["007", "NA", last], "b": ["NA", "1", "2"]}


@pytest.mark.parametrize("said", ["1", "2", "30"])
def test_a_row_of_a_sheet_that_has_the_number_of_another_hides_none(said):
    """openpyxl skips rows until their numbers exceed the last one again."""
    whole, out = workbook(("a", "b"), *((i, i) for i in range(100))), io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole)) as book, zipfile.ZipFile(out, "w") as changed:
        for part in book.infolist():
            data = book.read(part)
            if part.filename.endswith("sheet1.xml"):
                rows = re.sub(rb' r="[A-Z]*\d+"', b"", data).split(b"<row")
                rows[50] = b' r="%s"' % said.encode() + rows[50]
                data = b"<row".join(rows)
            changed.writestr(part.filename, data)
    with pytest.raises(TableError, match=f"row {said}: the rows of the sheet are not in order"):
        read_table(out.getvalue())


def test_a_cell_of_another_type_does_not_change_how_others_of_its_column_read():
    rows = [("a", "b")] + [(1.0, dt.date(2024, 5, 1))] * 3
    assert cells(read_table(workbook(*rows, ("unknown", 7)))) == {
        "a": ["1", "1", "1", "unknown"],
        "b": ["2024-05-01"] * 3 + ["7"],
    }


def test_merged_and_hidden_cells_of_a_sheet_read_as_they_are_stored():
    def hide(sheet):
        sheet.row_dimensions[3].hidden = True
        sheet.merge_cells("A4:B4")

    got = cells(read_table(workbook(("a", "b"), (1, 2), (3, 4), (5, 6), (7, 8), before=hide)))
    assert got == {"a": ["1", "3", "5", "7"], "b": ["2", "4", "", "8"]}


def test_what_openpyxl_says_of_a_cell_is_not_repeated():
    data, out = workbook(("a", "b"), (1, 2), (3, 4)), io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b"<v>3</v>", b"<v>Zelda</v>"))
    with pytest.raises(TableError, match=r"after row 2") as error:
        read_table(out.getvalue(), "people.xlsx")
    assert "Zelda" not in str(error.value)


def test_a_value_of_parquet_that_no_text_can_show_is_refused_with_its_row():
    far = pa.array([0, 1, 2**55, 3], pa.int64()).cast(pa.timestamp("ms"))
    out = io.BytesIO()
    parquet.write_table(pa.table({"when": far}), out)
    with pytest.raises(TableError, match="data row 3: column 'when'"):
        read_table(out.getvalue())


SCHEMA = Schema(
    (
        Column("kind", "categorical", ("x", "y"), missing=True),
        Column("n", "numeric", edges=(0, 10, 20), integer=True),
    )
)


def test_encode_counts_and_leaves_out():
    text = read_table(b"n,extra,kind\n3,1,x\n12,2,\n19,3,y\n")
    table = Table.encode(text, SCHEMA)
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
    """Everything comes from the rows except the name, the policy for undeclared values and the (empty) groups."""
    for path in sorted(samples.glob("*.csv")):
        for column in guess_schema(read_table(path)).columns:
            stated = {key for key, value in vars(column).items() if value not in ((), False, None, "")}
            stated -= {"name", "unknown", "guessed"}
            if "dates" in stated:  # the period and its edges share one mark
                stated = stated - {"dates"} | {"edges"}
            assert stated | {"missing"} <= set(column.guessed)
            assert column.unknown == "refuse"
            assert ("integer" in column.guessed) == (column.kind == "numeric")


@pytest.mark.parametrize(
    ("data", "looks"),
    [
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


def test_codes_of_a_dictionary_with_nulls_and_of_a_part_of_one():
    indices = pa.array([2, None, 0, 1, None, 2, 0, 1, 1, None, 0], pa.int8())
    whole = [2, 9, 0, 1, 9, 2, 0, 1, 1, 9, 0]
    assert arrow_text._codes(indices, 9).tolist() == whole
    for start in range(len(whole)):
        assert arrow_text._codes(indices[start : start + 4], 9).tolist() == whole[start : start + 4]
    assert arrow_text._codes(pa.array([1, 0], pa.int32()), -1).tolist() == [1, 0]


def test_a_table_is_read_without_pandas(tmp_path):
    """Loading pandas costs a third of a second, as much as the whole fit of a small table."""
    path = tmp_path / "t.csv"
    path.write_text("a,b\nx,1\ny,2\n")
    code = (
        "import sys; from pathlib import Path; from espalier.core.tables.reading import read_table; "
        "read_table(Path(sys.argv[1])); sys.exit('pandas' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, cwd=Path(__file__).resolve().parents[2])


@pytest.mark.parametrize(
    ("cells", "marks"),
    [
        (["?", "a", "b"], ("?",)),
        (["1", "2", " NA ", "n/a"], (" NA ", "n/a")),
        (["-9", "0", "3", "7"], ("-9",)),
        (["-9", "-4", "3", "7"], ()),
        (["1", "3", "40", "999"], ("999",)),
        (["97", "98", "99"], ()),
        (["a", "b", ""], ()),
    ],
)
def test_marks_of_missing_values_are_found(cells, marks):
    assert possible_marks(TextColumn.of(cells)) == marks


@pytest.mark.parametrize(
    ("numbers", "some"),
    [
        (np.random.default_rng(0).lognormal(10, 2, 2_000), {1e4, 1e5, 1e6}),
        (np.r_[np.arange(30), 1e5], {0, 10, 100, 1000, 10_000, 100_000}),
        (np.r_[np.arange(100, 130), 1e5], {100, 200, 500, 1000}),
        (np.random.default_rng(1).random(50) * 1e-15, {0, 5e-16, 1e-15}),
        (np.r_[np.random.default_rng(2).random(50), 1e305], {0, 1e304}),
        (np.r_[-1, np.arange(30), 1e5], {-10_000, 0}),
        (np.r_[np.linspace(1e-3, 2e-3, 99), np.nextafter(1e6, 2e6)], {1e6, 1e7}),
        (np.r_[np.linspace(1e-308, 2e-308, 99), 4e-306], {0}),
    ],
)
def test_bins_that_are_guessed_fit_skewed_numbers_and_those_of_any_size(numbers, some):
    values = [repr(float(x)) for x in numbers]
    edges = guess_column("x", TextColumn.of(values)).edges
    assert some <= set(edges)
    assert edges[0] <= min(numbers) < max(numbers) <= edges[-1]
    assert 3 <= len(edges) <= 14


@pytest.mark.parametrize(
    "values",
    [
        [str(i / 7) for i in range(30)] + ["-1.7e308", "1.7e308"],
        [str(k * 5e-324) for k in range(40)],
        [repr(1 + k * 2**-52) for k in range(40)],
        [str(10**22 + k) for k in range(40)],
    ],
    ids=["far apart", "subnormal", "a few floats apart", "one float"],
)
def test_numbers_that_no_round_bins_fit_are_guessed_as_categories(values):
    column = TextColumn.of(values)
    guess = guess_column("x", column)
    assert guess.kind == "ordinal"
    assert "too large or too close for bins" in reasons(column, guess)[0]


def test_a_guess_says_why_and_leaves_marks_out():
    cells = TextColumn.of(["?", *map(str, range(30))])
    assert guess_column("a", cells).kind == "categorical"
    guess = guess_column("a", cells, ("?",))
    assert (guess.kind, guess.edges[0], guess.missing, guess.missing_marks) == ("numeric", 0, True, ("?",))
    assert "All of its 30 different values are numbers" in reasons(cells, guess)[0]
    assert "not all numbers" in reasons(cells, guess_column("a", cells))[0]
    few = TextColumn.of(["1", "2"])
    assert "no more than 20" in reasons(few, guess_column("a", few))[0]


def test_marks_stand_in_the_order_in_which_they_were_said():
    """They are not in the order of the rows, because the marks are released with the schema."""
    rows = ["?", "NA", *map(str, range(30))]
    one, other = (guess_column("a", TextColumn.of(cells), ("NA", "?")) for cells in (rows, rows[::-1]))
    assert one == other
    assert one.missing_marks == ("NA", "?")


def test_a_wrong_table_is_told_by_what_it_lacks_before_a_cell_is_judged():
    schema = Schema((Column("age", "numeric", edges=(0.0, 50.0, 100.0)), Column("ward", "categorical", ("a", "b"))))
    with pytest.raises(TableError, match="there is no column 'ward'; the table has age, note"):
        Table.encode(read_table(b"age,note\n?,x\n"), schema)
