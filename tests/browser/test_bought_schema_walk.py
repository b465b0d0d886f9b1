"""A date column by month, an impossible combination that is refused, and a hierarchy, as far as the plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytestmark = [pytest.mark.browser]

CODES = [f"{chapter}{i}" for chapter in "AB" for i in range(4)]
PROJECT = {
    "format": "espalier-project/1",
    "name": "visits",
    "schema": [
        {"name": "sex", "kind": "categorical", "categories": ["f", "m"]},
        {"name": "pregnant", "kind": "categorical", "categories": ["no", "yes"]},
        {"name": "ill", "kind": "categorical", "categories": ["no", "yes"]},
        {"name": "seen", "kind": "date", "dates": {"from": "2024-01-01", "to": "2024-06-30", "by": "month"}},
        {"name": "code", "kind": "categorical", "categories": CODES},
    ],
    "roles": {"outcome": ["ill"], "protected": ["sex"]},
    "plan": {"method": "privci", "epsilon": 2.0, "delta": 1e-6, "schema_share": 0.1},
}


def lines(rows: int = 600) -> str:
    """Invented rows of the project's columns."""
    out = ["sex,pregnant,ill,seen,code"]
    for i in range(rows):
        pregnant, ill = ("no", "yes")[not i % 4], ("no", "yes")[i % 3 == 0]
        out.append(f"{'fm'[i % 2]},{pregnant},{ill},2024-{1 + i % 6:02d}-15,{CODES[i % 8]}")
    return "\n".join(out) + "\n"


def test_dates_by_month_a_refused_combination_and_a_hierarchy(person, tmp_path: Path) -> None:
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
    person.sees("leads around it")
    person.page.get_by_role("tab", name="Coarsen").click()
    person.pick("Column with a hierarchy", "code")
    pasted = "".join(f"{code},chapter {code[0]}\n" for code in CODES)
    person.page.get_by_role("textbox", name="Code and group").fill(pasted)
    person.page.keyboard.press("Control+Enter")
    person.sees("8 codes in 2 levels, 2 at the top")
    person.press("Take this hierarchy")
    person.sees("has a hierarchy: 8 codes in 2 levels")
    person.visit("Plan")
    person.sees("What will be told apart")
    person.fine()
