"""Large linked tables, read in batches from Parquet, CSV and databases: the same panel as from tables in memory."""

from __future__ import annotations

import datetime as dt
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from espalier.core.errors import TableError
from espalier.core.project.column_types import Dates
from espalier.core.project.dates import DateBins
from espalier.core.project.linked import Linked
from espalier.core.project.schema import Column, Schema
from espalier.core.tables import csv_batches, parquet_files, stream
from espalier.core.tables import narrow_text as narrow_module
from espalier.core.tables.frames import panel, read_data
from espalier.core.tables.narrow_text import narrow_text
from espalier.core.tables.panel import Panel
from espalier.core.tables.reading import read_table
from espalier.core.tables.relation import open_relation

PEOPLE = Column("people.a", "categorical", ("n", "y"))
VALUE = Column("visits.x", "categorical", tuple("pqrs"))
LINK = Linked("people", "visits", "id", "id", "at", 3, "key")
SCHEMA = LINK.completed(Schema((PEOPLE, VALUE)))
DATED = Linked("people", "visits", "id", "id", "day", 3, "key", gap=(0, 7, 30))
DAYS = Dates.of("visits.day", DateBins.from_json({"from": "2020-01-01", "to": "2020-12-31", "by": "month"}))
DATED_SCHEMA = DATED.completed(Schema((PEOPLE, replace(DAYS, missing=True), VALUE)))
TOGETHER = Linked("people", "visits", "id", "id", "at", 3, "key", together=True)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every reader hand over a few rows at a time."""
    for module in (parquet_files, stream):
        monkeypatch.setattr(module, "BATCH_ROWS", 7)
    monkeypatch.setattr(parquet_files._batches, "__defaults__", (7,))
    monkeypatch.setattr(csv_batches, "BLOCK", 64)


def made(rng: np.random.Generator, people: int = 20, visits: int = 100) -> tuple[pa.Table, pa.Table]:
    """Return people, some with no visit or two rows, and visits with ties, empty cells and people in no table."""
    whose = rng.permutation([*range(people), 0, 1])
    parents = pa.table({"id": [f"p{i}" for i in whose], "a": rng.choice(["n", "y"], len(whose)).tolist()})
    at = [None if i % 9 == 0 else int(rng.integers(-3, 12)) for i in range(visits)]
    days = [None if i % 8 == 0 else dt.date(2020, 1, 1) + dt.timedelta(int(rng.integers(300))) for i in range(visits)]
    x = rng.choice(list("pqrs"), visits).tolist()
    who = rng.integers(2, people + 3, visits)
    children = {"id": [f"p{i}" for i in who], "at": pa.array(at, pa.int32()), "day": pa.array(days, pa.date32())}
    key = pa.array([None if i % 5 == 0 else int(rng.integers(6)) for i in range(visits)], pa.int64())
    more = {"key": key, "x": x, "a": rng.choice(["n", "y"], visits).tolist(), "unread": ["é"] * visits}
    return parents, pa.table(children | more)


def told(of: Panel) -> list[Any]:
    """Return each person with all codes. The order of people does not matter."""
    names, numbers = of.schema.names, of.steps.numbers
    rows = [tuple(int(of.codes[n][i]) for n in names) for i in range(of.rows)]
    later = [tuple(v[i, : numbers[i]].tolist() for v in of.visits.values()) for i in range(of.rows)]
    return sorted(zip(rows, later, strict=True))


def as_parquet(folder: Path, tables: tuple[pa.Table, ...]) -> list[str]:
    for name, table in zip(("people", "visits"), tables, strict=True):
        parquet.write_table(table, folder / f"{name}.parquet")
    return [str(folder / f"{name}.parquet") for name in ("people", "visits")]


@pytest.mark.parametrize(
    ("link", "schema"),
    [(LINK, SCHEMA), (DATED, DATED_SCHEMA), (TOGETHER, SCHEMA)],
)
def test_parquet_in_batches_gives_the_panel_of_the_table_in_memory(link, schema, tmp_path):
    for seed in range(5):
        tables = made(np.random.default_rng(seed))
        paths = as_parquet(tmp_path, tables)[1 if link.together else 0 :]
        whole = panel(link, schema, [read_table(path) for path in paths])
        streamed = panel(link, schema, [open_relation(path) for path in paths])
        assert told(streamed) == told(whole)
        for column in link.step_columns(schema):
            pair = (column + "@before", column)
            assert (streamed.step_counts([pair])[0] == whole.step_counts([pair])[0]).all()


def test_csv_in_batches_gives_the_panel_of_the_file_in_memory(tmp_path):
    for name, table in zip(("people", "visits"), made(np.random.default_rng(1)), strict=True):
        csv.write_csv(table, tmp_path / f"{name}.csv")
    paths = [tmp_path / "people.csv", tmp_path / "visits.csv"]
    whole = panel(DATED, DATED_SCHEMA, [read_table(path) for path in paths])
    assert told(panel(DATED, DATED_SCHEMA, [open_relation(path) for path in paths])) == told(whole)


def in_duckdb(folder: Path, tables: tuple[pa.Table, ...], request: pytest.FixtureRequest) -> str:  # noqa: ARG001
    with duckdb.connect(str(folder / "both.duckdb")) as con:
        for name, table in zip(("people", "visits"), tables, strict=True):
            con.register("given", table)
            con.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
    return f"duckdb://{folder}/both.duckdb"


def in_sqlite(folder: Path, tables: tuple[pa.Table, ...], request: pytest.FixtureRequest) -> str:  # noqa: ARG001
    con = sqlite3.connect(folder / "both.sqlite")
    for name, table in zip(("people", "visits"), tables, strict=True):
        _fill(con.cursor(), name, table, "?", {"int32": "INTEGER", "int64": "INTEGER"})
    con.commit()
    con.close()
    return f"sqlite://{folder}/both.sqlite"


def in_postgres(folder: Path, tables: tuple[pa.Table, ...], request: pytest.FixtureRequest) -> str:  # noqa: ARG001
    psycopg = pytest.importorskip("psycopg")
    postgres: str = request.getfixturevalue("postgres")
    with psycopg.connect(postgres, autocommit=True) as con:
        for name, table in zip(("people", "visits"), tables, strict=True):
            con.execute(f"DROP TABLE IF EXISTS {name}")
            _fill(con.cursor(), name, table, "%s", {"int32": "int4", "int64": "int8", "date32[day]": "date"})
    request.addfinalizer(lambda: _dropped(postgres))
    return postgres


def _dropped(postgres: str) -> None:
    """Drop the tables, because other tests have tables of these names."""
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as con:
        con.execute("DROP TABLE IF EXISTS people, visits")


def _fill(cursor: Any, name: str, table: pa.Table, mark: str, types: dict[str, str]) -> None:
    columns = ", ".join(f"{field.name} {types.get(str(field.type), 'text')}" for field in table.schema)
    cursor.execute(f"CREATE TABLE {name} ({columns})")
    rows = [tuple(str(c) if isinstance(c, dt.date) else c for c in row.values()) for row in table.to_pylist()]
    cursor.executemany(f"INSERT INTO {name} VALUES ({', '.join([mark] * table.num_columns)})", rows)


@pytest.mark.parametrize("stored", [in_duckdb, in_sqlite, in_postgres])
@pytest.mark.parametrize(("link", "schema"), [(LINK, SCHEMA), (DATED, DATED_SCHEMA)])
def test_a_database_gives_the_panel_of_the_files(stored, link, schema, tmp_path, request):
    tables = made(np.random.default_rng(2))
    url = stored(tmp_path, tables, request)
    whole = panel(link, schema, [read_table(path) for path in as_parquet(tmp_path, tables)])
    assert told(panel(link, schema, [read_data(url, name) for name in ("people", "visits")])) == told(whole)


def test_the_order_of_rows_never_matters(tmp_path):
    rng = np.random.default_rng(3)
    people, visits = made(rng)
    known = told(panel(LINK, SCHEMA, [open_relation(path) for path in as_parquet(tmp_path, (people, visits))]))
    for _ in range(5):
        mixed = people.take(rng.permutation(len(people))), visits.take(rng.permutation(len(visits)))
        assert told(panel(LINK, SCHEMA, [open_relation(path) for path in as_parquet(tmp_path, mixed)])) == known


def test_a_whole_number_that_only_orders_needs_no_text_and_empty_cells_come_last(tmp_path):
    largest = 2**63 - 1
    numbers = pa.array([3, None, -(2**63), largest, 3], pa.int64())
    parquet.write_table(pa.table({"id": list("abcde"), "at": numbers}), tmp_path / "x.parquet")
    text, ranks = narrow_text(open_relation(tmp_path / "x.parquet"), ["id"], ["at"])
    assert list(text.columns) == ["id"]
    assert ranks["at"].tolist() == [2, 4, 0, 3, 2]  # 1 is the rank of 0, with which an empty cell was filled
    text, ranks = narrow_text(open_relation(tmp_path / "x.parquet"), ["id", "at"], ["at"])
    assert not ranks
    assert set(text.columns["at"].values) == {"3", "", str(-(2**63)), str(largest)}


def test_identifiers_that_may_be_two_people_are_refused_in_any_batch(tmp_path):
    people, visits = made(np.random.default_rng(4))
    numbers = pa.array([*range(len(people) - 1), 2.0**60])
    paths = as_parquet(tmp_path, (people.set_column(0, "id", numbers), visits))
    with pytest.raises(TableError, match="one identifier may denote two people"):
        panel(LINK, SCHEMA, [open_relation(path) for path in paths])


def test_a_missing_column_an_undeclared_value_and_an_empty_identifier_are_refused(tmp_path):
    people, visits = made(np.random.default_rng(5))
    lost = as_parquet(tmp_path, (people, visits.drop_columns(["at"])))
    with pytest.raises(TableError, match="there is no column 'at'"):
        panel(LINK, SCHEMA, [open_relation(path) for path in lost])
    odd = pa.array(["z", *visits["x"].to_pylist()[1:]])
    paths = as_parquet(tmp_path, (people, visits.set_column(4, "x", odd)))
    with pytest.raises(TableError, match="'visits.x'"):
        panel(LINK, SCHEMA, [open_relation(path) for path in paths])
    nobody = pa.array([*visits["id"].to_pylist()[:-1], None])
    paths = as_parquet(tmp_path, (people, visits.set_column(0, "id", nobody)))
    with pytest.raises(TableError, match="in data row 100"):
        panel(LINK, SCHEMA, [open_relation(path) for path in paths])


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch):
    path = as_parquet(tmp_path, made(np.random.default_rng(6)))[1]
    relation, states = open_relation(path), iter([[(1, 1, 1)], [(1, 1, 2)]])
    monkeypatch.setattr(narrow_module, "state_of", lambda files: next(states))
    with pytest.raises(TableError, match="changed while it was being read"):
        narrow_text(relation, ["id"])


def test_a_value_without_a_text_is_refused_without_a_row_that_counts_from_its_batch(tmp_path):
    days = pa.array([0] * 99 + [2**45], pa.timestamp("s"))
    parquet.write_table(pa.table({"id": ["a"] * 100, "at": days}), tmp_path / "x.parquet")
    with pytest.raises(TableError, match="column 'at' contains a value that cannot be written as text") as refused:
        narrow_text(open_relation(tmp_path / "x.parquet"), ["id"], ["at"])
    assert "row" not in str(refused.value)
