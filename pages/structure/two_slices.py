"""Linked tables on the Structure page: the person, this visit and the next visit side by side, and arrows between
visits."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from functools import partial
from html import escape

import streamlit as st

from espalier.core.errors import EspalierError
from espalier.core.graph.roles import Roles
from espalier.core.project.file import Project
from espalier.core.project.linked import Pair
from espalier.pages.board.boxes import COLORS
from espalier.pages.common.fields import field, taken
from espalier.pages.common.text import called, name, plain
from espalier.pages.session.session import Session

WIDE, HIGH, GAP, TOP = 210, 34, 96, 34
"""Size of a box, space between the slices, and space for the titles, in pixels."""
LONGEST = 26


def show(state: Session) -> None:
    """The picture, and the fields that draw arrows from one visit to the next."""
    project = state.project
    assert project.linked is not None
    link = project.linked
    columns = list(link.step_columns(project.schema))
    st.subheader("From one visit to the next", anchor=False)
    st.markdown(
        "The board above shows the person and one visit; its arrows hold within every visit. Here you draw how a visit "
        "affects the next one."
    )
    said = "; ".join(f"{a} to {b}" for a, b in link.arrows) or "none"
    data = b64encode(picture(project).encode()).decode()  # Streamlit removes SVG from HTML, except as an image
    alt = escape(f"Two slices. Arrows from one visit to the next: {said}")
    st.html(f'<div style="overflow-x:auto"><img src="data:image/svg+xml;base64,{data}" alt="{alt}"></div>')
    one, two = st.columns(2)
    shown = partial(called, project.schema)
    effect = one.selectbox("Column of the next visit", columns, format_func=shown, key=f"next-effect-{state.opened}")
    causes = [a for a, b in link.arrows if b == effect]
    box = field(state, f"next-causes-{effect}", causes, columns)
    two.multiselect(
        "Its causes at the previous visit",
        columns,
        default=box.default,
        format_func=shown,
        key=box.key,
        on_change=_take,
        args=(state, effect),
        placeholder="Choose its direct causes at this visit",
        wrap=True,
    )
    if "next-visit" in state.trouble:
        st.error(plain(state.trouble.pop("next-visit")))
    lines = [f"- {name(a, project.schema)} at a visit → {name(b, project.schema)} at the next" for a, b in link.arrows]
    st.markdown("\n".join(lines) if lines else "No arrow leads from one visit to the next yet.")


def _take(state: Session, effect: str) -> None:
    """Draw the chosen arrows."""
    project = state.project
    assert project.linked is not None
    causes = taken(state, f"next-causes-{effect}")
    kept: list[Pair] = [(a, b) for a, b in project.linked.arrows if b != effect]
    try:
        state.editor.change_link(replace(project.linked, arrows=(*kept, *((a, effect) for a in causes))))
    except EspalierError as error:
        state.trouble["next-visit"] = str(error)


def picture(project: Project) -> str:
    """Return the two slices as SVG: three columns of boxes, and all arrows."""
    link, schema = project.linked, project.schema
    assert link is not None
    steps = link.step_columns(schema)
    slices = [
        ("The person", [*link.person_columns(schema), link.number]),
        ("This visit", list(link.visit_columns(schema))),
        ("The next visit", list(steps)),
    ]
    at: dict[tuple[int, str], tuple[float, float]] = {}
    for i, (_, names) in enumerate(slices):
        for j, n in enumerate(names):
            at[i, n] = i * (WIDE + GAP), TOP + j * (HIGH + 12)
    high = max(y for _, y in at.values()) + HIGH + 8
    wide = 3 * WIDE + 2 * GAP + 50  # with room for arrows within the last slice
    arrows = [((1, a), (2, b)) for a, b in link.arrows]
    for a, b in project.dag.edges:
        inside = [(i, j) for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)) if (i, a) in at and (j, b) in at]
        arrows += [((i, a), (j, b)) for i, j in inside]
        arrows += [((i, a), (2, b)) for i in (0, 2) if (i, a) in at and (2, b) in at]
    drawn = "".join(_arrow(at[one], at[two], between=one[0] == 1 and two[0] == 2) for one, two in arrows)
    titles = "".join(
        f'<text x="{i * (WIDE + GAP) + WIDE / 2}" y="18" text-anchor="middle" font-weight="600" fill="#7d8a83">'
        f"{title}</text>"
        for i, (title, _) in enumerate(slices)
    )
    boxes = "".join(_box(link.plain(n), *place, project.roles, n) for (_, n), place in at.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide + 8}" height="{high:g}" '
        f'viewBox="-4 0 {wide + 8} {high:g}" font-family="sans-serif" font-size="13">'
        '<defs><marker id="slice-tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto"><path d="M0 0L8 4L0 8z" fill="#6b7770"/></marker></defs>'
        f"{titles}{drawn}{boxes}</svg>"
    )


def _box(shown: str, x: float, y: float, roles: Roles, column: str) -> str:
    text = shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{WIDE}" height="{HIGH}" rx="6" fill="{COLORS[roles.of(column)]}" '
        f'stroke="#6b7770"><title>{escape(column)}</title></rect>'
        f'<text x="{x + WIDE / 2:g}" y="{y + HIGH / 2 + 5:g}" text-anchor="middle" fill="#17221c">{escape(text)}</text>'
    )


def _arrow(one: tuple[float, float], two: tuple[float, float], *, between: bool) -> str:
    """An arrow between two boxes; an arrow within a slice bends to the left."""
    (x, y), (u, v) = one, two
    y, v = y + HIGH / 2, v + HIGH / 2
    if x == u:
        side = x + WIDE
        bend = side + 14 + min(abs(y - v) / 4, 30)
        path = f"M{side:g} {y:g}C{bend:g} {y:g} {bend:g} {v:g} {side + 1:g} {v:g}"
    elif x < u:
        start, end = x + WIDE, u
        path = f"M{start:g} {y:g}C{start + GAP / 2:g} {y:g} {end - GAP / 2:g} {v:g} {end:g} {v:g}"
    else:
        start, end = x, u + WIDE
        path = f"M{start:g} {y:g}C{start - GAP / 2:g} {y:g} {end + GAP / 2:g} {v:g} {end:g} {v:g}"
    look = 'stroke-width="2"' if between else 'stroke-width="1.2" stroke-dasharray="4 3"'
    return f'<path d="{path}" fill="none" stroke="#6b7770" {look} marker-end="url(#slice-tip)"/>'
