"""Groups of columns on the board: one box that opens and closes.

The project stores the groups. The session stores which groups are open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from espalier.core.errors import GraphError
from espalier.pages.board.boxes import Places
from espalier.pages.board.sent import MOST_SELECTED, column_of, text_of
from espalier.pages.session.session import Session

LONGEST, MOST_NAMED = 40, 6
"""Maximum number of characters in a group's name, and of columns named in a sentence."""


def closed(state: Session) -> dict[str, str]:
    """Return the group of each column that is inside a closed box."""
    groups, opened = state.project.dag.groups, state.drafts.board.opened
    return {name: group for group, inside in groups.items() if group not in opened for name in inside}


def of(state: Session, column: str) -> str | None:
    """Return the group of a column."""
    return next((group for group, inside in state.project.dag.groups.items() if column in inside), None)


def boxed(state: Session, columns: Iterable[str]) -> list[str]:
    """Return the boxes of columns: a closed group replaces its columns."""
    box = closed(state)
    return list(dict.fromkeys(box.get(n, n) for n in columns))


def near(state: Session, box: str, known: Places) -> tuple[float, float] | None:
    """Return a position for a box that has none: a group is placed at its first column, a column at its group."""
    inside = state.project.dag.groups.get(box) or (of(state, box) or "",)
    return next((known[n] for n in inside if n in known), None)


def make(state: Session, action: Mapping[str, Any]) -> str:
    """Put columns into a group, shown as one closed box, and remove them from their earlier groups."""
    name, columns = text_of(action, "name").strip(), action.get("columns")
    if not isinstance(columns, list) or len(columns) < 2:
        raise GraphError("select two or more columns to group")
    if not 0 < len(name) <= LONGEST:
        raise GraphError(f"type a name for the group, of at most {LONGEST} characters")
    if name in state.project.schema or name in state.project.dag.groups:
        raise GraphError(f"{name!r} is taken: give the group another name")
    inside = state.project.schema.clique(column_of(state, c) for c in columns[:MOST_SELECTED])
    state.editor.redraw(state.project.dag.grouped(name, inside))
    state.drafts.board.columns, state.drafts.board.group = (), name
    return f"{name}: {len(inside)} columns in one box. Enter or a double click opens it."


def toggle(state: Session, action: Mapping[str, Any]) -> str:
    """Open or close a group. Lay out all boxes again if no box was placed by hand."""
    board, group = state.drafts.board, _group(state, action)
    if not state.project.dag.positions:
        board.places.pop("all", None)
        board.laid.pop("all", None)
        board.fits += 1
    if group in board.opened:
        board.opened = tuple(g for g in board.opened if g != group)
        board.columns, board.group = (), group
        return f"{group} is closed: one box for {len(state.project.dag.groups[group])} columns."
    board.opened, board.group = (*board.opened, group), None
    inside = state.project.dag.groups[group]
    more = f" and {len(inside) - MOST_NAMED} more" if len(inside) > MOST_NAMED else ""
    return f"{group} is open: {', '.join(inside[:MOST_NAMED])}{more}."


def dissolve(state: Session, action: Mapping[str, Any]) -> str:
    """Dissolve a group and keep its columns."""
    group = _group(state, action)
    state.editor.redraw(state.project.dag.grouped(group, ()))
    return f"{group} is no longer a group. Undo restores it."


def _group(state: Session, action: Mapping[str, Any]) -> str:
    name = text_of(action, "group")
    if name not in state.project.dag.groups:
        raise GraphError(f"{name!r} is not a group")
    return name
