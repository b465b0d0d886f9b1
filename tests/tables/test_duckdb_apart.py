"""DuckDB reads files in another process: damaged files, crashes, and files that change."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import time
from pathlib import Path

import duckdb
import numpy as np
import pytest

from espalier.core.errors import TableError
from espalier.core.project.schema import Column, Schema
from espalier.core.tables import duckdb_apart
from espalier.core.tables.relation import open_relation

SCHEMA = Schema((Column("s", "categorical", ("v0", "v1", "v2")), Column("i", "numeric", edges=(0.0, 50.0, 1000.0))))
ROWS = """
SELECT i::INTEGER AS i, 'v' || (i % 3) AS s, i * 0.37 AS f, 'text number ' || hash(i) AS l, i % 3 = 0 AS b,
DATE '2020-01-01' + (i % 300)::INTEGER AS d, TIMESTAMP '2020-01-01' + INTERVAL (i) SECOND AS ts,
i::DECIMAL(9, 2) AS dec, i::HUGEINT * 1000000007 AS h, CASE WHEN i % 11 > 0 THEN i::SMALLINT END AS n,
(CASE i % 2 WHEN 0 THEN 'a' ELSE 'b' END)::ENUM('a', 'b') AS e, uuid() AS u
FROM range(1000) AS t(i)
"""


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    path = tmp_path_factory.mktemp("duckdb") / "base.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute(f"CREATE TABLE t AS {ROWS}")
    return path


def repaired(data: bytearray) -> bytes:
    """Return ``data`` with the checksums of DuckDB's three headers and of its blocks made again."""
    blocks = [(0, 4096), (4096, 4096), (8192, 4096), *((at, 1 << 18) for at in range(12288, len(data), 1 << 18))]
    for at, size in blocks:
        if at + size <= len(data):
            words = np.frombuffer(bytes(data[at + 8 : at + size]), "<u8")
            found = int(np.bitwise_xor.reduce(words * np.uint64(0xBF58476D1CE4E5B9))) ^ 5381
            data[at : at + 8] = found.to_bytes(8, "little")
    return bytes(data)


def read(path):
    """Read all rows; return their number or the refusal."""
    try:
        relation = open_relation(f"duckdb://{path}", "t")
        try:
            return relation.snapshot(SCHEMA).rows
        finally:
            relation.close()
    except TableError as error:
        return str(error)


def test_the_checksums_are_duckdb_s(base):
    assert repaired(bytearray(base.read_bytes())) == base.read_bytes()
    assert read(base) == 1000


@pytest.mark.parametrize(
    "seed", [range(12), pytest.param(range(12, 500), marks=pytest.mark.nightly)], ids=["few", "many"]
)
def test_damaged_files_end_in_rows_or_a_message(base, tmp_path, seed):
    """Checksums are recomputed, as the author of a file can do."""
    whole, found = base.read_bytes(), []
    used = [at for at, byte in enumerate(whole) if byte]
    names = next(at for at in range(len(whole)) if whole.startswith(b"DECIMAL", at) or whole.startswith(b"main", at))
    catalogue = [at for at in used if abs(at - names) < 3000]
    for number in seed:
        rng, data = random.Random(number), bytearray(whole)
        for _ in range(rng.choice([1, 2, 4])):
            data[rng.choice(rng.choice([used, catalogue]))] = rng.choice([0, 1, 127, 128, 255])
        cut = rng.randrange(len(data)) if number % 6 == 0 else len(data)
        path = tmp_path / f"{number}.duckdb"
        path.write_bytes(repaired(data)[:cut])
        found.append(read(path))
        path.unlink()
    assert any(isinstance(one, str) for one in found)
    assert all(one == 1000 or (isinstance(one, str) and len(one) < 400) for one in found)


CRASHING = """
import os, signal, duckdb
from espalier.core.tables import duckdb_apart
connect = duckdb.connect
def ends(path, **named):
    with open(path + ".asked", "a") as asked:
        if asked.tell() == {answers}:
            os.kill(os.getpid(), signal.SIGSEGV)
        asked.write("x")
    return connect(path, **named)
duckdb.connect = ends
duckdb_apart.serve()
"""
"""A DuckDB that ends its process at the query after this number of answers."""


@pytest.mark.parametrize("answers", [0, 1], ids=["while it opens", "while it reads"])
def test_a_crash_is_a_message(base, tmp_path, monkeypatch, answers):
    """Previously, a crash ended this process, and with it all other sessions on a server."""
    path, server = shutil.copy(base, tmp_path / "t.duckdb"), duckdb_apart._Server()
    monkeypatch.setattr(duckdb_apart, "_PROGRAM", CRASHING.format(answers=answers))
    monkeypatch.setattr(duckdb_apart, "_server", server)
    assert "DuckDB crashed while it read the file" in read(path)
    server.end()


def test_a_program_that_was_ended_is_started_again(base):
    assert read(base) == 1000
    duckdb_apart._server._process.kill()
    duckdb_apart._server._process.wait()
    assert read(base) == 1000


def test_a_file_that_is_replaced_after_it_was_opened_is_refused(base, tmp_path):
    """Previously, the rows could come from a view, although the release described a table."""
    path = tmp_path / "t.duckdb"
    shutil.copy(base, path)
    relation = open_relation(f"duckdb://{path}", "t")
    with duckdb.connect(str(tmp_path / "other.duckdb")) as con:
        con.execute(f"CREATE TABLE x AS {ROWS}; CREATE VIEW t AS SELECT * FROM x")
    os.replace(tmp_path / "other.duckdb", path)
    with pytest.raises(TableError, match="was changed after it was opened"):
        relation.snapshot(SCHEMA)
    relation.close()


def test_a_stream_that_is_cut_off_is_never_the_whole(base, monkeypatch):
    """A child process that reports the end of its answer must have sent all of it."""
    stream, end = (os.pipe() for _ in range(2))
    os.write(stream[1], b"no stream")
    os.write(end[1], duckdb_apart.WHOLE)
    for _, write in (stream, end):
        os.close(write)
    monkeypatch.setattr(
        duckdb_apart._server, "ask", lambda question: (os.fdopen(stream[0], "rb"), os.fdopen(end[0], "rb"))
    )
    with pytest.raises(TableError, match="crashed"):
        list(duckdb_apart.answered(base, ["SELECT 1"], 10))


@pytest.mark.parametrize("scheme", ["duckdb", "sqlite"])
def test_a_pipe_is_not_waited_for(tmp_path, scheme):
    """Previously, the command never ended."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TableError, match="a pipe or a device"):
        open_relation(f"{scheme}://{tmp_path}/pipe", "t")


def test_no_extension_is_fetched_for_a_file_or_a_name(tmp_path):
    """Previously, DuckDB tried to fetch and load an extension, with which it would have read the rows."""
    with sqlite3.connect(tmp_path / "t.duckdb") as con:
        con.execute("CREATE TABLE t (a TEXT)")
    con.close()
    with pytest.raises(TableError, match="is not a DuckDB database"):
        open_relation(f"duckdb://{tmp_path}/t.duckdb", "t")
    for name in ("md:x", ":memory:", "s3://bucket/x.duckdb"):
        with pytest.raises(TableError, match="there is no such file"):
            open_relation(f"duckdb://{name}", "t")


def test_a_query_ends_with_the_one_who_asked(base):
    """Previously, a query continued unnoticed in another process after its release was cancelled or its program had
    ended."""
    endless = "SELECT i FROM range(1000000000000) AS t(i) WHERE i < 2048 OR hash(i) = 1"
    rows = duckdb_apart.answered(base, [endless], 2048)
    assert next(rows).num_rows
    server = duckdb_apart._server._process.pid
    children = Path(f"/proc/{server}/task/{server}/children")
    if not children.parent.exists():
        pytest.skip("this system does not list the children of a process")
    assert children.read_text()
    rows.close()
    for _ in range(100):
        if not children.read_text():
            return
        time.sleep(0.1)
    raise AssertionError("the process still runs")
