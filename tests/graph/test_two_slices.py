"""Separations over people and all their visits: the certificate on the unrolled graph."""

from __future__ import annotations

from dataclasses import replace

import pytest

from espalier.core.graph.separations import Separation
from espalier.core.graph.two_slices import TwoSlices, drawing_order, largest

COLUMNS = ("x", "y", "z", "g")
PLAIN = TwoSlices(("age", "region", "n"), "n", COLUMNS, COLUMNS, 4)
FENCE = Separation(("x",), ("region",), ("age", "g"), "fairness")
ARROWS = (("region", "z"), ("z", "y"))


@pytest.mark.parametrize("drawn", [(), ARROWS, (("region", "g"), ("g", "y")), (("region", "x"),)])
def test_the_largest_model_that_a_fence_allows_keeps_it_at_every_visit(drawn):
    slices = replace(PLAIN, drawn=drawn)
    wide = slices.widened(FENCE)
    assert set(wide.right) == ({"region", "y", "z"} if drawn == ARROWS else {"region"})
    assert "n" in wide.left
    assert largest(slices, [wide]).path(wide) is None
    assert largest(slices, [wide]).path(FENCE) is None


def test_a_leak_through_the_first_visit_is_found():
    wide = PLAIN.widened(FENCE)
    leaky = replace(largest(PLAIN, [wide]), block=[("region", "y"), ("x", "n")])
    assert leaky.path(wide) == ("y at visit 1", "region")


def test_a_leak_through_the_number_of_visits_is_found():
    wide = PLAIN.widened(FENCE)
    leaky = replace(largest(PLAIN, [wide]), block=[("region", "n")])
    assert leaky.path(wide) == ("n", "region")


def test_a_leak_through_an_earlier_visit_is_found():
    """The same visit's admissible column does not block it, because the path runs through earlier visits."""
    slices = replace(PLAIN, drawn=ARROWS)
    wide = slices.widened(FENCE)
    allowed = largest(slices, [wide])
    path = replace(allowed, before=[("z", "x")]).path(wide)
    assert path is not None
    assert path[-1] == "z at visit 1"
    path = replace(allowed, earlier=[("z", "x")], before=[]).path(wide)
    assert path is not None
    assert path[-1] == "z at visit 1"


def test_a_given_column_with_parents_of_both_sides_opens_a_path():
    """Conditioning on a common effect links its causes."""
    slices = replace(PLAIN, drawn=ARROWS)
    wide = slices.widened(FENCE)
    path = replace(largest(slices, [wide]), before=[("z", "g"), ("x", "g")]).path(wide)
    assert path is not None
    assert path[-1] == "z at visit 1"


def test_red_columns_are_drawn_last():
    wide = replace(PLAIN, drawn=ARROWS).widened(FENCE)
    assert drawing_order(COLUMNS, [wide]) == ("x", "g", "y", "z")


def test_two_fences_hold_together():
    slices = replace(PLAIN, person=("age", "region", "sex", "n"), drawn=ARROWS)
    wide = [slices.widened(FENCE), slices.widened(Separation(("y",), ("sex",), ("age",), "another"))]
    found = largest(slices, wide)
    assert [found.path(s) for s in wide] == [None, None]
