"""Lines of a drawing pass around boxes, on the board and in the report, in the same way every time."""

import itertools
import random
import re

import pytest

from espalier.core.graph.layout import HIGH, WIDE, layout
from espalier.core.graph.routes import before_end, behind, rectangle, routed, svg_path
from espalier.core.report.release_picture import release_picture
from tests.graph.test_drawing_layout import drawing

BOARDS = [(8, 9), (20, 24), (48, 15), (48, 60), (48, 90), pytest.param(200, 260, marks=pytest.mark.nightly)]


def crossed(path, box):
    """Return whether a path passes through a box, by checking closely spaced points on it."""
    for (x, y), (u, v) in itertools.pairwise(path):
        steps = 2 + int(abs(u - x) + abs(v - y))
        for k in range(steps + 1):
            a, b = x + (u - x) * k / steps, y + (v - y) * k / steps
            if box[0] + 2 < a < box[2] - 2 and box[1] + 2 < b < box[3] - 2:
                return True
    return False


def hidden(boxes, paths):
    return [(line, n) for line, path in paths.items() for n, box in boxes.items() if crossed(path, box)]


@pytest.mark.parametrize(("columns", "arrows"), BOARDS)
def test_no_line_passes_behind_a_box(columns, arrows):
    names, edges = drawing(columns, arrows)
    found = layout(names, edges, [edges[-1][1]])
    boxes = {n: rectangle(at, WIDE, HIGH) for n, at in found.places.items()}
    for bends in (found.routes, {}):
        paths = routed(boxes, edges, bends)
        assert list(paths) == edges
        assert hidden(boxes, paths) == behind(boxes, paths) == []
        assert paths == routed(boxes, edges, bends)
    straight = {(a, b): (found.places[a], found.places[b]) for a, b in edges}
    others = [(line, n) for line, n in hidden(boxes, straight) if n not in line]
    assert others, "straight lines would pass behind boxes"


def test_boxes_that_were_moved_are_passed_too():
    rng = random.Random(3)
    spots = [(180 * x, 60 * y) for x in range(8) for y in range(8)]
    boxes = {f"v{i}": rectangle(at, 160, 40) for i, at in enumerate(rng.sample(spots, 48))}
    lines = [tuple(rng.sample(sorted(boxes), 2)) for _ in range(60)]
    assert hidden(boxes, routed(boxes, lines)) == []


def test_a_line_without_a_free_path_is_straight_and_named():
    boxes = {"a": (0, 0, 10, 10), "b": (100, 0, 110, 10), "wall": (40, -1e6, 60, 1e6), "over": (-50, -20, 200, 30)}
    paths = routed(boxes, [("a", "b")])
    assert len(paths["a", "b"]) <= 4
    assert [line for line, _ in behind(boxes, paths)] == [("a", "b")]


def test_the_lines_of_one_side_are_spread_in_the_order_of_their_ends():
    boxes = {"y": rectangle((400, 0), 100, 40)} | {f"c{i}": rectangle((0, 60 * i - 120), 80, 30) for i in range(5)}
    ends = [routed(boxes, [(f"c{i}", "y") for i in range(5)])[f"c{i}", "y"][-1] for i in range(5)]
    assert {x for x, _ in ends} == {350}
    heights = [y for _, y in ends]
    assert heights == sorted(set(heights))
    assert -20 < heights[0] < heights[-1] < 20


def test_lines_between_the_same_boxes_do_not_coincide():
    boxes = {"a": rectangle((0, 0), 80, 40), "b": rectangle((300, 0), 80, 40)}
    paths = routed(boxes, [("a", "b"), ("a", "b", "share")])
    assert paths["a", "b"] != paths["a", "b", "share"]


def test_a_point_before_the_end_and_rounded_corners():
    assert before_end([(0, 0), (100, 0), (100, 50)], 60) == (90, 0)
    assert before_end([(0, 0), (40, 0)], 60) == (20, 0), "at most half of it"
    assert svg_path([(0, 0), (100, 0), (100, 50)]) == "M0 0L91 0Q100 0 100 9L100 50"


def points(path):
    """Points along an SVG path of lines and quadratic curves."""
    out: list[tuple[float, float]] = []
    for letter, text in re.findall(r"([MLQ])([-\d .]+)", path):
        v = [float(x) for x in text.split()]
        if letter != "M":
            (x, y), (a, b), (c, d) = out[-1], (v[0], v[1]), (v[-2], v[-1])
            if letter == "L":
                a, b = (x + c) / 2, (y + d) / 2
            for t in (k / 60 for k in range(1, 61)):
                s = 1 - t
                out.append((s * s * x + 2 * s * t * a + t * t * c, s * s * y + 2 * s * t * b + t * t * d))
        else:
            out.append((v[0], v[1]))
    return out


@pytest.mark.parametrize(("columns", "arrows"), BOARDS)
def test_no_line_of_the_report_passes_behind_a_box(columns, arrows):
    """Drawn and measured lines; those measured and not drawn have no route in the layout."""
    names, edges = drawing(columns, arrows)
    rng, linked = random.Random(1), sorted({n for e in edges for n in e})
    measured = edges[::2] + [tuple(rng.sample(linked, 2)) for _ in range(arrows // 4)]
    facts = {
        "project": {
            "schema": [{"name": n} for n in names],
            "roles": {},
            "plan": {"target": None},
            "dag": {"edges": [list(e) for e in edges]},
        },
        "edges": [list(e) for e in measured],
        "separations": [],
    }
    svg = release_picture(facts).whole
    number = r'="([-\d.]+)"'
    rects = [tuple(map(float, r)) for r in re.findall(rf"<rect x{number} y{number} width{number} height{number}", svg)]
    paths = re.findall(r'<path class="(?:line|thin|faded)"[^>]* d="([^"]+)"', svg)
    assert len(rects) == len(linked)
    assert len(paths) >= arrows
    left, top, wide, high = map(float, re.findall(r'viewBox="([^"]+)"', svg)[0].split())
    for path in paths:
        for x, y in points(path):
            assert left <= x <= left + wide
            assert top <= y <= top + high
            assert not any(a + 2 < x < a + w - 2 and b + 2 < y < b + h - 2 for a, b, w, h in rects)
