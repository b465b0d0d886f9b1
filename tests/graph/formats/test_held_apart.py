"""Files without a dedicated reader: code in prose, lists as JSON, background knowledge, and text without a graph."""

from __future__ import annotations

import pytest

from espalier.core.errors import GraphError
from espalier.core.graph.formats import read_graph
from espalier.core.graph.formats.mixed import MixedGraph


def edges(graph: MixedGraph) -> list[str]:
    return [f"{e.left} {e.mark} {e.right}" for e in graph.edges]


CODE = {
    "a box first": ('bb="-3,-3,3,3"\nAge [pos="0,1"]\nAge -> Y', ["Age -> Y"], 0),
    "nodes before arrows": ("age\nsex\nage -> sex", ["age -> sex"], 0),
    "one line": ("a; b; c; a -> b; b -> c", ["a -> b", "b -> c"], 0),
    "positions": ('Heat [exposure,pos="0.1,0.2"]\nIll [outcome,pos="3,4"]\nHeat -> Ill\n', ["Heat -> Ill"], 0),
    "no braces in prose": ("Hi, our drawing, as agreed.\n\na -> b\nb -> c\n\nThanks, Bob", ["a -> b", "b -> c"], 2),
    "braces in prose": ("Here, please check:\n\ndag {\na -> b\n}\n\nBest wishes, Ann", ["a -> b"], 2),
    "fenced": ("```\ndag {\n a -> b\n}\n```\n", ["a -> b"], 0),
    "a script": ('library(dagitty)\ng <- dagitty("dag {\n a -> b }")\nplot(g)', ["a -> b"], 0),
    "digraph in prose": ("See below, and reply.\n\ndigraph g {\n a -> b;\n}\n", ["a -> b"], 1),
}


@pytest.mark.parametrize("name", CODE)
def test_model_code_is_read_with_or_without_braces_and_prose(name: str) -> None:
    text, wanted, remarks = CODE[name]
    graph = read_graph(text)
    assert edges(graph) == wanted
    assert len(graph.remarks) == remarks


LISTS = {
    "names": ('{"a": ["b", "c"], "b": ["c"], "c": []}', ["a -> b", "a -> c", "b -> c"], True),
    "objects": ('{"a": {"b": {}, "c": {"weight": 1}}, "b": {"c": 0}}', ["a -> b", "a -> c"], True),
    "both ways": ('{"a": ["b"], "b": ["a"]}', ["a -- b"], False),
    "a column called nodes": ('{"nodes": {"b": {}}, "b": {}}', ["nodes -> b"], True),
    "pairs": ('[["a", "b"], ["b", "c"]]', ["a -> b", "b -> c"], False),
    "objects in a list": ('[{"from": "a", "to": "b"}]', ["a -> b"], False),
    "networkx": (
        '{"directed": true, "nodes": [{"id": "a"}, {"id": "b"}], "adjacency": [[{"id": "b"}], []]}',
        ["a -> b"],
        False,
    ),
}


@pytest.mark.parametrize("name", LISTS)
def test_adjacency_as_json(name: str) -> None:
    """A bare adjacency list does not state the direction of its arrows, so the reader asks, as for a matrix."""
    text, wanted, asked = LISTS[name]
    graph = read_graph(text)
    assert edges(graph) == wanted
    assert graph.is_matrix == asked


GRAPH = "Graph Nodes:\nage;sex;smoke;ill\n\nGraph Edges:\n1. smoke o-o ill\n2. sex --- smoke\n3. ill --> age\n\n"
KNOWLEDGE = "/knowledge\naddtemporal\n\n1 age sex\n2 smoke\n3 ill\n\nforbiddirect\nsex ill\n\nrequiredirect\nage ill\n"


def test_tetrad_knowledge_directs_edges_adds_what_is_required_and_names_contradictions() -> None:
    graph = read_graph(GRAPH + KNOWLEDGE)
    assert edges(graph) == ["smoke o-> ill", "sex -> smoke", "ill -> age", "age -> ill"]
    said = [r.text for r in graph.remarks]
    assert "'ill' → 'age' contradicts the knowledge in the file" in said
    assert "'age' → 'ill' is required by the knowledge" in said
    alone = read_graph(KNOWLEDGE)
    assert [n.name for n in alone.nodes] == ["age", "sex", "smoke", "ill"]
    assert edges(alone) == ["age -> ill"]
    forbidden = read_graph(GRAPH + "/knowledge\nforbiddirect\nsex smoke\n")
    assert "smoke -> sex" in edges(forbidden)


REFUSED = {
    "prose": ("Dear all, this is a text, and no graph.\nBest", "line 1: this reads like prose"),
    "data": ("age,sex,income\n39,M,>50K\n22,F,<=50K\n", "line 1: this reads like a table of data"),
    "a blank in a name": ('Age [pos="0,1"]\nBlood pressure [pos="0,1"]\nAge -> Y', "line 2: cannot read 'Blood"),
    "a hyphen in a name": ("a -> b\nsick-days -> pay", "line 2: cannot read 'sick-days -> pay'"),
    "two graphs": ("One:\ndag { a -> b }\nTwo:\ndag { b -> a }", "line 4: a second graph"),
    "code on both sides": ("dagitty:\ndag { a -> b }\nc -> d", "line 2: there is model code both inside"),
    "an open brace": ("Look:\ndag { a -> b", "line 2: the brace that opens here"),
    "knowledge of a stranger": (GRAPH + "/knowledge\nforbiddirect\nsex income\n", "line 11: 'income' is not one"),
    "required and forbidden": ("/knowledge\naddtemporal\n1 a\n2 b\nrequiredirect\nb a\n", "line 6: .* backwards"),
    "numbers as neighbours": ('{"a": [true]}', "neighbours of 'a'"),
    "three names": ('[["a", "b", "c"]]', "must be an arrow"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_graph_is_refused_with_its_line(name: str) -> None:
    text, said = REFUSED[name]
    with pytest.raises(GraphError, match=said):
        read_graph(text)


def test_a_list_of_arrows_stays_one_whatever_its_names_hold() -> None:
    assert edges(read_graph("cause,effect\nx -> y,z\n")) == ["x -> y -> z"]
    assert edges(read_graph('"a -> b",c\nd,e\n')) == ["a -> b -> c", "d -> e"]
    assert edges(read_graph("a,b,0.5\nb,c,1\n")) == ["a -> b", "b -> c"]
