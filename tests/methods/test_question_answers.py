"""Questions next to a method: the fence, direct answers or marginals, released facts; also FPT's two methods."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from espalier.core.analysis.loading import load_release
from espalier.core.errors import ProjectError, SizeError
from espalier.core.graph.separations import Separation
from espalier.core.methods import METHODS, frame_of
from espalier.core.methods.question_links import links_of, widened
from espalier.core.models.question_fit import Network, lower_bound
from espalier.core.planning.preview import preview
from espalier.core.privacy.question_recipes.lowering import Block
from espalier.core.project.constraints import Constraints
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.question_list import QuestionList
from espalier.core.project.schema import Column, Schema
from tests.methods.test_contract import ASKED, SCHEMA, project, table
from tests.support.loosely import release

ROOT = Path(__file__).resolve().parents[2]
TRUE = {"young no": ({"a": [0], "y": [0]},), "far": ({"x": [0, 1]}, {"p": [0, 1]})}
CROSSING = QuestionList(({"name": "who", "where": {"s": ["f"], "y": ["yes"]}},))


def asked(**plan):
    return project(**{"method": "mst", "question_list": ASKED, "question_share": 0.4, "epsilon": 4.0, **plan})


@pytest.fixture(scope="module")
def made():
    return release(asked(), table())


def test_answers_are_near_the_truth_and_the_model_near_the_answers(made):
    """All are within the simultaneous bound, which fails once in twenty runs; widened to six σ, it fails once in
    10⁸."""
    facts, real = made.to_json(), table().codes
    for line in facts["questions"]:
        if line["name"] in TRUE:
            met = np.any(
                [np.all([np.isin(real[c], v) for c, v in part.items()], axis=0) for part in TRUE[line["name"]]], 0
            )
            assert abs(line["answer"] - met.sum()) < 6 * line["sigma"]
            assert line["low"] <= line["answer"] <= line["high"]
            assert abs(line["fitted"] - line["answer"]) < 4 * line["sigma"]
            assert abs(line["rows"] - line["fitted"]) < 6 * math.sqrt(500)
    (count,) = facts["counts"]
    marks = np.isin(real["x"], [2]).astype(int) + np.isin(real["p"], [2, 3])
    assert np.abs(np.array(count["answer"]) - np.bincount(marks, minlength=3)).max() < 6 * count["sigma"]
    assert sum(count["fitted"]) == pytest.approx(2000)


def test_hidden_columns_reach_nothing_that_is_handed_over(made, tmp_path):
    made.save(tmp_path / "out")
    facts = json.loads((tmp_path / "out" / "release.json").read_text())
    head = (tmp_path / "out" / "synthetic.csv").read_text().splitlines()[0]
    assert head.split(",") == list(SCHEMA.names)
    assert "~" not in json.dumps({k: v for k, v in facts.items() if k != "project"})
    assert "~" not in (tmp_path / "out" / "report.html").read_text()
    assert [c["name"] for c in facts["project"]["schema"]] == list(SCHEMA.names)
    again = load_release(tmp_path / "out")
    assert again.model.columns == SCHEMA.names
    np.testing.assert_allclose(again.model.marginal(("marks",)), made.model.marginal(("marks",)))
    with pytest.raises(KeyError):
        again.model.marginal(("~0",))
    assert again.model.edges == made.edges


def test_the_certificate_is_proved_by_its_weights_alone(made):
    best, fitted = made.to_json()["agreement"], made.fitted
    lowered, answers = fitted.lowered, fitted.answers
    blocks = [*lowered.blocks, *(Block(m.clique, None) for m in answers.histograms)]
    network = Network(lowered.sizes, blocks, lowered.zeros)
    noisy = np.concatenate([answers.direct.values[lowered.order], *(m.values for m in answers.histograms)])
    sigma = np.concatenate([np.full(3, answers.direct.sigma), *(np.full(3, m.sigma) for m in answers.histograms)])
    proved = lower_bound(network, noisy, sigma, 2000.0, np.array(best["weights"]))
    assert proved == pytest.approx(best["bound"], abs=1e-7)
    assert best["bound"] <= best["alpha"] + 1e-9


def test_the_share_is_what_the_questions_cost():
    for share in (0.2, 0.6):
        shown = preview(asked(question_share=share), 2000)
        pools = shown.pools
        assert pools["questions"] + pools["counts"] == pytest.approx(share * shown.budget.rho)
        assert shown.spent == pytest.approx(shown.budget.rho)
        assert {one.name for one in shown.asked} == {"young no", "far", "many", "marks"}
        sigmas = {one.sigma for one in shown.asked}
        assert max(sigmas) == pytest.approx(min(sigmas), rel=1e-5), "all numbers have one σ"


def test_without_a_share_nothing_is_asked_and_the_plan_says_so():
    shown = preview(asked(question_share=0.0), 2000)
    assert "questions" not in shown.pools
    assert any("they are not measured" in w for w in shown.warnings)
    assert "questions" not in release(asked(question_share=0.0), table()).to_json()


def test_many_questions_on_few_columns_are_answered_from_counts():
    ages, ends, spans = (["lo"], ["lo", "mid"], ["mid", "hi"], ["hi"]), (["no"], ["yes"]), ([0, 10], [0, 20], [10, 40])
    cells = [
        {"name": f"{a}{y}{x}", "where": {"a": a, "y": y, "x": x}} for a, y, x in itertools.product(ages, ends, spans)
    ]
    plan = asked(question_list=QuestionList(tuple(cells)))
    shown = preview(plan, 2000)
    assert [line.columns for line in shown.lines if line.pool == "questions"] == [("a", "x", "y")]
    assert {one.how for one in shown.asked} == {"from the counts of its columns"}
    facts = release(plan, table()).to_json()
    real = table().codes
    whole = next(q for q in facts["questions"] if q["name"] == str(["lo"]) + str(["no"]) + str([0, 10]))
    met = int(((real["a"] == 0) & (real["y"] == 0) & (real["x"] == 0)).sum())
    assert abs(whole["answer"] - met) < 6 * whole["sigma"]


def test_a_question_across_the_fence_is_refused_with_the_separation():
    with pytest.raises(ProjectError, match="'who' joins s, y") as error:
        preview(project(method="privci", question_list=CROSSING, question_share=0.3), 2000)
    assert error.value.data["separation"]["left"] == ["y"]
    assert error.value.data["key"] == "questions"
    apart = QuestionList(
        ({"name": "one", "where": {"s": ["f"], "x": [0, 10]}}, {"name": "two", "where": {"x": [0, 10], "y": ["no"]}})
    )
    with pytest.raises(ProjectError, match="the question 'one', the question 'two' together join s, x, y"):
        preview(project(method="privci", question_list=apart, question_share=0.3), 2000)
    count = QuestionList((), ({"name": "n", "of": {"s": ["f"], "y": ["yes"]}},))
    with pytest.raises(ProjectError, match="the count 'n' joins"):
        preview(project(method="privci", question_list=count, question_share=0.3), 2000)
    assert preview(project(method="privci", question_list=CROSSING, question_share=0.0), 2000)
    through = QuestionList(
        ({"name": "ok", "where": {"s": ["f"], "a": ["lo"]}}, {"name": "ok2", "where": {"a": ["lo"], "y": ["no"]}})
    )
    made = release(project(method="privci", question_list=through, question_share=0.3), table())
    assert all(s["holds"] for s in made.to_json()["separations"])
    assert made.model.cmi(("y",), ("s",), ("a",)) < 1e-9


@pytest.mark.nightly
@settings(max_examples=300)
@given(st.data())
def test_a_widened_separation_holds_in_the_methods_graph_and_the_questions_together(data):
    """Any graph that keeps the widened separation still keeps the requested one once the questions' links are added."""
    names = "abcdefg"
    schema = Schema(tuple(Column(n, "categorical", ("0", "1")) for n in names))
    holder = asked()
    holder = type(holder)("t", schema, Plan("mst", 1.0, 1e-6))
    side = data.draw(st.lists(st.sampled_from("LRG."), min_size=7, max_size=7))
    parts = [tuple(n for n, s in zip(names, side, strict=True) if s == which) for which in "LRG"]
    if not parts[0] or not parts[1]:
        return
    separation = Separation(*parts)
    drawn = data.draw(st.lists(st.sets(st.sampled_from(names), min_size=1, max_size=3), max_size=4))
    scopes = {str(i): schema.clique(s) for i, s in enumerate(drawn)}
    try:
        wider = widened(separation, holder, scopes)
    except ProjectError:
        graph = nx.Graph(links_of(scopes.values()))
        graph.add_nodes_from(names)
        graph.remove_nodes_from(separation.given)
        crossing = any(nx.has_path(graph, a, b) for a in separation.left for b in separation.right)
        assert crossing, "only separations that the questions themselves cross are refused"
        return
    edges = data.draw(st.lists(st.sampled_from(list(itertools.combinations(names, 2))), max_size=10))
    kept = []
    for edge in edges:
        if wider.holds([*kept, edge]):
            kept.append(edge)
    assert separation.holds([*kept, *links_of(scopes.values())])


def test_a_method_without_marginals_refuses_a_share():
    unable = [name for name, m in METHODS.items() if m.capabilities.questions == "no"]
    for name in unable:
        with pytest.raises(ProjectError, match="measures no marginals"):
            frame_of(project(method=name, question_list=ASKED, question_share=0.2))


def test_what_is_too_wide_is_refused_by_the_plan():
    schema = Schema(tuple(Column(f"c{i}", "categorical", tuple("uvwxyz")) for i in range(14)))
    pairs = [{"name": f"{i}-{j}", "where": {f"c{i}": ["u"], f"c{j}": ["v"]}} for i in range(14) for j in range(i)]
    odd = {"name": "odd", "any": [{f"c{i}": ["u"], f"c{i + 1}": ["w"]} for i in range(13)]}
    wide = type(asked())(
        "t", schema, Plan("mst", 1.0, 1e-6, question_share=0.3), question_list=QuestionList((odd, *pairs))
    )
    with pytest.raises(SizeError, match="limit is .* Leave out the question 'odd'"):
        preview(wide, 2000)


def test_where_questions_do_not_fit_beside_a_method_what_to_do_is_said():
    services = Project.load(ROOT / "sample_data/services.json").with_plan(method="workload", max_cells=20_000)
    with pytest.raises(
        SizeError, match="Leave out the count 'burdens' and the questions that use it .* that can answer them:"
    ):
        preview(services, 6_000)


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_multiplicative_weights_pay_for_every_round_that_runs(neighbors):
    plan = project(method="fpt-mw", question_list=ASKED, rounds=6, neighbors=neighbors, rows_per_person=2, epsilon=2.0)
    shown = preview(plan, 2000)
    assert sum("noisy choice" in line.what for line in shown.lines) == 6, "the plan shows all rounds"
    assert shown.spent == pytest.approx(shown.budget.rho)
    made = release(plan, table())
    facts = made.to_json()
    ran = facts["rounds"]["ran"]
    assert facts["rounds"]["planned"] == 6
    assert len(facts["choices"]) == ran == len([m for m in facts["measurements"] if m["pool"] == "questions"])
    for c in facts["choices"]:
        assert c["sensitivity"] == 2
        assert c["scale"] == pytest.approx(2 / math.sqrt(2 * c["rho"]), rel=1e-9)
    for m in facts["measurements"]:
        if m["pool"] == "questions":
            assert m["sigma"] == pytest.approx(2 / math.sqrt(2 * m["rho"]), rel=1e-5)
    assert made.spending.rho <= made.budget.rho
    assert facts["spent"]["rho"] == made.spending.rho
    answered = [q for q in facts["questions"] if q["answer"] is not None]
    assert answered
    assert {q["name"] for q in answered} <= {q["name"] for q in facts["questions"]}
    assert made.model.total == pytest.approx(2000, abs=1 if neighbors == "replace-one" else 500)
    sampled = release(project(method="fpt-mw", question_list=ASKED, rounds=3, samples=500), table())
    assert sampled.to_json()["rounds"]["planned"] == 3


def test_multiplicative_weights_come_near_what_they_ask():
    """At ε = 20, noise is a few rows: the worst answer is closer than the uniform table's, which is off by hundreds."""
    facts = release(project(method="fpt-mw", question_list=ASKED, epsilon=20.0, rounds=30), table()).to_json()
    real = table().codes
    met = int(((real["a"] == 0) & (real["y"] == 0)).sum())
    line = next(q for q in facts["questions"] if q["name"] == "young no")
    assert abs(line["fitted"] - met) < 0.3 * abs(2000 / 6 - met)


def test_multiplicative_weights_start_from_one_way_counts():
    plan = project(method="fpt-mw", question_list=ASKED, rounds=5, one_way=0.3, step=0.2, epsilon=20.0)
    made = release(plan, table())
    assert sum(d.pool == "one-way" for d in made.spending.draws) == len(SCHEMA.names)
    share = sum(d.rho for d in made.spending.draws if d.pool == "one-way") / made.budget.rho
    assert share == pytest.approx(0.3, rel=1e-3)
    truth = table().count(("p",)) / 2000  # p is in one question only
    found = made.model.marginal(("p",)) / made.model.total
    assert np.abs(found - truth).sum() < 0.2
    assert np.abs(found - truth).sum() < 0.5 * np.abs(1 / 5 - truth).sum()


def test_the_published_noise_rule_is_the_papers_and_leaves_budget_unspent():
    """By the paper's formula, 2T draws with the noise's ε₀ are within ε together; draws with 1 % more are not."""
    plan = {"method": "fpt-mw", "question_list": ASKED, "rounds": 60}
    usual, made = (preview(project(**plan, noise=rule), 2000) for rule in ("zcdp", "published"))
    [ours], [margin] = ({line.sigma for line in seen.lines if line.sums} for seen in (usual, made))
    epsilon = math.sqrt(2) / margin  # Laplace noise of scale 1/ε₀: one person changes an answer by one row
    together = [e * math.sqrt(2 * 120 * math.log(1e6)) + 120 * e * (math.exp(e) - 1) for e in (epsilon, 1.01 * epsilon)]
    assert together[0] <= 1.0 < together[1]
    assert margin / ours == pytest.approx(1.70, abs=0.01)
    assert 0.2 * usual.spent < made.spent < 0.3 * usual.spent
    few = release(project(**{**plan, "rounds": 3}, noise="published"), table())
    assert few.spending.rho <= preview(few.project, 2000).spent < few.budget.rho
    with pytest.raises(ProjectError, match="set accounting to zcdp"):
        preview(project(**{**plan, "delta": None}, accounting="pure", noise="published"), 2000)


def test_the_published_noise_is_never_below_that_of_zcdp():
    """For one round at ε = 10, pure guarantees would cost six times the budget's ρ."""
    plan = {"method": "fpt-mw", "question_list": ASKED, "rounds": 1, "epsilon": 10.0}
    usual, made = (preview(project(**plan, noise=rule), 2000) for rule in ("zcdp", "published"))
    assert made.spent <= usual.spent


def test_the_plan_states_the_treewidth():
    shown = preview(project(method="fpt-mw", question_list=ASKED), 2000)
    assert shown.size.treewidth >= 2
    assert shown.to_json()["treewidth"] == shown.size.treewidth
    assert preview(project(method="mst"), 2000).size.treewidth == 1


def test_the_projection_stands_beside_each_answer():
    facts = release(project(method="fpt-lp", question_list=ASKED), table()).to_json()
    best = facts["agreement"]
    assert best["alpha"] - best["bound"] < 1e-6
    assert {"projected", "fitted", "answer"} <= set(facts["questions"][0])
    for line in facts["questions"]:
        assert abs(line["projected"] - line["answer"]) <= best["alpha"] * line["sigma"] * (1 + 1e-6) + 1e-6


@pytest.mark.parametrize("method", ["fpt-lp", "fpt-mw"])
def test_a_method_for_questions_asks_for_some(method):
    with pytest.raises(ProjectError, match="list questions or counts first"):
        preview(project(method=method), 2000)


@pytest.mark.parametrize("listed", [ASKED, QuestionList((), ASKED.counts)], ids=["questions", "a count alone"])
def test_impossible_cells_stay_empty_beside_questions(listed):
    constraints = Constraints.from_json({"impossible": [{"s": ["m"], "p": ["e"]}]})
    made = release(dataclasses.replace(asked(question_list=listed), constraints=constraints), table())
    assert made.model.marginal(("s", "p"))[1, 1] == pytest.approx(0, abs=1e-9)
    assert not np.any((made.codes["s"] == 1) & (made.codes["p"] == 1))
    assert ("s", "p") in made.edges
