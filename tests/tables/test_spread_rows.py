"""Rows for a guess are spread over a table and need few reads; on request, one scan finds every value."""

from __future__ import annotations

import gzip
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from espalier.core.cli.main import main
from espalier.core.errors import TableError
from espalier.core.tables import csv_batches, parquet_files, spread_rows
from espalier.core.tables.relation import Relation, open_relation

ROWS = 60_000
TABLE = pa.table(
    {
        "part": [f"part {i // 6_000}" for i in range(ROWS)],
        "rare": ["once" if i == 47_123 else "often" for i in range(ROWS)],
        "number": list(range(ROWS)),
    }
)
PARTS = {f"part {i}" for i in range(10)}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_files, "PLACE_ROWS", 500)
    monkeypatch.setattr(csv_batches, "PLACE_ROWS", 500)
    monkeypatch.setattr(csv_batches, "PIECE", 1 << 12)
    monkeypatch.setattr(csv_batches, "BLOCK", 1 << 16)
    monkeypatch.setattr(spread_rows, "KEPT", 100)


def opened(kind: str, folder: Path) -> Relation:
    if kind == "csv":
        csv.write_csv(TABLE, folder / "t.csv")
        return open_relation(folder / "t.csv")
    if kind == "gzip":
        csv.write_csv(TABLE, folder / "t.csv")
        (folder / "t.csv.gz").write_bytes(gzip.compress((folder / "t.csv").read_bytes()))
        return open_relation(folder / "t.csv.gz")
    if kind == "sqlite":
        with closing(sqlite3.connect(folder / "t.db")) as con, con:
            con.execute("CREATE TABLE t (part TEXT, rare TEXT, number INTEGER)")
            con.executemany("INSERT INTO t VALUES (?, ?, ?)", zip(*TABLE.to_pydict().values(), strict=True))
        return open_relation(f"sqlite://{folder}/t.db", "t")
    if kind == "folder":
        (folder / "t").mkdir()
        for i in range(3):
            parquet.write_table(TABLE.slice(i * ROWS // 3, ROWS // 3), folder / "t" / f"{i}.parquet")
        return open_relation(folder / "t")
    parquet.write_table(TABLE, folder / "t.parquet", row_group_size=7_000)
    return open_relation(folder / "t.parquet")


@pytest.mark.parametrize("kind", ["csv", "gzip", "parquet", "folder", "sqlite"])
def test_a_sample_is_bounded_and_from_all_over_the_table(kind: str, tmp_path: Path) -> None:
    with closing(opened(kind, tmp_path)) as relation:
        found = relation.sample(1_000)
        assert 800 < found.rows < 1_200
        assert set(found.columns["part"].values) == PARTS
        whole = relation.sample(1_000, every_value=True)
        assert set(whole.columns["rare"].values) == {"often", "once"}
        numbers = {int(x) for x in whole.columns["number"].values}
        assert {0, ROWS - 1} <= numbers
        assert whole.rows < 4_000
        assert set(relation.first(8).columns["part"].values) == {"part 0"}


def test_the_reader_in_postgres_samples_too(postgres: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres, autocommit=True) as con:
        con.execute("CREATE TABLE spread AS SELECT 'part ' || i / 2000 AS part, i FROM generate_series(0, 19999) i")
        try:
            with closing(open_relation(postgres, "spread")) as relation:
                found = relation.sample(1_000)
                assert 700 < found.rows < 1_300
                assert set(found.columns["part"].values) == PARTS
                whole = relation.sample(1_000, every_value=True)
                assert {"0", "19999"} <= set(whole.columns["i"].values)
        finally:
            con.execute("DROP TABLE spread")


def test_a_broken_line_names_no_line_that_is_not_known(tmp_path: Path) -> None:
    lines = ["a,b", *("x,y" for _ in range(60_000))]
    lines[30_000:40_000] = ["x" for _ in range(10_000)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    with closing(open_relation(tmp_path / "t.csv")) as relation, pytest.raises(TableError) as error:
        relation.sample()
    assert not re.search(r"line [0-9]", str(error.value))


def test_lines_longer_than_a_place_are_sampled_from_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Previously, a table with no whole line at any of the places was reported to have no rows."""
    monkeypatch.setattr(csv_batches, "PIECE", 1 << 6)
    (tmp_path / "t.csv").write_text("a,b\n" + f"x,{'y' * 200}\n" * 50)
    with closing(open_relation(tmp_path / "t.csv")) as relation:
        assert relation.sample().rows == 50


def test_init_reads_every_row_with_consent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("espalier.core.tables.frames.LARGE_BYTES", 10)
    csv.write_csv(TABLE, tmp_path / "t.csv")
    given = ["init", str(tmp_path / "t.csv"), "--one-row-per-person", "--out", str(tmp_path / "p.json")]
    assert main([*given, "--every-row"]) == 0
    assert '"once"' in (tmp_path / "p.json").read_text()
    assert "spread over the table" not in capsys.readouterr().err
    monkeypatch.undo()
    (tmp_path / "p.json").unlink()
    assert main([*given, "--every-row"]) == 0, "every row of a small file is read anyway"
