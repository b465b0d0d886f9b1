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
from espalier.core.tables.mariadb import connection_to
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
    """A function that makes a table ``t`` from columns; it returns the relation and a connection that writes."""
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


def relation_url(con):
    return f"mysql://{getpass.getuser()}@127.0.0.1:{con.port}/test"


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
    for name, said in (("raw", "contains binary values"), ("bit1", "contains a cell that is not of its declared type")):
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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("local_infile=0", "an option that Espalier does not accept"),
        ("ssl_disabled=false", "an option that Espalier does not accept"),
        ("init_command=SET%20NAMES%20latin1", "an option that Espalier does not accept"),
        ("ss@host/db", "Write a question mark in a password as %3F"),
        ("ssl_verify_identity=true", "ssl_verify_identity needs ssl_ca"),
        ("ssl_ca=", "ssl_ca of the mysql URL must be text"),
        ("ssl_ca=a&ssl_verify_cert=yes", "ssl_verify_cert of the mysql URL must be true or false"),
        ("ssl_ca=a&ssl_ca=b", "gives an option twice"),
        ("connect_timeout=1e3", "connect_timeout of the mysql URL must be a number of seconds"),
    ],
)
def test_options_of_a_url_that_the_driver_would_misread_are_refused(text, said):
    """Previously, all of them reached the driver, which takes the texts 0 and false for true: the first let the server
    read files of this machine, the second turned TLS off, and the third merged people."""
    with pytest.raises(TableError, match=said) as refused:
        open_relation(f"mysql://me:secret@127.0.0.1:1/test?{text}", "t")
    assert "host" not in str(refused.value)


def test_a_url_with_an_authority_verifies_the_server():
    """Previously, PyMySQL accepted any certificate unless two more options asked it not to."""
    verified = {"ssl_verify_cert": True, "ssl_verify_identity": True}
    url, options = connection_to("mysql://me@host/db?ssl_ca=%2Fca.pem&read_timeout=60")
    assert url == "mysql://me@host/db"
    expected = verified | {"ssl_ca": "/ca.pem", "read_timeout": 60, "local_infile": False}
    assert {name: options[name] for name in expected} == expected
    assert connection_to("mysql://host/db?ssl_ca=a&ssl_verify_identity=0")[1]["ssl_verify_identity"] is False


@pytest.mark.parametrize("kind", ["ascii", "cp1250", "gbk", "cp932"])
def test_damaged_texts_that_unicode_cannot_write_stay_apart(put, kind):
    """Previously, the server sent a question mark for each, so these people were one."""
    relation, con = put({"id": ["a"], "a": ["x"]}, {"id": f"varchar(9) CHARACTER SET {kind}", "a": "text"})
    damaged = {"ascii": ("E8", "E9"), "cp1250": ("81", "83"), "gbk": ("A6A1", "A2AB"), "cp932": ("81CA", "EEF9")}[kind]
    con.query(f"INSERT INTO t VALUES (x'{damaged[0]}', 'x'), (x'{damaged[1]}', 'x'), ('?', 'x'), ('a', 'x')")
    schema = Schema((Column("a", "categorical", ("x", "y")),))
    with con.cursor() as cursor:
        cursor.execute("SELECT count(DISTINCT CONVERT(id USING utf8mb4) COLLATE utf8mb4_bin) FROM t")
        assert cursor.fetchone()[0] < 4, "the server merges them"
    relation = open_relation(relation_url(con), "t")
    assert relation.snapshot(schema, "id", 1).rows == 4
    stored = Schema((Column("id", "categorical", ("a", "?")),))
    with pytest.raises(TableError, match="contains a value that its schema does not declare"):
        relation.snapshot(stored)
    relation.close()


def test_a_view_cannot_take_the_place_of_the_table_while_it_is_opened_and_read(put):
    """Previously, a view that existed only during the read supplied the rows, although the release described a
    table.
    """
    relation, con = put({"a": ["x"] * 5}, {"a": "varchar(3)"})
    con.query("DROP VIEW IF EXISTS v")
    con.query("DROP TABLE IF EXISTS kept")
    con.query("RENAME TABLE t TO kept")
    con.query("CREATE VIEW t AS SELECT 'y' AS a FROM kept")
    con.query("SET lock_wait_timeout = 1")
    said = []

    def change_back(*_):
        said.append("")
        if len(said) == 2:
            with pytest.raises(pymysql.err.OperationalError, match="Lock wait timeout"):
                con.query("DROP VIEW t")

    try:
        with pytest.raises(TableError, match="was replaced by a relation of another kind"):
            relation.snapshot(Schema((Column("a", "categorical", ("x", "y")),)), report=change_back)
        assert len(said) > 1
    finally:
        relation.close()
        con.query("DROP VIEW t")


def test_columns_that_changed_places_are_refused_and_hidden_ones_are_read(put):
    """Previously, each column was read as the other one, and a table with a hidden column caused an error."""
    kinds = {"a": "varchar(3)", "b": "varchar(3)"}
    schema = Schema(tuple(Column(name, "categorical", ("x", "y")) for name in kinds))
    relation, con = put({"a": ["x"] * 5, "b": ["y"] * 5}, kinds)
    con.query("ALTER TABLE t MODIFY a varchar(3) AFTER b")
    with pytest.raises(TableError, match="the columns changed after the table was opened"):
        relation.snapshot(schema)
    con.query("ALTER TABLE t MODIFY a varchar(3) INVISIBLE")
    relation = open_relation(relation_url(con), "t")
    assert relation.snapshot(schema).count(("b",)).tolist() == [0, 5]
    relation.close()


def test_a_column_of_places_does_not_prevent_a_draft_and_a_set_is_text(put):
    """Previously, the draft ended in a ModuleNotFoundError, and a SET was read as a list of letters."""
    relation, con = put({"a": ["x"] * 5, "s": ["p,q"] * 5}, {"a": "varchar(3)", "s": "set('p','q')"})
    con.query("ALTER TABLE t ADD g geometry")
    relation = open_relation(relation_url(con), "t")
    assert relation.sample().columns.keys() >= {"a", "s"}
    schema = Schema((Column("s", "categorical", ("p", "p,q")),))
    assert relation.snapshot(schema).count(("s",)).tolist() == [0, 5]
    with pytest.raises(TableError, match="contains binary values"):
        relation.snapshot(Schema((Column("g", "categorical", ("1",)),)))
    relation.close()


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


def test_a_table_with_a_virtual_column_is_no_plain_table(put, maria):
    """A virtual column may carry values from row to row in a variable. Previously, the table was called plain."""
    _, con = put({"x": [1, 2]}, {"x": "int"})
    with con.cursor() as cursor:
        cursor.execute("ALTER TABLE t ADD g int AS (@most := greatest(coalesce(@most, 0), x)) VIRTUAL")
    relation = open_relation(maria.url, "t")
    assert relation.origin == "computed"
    relation.close()


def test_short_floats_are_read_with_all_their_digits(put):
    """Previously, the server sent six digits, so cells near an edge were counted in another bin."""
    relation, _ = put({"v": [16777218.0, 0.29999998]}, {"v": "float"})
    schema = Schema((Column("v", "numeric", edges=(0.0, 0.3, 16777216.5, 1e9)),))
    assert relation.snapshot(schema).count(("v",)).tolist() == [1, 0, 1]


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
