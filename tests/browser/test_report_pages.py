"""The report as paper: what stands before the annex fits on two A4 pages for ten columns."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from espalier.core.project.file import Project
from espalier.core.release import release
from espalier.core.tables.reading import read_table
from espalier.core.tables.table import Table

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
