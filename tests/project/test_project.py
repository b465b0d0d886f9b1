"""The project file: its refusals; a written file is read back unchanged."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

import pytest

from espalier.core.errors import EspalierError, ProjectError
from espalier.core.methods import check_options, method_of
from espalier.core.project.file import Project
from tests.support.entrances import SAMPLES

GOOD: dict[str, Any] = {
    "format": "espalier-project/1",
    "name": "adult",
    "schema": [
        {"name": "age", "kind": "numeric", "edges": [17, 25, 35, 50, 65, 91], "integer": True},
        {"name": "sex", "kind": "categorical", "categories": ["Female", "Male"]},
        {"name": "grade", "kind": "ordinal", "categories": ["A", "B", "C"], "missing": True},
    ],
    "dag": {"edges": [["age", "grade"]], "notes": {"age": "hm"}, "positions": {"age": [1, 2.5]}},
    "roles": {"outcome": ["grade"], "protected": ["sex"], "admissible": ["age"], "inadmissible": []},
    "plan": {
        "method": "prism",
        "regime": "causal",
        "fair": True,
        "target": "grade",
        "epsilon": 1.0,
        "delta": 1e-9,
        "neighbors": "replace-one",
        "rows_per_person": 1,
        "allocation": "optimal",
        "accounting": "zcdp",
        "features": 8,
        "rows": None,
    },
}


def changed(*path, to):
    data = json.loads(json.dumps(GOOD))
    place = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return data


def test_round_trip():
    project = Project.loads(json.dumps(GOOD))
    assert project.to_json() == GOOD
    assert Project.loads(project.dumps()) == project
    assert Project.loads(b"\xef\xbb\xbf" + project.dumps().encode()) == project


def test_a_person_column_and_private_figures_round_trip():
    data = changed("plan", to={**GOOD["plan"], "person": "patient", "private_evaluation": 0.1})
    project = Project.loads(json.dumps(data))
    assert (project.plan.person, project.plan.private_evaluation) == ("patient", 0.1)
    assert project.to_json() == data


def test_the_old_name_of_the_private_evaluation_still_reads():
    old = Project.loads(json.dumps(changed("plan", "looking", to=0.1)))
    assert old == Project.loads(json.dumps(changed("plan", "private_evaluation", to=0.1)))
    both = changed("plan", to={**GOOD["plan"], "looking": 0.1, "private_evaluation": 0.1})
    with pytest.raises(EspalierError, match="old name"):
        Project.loads(json.dumps(both))


def opened(data):
    """A project file as read without the methods: the keys of a method are checked only by code that imports it."""
    project = Project.loads(json.dumps(data))
    check_options(project.plan)
    return project


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (changed("format", to="espalier-project/9"), "not an Espalier project"),
        (changed("colour", to=1), "unknown key 'colour'"),
        (changed("plan", "colour", to=1), "plan: unknown key 'colour'; remove it from the project file[.]$"),
        (changed("plan", "stepz", to=1), "unknown key 'stepz'; did you mean 'step"),
        (changed("dag", "colour", to=1), "dag: unknown key"),
        (changed("roles", "victim", to=[]), "unknown role"),
        (changed("plan", "method", to="magic"), "must be one of workload"),
        (changed("plan", "regime", to="magic"), "must be one of causal"),
        (changed("plan", "epsilon", to="1"), r"epsilon \('1'\) must be a number; write 1 without quotes"),
        (changed("plan", "epsilon", to="1,5"), "write 1.5 without quotes"),
        (changed("plan", "epsilon", to="1,000"), "must be a number[.]$"),
        (changed("plan", "steps", to="25"), "whole number from 1 to 1,000; write 25 without quotes"),
        (changed("plan", "clip", to=0), "clip .0. must be a number from 0.01 to 64"),
        (changed("plan", "epsilon", to=True), "must be a number"),
        (changed("plan", "epsilon", to=0), "must be at least 1e-6"),
        (changed("plan", "epsilon", to=-1), "epsilon is -1; it must be at least 1e-6"),
        (changed("plan", "delta", to=0), "above 0 and below 1"),
        (changed("plan", "delta", to=1), "above 0 and below 1"),
        (changed("plan", "neighbors", to="mine"), "neighbors"),
        (changed("plan", "rows_per_person", to=0), "whole number from 1"),
        (changed("plan", "rows_per_person", to=1.5), "whole number from 1"),
        (changed("plan", "features", to=0), "whole number from 1"),
        (changed("plan", "three_way", to=21), "whole number from 0 to 20"),
        (changed("plan", "allocation", to={"age": True}), "must map names of marginals"),
        (changed("plan", "rows", to=-3), "whole number from 1"),
        (changed("plan", "test_drawing", to=5e-324), "is too small; use 0, or at least 1e-06"),
        (changed("plan", "question_share", to=1e-7), "is too small; use 0, or at least 1e-06"),
        (changed("plan", "targets", to={"age": 5e-324}), "is too small; use at least 1e-06"),
        (changed("plan", "fair", to="yes"), "true or false"),
        (changed("plan", "target", to="nobody"), "not a column"),
        (changed("plan", "target", to=3), "column name"),
        (changed("plan", "person", to="age"), "would be released"),
        (changed("plan", "person", to=7), "name of a column"),
        (changed("plan", "looking", to=True), "must be a number"),
        (changed("plan", "looking", to=0.6), "share from 0 to 0.5"),
        (changed("plan", "looking", to=-0.1), "share from 0 to 0.5"),
        (changed("plan", "allocation", to={"task": 1}), "allocation"),
        (changed("plan", "method", to=["prism"]), "method"),
        (changed("dag", "edges", to=[["age", "grade"], ["grade", "age"]]), "cycle"),
        (changed("dag", "edges", to=[["age", "nobody"]]), "'nobody' is not a column"),
        (changed("dag", "edges", to=[["age"]]), "cause, effect"),
        (changed("dag", "edges", to="age"), "must be a list"),
        (changed("dag", "positions", to={"age": [1, "x"]}), "two numbers"),
        (changed("roles", "outcome", to=["nobody"]), "not a column"),
        (changed("roles", "outcome", to="grade"), "list of column names"),
        (changed("roles", "outcome", to=["sex"]), "both outcome and protected"),
        (changed("schema", to={}), "must be a list"),
        (changed("schema", to=[]), "no columns"),
        (changed("schema", 0, "edges", to=[3, 2, 1]), "must increase"),
        (changed("name", to=7), "name must be text"),
        ([], "one JSON object"),
    ],
)
def test_refused(data, words):
    with pytest.raises(EspalierError, match=words):
        opened(data)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("not json", "not JSON: .* line 1"),
        ("age,sex\n40,male\n", "if this is a table, create a project file from it with `init` or on the Data page"),
        (b"\xff\xfe\x00", "not UTF-8"),
        ("", "not JSON"),
        ('{"a": NaN}', "NaN is not allowed as a number"),
        ('{"a": 1, "a": 2}', "given twice"),
        ("[" * 100_000, "nested too deeply"),
        (json.dumps(changed("plan", "epsilon", to=7)).replace("7", "9" * 5000), "too large|must be"),
    ],
)
def test_broken_text(text, words):
    with pytest.raises(EspalierError, match=words):
        Project.loads(text)


def test_errors_name_the_file(tmp_path):
    path = tmp_path / "p.json"
    path.write_text("{")
    with pytest.raises(EspalierError, match="p.json"):
        Project.load(path)
    with pytest.raises(EspalierError, match="cannot read"):
        Project.load(tmp_path / "none.json")


def test_fair_defaults_to_what_the_method_implies():
    for method, fenced in (("prism", False), ("privci", True), ("prefair", True), ("mst", False)):
        data = changed("plan", "method", to=method)
        del data["plan"]["fair"]
        plan = opened(data).plan
        assert method_of(plan).fenced(plan) == fenced


def test_options_of_the_tree_are_written_only_where_they_are_used():
    plain = Project.from_json(GOOD).plan.to_json()
    assert not {"width", "explain", "compress"} & set(plain)
    for key, value in (("width", 2), ("explain", 0.1), ("compress", True)):
        project = Project.from_json(changed("plan", key, to=value))
        assert project.to_json()["plan"][key] == value
        assert Project.from_json(project.to_json()) == project


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("width", 0),
        ("width", 7),
        ("width", 1.5),
        ("width", True),
        ("explain", -0.1),
        ("explain", 0.6),
        ("explain", "much"),
        ("compress", 1),
        ("compress", None),
    ],
)
def test_options_of_the_tree_that_cannot_be(key, value):
    with pytest.raises(EspalierError, match=key):
        opened(changed("plan", key, to=value))


FURTHER = {"left": ["grade"], "right": ["sex"], "given": [], "why": "section 4"}


def test_further_separations_come_back_and_are_written_only_where_there_are_some():
    assert "separations" not in Project.from_json(GOOD).to_json()
    project = Project.from_json(changed("separations", to=[FURTHER, {"left": ["age"], "right": ["sex"]}]))
    assert [s.why for s in project.separations] == ["section 4", ""]
    assert Project.from_json(project.to_json()) == project


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"left": ["nobody"]}, "nobody"),
        ({"left": []}, "at least one"),
        ({"right": ["grade"]}, "twice"),
        ({"given": "sex"}, "list of column names"),
        ({"why": 3}, "why must be"),
        ({"gate": []}, "unknown key 'gate'"),
    ],
)
def test_a_separation_that_cannot_be_is_refused(change, says):
    with pytest.raises(EspalierError, match=says):
        Project.from_json(changed("separations", to=[{**FURTHER, **change}]))
    odd: list[Any] = [{}, [3], "x"]
    for data in odd:
        with pytest.raises(EspalierError, match="separation"):
            Project.from_json(changed("separations", to=data))


def test_moving_a_box_is_no_change_of_the_project(samples):
    project = Project.load(samples / "hiring.json")
    moved = replace(project, dag=replace(project.dag, positions={"hired": (1.0, 2.0)}), signoff={"drawn_by": "A"})
    assert moved != project
    assert moved.says_the_same(project)
    assert not project.with_plan(epsilon=2.0).says_the_same(project)
    assert not replace(project, dag=project.dag.sharing("hired", "gender")).says_the_same(project)


def test_very_many_arrows_between_visits_are_refused_at_once():
    """Previously, 20,000 took eleven seconds, and their square more."""
    clinic = json.loads((SAMPLES / "clinic.json").read_text("utf-8"))
    cause, effect = next(e for e in clinic["dag"]["edges"] if e[0].endswith("@before"))
    clinic["dag"]["edges"] += [[cause, f"{effect}{i}"] for i in range(60_000)]
    began = time.process_time()
    with pytest.raises(ProjectError, match="an arrow from one visit to the next"):
        Project.from_json(clinic)
    assert time.process_time() - began < 10


@pytest.mark.parametrize("value", [{}, [], 10**400])
def test_a_number_style_is_a_text_and_no_whole_number_exceeds_floats(value: Any) -> None:
    """Previously, `plan` ended in tracebacks."""
    column = {**GOOD["schema"][0], "number_style": value}
    with pytest.raises(EspalierError, match="must be a string|too large"):
        Project.loads(json.dumps({**GOOD, "schema": [column, *GOOD["schema"][1:]]}))
    if isinstance(value, int):
        with pytest.raises(ProjectError, match="too large"):
            Project.loads(json.dumps({**GOOD, "impossible": [{"age": {"below": value}}]}))
