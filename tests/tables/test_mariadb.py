"""MariaDB (and MySQL, which speaks the same): its rows pass through in batches, and its collations merge no people."""

from __future__ import annotations

import getpass
import math

import pyarrow as pa
import pytest
from pyarrow import parquet

pytest.importorskip("pymysql", reason="MySQL is an extra (requirements-mysql.txt); .ci/nightly runs this")

import pymysql

from espalier.core.errors import TableError
from espalier.core.ledger.ledger import Ledger
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release.spend import release
from espalier.core.tables.reading import read_table
from espalier.core.tables.relation import open_relation
from espalier.core.tables.table import Table
from tests.support import layouts
from tests.support.mariadb import server
from tests.support.postgres import Absent
from tests.support.row_by_row import Layout, check, check_people
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


@pytest.fixture(scope="module")
def maria():
    try:
        with server() as running:
            yield running
    except Absent as why:
        pytest.skip(str(why))


@pytest.fixture
def put(maria):
    """Makes a table ``t`` from columns; returns its relation and a connection that writes."""
    con = pymysql.connect(
        host="127.0.0.1", port=maria.port, user=getpass.getuser(), database="test", charset="utf8mb4", autocommit=True
    )
    opened = []

    def there(columns, kinds):
        with con.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS t")
            declared = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
            cursor.execute(f"CREATE TABLE t ({declared}) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
            marks = ", ".join(["%s"] * len(kinds))
            cursor.executemany(f"INSERT INTO t VALUES ({marks})", list(zip(*columns.values(), strict=True)))
        opened.append(open_relation(maria.url, "t"))
        return opened[-1], con

    yield there
    for relation in opened:
        relation.close()
    con.close()


def holdable(cells):
    """MySQL has neither NaN nor infinity."""
    return [None if isinstance(c, float) and not math.isfinite(c) else c for c in cells]


def expected(columns, schema, tmp_path):
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    return rows_of(Table.encode(read_table(tmp_path / "t.parquet"), schema).codes, schema)


def test_rows_are_encoded_as_the_schema_does(put, tmp_path):
    kinds = {"f": "double", "f2": "double", "s": "text", "d": "date", "ts": "datetime(6)", "i": "bigint", "n": "text"}
    cells = {name: holdable(HOSTILE[name]) for name in kinds}
    schema = Schema(tuple(c for c in SCHEMA.columns if c.name != "b"))
    relation, _ = put(cells, kinds)
    assert rows_in(relation.snapshot(schema)) == expected(cells, schema, tmp_path)


def test_days_are_binned_as_the_schema_does(put, tmp_path):
    cells = {name: list(CALENDAR[name]) for name in ("t", "d", "m", "n")}
    relation, _ = put(cells, {"t": "text", "d": "date", "m": "datetime(6)", "n": "int"})
    assert rows_in(relation.snapshot(DATES)) == expected(cells, DATES, tmp_path)


def test_days_in_each_order_are_read_as_the_schema_does(put, tmp_path):
    relation, _ = put(BY_ORDER, {"dmy": "text", "mdy": "text", "ymd": "text", "whole": "int"})
    assert rows_in(relation.snapshot(ORDERS)) == expected(BY_ORDER, ORDERS, tmp_path)


def test_row_by_row(maria, tmp_path):
    """The generated test of `test_row_by_row`, for MariaDB's types."""
    con = pymysql.connect(
        host="127.0.0.1", port=maria.port, user=getpass.getuser(), database="test", charset="utf8mb4", autocommit=True
    )
    layout = Layout("MariaDB, relation", layouts.in_mariadb(con, maria.url), together=20)
    outcome = check(layouts.MARIA, layout, tmp_path)
    print(f"{outcome.combinations} combinations; refused: {', '.join(sorted(outcome.refused))}")
    assert outcome.broken == []
    assert outcome.refused <= {"bit", "blob", "time", "timestamp"}, outcome.unnamed
    assert outcome.unnamed == []
    people = layouts.TEXT_PEOPLE._replace(kind=layouts.TEXT_PEOPLE.kind._replace(declared="varchar(40)"))
    own = tmp_path / "people"
    own.mkdir()
    assert check_people(people, layout, own).broken == []
    con.close()


def test_what_a_collation_would_merge_stays_apart(put):
    """MySQL ignores case, accents and trailing blanks; in Latin letters, Ł and Ş both become a question mark."""
    names = ["p", "P", "p ", "é", "e", "Ł", "Ş", "😀", "p"]
    relation, con = put({"id": names, "a": ["x"] * 9, "v": [1] * 9}, {"id": "varchar(9)", "a": "text", "v": "int"})
    with con.cursor() as cursor:
        cursor.execute("SELECT count(DISTINCT id) FROM t")
        assert cursor.fetchone()[0] < 8, "the server merges them"
    assert relation.snapshot(SMALL, "id", 1).rows == 8
    column = Column("id", "categorical", tuple(names[:-1]))
    assert relation.snapshot(Schema((column,))).count(("id",)).tolist() == [2] + [1] * 7


def test_zero_dates_are_empty_and_other_types_come_or_are_refused(put):
    kinds = {"d": "date", "m": "datetime", "y": "year", "c": "decimal(6, 2)", "e": "enum('a', 'b')", "b": "boolean"}
    kinds |= {"u": "bigint unsigned", "h": "time", "raw": "blob", "bit1": "bit(1)"}
    cells = ["0000-00-00", "2020-00-00 00:00:00", 2020, "1.50", "a", True, 2**64 - 1, "23:59:59", b"x", 1]
    relation, _ = put({name: [cell] for name, cell in zip(kinds, cells, strict=True)}, kinds)
    sample = dict(zip(kinds, cells, strict=True)) | {"d": "", "m": "", "c": "1.50", "b": "1", "h": "23:59:59"}
    for name in ("d", "m", "y", "c", "e", "b", "u", "h"):
        column = Column(name, "categorical", (str(sample[name]) or "-",), missing=True)
        empty = sample[name] == ""
        assert relation.snapshot(Schema((column,))).count((name,)).tolist() == [1 - empty, int(empty)], name
    for name, said in (("raw", "holds binary values"), ("bit1", "contains a cell that is not of its declared type")):
        with pytest.raises(TableError, match=said):
            relation.snapshot(Schema((Column(name, "categorical", ("1",)),)))


def test_a_limit_of_the_server_leaves_no_row_out(put, maria):
    """Previously, with a limit of 20 rows, the first 20 of 50 were released."""
    _, con = put({"a": ["x"] * 50}, {"a": "text"})
    con.query("SET GLOBAL sql_select_limit = 20")
    try:
        schema = Schema((Column("a", "categorical", categories=("x", "y")),))
        assert open_relation(maria.url, "t").snapshot(schema).rows == 50
    finally:
        con.query("SET GLOBAL sql_select_limit = DEFAULT")


def test_a_versioned_table_is_read_as_it_is_now(put, maria):
    """Previously, if the server had set a point in time, the rows of that time were released."""
    _, con = put({"a": ["x"] * 5}, {"a": "text"})
    con.query("ALTER TABLE t ADD SYSTEM VERSIONING")
    con.query("SET GLOBAL system_versioning_asof = '2001-01-01 00:00:00'")
    try:
        schema = Schema((Column("a", "categorical", categories=("x", "y")),))
        assert open_relation(maria.url, "t").snapshot(schema).rows == 5
    finally:
        con.query("SET GLOBAL system_versioning_asof = DEFAULT")


def test_the_same_rows_are_kept_as_in_memory_and_a_writer_changes_nothing(put, monkeypatch):
    monkeypatch.setattr("espalier.core.tables.stream.BATCH_ROWS", 700)
    data = people(3_000)
    kinds = {"id": "varchar(20)", "a": "text", "v": "int"}
    relation, con = put({name: data[name].to_pylist() for name in kinds}, kinds)
    said = iter(range(10_000))

    def write(*_):
        if next(said) == 1:
            with con.cursor() as cursor:
                cursor.execute("UPDATE t SET a = 'x', v = 0")

    kept = relation.snapshot(SMALL, "id", 3, key="key", report=write)
    assert next(said) > 1
    assert rows_in(kept) == rows_of(in_memory(data, "key", 3)[0].codes, SMALL)
    assert relation.snapshot(SMALL).count(("a",)).tolist() == [3_000, 0, 0]


def test_a_table_of_the_server_s_own_statistics_is_no_plain_table(maria):
    """The rows of such a table are computed from many others. Previously, it was described as a plain table."""
    relation = open_relation(maria.url, "performance_schema.threads")
    assert relation.origin == "external"
    relation.close()


def test_a_server_killed_in_the_middle_leaves_a_ledger_and_no_codes(put, maria, tmp_path, monkeypatch):
    """This is the last test here, because the server is gone."""
    monkeypatch.setattr("espalier.core.tables.stream.BATCH_ROWS", 10_000)
    relation, con = put({"a": ["x"], "v": [1]}, {"a": "text", "v": "int"})
    with con.cursor() as cursor:
        cursor.execute("INSERT INTO t SELECT 'x', seq % 20 FROM seq_1_to_3000000")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    ledger = Ledger(tmp_path / "ledger.db", create=True)
    ledger.open_table("t", epsilon=9.0, delta=1e-6, delta_for_draws=5e-7)
    heard = []

    def kill(_, message):
        heard.append(message)
        if len(heard) == 2:
            maria.kill()

    with pytest.raises(TableError, match="the engine failed while it read the table .OperationalError"):
        release(Project("t", SMALL, Plan("mst", 1.0)), relation, ledger=ledger.account("t"), report=kill)
    assert set(heard) == {"Reading the table"}
    assert ledger.population_of("t").spent == 0
    assert list(scratch.iterdir()) == []
    assert ledger.verify() == []
