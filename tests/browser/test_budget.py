"""The ledger in a real browser: open a budget, release from it, see the entry, download the release again."""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path

import pytest

from espalier.core.ledger.archive import digest_of
from tests.support.browser import Person

pytestmark = [pytest.mark.browser]


@pytest.mark.nightly
def test_a_budget_is_opened_spent_from_and_gives_its_release_again(person: Person) -> None:
    page = person.page
    person.press("Open hiring")
    person.visit("Ledger")
    page.get_by_text(re.compile("No budget is open yet|The ledger itself")).first.wait_for()
    if page.get_by_text("The ledger itself").count():  # another test may have opened a budget already
        page.get_by_text("Open another table's budget").click()
    page.get_by_label("Name of the table").fill("applicants of 2024")
    page.get_by_label("Total ε", exact=True).fill("1.5")
    person.press("Open this budget")
    person.sees("The budget of applicants of 2024")
    person.sees("Nothing has been released from this budget yet")
    person.rests()
    person.press("Go to Release")
    person.sees("After this plan")
    person.rests()
    page.get_by_label("Note for the ledger").fill("for the board")
    person.press("Spend ε = 1 and release")
    person.sees("Recorded in the ledger as entry")
    with page.expect_download() as download:
        page.get_by_role("button", name="Accounting").click()
    facts = json.loads(Path(download.value.path()).read_text("utf-8"))["ledger"]

    page.reload()
    person.sees("Recorded in the ledger as entry")
    person.visit("Ledger")
    page.get_by_text("The ledger itself").first.wait_for()
    person.rests()
    if page.get_by_role("combobox", name="Budget to show").count():
        person.pick("Budget to show", "applicants of 2024")
    person.sees("The budget of applicants of 2024")
    page.locator("[data-testid=stDataFrame] canvas").first.wait_for()
    person.pick("Release", facts["entry"])
    person.sees("These are the original files of the release")
    with page.expect_download() as download:
        page.get_by_role("button", name="All files (zip)").click()
    with zipfile.ZipFile(io.BytesIO(Path(download.value.path()).read_bytes())) as archive:
        files = {info: archive.read(info) for info in archive.namelist()}
    with page.expect_download() as download:
        page.get_by_role("button", name="Export as JSON").click()
    exported = json.loads(Path(download.value.path()).read_text("utf-8"))
    entries = [e for p in exported["populations"] for e in p["entries"] if e["id"] == facts["entry"]]
    assert [e["released"] for e in entries] == [digest_of(files)]
    assert entries[0]["note"] == "for the board"
    assert {part["kind"] for part in entries[0]["parts"]} == {"select", "measure"}
    person.press("Open its project")
    person.rests()
    person.visit("Release")
    person.sees("No table is open")
    person.fine()
