"""Releases of tables read in place: the plan's promises hold, and no trace of the rows is left."""

from __future__ import annotations

import dataclasses
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from espalier.core import evaluation
from espalier.core.errors import Cancelled, TableError
from espalier.core.evaluation import evaluate
from espalier.core.evaluation.private.counts import HeldOutCounts
from espalier.core.evaluation.private.held_out import judged
from espalier.core.graph.roles import Roles
from espalier.core.ledger.ledger import Ledger
from espalier.core.privacy.contribution import bounded, known_rows, split
from espalier.core.privacy.unit import Unit
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.question_list import QuestionList
from espalier.core.project.schema import Column, Schema
from espalier.core.release.spend import release
from espalier.core.tables import frames
from espalier.core.tables.code_file import CodeFile
from espalier.core.tables.frames import opened, read_data
from espalier.core.tables.reading import read_table
from espalier.core.tables.relation import Relation, open_relation
from espalier.core.tables.table import Table
from espalier.core.tables.text_table import TextTable

SCHEMA = Schema(
    (
        Column("a", "categorical", ("x", "y", "z")),
        Column("v", "numeric", edges=(0, 10, 20, 100), integer=True),
        Column("b", "categorical", ("n", "m"), missing=True),
    )
)
ROWS = 4_000


def rows(seed=0):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, ROWS)
    return pa.table(
        {
            "id": [f"p{i}" for i in rng.integers(0, ROWS // 4, ROWS)],
            "a": np.array(["x", "y", "z"])[a],
            "v": np.where(a == 0, 5, rng.integers(0, 100, ROWS)),
            "b": [None if i == 7 else "nm"[i % 2] for i in rng.integers(0, 8, ROWS).tolist()],
        }
    )


@pytest.fixture
def path(tmp_path):
    parquet.write_table(rows(), tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


def project(**plan):
    return Project("far", SCHEMA, Plan("mst", 100.0, 1e-6, **plan))


def shares(codes, name):
    return np.bincount(codes[name], minlength=SCHEMA[name].size) / len(codes[name])


PLANS = [
    {},
    {"neighbors": "add-remove"},
    {"private_evaluation": 0.2, "target": "a"},
    {"private_evaluation": 0.2, "neighbors": "add-remove"},
    {"person": "id", "rows_per_person": 2, "neighbors": "add-remove"},
    {"person": "id", "rows_per_person": 2, "rows": 1_500},
    {"person": "id", "rows_per_person": 2, "rows": 9_000, "private_evaluation": 0.3, "target": "b"},
]


@pytest.mark.parametrize("plan", PLANS, ids=str)
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_release_from_a_relation_is_that_of_the_table(path, plan, kind):
    data = path
    if kind == "csv":
        data = path.with_suffix(".csv")
        csv.write_csv(parquet.read_table(path), data)
    made = release(project(**plan), open_relation(data))
    real = Table.encode(read_table(path), SCHEMA)
    if plan.get("rows") != 9_000:  # this many filler rows change the shares
        for name in SCHEMA.names:
            assert abs(shares(made.codes, name) - shares(real.codes, name)).max() < 0.05, name
    if plan.get("rows"):
        assert made.rows == plan["rows"]
    elif plan.get("neighbors") != "add-remove":
        assert made.rows == ROWS
    assert (made.private_evaluation is not None) == ("private_evaluation" in plan)


def test_every_file_of_codes_is_closed_at_the_end(path, monkeypatch):
    made = []

    class Watched(CodeFile):
        def __init__(self, sizes):
            super().__init__(sizes)
            made.append(self)

    for module in ("snapshot", "scan"):
        monkeypatch.setattr(f"espalier.core.tables.{module}.CodeFile", Watched)
    plan = {"person": "id", "rows_per_person": 2, "rows": 3_000, "private_evaluation": 0.3, "target": "a"}
    release(project(**plan), open_relation(path))
    assert len(made) > 3
    assert not any(file.close.alive for file in made)
    made.clear()

    def cancel(fraction, _):
        if fraction > 0.35:
            raise Cancelled("stop")

    with pytest.raises(Cancelled) as stopped:
        release(project(**plan), open_relation(path), cancel)
    assert stopped.value.__traceback__ is not None  # which keeps a reference to everything
    assert made
    assert not any(file.close.alive for file in made)


def test_counting_on_a_snapshot_can_be_cancelled(path):
    heard = []

    def report(_, message):
        heard.append(message)

    with opened(open_relation(path), SCHEMA, report=report) as source:
        assert source.count(("a",)).sum() == ROWS
        before = len(heard)
        source.count_many([("a",), ("v", "b")])
        assert len(heard) > before

        def cancel():
            raise Cancelled("stop")

        cast(Any, source).pulse = cancel
        with pytest.raises(Cancelled):
            source.count(("a",))


def test_a_snapshot_is_a_source_of_its_unit(path):
    relation = open_relation(path)
    plain = relation.snapshot(SCHEMA)
    assert known_rows(plain, Unit("replace-one")) == ROWS
    assert known_rows(plain, Unit("add-remove")) is None
    people = relation.snapshot(SCHEMA, "id", 2)
    assert known_rows(people, Unit("add-remove", 2)) is None
    assert known_rows(people, Unit("replace-one", 2)) is None
    with pytest.raises(TableError, match="keeps 2 of each"):
        known_rows(people, Unit("add-remove", 1))
    with pytest.raises(TableError, match="at most 1 rows"):
        bounded(people, 1)
    with pytest.raises(TableError, match="cannot be set"):
        split(people, 0.5, 10)
    filled = bounded(people, 2, 500)
    assert known_rows(filled, Unit("replace-one", 2)) == filled.rows == 500
    with pytest.raises(TableError, match="replace-one only"):
        known_rows(filled, Unit("add-remove", 2))
    with pytest.raises(TableError, match="only their bins were read"):
        plain.numbers("v")


def test_the_classifier_looks_at_held_out_rows_batch_by_batch(path):
    made = dataclasses.replace(project(private_evaluation=0.2, target="a"))
    table = Table.encode(read_table(path), SCHEMA)
    asked = HeldOutCounts.of(made)
    there = judged(asked, table, open_relation(path).snapshot(SCHEMA))
    here = judged(asked, table, table)
    asks = [(name,) for name in asked.schema.names] + asked.cliques("auc")
    for one, other in zip(there.count_many(asks), here.count_many(asks), strict=True):
        assert np.array_equal(one, other)


def test_a_ledger_knows_the_table_again_in_another_order_and_with_other_lots(path, tmp_path):
    ledger = Ledger(tmp_path / "l.db", create=True)
    plan = project(person="id", rows_per_person=1, neighbors="add-remove").with_plan(epsilon=1.0)
    for name in ("one", "two"):
        ledger.open_table(name, epsilon=5.0, delta=1e-6, neighbors="add-remove", rows_per_person=1, person="id")
    release(plan, open_relation(path), ledger=ledger.account("one", "me"))
    turned = tmp_path / "turned.parquet"
    parquet.write_table(rows().take(np.arange(ROWS - 1, -1, -1)), turned)
    with opened(open_relation(turned), SCHEMA, "id", 1) as again:
        assert any("one" in text for text in ledger.account("two", "me").warnings(again.digest))
    assert ledger.verify() == []


def test_what_is_large_is_read_where_it_is(path, tmp_path, monkeypatch):
    assert isinstance(read_data(path), TextTable)
    monkeypatch.setattr(frames, "LARGE_CELLS", 100)
    assert isinstance(read_data(path), Relation)
    plain = tmp_path / "t.csv"
    csv.write_csv(rows(), plain)
    assert isinstance(read_data(plain), TextTable)
    monkeypatch.setattr(frames, "LARGE_BYTES", 100)
    assert isinstance(read_data(plain), Relation)
    (tmp_path / "folder").mkdir()
    parquet.write_table(rows(), tmp_path / "folder" / "0.parquet")
    assert isinstance(read_data(tmp_path / "folder"), Relation)
    monkeypatch.setenv("WHERE", "postgresql://me:secret@127.0.0.1:1/db")
    with pytest.raises(TableError, match="cannot open the postgresql relation 'visits'") as refused:
        read_data("env:WHERE", "visits")
    assert "secret" not in str(refused.value)
    with pytest.raises(TableError, match="NOWHERE is not set"):
        read_data("env:NOWHERE")


@pytest.fixture
def in_postgres(postgres):
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as con:
        con.execute("CREATE TABLE far (id text, a text, v int, b text)")
        with con.cursor().copy("COPY far FROM STDIN") as copy:
            for row in rows().to_pylist():
                copy.write_row(list(row.values()))
        yield postgres
        con.execute("DROP TABLE far")


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_a_release_from_postgres(in_postgres, path, plan, tmp_path):
    ledger = Ledger(tmp_path / "l.db", create=True)
    unit = {"neighbors": "replace-one", "rows_per_person": 1, "person": None} | plan
    unit = {key: unit[key] for key in ("neighbors", "rows_per_person", "person")}
    ledger.open_table("far", epsilon=100.0, delta=1e-6, **unit)
    relation = open_relation(in_postgres, "far")
    made = release(project(**plan), relation, ledger=ledger.account("far", "me"))
    real = Table.encode(read_table(path), SCHEMA)
    if plan.get("rows") != 9_000:  # this many filler rows change the shares
        for name in SCHEMA.names:
            assert abs(shares(made.codes, name) - shares(real.codes, name)).max() < 0.05, name
    if plan.get("neighbors") != "add-remove":
        assert made.rows == plan.get("rows", ROWS)
    assert (made.private_evaluation is not None) == ("private_evaluation" in plan)
    left = "SELECT count(*) FROM pg_class WHERE relname LIKE 'espalier%' AND relnamespace = pg_my_temp_schema()"
    found = relation.backend.con.execute(left).fetchone()
    assert found == (0,)
    one, other = (opened(relation, SCHEMA, "id", 1) for _ in range(2))
    with one as first:
        digest = first.digest
    with other as second:
        assert second.digest == digest
    assert "host=" not in "".join(f.decode("utf-8", "replace") for n, f in made.files.items() if n != "model.npz")


def test_an_engine_killed_in_the_middle_leaves_a_ledger_that_is_right(in_postgres, tmp_path):
    import psycopg

    ledger = Ledger(tmp_path / "l.db", create=True)
    ledger.open_table("far", epsilon=2.0, delta=1e-6)
    relation = open_relation(in_postgres, "far")
    server_process = relation.backend.con.info.backend_pid

    def kill(_, message):
        if message == "Choosing the tree":  # the columns have been counted by then
            with psycopg.connect(in_postgres, autocommit=True) as con:
                con.execute("SELECT pg_terminate_backend(%s, 10000)", [server_process])

    plan = project().with_plan(epsilon=1.0)
    with pytest.raises(TableError, match="the engine failed while it counted"):
        release(plan, relation, kill, ledger.account("far", "me"))
    assert ledger.verify() == []
    (entry,) = ledger.population_of("far").entries
    assert entry.counted == entry.reserved > 0
    assert entry.status == "reserved", "the release can be resumed"
    with psycopg.connect(in_postgres, autocommit=True) as con:
        left = "SELECT count(*) FROM pg_class WHERE relname LIKE 'espalier%' AND relpersistence = 't'"
        assert con.execute(left).fetchone() == (0,)  # a ledger may be in the same database


def test_a_writer_that_commits_during_a_release_changes_nothing(in_postgres, path):
    """A writer commits while the single statement runs and before each later step; its rows, all z, are never read."""
    import psycopg

    heard, during = set(), []
    with psycopg.connect(in_postgres, autocommit=True) as con:
        con.execute("CREATE VIEW slow AS SELECT far.* FROM far, (SELECT pg_sleep(1)) AS late")

        def write(_, message):
            reading = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'CREATE TEMP TABLE%' AND state = 'active'"
            if message == "Reading the table":
                if during or not con.execute(reading).fetchone()[0]:
                    return
                during.append(message)
            elif message in heard:
                return
            heard.add(message)
            con.execute("INSERT INTO far SELECT 'new', 'z', 99, 'm' FROM generate_series(1, 1000)")

        made = release(project(), open_relation(in_postgres, "slow"), write)
        assert during
        assert len(heard) > 5
        assert con.execute("SELECT count(*) FROM far").fetchone()[0] >= ROWS + 1000 * len(heard)
        con.execute("DROP VIEW slow")
    assert made.rows == ROWS
    real = Table.encode(read_table(path), SCHEMA)
    for name in SCHEMA.names:
        assert abs(shares(made.codes, name) - shares(real.codes, name)).max() < 0.05, name


@pytest.mark.parametrize("kind", ["parquet", "csv", "folder"])
def test_a_file_that_is_replaced_while_it_is_read_is_refused_before_anything_is_spent(path, kind, tmp_path):
    data, other = path, tmp_path / "other"
    if kind == "csv":
        data = path.with_suffix(".csv")
        csv.write_csv(rows(), data)
        csv.write_csv(rows(1), other)
    else:
        parquet.write_table(rows(1), other)
    file = data
    if kind == "folder":
        data = tmp_path / "folder"
        data.mkdir()
        parquet.write_table(rows(), data / "0.parquet")
        file = data / "1.parquet"
    ledger = Ledger(tmp_path / "l.db", create=True)
    ledger.open_table("far", epsilon=2.0, delta=1e-6)
    plan = project().with_plan(epsilon=1.0)

    def replaced(_, message):
        if message == "Reading the table" and other.exists():
            other.replace(file)

    with pytest.raises(TableError, match="changed (while it was being read; start|after it was opened; open it) again"):
        release(plan, open_relation(data), replaced, ledger.account("far", "me"))
    assert ledger.population_of("far").entries == ()
    assert ledger.verify() == []
    made = release(plan, open_relation(data), ledger=ledger.account("far", "me"))
    assert made.rows == (2 * ROWS if kind == "folder" else ROWS)


def far_and_here(data, path, **plan):
    """(result of evaluate for a relation, its result for the same table in memory, the release)."""
    asked = QuestionList(({"name": "q", "where": {"a": ["x"]}},), ({"name": "c", "of": {"a": ["x"], "b": ["n"]}},))
    roles = Roles(outcome=("a",), protected=("b",))
    made = dataclasses.replace(project(**plan), roles=roles, question_list=asked)
    here = Table.encode(read_table(path), SCHEMA)
    out = release(dataclasses.replace(made, question_list=QuestionList()), here)
    with opened(data, SCHEMA) as source:
        there = evaluate(made, source, out.synthetic)
    return there, evaluate(made, here, out.synthetic)


def test_diagnostics_of_a_table_that_is_read_where_it_is(path, monkeypatch):
    there, here = far_and_here(open_relation(path), path, target="a")
    assert there.drawn == ROWS
    assert there.fidelity == here.fidelity
    assert there.asked == here.asked
    assert there.utility.auc_synthetic == pytest.approx(here.utility.auc_synthetic, abs=1e-9)
    assert there.fairness is not None
    assert there.fairness.cmi_real == pytest.approx(here.fairness.cmi_real)
    assert "in bins; to compare numbers, release from a file with fewer rows" in there.reasons["numbers"]
    monkeypatch.setattr(evaluation, "MOST_ROWS", 500)
    some, _ = far_and_here(open_relation(path), path, target="a")
    assert some.drawn == some.utility.tested_rows == some.to_json()["random_rows"] == 500
    assert some.asked.questions[0].real == here.asked.questions[0].real  # of all rows


def test_diagnostics_of_postgres_are_made_of_counts(in_postgres, path):
    there, here = far_and_here(open_relation(in_postgres, "far"), path, target="a")
    assert there.fidelity == here.fidelity
    assert there.asked == here.asked
    assert there.fairness is None
    assert there.utility.auc_real is None
    assert "the rows of a database stay in the database" in there.to_json()["tstr"]["auc_real_reason"]
    assert "the rows of a database stay in the database" in there.to_json()["fairness_reason"]
