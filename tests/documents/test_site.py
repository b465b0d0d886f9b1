"""The documentation site builds without a warning and opens from a file: nothing is fetched from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.site import ROOT, build
from tests.support.examples import PAGES

LOADED = re.compile(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"(?:https?:)?//", re.IGNORECASE)


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")
def test_the_site_builds_and_every_page_is_in_it(tmp_path: Path) -> None:
    assert build(tmp_path / "site") == 0
    pages = list((tmp_path / "site").rglob("*.html"))
    written = {str(page.relative_to(tmp_path / "site").with_suffix(".md")) for page in pages}
    assert {str(page.relative_to(ROOT)) for page in PAGES} <= written
    for page in pages:
        assert not LOADED.search(page.read_text("utf-8")), page
