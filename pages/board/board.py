"""The drawing board: a Streamlit component around vis-network."""

from __future__ import annotations

from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import streamlit as st

from espalier.core.graph.implied import Implied
from espalier.core.graph.paths import arrows_of
from espalier.core.graph.roles import Roles
from espalier.core.graph.routes import rectangle
from espalier.pages.board import drawing, groups, lines, slices
from espalier.pages.board.boxes import COLORS, LEGEND, apart, high, label, load_vis, width
from espalier.pages.common.text import called
from espalier.pages.session.session import Session
from espalier.pages.structure import effects, implications

FOLDER = Path(__file__).resolve().parent
SCRIPTS = ("geometry.js", "looks.js", "lines.js", "sides.js", "overview.js", "panel.js", "board.js")
"""The files are concatenated because a component is a single script."""


def _html() -> str:
    roles = "".join(
        f'<button data-role="{role}" disabled><span class="dot" style="background:{COLORS[role]}"></span>'
        f"{role.capitalize()}</button>"
        for role, _ in Roles().items()
    )
    legend = "".join(f"<li><b>{escape(icon)}</b> {escape(meaning)}</li>" for icon, meaning in LEGEND.items())
    return f"""<div class="board" role="group" aria-label="Drawing board">
<div class="bar"><span class="group" role="group" aria-label="What dragging does">
<button data-mode="draw" aria-pressed="true">Draw arrows</button><button data-mode="move">Move boxes</button></span>
<span class="group" role="group" aria-label="Change"><button data-do="erase" disabled>Delete arrow</button>
<button data-do="share" disabled title="Select two boxes first">Shared hidden cause</button>
<button data-do="together" disabled title="Select two or more causes of one column first">Act together</button>
<button data-do="apart" disabled title="Select two boxes first; further boxes form the gate">Keep apart</button>
<button data-do="group" disabled title="Select two or more columns first">Group</button>
<button data-do="ungroup" disabled>Ungroup</button>
<span class="pair"><button data-do="undo" disabled>Undo</button>
<button data-do="redo" disabled>Redo</button></span></span>
<span class="group" role="group" aria-label="View"><button data-do="arrange">Arrange by layers</button>
<button data-do="fit">Fit</button><button data-do="out" aria-label="Smaller">−</button>
<button data-do="in" aria-label="Larger">+</button><button data-do="full">Full screen</button></span></div>
<div class="bar"><span class="group" role="group" aria-label="Role of the selected column"><span class="who"></span>
{roles}<button data-role="" disabled><span class="dot" style="background:{COLORS[None]}"></span>No role</button>
</span><label class="finder">Line <select aria-label="Line of the drawing"></select></label>
<label class="naming" hidden>Name of the group <input maxlength="{groups.LONGEST}"></label></div>
<div class="both"><div class="frame"><div class="canvas" tabindex="0" role="application"
aria-label="{escape(drawing.HINT)}"></div><canvas class="map" hidden title="Overview: click or drag to move the view"
aria-hidden="true"></canvas></div>
<div class="side" role="region" tabindex="0" aria-label="About the drawing">
<p class="say" role="status" aria-live="polite"></p><p class="flag" role="status"></p>
<ul class="told" aria-label="What this implies"></ul><ul class="legend" aria-label="Legend">{legend}</ul></div></div>
<div class="tray" role="group" aria-label="Columns that are not on the drawing" hidden>
<label>Not on the drawing <input type="search" placeholder="Type part of a name"></label>
<ul aria-label="Drag one onto the drawing, or press it"></ul><span class="more" role="status"></span></div>
<ul class="arrows unseen" aria-label="Arrows"></ul></div>"""


@cache
def _component() -> Any:
    return st.components.v2.component(
        "espalier_board",
        js="\n".join((FOLDER / script).read_text("utf-8") for script in SCRIPTS),
        css=(FOLDER / "board.css").read_text("utf-8"),
        html=_html(),
    )


def show(state: Session, now: Implied) -> None:
    """Draw the board; ``now`` contains the implications of the drawing."""
    if not load_vis():
        return
    key = f"board-{state.opened}"

    def take() -> None:
        drawing.take(state, st.session_state[key].get("acts"))

    _component()(key=key, data=data(state, now), on_acts_change=take)


def data(state: Session, now: Implied) -> dict[str, Any]:
    """Return the board's data as plain values."""
    project = state.project
    dag, roles, target = project.dag, project.roles, project.plan.target
    columns, marks = drawing.shown(state), drawing.marks(state)
    box, names = groups.closed(state), drawing.boxes(state)
    effect = effects.asked(state)
    said, open_arrows = effects.marks(*effect) if effect else ({}, set())
    faces = {n: (n, n) for n in names} | slices.faces(project, names)
    tagged = {n: [*implications.tags(n, project, now, marks), *said.get(n, ())] for n in columns}
    tagged |= {n: [] for n in slices.copies(project, names)}
    for group in (n for n in names if n in dag.groups):  # the box of a closed group shows the marks of its columns
        tagged[group] = list(dict.fromkeys(tag for n in dag.groups[group] for tag in tagged.get(n, ())))
    texts = {n: [*drawing.box_lines(state, n), *tagged[n]] for n in names}
    wide = {n: width(faces[n][0], roles, target, texts[n], faces[n][1]) for n in names}
    at = apart(drawing.places(state, names), wide)
    into = drawing.arrows_into(state, at)
    tall = {n: high(faces[n][0], roles, target, texts[n], into[n], faces[n][1]) for n in names}
    rectangles = {n: rectangle((round(at[n][0]), at[n][1]), wide[n], tall[n]) for n in names}
    avoiding = implications.avoiding(now, roles) if "paths" in marks else []
    lit = open_arrows | {a for p in avoiding for a in arrows_of(p, dag.links)}
    nodes = [
        {
            "id": n,
            "x": round(at[n][0]),
            "y": at[n][1],
            "wide": wide[n],
            "high": tall[n],
            "color": COLORS[roles.of(faces[n][0])],
            "label": label(faces[n][0], roles, target, texts[n], faces[n][1]),
            "heavy": box.get(target or "", target) == n or any(implications.PARENT in tag for tag in tagged[n]),
            "dashed": any(implications.BLANKET in tag for tag in tagged[n]),
            "inside": list(dag.groups.get(n, ())),
            "group": groups.of(state, n),
        }
        for n in names
    ]
    board, arrows = state.drafts.board, slices.arrows(project)
    sides = " Person, this visit and next visit are side by side." if project.linked else ""
    hidden, visible = len(project.schema.columns) - len(columns), set(columns)
    return {
        "nodes": nodes,
        **lines.data(state, now, at, rectangles, lit),
        "told": implications.told(project, now),
        "arrows": [list(e) for e in arrows],
        **slices.data(state, names),
        "roles": {n: role for n in columns if (role := roles.of(n))},
        "selected": drawing.selected_boxes(state, names),
        "tray": [n for n in project.schema.names if n not in visible],
        "labels": {c.name: called(project.schema, c.name) for c in project.schema.columns if c.label},
        "groups": {group: list(inside) for group, inside in dag.groups.items()},
        "centre": box.get(drawing.centre(state), drawing.centre(state)),
        "undo": bool(state.editor.past),
        "redo": bool(state.editor.future),
        "board": board.board,
        "taken": board.taken,
        "message": board.message,
        "view": f"{drawing.view(state)} {drawing.view_of(state)}",
        "wide": board.wide,
        "fits": board.fits,
        "hint": drawing.hint(state),
        "alt": f"Causal graph: {len(columns)} columns{f' shown, {hidden} not' if hidden else ''}, {len(arrows)} "
        f"arrows.{sides} The arrows are listed below as text, and the fields below the drawing offer the same actions.",
    }
