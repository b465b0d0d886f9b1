"""Methods for numeric columns in a real browser: the private one and the one that is not private, each up to the tab of
numbers."""

from __future__ import annotations

import os

import pytest

from espalier.core.blurring.notice import NOT_PRIVATE, NOT_PRIVATE_CSV

pytestmark = [pytest.mark.browser]

WAIT = 240
"""Longest wait for a job on a busy machine, in seconds; on an idle machine, each of the two tests takes about 20 s."""


@pytest.mark.nightly  # tests/pages/test_pages.py compares numbers without a browser
def test_lengths_of_stay_are_released_privately_and_compared(person) -> None:
    person.visit("Home", "Espalier")
    person.press("Open stays")
    person.visit("Plan")
    person.sees("a jump inside a column is smoothed")
    _look(person, "plan")
    person.visit("Release")
    person.press("Spend ε = 1 and release")
    person.finds(person.page.get_by_text(": 6,000 synthetic rows").first, WAIT)
    _numbers(person)
    person.pick("Price", "marker")
    person.sees("(MAPD)")
    _look(person, "diagnostics")
    person.fine()


@pytest.mark.nightly
def test_blurred_rows_need_a_tick_and_are_compared_under_their_warning(person) -> None:
    person.visit("Home", "Espalier")
    person.press("Open stays")
    person.visit("Plan")
    person.rests()
    person.pick("Method", "two-stage")
    person.sees(NOT_PRIVATE)
    person.rests()
    person.visit("Release")
    person.sees("can find that patient's row here")
    button = person.page.get_by_role("button", name="Make the rows (NOT PRIVATE)").first
    assert button.is_disabled()
    person.page.get_by_text("will be a blurred copy of a real row").first.click()
    person.rests()
    person.press("Make the rows (NOT PRIVATE)")
    person.finds(person.page.get_by_text("cannot be reached").first, WAIT)
    person.rests()
    person.press("Ask for a LID of")
    person.finds(person.page.get_by_text("6,000 rows of stays: NOT PRIVATE").first, WAIT)
    person.sees("re-identified by someone who knows")
    person.page.get_by_role("button", name=NOT_PRIVATE_CSV).wait_for()
    _look(person, "blurred")
    _numbers(person)
    person.sees("closeness alone does not make a good release")
    _look(person, "blurred-diagnostics")
    person.fine()


def _numbers(person) -> None:
    """The comparison, and its tab of numbers."""
    person.rests()
    person.visit("Diagnostics")
    person.rests()
    person.press("Compare with the real rows")
    person.page.get_by_role("tab", name="Numbers").click(timeout=1000 * WAIT)
    person.sees("Predicting the number days")
    person.sees("How far apart are the values?")
    person.sees("Quantiles")


def _look(person, name: str) -> None:
    """Save pictures for review if a folder is given."""
    if folder := os.environ.get("ESPALIER_PICTURES"):
        for width in (1280, 800):
            for scheme in ("light", "dark"):
                person.page.set_viewport_size({"width": width, "height": 2600})
                person.page.emulate_media(color_scheme=scheme)
                person.page.wait_for_timeout(1500)
                person.page.screenshot(path=f"{folder}/numbers-{name}-{width}-{scheme}.png")
        person.page.set_viewport_size({"width": 1280, "height": 1400})
        person.page.emulate_media(color_scheme="light")
        person.rests()
