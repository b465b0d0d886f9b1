"""Pictures for the report: small graphs as SVG and bars as HTML, without external resources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from espalier.core.graph.layers import layered

HIGH, GAP, ROW = 26, 18, 58
"""Height of a box, gap between boxes and distance between layers, in pixels."""

LARGEST, DENSE = 40, 2
"""Most columns in a picture, and most edges per column. Above either limit there is no picture."""


def graph(names: Sequence[str], edges: Sequence[tuple[str, str]], roles: Mapping[str, str], arrows: bool) -> str:
    """Return an SVG of columns as boxes in layers and ``edges`` as arrows or lines; roles determine colours.

    Empty without edges or above the limits `LARGEST` and `DENSE`.
    """
    if not edges or len(names) > LARGEST or len(edges) > DENSE * len(names):
        return ""
    linked = [n for n in names if any(n in e for e in edges)]
    order = {n: i for i, n in enumerate(linked)}
    drawn = list(edges) if arrows else _away_from(linked, edges)
    layers, paths = layered(linked, drawn)
    spot: dict[object, tuple[float, float]] = {}
    wide = 0.0
    for depth, layer in enumerate(layers):
        x = 8.0
        for slot in layer:
            width = _width(slot) if isinstance(slot, str) else 12.0
            spot[slot] = (x + width / 2, 8 + depth * ROW + HIGH / 2)
            x += width + GAP
        wide = max(wide, x)
    for layer in layers:
        last = max((spot[s][0] + (_width(s) / 2 if isinstance(s, str) else 6) for s in layer), default=0.0)
        shift = (wide - GAP - last) / 2
        for slot in layer:
            spot[slot] = (spot[slot][0] + shift, spot[slot][1])
    lines = []
    for path in paths:
        points = [spot[s] for s in path]
        (x0, y0), (x1, y1) = points[0], points[-1]
        points = [(x0, y0 + HIGH / 2), *points[1:-1], (x1, y1 - HIGH / 2)]
        shape = " ".join(f"{x:.0f},{y:.0f}" for x, y in points)
        tip_of = ' marker-end="url(#tip)"' if arrows else ""
        lines.append(f'<polyline points="{shape}" class="edge"{tip_of}/>')
    boxes = [_box(n, *spot[n], roles.get(n, "")) for n in order]
    high = 16 + (len(layers) - 1) * ROW + HIGH
    tip = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" class="tip"/></marker></defs>'
    )
    said = ", ".join(f"{a} {'to' if arrows else 'and'} {b}" for a, b in edges[:20])
    return (
        f'<svg class="graph" role="img" aria-label="{escape(said)}" viewBox="0 0 {wide:.0f} {high:.0f}" '
        f'style="max-width:{wide:.0f}px">{tip}{"".join(lines)}{"".join(boxes)}</svg>'
    )


def bar(parts: Mapping[str, float]) -> str:
    """Return one bar divided in proportion to ``parts``, with a legend below."""
    whole = sum(parts.values()) or 1.0
    pieces = "".join(
        f'<span class="part p{i % 8}" style="width:{100 * share / whole:.2f}%" title="{escape(name)}"></span>'
        for i, (name, share) in enumerate(parts.items())
    )
    legend = "".join(
        f'<li><span class="key p{i % 8}"></span>{escape(name)} {100 * share / whole:.0f} %</li>'
        for i, (name, share) in enumerate(parts.items())
    )
    return f'<div class="stack">{pieces}</div><ul class="legend">{legend}</ul>'


def _away_from(names: Sequence[str], edges: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return undirected edges directed away from the column with the most edges, to form layers."""
    around: dict[str, list[str]] = {n: [] for n in names}
    for a, b in edges:
        around[a].append(b)
        around[b].append(a)
    rank: dict[str, int] = {}
    for root in sorted(names, key=lambda n: -len(around[n])):
        queue = [] if root in rank else [root]
        for name in queue:  # grows while it is walked: breadth-first
            if name not in rank:
                rank[name] = len(rank)
                queue += around[name]
    return [(a, b) if rank[a] < rank[b] else (b, a) for a, b in edges]


def _width(name: str) -> float:
    return 16 + 7.2 * min(len(name), 24)


def _box(name: str, x: float, y: float, role: str) -> str:
    wide = _width(name)
    shown = name if len(name) <= 24 else name[:23] + "…"
    return (
        f'<g class="{escape(role) or "plain"}"><rect x="{x - wide / 2:.0f}" y="{y - HIGH / 2:.0f}" width="{wide:.0f}" '
        f'height="{HIGH}" rx="5"/><text x="{x:.0f}" y="{y + 4:.0f}">{escape(shown)}</text></g>'
    )
