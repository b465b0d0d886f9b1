"""The layout of a drawing: causes on the left, few crossings, the same every time."""

import itertools
import random

import pytest

from espalier.core.graph.layout import HIGH, WIDE, layout


def drawing(columns, arrows, seed=0):
    rng = random.Random(seed)
    names = [f"v{i}" for i in range(columns)]
    edges: set[tuple[str, str]] = set()
    while len(edges) < arrows:
        a, b = sorted(rng.sample(range(columns), 2))
        edges.add((names[a], names[b]))
    return names, sorted(edges)


@pytest.mark.parametrize(("columns", "arrows"), [(8, 9), (20, 24), (48, 15), (48, 60), (200, 260)])
def test_effects_are_right_of_their_causes_and_boxes_do_not_overlap(columns, arrows):
    names, edges = drawing(columns, arrows)
    found = layout(names, edges, [edges[-1][1]])
    assert set(found.places) | set(found.apart) == set(names)
    assert not set(found.places) & set(found.apart)
    assert all(found.places[a][0] < found.places[b][0] for a, b in edges)
    for (x, y), (other, below) in itertools.combinations(found.places.values(), 2):
        assert abs(x - other) >= WIDE - 0.2 or abs(y - below) >= HIGH - 0.2
    assert all(HIGH / 2 - 0.2 <= y <= found.height - HIGH / 2 + 0.2 for _, y in found.places.values())
    assert found == layout(names, edges, [edges[-1][1]])


def test_the_outcome_stands_alone_on_the_right():
    edges = [("age", "risk"), ("age", "cost"), ("cost", "bill"), ("sex", "risk")]
    found = layout(["age", "sex", "risk", "cost", "bill", "ward"], edges, ["risk"])
    assert found.layers[-1] == ("risk",)
    assert found.apart == ("ward",)


def test_an_arrow_that_passes_a_layer_passes_between_its_boxes():
    edges = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d"), ("a", "c")]
    found = layout(list("abcd"), edges)
    (points,) = [found.routes["a", "d"]]
    assert len(points) == 4, "two on each side of two layers"
    for x, y in points:
        for left, at in found.places.values():
            assert abs(x - left) > WIDE / 2 + 1 or abs(y - at) >= HIGH / 2


@pytest.mark.parametrize("crossed", [[("a", "d"), ("b", "c")], [("a", "c"), ("b", "d")]])
def test_crossings_are_undone(crossed):
    found = layout(["a", "b", "c", "d"], crossed)
    ends = sorted((found.places[x][1], found.places[y][1]) for x, y in crossed)
    assert ends[0][1] < ends[1][1]


def test_many_causes_of_one_column_get_several_layers():
    names = [f"v{i}" for i in range(40)]
    found = layout([*names, "y"], [(n, "y") for n in names], ["y"])
    assert max(map(len, found.layers)) <= 10
    assert found.layers[-1] == ("y",)


def test_a_closed_group_is_one_box_even_if_groups_cause_each_other():
    edges = [("a", "b"), ("b", "c"), ("c", "y")]
    found = layout(["a", "b", "c", "y"], edges, ["y"], closed={"panel": ["a", "c"]})
    assert set(found.places) == {"panel", "b", "y"}
    assert set(found.routes) == {("panel", "b"), ("b", "panel"), ("panel", "y")}


def test_no_arrows_no_places():
    assert layout(["a", "b"], []).apart == ("a", "b")
    assert layout([], []).places == {}


@pytest.mark.parametrize(("columns", "arrows"), [(9, 6), (30, 24), (60, 90)])
def test_slices_are_side_by_side_and_hold_every_box(columns, arrows):
    names, edges = drawing(columns, arrows)
    slices = [names[::3], names[1::3], names[2::3]]  # so that some arrows lead back to an earlier slice
    high = {n: HIGH + 10 * (k % 3) for k, n in enumerate(names)}
    found = layout(names, edges, [edges[-1][1]], high=high, slices=slices)
    assert set(found.places) == set(names)
    for left, right in itertools.pairwise(slices):
        assert max(found.places[n][0] for n in left) + WIDE < min(found.places[n][0] for n in right)
    for (a, (x, y)), (b, (u, v)) in itertools.combinations(found.places.items(), 2):
        assert abs(x - u) >= WIDE - 0.2 or abs(y - v) >= (high[a] + high[b]) / 2 - 0.2
    assert set(found.routes) == set(edges)
    assert found == layout(names, edges, [edges[-1][1]], high=high, slices=slices)


def test_a_slice_without_arrows_or_boxes_has_no_gap():
    found = layout(["a", "b", "c"], [], slices=[["a", "b"], [], ["c"]])
    assert found.layers == (("a", "b"), ("c",))
    assert found.apart == ()
