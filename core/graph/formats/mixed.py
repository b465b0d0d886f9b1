"""Content of a graph file: a mixed graph, which can contain more than a :class:`~espalier.core.graph.dag.Dag`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from espalier.core.errors import GraphError
from espalier.core.graph.annotations import Annotation

Mark = Literal["->", "<->", "--", "o->", "o-o", "o--"]
"""Marks at the ends of an edge, as in MAGs and PAGs: an arrowhead, a tail (-), or a circle (o) if the mark is unknown.
"""

NOTHING = Annotation()
Position = tuple[float, float]
MARKS: tuple[str, ...] = get_args(Mark)
SYMMETRIC = ("<->", "--", "o-o")
MAX_EDGES = 500_000
MOST_GIVEN = 2 * MAX_EDGES
"""Maximum number of edges in a file, including repeated edges, because a few groups can represent very many edges."""
_TURNED: dict[str, Mark] = {"<-": "->", "<-o": "o->", "--o": "o--"}
ROLES = ("exposure", "outcome", "adjusted", "selected", "protected", "admissible", "inadmissible")
"""Roles that a file may give to a node, by dagitty's names and by Espalier's."""


@dataclass(frozen=True)
class Node:
    """One node, the line of its first appearance, and its notes in the file. ``label`` is a second name to display."""

    name: str
    line: int = field(default=0, compare=False)
    latent: bool = False
    roles: tuple[str, ...] = ()
    position: Position | None = None
    label: str = ""
    said: Annotation = NOTHING


@dataclass(frozen=True)
class Edge:
    """An edge between two nodes; ``->`` and ``o->`` point from ``left`` to ``right``."""

    left: str
    right: str
    mark: Mark = "->"
    line: int = field(default=0, compare=False)
    said: Annotation = NOTHING

    def __str__(self) -> str:
        return f"{shown(self.left)} {ARROWS[self.mark]} {shown(self.right)}"


ARROWS: dict[str, str] = {"->": "→", "<->": "↔", "--": "—", "o->": "o→", "o-o": "o–o", "o--": "o—"}


@dataclass(frozen=True)
class Remark:
    """A part of a file that was changed or ignored on reading and needs no decision."""

    line: int
    text: str


@dataclass(frozen=True)
class MixedGraph:
    """Nodes in the file's order, edges, and remarks. Raises :class:`GraphError` for a name that is not a node."""

    nodes: tuple[Node, ...] = ()
    edges: tuple[Edge, ...] = ()
    remarks: tuple[Remark, ...] = field(default=(), compare=False)
    format: str = field(default="", compare=False)
    is_matrix: bool = field(default=False, compare=False)
    """True if the arrows come from an adjacency matrix, read as row → column; some tools write it the other way round.
    """

    def __post_init__(self) -> None:
        known = {node.name for node in self.nodes}
        if len(known) < len(self.nodes):
            raise GraphError("two nodes have the same name")
        for edge in self.edges:
            for name in (edge.left, edge.right):
                if name not in known:
                    raise GraphError(f"one end of the edge {edge} is not a node")


def shown(name: str) -> str:
    """Return a name for a message: in quotes, on one line and not too long."""
    return repr(name if len(name) <= 60 else name[:57] + "…")


def broken(line: int, text: str) -> GraphError:
    """Return the error for a file that becomes unreadable at ``line``."""
    return GraphError(f"line {line}: {text}", line=line)


def number(text: str) -> float | None:
    """Return ``text`` as a number if it is finite and small enough to be drawn."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and abs(value) < 1e9 else None


class Builder:
    """Collector of the nodes and edges that a reader finds, in order. A repeated item is kept once, with a remark."""

    def __init__(self, format: str) -> None:
        self.format = format
        self.nodes: dict[str, Node] = {}
        self.edges: dict[tuple[str, str, str], Edge] = {}
        self.is_matrix = False
        self._unused: dict[str, list[int]] = {}
        self._again: dict[Edge, list[int]] = {}
        self._given = 0

    def node(self, name: str, line: int, **facts: Any) -> None:
        """Add a node, or further facts about a known node."""
        if not name:
            raise broken(line, "a node needs a name of at least one character")
        known = self.nodes.get(name)
        if known is None:
            self.nodes[name] = Node(name, line, **facts)
        elif facts:
            roles = tuple(dict.fromkeys((*known.roles, *facts.pop("roles", ()))))
            self.nodes[name] = replace(known, roles=roles, **{k: v for k, v in facts.items() if v})

    def edge(self, left: str, mark: str, right: str, line: int, said: Annotation = NOTHING) -> None:
        """Add an edge. Its ends become nodes if they are not nodes yet. ``<-``, ``<-o`` and ``--o`` are reversed."""
        self._given += 1
        if self._given > MOST_GIVEN:
            raise broken(line, f"this file lists more than {MOST_GIVEN:,} edges, most of them repeated")
        for name in (left, right):
            if name not in self.nodes:
                self.node(name, line)
        if mark in _TURNED:
            left, right, mark = right, left, _TURNED[mark]
        if mark not in MARKS:
            raise broken(line, f"{shown(mark)} is not an edge; use one of {' '.join(MARKS)}")
        edge = Edge(left, right, mark, line, said)  # type: ignore[arg-type]
        ends = (left, right) if mark not in SYMMETRIC or left <= right else (right, left)
        if (*ends, mark) in self.edges:
            self._again.setdefault(self.edges[*ends, mark], []).append(line)
        elif len(self.edges) >= MAX_EDGES:
            raise broken(line, f"the file contains more than {MAX_EDGES:,} edges")
        else:
            self.edges[*ends, mark] = edge

    def unused(self, what: str, line: int) -> None:
        """Note an attribute that has no meaning here. All attributes of one kind become one remark."""
        self._unused.setdefault(what, []).append(line)

    def use_labels(self) -> None:
        """Name nodes by their labels if the ids have no meaning (0, 1, n2 …) and every node has a unique label."""
        labels = [node.label for node in self.nodes.values()]
        if not labels or not all(labels) or len(set(labels)) < len(labels):
            return
        if not all(re.fullmatch(r"(?:n|v|node|nodes)?_?\d+", name) for name in self.nodes):
            return
        called = {name: node.label for name, node in self.nodes.items()}
        self.nodes = {n.label: replace(n, name=n.label, label="") for n in self.nodes.values()}
        self.edges = {key: replace(e, left=called[e.left], right=called[e.right]) for key, e in self.edges.items()}

    def done(self) -> MixedGraph:
        """Return the graph as the file describes it."""
        remarks = []
        for what, lines in self._unused.items():
            remarks.append(Remark(lines[0], f"{what} was ignored{_times(lines)}"))
        for edge, lines in self._again.items():
            remarks.append(Remark(lines[0], f"{edge} is repeated{_times(lines)}; it is used once"))
        return MixedGraph(
            tuple(self.nodes.values()),
            tuple(self.edges.values()),
            tuple(sorted(remarks, key=lambda r: r.line)),
            self.format,
            self.is_matrix,
        )


def _times(lines: list[int]) -> str:
    return f" ({len(lines)} times)" if len(lines) > 1 else ""


def facts_of(data: Mapping[str, Any], line: int, builder: Builder) -> dict[str, Any]:
    """Return latent, roles and label from a node's attributes, which different tools name differently."""
    facts: dict[str, Any] = {}
    for key, value in data.items():
        word = str(value).strip().lower()
        if key in ("latent", "unobserved") or (key == "observed" and word in ("no", "false", "0")):
            facts["latent"] = key == "observed" or word not in ("no", "false", "0")
        elif key == "observed":
            pass
        elif key in ROLES:
            facts["roles"] = (*facts.get("roles", ()), key)
        elif key == "role":
            roles = tuple(str(value).split())
            if odd := [r for r in roles if r not in ROLES]:
                raise broken(line, f"{shown(odd[0])} is not a role; use one of {', '.join(ROLES)}")
            facts["roles"] = (*facts.get("roles", ()), *roles)
        elif key == "label":
            facts["label"] = str(value)
        else:
            builder.unused(f"the attribute {shown(key)} of a node", line)
    return facts


def written_number(value: float) -> str:
    """Return a float as text that is read back as the same float and always contains a point."""
    text = repr(float(value))
    return text if "." in text else text.replace("e", ".0e")


def ids(nodes: Iterable[Node]) -> dict[str, int]:
    """Return a consecutive number for each node."""
    return {node.name: i for i, node in enumerate(nodes)}
