"""SQLite files that never end are refused, as tables and as ledgers, and so are tables that turn into views."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import threading
from contextlib import closing

import pytest

from espalier.core.errors import EspalierError, TableError
from espalier.core.ledger.ledger import Ledger
from espalier.core.project.schema import Column, Schema
from espalier.core.server import backup
from espalier.core.tables.relation import open_relation
from tests.support.endless_sqlite import make_endless


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "t.sqlite"
    con = sqlite3.connect(file)
    con.execute("CREATE TABLE t (a text UNIQUE)")
    con.executemany("INSERT INTO t VALUES (?)", [(None,)] * 100)
    con.commit()
    con.close()
    return file


def test_a_table_has_no_more_rows_than_its_file_can_hold(table):
    make_endless(table, "t")
    relation = open_relation(f"sqlite://{table}", "t")
    with pytest.raises(TableError, match="more rows than its file can hold"):
        relation.snapshot(Schema((Column("a", "categorical", ("x",), missing=True),)))
    with pytest.raises(TableError, match="more rows than its file can hold"):
        relation.sample()


def test_the_smallest_rows_are_read(tmp_path):
    for kind in ("a integer primary key", "a integer primary key) WITHOUT ROWID --", "a"):
        file = tmp_path / f"{len(kind)}.sqlite"
        con = sqlite3.connect(file)
        con.execute(f"CREATE TABLE t ({kind}\n)" if "--" not in kind else f"CREATE TABLE t ({kind}")
        con.executemany("INSERT INTO t VALUES (?)", [(i if "key" in kind else None,) for i in range(20_000)])
        con.commit()
        con.close()
        schema = Schema((Column("a", "numeric", edges=(0.0, 10.0, 1e9), missing=True),))
        assert open_relation(f"sqlite://{file}", "t").snapshot(schema).rows == 20_000


def test_a_table_may_grow_after_it_was_opened(table):
    relation = open_relation(f"sqlite://{table}", "t")
    with closing(sqlite3.connect(table)) as con:
        con.executemany("INSERT INTO t VALUES (?)", [(None,)] * 100_000)
        con.commit()
    schema = Schema((Column("a", "categorical", ("x",), missing=True),))
    assert relation.snapshot(schema).rows == 100_100


def test_an_endless_catalogue_is_refused(table):
    make_endless(table, "sqlite_master")
    with pytest.raises(TableError, match="cannot open"):
        open_relation(f"sqlite://{table}", "t")


@pytest.mark.parametrize("endless", ["espalier_events", "sqlite_master"])
def test_a_ledger_ends(tmp_path, endless, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    file = tmp_path / "ledger.db"
    Ledger(file, create=True).open_table("t", epsilon=1.0, delta=1e-9)
    folder = tmp_path / "backup"
    backup.back_up(str(file), folder)
    make_endless(file, endless)
    with pytest.raises(EspalierError, match="it is damaged"):
        Ledger(file).populations()
    make_endless(folder / backup.DATABASE, endless)
    facts = json.loads((folder / backup.MANIFEST).read_text())
    facts["sha256"][backup.DATABASE] = backup._digest(folder / backup.DATABASE)
    (folder / backup.MANIFEST).write_text(json.dumps(facts))
    shutil.rmtree(tmp_path / "home")
    for left in tmp_path.glob("ledger.db*"):
        left.unlink()
    with pytest.raises(EspalierError, match="no readable ledger|it is damaged"):
        backup.restore(folder, str(file))


def test_a_table_that_became_a_view_after_it_was_opened_is_refused(table):
    """Previously, the rows came from a view, although the release described a table."""
    relation = open_relation(f"sqlite://{table}", "t")
    schema = Schema((Column("a", "categorical", ("x", "100"), missing=True),))
    assert relation.snapshot(schema).rows == 100
    con = sqlite3.connect(table)
    con.execute("ALTER TABLE t RENAME TO u")
    con.execute("CREATE VIEW t AS SELECT CAST(count(*) AS text) AS a FROM u")
    con.commit()
    con.close()
    with pytest.raises(TableError, match="replaced by a relation of another kind"):
        relation.snapshot(schema)


def test_a_signal_ends_a_view_that_computes_a_long_aggregate(table):
    """Previously, neither Ctrl-C nor SIGTERM ended the statement."""
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000)"
    with closing(sqlite3.connect(table)) as con:
        con.execute(f"CREATE VIEW v AS {numbers} SELECT sum(i) AS total FROM n")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            open_relation(f"sqlite://{table}", "v").sample()
    finally:
        signal.signal(signal.SIGINT, before)


def test_types_that_ibis_does_not_know_are_read_as_numbers_or_text(table):
    """Previously, a table with a column of INT(11), as converters from MySQL write, could not be opened."""
    with closing(sqlite3.connect(table)) as con:
        con.execute("CREATE TABLE m (a INT(11), b INTEGER(5), c NUMERIC(3,5), d MAP, e INTERVAL)")
        con.executemany("INSERT INTO m VALUES (?, ?, ?, ?, ?)", [(7, 8, 0.5, 9, "x"), (None, 8, 0.5, "y", "x")])
        con.commit()
    relation = open_relation(f"sqlite://{table}", "m")
    read = {name: column.values for name, column in relation.sample().columns.items()}
    assert read == {"a": ("7", ""), "b": ("8",), "c": ("0.5",), "d": ("9", "y"), "e": ("x",)}
    schema = Schema((Column("a", "categorical", ("7", "8"), missing=True),))
    assert relation.snapshot(schema).count(("a",)).tolist() == [1, 0, 1]
