"""Releases under constraints: no synthetic row breaks one, and the model stays within the largest allowed table."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from espalier.core.errors import EspalierError, ProjectError, SchemaError, SizeError
from espalier.core.graph.dag import Dag
from espalier.core.graph.roles import Roles
from espalier.core.methods import METHODS, frame_of
from espalier.core.planning.preview import preview
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.rehearsal import Rehearsal
from espalier.core.privacy.unit import Unit
from espalier.core.project.constraints import Constraints
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release.spend import release
from espalier.core.report.page import render
from espalier.core.tables.table import Table

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
GRAPHICAL = sorted(name for name, m in METHODS.items() if m.capabilities.constraints)


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
    """Return rows that include violations of each constraint, because dirty data violate declarations."""
    rng = np.random.default_rng(7)
    return Table(SCHEMA, {c.name: rng.integers(0, c.size, n) for c in SCHEMA.columns}, n)


@pytest.mark.parametrize("method", GRAPHICAL)
def test_no_row_breaks_a_constraint_whatever_the_method(method):
    made = release(a_project(method), rows())
    facts = made.to_json()
    assert facts["constraints"]["violations"] == 0
    assert [c["violations"] for c in facts["constraints"]["each"]] == [0] * 4
    assert "<h2>Constraints</h2>" in render(facts)
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
    for method in (m for m in METHODS.values() if not m.capabilities.constraints):
        with pytest.raises(EspalierError, match="cannot keep constraints"):
            preview(a_project(method.name), 600)
    with pytest.raises(ProjectError, match="merged"):
        preview(a_project("mst", options={"compress": True}), 600)
    wrong = Constraints.from_json({"impossible": [{"sex": ["man"], "pregnant": ["yes"]}]})
    with pytest.raises(SchemaError, match="not a category"):
        preview(replace(a_project(), constraints=wrong), 600)


def wide(method: str, **plan: object) -> Project:
    """Return nine columns of six values; constraints link the first five in a loop."""
    columns = tuple(Column(f"c{i}", "categorical", tuple("abcdef")) for i in range(9))
    pairs = [("c0", "c1"), ("c1", "c2"), ("c2", "c3"), ("c3", "c4"), ("c4", "c0")]
    given = Constraints.from_json({"impossible": [{a: ["a"], b: ["b"]} for a, b in pairs]})
    plan = {"max_cells": 6**3, **plan}
    return Project("wide", Schema(columns), Plan(method, 5.0, 1e-6, target="c8", **plan), constraints=given)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["privbayes", "workload", "prism", "mst"])
def test_constraints_make_no_model_too_large_once_the_counts_are_paid(method, monkeypatch):
    """For every private choice, the model stays within the plan's largest table, or the plan is refused."""
    monkeypatch.setattr("espalier.core.methods.workload.FEW", 5)  # choose pairs one at a time, as for many columns
    project = wide(method)
    rng = np.random.default_rng(4)
    same = rng.integers(0, 6, 3000)
    noisy = {c.name: np.where(rng.random(3000) < 0.7, same, rng.integers(0, 6, 3000)) for c in project.schema.columns}
    if method == "prism":  # the target may be linked with every column of the loop
        with pytest.raises(SizeError, match="c8"):
            preview(project, 3000)
        project = project.with_plan(max_cells=6**5)
    preview(project, 3000)
    made = release(project, Table(project.schema, noisy, 3000))
    assert made.to_json()["constraints"]["violations"] == 0
    assert made.fitted.size(project.plan.max_cells).largest_cells <= project.plan.max_cells


def test_a_drawn_star_is_not_refused_for_columns_that_it_does_not_take():
    """If the drawing decides the target's counts, no column of a constraint can be chosen in addition."""
    project = replace(wide("prism", options={"regime": "causal"}), dag=Dag((("c5", "c8"),)))
    preview(project, 3000)
    rng = np.random.default_rng(4)
    codes = {c.name: rng.integers(0, 6, 3000) for c in project.schema.columns}
    made = release(project, Table(project.schema, codes, 3000))
    assert made.to_json()["constraints"]["violations"] == 0
    assert made.fitted.size(project.plan.max_cells).largest_cells <= project.plan.max_cells


def test_a_network_leaves_out_what_would_be_too_large_beside_constraints(monkeypatch):
    """Each candidate is chosen in turn: if constraints were ignored, the loop would be closed."""
    project = wide("privbayes")
    frame, sizes = frame_of(project), project.schema.sizes
    for place in range(0, 12, 4):
        monkeypatch.setattr(
            Rehearsal, "_pick", lambda self, score, candidates, scale, place=place: candidates[place % len(candidates)]
        )
        impossible = project.constraints.masks(project.schema, 10**7)
        curator = Rehearsal(sizes, Unit(), Budget(5.0, 1e-6, 0.5), 3000, impossible)
        fitted = METHODS["privbayes"].fit(curator, project, frame)
        assert fitted.size(6**3).largest_cells <= 6**3
        assert {name for clique in fitted.cliques for name in clique} == set(sizes)
