"""Drawing as SVG, with boxes in the board's layout and lines routed around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from espalier.core.graph.dag import Dag, Interaction
from espalier.core.graph.layout import Layout, fitted
from espalier.core.graph.roles import Roles
from espalier.core.graph.routes import Line, Point, before_end, rectangle, routed, svg_path

HIGH = 30
PAGE = 1000.0
"""Width in pixels above which layers move closer together, so that names stay legible on paper."""
BEFORE_TIP, MARK = 30.0, 7.0
"""Distance in pixels between arrow tips and the link of causes that act together, and the radius of its mark."""
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
    ".together{stroke:#24684a;stroke-width:1.8;fill:none}.together circle{fill:#eef1f4}.dark .together{stroke:#7fc29b}"
    ".dark .together circle{fill:#151a1f}"
)
THINNEST, WIDEST, PER_SHARE = 1.2, 7.0, 18.0
"""Width of a line: ``THINNEST``, plus ``PER_SHARE`` times the share of rows that would have to change to unlink the
pair, up to ``WIDEST``.
"""


@dataclass(frozen=True)
class Lines:
    """Lines of one picture by kind: pairs of boxes; ``together`` are causes that act together."""

    drawn: tuple[tuple[str, str], ...] = ()
    measured: tuple[tuple[str, str], ...] = ()
    faded: tuple[tuple[str, str], ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    strength: Mapping[frozenset[str], float] = field(default_factory=dict)
    drowned: frozenset[frozenset[str]] = frozenset()
    together: tuple[Interaction, ...] = ()

    def looks(self, kind: str, ends: tuple[str, str]) -> str:
        """Return the attributes of a line: its class, and its width if its strength is known."""
        pair = frozenset(ends)
        if kind in ("line", "thin") and pair in self.drowned:
            return 'class="drowned"'
        if (share := self.strength.get(pair)) is None:
            return f'class="{kind}"'
        return f'class="{kind}" style="stroke-width:{min(WIDEST, THINNEST + PER_SHARE * max(share, 0.0)):.1f}"'


def drawing_picture(names: Sequence[str], dag: Dag, roles: Roles, target: str | None) -> str:
    """Return the picture of a drawing as SVG; empty without arrows. Columns without arrows have no box."""
    outcome = [*roles.outcome, *([] if target is None else [target])]
    wide = {n: width(n) for n in names}
    found = fitted(PAGE, names, dag.edges, outcome, wide=wide, high=HIGH)
    kinds = {n: role for n in names if (role := roles.of(n))} | ({} if target is None else {target: "outcome"})
    lines = Lines(dag.edges, together=dag.drawn_interactions)
    said = f"{len(dag.edges)} arrow{'s' * (len(dag.edges) != 1)}"
    return svg(found, lines, kinds, wide, {}, said) if found.places else ""


def svg(
    found: Layout,
    lines: Lines,
    kinds: Mapping[str, str],
    wide: Mapping[str, float],
    titles: Mapping[str, str],
    said: str,
) -> str:
    """Return the picture of ``lines`` between the boxes of a layout.

    ``kinds`` are the classes of the boxes, ``titles`` their full names; ``said`` describes the picture.
    """
    styles = (("refused", lines.refused), ("faded", lines.faded), ("thin", lines.measured), ("line", lines.drawn))
    boxes = {n: rectangle(at, wide[n], HIGH) for n, at in found.places.items()}
    bends: dict[Line, Sequence[Point]] = {}
    for (cause, effect), points in found.routes.items():
        if points:
            bends |= {(cause, effect): points, (effect, cause): points[::-1]}
    paths = routed(boxes, [pair for _, pairs in styles for pair in pairs], bends)
    parts = []
    for kind, pairs in styles:
        tip = ' marker-end="url(#arrow)"' if kind == "line" else ""
        parts += [f'<path {lines.looks(kind, pair)} d="{svg_path(paths[pair])}"{tip}/>' for pair in pairs]
    parts += [_together(causes, effect, paths) for causes, effect in lines.together]
    parts += [_box(n, *found.places[n], kinds.get(n, ""), wide[n], titles.get(n, n)) for n in found.places]
    corners = [corner for box in boxes.values() for corner in (box[:2], box[2:])]
    xs, ys = zip(*corners, *(point for path in paths.values() for point in path), strict=True)
    left, top = min(xs) - 6, min(ys) - 6
    across, down = max(xs) + 6 - left, max(ys) + 6 - top
    mark = (
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="13" markerHeight="13" '
        'markerUnits="userSpaceOnUse" orient="auto">'
        '<path class="tip" d="M0 0L8 4L0 8z"/></marker></defs>'
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" class="light release" role="img" '
        f'aria-label="{escape(said)}" viewBox="{left:.0f} {top:.0f} {across:.0f} {down:.0f}" '
        f'width="{across:.0f}" height="{down:.0f}"><style>{STYLE}</style>{mark}{"".join(parts)}</svg>'
    )


def _together(causes: Sequence[str], effect: str, paths: Mapping[tuple[str, ...], Sequence[Point]]) -> str:
    """Return the mark of causes that act together: a line across their arrows, with a cross in a circle."""
    points = [before_end(paths[c, effect], BEFORE_TIP) for c in causes if (c, effect) in paths]
    if len(points) < 2:
        return ""
    x, y = (sum(p[i] for p in points) / len(points) for i in (0, 1))
    arm = 0.55 * MARK
    across = f"M{x - arm:.1f} {y - arm:.1f}l{2 * arm:.1f} {2 * arm:.1f}m0 {-2 * arm:.1f}l{-2 * arm:.1f} {2 * arm:.1f}"
    return (
        f'<g class="together"><title>{escape(" and ".join(causes))} act together on {escape(effect)}</title>'
        f'<path d="{svg_path(points)}"/><circle cx="{x:.0f}" cy="{y:.0f}" r="{MARK:.0f}"/><path d="{across}"/></g>'
    )


def width(name: str) -> float:
    """Return the width of a box in pixels."""
    return 18 + 8.0 * min(len(name), 24)


def _box(name: str, x: float, y: float, kind: str, wide: float, title: str) -> str:
    shown = name if len(name) <= 24 else name[:23] + "…"
    return (
        f'<g class="{escape(kind) or "plain"}"><title>{escape(title)}</title><rect x="{x - wide / 2:.0f}" '
        f'y="{y - HIGH / 2:.0f}" width="{wide:.0f}" height="{HIGH}" rx="6"/><text x="{x:.0f}" y="{y + 5:.0f}">'
        f"{escape(shown)}</text></g>"
    )
