"""Tetrad background knowledge: tiers, forbidden and required arrows, in a separate file or after a graph. It settles
the direction of edges that the search left open (Meek 1995). An arrow that contradicts the knowledge is kept with a
remark, because the file states both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from espalier.core.graph.formats.mixed import Builder, Edge, Mark, MixedGraph, Remark, broken, shown

_SECTIONS = ("addtemporal", "forbiddirect", "requiredirect", "forbiddengroup", "requiredgroup")
_TIER = re.compile(r"([0-9]{1,9})(\*?-?|-?\*?)\s*(.*)")


@dataclass
class Knowledge:
    """Background knowledge: ``tiers`` by name, and (cause, effect) pairs with their lines."""

    tiers: dict[str, int] = field(default_factory=dict)
    forbidden: dict[tuple[str, str], int] = field(default_factory=dict)
    required: dict[tuple[str, str], int] = field(default_factory=dict)

    def excludes(self, cause: str, effect: str) -> bool:
        """Return whether ``cause`` → ``effect`` is ruled out: forbidden, or backwards in time."""
        if cause in self.tiers and effect in self.tiers and self.tiers[cause] > self.tiers[effect]:
            return True
        return (cause, effect) in self.forbidden


def read(rows: Sequence[str], line: int, builder: Builder) -> Knowledge:
    """Return the rows after ``/knowledge``. The columns that they name become nodes. Raises :class:`GraphError`."""
    known, section, alone = Knowledge(), "", not builder.nodes
    for where, row in enumerate(rows, line):
        words = row.split()
        if not words:
            continue
        if row.strip().lower() in _SECTIONS:
            section = row.strip().lower()
            continue
        if section == "addtemporal":
            found = _TIER.fullmatch(row.strip())
            if found is None:
                raise broken(where, "cannot read this tier; a tier looks like this: 1 age sex")
            names = found[3].split()
            if found[2]:
                builder.unused("a rule inside a tier (* or -)", where)
            for name in names:
                known.tiers[name] = int(found[1])
        elif section in ("forbiddirect", "requiredirect"):
            if len(words) != 2:
                raise broken(where, f"cannot read {shown(row.strip())}; this line needs a cause and an effect")
            names = words
            pairs = known.forbidden if section == "forbiddirect" else known.required
            pairs[words[0], words[1]] = where
        elif section:
            builder.unused(f"the section {section}", where)
            continue
        else:
            raise broken(where, f"this line needs one of {', '.join(_SECTIONS)}")
        for name in names:
            if alone:
                builder.node(name, where)
            elif name not in builder.nodes:
                raise broken(where, f"{shown(name)} is not one of the nodes listed above")
    for pair in known.required:
        if known.excludes(*pair):
            raise broken(known.required[pair], f"{Edge(*pair)} is required, but also forbidden or backwards in time")
    return known


def used(graph: MixedGraph, known: Knowledge) -> MixedGraph:
    """Return ``graph`` with the directions that ``known`` settles and the arrows that it requires."""
    edges, remarks, left = [], list(graph.remarks), dict(known.required)
    for edge in graph.edges:
        made = _directed(edge, known)
        if made != edge:
            remarks.append(Remark(edge.line, f"{edge} becomes {made}, as the knowledge in the file requires"))
        if made.mark == "->" and known.excludes(made.left, made.right):
            remarks.append(Remark(edge.line, f"{made} contradicts the knowledge in the file"))
        if made.mark == "->":
            left.pop((made.left, made.right), None)
        edges.append(made)
    for (cause, effect), line in left.items():
        edges.append(Edge(cause, effect, "->", line))
        remarks.append(Remark(line, f"{edges[-1]} is required by the knowledge"))
    return replace(graph, edges=tuple(edges), remarks=tuple(remarks))


def _directed(edge: Edge, known: Knowledge) -> Edge:
    """Return the edge. If it had no direction, it gets the direction that the knowledge determines."""
    for left, right in ((edge.left, edge.right), (edge.right, edge.left)):
        if (left, right) in known.required and edge.mark in ("--", "o-o", "o->"):
            return Edge(left, right, "->", edge.line, edge.said)
    for left, right in ((edge.left, edge.right), (edge.right, edge.left)):
        if edge.mark in ("--", "o-o") and known.excludes(right, left) and not known.excludes(left, right):
            mark: Mark = "->" if edge.mark == "--" else "o->"
            return Edge(left, right, mark, edge.line, edge.said)
    return edge
