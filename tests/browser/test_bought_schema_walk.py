"""From a table opened by its column names alone to a release with a bought schema."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import Person

pytestmark = [pytest.mark.browser]

CODES = [f"{chapter}{i}" for chapter in "AB" for i in range(4)]
PROJECT = {
    "format": "espalier-project/1",
    "name": "visits",
    "schema": [
        {"name": "code", "kind": "categorical", "categories": CODES},
        {"name": "sex", "kind": "categorical", "categories": ["f", "m"]},
        {"name": "pregnant", "kind": "categorical", "categories": ["no", "yes"]},
        {"name": "ill", "kind": "categorical", "categories": ["no", "yes"]},
        {"name": "seen", "kind": "date", "dates": {"from": "2024-01-01", "to": "2024-06-30", "by": "month"}},
    ],
    "roles": {"outcome": ["ill"], "protected": ["sex"]},
    "plan": {"method": "privci", "epsilon": 2.0, "delta": 1e-6, "schema_share": 0.1},
}


def lines(rows: int = 6000) -> str:
    """Return invented rows of the project's columns."""
    out = ["sex,pregnant,ill,seen,code"]
    for i in range(rows):
        pregnant, ill = ("no", "yes")[not i % 4], ("no", "yes")[i % 3 == 0]
        out.append(f"{'fm'[i % 2]},{pregnant},{ill},2024-{1 + i % 6:02d}-15,{CODES[i % 8]}")
    return "\n".join(out) + "\n"


@pytest.mark.nightly
def test_dates_by_month_a_refused_combination_and_a_hierarchy(person: Person, tmp_path: Path) -> None:
    table, project = tmp_path / "visits.csv", tmp_path / "visits.json"
    table.write_text(lines())
    project.write_text(json.dumps(PROJECT))
    person.upload(table, project)
    person.page.get_by_role("tab", name="Constraints").click()
    for first, value, other in (("sex", "m", "pregnant"), ("sex", "m", "ill")):
        person.rests()
        for name in (first, other):
            person.pick("Columns", name)
        person.page.keyboard.press("Escape")
        for name, one in ((first, value), (other, "yes")):
            person.pick(f"Values of {name}", one)
            person.page.keyboard.press("Escape")
        person.press("Add this constraint")
        person.sees("sex = m and pregnant = yes")
        if other == "pregnant":
            person.page.get_by_label("Clear all").first.click()
    person.sees("bypasses it")
    person.page.get_by_role("tab", name="Coarsen").click()
    pasted = "".join(f"{code},chapter {code[0]}\n" for code in CODES)
    person.page.get_by_role("textbox", name="Code and group").fill(pasted)
    person.page.keyboard.press("Control+Enter")
    person.sees("8 codes in 2 levels, 2 at the top")
    person.press("Use this hierarchy")
    person.sees("has a hierarchy: 8 codes in 2 levels")
    person.visit("Plan")
    person.sees("Values that the release will distinguish")
    facts, rows = released(person)
    assert {row["seen"][:7] for row in rows} == {f"2024-{month:02d}" for month in range(1, 7)}
    assert not any(row["sex"] == "m" and row["pregnant"] == "yes" for row in rows)
    assert {row["code"] for row in rows} == set(CODES)
    assert [bought["column"] for bought in facts["schema_bought"]] == ["code", "code"]
    assert [(told["codes"], told["alone"]) for told in facts["told_apart"]] == [(8, 8)]
    person.fine()


@pytest.mark.nightly  # tests/pages/test_bought_schema.py walks it without a browser
def test_a_table_is_opened_by_names_alone_and_its_schema_bought(person: Person, tmp_path: Path) -> None:
    table = tmp_path / "visits.csv"
    table.write_text(lines())
    person.give("Your table", table)
    person.press("Buy the schema without reading rows")
    person.rests()
    person.page.get_by_text("No, one row per person").click()
    person.press("Use this answer")
    person.rests()
    person.visit("Plan")
    person.press("Use the open table's number of rows")
    person.page.get_by_text("Details: budget, measurements").click()
    person.sees("measurements and choices")
    facts, rows = released(person)
    assert {"f", "m"} <= {row["sex"] for row in rows} <= {"f", "m", ""}, "noise may leave some cells empty"
    assert {bought["column"] for bought in facts["schema_bought"]} == {"sex", "pregnant", "ill", "seen", "code"}
    person.fine()


def released(person: Person) -> tuple[dict[str, Any], list[dict[str, str]]]:
    """Through the Release page: release.json and the released rows."""
    person.visit("Release")
    person.rests()
    person.pick("Paid from the budget of", "Not recorded in a ledger")
    person.sees("This release will not be counted")
    person.rests()
    person.press("Spend ε")
    person.sees(": 6,000 synthetic rows")
    read = []
    for button in ("Accounting", "Synthetic table"):
        with person.page.expect_download() as download:
            person.page.get_by_role("button", name=button).click()
        read.append(Path(download.value.path()).read_text("utf-8"))
    return json.loads(read[0]), list(csv.DictReader(io.StringIO(read[1])))
