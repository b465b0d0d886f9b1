"""A pooler in front of PostgreSQL: each transaction may be in another session, which other clients use too."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from espalier.core.ledger.ledger import Ledger
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.destination import Destination
from espalier.core.tables.postgres_session import transaction
from espalier.core.tables.relation import open_relation
from tests.support.pooler import SESSIONS, pooler

psycopg = pytest.importorskip("psycopg")

SCHEMA = Schema((Column("a", "categorical", ("x", "back\\'slash", "é")),))
ASKED = (
    "search_path", "statement_timeout", "lock_timeout", "TimeZone", "client_encoding", "standard_conforming_strings",
    "idle_in_transaction_session_timeout", "default_transaction_read_only", "role",
)  # fmt: skip


@pytest.fixture
def pooled(postgres):
    """The URL of a table through a pooler; a schema with another table of the same name; a connection that writes."""
    with psycopg.connect(postgres, autocommit=True) as con:
        con.execute("CREATE TABLE t AS SELECT unnest(ARRAY['x', E'back\\\\''slash', 'é', 'x']) AS a")
        con.execute("CREATE SCHEMA elsewhere")
        con.execute("CREATE TABLE elsewhere.t AS SELECT 'x' AS a FROM generate_series(1, 1000)")
        try:
            with pooler(postgres) as running:
                yield running.url, con
        finally:
            con.execute("DROP SCHEMA elsewhere CASCADE; DROP TABLE t")


def in_each_session(url, *statements):
    """Return the answer of each session of the pool to each statement."""
    found = []
    with psycopg.connect(url, autocommit=True, prepare_threshold=None) as con:
        for _ in range(SESSIONS):
            with con.transaction():
                cursors = [con.execute(statement) for statement in statements]
                found.append([cursor.fetchone()[0] if cursor.description else None for cursor in cursors])
    return found


def counted(url, *, keeps=True, people=()):
    relation = open_relation(url, "t")
    assert relation.keeps
    source = replace(relation, keeps=keeps).snapshot(SCHEMA, *people)
    try:
        return source.count(("a",)).tolist()
    finally:
        source.close()
        relation.close()


LEFT_BEHIND = (
    "SET search_path = elsewhere",
    "SET statement_timeout = '2s'",
    "SET standard_conforming_strings = off",
    "SET client_encoding = 'LATIN1'",
    "SET default_transaction_read_only = on",
    "SET TimeZone = 'Asia/Tokyo'",
)


@pytest.mark.parametrize("keeps", [True, False], ids=["codes stay there", "codes are streamed"])
@pytest.mark.parametrize("left", [(), LEFT_BEHIND], ids=["fresh sessions", "settings of another client"])
def test_a_table_is_read_as_without_the_pooler(pooled, keeps, left):
    """Previously, the table could not be opened, or another table of that name was read; statements had a different
    time limit.
    """
    url, _ = pooled
    in_each_session(url, *left)
    assert counted(url, keeps=keeps) == [2, 1, 1]
    relation = open_relation(url, "t")
    assert relation.origin == "table"
    assert sorted(relation.first(10).columns["a"].values) == sorted(SCHEMA.columns[0].categories)
    assert relation.sample(10).rows == 4
    relation.close()


@pytest.mark.parametrize("keeps", [True, False], ids=["codes stay there", "codes are streamed"])
def test_a_temporary_table_of_another_client_is_not_read(pooled, keeps):
    """Previously, it was read instead of the table of that name, and described as a table."""
    url, _ = pooled
    in_each_session(url, "CREATE TEMP TABLE t AS SELECT 'x' AS a FROM generate_series(1, 1000)")
    in_each_session(url, "SET DateStyle = 'SQL, DMY'")
    assert counted(url, keeps=keeps) == [2, 1, 1]
    relation = open_relation(url, "t")
    assert relation.sample(10).rows == 4
    relation.close()


def test_no_setting_reaches_another_client(pooled):
    """Previously, every later client of a session had a closed search path and this program's time limits."""
    url, _ = pooled
    asked = [f"SHOW {name}" for name in ASKED]
    before = in_each_session(url, *asked)
    counted(url)
    counted(url, keeps=False)
    Destination("made", url).check(pa.schema([("a", pa.string())]))
    assert in_each_session(url, *asked) == before


def test_a_statement_has_this_program_s_limit_of_time(pooled):
    url, _ = pooled
    in_each_session(url, *LEFT_BEHIND)
    with psycopg.connect(url, autocommit=True, prepare_threshold=None) as con:
        for _ in range(SESSIONS):
            with transaction(con):
                assert con.execute("SHOW statement_timeout").fetchone() == ("1h",)


def test_a_role_that_another_client_took_is_left(pooled):
    """The permissions and row policies of that role would otherwise decide which rows are read."""
    url, con = pooled
    con.execute("CREATE ROLE other")
    try:
        in_each_session(url, "SET ROLE other")
        assert counted(url) == [2, 1, 1]
    finally:
        in_each_session(url, "RESET ROLE")
        con.execute("DROP ROLE other")


def test_rows_are_written_where_the_user_s_own_path_leads(pooled):
    url, con = pooled
    in_each_session(url, *LEFT_BEHIND[:4])
    columns = pa.schema([("a", pa.string())])
    Destination("made", url).write(columns, iter([pa.record_batch([["é"]], schema=columns)]))
    assert con.execute("SELECT a FROM public.made").fetchall() == [("é",)]
    con.execute("DROP TABLE public.made")


def _without_a_ledger(con: Any) -> None:
    con.execute("DROP TABLE IF EXISTS espalier_meta, espalier_events, espalier_releases, espalier_journal")
    con.execute("DROP FUNCTION IF EXISTS espalier_only_grows")


def test_a_ledger_works_through_a_pooler_and_leaves_no_setting(pooled, tmp_path, monkeypatch):
    """PgBouncer refuses the options that carried the ledger's time limits, or drops them."""
    url, con = pooled
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    asked = [f"SHOW {name}" for name in ASKED]
    in_each_session(url, *LEFT_BEHIND[:4])
    before = in_each_session(url, *asked)
    _without_a_ledger(con)  # another test may have left one in this database
    try:
        Ledger(url, create=True).open_table("Ω é", epsilon=1.0, delta=1e-9)
        in_each_session(url, "CREATE TEMP TABLE espalier_events (seq int)")
        assert list(Ledger(url).populations()) == ["Ω é"]
        assert Ledger(url).verify() == []
        assert con.execute("SELECT to_regclass('public.espalier_events') IS NOT NULL").fetchone()[0]
        assert in_each_session(url, *asked) == before
    finally:
        _without_a_ledger(con)
