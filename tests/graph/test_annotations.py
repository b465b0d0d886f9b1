"""Notes on arrows and columns are kept in the project file, checked, turned into advice, and reported."""

from __future__ import annotations

from dataclasses import replace

import pytest

from espalier.core.errors import GraphError
from espalier.core.graph.annotations import Annotation
from espalier.core.graph.dag import Dag
from espalier.core.graph.merge import differences, inside, merge
from espalier.core.methods import method_of
from espalier.core.methods.prism_frame import advice
from espalier.core.planning.preview import preview
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema

A, B = Annotation("seen twice", "contested", "Smith 2019"), Annotation(belief="established", may_break=True)
DAG = Dag((("a", "y"), ("b", "y"), ("y", "c")), annotations={("a", "y"): A, ("y", "c"): B, ("b",): Annotation("n")})


def test_annotations_survive_the_file():
    assert Dag.from_json(DAG.to_json()) == DAG


def test_a_file_without_annotations_reads_and_stays_as_it_was():
    old = {"edges": [["a", "y"]], "notes": {"a": "an old note"}, "positions": {}}
    assert Dag.from_json(old).to_json() == old


@pytest.mark.parametrize(
    "item",
    [
        {"of": []},
        {"of": ["a", "b", "c"]},
        {"of": "a"},
        {"of": ["a"], "belief": "maybe"},
        {"of": ["a"], "note": 3},
        {"of": ["a"], "may_break": "yes"},
        {"of": ["a"], "colour": "red"},
        {"of": ["a"], "note": "x" * 5000},
        "a",
    ],
)
def test_broken_annotations_are_refused(item):
    with pytest.raises(GraphError):
        Dag.from_json({"edges": [], "annotations": [item]})


def test_an_arrow_that_is_erased_and_drawn_again_has_its_annotation():
    less = DAG.without([("a", "y")])
    assert less.contested == ()
    assert less.drawn("a", "y").contested == (("a", "y"),)


def test_an_empty_annotation_is_taken_away():
    assert ("a", "y") not in DAG.annotated(("a", "y"), Annotation()).annotations


def test_a_refused_arrow_names_the_cycle_it_would_close():
    with pytest.raises(GraphError, match="would close a cycle: c → a → y → c") as error:
        DAG.drawn("c", "a")
    assert error.value.data["cycle"] == ("c", "a", "y", "c")
    assert DAG.path("c", "a") is None


def project(**plan):
    schema = Schema(tuple(Column(n, "categorical", categories=("0", "1")) for n in "abcy"))
    return Project("t", schema, Plan("prism", 1.0, 1e-9, target="y", options=plan), DAG)


def test_advice_on_the_regime():
    causal, graphical, predictive = (advice(project(regime=r)) for r in ("causal", "graphical", "predictive"))
    assert ["a → y" in s and "without it, a would" in s for s in causal] == [True], "y → c does not concern Pa(Y)"
    assert any("y → c" in s and "causal regime" in s for s in graphical)
    assert any("contested" in s for s in graphical)
    assert len(predictive) == 1
    tree = project(regime="causal").with_plan(method="mst")
    assert method_of(tree.plan).guidance.advice(tree) == ()
    shown = preview(project(regime="graphical")).warnings
    assert set(graphical) <= set(shown)


def test_a_fragile_cause_is_said_under_the_causal_regime_too():
    fragile = replace(project(regime="causal"), dag=DAG.annotated(("b", "y"), Annotation(may_break=True)))
    assert any("b → y" in s for s in advice(fragile))


def test_the_report_shows_what_was_said():
    from espalier.core.report.page import _notes

    html = _notes({"schema": [{"name": "b"}], "dag": {**DAG.to_json(), "notes": {"<old>": "kept"}}})
    for text in (
        "a → y (contested; source: Smith 2019; seen twice)",
        "may break elsewhere",
        "b (n)",
        "&lt;old&gt;: kept",
    ):
        assert text in html
    left_out = _notes({"schema": [], "dag": DAG.to_json()})
    assert "b (n)" not in left_out


MINE = Dag((("a", "b"), ("b", "c"), ("c", "d")), annotations={("c", "d"): A})
THEIRS = Dag((("b", "a"), ("c", "d"), ("d", "e")), annotations={("c", "d"): B, ("e",): B})


def test_differences_are_listed_once_each():
    found = {(d.kind, d.of) for d in differences(MINE, THEIRS)}
    assert found == {
        ("reversed", ("a", "b")),
        ("arrow", ("b", "c")),
        ("arrow", ("d", "e")),
        ("annotation", ("c", "d")),
    }
    assert differences(MINE, MINE) == ()


def test_merging_takes_the_side_that_was_settled_on():
    found = differences(MINE, THEIRS)
    mine, theirs = (merge(MINE, THEIRS, dict.fromkeys(found, side)) for side in ("mine", "theirs"))
    assert mine.edges == MINE.edges
    assert mine.annotation("c", "d") == A
    assert mine.annotation("e") == B, "notes that only they contain are kept"
    assert set(theirs.edges) == set(THEIRS.edges)
    assert theirs.annotation("c", "d") == B
    assert differences(theirs, THEIRS) == ()


def test_a_merge_that_closes_a_cycle_is_refused():
    mine, theirs = Dag((("a", "b"),)), Dag((("b", "c"), ("c", "a")))
    settled = {d: "theirs" if d.mine is None else "mine" for d in differences(mine, theirs)}
    with pytest.raises(GraphError, match="cycle"):
        merge(mine, theirs, settled)


def test_their_unknown_columns_are_named():
    kept, odd = inside(THEIRS, ("a", "b", "c", "d"))
    assert odd == ("e",)
    assert kept.edges == (("b", "a"), ("c", "d"))
    assert ("e",) not in kept.annotations
