"""JSON graphs: the node-link form of networkx and D3, and Espalier's own project file or graph."""

from __future__ import annotations

import json
import json.decoder
import json.scanner
from bisect import bisect_right
from typing import Any

from espalier.core.errors import GraphError
from espalier.core.graph.annotations import Annotation, annotations_from_json
from espalier.core.graph.formats.mixed import Builder, MixedGraph, Position, broken, facts_of, number, shown

_ID = ("id", "name", "key", "label")


class _Object(dict[str, Any]):
    """A JSON object that stores the position where it begins."""

    at = 0


class _Array(list[Any]):
    """A JSON array that stores the position where it begins."""

    at = 0


class _Decoder(json.JSONDecoder):
    """The standard library's decoder in Python, with objects and arrays that store the position where they begin."""

    def __init__(self) -> None:
        super().__init__(parse_constant=_no_constant)
        self.parse_object = _placed(json.decoder.JSONObject, _Object)  # type: ignore[attr-defined]
        self.parse_array = _placed(json.decoder.JSONArray, _Array)  # type: ignore[attr-defined]
        self.scan_once = json.scanner.py_make_scanner(self)  # type: ignore[attr-defined]


def _placed(parse: Any, kind: Any) -> Any:
    def parse_placed(start: tuple[str, int], *more: Any) -> tuple[Any, int]:
        value, end = parse(start, *more)
        made = kind(value)
        made.at = start[1] - 1
        return made, end

    return parse_placed


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not a number that JSON allows")


class _Lines:
    """Line number of a position in the text."""

    def __init__(self, text: str, first: int) -> None:
        self.first = first
        self.breaks = [i for i, c in enumerate(text) if c == "\n"]

    def of(self, value: Any) -> int:
        """Return the line on which ``value`` begins."""
        return self.first + bisect_right(self.breaks, getattr(value, "at", 0))


def read(text: str, line: int = 1) -> MixedGraph:
    """Read node-link JSON, an Espalier project, or the graph of a project; raises :class:`GraphError`."""
    try:
        data = _Decoder().decode(text)
    except json.JSONDecodeError as error:
        raise broken(line + error.lineno - 1, f"this is not JSON: {error.msg}") from None
    except (RecursionError, ValueError) as error:
        what = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise broken(line, f"this JSON cannot be read: {what}") from None
    lines = _Lines(text, line)
    builder = Builder("json")
    if isinstance(data, list):
        _pairs(data, lines, builder)
        return builder.done()
    if not isinstance(data, dict):
        raise broken(line, "the JSON must be one object, with nodes and edges")
    if str(data.get("format", "")).startswith("espalier-project/"):
        _project(data, lines, builder)
    elif isinstance(data.get("adjacency"), list):
        _networkx_adjacency(data, lines, builder)
    elif isinstance(data.get("nodes"), list):
        _node_link(data, lines, builder)
    elif isinstance(data.get("edges"), list):
        _own(data, lines, builder)
    elif data and all(isinstance(value, list | dict) for value in data.values()):
        _adjacency(data, lines, builder)
    else:
        raise broken(line, "the JSON object has no nodes and no edges")
    return builder.done()


def _list(data: Any, key: str, lines: _Lines) -> list[Any]:
    found = data.get(key, [])
    if not isinstance(found, list):
        raise broken(lines.of(data), f"{key} must be a list")
    return found


def _project(data: dict[str, Any], lines: _Lines, builder: Builder) -> None:
    """Return the graph and the roles of a project file."""
    roles: dict[str, list[str]] = {}
    found = data.get("roles", {})
    for role, names in found.items() if isinstance(found, dict) else ():
        for name in names if isinstance(names, list) else ():
            roles.setdefault(str(name), []).append(str(role))
    for column in _list(data, "schema", lines):
        if not isinstance(column, dict) or not isinstance(column.get("name"), str):
            raise broken(lines.of(column), "a column of the schema has no name")
        name = column["name"]
        builder.node(name, lines.of(column), roles=tuple(roles.get(name, ())))
    _own(data.get("dag", {}), lines, builder)


def _own(data: Any, lines: _Lines, builder: Builder) -> None:
    """Read ``{"edges": [["cause", "effect"]], "positions": {…}}``."""
    if not isinstance(data, dict):
        raise broken(lines.of(data), "dag must be an object with edges")
    said = _annotations(data, lines)
    for edge in _list(data, "edges", lines):
        if not (isinstance(edge, list) and len(edge) == 2 and all(isinstance(x, str) for x in edge)):
            raise broken(lines.of(edge), "an edge must be [cause, effect], two names")
        builder.edge(edge[0], "->", edge[1], lines.of(edge), said.get((edge[0], edge[1]), Annotation()))
    for of, what in said.items():
        if of[0] in builder.nodes and len(of) == 1:
            builder.node(of[0], 0, said=what)
        elif of not in {(a, b) for a, b, _ in builder.edges}:
            builder.unused("an annotation of a node or edge that is not in the graph", lines.of(data))
    positions = data.get("positions", {})
    for name, xy in positions.items() if isinstance(positions, dict) else ():
        if name in builder.nodes and (place := _position(xy)):
            builder.node(name, lines.of(xy), position=place)


def _annotations(data: Any, lines: _Lines) -> dict[tuple[str, ...], Annotation]:
    """Return the annotations of a project's graph. Notes of the older kind become annotations of their column."""
    try:
        said = annotations_from_json(data.get("annotations", []))
    except GraphError as error:
        raise broken(lines.of(data.get("annotations")), str(error)) from None
    notes = data.get("notes", {})
    for name, note in notes.items() if isinstance(notes, dict) else ():
        if (name,) not in said and isinstance(note, str):
            said[name,] = _annotation({"note": note}, lines.of(notes))
    return said


def _annotation(value: Any, where: int) -> Annotation:
    if not isinstance(value, dict) or value.keys() - {"note", "belief", "source", "may_break"}:
        raise broken(where, "an annotation must be an object with note, belief, source and may_break")
    try:
        return Annotation(**value)
    except GraphError as error:
        raise broken(where, str(error)) from None


def _position(value: Any) -> Position | None:
    if not isinstance(value, list) or len(value) != 2 or any(isinstance(v, bool) for v in value):
        return None
    x, y = (number(str(v)) for v in value)
    return None if x is None or y is None else (x, y)


def _node_link(data: dict[str, Any], lines: _Lines, builder: Builder) -> None:
    directed = data.get("directed", False) is True
    for node in _list(data, "nodes", lines):
        where = lines.of(node)
        if not isinstance(node, dict):
            raise broken(lines.of(data), "each of the nodes must be an object with an id")
        key = next((k for k in _ID if isinstance(node.get(k), str | int) and not isinstance(node[k], bool)), None)
        if key is None:
            raise broken(where, "this node has no id")
        name = str(node[key])
        if name in builder.nodes:
            raise broken(where, f"two nodes have the id {shown(name)}")
        _take_node(name, {k: v for k, v in node.items() if k != key}, where, builder)
    for edge in _list(data, "edges" if "edges" in data else "links", lines):
        if not isinstance(edge, dict):
            raise broken(lines.of(data), "each of the edges must be an object with source and target")
        where = lines.of(edge)
        ends = [edge.get(side) for side in ("source", "target")]
        for side, end in zip(("source", "target"), ends, strict=True):
            if str(end) not in builder.nodes or isinstance(end, bool):
                raise broken(where, f"the edge's {side} {shown(str(end))} is not the id of a node")
        said = _annotation(edge.get("annotation", {}), where)
        builder.edge(str(ends[0]), str(edge.get("mark", "->" if directed else "--")), str(ends[1]), where, said)
        for key in edge.keys() - {"source", "target", "mark", "key", "id", "annotation"}:
            builder.unused(f"the attribute {shown(key)} of an edge", where)
    for key in data.keys() - {"directed", "multigraph", "graph", "nodes", "edges", "links"}:
        builder.unused(f"the key {shown(key)} of the graph", lines.of(data))
    builder.use_labels()


def _pairs(data: list[Any], lines: _Lines, builder: Builder) -> None:
    """Read a list of arrows: pairs, or objects with the two ends."""
    for edge in data:
        where = lines.of(edge)
        if isinstance(edge, dict):
            ends = [next((edge[k] for k in keys if k in edge), None) for keys in _ENDS]
        else:
            ends = list(edge) if isinstance(edge, list) and len(edge) == 2 else []
        if len(ends) != 2 or not all(isinstance(end, str | int) and not isinstance(end, bool) for end in ends):
            raise broken(where, "each item of the list must be an arrow: two names, or an object with from and to")
        builder.edge(str(ends[0]), "->", str(ends[1]), where)


_ENDS = (("source", "from", "cause"), ("target", "to", "effect"))


def _networkx_adjacency(data: dict[str, Any], lines: _Lines, builder: Builder) -> None:
    """Read the adjacency form of networkx: a list of neighbours for each node, in the nodes' order."""
    nodes, rows = _list(data, "nodes", lines), data["adjacency"]
    names = [str(node["id"]) if isinstance(node, dict) and "id" in node else None for node in nodes]
    if None in names or len(rows) != len(names) or not all(isinstance(row, list) for row in rows):
        raise broken(lines.of(data), "each node needs an id, and a list of neighbours in adjacency")
    for name, node in zip(names, nodes, strict=True):
        builder.node(str(name), lines.of(node))
    mark = "->" if data.get("directed") is True else "--"
    for name, row in zip(names, rows, strict=True):
        for other in row:
            if not isinstance(other, dict) or str(other.get("id")) not in builder.nodes:
                raise broken(lines.of(row), "a neighbour is not the id of a node")
            if mark == "->" or (str(other["id"]), str(name), mark) not in builder.edges:
                builder.edge(str(name), mark, str(other["id"]), lines.of(row))


def _adjacency(data: dict[str, Any], lines: _Lines, builder: Builder) -> None:
    """Read an object that lists, for each name, the names to which it points, as a list or as an object; 0, false or
    null in an object means no arrow.

    A file does not state whether these are effects or causes, so Espalier asks the user, as it does for a matrix. A
    link given both ways has no direction.
    """
    arrows: dict[tuple[str, str], int] = {}
    for name, others in data.items():
        builder.node(name, lines.of(others))
    for name, others in data.items():
        found = others if isinstance(others, list) else [k for k, v in others.items() if v not in (0, False, None)]
        for other in found:
            if not isinstance(other, str | int) or isinstance(other, bool):
                raise broken(lines.of(others), f"the neighbours of {shown(name)} must be names")
            arrows[name, str(other)] = lines.of(others)
    for (name, other), where in arrows.items():
        if (other, name) not in arrows or name == other:
            builder.edge(name, "->", other, where)
            builder.is_matrix = True
        elif (other, name, "--") not in builder.edges:
            builder.edge(name, "--", other, where)


def _take_node(name: str, found: dict[str, Any], where: int, builder: Builder) -> None:
    place = _position(found.pop("position", found.pop("pos", None)))
    place = place or _position([found.get("x"), found.get("y")])
    if place and "x" in found:
        del found["x"], found["y"]
    if isinstance(roles := found.pop("roles", None), list):
        found["role"] = " ".join(str(role) for role in roles)
    said = _annotation(found.pop("annotation", {}), where)
    label = found.pop("label", found.pop("name", ""))
    facts = facts_of({**found, "label": label}, where, builder)
    builder.node(name, where, said=said, **facts, **({"position": place} if place else {}))


def write(graph: MixedGraph) -> str:
    """Return node-link JSON in the form of networkx, with further keys for marks, latent nodes, roles, positions and
    annotations.
    """
    nodes = []
    for node in graph.nodes:
        out: dict[str, Any] = {"id": node.name}
        out |= {"latent": True} if node.latent else {}
        out |= {"role": " ".join(node.roles)} if node.roles else {}
        out |= {"position": list(node.position)} if node.position else {}
        nodes.append(out | ({"annotation": node.said.to_json()} if node.said else {}))
    edges = []
    for edge in graph.edges:
        out = {"source": edge.left, "target": edge.right} | ({} if edge.mark == "->" else {"mark": edge.mark})
        edges.append(out | ({"annotation": edge.said.to_json()} if edge.said else {}))
    head = {"directed": True, "multigraph": False, "graph": {}}
    try:
        return json.dumps({**head, "nodes": nodes, "edges": edges}, indent=1, ensure_ascii=False) + "\n"
    except ValueError as error:
        raise GraphError(str(error)) from None
