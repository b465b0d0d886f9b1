"""Causal graph drawn by the expert: columns, and arrows from cause to effect without a cycle."""

from __future__ import annotations

import graphlib
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from espalier.core.errors import GraphError, first_twice
from espalier.core.graph.annotations import Annotation, annotations_from_json, annotations_to_json

Arrow = tuple[str, str]
Interaction = tuple[tuple[str, ...], str]
"""Two or more interacting causes, and their effect."""


@dataclass(frozen=True)
class Dag:
    """Arrows ``(cause, effect)``. ``notes`` and ``positions`` belong to the drawing and are kept unchanged.

    ``annotations`` belong to a column, ``(column,)``, or to an arrow, ``(cause, effect)``. An annotation whose arrow or
    column is not in the drawing is kept and ignored, so it reappears if the arrow is drawn again. ``hidden`` are pairs
    that share an unmeasured cause (a ↔ b). ``interactions`` are causes that act together on a column, as (causes,
    effect); like annotations, an interaction without its arrows is kept and ignored. ``groups`` maps a group's name to
    columns that a picture may show as one box.

    Raises :class:`GraphError` for a cycle (naming its path), an arrow from a column to itself, or a repeated arrow.

    >>> import espalier as es
    >>> es.Dag((("smoker", "sick"), ("age", "sick"))).parents("sick")
    ('age', 'smoker')
    """

    edges: tuple[tuple[str, str], ...] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)
    positions: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    annotations: Mapping[tuple[str, ...], Annotation] = field(default_factory=dict)
    hidden: tuple[Arrow, ...] = ()
    interactions: tuple[Interaction, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        seen: set[tuple[str, str]] = set()
        for cause, effect in self.edges:
            if cause == effect:
                raise GraphError(f"{cause!r} cannot be its own cause; remove that arrow", edge=(cause, effect))
            if (cause, effect) in seen:
                raise GraphError(f"the arrow {cause!r} → {effect!r} is listed twice", edge=(cause, effect))
            seen.add((cause, effect))
        if path := find_cycle(self.edges):
            shown = " → ".join(path)
            raise GraphError(f"the arrows form a cycle: {shown}; remove an arrow of the cycle", cycle=path)
        pairs = [frozenset(pair) for pair in self.hidden]
        for pair, ends in zip(self.hidden, pairs, strict=True):
            if len(pair) != 2 or len(ends) != 2:
                raise GraphError(
                    f"an unmeasured cause must be shared by two different columns, not by {' and '.join(pair)}"
                )
        if len(set(pairs)) < len(pairs):
            raise GraphError("hidden lists a pair twice; list it once")
        for causes, effect in self.interactions:
            if len(set(causes)) < 2 or len(set(causes)) < len(causes) or effect in causes:
                raise GraphError(
                    f"an interaction needs two or more different causes of one column; {', '.join(causes)} on "
                    f"{effect!r} is not an interaction"
                )
        if len({(frozenset(causes), effect) for causes, effect in self.interactions}) < len(self.interactions):
            raise GraphError("interactions lists the same causes of a column twice; list them once")
        grouped = [name for inside in self.groups.values() for name in inside]
        if (twice := first_twice(grouped)) is not None:
            raise GraphError(f"{twice!r} is in two groups; a column can be in only one group", column=twice)

    def check_columns(self, names: Iterable[str]) -> None:
        """Raise :class:`GraphError` if an end of an arrow is not a column."""
        known = set(names)
        for pair in self.hidden:
            for name in pair:
                if name not in known:
                    raise GraphError(
                        f"{pair[0]!r} and {pair[1]!r} share an unmeasured cause in the graph, but {name!r} is not a "
                        "column",
                        column=name,
                    )
        for what, names in (
            *(("an interaction of the graph", (*causes, effect)) for causes, effect in self.interactions),
            *((f"the group {group!r} of the graph", inside) for group, inside in self.groups.items()),
        ):
            if odd := [name for name in names if name not in known]:
                raise GraphError(f"{what} contains {odd[0]!r}, which is not a column", column=odd[0])
        if taken := [group for group in self.groups if group in known]:
            raise GraphError(f"the group {taken[0]!r} has the name of a column; give it another name", column=taken[0])
        for edge in self.edges:
            for name in edge:
                if name not in known:
                    raise GraphError(
                        f"the graph has an arrow {edge[0]!r} → {edge[1]!r}, but {name!r} is not a column",
                        edge=edge,
                        column=name,
                    )

    def parents(self, column: str) -> tuple[str, ...]:
        """Return the direct causes of ``column``, Pa(Y)."""
        return tuple(sorted({c for c, e in self.edges if e == column}))

    def children(self, column: str) -> tuple[str, ...]:
        """Return the direct effects of ``column``."""
        return tuple(sorted({e for c, e in self.edges if c == column}))

    def blanket(self, column: str) -> tuple[str, ...]:
        """Return the Markov blanket Mb(Y): parents, children, and the children's other parents (PRISM §3.3)."""
        children = self.children(column)
        co_parents = {p for child in children for p in self.parents(child)}
        return tuple(sorted({*self.parents(column), *children, *co_parents} - {column}))

    def path(self, start: str, end: str) -> tuple[str, ...] | None:
        """Return a shortest chain of arrows from ``start`` to ``end``, or `None`. The arrow ``end → start`` would make
        it a cycle.
        """
        after: dict[str, list[str]] = {}
        for cause, effect in self.edges:
            after.setdefault(cause, []).append(effect)
        came_from: dict[str, str | None] = {start: None}
        queue = [start]
        for name in queue:  # breadth-first search; the list grows during the loop
            if name == end:
                walk = [name]
                while (before := came_from[walk[-1]]) is not None:
                    walk.append(before)
                return tuple(reversed(walk))
            for other in after.get(name, ()):
                if other not in came_from:
                    came_from[other] = name
                    queue.append(other)
        return None

    def drawn(self, cause: str, effect: str) -> Dag:
        """Return the drawing with one more arrow; raise :class:`GraphError` with the cycle that it would close."""
        if (cause, effect) in self.edges:
            return self
        if cause != effect and (back := self.path(effect, cause)):
            cycle = (cause, *back)
            raise GraphError(
                f"the arrow {cause!r} → {effect!r} would close a cycle: {' → '.join(cycle)}",
                edge=(cause, effect),
                cycle=cycle,
            )
        return replace(self, edges=(*self.edges, (cause, effect)))

    def without(self, arrows: Iterable[tuple[str, str]]) -> Dag:
        """Return the drawing without these arrows. Their notes are kept."""
        gone = set(arrows)
        return replace(self, edges=tuple(e for e in self.edges if e not in gone))

    def sharing(self, one: str, other: str, shared: bool = True) -> Dag:
        """Return the drawing with or without an unmeasured cause shared by the two."""
        rest = tuple(pair for pair in self.hidden if set(pair) != {one, other})
        return replace(self, hidden=(*rest, (one, other)) if shared else rest)

    def interacting(self, causes: Iterable[str], effect: str, together: bool = True) -> Dag:
        """Return the drawing with or without the interaction of ``causes`` on ``effect``."""
        causes = tuple(causes)
        rest = tuple(found for found in self.interactions if (set(found[0]), found[1]) != (set(causes), effect))
        return replace(self, interactions=(*rest, (causes, effect)) if together else rest)

    def grouped(self, group: str, columns: Iterable[str]) -> Dag:
        """Return the drawing with ``columns`` in this group and in no other; without columns, remove the group."""
        inside = tuple(columns)
        rest = {name: tuple(n for n in old if n not in inside) for name, old in self.groups.items() if name != group}
        return replace(self, groups={name: left for name, left in {**rest, group: inside}.items() if left})

    @property
    def confounded(self) -> tuple[Arrow, ...]:
        """Arrows whose two ends also share an unmeasured cause."""
        pairs = {frozenset(pair) for pair in self.hidden}
        return tuple(e for e in self.edges if frozenset(e) in pairs)

    @property
    def unmeasured(self) -> dict[str, Arrow]:
        """Unique name of each unmeasured cause, with the pair that shares it."""
        return {f"an unmeasured cause of {a} and {b}": (a, b) for a, b in self.hidden}

    @property
    def drawn_interactions(self) -> tuple[Interaction, ...]:
        """Interactions in which every cause has an arrow to the effect."""
        drawn = set(self.edges)
        return tuple((causes, effect) for causes, effect in self.interactions if {(c, effect) for c in causes} <= drawn)

    @property
    def links(self) -> tuple[Arrow, ...]:
        """All links between columns: the arrows, and two arrows from each unmeasured cause. Paths follow these
        links.
        """
        return (*self.edges, *((cause, name) for cause, pair in self.unmeasured.items() for name in pair))

    def annotation(self, *of: str) -> Annotation:
        """Return the annotation of a column, or of an arrow (cause, effect)."""
        return self.annotations.get(of, Annotation())

    def annotated(self, of: tuple[str, ...], said: Annotation) -> Dag:
        """Return the drawing with a new annotation of a column or an arrow. An empty annotation removes the old one."""
        kept = {key: value for key, value in self.annotations.items() if key != of}
        return replace(self, annotations={**kept, of: said} if said else kept)

    @property
    def contested(self) -> tuple[tuple[str, str], ...]:
        """Arrows marked as contested."""
        return tuple(e for e in self.edges if self.annotation(*e).belief == "contested")

    @property
    def may_break(self) -> tuple[tuple[str, str], ...]:
        """Arrows that may break elsewhere."""
        return tuple(e for e in self.edges if self.annotation(*e).may_break)

    def to_json(self) -> dict[str, Any]:
        """Return the graph as the project file stores it."""
        out: dict[str, Any] = {
            "edges": [list(e) for e in self.edges],
            "notes": dict(self.notes),
            "positions": {name: list(xy) for name, xy in self.positions.items()},
        }
        if self.annotations:
            out["annotations"] = annotations_to_json(self.annotations)
        if self.hidden:
            out["hidden"] = [list(pair) for pair in self.hidden]
        if self.interactions:
            out["interactions"] = [{"causes": list(causes), "effect": effect} for causes, effect in self.interactions]
        if self.groups:
            out["groups"] = {group: list(inside) for group, inside in self.groups.items()}
        return out

    @classmethod
    def from_json(cls, data: Any) -> Dag:
        """Return a graph from the project file; raise :class:`GraphError`."""
        if not isinstance(data, Mapping):
            raise GraphError("dag must be an object with edges")
        if odd := set(data) - {"edges", "notes", "positions", "annotations", "hidden", "interactions", "groups"}:
            raise GraphError(f"dag: unknown key {sorted(odd)[0]!r}")
        edges, hidden = data.get("edges", []), data.get("hidden", [])
        for key, pairs, what in (("edges", edges, "[cause, effect]"), ("hidden", hidden, "[column, column]")):
            if not isinstance(pairs, list):
                raise GraphError(f"dag: {key} must be a list of {what}")
            for pair in pairs:
                if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(x, str) for x in pair)):
                    each = "each edge" if key == "edges" else "each entry of hidden"
                    raise GraphError(f"dag: {each} must be {what}, two column names; {pair!r} is not")
        notes = data.get("notes", {})
        if not isinstance(notes, Mapping):
            raise GraphError("dag: notes must be an object")
        return cls(
            tuple((c, e) for c, e in edges),
            dict(notes),
            _positions(data.get("positions", {})),
            annotations_from_json(data.get("annotations", [])),
            tuple((a, b) for a, b in hidden),
            _interactions(data.get("interactions", [])),
            _groups(data.get("groups", {})),
        )


def find_cycle(edges: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return one cycle among the arrows, as a path that ends with its first column; empty if there is none."""
    arrows = set(edges)
    after: dict[str, list[str]] = {}
    for cause, effect in edges:
        after.setdefault(effect, []).append(cause)
    try:
        graphlib.TopologicalSorter(after).prepare()
    except graphlib.CycleError as error:
        found: list[str] = error.args[1]
        return tuple(found if _forward(found, arrows) else found[::-1])
    return ()


def _forward(path: list[str], edges: set[tuple[str, str]]) -> bool:
    return all(pair in edges for pair in itertools.pairwise(path))


def _interactions(data: Any) -> tuple[Interaction, ...]:
    if not isinstance(data, list):
        raise GraphError("dag: interactions must be a list of objects")
    out: list[Interaction] = []
    for item in data:
        good = isinstance(item, Mapping) and set(item) == {"causes", "effect"} and isinstance(item["effect"], str)
        if not good or not _are_names(item["causes"]):
            raise GraphError('dag: an interaction must be {"causes": [column, column], "effect": column}')
        out.append((tuple(item["causes"]), item["effect"]))
    return tuple(out)


def _groups(data: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(data, Mapping) or not all(_are_names(inside) for inside in data.values()):
        raise GraphError('dag: groups must be an object such as {"lab values": [column, column]}')
    return {group: tuple(inside) for group, inside in data.items()}


def _are_names(data: Any) -> bool:
    return isinstance(data, list) and all(isinstance(name, str) for name in data)


def _positions(data: Any) -> dict[str, tuple[float, float]]:
    if not isinstance(data, Mapping):
        raise GraphError("dag: positions must be an object of [x, y]")
    out: dict[str, tuple[float, float]] = {}
    for name, xy in data.items():
        ok = isinstance(xy, list) and len(xy) == 2
        if not ok or not all(isinstance(v, int | float) and not isinstance(v, bool) and abs(v) < 1e9 for v in xy):
            raise GraphError(f"dag: the position of {name!r} must be [x, y], two numbers")
        out[name] = (float(xy[0]), float(xy[1]))
    return out
