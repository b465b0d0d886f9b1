"""How a graph is shown: columns as boxes, roles by colour and in words, layers below one another; and vis-network.

vis-network's script is the one that the pyvis package ships. It travels to the browser once, as a component of its
own that draws nothing; whatever draws waits for it.
"""

from __future__ import annotations

import importlib.util
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from espalier.core.graph.layers import Slot, layered
from espalier.core.graph.roles import Roles

COLORS = {
    "outcome": "#f0c05a",
    "protected": "#ee9fb0",
    "admissible": "#93c99a",
    "inadmissible": "#c3a9e0",
    None: "#ccd6dd",
}
HIGH = 78
GAP = 34.0
"""Between two boxes of the drawing board, in its pixels."""
LEAST = 12.0
"""As little as that is left of it when boxes grow."""
TRIES = 1500
"""How long a better place for the boxes is looked for."""
Places = dict[str, tuple[float, float]]


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
    """Send vis-network to the browser; False, and said so, where the pyvis package is missing."""
    loader = _loader()
    if loader is None:
        st.caption("The picture needs the pyvis package; the list says the same.")
        return False
    loader(key="espalier-vis-loader", height=1)
    return True


def label(column: str, roles: Roles, target: str | None, tags: Iterable[str] = ()) -> str:
    """A column's name, and under it what it is."""
    parts = [w for w in (roles.of(column), "target" if column == target else None) if w]
    name = column if len(column) <= 40 else column[:39] + "…"
    return "\n".join([name, *(["(" + ", ".join(parts) + ")"] if parts else []), *tags])


def width(slot: Slot, roles: Roles, target: str | None, bend: float = 46.0, tags: Iterable[str] = ()) -> float:
    """Room that a box takes, in the picture's pixels; a bend takes little."""
    if not isinstance(slot, str):
        return bend
    return 34 + 8.4 * min(max(len(part) for part in label(slot, roles, target, tags).split("\n")), 20)


def high(column: str, roles: Roles, target: str | None, tags: Iterable[str] = ()) -> float:
    """How high a box is, in the picture's pixels: names longer than its line are folded."""
    return 18 + 20 * sum(math.ceil(len(part) / 18) for part in label(column, roles, target, tags).split("\n"))


def apart(places: Places, wide: Mapping[str, float]) -> Places:
    """Boxes of a line (those at the same height) pushed sideways where they would touch; the line's middle stays."""
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


def folded(
    columns: Iterable[Slot], most: float, roles: Roles, target: str | None, gap: float = 0.0
) -> list[list[Slot]]:
    """Columns in lines that are at most so wide."""
    out: list[list[Slot]] = []
    room = 0.0
    for column in columns:
        wide = width(column, roles, target) + gap
        if not out or room < wide:
            out.append([])
            room = most
        out[-1].append(column)
        room -= wide
    return out


def arranged(
    columns: Sequence[str], edges: Sequence[tuple[str, str]], roles: Roles, target: str | None, most: float = 1000.0
) -> Places:
    """A place for the middle of every box: linked columns by layers, the others in lines below them.

    No line is much wider than ``most``, so that names stay readable on a small screen: a layer that is wider stands
    in two lines or more. Lines are then shifted sideways so that few arrows pass behind a box.
    """
    known = set(columns)
    edges = [e for e in edges if known.issuperset(e)]
    linked = {n for e in edges for n in e}
    layers, _ = layered([c for c in columns if c in linked], edges)
    out: Places = {}
    lines: list[list[str]] = []
    y = 0.0
    for layer in layers:
        boxes = [slot for slot in layer if isinstance(slot, str)]
        count = math.ceil(sum(width(n, roles, target) + GAP for n in boxes) / (1.25 * most)) or 1
        for k in range(count):  # neighbours in a layer alternate between its lines, so that arrows find a way
            line = [slot for slot in layer if not isinstance(slot, str) or boxes.index(slot) % count == k]
            out |= _line(line, y, roles, target, 26.0)
            lines.append([slot for slot in line if isinstance(slot, str)])
            y += 1.55 * HIGH
        y += 0.15 * HIGH
    boxed = [[slot for slot in layer if isinstance(slot, str)] for layer in layers]
    out = _shifted(out, lines, boxed, edges, {n: width(n, roles, target) for n in out}, most)
    alone = [c for c in columns if c not in linked]
    if not edges:  # an empty canvas: a block, whose lines leave room for arrows
        most = min(most, max(560.0, 1.5 * math.sqrt(HIGH * sum(width(n, roles, target) + GAP for n in alone))))
    for k, line in enumerate(folded(alone, most, roles, target, GAP)):
        out |= {n: (x + 34 * (k % 2) * (not edges), at) for n, (x, at) in _line(line, y, roles, target, 0.0).items()}
        y += (1.2 if edges else 1.45) * HIGH
    return out


def _shifted(
    places: Places,
    lines: list[list[str]],
    layers: list[list[str]],
    edges: list[tuple[str, str]],
    wide: dict[str, float],
    most: float,
) -> Places:
    """Lines and boxes moved sideways, and boxes of a layer swapped, until few arrows pass behind a box.

    Simulated annealing: a move that hides more is taken now and then, less and less.
    """
    names = list(places)
    if not edges or len(edges) > 250:
        return places
    at = {n: i for i, n in enumerate(names)}
    xy = np.array([places[n] for n in names])
    half = np.array([[wide[n] / 2 + 6, 0.5 * HIGH] for n in names])
    ends = np.array([(at[a], at[b]) for a, b in edges])

    def behind() -> NDArray[np.bool_]:
        """Which arrow passes behind which box."""
        start, along = xy[ends[:, 0], None], (xy[ends[:, 1]] - xy[ends[:, 0]])[:, None]
        along = np.where(along == 0, 1e-9, along)
        one, other = (xy - half - start) / along, (xy + half - start) / along
        enter, leave = np.minimum(one, other).max(2), np.maximum(one, other).min(2)
        out: NDArray[np.bool_] = (enter < leave) & (leave > 0) & (enter < 1)
        out[np.arange(len(ends))[:, None], ends] = False
        return out

    def fits() -> bool:
        order = np.lexsort((xy[:, 0], xy[:, 1]))
        one, other = order[:-1], order[1:]
        free = (xy[one, 1] != xy[other, 1]) | (xy[other, 0] - xy[one, 0] >= half[one, 0] + half[other, 0] + 4)
        return bool(free.all() and (np.abs(xy) + half)[:, 0].max() <= edge)

    rows = [[at[n] for n in line] for line in lines]
    beside = {at[n]: [at[m] for m in layer] for layer in layers for n in layer}
    hidden, edge = behind(), max((np.abs(xy) + half)[:, 0].max(), most / 2 - 20)
    best, least = xy.copy(), int(hidden.sum())
    rng = np.random.default_rng(0)  # the same drawing every time
    tries = TRIES // max(1, len(edges) // 40)
    for k in range(tries):
        if not least:
            break
        was = xy.copy()
        if k % 4 == 0:
            xy[rows[rng.integers(len(rows))], 0] += rng.normal(0, 90)
        else:  # a box that hides an arrow, or one of that arrow's ends
            arrow, box = rng.choice(np.argwhere(hidden))
            one = rng.choice([box, *ends[arrow]])
            if k % 4 == 1 and len(beside[one]) > 1:
                other = rng.choice(beside[one])
                xy[[one, other]] = xy[[other, one]]
            else:
                xy[one, 0] += rng.normal(0, 90)
        now = behind()
        if not fits() or now.sum() - hidden.sum() > rng.exponential(1 - k / tries) * 0.4:
            xy = was
            continue
        hidden = now
        if now.sum() < least:
            best, least = xy.copy(), int(now.sum())
    xy = best
    return {n: (float(xy[i, 0]), float(xy[i, 1])) for n, i in at.items()}


def _line(line: Sequence[Slot], y: float, roles: Roles, target: str | None, bend: float) -> Places:
    """Boxes in one line, centred; a bend leaves a gap."""
    out: Places = {}
    x = -sum(width(n, roles, target, bend) + GAP * isinstance(n, str) for n in line) / 2
    for n in line:
        wide = width(n, roles, target, bend) + GAP * isinstance(n, str)
        if isinstance(n, str):
            out[n] = (x + wide / 2, y)
        x += wide
    return out
