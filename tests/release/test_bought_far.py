"""A schema bought from rows in files and engines is the same as one bought from a table in memory; others are
refused.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import psycopg
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from espalier.core.errors import ProjectError, SchemaError
from espalier.core.ledger.ledger import Ledger
from espalier.core.planning.preview import preview
from espalier.core.privacy import bought_schema
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.bought_schema import buy, prices
from espalier.core.privacy.spending import Spending
from espalier.core.privacy.unit import Unit
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.public_grid import as_read, counts_on
from espalier.core.project.schema import Column, HierarchyToBuy, Schema, to_buy
from espalier.core.release.spend import release
from espalier.core.tables.reading import read_table
from espalier.core.tables.relation import open_relation
from espalier.core.tables.table import Table

CODES = tuple(f"{chapter}{i}" for chapter in "ABC" for i in range(20))
GIVEN = {code: f"chapter {code[0]}" for code in CODES}
SCHEMA = Schema(
    (
        to_buy("age", "numeric", bins=6, range=(0.0, 100.0), integer=True),
        to_buy("paid", "numeric", bins=5, range=(0.0, 90.0), integer=True),
        HierarchyToBuy.of("code", GIVEN, 30, missing=True),
        Column("ill", "categorical", ("no", "yes")),
    )
)
ROWS = 3000
SMALL = {"A1": "A", "A2": "A", "B2": "B"}


def the_rows() -> pa.Table:
    rng = np.random.default_rng(1)
    age = rng.integers(-3, 110, ROWS)
    paid = np.where(rng.random(ROWS) < 0.6, 0.0, np.round(rng.gamma(2, 9, ROWS), 2))
    code = [CODES[i] if i < 60 else None for i in np.minimum(rng.geometric(0.06, ROWS) - 1, 60).tolist()]
    return pa.table(
        {
            "age": [None if i % 50 == 0 else int(a) for i, a in enumerate(age)],
            "paid": paid,
            "code": code,
            "ill": np.where(age > 60, "yes", "no"),
            "who": [f"p{i}" for i in rng.integers(0, ROWS // 2, ROWS)],
        }
    )


def a_project(schema: Schema = SCHEMA, **plan: object) -> Project:
    given = {"epsilon": 4.0, "delta": 1e-7, "target": "ill", "schema_share": 0.2, **plan}
    return Project("far", schema, Plan("mst", **given))  # type: ignore[arg-type]


@pytest.fixture(params=["parquet", "csv", "duckdb", "postgresql"])
def relation(request, tmp_path):
    rows = the_rows()
    if request.param == "parquet":
        parquet.write_table(rows, tmp_path / "t.parquet")
        yield open_relation(tmp_path / "t.parquet")
    elif request.param == "csv":
        csv.write_csv(rows, tmp_path / "t.csv")
        yield open_relation(tmp_path / "t.csv")
    elif request.param == "duckdb":
        import duckdb

        with duckdb.connect(str(tmp_path / "t.duckdb")) as con:
            con.register("rows", rows)
            con.execute("CREATE TABLE t AS SELECT * FROM rows")
        yield open_relation(f"duckdb://{tmp_path / 't.duckdb'}", "t")
    else:
        url = request.getfixturevalue("postgres")
        with psycopg.connect(url) as con:
            con.execute("DROP TABLE IF EXISTS bought_far")
            con.execute('CREATE TABLE bought_far (age int, paid float8, code text COLLATE "C", ill text, who text)')
            with con.cursor().copy("COPY bought_far FROM STDIN") as copy:
                for row in rows.to_pylist():
                    copy.write_row(tuple(row.values()))
        there = open_relation(url, "bought_far")
        yield there
        there.close()


@pytest.fixture
def exact(monkeypatch):
    """Answers without noise, so that the purchases depend on the rows alone."""
    monkeypatch.setattr(bought_schema, "noisy_max", lambda scores, scale: int(np.argmax(scores)))
    monkeypatch.setattr(bought_schema, "add_gaussian", lambda rows, sigma: rows.astype(float))


def bought(project: Project, table) -> tuple[Schema, Counter]:
    """Return the schema that is bought without noise, and the rows encoded by it."""
    budget = Budget.of(project.plan, ROWS)
    unit = Unit(project.plan.neighbors, project.plan.rows_per_person)
    schema = buy(table, project.schema, unit, prices(project, budget), 1e-7, Spending(budget.rho))
    rows = Counter()
    for batch in table.recoded(schema).batches():
        rows.update(zip(*(batch[name].tolist() for name in schema.names), strict=True))
    return schema, rows


@pytest.mark.usefixtures("exact")
def test_the_same_is_bought_as_from_a_table_in_memory(relation, tmp_path):
    project = a_project()
    csv.write_csv(the_rows(), tmp_path / "here.csv")
    expected = bought(project, Table.encode(read_table(tmp_path / "here.csv"), project.schema))
    there = relation.snapshot(project.schema)
    try:
        found = bought(project, there)
    finally:
        there.close()
    assert found == expected
    assert expected[0]["paid"].edges[:2] == (0.0, 1.0), "the many zeros have a separate bin"
    assert 3 < expected[0]["code"].values <= 30


def test_many_odd_texts_get_the_codes_that_a_table_in_memory_gets(tmp_path, request):
    """Texts are looked up by halving, in the order of their bytes, regardless of an engine's own order."""
    odd = [
        f"{a}{b}" for a in ("", "a", "A", "ä", "Z", "z", "é", "~", " ", "😀") for b in ("1", "10", "2", "Å", "'", "x y")
    ]
    column = Column(
        "t", "categorical", tuple(odd), groups=(("a1", ("ß", "SS", "ss")),), unknown="missing", missing=True
    )
    cells = [*odd, "ß", "SS", "ss", "", "no", "Ä1", "a", "zz"] * 2
    expected = np.bincount(column.encode(cells), minlength=column.size)
    parquet.write_table(pa.table({"t": cells}), tmp_path / "t.parquet")
    places = [open_relation(tmp_path / "t.parquet")]
    url = request.getfixturevalue("postgres")
    with psycopg.connect(url) as con:
        con.execute("DROP TABLE IF EXISTS odd_texts")
        con.execute("CREATE TABLE odd_texts (t text)")
        with con.cursor().copy("COPY odd_texts FROM STDIN") as copy:
            for cell in cells:
                copy.write_row((cell,))
    places.append(open_relation(url, "odd_texts"))
    for place in places:
        there = place.snapshot(Schema((column,)))
        assert there.count(("t",)).tolist() == expected.tolist()
        there.close()
        place.close()


def test_numbers_that_no_float_holds_are_in_the_outermost_cell_here_and_there(tmp_path):
    """Previously, numbers in memory were clipped to placeholders of the edges to be bought: 1e999 was read as 4."""
    cells = ["-1e999", "1e999", "-1", "0", "50", "100", "inf", "nan", "x", ""]
    wanted = to_buy("a", "numeric", bins=4, range=(0.0, 100.0))
    schema = Schema((wanted, Column("b", "categorical", ("u",))))
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"{cell},u\n" for cell in cells))
    here = Table.encode(read_table(tmp_path / "t.csv"), schema).numbers("a")
    there = open_relation(tmp_path / "t.csv").snapshot(schema)
    grid = np.array(there.schema["a"].edges)
    expected = [*counts_on(here, grid), int(np.isnan(here).sum())]
    assert there.count(("a",)).tolist() == expected
    assert expected[0] == 3
    assert expected[-2:] == [2, 4]


@pytest.mark.parametrize(
    ("low", "high", "integer"), [(0.0, 1e23, True), (5e16, 5e16 + 16, True), (-1.7e308, 1.7e308, False)]
)
def test_a_range_that_floats_cannot_part_is_refused_before_anything_is_spent(low, high, integer):
    """The points of such a range are all equal, or are not numbers. Previously, this caused a crash, in some cases
    after payment.
    """
    wide = Schema((to_buy("a", "numeric", bins=4, range=(low, high), integer=integer), SCHEMA["ill"]))
    for refused in (lambda: preview(a_project(wide), ROWS), lambda: as_read(wide)):
        with pytest.raises(SchemaError, match="too wide for floats"):
            refused()


def test_a_release_with_people_and_rows_held_out(relation):
    project = a_project(neighbors="add-remove", person="who", rows_per_person=2, private_evaluation=0.3)
    shown = preview(project, ROWS)
    made = release(project, relation)
    assert not made.project.schema.undeclared
    assert made.to_json()["spent"]["rho"] == pytest.approx(shown.spent, rel=1e-9)
    assert made.private_evaluation is not None
    assert 40 < np.median([float(t) for t in made.table["age"] if t]) < 65
    assert {t[:7] for t in made.table["code"]} & {"chapter", "other c", "A0"}
    said = "\n".join(relation.statements(project.schema, project.plan))
    assert ("'{CODES}'::int[]" in said) == relation.remote
    assert "uuid" in said if relation.remote else "CODES" not in said


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_neighbouring_files_move_what_is_counted_by_its_sensitivity(neighbors, tmp_path):
    """Only one histogram per column is requested for codes; over all neighbours of a small file, Δ is reached."""
    narrow = to_buy("paid", "numeric", bins=2, range=(0.0, 9.0), integer=True)
    small = Schema((replace(narrow, name="age"), narrow, HierarchyToBuy.of("code", SMALL, 4, missing=True)))
    unit, values = Unit(neighbors, 1), [(5, 0.0, "A1"), (5, 70.0, "B2"), (None, 0.2, "A1"), (101, 1e9, None)]

    def counts(rows: list[tuple]) -> list[np.ndarray]:
        columns = zip(*rows, strict=True)
        parquet.write_table(pa.table(dict(zip(small.names, map(list, columns), strict=True))), tmp_path / "n.parquet")
        there = open_relation(tmp_path / "n.parquet").snapshot(small)
        return [there.count((name,)) for name in small.names]

    here, worst = counts(values), np.zeros(3)
    came = [()] if neighbors == "add-remove" else [(row,) for row in values]
    for gone, new in itertools.product(range(4), came):
        there = counts([*values[:gone], *values[gone + 1 :], *new])
        moved = [np.linalg.norm(a - b) for a, b in zip(here, there, strict=True)]
        worst = np.maximum(worst, moved)
    assert worst == pytest.approx(np.full(3, unit.count_sensitivity))


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (to_buy("age", "numeric", bins=6), "'age'.*its bins cannot be bought.*Declare the bins or a range"),
        (
            to_buy("code", "categorical", 20),
            "'code'.*its categories cannot be bought.*Declare the categories or a hier",
        ),
    ],
)
def test_what_only_a_table_in_memory_can_sell_is_refused_before_anything_is_read_or_spent(column, said, tmp_path):
    columns = tuple(column if c.name == column.name else c for c in SCHEMA.columns)
    parquet.write_table(the_rows(), tmp_path / "t.parquet")
    ledger = Ledger(tmp_path / "ledger.db", create=True)
    ledger.open_table("far", epsilon=9.0, delta=1e-6, delta_for_draws=5e-7)
    there = open_relation(tmp_path / "t.parquet")
    (tmp_path / "t.parquet").unlink()  # any code that reads it fails
    for ask in (
        lambda p: release(p, there, ledger=ledger.account("far")),
        lambda p: there.statements(p.schema, p.plan),
    ):
        with pytest.raises(ProjectError, match=said):
            ask(a_project(Schema(columns), delta=None))
    assert ledger.population_of("far").spent == 0


def test_the_finest_schema_is_public_and_its_own_where_all_is_declared():
    declared = Schema(SCHEMA.columns[3:])
    assert as_read(declared) is declared
    finest = as_read(SCHEMA)
    assert finest["age"].edges == tuple(range(101))
    fine = as_read(Schema((to_buy("paid", "numeric", bins=5, range=(0.0, 50_000.0)),)))["paid"]
    assert (fine.edges[0], fine.edges[-1]) == (0.0, 50_000.0)
    assert {1.0, 2.0, 5.0, 49_999.0} <= set(fine.edges)
    assert 1024 <= fine.values < 1200
    assert (finest["code"].categories, finest["code"].missing) == (CODES, True)
