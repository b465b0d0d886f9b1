"""The report on paper and on a phone: two pages before the annex, at most four in it, and no serious violation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks.wide_table import write
from espalier.core.project.file import Project
from espalier.core.release import release
from espalier.core.tables.frames import encoded
from espalier.core.tables.reading import read_table
from espalier.core.tables.table import Table
from espalier.pages.data.samples import SAMPLES, read_sample
from tests.support.browser import FOUND, RULES, axe

pytestmark = [pytest.mark.browser]


def test_ten_columns_take_two_pages_before_the_annex(samples: Path, browser: Any) -> None:
    project = Project.load(samples / "hiring.json")
    assert len(project.schema.columns) == 10
    made = release(project, Table.encode(read_table(samples / "hiring.csv"), project.schema))
    whole = made.files["report.html"].decode()
    front = whole.split('<div class="annex">')[0]
    asked: list[str] = []
    page = browser.new_page()
    page.on("request", lambda r: asked.append(r.url))
    pages = []
    for text in (front, whole):
        page.set_content(text)
        pages.append(len(re.findall(rb"/Type */Page[^s]", page.pdf(format="A4"))))
    assert 1 <= pages[0] <= 2
    assert pages[1] > pages[0], "the annex begins on a page of its own"
    assert [url for url in asked if url.startswith("http")] == []


def pages_of(page: Any, format: str) -> int:
    return len(re.findall(rb"/Type */Page[^s]", page.pdf(format=format)))


@pytest.mark.nightly
def test_48_columns_take_two_pages_and_an_annex_of_four(tmp_path: Path, browser: Any) -> None:
    table, file = write(tmp_path, rows=2000)
    project = Project.load(file)
    made = release(project, Table.encode(read_table(table), project.schema))
    whole = made.files["report.html"].decode()
    page = browser.new_page()
    for paper in ("A4", "Letter"):
        page.set_content(whole.split('<div class="annex">')[0])
        assert pages_of(page, paper) == 2
        page.set_content(whole)
        assert pages_of(page, paper) <= 6


def violations(page: Any) -> list[str]:
    """Return serious violations of a report, light and dark."""
    found = []
    for scheme, only in RULES.items():
        page.emulate_media(color_scheme=scheme)
        page.evaluate("script => { (0, eval)(script) }", axe())
        found += page.evaluate(FOUND, only)
    return found


def test_the_report_fits_a_phone_and_has_no_serious_violation(samples: Path, browser: Any) -> None:
    project = Project.load(samples / "hiring.json")
    made = release(project, Table.encode(read_table(samples / "hiring.csv"), project.schema))
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.set_content(made.files["report.html"].decode())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    found = violations(page)
    assert not found, "\n".join(found)


@pytest.mark.nightly
@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_each_sample_s_report_is_two_pages_and_an_annex_and_accessible(name: str, samples: Path, browser: Any) -> None:
    project = Project.load(samples / f"{name}.json")
    whole = release(project, encoded(project, read_sample(name, project))).files["report.html"].decode()
    page = browser.new_page(viewport={"width": 390, "height": 800})
    for paper in ("A4", "Letter"):
        for part, pages in (('<div class="second">', 1), ('<div class="annex">', 3), ("</html>", 7)):
            page.set_content(whole.split(part)[0])
            assert 1 <= pages_of(page, paper) <= pages, f"{part} on {paper}"  # paid figures are on a separate page
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    found = violations(page)
    assert not found, "\n".join(found)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.matches('figure.large')"), "the picture scrolls by keyboard"
