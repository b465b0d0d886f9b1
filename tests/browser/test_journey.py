"""Five people follow the screen in a real browser; nothing is fetched from elsewhere.

A fairness officer, two clinicians and a stakeholder are here; the data steward is in test_budget.py.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.browser]


@pytest.mark.nightly  # the last test takes the same steps
def test_a_fairness_officer_releases_in_four_clicks_and_reads_the_gap(person) -> None:
    person.visit("Home", "Espalier")
    person.press("Open hiring")
    person.press("Go straight to the release")
    person.press("Spend ε = 1 and release")
    person.sees(": 6,000 synthetic rows")
    assert person.clicks <= 4
    person.press("Next: Diagnostics")
    person.press("Compare with the real rows")
    person.finds(person.page.get_by_text("in how often it predicts hired = yes fell").first, 120)
    person.fine()


def test_a_stakeholder_follows_the_tour_and_takes_the_zip(person) -> None:
    person.visit("Home", "Espalier")
    person.press("Start the tour")
    person.press("Go to the first stop")
    person.sees("Stop 1 of 5")
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
    table, book = tmp_path / "clinic.csv", tmp_path / "book.csv"
    rows = [
        f"p{i // 2},{30 + i % 50},{('yes', 'no', 'none')[i % 3]},{('yes', 'no')[i % 2]},{i % 3}" for i in range(300)
    ]
    table.write_text("patient,age,smoker,ill,<b>ward</b>\n" + "\n".join(rows) + "\n", "utf-8")
    book.write_text("column,code,label\n<b>ward</b>,0,<i>North</i>\n<b>ward</b>,1,South\n<b>ward</b>,2,East\n", "utf-8")
    person.give("Your table", table)
    person.press("Guess the columns from the table")
    person.sees("0 of 5 columns confirmed")
    assert person.page.evaluate("() => document.querySelector('[data-testid=stMain]').scrollTop") == 0
    person.give("A data dictionary", book)
    person.page.get_by_text("was not produced from these rows").first.click()
    person.rests()
    person.press("Use this dictionary")
    person.sees("0 = <i>North</i>")
    line = {n: person.page.locator(f'[data-column="{n}"]') for n in ("patient", "age", "smoker", "ill")}
    line["patient"].get_by_role("button", name="Identifies the person").click()
    person.sees("identifies the person; at most 2 rows")
    person.rests()
    person.press("Yes, missing")
    line["smoker"].get_by_text("none counts as empty").wait_for()
    line["age"].get_by_role("button", name="Change age").click()
    line["age"].locator("[name=edges]").fill("0; x")
    line["age"].get_by_role("button", name="Apply").click()
    line["age"].get_by_text("'x' is not a number").wait_for()
    line["age"].locator("[name=edges]").fill("0; 40; 60; 120")
    line["age"].locator("[name=unit]").fill("years")
    line["age"].get_by_role("button", name="Apply").click()
    line["age"].get_by_text("3 bins · years").wait_for()
    person.visit("Structure")
    person.visit("Data")
    line["smoker"].get_by_text("none counts as empty").wait_for()  # no answer is lost
    last = person.page.locator('[data-column="ill"] .values li').last
    button = person.page.get_by_role("button", name="Confirm these 2 columns (obviously public)")
    assert button.bounding_box()["y"] > last.bounding_box()["y"], "the button comes after the last value"
    button.click()
    line["ill"].get_by_text("confirmed").wait_for()
    person.rests()
    if person.page.get_by_role("button", name="Confirm th").count():
        person.press("Confirm th")
    person.sees("guessed columns are confirmed")
    person.rests()
    person.page.reload()
    person.press("Restore the draft")
    person.sees("guessed columns are confirmed")
    person.press("Next: Structure")
    person.paints(".canvas")
    canvas = person.page.locator(".board .canvas")
    canvas.focus()
    for key in ("ArrowDown", "Enter", "ArrowRight", "Enter"):
        canvas.press(key)
    person.page.locator(".board .say").filter(has_text="is drawn").wait_for()
    person.fine()


@pytest.mark.nightly
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
    person.finds(person.page.get_by_text("At home the model trained on real rows").first, 120)
    person.sees("in the other hospital the model trained on synthetic rows does")
    assert person.clicks <= 6

    person.visit("Structure")
    person.paints(".canvas")
    person.visit("Release")
    person.sees("What was measured")
    person.sees(": 8,000 synthetic rows")
    assert person.page.get_by_text("Release 2").count() == 0, "returning to a page never spends again"
    person.visit("Diagnostics")
    person.sees("How to read it")
    assert person.violations("Diagnostics") == []
    person.fine()
