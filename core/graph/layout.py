"""Layout of a drawing for the board, the pictures and the report, with causes on the left and the outcome on the right.
It is layered (Sugiyama, Tagawa & Toda 1981). First, columns are assigned to layers so that every effect is to the right
of its causes. Second, sweeps of the barycentre rule and swaps of neighbours reduce crossings. Third, isotonic
regression chooses heights that keep arrows short. The same drawing always gets the same layout.

The drawing of linked tables has slices side by side, such as person, this visit and next visit. Each slice has its own
layers, to the right of the previous slice's layers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from math import ceil, sqrt
from typing import Any

WIDE, HIGH = 160.0, 40.0
"""Size of a box if none is given, in pixels."""
GAP, BEND, BETWEEN, CLOSEST = 16.0, 14.0, 90.0, 30.0
"""Spaces in pixels: between two boxes of a layer, for an arrow that passes a layer, and between two layers (the usual
and the smallest space).
"""
ASIDE = 40.0
"""Extra space between two slices, for their borders, in pixels."""
SWEEPS, SWAPS = 16, 600
"""Number of sweeps of the barycentre rule, and the number of slots up to which neighbours are also swapped."""
FEWEST = 6
"""Number of boxes that a layer may have in any drawing. Larger drawings allow √(2·boxes)."""

Bend = tuple[str, str, int]
"""The place where the arrow (cause, effect) passes a layer that contains neither of them."""
Slot = str | Bend
Point = tuple[float, float]


@dataclass(frozen=True)
class Layout:
    """Positions in a drawing, in pixels from its upper left corner.

    ``places`` contains the centre of every box. ``routes`` contains, for each arrow, the points between its ends, from
    cause to effect. ``apart`` lists the columns without arrows, which have no position. ``layers`` lists the boxes of
    each layer from top to bottom, and the layers from left to right.
    """

    places: Mapping[str, Point] = field(default_factory=dict)
    routes: Mapping[tuple[str, str], tuple[Point, ...]] = field(default_factory=dict)
    apart: tuple[str, ...] = ()
    layers: tuple[tuple[str, ...], ...] = ()
    width: float = 0.0
    height: float = 0.0


def layout(
    names: Sequence[str],
    arrows: Iterable[tuple[str, str]],
    outcome: Iterable[str] = (),
    closed: Mapping[str, Iterable[str]] | None = None,
    wide: Mapping[str, float] | None = None,
    high: float | Mapping[str, float] = HIGH,
    between: float = BETWEEN,
    slices: Sequence[Iterable[str]] = (),
) -> Layout:
    """Return the layout of ``arrows`` between ``names``; arrows of other names are ignored.

    ``outcome`` columns without effects are in the last layer. ``closed`` are groups of columns that are shown as one
    box each: the group's name replaces its columns. ``wide`` gives the width of each box in pixels, ``high`` the height
    of all boxes or of each box, ``between`` the space between two layers. ``slices`` are groups of names that are side
    by side, from left to right. They contain all names, and all boxes then have a position.
    """
    box = {name: group for group, inside in (closed or {}).items() for name in inside}
    known = set(names)
    drawn = [(box.get(a, a), box.get(b, b)) for a, b in arrows if a in known and b in known]
    edges = list(dict.fromkeys((a, b) for a, b in drawn if a != b))
    linked = {n for edge in edges for n in edge}
    boxes = list(dict.fromkeys(box.get(n, n) for n in names))
    inside = {box.get(n, n): k for k, some in enumerate(slices) for n in some}
    alone = tuple(n for n in boxes if n not in linked and n not in inside)
    boxes = [n for n in boxes if n in linked or n in inside]
    if not boxes:
        return Layout(apart=alone)
    ahead = [(b, a) if inside.get(a, 0) > inside.get(b, 0) else (a, b) for a, b in edges]
    forward = _without_cycles(boxes, list(dict.fromkeys(ahead)))
    last = {box.get(n, n) for n in outcome}
    parts = [[n for n in boxes if inside.get(n, 0) == k] for k in range(max(len(slices), 1))]
    most = max(FEWEST, ceil(sqrt(2 * len(boxes))))
    layers = [_slice(part, forward, last, most) if inside else _layers(part, forward, last, most) for part in parts]
    order, paths = _ordered([layer for some in layers for layer in some], forward)
    tall = high if isinstance(high, Mapping) else dict.fromkeys(boxes, high)
    ends = frozenset(accumulate(len(some) for some in layers[:-1]))
    return _placed(order, paths, _heights(order, paths, tall), Drawn(edges, alone, wide or {}, tall, between, ends))


def fitted(page: float, *drawing: Any, **sizes: Any) -> Layout:
    """Return the `layout` of a drawing, with layers closer together if it would be wider than ``page`` pixels."""
    found = layout(*drawing, **sizes)
    if found.width <= page or len(found.layers) < 2:
        return found
    room = BETWEEN - (found.width - page) / (len(found.layers) - 1)
    return layout(*drawing, **{**sizes, "between": max(CLOSEST, room)})


@dataclass(frozen=True)
class Drawn:
    """Parts of a picture: arrows, columns without arrows, sizes of boxes, the space between layers."""

    edges: Sequence[tuple[str, str]]
    alone: tuple[str, ...]
    wide: Mapping[str, float]
    tall: Mapping[str, float]
    between: float
    ends: frozenset[int] = frozenset()
    """Number of layers in the first slice, in the first two, and so on."""


def _without_cycles(boxes: Sequence[str], edges: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the arrows, reversing those that close a cycle, because two closed groups may cause each other."""
    after: dict[str, list[str]] = {n: [] for n in boxes}
    for a, b in edges:
        after[a].append(b)
    done: set[str] = set()
    back: set[tuple[str, str]] = set()
    for start in boxes:
        on_path, waiting = dict.fromkeys([start]), [(start, iter(after[start]))]
        if start in done:
            continue
        while waiting:
            name, rest = waiting[-1]
            step = next(rest, None)
            if step is None:
                waiting.pop()
                del on_path[name]
                done.add(name)
            elif step in on_path:
                back.add((name, step))
            elif step not in done:
                on_path[step] = None
                waiting.append((step, iter(after[step])))
    return list(dict.fromkeys((b, a) if (a, b) in back else (a, b) for a, b in edges))


def _slice(boxes: Sequence[str], edges: Sequence[tuple[str, str]], outcome: set[str], most: int) -> list[list[str]]:
    """Return the layers of one slice. Boxes without an arrow inside the slice fill its shortest layers."""
    known = set(boxes)
    own = [(a, b) for a, b in edges if a in known and b in known]
    linked = {n for edge in own for n in edge}
    drawn = [n for n in boxes if n in linked]
    layers = _layers(drawn, own, outcome, most) if drawn else []
    alone = [n for n in boxes if n not in linked]
    while len(layers) * most < len(boxes):
        layers.append([])
    for n in alone:
        min(layers, key=len).append(n)
    return layers


def _layers(boxes: Sequence[str], edges: Sequence[tuple[str, str]], outcome: set[str], most: int) -> list[list[str]]:
    """Return the boxes of each layer.

    A box's layer is the length of its longest path from the left. Layers of more than ``most`` boxes are then divided.
    """
    causes: dict[str, list[str]] = {n: [] for n in boxes}
    effects: dict[str, list[str]] = {n: [] for n in boxes}
    for a, b in edges:
        causes[b].append(a)
        effects[a].append(b)
    depth: dict[str, int] = {}
    open_causes = {n: len(causes[n]) for n in boxes}
    ready = [n for n in boxes if not causes[n]]
    for n in ready:  # grows during the loop, with causes before effects
        depth[n] = 1 + max((depth[c] for c in causes[n]), default=-1)
        for effect in effects[n]:
            open_causes[effect] -= 1
            if not open_causes[effect]:
                ready.append(effect)
    last = max(depth.values())
    for n in boxes:
        if not causes[n]:
            depth[n] = min(depth[e] for e in effects[n]) - 1
        elif n in outcome and not effects[n]:
            depth[n] = last
    if any(depth[n] == last and n not in outcome for n in boxes) and any(n in outcome for n in boxes):
        for n in boxes:  # the outcome has the last layer to itself
            if n in outcome and not effects[n]:
                depth[n] = last + 1
    out: list[list[str]] = []
    for level in range(max(depth.values()) + 1):
        layer = [n for n in boxes if depth[n] == level]
        parts = ceil(len(layer) / most)
        if parts > 1:  # move boxes without causes to the left, and boxes without effects to the right
            layer.sort(key=lambda n: bool(causes[n]) - (not effects[n]))
            size = ceil(len(layer) / parts)
            out += [layer[k : k + size] for k in range(0, len(layer), size)]
        elif layer:
            out.append(layer)
    return out


def _ordered(layers: list[list[str]], edges: Sequence[tuple[str, str]]) -> tuple[list[list[Slot]], list[list[Slot]]]:
    """Return two lists: each layer's slots from top to bottom, with few crossings, and the slots of each arrow."""
    level = {n: k for k, layer in enumerate(layers) for n in layer}
    slots: list[list[Slot]] = [list(layer) for layer in layers]
    paths: list[list[Slot]] = []
    for a, b in edges:
        bends: list[Slot] = [(a, b, k) for k in range(level[a] + 1, level[b])]
        for k, bend in zip(range(level[a] + 1, level[b]), bends, strict=True):
            slots[k].append(bend)
        paths.append([a, *bends, b])
    left: dict[Slot, list[Slot]] = {}
    right: dict[Slot, list[Slot]] = {}
    for path in paths:
        for one, other in pairwise(path):
            right.setdefault(one, []).append(other)
            left.setdefault(other, []).append(one)
    best, least = [list(layer) for layer in slots], _crossings(slots, right)
    for sweep in range(SWEEPS):
        if not least:
            break
        forth = sweep % 2 == 0
        near = left if forth else right
        for k in range(1, len(slots)) if forth else range(len(slots) - 2, -1, -1):
            place = {s: i for i, s in enumerate(slots[k - 1 if forth else k + 1])}
            weight = {}
            for i, s in enumerate(slots[k]):
                found = [place[m] for m in near.get(s, ())]
                weight[s] = sum(found) / len(found) if found else i * len(place) / len(slots[k])
            slots[k].sort(key=weight.__getitem__)
        if sum(map(len, slots)) <= SWAPS:
            _swap(slots, left, right)
        if (now := _crossings(slots, right)) < least:
            best, least = [list(layer) for layer in slots], now
    return best, paths


def _swap(slots: list[list[Slot]], left: Mapping[Slot, list[Slot]], right: Mapping[Slot, list[Slot]]) -> None:
    """Swap neighbours in a layer for as long as this removes crossings."""
    for k, layer in enumerate(slots):
        before = {s: i for i, s in enumerate(slots[k - 1])} if k else {}
        after = {s: i for i, s in enumerate(slots[k + 1])} if k + 1 < len(slots) else {}

        def ends(s: Slot, before: dict[Slot, int] = before, after: dict[Slot, int] = after) -> tuple[list[int], ...]:
            return sorted(before[m] for m in left.get(s, ())), sorted(after[m] for m in right.get(s, ()))

        at = {s: ends(s) for s in layer}
        for _ in range(len(layer)):
            moved = False
            for i in range(len(layer) - 1):
                a, b = at[layer[i]], at[layer[i + 1]]
                if sum(_above(y, x) - _above(x, y) for x, y in zip(a, b, strict=True)) > 0:
                    layer[i], layer[i + 1] = layer[i + 1], layer[i]
                    moved = True
            if not moved:
                break


def _above(one: list[int], other: list[int]) -> int:
    """Return the number of crossings if the slot whose ends are ``other`` is above the slot whose ends are ``one``."""
    return sum(x < y for x in one for y in other)


def _crossings(slots: Sequence[Sequence[Slot]], right: Mapping[Slot, list[Slot]]) -> int:
    """Return the number of crossings between neighbouring layers: inversions, counted with a Fenwick tree."""
    count = 0
    for one, other in pairwise(slots):
        place = {s: i for i, s in enumerate(other)}
        tree, seen = [0] * (len(other) + 1), 0
        for s in one:
            ends = sorted(place[m] for m in right.get(s, ()))
            for end in ends:
                i, upto = end + 1, 0
                while i:
                    upto += tree[i]
                    i &= i - 1
                count += seen - upto
            for end in ends:
                i = end + 1
                while i <= len(other):
                    tree[i] += 1
                    i += i & -i
                seen += 1
    return count


def _heights(
    order: Sequence[Sequence[Slot]], paths: Sequence[Sequence[Slot]], tall: Mapping[str, float]
) -> dict[Slot, float]:
    """Return the height of each slot: close to the mean height of its neighbours, in the order of its layer."""
    near: dict[Slot, list[Slot]] = {}
    for path in paths:
        for one, other in pairwise(path):
            near.setdefault(one, []).append(other)
            near.setdefault(other, []).append(one)
    offsets: list[list[float]] = []
    at: dict[Slot, float] = {}
    for layer in order:
        y, own = 0.0, []
        for i, s in enumerate(layer):
            if i:
                y += (_room(layer[i - 1], tall) + _room(s, tall)) / 2
            own.append(y)
        offsets.append(own)
        at |= {s: v - y / 2 for s, v in zip(layer, own, strict=True)}
    for sweep in range(SWEEPS):
        levels = range(len(order)) if sweep % 2 == 0 else range(len(order) - 1, -1, -1)
        for k in levels:
            aims = [near.get(s) or [s] for s in order[k]]
            wanted = [sum(at[m] for m in aim) / len(aim) - o for aim, o in zip(aims, offsets[k], strict=True)]
            weight = [8.0 if isinstance(s, tuple) else 1.0 for s in order[k]]  # long arrows run straight
            for s, y, o in zip(order[k], _rising(wanted, weight), offsets[k], strict=True):
                at[s] = y + o
    return at


def _room(slot: Slot, tall: Mapping[str, float]) -> float:
    return tall.get(slot, HIGH) + GAP if isinstance(slot, str) else BEND


def _rising(wanted: Sequence[float], weight: Sequence[float]) -> list[float]:
    """Return the non-decreasing values closest to ``wanted`` (pool adjacent violators)."""
    blocks: list[tuple[float, float, int]] = []
    for value, heavy in zip(wanted, weight, strict=True):
        many = 1
        while blocks and blocks[-1][0] > value:
            other, more, size = blocks.pop()
            value, heavy, many = (value * heavy + other * more) / (heavy + more), heavy + more, many + size
        blocks.append((value, heavy, many))
    return [value for value, _, many in blocks for _ in range(many)]


def _placed(
    order: Sequence[Sequence[Slot]], paths: Sequence[Sequence[Slot]], heights: Mapping[Slot, float], drawn: Drawn
) -> Layout:
    """Return the layout in pixels."""
    top = min(heights[s] - (drawn.tall.get(s, HIGH) / 2 if isinstance(s, str) else 0) for layer in order for s in layer)
    places: dict[str, Point] = {}
    bends: dict[Slot, tuple[Point, Point]] = {}
    x = bottom = 0.0
    for k, layer in enumerate(order):
        x += ASIDE * (k in drawn.ends)
        room = max(drawn.wide.get(s, WIDE) for s in layer if isinstance(s, str))
        for s in layer:
            y = heights[s] - top
            if isinstance(s, str):
                places[s] = (round(x + room / 2, 1), round(y, 1))
                bottom = max(bottom, y + drawn.tall.get(s, HIGH) / 2)
            else:  # pass the boxes of its layer horizontally, so that it crosses none of them
                bends[s] = ((round(x, 1), round(y, 1)), (round(x + room, 1), round(y, 1)))
                bottom = max(bottom, y)
        x += room + drawn.between
    routes: dict[tuple[str, str], tuple[Point, ...]] = {}
    for path in paths:
        points = tuple(p for s in path[1:-1] for p in bends[s])
        start, end = str(path[0]), str(path[-1])
        routes[start, end], routes[end, start] = points, points[::-1]
    boxes = tuple(tuple(s for s in layer if isinstance(s, str)) for layer in order)
    return Layout(
        places, {e: routes[e] for e in drawn.edges}, drawn.alone, boxes, round(x - drawn.between, 1), round(bottom, 1)
    )
