"""A column of many codes with a hierarchy is planned without data, paid for, and resolved where there are enough
rows.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from espalier.core.analysis.loading import load_release
from espalier.core.errors import EspalierError
from espalier.core.evaluation import evaluate
from espalier.core.graph.roles import Roles
from espalier.core.planning.preview import preview
from espalier.core.privacy import bought_schema
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.bought_schema import buy, prices
from espalier.core.privacy.spending import Spending
from espalier.core.privacy.unit import Unit
from espalier.core.project.constraints import Constraints
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.question_list import QuestionList
from espalier.core.project.schema import Column, HierarchyToBuy, Schema, to_buy
from espalier.core.project.schema_json import schema_from_json
from espalier.core.release.spend import release
from espalier.core.report.page import render
from espalier.core.tables.table import Table
from espalier.core.tables.text_table import TextColumn, TextTable

CODES = tuple(f"{chapter}{block}{i}" for chapter in "ABC" for block in range(4) for i in range(5))
GIVEN = {code: f"block {code[:2]}" for code in CODES} | {
    f"block {c}{b}": f"chapter {c}" for c in "ABC" for b in range(4)
}
COLUMN = {"name": "code", "kind": "categorical", "hierarchy": GIVEN, "at_most": 30}
ROWS = 20_000


def a_project(method: str = "mst", columns=(), **plan: object) -> Project:
    schema = [COLUMN, {"name": "sex", "kind": "categorical", "categories": ["f", "m"]}, *columns]
    given = {"epsilon": 2.0, "target": "sex", "schema_share": 0.1, **plan}
    roles = Roles(outcome=("sex",), protected=("ward",), admissible=("code",)) if columns else Roles()
    return Project("codes", schema_from_json(schema), Plan(method, **given), roles=roles)  # type: ignore[arg-type]


def the_text(seed: int = 3) -> TextTable:
    """Most rows in A00 … A04, some in the other blocks of A, few elsewhere."""
    rng = np.random.default_rng(seed)
    shares = np.array([40.0] * 5 + [3.0] * 15 + [0.05] * 40)
    code = rng.choice(len(CODES), ROWS, p=shares / shares.sum())
    sex = (code + rng.integers(0, 3, ROWS)) % 2
    ward = TextColumn(("e", "w"), rng.integers(0, 2, ROWS))
    return TextTable({"code": TextColumn(CODES, code), "sex": TextColumn(("f", "m"), sex), "ward": ward}, ROWS, "t")


WARD = ({"name": "ward", "kind": "categorical", "categories": ["e", "w"]},)


@pytest.mark.parametrize("method", ["mst", "prism", "workload", "privci", "privbayes", "independent"])
def test_every_method_over_marginals_releases_what_is_told_apart(method):
    project = a_project(method, WARD)
    assert Project.loads(project.dumps()) == project
    shown = preview(project, ROWS)
    made = release(project, Table.encode(the_text(), project.schema))
    column = made.project.schema["code"]
    assert column.values <= 30
    assert {"A00", "A01", "A02", "A03", "A04"} <= set(column.categories)
    members = [t for c in column.categories for t in dict(column.groups).get(c, (c,))]
    assert sorted(members) == sorted(CODES), "every code is in one value"
    assert set(made.table["code"]) <= set(column.categories)
    assert made.to_json()["spent"]["rho"] == pytest.approx(shown.spent, rel=1e-9)


def test_plan_report_files_and_figures_tell_what_is_told_apart(tmp_path):
    project = a_project()
    shown = preview(project, ROWS)
    (apart,) = shown.apart
    assert (apart.codes, apart.levels, apart.top, apart.at_most) == (60, 3, 3, 30)
    assert apart.divided[0][1] == 4
    assert apart.divided[0][2] == pytest.approx(2 * apart.sigma * 2)
    assert "60 codes in 3 levels" in str(apart)
    assert json.loads(json.dumps(shown.to_json()))["told_apart"][0]["evenly"] == apart.evenly
    levels = [line for line in shown.lines if line.pool == "schema"]
    assert [line.what for line in levels] == [f"rows of code by level {i} of 3 of its hierarchy" for i in (1, 2, 3)]
    table = Table.encode(the_text(), project.schema)
    made = release(project, table)
    facts = made.to_json()
    (told,) = facts["told_apart"]
    column = made.project.schema["code"]
    assert (told["codes"], told["alone"] + told["groups"]) == (60, column.values)
    assert "of 60 codes in 3 levels" in render(facts)
    made.save(tmp_path / "out")
    back = load_release(tmp_path / "out")
    assert back.project.schema == made.project.schema
    found = evaluate(back.project, Table.encode(the_text(), back.project.schema), back.table).to_json()
    assert found["fidelity"]["one_way_tv"] < 0.1


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_rows_held_out_people_and_both_relations(neighbors):
    project = a_project(neighbors=neighbors, delta=1e-7, private_evaluation=0.2)
    made = release(project, Table.encode(the_text(), project.schema))
    assert made.private_evaluation is not None
    assert made.project.schema["code"].values > 3


def test_few_rows_tell_nothing_but_the_top_apart():
    """All rows together are a fifth of the count at which a group of twenty codes is divided. To divide one, noise
    would have to reach nine σ, which has a probability below 10⁻¹⁸.
    """
    flat = HierarchyToBuy.of("code", {code: f"chapter {code[0]}" for code in CODES}, 30)
    project = a_project(epsilon=0.002)
    project = replace(project, schema=Schema((flat, project.schema["sex"])))
    (apart,) = preview(project, ROWS).apart
    assert apart.divided[0][2] / 4 > ROWS
    made = release(project, Table.encode(the_text(), project.schema))
    assert made.project.schema["code"].categories == ("chapter A", "chapter B", "chapter C")


@pytest.mark.parametrize("unit", [Unit(r, k) for r in ("replace-one", "add-remove") for k in (1, 2)], ids=str)
def test_a_level_is_one_histogram_and_only_its_noisy_answers_decide(unit, monkeypatch):
    """For neighbouring columns with all answers made equal, the same questions are asked, and the requested counts move
    by at most Δ, which is reached. The decision is a function of the answers alone.
    """
    given = {"a": "g", "b": "g", "c": "h", "d": "h", "e": ""}
    column = HierarchyToBuy.of("code", given, 5, missing=True, unknown="missing")
    schema = Schema((column, Column("sex", "categorical", ("f", "m"))))
    plan = Plan("mst", 1.0, 1e-6, schema_share=0.1, neighbors=unit.neighbors, rows_per_person=unit.rows_per_person)
    texts, k = ("a", "b", "c", "d", "e", ""), unit.rows_per_person
    worst = 0.0

    def asked(table: tuple[int, ...], answers: list[list[float]]) -> tuple[list[np.ndarray], Column]:
        seen: list[np.ndarray] = []

        def answer(rows, sigma):  # noqa: ARG001
            seen.append(rows)
            return np.array((answers[len(seen) - 1] * 3)[: len(rows)])

        monkeypatch.setattr(bought_schema, "add_gaussian", answer)
        n = len(table)
        read = {"code": TextColumn(texts, np.array(table)), "sex": TextColumn(("f",), np.zeros(n, dtype=int))}
        budget = Budget(1.0, 1e-6, 0.05)
        parts = prices(Project("p", schema, plan), budget)
        found = buy(Table.encode(TextTable(read, n, "t"), schema), schema, unit, parts, 1e-6, Spending(1.0))
        return seen, found["code"]

    high, low = [1e6, 1e6, 1e6], [-1e6, 1e6, 0.0]
    table = (0, 2, 4)
    for answers in ([high, high], [low, low], [high, low]):
        here, decided = asked(table, answers)
        for j in range(1, k + 1):
            for gone in itertools.combinations(range(3), j):
                rest = tuple(x for i, x in enumerate(table) if i not in gone)
                came = [()] if unit.neighbors == "add-remove" else itertools.combinations_with_replacement(range(6), j)
                for new in came:
                    there, other = asked((*rest, *new), answers)
                    assert other == decided
                    assert [x.shape for x in there] == [x.shape for x in here]
                    for x, y in zip(here, there, strict=True):
                        assert np.linalg.norm(x - y) <= unit.count_sensitivity
                        worst = max(worst, float(np.linalg.norm(x - y)))
    assert worst >= unit.count_sensitivity * 0.7, "three rows of three groups reach half of two rows in one"


@pytest.mark.parametrize("method", ["mst", "prism", "workload"])
def test_the_top_of_a_hierarchy_may_be_named_in_constraints_and_questions(method):
    """Its contents are known beforehand: every code released inside it belongs to it, so no row may break it."""
    given = {"impossible": [{"code": ["chapter A"], "sex": ["m"]}]}
    asked = QuestionList(
        (
            {"name": "A or B", "where": {"code": ["chapter A", "chapter B"]}},
            {"name": "men in C, or A", "any": [{"code": ["chapter C"], "sex": ["m"]}, {"code": ["chapter A"]}]},
        ),
        ({"name": "marks", "of": {"code": ["chapter B"], "sex": ["f"]}},),
    )
    project = replace(
        a_project(method, question_share=0.2), constraints=Constraints.from_json(given), question_list=asked
    )
    assert Project.loads(project.dumps()) == project
    shown = preview(project, ROWS)
    made = release(project, Table.encode(the_text(), project.schema))
    assert made.to_json()["spent"]["rho"] == pytest.approx(shown.spent, rel=1e-9)
    column = made.project.schema["code"]
    in_a = {c for c in column.categories if dict(column.groups).get(c, (c,))[0].startswith("A")}
    assert len(in_a) > 5, "the codes of the chapter were distinguished"
    assert set(made.project.constraints.impossible[0].values["code"]) == in_a
    assert not [1 for c, s in zip(made.table["code"], made.table["sex"], strict=True) if c in in_a and s == "m"]
    facts = made.to_json()
    answers = {q["name"]: q["answer"] for q in facts["questions"]}
    assert answers["A or B"] == pytest.approx(ROWS, rel=0.05)
    back = Project.loads(json.dumps(facts["project"]))
    assert (back.constraints, back.question_list) == (made.project.constraints, made.project.question_list)
    assert "A or B" in render(facts)


def test_places_are_kept_for_the_top_before_it_is_bought():
    """Disjoint groups stay disjoint and together cover everything, so sensitivities are those of the release."""
    column: Any = a_project().schema["code"]
    assert list(column.named) == ["chapter A", "chapter B", "chapter C"]
    assert sorted(itertools.chain(*column.named.values())) == list(range(30))
    expanded = column.expanded(column.tree.cut([(n,) for n in column.tree.children[-1]]))
    assert column.inside(expanded) == {name: (name,) for name in column.named}
    assert Column("a", "categorical", ("x", "y")).named == {"x": (0,), "y": (1,)}
    assert to_buy("a", "categorical", 5).named == {}


def test_a_code_inside_a_hierarchy_is_refused_before_anything_is_read():
    about = Constraints.from_json({"impossible": [{"code": ["A00"], "sex": ["m"]}]})
    with pytest.raises(EspalierError, match="'A00' cannot be named here.*of the top level.*: chapter A"):
        preview(replace(a_project(), constraints=about), ROWS)
    with pytest.raises(EspalierError, match="'A00' is not a category.*of the top level.*: chapter A"):
        replace(a_project(), question_list=QuestionList(({"name": "few", "where": {"code": ["A00"]}},)))
    ordered = Constraints.from_json({"monotone": [["code", "sex"]]})
    with pytest.raises(EspalierError, match="names .code.*bought at release"):
        preview(replace(a_project(), constraints=ordered), ROWS)
    with pytest.raises(EspalierError, match="schema_share"):
        preview(a_project(schema_share=0.0), ROWS)
