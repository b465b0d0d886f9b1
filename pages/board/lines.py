"""The lines of the drawing board: their text, and their paths around the boxes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from espalier.core.graph.implied import Implied, without
from espalier.core.graph.routes import Line, Point, Rectangle, behind, routed
from espalier.pages.board import drawing, groups, links, slices
from espalier.pages.board.boxes import Places
from espalier.pages.session.session import Session
from espalier.pages.structure import implications

MOST_WHAT_IF = 400
"""Maximum number of arrows for which the board describes the effect of erasing each arrow."""

Paths = Mapping[Line, tuple[Point, ...]]


def _paths(
    state: Session, what: str, boxes: Mapping[str, Rectangle], lines: tuple[Line, ...], bends: Paths
) -> tuple[Paths, list[tuple[Line, str]]]:
    """Return the path of each line, and the lines that pass behind a box.

    Most reruns change neither, so the session keeps the last result for each kind of drawing (``what``).
    """
    asked, known = (tuple(boxes.items()), lines, tuple(bends.items())), state.drafts.board.routes.get(what)
    if known is None or known[0] != asked:
        paths = routed(boxes, lines, bends)
        known = state.drafts.board.routes[what] = asked, (paths, behind(boxes, paths))
    found: tuple[Paths, list[tuple[Line, str]]] = known[1]
    return found


def data(
    state: Session, now: Implied, at: Places, boxes: Mapping[str, Rectangle], lit: set[tuple[str, str]]
) -> dict[str, Any]:
    """Return the lines between ``boxes`` as plain values; ``at`` are the positions, ``lit`` the marked arrows."""
    project, box = state.project, groups.closed(state)
    dag = project.dag

    def ends(*names: str) -> tuple[str, ...]:
        """Return the boxes of these columns: fewer if two columns share a box, and none if any column is not shown."""
        found = tuple(dict.fromkeys(box.get(n, n) for n in names))
        return found if boxes.keys() >= {*found} else ()

    drawn_arrows = slices.arrows(project)
    arrows = [e for e in drawn_arrows if ends(*e) == e]
    bundles: dict[Line, list[tuple[str, str]]] = {}
    for e in drawn_arrows:
        if len(ends(*e)) == 2 and ends(*e) != e:
            bundles.setdefault(ends(*e), []).append(e)
    shared = {cause: pair for cause, pair in dag.unmeasured.items() if len(ends(*pair)) == 2}
    columns, chosen = drawing.selected(state)
    kept = links.apart(state, {*columns, *(chosen or ())}) if "apart" in drawing.marks(state) else []
    kept = [(a, b, s) for a, b, s in kept if len(ends(a, b)) == 2]
    drawn = (*arrows, *bundles, *((*ends(*pair), "share") for pair in shared.values()))
    bends: dict[Line, tuple[Point, ...]] = {e: tuple(points) for e, points in drawing.bends(state, at).items()}
    paths, hidden = _paths(state, "drawn", boxes, drawn, bends)
    dotted, _ = _paths(state, "apart", boxes, tuple(ends(a, b) for a, b, _ in kept), {})
    own = set(project.separations)
    return {
        "edges": [_arrow(state, now, e) | {"lit": e in lit, "path": _plain(paths[e])} for e in arrows],
        "bundles": [
            _link(pair, pair, _bundled(pair, inside), paths[pair], lit=not lit.isdisjoint(inside))
            for pair, inside in bundles.items()
        ],
        "shared": [
            _link(
                (a, b),
                ends(a, b),
                f"{a} ↔ {b}: these columns share an unmeasured cause. Press Delete to erase this link.",
                paths[*ends(a, b), "share"],
                lit=any(cause in arrow for arrow in lit),
            )
            for cause, (a, b) in shared.items()
        ],
        "apart": [
            _link((a, b), ends(a, b), implications.apart(a, b, s, s in own), dotted[ends(a, b)]) for a, b, s in kept
        ],
        "together": [
            {
                "ends": [*causes, effect],
                "at": [*ends(*causes), *ends(effect)],
                "lit": False,
                "text": f"{' and '.join(causes)} act together on {effect}. Press Delete to erase this link.",
            }
            for causes, effect in dag.drawn_interactions
            if len(ends(*causes)) > 1 and len(ends(*causes, effect)) == len(ends(*causes)) + 1
        ],
        "behind": [f"{line[0]} → {line[1]} (behind {name})" for line, name in hidden],
    }


def _link(ends: Line, at: Line, text: str, path: tuple[Point, ...], lit: bool = False) -> dict[str, Any]:
    """Return a line that is not an arrow; ``at`` are the boxes of its ends."""
    return {"from": ends[0], "to": ends[1], "at": list(at), "text": text, "path": _plain(path), "lit": lit}


def _bundled(pair: Line, arrows: list[tuple[str, str]]) -> str:
    """Return the text of a line that shows the arrows of a closed group."""
    listed = ", ".join(f"{a} → {b}" for a, b in arrows[:6]) + (" …" if len(arrows) > 6 else "")
    many = f"{len(arrows)} arrow{'s' * (len(arrows) != 1)}"
    return f"{pair[0]} → {pair[1]}, {many}: {listed}. Open the group to change them."


def _arrow(state: Session, now: Implied, arrow: tuple[str, str]) -> dict[str, Any]:
    """Return an arrow as plain values: its ends, its marks and its text."""
    project, remark = state.project, state.project.dag.annotation(*arrow)
    said = ""
    if slices.is_copy(project, arrow[1]):
        said = slices.BETWEEN
    elif len(project.dag.edges) <= MOST_WHAT_IF:
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
