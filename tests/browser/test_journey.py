"""Journeys in a real browser, following what the screen says; nothing is fetched from elsewhere."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.browser]


def test_from_home_to_the_first_release_in_four_clicks(person) -> None:
    person.visit("Home", "Espalier")
    person.press("Open hiring")
    person.press("Straight to the release")
    person.press("Spend ε = 1 and release")
    person.sees(": 6,000 synthetic rows")
    assert person.clicks <= 4
    person.fine()


def test_from_sample_to_diagnostics_in_six_clicks(person) -> None:
    person.visit("Home", "Espalier")
    person.press("Open readmission")
    person.press("Next: the plan")
    person.sees("Associations this table will not show")
    person.press("Next: Release")
    person.press("Spend ε = 1 and release")
    person.sees(": 8,000 synthetic rows")
    person.press("Next: Diagnostics")
    person.press("Compare with the real rows")
    person.page.get_by_text("At home the model trained on real rows").first.wait_for(timeout=120_000)
    person.sees("in the other hospital it is the one trained on synthetic rows")
    assert person.clicks <= 6

    person.visit("Structure")
    person.paints(".canvas")
    person.visit("Release")
    person.page.locator(".js-plotly-plot").first.wait_for()
    person.sees(": 8,000 synthetic rows")
    assert person.page.get_by_text("Release 2").count() == 0, "visits never spend again"
    person.visit("Diagnostics")
    person.sees("How to read it")
    assert person.violations("Diagnostics") == []
    person.fine()
