"""Picture of a release: the drawing in the board's layout, the measured pairs, and the pairs refused by the fence.

One layout shows all lines: the arrows of the user's drawing, the measured pairs, and the links that the fence refuses
or that were not measured (faded). Measured pairs are solid lines, wider for stronger links, and dotted if noise alone
would explain the link. The picture uses only ``release.json``. Every strength is therefore computed from the released
rows, or from a score that the plan paid for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from espalier.core.graph.dag import Dag
from espalier.core.graph.layout import CLOSEST, Layout, fitted, layout
from espalier.core.graph.separations import Separation
from espalier.core.project.linked import BEFORE, Linked
from espalier.core.report import picture
from espalier.core.report.drawing_picture import HIGH, PAGE, Lines, svg, width

CROWDED = 20
"""Number of linked columns above which each group of the drawing is shown as one closed box."""
MOST_LINES = 3
"""Maximum number of pairs shown, per box of the layout, that were measured but have no arrow in the user's drawing."""


@dataclass(frozen=True)
class ReleasePicture:
    """Three pictures as SVG: ``before`` (the user's drawing), ``after`` (the measured pairs) and ``whole`` (both).

    A picture without lines is empty. ``apart`` are the columns without a box. ``unseen`` is the number of measured
    pairs that no picture shows, ``refused`` the number of refused links, and ``drowned`` the number of lines that noise
    alone would explain. ``weighed`` is true if the widths of lines show strength.
    """

    whole: str
    before: str
    after: str
    apart: tuple[str, ...]
    unseen: int
    refused: int
    drowned: int = 0
    weighed: bool = False


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
    wide = {n: width(n) for n in (*names, *groups)}
    drawing = (names, skeleton, outcome, groups, wide, HIGH)
    slices = _slices(project, columns, {n for e in skeleton for n in e})
    found = fitted(PAGE, *drawing, slices=slices)
    half = layout(*drawing, between=CLOSEST, slices=slices)  # narrower, because two pictures are side by side
    drawn_pairs = {frozenset(e) for e in arrows}
    more = [pair for pair in pairs if frozenset(pair) not in drawn_pairs]
    shown = [pair for pair in more if all(box.get(n, n) in found.places for n in pair)] if arrows else more
    strength, drowned = _strengths(facts)
    if len(shown) > (most := MOST_LINES * max(len(found.places), 1)):
        shown = sorted(shown, key=lambda pair: (target not in pair, -strength.get(frozenset(pair), 0.0)))[:most]
    dag = Dag.from_json(project["dag"])
    lines = Lines(
        tuple(e for e in arrows if frozenset(e) in measured),
        tuple(_ordered(pair, names) for pair in shown),
        tuple(e for e in arrows if frozenset(e) not in measured | refused),
        tuple(
            next((e for e in arrows if frozenset(e) == pair), _ordered(pair, names))
            for pair in sorted(refused, key=sorted)
        ),
        strength,
        drowned,
        dag.drawn_interactions,
    )
    lines = _boxed(lines, box, found)
    causes = _boxed(Lines(drawn=tuple(arrows), together=dag.drawn_interactions), box, found)
    after = replace(lines, drawn=(), measured=(*lines.drawn, *lines.measured), faded=(), together=())
    apart = tuple(n for n in names if box.get(n, n) not in found.places)
    kinds = {**dict.fromkeys(groups, "group"), **roles}
    shapes = ((found, lines), (half, causes), (half, after))
    titles = {c["name"]: f"{c['name']}: {c['label']}" for c in project["schema"] if c.get("label")}
    whole, before, later = (svg(at, one, kinds, wide, titles, _said(one)) if at.places else "" for at, one in shapes)
    unseen = len(more) - len(lines.measured)
    weak = sum(frozenset(pair) in lines.drowned for pair in (*lines.drawn, *lines.measured))
    return ReleasePicture(whole, before if arrows else "", later, apart, unseen, len(refused), weak, bool(strength))


def _slices(project: Mapping[str, Any], columns: Sequence[str], linked: Collection[str]) -> list[list[str]]:
    """Return the boxes of linked tables from left to right: the person, the previous visit and this visit."""
    if "tables" not in project:
        return []
    link = Linked.from_json(project["tables"])
    visits = [n for n in columns if n.startswith(f"{link.visits}.")]
    parts = [[n for n in columns if n not in visits], [n + BEFORE for n in visits], visits]
    return [[n for n in part if n in linked] for part in parts]


def _strengths(facts: Mapping[str, Any]) -> tuple[dict[frozenset[str], float], frozenset[frozenset[str]]]:
    """Return the strength of each pair for which it is known, and the pairs that are no stronger than noise.

    The strength of a measured pair is its strength in the released rows. A refused pair has a score only if the plan
    paid for it. The score is an L1 distance in rows, which is twice the number of rows that would have to change. Older
    releases state no strengths.
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


def _boxed(lines: Lines, box: Mapping[str, str], found: Layout) -> Lines:
    """Return the lines between boxes, without repetition. Lines inside a group or to a column without a position are
    left out.
    """

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
    together = (({*boxes(frozenset(causes))}, box.get(effect, effect)) for causes, effect in lines.together)
    linked = tuple((tuple(sorted(causes)), effect) for causes, effect in together if len(causes - {effect}) > 1)
    return Lines(of(lines.drawn), of(lines.measured), of(lines.faded), of(lines.refused), strength, drowned, linked)


def _said(lines: Lines) -> str:
    """Return the numbers of lines of each kind."""
    kinds = (
        (lines.drawn + lines.measured, "links measured"),
        (lines.faded, "not measured"),
        (lines.refused, "refused"),
    )
    return ", ".join(f"{len(pairs)} {what}" for pairs, what in kinds if pairs)
