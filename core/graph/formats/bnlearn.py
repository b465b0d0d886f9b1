"""Model strings of bnlearn, such as ``[smoke][lung|smoke][either|lung:tub]``, which list each node with its parents.

The notation has no quotes: ``[ ] | : %``, line breaks, and spaces at either end of a name are percent-encoded
(``%5B``), which only Espalier reads back.
"""

from __future__ import annotations

import re
from urllib.parse import quote

from espalier.core.graph.formats.mixed import Builder, MixedGraph, broken, shown

_NODE = re.compile(r"\[([^\[\]|]*)(?:\|([^\[\]|]*))?\]\s*")
_CODED = re.compile(r"%(5B|5D|7C|3A|25|0A|0D|09|20)")


def _name(text: str) -> str:
    return _CODED.sub(lambda m: chr(int(m[1], 16)), text.strip(" \t\r\n"))


def _text(name: str) -> str:
    return re.sub(r"[\[\]|:%\n\r\t]|^ | $", lambda m: quote(m[0], safe=""), name)


def read(text: str, line: int = 1) -> MixedGraph:
    """Read a model string on one or several lines. Raises :class:`GraphError`."""
    builder = Builder("bnlearn")
    given: list[tuple[str, str, int]] = []
    at = len(text) - len(text.lstrip())
    line += text.count("\n", 0, at)
    while at < len(text):
        found = _NODE.match(text, at)
        if found is None:
            raise broken(line, f"cannot read {shown(text[at : at + 20])}; nodes look like [lung|smoke:asia]")
        name = _name(found[1])
        if name in builder.nodes:
            raise broken(line, f"two nodes are called {shown(name)}")
        builder.node(name, line)
        if found[2] is not None:
            given += [(_name(parent), name, line) for parent in found[2].split(":")]
        line += found[0].count("\n")
        at = found.end()
    for cause, effect, where in given:
        if cause not in builder.nodes:
            raise broken(where, f"the parent {shown(cause)} of {shown(effect)} is not one of the nodes")
        builder.edge(cause, "->", effect, where)
    return builder.done()


def write(graph: MixedGraph) -> str:
    """Return a model string, which can contain only arrows."""
    parents: dict[str, list[str]] = {node.name: [] for node in graph.nodes}
    for edge in graph.edges:
        if edge.mark == "->":
            parents[edge.right].append(edge.left)
    parts = [
        f"[{_text(name)}" + ("|" + ":".join(map(_text, causes)) if causes else "") + "]"
        for name, causes in parents.items()
    ]
    return "".join(parts) + "\n"
