"""Synthetic rows are written to a new table of the engine that stores the private table."""

from __future__ import annotations

import os
import sqlite3
from datetime import date

import duckdb
import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from espalier.core.cli.main import main
from espalier.core.errors import TableError
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.project.schema_json import schema_from_json
from espalier.core.release.output import arrow_columns, cells, write_into, write_texts, write_whole_into
from espalier.core.tables.code_file import CodeFile
from espalier.core.tables.destination import Destination
from espalier.core.tables.frames import destination
from espalier.core.tables.snapshot import Snapshot

SCHEMA = Schema(
    (
        Column("a", "categorical", ("=x", 'y"; DROP TABLE far; --', "tab\tand\\N")),
        Column("v", "numeric", edges=(0, 10, 20), integer=True, missing=True),
        Column("w x", "numeric", edges=(0, 0.5, 1)),
    )
)


@pytest.fixture(params=["postgres", "duckdb"])
def engine(request, tmp_path):
    """(URL, function that runs a query there)."""
    if request.param == "duckdb":
        path = str(tmp_path / "t.duckdb")

        def ask(text):
            with duckdb.connect(path) as con:
                return con.execute(text).fetchall()

        url = f"duckdb://{path}"
    else:
        url = request.getfixturevalue("postgres")

        def ask(text):
            with psycopg.connect(url, autocommit=True) as con:
                cursor = con.execute(text)
                return cursor.fetchall() if cursor.description else []

    ask('CREATE TABLE far (a text, v bigint, "w x" double precision)')
    rows = (f"('{SCHEMA['a'].categories[i % 3]}', {i % 20}, {i % 10 / 10})" for i in range(60))
    ask(f"INSERT INTO far VALUES {', '.join(rows)}")
    yield url, ask
    for name in ("far", "made"):
        ask(f"DROP TABLE IF EXISTS {name}")


def released(url, tmp_path, monkeypatch, *more):
    monkeypatch.setenv("WAREHOUSE", url)
    (tmp_path / "p.json").write_text(Project("far", SCHEMA, Plan("mst", 5.0, 1e-6)).dumps())
    where = ["--data", "env:WAREHOUSE", "--relation", "far", "--out", str(tmp_path / "out")]
    return main(["release", str(tmp_path / "p.json"), *where, "--quiet", *more])


def test_the_rows_are_those_of_the_release_and_no_file_tells_where_they_went(engine, tmp_path, monkeypatch):
    url, ask = engine
    assert released(url, tmp_path, monkeypatch, "--into", "made") == 0
    got = ask('SELECT a, v, "w x" FROM made')
    assert len(got) == 60
    wrote = output_rows(tmp_path / "out" / "synthetic.csv")
    assert sorted((a, "" if v is None else str(v), float(w)) for a, v, w in got) == sorted(wrote)
    for file in (tmp_path / "out").iterdir():
        assert url.partition("://")[2].encode() not in file.read_bytes()


def output_rows(path):
    from espalier.core.tables.reading import read_released
    from espalier.core.tables.released import read_csv

    read_csv(SCHEMA, path)
    read = read_released(path, list(SCHEMA.names))
    cells = [[c.values[code] for code in c.codes] for c in read.columns.values()]
    return [(a.removeprefix("'"), v, float(w)) for a, v, w in zip(*cells, strict=True)]


def test_a_table_that_is_there_is_never_touched_and_nothing_is_spent(engine, tmp_path, monkeypatch, capsys):
    url, ask = engine
    monkeypatch.setattr("espalier.core.release.spend.release", lambda *_, **__: pytest.fail("it was spent"))
    assert released(url, tmp_path, monkeypatch, "--into", "far") == 2
    assert "it already exists, and nothing is overwritten" in capsys.readouterr().err
    assert ask("SELECT count(*) FROM far") == [(60,)]
    assert released(url, tmp_path, monkeypatch, "--into", "nowhere.made") == 2
    assert "the table 'nowhere.made' cannot be written" in capsys.readouterr().err
    assert released(url, tmp_path, monkeypatch, "--into", "m" * 64) == 2
    assert "too long" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ('"Made"', 'SELECT * FROM "Made"'),
        ('"My Schema"."a.b"', 'SELECT * FROM "My Schema"."a.b"'),
        ('"a""b"', 'SELECT * FROM "a""b"'),
        *((name, None) for name in ("x.", ".y", 'a"b', "", '""')),
    ],
)
def test_names_are_quoted_as_in_sql(engine, name, made):
    """Previously, the quotation marks became a part of the name, and a name with a dot could not be written."""
    url, ask = engine
    columns = pa.schema([("a", pa.string())])
    if made is None:
        with pytest.raises(TableError, match="the name of the relation cannot be read"):
            Destination(name, url).check(columns)
        return
    ask('CREATE SCHEMA "My Schema"')
    Destination(name, url).write(columns, iter([pa.record_batch([["x"]], schema=columns)]))
    assert ask(made) == [("x",)]
    ask(f'DROP TABLE {name}; DROP SCHEMA "My Schema"')


@pytest.mark.parametrize("name", ["pg_temp.made", "made", "pg_description"])
def test_a_temporary_schema_and_a_name_of_the_system_are_refused(postgres, name):
    """Previously, the table was gone when its connection was closed, or the rows were written to a system table."""
    with psycopg.connect(postgres, autocommit=True) as con:
        con.execute("CREATE ROLE temp SUPERUSER LOGIN; ALTER ROLE temp SET search_path = pg_temp, public")
        try:
            with pytest.raises(TableError, match="name belongs to a temporary schema or to the system"):
                Destination(name, postgres.replace("espalier@", "temp@")).check(pa.schema([("a", pa.string())]))
            Destination("public.made", postgres.replace("espalier@", "temp@")).check(pa.schema([("a", pa.string())]))
        finally:
            con.execute("DROP ROLE temp")


def test_the_schema_of_the_url_is_that_of_the_new_table(postgres):
    """Previously, the table was read in this schema, and the rows were written to another one."""
    columns = pa.schema([("a", pa.string())])
    with psycopg.connect(postgres, autocommit=True) as con:
        con.execute("CREATE SCHEMA s9")
        try:
            place = Destination("made", f"{postgres}&schema=s9")
            place.write(columns, iter([pa.record_batch([["x"]], schema=columns)]))
            assert con.execute("SELECT a FROM s9.made").fetchall() == [("x",)]
        finally:
            con.execute("DROP SCHEMA s9 CASCADE; DROP TABLE IF EXISTS made")


def test_a_connection_that_fails_has_a_cause(postgres):
    missing = postgres.replace("/postgres?", "/nowhere?")
    with pytest.raises(TableError, match="cannot be opened for writing: the server has no database with this name"):
        Destination("made", missing).check(pa.schema([("a", pa.string())]))


def test_it_is_written_whole_or_not_at_all(engine):
    url, ask = engine
    columns = arrow_columns(SCHEMA)

    def broken():
        import pyarrow as pa

        yield pa.record_batch([["=x"], [1], [0.1]], schema=columns)
        raise ValueError("a full disk")

    with pytest.raises(TableError, match="the table 'made' cannot be written"):
        Destination("made", url).write(columns, broken())
    assert url not in repr(Destination("made", url))
    found = ask("SELECT count(*) FROM information_schema.tables WHERE table_name = 'made'")
    assert found == [(0,)]


def test_many_rows_go_in_batch_by_batch(engine):
    url, ask = engine
    rng, file = np.random.default_rng(0), CodeFile(Snapshot.sizes(SCHEMA))
    for _ in range(3):
        file.append({f"c{i}": rng.integers(0, c.size, 500) for i, c in enumerate(SCHEMA.columns)})
    heard = []
    project, place = Project("far", SCHEMA, Plan("mst", 5.0)), Destination("made", url)
    write_whole_into(project, Snapshot(SCHEMA, file), place, lambda done, _: heard.append(done))
    assert heard == pytest.approx([1 / 3, 2 / 3, 1])
    ((rows, empty, least, most),) = ask('SELECT count(*), count(*) - count(v), min("w x"), max("w x") FROM made')
    assert (rows, empty) == (1_500, file_missing(file))
    assert 0 <= least <= most <= 1


def file_missing(file):
    return sum(int((batch["c1"] == SCHEMA["v"].values).sum()) for batch in file.batches())


def test_days_and_identifiers_have_their_types(engine):
    url, ask = engine
    schema = schema_from_json(
        [
            {"name": "day", "kind": "date", "dates": {"from": "2024-01-01", "to": "2024-12-31", "by": "month"}},
            {"name": "who", "kind": "identifier", "invented": True},
        ]
    )
    rows = {"day": ["2024-02-29", "2024-01-01"], "who": ["S1", "S2"]}
    write_into(Project("far", schema, Plan("mst", 5.0)), rows, Destination("made", url))
    assert sorted(ask("SELECT day, who FROM made")) == [(date(2024, 1, 1), "S2"), (date(2024, 2, 29), "S1")]


def test_only_an_engine_takes_them(tmp_path):
    for where in (str(tmp_path / "t.parquet"), "pyspark://"):
        with pytest.raises(TableError, match="a new table in the database of --data"):
            destination(where, "made")
    with pytest.raises(TableError, match="cannot be opened for writing"):
        Destination("made", f"duckdb://{tmp_path / 'none.duckdb'}").check(arrow_columns(SCHEMA))
    assert not (tmp_path / "none.duckdb").exists()


def test_a_table_may_have_any_name_in_duckdb(tmp_path):
    path = str(tmp_path / "t.duckdb")
    with duckdb.connect(path) as con:
        con.execute("CREATE TABLE other (a text)")
    columns = pa.schema([("a", pa.string())])
    made = Destination("espalier_rows", f"duckdb://{path}")
    made.check(columns)
    made.write(columns, iter([pa.record_batch([pa.array(["x"])], schema=columns)]))
    with duckdb.connect(path) as con:
        assert con.execute("SELECT * FROM espalier_rows").fetchall() == [("x",)]


@pytest.mark.parametrize("kind", ["sqlite", "pipe"])
def test_rows_are_written_only_to_a_duckdb_file(kind, tmp_path):
    """Previously, DuckDB tried to download an extension for the first, and waited for the second."""
    place = tmp_path / "t.duckdb"
    if kind == "pipe":
        os.mkfifo(place)
    else:
        with sqlite3.connect(place) as con:
            con.execute("CREATE TABLE t (a)")
    with pytest.raises(TableError, match="not a DuckDB database" if kind == "sqlite" else "a pipe"):
        Destination("made", f"duckdb://{place}").check(pa.schema([("a", pa.string())]))


@pytest.mark.parametrize("end", [2.0**53, 2.0**62, 2.0**63, 1e30])
def test_whole_numbers_beyond_64_bits_are_written_to_every_target(end, tmp_path):
    schema = Schema((Column("v", "numeric", edges=(-end, 0, end), integer=True, missing=True),))
    project = Project("far", schema, Plan("independent", 1.0, 1e-6))
    texts = [str(int(-end)), "7", "", str(int(end))]
    expected = [-end, 7, None, end]
    with duckdb.connect(str(tmp_path / "t.duckdb")) as con:
        con.execute("CREATE TABLE far (v int)")
    write_into(project, {"v": texts}, destination(f"duckdb://{tmp_path}/t.duckdb", "made"))
    with duckdb.connect(str(tmp_path / "t.duckdb")) as con:
        assert [v for (v,) in con.execute("SELECT v FROM made").fetchall()] == expected
    write_texts([{"v": texts}], schema, 4, tmp_path / "t.parquet")
    assert pq.read_table(tmp_path / "t.parquet")["v"].to_pylist() == expected
    assert cells(schema["v"], np.array([0, 1, 2]), np.random.default_rng(0)).type == arrow_columns(schema)[0].type
