"""One journey in a real browser: sample to diagnostics in at most six clicks, nothing fetched from elsewhere."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.browser]


def test_from_sample_to_diagnostics_in_six_clicks(person) -> None:
    person.press("Open readmission")
    person.press("Skip to Plan")
    person.sees("Associations this table will not show")
    person.press("Next: Release")
    person.press("Spend ε = 1 and release")
    person.sees(": 8,000 synthetic rows")
    person.press("Next: Diagnostics")
    person.press("Compare with the real rows")
    person.sees("How to read it")
    assert person.clicks <= 6

    person.visit("Structure")
    person.paints(".canvas")
    person.visit("Release")
    person.page.locator(".js-plotly-plot").first.wait_for()
    person.sees(": 8,000 synthetic rows")
    assert person.page.get_by_text("Release 2").count() == 0, "visits never spend again"
    person.visit("Diagnostics")
    person.sees("How to read it")
    person.fine()
