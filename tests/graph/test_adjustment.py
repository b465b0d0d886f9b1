"""Adjustment sets agree with the definition by paths, over all subsets of small random drawings."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from espalier.core.errors import GraphError
from espalier.core.graph.adjustment import Effect, checked, choices, refuse_fenced, verdict, ways
from espalier.core.graph.dag import Dag
from espalier.core.graph.separations import Separation
from espalier.core.graph.statements import check_statement, statements

DAGS = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "dags"


def random_question(rng: np.random.Generator) -> tuple[Effect, list[str]]:
    count = int(rng.integers(4, 7))
    names = [f"v{i}" for i in range(count)]
    chance = rng.uniform(0.2, 0.7)
    edges = [(a, b) for a, b in itertools.combinations(names, 2) if rng.random() < chance]
    pairs = [p for p in itertools.combinations(names, 2) if rng.random() < 0.08]
    t, y = rng.choice(names, 2, replace=False).tolist()
    latent = tuple(n for n in names if n not in (t, y) and rng.random() < 0.1)
    return Effect(Dag(tuple(edges), hidden=tuple(pairs)), t, y, latent), names


def all_paths(edges: set[tuple[str, str]], at: tuple[str, ...], goal: str):
    if at[-1] == goal:
        yield at
        return
    for a, b in edges:
        for here, there in ((a, b), (b, a)):
            if here == at[-1] and there not in at:
                yield from all_paths(edges, (*at, there), goal)


def below(edges: set[tuple[str, str]], name: str) -> set[str]:
    out = {name}
    while more := {b for a, b in edges if a in out} - out:
        out |= more
    return out


def by_definition(effect: Effect, names: list[str]) -> set[frozenset[str]]:
    """Return all valid sets, straight from the adjustment criterion."""
    edges = set(effect.dag.edges)
    for i, (a, b) in enumerate(effect.dag.hidden):
        edges |= {(f"h{i}", a), (f"h{i}", b)}
    t, y = effect.treatment, effect.outcome
    paths = list(all_paths(edges, (t,), y))
    causal = [p for p in paths if all(pair in edges for pair in itertools.pairwise(p))]
    forbidden = {d for p in causal for n in p[1:] for d in below(edges, n)} | {t, y}
    free = [n for n in names if n not in forbidden and n not in effect.latent]
    spread = {n: below(edges, n) for n in {n for e in edges for n in e}}

    def blocked(path: tuple[str, ...], given: set[str]) -> bool:
        for a, n, b in zip(path, path[1:], path[2:], strict=False):
            if {(a, n), (b, n)} <= edges:
                if not spread[n] & given:
                    return True
            elif n in given:
                return True
        return False

    return {
        frozenset(z)
        for size in range(len(free) + 1)
        for z in itertools.combinations(free, size)
        if all(blocked(p, set(z)) for p in paths if p not in causal)
    }


def test_a_thousand_random_drawings_against_the_definition():
    rng = np.random.default_rng(19)
    listed = 0
    for _ in range(1000):
        effect, names = random_question(rng)
        sizes = {n: int(rng.integers(2, 6)) for n in names}
        valid = by_definition(effect, names)
        others = [n for n in names if n not in (effect.treatment, effect.outcome)]
        for size in range(len(others) + 1):
            for z in itertools.combinations(others, size):
                assert verdict(effect, z).valid == (frozenset(z) in valid), (effect, z)
        minimal = {z for z in valid if not any(other < z for other in valid)}
        found = choices(effect, sizes)
        assert {frozenset(c.columns) for c in found} == minimal, effect
        assert [c.strata for c in found] == sorted(c.strata for c in found)
        assert all(c.strata == np.prod([sizes[n] for n in c.columns]) for c in found)
        listed += len(found)
    assert listed > 500


def test_the_cheapest_is_found_where_only_large_sets_are_valid():
    names = [f"z{i}" for i in range(7)]
    edges = tuple(e for n in names for e in ((n, "t"), (n, "y")))
    (only,) = choices(Effect(Dag((*edges, ("t", "y"))), "t", "y"), dict.fromkeys([*names, "t", "y"], 2))
    assert only.columns == tuple(names)
    assert only.strata == 128


def test_a_chosen_set_is_refused_with_its_open_path():
    dag = Dag((("age", "drug"), ("age", "death"), ("drug", "dose"), ("dose", "death"), ("dose", "mark")))
    effect = Effect(dag, "drug", "death")
    assert checked(effect, ["age"]) == ("age",)
    with pytest.raises(GraphError, match="drug ← age → death stays open without adjustment") as caught:
        checked(effect, [])
    assert caught.value.data["path"] == ("drug", "age", "death")
    with pytest.raises(GraphError, match="dose lies on a causal path from drug to death") as caught:
        checked(effect, ["age", "dose"])
    assert caught.value.data["forbidden"] == ("dose",)
    with pytest.raises(GraphError, match="mark is an effect of dose"):
        checked(effect, ["age", "mark"])
    assert effect.mediators == ("dose",)


def test_adjusting_may_open_a_path():
    dag = Dag((("a", "t"), ("a", "m"), ("b", "m"), ("b", "y"), ("t", "y")))
    effect = Effect(dag, "t", "y")
    assert choices(effect, dict.fromkeys("abmty", 2))[0].columns == ()
    said = verdict(effect, ["m"])
    assert not said.valid
    assert "opens it at m" in said.sentence
    assert "t ← a → m ← b → y" in said.sentence
    lines = {w.sentence for w in ways(effect, [])}
    assert lines == {
        "t → y: part of the effect, open.",
        "t ← a → m ← b → y: not part of the effect, closed at m, where two arrows meet.",
    }


def test_a_fence_between_what_the_effect_needs_is_refused():
    effect = Effect(Dag((("age", "drug"), ("age", "death"), ("drug", "death"))), "drug", "death")
    refuse_fenced(effect, ["age"], [Separation(("drug",), ("other",), ())])
    with pytest.raises(GraphError, match="requires measuring drug and death together"):
        refuse_fenced(effect, [], [Separation(("drug", "x"), ("death",), ("age",))])
    with pytest.raises(GraphError, match="requires measuring age and death together") as caught:
        refuse_fenced(effect, ["age"], [Separation(("age",), ("death",), ())])
    assert caught.value.data["pair"] == ("age", "death")


def test_hidden_common_causes_are_named_and_may_leave_no_set():
    effect = Effect(Dag((("t", "y"), ("u", "t"), ("u", "y")), hidden=(("t", "y"),)), "t", "y", latent=("u",))
    assert choices(effect, {"t": 2, "y": 2}) == ()
    said = effect.hidden_causes()
    assert said == ("an unmeasured cause of t and y", "u, which is not in the table, is a cause of t and y")
    assert {w.path[1] for w in ways(effect, []) if w.open and not w.causal} == {"u", "an unmeasured cause of t and y"}
    only_hidden = Effect(Dag((("t", "y"),), hidden=(("t", "y"),)), "t", "y")
    assert "t ← an unmeasured cause of t and y → y stays open" in verdict(only_hidden, []).sentence
    assert "not a column of the table" in verdict(effect, ["u"]).sentence


@pytest.mark.parametrize("name", ["bike_theft.dagitty.txt", "car_model_driver.dagitty.txt"])
def test_dagittys_own_examples(name):
    if not (DAGS / name).exists():
        pytest.skip("the example drawings are not available")
    from espalier.core.graph.formats import read_graph

    graph = read_graph((DAGS / name).read_text("utf-8"), name)
    roles = {role: [n.name for n in graph.nodes if role in n.roles] for n in graph.nodes for role in n.roles}
    (exposure,), (outcome,) = roles.get("exposure") or roles["protected"], roles["outcome"]
    latent = tuple(n.name for n in graph.nodes if n.latent)
    effect = Effect(Dag(tuple((e.left, e.right) for e in graph.edges)), exposure, outcome, latent)
    found = choices(effect, {n.name: 2 for n in graph.nodes})
    assert found
    if drawn := roles.get("adjusted") or roles.get("admissible"):
        assert verdict(effect, drawn).valid
        assert any(set(c.columns) <= set(drawn) for c in found)
    back_door = nx.DiGraph(effect.back_door)
    back_door.add_nodes_from(n.name for n in graph.nodes)
    for choice in found:
        assert nx.is_minimal_d_separator(back_door, exposure, outcome, set(choice.columns))
        assert not set(choice.columns) & effect.forbidden


def test_two_hundred_columns_take_no_time():
    rng = np.random.default_rng(3)
    names = [f"c{i}" for i in range(200)]
    edges = tuple((names[i], names[j]) for i, j in itertools.combinations(range(200), 2) if rng.random() < 0.02)
    effect = Effect(Dag((*edges, ("c150", "c199")) if ("c150", "c199") not in edges else edges), "c150", "c199")
    start = time.process_time()
    found = choices(effect, dict.fromkeys(names, 3))
    assert time.process_time() - start < 5
    assert found
    assert all(verdict(effect, c.columns).valid for c in found)


def test_unmeasured_causes_count_in_choices_caveat_and_statements():
    drawn = Dag((("t", "y"), ("z", "t"), ("z", "y"), ("z", "a")))
    assert choices(Effect(drawn, "t", "y"), dict.fromkeys(["t", "y", "z"], 2))
    dag = drawn.sharing("y", "a").sharing("y", "t")
    effect = Effect(dag, "t", "y")
    assert choices(effect, dict.fromkeys(["t", "y", "z"], 2)) == ()
    assert "an unmeasured cause of y and t" in effect.caveat
    assert "would bias the effect" in effect.caveat
    assert check_statement(dag, Separation(("a",), ("t",), ("z",))) == ""
    assert "stays open" in check_statement(dag, Separation(("a",), ("y",), ("z", "t")))
    assert not any({*s.left, *s.right} == {"a", "y"} for s in statements(dag, dict.fromkeys(["t", "y", "z", "a"], 2)))
