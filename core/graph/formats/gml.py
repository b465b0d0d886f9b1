"""GML, as written by networkx, igraph and yEd, and by users of DoWhy and causal-learn. networkx's own reader is not
used, because it does not keep line numbers, joins lines inside a string, refuses a repeated arrow, and recurses for
each bracket. Here, open brackets are kept in a list.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import Any

from espalier.core.graph.formats.mixed import Builder, MixedGraph, broken, facts_of, ids, number, shown, written_number

_TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
    |(?P<text>"[^"]*")
    |(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[Ee][+-]?\d+)?)
    |(?P<key>[A-Za-z_][\w.]*)
    |(?P<open>\[)|(?P<close>\])""",
    re.VERBOSE | re.ASCII,
)
_ENTITY = re.compile(r"&(?:[0-9A-Za-z]{1,32}|#\d{1,7}|#[xX][0-9A-Fa-f]{1,6});")
_DRAWN = {"graphics", "LabelGraphics"}


@dataclass
class _Entry:
    """An entry ``key value``. The value of a list consists of its entries."""

    key: str
    value: Any
    line: int


def _parse(text: str, line: int) -> list[_Entry]:
    """Return the file's entries; raises :class:`GraphError`."""
    top: list[_Entry] = []
    stack: list[tuple[list[_Entry], int]] = [(top, line)]
    key, at = "", 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            what = "a quotation mark is never closed" if text[at] == '"' else f"cannot read {shown(text[at])} here"
            raise broken(line, what)
        kind, piece, at = found.lastgroup, found[0], found.end()
        if kind == "space":
            line += piece.count("\n")
            continue
        if not key:
            if kind == "key":
                key = piece
            elif kind == "close" and len(stack) > 1:
                stack.pop()
            else:
                raise broken(line, f"{shown(piece)} is out of place; a key such as node or label is needed here")
            continue
        entry = _Entry(key, piece, line)
        if kind == "open":
            entry.value = []
            stack[-1][0].append(entry)
            stack.append((entry.value, line))
        elif kind == "close":
            raise broken(line, f"the key {key} has no value")
        else:
            if kind == "text":
                entry.value = _ENTITY.sub(lambda m: html.unescape(m[0]), piece[1:-1])
                line += piece.count("\n")
            stack[-1][0].append(entry)
        key = ""
    if len(stack) > 1:
        raise broken(stack[-1][1], "the '[' on this line is never closed")
    if key:
        raise broken(line, f"the key {key} has no value")
    return top


def read(text: str, line: int = 1) -> MixedGraph:
    """Read a GML graph; without ``directed 1`` its edges are undirected. Raises :class:`GraphError`."""
    graphs = [e for e in _parse(text, line) if e.key == "graph" and isinstance(e.value, list)]
    if len(graphs) != 1:
        where = graphs[1].line if graphs else line
        raise broken(where, "a GML file must contain exactly one graph [ … ]")
    builder = Builder("gml")
    entries: list[_Entry] = graphs[0].value
    directed = next((e.value for e in entries if e.key == "directed"), "0") in ("1", "1.0", "true")
    names: dict[str, str] = {}
    for entry in entries:
        if entry.key == "node":
            _node(entry, names, builder)
    labels = set(builder.nodes)
    for entry in entries:
        if entry.key == "edge":
            _edge(entry, names, labels, "->" if directed else "--", builder)
        elif entry.key not in (
            "node",
            "directed",
            "multigraph",
            "comment",
            "Creator",
            "Version",
            "label",
            "name",
            "id",
        ):
            builder.unused(f"the graph's attribute {shown(entry.key)}", entry.line)
    return builder.done()


def _fields(entry: _Entry) -> dict[str, Any]:
    if not isinstance(entry.value, list):
        raise broken(entry.line, f"{entry.key} must be followed by '[' and its attributes")
    return {e.key: e.value for e in entry.value}


def _node(entry: _Entry, names: dict[str, str], builder: Builder) -> None:
    found = _fields(entry)
    key = found.pop("id", None)
    if not isinstance(key, str):
        raise broken(entry.line, "this node has no id")
    if key in names:
        raise broken(entry.line, f"two nodes have the id {shown(key)}")
    label, second = found.pop("label", None), found.pop("name", None)
    name = next((text for text in (label, second) if isinstance(text, str) and text), key)
    if name in builder.nodes:
        raise broken(entry.line, f"two nodes are called {shown(name)}")
    names[key] = name
    graphics = {e.key: e.value for e in found.get("graphics", []) if isinstance(e, _Entry)}
    x, y = (number(v) if isinstance(v, str) else None for v in (graphics.get("x"), graphics.get("y")))
    if name == "Unobserved Confounders" and "observed" not in found:  # DoWhy's name for its additional node
        found["latent"] = "1"
    facts = facts_of({k: v for k, v in found.items() if k not in _DRAWN}, entry.line, builder)
    builder.node(name, entry.line, **facts, **({"position": (x, y)} if x is not None and y is not None else {}))


def _edge(entry: _Entry, names: dict[str, str], labels: set[str], mark: str, builder: Builder) -> None:
    found = _fields(entry)
    ends = []
    for side in ("source", "target"):
        key = found.pop(side, None)
        if not isinstance(key, str):
            raise broken(entry.line, f"this edge has no {side}")
        if key not in names and key not in labels:
            raise broken(entry.line, f"the edge's {side} {shown(key)} is not the id of a node")
        ends.append(names.get(key, key))
    builder.edge(ends[0], str(found.pop("mark", mark)), ends[1], entry.line)
    for key in found.keys() - _DRAWN - {"id", "key"}:
        builder.unused(f"the attribute {shown(key)} of an edge", entry.line)


def _text(name: str) -> str:
    """Return a quoted string. GML is ASCII, so other characters become entities."""
    return '"' + "".join(c if " " <= c <= "~" and c not in '"&' else f"&#{ord(c)};" for c in name) + '"'


def write(graph: MixedGraph) -> str:
    """Return GML text that networkx and DoWhy can read; features without an equivalent (mark, latent, role) become
    extra keys.
    """
    number_of = ids(graph.nodes)
    lines = ["graph [", "  directed 1"]
    for node in graph.nodes:
        lines += ["  node [", f"    id {number_of[node.name]}", f"    label {_text(node.name)}"]
        lines += ["    latent 1"] if node.latent else []
        lines += [f"    role {_text(' '.join(node.roles))}"] if node.roles else []
        if node.position:
            x, y = map(written_number, node.position)
            lines.append(f"    graphics [ x {x} y {y} ]")
        lines.append("  ]")
    for edge in graph.edges:
        mark = "" if edge.mark == "->" else f" mark {_text(edge.mark)}"
        lines.append(f"  edge [ source {number_of[edge.left]} target {number_of[edge.right]}{mark} ]")
    return "\n".join([*lines, "]"]) + "\n"
