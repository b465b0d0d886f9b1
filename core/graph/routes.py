"""Lines between boxes that avoid all other boxes, for the board, the pictures and the report. Each line is a short path
among the corners of the boxes in its way, found by weighted A* in a visibility graph (Lozano-Pérez & Wesley 1979).
Lines of the `layout` keep their bends. The same boxes and lines always give the same paths.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import hypot, inf

Point = tuple[float, float]
Line = tuple[str, ...]
"""Two boxes, followed by labels that distinguish lines between the same two boxes."""
Rectangle = tuple[float, float, float, float]
"""Left, top, right and bottom."""

CLEAR = 7.0
"""Space between a line and the boxes that it passes, in pixels."""
LANE = 4.0
"""Space between lines that turn at the same corner."""
LANES = 4
STUB = 12.0
"""Length of the straight piece at either end of a line, so that an arrow head points at its box."""
ROUND = 9.0
"""Length by which rounding a corner shortens each leg."""
EAGER = 1.5
"""Largest accepted ratio of a detour to the shortest one; with 1, large drawings take four times as long."""
MOST = 60
"""Maximum number of boxes that one leg of a line may avoid."""


def rectangle(at: Point, wide: float, high: float) -> Rectangle:
    """Return the rectangle of a box from its centre and size."""
    return at[0] - wide / 2, at[1] - high / 2, at[0] + wide / 2, at[1] + high / 2


def routed(
    boxes: Mapping[str, Rectangle], lines: Iterable[Line], bends: Mapping[Line, Sequence[Point]] | None = None
) -> dict[Line, tuple[Point, ...]]:
    """Return the path of each line, from the edge of its first box to the edge of its second.

    ``bends`` are points that a line should pass through, from first to second box. A line without a free path is
    straight; `behind` lists such lines.
    """
    wanted, given = list(dict.fromkeys(lines)), bends or {}
    ends = _ends(boxes, wanted, given)
    walls = [(clear, {n: _grown(box, clear - 0.5) for n, box in boxes.items()}) for clear in (CLEAR, 2.0)]
    turns: Counter[tuple[str, int]] = Counter()
    out: dict[Line, tuple[Point, ...]] = {}
    for line in wanted:
        (start, away), (end, back) = ends[line]
        short = min(STUB, hypot(end[0] - start[0], end[1] - start[1]) / 3)
        first, last = _stub(start, away, short, line, walls[0][1]), _stub(end, back, short, line, walls[0][1])
        path = [start]
        for leg in pairwise([start, *first, *given.get(line, ()), *last, end]):
            path += _leg(*leg, line, boxes, walls, turns)[1:]
        out[line] = tuple((round(x, 1), round(y, 1)) for x, y in path)
    return out


def svg_path(points: Sequence[Point]) -> str:
    """Return the ``d`` of an SVG path through ``points`` with rounded corners."""
    parts = [f"M{points[0][0]:.0f} {points[0][1]:.0f}"]
    for (x, y), (u, v), (s, t) in zip(points, points[1:], points[2:], strict=False):
        one, other = hypot(u - x, v - y) or 1.0, hypot(s - u, t - v) or 1.0
        near, far = min(0.5, ROUND / one), min(0.5, ROUND / other)
        parts.append(f"L{u - near * (u - x):.0f} {v - near * (v - y):.0f}")
        parts.append(f"Q{u:.0f} {v:.0f} {u + far * (s - u):.0f} {v + far * (t - v):.0f}")
    return "".join([*parts, f"L{points[-1][0]:.0f} {points[-1][1]:.0f}"])


def before_end(path: Sequence[Point], far: float) -> Point:
    """Return the point of a path that is this far before its end, at most half of the path."""
    left = min(far, sum(hypot(u - x, v - y) for (x, y), (u, v) in pairwise(path)) / 2)
    for (x, y), (u, v) in pairwise(reversed(path)):
        leg = hypot(u - x, v - y)
        if leg and leg >= left:
            return x + (u - x) * left / leg, y + (v - y) * left / leg
        left -= leg
    return path[0]


def behind(boxes: Mapping[str, Rectangle], paths: Mapping[Line, Sequence[Point]]) -> list[tuple[Line, str]]:
    """Return each line that passes behind a box, with the first such box."""
    out = []
    for line, path in paths.items():
        for name, box in _around(path, boxes):
            if _cut(path, _grown(box, -1.0)):
                out.append((line, name))
                break
    return out


def _ends(
    boxes: Mapping[str, Rectangle], lines: Sequence[Line], bends: Mapping[Line, Sequence[Point]]
) -> dict[Line, tuple[tuple[Point, Point], ...]]:
    """Return the points where each line leaves its two boxes, and its direction there.

    The lines of one side are spread along it, in the order of the points to which they lead.
    """
    at_side: dict[tuple[str, int], list[tuple[float, Line, int]]] = {}
    for line in lines:
        through = bends.get(line, ())
        for k, name in enumerate(line[:2]):
            other = through[-k] if through else _middle(boxes[line[1 - k]])
            side, slope = _side(boxes[name], other)
            at_side.setdefault((name, side), []).append((slope, line, k))
    found: dict[tuple[Line, int], tuple[Point, Point]] = {}
    for (name, side), leaving in at_side.items():
        left, top, right, bottom = boxes[name]
        for i, (_, line, k) in enumerate(sorted(leaving)):
            share = 0.15 + 0.7 * (i + 0.5) / len(leaving)
            x, y = left + share * (right - left), top + share * (bottom - top)
            port = ((left, y), (right, y), (x, top), (x, bottom))[side]
            found[line, k] = port, ((-1.0, 0.0), (1.0, 0.0), (0.0, -1.0), (0.0, 1.0))[side]
    return {line: (found[line, 0], found[line, 1]) for line in lines}


def _stub(port: Point, away: Point, long: float, line: Line, walls: Mapping[str, Rectangle]) -> list[Point]:
    """Return the point at which a line may first turn; `None` if another box is there."""
    x, y = port[0] + long * away[0], port[1] + long * away[1]
    taken = any(w[0] < x < w[2] and w[1] < y < w[3] for name, w in walls.items() if name not in line[:2])
    return [] if taken else [(x, y)]


def _middle(box: Rectangle) -> Point:
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


def _side(box: Rectangle, other: Point) -> tuple[int, float]:
    """Return the side of a box that faces a point (left, right, top, bottom), and the position on it where the line
    would leave.
    """
    (x, y), (u, v) = _middle(box), other
    if box[0] - CLEAR < u < box[2] + CLEAR:
        return (2 if v < y else 3), (u - x) / max(abs(v - y), 1.0)
    return (0 if u < x else 1), (v - y) / max(abs(u - x), 1.0)


def _grown(box: Rectangle, by: float) -> Rectangle:
    return box[0] - by, box[1] - by, box[2] + by, box[3] + by


def _crosses(a: Point, b: Point, box: Rectangle) -> bool:
    """Return whether the leg from ``a`` to ``b`` passes through the inside of a box (Liang & Barsky 1984)."""
    (x, y), (u, v) = a, b
    left, top, right, bottom = box
    if (x <= left and u <= left) or (x >= right and u >= right) or (y <= top and v <= top):
        return False
    if y >= bottom and v >= bottom:
        return False
    low, high = 0.0, 1.0
    for at, step, least, most in ((x, u - x, left, right), (y, v - y, top, bottom)):
        if step == 0:
            continue
        near, far = sorted(((least - at) / step, (most - at) / step))
        low, high = max(low, near), min(high, far)
    return low < high


def _leg(
    start: Point,
    end: Point,
    line: Line,
    boxes: Mapping[str, Rectangle],
    walls: Sequence[tuple[float, Mapping[str, Rectangle]]],
    turns: Counter[tuple[str, int]],
) -> list[Point]:
    """Return the path of one leg of a line: straight, or around the boxes in its way.

    ``walls`` are the boxes together with the space around them that lines keep clear, the widest first.
    """
    own = {name: _grown(boxes[name], -0.5) for name in line[:2]}
    for clear, outer in walls:
        near: dict[str, Rectangle] = {}
        corners: dict[str, list[Point]] = {}
        clear_of: dict[tuple[Point, Point], int] = {}
        path: list[Point] | None = [start, end]
        while path is not None:
            hit = _hit(path, outer, own, near)
            if not hit:
                break
            near |= hit
            corners |= {name: _corners(boxes[name], clear, [turns[name, k] for k in range(4)]) for name in hit}
            path = _shortest(start, end, corners, [*near.values()], clear_of) if len(near) <= MOST else None
        if path is not None:
            turned = set(path)
            for name, at in corners.items():
                turns.update((name, k) for k, corner in enumerate(at) if corner in turned)
            return path
    return [start, end]


def _hit(
    path: Sequence[Point],
    walls: Mapping[str, Rectangle],
    own: Mapping[str, Rectangle],
    known: Mapping[str, Rectangle],
) -> dict[str, Rectangle]:
    """Return the walls that a path passes through, except those in ``known``; ``own`` replaces some walls."""
    found = {}
    for name, outer in _around(path, walls):
        wall = own.get(name, outer)
        if name not in known and _cut(path, wall):
            found[name] = wall
    return found


def _around(path: Sequence[Point], boxes: Mapping[str, Rectangle]) -> list[tuple[str, Rectangle]]:
    """Return the boxes that meet the rectangle around a path."""
    xs, ys = [x for x, _ in path], [y for _, y in path]
    left, top, right, bottom = min(xs), min(ys), max(xs), max(ys)
    return [(n, b) for n, b in boxes.items() if b[0] < right and b[2] > left and b[1] < bottom and b[3] > top]


def _cut(path: Sequence[Point], box: Rectangle) -> bool:
    return any(_crosses(a, b, box) for a, b in pairwise(path))


def _corners(box: Rectangle, clear: float, taken: Sequence[int]) -> list[Point]:
    """Return the corners at which a line may turn. A line that turned there earlier keeps its own lane."""
    out = []
    for (x, y), lanes in zip(((0, 1), (0, 3), (2, 1), (2, 3)), taken, strict=True):
        by = clear + LANE * (lanes % LANES)
        grown = _grown(box, by)
        out.append((grown[x], grown[y]))
    return out


def _shortest(
    start: Point,
    end: Point,
    corners: Mapping[str, Sequence[Point]],
    walls: Sequence[Rectangle],
    clear_of: dict[tuple[Point, Point], int],
) -> list[Point] | None:
    """Return a short path that avoids all walls and turns only at ``corners``; `None` if there is none. ``clear_of``
    caches the number of walls, in order, that a leg is known to clear; -1 if it crosses one.
    """
    points = [end, *dict.fromkeys(corner for some in corners.values() for corner in some)]
    best: dict[Point, float] = {start: 0.0}
    queue: list[tuple[float, float, Point, list[Point]]] = [(0.0, 0.0, start, [start])]
    while queue:
        _, gone, here, path = heapq.heappop(queue)
        if here == end:
            return path
        if gone > best[here]:
            continue
        for there in points:
            far = gone + hypot(there[0] - here[0], there[1] - here[1])
            if far >= best.get(there, inf):
                continue
            known = clear_of.get((here, there), 0)
            if known >= 0:
                crossed = any(_crosses(here, there, wall) for wall in walls[known:])
                clear_of[here, there] = known = -1 if crossed else len(walls)
            if known >= 0:
                best[there] = far
                left = hypot(end[0] - there[0], end[1] - there[1])
                heapq.heappush(queue, (far + EAGER * left, far, there, [*path, there]))
    return None
