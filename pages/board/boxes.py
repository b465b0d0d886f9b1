"""Appearance of a graph (columns as boxes, roles as colour and text), and the vis-network loader. The vis-network
script comes from the pyvis package. A separate component, which draws nothing, sends it to the browser once; the other
components wait for it.
"""

from __future__ import annotations

import importlib.util
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from espalier.core.graph.layout import fitted
from espalier.core.graph.roles import Roles

COLORS = {
    "outcome": "#f0c05a",
    "protected": "#ee9fb0",
    "admissible": "#93c99a",
    "inadmissible": "#c3a9e0",
    None: "#ccd6dd",
}
LEGEND = {
    "◆": "direct cause of the target",
    "◇": "in its neighbourhood (Markov blanket)",
    "▮": "behind the fence",
    "∩": "gate of the fence (admissible)",
    "↔": "dashed: a shared unmeasured cause",
    "⊗": "causes that act together",
    "▣": "closed group of columns",
    "‖": "dotted: kept apart in the released table",
}
HIGH = 78
GAP = 34.0
"""Space between two boxes of the drawing board, in the board's pixels."""
LEAST = 12.0
"""Minimum share of this space that remains when boxes grow."""
WIDEST = 1300.0
"""Width in pixels above which layers move closer together: a drawing of this width is readable at first glance."""
SLICED = 1040.0
"""The corresponding width for linked tables, so that their three slices fit an 800-pixel screen."""
LONGEST_LABEL = 28
"""Maximum number of characters of a column's description shown in its box."""
MOST_WIDE = 190.0
"""Maximum width of a box on the board."""
PER_LINE = 18
"""Maximum number of characters per line, in the widest box."""
PER_ARROW, TALLEST = 12.0, 220.0
"""Extra height of a box for each arrow that ends at it, up to a limit, so that arrow heads do not overlap."""
Places = dict[str, tuple[float, float]]
Faces = Mapping[str, tuple[str, str]]
"""The column and the name that a box shows. Other boxes show their own name."""
Bends = Mapping[tuple[str, str], Sequence[tuple[float, float]]]
"""Points on the path of an arrow between its ends."""


@dataclass(frozen=True)
class Arranged:
    """Positions of boxes, and the bends of the arrows between them."""

    places: Places
    bends: Bends


@cache
def _loader() -> Any:
    spec = importlib.util.find_spec("pyvis")
    if spec is None or spec.origin is None:
        return None
    script = next(Path(spec.origin).parent.glob("lib/vis-9*/vis-network.min.js"), None)
    if script is None:
        return None
    source = re.sub(r"^//# sourceMappingURL=.*$", "", script.read_text("utf-8"), flags=re.MULTILINE)
    return st.components.v2.component(
        "espalier_vis", js=source + "\nexport default function () {}\n", html="<span></span>"
    )


def load_vis() -> bool:
    """Send vis-network to the browser. Return False, with a message, if the pyvis package is missing."""
    loader = _loader()
    if loader is None:
        st.caption("The picture needs the pyvis package. The list shows the same information.")
        return False
    loader(key="espalier-vis-loader", height=1)
    return True


def label(column: str, roles: Roles, target: str | None, tags: Iterable[str] = (), shown: str = "") -> str:
    """Return a column's name, or the name ``shown``, with its role below."""
    parts = [w for w in (roles.of(column), "target" if column == target else None) if w]
    name = shown or column
    name = name if len(name) <= 40 else name[:39] + "…"
    return "\n".join([*_in_lines(name), *(["(" + ", ".join(parts) + ")"] if parts else []), *tags])


def _in_lines(name: str) -> list[str]:
    """Return a name in lines of at most `PER_LINE` characters, broken after "_", "-", "." and spaces."""
    lines = [""]
    for part in filter(None, re.findall(r"[^_\-. ]*[_\-. ]?", name)):
        if lines[-1] and len(lines[-1]) + len(part.rstrip()) > PER_LINE:
            lines.append("")
        lines[-1] += part
    return lines


def free_place(at: tuple[float, float], taken: Places) -> tuple[float, float]:
    """Return the free place nearest to a point. Horizontal distance is weighted double, so that columns stay
    aligned.
    """
    x, y = at
    steps = [(i * MOST_WIDE, j * HIGH / 2) for i in range(-3, 4) for j in range(-20, 21)]
    for dx, dy in sorted(steps, key=lambda step: 2 * abs(step[0]) + abs(step[1])):
        if not any(abs(x + dx - u) < MOST_WIDE and abs(y + dy - v) < HIGH for u, v in taken.values()):
            return round(x + dx), round(y + dy)
    return round(x), round(max(v for _, v in taken.values()) + HIGH)


def width(column: str, roles: Roles, target: str | None, tags: Iterable[str] = (), shown: str = "") -> float:
    """Return the width of a box in pixels of the picture."""
    longest = max(len(part) for part in label(column, roles, target, tags, shown).split("\n"))
    return min(34 + 8.4 * longest, MOST_WIDE)


def high(
    column: str, roles: Roles, target: str | None, tags: Iterable[str] = (), arrows: int = 0, shown: str = ""
) -> float:
    """Return the height in pixels of a box that ``arrows`` point to. Names longer than one line are wrapped."""
    lines = label(column, roles, target, tags, shown).split("\n")
    text = 18.0 + 20 * sum(math.ceil(len(part) / PER_LINE) for part in lines)
    return max(text, min(18 + PER_ARROW * arrows, TALLEST))


def apart(places: Places, wide: Mapping[str, float]) -> Places:
    """Push boxes at the same height sideways if they would touch; the middle of the row stays in place."""
    lines: dict[float, list[str]] = {}
    for n in sorted(places, key=lambda n: places[n][0]):
        lines.setdefault(places[n][1], []).append(n)
    out: Places = {}
    for y, line in lines.items():
        xs = [places[n][0] for n in line]
        for i in range(1, len(line)):
            xs[i] = max(xs[i], xs[i - 1] + (wide[line[i - 1]] + wide[line[i]]) / 2 + LEAST)
        off = (sum(xs) - sum(places[n][0] for n in line)) / len(line)
        out |= {n: (x - off, y) for n, x in zip(line, xs, strict=True)}
    return {n: out[n] for n in places}


def folded(columns: Iterable[str], most: float, roles: Roles, target: str | None, gap: float = 0.0) -> list[list[str]]:
    """Arrange columns in rows no wider than ``most``."""
    out: list[list[str]] = []
    room = 0.0
    for column in columns:
        wide = width(column, roles, target) + gap
        if not out or room < wide:
            out.append([])
            room = most
        out[-1].append(column)
        room -= wide
    return out


def described(text: str) -> list[str]:
    """Return the description of a column as a line for its box, or an empty string if there is none."""
    return [text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 1]}…"] if text else []


def arranged(
    columns: Sequence[str],
    edges: Sequence[tuple[str, str]],
    roles: Roles,
    target: str | None,
    most: float = 1000.0,
    lines: Mapping[str, Sequence[str]] | None = None,
    faces: Faces | None = None,
    slices: Sequence[Sequence[str]] = (),
) -> Arranged:
    """Return the layout: columns with arrows as in all pictures, other columns in rows below. ``slices`` are side by
    side.

    No row of columns without arrows is wider than ``most`` or the layout, so that names stay readable. ``lines`` are
    the lines of text in each box below its role. A column with a role, or next to the target in the graph, gets space
    for a mark.
    """
    outcome = [*roles.outcome, *([] if target is None else [target])]
    texts = {n: (lines or {}).get(n, ()) for n in columns}
    of = {n: (faces or {}).get(n, (n, n)) for n in columns}
    wide = {n: width(of[n][0], roles, target, texts[n], of[n][1]) for n in columns}
    known = set(columns)
    linked = {n for edge in edges if known.issuperset(edge) for n in edge}
    marked = {n for edge in edges if target in edge for n in edge} | {n for n in columns if roles.of(n)}
    into = Counter(b for a, b in edges if a in known and b in known)
    tall = {
        n: high(of[n][0], roles, target, [*texts[n], *(["◆"] if n in marked else [])], into[n], of[n][1])
        for n in (linked if not slices else columns)
    }
    found = fitted(SLICED if slices else WIDEST, columns, edges, outcome, wide=wide, high=tall, slices=slices)
    out: Places = {n: (x - found.width / 2, y) for n, (x, y) in found.places.items()}
    if out:
        most = max(most, found.width)
    else:  # no arrows yet: a block of boxes with space for arrows between its rows
        most = min(most, max(560.0, 1.5 * math.sqrt(HIGH * sum(wide[n] + GAP for n in found.apart))))
    y = found.height + HIGH
    for k, line in enumerate(folded(found.apart, most, roles, target, GAP)):
        x = -sum(wide[n] + GAP for n in line) / 2 + 34 * (k % 2) * (not linked)
        for n in line:
            out[n] = (x + (wide[n] + GAP) / 2, y)
            x += wide[n] + GAP
        y += (1.2 if linked else 1.45) * HIGH
    return Arranged(
        out, {e: [(x - found.width / 2, y) for x, y in points] for e, points in found.routes.items() if points}
    )
