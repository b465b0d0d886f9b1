"""A real browser on a real server, and a person who uses it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.app import ROOT

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]

RULES = {
    "light": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]},
    "dark": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]},
}
"""Only colours differ in the dark theme."""
PAINTED = """scheme => {
  const [r, g, b] = getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor.match(/[0-9]+/g);
  return (+r + +g + +b < 384) === (scheme === 'dark');
}"""
"""Script that checks whether the app has the background of a colour scheme, which changes later than the browser's."""
FOUND = """async only => (await axe.run(document, { resultTypes: ['violations'], runOnly: only })).violations
  .filter(v => ['serious', 'critical'].includes(v.impact))
  .flatMap(v => v.nodes.map(n => `${v.id}: ${n.target.flat().join(' ')} | ${n.html.slice(0, 160)} | ` +
    (n.any[0] || n.all[0] || n.none[0] || {}).message))"""


def axe() -> str:
    """Return axe-core's script, as a package ships it."""
    spec = importlib.util.find_spec("axe_playwright_python")
    if spec is None or spec.origin is None:
        if os.environ.get("CI"):
            pytest.fail("axe-core is missing, and CI must run it: pip install -r requirements-dev.txt")
        pytest.skip("axe-core is missing: pip install -r requirements-dev.txt")
    return Path(spec.origin).with_name("axe.min.js").read_text("utf-8")


@contextmanager
def chromium() -> Iterator[Any]:
    """A headless browser. Each test opens its own context in it, which shares nothing with the others."""
    from playwright.sync_api import sync_playwright

    if CHROMIUM is None:
        if os.environ.get("CI"):
            pytest.fail("no Chromium was found, and CI must run the browser tests: apt-get install -y chromium")
        pytest.skip("no Chromium was found on the PATH; install it to run the browser tests")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@contextmanager
def serving(port: int, kept: Path, *options: str) -> Iterator[None]:
    """The app on ``port``, for tests that have a browser; its ledger and its shelf are in the folder ``kept``."""
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless=true", f"--server.port={port}"]
    with answering([*command, *options], port, ROOT, kept):
        yield


@contextmanager
def answering(command: list[str], port: int, folder: Path, kept: Path) -> Iterator[None]:
    """Start an app's server with ``command`` in ``folder``, and yield it once it answers."""
    places = {"ESPALIER_LEDGER": str(kept / "ledger.db"), "ESPALIER_SHARED": str(kept / "shelf")}
    server = subprocess.Popen(
        command, cwd=folder, env=os.environ | places, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _await(f"http://127.0.0.1:{port}/_stcore/health", server)
        yield
    finally:
        server.terminate()
        server.wait(20)


def _await(url: str, server: subprocess.Popen[bytes]) -> None:
    for _ in range(120):
        if server.poll() is not None:
            pytest.fail("the app ended before it answered")
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except OSError:
            time.sleep(0.25)
    pytest.fail("the app did not answer within 30 s")


class Person:
    """A person at the screen, with a count of clicks."""

    def __init__(self, page: Any) -> None:
        self.page, self.clicks = page, 0
        self.outside: list[str] = []
        self.errors: list[str] = []
        page.on("request", self._request)
        page.on("pageerror", lambda e: self.errors.append(str(e)))

    def _request(self, request: Any) -> None:
        if request.url.startswith(("http", "ws")) and "//127.0.0.1:" not in request.url:
            self.outside.append(request.url)

    def upload(self, table: Path, project: Path) -> None:
        """Open an uploaded table with its project file."""
        for label, file in (("Your table", table), ("Its project file", project)):
            self.give(label, file)
        self.press("Open the project with this table")
        self.sees("columns are declared")

    def give(self, label: str, file: Path) -> None:
        """Put a file into an uploader; try again if the page was redrawn and lost it."""
        from playwright.sync_api import TimeoutError as Late

        box = self.page.locator("[data-testid=stFileUploader]").filter(has_text=label)
        for _ in range(6):
            self.rests()
            box.locator("input[type=file]").set_input_files(file)
            try:
                box.get_by_text(file.name).first.wait_for(timeout=8000)
                return
            except Late:
                pass
        pytest.fail(f"{label!r} does not accept {file.name}")

    def rests(self) -> None:
        """Wait until the page is drawn: it may lose clicks while it is redrawn."""
        self.finds(self.page.locator("[data-testid=stApp][data-test-script-state=notRunning]"), 60)
        self.page.wait_for_timeout(300)

    def finds(self, what: Any, seconds: float = 90) -> None:
        """Wait until ``what`` is visible. It is checked six times per second, because waiting in a browser occupies a
        core.
        """
        last = time.monotonic() + seconds
        while not what.is_visible():
            if time.monotonic() > last:
                pytest.fail(f"{what} did not appear within {seconds:g} s")
            self.page.wait_for_timeout(150)

    def pick(self, field: str, option: str) -> None:
        """Choose an option of a field that opens a list; try again if the page was redrawn and closed it."""
        from playwright.sync_api import TimeoutError as Late

        wanted = self.page.get_by_role("option", name=option).first
        for _ in range(6):
            self.page.get_by_role("combobox", name=field).click()
            try:
                wanted.click(timeout=5000)
                return
            except Late:
                self.page.keyboard.press("Escape")
        pytest.fail(f"{field!r} offers no {option!r}")

    def press(self, label: str) -> None:
        self.clicks += 1
        self.page.get_by_role("button", name=label).first.click()

    def sees(self, text: str) -> None:
        self.finds(self.page.get_by_text(text).first)

    def visit(self, page: str, heading: str | None = None) -> None:
        self.rests()
        link = self.page.locator("[data-testid=stSidebarNavLink]").filter(has_text=page)
        if not link.is_visible():
            self.page.locator("[data-testid=stExpandSidebarButton]").first.click()
        link.click()
        self.finds(self.page.get_by_role("heading", name=heading or page, exact=True), 60)

    def paints(self, what: str = ".picture") -> None:
        """Return whether the graph's canvas shows a drawing."""
        self.page.wait_for_function(
            """what => [...document.querySelectorAll('*')].some(e => e.shadowRoot &&
                 [...e.shadowRoot.querySelectorAll(what + ' canvas')].some(c => c.width && c.height &&
                 c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(v => v)))""",
            arg=what,
            polling=200,
            timeout=60_000,
        )

    def violations(self, where: str) -> list[str]:
        """Return what axe-core finds on the page as it is, light and dark."""
        found: list[str] = []
        for scheme, only in RULES.items():
            self.page.emulate_media(color_scheme=scheme)
            self.page.wait_for_function(PAINTED, arg=scheme, polling=100)
            self.rests()
            self.page.evaluate("script => { if (!window.axe) (0, eval)(script) }", axe())
            found += [f"{where}, {scheme}: {line}" for line in self.page.evaluate(FOUND, only)]
        self.page.emulate_media(color_scheme="light")
        return found

    def fine(self) -> None:
        """Check that nothing failed and nothing was fetched from another machine."""
        assert self.page.locator("[data-testid=stException]").count() == 0
        assert not self.errors, self.errors
        assert not self.outside, self.outside
