"""Names and notes that contain HTML, links or scripts, on every page in a real browser and in the report."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from espalier.core.project.file import Project
from espalier.core.release import shelf
from espalier.core.release.spend import release
from espalier.core.tables.reading import read_table
from espalier.core.tables.table import Table
from tests.support.browser import Person
from tests.support.sign_in import Guarded, signed_in

pytestmark = [pytest.mark.browser]

HTML = (
    "<img src=x onerror=\"window.hacked='html'\"><script>window.hacked='script'</script>"
    '<a href="http://evil.example/d">x</a><b>hostile</b>'
)
LINK = "[click](http://evil.example/a) https://evil.example/b <http://evil.example/c>"
STYLE = "**hostile** _hostile_ # hostile\n# hostile :red[hostile] $hostile$ `hostile` ~~hostile~~"
ONE_LINE = STYLE.replace("\n", " ")
LIVE = """() => [...document.querySelectorAll('*')].flatMap(e => [e, ...(e.shadowRoot?.querySelectorAll('*') ?? [])])
    .filter(e => `${e.getAttribute('href')}${e.getAttribute('xlink:href')}${e.getAttribute('src')}`.includes('evil')
        || e.matches('img[src=x]')
        || (e.textContent.trim() === 'hostile' && (e.matches('em,strong,b,del,h1,h2,h3,.katex')
            || getComputedStyle(e).fontWeight > 500 || /red/.test(e.getAttribute('style')))))
    .map(e => e.outerHTML.slice(0, 200))"""
"""Text that the page rendered as markup: links, pictures, and styled words that should have stayed literal."""


def files(folder: Path) -> tuple[Path, Path]:
    """Return a table and a project in which every name that people choose is hostile."""
    columns = [HTML, LINK, ONE_LINE]  # a table's header is one line
    schema = [{"name": n, "kind": "categorical", "categories": columns} for n in columns]
    project = {
        "format": "espalier-project/1",
        "name": f"{STYLE} {HTML} {LINK}",
        "schema": schema,
        "dag": {"edges": [[HTML, LINK], [ONE_LINE, LINK]], "notes": {LINK: f"{STYLE} {HTML}"}},
        "roles": {"outcome": [LINK], "protected": [HTML], "admissible": [ONE_LINE]},
        "plan": {"method": "prism", "regime": "causal", "target": LINK, "fair": True, "epsilon": 1.0, "delta": 1e-6},
    }
    (folder / "hostile.json").write_text(json.dumps(project), "utf-8")
    with (folder / "hostile.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([columns, *([columns[i % 3]] * 3 for i in range(90))])
    return folder / "hostile.csv", folder / "hostile.json"


def harmless(page: Any) -> None:
    assert page.evaluate("() => window.hacked") is None
    assert page.evaluate(LIVE) == []


def test_nothing_that_people_name_comes_alive(person: Person, tmp_path: Path) -> None:
    page = person.page
    person.upload(*files(tmp_path))
    harmless(page)
    for name in ("Structure", "Plan"):
        person.visit(name)
        page.wait_for_timeout(1500)
        harmless(page)
    person.visit("Release")
    person.rests()
    for field, text in (("Name of the table", HTML[:100] + LINK), ("Opened by", LINK), ("Note", ONE_LINE)):
        page.get_by_label(field, exact=True).fill(text)
    person.press("Open this budget")
    person.sees("After this plan")
    person.rests()
    harmless(page)
    page.get_by_label("Note for the ledger").fill(HTML)
    person.press("Spend ε = 1 and release")
    person.sees(": 90 synthetic rows")
    harmless(page)
    for tab in ("What was spent", "First rows"):
        page.get_by_role("tab", name=tab).click()
        harmless(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Report").click()
    report = Path(download.value.path()).read_text("utf-8")
    person.visit("Ledger")
    person.sees("The ledger itself")
    person.rests()
    person.pick("Release", "UTC")
    person.sees("These are the original files of the release")
    person.press("Check every hash and sum")
    person.sees("every hash and sum is correct")
    page.wait_for_timeout(500)
    harmless(page)
    person.visit("Diagnostics")
    person.press("Compare with the real rows")
    person.finds(page.get_by_text("How to read it").first, 120)
    for tab in ("Task", "Fairness", "Columns", "Pairs"):
        page.get_by_role("tab", name=tab, exact=True).click()
        page.wait_for_timeout(500)
        harmless(page)
    assert page.locator("[data-testid=stException]").count() == 0
    page.goto("about:blank")
    page.set_content(report)
    assert "hostile" in page.content()
    harmless(page)
    assert person.outside == []
    page.set_content('<b>hostile</b><a href="http://evil.example">x</a>')
    assert len(page.evaluate(LIVE)) == 2, "the check can find what it looks for"


@pytest.mark.nightly
def test_a_shared_release_stays_text_for_those_it_is_shared_with(
    guarded: Guarded,
    browser: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    csv_file, project_file = files(tmp_path)
    project = Project.load(project_file)
    made = release(project, Table.encode(read_table(csv_file), project.schema))
    monkeypatch.setenv("ESPALIER_SHARED", str(guarded[2]))
    shelf.share(made.files)
    with signed_in(guarded, browser, "ben@partner.example") as page:
        page.get_by_text("90 invented rows in 3 columns").wait_for()
        page.get_by_role("button", name="Synthetic table").wait_for()
        page.wait_for_timeout(500)
        harmless(page)
        assert page.locator("[data-testid=stException]").count() == 0
        assert Person(page).violations("Shared") == []
