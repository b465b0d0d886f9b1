"""The causal decoder from the Plan page to its judgement and the attack on it, in a real browser."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.support.browser import Person

pytestmark = [pytest.mark.browser]

COLUMNS = [f"c{i:02d}" for i in range(1, 7)]
PROJECT = {
    "format": "espalier-project/1",
    "name": "wards",
    "schema": [{"name": name, "kind": "categorical", "categories": ["no", "yes"]} for name in COLUMNS],
    "dag": {"edges": [[COLUMNS[i // 2], name] for i, name in enumerate(COLUMNS) if i]},
    "plan": {"method": "mst", "epsilon": 1.0, "delta": 1e-6, "families": "additive"},
}


def lines(rows: int = 400) -> str:
    """Return invented rows: every column mostly copies the column that causes it."""
    rng = np.random.default_rng(0)
    cells = [rng.random(rows) < 0.4]
    for i in range(1, len(COLUMNS)):
        cells.append(np.where(rng.random(rows) < 0.7, cells[i // 2], rng.random(rows) < 0.3))
    words = np.array(["no", "yes"])[np.column_stack(cells).astype(int)]
    return "\n".join(",".join(row) for row in [COLUMNS, *words]) + "\n"


@pytest.mark.nightly
def test_a_decoder_is_planned_released_judged_and_attacked(person: Person, tmp_path: Path) -> None:
    page = person.page
    table, project = tmp_path / "wards.csv", tmp_path / "wards.json"
    table.write_text(lines())
    project.write_text(json.dumps(PROJECT))
    person.upload(table, project)
    person.visit("Plan")
    person.pick("Method", "Causal decoder")
    person.sees("every column is predicted from its drawn causes")
    person.rests()
    person.press("Use the open table's number of rows")
    page.get_by_text("Details: budget, measurements").click()
    page.get_by_text("clipped gradients of a training step (25 times)").first.wait_for(state="attached")
    person.visit("Release")
    person.rests()
    person.pick("Paid from the budget of", "Not recorded in a ledger")
    person.sees("This release will not be counted")
    person.rests()
    person.press("Spend ε")
    person.sees(": 400 synthetic rows")
    person.press("Next: Diagnostics")

    person.sees("can be judged on")
    person.rests()
    person.press("Train the classifiers")
    page.get_by_role("button", name="Cancel").wait_for()
    ends(person, "Over all targets and classifiers the AUC is")

    page.get_by_role("tab", name="Membership attack").click()
    person.press("Play the game")
    person.sees("of 96")
    person.rests()
    person.press("Cancel")
    person.sees("This did not finish: cancelled")
    person.rests()
    page.get_by_role("textbox", name="Rows to attack").fill("3, 17")
    page.keyboard.press("Enter")
    person.rests()
    person.press("Play the game")
    ends(person, "The control publishes the rows themselves")
    page.get_by_role("tab", name="Arrows").click()
    person.sees("how much the effect's distribution changes")
    person.rests()
    person.press("Measure the arrows")
    ends(person, "of the real ones")
    person.fine()


def ends(person: Person, text: str) -> None:
    """Wait until a job has shown ``text``. It checks twice a second, because a browser that polls continuously occupies
    a core.
    """
    for _ in range(240):
        if person.page.get_by_text(text).count():
            return person.rests()
        person.page.wait_for_timeout(500)
    pytest.fail(f"{text!r} did not appear")
