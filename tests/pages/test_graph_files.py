"""Graph files on the Structure page: reading, open questions, import, undo and export."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from espalier.core.graph.formats import FORMATS
from espalier.pages.structure import graph_files
from tests.support.app import go, press, sample, start, state

GRAPH = """dag {
Talent [latent]
GENDER [exposure]
schooling [pos="0.5,0.5"]
hired [outcome,pos="0.9,0.5"]
GENDER -> club
Talent -> hired
Talent -> qualification
qualification -> hired
club -- hired
}"""


@pytest.fixture
def app() -> AppTest:
    return go(sample(start(), "hiring"), "structure")


def paste(app: AppTest, text: str) -> AppTest:
    next(t for t in app.text_area if t.label.startswith("Or paste its text")).set_value(text).run()
    assert not app.exception, [e.value for e in app.exception]
    return app


def field(app: AppTest, line: int) -> Any:
    found = next(s for s in app.selectbox if s.label.startswith(f"Line {line}: "))
    return found


def test_a_graph_is_settled_taken_over_and_undone(app: AppTest) -> None:
    before = state(app).editor.drawing
    assert {"gender", "club", "qualification", "hired"} <= set(state(app).project.schema.names)
    paste(app, GRAPH)
    assert any("6 names, 5 links" in str(m.value) for m in app.markdown)
    assert field(app, 2).value == "marginalise"
    assert field(app, 3).value == "column:gender"
    assert field(app, 10).value is None
    taking = next(b for b in app.button if b.label == "Replace the drawing with it")
    assert taking.disabled
    assert state(app).editor.drawing == before, "nothing changes before the file is adopted"

    go(go(app, "plan"), "structure")
    press(app, "Use the file's direction for 1 link")
    press(app, "Not in my table: 1 name ")
    press(app, "Replace the drawing with it")
    dag, roles, target, _ = state(app).editor.drawing
    assert dag.edges == (("gender", "club"), ("qualification", "hired"), ("club", "hired"))
    assert dag.hidden == (("hired", "qualification"),)
    assert roles.outcome == ("hired",)
    assert target == "hired"
    assert any("is read as 'club' → 'hired'" in str(m.value).replace("\\", "") for m in app.markdown)

    state(app).editor.undo()
    app.run()
    assert state(app).editor.drawing == before


def test_adding_keeps_what_is_drawn_and_a_cycle_is_refused(app: AppTest) -> None:
    drawn = state(app).project.dag.edges
    press(paste(app, "dag { hobby -> hours_available }"), "Add it")
    assert state(app).project.dag.edges == (*drawn, ("hobby", "hours_available"))
    before = state(app).editor.drawing
    cause, effect = drawn[0]
    press(paste(app, f"dag {{ {effect} -> {cause} }}"), "Add it")
    assert state(app).editor.drawing == before
    assert any("cycle" in e.value for e in app.error)
    assert state(app).drafts.graph_file.graph is not None, "the file is still there"


def test_a_broken_graph_is_said_with_its_line_and_nothing_is_lost(app: AppTest) -> None:
    before = state(app).editor.drawing
    paste(app, "dag {\na -> b\nb ->\n}")
    assert any("line 4" in e.value for e in app.error)
    assert next(t for t in app.text_area if t.label.startswith("Or paste its text")).value.startswith("dag {")
    assert state(app).editor.drawing == before
    paste(app, "x" * 2_000_001)
    assert any("command line" in e.value for e in app.error)


def test_a_file_of_another_table_cannot_be_taken_over_by_accident(app: AppTest) -> None:
    uploader = next(u for u in app.file_uploader if u.label == "A graph file")
    uploader.upload("lucas.gml", b'graph [ directed 1 node [ id 0 label "x" ] node [ id 1 label "y" ] edge [ source 0 target 1 ] ]', "text/plain").run()  # fmt: skip  # noqa: E501
    assert all(b.disabled for b in app.button if b.label in ("Replace the drawing with it", "Add it to the drawing"))
    press(app, "Close the file")
    assert state(app).drafts.graph_file.graph is None


def test_many_questions_are_shown_a_few_at_a_time(app: AppTest) -> None:
    paste(app, "dag {" + " ".join(f"x{i} -- x{i + 1}" for i in range(40)) + "}")
    asked = [s for s in app.selectbox if s.label.startswith("Line ")]
    assert len(asked) == graph_files.MOST_QUESTIONS
    assert not [s for s in asked if s.value is not None], "the open ones come first"
    press(app, "Use the file's direction for 40 links")
    assert settled_open(app), "no name is left out without a click"
    press(app, "Not in my table: 41 names")
    assert not settled_open(app)


def settled_open(app: AppTest) -> bool:
    return any("still open" in c.value for c in app.caption)


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_can_be_taken_out(app: AppTest, format: str) -> None:
    next(s for s in app.selectbox if s.label == "Format").set_value(format).run()
    assert not app.exception
    assert not app.error
    assert "Download the graph" in [b.proto.label for b in app.get("download_button")]


def test_positions_are_stretched_until_boxes_have_room() -> None:
    tight = {"a": (0.1, 0.2), "b": (0.2, 0.2), "c": (0.9, 0.8)}
    roomy = graph_files._on_the_board(tight)
    assert abs(roomy["a"][0] - roomy["b"][0]) >= 150
    assert graph_files._on_the_board(roomy) == roomy, "fitting positions are kept"
    assert graph_files._on_the_board({"a": (1, 1), "b": (1, 1)}) == {}
