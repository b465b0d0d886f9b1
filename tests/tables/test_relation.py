"""Tables that stay in an engine: the schema's own codes, the same random selection everywhere, and one snapshot of the
rows."""

from __future__ import annotations

import datetime as dt
import hashlib
import itertools
import os
import re
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from dataclasses import replace
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from espalier.core.errors import Cancelled, TableError
from espalier.core.project.column_types import Dates
from espalier.core.project.date_orders import DATE_ORDERS
from espalier.core.project.dates import DateBins
from espalier.core.project.schema import Column, Schema
from espalier.core.project.schema_json import schema_from_json
from espalier.core.tables.digest import _MIXES, Digest, _hash
from espalier.core.tables.encoding_query import encoding
from espalier.core.tables.postgres_snapshot import PostgresSnapshot
from espalier.core.tables.reading import read_table
from espalier.core.tables.relation import open_relation
from espalier.core.tables.row_limits import kept_rows
from espalier.core.tables.table import Table

HOSTILE: dict[str, list[Any]] = {
    "f": [1.0, float("nan"), None, 2.5, -0.0, 1e300, 5.0, 0.1 + 0.2],
    "f2": [1.0, 2.5, None, float("nan"), -0.0, 1e22, 0.1, float("inf")],
    "s": ["a ", "A", "a", None, "", "zz", "É", "a"],
    "b": [True, False, None, True, True, False, True, None],
    "d": [dt.date(2020, 1, 2), None, *[dt.date(2020, 1, 3)] * 6],
    "ts": [dt.datetime(2020, 1, 2), None, *[dt.datetime(2020, 1, 3, 1, 0, 0, 5)] * 6],
    "i": [2**53 + 1, 2**53, None, 0, 5, -7, 3, 2**53 - 1],
    "n": ["1e5", " 5 ", "x", None, "-1e999", ".5", "5.", "1_0"],
}


def column(name, kind, values, **more):
    key = "edges" if kind == "numeric" else "categories"
    return Column(name, kind, **{key: values}, missing=True, unknown="missing", **more)


SCHEMA = Schema(
    (
        column("f", "numeric", (0, 0.3, 1, 2.5, 9)),
        column("f2", "categorical", ("1", "2.5", "0", "1e+22", "inf"), groups=(("1", ("0.1",)),)),
        column("s", "categorical", ("a", "A", "a ", "É")),
        column("b", "categorical", ("True", "False")),
        column("d", "categorical", ("2020-01-02", "2020-01-03")),
        column("ts", "categorical", ("2020-01-02", "2020-01-03T01:00:00.000005")),
        column("i", "numeric", (-10, 0, 5, 2**53, 2**53 + 2)),
        column("n", "numeric", (0, 5, 10)),
    )
)


def rows_of(codes, schema=SCHEMA):
    return Counter(zip(*(np.asarray(codes[n]).tolist() for n in schema.names), strict=True))


def rows_in(snapshot):
    return sum((rows_of(b, snapshot.schema) for b in snapshot.batches(snapshot.schema.names)), Counter())


def local_rows(snapshot):
    return sum((rows_of(b, snapshot.schema) for b in snapshot.batches(snapshot.schema.names)), Counter())


@pytest.fixture(params=["parquet", "csv", "folder"])
def hostile(request, tmp_path):
    path = tmp_path / f"t.{request.param}"
    data = pa.table(HOSTILE)
    if request.param == "csv":
        csv.write_csv(data, path)
    elif request.param == "folder":
        path.mkdir()
        parquet.write_table(data.slice(0, 3), path / "0.parquet")
        parquet.write_table(data.slice(3), path / "1.parquet")
        whole = tmp_path / "whole.parquet"
        parquet.write_table(data, whole)
        return path, whole
    else:
        parquet.write_table(data, path)
    return path, path


def test_files_are_encoded_as_the_schema_does(hostile):
    path, whole = hostile
    expected = Table.encode(read_table(whole), SCHEMA)
    snapshot = open_relation(path).snapshot(SCHEMA)
    assert local_rows(snapshot) == rows_of(expected.codes)
    pairs = list(itertools.combinations(SCHEMA.names, 2))
    for clique, got in zip(pairs, snapshot.count_many(pairs), strict=True):
        assert np.array_equal(got, expected.count(clique))
    snapshot.close()


@pytest.fixture
def in_postgres(postgres):
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as con:
        con.execute(
            "CREATE COLLATION IF NOT EXISTS loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
        )
        con.execute(
            "CREATE TABLE hostile (f float8, f2 float8, s text COLLATE loose, b bool, d date, ts timestamp, i int8, "
            "n text, p text COLLATE loose)"
        )
        with con.cursor().copy("COPY hostile FROM STDIN") as copy:
            for j, row in enumerate(zip(*HOSTILE.values(), strict=True)):
                copy.write_row([*row, "x " if j % 2 else "X"])
        yield postgres, con
        con.execute("DROP TABLE hostile")


def test_postgres_encodes_as_the_schema_does(in_postgres, tmp_path):
    parquet.write_table(pa.table(HOSTILE), tmp_path / "t.parquet")
    expected = Table.encode(read_table(tmp_path / "t.parquet"), SCHEMA)
    snapshot = PostgresSnapshot(open_relation(in_postgres[0], "hostile"), SCHEMA)
    assert rows_in(snapshot) == rows_of(expected.codes)
    snapshot.close()


FAR = ("1e200000", " -2.5E+0200000 ", "0.000e200000", "1e-200000", "-1e-99999", "1e20000000000000000000", ".5e131073")
"""Numbers beyond PostgreSQL's decimals."""


@pytest.mark.parametrize("text", FAR)
def test_numbers_beyond_postgres_decimals_are_in_the_outermost_bins(postgres, text):
    import psycopg

    schema = Schema((column("n", "numeric", (-1, 0, 1, 5)),))
    expected = Table.encode(read_table(f"n\n{text}\n".encode()), schema).codes["n"].tolist()
    with psycopg.connect(postgres, autocommit=True) as con:
        con.execute("CREATE TABLE far (n text)")
        con.execute("INSERT INTO far VALUES (%s)", [text])
        try:
            snapshot = PostgresSnapshot(open_relation(postgres, "far"), schema)
            assert [int(code) for batch in snapshot.batches() for code in batch["n"]] == expected
            snapshot.close()
        finally:
            con.execute("DROP TABLE far")


def test_a_writer_that_commits_changes_nothing(in_postgres):
    url, con = in_postgres
    snapshot = PostgresSnapshot(open_relation(url, "hostile"), SCHEMA)
    before = snapshot.count_many([("s",), ("f", "i")])
    con.execute("INSERT INTO hostile (f) SELECT 1 FROM generate_series(1, 100)")
    assert all(np.array_equal(a, b) for a, b in zip(before, snapshot.count_many([("s",), ("f", "i")]), strict=True))
    assert snapshot.rows == int(before[0].sum()) == len(HOSTILE["f"])
    snapshot.close()
    later = PostgresSnapshot(open_relation(url, "hostile"), SCHEMA)
    assert later.rows == len(HOSTILE["f"]) + 100
    later.close()


def test_a_collation_does_not_merge_people(in_postgres):
    snapshot = PostgresSnapshot(open_relation(in_postgres[0], "hostile"), SCHEMA, "p", 1)
    assert snapshot.rows == 2
    snapshot.close()


WRITTEN = [
    *(
        "2024-02-29",
        "2023-02-29",
        "1900-02-29",
        "2000-02-29",
        " 2024-01-31\t",
        "2024-01-31T10:00",
        "2024-1-31",
        "",
        None,
    ),
    *("2024-01-31 23:59:59+02:00", "0000-01-01", "0001-01-01", "9998-12-31", "2024-13-01", "2024-00-10", "2024-04-31"),
    *("2024-04-30", "2024-06-00", "2024-01-31x", "2024-01-31T", "x2024-01-31", "٢٠٢٤-٠١-٠١", "20240131", "2024-03-31"),
    *("2024-04-01", "2023-12-31", "2024-12-31", "2025-01-01"),
]
MIDNIGHT = dt.datetime(2024, 4, 1)
CALENDAR: dict[str, list[Any]] = {
    "t": WRITTEN,
    "d": [dt.date(2024, 3, 31), dt.date(2024, 4, 1), None, dt.date(1, 1, 1), dt.date(9999, 12, 31)] * 5 + [None] * 3,
    "m": [MIDNIGHT - dt.timedelta(microseconds=1), MIDNIGHT, None, dt.datetime(9999, 12, 31, 23)] * 7,
    "n": list(range(28)),
}
BINS = {"missing": True, "unknown": "missing"}
DATES = schema_from_json(
    [
        {"name": name, "kind": "date", "dates": {"from": "2024-01-01", "to": "2024-12-31", "by": by}, **BINS}
        for name, by in (("t", "month"), ("d", "quarter"), ("m", "week"), ("n", "month"))
    ]
)


def test_engines_bin_days_as_the_schema_does(tmp_path, postgres):
    import psycopg

    data, path = pa.table(CALENDAR), tmp_path / "t.parquet"
    parquet.write_table(data, path)
    expected = rows_of(Table.encode(read_table(path), DATES).codes, DATES)
    assert rows_in(open_relation(path).snapshot(DATES)) == expected
    csv.write_csv(data, tmp_path / "t.csv")
    assert rows_in(open_relation(tmp_path / "t.csv").snapshot(DATES)) == expected
    with psycopg.connect(postgres, autocommit=True) as con:
        con.execute("CREATE TABLE days (t text, d date, m timestamp, n int)")
        with con.cursor().copy("COPY days FROM STDIN") as copy:
            for row in zip(*CALENDAR.values(), strict=True):
                copy.write_row(row)
        try:
            snapshot = PostgresSnapshot(open_relation(postgres, "days"), DATES)
            assert rows_in(snapshot) == expected
            snapshot.close()
            con.execute("INSERT INTO days VALUES (NULL, 'infinity', '-infinity', NULL)")
            snapshot = PostgresSnapshot(open_relation(postgres, "days"), DATES)
            assert rows_in(snapshot) - expected == {tuple(c.values for c in DATES.columns): 1}
            snapshot.close()
        finally:
            con.execute("DROP TABLE days")


SPELLED = [
    *("31.12.2024", "1/2/2024", "2-1-2024 9:30 PM", "5 Jan 2024", "05JAN2024:10:30:00", "Sept 5, 2024", "2024/2/3"),
    *("20240203", "2024-02-03", "31.02.2024", "29.2.2024", "1. 2. 2024\n", "1.2.24", "1.2.2024x", "x1.2.2024", None),
    *("", "JUNI 5, 2024", "june5,2024", "5may 2024", "2024 Dec 31", "0.1.2024", "1.1.0000", "١/٢/٢٠٢٤", "5 Janu 2024"),
    *("5\u00a0Jan 2024", "1.2.2024\u2028", "12/31/2024 10:00 pm", "12/31/2024, 10:00PM  "),
]
BY_ORDER: dict[str, list[Any]] = dict.fromkeys(DATE_ORDERS, SPELLED)
BY_ORDER["whole"] = [20240203, 20240230, 5, None, -20240203, 202402031] + [20241231] * (len(SPELLED) - 6)
ORDERS = schema_from_json(
    [
        {"name": name, "kind": "date", "dates": DATES["t"].dates.to_json(), "date_order": order, **BINS}
        for name, order in (*((order, order) for order in DATE_ORDERS), ("whole", "ymd"))
    ]
)


def test_engines_read_days_in_each_order_as_the_schema_does(tmp_path, postgres):
    import psycopg

    data, path = pa.table(BY_ORDER), tmp_path / "t.parquet"
    parquet.write_table(data, path)
    read = read_table(path)
    expected = rows_of(Table.encode(read, ORDERS).codes, ORDERS)
    for name in ORDERS.names:
        column = ORDERS[name]
        known = [t for t in read.columns[name].values if column.judge([t])[0] < column.values]
        assert len(known) >= 2, name
    assert rows_in(open_relation(path).snapshot(ORDERS)) == expected
    with psycopg.connect(postgres, autocommit=True) as con:
        con.execute("CREATE TABLE spelled (dmy text, mdy text, ymd text, whole int, broken float8)")
        with con.cursor().copy("COPY spelled FROM STDIN") as copy:
            for row in zip(*BY_ORDER.values(), strict=True):
                copy.write_row((*row, 20240101.0))
        try:
            snapshot = PostgresSnapshot(open_relation(postgres, "spelled"), ORDERS)
            assert rows_in(snapshot) == expected
            snapshot.close()
            odd = Schema((replace(ORDERS["ymd"], name="broken"),))
            with pytest.raises(TableError, match="cannot read dates"):
                open_relation(postgres, "spelled").snapshot(odd)
        finally:
            con.execute("DROP TABLE spelled")


@pytest.mark.parametrize("dialect", ["postgres", "pyspark"])
def test_a_query_computes_a_day_once_and_not_for_each_bin(dialect):
    table = ibis.table({"dmy": "string", "espalier_day_0": "string"}, name="x")
    query = encoding(table, Schema((ORDERS["dmy"],)), dialect)
    assert len(ibis.to_sql(query, dialect=dialect)) < 40_000


@pytest.mark.parametrize("order", ["", "dmy"])
def test_postgres_computes_a_day_once_and_not_for_each_bin(order, postgres):
    """Previously, ten rows took gigabytes of the server's memory, because it merged the subquery with the days."""
    import psycopg

    found = []
    with psycopg.connect(postgres, autocommit=True) as con:
        con.execute("CREATE TABLE far (t text)")
        try:
            relation = open_relation(postgres, "far")
            for by in ("year", "quarter"):
                bins = DateBins.from_json({"from": "2000-01-01", "to": "2009-12-31", "by": by})
                query = relation.query(Schema((Dates.of("t", bins, date_order=order),)))
                plan = con.execute(f"EXPLAIN VERBOSE {query}").fetchall()
                found.append(str(plan).count("~") + str(plan).count("regexp"))
            relation.close()
        finally:
            con.execute("DROP TABLE far")
    assert found[0] == found[1] > 0


def test_moments_with_a_zone_and_texts_that_are_no_days_are_refused(tmp_path):
    path = tmp_path / "t.parquet"
    strict = schema_from_json(
        [{"name": "t", "kind": "date", "dates": {"from": "2024-01-01", "to": "2024-12-31", "by": "month"}}]
    )
    parquet.write_table(pa.table({"t": pa.array([dt.datetime(2024, 1, 1)], pa.timestamp("us", "UTC"))}), path)
    with pytest.raises(TableError, match="depends on the zone"):
        open_relation(path).snapshot(strict)
    parquet.write_table(pa.table({"t": ["2024-02-30"]}), path)
    with pytest.raises(TableError, match="'t' contains a value that its schema does not declare"):
        open_relation(path).snapshot(strict)


SMALL = Schema((Column("a", "categorical", ("x", "y", "z")), Column("v", "numeric", edges=(0, 10, 20, 100))))


def people(rows=5_000, seed=0):
    rng = np.random.default_rng(seed)
    whose = rng.integers(0, rows // 4, rows)
    whose[: rows // 5] = 7
    ids = [("p" if w % 2 else "P ") + str(w // 2) for w in whose.tolist()]  # two spellings count as two people
    return pa.table({"id": ids, "a": rng.choice(["x", "y", "z"], rows), "v": rng.integers(0, 100, rows)})


def in_memory(data, key, most):
    codes = {c.name: c.encode([str(v) for v in data[c.name].to_pylist()]) for c in SMALL.columns}
    names = sorted(set(data["id"].to_pylist()))
    whose = np.array([names.index(p) for p in data["id"].to_pylist()])
    kept = kept_rows(key, names, whose, list(codes.values()), [c.size for c in SMALL.columns], most)
    return Table(SMALL, {n: c[kept] for n, c in codes.items()}, len(kept)), whose[kept]


def test_the_same_rows_are_kept_everywhere(tmp_path, postgres):
    import psycopg

    data = people()
    expected, whose = in_memory(data, "key", 3)
    assert np.bincount(whose).max() == 3
    parquet.write_table(data, tmp_path / "t.parquet")
    local = open_relation(tmp_path / "t.parquet").snapshot(SMALL, "id", 3, key="key")
    assert local_rows(local) == rows_of(expected.codes, SMALL)
    shuffled = data.take(np.random.default_rng(1).permutation(len(data)))
    with psycopg.connect(postgres, autocommit=True) as con:
        con.execute("CREATE TABLE people (id text, a text, v int)")
        with con.cursor().copy("COPY people FROM STDIN") as copy:
            for row in zip(*(shuffled[n].to_pylist() for n in shuffled.column_names), strict=True):
                copy.write_row(row)
        remote = PostgresSnapshot(open_relation(postgres, "people"), SMALL, "id", 3, "key")
        assert rows_in(remote) == rows_of(expected.codes, SMALL)
        remote.close()
        con.execute("DROP TABLE people")
    assert local_rows(open_relation(tmp_path / "t.parquet").snapshot(SMALL, "id", 3, key="other")) != local_rows(local)


def test_what_one_person_says_changes_nobody_elses_rows():
    data = people(400)
    ids = np.array(data["id"].to_pylist())
    heavy = Counter(ids.tolist()).most_common(1)[0][0]
    others = in_memory(data.filter(pa.array(ids != heavy)), "k", 2)[0]
    both = in_memory(data, "k", 2)[0]
    gone = rows_of(both.codes, SMALL)
    gone.subtract(rows_of(others.codes, SMALL))
    assert min(gone.values()) >= 0
    assert sum(gone.values()) == 2


def test_hold_out_and_total(tmp_path):
    parquet.write_table(people(), tmp_path / "t.parquet")
    snapshot = open_relation(tmp_path / "t.parquet").snapshot(SMALL, "id", 3)
    rest, held = snapshot.split(0.3)
    assert rest.rows + held.rows == snapshot.rows
    assert local_rows(rest) + local_rows(held) == local_rows(snapshot)
    assert rest.digest == held.digest == snapshot.digest
    for total in (snapshot.rows - 100, snapshot.rows + 100):
        filled = snapshot.to_total(total)
        assert filled.rows == total == filled.count(("a",)).sum()
        assert not filled.names_people
    plain = open_relation(tmp_path / "t.parquet").snapshot(SMALL)
    rest, held = plain.split(0.5, 1234)
    assert (rest.rows, held.rows) == (plain.rows - 1234, 1234)


def test_gradient_and_digest(tmp_path):
    data = people(3_000)
    parquet.write_table(data, tmp_path / "t.parquet")
    snapshot = open_relation(tmp_path / "t.parquet").snapshot(SMALL)
    table = Table.encode(read_table(tmp_path / "t.parquet"), SMALL)
    weights = {"a": np.array([[0.5, -1.0]]), "v": np.random.default_rng(0).normal(size=(3, 2))}
    assert np.array_equal(snapshot.residual_sums("a", ["v"], weights), table.residual_sums("a", ["v"], weights))
    parquet.write_table(data.take(np.arange(2_999, -1, -1)), tmp_path / "r.parquet")
    parquet.write_table(data.slice(1), tmp_path / "less.parquet")
    assert open_relation(tmp_path / "r.parquet").snapshot(SMALL).digest == snapshot.digest
    assert open_relation(tmp_path / "less.parquet").snapshot(SMALL).digest != snapshot.digest
    whole = Digest(SMALL)
    whole.add(table.codes)
    assert whole.value() == snapshot.digest


def test_a_digest_stays_what_ledgers_have_written_down():
    """It is computed row by row, as defined, no matter how the columns are joined for speed."""
    sizes = {"a": 2, "b": 40, "c": 70, "d": 3, "e": 5_000, "f": 2}
    schema = Schema(tuple(Column(n, "categorical", tuple(f"v{i}" for i in range(s))) for n, s in sizes.items()))
    rng, n = np.random.default_rng(0), (1 << 14) + 5
    codes = {name: rng.integers(0, size, n) for name, size in sizes.items()}
    digest = Digest(schema)
    digest.add(codes)
    hashes = {name: [_hash(name, f"v{i}") for i in range(size)] for name, size in sizes.items()}
    sums = [0, 0]
    for row in zip(*(codes[name].tolist() for name in sizes), strict=True):
        together = sum(hashes[name][code] for name, code in zip(sizes, row, strict=True)) % 2**64
        for i, (a, b) in enumerate(_MIXES):
            mixed = (together ^ together >> 30) * a % 2**64
            mixed = (mixed ^ mixed >> 27) * b % 2**64
            sums[i] = (sums[i] + (mixed ^ mixed >> 31)) % 2**64
    assert digest.value() == hashlib.sha256(b"%d:%d:%d" % (n, *sums)).digest()


@pytest.mark.parametrize(
    ("cells", "options", "words"),
    [
        (["x", "secret"], {}, "does not declare"),
        (["x", None], {}, "empty cells"),
        (["x", ""], {"missing": True}, None),
        (["x", "secret"], {"missing": True, "unknown": "missing"}, None),
        (["x", "?"], {"missing": True, "missing_marks": ("?",)}, None),
    ],
)
def test_a_refusal_names_the_column_and_no_value(tmp_path, cells, options, words):
    parquet.write_table(pa.table({"col": cells}), tmp_path / "t.parquet")
    schema = Schema((Column("col", "categorical", ("x",), **options),))
    if words is None:
        assert open_relation(tmp_path / "t.parquet").snapshot(schema).count(("col",)).tolist() == [1, 1]
        return
    with pytest.raises(TableError, match=words) as refused:
        open_relation(tmp_path / "t.parquet").snapshot(schema)
    assert refused.value.data["column"] == "col"
    assert "secret" not in str(refused.value)


def test_a_mark_is_an_empty_cell_of_texts_and_of_numbers(tmp_path):
    cells = {"text": ["5", "?", "-9"], "whole": [5, 6, -9], "real": [5.0, 6.0, -9.0]}
    parquet.write_table(pa.table(cells), tmp_path / "t.parquet")
    marks = {"text": ("?", "-9"), "whole": ("-9",), "real": ("-9",)}
    columns = [Column(n, "numeric", edges=(0, 10), missing=True, missing_marks=m) for n, m in marks.items()]
    snapshot = open_relation(tmp_path / "t.parquet").snapshot(Schema(tuple(columns)))
    assert [c.tolist() for c in snapshot.count_many([(n,) for n in marks])] == [[1, 2], [2, 1], [2, 1]]


def test_people_who_are_not_named_and_columns_that_are_not_there(tmp_path):
    parquet.write_table(
        pa.table({"a": ["x", "y"], "v": [1, 2], "id": ["p", ""], "w": [1.5, 2.5]}), tmp_path / "t.parquet"
    )
    relation = open_relation(tmp_path / "t.parquet")
    with pytest.raises(TableError, match="has an empty cell"):
        relation.snapshot(SMALL, "id", 1)
    with pytest.raises(TableError, match="as text or whole numbers"):
        relation.snapshot(SMALL, "w", 1)
    with pytest.raises(TableError, match="no column 'q'"):
        relation.snapshot(Schema((Column("q", "categorical", ("x",)),)))


def test_a_quote_in_one_row_of_a_csv_swallows_no_other(tmp_path, monkeypatch):
    monkeypatch.setattr("espalier.core.tables.csv_batches.BLOCK", 16)
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,v\r\n" + b"x,1\r\ny,25\r\n" * 100)
    assert open_relation(path).snapshot(SMALL).count_many([("a",), ("v",)])[1].tolist() == [100, 0, 100]
    path.write_bytes(b"a,v\n" + b"x,1\n" * 50 + b'"x,1\nz",2\n')
    with pytest.raises(TableError, match="line 52: a quote is opened but not closed in the same line"):
        open_relation(path).snapshot(SMALL)
    path.write_bytes(b"a,v\n" + b"x,1\n" * 9 + b"x\n")
    with pytest.raises(TableError, match="more or fewer cells"):
        open_relation(path).snapshot(SMALL)


def test_a_duckdb_file_with_a_loose_collation(tmp_path):
    import duckdb

    with duckdb.connect(str(tmp_path / "t.duckdb")) as con:
        con.execute("CREATE TABLE rows (a VARCHAR COLLATE NOCASE, v INT, id VARCHAR COLLATE NOCASE)")
        con.execute("INSERT INTO rows VALUES ('x', 1, 'p'), ('y', 2, 'P'), ('y', 2, 'P')")
    relation = open_relation(f"duckdb://{tmp_path / 't.duckdb'}", "rows")
    assert relation.snapshot(SMALL, "id", 1).count(("a",)).tolist() == [1, 1, 0]
    schema = Schema((Column("a", "categorical", ("X", "x", "y")),))
    assert relation.snapshot(schema).count(("a",)).tolist() == [0, 1, 2]


def test_a_server_that_does_not_answer_is_told_without_its_url():
    with pytest.raises(TableError, match="cannot open the postgresql relation 't'") as refused:
        open_relation("postgresql://me:secret@127.0.0.1:1/db", "t")
    assert "secret" not in str(refused.value)


def test_scans_can_be_cancelled(tmp_path):
    parquet.write_table(people(), tmp_path / "t.parquet")

    def cancel(*_):
        raise Cancelled("stop")

    with pytest.raises(Cancelled):
        open_relation(tmp_path / "t.parquet").snapshot(SMALL, report=cancel)


@pytest.mark.parametrize("engine", ["postgres", "pyspark"])
def test_statements_approximate_nothing_and_draw_nothing(engine):
    import ibis

    from espalier.core.tables.encoding_query import encoding
    from espalier.core.tables.postgres_statements import truncation

    table = ibis.table({"id": "string", "a": "string", "v": "int64"}, name="t")
    encoded = ibis.to_sql(encoding(table, SMALL, engine, "id"), dialect=engine)
    said = " ".join([str(encoded), *truncation(SMALL, 3, "key")]).lower()
    assert not re.search(r"approx|sample|random|uuid|hll|rand\(", said)


@pytest.mark.skipif(os.name != "posix", reason="unnamed files work differently on other systems")
def test_a_killed_process_leaves_no_codes_on_disk(tmp_path):
    parquet.write_table(people(), tmp_path / "t.parquet")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    code = textwrap.dedent(f"""
        from espalier.core.tables.relation import open_relation
        from tests.tables.test_relation import SMALL
        kept = open_relation({str(tmp_path / "t.parquet")!r}).snapshot(SMALL, "id", 3)
        print(kept.rows, flush=True)
        input()
    """)
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(scratch)},
    )
    assert int(child.stdout.readline()) > 0
    assert list(scratch.iterdir()) == []
    child.send_signal(signal.SIGKILL)
    child.wait(20)
    child.stdin.close()
    child.stdout.close()
    assert list(scratch.iterdir()) == []


def test_identifiers_in_several_chunks_keep_all_rows():
    """Arrow divides a column of more than 2 GiB of text. Previously, only its first chunk was kept."""
    from espalier.core.tables.scan import _numbered

    names, places = _numbered(pa.chunked_array([["a", "b"], ["b", "c"], [], ["é", "a"]]))
    assert [names[place] for place in places] == ["a", "b", "b", "c", "é", "a"]
    assert sorted(names) == ["a", "b", "c", "é"]
