"""The implications of a plan and all conflicts are known before anything is read."""

from __future__ import annotations

import itertools

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from espalier.core.errors import GraphError, ProjectError
from espalier.core.graph.dag import Dag
from espalier.core.graph.roles import Roles
from espalier.core.graph.separations import Separation, clique_edges
from espalier.core.methods import frame_of
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from tests.support.graphs import d_separated

NAMES = ("y", "a", "b", "s", "c", "z")
SCHEMA = Schema(tuple(Column(n, "categorical", categories=("0", "1")) for n in NAMES))
DAG = Dag((("a", "y"), ("b", "y"), ("y", "c"), ("z", "c"), ("s", "a")))
ROLES = Roles(outcome=("y",), protected=("s",), admissible=("a",), inadmissible=("z",))


def frame(roles=ROLES, dag=DAG, separations=(), **plan):
    plan = {"method": "prism", "epsilon": 1.0, "delta": 1e-9, "target": "y", "regime": "causal", **plan}
    return frame_of(Project("t", SCHEMA, Plan.from_json(plan), dag, roles, separations))


def test_dag_sets():
    assert DAG.parents("y") == ("a", "b")
    assert DAG.children("y") == ("c",)
    assert DAG.blanket("y") == ("a", "b", "c", "z")
    assert d_separated(DAG, ["y"], ["s"], ["a"])
    assert not d_separated(DAG, ["a"], ["z"], ["c"]), "a collider opens"


def test_a_cycle_is_refused_with_its_path():
    with pytest.raises(GraphError) as error:
        Dag((("a", "b"), ("b", "c"), ("c", "a"), ("a", "d")))
    path = error.value.data["cycle"]
    assert path[0] == path[-1]
    assert set(itertools.pairwise(path)) == {("a", "b"), ("b", "c"), ("c", "a")}
    assert " → ".join(path) in str(error.value)


@pytest.mark.parametrize("edges", [(("a", "a"),), (("a", "b"), ("a", "b"))])
def test_loops_and_doubled_arrows_are_refused(edges):
    with pytest.raises(GraphError):
        Dag(edges)


@given(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda e: e[0] != e[1]), max_size=14))
def test_acyclic_or_refused(edges):
    named = tuple((f"v{a}", f"v{b}") for a, b in edges)
    if nx.is_directed_acyclic_graph(nx.DiGraph(named)):
        assert Dag(named).edges == named
    else:
        with pytest.raises(GraphError, match="cycle"):
            Dag(named)


def test_causal_regime():
    f = frame(fair=False)
    assert f.features == ("a", "b")
    assert [(s.left, s.right, s.given) for s in f.separations] == [(("y",), ("s", "c", "z"), ("a", "b"))]


def test_graphical_regime():
    f = frame(regime="graphical")
    assert f.features == ("a", "b", "c", "z")
    assert f.separations[0].right == ("s",)


def test_predictive_regime_claims_no_separation():
    f = frame(regime="predictive")
    assert f.features is None
    assert f.separations == ()
    assert f.candidates == ("a", "b", "s", "c", "z")


def test_the_fence_takes_protected_columns_out_of_s():
    f = frame(fair=True, dag=Dag((("s", "y"), ("a", "y"))))
    assert f.features == ("a",)
    assert f.refused == ("s",)
    assert (("y",), ("s",), ("a",)) in [(s.left, s.right, s.given) for s in f.separations]
    assert frame(fair=True, regime="predictive").candidates == ("a", "b", "c", "z")


def test_strict_keeps_inadmissible_columns_away_too():
    s = frame(method="privci", strict=True).separations[0]
    assert s.right == ("s", "z")
    assert frame(method="privci").separations[0].right == ("s",)
    assert frame(regime="predictive", fair=True, strict=True).refused == ("s", "z")


def test_prefair_is_a_frame_of_its_own():
    f = frame(method="prefair")
    assert (("y",), ("b", "s", "c", "z"), ("a",)) in [(s.left, s.right, s.given) for s in f.separations]


def test_no_admissible_column_is_allowed_with_a_warning():
    f = frame(method="privci", roles=Roles(outcome=("y",), protected=("s",)))
    assert f.separations[0].given == ()
    assert "forest" in f.warnings[0]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"method": "mst", "fair": True}, "mst has no fence.*workload"),
        ({"method": "privci", "fair": False}, "always keeps the fence"),
        ({"method": "prefair", "fair": False}, "always keeps the fence"),
        ({"method": "privci", "roles": Roles(outcome=("y",))}, "at least one protected"),
        ({"method": "independent", "fair": True, "roles": Roles(protected=("s",))}, "at least one outcome"),
        ({"dag": Dag()}, "needs a graph"),
        ({"dag": Dag(), "regime": "graphical"}, "needs a graph"),
        ({"target": None}, "needs a target"),
        ({"fair": True, "target": "c"}, "must be an outcome column"),
        ({"neighbors": "add-remove", "delta": None}, "set delta to a number"),
    ],
)
def test_conflicts(changes, words):
    with pytest.raises(ProjectError, match=words):
        frame(**changes)


@pytest.mark.parametrize("method", ["mst", "independent"])
def test_a_regime_without_a_graph_is_no_conflict_of_other_methods(method):
    assert frame(method=method, dag=Dag(), target=None).separations == ()


def test_a_target_without_causes_stands_alone():
    f = frame(dag=Dag((("y", "c"),)))
    assert f.features == ()
    assert f.separations[0].given == ()
    assert f.warnings


def test_separation_paths():
    s = Separation(("a",), ("d",), ("b",))
    assert s.holds([("a", "b"), ("b", "d")])
    assert s.path([("a", "c"), ("c", "d")]) == ("a", "c", "d")
    assert s.forbids("d", "a")
    assert not s.forbids("a", "b")


@given(st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(lambda e: e[0] < e[1])))
def test_holds_agrees_with_networkx(edges):
    s = Separation(("0", "1"), ("5", "6"), ("3",))
    named = [(str(a), str(b)) for a, b in edges]
    g = nx.Graph(named)
    g.add_nodes_from(map(str, range(7)))
    g.remove_node("3")
    connected = any(nx.has_path(g, a, b) for a in s.left for b in s.right)
    assert s.holds(named) == (not connected)


def test_clique_edges_lists_each_pair_once():
    assert set(clique_edges([("a", "b", "c"), ("b", "c"), ("d",)])) == {("a", "b"), ("a", "c"), ("b", "c")}


@pytest.mark.parametrize(
    "roles",
    [{"outcome": ("y",), "protected": ("y",)}, {"admissible": ("a", "a")}],
)
def test_one_role_a_column(roles):
    with pytest.raises(GraphError, match="one role"):
        Roles(**roles)


def test_further_separations_join_the_fence_of_every_method_that_keeps_one():
    more = Separation(("c",), ("s",), ("a",), "section 4")
    for method in ("privci", "prefair", "independent", "prism", "workload"):
        fair = {} if method in ("privci", "prefair") else {"fair": True}
        found = frame(method=method, separations=(more,), **fair)
        assert more in found.separations
        assert set(frame(method=method, **fair).separations) < set(found.separations)
    assert frame(method="mst", separations=(more,)).separations == ()


def test_further_separations_alone_need_no_roles():
    more = Separation(("c",), ("s",), ())
    (only,) = frame(Roles(), method="privci", separations=(more,)).separations
    assert (only.left, only.right, only.given) == (more.left, more.right, more.given)
    assert only.why
