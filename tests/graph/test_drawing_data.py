"""Interactions and groups of a drawing, its claims, and dagitty files with prose before the graph."""

import pytest

from espalier.core.errors import GraphError
from espalier.core.graph.dag import Dag
from espalier.core.graph.formats import read_graph
from espalier.core.graph.implied import implied, without
from espalier.core.graph.merge import inside, merge
from espalier.core.graph.roles import Roles

ROLES = Roles(outcome=("risk",), protected=("sex",), admissible=("job",))
DRAWN = Dag(
    (("sex", "risk"), ("job", "risk")),
    interactions=((("sex", "job"), "risk"),),
    groups={"person": ("sex", "age")},
)


def test_interactions_and_groups_travel_with_the_drawing():
    assert Dag.from_json(DRAWN.to_json()) == DRAWN
    assert "interactions" not in Dag().to_json()
    assert "groups" not in Dag().to_json()


def test_an_interaction_without_its_arrows_is_kept_and_ignored():
    erased = DRAWN.without([("sex", "risk")])
    assert DRAWN.drawn_interactions == DRAWN.interactions == erased.interactions
    assert erased.drawn_interactions == ()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"interactions": [{"causes": ["sex"], "effect": "risk"}]}, "two or more different causes"),
        ({"interactions": [{"causes": ["sex", "risk"], "effect": "risk"}]}, "two or more different causes"),
        ({"interactions": [["sex", "job", "risk"]]}, '"effect": column'),
        ({"groups": {"a": ["sex"], "b": ["sex"]}}, "in two groups"),
        ({"groups": ["sex"]}, "groups must be an object"),
    ],
)
def test_bad_interactions_and_groups_are_refused(more, said):
    with pytest.raises(GraphError, match=said):
        Dag.from_json({"edges": [], **more})


def test_names_in_them_must_be_columns():
    with pytest.raises(GraphError, match="an interaction of the graph contains 'job'"):
        Dag(interactions=((("sex", "job"), "risk"),)).check_columns(["sex", "risk"])
    with pytest.raises(GraphError, match="has the name of a column"):
        Dag(groups={"sex": ("age",)}).check_columns(["sex", "age"])


def test_they_are_merged_and_cut_with_the_columns():
    both = merge(Dag((("sex", "risk"), ("job", "risk"))), DRAWN, {})
    assert both.interactions == DRAWN.interactions
    assert both.groups == DRAWN.groups
    kept, _ = inside(DRAWN, ("sex", "risk"))
    assert kept.interactions == ()
    assert kept.groups == {"person": ("sex",)}


@pytest.mark.parametrize("edges", [(), (("job", "age"),), (("job", "risk"),)])
def test_a_drawing_makes_no_claim_about_columns_that_it_does_not_name(edges):
    assert implied(Dag(edges), "risk", ROLES).separated is None


def test_a_drawing_claims_what_it_shows():
    assert implied(Dag((("sex", "job"), ("job", "risk"))), "risk", ROLES).separated is True
    drawn = Dag((("sex", "risk"),))
    now = implied(drawn, "risk", ROLES)
    assert now.separated is False
    assert without(drawn, [("sex", "risk")], "risk", ROLES, now).separated is None


GRAPH = 'dag {\nage [pos="0.1,0.2"]\nage -> risk\n}\n'


@pytest.mark.parametrize(
    "prose",
    [
        "Graph of the readmission study (2024): see below.\n",
        "graph: for review\n\n",
        "network of causes\n\n",
        "variable names are from the code book\n",
        "{draft}\n",
        "[draft]\n",
        "Drawn on Monday, see notes.\n\n",
    ],
)
def test_prose_before_dagitty_code_is_left_out(prose):
    for code in (GRAPH, "age 1 @0.1,0.2\nrisk O @0.3,0.2\n\nage risk\n"):
        if code is not GRAPH and not prose.endswith("\n\n"):
            continue
        found = read_graph(prose + code)
        assert [(e.left, e.right) for e in found.edges] == [("age", "risk")]
        assert "before the graph" in str(found.remarks[0])
