"""The picture of a release: the drawing in the board's layout, what was measured, and what the fence refused.

One layout serves all: arrows that were drawn, pairs that were measured (solid, wider where the link is stronger, dotted
where noise alone would explain it), and links that the fence refuses or that no one measured (faded). It depends on
``release.json`` alone, so a strength is that of the released rows, or a score that was paid for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

from espalier.core.graph.layout import CLOSEST, Layout, Point, fitted, layout
from espalier.core.graph.separations import Separation
from espalier.core.project.linked import BEFORE
from espalier.core.report import picture

HIGH = 30
PAGE = 1000.0
"""Width in pixels from which layers move closer together: names stay legible on paper."""
ARC = 36.0
"""Room to the right of the last layer for the arcs between its boxes."""
CROWDED = 20
"""Above this number of linked columns, the groups of the drawing are closed to one box each."""
MOST_LINES = 3
"""Measured pairs that were not drawn are shown up to this number for each column that has a line."""
STYLE = (
    ".release text{font:14px 'Espalier Sans','Source Sans','Source Sans 3',system-ui,sans-serif;text-anchor:middle;"
    "fill:#1f2933}.release rect{fill:#eef1f4;stroke:#52606d}.release .outcome rect{fill:#ffe3b0}"
    ".release .protected rect{fill:#f9cfd6}.release .admissible rect{fill:#cfe8d5}"
    ".release .inadmissible rect{fill:#dcd6f7}.release .group rect{stroke-width:3}"
    ".tip{fill:#24684a}.line,.thin,.drowned,.faded,.refused{fill:none}.line{stroke:#24684a;stroke-width:2.4}"
    ".thin{stroke:#24684a;stroke-width:1.2;opacity:.65}"
    ".drowned{stroke:#24684a;stroke-width:1.4;stroke-dasharray:1 4;stroke-linecap:round}"
    ".faded{stroke:#7b8794;stroke-width:1.3;stroke-dasharray:5 4;opacity:.9}"
    ".refused{stroke:#b8344a;stroke-width:1.6;stroke-dasharray:7 5;opacity:.8}"
    ".dark .line,.dark .thin,.dark .drowned{stroke:#7fc29b}.dark .tip{fill:#7fc29b}.dark .faded{stroke:#9aa5b1}"
    ".dark .refused{stroke:#f08a98}"
)
THINNEST, WIDEST, PER_SHARE = 1.2, 7.0, 18.0
"""Width of a line: ``THINNEST`` and ``PER_SHARE`` for the share of rows that would have to change to unlink it."""


@dataclass(frozen=True)
class ReleasePicture:
    """The picture before (the drawing), after (what was measured), and both in one; SVG texts, empty without lines.

    ``apart`` are the columns without a box, ``unseen`` the number of measured pairs that are not drawn, ``drowned`` the
    number of lines that noise alone would explain. ``weighed``: the widths of lines show strength.
    """

    whole: str
    before: str
    after: str
    apart: tuple[str, ...]
    unseen: int
    refused: int
    drowned: int = 0
    weighed: bool = False


@dataclass(frozen=True)
class _Lines:
    """Lines of one picture by kind: pairs of boxes."""

    drawn: tuple[tuple[str, str], ...] = ()
    measured: tuple[tuple[str, str], ...] = ()
    faded: tuple[tuple[str, str], ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    strength: Mapping[frozenset[str], float] = field(default_factory=dict)
    drowned: frozenset[frozenset[str]] = frozenset()

    def looks(self, kind: str, ends: tuple[str, str]) -> str:
        """Return the attributes of a line: its class, its width where its strength is known."""
        pair = frozenset(ends)
        if kind in ("line", "thin") and pair in self.drowned:
            return 'class="drowned"'
        if (share := self.strength.get(pair)) is None:
            return f'class="{kind}"'
        return f'class="{kind}" style="stroke-width:{min(WIDEST, THINNEST + PER_SHARE * max(share, 0.0)):.1f}"'


def release_picture(facts: Mapping[str, Any]) -> ReleasePicture:
    """Return the pictures of a release from the facts of ``release.json``."""
    project = facts["project"]
    columns = [c["name"] for c in project["schema"]]
    before_it = {n: n.removesuffix(BEFORE) for e in project["dag"]["edges"] for n in e}
    names = [*columns, *(n for n, of in before_it.items() if n != of and of in columns)]
    known = set(names)
    roles = {name: role for role, columns in project["roles"].items() for name in columns}
    target = project["plan"].get("target")
    if target:
        roles.setdefault(target, "outcome")
    arrows = [(a, b) for a, b in project["dag"]["edges"] if a in known and b in known]
    steps = [(s["parent"], s["column"]) for s in facts.get("tables", {}).get("steps", [])]
    pairs = [(a, b) for a, b in (*facts["edges"], *steps) if a != b and {a, b} <= known]
    pairs = list({frozenset(pair): pair for pair in pairs}.values())
    measured = {frozenset(pair) for pair in pairs}
    fences = [Separation.read({side: s[side] for side in ("left", "right", "given")}) for s in facts["separations"]]
    refused = {frozenset(e) for e in arrows if any(s.forbids(*e) for s in fences)} - measured
    refused |= {frozenset(x["columns"]) for x in (facts.get("explained") or {}).get("refused", [])[:6]}
    refused = {pair for pair in refused - measured if pair <= known and len(pair) == 2}
    linked = {n for e in arrows for n in e} or {n for pair in pairs for n in pair}
    groups = project["dag"].get("groups", {}) if len(linked) > CROWDED else {}
    box = {name: group for group, inside in groups.items() for name in inside}
    skeleton = arrows or picture.towards_hubs(names, [_ordered(p, names) for p in pairs])
    outcome = [n for n in names if roles.get(n) == "outcome"]
    wide = {n: _width(n) for n in (*names, *groups)}
    drawing = (names, skeleton, outcome, groups, wide, HIGH)
    found = fitted(PAGE, *drawing)
    half = layout(*drawing, between=CLOSEST)  # for two pictures side by side
    drawn_pairs = {frozenset(e) for e in arrows}
    more = [pair for pair in pairs if frozenset(pair) not in drawn_pairs]
    shown = [pair for pair in more if all(box.get(n, n) in found.places for n in pair)] if arrows else more
    strength, drowned = _strengths(facts)
    if len(shown) > (most := MOST_LINES * max(len(found.places), 1)):
        shown = sorted(shown, key=lambda pair: (target not in pair, -strength.get(frozenset(pair), 0.0)))[:most]
    lines = _Lines(
        tuple(e for e in arrows if frozenset(e) in measured),
        tuple(_ordered(pair, names) for pair in shown),
        tuple(e for e in arrows if frozenset(e) not in measured | refused),
        tuple(
            next((e for e in arrows if frozenset(e) == pair), _ordered(pair, names))
            for pair in sorted(refused, key=sorted)
        ),
        strength,
        drowned,
    )
    lines = _boxed(lines, box, found)
    causes = _boxed(_Lines(drawn=tuple(arrows)), box, found)
    after = replace(lines, drawn=(), measured=(*lines.drawn, *lines.measured), faded=())
    apart = tuple(n for n in names if box.get(n, n) not in found.places)
    kinds = {**dict.fromkeys(groups, "group"), **roles}
    shapes = ((found, lines), (half, causes), (half, after))
    titles = {c["name"]: f"{c['name']}: {c['label']}" for c in project["schema"] if c.get("label")}
    whole, before, later = (_svg(at, one, kinds, wide, titles) if at.places else "" for at, one in shapes)
    unseen = len(more) - len(lines.measured)
    weak = sum(frozenset(pair) in lines.drowned for pair in (*lines.drawn, *lines.measured))
    return ReleasePicture(whole, before if arrows else "", later, apart, unseen, len(refused), weak, bool(strength))


def _strengths(facts: Mapping[str, Any]) -> tuple[dict[frozenset[str], float], frozenset[frozenset[str]]]:
    """Return the strength of each pair whose strength was bought, and the pairs that are no stronger than noise.

    Measured pairs have that of the released rows. Refused pairs have a score only if the plan paid for it: an L1
    distance in rows, which is twice the rows that would have to change. Older releases state no strengths.
    """
    listed = facts.get("links", [])
    strength = {frozenset(x["columns"]): float(x["strength"]) for x in listed}
    drowned = frozenset(
        frozenset(x["columns"]) for x in listed if x["noise"] is not None and x["strength"] <= x["noise"]
    )
    if bought := facts.get("explained"):
        rows = 2 * max(facts["rows"], 1)
        strength |= {frozenset(x["columns"]): x["score"] / rows for x in bought["refused"]}
    return strength, drowned


def _ordered(pair: Iterable[str], names: Sequence[str]) -> tuple[str, str]:
    a, b = sorted(pair, key=names.index)
    return a, b


def _boxed(lines: _Lines, box: Mapping[str, str], found: Layout) -> _Lines:
    """Return the lines between boxes, each once; lines inside a group or to a column without a place are left out."""

    def of(pairs: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
        ends = ((box.get(a, a), box.get(b, b)) for a, b in pairs)
        return tuple(dict.fromkeys((a, b) for a, b in ends if a != b and a in found.places and b in found.places))

    def boxes(pair: frozenset[str]) -> frozenset[str]:
        return frozenset(box.get(n, n) for n in pair)

    strength: dict[frozenset[str], float] = {}
    for pair, share in lines.strength.items():
        strength[boxes(pair)] = max(share, strength.get(boxes(pair), 0.0))
    above = {boxes(pair) for pair in lines.strength if pair not in lines.drowned}
    drowned = frozenset(boxes(pair) for pair in lines.drowned) - above
    return _Lines(of(lines.drawn), of(lines.measured), of(lines.faded), of(lines.refused), strength, drowned)


def _svg(
    found: Layout, lines: _Lines, kinds: Mapping[str, str], wide: Mapping[str, float], titles: Mapping[str, str]
) -> str:
    parts = []
    styles = (("refused", lines.refused), ("faded", lines.faded), ("thin", lines.measured), ("line", lines.drawn))
    for kind, pairs in styles:
        tip = ' marker-end="url(#arrow)"' if kind == "line" else ""
        for a, b in pairs:
            parts.append(f'<path {lines.looks(kind, (a, b))} d="{_path(a, b, found, wide)}"{tip}/>')
    parts += [_box(n, *found.places[n], kinds.get(n, ""), wide[n], titles.get(n, n)) for n in found.places]
    last = max(x for x, _ in found.places.values())
    arcs = any(found.places[a][0] == found.places[b][0] == last for _, pairs in styles for a, b in pairs)
    across, down = found.width + 12 + ARC / 2 * arcs, found.height + 12
    said = [f"{len(lines.drawn) + len(lines.measured)} links measured"] if lines.drawn or lines.measured else []
    said += [
        f"{len(pairs)} {what}" for pairs, what in ((lines.faded, "not measured"), (lines.refused, "refused")) if pairs
    ]
    mark = (
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="13" markerHeight="13" '
        'markerUnits="userSpaceOnUse" orient="auto">'
        '<path class="tip" d="M0 0L8 4L0 8z"/></marker></defs>'
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" class="light release" role="img" '
        f'aria-label="{escape(", ".join(said))}" '
        f'viewBox="-6 -6 {across:.0f} {down:.0f}" width="{across:.0f}" height="{down:.0f}"><style>{STYLE}</style>'
        f"{mark}{''.join(parts)}</svg>"
    )


def _path(a: str, b: str, found: Layout, wide: Mapping[str, float]) -> str:
    """Return the route of an arrow of the layout, or an arc between two boxes that it has no route for."""
    (x0, y0), (x1, y1) = found.places[a], found.places[b]
    if (a, b) in found.routes:
        points: list[Point] = [(x0 + wide[a] / 2, y0), *found.routes[a, b], (x1 - wide[b] / 2, y1)]
        return "M" + "L".join(f"{x:.0f} {y:.0f}" for x, y in points)
    if (b, a) in found.routes:
        return _path(b, a, found, wide)
    if abs(x0 - x1) < 1:  # boxes of one layer: an arc along their sides
        side = x0 + max(wide[a], wide[b]) / 2
        return f"M{x0 + wide[a] / 2:.0f} {y0:.0f}Q{side + ARC:.0f} {(y0 + y1) / 2:.0f} {x1 + wide[b] / 2:.0f} {y1:.0f}"
    left, right = ((x0, y0, a), (x1, y1, b)) if x0 < x1 else ((x1, y1, b), (x0, y0, a))
    start, end = left[0] + wide[left[2]] / 2, right[0] - wide[right[2]] / 2
    bend = 18 if abs(left[1] - right[1]) < 10 else 0
    over = (left[1] + right[1]) / 2 - 2 * bend
    return f"M{start:.0f} {left[1]:.0f}Q{(start + end) / 2:.0f} {over:.0f} {end:.0f} {right[1]:.0f}"


def _width(name: str) -> float:
    return 18 + 8.0 * min(len(name), 24)


def _box(name: str, x: float, y: float, kind: str, wide: float, title: str) -> str:
    shown = name if len(name) <= 24 else name[:23] + "…"
    return (
        f'<g class="{escape(kind) or "plain"}"><title>{escape(title)}</title><rect x="{x - wide / 2:.0f}" '
        f'y="{y - HIGH / 2:.0f}" width="{wide:.0f}" height="{HIGH}" rx="6"/><text x="{x:.0f}" y="{y + 5:.0f}">'
        f"{escape(shown)}</text></g>"
    )
