"""The lines of the drawing board: what they say, and the paths on which they pass its boxes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from espalier.core.graph.implied import Implied, without
from espalier.core.graph.routes import Line, Point, Rectangle, behind, routed
from espalier.pages.board import drawing, links
from espalier.pages.board.boxes import Places
from espalier.pages.session.session import Session
from espalier.pages.structure import implications

MOST_WHAT_IF = 400
"""Largest number of arrows for which each shows the consequences of erasing it."""

Paths = Mapping[Line, tuple[Point, ...]]


@lru_cache(maxsize=64)
def _paths(
    boxes: tuple[tuple[str, Rectangle], ...],
    lines: tuple[Line, ...],
    bends: tuple[tuple[Line, tuple[Point, ...]], ...],
) -> tuple[Paths, list[tuple[Line, str]]]:
    """Return the path of each line, and the lines that pass behind a box. Most reruns change none of them."""
    paths = routed(dict(boxes), lines, dict(bends))
    return paths, behind(dict(boxes), paths)


def data(
    state: Session, now: Implied, at: Places, boxes: Mapping[str, Rectangle], lit: set[tuple[str, str]]
) -> dict[str, Any]:
    """Return the lines between ``boxes`` as plain values; ``at`` are the positions, ``lit`` the marked arrows."""
    project = state.project
    dag = project.dag
    arrows = [e for e in dag.edges if boxes.keys() >= {*e}]
    bends = tuple((e, tuple(points)) for e, points in drawing.bends(state, at).items())
    drawn = (*arrows, *((a, b, "share") for a, b in dag.hidden if boxes.keys() >= {a, b}))
    paths, hidden = _paths(tuple(boxes.items()), drawn, bends)
    columns, chosen = drawing.selected(state)
    kept = links.apart(state, {*columns, *(chosen or ())}) if "apart" in drawing.marks(state) else []
    kept = [(a, b, s) for a, b, s in kept if boxes.keys() >= {a, b}]
    dotted, _ = _paths(tuple(boxes.items()), tuple((a, b) for a, b, _ in kept), ())
    own = set(project.separations)
    return {
        "edges": [_arrow(state, now, e) | {"lit": e in lit, "path": _plain(paths[e])} for e in arrows],
        "shared": [
            {
                "from": a,
                "to": b,
                "lit": any(cause in arrow for arrow in lit),
                "text": f"{a} ↔ {b}: they share an unmeasured cause. Delete erases this link.",
                "path": _plain(paths[a, b, "share"]),
            }
            for cause, (a, b) in dag.unmeasured.items()
            if boxes.keys() >= {a, b}
        ],
        "apart": [
            {
                "from": a,
                "to": b,
                "lit": False,
                "text": implications.apart(a, b, s, s in own),
                "path": _plain(dotted[a, b]),
            }
            for a, b, s in kept
        ],
        "together": [
            {
                "ends": [*causes, effect],
                "causes": list(causes),
                "effect": effect,
                "lit": False,
                "text": f"{' and '.join(causes)} act together on {effect}. Delete erases this link.",
            }
            for causes, effect in dag.drawn_interactions
            if boxes.keys() >= {*causes, effect}
        ],
        "behind": [f"{line[0]} → {line[1]} (behind {box})" for line, box in hidden],
    }


def _arrow(state: Session, now: Implied, arrow: tuple[str, str]) -> dict[str, Any]:
    """Return what an arrow shows and says."""
    project, remark = state.project, state.project.dag.annotation(*arrow)
    said = ""
    if len(project.dag.edges) <= MOST_WHAT_IF:
        said = implications.erasing(without(project.dag, [arrow], project.plan.target, project.roles, now))
    remarks = ["contested"] * (remark.belief == "contested") + ["may break"] * remark.may_break
    return {
        "from": arrow[0],
        "to": arrow[1],
        "contested": remark.belief == "contested",
        "label": "\n".join(remarks),
        "without": said,
    }


def _plain(path: tuple[Point, ...]) -> list[list[float]]:
    return [[x, y] for x, y in path]
