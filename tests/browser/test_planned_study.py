"""A statistician plans a study in a real browser: analyses, a release, promised and achieved widths, and a script."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.browser]


def fill(person, label: str, value: str) -> None:
    """Type a value into the last field with this name, which belongs to the analyses."""
    field = person.page.locator("input").and_(person.page.get_by_label(label, exact=True)).last
    field.fill(value)
    field.press("Enter")
    person.rests()


def choose(person, field: str, option: str) -> None:
    """Choose an option from the last list with this name."""
    box = person.page.get_by_role("combobox", name=field).last
    box.click()
    box.fill(option)
    person.page.get_by_role("option", name=option, exact=True).first.click()
    person.rests()


@pytest.mark.nightly  # tests/pages/test_regression_editor.py takes the same steps without a browser
def test_a_study_is_planned_released_and_read(person) -> None:
    person.visit("Home", "Espalier")
    person.press("Open readmission")
    person.visit("Plan")
    person.page.get_by_text("Planned analyses").first.click()
    person.rests()

    choose(person, "Event", "readmitted=yes")
    fill(person, "Name", "share")
    person.press("Add the analysis")
    person.sees("share: ± ")

    choose(person, "Figure", "difference of shares")
    choose(person, "Event", "readmitted=yes")
    choose(person, "Group by", "heart_failure")
    fill(person, "Name", "gap")
    person.press("Add the analysis")
    person.sees("gap: ± ")

    choose(person, "Figure", "coefficient of a regression")
    choose(person, "Family", "logistic")
    choose(person, "Outcome", "readmitted=yes")
    choose(person, "Predictors", "lives_alone")
    person.page.keyboard.press("Escape")  # a list that allows several choices stays open
    person.rests()
    fill(person, "Name", "risk")
    person.press("Add the analysis")
    person.sees("risk: ± ")
    person.sees("Promised half-widths of your analyses")

    person.visit("Release")
    person.page.get_by_role("button", name="Spend ε").first.click()
    person.sees(": 8,000 synthetic rows")
    person.visit("Analyse")
    person.sees("Planned analyses")
    person.sees("Bought regressions")
    person.page.get_by_text("Proportion", exact=True).first.click()
    person.rests()
    with person.page.expect_download() as download:
        person.page.get_by_role("button", name="Script in R and Python").click()
    with zipfile.ZipFile(io.BytesIO(Path(download.value.path()).read_bytes())) as files:
        assert {"question.py", "question.R", "copies.csv", "counts.csv"} <= set(files.namelist())
    person.fine()
