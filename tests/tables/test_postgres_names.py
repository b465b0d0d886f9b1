"""Relations and functions that others made in a PostgreSQL database, under names that a release uses."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from espalier.core.errors import TableError
from espalier.core.ledger.ledger import Ledger
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.narrow_text import narrow_text
from espalier.core.tables.relation import open_relation
from espalier.core.tables.table import person_codes

psycopg = pytest.importorskip("psycopg")

SCHEMA = Schema((Column("a", "categorical", ("x", "y")),))


@pytest.fixture
def database(postgres):
    """The URL of a database with a table, a user whose search path ends in pg_temp, and a connection to it."""
    with psycopg.connect(postgres, autocommit=True) as con:
        con.execute("CREATE DATABASE named")
        con.execute("CREATE ROLE reader LOGIN SUPERUSER")
        con.execute("ALTER ROLE reader SET search_path = hidden, public, pg_temp")
    inside = postgres.replace("/postgres?", "/named?")
    try:
        with psycopg.connect(inside, autocommit=True) as con:
            con.execute("CREATE TABLE t (a text)")
            con.execute("INSERT INTO t VALUES ('x'), ('y'), ('x')")
            yield inside.replace("espalier@", "reader@"), con
    finally:
        with psycopg.connect(postgres, autocommit=True) as con:
            con.execute("DROP DATABASE named WITH (FORCE)")
            con.execute("DROP ROLE reader")


def read(url, name="t"):
    """(the kind of the relation, its counts, its digest)."""
    relation = open_relation(url, name)
    source = relation.snapshot(SCHEMA)
    try:
        return relation.origin, source.count(("a",)).tolist(), source.digest
    finally:
        source.close()
        relation.close()


@pytest.mark.parametrize("what", ["VIEW espalier_codes AS SELECT 0 AS c0 FROM t, generate_series(1, 1000)", "TABLE"])
def test_a_relation_of_the_name_of_the_codes_is_never_counted(database, what):
    """Previously, a view of that name multiplied each row by a thousand and was described as a table."""
    url, con = database
    con.execute(f"CREATE {what}" if what != "TABLE" else "CREATE TABLE espalier_codes AS SELECT 0 AS c0 FROM t, t AS u")
    assert read(url)[:2] == ("table", [2, 1])


def test_no_function_of_another_user_sees_the_codes(database):
    """Previously, a function that fits the arguments better than PostgreSQL's own was called with the codes of each
    row.
    """
    url, con = database
    before = read(url)
    for name, of in (("hashint8extended", "bigint, integer"), ("max", "integer"), ("md5", "varchar")):
        kind = "AGGREGATE" if name == "max" else "FUNCTION"
        how = (
            "(sfunc = int4larger, stype = int)"
            if kind == "AGGREGATE"
            else "RETURNS bigint LANGUAGE sql AS 'SELECT 7::bigint'"
        )
        con.execute(f"CREATE {kind} {name}({of}) {how}")
    assert read(url) == before


def test_a_relation_is_found_where_the_search_path_leads(database):
    url, con = database
    for statement in (
        'CREATE SCHEMA "hid.den"',
        'CREATE VIEW "hid.den"."t.t" AS SELECT a FROM public.t LIMIT 1',
        'ALTER ROLE reader SET search_path = "hid.den", public',
    ):
        con.execute(statement)
    assert read(url)[:2] == ("table", [2, 1])
    assert read(url, '"t.t"')[0] == "view"
    assert read(url, "public.t")[:2] == ("table", [2, 1])


@pytest.mark.parametrize("keeps", [True, False], ids=["codes stay there", "codes are streamed"])
def test_a_user_with_another_encoding_reads_the_same_texts(database, keeps):
    """Previously, when rows were streamed, a category with an accent was read as an undeclared text."""
    url, con = database
    con.execute("CREATE TABLE u AS SELECT unnest(ARRAY['é', 'Ω', 'é']) AS a")
    con.execute("ALTER ROLE reader SET client_encoding = 'LATIN1'")
    relation = open_relation(url, "u")
    source = replace(relation, keeps=keeps).snapshot(Schema((Column("a", "categorical", ("é", "Ω")),)))
    assert source.count(("a",)).tolist() == [2, 1]
    source.close()


def test_a_ledger_of_a_user_with_another_encoding_holds_any_name(database, tmp_path, monkeypatch):
    """Previously, this ended in a traceback."""
    url, con = database
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    con.execute("ALTER ROLE reader SET client_encoding = 'LATIN1'")
    con.execute("ALTER ROLE reader SET search_path = public")
    Ledger(url, create=True).open_table("Ω é", epsilon=1.0, delta=1e-9)
    assert list(Ledger(url).populations()) == ["Ω é"]


def test_no_cast_of_another_user_reads_the_cells(database):
    """Previously, the cast was called with each cell and could read other rows, although the release described a plain
    table.
    """
    url, con = database
    for statement in (
        "CREATE TYPE mood AS ENUM ('x', 'y')",
        'CREATE TABLE "w.w" (b int, a mood)',
        "INSERT INTO \"w.w\" VALUES (1, 'x'), (2, 'x'), (3, 'y')",
    ):
        con.execute(statement)
    assert read(url, 'public."w.w"')[1] == [2, 1]
    asked = 'SELECT CASE WHEN count(*) > 2 THEN $q$y$q$ ELSE $q$x$q$ END FROM public."w.w"'
    con.execute(f"CREATE FUNCTION counting(mood) RETURNS text LANGUAGE sql AS $$ {asked} $$")
    con.execute("CREATE CAST (mood AS text) WITH FUNCTION counting(mood)")
    with pytest.raises(TableError, match="column 'a' has a type whose cast to text is a function"):
        read(url, 'public."w.w"')
    for domain, of in (("feeling", "mood"), ("feelings", "feeling")):
        con.execute(f"CREATE DOMAIN {domain} AS {of}; CREATE TABLE {domain}_rows (b int, a {domain})")
        with pytest.raises(TableError, match="column 'a' has a type whose cast to text is a function"):
            read(url, f"public.{domain}_rows")
    con.execute("DROP CAST (mood AS text)")
    assert read(url, '"w.w"')[1] == [2, 1]


@pytest.mark.parametrize("name", ["citext", "string", "enum", "tinyint", "double"])
def test_a_domain_or_composite_is_never_taken_for_a_type_of_its_name(database, name):
    """In another database, that name is a type. Previously, the cells were therefore cast by another user's function,
    which reads rows."""
    url, con = database
    con.execute("CREATE TYPE mood AS ENUM ('x', 'y')")
    con.execute("CREATE TYPE pair AS (one int, two int)")
    for kind, cell, to in (("mood", "'x'", "text"), ("pair", "(1, 2)", "int8"), ("pair", "(1, 2)", "float8")):
        con.execute(f'CREATE DOMAIN "{name}" AS {kind}')
        con.execute(f'CREATE TABLE w (a "{name}")')
        con.execute(f"INSERT INTO w VALUES ({cell}), ({cell})")
        con.execute(f"CREATE FUNCTION made({kind}) RETURNS {to} LANGUAGE sql AS 'SELECT count(*)::{to} FROM public.w'")
        con.execute(f"CREATE CAST ({kind} AS {to}) WITH FUNCTION made AS IMPLICIT")
        with pytest.raises(TableError, match="column .a. has a type (that Espalier cannot read|whose cast to text)"):
            read(url, "w")
        con.execute(f'DROP TABLE w; DROP DOMAIN "{name}"; DROP FUNCTION made CASCADE')


def test_floats_have_all_their_digits_whatever_the_user_sets(database, tmp_path, monkeypatch):
    """Previously, the ledger was reported as tampered with, and two values in a linked table had one text."""
    url, con = database
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    con.execute("ALTER ROLE reader SET search_path = public")
    Ledger(url, create=True).open_table("t", epsilon=1.0, delta=1e-9)
    con.execute("ALTER ROLE reader SET extra_float_digits = -2")
    Ledger(url).open_table("u", epsilon=1 / 3, delta=1e-9)
    assert list(Ledger(url).populations()) == ["t", "u"]
    con.execute("CREATE TABLE f AS SELECT 0.1 + 0.2::float8 AS a UNION SELECT 0.3::float8")
    relation = open_relation(url, "f")
    assert sorted(relation.first(2).columns["a"].values) == ["0.3", "0.30000000000000004"]
    relation.close()


@pytest.mark.parametrize("keeps", [True, False], ids=["codes stay there", "codes are streamed"])
@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE s RENAME TO u; CREATE VIEW s AS SELECT count(*)::text AS a FROM u",
        "CREATE DOMAIN string AS mood; ALTER TABLE s ALTER a TYPE string USING a::mood",
    ],
    ids=["a view", "another type"],
)
def test_a_relation_that_is_replaced_after_it_was_opened_is_refused(database, keeps, change):
    """Previously, the rows came from a view, although the release described a table."""
    url, con = database
    con.execute("CREATE TYPE mood AS ENUM ('x', 'y')")
    con.execute("CREATE TABLE s AS SELECT 'x' AS a")
    relation = open_relation(url, "s")
    con.execute(change)
    with pytest.raises(TableError, match="replaced by a relation of another kind|the engine failed"):
        replace(relation, keeps=keeps).snapshot(SCHEMA)
    with pytest.raises(TableError, match="replaced by a relation of another kind|the engine failed"):
        narrow_text(relation, ["a"])
    relation.close()


@pytest.mark.parametrize("keeps", [True, False], ids=["codes stay there", "codes are streamed"])
def test_a_partition_that_is_emptied_and_filled_again_is_read_whole(database, keeps):
    """Previously, the snapshot was older than the lock, and neither the old nor the new rows were seen."""
    url, con = database
    con.execute("CREATE TABLE p (a text) PARTITION BY LIST (a)")
    con.execute("CREATE TABLE x PARTITION OF p FOR VALUES IN ('x'); CREATE TABLE y PARTITION OF p FOR VALUES IN ('y')")
    con.execute("INSERT INTO p SELECT unnest(ARRAY['x', 'y']) FROM generate_series(1, 100)")
    relation = open_relation(url, "p")
    asked = replace(relation, keeps=keeps)
    with ThreadPoolExecutor(1) as pool:
        with con.transaction():
            con.execute("TRUNCATE x; INSERT INTO x SELECT 'x' FROM generate_series(1, 100)")
            reading = pool.submit(lambda: asked.snapshot(SCHEMA).count(("a",)).tolist())
            while con.execute("SELECT FROM pg_locks WHERE NOT granted").rowcount == 0 and not reading.done():
                time.sleep(0.01)
        assert reading.result() == [100, 100]
    relation.close()


@pytest.mark.parametrize("keeps", [True, False], ids=["codes stay there", "codes are streamed"])
def test_relations_that_cannot_be_locked_first_are_read(database, keeps):
    url, con = database
    con.execute("CREATE MATERIALIZED VIEW m AS SELECT * FROM t")
    con.execute("CREATE ROLE one LOGIN; GRANT SELECT (a) ON t TO one")
    try:
        for user, name in (("reader", "m"), ("one", "t")):
            relation = open_relation(url.replace("reader@", f"{user}@"), f"public.{name}")
            assert replace(relation, keeps=keeps).snapshot(SCHEMA).count(("a",)).tolist() == [2, 1]
            relation.close()
    finally:
        con.execute("REVOKE ALL ON t FROM one; DROP ROLE one")


@pytest.mark.parametrize(
    ("kind", "cells"),
    [
        ("interval", "('1 month'), ('30 days'), ('1 day')"),
        ("real", "(16777216), (16777217), (1)"),
        ("jsonb", "('1.0'), ('1.00'), ('2')"),
    ],
)
def test_a_linked_person_column_whose_type_may_merge_people_is_refused(database, kind, cells):
    url, con = database
    con.execute("ALTER ROLE reader SET search_path = public")
    con.execute(f"CREATE TABLE linked (id {kind}, at int)")
    try:
        con.execute(f"INSERT INTO linked (id) VALUES {cells}")
        relation = open_relation(url, "linked")
        text, _ = narrow_text(relation, ["id"], ("at",))
        relation.close()
        with pytest.raises(TableError, match="two people"):
            person_codes(text, "id")
    finally:
        con.execute("DROP TABLE linked")


@pytest.mark.parametrize(
    ("encoding", "one", "other"),
    [("EUC_JP", "a2c0", "adfc"), ("EUC_TW", "a1a1", "8ea1a1a1"), ("EUC_JIS_2004", "abc8", "abb8abdc")],
)
def test_people_whose_texts_the_server_would_merge_stay_apart_or_are_refused(postgres, encoding, one, other):
    """Previously, two people became one if rows or identifiers were streamed: a letter may be stored in two ways."""
    name = encoding.lower()
    url = postgres.replace("/postgres?", f"/{name}?") + "&client_encoding=UTF8"
    with psycopg.connect(postgres, autocommit=True) as con:
        con.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    try:
        with psycopg.connect(url, autocommit=True) as con:
            con.execute("CREATE TABLE t (who text, x text)")
            for stored in (one, other):
                con.execute(
                    f"INSERT INTO t SELECT convert_from('\\x{stored}', '{encoding}'), 'a' FROM generate_series(1, 2)"
                )
        schema = Schema((Column("x", "categorical", ("a", "b")),))
        kept = open_relation(url, "t")
        snapshot = kept.snapshot(schema, "who", 1)
        assert snapshot.rows == 2, "the server compares the stored texts"
        snapshot.close()
        kept.close()
        opened = open_relation(url, "t")
        streamed = replace(opened, keeps=False)
        with pytest.raises(TableError, match="person column 'who'"):
            streamed.snapshot(schema, "who", 1)
        with pytest.raises(TableError, match="person column 'who'"):
            person_codes(narrow_text(streamed, ["who"])[0], "who")
        opened.close()
    finally:
        with psycopg.connect(postgres, autocommit=True) as con:
            con.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.parametrize("encoding", ["LATIN2", "KOI8R", "EUC_KR"])
def test_categories_are_found_in_a_database_of_another_encoding(postgres, encoding):
    """Previously, more than 32 categories were searched in the order of UTF-8, so half of them counted as missing."""
    codec = {"LATIN2": "iso8859-2", "KOI8R": "koi8-r", "EUC_KR": "euc-kr"}[encoding]
    letters = tuple(c for c in map(chr, range(0x20, 0x2000)) if c.isalpha() and c.encode(codec, "ignore"))
    with psycopg.connect(postgres, autocommit=True) as con:
        con.execute(f"CREATE DATABASE coded TEMPLATE template0 ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'")
    try:
        inside = postgres.replace("/postgres?", "/coded?")
        with psycopg.connect(inside, autocommit=True) as con, con.cursor() as cursor:
            con.execute("CREATE TABLE t (a text)")
            cursor.executemany("INSERT INTO t VALUES (%s)", [(letter,) for letter in letters])
        relation = open_relation(inside, "t")
        source = relation.snapshot(Schema((Column("a", "categorical", letters, missing=True, unknown="missing"),)))
        assert source.count(("a",)).tolist() == [1] * len(letters) + [0]
        source.close()
        relation.close()
    finally:
        with psycopg.connect(postgres, autocommit=True) as con:
            con.execute("DROP DATABASE coded WITH (FORCE)")


def test_unused_columns_of_rare_types_do_not_prevent_a_release(database):
    """Previously, the statement called a function of PostGIS, or the table could not be opened."""
    url, con = database
    con.execute("ALTER TABLE t ADD place point, ADD path line, ADD tiny numeric(3, 5), ADD area polygon")
    assert read(url)[1] == [2, 1]
    relation = open_relation(url, "t")
    assert relation.sample().columns["a"].values == ("x", "y")
    relation.close()


def test_a_role_s_limit_on_idle_transactions_does_not_end_a_release(database):
    """Previously, a long fit between two counts ended the release, with a message about another limit."""
    url, con = database
    con.execute("ALTER ROLE reader SET idle_in_transaction_session_timeout = '500ms'")
    relation = open_relation(url, "public.t")
    source = relation.snapshot(SCHEMA)
    time.sleep(0.7)
    assert source.count(("a",)).tolist() == [2, 1]
    source.close()
    relation.close()
