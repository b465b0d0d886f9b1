"""Codes streamed from a PostgreSQL role that may only read are those of the temporary table and of the file."""

from __future__ import annotations

import pytest

from espalier.core.errors import Cancelled, TableError
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.tables import postgres_rows
from espalier.core.tables.relation import open_relation

psycopg = pytest.importorskip("psycopg")
SCHEMA = Schema(
    (
        Column("a", "categorical", ("x", 'say "hi"', "line\nbreak", "ä,b"), missing=True),
        Column("b", "numeric", edges=(0.0, 10.0, 20.0, 30.0), unknown="missing", missing=True),
        Column("c", "categorical", ("False", "True")),
        *(Column(f"w{i}", "categorical", tuple(map(str, range(200)))) for i in range(9)),
    )
)
CLIQUES = [("a",), ("b", "c"), ("a", "w0"), ("w8", "c")]


@pytest.fixture
def urls(postgres):
    """URLs of a table for a role that writes and for one that only reads."""
    wide = ", ".join(f"((i * {i + 3}) % 200)::int AS w{i}" for i in range(9))
    with psycopg.connect(postgres, autocommit=True) as con:
        con.execute(
            "CREATE TABLE streamed AS SELECT "
            "(ARRAY['x', 'say \"hi\"', E'line\\nbreak', 'ä,b', '', NULL])[1 + i % 6] AS a, "
            f"(i % 37)::float8 AS b, i % 3 = 0 AS c, {wide}, E'p\\n\"' || (i / 4) AS p FROM generate_series(1, 1500) i"
        )
        con.execute("CREATE ROLE only_reads LOGIN")
        con.execute("GRANT SELECT ON streamed TO only_reads")
        con.execute("ALTER ROLE only_reads SET default_transaction_read_only = on")
        try:
            yield postgres, postgres.replace("espalier@", "only_reads@")
        finally:
            con.execute("DROP TABLE streamed")
            con.execute("DROP ROLE only_reads")


def counted(url: str, *people) -> list:
    relation = open_relation(url, "streamed")
    snapshot = relation.snapshot(SCHEMA, *people, key="key") if people else relation.snapshot(SCHEMA)
    found = [snapshot.count(clique).tolist() for clique in CLIQUES]
    found.append(snapshot.rows)
    snapshot.close()
    relation.close()
    return found


def test_a_role_that_only_reads_gives_the_same_counts(urls, monkeypatch):
    for size in (1 << 17, 700):
        monkeypatch.setattr(postgres_rows, "BATCH_ROWS", size)
        writes, reads = (counted(url) for url in urls)
        assert writes == reads
        assert reads[-1] == 1500
    assert counted(urls[0], "p", 2) == counted(urls[1], "p", 2)


def test_the_statement_that_is_shown_is_the_one_that_runs(urls):
    kept, streamed = (open_relation(url, "streamed") for url in urls)
    assert (kept.remote, streamed.remote) == (True, False)
    assert "kept on this machine" in streamed.notice
    (statement,) = streamed.statements(SCHEMA, Plan("mst", 1.0, 1e-6))
    assert "n1" in statement
    kept.close()
    streamed.close()


def test_a_stream_that_is_cancelled_leaves_a_connection_that_works(urls, monkeypatch):
    monkeypatch.setattr(postgres_rows, "BATCH_ROWS", 100)
    relation = open_relation(urls[1], "streamed")
    seen = []

    def report(*said):
        seen.append(said)
        if len(seen) > 5:
            raise Cancelled("stop")

    with pytest.raises(Cancelled):
        relation.snapshot(SCHEMA, report=report)
    again = relation.snapshot(SCHEMA)
    assert again.rows == 1500
    again.close()
    relation.close()


def test_a_row_without_a_person_is_refused(urls, postgres):
    with psycopg.connect(postgres, autocommit=True) as con:
        con.execute("UPDATE streamed SET p = '' WHERE ctid = (SELECT min(ctid) FROM streamed)")
    for url in urls:
        with pytest.raises(TableError, match="person column 'p' has an empty cell"):
            counted(url, "p", 2)


def test_an_error_in_the_middle_quotes_nothing(postgres):
    with psycopg.connect(postgres, autocommit=True) as con:
        con.execute(
            "CREATE VIEW breaks AS SELECT CASE WHEN i = 9000 THEN ('hush' || i)::int ELSE 1 END AS a "
            "FROM generate_series(1, 20000) i"
        )
        try:
            url = f"{postgres}&options=-cdefault_transaction_read_only%3Don"
            relation = open_relation(url, "breaks")
            with pytest.raises(TableError) as refused:
                relation.snapshot(Schema((Column("a", "categorical", ("1", "2")),)))
            assert "hush" not in str(refused.value)
            relation.close()
        finally:
            con.execute("DROP VIEW breaks")
