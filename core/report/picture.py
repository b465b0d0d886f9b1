"""Bars for the report, and the layout order of undirected pairs. Nothing is fetched from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape


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


def towards_hubs(names: Sequence[str], edges: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return undirected edges directed to the column with the most edges, to form layers."""
    around: dict[str, list[str]] = {n: [] for n in names}
    for a, b in edges:
        around[a].append(b)
        around[b].append(a)
    rank: dict[str, int] = {}
    for root in sorted(names, key=lambda n: -len(around[n])):
        queue = [] if root in rank else [root]
        for name in queue:  # breadth-first search; the list grows during the loop
            if name not in rank:
                rank[name] = len(rank)
                queue += around[name]
    return [(b, a) if rank[a] < rank[b] else (a, b) for a, b in edges]
