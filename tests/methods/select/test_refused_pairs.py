"""The pairs that the frame refused, and their cost by the bought scores."""

from __future__ import annotations

import itertools
import random

import networkx as nx
import numpy as np

from espalier.core.graph.separations import Separation
from espalier.core.methods.select.compression import folded, rare_categories
from espalier.core.methods.select.greedy_tree import Growth
from espalier.core.methods.select.refused_pairs import fence_cost_of, refused_pairs
from espalier.core.privacy.draws import Measurement, ScoreMeasurement

NAMES = tuple("abcdef")
FENCE = Separation(("a",), ("f",), ("c",))


def greedy(weight, separations):
    """Kruskal's algorithm without noise, inside the frame."""
    growth, edges = Growth(NAMES, separations), []
    while candidates := growth.candidates():
        edges.append(max(candidates, key=weight.__getitem__))
        growth.add(edges[-1])
    return edges


def test_refused_are_the_pairs_that_would_open_a_path():
    edges = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "f"), ("c", "e")]
    refused = refused_pairs(dict.fromkeys(NAMES, 2), [FENCE], edges)
    for pair in itertools.combinations(NAMES, 2):
        assert (pair in refused) == (not FENCE.holds([*edges, pair]))
    assert set(refused) == {("a", "f"), ("b", "f"), ("a", "d"), ("b", "d")}


def test_without_noise_the_estimate_is_what_the_best_tree_of_all_pairs_has_more():
    rng = random.Random(2)
    for _ in range(60):
        pairs = list(itertools.combinations(NAMES, 2))
        weight = dict(zip(pairs, rng.sample(range(1000), len(pairs)), strict=True))
        edges = greedy(weight, [FENCE])
        bought = [*edges, *refused_pairs(dict.fromkeys(NAMES, 2), [FENCE], edges)]
        scores = ScoreMeasurement(tuple(bought), np.array([float(weight[p]) for p in bought]), 1.0, 1.0, 0.1)
        whole = nx.Graph()
        whole.add_weighted_edges_from((*p, w) for p, w in weight.items())
        best = nx.maximum_spanning_tree(whole).size("weight")
        cost = fence_cost_of(scores, edges)
        assert cost.tree == sum(weight[e] for e in edges)
        assert cost.free == best
        assert set(cost.swaps) <= set(bought) - set(edges)
        assert bool(cost.swaps) == (best > cost.tree) == (cost.noise > 0)


def test_rare_categories_are_merged_and_the_sum_stays():
    counts = np.array([100.0, 5.0, 40.0, -7.0, 12.0, 31.0])
    m = Measurement(("x",), counts, 10.0)
    groups = rare_categories([m])["x"]
    assert groups.tolist() == [0, 3, 1, 3, 3, 2]
    small = folded(m, {"x": groups})
    assert small.values.tolist() == [100.0, 40.0, 31.0, 10.0]
    assert small.sigma == 10.0 * (6 / 4) ** 0.5
    assert folded(m, {}) is m


def test_nothing_is_merged_where_one_or_all_categories_are_rare():
    assert rare_categories([Measurement(("x",), np.array([100.0, 5.0]), 10.0)]) == {}
    assert rare_categories([Measurement(("x",), np.array([29.0, 5.0, 1.0]), 10.0)]) == {}
