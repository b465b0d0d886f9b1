"""Waits in a real browser on 48 columns and 30,000 rows: ``python -m benchmarks.screens [--rounds 3]``.

The app is opened in Chromium, the table of `benchmarks.wide_table` is uploaded with its project, released, asked six
questions, and compared with its rows. Each wait runs from the click to the text that the person waits for. Printed are
the number of waits, their median, the 95th percentile and the longest, in seconds.
"""

from __future__ import annotations

import argparse
import re
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.wide_table import write
from espalier.pages.release.payment import UNRECORDED

COUNTED = (("outcome", "feature_01"), ("outcome", "feature_05"), ("outcome", "feature_02"))


class Waits:
    """Seconds by what was waited for."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}

    @contextmanager
    def of(self, what: str) -> Iterator[None]:
        """Time a block."""
        start = time.monotonic()
        yield
        self.seconds.setdefault(what, []).append(time.monotonic() - start)

    def table(self) -> str:
        """Return one line for each kind of wait."""
        lines = [f"{'wait':<44}{'n':>4}{'median':>9}{'p95':>9}{'longest':>9}"]
        for what, found in self.seconds.items():
            middle, high = np.quantile(found, [0.5, 0.95])
            lines.append(f"{what:<44}{len(found):>4}{middle:>9.1f}{high:>9.1f}{max(found):>9.1f}")
        return "\n".join(lines)


def journey(person: Any, waits: Waits, table: Path, project: Path) -> None:
    """Open, release, ask and compare once."""
    page = person.page
    with waits.of("Home, from the address to its cards"):
        page.reload()
        person.sees("Begin with an example")
    person.visit("Data")
    with waits.of("Data: upload of table and project"):
        person.upload(table, project)
    person.visit("Release")
    person.pick("Paid from the budget of", UNRECORDED)
    person.rests()
    with waits.of("Release: from the click to its files"):
        person.press("Spend ε = 1 and release")
        person.sees(": 30,000 synthetic rows")
    with waits.of("Analyse: opening the page"):
        person.visit("Analyse")
        person.rests()
    page.get_by_text("Difference", exact=True).first.click()
    person.rests()
    for _, group in COUNTED:
        with waits.of("Analyse: a counted question"):
            person.pick("Groups by", group)
            page.get_by_text("What is asked:").first.wait_for()
            page.get_by_text(f"where {group} =").first.wait_for()
            person.rests()
    page.get_by_text("Association, adjusted", exact=True).first.click()
    person.rests()
    with waits.of("Analyse: a regression on three columns"):
        for name in ("feature_01", "feature_02", "feature_04"):
            person.pick("Predictors", name)
        page.keyboard.press("Escape")
        page.get_by_text("Odds ratios by logistic regression").first.wait_for()
        person.rests()
    person.visit("Diagnostics")
    with waits.of("Diagnostics: from the click to the verdict"):
        person.press("Compare with the real rows")
        page.get_by_text("Predicting outcome").first.wait_for(timeout=300_000)
    person.visit("Compare")
    page.get_by_text("This table is public").first.click()
    person.rests()
    with waits.of("Compare: one plan, from the click"):
        page.get_by_role("button", name=re.compile("Try this plan|Compare these")).first.click()
        page.get_by_text("Rehearsal, side by side").first.wait_for(timeout=300_000)


def main(rounds: int) -> None:
    """Run the journey ``rounds`` times, each in a new session, and print the table."""
    from tests.support.browser import Person, chromium, serving

    waits = Waits()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as kept:
        folder = Path(kept)
        table, project = write(folder)
        with serving(port, folder), chromium() as browser:
            for _ in range(rounds):
                context = browser.new_context(viewport={"width": 1280, "height": 900})
                context.set_default_timeout(60_000)
                page = context.new_page()
                page.goto(f"http://127.0.0.1:{port}")
                journey(Person(page), waits, table, project)
                context.close()
                print(waits.table(), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=3)
    main(parser.parse_args().rounds)
