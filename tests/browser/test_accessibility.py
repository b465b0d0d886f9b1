"""axe-core over pages of the app, light and dark, every one at night: it finds no serious violation."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.app import people
from tests.support.browser import Person

pytestmark = [pytest.mark.browser]

PAGES = ("Home", "Data", "Structure", "Plan", "Release", "Analyse", "Diagnostics", "Compare", "Ledger", "Glossary")


@pytest.mark.parametrize("pages", [("Plan", "Analyse", "Ledger"), pytest.param(PAGES, marks=pytest.mark.nightly)])
def test_no_page_of_a_released_sample_has_a_serious_violation(person: Person, pages: tuple[str, ...]) -> None:
    person.visit("Home", "Espalier")
    person.press("Open hiring")
    person.press("Go straight to the release")
    person.press("Spend ε = 1 and release")
    person.sees(": 6,000 synthetic rows")
    found: list[str] = []
    for page in pages:
        person.visit(page, "Espalier" if page == "Home" else page)
        found += person.violations(page)
    assert not found, "\n".join(found)
    person.fine()


def test_the_review_of_guesses_has_no_serious_violation(person: Person, tmp_path: Any) -> None:
    table = tmp_path / "people.csv"
    table.write_text(people(), "utf-8")
    person.give("Your table", table)
    person.press("Guess the columns")
    person.sees("0 of 3 columns confirmed")
    person.page.get_by_role("button", name="Change out*come*").click()
    found = person.violations("Review")
    assert not found, "\n".join(found)
