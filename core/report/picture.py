"""Pictures for the report: small graphs and bars as SVG, drawn from names and edges alone. Nothing is fetched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from espalier.core.graph.layout import layout

HIGH = 26
"""Height of a box in pixels."""

LARGEST, DENSE = 60, 2
"""Most linked columns in a picture, and most lines per column. Above either limit, the annex lists the pairs."""


def graph(names: Sequence[str], edges: Sequence[tuple[str, str]], roles: Mapping[str, str], arrows: bool) -> str:
    """Return an SVG of columns as boxes and ``edges`` as arrows or lines, with the outcome on the right.

    ``roles`` determine the colours. Columns without edges are not drawn. Empty above the limits `LARGEST` and `DENSE`.
    """
    if not edges:
        return ""
    linked = [n for n in names if any(n in e for e in edges)]
    if len(linked) > LARGEST or len(edges) > DENSE * len(linked):
        return ""
    drawn = list(edges) if arrows else _towards_hubs(linked, edges)
    outcome = [n for n in linked if roles.get(n) == "outcome"]
    wide = {n: _width(n) for n in linked}
    found = layout(linked, drawn, outcome, wide=wide, high=HIGH)
    lines = []
    for (a, b), bends in found.routes.items():
        (x0, y0), (x1, y1) = found.places[a], found.places[b]
        points = [(x0 + wide[a] / 2, y0), *bends, (x1 - wide[b] / 2, y1)]
        shape = " ".join(f"{x:.0f},{y:.0f}" for x, y in points)
        tip_of = ' marker-end="url(#tip)"' if arrows else ""
        lines.append(f'<polyline points="{shape}" class="edge"{tip_of}/>')
    boxes = [_box(n, *found.places[n], roles.get(n, "")) for n in linked]
    tip = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" class="tip"/></marker></defs>'
    )
    said = ", ".join(f"{a} {'to' if arrows else 'and'} {b}" for a, b in edges[:20])
    across, down = found.width + 8, found.height + 8
    return (
        f'<svg class="graph" role="img" aria-label="{escape(said)}" viewBox="-4 -4 {across:.0f} {down:.0f}" '
        f'style="max-width:{across:.0f}px">{tip}{"".join(lines)}{"".join(boxes)}</svg>'
    )


def bar(parts: Mapping[str, float]) -> str:
    """One bar divided by ``parts``, which are shares of their sum, with a legend below."""
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


def _towards_hubs(names: Sequence[str], edges: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return undirected edges directed to the column with the most edges, to form layers."""
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
    return [(b, a) if rank[a] < rank[b] else (a, b) for a, b in edges]


def _width(name: str) -> float:
    return 16 + 7.2 * min(len(name), 24)


def _box(name: str, x: float, y: float, role: str) -> str:
    wide = _width(name)
    shown = name if len(name) <= 24 else name[:23] + "…"
    return (
        f'<g class="{escape(role) or "plain"}"><rect x="{x - wide / 2:.0f}" y="{y - HIGH / 2:.0f}" width="{wide:.0f}" '
        f'height="{HIGH}" rx="5"/><text x="{x:.0f}" y="{y + 4:.0f}">{escape(shown)}</text></g>'
    )
