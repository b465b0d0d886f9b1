"""Waiting times in a browser: ``python -m benchmarks.screens [--only home data structure plan pages] [--clicks 20]``.

*Data*, *Structure* and *Plan* are measured with 50 and 200 columns, the later pages with 48, all with 30,000 rows. A
wait begins with the click (or key). It ends at the last frame in which the page changes or the app is busy, once the
page has stayed unchanged for 0.6 seconds. A script in the page checks this at each frame. The table lists the number of
waits, their median, 95th percentile and maximum in seconds, and the largest acceptable percentile (the goal). Each job
is measured once, from the click to its result.
"""

from __future__ import annotations

import argparse
import os
import socket
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.review import invented
from benchmarks.wide_table import ROWS, write
from espalier.core.methods import METHODS
from espalier.pages.release.payment import UNRECORDED

TRIED = ("prism", "mst", "workload")
PARTS = ("home", "data", "structure", "plan", "pages")
MARKS = {
    "Home: opening": 1.0,
    **{f"{page}, {n} columns": mark for page, n, mark in (("Data", 50, 0.5), ("Data", 200, 1.0))},
    **{f"{page}, {n} columns": mark for page in ("Structure", "Plan") for n, mark in ((50, 0.6), (200, 1.2))},
    "Analyse: a counted question": 2.0,
}
"""Largest acceptable 95th percentile in seconds, by kind of wait."""

_CLOCK = """() => {
  if (window.espalierClock) return;
  const clock = window.espalierClock = { clicked: 0, before: "" };
  const main = () => document.querySelector("[data-testid=stMain]");
  clock.text = () => main().innerText
    + [...main().querySelectorAll("input, [aria-pressed], [aria-checked], [data-selected]")]
      .map(e => [e.value, e.ariaPressed, e.ariaChecked, e.dataset.selected]).join()
    + [...main().querySelectorAll("*")].filter(e => e.shadowRoot)
    .map(e => e.shadowRoot.textContent + [...e.shadowRoot.querySelectorAll("[data-taken]")].map(b => b.dataset.taken))
    .join("") + [...main().querySelectorAll("svg.main-svg")].map(e => e.textContent).join("");
  clock.idle = () => document.querySelector("[data-testid=stApp]").dataset.testScriptState === "notRunning";
  for (const kind of ["pointerup", "keydown"])
    addEventListener(kind, () => { clock.clicked = performance.now(); }, true);
  clock.seen = () => new Promise((done) => {
    let text = clock.before, changed = null;
    const look = () => {
      const now = performance.now(), seen = clock.text();
      if (!clock.idle() || seen !== text) changed = now;
      text = seen;
      if (changed !== null && now - changed > 600 && text !== clock.before)
        return done((changed - clock.clicked) / 1000);
      if (now - clock.clicked > 60000) return done(-1);
      requestAnimationFrame(look);
    };
    look();
  });
}"""
"""``seen``: seconds from the last click to the last frame at which the page changed or the app was busy."""


class Waits:
    """Waiting times in seconds, by kind of wait."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.seconds: dict[str, list[float]] = {}

    def add(self, what: str, seconds: float) -> None:
        """Record one wait."""
        self.seconds.setdefault(what, []).append(seconds)

    def of(self, what: str, act: Callable[[], Any]) -> None:
        """Record the time from the click or key in ``act`` until the page shows the change and is idle."""
        self.page.evaluate(_CLOCK)
        self.page.wait_for_function("() => espalierClock.idle()", polling=50)
        self.page.wait_for_timeout(100)
        self.page.evaluate("() => { espalierClock.before = espalierClock.text(); }")
        act()
        found = self.page.evaluate("() => espalierClock.seen()")
        assert found >= 0, f"nothing changed: {what}"
        self.add(what, found)

    def until(self, what: str, text: str) -> None:
        """Record the time from now until ``text`` is visible; used for jobs."""
        began = time.monotonic()
        self.page.get_by_text(text).first.wait_for(timeout=300_000)
        self.add(what, time.monotonic() - began)

    def table(self) -> str:
        """Return one line for each kind of wait."""
        lines = [f"{'wait':<44}{'n':>4}{'median':>9}{'p95':>9}{'longest':>9}{'goal':>7}"]
        for what, found in self.seconds.items():
            middle, high = np.quantile(found, [0.5, 0.95])
            mark = MARKS.get(what)
            said = "" if mark is None else f"{mark:>7.1f}{'' if high <= mark else '  missed'}"
            lines.append(f"{what:<44}{len(found):>4}{middle:>9.2f}{high:>9.2f}{max(found):>9.2f}{said}")
        return "\n".join(lines)


def choose(person: Any, waits: Waits, what: str, field: str, option: str) -> None:
    """Type an option into a field, and time the click that selects it."""
    person.page.get_by_role("combobox", name=field).click()
    person.page.keyboard.type(option)
    found = person.page.get_by_role("option", name=option, exact=True).first
    found.wait_for()
    waits.of(what, found.click)
    person.page.keyboard.press("Escape")
    person.rests()


def home(person: Any, waits: Waits, clicks: int) -> None:
    """Time each reload of the Home page until its tour button is visible. The first reload is not recorded."""
    for i in range(1 + clicks // 2):
        began = time.monotonic()
        person.page.reload()
        person.page.get_by_role("button", name="Start the tour").wait_for()
        if i:
            waits.add("Home: opening", time.monotonic() - began)
        person.rests()


def data(person: Any, waits: Waits, clicks: int, columns: int, folder: Path) -> None:
    """Leave out columns of a guessed table, and keep them again."""
    page, what = person.page, f"Data, {columns} columns"
    person.visit("Data")
    person.give("Your table", invented(columns, folder, ROWS))
    person.rests()
    person.press("Guess the columns from the table")
    waits.until(f"{what}: guessing", "columns confirmed")
    for i in range(clicks // 2):
        line = page.locator(f'[data-column="column_{i * columns // clicks:03d}"]')
        line.scroll_into_view_if_needed()
        for name in ("Leave out", "Keep"):
            waits.of(what, line.get_by_role("button", name=name, exact=True).click)


def drawing(person: Any, waits: Waits, clicks: int, columns: int) -> None:
    """Choose causes, and switch the drawing's marks on and off."""
    page, what = person.page, f"Structure, {columns} columns"
    waits.of(f"{what}: opening", lambda: person.link("Structure").click())
    page.locator(".board .canvas").wait_for()
    page.get_by_role("tab", name="Causes").click()
    for i in range(clicks // 2):
        name = f"feature_{columns // 2 + i:02}"
        choose(person, waits, what, "Direct causes", name)
    marks = page.get_by_test_id("stButtonGroup").first.get_by_role("button")
    for i in range(clicks - clicks // 2):
        waits.of(what, marks.nth(i // 2 % marks.count()).click)


def plan(person: Any, waits: Waits, clicks: int, columns: int) -> None:
    """Type ε, and choose a method."""
    page, what = person.page, f"Plan, {columns} columns"
    waits.of(f"{what}: opening", lambda: person.link("Plan").click())
    page.get_by_role("spinbutton", name="Number of rows n").fill(str(ROWS))
    page.keyboard.press("Enter")
    page.get_by_text("What would remain in the ledger").first.wait_for()
    for i in range(clicks // 2):
        page.get_by_role("textbox", name="ε (the budget)").fill(f"{1.1 + i / 10:.1f}")
        waits.of(what, lambda: page.keyboard.press("Enter"))
    for i in range(clicks - clicks // 2):
        choose(person, waits, what, "Method", METHODS[TRIED[i % 3]].title)


def pages(person: Any, waits: Waits, clicks: int) -> None:
    """Open Release, Analyse, Diagnostics and Compare."""
    page = person.page
    waits.of("Release: opening", lambda: person.link("Release").click())
    person.pick("Paid from the budget of", UNRECORDED)
    person.rests()
    for key in ["ArrowRight"] * 4 + ["ArrowLeft"] * 4:
        page.get_by_role("slider").first.focus()
        waits.of("Release: a field", partial(page.keyboard.press, key))
    waits.of("Release: from the click to its progress", lambda: person.press("Spend ε = 1 and release"))
    waits.until("Release: job", ": 30,000 synthetic rows")
    person.rests()
    for i in range(min(clicks, 10)):
        name = ("Before and after", "One picture")[i % 2]
        waits.of("Release: a picture", page.get_by_text(name, exact=True).first.click)
    waits.of("Analyse: opening", lambda: person.link("Analyse").click())
    page.get_by_text("Difference", exact=True).first.click()
    person.rests()
    for i in range(clicks):
        choose(person, waits, "Analyse: a counted question", "Group by", f"feature_{i % 12 + 1:02}")
    waits.of("Diagnostics: opening", lambda: person.link("Diagnostics").click())
    person.press("Compare with the real rows")
    waits.until("Diagnostics: job", "Predicting outcome")
    person.rests()
    page.get_by_role("tab", name="Columns").first.click()
    for i in range(clicks):
        choose(person, waits, "Diagnostics: one column", "Show one column", f"feature_{i % 12 + 2:02}")
    waits.of("Compare: opening", lambda: person.link("Compare").click())
    page.get_by_text("This table is public").first.click()
    person.rests()
    for _ in range(min(clicks, 10)):
        waits.of("Compare: a field", page.get_by_text("Also without the fence").first.click)
    person.rests()
    page.get_by_role("button", name="Try this plan").or_(page.get_by_role("button", name="Compare these")).first.click()
    waits.until("Compare: job of two plans", "Plans side by side")


def main(parts: list[str], clicks: int) -> None:
    """Run the parts, each in a separate session, and print the table."""
    from tests.support.browser import Person, chromium, serving

    class Clocked(Person):
        def link(self, page: str) -> Any:
            """Return the sidebar's link to a page."""
            return self.page.locator("[data-testid=stSidebarNavLink]").filter(has_text=page)

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    made: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as kept, serving(port, Path(kept)), chromium() as browser:
        folder = Path(kept)
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        context.set_default_timeout(60_000)

        def session(act: Callable[[Any, Waits], None]) -> None:
            page = context.new_page()
            page.goto(f"http://127.0.0.1:{port}")
            page.get_by_role("button", name="Start the tour").wait_for()
            waits = Waits(page)
            waits.seconds = made
            try:
                act(Clocked(page), waits)
            finally:
                print(f"{waits.table()}\n", flush=True)
                page.close()

        def opened(columns: int, act: Callable[[Any, Waits], None]) -> Callable[[Any, Waits], None]:
            def both(person: Any, waits: Waits) -> None:
                person.visit("Data")
                person.upload(*write(folder, ROWS, columns))
                person.rests()
                act(person, waits)

            return both

        if "home" in parts:
            session(lambda person, waits: home(person, waits, clicks))
        for n in (50, 200):
            if "data" in parts:
                session(partial(data, clicks=clicks, columns=n, folder=folder))
            if "structure" in parts:
                session(opened(n, partial(drawing, clicks=clicks, columns=n)))
            if "plan" in parts:
                session(opened(n, partial(plan, clicks=clicks, columns=n)))
        if "pages" in parts:
            session(opened(48, lambda person, waits: pages(person, waits, clicks)))
    print(f"load average at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--clicks", type=int, default=20)
    given = parser.parse_args()
    main(given.only, given.clicks)
