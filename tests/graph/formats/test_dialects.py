"""Files as other tools write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from espalier.core.graph.formats import read_graph
from espalier.core.graph.formats.mixed import Edge, MixedGraph

COUNTS = {
    "dags/car_model_driver.dagitty.txt": ("dagitty", 20, 26),
    "dags/bike_theft.dagitty.txt": ("dagitty", 13, 25),
    "dags/marathon.dot": ("dot", 4, 3),
    "dags/lucas.gml": ("gml", 12, 12),
    "dags/dog_problem.bif": ("bif", 5, 4),
    "dags/feedback_network6.tetrad.txt": ("tetrad", 8, 8),
    "asia.bif": ("bif", 8, 8),
    "child.bif": ("bif", 20, 25),
    "alarm.bif": ("bif", 37, 46),
}


@pytest.mark.parametrize("name", COUNTS)
def test_real_files(shared_data: Path, name: str) -> None:
    data = (shared_data / name).read_bytes()
    for graph in (read_graph(data, name), read_graph(data)):
        assert (graph.format, len(graph.nodes), len(graph.edges)) == COUNTS[name]


def test_the_two_real_dagitty_files_in_detail(shared_data: Path) -> None:
    bike = read_graph((shared_data / "dags/bike_theft.dagitty.txt").read_bytes())
    assert [n.name for n in bike.nodes if n.latent] == ["Spatial Dependent Variables", "Time Shock"]
    assert sum("adjusted" in n.roles for n in bike.nodes) == 6
    roles = {role: [n.name for n in bike.nodes if role in n.roles] for role in ("exposure", "outcome")}
    assert roles == {"exposure": ["Distance"], "outcome": ["Bike Theft"]}
    assert next(n.position for n in bike.nodes if n.name == "Age") == (0.957, 1.854)
    car = read_graph((shared_data / "dags/car_model_driver.dagitty.txt").read_bytes())
    assert Edge("likes to drive aggressively", "automatic transmission") in car.edges
    assert [(r.line, r.text) for r in car.remarks] == [(41, "the attribute 'pos' of an edge was ignored (3 times)")]


def edges(graph: MixedGraph) -> list[str]:
    return [f"{e.left} {e.mark} {e.right}" for e in graph.edges]


SAME = {
    "chains and all marks": "dag { A -> B <- C <-> D -- E; E @-> F; F @-@ A; G <-@ B; A @-- G; A --@ H }",
    "groups": "pdag g { X -> { a b } -> Y ; subgraph s { p -> q } }",
    "no braces": "smoking -> tar\ntar -> cancer <- gene",
    "numbers and dots": "dag{ x.1 -> 2; -3 -> x.1 }",
    "joined strings": 'digraph { "a" + "b" -> c:n:sw [label="x", weight=2] // end\n# a comment\n}',
    "ends as Graphviz draws them": """digraph { 0 -> 1 [dir=both, arrowtail=none, arrowhead=normal];
        0 -> 2 [dir=back]; 1 -> 2 [dir=none]; 2 -> 3 [dir=both]; 0 -> 3 [arrowtail=odot, dir=both, arrowhead=normal];
        1 -> 3 [arrowtail=odot, dir=both, arrowhead=odot] }""",
    "defaults": "digraph { rankdir=LR; node [shape=box]; edge [dir=none]; a -> b; b -> c [dir=forward] }",
    "undirected": "strict graph { a -- b -- c }",
    "html": "digraph { a [label=<<b>x</b>>]; a -> <b> }",
}
WANTED = {
    "chains and all marks": [
        "A -> B",
        "C -> B",
        "C <-> D",
        "D -- E",
        "E o-> F",
        "F o-o A",
        "B o-> G",
        "A o-- G",
        "H o-- A",
    ],
    "groups": ["X -> a", "X -> b", "a -> Y", "b -> Y", "p -> q"],
    "no braces": ["smoking -> tar", "tar -> cancer", "gene -> cancer"],
    "numbers and dots": ["x.1 -> 2", "-3 -> x.1"],
    "joined strings": ["ab -> c"],
    "ends as Graphviz draws them": ["0 -> 1", "2 -> 0", "1 -- 2", "2 <-> 3", "0 o-> 3", "1 o-o 3"],
    "defaults": ["a -- b", "b -> c"],
    "undirected": ["a -- b", "b -- c"],
    "html": ["a -> b"],
}


@pytest.mark.parametrize("name", SAME)
def test_dagitty_and_dot(name: str) -> None:
    assert edges(read_graph(SAME[name])) == WANTED[name]


def test_dagitty_flags_in_every_spelling() -> None:
    graph = read_graph('dag { a [e]; b [outcome,latent]; c [u, a]; d [s]; e [exposure=1, label="x y"] }')
    assert [(n.name, n.latent, n.roles, n.label) for n in graph.nodes] == [
        ("a", False, ("exposure",), ""),
        ("b", True, ("outcome",), ""),
        ("c", True, ("adjusted",), ""),
        ("d", False, ("selected",), ""),
        ("e", False, ("exposure",), "x y"),
    ]


def test_as_r_scripts_hold_them() -> None:
    assert edges(read_graph("g <- dagitty::dagitty('\ndag {\n\"a b\" -> c\n}')\n")) == ["a b -> c"]
    assert edges(read_graph('dagitty("dag { \\"a b\\" -> c }")')) == ["a b -> c"]
    assert edges(read_graph('m = model2network("[a][b|a]")')) == ["a -> b"]


def test_legacy_dagitty() -> None:
    nodes = "Age%20band E @0.1,0.2\nSelf harm O @-1,1e1\nU U @2,2\nW 1 @3,3\n"
    text = nodes + "\nAge%20band Self harm W @0.5,0.5\nU W Age%20band\nW U"
    graph = read_graph(text)
    assert edges(graph) == ["Age band -> Self harm", "Age band -> W", "U <-> W", "U -> Age band"]
    assert [n.roles for n in graph.nodes] == [("exposure",), ("outcome",), (), ()]
    assert [n.latent for n in graph.nodes] == [False, False, True, False]
    assert graph.nodes[1].position == (-1, 10)
    assert edges(read_graph("A 1 @1,1\nB 1 @2,2\n\n0 1\n0 0\n")) == ["A -> B"]


def test_graphviz_as_causal_learn_writes_it_is_called_by_its_labels() -> None:
    graph = read_graph('digraph {\n0 [label="age, years"];\n1 [label=sex];\n0 -> 1 [dir=both, arrowtail=odot];\n}')
    assert [n.name for n in graph.nodes] == ["age, years", "sex"]
    assert edges(graph) == ["age, years o-> sex"]


def test_gml_of_dowhy() -> None:
    graph = read_graph(
        'graph[directed 1node[ id "v 0" label "v 0"]node[ id "y" label "y"]node[ id "U" label "Unobserved Confounders"]'
        'edge[source "v 0" target "y"]edge[ source "U" target "y"]]'
    )
    assert [(n.name, n.latent) for n in graph.nodes] == [("v 0", False), ("y", False), ("Unobserved Confounders", True)]
    assert edges(graph) == ["v 0 -> y", "Unobserved Confounders -> y"]
    observed = 'graph [ directed 1 node [ id 0 label "Z" observed "no" ] node [ id 1 label "y" observed "yes" ] ]'
    assert [n.latent for n in read_graph(observed).nodes] == [True, False]


def test_gml_of_igraph_and_of_nobody_in_particular() -> None:
    igraph = (
        'Creator "igraph version 0.10"\nVersion 1\ngraph\n[\n directed 1\n node [ id 0 name "caf&eacute; &#38; bar" ]\n'
    )
    graph = read_graph(igraph + 'node [ id 1 name "b" weight 2.5 ] edge [ source 1 target 0 weight 3 ] ]')
    assert edges(graph) == ["b -> café & bar"]
    assert [r.line for r in graph.remarks] == [7, 7]
    undirected = "graph [ node [ id 1 ] node [ id 2 ] edge [ source 1 target 2 ] ]"
    assert edges(read_graph(undirected)) == ["1 -- 2"]


def test_graphml_of_yed_and_of_igraph() -> None:
    yed = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:y="http://www.yworks.com/xml/graphml">
  <key for="node" id="d6" yfiles.type="nodegraphics"/>
  <graph edgedefault="directed" id="G">
    <node id="n0"><data key="d6"><y:ShapeNode>
      <y:Geometry x="1.5" y="-2"/><y:NodeLabel>Age</y:NodeLabel></y:ShapeNode></data></node>
    <node id="n1"><data key="d6"><y:ShapeNode>
      <y:Geometry x="3" y="4"/><y:NodeLabel>Sex &amp; co</y:NodeLabel></y:ShapeNode></data></node>
    <edge id="e0" source="n0" target="n1"/>
    <edge id="e1" source="n1" target="n0" directed="false"/>
  </graph>
</graphml>"""
    graph = read_graph(yed)
    assert edges(graph) == ["Age -> Sex & co", "Sex & co -- Age"]
    assert graph.nodes[0].position == (1.5, -2)
    igraph = (
        '<graphml><key id="v_name" for="node" attr.name="name" attr.type="string"/><graph edgedefault="undirected">'
        '<node id="n0"><data key="v_name">a</data></node><node id="n1"><data key="v_name">b</data></node>'
        '<edge source="n0" target="n1"/></graph></graphml>'
    )
    assert edges(read_graph(igraph)) == ["a -- b"]


def test_tetrad_with_latent_nodes_properties_and_further_sections() -> None:
    text = """Graph Nodes:
X1;X2;(L1);[S];two words

Graph Edges:
1. X1 --> X2 dd nl
2. X1 o-> L1
3. X2 <-> two words
4. S o-o X1 [no edge]:0.2;[S o-o X1]:0.8
5. X2 --- S

Graph Attributes:
Score: -3.5

Ambiguous triples (i.e. list of triples for which there is ambiguous data about whether they are colliders or not):
"""
    graph = read_graph(text)
    assert edges(graph) == ["X1 -> X2", "X1 o-> L1", "X2 <-> two words", "S o-o X1", "X2 -- S"]
    assert [(n.latent, n.roles) for n in graph.nodes[2:4]] == [(True, ()), (False, ("selected",))]
    assert len(graph.remarks) == 3


def test_bnlearn_over_several_lines() -> None:
    graph = read_graph("[asia][smoke][tub|asia]\n  [lung|smoke][either|lung:tub]\n")
    assert edges(graph) == ["asia -> tub", "smoke -> lung", "lung -> either", "tub -> either"]


def test_bif_in_the_dialect_of_javabayes() -> None:
    text = """// a comment
network "N" { property "x {" ; }
variable "b" { type discrete[2] { "t" "f" }; property "position = (10, -2.5)" ; }
variable a { type discrete [ 2 ] { yes, no }; }
probability ( "b" a ) { table 0.1 0.9 0.2 0.8 ; }
probability ( a ) { table 0.5, 0.5; }"""
    graph = read_graph(text)
    assert edges(graph) == ["a -> b"]
    assert graph.nodes[0].position == (10, -2.5)


TABLES = {
    "header of bnlearn": ("from,to\na,b\n", ["a -> b"]),
    "no header": ("a,b\nb,c\n", ["a -> b", "b -> c"]),
    "semicolons": ('source;target\n"a;1";b\n', ["a;1 -> b"]),
    "tabs": ("parent\tchild\na b\tc\n", ["a b -> c"]),
    "blanks behind commas": ("a, b\nb, c\n", ["a -> b", "b -> c"]),
    "marks": ("cause,effect,mark\na,b,<->\nb,c,<-\n", ["a <-> b", "c -> b"]),
    "weights": ("a,b,0.3\nb,c,1\n", ["a -> b", "b -> c"]),
    "matrix": (",a,b,c\nc,0,0,0\na,0,1,1\nb,0,0,1\n".replace("a,0,1,1", "a,0,1,0"), ["a -> b", "b -> c"]),
    "matrix without row names": ("a,b\n0,1\n0,0\n", ["a -> b"]),
    "matrix of R": ('"a","b"\n"a",0,1\n"b",0,0\n', ["a -> b"]),
    "undirected in a matrix": (",a,b\na,0,1\nb,1,0\n", ["a -- b"]),
    "weights in a matrix": (",a,b\na,0,-0.7\nb,0,0\n", ["a -> b"]),
    "causal-learn": (",a,b,c\na,0,-1,1\nb,1,0,2\nc,1,2,0\n", ["a -> b", "a <-> c", "b o-o c"]),
    "pcalg": (",a,b,c\na,0,2,1\nb,3,0,2\nc,2,2,0\n", ["a -> b", "c o-> a", "b <-> c"]),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables(name: str) -> None:
    text, wanted = TABLES[name]
    assert edges(read_graph(text)) == wanted
    assert read_graph(text).is_matrix == ("matrix" in name and "undirected" not in name)


def test_json_of_networkx_of_d3_and_our_own() -> None:
    old = '{"directed": true, "nodes": [{"id": "a"}, {"id": 2}], "links": [{"source": "a", "target": 2, "weight": 1}]}'
    assert edges(read_graph(old)) == ["a -> 2"]
    nodes = '{"directed": true, "nodes": [{"id": 0, "label": "x"}, {"id": 1, "label": "y"}]'
    numbered = nodes + ', "edges": [{"source": 0, "target": 1}]}'
    assert edges(read_graph(numbered)) == ["x -> y"]
    assert edges(read_graph('{"nodes": [{"id": "a"}, {"id": "b"}], "links": [{"source": "a", "target": "b"}]}')) == [
        "a -- b"
    ]
    tetrad = read_graph('{"nodes": [{"name": "a"}], "edgesSet": [1]}')
    assert [r.text for r in tetrad.remarks] == ["the key 'edgesSet' of the graph was ignored"]
    assert edges(read_graph('{"edges": [["a", "b"]], "notes": {}, "positions": {"a": [1, 2]}}')) == ["a -> b"]


def test_a_project_file_is_a_graph_too(samples: Path) -> None:
    from espalier.core.project.file import Project

    project = Project.load(samples / "hiring.json")
    graph = read_graph((samples / "hiring.json").read_bytes(), "hiring.json")
    assert tuple(n.name for n in graph.nodes) == project.schema.names
    assert [(e.left, e.right) for e in graph.edges] == list(project.dag.edges)
    assert {n.name: n.roles[0] for n in graph.nodes if n.roles} == {
        c: role for role, columns in project.roles.items() for c in columns
    }
