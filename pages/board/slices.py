"""The board for linked tables: the person, this visit and the next visit side by side.

Arrows at this visit apply within every visit. The boxes of the next visit are copies of a visit's columns. Arrows that
end there lead from one visit to the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from espalier.core.errors import GraphError
from espalier.core.project.file import Project
from espalier.core.project.linked import Pair
from espalier.pages.board.boxes import HIGH, Places
from espalier.pages.session.session import Session

TITLES = ("Person", "This visit", "Next visit")
PERSON, NOW, LATER = range(3)
BACK = "An arrow cannot lead from the next visit back to this visit or to the person."
EVERY = "It holds at every visit."
BETWEEN = "It leads from one visit to the next."


def later(project: Project) -> dict[str, str]:
    """Return the boxes of the next visit, and their columns; empty for a single table."""
    return project.linked.next_boxes(project.schema) if project.linked else {}


def copies(project: Project, columns: Iterable[str]) -> list[str]:
    """Return the additional boxes for these columns: the days between visits, and the boxes of the next visit."""
    if project.linked is None:
        return []
    known, gap = {*columns}, project.linked.gap_name
    drawn = {effect for _, effect in project.linked.arrows}
    ahead = [box for box, column in later(project).items() if column in known or column in drawn or column == gap]
    return [*([gap] if project.linked.gap else []), *ahead]


def is_copy(project: Project, box: Any) -> bool:
    """Return whether a box is neither a column of the schema nor a group."""
    return project.linked is not None and (box == project.linked.gap_name or box in later(project))


def arrows(project: Project) -> tuple[Pair, ...]:
    """Return all arrows as pairs of boxes: within a visit, and from this visit to the next."""
    link = project.linked
    return project.dag.edges if link is None else (*project.dag.edges, *map(link.boxes, link.arrows))


def faces(project: Project, names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return the column and the name shown in each box, for boxes that do not show their own name."""
    link = project.linked
    if link is None:
        return {}
    ahead = later(project)
    return {n: (ahead.get(n, n), link.plain(ahead.get(n, n))) for n in names if n not in project.dag.groups}


def parts(project: Project, names: Iterable[str]) -> list[list[str]]:
    """Return the boxes of the three slices; nothing for a single table. A closed group is in its first column's
    slice.
    """
    link = project.linked
    if link is None:
        return []
    ahead, person = later(project), {*link.person_columns(project.schema), link.number}
    out: list[list[str]] = [[], [], []]
    for n in names:
        first = project.dag.groups.get(n, (n,))[0]
        out[LATER if n in ahead else PERSON if first in person else NOW].append(n)
    return out


def meant(project: Project, arrow: Pair) -> tuple[Pair, Pair | None]:
    """Return the boxes between which an arrow is drawn, and its columns if it leads from one visit to the next.

    An arrow that ends at the next visit and starts at the person, or at another box of the next visit, applies at every
    visit. It is therefore drawn at this visit. Raises :class:`GraphError` for an arrow back in time.
    """
    link, ahead = project.linked, later(project)
    if link is None:
        return arrow, None
    cause, effect = arrow
    if cause in ahead and effect not in ahead:
        raise GraphError(BACK)
    if effect in ahead and cause not in ahead and cause in link.step_columns(project.schema):
        return arrow, (cause, ahead[effect])
    cause, effect = ahead.get(cause, cause), ahead.get(effect, effect)
    if link.gap_name in (cause, effect):
        raise GraphError(f"an arrow from or to {link.gap_name!r} can only lead from one visit to the next")
    return (cause, effect), None


def place(project: Project, missing: Sequence[str], known: Mapping[str, tuple[float, float]]) -> Places:
    """Return positions for boxes of linked tables that have no position: below the other boxes of their slice."""
    out: Places = {}
    for names in parts(project, {**dict.fromkeys(known), **dict.fromkeys(missing)}):
        have = [known[n] for n in names if n in known]
        right = max((x for x, _ in (*known.values(), *out.values())), default=0.0)
        x = min((x for x, _ in have), default=right + 3 * HIGH)
        y = max((y for _, y in have), default=-HIGH) + HIGH
        for n in names:
            if n not in known:
                out[n] = round(x), round(y)
                y += HIGH
    return out


def inside(project: Project, box: str, at: tuple[float, float], known: Places) -> tuple[float, float]:
    """Return the point of the box's slice nearest to ``at``."""
    own = next((part for part in parts(project, [*known, box]) if box in part), [])
    xs = [known[n][0] for n in own if n in known]
    return (min(max(at[0], min(xs)), max(xs)), at[1]) if xs else at


def data(state: Session, names: Sequence[str]) -> dict[str, Any]:
    """Return the slices as plain values for the browser."""
    project = state.project
    link = project.linked
    if link is None:
        return {"slices": [], "ahead": {}, "steps": [], "never": []}
    titled = zip(TITLES, parts(project, names), strict=True)
    return {
        "slices": [{"title": title, "boxes": boxes} for title, boxes in titled],
        "ahead": later(project),
        "steps": list(link.step_columns(project.schema)),
        "never": [link.gap_name] if link.gap else [],
    }
