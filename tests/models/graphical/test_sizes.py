"""Sizes follow from the graph alone, and a person can act on each refusal."""

from __future__ import annotations

import random
from itertools import combinations, pairwise
from math import prod, sqrt

import numpy as np
import pytest

from espalier.core.errors import SizeError
from espalier.core.graph.elimination import eliminate
from espalier.core.graph.junction_tree import junction_tree
from espalier.core.models.graphical import check_size, predict_size
from espalier.core.models.graphical.size import SECONDS_PER_CELL, SECONDS_PER_NODE, SECONDS_PER_PAIR, SWEEPS


def test_a_star_costs_its_pairs():
    sizes = {"y": 2, "a": 10, "b": 100, "single": 1}
    size = predict_size(sizes, [("y", "a"), ("y", "b"), ("single",)])
    assert size.largest == ("y", "b")
    assert size.largest_cells == 200
    assert size.culprit == (("y", "b"),)
    assert size.measured_cells == 221
    assert size.seconds > size.noise > 0
    assert size.seconds > predict_size(sizes, [("y", "a"), ("y", "b")], noisy=False).seconds
    assert size.bytes >= 8 * size.cells


def test_a_plan_with_open_choices_reckons_with_a_model_of_middling_size():
    sizes = {**dict.fromkeys("abcd", 20), "single": 1}
    size = predict_size(sizes, list(combinations("abcd", 2)))
    assert size.chosen(0, sizes) == size
    chosen = size.chosen(8, sizes)
    assert (chosen.cells, chosen.bytes, chosen.noise) == (size.cells, size.bytes, size.noise)
    fit = SWEEPS * (sqrt(size.cells * 81) * SECONDS_PER_CELL + 5 * SECONDS_PER_NODE)
    assert chosen.seconds == pytest.approx(size.noise + 5 * fit + 8 * 6 * SECONDS_PER_PAIR)


def test_a_cycle_names_the_pairs_that_close_it():
    sizes = dict.fromkeys("abcd", 50)
    size = predict_size(sizes, [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")])
    assert size.largest_cells == 50**3
    assert len(size.largest) == 3
    assert len(size.culprit) == 2


def test_the_refusal_names_clique_columns_and_what_to_coarsen():
    sizes = {"age": 100, "town": 5000, "income": 50}
    with pytest.raises(SizeError) as caught:
        check_size(sizes, [("age", "town", "income")])
    assert str(caught.value) == (
        "Fitting these marginals needs one table of 25,000,000 cells over age (100), town (5000), income (50); "
        "the limit is 10,000,000. Coarsen town from 5000 to at most 2000 categories, or measure fewer pairs."
    )
    assert caught.value.data["clique"] == ("age", "town", "income")
    said = caught.value.data
    assert (said["cells"], said["limit"], said["coarsen"]) == (25_000_000, 10_000_000, "town")
    assert check_size(sizes, [("age", "town")]).largest_cells == 500_000
    with pytest.raises(SizeError, match="at most 1 |and others"):
        check_size(dict.fromkeys("abcdefgh", 100), [tuple("abcdefgh")], max_cells=1000)


def test_nothing_measured_and_no_columns():
    assert predict_size({}, []).largest == ()
    assert predict_size({"a": 7}, []).largest == ("a",)


def test_orders_are_deterministic_and_trees_have_no_fill():
    rng = np.random.default_rng(0)
    for _ in range(20):
        sizes = {f"c{i}": int(rng.integers(2, 9)) for i in range(30)}
        names = list(sizes)
        edges = [(names[int(rng.integers(0, i))], names[i]) for i in range(1, 30)]
        tree = junction_tree(sizes, edges)
        assert max(len(node.given) for node in tree.nodes) == 1
        shuffled = [edges[i] for i in rng.permutation(len(edges))]
        assert junction_tree(sizes, shuffled) == tree


def test_every_clique_has_a_place_and_messages_fit():
    rng = np.random.default_rng(1)
    for _ in range(50):
        sizes = {f"c{i}": int(rng.integers(1, 5)) for i in range(9)}
        names = list(sizes)
        cliques = [tuple(rng.choice(names, int(rng.integers(1, 4)), replace=False).tolist()) for _ in range(8)]
        tree = junction_tree(sizes, cliques)
        for clique in cliques:
            place = tree.place(clique)
            values = rng.normal(size=[sizes[name] for name in clique])
            np.testing.assert_array_equal(place.outward(place.inward(values)), values)
        for node in tree.nodes:
            if node.parent >= 0:
                above = tree.nodes[node.parent]
                assert set(node.given) <= {*above.given, above.own}
                assert prod(node.lift) == prod(node.shape[:-1])


def test_a_grid_reaches_its_treewidth():
    for k in range(2, 7):
        sizes = {f"{i} {j}": 2 for i in range(k) for j in range(2 * k)}
        right = [(f"{i} {a}", f"{i} {b}") for i in range(k) for a, b in pairwise(range(2 * k))]
        down = [(f"{a} {j}", f"{b} {j}") for j in range(2 * k) for a, b in pairwise(range(k))]
        assert max(len(neighbours) for _, neighbours in eliminate(sizes, right + down)) <= k + 1


def test_a_star_beside_a_tree_costs_at_most_the_trees_tables_times_the_hub():
    """Min-fill and min-weight can exceed that bound, which a plan is checked against, by a factor of thirty."""
    rng = random.Random(1)
    for _ in range(150):
        d = rng.randint(2, 14)
        sizes = {f"c{i}": rng.randint(2, 300) for i in range(d)}
        sizes["y"] = rng.randint(2, 5)
        tree = [(f"c{rng.randrange(i)}", f"c{i}") for i in range(1, d)]
        star = [(f"c{i}", "y") for i in range(d) if rng.random() < 0.6]
        bound = max(sizes[a] * sizes[b] for a, b in tree) * sizes["y"]
        assert predict_size(sizes, [*tree, *star]).largest_cells <= bound
