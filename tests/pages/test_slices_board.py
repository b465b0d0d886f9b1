"""The board of linked tables: the person, this visit and the next visit side by side."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from espalier.core.errors import EspalierError
from espalier.core.graph.formats import read_graph
from espalier.core.graph.implied import implied
from espalier.core.project.file import Project
from espalier.core.project.linked import BEFORE
from espalier.pages.board import board, drawing, slices
from espalier.pages.session import restore
from espalier.pages.session.session import Session
from tests.pages.test_drawing import send
from tests.support.app import ROOT, go, sample, state

BACK, INSULIN, SEVERITY, GAP = "visits.back", "visits.insulin", "visits.severity", "visits.days since the visit before"
NEXT_BACK, NEXT_INSULIN, NEXT_GAP = "next visit: back", "next visit: insulin", "next visit: days since the visit before"
START = ((SEVERITY, SEVERITY), (INSULIN, BACK), (BACK, BACK))


@pytest.fixture
def opened() -> Session:
    session = Session()
    session.open(Project.load(ROOT / "sample_data" / "clinic.json"))
    return session


def shown(session: Session) -> dict[str, Any]:
    project = session.project
    return board.data(session, implied(project.dag, project.plan.target, project.roles))


def between(session: Session) -> tuple[tuple[str, str], ...]:
    assert session.project.linked is not None
    return session.project.linked.arrows


def said(session: Session) -> str:
    message = session.drafts.board.message
    assert message is not None
    return ("bad: " if message["bad"] else "") + message["text"]


def test_three_slices_are_side_by_side_with_a_copy_of_every_step_column(opened: Session) -> None:
    sent = shown(opened)
    assert [s["title"] for s in sent["slices"]] == ["Person", "This visit", "Next visit"]
    person, now, later = (s["boxes"] for s in sent["slices"])
    assert set(person) == {"patients.sex", "patients.age", "patients.region", "visits per person"}
    assert set(now) == {"visits.admitted", GAP, SEVERITY, INSULIN, BACK}
    assert set(later) == {NEXT_GAP, "next visit: severity", NEXT_INSULIN, NEXT_BACK}
    at = {n["id"]: n for n in sent["nodes"]}
    assert set(at) == {*person, *now, *later}
    for left, right in ((person, now), (now, later)):
        ends = max(at[n]["x"] + at[n]["wide"] / 2 for n in left), min(at[n]["x"] - at[n]["wide"] / 2 for n in right)
        assert ends[0] + 36 < ends[1], "the borders of the slices do not touch"
    assert at[BACK]["label"].startswith("back\n")
    assert at[NEXT_BACK]["color"] == at[BACK]["color"]
    assert [INSULIN, NEXT_BACK] in sent["arrows"]
    drawn = {(e["from"], e["to"]) for e in sent["edges"]}
    assert (INSULIN, NEXT_BACK) in drawn
    assert (SEVERITY, BACK) in drawn
    assert "next visit are side by side" in sent["alt"]


def test_an_arrow_to_the_next_visit_is_drawn_erased_and_undone(opened: Session) -> None:
    send(opened, {"do": "draw", "arrow": [SEVERITY, NEXT_BACK]})
    assert between(opened) == (*START, (SEVERITY, BACK))
    assert said(opened) == f"{SEVERITY} → {NEXT_BACK} is drawn. It leads from one visit to the next."
    edges = opened.project.dag.edges
    send(opened, {"do": "erase", "arrows": [[INSULIN, NEXT_BACK], [SEVERITY, BACK]]}, start=2)
    assert between(opened) == ((SEVERITY, SEVERITY), (BACK, BACK), (SEVERITY, BACK))
    assert (SEVERITY, BACK) not in opened.project.dag.edges, "an arrow within a visit"
    send(opened, {"do": "undo"}, {"do": "undo"}, start=3)
    assert (between(opened), opened.project.dag.edges) == (START, edges)
    send(opened, {"do": "redo"}, start=5)
    assert between(opened) == (*START, (SEVERITY, BACK))
    kept = restore.kept(opened)
    assert kept is not None
    again = restore.read(kept).project
    assert again is not None
    assert again.linked == opened.project.linked


def test_the_days_between_visits_are_linked_to_another_visit_only(opened: Session) -> None:
    send(opened, {"do": "draw", "arrow": [BACK, NEXT_GAP]}, {"do": "draw", "arrow": [GAP, NEXT_BACK]})
    assert between(opened) == (*START, (BACK, GAP), (GAP, BACK))
    assert all(a["path"] for a in shown(opened)["edges"])
    send(opened, {"do": "draw", "arrow": [GAP, BACK]}, start=3)
    assert "can only lead from one visit to the next" in said(opened)
    send(opened, {"do": "draw", "arrow": ["patients.age", NEXT_GAP]}, start=4)
    assert said(opened).startswith("bad: ")
    assert between(opened) == (*START, (BACK, GAP), (GAP, BACK))


@pytest.mark.parametrize("effect", [BACK, INSULIN, "patients.age", "visits per person", GAP])
def test_nothing_leads_from_the_next_visit_back(opened: Session, effect: str) -> None:
    before = opened.project
    send(opened, {"do": "draw", "arrow": [NEXT_INSULIN, effect]})
    assert said(opened).startswith(f"bad: Refused: {slices.BACK}")
    assert opened.project == before


@pytest.mark.parametrize(
    ("arrow", "drawn"),
    [
        (["patients.sex", NEXT_BACK], ("patients.sex", BACK)),
        ([NEXT_INSULIN, NEXT_BACK], (INSULIN, BACK)),
        (["visits.admitted", NEXT_BACK], ("visits.admitted", BACK)),
    ],
)
def test_an_arrow_that_holds_at_every_visit_is_drawn_at_this_visit(
    opened: Session, arrow: list[str], drawn: tuple[str, str]
) -> None:
    send(opened, {"do": "draw", "arrow": arrow})
    assert between(opened) == START
    assert opened.project.dag.edges[-1] == drawn
    assert said(opened).endswith("It holds at every visit.")


def test_boxes_and_arrows_of_the_next_visit_are_selected_and_moved(opened: Session) -> None:
    send(opened, {"do": "select", "columns": [INSULIN, NEXT_BACK], "arrow": None})
    assert shown(opened)["selected"] == {"columns": [INSULIN, NEXT_BACK], "arrow": None}
    assert drawing.selected(opened) == ((INSULIN,), None), "the fields know columns only"
    send(opened, {"do": "select", "columns": [], "arrow": [INSULIN, NEXT_BACK]}, start=2)
    assert shown(opened)["selected"] == {"columns": [], "arrow": [INSULIN, NEXT_BACK]}
    assert opened.drafts.board.later == BACK
    at = {n["id"]: [n["x"], n["y"]] for n in shown(opened)["nodes"]}
    at[NEXT_BACK][1] += 55
    send(opened, {"do": "move", "at": at}, start=3)
    opened.project.check_text()
    moved = Project.loads(opened.project.dumps())
    fresh = Session()
    fresh.open(moved)
    assert {n["id"]: [n["x"], n["y"]] for n in shown(fresh)["nodes"]} == at
    send(opened, {"do": "share", "pair": [INSULIN, NEXT_BACK]}, start=4)
    assert said(opened).startswith("bad: ")


def test_a_column_from_the_tray_arrives_in_its_slices(opened: Session) -> None:
    opened.drafts.board.view = "linked"
    sent = shown(opened)
    assert "patients.sex" in sent["tray"]
    before = {n["id"]: (n["x"], n["y"]) for n in sent["nodes"]}
    send(opened, {"do": "bring", "column": "patients.sex", "at": [9000, 700]})
    at = {n["id"]: (n["x"], n["y"]) for n in shown(opened)["nodes"]}
    assert at["patients.sex"] == (before["patients.age"][0], 700), "dropped at the next visit, placed with the person"
    assert {n: at[n] for n in before} == before, "nothing else moves"


def test_a_column_and_its_arrows_are_set_aside_together(opened: Session) -> None:
    send(opened, {"do": "draw", "arrow": [GAP, NEXT_BACK]})
    schema = opened.project.schema
    opened.editor.leave_out(INSULIN)
    assert between(opened) == ((SEVERITY, SEVERITY), (BACK, BACK), (GAP, BACK))
    opened.editor.change_schema(schema)
    assert set(between(opened)) == {*START, (GAP, BACK)}


def test_a_group_cannot_have_the_name_of_a_box(opened: Session) -> None:
    send(opened, {"do": "group", "columns": [INSULIN, SEVERITY], "name": NEXT_BACK})
    assert "the name of a box at the next visit" in said(opened)
    send(opened, {"do": "group", "columns": [INSULIN, SEVERITY], "name": "care"}, start=2)
    sent = shown(opened)
    assert "care" in sent["slices"][1]["boxes"]
    assert ["care", NEXT_BACK] in [b["at"] for b in sent["bundles"]]


@pytest.mark.parametrize("kind", ["dot", "graphml", "csv"])
def test_graph_files_hold_the_arrows_between_visits(app: AppTest, kind: str) -> None:
    go(sample(app, "clinic"), "structure")
    project = state(app).project
    choose = next(s for s in app.selectbox if s.label == "Format")
    choose.select(kind).run()
    text = next(c.value for c in app.code)
    assert INSULIN + BEFORE in text
    assert len(read_graph(text, f"graph.{kind}").edges) == 6
    state(app).editor.redraw(project.dag.without(project.dag.edges), between=())
    area = next(a for a in app.text_area if a.label == "Or paste its text")
    area.set_value(text).run()
    next(b for b in app.button if b.label == "Replace the drawing with it").click().run()
    assert not app.exception
    assert set(between(state(app))) == set(START)
    assert set(state(app).project.dag.edges) == set(project.dag.edges)
    state(app).editor.undo()
    assert between(state(app)) == ()


def test_the_fields_follow_the_board(app: AppTest) -> None:
    go(sample(app, "clinic"), "structure")
    send(state(app), {"do": "select", "columns": [NEXT_BACK], "arrow": None})
    app.run()
    effect = next(s for s in app.selectbox if s.label == "Column of the next visit")
    assert effect.value == BACK
    causes = next(m for m in app.multiselect if m.label == "Its causes at the previous visit")
    assert causes.value == [INSULIN, BACK]
    causes.unselect(INSULIN).run()
    assert between(state(app)) == ((SEVERITY, SEVERITY), (BACK, BACK))
    assert state(app).editor.undo()
    assert between(state(app)) == START
    listed = [m.value for m in app.markdown]
    assert any("at a visit" in text and "at the next" in text for text in listed)


def test_a_project_file_refuses_a_group_named_like_a_box(opened: Session) -> None:
    given = opened.project.to_json()
    given["dag"]["groups"] = {NEXT_BACK: [INSULIN]}
    with pytest.raises(EspalierError, match="the name of a box at the next visit"):
        Project.from_json(given)


def test_a_single_table_has_no_slices() -> None:
    session = Session()
    session.open(Project.load(ROOT / "sample_data" / "readmission.json"))
    assert shown(session)["slices"] == []
    assert slices.copies(session.project, session.project.schema.names) == []
