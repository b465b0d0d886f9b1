"""The clinician's and the steward's journeys with two linked tables, in a real browser."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.browser.test_decoder_walk import ends
from tests.pages.test_linked_pages import two_files
from tests.support.browser import Person

pytestmark = [pytest.mark.browser]


@pytest.mark.nightly
def test_two_files_are_opened_drawn_released_judged_and_analysed(person: Person, tmp_path: Path) -> None:
    page = person.page
    for name, content in zip(("patients.csv", "visits.csv"), two_files(), strict=True):
        (tmp_path / name).write_bytes(content)
    page.get_by_text("People with several visits: open two linked tables").click()
    person.give("Table of people, or one table with both", tmp_path / "patients.csv")
    person.give("Table of their visits", tmp_path / "visits.csv")
    person.rests()
    person.pick("What orders the visits?", "admitted")
    person.sees("of the visits are kept; with")
    person.rests()
    person.press("Guess the columns of both tables")
    page.get_by_role("button", name="Confirm th").first.wait_for()
    person.rests()
    while (button := page.get_by_role("button", name="Confirm th")).count():
        button.first.click()
        person.rests()
    person.sees("Reviewed:")

    person.visit("Structure")
    person.rests()
    page.get_by_role("tab", name="Next visit").click()
    person.pick("Its causes at the previous visit", "visits.diag")
    person.sees("at a visit →")

    person.visit("Plan")
    person.sees("Linked tables")
    person.rests()
    person.visit("Release")
    person.rests()
    person.pick("Paid from the budget of", "Not recorded in a ledger")
    person.sees("This release will not be counted")
    person.rests()
    person.press("Spend ε")
    person.sees("synthetic people and their visits")
    with page.expect_download() as taken:
        person.press("Download everything (zip)")
    taken.value.save_as(tmp_path / "release.zip")
    with zipfile.ZipFile(tmp_path / "release.zip") as archive:
        assert {"patients.csv", "visits.csv", "statement.json"} <= set(archive.namelist())

    person.visit("Diagnostics")
    person.rests()
    person.press("Compare with the real tables")
    ends(person, "Survival to the next visit")
    person.visit("Analyse")
    person.sees("From one visit to the next")
    person.sees("at the next visit after")
    assert not person.errors


@pytest.mark.nightly
def test_the_analysis_of_a_linked_release_has_no_serious_violation(person: Person) -> None:
    person.visit("Home", "Espalier")
    person.press("Open clinic")
    person.visit("Plan")
    person.rests()
    person.pick("Columns counted at each visit", "visits.back")
    person.page.keyboard.press("Escape")  # an open list hides the other fields
    person.rests()
    person.pick("Columns for which returns are counted", "visits.insulin")
    person.rests()
    person.visit("Release")
    person.rests()
    person.press("Spend ε")
    person.sees("synthetic people and their visits")
    person.visit("Analyse")
    person.sees("At each visit")
    person.sees("at visit 4")
    person.sees("return within 30 days after severe")
    found = person.violations("Analyse")
    assert not found, "\n".join(found)
    person.fine()
