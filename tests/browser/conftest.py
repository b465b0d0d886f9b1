"""A server for all browser tests, and somebody at the screen for each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.app import free_port
from tests.support.browser import CHROMIUM, FLAGS, Person, serving


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = free_port()
    with serving(port, tmp_path_factory.mktemp("kept")):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def person(address: str, tmp_path: Path) -> Iterator[Person]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        context = driver.chromium.launch_persistent_context(
            tmp_path, executable_path=CHROMIUM, args=FLAGS, viewport={"width": 1280, "height": 1400}, has_touch=True
        )
        page = context.pages[0] if context.pages else context.new_page()
        page.set_default_timeout(30_000)
        someone = Person(page)
        page.goto(address)
        yield someone
        context.close()
