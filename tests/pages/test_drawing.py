"""Messages of the drawing board are checked, applied, undone, shown, and kept over a reload."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from espalier.core.errors import EspalierError
from espalier.core.graph.annotations import Annotation
from espalier.core.graph.dag import Dag
from espalier.core.graph.implied import implied
from espalier.core.graph.roles import Roles
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.pages.board import board, boxes, drawing
from espalier.pages.session import restore
from espalier.pages.session.drafts import Field
from espalier.pages.session.session import KEY, Session
from espalier.pages.structure import arrow_fields, arrow_table, effects, implications, merging
from tests.support.app import at_home, sample, start

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("a", "b", "c", "y", "z")


def fresh(names: tuple[str, ...] = NAMES, edges: tuple[tuple[str, str], ...] = (), **columns: Any) -> Session:
    state = Session()
    schema = Schema(tuple(Column(n, "categorical", categories=("0", "1"), **columns) for n in names))
    state.open(Project("t", schema, Plan("prism", 1.0, 1e-9, fair=False), Dag(edges)))
    return state


def send(state: Session, *actions: dict[str, Any], board: str = "one", start: int = 1) -> Session:
    listed = [{"n": start + k, **action} for k, action in enumerate(actions)]
    drawing.take(state, {"board": board, "list": listed})
    return state


def edges(state: Session) -> tuple[tuple[str, str], ...]:
    return state.project.dag.edges


def test_arrows_are_taken_once_however_often_they_are_sent() -> None:
    state = send(fresh(), {"do": "draw", "arrow": ["a", "y"]}, {"do": "erase", "arrows": [["a", "y"]]})
    send(state, {"do": "draw", "arrow": ["a", "y"]}, {"do": "erase", "arrows": [["a", "y"]]}, {"do": "undo"})
    assert edges(state) == (("a", "y"),), "the first two had been taken before, but not the undo"
    send(state, {"do": "draw", "arrow": ["b", "y"]}, board="two")
    assert edges(state) == (("a", "y"), ("b", "y")), "another board counts from the beginning"


@pytest.mark.parametrize("name", ["annotate", "pair-1"])
def test_a_field_that_repeats_what_it_shows_leaves_the_selection(monkeypatch, name: str) -> None:
    """A browser that is interrupted in the middle of a page may send a field's value again."""
    state = send(fresh(), {"do": "select", "columns": ["a", "y"]})
    shown, take = {
        "annotate": (("y",), lambda: arrow_fields._take_selected(state)),
        "pair-1": ("y", lambda: arrow_fields._take_pair(state, 1, ["a", "y"])),
    }[name]
    state.drafts.fields[name] = Field("key", shown, shown, None)
    monkeypatch.setattr("streamlit.session_state", {"key": shown})
    take()
    assert drawing.selected(state) == (("a", "y"), None)
    monkeypatch.setattr("streamlit.session_state", {"key": ("b",) if name == "annotate" else "b"})
    take()
    assert drawing.selected(state) == ((("b",) if name == "annotate" else ()), None), "another value is a choice"


def test_a_forged_cycle_is_refused_and_named() -> None:
    state = send(fresh(edges=(("a", "b"), ("b", "c"))), {"do": "draw", "arrow": ["c", "a"]})
    assert edges(state) == (("a", "b"), ("b", "c"))
    message = state.drafts.board.message
    assert message is not None
    assert message["bad"]
    assert "c → a → b → c" in message["text"]


@pytest.mark.parametrize(
    "action",
    [
        {"do": "draw", "arrow": ["a", "nobody"]},
        {"do": "draw", "arrow": "ab"},
        {"do": "draw", "arrow": ["a", "a"]},
        {"do": "draw", "arrow": ["a", ["y"]]},
        {"do": "role", "column": "a", "role": "king"},
        {"do": "role", "column": None, "role": "outcome"},
        {"do": "move", "at": {"a": [1, "x"]}},
        {"do": "move", "at": {"a": [1e12, 0]}},
        {"do": "move", "at": {"a": [True, 0]}},
        {"do": "move", "at": [1, 2]},
        {"do": "select", "columns": ["nobody"]},
        {"do": "width", "wide": 3},
        {"do": "explode"},
        {"do": "share", "pair": ["a", "a"]},
        {"do": "separate", "columns": ["a"]},
        {"do": "separate", "columns": ["a", "b", "b"]},
        {"do": "unlink", "link": ["a", "b", "apart"]},
        {"do": "unlink", "link": ["a", "b"]},
        {"do": "unlink", "link": ["a", "nobody", "b", "together"]},
        {"do": "together", "columns": ["a"]},
        {"do": "group", "columns": ["a", "b"], "name": "y"},
        {"do": "group", "columns": ["a", "b"], "name": " "},
        {"do": "group", "columns": ["a", "b"], "name": "x" * 41},
        {"do": "group", "columns": ["a", "b"]},
        {"do": "group", "columns": ["a", "nobody"], "name": "labs"},
        {"do": "group", "columns": ["a"], "name": "labs"},
        {"do": "toggle", "group": "nobody"},
        {"do": "ungroup", "group": ["a"]},
        {"do": "together", "columns": ["a", "c"]},
        {"do": "together", "columns": [["a"], "c"]},
        {"do": "role", "column": "a", "role": ["outcome"]},
        {"do": 3},
        {},
    ],
)
def test_nonsense_changes_nothing_and_is_said(action: dict[str, Any]) -> None:
    state = fresh(edges=(("a", "b"),))
    before = state.project
    send(state, action)
    assert state.project == before
    assert state.drafts.board.message is not None
    assert state.drafts.board.message["bad"]


@pytest.mark.parametrize("sent", [None, 3, [], {"list": 3}, {"list": [3, None, {"n": "1"}]}])
def test_what_is_no_list_of_actions_is_ignored(sent: Any) -> None:
    state = fresh()
    before = state.project
    drawing.take(state, sent)
    assert state.project == before


def test_a_shared_cause_is_drawn_warned_of_and_undone() -> None:
    state = fresh(edges=(("a", "y"), ("b", "c")))
    state.editor.redraw(target="y")
    send(state, {"do": "share", "pair": ["y", "a"]}, {"do": "share", "pair": ["b", "z"]})
    assert state.project.dag.hidden == (("y", "a"), ("b", "z"))
    sent = board.data(state, implications.now(state)[1])
    assert [(e["from"], e["to"]) for e in sent["shared"]] == [("y", "a"), ("b", "z")]
    warned = [t["text"] for t in sent["told"] if t["bad"]]
    assert len(warned) == 1
    assert "a is drawn as a direct cause of y, and these two columns share an unmeasured cause" in warned[0]
    send(state, {"do": "unlink", "link": ["a", "y", "share"]}, {"do": "undo"}, start=3)
    assert state.project.dag.hidden == (("y", "a"), ("b", "z"))


def test_a_separation_is_made_drawn_and_lifted_on_the_board() -> None:
    state = send(
        fresh(), {"do": "separate", "columns": ["a", "y", "c"]}, {"do": "separate", "columns": ["y", "a", "c"]}
    )
    assert [(s.left, s.right, s.given) for s in state.project.separations] == [(("a",), ("y",), ("c",))]
    assert state.drafts.board.message is not None
    assert "already kept apart" in state.drafts.board.message["text"]
    state.editor.redraw(roles=Roles(outcome=("y",), protected=("b",)))
    state.editor.change_plan(method="mst", fair=None)
    sent = board.data(state, implications.now(state)[1])
    assert [(e["from"], e["to"]) for e in sent["apart"]] == [("a", "y")], "a plan without a fence adds none"
    assert "linked only through c" in sent["apart"][0]["text"]
    state.editor.change_plan(method="privci", fair=None)
    sent = board.data(state, implications.now(state)[1])
    assert [(e["from"], e["to"]) for e in sent["apart"]] == [("a", "y")], (
        "the plan's separations are shown for the selection"
    )
    send(state, {"do": "select", "columns": ["b"]}, start=3)
    sent = board.data(state, implications.now(state)[1])
    assert {(e["from"], e["to"]) for e in sent["apart"]} == {("a", "y"), ("y", "b")}
    send(state, {"do": "unlink", "link": ["b", "y", "apart"]}, start=4)
    assert "by roles or method" in state.drafts.board.message["text"]
    send(state, {"do": "unlink", "link": ["a", "y", "apart"]}, start=5)
    assert state.project.separations == ()


def test_causes_that_act_together_are_drawn_listed_erased_and_undone() -> None:
    state = fresh(edges=(("a", "y"), ("b", "y"), ("a", "z"), ("b", "z")))
    send(state, {"do": "together", "columns": ["b", "a"]})
    assert state.drafts.board.message is not None
    assert "have several common effects (y, z). Also select one of them" in state.drafts.board.message["text"]
    send(state, {"do": "together", "columns": ["b", "a", "y"]}, {"do": "together", "columns": ["a", "y", "b"]}, start=2)
    assert state.project.dag.interactions == ((("a", "b"), "y"),), "once, in the order of the columns"
    (sent,) = board.data(state, implications.now(state)[1])["together"]
    assert sent["ends"] == ["a", "b", "y"]
    assert "a and b act together on y" in sent["text"]
    assert Project.from_json(json.loads(state.project.dumps())).dag.interactions == state.project.dag.interactions
    send(state, {"do": "erase", "arrows": [["a", "y"]]}, start=4)
    assert board.data(state, implications.now(state)[1])["together"] == [], "it needs its arrows"
    send(state, {"do": "undo"}, {"do": "unlink", "link": ["a", "b", "y", "together"]}, start=5)
    assert state.project.dag.interactions == ()
    send(
        state,
        {"do": "undo"},
        {"do": "erase", "arrows": [["a", "z"]]},
        {"do": "together", "columns": ["a", "b"]},
        start=7,
    )
    assert state.project.dag.interactions == ((("a", "b"), "y"),), "the only common effect is meant"


def test_a_group_is_one_box_that_opens_closes_and_is_undone() -> None:
    state = fresh(edges=(("a", "b"), ("b", "y"), ("c", "y"), ("a", "z")))
    before = {n["id"]: (n["x"], n["y"]) for n in board.data(state, implications.now(state)[1])["nodes"]}
    send(state, {"do": "group", "columns": ["b", "c"], "name": "labs"})
    assert state.project.dag.groups == {"labs": ("b", "c")}
    sent = board.data(state, implications.now(state)[1])
    nodes = {n["id"]: n for n in sent["nodes"]}
    assert set(nodes) == {"a", "y", "z", "labs"}
    assert nodes["labs"]["inside"] == ["b", "c"]
    assert "2 columns" in nodes["labs"]["label"]
    assert [(e["from"], e["to"]) for e in sent["edges"]] == [("a", "z")]
    bundles = {(e["from"], e["to"]): e["text"] for e in sent["bundles"]}
    assert set(bundles) == {("a", "labs"), ("labs", "y")}
    assert "2 arrows: b → y, c → y" in bundles["labs", "y"]
    assert not sent["tray"]
    assert sent["selected"]["columns"] == ["labs"]
    assert all((nodes[n]["x"], nodes[n]["y"]) == before[n] for n in "ayz"), "nothing else moved"
    send(state, {"do": "move", "at": {"labs": [7, 300]}}, {"do": "select", "columns": ["labs"]}, start=2)
    assert state.project.dag.positions["labs"] == (7, 300)
    assert Project.from_json(json.loads(state.project.dumps())).dag == state.project.dag
    send(state, {"do": "toggle", "group": "labs"}, start=4)
    sent = board.data(state, implications.now(state)[1])
    assert {n["id"]: n["group"] for n in sent["nodes"]} == {"a": None, "b": "labs", "c": "labs", "y": None, "z": None}
    assert len(sent["edges"]) == 4
    assert sent["bundles"] == []
    send(state, {"do": "toggle", "group": "labs"}, {"do": "ungroup", "group": "labs"}, {"do": "undo"}, start=5)
    assert state.project.dag.groups == {"labs": ("b", "c")}
    send(state, {"do": "group", "columns": ["a", "b"], "name": "more"}, start=8)
    assert state.project.dag.groups == {"labs": ("c",), "more": ("a", "b")}, "a column is in one group"


def test_lines_to_a_closed_group_are_bundled_marked_and_not_erased() -> None:
    state = fresh(edges=(("a", "y"), ("b", "y"), ("c", "y")))
    send(state, {"do": "together", "columns": ["a", "b", "y"]}, {"do": "share", "pair": ["a", "b"]})
    send(state, {"do": "share", "pair": ["a", "z"]}, {"do": "group", "columns": ["a", "b"], "name": "labs"}, start=3)
    sent = board.data(state, implications.now(state)[1])
    assert sent["together"] == [], "both are in one box"
    assert [(s["from"], s["to"], s["at"]) for s in sent["shared"]] == [("a", "z", ["labs", "z"])]
    send(state, {"do": "unlink", "link": ["labs", "y", "bundle"]}, start=5)
    assert state.drafts.board.message is not None
    assert "open the group" in state.drafts.board.message["text"]
    assert len(edges(state)) == 3
    send(state, {"do": "unlink", "link": ["a", "z", "share"]}, start=6)
    assert state.project.dag.hidden == (("a", "b"),)


def test_columns_of_an_opened_group_come_near_its_box() -> None:
    names = tuple(f"v{i:02d}" for i in range(48))
    state = fresh(names, tuple((names[i], names[47]) for i in range(12)))
    send(state, {"do": "arrange"}, {"do": "group", "columns": list(names[20:26]), "name": "panel"})
    sent = board.data(state, implications.now(state)[1])
    at = {n["id"]: (n["x"], n["y"]) for n in sent["nodes"]}
    assert "panel" in at
    assert not {*names[20:26]} & {*sent["tray"]}, "its columns are on the drawing"
    send(state, {"do": "toggle", "group": "panel"}, start=3)
    nodes = board.data(state, implications.now(state)[1])["nodes"]
    opened = {n["id"]: (n["x"], n["y"]) for n in nodes}
    assert {n: opened[n] for n in at if n != "panel"} == {n: at[n] for n in at if n != "panel"}, "nothing else moved"
    for one, other in combinations(nodes, 2):
        apart = abs(one["x"] - other["x"]) >= (one["wide"] + other["wide"]) / 2
        assert apart or abs(one["y"] - other["y"]) >= (one["high"] + other["high"]) / 2
    assert max(abs(opened[n][1] - at["panel"][1]) for n in names[20:26]) < 700


def positions(state: Session) -> dict[str, tuple[int, int]]:
    return {n["id"]: (n["x"], n["y"]) for n in board.data(state, implications.now(state)[1])["nodes"]}


def test_an_opened_group_is_laid_out_with_its_arrows_until_a_box_is_placed_by_hand() -> None:
    names = tuple(f"v{i:02d}" for i in range(20))
    drawn = (*((names[i], names[19]) for i in range(6)), (names[6], names[0]), (names[7], names[1]))
    state = fresh(names, drawn)
    without_group = positions(state)
    send(state, {"do": "group", "columns": list(names[:9]), "name": "panel"}, {"do": "toggle", "group": "panel"})
    assert positions(state) == without_group, "a column with an arrow is before its effect again"
    assert state.drafts.board.message is not None
    assert state.drafts.board.message["text"] == "panel is open: v00, v01, v02, v03, v04, v05 and 3 more."
    send(state, {"do": "toggle", "group": "panel"}, start=3)
    closed = positions(state)
    placed = next(n for n in closed if n != "panel")
    send(state, {"do": "move", "at": {placed: [5, -300]}}, {"do": "toggle", "group": "panel"}, start=4)
    opened = positions(state)
    assert {n: opened[n] for n in closed if n not in ("panel", placed)} == {
        n: closed[n] for n in closed if n not in ("panel", placed)
    }, "by hand: nothing else moves"
    lowest = max(opened[n][1] for n in names[:8])
    assert opened[names[8]][1] > lowest, "a column without an arrow is not placed between columns with arrows"


def test_long_names_are_folded_at_their_parts() -> None:
    def lines(column: str) -> list[str]:
        return boxes.label(column, Roles(), None).split("\n")

    assert lines("discharge_disposition_id") == ["discharge_", "disposition_id"]
    assert lines("blood_pressure_systolic_0") == ["blood_pressure_", "systolic_0"]
    assert lines("number_emergency") == ["number_emergency"]
    assert lines("x" * 30) == ["x" * 30], "the browser wraps a name without parts"
    assert boxes.high("discharge_disposition_id", Roles(), None) == 18 + 2 * 20


def test_a_box_is_tall_enough_for_the_heads_of_its_arrows() -> None:
    names = (*(f"v{i:02d}" for i in range(12)), "y")
    state = fresh(names, tuple((n, "y") for n in names[:-1]))
    tall = {n["id"]: n["high"] for n in board.data(state, implications.now(state)[1])["nodes"]}
    assert tall["y"] / len(names[:-1]) >= boxes.PER_ARROW
    assert tall["v00"] < 100
    send(state, {"do": "move", "at": {"y": [900, 900]}})
    tall = {n["id"]: n["high"] for n in board.data(state, implications.now(state)[1])["nodes"]}
    assert tall["y"] < 100, "a box placed by hand does not grow over its neighbours"
    assert boxes.high("y", Roles(), None, arrows=500) == boxes.TALLEST


def test_there_is_one_outcome_and_the_target_follows_it() -> None:
    state = send(fresh(), {"do": "role", "column": "y", "role": "outcome"})
    assert (state.project.roles.outcome, state.project.plan.target) == (("y",), "y")
    send(
        state,
        {"do": "role", "column": "z", "role": "outcome"},
        {"do": "role", "column": "a", "role": "protected"},
        start=2,
    )
    assert (state.project.roles.outcome, state.project.plan.target) == (("z",), "z")
    send(state, {"do": "role", "column": "a", "role": None}, start=4)
    assert state.project.roles.protected == ()


def test_undo_and_redo_go_through_all_kinds_of_changes() -> None:
    state = fresh()
    steps = [state.editor.drawing]
    for k, action in enumerate(
        (
            {"do": "draw", "arrow": ["a", "y"]},
            {"do": "role", "column": "y", "role": "outcome"},
            {"do": "move", "at": {"a": [5, 6]}},
            {"do": "arrange"},
            {"do": "erase", "arrows": [["a", "y"]]},
        )
    ):
        send(state, action, start=k + 1)
        steps.append(state.editor.drawing)
    for step in reversed(steps[:-1]):
        assert state.editor.undo()
        assert state.editor.drawing == step
    assert not state.editor.undo()
    for step in steps[1:]:
        assert state.editor.redo()
        assert state.editor.drawing == step
    assert not state.editor.redo()
    state.editor.undo()
    state.editor.redraw(state.project.dag.drawn("b", "c"))
    assert not state.editor.redo(), "after a new change, nothing can be redone"


def test_places_are_kept_and_new_columns_come_below() -> None:
    state = send(fresh(edges=(("a", "y"),)), {"do": "move", "at": {n: [k * 100, 0] for k, n in enumerate("abcy")}})
    at = drawing.places(state, list(NAMES))
    assert [at[n] for n in "abcy"] == [(k * 100, 0) for k in range(4)]
    assert at["z"][1] > 50


def test_looking_changes_nothing() -> None:
    state = fresh(edges=(("a", "y"),))
    before = state.project
    board.data(state, implied(before.dag, None, before.roles))
    assert state.project == before
    assert not state.editor.past


def test_boxes_do_not_lie_on_one_another() -> None:
    names = [f"a rather long name {i}" for i in range(60)]
    arrows = [(names[i], names[j]) for i in range(20) for j in range(i + 1, 20) if (i * j) % 7 == 1]
    for drawn, most in ((arrows, 1000), (arrows, 420), ([], 1000), ([], 420)):
        at = boxes.arranged(names, drawn, Roles(), None, most).places
        assert set(at) == set(names)
        for (one, (x, y)), (two, (u, v)) in combinations(at.items(), 2):
            room = (boxes.width(one, Roles(), None) + boxes.width(two, Roles(), None)) / 2
            assert abs(v - y) > 50 or abs(u - x) >= room
        assert all(at[a][0] < at[b][0] for a, b in drawn), "effects to the right of their causes"
        wide = max(x for x, _ in at.values()) - min(x for x, _ in at.values())
        assert drawn or wide <= most


def test_boxes_that_grow_push_their_neighbours_aside() -> None:
    state = fresh(("age", "race", "sex", "y"), (("age", "y"), ("race", "y"), ("sex", "y")))
    state.editor.change_plan(method="privci", fair=None)
    before = {"age": (0, 0), "race": (90, 0), "sex": (180, 0), "y": (90, 200)}
    send(state, {"do": "move", "at": {n: list(at) for n, at in before.items()}})
    state.editor.redraw(roles=Roles(("y",), ("age", "race", "sex")), target="y")
    nodes = {n["id"]: n for n in board.data(state, implications.now(state)[1])["nodes"]}
    line = sorted((n for n in nodes.values() if n["id"] != "y"), key=lambda n: n["x"])
    assert [n["id"] for n in line] == sorted(("age", "race", "sex"), key=lambda n: before[n][0])
    room = boxes.width("age", state.project.roles, "y", tags=("▮ ◆",))
    assert all(b["x"] - a["x"] > room for a, b in pairwise(line)), "wider than they were laid out for"
    assert abs(nodes["y"]["x"] - before["y"][0]) <= 1
    assert boxes.apart({"a": (0, 0), "b": (100, 0)}, {"a": 40, "b": 40}) == {"a": (0, 0), "b": (100, 0)}


def test_many_columns_are_shown_around_the_selected_one() -> None:
    names = tuple(f"v{i:03d}" for i in range(200))
    state = fresh(names, tuple((f"v{i:03d}", f"v{i + 1:03d}") for i in range(199)))
    send(state, {"do": "select", "columns": ["v100"], "arrow": None})
    assert drawing.shown(state) == [f"v{i:03d}" for i in range(97, 104)], (
        "up to three arrows away, because there are few"
    )
    send(state, *({"do": "draw", "arrow": ["v101", f"v{i:03d}"]} for i in range(120, 150)), start=2)
    assert drawing.steps(state) == 3, "new arrows do not change the view"
    send(state, *({"do": "undo"} for _ in range(30)), start=40)
    state.drafts.board.steps = 1
    assert drawing.shown(state) == ["v099", "v100", "v101"]
    state.drafts.board.steps = 2
    assert drawing.shown(state) == ["v098", "v099", "v100", "v101", "v102"]
    sent = board.data(state, implications.now(state)[1])
    assert len(sent["nodes"]) == 5
    assert "Choose a column below" in sent["hint"], "there may be nothing to drag to"
    assert len(sent["arrows"]) == 199, "a cycle through hidden columns is refused too"
    before = state.project
    send(state, {"do": "arrange"}, start=80)
    assert state.project == before, "positions in a neighbourhood differ from those in the drawing"
    hub = fresh(names, tuple((n, "v000") for n in names[1:]))
    send(hub, {"do": "select", "columns": ["v000"], "arrow": None})
    assert len(drawing.shown(hub)) == drawing.MOST_BOXES


def test_columns_without_arrows_wait_in_the_tray_until_they_are_brought() -> None:
    names = tuple(f"v{i:02d}" for i in range(48))
    state = fresh(names, (("v00", "v01"), ("v01", "v02")))
    sent = board.data(state, implications.now(state)[1])
    assert [n["id"] for n in sent["nodes"]] == ["v00", "v01", "v02"]
    assert sent["tray"] == list(names[3:])
    before = {n["id"]: (n["x"], n["y"]) for n in sent["nodes"]}
    send(state, {"do": "bring", "column": "v40", "at": [300, 120]})
    send(state, {"do": "draw", "arrow": ["v40", "v01"]}, start=2)
    sent = board.data(state, implications.now(state)[1])
    after = {n["id"]: (n["x"], n["y"]) for n in sent["nodes"]}
    assert after == before | {"v40": (300, 120)}, "the box is where it was dropped, and no other box moved"
    assert "v40" not in sent["tray"]
    assert state.project.dag.parents("v01") == ("v00", "v40")
    send(state, {"do": "bring", "column": "nobody", "at": [0, 0]}, start=3)
    assert "is not a column" in state.drafts.board.message["text"]
    send(state, {"do": "bring", "column": "v41", "at": None}, start=4)
    assert "must be two numbers" in state.drafts.board.message["text"]
    assert "v41" in board.data(state, implications.now(state)[1])["tray"]
    empty = fresh(names)
    assert "The drawing is empty" in board.data(empty, implications.now(empty)[1])["hint"]
    small = fresh(names[:20], (("v00", "v01"),))
    assert not board.data(small, implications.now(small)[1])["tray"], "a small table is shown whole"


def test_a_column_comes_to_a_neighbourhood_without_moving_it() -> None:
    names = tuple(f"v{i:03d}" for i in range(200))
    state = fresh(names, tuple((f"v{i:03d}", f"v{i + 1:03d}") for i in range(199)))
    send(state, {"do": "select", "columns": ["v100"], "arrow": None})
    before = {n["id"]: (n["x"], n["y"]) for n in board.data(state, implications.now(state)[1])["nodes"]}
    send(state, {"do": "bring", "column": "v180", "at": [10, 400]}, start=2)
    after = {n["id"]: (n["x"], n["y"]) for n in board.data(state, implications.now(state)[1])["nodes"]}
    assert after == before | {"v180": (10, 400)}


def test_the_board_is_told_in_plain_json() -> None:
    state = fresh(edges=(("a", "y"), ("b", "y")))
    state.editor.redraw(roles=Roles(("y",), ("a",), ("b",)), target="y")
    state.editor.change_plan(method="privci", fair=None)
    said = Annotation(belief="contested", may_break=True)
    state.editor.redraw(state.project.dag.annotated(("a", "y"), said))
    sent = board.data(state, implications.now(state)[1])
    assert json.loads(json.dumps(sent, allow_nan=False)) == sent
    arrow = next(e for e in sent["edges"] if e["from"] == "a")
    assert arrow["contested"]
    assert arrow["lit"]
    assert "may break" in arrow["label"]
    assert "1 open path from protected to outcome would close" in arrow["without"]
    labels = {n["id"]: n["label"] for n in sent["nodes"]}
    assert labels["a"].split("\n") == ["a", "(protected)", "▮ ◆"]
    assert labels["b"].split("\n") == ["b", "(admissible)", "∩ ◆"]
    state.editor.change_plan(method="mst", fair=None)
    labels = {n["id"]: n["label"] for n in board.data(state, implications.now(state)[1])["nodes"]}
    assert labels["a"].split("\n") == ["a", "(protected)", "◆"], "a plan without a fence draws none"


def test_the_set_to_adjust_for_and_what_it_leaves_open_are_marked() -> None:
    state = fresh(edges=(("z", "a"), ("z", "y"), ("c", "a"), ("c", "y"), ("a", "y")))
    state.editor.change_plan(method="prism", regime="effect", target="y", treatment="a", fair=None)
    sent = board.data(state, implications.now(state)[1])
    tags = {n["id"]: n["label"].split("\n") for n in sent["nodes"]}
    assert "treatment" in tags["a"]
    assert all("adjusted for" in tags[n] for n in "zc")
    assert not any(e["lit"] for e in sent["edges"])
    asked = effects.asked(state)
    assert asked is not None
    said, open_arrows = effects.marks(asked[0], ("z",))
    assert said == {"a": ["treatment"], "z": ["adjusted for"]}
    assert open_arrows == {("c", "a"), ("c", "y")}


def test_the_switch_leaves_contested_arrows_out_of_the_sets() -> None:
    state = fresh(edges=(("a", "y"), ("b", "y")))
    state.editor.redraw(target="y")
    state.editor.redraw(state.project.dag.annotated(("a", "y"), Annotation(belief="contested")))
    assert implications.now(state)[1].parents == ("a", "b")
    state.drafts.board.without_contested = True
    assert implications.now(state)[1].parents == ("b",)


def test_the_table_edits_adds_and_deletes_arrows() -> None:
    dag = Dag((("a", "y"), ("b", "y")), annotations={("z",): Annotation("kept")})
    rows = arrow_table.rows_of(dag)
    change = {
        "edited_rows": {0: {"belief": "contested", "note": "n"}},
        "deleted_rows": [1],
        "added_rows": [{"cause": "c", "effect": "y"}, {"cause": "z"}],
    }
    made, half = arrow_table.drawn(dag, arrow_table.edited(rows, change))
    assert made.edges == (("a", "y"), ("c", "y"))
    assert made.annotation("a", "y") == Annotation("n", "contested")
    assert made.annotation("z") == Annotation("kept")
    assert [row["cause"] for row in half] == ["z"]
    with pytest.raises(EspalierError, match="cycle"):
        arrow_table.drawn(dag, arrow_table.edited(rows, {"added_rows": [{"cause": "y", "effect": "a"}]}))


def test_a_draft_comes_back_whole() -> None:
    state = fresh(edges=(("a", "y"),))
    state.rows = 500
    found = restore.read(restore.kept(state))
    assert (found.project, found.rows) == (state.project, 500)
    again = Session()
    again.found = found
    restore.bring_back(again)
    assert again.project == state.project
    assert again.text is None


def test_groups_are_open_or_closed_as_before_the_reload() -> None:
    state = send(
        fresh(edges=(("a", "y"),)),
        {"do": "group", "columns": ["a", "b"], "name": "labs"},
        {"do": "group", "columns": ["c", "z"], "name": "vitals"},
        {"do": "toggle", "group": "labs"},
    )
    again = Session()
    again.found = restore.read(restore.kept(state))
    restore.bring_back(again)
    assert {n["id"] for n in board.data(again, implications.now(again)[1])["nodes"]} == {"a", "b", "vitals", "y"}
    forged = {**json.loads(restore.kept(state)), "opened": ["nobody", "labs"]}
    assert restore.read(json.dumps(forged)).opened == ("labs",)


def test_a_draft_with_guesses_keeps_the_drawing_only() -> None:
    state = fresh(edges=(("a", "y"),), guessed=("categories",))
    text = restore.kept(state)
    assert text is not None
    assert "categories" not in text
    found = restore.read(text)
    assert found.project is None
    again = fresh(("a", "y", "new"), guessed=("categories",))
    again.found = found
    restore.bring_back(again)
    assert edges(again) == (("a", "y"),)


def test_only_a_drawing_about_the_open_table_is_offered() -> None:
    def left(*edges: tuple[str, str]) -> Any:
        return restore.read(restore.kept(fresh(("a", "y"), edges=edges, guessed=("categories",))))

    assert restore.fits(Session(), left(("a", "y")))
    assert restore.fits(fresh(("a", "y", "new")), left(("a", "y")))
    assert not restore.fits(fresh(("a", "y")), left())
    assert restore.fits(Session(), left()), "the changes to the columns are stated"
    assert not restore.fits(fresh(("a", "b")), left(("a", "y")))


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "x",
        "{}",
        "[]",
        '{"title": 1, "project": null, "rows": 1, "sample": ""}',
        '{"title": "t", "project": "{}", "rows": null, "sample": ""}',
        "[" * 100_000,
    ],
    ids=range(8),
)
def test_a_broken_draft_is_no_traceback(text: Any) -> None:
    with pytest.raises(EspalierError):
        restore.read(text)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff\xfe", b'{"format": "espalier-project/1"}', b'{"nodes": 3}'])
def test_another_persons_broken_file_is_no_traceback(data: bytes) -> None:
    with pytest.raises(EspalierError):
        merging.read(data)


def test_another_tools_graph_is_compared_if_it_is_all_arrows() -> None:
    dag, told = merging.read(b"dag { a -> b; b -> c; a <-> c }", "theirs.txt")
    assert dag.edges == (("a", "b"), ("b", "c"))
    assert (dag.hidden, told) == ((("a", "c"),), ())
    with pytest.raises(EspalierError, match="open questions"):
        merging.read(b"dag { a -> b; b -- c }", "theirs.txt")


def test_another_persons_project_or_drawing_is_read() -> None:
    project = Project.load(ROOT / "sample_data" / "hiring.json")
    assert merging.read(project.dumps().encode()) == (project.dag, ())
    assert merging.read(json.dumps(project.dag.to_json()).encode()) == (project.dag, ())


@pytest.fixture
def page() -> AppTest:
    app = sample(start(), "readmission")
    app.switch_page("pages/03_structure.py").run()
    assert not app.exception
    return app


def shown(app: AppTest) -> str:
    kinds = ("markdown", "error", "warning", "info", "caption")
    return "\n".join(str(e.value) for kind in kinds for e in app.get(kind)).replace("\\", "")


def test_annotating_in_the_fields_reaches_the_plan_page(page: AppTest) -> None:
    state: Session = page.session_state[KEY]
    select = next(s for s in page.selectbox if s.label == "Arrow or column")
    select.set_value(("readmitted", "billing_code")).run()
    assert drawing.selected(state)[1] == ("readmitted", "billing_code")
    assert "billing_code would leave the Markov blanket" in shown(page)
    next(c for c in page.checkbox if c.label == "May break elsewhere").check().run()
    next(t for t in page.text_area if t.label == "Note").set_value("billed afterwards").run()
    assert state.project.dag.annotation("readmitted", "billing_code") == Annotation("billed afterwards", may_break=True)
    state.editor.change_plan(regime="graphical")
    page.switch_page("pages/04_plan.py").run()
    assert "Marked “may break elsewhere”: readmitted → billing_code" in shown(page)


def test_two_columns_and_what_stands_between_them(page: AppTest) -> None:
    state: Session = page.session_state[KEY]
    drawing.select(state, ("heart_failure", "kidney_disease"))
    page.run()
    text = shown(page)
    assert "**Confounders**, causes of both: `age`, `diabetes`" in text
    assert "`readmitted`" in text.split("**Colliders**")[1]


def test_two_drawings_are_settled_and_merged(page: AppTest) -> None:
    state: Session = page.session_state[KEY]
    mine = state.project.dag
    theirs = replace(mine, edges=(*(e for e in mine.edges if e != ("sex", "smoking")), ("smoking", "sex")))
    theirs = theirs.drawn("smoking", "readmitted")
    project = replace(state.project, dag=theirs)
    uploader = next(u for u in page.file_uploader if u.label.startswith("Another person"))
    uploader.upload("theirs.json", project.dumps().encode(), "application/json").run()
    assert not page.exception
    assert "2 differences to resolve" in shown(page)
    assert next(b for b in page.button if b.label.startswith("Merge")).disabled
    next(b for b in page.button if b.label == "Theirs for the rest").click().run()
    next(b for b in page.button if b.label.startswith("Merge")).click().run()
    assert set(state.project.dag.edges) == set(theirs.edges)
    state.editor.undo()
    assert state.project.dag == mine


def test_a_review_that_a_reload_ended_is_told_of() -> None:
    page = at_home()
    state: Session = page.session_state[KEY]
    state.found = restore.read(restore.kept(fresh(("a", "y"), guessed=("categories",))))
    page.switch_page("pages/04_plan.py").run()
    assert "was open before the reload" in shown(page)
    assert not any(b.key == "restore-draft" for b in page.button), "there is nothing to restore"
    page.button(key="forget-draft").click().run()
    assert "was open before the reload" not in shown(page)


def test_a_draft_is_offered_on_any_page_and_opens_with_its_sample() -> None:
    state = Session()
    app = sample(start(), "hiring")
    old: Session = app.session_state[KEY]
    old.editor.redraw(old.project.dag.without(old.project.dag.edges[:1]))
    new = at_home()
    state = new.session_state[KEY]
    state.found = restore.read(restore.kept(old))
    new.switch_page("pages/04_plan.py").run()
    assert "An unsaved draft" in shown(new)
    new.button(key="restore-draft").click().run()
    assert not new.exception
    assert state.project == old.project
    assert state.text is not None
    assert state.rows == 6000
    assert "An unsaved draft" not in shown(new)


def test_a_whole_draft_is_offered_until_another_project_is_opened_and_a_drawing_alone_after_it() -> None:
    old: Session = sample(start(), "hiring").session_state[KEY]
    new = sample(start(), "readmission")
    state: Session = new.session_state[KEY]
    whole = restore.read(restore.kept(old))
    opened = state.project
    state.found = whole
    state.open(opened)
    assert state.found is None, "its button would replace the project that was just opened"
    state.found = drawing = replace(whole, project=None)
    state.open(opened)
    assert state.found is drawing, "it waits until its table is opened"
