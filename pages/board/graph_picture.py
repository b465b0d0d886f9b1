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
from espalier.pages.board.boxes import COLORS, HIGH, folded, label, width

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

    Columns without an arrow or role appear only in the text.
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


def _fits(columns: Sequence[str]) -> bool:
    if len(columns) > MAX_NODES:
        st.caption(f"{len(columns)} columns are too many for a picture; the list shows the same.")
        return False
    return bool(columns)


def _draw(
    places: dict[Any, tuple[float, float]],
    lines: list[dict[str, Any]],
    roles: Roles,
    target: str | None,
    alt: str,
    key: str,
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
                "label": label(column, roles, target),
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
