"""The documentation site in a real browser, opened from its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from docs.site import build
from tests.support.browser import FOUND, RULES, axe

pytestmark = [
    *(pytest.mark.browser, pytest.mark.nightly),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning"),
]


def test_every_page_is_accessible_fits_and_fetches_nothing(browser: Any, tmp_path: Path) -> None:
    assert build(tmp_path) == 0
    problems: list[str] = []

    def requested(request: Any) -> None:
        if not request.url.startswith(("file:", "data:")):
            problems.append(request.url)

    for width, scheme in ((1280, "light"), (390, "light"), (1280, "dark")):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page = context.new_page()
        page.on("request", requested)
        for file in sorted(tmp_path.rglob("*.html")):
            if file.name in ("genindex.html", "search.html", "py-modindex.html"):
                continue
            page.goto(file.as_uri())
            page.evaluate("script => { if (!window.axe) (0, eval)(script) }", axe())
            found = page.evaluate(FOUND, RULES["light"])
            if page.evaluate("document.documentElement.scrollWidth > innerWidth + 1"):
                found.append("wider than the screen")
            problems += [f"{file.stem}, {width}, {scheme}: {one}" for one in found]
        context.close()
    assert not problems, "\n".join(problems)
