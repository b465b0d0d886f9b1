"""Check the actions that the drawing board sends, apply them to the project, and show the result on the board.

The board sends a list of numbered actions. Actions that were already carried out are skipped. No action is trusted:
this module checks names, kinds and numbers, and the graph checks its own rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from espalier.core.errors import EspalierError, GraphError
from espalier.core.graph.paths import neighbourhood
from espalier.core.graph.roles import Roles
from espalier.core.project.file import Project
from espalier.pages.board import groups, links, slices
from espalier.pages.board.boxes import Bends, Places, arranged, described, free_place
from espalier.pages.board.sent import MOST_SELECTED, box_of, column_of, line_of, points_of, text_of
from espalier.pages.session.session import Session

MOST_BOXES, FEW_COLUMNS, FEW_NEAR = 60, 24, 16
"""Above `MOST_BOXES` columns with arrows, the board shows the neighbourhood of the selected column. The neighbourhood
extends up to three arrows from this column, as long as it has at most `FEW_NEAR` columns. With at most `FEW_COLUMNS`
columns in total, all are shown; with more, the columns without arrows are in the tray.
"""
WIDE = 1000
"""Maximum width of a line of boxes, in the drawing's pixels; less on a narrow screen."""
HINT = (
    "Drag from a cause to its effect. Click a box or a line to select it; Shift-click to select several. Keyboard: "
    "arrow keys, Enter, Delete."
)
SLICED = (
    "Drag from a cause to its effect, at this visit or at the next. Click a box or a line to select it. Keyboard: "
    "arrow keys, Enter, Delete."
)
EMPTY = "The drawing is empty. Press a column in the tray below, or type part of its name and press Enter."
AROUND = (
    "The drawing shows the neighbourhood of the selection. Choose a column below, or add a column from the tray to "
    "draw arrows to it."
)


def take(state: Session, sent: Any) -> None:
    """Carry out the board's actions. A refused action changes nothing and shows its reason."""
    if not state.has_project or not isinstance(sent, Mapping) or not isinstance(sent.get("list"), list):
        return
    board = state.drafts.board
    if board.board != sent.get("board"):
        board.board, board.taken = sent.get("board"), 0
    for action in sent["list"][:500]:
        number = action.get("n") if isinstance(action, Mapping) else None
        if not isinstance(number, int) or number <= board.taken:
            continue
        board.taken = number
        try:
            text = _ACTIONS[text_of(action, "do")](state, action)
        except EspalierError as error:
            say(state, f"Refused: {error} The drawing is unchanged.", bad=True)
        except KeyError:
            say(state, "The browser sent an unknown action. The drawing is unchanged.", bad=True)
        else:
            if text:
                say(state, text)


def say(state: Session, text: str, bad: bool = False) -> None:
    """Show a message below the drawing."""
    board = state.drafts.board
    board.message = {"n": 1 + (board.message["n"] if board.message else 0), "text": text, "bad": bad}


def selected(state: Session) -> tuple[tuple[str, ...], tuple[str, str] | None]:
    """Return the selected columns and the selected arrow, without those that no longer exist."""
    board = state.drafts.board
    return (
        tuple(c for c in board.columns if c in state.project.schema),
        board.arrow if board.arrow in state.project.dag.edges else None,
    )


def selected_boxes(state: Session, names: Iterable[str]) -> dict[str, Any]:
    """Return the selected boxes among ``names`` and the selected arrow; both may also be at the next visit."""
    board, known = state.drafts.board, set(names)
    more = [n for n in (board.group, *board.copies) if n in known]
    arrow = board.arrow if board.arrow in slices.arrows(state.project) else None
    return {"columns": [*selected(state)[0], *more], "arrow": list(arrow) if arrow else None}


def select(state: Session, columns: tuple[str, ...] = (), arrow: tuple[str, str] | None = None) -> None:
    """Select columns or an arrow, on the drawing and in the fields."""
    board = state.drafts.board
    board.columns, board.arrow, board.copies = columns, arrow, ()
    if columns:
        board.effect = columns[-1]
    elif arrow:
        board.effect = arrow[1]


def _draw(state: Session, action: Mapping[str, Any]) -> str:
    sent, link = line_of(state, action.get("arrow")), state.project.linked
    (cause, effect), between = slices.meant(state.project, sent)
    if link is not None and between is not None:
        state.editor.redraw(between=link.drawn(*between).arrows)
        state.drafts.board.later = between[1]
        return f"{cause} → {effect} is drawn. {slices.BETWEEN}"
    state.editor.redraw(state.project.dag.drawn(cause, effect))
    state.drafts.board.effect = effect
    return f"{cause} → {effect} is drawn." + (f" {slices.EVERY}" if (cause, effect) != sent else "")


def _erase(state: Session, action: Mapping[str, Any]) -> str:
    arrows = action.get("arrows")
    gone = [line_of(state, a) for a in arrows] if isinstance(arrows, list) else []
    project = state.project
    between = project.linked and [arrow for arrow in project.linked.arrows if project.linked.boxes(arrow) not in gone]
    state.editor.redraw(project.dag.without(gone), between=tuple(between or ()))
    them = "it" if len(gone) == 1 else "them"
    listed = ", ".join(f"{a} → {b}" for a, b in gone[:6]) + (" …" if len(gone) > 6 else "")
    return f"Erased: {listed}. Undo restores {them}."


def _role(state: Session, action: Mapping[str, Any]) -> str:
    column, role, before = column_of(state, action.get("column")), action.get("role"), state.project
    if role is not None and (not isinstance(role, str) or role not in dict(Roles().items())):
        raise GraphError(f"{role!r} is not a role")
    state.editor.give_role(column, role)
    sentence = f"{column} has the role {role} now." if role else f"{column} has no role now."
    if role == "outcome":
        lost = [c for c in before.roles.outcome if c != column]
        sentence += f" Only one column can be the outcome: {', '.join(lost)} has lost this role." if lost else ""
        if state.project.plan.target != before.plan.target:
            sentence += f" {column} is also the target."
    return sentence


def _move(state: Session, action: Mapping[str, Any]) -> None:
    at = action.get("at")
    if not isinstance(at, Mapping):
        raise GraphError("the drawing sent no positions")
    _place(state, points_of(at, state))


def _place(state: Session, places: Places) -> None:
    """Store positions: in the project, or in the draft if a neighbourhood is shown."""
    if (view := view_of(state)).startswith("around"):
        state.drafts.board.places[view] = places
    else:
        kept = {**state.project.dag.positions, **places}
        state.editor.redraw(replace(state.project.dag, positions=kept))


def _bring(state: Session, action: Mapping[str, Any]) -> str:
    """Put a column from the tray on the drawing."""
    column, board, columns = column_of(state, action.get("column")), state.drafts.board, shown(state)
    if column not in columns and view(state) == "around" and len(columns) >= MOST_BOXES:
        raise GraphError(f"the drawing already has {MOST_BOXES} boxes: show a smaller neighbourhood first")
    at = points_of({column: action.get("at")}, state)
    if state.project.linked is not None:
        at = {column: slices.inside(state.project, column, at[column], places(state, boxes(state)))}
    if view(state) == "around":
        at = {**places(state, boxes(state)), **at}
    board.brought = tuple(dict.fromkeys((*board.brought, column)))
    _place(state, at)
    return f"{column} is on the drawing."


def _arrange(state: Session, _: Mapping[str, Any]) -> str:
    project = state.project
    _place(state, _arranged(state, project, boxes(state)))
    state.drafts.board.fits += 1
    return "Arranged: effects are to the right of their causes."


def _width(state: Session, action: Mapping[str, Any]) -> None:
    """Lay out all boxes that the user has not placed, after the screen's width changed."""
    wide = action.get("wide")
    if not isinstance(wide, int) or not 300 <= wide <= WIDE:
        raise GraphError("the drawing sent no width")
    state.drafts.board.wide = wide
    state.drafts.board.places, state.drafts.board.laid = {}, {}
    state.drafts.board.fits += 1


def _arranged(state: Session, project: Project, names: list[str]) -> Places:
    """Return the position of every box in the layout. The draft keeps the positions and the bends of the arrows."""
    board, box = state.drafts.board, groups.closed(state)
    lines = {n: box_lines(state, n) for n in names}
    target, edges = project.plan.target, arrows(state, names)
    faces, sides = slices.faces(project, names), slices.parts(project, names)
    found = arranged(names, edges, project.roles, box.get(target or "", target), board.wide, lines, faces, sides)
    places: Places = {n: (round(x), round(y)) for n, (x, y) in found.places.items()}
    board.laid[view_of(state)] = (places, found.bends, Counter(effect for _, effect in edges))
    return places


def arrows(state: Session, names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the arrows between boxes. The arrows of a closed group are joined into one."""
    box, known = groups.closed(state), set(names)
    ends = dict.fromkeys((box.get(a, a), box.get(b, b)) for a, b in slices.arrows(state.project))
    return [(a, b) for a, b in ends if a != b and a in known and b in known]


def box_lines(state: Session, box: str) -> list[str]:
    """Return the lines of a box below its name, without marks."""
    if inside := state.project.dag.groups.get(box):
        return [f"▣ {len(inside)} columns"]
    if slices.is_copy(state.project, box):
        return []
    return described(state.project.schema[box].label)


def bends(state: Session, at: Places) -> Bends:
    """Return the bends of the arrows whose boxes have not been moved since the layout; ``at`` are the current
    positions.
    """
    places, found, _ = _laid(state, at)
    return {e: points for e, points in found.items() if all(n in at and at[n] == places.get(n) for n in e)}


def arrows_into(state: Session, at: Places) -> dict[str, int]:
    """Return the number of arrows for which the layout left room at each box; 0 if the box was moved."""
    places, _, into = _laid(state, at)
    return {n: into.get(n, 0) if at[n] == places.get(n) else 0 for n in at}


def _laid(state: Session, at: Places) -> tuple[Places, Bends, Mapping[str, int]]:
    laid = state.drafts.board.laid
    if view_of(state) not in laid:  # the project came with positions
        _arranged(state, state.project, list(at))
    return laid[view_of(state)]


def _undo(state: Session, _: Mapping[str, Any]) -> str:
    return "Undone." if state.editor.undo() else "There is nothing to undo."


def _redo(state: Session, _: Mapping[str, Any]) -> str:
    return "Redone." if state.editor.redo() else "There is nothing to redo."


def _select(state: Session, action: Mapping[str, Any]) -> None:
    columns, arrow, board = action.get("columns"), action.get("arrow"), state.drafts.board
    columns = columns[:MOST_SELECTED] if isinstance(columns, list) else []
    group = next((c for c in columns if isinstance(c, str) and c in state.project.dag.groups), None)
    chosen = [box_of(state, c) for c in columns if c != group]
    line, ahead = None if arrow is None else line_of(state, arrow), slices.later(state.project)
    copies = tuple(c for c in chosen if slices.is_copy(state.project, c))
    effect = board.effect
    select(state, tuple(c for c in chosen if c not in copies), line)
    board.copies, board.group = copies, group
    if ends := [n for n in (*copies, *(line or ())) if n in ahead]:
        board.later = ahead[ends[-1]]
    if board.effect not in state.project.schema:
        board.effect = effect


_ACTIONS: dict[str, Callable[[Session, Mapping[str, Any]], str | None]] = {
    "draw": _draw,
    "erase": _erase,
    "role": _role,
    "move": _move,
    "bring": _bring,
    "arrange": _arrange,
    "undo": _undo,
    "redo": _redo,
    "select": _select,
    "width": _width,
    "share": links.share,
    "separate": links.separate,
    "together": links.together,
    "unlink": links.unlink,
    "group": groups.make,
    "toggle": groups.toggle,
    "ungroup": groups.dissolve,
}


MARKS = {
    "parents": "◆ Direct causes",
    "blanket": "◇ Neighbourhood",
    "fence": "▮ Fence",
    "paths": "Open paths (red)",
    "apart": "‖ Kept apart",
}
VIEWS = {"all": "All columns", "linked": "Columns with an arrow or a role", "around": "Around the selected column"}


def view(state: Session) -> str:
    """Return which columns the drawing shows: one of :data:`VIEWS`."""
    if chosen := state.drafts.board.view:
        return chosen
    if len(state.project.schema.columns) <= FEW_COLUMNS:
        return "all"
    linked = groups.boxed(state, (n for edge in _edges(state) for n in edge))
    return "linked" if len(linked) <= MOST_BOXES else "around"


def hint(state: Session) -> str:
    """Return the actions available on the drawing as shown."""
    if not shown(state):
        return EMPTY
    if state.project.linked is not None:
        return SLICED
    return AROUND if view(state) == "around" else HINT


def marks(state: Session) -> list[str]:
    """Return the marks shown on the drawing, a subset of :data:`MARKS`."""
    chosen = state.drafts.board.marks
    return list(MARKS) if chosen is None else chosen


def steps(state: Session) -> int:
    """Return the radius of a neighbourhood, in arrows. By default, it is the largest radius with at most `FEW_NEAR`
    columns.

    The default is computed only once for each column, so that a new arrow does not move any box.
    """
    board, column = state.drafts.board, centre(state)
    if board.steps is not None:
        return board.steps
    if column not in board.reach:
        edges = _edges(state)
        board.reach[column] = max((k for k in (2, 3) if len(neighbourhood(edges, column, k)) <= FEW_NEAR), default=1)
    return board.reach[column]


def view_of(state: Session) -> str:
    """Return the view to which the positions of the boxes belong."""
    return f"around {centre(state)} {steps(state)}" if view(state) == "around" else "all"


def centre(state: Session) -> str:
    """Return the column whose neighbourhood is shown."""
    columns, arrow = selected(state)
    last = columns[-1] if columns else arrow[1] if arrow else state.drafts.board.effect
    first = state.project.plan.target or next(iter(state.project.roles.outcome), state.project.schema.names[0])
    return last if last is not None and last in state.project.schema else first


def shown(state: Session) -> list[str]:
    """Return the columns on the drawing; a neighbourhood shows at most :data:`MOST_BOXES`."""
    project = state.project
    kind = view(state)
    if kind == "all":
        return list(project.schema.names)
    if kind == "around":
        near = neighbourhood(_edges(state), centre(state), steps(state))
        near = list(dict.fromkeys([*selected(state)[0], *state.drafts.board.brought, *near]))[:MOST_BOXES]
        return [n for n in project.schema.names if n in near]
    linked = {n for e in _edges(state) for n in e} | {n for inside in project.dag.groups.values() for n in inside}
    extra = {*selected(state)[0], *state.drafts.board.brought, state.drafts.board.effect, project.plan.target}
    return [n for n in project.schema.names if n in linked or n in extra or project.roles.of(n)]


def boxes(state: Session) -> list[str]:
    """Return the boxes on the drawing: the columns shown or their closed groups, and the boxes of the next visit."""
    columns = groups.boxed(state, shown(state))
    return [*columns, *slices.copies(state.project, columns)]


def _edges(state: Session) -> list[tuple[str, str]]:
    """Return all arrows as pairs of columns."""
    project = state.project
    return [*project.dag.edges, *(project.linked.arrows if project.linked else ())]


def places(state: Session, columns: list[str]) -> Places:
    """Return a position for every shown box: the user's position, or else the position in the first layout.

    If a group was opened, its columns with arrows are placed near the group's box. All other columns are placed below.
    """
    project = state.project
    view, laid = view_of(state), state.drafts.board.places
    known = dict(laid.get(view, {}))
    if view == "all":
        known |= project.dag.positions
    out = {n: known[n] for n in columns if n in known}
    if missing := [n for n in columns if n not in known]:
        if not out:
            out = _arranged(state, project, missing)
            missing = []
        elif project.linked is not None:
            out |= slices.place(project, missing, out)
            missing = []
        linked = {n for edge in project.dag.edges for n in edge}
        for n in missing:
            near = groups.near(state, n, known)
            if near is not None and (n in project.dag.groups or n in linked):
                out[n] = near if n in project.dag.groups else free_place(near, out)
        if missing := [n for n in missing if n not in out]:
            below = max(y for _, y in out.values()) + 110
            middle = sum(x for x, _ in out.values()) / len(out)
            fresh = arranged(missing, (), project.roles, project.plan.target).places
            top = min(y for _, y in fresh.values())
            out |= {n: (round(x + middle), round(y - top + below)) for n, (x, y) in fresh.items()}
        laid[view] = {**laid.get(view, {}), **out}
    return out
