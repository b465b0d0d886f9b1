"""Two tabs of one server, each with its own table: neither ever shows anything from the other table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.browser import Person

pytestmark = [pytest.mark.browser]


def files(folder: Path, mark: str) -> tuple[Path, Path]:
    """Return a table with a column whose name and values are unique, and its project."""
    values = [f"{mark} a", f"{mark} b"]
    schema = [{"name": n, "kind": "categorical", "categories": values} for n in (f"{mark} column", "other")]
    plan = {"method": "mst", "epsilon": 1.0, "delta": 1e-6, "target": "other"}
    facts = {"format": "espalier-project/1", "name": f"{mark} project", "schema": schema, "plan": plan}
    (folder / f"{mark}.json").write_text(json.dumps(facts), "utf-8")
    rows = "".join(f"{values[i % 2]},{values[i % 3 == 0]}\n" for i in range(120))
    (folder / f"{mark}.csv").write_text(f"{mark} column,other\n{rows}", "utf-8")
    return folder / f"{mark}.csv", folder / f"{mark}.json"


def test_neither_of_two_tabs_sees_what_is_in_the_other(person: Person, address: str, tmp_path: Path) -> None:
    other = Person(person.page.context.new_page())
    other.page.set_default_timeout(60_000)
    other.page.goto(f"{address}/data")
    marks = {"quokka": person, "axolotl": other}
    shown: dict[str, list[str]] = {mark: [] for mark in marks}

    def look() -> None:
        for mark, somebody in marks.items():
            shown[mark].append(somebody.page.content())

    for mark, somebody in marks.items():
        somebody.page.bring_to_front()  # a browser makes a background tab wait
        somebody.upload(*files(tmp_path, mark))
        look()
    for page in ("Plan", "Release"):
        for somebody in marks.values():
            somebody.page.bring_to_front()
            somebody.visit(page)
            look()
    for somebody in marks.values():
        somebody.page.bring_to_front()
        somebody.rests()
        somebody.pick("Paid from the budget of", "Not recorded in a ledger")
    for somebody in marks.values():  # start both before either has finished
        somebody.page.bring_to_front()
        somebody.sees("This release will not be counted")
        somebody.rests()
        somebody.press("Spend ε = 1 and release")
    for mark, somebody in marks.items():
        somebody.page.bring_to_front()
        somebody.sees(": 120 synthetic rows")
        look()
        for button in ("Synthetic table", "Report", "Accounting"):
            with somebody.page.expect_download() as download:
                somebody.page.get_by_role("button", name=button).click()
            shown[mark].append(Path(download.value.path()).read_text("utf-8"))
        somebody.fine()
    for mark, foreign in (("quokka", "axolotl"), ("axolotl", "quokka")):
        assert all(mark in text for text in shown[mark][-4:]), "the check can find what it looks for"
        assert not any(foreign in text for text in shown[mark])
