from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from core.errors import EspalierError, ProjectError, SchemaError
from core.graph.roles import Roles
from core.methods import METHODS
from core.project.constraints import Constraints
from core.project.file import Project
from core.project.plan import Plan
from core.project.schema import Column, Schema
from core.release.planning import preview
from core.release.report import render
from core.release.spend import release
from core.tables.table import Table

GIVEN = {
    "impossible": [{"sex": ["male"], "pregnant": ["yes"]}, {"age": {"below": 16}, "married": ["yes"]}],
    "monotone": [["first", "last"]],
    "determines": [{"columns": ["grade", "level"], "table": {"a": "low", "b": "low", "c": "high"}}],
}
YES = ("no", "yes")
SCHEMA = Schema(
    (
        Column("sex", "categorical", ("male", "female")),
        Column("pregnant", "categorical", YES),
        Column("age", "numeric", edges=(0, 16, 40, 90), integer=True),
        Column("married", "categorical", YES),
        Column("first", "numeric", edges=(0, 10, 20, 30), integer=True),
        Column("last", "numeric", edges=(0, 10, 20, 30), integer=True),
        Column("grade", "categorical", ("a", "b", "c")),
        Column("level", "categorical", ("low", "high")),
        Column("ill", "categorical", YES),
    )
)
GRAPHICAL = sorted(name for name, m in METHODS.items() if m.holds_constraints and m.private)


def a_project(method: str = "mst", **plan: object) -> Project:
    given = {"epsilon": 2.0, "delta": 1e-6, "target": "ill", **plan}
    return Project(
        "visits",
        SCHEMA,
        Plan(method, **given),
        constraints=Constraints.from_json(GIVEN),  # type: ignore[arg-type]
        roles=Roles(outcome=("ill",), protected=("sex",), admissible=("age",)),
    )


def rows(n: int = 600) -> Table:
    """Rows of which some break each constraint: what is declared does not hold in dirty data."""
    rng = np.random.default_rng(7)
    return Table(SCHEMA, {c.name: rng.integers(0, c.size, n) for c in SCHEMA.columns}, n)


@pytest.mark.parametrize("method", GRAPHICAL)
def test_no_row_breaks_a_constraint_whatever_the_method(method):
    made = release(a_project(method), rows())
    facts = made.to_json()
    assert facts["constraints"]["violations"] == 0
    assert [c["violations"] for c in facts["constraints"]["each"]] == [0] * 4
    assert "What no row may be" in render(facts)
    assert all(int(a) <= int(b) for a, b in zip(made.table["first"], made.table["last"], strict=True))
    assert set(zip(made.table["sex"], made.table["pregnant"], strict=True)) <= {
        ("male", "no"),
        ("female", "no"),
        ("female", "yes"),
    }


def test_the_project_file_carries_them_and_old_files_have_none():
    project = a_project()
    assert Project.loads(project.dumps()) == project
    assert {"impossible", "monotone", "determines"} <= set(project.to_json())
    assert not {"impossible", "monotone", "determines"} & set(replace(project, constraints=Constraints()).to_json())
    broken = json.loads(project.dumps()) | {"monotone": [["first", "nobody"]]}
    with pytest.raises(ProjectError, match="nobody"):
        Project.from_json(broken)


def test_a_wider_model_holds_them_too():
    made = release(a_project("mst", options={"width": 2}), rows())
    assert made.to_json()["constraints"]["violations"] == 0


def test_a_constraint_that_contradicts_a_separation_is_refused_with_the_path():
    project = a_project("privci")
    around = Constraints.from_json({"impossible": [{"sex": ["male"], "ill": ["yes"]}]})
    with pytest.raises(ProjectError, match="ill – sex"):
        preview(replace(project, constraints=around), 600)
    two_steps = Constraints.from_json(
        {"impossible": [{"sex": ["male"], "pregnant": ["yes"]}, {"pregnant": ["yes"], "ill": ["no"]}]}
    )
    with pytest.raises(ProjectError, match="ill – pregnant – sex"):
        preview(replace(project, constraints=two_steps), 600)


@pytest.mark.parametrize("method", [m for m in ("privci", "prefair", "prism", "workload") if m in METHODS])
def test_a_fence_holds_beside_constraints_that_reach_one_side(method):
    project = a_project(method, fair=True)
    for _ in range(3):
        made = release(project, rows())
        assert all(s["holds"] for s in made.to_json()["separations"])
        assert all(s.holds(made.edges) for s in made.plan_frame.separations)


def test_guessed_ones_block_a_release_until_they_are_confirmed():
    guessed = Constraints.from_json({"monotone": [{"columns": ["first", "last"], "guessed": True}]})
    project = replace(a_project(), constraints=guessed)
    assert any("guessed" in w for w in preview(project, 600).warnings)
    with pytest.raises(SchemaError, match="first ≤ last"):
        release(project, rows())
    release(replace(project, constraints=guessed.confirmed), rows())


def test_what_cannot_hold_them_refuses_them():
    for method in (m for m in METHODS.values() if m.private and not m.holds_constraints):
        with pytest.raises(EspalierError, match="cannot hold constraints"):
            preview(a_project(method.name), 600)
    with pytest.raises(ProjectError, match="merged"):
        preview(a_project("mst", options={"compress": True}), 600)
    wrong = Constraints.from_json({"impossible": [{"sex": ["man"], "pregnant": ["yes"]}]})
    with pytest.raises(SchemaError, match="no category"):
        preview(replace(a_project(), constraints=wrong), 600)
