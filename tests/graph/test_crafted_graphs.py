"""Graph files that were crafted to take minutes: previously, the search started again at each letter."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest

from espalier.core.errors import GraphError
from espalier.core.graph.formats import FORMATS, Edge, MixedGraph, Node, code_lines, mixed, read_graph

MANY = 100_000
SLOW = {
    "blanks after a head": ("dag" + " " * MANY + "x", ""),
    "lines after a head": ("digraph" + "\n" * 20_000 + "x", ""),
    "calls of R": ("x\n" + "dagitty('dag{" * (MANY // 8), ""),
    "comments of BIF": ("network x {}\n" + "/* " * MANY, "a.bif"),
    "blanks in a list": ("Graph Nodes:\na" + " " * MANY + 'b"c', "a.tetrad"),
    "blanks in an edge": ("Graph Nodes:\na;b\n\nGraph Edges:\n1. a" + " " * MANY + "b", "a.tetrad"),
    "comments in a block": ("x\ndag {" + "/*" * MANY, ""),
    "quotes in a block": ("x\ndag { " + '"\\' * MANY, ""),
}
SLOW_AND_READ = {
    "brackets": "[" * MANY,
    "words in brackets": "a[" * MANY,
    "comments": "/*" * MANY,
    "quotes": '"\\' * MANY,
}


@pytest.mark.parametrize(("text", "name"), SLOW.values(), ids=SLOW)
def test_what_is_no_graph_is_refused_at_once(text, name):
    with pytest.raises(GraphError):
        read_graph(text, name)


@pytest.mark.parametrize("line", SLOW_AND_READ.values(), ids=SLOW_AND_READ)
def test_a_line_of_prose_is_left_out_at_once(line):
    graph = read_graph(f"a -> b\n{line}")
    assert [edge.mark for edge in graph.edges] == ["->"]


KNOWN = MixedGraph(
    (Node("a", position=(1.0, 2.0)), Node("b", latent=True), Node("c")),
    (Edge("a", "c"), Edge("b", "c"), Edge("b", "a")),
)
NUMBERED = {
    **{(name, f"file{kind.suffixes[0] if kind.suffixes else ''}"): kind.write(KNOWN) for name, kind in FORMATS.items()},
    ("legacy", ""): "a 1 @1,2\nb E @3,4\n\na b @1.1,1.2\n",
    ("knowledge", ""): "/knowledge\naddtemporal\n1 a b\n2 c\n",
    ("matrix", "a.csv"): "a,b\n0,1\n0,0\n",
}


@pytest.mark.parametrize(("name", "text"), NUMBERED.items(), ids=[kind for kind, _ in NUMBERED])
def test_a_number_of_5000_digits_is_read_or_refused(name, text):
    """Previously, a tier of so many digits ended in a traceback."""
    for place in re.finditer("[0-9]+", text):
        with suppress(GraphError):
            read_graph(text[: place.start()] + "9" * 5000 + text[place.end() :], name[1])


def test_groups_that_give_the_same_edges_again_are_refused(monkeypatch):
    monkeypatch.setattr(mixed, "MOST_GIVEN", 1000)
    group = "{" + " ".join(f"a{i}" for i in range(20)) + "}"
    with pytest.raises(GraphError, match="more than 1,000 edges, most of them repeated"):
        read_graph("digraph{" + "->".join([group] * 4) + "}", "a.dot")


@pytest.mark.parametrize(
    ("row", "left"),
    [
        ("a /* b */ c", "a  c"),
        ("a /*/ b */ c", "a  c"),
        ("a /* b", "a /* b"),
        ("a */ b /* c", "a */ b /* c"),
        ("a // b /* c */", "a "),
        ("a /* // */ b // c", "a  b "),
        (" # a", ""),
        ("a # b", "a # b"),
    ],
)
def test_comments_of_a_row(row, left):
    assert code_lines._without_comments(row) == left


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ('x\ndag { a /* } */ "}" -> b // }\n }', '{ a /* } */ "}" -> b // }\n }'),
        ('x\ndag { "a\\"}" -> b } y', '{ "a\\"}" -> b }'),
        ("x\ndag { a -> b /* } y", "{ a -> b /* }"),
    ],
)
def test_where_a_block_ends(text, inside):
    found = code_lines.block(text, 1)
    assert found is not None
    assert found[0] == f"dag {inside}"
