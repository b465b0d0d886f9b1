"""Validation of messages from the drawing board. No message is trusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from espalier.core.errors import GraphError
from espalier.pages.board import slices
from espalier.pages.board.boxes import Places
from espalier.pages.session.session import Session

FAR = 1e6
MOST_SELECTED = 12
"""Maximum number of boxes that can be selected at the same time."""


def column_of(state: Session, name: Any) -> str:
    """Return the name of a column of the project."""
    if not isinstance(name, str) or name not in state.project.schema:
        raise GraphError(f"{name!r} is not a column")
    return name


def arrow_of(state: Session, arrow: Any) -> tuple[str, str]:
    """Return two columns of the project."""
    if not isinstance(arrow, list) or len(arrow) != 2:
        raise GraphError("an arrow is [cause, effect]")
    return column_of(state, arrow[0]), column_of(state, arrow[1])


def text_of(action: Mapping[str, Any], key: str) -> str:
    """Return a text field of an action."""
    value = action.get(key)
    if not isinstance(value, str):
        raise GraphError(f"the drawing sent no {key}")
    return value


def box_of(state: Session, name: Any) -> str:
    """Return the name of a column, or of a box that only linked tables have."""
    return str(name) if isinstance(name, str) and slices.is_copy(state.project, name) else column_of(state, name)


def line_of(state: Session, arrow: Any) -> tuple[str, str]:
    """Return two boxes of the drawing that an arrow may link."""
    if not isinstance(arrow, list) or len(arrow) != 2:
        raise GraphError("an arrow is [cause, effect]")
    return box_of(state, arrow[0]), box_of(state, arrow[1])


def points_of(at: Mapping[Any, Any], state: Session) -> Places:
    """Return checked positions."""
    places: Places = {}
    for column, xy in at.items():
        ok = isinstance(xy, list) and len(xy) == 2
        if not ok or not all(isinstance(v, int | float) and not isinstance(v, bool) and abs(v) < FAR for v in xy):
            raise GraphError(f"the position of {column!r} must be two numbers")
        is_box = column in state.project.dag.groups or slices.is_copy(state.project, column)
        places[column if is_box else column_of(state, column)] = (round(xy[0]), round(xy[1]))
    return places
