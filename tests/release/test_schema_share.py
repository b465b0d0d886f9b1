"""A schema that no one declared is bought: planned without data, paid for in (ρ, δ₀), and used by everything after."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest

from espalier.core.analysis.loading import load_release
from espalier.core.errors import EspalierError, ProjectError, SchemaError
from espalier.core.ledger.ledger import Ledger
from espalier.core.planning.preview import preview
from espalier.core.privacy.accounting import rho_of
from espalier.core.project.constraints import Constraints
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.question_list import QuestionList
from espalier.core.project.schema import Column, Schema, to_buy
from espalier.core.project.schema_json import schema_from_json
from espalier.core.release.spend import release
from espalier.core.report.page import render
from espalier.core.tables.reading import read_table
from espalier.core.tables.table import Table

COLUMNS = [
    {"name": "age", "kind": "numeric", "bins": 6, "range": [0, 100], "integer": True},
    {"name": "income", "kind": "numeric", "bins": 5},
    {"name": "job", "kind": "categorical", "at_most": 8},
    {"name": "ill", "kind": "categorical", "categories": ["no", "yes"]},
]
ROWS = 3000


def a_project(**plan: object) -> Project:
    given = {"epsilon": 2.0, "delta": 1e-7, "target": "ill", "schema_share": 0.1, **plan}
    return Project("names only", schema_from_json(COLUMNS), Plan("mst", **given))  # type: ignore[arg-type]


def text() -> bytes:
    rng = np.random.default_rng(5)
    job = rng.choice(["nurse", "clerk", "smith", ""], ROWS, p=[0.5, 0.3, 0.15, 0.05])
    job[:2] = ["the only diver", "the only judge"]
    lines = [
        f"{a},{i:.2f},{j},{'yes' if a > 60 else 'no'}"
        for a, i, j in zip(rng.integers(18, 90, ROWS), rng.gamma(2, 900, ROWS), job, strict=True)
    ]
    return ("age,income,job,ill\n" + "\n".join(lines) + "\n").encode()


def the_table(project: Project) -> Table:
    return Table.encode(read_table(text(), "t.csv"), project.schema, project.plan.person)


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_a_table_of_names_alone_is_released(neighbors, tmp_path):
    project = a_project(neighbors=neighbors)
    assert Project.loads(project.dumps()) == project
    shown = preview(project, ROWS)
    bought = [line for line in shown.lines if line.pool == "schema"]
    assert [re.split("[:,]", line.what)[0] for line in bought] == [
        "cuts of age at quantiles",
        "rows between the cuts of age",
        "range of income",
        "cuts of income at quantiles",
        "rows between the cuts of income",
        "categories of job",
    ]
    assert 0 < shown.delta <= 0.25e-7
    assert shown.budget.rho < rho_of(2.0, 1e-7), "ρ is converted at the δ that the thresholds leave"
    made = release(project, the_table(project))
    schema = made.project.schema
    assert not schema.undeclared
    assert not schema.unconfirmed
    assert set(schema["job"].categories) == {"nurse", "clerk", "smith"}
    assert schema["age"].edges[0] == 0
    assert schema["age"].edges[-1] == 100
    assert 4 <= schema["age"].values <= 6
    assert schema["income"].edges[0] <= 500, "a third of the rows are below 1,000; noise decides where the range ends"
    assert schema["income"].edges[-1] >= 5000
    facts = made.to_json()
    assert facts["spent"]["rho"] == pytest.approx(shown.spent, rel=1e-9)
    assert facts["spent"]["epsilon"] <= 2.0
    assert math.fsum(p["rho"] for p in facts["schema_bought"]) == pytest.approx(0.1 * shown.budget.rho, rel=1e-9)
    report = render(facts)
    assert "Bought parts of the schema" in report
    assert re.search(r"Found: age \d bins from 0 to 100; income \d bins from \S+ to \S+; job 3 categories\.", report)
    assert not [w for w in facts["warnings"] if "No category" in w]
    assert "the only" not in json.dumps(facts) + made.csv()
    made.save(tmp_path / "out")
    assert load_release(tmp_path / "out").project.schema == schema


def test_a_column_of_which_nothing_was_found_is_told():
    """Each of 3,000 ids is in one row; one passes a threshold of hundreds with probability below 10⁻⁹."""
    schema = Schema((to_buy("id", "categorical", 5), Column("ill", "categorical", ("no", "yes"))))
    project = replace(a_project(), schema=schema)
    lines = "id,ill\n" + "".join(f"p{i},{'no' if i % 3 else 'yes'}\n" for i in range(ROWS))
    made = release(project, Table.encode(read_table(lines.encode(), "t.csv"), schema))
    assert set(made.table["id"]) <= {"", "(none)"}
    assert any("No category of id was found" in w for w in made.to_json()["warnings"])
    assert "id 1 category." in render(made.to_json())


def test_what_is_judged_on_rows_held_out_uses_the_bought_schema():
    project = a_project(private_evaluation=0.2)
    made = release(project, the_table(project))
    assert made.private_evaluation is not None
    assert made.to_json()["looking"]["rows"] == pytest.approx(ROWS / 5)


def test_a_ledger_counts_the_slips_too(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db", create=True)
    ledger.open_table("ward", epsilon=5.0, delta=1e-7, delta_for_draws=0.5e-7)
    project = a_project(delta=None)
    made = release(project, the_table(project), ledger=ledger.account("ward"))
    assert made.ledger_trouble == ""
    assert 0 < ledger.population_of("ward").delta_spent <= 0.25e-7


def test_what_cannot_be_is_refused_before_anything_is_read():
    with pytest.raises(ProjectError, match="schema_share"):
        preview(a_project(schema_share=0.0), ROWS)
    with pytest.raises(ProjectError, match="declared total"):
        preview(a_project(person="who", rows=3000), ROWS)
    about = Constraints.from_json({"impossible": [{"job": ["nurse"], "ill": ["yes"]}]})
    with pytest.raises(EspalierError, match="job.*bought at release"):
        preview(replace(a_project(), constraints=about), ROWS)
    # 2 is an edge of the placeholder bins: without that check, it was refused after the schema had been paid for
    for key, entry in (("impossible", {"age": {"below": 2}, "ill": ["yes"]}), ("monotone", ["age", "income"])):
        with pytest.raises(EspalierError, match="bought at release"):
            preview(replace(a_project(), constraints=Constraints.from_json({key: [entry]})), ROWS)
    with pytest.raises(ProjectError, match="question 'young' names 'age'.*bought at release"):
        replace(a_project(), question_list=QuestionList(({"name": "young", "where": {"age": [0, 2]}},)))
    declared = Project("d", Schema((Column("a", "categorical", ("x", "y")),)), Plan("mst", 1.0, schema_share=0.1))
    assert any("there is nothing to buy" in w for w in preview(declared, 100).warnings)


@pytest.mark.parametrize(
    "column",
    [
        {"name": "a", "kind": "categorical", "at_most": 0},
        {"name": "a", "kind": "categorical", "at_most": 5, "categories": ["x"]},
        {"name": "a", "kind": "numeric", "bins": 1},
        {"name": "a", "kind": "numeric", "bins": 4, "range": [3, 3]},
        {"name": "a", "kind": "numeric", "bins": 4, "range": [0, 1], "integer": True},
        {"name": "a", "kind": "numeric", "at_most": 4},
        {"name": "a", "kind": "date", "bins": 4},
    ],
)
def test_descriptions_that_cannot_be(column):
    with pytest.raises(SchemaError, match="'a'"):
        schema_from_json([column])


def test_a_plan_that_no_declared_total_helps_does_not_ask_for_one():
    project = a_project(person="patient", rows_per_person=3, delta=None)
    with pytest.raises(ProjectError, match="cannot be bought"):
        preview(project)
