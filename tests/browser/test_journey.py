"""Five people in a real browser, following what the screen says; nothing is fetched from elsewhere.

A fairness officer, two clinicians and a stakeholder are here; the data steward is in test_budget.py.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.browser]


def test_a_fairness_officer_releases_in_four_clicks_and_reads_the_gap(person) -> None:
    person.visit("Home", "Espalier")
    person.press("Open hiring")
    person.press("Straight to the release")
    person.press("Spend ε = 1 and release")
    person.sees(": 6,000 synthetic rows")
    assert person.clicks <= 4
    person.press("Next: Diagnostics")
    person.press("Compare with the real rows")
    person.page.get_by_text("in how often it says hired = yes fell").first.wait_for(timeout=120_000)
    person.fine()


def test_a_stakeholder_follows_the_tour_and_takes_the_zip(person) -> None:
    person.visit("Home", "Espalier")
    person.press("Open readmission for the tour")
    person.press("Go to stop 1: Structure")
    person.paints(".canvas")
    person.sees("3 direct causes of readmitted")
    person.visit("Release")
    person.press("Spend ε = 1 and release")
    person.sees(": 8,000 synthetic rows")
    person.sees("Safe to share")
    with person.page.expect_download() as download:
        person.press("Download everything (zip)")
    with zipfile.ZipFile(io.BytesIO(Path(download.value.path()).read_bytes())) as archive:
        assert {"synthetic.csv", "report.html", "croissant.json"} <= {Path(n).name for n in archive.namelist()}
    person.fine()


def test_a_clinician_reviews_her_own_table_and_draws_what_she_knows(person, tmp_path) -> None:
    table = tmp_path / "clinic.csv"
    rows = [f"{30 + i % 50},{('yes', 'no', '?')[i % 3]},{('yes', 'no')[i % 2]}" for i in range(300)]
    table.write_text("age,smoker,ill\n" + "\n".join(rows) + "\n", "utf-8")
    person.give("Your table", table)
    person.press("Guess the columns from the table")
    person.sees("0 of 3 columns confirmed")
    person.press("Confirm and next")
    person.sees("1 of 3 columns confirmed")
    person.sees("mean that the value is missing")
    person.visit("Structure")
    person.visit("Data")
    person.sees("1 of 3 columns confirmed")  # nothing that was answered is lost
    person.press("Yes, missing")
    person.rests()
    person.press("Confirm and next")
    person.sees("2 of 3 columns confirmed")
    person.press("Confirm")
    person.sees("all 3 guessed columns are confirmed")
    person.press("Next: Structure")
    person.paints(".canvas")
    canvas = person.page.locator(".board .canvas")
    canvas.focus()
    for key in ("ArrowDown", "Enter", "ArrowRight", "Enter"):
        canvas.press(key)
    person.page.locator(".board .say").filter(has_text="is drawn").wait_for()
    person.fine()


def test_a_clinician_learns_in_six_clicks_whether_it_holds_elsewhere(person) -> None:
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
