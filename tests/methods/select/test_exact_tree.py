"""The search for the strongest tree inside a frame agrees with brute force over all spanning trees."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import networkx as nx
import numpy as np
import pytest

from espalier.core.graph.separations import Clique, Separation
from espalier.core.methods.select.exact_tree import best_tree
from espalier.core.methods.select.greedy_tree import strongest_greedy
from espalier.core.methods.select.scored_tree import strongest
from espalier.core.privacy.draws import ScoreMeasurement

NAMES = tuple("abcdef")
SIZES = dict.fromkeys(NAMES, 2)


def frame(rng: random.Random) -> tuple[Separation, ...]:
    """Return one to three random separations."""
    out = []
    for _ in range(rng.randint(1, 3)):
        columns = rng.sample(NAMES, len(NAMES))
        cut, end = rng.randint(1, 2), rng.randint(3, 4)
        gate = columns[end : end + rng.randint(0, 2)]
        out.append(Separation(tuple(columns[:cut]), tuple(columns[cut:end][:2]), tuple(gate)))
    return tuple(out)


def slow(value: dict[Clique, float], separations: Sequence[Separation]) -> tuple[int, float]:
    """Return the best of all forests with the most edges, by trying every set of pairs."""
    for edges in range(len(NAMES) - 1, -1, -1):
        found = [
            sum(value[e] for e in some)
            for some in itertools.combinations(value, edges)
            if (not some or nx.is_forest(nx.Graph(some))) and all(s.holds(some) for s in separations)
        ]
        if found:
            return edges, max(found)
    return 0, 0.0


@pytest.mark.parametrize("seed", range(12))
def test_no_forest_inside_the_frame_is_stronger(seed: int) -> None:
    rng = random.Random(seed)
    separations = frame(rng)
    value = {pair: rng.gauss(0, 1) for pair in itertools.combinations(NAMES, 2)}
    value = {p: v for p, v in value.items() if not any(s.forbids(*p) for s in separations)}
    found = best_tree(value, separations)
    edges, best = slow(value, separations)
    assert all(s.holds(found.edges) for s in separations)
    assert nx.is_forest(nx.Graph(found.edges)) if found.edges else True
    assert (len(found.edges), found.value) == (edges, pytest.approx(best))
    assert found.proved


def test_the_greedy_tree_falls_short_where_its_first_edge_takes_a_side() -> None:
    """The edge y–x puts x on the outcome's side, so s can be linked only to the gate, although s–x has a higher
    score."""
    fence = (Separation(("y",), ("s",), ("a",)),)
    value = {("x", "y"): 10.0, ("s", "x"): 9.0, ("x", "a"): 9.5, ("a", "y"): 9.8, ("s", "a"): 1.0}
    sizes = dict.fromkeys(("s", "x", "a", "y"), 2)
    scores = ScoreMeasurement(tuple(value), np.array(list(value.values())), 0.5, 1.0, 0.1)
    made = strongest(scores, sizes, fence)
    greedy = strongest_greedy(sizes, fence, value)
    assert set(greedy) == {("x", "y"), ("a", "y"), ("s", "a")}
    assert set(made.edges) == {("a", "y"), ("x", "a"), ("s", "x")}
    assert made.to_json()["gap"] == pytest.approx(28.3 - 20.8)
    assert "biased upward" in made.sentence
    assert made.to_json()["proved"]


def test_an_early_end_returns_the_greedy_tree_without_proof() -> None:
    fence = (Separation(("y",), ("s",), ("a",)),)
    value = {("x", "y"): 10.0, ("s", "x"): 9.0, ("x", "a"): 9.5, ("a", "y"): 9.8, ("s", "a"): 1.0}
    greedy = [("x", "y"), ("a", "y"), ("s", "a")]
    found = best_tree(value, fence, greedy=greedy, limit=1)
    assert found.edges == tuple(greedy)
    assert not found.proved
    assert found.bound >= 28.3


def test_fifteen_columns_are_quick() -> None:
    rng = random.Random(1)
    names = [f"c{i}" for i in range(15)]
    fence = (Separation(("c0",), ("c1", "c2"), ("c3", "c4")),)
    value = {p: rng.expovariate(1) for p in itertools.combinations(names, 2) if not fence[0].forbids(*p)}
    found = best_tree(value, fence, limit=5_000)
    assert found.proved
    assert len(found.edges) == 14
