"""Spark on this machine: the schema's own codes, the same kept rows as with DuckDB, and no trace of them on disk."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

pytest.importorskip("pyspark", reason="Spark is an extra (requirements-spark.txt); .ci/nightly runs this")

from espalier.core.errors import Cancelled, TableError
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release.spend import release
from espalier.core.tables.reading import read_table
from espalier.core.tables.relation import open_relation
from espalier.core.tables.table import Table
from tests.support import layouts
from tests.support.row_by_row import Layout, check
from tests.tables.test_relation import (
    BY_ORDER,
    CALENDAR,
    DATES,
    HOSTILE,
    ORDERS,
    SCHEMA,
    SMALL,
    in_memory,
    local_rows,
    people,
    rows_of,
)

pytestmark = pytest.mark.filterwarnings("ignore")
URL = "pyspark://?spark.driver.memory=1g&spark.ui.showConsoleProgress=false"


@pytest.fixture(scope="module")
def session():
    from espalier.core.tables import engines

    backend = engines._spark(URL)
    yield backend._session
    backend._session.stop()


@pytest.fixture
def table(session, tmp_path):
    """A function that stores an Arrow table under a name for Spark; it also returns the path of the Parquet file."""

    def put(data, name="t"):
        path = tmp_path / f"{name}.parquet"
        parquet.write_table(data, path)
        session.read.parquet(str(path)).createOrReplaceTempView(name)
        return open_relation(URL, name), path

    return put


def test_spark_encodes_as_the_schema_does(table):
    more = {name: [*cells, *cells[:4]] for name, cells in HOSTILE.items()}
    more["n"][-4:] = ["5\u0085", "5\u2028", "5\n", "5d"]  # texts that Java would read as numbers and Python would not
    relation, path = table(pa.table(more))
    expected = Table.encode(read_table(path), SCHEMA)
    assert local_rows(relation.snapshot(SCHEMA)) == rows_of(expected.codes)


def test_spark_bins_days_as_the_schema_does(table):
    relation, path = table(pa.table(CALENDAR))
    expected = Table.encode(read_table(path), DATES)
    assert local_rows(relation.snapshot(DATES)) == rows_of(expected.codes, DATES)


def test_spark_reads_days_in_each_order_as_the_schema_does(table):
    relation, path = table(pa.table(BY_ORDER))
    expected = Table.encode(read_table(path), ORDERS)
    assert local_rows(relation.snapshot(ORDERS)) == rows_of(expected.codes, ORDERS)


def test_the_same_rows_are_kept_as_in_memory_and_by_duckdb(table):
    data = people()
    relation, path = table(data)
    expected = rows_of(in_memory(data, "key", 3)[0].codes, SMALL)
    assert local_rows(relation.snapshot(SMALL, "id", 3, key="key")) == expected
    assert local_rows(open_relation(path).snapshot(SMALL, "id", 3, key="key")) == expected


def test_row_by_row(session, tmp_path):
    """The generated test of `test_row_by_row`, for types that Spark reads from Parquet."""

    def write(cells, kinds, folder):
        path = layouts.one_file()(cells, kinds, folder)
        session.read.parquet(str(path)).createOrReplaceTempView("t")
        return open_relation(URL, "t")

    names = ("constant", "int64", "decimal", "bool", "date32", "string", "spelled")
    for kind in (kind for kind in layouts.ARROW if kind.name in names):
        own = tmp_path / kind.name
        own.mkdir()
        outcome = check([kind], Layout("Spark, relation", write, together=20), own)
        print(f"{kind.name}: {outcome.combinations} combinations")
        assert outcome.broken == []
        assert outcome.unnamed == []


@pytest.mark.usefixtures("session")
def test_tables_of_a_warehouse_are_found_and_wide_ones_are_read(tmp_path):
    """Previously, a table that `saveAsTable` wrote elsewhere was not found, and 30 text columns ended in a
    RecursionError.
    """
    cells = {f"c{i}": ["a", "b", "a"] for i in range(200)}
    for folder in ("people", "clinic.db/people"):
        (tmp_path / folder).mkdir(parents=True)
        parquet.write_table(pa.table(cells), tmp_path / folder / "part-0.snappy.parquet")
        (tmp_path / folder / "_SUCCESS").touch()
    schema = Schema(tuple(Column(name, "categorical", ("a", "b")) for name in cells))
    where = f"pyspark://{tmp_path}?spark.driver.memory=1g"
    for name in ("people", "clinic.people"):
        relation = open_relation(where, name)
        assert relation.origin == "external"
        rows = relation.snapshot(schema)
        assert rows.count_many([("c0", "c199")])[0].tolist() == [[2, 0], [0, 1]]
        rows.close()
    (tmp_path / "parts" / "c0=a").mkdir(parents=True)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "part-0.csv").touch()
    (tmp_path / "mixed").mkdir()
    for i, cell in enumerate(["a", 1]):
        parquet.write_table(pa.table({"c": [cell]}), tmp_path / "mixed" / f"{i}.parquet")
    for name, why in {"parts": "partitioned", "texts": "not stored as Parquet", "mixed": "differ"}.items():
        with pytest.raises(TableError, match=why):
            open_relation(where, name)


def test_a_collation_merges_nobody(session, table):
    table(pa.table({"a": ["x", "x", "y"], "v": [1, 1, 2], "id": ["p", "P", "q"]}), "plain")
    columns = "a COLLATE UTF8_LCASE AS a, v, id COLLATE UTF8_LCASE AS id"
    session.sql(f"SELECT {columns} FROM plain").createOrReplaceTempView("loose")
    schema = Schema((Column("a", "categorical", ("X", "x", "y")),))
    kept = open_relation(URL, "loose").snapshot(schema, "id", 1)
    assert kept.count(("a",)).tolist() == [0, 2, 1]


def test_a_release_holds_people_out_and_leaves_no_codes(table, tmp_path, monkeypatch):
    relation, path = table(people(3_000))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    plan = Plan("mst", 100.0, 1e-6, person="id", rows_per_person=3, rows=2_000, private_evaluation=0.2, target="a")
    made = release(Project("spark", SMALL, plan), relation)
    assert made.rows == 2_000
    assert made.private_evaluation is not None
    real = Table.encode(read_table(path), SMALL)
    assert abs(np.bincount(made.codes["a"]) / 2_000 - real.count(("a",)) / real.rows).max() < 0.1
    assert list(scratch.iterdir()) == []


def test_only_formats_that_store_values_are_plain_tables(session):
    """Previously, a managed CSV table counted as plain, although a text with a line break is read as two rows."""
    try:
        for kind in ("parquet", "orc", "csv", "json"):
            session.sql(f"CREATE TABLE as_{kind} (a STRING, Provider STRING) USING {kind}")
        found = {kind: open_relation(URL, f"as_{kind}").origin for kind in ("parquet", "orc", "csv", "json")}
        assert found == {"parquet": "table", "orc": "table", "csv": "external", "json": "external"}
    finally:
        for kind in ("parquet", "orc", "csv", "json"):
            session.sql(f"DROP TABLE IF EXISTS as_{kind}")


def test_refusals_and_cancelling_leave_no_codes(session, table, tmp_path, monkeypatch):
    relation, _ = table(people(3_000))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    with pytest.raises(TableError, match="does not declare") as refused:
        relation.snapshot(Schema((Column("a", "categorical", ("x", "y")),)))
    assert "z" not in str(refused.value).split("column")[0]
    assert list(scratch.iterdir()) == []

    def cancel(*_):
        raise Cancelled("stop")

    monkeypatch.setattr("espalier.core.progress.PULSE", 0.0)
    with pytest.raises(Cancelled):
        relation.snapshot(SMALL, report=cancel)
    assert list(scratch.iterdir()) == []
    assert session.sql("SELECT 1").collect()  # the session is as usable as before


def test_what_is_first_is_a_sample_and_a_cluster_is_refused(table):
    relation, _ = table(people(50))
    assert relation.sample(7).rows == 7
    assert relation.columns == {"id": "string", "a": "string", "v": "int64"}
    with pytest.raises(TableError, match="cannot open the pyspark relation 'none'"):
        open_relation(URL, "none")


def test_spark_killed_in_the_middle_is_told_and_leaves_no_codes(tmp_path):
    parquet.write_table(people(2_000), tmp_path / "t.parquet")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    code = textwrap.dedent(f"""
        import os, signal
        from espalier.core.tables import engines, spark
        from espalier.core.tables.relation import open_relation
        from tests.tables.test_relation import SMALL
        session = engines._spark({URL!r})._session
        session.read.parquet({str(tmp_path / "t.parquet")!r}).createOrReplaceTempView("t")
        jvm = int(session._jvm.java.lang.ProcessHandle.current().pid())
        relation = open_relation({URL!r}, "t")
        once = []
        def kill(*_):
            if len(once) == 1:
                os.kill(jvm, signal.SIGKILL)
            once.append(1)
        spark.interruptible.__globals__["PULSE"] = 0.0
        try:
            relation.snapshot(SMALL, report=kill)
        except Exception as error:
            print(type(error).__name__, error)
        print(os.listdir({str(scratch)!r}), flush=True)
        os._exit(0)
    """)
    env = os.environ | {"TMPDIR": str(scratch), "SPARK_LOCAL_DIRS": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=300)
    said = ran.stdout.strip().splitlines()
    assert said[0].startswith("TableError the pyspark relation 't': the engine failed while it read the table"), ran
    assert not [name for name in eval(said[1]) if name.startswith("espalier")]
