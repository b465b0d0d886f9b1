"""The drawing board in a real browser works by mouse, touch and keyboard, and survives page changes and a reload."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.wide_table import write
from espalier.core.project.file import Project
from espalier.pages.session import restore

pytestmark = [pytest.mark.browser]

_WHERE = """what => {
  for (const e of document.querySelectorAll('*')) {
    const canvas = e.shadowRoot && e.shadowRoot.querySelector('.board .canvas');
    if (!canvas) continue;
    const detail = typeof what === 'string' ? { column: what } : { line: what };
    canvas.dispatchEvent(new CustomEvent('where', { detail }));
    const frame = canvas.getBoundingClientRect();
    return detail.at ? [frame.left + detail.at.x, frame.top + detail.at.y] : null;
  }
  return null;
}"""


class Board:
    """Drawing board, used as a person would."""

    def __init__(self, person: Any) -> None:
        self.person, self.page = person, person.page

    def at(self, column: str, quick: bool = False) -> tuple[float, float]:
        """Return the position of a box on the screen, once it is visible and (unless ``quick``) no longer moves."""
        still, last = 5 * quick, None
        for _ in range(300):
            spot = self.page.evaluate(_WHERE, column)
            if spot is not None and still >= 5:
                return spot[0], spot[1]
            still = still + 1 if spot is not None and spot == last else 5 * quick
            last = spot
            self.page.wait_for_timeout(60)
        raise AssertionError(f"{column} is not on the board")

    def drag(self, start: str, end: str | tuple[float, float], quick: bool = False) -> None:
        mouse = self.page.mouse
        x, y = self.at(start, quick)
        u, v = self.at(end, quick) if isinstance(end, str) else (x + end[0], y + end[1])
        mouse.move(x, y)
        mouse.down()
        mouse.move((x + u) / 2, (y + v) / 2, steps=6)
        mouse.move(u, v, steps=6)
        mouse.up()

    def click(self, column: str, quick: bool = False) -> None:
        self.page.mouse.click(*self.at(column, quick))

    def click_arrow(self, cause: str, effect: str) -> None:
        self.click_line(cause, effect, "arrow")

    def click_line(self, *line: str) -> None:
        """Click a line, given by its ends and its kind."""
        self.page.mouse.click(*self.page.evaluate(_WHERE, list(line)))

    def says(self, text: str) -> None:
        self.page.locator(".board .say").filter(has_text=text).wait_for()

    def press(self, label: str) -> None:
        self.page.locator(".board").get_by_role("button", name=label, exact=True).click()

    def project(self, until: Any) -> Project:
        """Return the project that Python gave the tab to keep, once it has the expected state."""
        found = None
        for _ in range(200):
            if text := self.page.evaluate("() => sessionStorage.getItem('espalier-draft')"):
                found = restore.read(text).project
                if found is not None and until(found):
                    return found
            self.page.wait_for_timeout(100)
        raise AssertionError(f"the project never reached the expected state: {found}")


def wide(person: Any, width: int) -> None:
    person.page.set_viewport_size({"width": width, "height": 1400})


def empty_readmission(tmp_path: Path, samples: Path) -> Path:
    """Return the sample's project without the drawing."""
    data = json.loads((samples / "readmission.json").read_text("utf-8"))
    data["dag"], data["roles"] = {"edges": []}, {}
    data["plan"]["target"] = None
    path = tmp_path / "empty.json"
    path.write_text(json.dumps(data), "utf-8")
    return path


def open_project(person: Any, path: Path) -> Board:
    person.give("Its project file", path)
    person.press("Open the project")
    person.press("Next: Structure")
    person.paints(".canvas")
    return Board(person)


@pytest.mark.parametrize("width", [1280, pytest.param(800, marks=pytest.mark.nightly)])
def test_draw_refuse_undo_annotate_leave_and_reload(person, tmp_path, samples, width) -> None:
    from playwright.sync_api import expect

    wide(person, width)
    board = open_project(person, empty_readmission(tmp_path, samples))

    board.drag("age", "diabetes")
    board.says("age → diabetes is drawn")
    board.drag("diabetes", "readmitted")
    board.says("diabetes → readmitted is drawn")
    board.drag("readmitted", "age")
    board.says("would close the cycle readmitted → age → diabetes → readmitted")
    board.click("readmitted")
    board.press("Outcome")
    board.says("readmitted has the role outcome now. readmitted is also the target.")
    board.click("sex")
    board.press("Protected")
    board.says("sex has the role protected now")
    found = board.project(lambda p: p.roles.protected == ("sex",))
    assert found.dag.edges == (("age", "diabetes"), ("diabetes", "readmitted"))
    assert (found.roles.outcome, found.plan.target) == (("readmitted",), "readmitted")

    board.drag("sex", "readmitted")
    person.page.get_by_text("sex → readmitted", exact=True).first.wait_for()
    board.press("Undo")
    board.says("Undone")
    board.press("Redo")
    board.says("Redone")
    board.press("Undo")
    found = board.project(lambda p: len(p.dag.edges) == 2)
    assert found.roles.protected == ("sex",)

    board.press("Arrange by layers")
    board.says("Arranged")
    board.click_arrow("age", "diabetes")
    board.says("Selected: age → diabetes")
    person.sees("If this arrow were erased:")
    contested = person.page.get_by_role("radio", name="Contested")
    expect(contested).to_have_count(1)  # those of the earlier selection are gone
    contested.click()
    board.project(lambda p: p.dag.contested == (("age", "diabetes"),))
    source = person.page.get_by_role("textbox", name="Source")
    expect(source).to_have_count(1)
    source.fill("Smith 2019")
    source.press("Enter")
    found = board.project(lambda p: p.dag.annotation("age", "diabetes").source == "Smith 2019")
    assert found.dag.contested == (("age", "diabetes"),)

    board.press("Move boxes")
    before = board.at("age")
    board.drag("age", (60, 40))
    board.says("Moved")
    there = board.at("age")
    assert there == pytest.approx((before[0] + 60, before[1] + 40), abs=4)
    kept = board.project(lambda p: p.dag.positions["age"] != found.dag.positions["age"])

    person.visit("Plan")
    person.visit("Structure")
    person.paints(".canvas")
    assert board.project(lambda p: True) == kept

    person.page.reload()
    person.sees("An unsaved draft from before the reload")
    person.press("Restore the draft")
    person.page.get_by_text("An unsaved draft from before the reload").wait_for(state="detached")
    person.rests()
    person.visit("Structure")
    person.paints(".canvas")
    assert board.project(lambda p: True) == kept
    person.fine()


@pytest.mark.nightly
def test_readmission_is_rebuilt_from_an_empty_canvas_by_a_quick_hand(person, tmp_path, samples) -> None:
    wanted = Project.load(samples / "readmission.json")
    board = open_project(person, empty_readmission(tmp_path, samples))
    board.at("age")
    for cause, effect in wanted.dag.edges:
        board.drag(cause, effect, quick=True)
    for role, columns in wanted.roles.items():
        for column in columns:
            board.click(column, quick=True)
            board.press(role.capitalize())
    found = board.project(lambda p: p.roles == wanted.roles)
    assert set(found.dag.edges) == set(wanted.dag.edges)
    assert found.plan.target == "readmitted"
    person.fine()


def test_touch_draws_and_the_keyboard_does_the_same(person, tmp_path, samples) -> None:
    board = open_project(person, empty_readmission(tmp_path, samples))
    touch = person.page.context.new_cdp_session(person.page)

    def finger(kind: str, *spots: tuple[float, float]) -> None:
        points = [{"x": x, "y": y} for x, y in spots]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    (x, y), (u, v) = board.at("age"), board.at("heart_failure")
    finger("touchStart", (x, y))
    for k in range(1, 7):
        finger("touchMove", (x + (u - x) * k / 6, y + (v - y) * k / 6))
    finger("touchEnd")
    board.says("age → heart_failure is drawn")

    person.page.get_by_role("tab", name="Causes").click()
    effect = person.page.get_by_role("combobox", name="Effect")
    effect.focus()
    effect.fill("readmitted")
    effect.press("Enter")
    causes = person.page.get_by_role("combobox", name="Direct causes")
    person.page.get_by_text("Selected: readmitted").or_(person.page.get_by_text("Role of readmitted")).first.wait_for()
    causes.focus()
    causes.fill("heart_failure")
    causes.press("Enter")
    found = board.project(lambda p: len(p.dag.edges) == 2)
    assert found.dag.edges == (("age", "heart_failure"), ("heart_failure", "readmitted"))
    listed = person.page.locator(".board .arrows li")
    assert listed.all_text_contents() == ["age causes heart_failure", "heart_failure causes readmitted"]
    person.page.locator(".board .canvas").focus()
    person.page.keyboard.press("Control+z")
    board.project(lambda p: p.dag.edges == (("age", "heart_failure"),))
    person.fine()


@pytest.mark.nightly
def test_causes_act_together_by_mouse_and_keyboard(person, tmp_path, samples) -> None:
    board = open_project(person, empty_readmission(tmp_path, samples))
    for cause in ("age", "diabetes"):
        board.drag(cause, "readmitted")
        board.says(f"{cause} → readmitted is drawn")
    board.click("age")
    person.page.keyboard.down("Shift")
    board.click("diabetes")
    person.page.keyboard.up("Shift")
    board.press("Act together")
    board.says("age and diabetes act together on readmitted")
    together = ((("age", "diabetes"), "readmitted"),)
    board.project(lambda p: p.dag.interactions == together)
    person.page.locator(".board .arrows li").filter(has_text="age and diabetes act together").wait_for(state="attached")
    board.click_line("age", "diabetes", "readmitted", "together")
    board.says("age and diabetes act together on readmitted. Press Delete to erase this link.")
    lines = person.page.get_by_label("Line of the drawing").locator("option")
    assert "age ⊗ diabetes → readmitted" in lines.all_text_contents()
    person.page.keyboard.press("Delete")
    board.project(lambda p: p.dag.interactions == ())
    person.page.locator(".board .canvas").focus()
    person.page.keyboard.press("Control+z")
    board.project(lambda p: p.dag.interactions == together)
    person.fine()


def test_a_panel_is_grouped_opened_by_keyboard_and_found_as_text(person, tmp_path, samples) -> None:
    board = open_project(person, empty_readmission(tmp_path, samples))
    board.drag("age", "diabetes")
    board.says("age → diabetes is drawn")
    board.click("diabetes")
    person.page.keyboard.down("Shift")
    board.click("heart_failure")
    person.page.keyboard.up("Shift")
    name = person.page.get_by_role("textbox", name="Name of the group")
    name.fill("illnesses")
    name.press("Enter")
    board.says("illnesses: 2 columns in one box")
    inside = ("diabetes", "heart_failure")
    board.project(lambda p: set(p.dag.groups.get("illnesses", ())) == set(inside))
    listed = person.page.locator(".board .arrows li")
    listed.filter(has_text="Closed group illnesses").wait_for(state="attached")
    board.drag("sex", "illnesses")
    board.says("Open illnesses first")
    board.click("illnesses")
    person.page.keyboard.press("Enter")
    board.says("illnesses is open")
    board.at("heart_failure")
    person.page.get_by_label("Line of the drawing").select_option("age → diabetes")
    board.says("Selected: age → diabetes")
    board.click("diabetes")
    board.press("Close group")
    board.says("illnesses is closed")
    assert not person.violations("Structure")
    person.page.locator(".board .canvas").focus()
    person.page.keyboard.press("Control+z")
    board.project(lambda p: not p.dag.groups)
    person.fine()


@pytest.mark.nightly  # the test above draws by keyboard too
def test_the_keyboard_walks_draws_links_and_deletes_on_the_board(person, tmp_path, samples) -> None:
    person.page.set_viewport_size({"width": 1280, "height": 900})
    board = open_project(person, empty_readmission(tmp_path, samples))
    keys = person.page.keyboard
    board.click("age")
    board.says("Selected: age")
    keys.press("Enter")
    board.says("From age to …")
    keys.press("ArrowRight")
    board.says("press Enter to draw the arrow")
    keys.press("Enter")
    (arrow,) = board.project(lambda p: len(p.dag.edges) == 1).dag.edges
    assert arrow[0] == "age"
    assert arrow[1] != "age"
    keys.press("Delete")
    board.says("are erased")
    board.project(lambda p: p.dag.edges == ())

    board.click("sex")
    board.page.keyboard.down("Shift")
    board.click("readmitted")
    board.page.keyboard.up("Shift")
    board.says("Selected: sex and readmitted")
    board.press("Shared hidden cause")
    board.project(lambda p: p.dag.hidden == (("sex", "readmitted"),))
    board.press("Keep apart")
    found = board.project(lambda p: len(p.separations) == 1)
    assert found.separations[0].left == ("sex",)
    said = person.page.locator(".board .say").bounding_box()
    assert said["y"] + said["height"] < 900, "consequences and refusals are above the fold"
    board.drag("age", "diabetes")
    board.says("age → diabetes is drawn")
    board.drag("diabetes", "age")
    board.says("would close the cycle")
    board.says("Drag from a cause to its effect")  # a refusal disappears by itself
    person.fine()


def test_columns_come_from_the_tray_by_typing_and_by_dragging(person, tmp_path) -> None:
    person.upload(*write(tmp_path, 120))
    person.visit("Structure")
    person.paints(".canvas")
    board, tray = Board(person), person.page.locator(".board .tray")
    before = board.at("outcome")
    tray.get_by_role("searchbox").fill("_4")
    tray.get_by_role("searchbox").press("Enter")
    board.says("feature_40 is on the drawing")
    frame = person.page.locator(".board .canvas").bounding_box() or {}
    for column in ("feature_41", "feature_42", "feature_43", "feature_44"):
        tray.get_by_role("searchbox").fill(column)
        tray.get_by_role("searchbox").press("Enter")
        board.says(f"{column} is on the drawing")
        x, y = board.at(column)
        assert frame["x"] < x < frame["x"] + frame["width"], "it comes into view"
        assert frame["y"] < y < frame["y"] + frame["height"]
    assert tray.get_by_role("button", name="feature_40").count() == 0
    canvas = person.page.locator(".board .canvas")
    tray.get_by_role("button", name="feature_31").drag_to(canvas, target_position={"x": 300, "y": 250})
    board.says("feature_31 is on the drawing")
    left, top = (canvas.bounding_box() or {})["x"], (canvas.bounding_box() or {})["y"]
    x, y = board.at("feature_31")
    assert abs(x - left - 300) < 5, "it is where it was dropped"
    assert abs(y - top - 250) < 5
    assert board.at("outcome")[0] == pytest.approx(before[0], abs=1), "nothing else moved"
    board.drag("feature_31", "feature_40")
    board.project(lambda p: ("feature_31", "feature_40") in p.dag.edges)
    assert not person.violations("Structure")
    overview = person.page.locator(".board .map")
    for _ in range(4):
        board.press("Larger")
    overview.wait_for()
    seen = board.at("outcome")
    overview.click(position={"x": 20, "y": 20})
    assert board.at("outcome") != pytest.approx(seen, abs=20), "a click on the overview moves the view"
    board.press("Fit")
    overview.wait_for(state="hidden")
    board.press("Full screen")
    person.page.get_by_role("button", name="Leave full screen").wait_for()
    assert tray.is_visible(), "the tray is part of the full screen"
    person.page.wait_for_function(
        """() => [...document.querySelectorAll('*')].some(e => e.shadowRoot && e.shadowRoot.fullscreenElement &&
             e.shadowRoot.querySelector('.board .canvas').clientHeight > 700)""",
        polling=200,
    )
    below = tray.bounding_box() or {}
    assert below["y"] + below["height"] <= person.page.evaluate("innerHeight"), "the frame leaves room for it"
    board.press("Leave full screen")
    person.page.get_by_role("button", name="Full screen", exact=True).wait_for()


@pytest.mark.nightly
def test_a_draft_is_seen_by_no_other_tab_and_can_be_forgotten(person, address, tmp_path, samples) -> None:
    board = open_project(person, empty_readmission(tmp_path, samples))
    board.drag("age", "diabetes")
    board.project(lambda p: len(p.dag.edges) == 1)
    other = person.page.context.new_page()
    other.goto(f"{address}/data")
    other.get_by_role("button", name="Open readmission").wait_for()
    other.wait_for_timeout(1500)
    assert other.get_by_text("before the reload").count() == 0
    person.page.reload()
    person.sees("An unsaved draft from before the reload")
    person.press("Discard it")
    person.page.get_by_text("before the reload").first.wait_for(state="detached")
    person.page.wait_for_function("() => sessionStorage.getItem('espalier-draft') === null")
    person.page.reload()
    person.sees("There is no project yet")
    person.page.wait_for_timeout(1500)
    assert person.page.get_by_text("before the reload").count() == 0
