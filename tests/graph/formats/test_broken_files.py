"""Broken, huge and hostile files end in a graph or a message that names the line, never in a traceback or a hang."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from espalier.core.errors import GraphError
from espalier.core.graph.formats import FORMATS, read_graph, write_graph
from espalier.core.graph.formats.describe import summary
from espalier.core.graph.formats.mixed import Edge, MixedGraph, Node

GRAPH = MixedGraph(
    (
        Node("a b", position=(0.5, -1.0)),
        Node('c "d"', latent=True),
        Node("é", roles=("outcome",)),
        Node("x1"),
        Node("x2"),
    ),
    (Edge("a b", 'c "d"'), Edge('c "d"', "é", "<->"), Edge("x1", "é"), Edge("x1", "x2", "--"), Edge("x2", "é", "o->")),
)
LEGACY = b"A E @0.1,0.2\nB%20C O @1,1\nU U @2,2\n\nA B%20C @0.5,0.5\nU A B%20C\n"
MATRIX = b",a,b,c\na,0,1,1\nb,0,0,1\nc,0,0,0\n"
SEEDS = {
    **{name: write_graph(GRAPH, name).encode() for name in FORMATS},
    "legacy": LEGACY,
    "matrix": MATRIX,
}


def mutated(data: bytes, number: int) -> bytes:
    """Return the data after a change: cut short, or with bits flipped, bytes inserted, or pieces removed or doubled."""
    rng = random.Random(number)
    changed = bytearray(data)
    if number % 4 == 0:
        return bytes(changed[: rng.randrange(len(changed))])
    for _ in range(rng.choice((1, 1, 3, 20))):
        at, end = sorted((rng.randrange(len(changed)), rng.randrange(len(changed))))
        if number % 4 == 1:
            changed[at] ^= 1 << rng.randrange(8)
        elif number % 4 == 2:
            changed[at:at] = bytes(rng.choice(b'"\\[]{}()<>|:;,=-\n 0a&\x00\xff') for _ in range(rng.randint(1, 4)))
        else:
            changed[at : min(end, at + 30)] = rng.choice((b"", bytes(changed[at:end]) * 2))
    return bytes(changed)


def survives(data: bytes, name: str = "") -> None:
    error = None
    try:
        graph = read_graph(data, name)
    except GraphError as caught:
        error = caught
    if error is None:
        assert summary(graph, "file")
    else:
        assert error.data["line"] >= 1
        assert f"line {error.data['line']}: " in str(error)
        assert len(str(error)) < 400
        assert "\n" not in str(error)


MUTATIONS = pytest.mark.parametrize("many", [50, pytest.param(200, marks=pytest.mark.nightly)])


@MUTATIONS
@pytest.mark.parametrize("seed", SEEDS)
def test_mutated_files(seed: str, many: int) -> None:
    for number in range(many):
        survives(mutated(SEEDS[seed], number))
        suffixes = FORMATS[seed].suffixes if seed in FORMATS else ()
        for suffix in suffixes[:1]:
            survives(mutated(SEEDS[seed], number), "x" + suffix)


@MUTATIONS
def test_mutated_real_files(shared_data: Path, many: int) -> None:
    files = [*sorted((shared_data / "dags").iterdir()), shared_data / "asia.bif"]
    for number in range(many):
        path = files[number % len(files)]
        survives(mutated(path.read_bytes(), number), path.name)


BROKEN = {
    "open quote": ('dag {\n"a -> b\n}', 2, "never closed"),
    "open brace": ("dag {\na -> b\n", 1, "never closed"),
    "open bracket": ("dag {\na [latent\n}", 3, "out of place"),
    "no end of an arrow": ("dag {\na ->\n}", 3, "nothing follows"),
    "an arrow that a semicolon cuts off": ("digraph {\na -> b\nb ->\n ; c -> d\n}", 4, "nothing follows"),
    "no beginning of an arrow": ("dag {\n\n-> b\n}", 3, "nothing precedes"),
    "bad position": ('dag {\na [pos="here"]\n}', 2, "two numbers"),
    "behind the end": ("digraph {\na\n}\nb", 4, "follows after"),
    "open comment": ("dag {\na /* b\n}", 2, "comment"),
    "hyphen in a bare name": ("dag {\na -> b\nc-d -> b\n}", 3, "in quotes"),
    "address before": ("http://dagitty.net/x\n\ndag {\na ->\n}", 5, "nothing follows"),
    "legacy with an unknown effect": ("A 1 @1,1\n\nA B\n", 3, "not one of the nodes"),
    "legacy with a bad weight": ("A 1 @1,1\nB what @1,1\n\n", 2, "not a weight"),
    "gml without end": ("graph [\nnode [\nid 1\n", 2, "never closed"),
    "gml end without node": ("graph [\ndirected 1\nnode [ id 1 ]\nedge [ source 1 target 2 ]\n]", 4, "not the id"),
    "gml twice": ('graph [\nnode [ id 1 label "a" ]\nnode [ id 2 label "a" ]\n]', 3, "two nodes"),
    "gml value": ("graph [\nnode [ id ]\n]", 2, "no value"),
    "xml": ("<graphml>\n<graph>\n<node id='a'>\n</graph></graphml>", 4, "mismatched tag"),
    "doctype": ('<?xml version="1.0"?>\n<!DOCTYPE x [<!ENTITY a "b">]>\n<graphml/>', 2, "document type"),
    "xml of something else": ("<html>\n</html>", 1, "no GraphML graph"),
    "hyperedge": ("<graphml><graph>\n<hyperedge/></graph></graphml>", 2, "hyperedge"),
    "bif parent": ("network x {\n}\nvariable a {\n}\nprobability ( a | b ) {\n}", 5, "not one of the variables"),
    "bif open": ("network x {\n}\nvariable a {\n", 3, "never closed"),
    "bif word": ("network x {\n}\nwhat", 3, "out of place"),
    "bif twice": ("variable a {\n}\nvariable a {\n}", 3, "two variables"),
    "bnlearn parent": ("[a]\n[b|c]", 2, "not one of the nodes"),
    "bnlearn bracket": ("[a][b|a", 1, "cannot read"),
    "tetrad edge": ("Graph Nodes:\na;b\n\nGraph Edges:\n1. a --> c", 5, "not one of the nodes"),
    "tetrad nodes beside their heading": ("Graph Nodes: a;b\n\nGraph Edges:\n", 1, "a separate line"),
    "tetrad edges beside their heading": ("Graph Nodes:\na;b\nGraph Edges: 1. a --> b", 3, "a separate line"),
    "tetrad edge elsewhere": ("Graph Nodes:\na;b\n\nGraph Attributes:\n1. a --> b", 5, "is not read"),
    "tetrad arrow": ("Graph Nodes:\na;b\n\nGraph Edges:\n1. a => b", 5, "cannot read"),
    "json": ('{"nodes": [\n{"id": "a"},\n]}', 3, "not JSON"),
    "json end": ('{"nodes": [{"id": "a"}],\n"links": [\n{"source": "a", "target": "b"}]}', 3, "not the id"),
    "json id": ('{"nodes": [\n{"id": "a"},\n{"di": "b"}]}', 3, "no id"),
    "json nan": ('{"nodes": [{"id": "a", "x": NaN}]}', 1, "not a number"),
    "json list": ('{"edges": [\n["a", "b"],\n["a"]]}', 3, "two names"),
    "matrix row": (",a,b\na,0,1\nb,0\n", 3, "1 cells, not 2"),
    "matrix text": (",a,b\na,0,x\nb,0,0\n", 2, "not a number"),
    "matrix size": (",a,b\na,0,1\n", 2, "2 rows"),
    "csv quote": ('cause,effect\na,b\n"a,c\n', 3, "cannot be read"),
    "csv mark": ("cause,effect,mark\na,b,->\na,c,=>\n", 3, "is not an edge"),
    "csv without a cause": ("cause,effect\n,b\n", 2, "a node needs a name"),
    "nothing": ("", 1, "known format"),
    "prose": ("I went to the woods\nbecause I wished", 1, "known format"),
    "null bytes": ("a,b\nc,\x00", 2, "null bytes"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_the_line_is_named(name: str) -> None:
    text, line, words = BROKEN[name]
    with pytest.raises(GraphError, match=words) as caught:
        read_graph(text)
    assert caught.value.data["line"] == line
    assert str(caught.value).startswith(f"line {line}: ")


def test_bytes_that_are_no_text_are_named_with_their_line() -> None:
    with pytest.raises(GraphError, match=r"line 2: this is not UTF-8"):
        read_graph(b"a,b\nc,\xe9\n")


def test_other_encodings_of_unicode() -> None:
    for encoding in ("utf-8-sig", "utf-16"):
        assert read_graph("cause,effect\né,b\n".encode(encoding)).edges == (Edge("é", "b"),)


DEEP = 200_000
HOSTILE = {
    "nested groups": "digraph " + "{" * DEEP,
    "nested lists": "graph [" + "a [" * DEEP,
    "nested arrays": '{"nodes":' + "[" * DEEP,
    "nested elements": "<a>" * DEEP,
    "html": "digraph { a [label=" + "<" * DEEP,
    "braces": "network x " + "{" * DEEP,
    "quotes": "dag {" + '"' * (DEEP + 1),
    "backslashes": 'dag {"' + "\\" * DEEP,
    "brackets": "[" * DEEP,
    "parents": "[a|" + ":".join(["a"] * DEEP) + "]",
    "ampersands": 'graph [ node [ id 1 label "' + "&" * DEEP + '" ] ]',
    "comments": "/*" * DEEP,
    "creators": "Creator x " * DEEP,
    "blanks": " " * DEEP + "x",
    "empty lines": "\n" * DEEP + "x",
    "addresses": "http://x\n" * DEEP,
    "a long row": "Graph Nodes:\na\n\nGraph Edges:\n1. " + "a " * DEEP,
    "a long legacy row": "A 1 @1,1\n\nA " + "b " * DEEP,
    "a long number": '{"nodes": [], "x": ' + "9" * DEEP + "}",
    "many pairs": "dag {{" + " ".join(f"x{i}" for i in range(1500)) + "} -> {" + " ".join(map(str, range(1500))) + "}}",
    "entities": '<!DOCTYPE x [<!ENTITY a "' + "b" * 99 + '"><!ENTITY c "&a;&a;">]><graphml>&c;</graphml>',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_end(name: str) -> None:
    survives(HOSTILE[name].encode())


@pytest.mark.nightly
@pytest.mark.parametrize("format", FORMATS)
def test_a_megabyte_is_read(format: str) -> None:
    nodes = tuple(Node(f'the "{i}" é') for i in range(5000))
    edges = tuple(Edge(nodes[i].name, nodes[i + k].name) for i in range(4990) for k in (1, 3, 7, 9))
    text = write_graph(MixedGraph(nodes, edges), format)
    assert len(text) > 250_000
    got = read_graph(text)
    assert (len(got.nodes), len(got.edges)) == (len(nodes), len(edges))


def test_too_large_a_file_is_refused_before_it_is_read() -> None:
    with pytest.raises(GraphError, match=re.escape("up to 50 MB")):
        read_graph(b"x" * 50_000_001)
