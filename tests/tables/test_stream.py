"""Any engine that Ibis supports: its rows pass through in batches and are encoded here. Each test runs on SQLite."""

from __future__ import annotations

import datetime as dt
import itertools
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from espalier.core.cli.main import main
from espalier.core.errors import Cancelled, TableError
from espalier.core.ledger.ledger import Ledger
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release.spend import release
from espalier.core.tables.engines import answers
from espalier.core.tables.relation import open_relation
from espalier.core.tables.stream import Stream
from espalier.core.tables.table import Table
from espalier.core.tables.text_table import TextColumn, TextTable
from tests.tables.test_relation import (
    BY_ORDER,
    CALENDAR,
    DATES,
    HOSTILE,
    ORDERS,
    SCHEMA,
    SMALL,
    in_memory,
    people,
    rows_in,
    rows_of,
)

KINDS = {
    "f": "REAL",
    "f2": "DOUBLE PRECISION",
    "s": "TEXT COLLATE NOCASE",
    "b": "BOOLEAN",
    "d": "DATE",
    "ts": "TIMESTAMP",
    "i": "SMALLINT",
    "n": "VARCHAR(3)",
}
"""SQLite ignores declared types: SMALLINT holds 2⁵³ + 1, VARCHAR(3) any text, DATE and TIMESTAMP any value."""


@pytest.fixture
def put(tmp_path):
    """A function that makes a table ``t`` in a separate file; it returns the relation and a connection that writes."""
    made = []

    def there(columns, kinds):
        path = tmp_path / f"{len(made)}.db"
        con = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        con.execute("PRAGMA journal_mode = WAL")
        con.execute("PRAGMA synchronous = OFF")
        con.execute(f"CREATE TABLE t ({', '.join(f'{name} {kind}' for name, kind in kinds.items())})")
        marks = ", ".join("?" * len(kinds))
        con.execute("BEGIN")
        con.executemany(f"INSERT INTO t VALUES ({marks})", zip(*columns.values(), strict=True))
        con.execute("COMMIT")
        made.append((open_relation(f"sqlite://{path}", "t"), con))
        return made[-1]

    yield there
    for relation, con in made:
        relation.close()
        con.close()


def written(cells):
    return [cell.isoformat() if isinstance(cell, dt.date) else cell for cell in cells]


def encoded(con, kinds, schema):
    """The table as the schema itself encodes the cells that SQLite's own driver gives."""
    rows = con.execute("SELECT * FROM t").fetchall()
    cells = dict(zip(kinds, zip(*rows, strict=True), strict=True))
    yes = {0: "False", 1: "True", None: None}
    read = {name: [yes[c] for c in cells[name]] if kinds[name] == "BOOLEAN" else cells[name] for name in kinds}
    return Table.encode(TextTable({n: TextColumn.of(list(c)) for n, c in read.items()}, len(rows)), schema)


def test_rows_are_encoded_as_the_schema_does(put):
    cells = {name: written(HOSTILE[name]) for name in KINDS}
    relation, con = put(cells, KINDS)
    expected = encoded(con, KINDS, SCHEMA)
    snapshot = relation.snapshot(SCHEMA)
    assert rows_in(snapshot) == rows_of(expected.codes)
    assert snapshot.count(("i",)).tolist() == [1, 2, 2, 2, 1], "2⁵³ + 1 is read as a float, as everywhere"
    pairs = list(itertools.combinations(SCHEMA.names, 2))
    for clique, got in zip(pairs, snapshot.count_many(pairs), strict=True):
        assert np.array_equal(got, expected.count(clique))
    assert snapshot.digest == relation.snapshot(SCHEMA).digest
    guessed = relation.sample()
    assert guessed.rows == snapshot.rows, "a short table is read as a whole"
    assert set(guessed.columns["b"].values) == {"True", "False", ""}
    assert relation.columns["i"] == "int64"


def test_days_are_binned_as_the_schema_does(put):
    cells, kinds = {n: written(c) for n, c in CALENDAR.items()}, {"t": "TEXT", "d": "DATE", "m": "DATETIME", "n": "INT"}
    relation, con = put(cells, kinds)
    assert rows_in(relation.snapshot(DATES)) == rows_of(encoded(con, kinds, DATES).codes, DATES)


def test_days_in_each_order_are_read_as_the_schema_does(put):
    kinds = {"dmy": "TEXT", "mdy": "TEXT", "ymd": "TEXT", "whole": "INT"}
    relation, con = put(BY_ORDER, kinds)
    assert rows_in(relation.snapshot(ORDERS)) == rows_of(encoded(con, kinds, ORDERS).codes, ORDERS)


@pytest.mark.parametrize(
    ("kind", "cell"),
    [("INTEGER", "secret"), ("INTEGER", 7.25), ("BOOLEAN", 2), ("BOOLEAN", "yes"), ("TEXT", b"x"), ("REAL", "secret")],
)
def test_a_cell_of_another_type_is_refused_before_anything_is_spent(put, tmp_path, kind, cell):
    """SQLite stores any value in any column: a person 7.25 would be read as 7, and bytes as the text that they
    spell.
    """
    relation, con = put({"v": [1] * 40, "a": ["x"] * 40}, {"v": kind, "a": "TEXT"})
    con.execute("INSERT INTO t VALUES (?, 'x')", (cell,))
    schema = Schema((Column("v", "categorical", ("1",), missing=True, unknown="missing"), SMALL["a"]))
    ledger = Ledger(tmp_path / "ledger.db", create=True)
    ledger.open_table("t", epsilon=9.0, delta=1e-6, delta_for_draws=5e-7)
    tries = [lambda: release(Project("t", schema, Plan("mst", 1.0)), relation, ledger=ledger.account("t"))]
    if kind in ("INTEGER", "TEXT"):  # no person has a different type
        tries.append(lambda: relation.snapshot(Schema(schema.columns[1:]), "v", 1))
    for refuse in tries:
        with pytest.raises(TableError, match="'v' contains a cell that is not of its declared type") as refused:
            refuse()
        assert "secret" not in str(refused.value)
        assert "7.25" not in str(refused.value)
    assert ledger.population_of("t").spent == 0


def test_no_row_says_how_the_others_are_read(put):
    """In a column without a type, such as a view's, Ibis takes the type of the first row's cell. 2⁵³ + 2 is written
    differently as a float than as a whole number, so one row changed what all others were counted as.
    """
    cells = [str(2**53 + 2)] * 6 + ["y", None]
    relation, con = put({"v": [1, *cells], "a": ["x"] * 9}, {"v": "", "a": "TEXT"})
    con.execute("CREATE VIEW cast_to_text AS SELECT CAST(v AS TEXT) AS v, a FROM t")
    path = con.execute("PRAGMA database_list").fetchone()[2]
    schema = Schema((Column("v", "categorical", (cells[0], "y"), missing=True, unknown="missing"), SMALL["a"]))
    for first in (1, 0.5, "z", None, b"z"):
        con.execute("UPDATE t SET v = ? WHERE rowid = 1", (first,))
        relation.close()
        relation = open_relation(f"sqlite://{path}", "t")
        assert relation.columns == {"v": "string", "a": "string"}
        if isinstance(first, str | None):
            assert relation.snapshot(schema).count(("v",)).tolist() == [6, 1, 2]
        else:
            with pytest.raises(TableError, match="use a view that casts the column to text"):
                relation.snapshot(schema)
        relation.close()
        relation = open_relation(f"sqlite://{path}", "cast_to_text")
        assert relation.snapshot(schema).count(("v",)).tolist() == [6, 1, 2]
    relation.close()


@pytest.mark.parametrize(("number", "text"), [(7, "7"), (0.5, "0.5"), (1e20, "1e+20"), (2**60, str(2**60))])
def test_a_number_and_the_text_that_spells_it_are_not_made_one_person(put, number, text):
    relation, con = put({"id": [number, number], "a": ["x", "x"]}, {"id": "DECIMAL", "a": "TEXT"})
    con.execute("CREATE TABLE more (id TEXT, a TEXT)")
    con.execute("INSERT INTO more VALUES ('007', 'x'), ('1e400', 'x'), ('n/a', 'x')")
    con.execute("CREATE VIEW both AS SELECT * FROM t UNION ALL SELECT * FROM more")
    path = con.execute("PRAGMA database_list").fetchone()[2]
    schema = Schema((SMALL["a"],))
    relation = open_relation(f"sqlite://{path}", "both")
    assert relation.snapshot(schema, "id", 1).rows == 4
    con.execute("INSERT INTO more VALUES (?, 'x')", (text,))
    with pytest.raises(TableError, match="'id' contains a cell that is not of its declared type"):
        relation.snapshot(schema, "id", 1)
    relation.close()


def test_types_without_a_code_are_refused_and_others_come_as_they_are_stored(put):
    kinds = {"blob": "BLOB", "dec": "DECIMAL(10, 2)", "odd": "FOO BAR", "small": "INT2"}
    relation, _ = put({"blob": [b"x"], "dec": [1.5], "odd": ["y"], "small": [2**40]}, kinds)
    assert relation.columns == {"blob": "binary", "dec": "string", "odd": "string", "small": "int64"}
    with pytest.raises(TableError, match="'blob' contains binary values"):
        relation.snapshot(Schema((Column("blob", "categorical", ("x",)),)))
    columns = (Column("dec", "numeric", edges=(0, 1, 2)), Column("odd", "categorical", ("y",)))
    assert set(relation.sample().columns) == {"dec", "odd", "small"}, "what no schema can hold is left out of a sample"
    kept = relation.snapshot(Schema((*columns, Column("small", "categorical", (str(2**40),)))))
    assert kept.count(("dec", "odd", "small")).tolist() == [[[0]], [[1]]]


def test_the_same_rows_are_kept_as_in_memory(put, monkeypatch):
    monkeypatch.setattr("espalier.core.tables.stream.BATCH_ROWS", 700)
    data = people(3_000)
    kinds = {"id": "TEXT COLLATE NOCASE", "a": "TEXT COLLATE RTRIM", "v": "INTEGER"}
    relation, _ = put({name: data[name].to_pylist() for name in kinds}, kinds)
    expected = rows_of(in_memory(data, "key", 3)[0].codes, SMALL)
    assert rows_in(relation.snapshot(SMALL, "id", 3, key="key")) == expected
    assert rows_in(relation.snapshot(SMALL, "id", 3, key="other")) != expected


def test_neighbouring_tables_differ_by_one_row_in_each_count(put):
    rows = [("p", "x", 1), ("P", "x", 1), ("p ", "y", 15), ("q", "z", 50), ("q", "z", 50), ("q", "x", 1)]
    kinds = {"id": "TEXT COLLATE NOCASE", "a": "TEXT", "v": "INTEGER"}
    relation, con = put(dict(zip(kinds, zip(*rows, strict=True), strict=True)), kinds)
    cliques = [("a",), ("v",), ("a", "v")]

    def counted(*person):
        kept = relation.snapshot(SMALL, *person, key="k")
        return kept.rows, kept.count_many(cliques)

    def apart(one, other):
        return [int(abs(a - b).sum()) for a, b in zip(one[1], other[1], strict=True)]

    whole, by_person = counted(), counted("id", 2)
    assert (whole[0], by_person[0]) == (6, 5), "p, P and 'p ' are three people"
    for place in range(len(rows)):
        con.execute("DELETE FROM t")
        con.executemany("INSERT INTO t VALUES (?, ?, ?)", rows[:place] + rows[place + 1 :])
        assert apart(counted(), whole) == [1, 1, 1]
    for who in {row[0] for row in rows}:
        con.execute("DELETE FROM t")
        con.executemany("INSERT INTO t VALUES (?, ?, ?)", [row for row in rows if row[0] != who])
        assert max(apart(counted("id", 2), by_person)) <= 2


def test_a_writer_that_commits_meanwhile_changes_nothing(put, monkeypatch):
    monkeypatch.setattr("espalier.core.tables.stream.BATCH_ROWS", 100)
    relation, con = put({"a": ["x"] * 5_000, "v": [1] * 5_000}, {"a": "TEXT", "v": "INTEGER"})
    wrote = []

    def write(*_):
        if not wrote:
            con.execute("INSERT INTO t SELECT 'y', 50 FROM t")
            con.execute("DELETE FROM t WHERE a = 'x'")
            wrote.append(True)

    read = Stream.batches

    def batches(self, *args):
        for batch in read(self, *args):
            yield batch
            write()

    monkeypatch.setattr(Stream, "batches", batches)
    assert relation.snapshot(SMALL).count(("a",)).tolist() == [5_000, 0, 0]
    assert wrote
    assert relation.snapshot(SMALL).count(("a",)).tolist() == [0, 5_000, 0]


def test_a_release_by_command_line_leaves_no_codes_and_says_where_they_were(put, tmp_path, monkeypatch, capsys):
    data = people(2_000)
    _, con = put({name: data[name].to_pylist() for name in data.column_names}, {"id": "TEXT", "a": "TEXT", "v": "INT"})
    path = con.execute("PRAGMA database_list").fetchone()[2]
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    monkeypatch.setenv("WAREHOUSE", f"sqlite://{path}")
    plan = Plan("mst", 50.0, 1e-6, person="id", rows_per_person=2, neighbors="add-remove", private_evaluation=0.2)
    (tmp_path / "p.json").write_text(Project("t", SMALL, plan).with_plan(target="a").dumps())
    where = [str(tmp_path / "p.json"), "--data", "env:WAREHOUSE", "--relation", "t"]
    assert main(["plan", *where, "--explain-sql"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("-- A release reads the table once, in batches that pass through Espalier.")
    assert '"t0"."id"' in told or "SELECT * FROM" in told
    assert main(["release", *where, "--out", str(tmp_path / "out")]) == 0
    assert (
        "Codes of the rows, not the rows themselves, are kept on this machine until the release ends"
        in capsys.readouterr().err
    )
    assert list(scratch.iterdir()) == []
    for file in (tmp_path / "out").iterdir():
        assert path.encode() not in file.read_bytes()


def test_another_thread_than_the_one_that_opened_it_may_read(put):
    """The app opens a table in a session's thread and releases in a separate one."""
    relation, _ = put({"a": ["x"] * 50, "v": [1] * 50}, {"a": "TEXT", "v": "INTEGER"})
    with ThreadPoolExecutor(1) as other:
        assert other.submit(relation.snapshot, SMALL).result().rows == 50


def test_cancelling_in_the_middle(put):
    relation, _ = put({"a": ["x"] * 50, "v": [1] * 50}, {"a": "TEXT", "v": "INTEGER"})

    def cancel(*_):
        raise Cancelled("stop")

    with pytest.raises(Cancelled):
        relation.snapshot(SMALL, report=cancel)
    assert relation.snapshot(SMALL).rows == 50


@pytest.mark.parametrize("error", [sqlite3.OperationalError, TypeError, AttributeError])
def test_a_driver_that_fails_in_the_middle_is_told_and_spends_nothing(put, tmp_path, monkeypatch, error):
    relation, _ = put({"a": ["x"] * 500, "v": [1] * 500}, {"a": "TEXT", "v": "INTEGER"})
    monkeypatch.setattr("espalier.core.tables.stream.BATCH_ROWS", 100)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))

    def fails(*args):
        for i, part in enumerate(answers(*args)):
            if i == 3:
                raise error("disk I/O error near secret")
            yield part

    monkeypatch.setattr("espalier.core.tables.engines.answers", fails)
    ledger = Ledger(tmp_path / "ledger.db", create=True)
    ledger.open_table("t", epsilon=9.0, delta=1e-6, delta_for_draws=5e-7)
    with pytest.raises(TableError, match=rf"the engine failed while it read the table \({error.__name__}\)") as told:
        release(Project("t", SMALL, Plan("mst", 1.0)), relation, ledger=ledger.account("t"))
    assert "secret" not in str(told.value)
    assert ledger.population_of("t").spent == 0
    assert list(scratch.iterdir()) == []


def test_columns_that_changed_places_are_refused(put):
    """Previously, each column was read as the other one."""
    relation, con = put({"a": ["x"] * 5, "b": ["y"] * 5}, {"a": "TEXT", "b": "TEXT"})
    con.executescript(
        "ALTER TABLE t RENAME TO old; CREATE TABLE t (b TEXT, a TEXT); INSERT INTO t SELECT b, a FROM old"
    )
    schema = Schema(tuple(Column(name, "categorical", ("x", "y")) for name in "ab"))
    with pytest.raises(TableError, match="the columns changed after the table was opened"):
        relation.snapshot(schema)


def test_what_cannot_be_opened_says_what_to_do(tmp_path, monkeypatch):
    with pytest.raises(TableError, match="cannot open the sqlite relation 't'"):
        open_relation(f"sqlite://{tmp_path / 'none.db'}", "t")
    assert list(tmp_path.iterdir()) == [], "a missing file is not created"
    sqlite3.connect(tmp_path / "empty.db").close()
    with pytest.raises(TableError, match="cannot open the sqlite relation 't'"):
        open_relation(f"sqlite://{tmp_path / 'empty.db'}", "t")
    monkeypatch.setitem(sys.modules, "ibis.backends.mysql", None)
    monkeypatch.setitem(sys.modules, "pymysql", None)
    with pytest.raises(TableError, match=r"pip install 'espalier_tables-.*\.whl\[mysql\]'") as refused:
        open_relation("mysql://me:secret@host/db", "t")
    assert "secret" not in str(refused.value)
    with pytest.raises(TableError, match="nosuch is not a known engine. Use one of athena, bigquery") as refused:
        open_relation("nosuch://me:secret@host/db", "t")
    assert "secret" not in str(refused.value)


def test_batches_of_an_engine_that_speaks_arrow_come_in_the_catalogues_types(put):

    class Native:
        """A stub of a backend with its own reader; the table is in SQLite."""

        name = "native"

        def to_pyarrow_batches(self, *_, **__):
            yield pa.record_batch({"a": pa.array(["x", None]).dictionary_encode(), "v": pa.array([1, 2], "int16")})

    relation, _ = put({"a": ["x", None], "v": [1, 2]}, {"a": "TEXT", "v": "INTEGER"})
    stream = replace(relation.feed, backend=Native())
    (batch,) = stream.batches(["a", "v"])
    assert batch.schema == stream.schema(["a", "v"])
    assert batch.to_pylist() == [{"a": "x", "v": 1}, {"a": None, "v": 2}]


def test_columns_that_differ_in_case_only_are_two_columns(tmp_path):
    """Previously, one of the two columns was read instead of the other."""
    (tmp_path / "t.csv").write_text("a,A\nx,y\n")
    schema = Schema(tuple(Column(name, "categorical", ("x", "y")) for name in ("a", "A")))
    assert open_relation(tmp_path / "t.csv").snapshot(schema).count(("a", "A")).tolist() == [[0, 1], [0, 0]]
