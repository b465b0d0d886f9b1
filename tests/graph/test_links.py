"""Explanations of links between two columns agree with the graph, for any two columns."""

from __future__ import annotations

import itertools
import random

import networkx as nx

from espalier.core.graph.links import link_of, sides
from espalier.core.graph.separations import Separation

NAMES = ("sex", "postcode", "skill", "hired", "club", "hobby")
FENCE = Separation(("hired",), ("sex",), ("skill",), "fairness")
TREE = [("sex", "postcode"), ("sex", "skill"), ("skill", "hired"), ("skill", "club")]


def test_why_is_postcode_not_connected_to_hired():
    link = link_of("postcode", "hired", TREE, [FENCE])
    assert link.refused is FENCE
    assert set(link.around) == {"hired", "postcode", "sex"}
    assert link.gate == ("skill",)
    assert link.sentence() == (
        "postcode and hired are not measured together: the pair would open the path hired – postcode – sex, which "
        "avoids skill; hired and sex may be linked only through skill. Any link between them runs through skill: "
        "postcode – sex – skill – hired."
    )
    assert "[postcode] and [hired]" in link.sentence(lambda n: f"[{n}]")


def test_the_other_answers():
    def said(a, b, separations=(FENCE,), edges=TREE):
        return link_of(a, b, edges, separations).sentence()

    assert said("sex", "skill").startswith("sex and skill were measured together")
    assert said("sex", "hired").startswith("sex and hired are not measured together: the frame forbids the pair; ")
    assert said("club", "postcode") == (
        "The frame allows measuring club and postcode together, but other pairs were chosen first. They are linked "
        "only through skill, sex: club – skill – sex – postcode."
    )
    assert said("hobby", "sex").endswith(
        "no path of measured pairs connects them, so the table shows no link between them."
    )
    bare = Separation(("hired",), ("sex",), ())
    assert said("sex", "hired", [bare], [("sex", "postcode")]) == (
        "sex and hired are not measured together: the frame forbids the pair; nothing may link hired and sex. "
        "No path connects them, so the table shows no link between them."
    )


def test_every_answer_agrees_with_the_graph():
    rng = random.Random(4)
    for _ in range(200):
        pairs = list(itertools.combinations(NAMES, 2))
        edges = rng.sample(pairs, rng.randint(0, 7))
        where = {n: rng.choice("LRG-") for n in NAMES}
        left, right, given = (tuple(n for n in NAMES if where[n] == side) for side in "LRG")
        frame = [s for s in [Separation(left, right, given)] if left and right and s.holds(edges)]
        graph = nx.Graph(edges)
        graph.add_nodes_from(NAMES)
        for a, b in pairs:
            link = link_of(a, b, edges, frame)
            assert link.together == graph.has_edge(a, b)
            assert bool(link.path) == nx.has_path(graph, a, b)
            if link.path:
                assert len(link.path) == nx.shortest_path_length(graph, a, b) + 1
            allowed = all(s.holds([*edges, (a, b)]) for s in frame)
            assert (link.refused is None) == (link.together or allowed)
            if link.refused:
                assert not set(link.around) & set(link.refused.given)
                assert link.around[0] in link.refused.left
                assert link.around[-1] in link.refused.right
            assert link.sentence().endswith((".", "directly."))


def test_where_columns_stand():
    where = sides(NAMES, TREE, FENCE)
    assert where == {
        "sex": "right",
        "postcode": "right",
        "skill": "gate",
        "hired": "left",
        "club": "free",
        "hobby": "free",
    }
