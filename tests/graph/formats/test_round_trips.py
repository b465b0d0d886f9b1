"""Export followed by import changes nothing, whatever the names are, and other readers of the same formats agree."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from espalier.core.cli.graph import FORMAT_NAMES
from espalier.core.errors import GraphError
from espalier.core.graph.dag import Dag
from espalier.core.graph.formats import FORMATS, graph_of, not_held, read_graph, write_graph
from espalier.core.graph.formats.mixed import MARKS, SYMMETRIC, Edge, MixedGraph, Node
from espalier.core.graph.formats.resolve import resolve
from espalier.core.graph.roles import Roles

NASTY = (
    "two words",
    " padded ",
    "a, b",
    "x;y",
    'say "so"',
    "it's",
    "back\\slash",
    "ends\\",
    '\\"',
    "\\\\",
    "[x]",
    "a[0]",
    "]",
    "(latent)",
    "{b}",
    "a|b",
    "a:b",
    "p%5B",
    "100%",
    "a -> b",
    "a --> b",
    "<->",
    "--",
    "->",
    "o->",
    "&",
    "&#65;",
    "'=1+1",
    "a;=1+1",
    "<b>&amp;</b>",
    "<!-- x -->",
    "年齢",
    "возраст",
    "أنثى",
    "naïve",
    "e\u0301",
    "🙂",
    "line\nbreak",
    "tab\tbed",
    "cr\rlf\r\n",
    "#x",
    "//x",
    "/* x",
    "graph",
    "node",
    "edge",
    "subgraph",
    "strict",
    "dag",
    "network",
    "variable",
    "cause",
    "Graph Nodes:",
    "1. a --> b",
    "0",
    "-1",
    "1e5",
    "nan",
    "true",
    "=1+1",
    "'",
    '"',
    '""',
    "a\u2028b",
    " ",
    "a\u00a0b",
    "\ufeffx",
    "n0",
    "@0,1",
    "http://x",
    "*",
    "$x$",
    "`x`",
    ",",
    ";",
    ":",
    "|",
    "+",
    "=",
    "?",
    "a,,b",
)
text = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff")
    | st.sampled_from("\"\\,;:|[]{}()<>%&#=+- \n\t'"),
    min_size=1,
)
names = st.lists(st.sampled_from(NASTY) | text, min_size=1, max_size=8, unique=True)
coordinate = st.floats(-1e8, 1e8, allow_nan=False)


@st.composite
def graphs(draw: st.DrawFn, marks: tuple[str, ...] = ("->",)) -> MixedGraph:
    """Return a random graph without directed cycles; with all marks, also with latent nodes, roles and positions."""
    found = draw(names)
    pairs = [(a, b) for i, b in enumerate(found) for a in found[:i]]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    edges = tuple(Edge(a, b, draw(st.sampled_from(marks))) for a, b in chosen)
    nodes = tuple(Node(name) for name in found)
    if len(marks) > 1:
        roles = st.lists(st.sampled_from(["exposure", "outcome", "adjusted"]), max_size=2, unique=True).map(tuple)
        place = st.none() | st.tuples(coordinate, coordinate)
        nodes = tuple(Node(n, latent=draw(st.booleans()), roles=draw(roles), position=draw(place)) for n in found)
    return MixedGraph(nodes, edges)


def held(graph: MixedGraph, format: str) -> tuple[list[Node], set[Edge]]:
    """Return the parts of a graph that a format promises to keep."""
    kind = FORMATS[format]
    nodes = [
        replace(
            n,
            latent=n.latent and kind.latent,
            roles=n.roles if kind.roles else (),
            position=n.position if kind.positions else None,
        )
        for n in graph.nodes
    ]
    return nodes, {undirected(e) for e in graph.edges if kind.marks or e.mark == "->"}


def undirected(edge: Edge) -> Edge:
    if edge.mark in SYMMETRIC and edge.left > edge.right:
        return replace(edge, left=edge.right, right=edge.left)
    return edge


def same(format: str, wrote: MixedGraph, text: str, name: str = "") -> None:
    got = read_graph(text, name)
    assert got.format == format
    nodes, edges = held(wrote, format)
    if format == "csv":  # an edge list names a node where it first occurs
        assert sorted(got.nodes, key=lambda n: n.name) == sorted(nodes, key=lambda n: n.name)
    else:
        assert list(got.nodes) == nodes
    assert {undirected(e) for e in got.edges} == edges


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=60)
@given(graph=graphs())
def test_a_dag_comes_back_as_it_went(format: str, graph: MixedGraph) -> None:
    same(format, graph, write_graph(graph, format))
    dag = Dag(tuple((e.left, e.right) for e in graph.edges))
    columns = tuple(n.name for n in graph.nodes)
    out = write_graph(graph_of(dag, Roles(), columns), format)
    assert set(resolve(read_graph(out), columns).dag.edges) == set(dag.edges)  # type: ignore[union-attr]


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=60)
@given(graph=graphs(MARKS))
def test_what_a_format_holds_comes_back_as_it_went(format: str, graph: MixedGraph) -> None:
    out = write_graph(graph, format)
    same(format, graph, out)
    if FORMATS[format].suffixes:
        same(format, graph, out, "my graph" + FORMATS[format].suffixes[0].upper())
    nodes, edges = held(graph, format)
    lost = list(graph.nodes) != nodes or {undirected(e) for e in graph.edges} != edges
    assert not lost or not_held(graph, format), "omissions are listed"


@pytest.mark.parametrize("format", FORMATS)
def test_every_nasty_name_alone_and_all_together(format: str) -> None:
    for name in NASTY:
        graph = MixedGraph((Node(name), Node("plain")), (Edge(name, "plain"),))
        same(format, graph, write_graph(graph, format))
    pairs = pairwise(NASTY)
    graph = MixedGraph(tuple(map(Node, NASTY)), tuple(Edge(a, b) for a, b in pairs))
    same(format, graph, write_graph(graph, format))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("first", ["graph", "node", "edge", "ambiguous", "underline", "dotted", "Graph Attributes:"])
def test_a_list_of_nodes_that_looks_like_a_heading_keeps_its_nodes(format: str, first: str) -> None:
    found = first, "http://x", "b:"
    graph = MixedGraph(tuple(map(Node, found)), tuple(Edge(a, b) for a, b in pairwise(found)))
    same(format, graph, write_graph(graph, format))


@pytest.mark.parametrize("format", FORMATS)
def test_windows_line_ends_change_nothing(format: str) -> None:
    graph = MixedGraph((Node("a b"), Node("c"), Node("d")), (Edge("a b", "c"), Edge("c", "d")))
    same(format, graph, write_graph(graph, format).replace("\n", "\r\n"))


@pytest.mark.parametrize("format", FORMATS)
def test_a_control_character_is_refused_on_the_way_out(format: str) -> None:
    for name in ("a\x00", "\x1b[31m", "\ud800"):
        with pytest.raises(GraphError, match="control character"):
            write_graph(MixedGraph((Node(name),)), format)


def test_what_xml_has_no_character_for_is_refused() -> None:
    with pytest.raises(GraphError, match="forbids one of its characters"):
        write_graph(MixedGraph((Node("a\ufffe"),)), "graphml")


@settings(max_examples=60)
@given(graph=graphs())
def test_networkx_reads_what_is_written(graph: MixedGraph) -> None:
    arrows = {(e.left, e.right) for e in graph.edges}
    columns = {n.name for n in graph.nodes}
    for got in (nx.parse_gml(write_graph(graph, "gml")), nx.parse_graphml(write_graph(graph, "graphml"))):
        assert set(got.nodes) == columns
        assert set(got.edges) == arrows


@settings(max_examples=60)
@given(graph=graphs())
def test_what_networkx_writes_is_read(graph: MixedGraph) -> None:
    given_ = nx.DiGraph()
    given_.add_nodes_from(n.name for n in graph.nodes)
    given_.add_edges_from((e.left, e.right) for e in graph.edges)
    same("gml", graph, "\n".join(nx.generate_gml(given_)))
    # networkx writes these characters in a form that XML does not preserve
    if not any(re.search(r"[\n\r\t]", n.name) for n in graph.nodes):
        same("graphml", graph, "\n".join(nx.generate_graphml(given_)))


def test_the_command_line_knows_every_format() -> None:
    assert sorted(FORMAT_NAMES) == sorted(FORMATS)


def test_no_name_in_a_list_of_arrows_is_a_formula() -> None:
    """Previously, a spreadsheet ran a name such as ``=HYPERLINK(…)`` when it opened an exported drawing."""
    edges = (Edge("=1+1", "@a"), Edge("a;=1+1", "b"))
    graph = MixedGraph(tuple(map(Node, ("=1+1", "@a", "a;=1+1", "b", "+alone"))), edges)
    text = write_graph(graph, "csv")
    assert sorted(text.splitlines()[1:]) == sorted(["'+alone,", "'=1+1,'@a", "a;'=1+1,b"])
    assert {node.name for node in read_graph(text, "drawing.csv").nodes} == {node.name for node in graph.nodes}
