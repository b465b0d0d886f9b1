"""Questions and counts in a real browser: added as a sentence, planned, released and read."""

from __future__ import annotations

import os

import pytest

pytestmark = [pytest.mark.browser]


@pytest.mark.nightly
def test_a_question_is_added_planned_released_and_read(person) -> None:
    person.press("Open social services")
    person.rests()
    person.visit("Plan")
    person.sees("five burdens or more")
    person.sees("Expected precision of your answers")
    person.rests()
    person.pick("Number of rows in which", "gender")
    person.page.keyboard.press("Escape")
    person.rests()
    person.pick("… gender is one of", "woman")
    person.page.keyboard.press("Escape")
    person.sees("How many rows with gender woman are there?")
    person.page.get_by_label("Name").fill("women")
    person.page.keyboard.press("Enter")
    person.rests()
    person.press("Add the question")
    person.sees("rows with gender woman")
    person.rests()
    _look(person, "plan")
    person.visit("Release")
    person.press("Spend ε = 1 and release")
    person.finds(person.page.get_by_text(": 6,000 synthetic rows").first, 240)
    person.page.get_by_role("tab", name="Questions").click()
    person.sees("Questions and counts")
    person.page.locator(".js-plotly-plot:visible").first.wait_for()
    _look(person, "release")
    person.fine()


def _look(person, name: str) -> None:
    """Save a picture for review if a folder is given."""
    if folder := os.environ.get("ESPALIER_PICTURES"):
        person.page.wait_for_timeout(1500)
        person.page.screenshot(path=f"{folder}/questions-{name}.png", full_page=True)
