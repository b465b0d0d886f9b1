"""Graph text of Tetrad, which causal-learn and py-tetrad also write: ``Graph Nodes:`` and ``Graph Edges:``. Tetrad's
own names are plain words. Other names are written in quotes, which only Espalier can read back.
"""

from __future__ import annotations

import re

from espalier.core.graph.formats import tetrad_knowledge
from espalier.core.graph.formats.mixed import Builder, MixedGraph, broken, shown

_ITEM = re.compile(r'\s*+("[^"\\]*(?:\\.[^"\\]*)*"|[(\[]"[^"\\]*(?:\\.[^"\\]*)*"[)\]]|[^,;"]*+)\s*+(?:[,;]|$)')
_EDGE = re.compile(r"\s*(?:\d+\.)?\s*(.*\S)\s*")
_MARK = re.compile(r"(?<=\s)(-->|<--|<->|o->|<-o|o-o|---|--o|o--)\s+")
_QUOTED = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
_MARKS = {"-->": "->", "<--": "<-", "---": "--"}
_WRITTEN = {"->": "-->", "--": "---"}
_OTHER = re.compile(r'(graph( node| edge)? attributes|(ambiguous|underline|dotted)[^:;,"]*):')
"""Headings, in lower case, of sections that contain neither nodes nor edges."""
_PLAIN = re.compile(r"\w[\w.-]*")
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\", '"': '\\"'}
_UNESCAPES = {text: char for char, text in _ESCAPES.items()}


def _name(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] == '"':
        return re.sub(r"\\.", lambda m: _UNESCAPES.get(m[0], m[0]), text[1:-1])
    return text


def _text(name: str) -> str:
    if _PLAIN.fullmatch(name):
        return name
    return '"' + re.sub(r'[\n\r\t\\"]', lambda m: _ESCAPES[m[0]], name) + '"'


def read(text: str, line: int = 1) -> MixedGraph:
    """Return the graph in text printed by Tetrad; raises :class:`GraphError`."""
    builder = Builder("tetrad")
    section = ""
    for where, row in enumerate(text.split("\n"), line):
        row = row.strip()
        heading = row.lower()
        if not row:
            continue
        if heading == "/knowledge":
            knowledge = tetrad_knowledge.read(text.split("\n")[where - line + 1 :], where + 1, builder)
            return tetrad_knowledge.used(builder.done(), knowledge)
        if heading in ("graph nodes:", "graph edges:"):
            section = heading
        elif heading.startswith(("graph nodes:", "graph edges:")):
            raise broken(where, f"put {shown(row[:12])} on a separate line")
        elif _OTHER.fullmatch(heading) and not _MARK.search(row):
            section = "other"
            builder.unused(f"the section {shown(row)}", where)
        elif section == "graph nodes:":
            _nodes(row, where, builder)
        elif section == "graph edges:":
            _edge(row, where, builder)
        elif not section:
            raise broken(where, "the line 'Graph Nodes:' is missing above this line")
        elif _MARK.search(row):
            raise broken(where, "this edge is in a section that is not read; put 'Graph Edges:' above it")
    if not section:
        raise broken(line, "'Graph Nodes:' is missing")
    return builder.done()


def _nodes(row: str, line: int, builder: Builder) -> None:
    at = 0
    while at < len(row):
        found = _ITEM.match(row, at)
        if found is None or found.end() == at:
            raise broken(line, f"cannot read {shown(row[at : at + 20])} in the list of nodes")
        text, at = found[1].strip(), found.end()
        latent = text.startswith("(") and text.endswith(")")
        selected = text.startswith("[") and text.endswith("]")
        name = _name(text[1:-1] if latent or selected else text)
        if name in builder.nodes:
            raise broken(line, f"two nodes are called {shown(name)}")
        builder.node(name, line, latent=latent, roles=("selected",) if selected else ())


def _edge(row: str, line: int, builder: Builder) -> None:
    body = _EDGE.fullmatch(row)
    quoted = _QUOTED.match(body[1]) if body else None
    found = _MARK.search(body[1], quoted.end() if quoted else 0) if body else None
    if body is None or found is None:
        raise broken(line, f"cannot read {shown(row)}; an edge looks like this: 1. X1 --> X2")
    left, rest = _name(body[1][: found.start()].strip()), body[1][found.end() :]
    right, more = _right(rest, builder)
    for name in (left, right):
        if name not in builder.nodes:
            raise broken(line, f"{shown(name)} is not one of the nodes listed above")
    if more:
        builder.unused("the text after an edge", line)
    builder.edge(left, _MARKS.get(found[1], found[1]), right, line)


def _right(rest: str, builder: Builder) -> tuple[str, str]:
    """Return the second name and the text after it (edge properties, bootstrap shares)."""
    if quoted := _QUOTED.match(rest):
        return _name(quoted[0]), rest[quoted.end() :].strip()
    if rest in builder.nodes or " " not in rest:
        return rest, ""
    name, _, more = rest.partition(" ")
    return name, more


def write(graph: MixedGraph) -> str:
    """Return graph text. A latent node is written in parentheses, as in Tetrad."""
    nodes = [f"({_text(n.name)})" if n.latent else _text(n.name) for n in graph.nodes]
    lines = ["Graph Nodes:", ";".join(nodes), "", "Graph Edges:"]
    lines += [
        f"{i}. {_text(e.left)} {_WRITTEN.get(e.mark, e.mark)} {_text(e.right)}" for i, e in enumerate(graph.edges, 1)
    ]
    return "\n".join(lines) + "\n"
