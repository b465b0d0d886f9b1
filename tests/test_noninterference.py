"""Noninterference: with the same noisy answers, two unrelated tables leave the same traces at every entry point.

Under replace-one the tables have the same number of rows, which is public. Under add-remove the numbers of rows differ.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from espalier.core.cli.main import main
from espalier.core.errors import SchemaError
from espalier.core.ledger.ledger import Ledger
from espalier.core.methods import METHODS
from espalier.core.privacy import mechanisms
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.project.file import Project
from espalier.core.project.schema import Schema
from espalier.core.release import run as release_run
from espalier.core.release.spend import release
from espalier.core.tables import frames
from espalier.core.tables.table import Table
from tests.methods.test_contract import ASKED, CASES, SCHEMA, project
from tests.support.noninterference import Outside, in_memory, on_command_line

ROWS = {"replace-one": (300, 300), "add-remove": (300, 211)}
FURTHER = {
    "fpt-mw": {"method": "fpt-mw", "question_list": ASKED, "epsilon": 2.0},
    "fpt-lp, pure": {"method": "fpt-lp", "question_list": ASKED, "accounting": "pure", "delta": None},
    "fpt-mw, pure": {"method": "fpt-mw", "question_list": ASKED, "accounting": "pure", "delta": None, "one_way": 0.2},
    "held out": {"method": "mst", "private_evaluation": 0.3},
    "with copies": {"method": "independent", "copies": 2},
    "with the drawing tested": {"method": "independent", "test_drawing": 0.2},
    "merged": {"method": "workload", "compress": True, "epsilon": 0.1},
}
MEMORY = {**CASES, **FURTHER}


def rows(seed: int, n: int) -> dict[str, np.ndarray]:
    """Return codes of a table; a different seed gives an unrelated table, in which column `s` is constant."""
    rng = np.random.default_rng(seed)
    codes = {}
    for column in SCHEMA.columns:
        odds = rng.dirichlet(np.full(column.size, 0.4))
        codes[column.name] = rng.choice(column.size, n, p=odds).astype(np.uint8)
    if seed % 2:
        codes["s"][:] = 0
    return codes


def compared(run: Callable[[int, int], Outside], neighbors: str) -> Outside:
    """Check that a run shows the same for two unrelated tables, and return it."""
    first, second = (run(seed, n) for seed, n in zip((1, 2), ROWS[neighbors], strict=True))
    assert first.difference(second) == ""
    return first


def of_table(case: dict, neighbors: str) -> Callable[[int, int], Outside]:
    def run(seed: int, n: int) -> Outside:
        table = Table(SCHEMA, rows(seed, n), n)
        return in_memory(lambda report: release(project(neighbors=neighbors, **case), table, report))

    return run


@pytest.mark.parametrize("neighbors", ROWS)
@pytest.mark.parametrize("name", MEMORY)
def test_in_memory(name, neighbors):
    """All methods, with their options."""
    shown = compared(of_table(MEMORY[name], neighbors), neighbors)
    assert shown.requests or shown.error
    if shown.error:  # refused before the first draw, for a public reason
        assert not shown.requests, shown.error


def test_few_of_the_cases_are_refused():
    """A refused case shows little, so nearly all cases must run to completion."""
    refused = [name for name in MEMORY if of_table(MEMORY[name], "add-remove")(1, 50).error]
    assert len(refused) <= 3, refused


@pytest.mark.parametrize("neighbors", ROWS)
@pytest.mark.parametrize("name", [m for m in METHODS if METHODS[m].capabilities.numbers])
def test_methods_on_numbers(name, neighbors):
    """Methods that read numbers, on the table of their own tests."""
    from tests.models.copula.test_fit import project as of_numbers
    from tests.models.copula.test_fit import table as numbers

    def run(seed: int, n: int) -> Outside:
        made = numbers(2 * n)
        order = np.random.default_rng(seed).permutation(2 * n)[:n]
        if seed == 2:
            order = np.repeat(order[: n // 4 + 1], 4)[:n]
        plan = of_numbers().with_plan(method=name, neighbors=neighbors, rows=n if neighbors == "replace-one" else None)
        return in_memory(lambda report: release(plan, made.take(order), report))

    shown = compared(run, neighbors)
    assert shown.requests or shown.error


@pytest.mark.parametrize("neighbors", ROWS)
def test_linked_tables(neighbors):
    """Two unrelated pairs of tables, with different visits and numbers of visits."""
    from tests.methods.test_linked_method import panel_of, project_of

    declared = {"neighbors": neighbors, "epsilon": 1.0, "rows": 300 if neighbors == "replace-one" else None}

    def run(seed: int, n: int) -> Outside:
        plan = project_of(plan=declared)
        return in_memory(lambda report: release(plan, panel_of(plan, n, seed), report))

    shown = compared(run, neighbors)
    assert shown.requests
    assert not shown.error


def linked_tables(seed: int, n: int) -> dict[str, pd.DataFrame]:
    """Return people and their visits as cells; a different seed gives other visits, and people without any."""
    rng = np.random.default_rng(seed)
    whose = np.sort(rng.integers(0, n if seed % 2 else n // 3, 2 * n))
    people = {"id": [f"P{i}" for i in range(n)], "age": rng.choice(list("pqr"), n), "region": rng.choice(list("pq"), n)}
    visits = {"id": [f"P{i}" for i in whose], "at": rng.integers(0, 90, 2 * n)}
    visits |= {name: rng.choice(list("pqr" if seed % 2 else "qr"), 2 * n) for name in ("x", "y")}
    return {"people": pd.DataFrame(people), "visits": pd.DataFrame(visits)}


def linked_sqlite(tables, place):
    with sqlite3.connect(place / "t.sqlite") as connection:
        for name, table in tables.items():
            table.to_sql(name, connection, index=False)
    return [f"sqlite://{place / 't.sqlite'}"]


def linked_duckdb(tables, place):
    import duckdb as engine

    with engine.connect(str(place / "t.duckdb")) as connection:
        for name, table in tables.items():
            connection.register("given", table)
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
    return [f"duckdb://{place / 't.duckdb'}"]


def linked_parquet(tables, place):
    for name, table in tables.items():
        table.to_parquet(place / f"{name}.parquet", index=False)
    return [str(place / f"{name}.parquet") for name in tables]


LINKED = [linked_sqlite, *(pytest.param(one, marks=pytest.mark.nightly) for one in (linked_duckdb, linked_parquet))]
"""Databases and files with two tables; each commit tests only one of these."""


@pytest.mark.parametrize("neighbors", ["add-remove", pytest.param("replace-one", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("stored", LINKED)
def test_linked_tables_on_the_command_line(stored, neighbors, tmp_path, capsys, monkeypatch):
    """Large linked tables are read in batches, as text; a database holds both tables."""
    from tests.methods.test_linked_method import project_of

    monkeypatch.setattr(frames, "LARGE_BYTES", 1)
    plan = project_of(plan={"neighbors": neighbors, "rows": 300 if neighbors == "replace-one" else None})

    def run(seed: int, n: int) -> Outside:
        place = tmp_path / f"run-{seed}"
        place.mkdir()
        (place / "p.json").write_text(plan.dumps())
        where = stored(linked_tables(seed, n), place)
        line = ["release", str(place / "p.json"), "--data", *where, "--out", str(place / "out")]
        capsys.readouterr()
        return on_command_line(lambda: main(line), place / "out", place, capsys.readouterr, None)

    shown = compared(run, neighbors)
    assert shown.status == 0, shown.said
    assert len(shown.files) >= 6


def texts(seed: int, n: int) -> dict[str, list[str]]:
    """Return the rows as cells, with spellings of their own, and a person who may have many rows."""
    rng = np.random.default_rng(seed)
    codes = rows(seed, n)
    cells = {c.name: c.decode(codes[c.name], rng) for c in SCHEMA.columns}
    if seed % 2:
        cells["p"] = [("n", "something else", "", " e ")[i % 4] for i in range(n)]
    people = rng.integers(0, n if seed % 2 else 5, n)
    return {"pid": [f"P{i}" for i in people], **cells}


def of_texts(**plan) -> Project:
    """Return the project over tables of text: what is not declared in ``p`` is a missing cell."""
    columns = tuple(replace(c, unknown="missing") if c.name == "p" else c for c in SCHEMA.columns)
    return replace(project(**plan), schema=Schema(columns))


def as_arrow(cells: dict[str, list[str]]) -> pa.Table:
    """Return the text columns, and numbers as numbers."""
    made = {name: pa.array(values) for name, values in cells.items() if name != "x"}
    return pa.table({**made, "x": pa.array([float(text) if text else None for text in cells["x"]], pa.float64())})


def csv(cells, place):
    pd.DataFrame(cells).to_csv(place / "t.csv", index=False)
    return str(place / "t.csv"), None


def parquet(cells, place):
    pq.write_table(as_arrow(cells), place / "t.parquet")
    return str(place / "t.parquet"), None


def parquet_folder(cells, place):
    (place / "t").mkdir()
    whole = as_arrow(cells)
    pq.write_table(whole.slice(0, 60), place / "t" / "1.parquet")
    pq.write_table(whole.slice(60), place / "t" / "2.parquet", write_statistics=False)
    return str(place / "t"), None


def duckdb(cells, place):
    import duckdb as engine

    with engine.connect(str(place / "t.duckdb")) as connection:
        frame = as_arrow(cells)  # noqa: F841
        connection.execute("CREATE TABLE people AS SELECT * FROM frame")
    return f"duckdb://{place / 't.duckdb'}", "people"


def sqlite(cells, place):
    with sqlite3.connect(place / "t.sqlite") as connection:
        as_arrow(cells).to_pandas().to_sql("people", connection, index=False)
    return f"sqlite://{place / 't.sqlite'}", "people"


def postgresql(cells, _place):
    import sqlalchemy as sa

    server = os.environ["TEST_POSTGRES"]
    engine = sa.create_engine(server.replace("postgresql:", "postgresql+psycopg:"))
    frame = as_arrow(cells).to_pandas()
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE IF EXISTS people_of_two_tables")
        frame.to_sql("people_of_two_tables", connection, index=False)
    engine.dispose()
    return server, "people_of_two_tables"


def postgresql_read_only(cells, place):
    server, relation = postgresql(cells, place)
    return f"{server}&options=-cdefault_transaction_read_only%3Don", relation


ENTRANCES = (csv, parquet, parquet_folder, duckdb, sqlite, postgresql, postgresql_read_only)
PLANS = {
    "independent": {"method": "independent"},
    "prism": {"method": "prism", "features": 2},
    "mst of people": {"method": "mst", "person": "pid", "rows_per_person": 2},
    "held out": {"method": "independent", "private_evaluation": 0.3},
}
COMMANDS = [
    pytest.param(
        entrance,
        plan,
        id=f"{entrance.__name__}-{name}",
        marks=[]
        if entrance is csv or ((e + p) % 2 == 0 and entrance is not postgresql_read_only)
        else pytest.mark.nightly,
    )
    for e, entrance in enumerate(ENTRANCES)
    for p, (name, plan) in enumerate(PLANS.items())
]
"""At night, every entry point runs with every plan; otherwise CSV with every plan, and the others with half of them."""


def by_command(entrance, plan, neighbors, tmp_path, capsys):
    def run(seed: int, n: int) -> Outside:
        place = tmp_path / f"run-{seed}"
        place.mkdir()
        ledger = place / "ledger.db"
        declared = {"rows": 250} if plan.get("person") and neighbors == "replace-one" else {}
        made = of_texts(neighbors=neighbors, **plan, **declared)
        (place / "p.json").write_text(made.dumps())
        Ledger(ledger, create=True).open_table(
            "people", epsilon=2.0, delta=1e-6, neighbors=neighbors, person=plan.get("person"),
            rows_per_person=plan.get("rows_per_person", 1), who="Ada",
        )  # fmt: skip
        where, relation = entrance(texts(seed, n), place)
        line = ["release", str(place / "p.json"), "--data", where, "--out", str(place / "out"), "--by", "Bob"]
        line += [*(["--relation", relation] if relation else []), "--ledger", str(ledger), "--table", "people"]
        capsys.readouterr()
        return on_command_line(lambda: main(line), place / "out", place, capsys.readouterr, str(ledger))

    return run


@pytest.fixture
def _served(request):
    """The PostgreSQL server, if the test needs it."""
    if request.getfixturevalue("entrance") in (postgresql, postgresql_read_only):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TEST_POSTGRES", request.getfixturevalue("postgres"))
            yield
        return
    yield


@pytest.mark.usefixtures("_served")
@pytest.mark.parametrize("neighbors", ROWS)
@pytest.mark.parametrize(("entrance", "plan"), COMMANDS)
def test_on_the_command_line(entrance, plan, neighbors, tmp_path, capsys):
    """`release` with a ledger, from each kind of table: files, output, exit status, and the ledger's events."""
    shown = compared(by_command(entrance, plan, neighbors, tmp_path, capsys), neighbors)
    assert shown.status == 0, shown.said
    assert len(shown.files) >= 6
    assert len(shown.ledger) >= 4


@pytest.mark.parametrize("neighbors", ROWS)
def test_a_large_csv_file_read_in_batches(neighbors, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(frames, "LARGE_BYTES", 1)
    shown = compared(by_command(csv, PLANS["prism"], neighbors, tmp_path, capsys), neighbors)
    assert shown.status == 0


@pytest.mark.parametrize("neighbors", ROWS)
@pytest.mark.parametrize("kind", [pd.DataFrame, as_arrow], ids=["pandas", "arrow"])
def test_from_a_notebook(kind, neighbors):
    """`release` of a data frame."""

    def run(seed: int, n: int) -> Outside:
        data = kind(texts(seed, n))
        return in_memory(lambda report: release(of_texts(neighbors=neighbors, method="mst"), data, report))

    shown = compared(run, neighbors)
    assert shown.requests
    assert not shown.error


def says_n(patch):
    """A message that states the exact number of rows."""
    exact = PrivateCurator._counts

    def counts(self, cliques, scales):
        self.spending.draws[-1] = replace(self.spending.draws[-1], what=f"counts of {self._source.rows} rows")
        return exact(self, cliques, scales)

    patch.setattr(PrivateCurator, "_counts", counts)


def scales_by_cell(patch):
    """Noise whose scale depends on the counts."""
    exact = PrivateCurator._counts

    def counts(self, cliques, scales):
        odd = {q: s * (2 if self._exact([q])[0].flat[0] > 100 else 1) for q, s in scales.items()}
        return exact(self, cliques, odd)

    patch.setattr(PrivateCurator, "_counts", counts)


def leaves_without_noise(patch):
    """A choice by the exact scores."""
    patch.setattr(mechanisms, "noisy_max", lambda scores, scale: int(np.argmax(list(scores))))


def fails_for_some(patch):
    """A refusal that depends on a row."""
    exact = PrivateCurator._counts

    def counts(self, cliques, scales):
        if self._exact([("s",)])[0][-1] == 0:
            raise SchemaError("a category does not occur")
        return exact(self, cliques, scales)

    patch.setattr(PrivateCurator, "_counts", counts)


def tells_progress(patch):
    """Progress that counts rows."""
    told = release_run.Run.finish

    def finish(self, report):
        report(0.01, f"Reading {self.private.own.rows} rows")
        return told(self, report)

    patch.setattr(release_run.Run, "finish", finish)


@pytest.mark.parametrize("broken", [says_n, scales_by_cell, leaves_without_noise, fails_for_some, tells_progress])
def test_a_broken_copy_is_caught(broken):
    """Each broken copy shows a private fact in another place."""
    run = of_table({"method": "mst"}, "add-remove")

    def of_copy(seed: int, n: int) -> Outside:
        with pytest.MonkeyPatch.context() as patch:
            if broken is leaves_without_noise:
                from tests.support import noninterference

                patch.setattr(noninterference.Noise, "choice", lambda _, scores, scale: int(np.argmax(list(scores))))
            else:
                broken(patch)
            return run(seed, n)

    first, second = of_copy(1, 300), of_copy(2, 211)
    assert first.difference(second) != ""
    assert run(1, 300).difference(run(2, 211)) == ""
