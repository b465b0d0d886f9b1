"""Description of a graph file: its nodes and edges, and the questions to answer before it becomes a causal graph."""

from __future__ import annotations

from pathlib import Path

from espalier.core.errors import GraphError
from espalier.core.graph.formats import FORMATS, MAX_BYTES, read_graph
from espalier.core.graph.formats.mixed import MixedGraph, Node, shown
from espalier.core.graph.formats.resolve import resolve
from espalier.core.limited_file import read_limited


def load_graph(path: Path) -> MixedGraph:
    """Return the graph in a file; raises :class:`GraphError`, which names file and line."""
    try:
        return read_graph(read_limited(path, MAX_BYTES), path.name)
    except OSError as error:
        raise GraphError(f"cannot read {path}: {error.strerror or error}", path=str(path)) from None
    except GraphError as error:
        raise GraphError(f"{path}: {error}", **error.data) from None


def checked(graph: MixedGraph, path: Path) -> MixedGraph:
    """Return the graph; raises a :class:`GraphError` that names a cycle in it and a line of the cycle."""
    arrows = MixedGraph(graph.nodes, tuple(e for e in graph.edges if e.mark == "->"))
    for question in resolve(arrows).questions:
        if question.kind == "cycle":
            text = f"{path}: line {question.line}: {question.text}; remove an arrow of the cycle"
            raise GraphError(text, line=question.line)
    return graph


def summary(graph: MixedGraph, name: str) -> str:
    """Return nodes, edges, remarks and questions, each with its line, as text."""
    title = FORMATS[graph.format].title
    lines = [f"{name}: {title}, {_count(len(graph.nodes), 'node')}, {_count(len(graph.edges), 'edge')}", "", "nodes"]
    lines += [f"  {_node(node)}" for node in graph.nodes]
    lines += ["", "edges", *(f"  {edge}" for edge in graph.edges or ("none",))]
    if graph.remarks:
        lines += ["", "notes", *(f"  line {r.line}: {r.text}" for r in graph.remarks)]
    if questions := resolve(graph).questions:
        proposed = " (* marks the proposed answer)" if any(q.default is not None for q in questions) else ""
        lines += ["", f"questions, which the Structure page asks when it imports the file{proposed}"]
        for q in questions:
            lines.append(f"  line {q.line}: {q.text}")
            lines += [f"    {'*' if value == q.default else '-'} {words}" for value, words in q.choices.items()]
    return "\n".join(lines)


def _node(node: Node) -> str:
    more = [*(["latent"] if node.latent else []), *node.roles]
    more += [f"labelled {shown(node.label)}"] if node.label else []
    more += [f"at {node.position[0]:g}, {node.position[1]:g}"] if node.position else []
    return shown(node.name) + (f"  ({', '.join(more)})" if more else "")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")
