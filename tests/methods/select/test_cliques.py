"""Further cliques are chordal, no wider than requested, and inside the frame; every clique that may join is offered."""

from __future__ import annotations

import itertools
import random

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from espalier.core.graph.separations import Separation, clique_edges
from espalier.core.methods.select.cliques import MOST_ROUNDS, further_cliques, rounds
from espalier.core.methods.select.greedy_tree import Growth

NAMES = tuple("abcdefg")
SIZES = dict.fromkeys(NAMES, 2)


def separation_of(where):
    sides = [tuple(n for n, side in zip(NAMES, where, strict=False) if side == x) for x in "LRG"]
    return Separation(*sides) if sides[0] and sides[1] else None


@st.composite
def frames(draw):
    """Up to three random role partitions, which may overlap."""
    found = [separation_of(draw(st.text("LRG-", min_size=7, max_size=7))) for _ in range(draw(st.integers(0, 3)))]
    return [s for s in found if s is not None]


def grown(separations, rng, columns=NAMES):
    growth, edges = Growth(NAMES, separations, columns), []
    while candidates := growth.candidates():
        edges.append(rng.choice(candidates))
        growth.add(edges[-1])
    return edges


@settings(max_examples=60)
@given(frames(), st.integers(1, 4), st.randoms(use_true_random=False))
def test_nothing_chosen_ever_violates_the_frame_or_the_width(separations, width, rng):
    cliques = grown(separations, rng)
    for _ in range(rounds(len(NAMES), width)):
        offered = further_cliques(SIZES, cliques, separations, width)
        if not offered:
            break
        cliques.append(rng.choice(offered))
        graph = nx.Graph(clique_edges(cliques))
        assert nx.is_chordal(graph)
        assert max(map(len, nx.find_cliques(graph))) <= width + 1
        assert all(s.holds(graph.edges) for s in separations)


def test_a_pair_is_offered_exactly_if_the_graph_stays_chordal_inside_frame_and_width():
    rng = random.Random(5)
    for _ in range(40):
        separations = [s for s in (separation_of(rng.choices("LRG-", k=7)) for _ in range(2)) if s]
        cliques, width = grown(separations, rng), rng.choice([2, 3])
        for _ in range(3):
            offered = set(further_cliques(SIZES, cliques, separations, width))
            graph = nx.Graph(clique_edges(cliques))
            graph.add_nodes_from(NAMES)
            for pair in itertools.combinations(NAMES, 2):
                more = graph.copy()
                more.add_edge(*pair)
                fits = (
                    nx.is_chordal(more)
                    and max(map(len, nx.find_cliques(more))) <= width + 1
                    and all(s.holds(more.edges) for s in separations)
                )
                assert (pair in offered) == fits, (pair, cliques, separations)
            if not offered:
                break
            cliques.append(rng.choice(sorted(offered)))


def test_whole_cliques_and_known_ones_are_offered_new_and_large_first():
    sizes = {"a": 2, "b": 3, "c": 5, "d": 1}
    offered = further_cliques(sizes, [("a", "b"), ("b", "c")], [], 2)
    assert offered == [("a", "b", "c"), ("a", "c"), ("b", "c"), ("a", "b")]
    assert further_cliques(sizes, offered[:1], [], 2) == [("a", "b", "c"), ("b", "c"), ("a", "c"), ("a", "b")]


def test_a_clique_with_too_many_cells_is_not_offered_not_even_as_a_pair():
    """The pair alone would bring its triangle into the model."""
    sizes = {"a": 10, "b": 10, "c": 10, "d": 2}
    tree = [("a", "b"), ("b", "c"), ("b", "d")]
    offered = further_cliques(sizes, tree, [], 2, max_cells=999)
    assert ("a", "c") not in offered
    assert ("a", "d") in offered


def test_width_one_offers_what_is_there():
    tree = [("a", "b"), ("b", "c")]
    assert set(further_cliques({"a": 2, "b": 2, "c": 2}, tree, [], 1)) == set(tree)


@pytest.mark.parametrize(
    ("columns", "width", "expected"), [(1, 2, 0), (2, 2, 0), (3, 2, 1), (7, 1, 0), (7, 2, 5), (7, 3, 9), (4, 6, 3)]
)
def test_as_many_rounds_as_a_w_tree_has_more_links(columns, width, expected):
    assert rounds(columns, width) == expected
    if columns > width:
        tree = nx.complete_graph(min(width, columns))
        for v in range(len(tree), columns):
            tree.add_edges_from((v, u) for u in range(v - width, v))
        assert tree.number_of_edges() - (columns - 1) == expected


def test_many_columns_have_an_end():
    assert rounds(200, 2) == MOST_ROUNDS


def test_more_rounds_on_request():
    assert rounds(37, 6) == MOST_ROUNDS < rounds(37, 6, 80) == 80
    assert rounds(12, 2, 80) == rounds(12, 2) == 10
