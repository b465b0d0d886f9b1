"""A reload of the tab while a release runs, and after it has ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.test_isolation import files
from tests.support.browser import Person

pytestmark = [pytest.mark.browser, pytest.mark.nightly]


def test_a_reload_returns_to_the_release(person: Person, tmp_path: Path) -> None:
    person.upload(*files(tmp_path, "wombat"))
    person.visit("Release")
    person.rests()
    person.pick("Paid from the budget of", "Not recorded in a ledger")
    person.sees("This release will not be counted")
    person.rests()
    person.press("Spend ε = 1 and release")
    person.page.wait_for_function("() => sessionStorage.getItem('espalier-work') !== null")
    token = person.page.evaluate("() => sessionStorage.getItem('espalier-work')")
    person.page.reload()  # the worker process has only just started
    person.sees(": 120 synthetic rows")
    person.sees("Reloading this tab restores it for 15 minutes")
    person.page.wait_for_function("() => document.activeElement.innerText.startsWith('Release 1 of wombat')")
    person.page.reload()
    person.sees(": 120 synthetic rows")
    assert token not in person.page.url
    with person.page.expect_download() as download:
        person.page.get_by_role("button", name="Synthetic table").click()
    assert "wombat" in Path(download.value.path()).read_text("utf-8")
    other = person.page.context.new_page()
    other.goto(person.page.url)
    other.get_by_text("There is no project yet").first.wait_for()
    assert other.evaluate("() => sessionStorage.getItem('espalier-work')") is None
    assert other.get_by_text("synthetic rows").count() == 0
    person.fine()
