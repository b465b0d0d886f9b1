"""Open paths, confounders and colliders agree with brute force; the effect of erasing arrows."""

from __future__ import annotations

import itertools

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from espalier.core.errors import GraphError
from espalier.core.graph.dag import Dag
from espalier.core.graph.implied import change, implied, without
from espalier.core.graph.paths import arrows_of, between, is_causal, is_open, open_paths, separated
from espalier.core.graph.roles import Roles
from tests.support.graphs import d_separated

NAMES = "abcdef"
PAIRS = list(itertools.combinations(NAMES, 2))
dags = st.sets(st.sampled_from(PAIRS), max_size=11).flatmap(lambda e: st.permutations(sorted(e))).map(tuple)
subsets = st.sets(st.sampled_from("cdef"), max_size=3)


def brute_force(edges, left, right, given):
    """All open simple paths, by definition, over every order of columns."""
    drawn, opening = set(edges), set(given)
    graph = nx.DiGraph(list(edges))
    for g in given:
        opening |= nx.ancestors(graph, g) if g in graph else set()
    linked = {frozenset(e) for e in edges}
    out = set()
    inner = [n for n in NAMES if n not in (left, right)]
    for k in range(len(inner) + 1):
        for middle in itertools.permutations(inner, k):
            path = (left, *middle, right)
            if any(frozenset(p) not in linked for p in itertools.pairwise(path)):
                continue
            triples = list(zip(path, path[1:], path[2:], strict=False))
            meets = {m: (a, m) in drawn and (b, m) in drawn for a, m, b in triples}
            if all((m in opening) if collides else (m not in given) for m, collides in meets.items()):
                out.add(path)
    return out


@settings(max_examples=150)
@given(dags, subsets)
def test_open_paths_are_those_of_the_definition(edges, given_):
    expected = brute_force(edges, "a", "b", given_)
    found = open_paths(edges, "a", "b", given_, most=10_000)
    assert found.complete
    assert set(found.paths) == expected
    assert list(map(len, found.paths)) == sorted(map(len, found.paths)), "shortest first"
    assert all(is_open(p, edges, given_) for p in found.paths)
    assert separated(edges, "a", "b", given_) == (not expected) == d_separated(Dag(edges), "a", "b", given_)


@settings(max_examples=60)
@given(dags, subsets, st.data())
def test_erasing_is_worked_out_as_from_scratch(edges, given_, data):
    roles = Roles(protected=("a",), outcome=("b",), admissible=tuple(sorted(given_)))
    dag = Dag(edges)
    gone = data.draw(st.sets(st.sampled_from(edges), max_size=2)) if edges else set()
    before, after = implied(dag, "b", roles), implied(dag.without(gone), "b", roles)
    assert without(dag, gone, "b", roles, before) == change(before, after)


def test_paths_that_avoid_the_admissible_columns():
    edges = (("sex", "job"), ("job", "hired"), ("sex", "club"), ("club", "hired"), ("age", "club"), ("age", "job"))
    paths = open_paths(edges, ["sex"], ["hired"], ["job"]).paths
    assert paths == (("sex", "club", "hired"), ("sex", "job", "age", "club", "hired"))
    assert is_causal(paths[0], edges)
    assert not is_causal(paths[1], edges), "job is a collider, and is open because it is admissible"
    assert arrows_of(paths[1], edges) == (("sex", "job"), ("age", "job"), ("age", "club"), ("club", "hired"))
    assert not is_open(("sex", "job", "hired"), edges, ["job"])


def test_many_paths_are_cut_and_said_so():
    edges = [(f"{a}{i}", f"{b}{i + 1}") for i in range(12) for a in "xyz" for b in "xyz"]
    edges += [("s", f"{a}0") for a in "xyz"] + [(f"{a}12", "y") for a in "xyz"]
    found = open_paths(edges, ["s"], ["y"], [], most=24)
    assert not found.complete
    assert not separated(edges, ["s"], ["y"], [])


def test_without_roles_there_are_no_paths():
    assert implied(Dag((("a", "b"),)), "b", Roles()).separated is None
    assert implied(Dag((("a", "b"),)), None, Roles()).parents == ()


def test_what_stands_between_two_columns():
    edges = (("u", "x"), ("u", "y"), ("v", "u"), ("x", "m"), ("m", "y"), ("x", "c"), ("y", "c"), ("c", "d"), ("w", "x"))
    found = between(edges, "x", "y")
    assert found.confounders == ("u", "v")
    assert found.mediators == ("m",)
    assert found.colliders == ("c", "d")
    assert between(edges, "y", "x") == found
    assert "w" not in found.confounders, "it reaches y only through x"


def test_an_unmeasured_cause_opens_what_the_arrows_leave_closed() -> None:
    drawn = Dag((("sex", "job"), ("job", "hired")), hidden=(("sex", "hired"),))
    roles = Roles(outcome=("hired",), protected=("sex",), admissible=("job",))
    assert implied(drawn.sharing("sex", "hired", False), "hired", roles).separated is True
    found = implied(drawn, "hired", roles)
    assert found.separated is False
    assert found.paths == (("sex", "an unmeasured cause of sex and hired", "hired"),)
    assert not d_separated(drawn, ["sex"], ["hired"], ["job"])
    assert Dag.from_json(drawn.to_json()) == drawn
    assert drawn.sharing("hired", "sex") == drawn.sharing("hired", "sex").sharing("hired", "sex")
    direct = Dag((("job", "hired"),), hidden=(("hired", "job"),))
    assert direct.confounded == (("job", "hired"),)


@pytest.mark.parametrize("hidden", [[["a", "a"]], [["a", "b"], ["b", "a"]], [["a"]], "ab", [["a", 1]]])
def test_an_unmeasured_cause_that_cannot_be_is_refused(hidden: object) -> None:
    with pytest.raises(GraphError):
        Dag.from_json({"edges": [], "hidden": hidden})
