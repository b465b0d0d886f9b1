"""The board of linked tables in a real browser: arrows to the next visit by mouse and by keyboard."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.test_board import Board

pytestmark = [pytest.mark.browser]

START = (("visits.severity", "visits.severity"), ("visits.insulin", "visits.back"), ("visits.back", "visits.back"))
NEW = ("visits.severity", "visits.back")
NEXT = "next visit: back"


@pytest.fixture
def board(person: Any) -> Board:
    person.visit("Home", "Espalier")
    person.press("Open clinic")
    person.visit("Structure")
    person.paints(".canvas")
    return Board(person)


def between(board: Board, wanted: tuple[tuple[str, str], ...]) -> Any:
    return board.project(lambda p: p.linked is not None and p.linked.arrows == wanted)


def test_the_mouse_draws_refuses_erases_and_undoes(board: Board) -> None:
    page = board.page
    board.drag("visits.severity", NEXT)
    board.says("visits.severity → next visit: back is drawn. It leads from one visit to the next.")
    found = between(board, (*START, NEW))
    board.drag(NEXT, "visits.insulin")
    board.says("an arrow cannot lead from the next visit back")
    board.drag(NEXT, "patients.age")
    board.says("an arrow cannot lead from the next visit back")
    board.drag("patients.sex", NEXT)
    board.says("patients.sex → visits.back is drawn. It holds at every visit.")
    board.project(lambda p: ("patients.sex", "visits.back") in p.dag.edges and p.linked == found.linked)
    board.press("Undo")
    board.project(lambda p: p.dag.edges == found.dag.edges)
    board.click_arrow("visits.severity", NEXT)
    board.says("Selected: visits.severity → next visit: back. It leads from one visit to the next.")
    page.keyboard.press("Delete")
    between(board, START)
    board.press("Undo")
    between(board, (*START, NEW))
    listed = page.locator(".board .arrows li").all_text_contents()
    assert "visits.severity causes next visit: back" in listed
    options = page.get_by_label("Line of the drawing").locator("option").all_text_contents()
    assert "visits.insulin → next visit: back" in options

    page.reload()
    board.person.sees("An unsaved draft from before the reload")
    board.person.press("Restore the draft")
    page.get_by_text("An unsaved draft from before the reload").wait_for(state="detached")
    board.person.visit("Structure")
    board.person.paints(".canvas")
    board.at(NEXT)
    between(board, (*START, NEW))
    board.person.fine()


def test_the_keyboard_draws_and_erases_and_a_box_stays_in_its_slice(board: Board) -> None:
    page = board.page
    board.click("visits.severity")
    board.says("Selected: visits.severity")
    page.keyboard.press("Enter")
    board.says("From visits.severity to …")
    for _ in range(12):
        page.keyboard.press("ArrowRight")
        if page.locator(".board .say").filter(has_text="to next visit: ").count():
            break
    for _ in range(12):
        if page.locator(".board .say").filter(has_text=f"to {NEXT}:").count():
            break
        (_, y), (_, now) = board.at(NEXT), _selected(board)
        page.keyboard.press("ArrowDown" if y > now else "ArrowUp")
    board.says(f"From visits.severity to {NEXT}: press Enter to draw the arrow")
    page.keyboard.press("Enter")
    between(board, (*START, NEW))
    board.says("It leads from one visit to the next.")
    page.keyboard.press("Escape")
    board.click(NEXT)
    board.says(f"Selected: {NEXT}")
    assert page.locator(".board").get_by_role("button", name="Erase its arrows").is_enabled()
    assert page.locator(".board").get_by_role("button", name="Outcome").is_disabled()
    page.keyboard.press("Delete")
    between(board, (("visits.severity", "visits.severity"),))
    page.keyboard.press("Control+z")
    between(board, (*START, NEW))

    board.press("Move boxes")
    left, right = board.at("next visit: insulin"), board.at(NEXT)
    board.drag("visits.back", (900, 0))
    board.says("Moved")
    at = board.at("visits.back")
    assert at[0] < min(left[0], right[0]) - 60, "a box of this visit stays left of the next visit"
    board.project(lambda p: NEXT in p.dag.positions)
    board.person.fine()


def _selected(board: Board) -> tuple[float, float]:
    """Return the position of the box of the next visit that has the keyboard focus."""
    text = board.page.locator(".board .say").text_content()
    return board.at(text.split(" to ")[1].split(": press Enter")[0], quick=True)


@pytest.mark.nightly
@pytest.mark.parametrize("width", [1280, 800])
def test_the_board_of_linked_tables_has_no_serious_violation(board: Board, width: int) -> None:
    board.page.set_viewport_size({"width": width, "height": 1400})
    board.at(NEXT)
    found = board.person.violations("Structure")
    assert not found, "\n".join(found)
    board.person.fine()
