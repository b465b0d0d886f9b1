"""A ledger recognises each of two linked tables, even if one of them is released alone."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import duckdb
import pytest

from espalier.core.ledger import fingerprint
from espalier.core.project.linked import Linked
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.frames import LARGE_CELLS, located, panel
from espalier.core.tables.linked_text import LinkedText
from espalier.core.tables.narrow_text import whole_text
from espalier.core.tables.panel import digest_of_both
from espalier.core.tables.reading import read_table

SECRET = b"k" * fingerprint.KEY_BYTES
PEOPLE = read_table(b"id,age\n1,old\n2,young\n", "people.csv")
VISITS = read_table(b"id,day,diag\n1,1,a\n1,2,b\n2,1,a\n", "visits.csv")
OTHER = read_table(b"id,day,diag\n1,1,a\n", "other.csv")


@pytest.mark.parametrize("alone", [PEOPLE, VISITS])
def test_one_table_alone_is_known_from_both_and_both_from_one(alone):
    both = digest_of_both([PEOPLE, VISITS])
    assert fingerprint.matches(SECRET, alone.digest, fingerprint.mark(SECRET, both)) is True
    assert fingerprint.matches(SECRET, both, fingerprint.mark(SECRET, alone.digest)) is True
    assert fingerprint.matches(SECRET, OTHER.digest, fingerprint.mark(SECRET, both)) is False


def test_both_are_the_same_only_if_neither_changed():
    both, changed = digest_of_both([PEOPLE, VISITS]), digest_of_both([PEOPLE, OTHER])
    mark = fingerprint.mark(SECRET, both)
    assert fingerprint.matches(SECRET, both, mark, whole=True) is True
    assert fingerprint.matches(SECRET, changed, mark, whole=True) is False
    assert fingerprint.matches(SECRET, changed, mark) is True
    assert fingerprint.matches(SECRET, PEOPLE.digest, mark, whole=True) is False


LINK = Linked("people", "visits", "id", "id", "day", 2)
SCHEMA = LINK.completed(
    Schema((Column("people.age", "categorical", ("old", "young")), Column("visits.diag", "categorical", ("a", "b"))))
)


@pytest.fixture(params=["duckdb", "sqlite"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database with the two tables, each with a column that the project does not name."""
    path = tmp_path / f"clinic.{request.param}"
    with duckdb.connect(str(path)) if request.param == "duckdb" else sqlite3.connect(path) as con:
        con.execute("CREATE TABLE people (id TEXT, age TEXT, note TEXT)")
        con.execute("INSERT INTO people VALUES ('1', 'old', 'x'), ('2', 'young', 'y')")
        con.execute("CREATE TABLE visits (id TEXT, day INTEGER, since TEXT, diag TEXT, nurse INTEGER)")
        con.execute(
            "INSERT INTO visits VALUES ('1', 1, '2020-01-01', 'a', 4), ('1', 2, '2020-02-01', 'b', 5), "
            "('2', 1, '2020-03-01', 'a', 6)"
        )
        con.commit()
    con.close()
    return f"{request.param}://{path}"


@pytest.mark.parametrize("order", ["day", "since"])
def test_the_app_and_the_command_line_know_the_tables_of_a_database_alike(database: str, order: str) -> None:
    """The app reads both tables whole; the command line reads the columns that the project names."""
    link = Linked("people", "visits", "id", "id", order, 2)
    both = [located(database, name) for name in ("people", "visits")]
    in_app = panel(link, SCHEMA, LinkedText.of(link, [whole_text(table, LARGE_CELLS) for table in both]))
    on_command_line = panel(link, SCHEMA, both)
    for one, other in ((in_app, on_command_line), (on_command_line, in_app)):
        mark = fingerprint.mark(SECRET, one.digest)
        assert fingerprint.matches(SECRET, other.digest, mark, whole=True) is True
    changed = Schema(tuple(c for c in SCHEMA.columns if c.name != LINK.number))
    assert panel(link, LINK.completed(changed), both).digest == in_app.digest
    for table in both:
        table.close()


def test_a_change_of_the_rows_in_a_database_is_noticed(database: str) -> None:
    before = panel(LINK, SCHEMA, [located(database, name) for name in ("people", "visits")]).digest
    path = database.split("://")[1]
    with duckdb.connect(path) if database.startswith("duckdb") else sqlite3.connect(path) as con:
        con.execute("UPDATE visits SET diag = 'b' WHERE id = '2'")
        con.commit()
    con.close()
    after = panel(LINK, SCHEMA, [located(database, name) for name in ("people", "visits")]).digest
    mark = fingerprint.mark(SECRET, before)
    assert fingerprint.matches(SECRET, after, mark, whole=True) is False
    assert fingerprint.matches(SECRET, after, mark) is True, "the people are the same"


@pytest.mark.parametrize("key", ["", "nurse"])
def test_another_order_of_visits_in_a_database_is_noticed(database: str, key: str) -> None:
    link = Linked("people", "visits", "id", "id", "day" if key else "nurse", 2, key)
    before = panel(link, SCHEMA, [located(database, name) for name in ("people", "visits")]).digest
    path = database.split("://")[1]
    with duckdb.connect(path) if database.startswith("duckdb") else sqlite3.connect(path) as con:
        con.execute("UPDATE visits SET nurse = 9 WHERE id = '1' AND nurse = 4")
        con.commit()
    con.close()
    both = [located(database, name) for name in ("people", "visits")]
    after = panel(link, SCHEMA, both).digest
    assert fingerprint.matches(SECRET, after, fingerprint.mark(SECRET, before), whole=True) is False
    in_app = panel(link, SCHEMA, LinkedText.of(link, [whole_text(table, LARGE_CELLS) for table in both])).digest
    assert in_app == after
    for table in both:
        table.close()
