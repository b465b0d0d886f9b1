"""GraphML, read by the standard library's expat. Document types are refused, so there are no expanding or external
entities.
"""

from __future__ import annotations

from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import escape

from espalier.core.errors import GraphError
from espalier.core.graph.formats.mixed import Builder, MixedGraph, broken, facts_of, number, shown, written_number

_LABELS = ("label", "name", "NodeLabel")


class _Reader:
    """Handler of expat's events, which keeps the open elements as a list of names."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.parser = expat.ParserCreate(encoding="utf-8")
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.characters
        self.parser.StartDoctypeDeclHandler = self.doctype
        self.parser.buffer_text = True
        self.names: dict[str, str] = {}
        self.data: dict[str, Any] = {}
        self.key = ""
        self.pieces: list[str] = []
        self.directed, self.graphs, self.first = True, 0, 0
        self.edges: list[tuple[int, dict[str, str], dict[str, Any]]] = []
        self.nodes: list[tuple[int, dict[str, str], dict[str, Any]]] = []

    @property
    def line(self) -> int:
        """Line that expat is reading."""
        return self.first + int(self.parser.CurrentLineNumber) - 1

    def doctype(self, *_: object) -> None:
        """Refuse a document type, which could define entities that expand without limit."""
        raise broken(self.line, "a document type (<!DOCTYPE …>) is not accepted in GraphML; remove it")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Handle the beginning of an element."""
        tag = tag.rpartition(":")[2]
        if tag == "graph":
            self.graphs += 1
            if self.graphs > 1 and not self.nodes:
                raise broken(self.line, "a GraphML file must contain exactly one graph")
            self.directed = attributes.get("edgedefault", "undirected") == "directed"
        elif tag == "key":
            if "id" in attributes:
                self.names[attributes["id"]] = attributes.get("attr.name", attributes.get("yfiles.type", ""))
        elif tag in ("node", "edge"):
            found: dict[str, Any] = {}
            (self.nodes if tag == "node" else self.edges).append((self.line, attributes, found))
            self.data = found
        elif tag == "hyperedge":
            raise broken(self.line, "an edge between more than two nodes (hyperedge) is not an arrow")
        elif tag == "data":
            self.key = self.names.get(attributes.get("key", ""), attributes.get("key", ""))
            self.pieces = []
        elif tag == "NodeLabel":
            self.key, self.pieces = tag, []
        elif tag == "Geometry":
            self.data["x"], self.data["y"] = attributes.get("x", ""), attributes.get("y", "")

    def characters(self, text: str) -> None:
        """Handle text inside an element."""
        self.pieces.append(text)

    def end(self, tag: str) -> None:
        """Handle the end of an element."""
        tag = tag.rpartition(":")[2]
        if tag in ("data", "NodeLabel") and self.key:
            text = "".join(self.pieces)
            if text.strip() or tag == "NodeLabel":
                self.data[self.key] = text if tag == "data" else text.strip()
            self.key, self.pieces = "", []
        elif tag in ("node", "edge"):
            self.data = {}


def read(text: str, line: int = 1) -> MixedGraph:
    """Read a GraphML graph; the ids are the names, or the labels if the ids are mere numbers. Raises
    :class:`GraphError`.
    """
    builder = Builder("graphml")
    reader = _Reader(builder)
    reader.first = line
    try:
        reader.parser.Parse(text.encode("utf-8"), True)
    except expat.ExpatError as error:
        what = expat.errors.messages.get(error.code, "not XML")
        raise broken(line + error.lineno - 1, f"the XML cannot be read: {what}") from None
    if not reader.graphs:
        raise broken(line, "the XML contains no GraphML graph")
    for where, attributes, data in reader.nodes:
        _node(where, attributes, data, builder)
    for where, attributes, data in reader.edges:
        _edge(where, attributes, data, reader.directed, builder)
    builder.use_labels()
    return builder.done()


def _node(line: int, attributes: dict[str, str], data: dict[str, Any], builder: Builder) -> None:
    name = attributes.get("id", "")
    if name in builder.nodes:
        raise broken(line, f"two nodes have the id {shown(name)}")
    x, y = number(str(data.pop("x", ""))), number(str(data.pop("y", "")))
    labels = [data.pop(key) for key in _LABELS if key in data]
    if labels:
        data["label"] = labels[-1]
    facts = facts_of(data, line, builder)
    builder.node(name, line, **facts, **({"position": (x, y)} if x is not None and y is not None else {}))


def _edge(line: int, attributes: dict[str, str], data: dict[str, Any], directed: bool, builder: Builder) -> None:
    ends = [attributes.get(side, "") for side in ("source", "target")]
    for side, name in zip(("source", "target"), ends, strict=True):
        if name not in builder.nodes:
            raise broken(line, f"the edge's {side} {shown(name)} is not the id of a node")
    if "directed" in attributes:
        directed = attributes["directed"].strip().lower() == "true"
    builder.edge(ends[0], str(data.pop("mark", "->" if directed else "--")), ends[1], line)
    for key in data:
        builder.unused(f"the attribute {shown(key)} of an edge", line)


_KEYS = (
    ("latent", "node", "boolean"),
    ("role", "node", "string"),
    ("x", "node", "double"),
    ("y", "node", "double"),
    ("mark", "edge", "string"),
)
_BREAKS = {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;", '"': "&quot;"}


def _quoted(name: str) -> str:
    return f'"{escape(name, _BREAKS)}"'


def write(graph: MixedGraph) -> str:
    """Return GraphML text that networkx, igraph and yEd can read; raises :class:`GraphError` for a name that XML cannot
    contain.
    """
    for node in graph.nodes:
        if any(c in "\ufffe\uffff" for c in node.name):
            raise GraphError(f"GraphML cannot contain the name {shown(node.name)}: XML forbids one of its characters")
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">']
    lines += [f'  <key id="{n}" for="{what}" attr.name="{n}" attr.type="{kind}"/>' for n, what, kind in _KEYS]
    lines.append('  <graph edgedefault="directed">')
    for node in graph.nodes:
        data = [("latent", "true")] if node.latent else []
        data += [("role", " ".join(node.roles))] if node.roles else []
        if node.position:
            data += list(zip("xy", map(written_number, node.position), strict=True))
        lines.append(_element("node", f"id={_quoted(node.name)}", data))
    for edge in graph.edges:
        ends = f"source={_quoted(edge.left)} target={_quoted(edge.right)}"
        lines.append(_element("edge", ends, [] if edge.mark == "->" else [("mark", edge.mark)]))
    return "\n".join([*lines, "  </graph>", "</graphml>"]) + "\n"


def _element(tag: str, attributes: str, data: list[tuple[str, str]]) -> str:
    if not data:
        return f"    <{tag} {attributes}/>"
    inner = "".join(f'<data key="{key}">{escape(value)}</data>' for key, value in data)
    return f"    <{tag} {attributes}>{inner}</{tag}>"
