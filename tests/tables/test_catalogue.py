"""The kind of a relation is read from a catalogue and stated in the plan, the report, release.json and the ledger."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import duckdb
import pytest

from espalier.core.cli.main import main
from espalier.core.ledger.ledger import Ledger
from espalier.core.project.file import Project
from espalier.core.project.linked import Linked
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release.spend import release
from espalier.core.report.page import render
from espalier.core.tables.catalogue import TRUSTED, origin
from espalier.core.tables.relation import open_relation

MADE = ("CREATE TABLE t (a VARCHAR)", "INSERT INTO t VALUES ('x'), ('y'), ('x')", "CREATE VIEW v AS SELECT a FROM t")
SCHEMA = Schema((Column("a", "categorical", ("x", "y")),))


def in_duckdb(tmp_path):
    with duckdb.connect(str(tmp_path / "t.duckdb")) as con:
        for statement in (*MADE, "CREATE SCHEMA s", "CREATE VIEW s.t AS SELECT * FROM main.t"):
            con.execute(statement)
    return f"duckdb://{tmp_path / 't.duckdb'}"


def in_sqlite(tmp_path):
    con = sqlite3.connect(tmp_path / "t.db")
    for statement in (*MADE, "CREATE VIRTUAL TABLE f USING rtree(id, low, high)"):
        con.execute(statement)
    con.commit()
    con.close()
    return f"sqlite:///{tmp_path / 't.db'}"


def kinds(url, *names):
    found = []
    for name in names:
        relation = open_relation(url, name)
        found.append(relation.origin)
        relation.close()
    return found


def test_duckdb(tmp_path):
    assert kinds(in_duckdb(tmp_path), "t", "v", "V", "s.t") == ["table", "view", "view", "view"]


def test_columns_that_duckdb_computes(tmp_path):
    """Previously, such a table was described as a plain one, although ``stats`` shows the whole column's extremes."""
    with duckdb.connect(str(tmp_path / "t.duckdb")) as con:
        con.execute("CREATE TABLE T (x bigint, g varchar GENERATED ALWAYS AS (stats(x)::varchar))")
    url = f"duckdb://{tmp_path / 't.duckdb'}"
    assert kinds(url, "T", "t") == ["computed", "computed"]
    assert "computed column" in open_relation(url, "t").notice


def test_tables_that_sqlite_fills_from_many_rows_are_no_plain_tables(tmp_path):
    """Previously, a search index and SQLite's statistics were described as tables of rows."""
    con = sqlite3.connect(tmp_path / "t.db")
    con.execute("CREATE VIRTUAL TABLE f USING fts5(a)")
    con.execute("CREATE TABLE t (a TEXT UNIQUE)")
    con.execute("INSERT INTO t VALUES ('x')")
    con.execute("INSERT INTO f VALUES ('x')")
    con.execute("ANALYZE")
    con.commit()
    con.close()
    url = f"sqlite:///{tmp_path / 't.db'}"
    assert kinds(url, "t", "f", "f_idx", "f_content", "sqlite_stat1") == ["table", *["external"] * 3, "unknown"]


def test_sqlite(tmp_path):
    assert kinds(in_sqlite(tmp_path), "t", "v", "f") == ["table", "view", "external"]


def test_postgres(postgres):
    import psycopg

    more = (
        *("CREATE MATERIALIZED VIEW m AS SELECT a FROM t", "CREATE SCHEMA s", "CREATE VIEW s.t AS SELECT a FROM t"),
        *("CREATE TABLE parts (a text) PARTITION BY LIST (a)", "CREATE EXTENSION file_fdw"),
        *("CREATE TABLE one PARTITION OF parts FOR VALUES IN ('x')", "CREATE SERVER f FOREIGN DATA WRAPPER file_fdw"),
        "CREATE FOREIGN TABLE ft (a text) SERVER f OPTIONS (filename '/dev/null')",
        *("CREATE TABLE ruled (a text)", "ALTER TABLE ruled ENABLE ROW LEVEL SECURITY"),
        *("CREATE ROLE reader LOGIN", "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader"),
    )
    with psycopg.connect(postgres, autocommit=True) as con:
        for statement in (*MADE, *more):
            con.execute(statement)
        try:
            assert kinds(postgres, "t", "v", "m", "s.t", "parts") == ["table", "view", "view", "view", "table"]
            assert kinds(postgres, "ft", "ruled") == ["external", "table"]  # policies do not bind a superuser
            assert kinds(postgres.replace("espalier@", "reader@"), "ruled") == ["policy"]
            con.execute("ALTER TABLE parts ATTACH PARTITION ft FOR VALUES IN ('y')")
            assert kinds(postgres, "parts") == ["external"]
            con.execute("CREATE TABLE whole (a text) PARTITION BY LIST (a)")
            con.execute("ALTER TABLE whole ATTACH PARTITION parts DEFAULT")
            assert kinds(postgres, "whole") == ["external"]  # a partition of a partition
        finally:
            con.execute("DROP TABLE IF EXISTS whole CASCADE; DROP SCHEMA s CASCADE")
            con.execute("DROP TABLE IF EXISTS t, parts, ruled CASCADE; DROP EXTENSION file_fdw CASCADE")
            con.execute("DROP OWNED BY reader; DROP ROLE reader")


def test_an_engine_that_is_not_known(tmp_path):
    relation = open_relation(in_sqlite(tmp_path), "v")
    feed: Any = relation.feed
    backend = feed.backend

    class Other:
        name = "trino"
        con = backend.con

    assert origin(Other(), feed.table) == "unknown"
    assert "not known" in TRUSTED["unknown"]


@pytest.fixture
def project(tmp_path):
    made = Project("p", SCHEMA, Plan("mst", 1.0, 1e-6, neighbors="add-remove"))
    path = tmp_path / "p.json"
    path.write_text(json.dumps(made.to_json()))
    return made, path


@pytest.mark.parametrize(("name", "said"), [("v", "view"), ("t", "table")])
def test_a_release_and_its_ledger_say_so(name, said, project, tmp_path):
    url = in_duckdb(tmp_path)
    ledger = Ledger(tmp_path / "ledger.db", create=True)
    ledger.open_table("people", epsilon=9.0, delta=1e-6, neighbors="add-remove")
    relation = open_relation(url, name)
    made = release(project[0], relation, ledger=ledger.account("people"))
    assert TRUSTED.get(said, "") in relation.notice
    relation.close()
    facts = made.to_json()
    assert facts["relation"] == said
    assert (TRUSTED["view"] in facts["promises"]) == (said == "view")
    assert (TRUSTED["view"] in render(facts)) == (said == "view")
    (entry,) = ledger.population_of("people").entries
    assert entry.relation == said
    assert ledger.verify() == []


def test_a_plan_says_so_where_the_relation_is_named(project, tmp_path, capsys):
    url = in_duckdb(tmp_path)
    assert main(["plan", str(project[1]), "--data", url, "--relation", "v"]) == 0
    assert TRUSTED["view"] in capsys.readouterr().out
    assert main(["plan", str(project[1]), "--data", url, "--relation", "t", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["relation"] == "table"
    assert main(["plan", str(project[1])]) == 0
    assert "relation" not in capsys.readouterr().out


def test_a_plan_of_linked_tables_says_so(tmp_path, capsys):
    """Previously, it did not, because a single name is given for two tables, if any."""
    linked = Linked("people", "visits", "id", "id", "at", 2)
    columns = tuple(Column(name, "categorical", ("p", "q")) for name in ("people.a", "visits.b"))
    plan = Plan("linked", 1.0, 1e-6, neighbors="add-remove", person="id")
    (tmp_path / "linked.json").write_text(Project("linked", Schema(columns), plan, linked=linked).dumps())
    with duckdb.connect(str(tmp_path / "t.duckdb")) as con:
        con.execute("CREATE TABLE people AS SELECT 1 AS id, 'p' AS a")
        con.execute("CREATE VIEW visits AS SELECT 1 AS id, 1 AS at, 'q' AS b")
    command = ["plan", f"{tmp_path}/linked.json", "--rows", "100"]
    assert main([*command, "--data", f"duckdb://{tmp_path}/t.duckdb"]) == 0
    assert TRUSTED["view"] in " ".join(capsys.readouterr().out.split())
    assert main(command) == 0
    assert TRUSTED["view"] not in " ".join(capsys.readouterr().out.split())
