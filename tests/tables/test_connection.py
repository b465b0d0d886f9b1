"""Messages about failed connections: a cause of a fixed list, its remedy, and no text of the driver."""

from __future__ import annotations

import duckdb
import pytest

from espalier.core.errors import TableError
from espalier.core.tables.connection import CAUSES, parts_of, time_limit, while_opening, while_reading
from espalier.core.tables.relation import open_relation

psycopg = pytest.importorskip("psycopg")


def said(url: str, relation: str = "t") -> str:
    with pytest.raises(TableError) as refused:
        open_relation(url, relation).snapshot(None)
    text = str(refused.value)
    assert "hush" not in text
    return text


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        ('connection to server at "10.0.0.1", port 1 failed: Connection refused', "refused"),
        ('(2002, "Can\'t connect to local server through socket")', "refused"),
        ("(2003, \"Can't connect to MySQL server on 'h' (111)\")", "refused"),
        ("[Errno -2] Name or service not known", "unknown host"),
        ('could not translate host name "h" to address', "unknown host"),
        ("(2005, \"Unknown server host 'h' (-2)\")", "unknown host"),
        ('FATAL: password authentication failed for user "me"', "authentication"),
        ("(1045, \"Access denied for user 'me'@'h' (using password: YES)\")", "authentication"),
        ('FATAL: role "me" does not exist', "authentication"),
        ('FATAL: no pg_hba.conf entry for host "h", user "me", database "d", no encryption', "TLS"),
        ("server does not support SSL, but SSL was required", "TLS"),
        ("SSL error: certificate verify failed", "TLS"),
        ('FATAL: database "d" does not exist', "no such database"),
        ("(1049, \"Unknown database 'd'\")", "no such database"),
        ("IO Error: Could not set lock on file", "locked"),
        ("database is locked", "locked"),
        ("unable to open database file", "no such file"),
        ("connection timeout expired", "time limit"),
    ],
)
def test_the_words_of_a_driver_name_a_cause(words, cause):
    assert while_opening(RuntimeError(words)) == CAUSES[cause]
    assert while_reading(RuntimeError(words)) == "", "a cell could hold these words"


def test_an_unknown_error_names_its_type():
    assert while_opening(KeyError("hush")) == "KeyError"


def test_postgres_names_the_cause(postgres):
    host = postgres.partition("host=")[2]
    assert CAUSES["no such database"] in said(f"postgresql://espalier:hush@/nowhere?host={host}")
    assert CAUSES["authentication"] in said(f"postgresql://nobody:hush@/postgres?host={host}")
    assert CAUSES["no such relation"] in said(postgres, "nothing")
    assert CAUSES["refused"] in said("postgresql://me:hush@127.0.0.1:1/d")
    with psycopg.connect(postgres, autocommit=True) as con:
        con.execute("DROP ROLE IF EXISTS stranger")
        con.execute("CREATE TABLE shut (a int)")
        con.execute("CREATE ROLE stranger LOGIN")
        try:
            relation = open_relation(postgres.replace("espalier@", "stranger@"), "shut")
            with pytest.raises(TableError) as refused:
                relation.sample()
            assert CAUSES["permission"] in str(refused.value)
            relation.close()
        finally:
            con.execute("DROP TABLE shut")
            con.execute("DROP ROLE stranger")


def test_a_statement_has_a_time_limit(postgres, monkeypatch):
    monkeypatch.setenv("ESPALIER_STATEMENT_SECONDS", "1")
    with psycopg.connect(postgres, autocommit=True) as con:
        con.execute("CREATE VIEW slow AS SELECT pg_sleep(9)::text AS a")
        try:
            relation = open_relation(postgres, "slow")
            with pytest.raises(TableError) as refused:
                relation.sample()
            assert CAUSES["time limit"] in str(refused.value)
            relation.close()
        finally:
            con.execute("DROP VIEW slow")
    monkeypatch.setenv("ESPALIER_STATEMENT_SECONDS", "soon")
    with pytest.raises(TableError, match="whole number of seconds"):
        time_limit()


def test_files_name_the_cause(tmp_path):
    assert CAUSES["no such file"] in said(f"duckdb://{tmp_path}/none.duckdb")
    assert CAUSES["no such file"] in said(f"sqlite://{tmp_path}/none.db")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("t", ["t"]),
        ("s.t", ["s", "t"]),
        ("c.s.t", ["c", "s", "t"]),
        ('"a.b"', ["a.b"]),
        ('s."t.u"', ["s", "t.u"]),
        ('"My Schema"."say ""hi"""', ["My Schema", 'say "hi"']),
        ("my table", ["my table"]),
    ],
)
def test_names_are_written_as_in_sql(name, parts, tmp_path):
    assert parts_of(name) == parts
    if len(parts) < 3:
        quoted = [f'"{part.replace(chr(34), 2 * chr(34))}"' for part in parts]
        with duckdb.connect(str(tmp_path / "t.duckdb")) as con:
            if len(parts) == 2:
                con.execute(f"CREATE SCHEMA {quoted[0]}")
            con.execute(f"CREATE TABLE {'.'.join(quoted)} AS SELECT 1 AS a")
        relation = open_relation(f"duckdb://{tmp_path}/t.duckdb", name)
        assert list(relation.columns) == ["a"]
        relation.close()


@pytest.mark.parametrize("name", ['"a', "a..b", ".a", "a.", '"a"b', "", '""'])
def test_a_name_that_is_not_written_so_is_refused(name):
    with pytest.raises(TableError, match="cannot be read"):
        parts_of(name)
