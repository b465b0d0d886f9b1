"""A still picture of a graph: columns as boxes, roles by colour and name, drawn by vis-network, offline.

Positions come from here, physics is off.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import streamlit as st

from espalier.core.graph.layout import layout
from espalier.core.graph.roles import Roles
from espalier.pages.board.boxes import COLORS, HIGH, folded, high, label, load_vis, width

MAX_NODES = 120

_PICTURE = """
const pictures = new WeakMap();
export default function ({ data, parentElement }) {
  const host = parentElement.querySelector(".picture");
  let timer = null;
  const stop = () => {
    clearTimeout(timer);
    const old = pictures.get(parentElement);
    if (old) { old.watch.disconnect(); old.net.destroy(); pictures.delete(parentElement); }
  };
  const draw = () => {
    if (!globalThis.vis) { timer = setTimeout(draw, 60); return; }
    stop();
    const style = getComputedStyle(host);
    const ink = style.getPropertyValue("--st-text-color").trim() || "#777";
    const fence = style.getPropertyValue("--st-red-text-color").trim() || "#c0392b";
    const font = style.getPropertyValue("--st-font").trim() || "sans-serif";
    const shape = () => {
      const shrink = Math.min(1, (host.clientWidth || data.wide) / data.wide);
      host.style.height = Math.min(Math.max(data.high * shrink + 30, 150), 1600) + "px";
    };
    shape();
    host.setAttribute("aria-label", data.alt);
    const nodes = data.nodes.map(n => n.bend
      ? { id: n.id, x: n.x, y: n.y, shape: "dot", size: 0.01, label: "", color: ink }
      : { id: n.id, x: n.x, y: n.y, shape: "box", label: n.label, margin: 9, borderWidth: n.strong ? 4 : 1,
          color: { background: n.color, border: n.strong ? ink : n.color },
          widthConstraint: { maximum: 190 }, font: { color: "#15201a", face: font, size: 17, multi: false } });
    const edges = data.edges.map((e, i) => ({
      id: i, from: e.from, to: e.to, arrows: e.arrow ? { to: { enabled: true, scaleFactor: 0.9 } } : "",
      dashes: e.fence ? [7, 7] : false, width: e.fence ? 1.5 : 2, hoverWidth: 0, selectionWidth: 0,
      color: { color: e.fence ? fence : ink, opacity: e.fence ? 0.95 : 0.6, inherit: false },
      smooth: e.level ? { enabled: true, type: "curvedCCW", roundness: 0.3 }
        : e.fence ? { enabled: true, type: "curvedCW", roundness: 0.18 } : { enabled: false } }));
    const net = new globalThis.vis.Network(host, { nodes, edges }, {
      physics: false, layout: { improvedLayout: false },
      interaction: {
        dragNodes: false, dragView: false, zoomView: false, selectable: false, hover: false, keyboard: false } });
    const fit = () => {
      shape();
      net.redraw();
      net.fit({ animation: false, maxZoomLevel: 1 });
    };
    const watch = new ResizeObserver(fit);
    watch.observe(host);
    host.querySelectorAll("[tabindex]").forEach(e => e.setAttribute("tabindex", "-1"));
    pictures.set(parentElement, { net, watch });
    fit();
  };
  draw();
  return stop;
}
"""
_CSS = ".picture { width: 100%; } .picture canvas { outline: none; } .vis-tooltip { display: none; }"


@cache
def _component() -> Any:
    return st.components.v2.component(
        "espalier_picture", js=_PICTURE, css=_CSS, html='<div class="picture" role="img"></div>'
    )


def dag(columns: Iterable[str], edges: Sequence[tuple[str, str]], roles: Roles, target: str | None, key: str) -> None:
    """Arrows from cause to effect, from left to right; needs a drawing board on the page, which loads vis-network.

    Columns without arrow or role are left to the text.
    """
    linked = {n for e in edges for n in e}
    shown = [c for c in columns if c in linked or roles.of(c) or c == target]
    if not _fits(shown):
        return
    wide = {n: width(n, roles, target) for n in shown}
    outcome = [*roles.outcome, *([] if target is None else [target])]
    found = layout([c for c in shown if c in linked], edges, outcome, wide=wide, high=0.8 * HIGH)
    places: dict[Any, tuple[float, float]] = dict(found.places)
    lines: list[dict[str, Any]] = []
    for (cause, effect), points in found.routes.items():
        bends = [(cause, effect, i) for i in range(len(points))]
        places |= dict(zip(bends, points, strict=True))
        lines += [{"from": str(a), "to": str(b), "arrow": b == effect} for a, b in pairwise([cause, *bends, effect])]
    alone = _rows(folded([c for c in shown if c not in linked], max(found.width, 700), roles, target), roles, target)
    places |= {n: (x + found.width / 2, y + found.height + HIGH) for n, (x, y) in alone.items()}
    alt = f"Causal graph with {len(edges)} arrows; the same arrows are listed as text"
    _draw(places, lines, roles, target, alt, key)


def tree(
    columns: Sequence[str],
    edges: Sequence[tuple[str, str]],
    fence: Sequence[tuple[str, str]],
    roles: Roles,
    target: str | None,
    key: str,
    gate: Sequence[str] = (),
) -> None:
    """Measured pairs as lines; ``fence``: refused pairs, dashed and thin; ``gate``: what paths pass through."""
    if not _fits(columns):
        return
    around: dict[str, list[str]] = {c: [] for c in columns}
    for a, b in edges:
        around[a].append(b)
        around[b].append(a)
    cells: dict[str, tuple[int, float]] = {}
    tall = {c: high(c, roles, target, ["gate"] * (c in gate)) for c in columns}
    top = 0.0
    order = sorted(columns, key=lambda c: (c != target, roles.of(c) != "outcome", -len(around[c])))
    for start in order:
        if start not in cells and around[start]:
            top = _tidy(_root(start, around), around, cells, top, tall) + 0.5 * HIGH
    wide: dict[int, float] = {}
    for column, (depth, _) in cells.items():
        wide[depth] = max(wide.get(depth, 0.0), width(column, roles, target))
    left = {d: sum(wide[k] + 30 for k in range(d)) + wide[d] / 2 for d in wide}
    places: dict[Any, tuple[float, float]] = {column: (left[d], y) for column, (d, y) in cells.items()}
    top += max(tall.values()) / 2
    alone = _rows(
        folded([c for c in order if not around[c]], max(sum(wide.values()), 900), roles, target), roles, target
    )
    middle = sum(wide.values()) / 2
    places |= {column: (x + middle, y + top) for column, (x, y) in alone.items()}
    lines: list[dict[str, Any]] = []
    for a, b in edges:
        if level := cells[a][0] == cells[b][0]:  # around the boxes between, which stand below one another
            a, b = sorted((a, b), key=lambda n: cells[n][1])
        lines.append({"from": a, "to": b, "arrow": False, "level": level})
    lines += [{"from": a, "to": b, "arrow": False, "fence": True} for a, b in fence]
    alt = f"Graph of the released model: {len(edges)} measured pairs, {len(fence)} refused ones dashed; listed as text"
    if load_vis():
        _draw(places, lines, roles, target, alt, key, gate)


def _walk(root: str, around: dict[str, list[str]]) -> dict[str, int]:
    """Distance from ``root`` of every column it reaches, breadth first."""
    depth = {root: 0}
    queue = [root]
    for n in queue:
        for m in around[n]:
            if m not in depth:
                depth[m] = depth[n] + 1
                queue.append(m)
    return depth


def _root(start: str, around: dict[str, list[str]]) -> str:
    """``start`` if the tree is shallow from there, else a column in its middle."""
    reach = _walk(start, around)
    if max(reach.values()) <= 6:
        return start
    return min(reach, key=lambda n: max(_walk(n, around).values()))


def _fits(columns: Sequence[str]) -> bool:
    if len(columns) > MAX_NODES:
        st.caption(f"{len(columns)} columns are too many for a picture; the list says the same.")
        return False
    return bool(columns)


def _draw(
    places: dict[Any, tuple[float, float]],
    lines: list[dict[str, Any]],
    roles: Roles,
    target: str | None,
    alt: str,
    key: str,
    gate: Sequence[str] = (),
) -> None:
    nodes: list[dict[str, Any]] = []
    for column, (x, y) in places.items():
        if isinstance(column, tuple):
            nodes.append({"id": str(column), "x": float(x), "y": float(y), "bend": True})
            continue
        role = roles.of(column)
        nodes.append(
            {
                "id": column,
                "x": float(x),
                "y": float(y),
                "color": COLORS[role],
                "strong": column == target,
                "label": label(column, roles, target, ["gate"] * (column in gate)),
            }
        )
    wide = max(x for x, _ in places.values()) - min(x for x, _ in places.values()) + 200
    high = max(y for _, y in places.values()) - min(y for _, y in places.values()) + HIGH
    _component()(key=key, data={"nodes": nodes, "edges": lines, "alt": alt, "wide": float(wide), "high": float(high)})


def _rows(layers: list[list[Any]], roles: Roles, target: str | None) -> dict[Any, tuple[float, float]]:
    """Layers below one another, each centred."""
    out: dict[Any, tuple[float, float]] = {}
    for i, layer in enumerate(layers):
        x = -sum(width(n, roles, target) for n in layer) / 2
        for n in layer:
            wide = width(n, roles, target)
            middle, y = x + wide / 2, i * 1.7 * HIGH
            out[n] = (middle, y)
            x += wide
    return out


def _tidy(
    root: str, around: dict[str, list[str]], cells: dict[str, tuple[int, float]], top: float, tall: dict[str, float]
) -> float:
    """A tree from left to right below ``top``: a leaf has a row of its own, a parent sits amid its children."""
    depth = _walk(root, around)
    children: dict[str, list[str]] = {n: [] for n in depth}
    claimed = {root}
    for n in depth:
        for m in around[n]:
            if m not in claimed:
                claimed.add(m)
                children[n].append(m)

    def place(n: str, row: float) -> float:
        row += max(0.0, tall[n] / 2 - 20)
        end = row + tall[n] / 2 + 32
        if not children[n]:
            cells[n] = (depth[n], row)
            return end
        for m in children[n]:
            row = place(m, row)
        rows = [cells[m][1] for m in children[n]]
        cells[n] = (depth[n], (rows[0] + rows[-1]) / 2)
        return max(row, end)

    return place(root, top)
