"""Graph files of other tools, read into a :class:`MixedGraph` and written from one. There is one module per format,
each with ``read(text, line)`` and ``write(graph)``. All of them read the text in one pass, use lists instead of
recursion, and name the line of any error.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from espalier.core.errors import GraphError
from espalier.core.graph.dag import Dag
from espalier.core.graph.formats import (
    bif,
    bnlearn,
    code_lines,
    csv_table,
    dagitty,
    dot,
    gml,
    graphml,
    node_link,
    tetrad,
)
from espalier.core.graph.formats.mixed import ARROWS, Edge, Mark, MixedGraph, Node, Remark, broken, shown
from espalier.core.graph.roles import Roles

MAX_BYTES = 50_000_000


@dataclass(frozen=True)
class Format:
    """A graph file format and its features beyond nodes and arrows."""

    name: str
    title: str
    suffixes: tuple[str, ...]
    write: Callable[[MixedGraph], str]
    marks: bool = False
    latent: bool = False
    roles: bool = False
    positions: bool = False
    annotations: bool = False
    plain: str = r"(?s).*"
    """Regular expression for names that other tools can reliably read in this format."""


ALL = (True, True, True, True)
FORMATS = {
    f.name: f
    for f in (
        Format("dagitty", "dagitty", (), dagitty.write, *ALL, plain=r"[^\x00-\x1f]*[^\x00-\x1f\\]"),
        Format("dot", "DOT (Graphviz)", (".dot", ".gv"), dot.write, *ALL, plain=r"(?s).*[^\\]"),
        Format("gml", "GML", (".gml",), gml.write, *ALL),
        Format("graphml", "GraphML", (".graphml", ".xml"), graphml.write, *ALL),
        Format("json", "JSON (node-link)", (".json",), node_link.write, *ALL, annotations=True),
        Format("csv", "CSV (list of arrows)", (".csv", ".tsv"), csv_table.write, marks=True),
        Format("bif", "BIF (structure)", (".bif",), bif.write, positions=True, plain=r'[^"\\\n]*'),
        Format("bnlearn", "bnlearn model string", (".bnlearn",), bnlearn.write, plain=r"[^\s\[\]|:%]+"),
        Format("tetrad", "Tetrad text", (".tetrad",), tetrad.write, marks=True, latent=True, plain=r"\w[\w.-]*"),
    )
}
"""Formats by their names on the command line."""


def read_graph(data: str | bytes, name: str = "") -> MixedGraph:
    """Return the graph in a file's text, in any format; ``name`` is the file's name, whose extension is a hint.

    Raises :class:`GraphError` with ``line`` if the text is broken, too large, not text, or not in a known format.
    """
    text, line = _after_preamble(_decode(data))
    suffix = Path(name).suffix.lower()
    for known in FORMATS.values():
        if suffix in known.suffixes:
            return _READERS[known.name](text, line)
    return _READERS[_sniff(text, line)](text, line)


def _embedded(text: str, line: int) -> MixedGraph:
    """Return the graph in model code that has prose around it, or in lines of code without braces."""
    if start := dagitty.legacy_after_prose(text):
        graph = dagitty.read_legacy(text[start:], line + text.count("\n", 0, start))
        return replace(graph, remarks=(Remark(line, "the text before the graph is left out"), *graph.remarks))
    if found := code_lines.block(text, line):
        code, first, left_out = found
        read = dot.read if dot.sniff(code) in ("graph", "digraph") else dagitty.read
        graph = read(code, first)
    else:
        code, left_out = code_lines.statements(text, line)
        graph = dagitty.read(code, line)
    return replace(graph, remarks=(*left_out, *graph.remarks))


_READERS: dict[str, Callable[[str, int], MixedGraph]] = {
    "dagitty": dagitty.read,
    "legacy": dagitty.read_legacy,
    "embedded": _embedded,
    "dot": dot.read,
    "gml": gml.read,
    "graphml": graphml.read,
    "json": node_link.read,
    "csv": csv_table.read,
    "bif": bif.read,
    "bnlearn": bnlearn.read,
    "tetrad": tetrad.read,
}


def _decode(data: str | bytes) -> str:
    if len(data) > MAX_BYTES:
        raise GraphError(f"a graph file may have up to {MAX_BYTES // 1_000_000} MB; this one is larger")
    text = data if isinstance(data, str) else _text(data)
    text = text.removeprefix("\ufeff")
    if "\x00" in text:
        raise broken(text.count("\n", 0, text.index("\x00")) + 1, "this is not text: it contains null bytes")
    return text if "\n" in text else text.replace("\r", "\n")


def _text(data: bytes) -> str:
    wide = data[:2] in (b"\xff\xfe", b"\xfe\xff")
    try:
        return data.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = 1 if wide else data.count(b"\n", 0, error.start) + 1
        raise broken(line, "this is not UTF-8 text; save the file as UTF-8") from None


def _after_preamble(text: str) -> tuple[str, int]:
    """Return the text after empty lines and web addresses, or inside a call of R's dagitty, and the number of its first
    line.
    """
    found = re.match(r"(?:[ \t]*(?:https?://\S*[ \t]*)?\r?\n)*", text)
    end = found.end() if found else 0
    if call := _R_CALL.match(text, end):
        inside = call[2].replace('\\"', '"') if call[1] == '"' else call[2]
        return inside, text.count("\n", 0, call.start(2)) + 1
    if len(calls := list(_R_CALL_INSIDE.finditer(text))) == 1:
        return calls[0][2], text.count("\n", 0, calls[0].start(2)) + 1
    return text[end:], text.count("\n", 0, end) + 1


_R_CALL = re.compile(
    r"""\s*(?:[\w.]+\s*(?:<-|=)\s*)?(?:\w+::)?(?:dagitty|model2network)\(\s*(['"])(.*)\1\s*\)\s*\Z""", re.DOTALL
)

_R_CALL_INSIDE = re.compile(
    r"""\bdagitty\(\s*(['"])\s*((?:dag|mag|pdag|pag)\b[^{'"]*\{(?:(?!\1).)*\})\s*\1\s*\)""", re.DOTALL | re.IGNORECASE
)


def _sniff(text: str, line: int) -> str:
    """Return the format of the text, judged by its beginning."""
    bare = re.sub(r"\A(?:\s+|//[^\n]*\n|/\*.*?\*/|[#%][^\n]*\n)+", "", text, flags=re.DOTALL)
    word = dot.sniff(bare)
    if dagitty.after_prose(bare):
        return "embedded"
    if bare.startswith("<"):
        return "graphml"
    if bare.startswith("{"):
        return "json"
    if bare.startswith("["):
        return "json" if re.match(r'\[\s*(?:\[\s*"[^"]*"\s*,|\{\s*"[^"]*"\s*:)', bare) else "bnlearn"
    if re.match(r"(?:(?:Creator|Version|comment)\b[^\n]*\n\s*)*graph\s*\[", bare):
        return "gml"
    if re.match(r"graph (nodes|edges):", bare, re.IGNORECASE):
        return "tetrad"
    if word and re.match(r"[^{]*\{", bare):
        return "dot" if word in ("graph", "digraph") else "dagitty"
    if re.match(r"(network|variable|probability)\b", bare):
        return "bif"
    if dagitty.is_legacy(bare):
        return "legacy"
    if re.match(r"/knowledge\b", bare):
        return "tetrad"
    if csv_table.has_header(text):
        return "csv"
    if code_lines.has_code(text) or code_lines.block(text, line):
        spread = re.search(r"\{[^{}\n]*\n|\[[^\[\]\n]*\n", text) and not code_lines.block(text, line)
        return "dagitty" if spread else "embedded"
    if csv_table.is_table(text):
        return "csv"
    titles = ", ".join(f.title for f in FORMATS.values())
    raise broken(line, f"this is not a graph in a known format; known formats are {titles}")


def write_graph(graph: MixedGraph, format: str) -> str:
    """Return the graph as text in one of :data:`FORMATS`; raises :class:`GraphError` for names that no file should
    contain.
    """
    for node in graph.nodes:
        if re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]", node.name):
            raise GraphError(f"the name {shown(node.name)} contains a control character; rename the column first")
    return FORMATS[format].write(graph)


def not_held(graph: MixedGraph, format: str) -> tuple[str, ...]:
    """Return a sentence for each feature that the format omits or that only Espalier can read back."""
    kind, out = FORMATS[format], []
    if not kind.marks and (odd := [e for e in graph.edges if e.mark != "->"]):
        out.append(f"{kind.title} supports arrows only; left out: {_some(odd)}")
    if not kind.latent and (latent := [shown(n.name) for n in graph.nodes if n.latent]):
        out.append(f"{kind.title} cannot mark a column as latent: {_some(latent)}")
    if not kind.roles and (given := [shown(n.name) for n in graph.nodes if n.roles]):
        out.append(f"{kind.title} does not support roles; left out for {_some(given)}")
    if kind.name == "dagitty":
        for role, text in _IN_DAGITTY.items():
            if given := [shown(n.name) for n in graph.nodes if role in n.roles]:
                out.append(f"{role} columns {text}: {_some(given)}")
    if not kind.positions and any(n.position for n in graph.nodes):
        out.append(f"{kind.title} does not support positions")
    if labelled := [shown(n.label) for n in graph.nodes if n.label]:
        out.append(f"second names (labels) are not written: {_some(labelled)}")
    if not kind.annotations and (any(n.said for n in graph.nodes) or any(e.said for e in graph.edges)):
        out.append(f"{kind.title} does not support annotations (note, belief, source, may break elsewhere); JSON does")
    if odd_names := [shown(n.name) for n in graph.nodes if not re.fullmatch(kind.plain, n.name)]:
        out.append(f"other tools may not read these names in {kind.title}: {_some(odd_names)}")
    return tuple(out)


_IN_DAGITTY = {
    "protected": "are written as exposure",
    "admissible": "are written as adjusted",
    "inadmissible": "have no equivalent in dagitty; the role is left out",
}


def _some(things: list[Edge] | list[str]) -> str:
    more = f" and {len(things) - 5} more" if len(things) > 5 else ""
    return ", ".join(str(thing) for thing in things[:5]) + more


def graph_of(dag: Dag, roles: Roles, columns: tuple[str, ...]) -> MixedGraph:
    """Return a project's graph, ready for writing, with its roles and with every column as a node."""
    nodes = (
        Node(
            name,
            roles=(role,) if (role := roles.of(name)) else (),
            position=dag.positions.get(name),
            said=dag.annotation(name),
        )
        for name in columns
    )
    arrows = tuple(Edge(*pair, said=dag.annotation(*pair)) for pair in dag.edges)
    return MixedGraph(tuple(nodes), (*arrows, *(Edge(a, b, "<->") for a, b in dag.hidden)))


__all__ = [
    "ARROWS",
    "FORMATS",
    "Edge",
    "Format",
    "Mark",
    "MixedGraph",
    "Node",
    "Remark",
    "graph_of",
    "not_held",
    "read_graph",
    "write_graph",
]
