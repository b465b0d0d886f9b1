"""The workload method: its purchases, the rest of the budget, and prism's use of it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from scipy.stats import binom

from espalier.core.errors import ProjectError
from espalier.core.evaluation.dependence import cmi
from espalier.core.graph.dag import Dag
from espalier.core.graph.roles import Roles
from espalier.core.graph.separations import Separation
from espalier.core.methods import frame_of
from espalier.core.methods.select.allocation import BudgetSplit
from espalier.core.methods.select.marginals import TREES
from espalier.core.methods.select.pairs import tells_its_pairs
from espalier.core.methods.workload import Request, measure_pairs, workload
from espalier.core.methods.workload_weights import Workload
from espalier.core.planning.preview import preview
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.unit import Unit
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release.artefact import SHRUNK
from espalier.core.tables.table import Table
from tests.methods.test_contract import project, table
from tests.support.loosely import fit, release


def curator_of(plan, rows):
    return PrivateCurator(rows, Unit(plan.neighbors), Budget.of(plan, rows.rows), plan.max_cells)


def test_a_share_is_split_where_noise_left_nothing_to_weigh_by():
    """Under add-remove, noise may suggest that there are no rows. Previously, the release then crashed with its budget
    spent."""
    budget = BudgetSplit(Budget.of(Plan("workload", 1.0, 1e-6), 9), {"a": 2, "b": 3, "c": 2}, "optimal", "zcdp")
    cliques = [("a", "b"), ("b", "c"), ("a", "c")]
    assert len(set(budget.split(0.5, cliques, [0.0] * 3).values())) == 1
    for taken in (0.4, 1e-3):
        by_hand = replace(budget, shares={"a × b": taken})
        parts = by_hand.split(0.5, cliques, [2.0, 0.0, 0.0])
        assert parts["a", "b"] == pytest.approx(taken * 0.5 * budget.budget.rho)
        assert sum(parts.values()) == pytest.approx(0.5 * budget.budget.rho)


def test_few_rows_under_so_much_noise_that_none_may_be_left():
    schema = Schema(tuple(Column(name, "categorical", ("0", "1")) for name in "abc"))
    made = Project("few", schema, Plan("workload", 0.05, 1e-6, neighbors="add-remove"))
    codes = {name: np.zeros(9, dtype=np.int64) for name in "abc"}
    for _ in range(20):
        assert release(made, Table(schema, codes, 9)).rows >= 1


@pytest.mark.parametrize("few", [0, 10**6])
@pytest.mark.parametrize("weights", [{}, {"a × x": 2.0}])
def test_all_is_spent_whether_pairs_are_scored_together_or_one_by_one(few, weights, monkeypatch):
    monkeypatch.setattr(import_module("espalier.core.methods.workload"), "FEW", few)
    made = project(method="workload", weights=weights)
    rows = table()
    curator = curator_of(made.plan, rows)
    measured = workload(curator, made, frame_of(made))
    assert curator.spending.rho == pytest.approx(curator.budget.rho, rel=1e-9)
    assert bool(curator.scored) == (few > 0 and bool(weights))
    assert any(len(q) == 2 for q in measured.cliques)


def test_columns_of_no_weight_are_in_no_pair_and_a_triple_on_request_is_counted():
    made = project(method="workload", epsilon=10.0, weights={"p": 0, "y × a × s": 50.0})
    measured = workload(curator_of(made.plan, table()), made, frame_of(made))
    assert ("s", "a", "y") in measured.cliques
    assert not any("p" in q for q in measured.cliques if len(q) > 1)


@pytest.mark.parametrize("weights", [{"a × y": 0}, {"a × y": 0, "a × x": 2}], ids=["one by one", "together"])
def test_a_pair_of_no_weight_is_never_counted(weights):
    """a and y depend on each other most strongly, so a tree without weights begins with them."""
    made = project(method="workload", epsilon=20.0, weights=weights)
    measured = workload(curator_of(made.plan, table()), made, frame_of(made))
    assert not any({"a", "y"} <= set(q) for q in measured.cliques)
    assert any(len(q) == 2 for q in measured.cliques)


def test_prism_without_a_background_is_the_star():
    made = project(method="prism", epsilon=0.02, features=10)
    curator = curator_of(made.plan, table(200))
    fitted = fit(curator, made, frame_of(made))
    spent = {1: 0.0, 2: 0.0}
    for m in fitted.measurements:
        spent[len(m.clique)] += m.rho / curator.budget.rho
        assert len(m.clique) == 1 or "y" in m.clique
    assert spent == pytest.approx({1: 0.1, 2: 0.9}, rel=1e-6)


@pytest.mark.parametrize(("plan", "shrunk"), [({"method": "prism"}, True), ({"method": "mst"}, False)])
def test_a_release_of_prism_says_that_its_model_believes_less_than_was_counted(plan, shrunk):
    made = release(project(**plan), table())
    assert (SHRUNK in made.to_json()["promises"]) is shrunk
    assert ("after a first fit" in made.model.fit.criterion) is shrunk


@pytest.mark.parametrize(("signal", "part"), [(1.0, 1 / 6), (15.0, 1 / 3), (30.0, 2 / 3), (45.0, 1.0), (np.inf, 1.0)])
def test_prisms_background_grows_with_what_can_be_told_of_the_target(signal, part, monkeypatch):
    """The background's own tables are cheap here, so it gets a small share, no matter how weak the signal of the target
    is.
    """
    prism = import_module("espalier.core.methods.prism")
    monkeypatch.setattr(prism, "_signal", lambda *_: signal)
    made = project(method="prism", epsilon=50.0, features=10)
    curator = curator_of(made.plan, table())
    fitted = fit(curator, made, frame_of(made))
    spent = sum(m.rho for m in fitted.measurements if len(m.clique) > 1 and "y" in m.clique) / curator.budget.rho
    assert spent == pytest.approx(0.95 - prism.BACKGROUND * part, abs=1e-6)
    assert any(len(m.clique) > 1 and "y" not in m.clique for m in fitted.measurements)
    assert curator.spending.rho == pytest.approx(curator.budget.rho, rel=1e-9)


@pytest.mark.parametrize(("epsilon", "most"), [(0.2, 40), (100.0, 80)])
def test_more_pairs_are_counted_where_each_is_counted_well(epsilon, most, monkeypatch):
    workload = import_module("espalier.core.methods.workload")
    found, how_many = [], workload._how_many
    monkeypatch.setattr(workload, "_how_many", lambda *given: found.append(how_many(*given)) or found[-1])
    preview(many(30, epsilon=epsilon), 20_000)
    assert found[0] == most


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ((9, 9), True),
        ((2, 2, 3), True),
        ((3, 3, 3), True),
        ((2, 2, 4), False),
        ((2, 2, 2, 3), True),
        ((2, 2, 3, 3), False),
        ((2, 2, 2, 2, 2), True),
        ((2, 2, 2, 2, 3), False),
        ((2, 2, 2, 2, 2, 2), False),
    ],
)
def test_a_table_tells_its_pairs_where_summing_adds_less_noise_than_dividing_rho(values, told):
    """The noisiest pair is compared with one of C(k, 2) pairs that share ρ: its variance is the sum over the cells that
    it adds.
    """
    sizes = dict(zip("abcdef", values, strict=False))
    pairs = list(itertools.combinations(sizes, 2))
    summed = max(np.prod([sizes[c] for c in sizes if c not in pair]) for pair in pairs)
    assert tells_its_pairs(sizes, tuple(sizes)) == (summed <= len(pairs)) == told


@pytest.mark.parametrize("fair", [False, True])
def test_small_columns_are_counted_together_inside_the_fence(fair):
    names = ("a", "s", "y", "u", "v", "w")
    schema = Schema(tuple(Column(n, "categorical", ("0", "1")) for n in names))
    rng = np.random.default_rng(1)
    odd = rng.integers(0, 2, 3000)
    codes = {n: (odd + (rng.random(3000) < 0.2)) % 2 for n in names}
    plan = Plan.from_json({"method": "workload", "epsilon": 50.0, "delta": 1e-9, "fair": fair, "strict": False})
    roles = Roles(outcome=("y",), protected=("s",), admissible=("a",), inadmissible=())
    made = release(Project("small", schema, plan, roles=roles), Table(schema, codes, 3000))
    assert max(map(len, made.fitted.cliques)) in (3, 4, 5)
    for s in made.plan_frame.separations:
        assert s.holds(made.edges)
        assert made.model.cmi(s.left, s.right, s.given) < 1e-9
    assert len(made.plan_frame.separations) == fair


def test_small_columns_are_counted_pair_by_pair_in_prisms_background():
    made = project(method="prism", epsilon=50.0, features=1)
    assert not Workload().together
    assert Workload.of(made).together


def many(columns, **plan):
    schema = Schema(tuple(Column(f"c{i}", "categorical", ("x", "y", "z")) for i in range(columns)))
    return Project("many", schema, Plan.from_json({"method": "workload", "epsilon": 1.0, "delta": 1e-9} | plan))


@pytest.mark.parametrize(
    ("plan", "columns", "rows", "together"),
    [
        ({}, 20, 10_000, True),
        ({}, 20, 2_000, False),
        ({"epsilon": 0.1}, 20, 10_000, False),
        ({"epsilon": 100.0}, 20, 10_000, False),
        ({}, 12, 10_000, False),
        ({"method": "prism", "target": "c0"}, 20, 10_000, False),
    ],
    ids=["clear", "few rows", "small ε", "counted well", "few columns", "prism"],
)
def test_pairs_of_many_columns_are_scored_together_if_the_scores_are_clear(plan, columns, rows, together):
    bought = [line.what for line in preview(many(columns, **plan), rows).lines]
    assert any("all together" in what for what in bought) == together
    assert any("further pair" in what for what in bought) != together


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
def test_pairs_scored_together_stay_inside_the_fence_and_spend_everything(neighbors):
    """All columns depend on a hidden one, so more than two pairs per column are worth counting."""
    rng = np.random.default_rng(3)
    hidden = rng.integers(0, 3, 4000)
    codes = {f"c{i}": np.where(rng.random(4000) < 0.6, hidden, rng.integers(0, 3, 4000)) for i in range(14)}
    roles = Roles(outcome=("c1",), protected=("c2",), admissible=("c0",), inadmissible=())
    made = replace(many(14, epsilon=3.0, neighbors=neighbors, fair=True, strict=False), roles=roles)
    rows = Table(made.schema, codes, 4000)
    curator = curator_of(made.plan, rows)
    fitted = workload(curator, made, frame_of(made))
    assert len(curator.scored) == 1
    assert curator.spending.rho == pytest.approx(curator.budget.rho, rel=1e-9)
    (separation,) = frame_of(made).separations
    assert separation.holds(fitted.edges)
    assert len(fitted.edges) > 2 * 14


def test_fewer_choices_are_made_where_columns_are_few(monkeypatch):
    workload = import_module("espalier.core.methods.workload")
    found, how_many = [], workload._how_many
    monkeypatch.setattr(workload, "_how_many", lambda *given: found.append(how_many(*given)) or found[-1])
    schema = Schema(tuple(Column(f"c{i}", "categorical", ("x", "y")) for i in range(12)))
    preview(Project("few", schema, Plan("workload", 1.0, 1e-7)), 1_600)
    assert found[0] == 24


def test_a_tiny_budget_counts_columns_alone():
    made = project(method="workload", epsilon=0.001)
    curator = curator_of(made.plan, table(200))
    measured = workload(curator, made, frame_of(made))
    assert len(measured.measurements) >= len(made.schema.names)
    assert curator.spending.rho == pytest.approx(curator.budget.rho, rel=1e-9)


def test_without_candidates_nothing_is_spent():
    made = project(method="workload")
    curator = curator_of(made.plan, table())
    budget = BudgetSplit.of(made.plan, curator.budget, curator.sizes)
    nothing = Workload(dict.fromkeys(made.schema.names, 0.0))
    assert measure_pairs(Request(curator, budget, (), nothing), 1.0, (), ()) == ([], 1.0)
    assert curator.spending.rho == 0.0


@pytest.mark.parametrize("dag", [Dag(), Dag((("a", "y"), ("x", "y")))])
@pytest.mark.parametrize("regime", ["predictive", "causal"])
def test_prism_keeps_further_separations_and_the_fence(regime, dag):
    if regime == "causal" and not dag.edges:
        pytest.skip("the causal regime needs a graph")
    further = (Separation(("x",), ("a",), ("p",)),)
    fenced = project(method="prism", fair=True, regime=regime, dag=dag, separations=further, epsilon=5.0)
    made = release(fenced, table())
    assert len(made.plan_frame.separations) >= 2
    for s in made.plan_frame.separations:
        assert s.holds(made.edges)
        assert made.model.cmi(s.left, s.right, s.given) < 1e-9


def test_both_targets_get_their_tables_of_more_than_two_columns():
    made = release(project(method="prism", targets={"x": 1.0}, three_way=1, epsilon=50.0), table(20_000))
    large = [q for q in made.fitted.cliques if len(q) > 2]
    assert any("y" in q for q in large)
    assert any("x" in q for q in large)


def test_rows_are_even_unless_asked_otherwise():
    """One-way counts of even rows are within one row of the model's; independent ones are not, P < 1e-6."""
    off = {}
    for drawn in ("even", "independent"):
        made = release(project(method="independent", rows_drawn=drawn), table(5000))
        off[drawn] = max(
            np.abs(np.bincount(made.codes[n], minlength=k) - made.model.marginal((n,))).max()
            for n, k in made.project.schema.sizes.items()
        )
        said = any("evenly" in promise for promise in made.to_json()["promises"])
        assert said == (drawn == "even")
    assert off["even"] <= 1.0 + 1e-6
    assert off["independent"] > 1.5


@pytest.mark.nightly
def test_even_rows_of_200_fenced_runs_stay_at_the_sampling_floor():
    """Where independence is true, 5 % of tables exceed its 95 % floor; even at 6 %, 36 of 200 would have P < 1e-6."""
    assert binom.sf(35, 200, 0.06) < 1e-6
    rows, above = table(600), 0
    for i in range(200):
        made = release(project(method=("workload", "prism")[i % 2], fair=True, epsilon=2.0), rows)
        (fence,) = made.plan_frame.separations
        found = cmi(Table(made.project.schema, made.codes, made.rows), fence)
        above += found.value > found.floor
        assert made.model.cmi(fence.left, fence.right, fence.given) < 1e-9
    assert above <= 35


@pytest.mark.parametrize("name", ["nobody", "a × nobody", "a × a", "s × a × p × y"])
def test_a_weight_that_stands_for_nothing_is_refused(name):
    with pytest.raises(ProjectError, match="neither a column") as error:
        frame_of(project(method="workload", weights={name: 1.0}))
    assert error.value.data["key"] == "weights"


def test_a_weight_of_what_the_fence_refuses_is_told():
    (said,) = frame_of(project(method="workload", fair=True, weights={"y × s": 2.0, "a × y": 2.0})).warnings
    assert "s × y" in said
    assert "a × y" not in said


def test_the_cap_bounds_the_model_and_the_plan_says_so():
    for cap in (100, 300):
        made = project(method="workload", epsilon=100.0, clique_cells=cap)
        real = release(made, table()).fitted.size(10**9)
        assert real.largest_cells <= cap
        assert real.cells <= preview(made, 2000).size.cells <= TREES * cap


def test_triples_of_counted_pairs_join_the_second_round():
    made = release(project(method="workload", epsilon=100.0, triples=3), table(20_000))
    triples = [q for q in made.fitted.cliques if len(q) == 3]
    assert 0 < len(triples) <= 3
    for triple in triples:
        assert set(itertools.combinations(triple, 2)) <= set(made.fitted.cliques)


def test_explaining_scores_a_tree_of_counted_pairs_beside_all_that_was_refused():
    made = release(project(method="workload", fair=True, explain=0.2), table())
    facts = made.to_json()["explained"]
    assert ["s", "y"] in [x["columns"] for x in facts["refused"]]
    assert {tuple(x["columns"]) for x in facts["tree"]} <= set(made.edges)
    assert facts["rho"] == pytest.approx(0.2 * made.budget.rho, rel=1e-9)
    assert "explained" not in release(project(method="workload", fair=True), table()).to_json()
