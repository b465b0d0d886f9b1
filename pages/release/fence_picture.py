"""The fence: one side, the gate, the other side, and the measured pairs drawn through it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from espalier.core.graph.links import sides
from espalier.core.graph.roles import Roles
from espalier.core.graph.separations import Clique, Separation
from espalier.pages.common import charts

if TYPE_CHECKING:
    import plotly.graph_objects as go

MAX_COLUMNS = 60
ROW = 58
"""Pixels from one column's box to the next below."""
INK, REFUSED = "#7b8794", "#d1495b"
COLORS = {
    "outcome": "#f0c05a",
    "protected": "#ee9fb0",
    "admissible": "#93c99a",
    "inadmissible": "#c3a9e0",
    None: "#ccd6dd",
}
BANDS = ("right", "gate", "left")
"""Across the picture: the separation's right (protected columns), its gate, its left (the outcome)."""
STAR = 3
"""A band has two lanes once one column has this many pairs in it: the column in one lane, its pairs in the other."""
RISES = tuple(sign * 0.25 * k for k in range(15) for sign in (1, -1))
"""Rises and falls, in rows, of a line that crosses a band; the smallest that fits is used."""
FREE = 3
"""Columns on neither side stand below, so many to a row."""

Place = tuple[float, float]
Pair = tuple[str, str]


def draw(
    columns: Sequence[str],
    edges: Sequence[Pair],
    separation: Separation,
    roles: Roles,
    refused: Sequence[tuple[Clique, float | None]],
    heads: tuple[str, str, str],
) -> go.Figure:
    """``refused`` pairs with their score in rows where it was paid for; ``heads`` name the sides and the gate."""
    side = sides(columns, edges, separation)
    lanes = _lanes(columns, edges, side)
    where, rows = _places(columns, edges, side, lanes)
    across = sum(len(of) for of in lanes.values())
    crossed = [y for pair in (*edges, *(p for p, _ in refused)) for y in _curve_of(pair, where)[1]]
    top, bottom = max([0.7, *(y + 0.1 for y in crossed)]), min([-rows + 0.35, *(y - 0.1 for y in crossed)])
    figure = charts.blank(round(70 + ROW * (top - bottom - 0.35)), showlegend=True)
    floor = min(y for n, (_, y) in where.items() if side[n] != "free") - 0.55
    if "free" not in side.values():
        floor = min([floor, *(y - 0.1 for y in crossed)])
    begin = -0.5
    for head, band, ground in zip(heads, lanes, (REFUSED, "#3f9a6b", "#c58a2b"), strict=True):
        wide = len(lanes[band])
        x, begin = begin + wide / 2, begin + wide
        figure.add_shape(
            type="rect",
            x0=x - wide / 2 + 0.08,
            x1=x + wide / 2 - 0.08,
            y0=floor,
            y1=top,
            layer="below",
            fillcolor=ground,
            opacity=0.10 if band != "gate" else 0.16,
            line={"width": 0},
        )
        figure.add_annotation(x=x, y=top + 0.02, text=f"<b>{head}</b>", showarrow=False, yanchor="bottom")
    for pairs, label, style in (
        ([(p, None) for p in edges], "measured together", {"color": INK, "width": 2}),
        (refused, "refused by the frame", {"color": REFUSED, "width": 1, "dash": "dash"}),
    ):
        _lines(figure, pairs, where, label, style)
    for name, (x, y) in where.items():
        role = roles.of(name)
        figure.add_annotation(
            x=x,
            y=y,
            showarrow=False,
            bgcolor=COLORS[role],
            bordercolor=INK,
            borderpad=4,
            font={"color": "#15201a", "size": 13},
            hovertext=charts.short(name, 200),
            text=charts.short(name, 29 - 3 * across) + (f"<br><i>{role}</i>" if role else ""),
        )
    figure.update_xaxes(visible=False, range=[-0.55, across - 0.45])
    figure.update_yaxes(visible=False, range=[bottom, top + 0.5])
    figure.update_layout(legend={"y": -0.02, "yanchor": "top"}, margin={"t": 4})
    return figure


def _lines(
    figure: go.Figure,
    pairs: Sequence[tuple[Clique, float | None]],
    where: Mapping[str, Place],
    label: str,
    style: dict[str, Any],
) -> None:
    import plotly.graph_objects as go

    first = True
    for (a, b), score in pairs:
        xs, ys = _curve_of((a, b), where)
        if not xs:
            continue
        hover = charts.short(f"{a} – {b}: {label}", 200) + (
            "" if score is None else f", score {score:,.0f} rows (noisy)"
        )
        figure.add_trace(
            go.Scatter(
                x=xs,
                y=ys,
                mode="lines",
                line=style,
                name=label,
                legendgroup=label,
                showlegend=first,
                text=hover,
                hoverinfo="text",
            )
        )
        if score is not None:
            near = 4 if xs[0] < xs[-1] else 12  # on the protected side of the gate's boxes
            figure.add_annotation(
                x=xs[near],
                y=ys[near],
                text=f"{score:,.0f}",
                showarrow=False,
                font={"size": 12},
                yanchor="bottom",
            )
        first = False


def _curve_of(pair: Sequence[str], where: Mapping[str, Place]) -> tuple[list[float], list[float]]:
    """The line of a pair; no points if a column has no place."""
    a, b = pair
    if a not in where or b not in where:
        return [], []
    return _curve(where[a], where[b], [at for n, at in where.items() if n not in (a, b)])


def _curve(a: Place, b: Place, others: Sequence[Place]) -> tuple[list[float], list[float]]:
    """A line. One that stays in a band bends to the side, so that it passes the boxes between; one that crosses a band
    rises or falls as much as it must to pass the ``others`` in it."""
    (xa, ya), (xb, yb) = a, b
    bend = 0.0
    if abs(xa - xb) < 0.3:
        bend = (-1 if xa < 0.5 else 1) * min(0.12 + 0.09 * abs(ya - yb), 0.5)
    steps = [i / 16 for i in range(17)]
    xs = [xa + (xb - xa) * t + 4 * bend * t * (1 - t) for t in steps]
    straight = ys = [ya + (yb - ya) * t for t in steps]
    for rise in RISES if abs(xa - xb) > 1.3 else ():
        ys = [y + 4 * rise * t * (1 - t) for y, t in zip(straight, steps, strict=True)]
        if not any(abs(x - u) < 0.4 and abs(y - v) < 0.36 for x, y in zip(xs, ys, strict=True) for u, v in others):
            return xs, ys
    return xs, straight


def _lanes(columns: Sequence[str], edges: Sequence[Pair], side: Mapping[str, str]) -> dict[str, list[list[str]]]:
    """The columns of each band in one lane, or in two so that pairs of the band stand across from one another."""
    out = {}
    for band in BANDS:
        inside = [n for n in columns if side[n] == band]
        near: dict[str, list[str]] = {n: [] for n in inside}
        for a, b in edges:
            if a in near and b in near:
                near[a].append(b)
                near[b].append(a)
        if max(map(len, near.values()), default=0) < STAR:
            out[band] = [inside]
            continue
        lane: dict[str, int] = {}
        for start in sorted(inside, key=lambda n: -len(near[n])):
            queue = [start] if start not in lane and near[start] else []
            lane.update(dict.fromkeys(queue, 0))
            for n in queue:
                queue += (new := [m for m in near[n] if m not in lane])
                lane |= dict.fromkeys(new, 1 - lane[n])
        pair = [[n for n in inside if lane.get(n) == 0], [n for n in inside if lane.get(n) != 0]]
        leaving = [n for a, b in edges for n, m in ((a, b), (b, a)) if n in near and m not in near]
        pair.sort(
            key=lambda names: sum(n in names for n in leaving)
        )  # columns linked to the gate are placed next to it
        out[band] = pair[::-1] if band == "left" else pair
    return out


def _places(
    columns: Sequence[str], edges: Sequence[Pair], side: Mapping[str, str], lanes: Mapping[str, list[list[str]]]
) -> tuple[dict[str, Place], int]:
    """Where each column stands, and how many rows the picture has; few lines cross."""
    near: dict[str, list[str]] = {n: [] for n in columns}
    for a, b in edges:
        near[a].append(b)
        near[b].append(a)
    upright = [list(names) for of in lanes.values() for names in of]
    height = {n: float(i) for names in upright for i, n in enumerate(names)}
    for _ in range(6):
        for names in upright:
            weight = {}
            for n in names:
                beside = [height[m] for m in near[n] if m in height]
                weight[n] = sum(beside) / len(beside) if beside else height[n]
            names.sort(key=weight.__getitem__)
            height |= {n: float(i) for i, n in enumerate(names)}
    tall = max(map(len, upright))
    where: dict[str, Place] = {}
    for x, names in enumerate(upright):
        gap = (tall - len(names)) / 2
        where |= {n: (float(x), -gap - i) for i, n in enumerate(names)}
    free = [n for n in columns if side[n] == "free"]
    for i, n in enumerate(free):
        row = free[i // FREE * FREE : i // FREE * FREE + FREE]
        where[n] = ((len(upright) - 1) / 2 + (i % FREE - (len(row) - 1) / 2) * 0.9, -tall - 0.4 - i // FREE)
    return where, tall + (1 + (len(free) - 1) // FREE if free else 0) + bool(free)
