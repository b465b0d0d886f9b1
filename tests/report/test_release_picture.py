"""The picture of a release: what was drawn, measured and refused, in the layout of the board."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from espalier.core.graph.dag import Dag
from espalier.core.graph.layout import layout
from espalier.core.graph.roles import Roles
from espalier.core.report.drawing_picture import drawing_picture
from espalier.core.report.release_picture import release_picture


def facts(edges, measured, separations=(), roles=None, groups=None, names=None):
    names = names or sorted({n for e in (*edges, *measured) for n in e})
    return {
        "project": {
            "schema": [{"name": n} for n in names],
            "roles": roles or {},
            "plan": {"target": None},
            "dag": {"edges": [list(e) for e in edges], "groups": groups or {}},
        },
        "edges": [list(e) for e in measured],
        "separations": list(separations),
    }


FENCE = {"left": ["y"], "right": ["s"], "given": ["a"]}


def lines(svg, kind):
    return re.findall(rf'<path class="{kind}"', svg)


def test_each_line_says_what_became_of_it():
    made = release_picture(
        facts([("s", "a"), ("a", "y"), ("s", "y"), ("b", "y")], [("s", "a"), ("a", "y"), ("a", "b")], [FENCE])
    )
    assert len(lines(made.whole, "line")) == 2, "drawn and measured"
    assert len(lines(made.whole, "thin")) == 1, "measured, not drawn: a and b"
    assert len(lines(made.whole, "faded")) == 1, "drawn, not measured: b and y"
    assert len(lines(made.whole, "refused")) == 1, "the fence refuses s and y"
    assert len(lines(made.before, "line")) == 4
    assert len(lines(made.after, "thin")) == 3
    assert (made.apart, made.unseen, made.refused) == ((), 0, 1)


def test_the_places_are_those_of_the_board():
    edges = [("s", "a"), ("a", "y"), ("b", "y")]
    made = release_picture(facts(edges, edges))
    found = layout(["a", "b", "s", "y"], edges, wide=dict.fromkeys("absy", 26.0), high=30)
    for x, y in found.places.values():
        assert f'<text x="{x:.0f}" y="{y + 5:.0f}">' in made.whole


def test_without_a_drawing_the_measured_pairs_are_the_picture():
    made = release_picture(facts([], [("a", "b"), ("b", "c")], names=["a", "b", "c", "d"]))
    assert made.before == ""
    assert len(lines(made.whole, "thin")) == 2
    assert made.apart == ("d",)
    assert release_picture(facts([], [], names=["a"])).whole == ""


def test_many_columns_are_shown_as_groups_and_every_name_is_escaped():
    edges = [(f"c{i}", "<y>") for i in range(30)]
    groups = {"all & more": [f"c{i}" for i in range(30)]}
    made = release_picture(facts(edges, edges, groups=groups))
    assert made.whole.count("<rect") == 2
    assert len(lines(made.whole, "line")) == 1
    ET.fromstring(made.whole)
    assert release_picture(facts(edges[:5], edges, groups=groups)).whole.count("<rect") == 6, "few need no groups"


def test_a_line_is_as_wide_as_its_link_is_strong():
    """Strengths are those of the released rows; a refused pair has one only if its score was bought."""
    told = facts([("s", "a"), ("a", "y"), ("s", "y")], [("s", "a"), ("a", "y")], [FENCE])
    told |= {
        "rows": 1000,
        "links": [
            {"columns": ["s", "a"], "strength": 0.2, "noise": 0.01},
            {"columns": ["a", "y"], "strength": 0.02, "noise": 0.03},
        ],
    }
    made = release_picture(told)
    assert 'class="line" style="stroke-width:4.8"' in made.whole
    assert len(lines(made.whole, "drowned")) == made.drowned == 1, "noise alone would explain a and y"
    assert 'class="refused" d=' in made.whole, "no strength was bought for s and y"
    told["explained"] = {"refused": [{"columns": ["s", "y"], "score": 200.0}]}
    assert 'class="refused" style="stroke-width:3.0"' in release_picture(told).whole
    assert not release_picture(facts([("a", "y")], [("a", "y")])).weighed, "an older release states none"


def test_causes_that_act_together_are_marked_where_their_arrows_end():
    told = facts([("a", "y"), ("b", "y"), ("c", "y")], [("a", "y")])
    told["project"]["dag"]["interactions"] = [
        {"causes": ["a", "b"], "effect": "y"},
        {"causes": ["a", "z"], "effect": "y"},
    ]
    made = release_picture(told)
    assert "<title>a and b act together on y</title>" in made.whole
    assert made.whole.count('class="together"') == made.before.count('class="together"') == 1, "z has no arrow"
    assert 'class="together"' not in made.after, "it is not a measured pair"
    dag = Dag.from_json(told["project"]["dag"])
    assert "a and b act together" in drawing_picture(("a", "b", "c", "y"), dag, Roles(), "y")
    ET.fromstring(made.whole)


def test_a_visit_before_has_its_box():
    told = facts([("v.a", "v.b"), ("v.a@before", "v.b")], [("v.a", "v.b")], names=["v.a", "v.b"])
    told["tables"] = {"steps": [{"parent": "v.a@before", "column": "v.b"}, {"parent": "position", "column": "v.b"}]}
    made = release_picture(told)
    assert made.whole.count("<rect") == 3
    assert len(lines(made.whole, "line")) == 2
    assert lines(made.whole, "faded") == []


def test_person_previous_visit_and_this_visit_are_side_by_side():
    names = ["p.age", "p.sex", "v.a", "v.b"]
    arrows = [("p.age", "v.b"), ("v.a@before", "v.a"), ("v.b@before", "v.b"), ("v.b", "v.a")]
    told = facts(arrows, arrows[:1], names=names)
    link = {"of": "p", "by": "id", "order": "at", "keep": 3}
    told["project"]["tables"] = {"p": {"key": "id"}, "v": link}
    svg = release_picture(told).whole
    boxes = re.findall(r"<title>([^<]*)</title><rect x=\"(-?\d+)\" y=\"-?\d+\" width=\"(\d+)\"", svg)
    left, right = ({name: float(x) + part * float(wide) for name, x, wide in boxes} for part in (0, 1))
    assert set(left) == {"p.age", "v.a@before", "v.b@before", "v.a", "v.b"}
    assert right["p.age"] < min(left["v.a@before"], left["v.b@before"])
    assert max(right["v.a@before"], right["v.b@before"]) < min(left["v.a"], left["v.b"])
