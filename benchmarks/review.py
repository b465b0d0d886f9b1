"""The grouped review on the Data page in a real browser: clicks from upload to a complete schema, and waits per click.

    python -m benchmarks.review            the walks over 48 (50 with its identifiers) and 12 columns, then the waits
    python -m benchmarks.review walks
    python -m benchmarks.review waits [--clicks 20]

A click is a press, an activating key, or a field into which text is typed or a file is dropped. The walks use
``../shared/data/diabetes_readmission_20k.csv.gz`` and its codebook ``diabetes_ids_mapping.csv``; the waits use
invented tables of 30,000 rows with 50 and 200 columns. Each confirmation must contain the digest of what was shown.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.adult import DATA as ADULT

ROOT = Path(__file__).resolve().parent.parent
DATA = ADULT.parent
FEWER = "n => [...document.querySelectorAll('button')].filter(b => /Confirm th/.test(b.innerText)).length < n"
RESTS = "[data-testid=stApp][data-test-script-state=notRunning]"


class Walker:
    """A user of the Data page whose clicks are counted."""

    def __init__(self, page: Any) -> None:
        self.page, self.clicks, self.began = page, 0, time.perf_counter()

    def give(self, label: str, file: Path) -> None:
        """Choose a file for an uploader."""
        self.clicks += 1
        box = self.page.locator("[data-testid=stFileUploader]").filter(has_text=label)
        box.locator("input[type=file]").set_input_files(file)

    def press(self, name: str) -> None:
        """Press a button."""
        self.clicks += 1
        self.page.get_by_role("button", name=name).first.click()

    def column(self, column: str, button: str) -> None:
        """Press a button in a column's line."""
        self.clicks += 1
        self.page.locator(f'[data-column="{column}"]').get_by_role("button", name=button).first.click()

    def tick(self, text: str) -> None:
        """Press a checkbox or an option by its text."""
        self.clicks += 1
        self.page.get_by_text(text).first.click()

    def type(self, column: str, field: str, text: str) -> None:
        """Type into one field of a column's form."""
        self.clicks += 1
        self.page.locator(f'[data-column="{column}"] [name={field}]').fill(text)

    def rests(self) -> None:
        """Wait until the page is drawn."""
        self.page.wait_for_timeout(150)
        self.page.locator(RESTS).wait_for()
        self.page.wait_for_timeout(150)

    def confirm(self) -> None:
        """Confirm each group after its last value was visible."""
        buttons = self.page.get_by_role("button", name="Confirm th")
        while buttons.count():
            before = buttons.count()
            buttons.first.scroll_into_view_if_needed()
            self.clicks += 1
            buttons.first.click()
            self.page.wait_for_function(
                FEWER,
                arg=before,
            )
            self.rests()

    def project(self) -> dict[str, Any]:
        """Return the project file that the sidebar offers."""
        with self.page.expect_download() as download:
            self.page.get_by_role("button", name="Download project file").click()
        found: dict[str, Any] = json.loads(Path(download.value.path()).read_text("utf-8"))
        return found

    def finished(self, title: str, most: int) -> None:
        """Print the number of clicks, and check that the schema is complete and each confirmation has its digest."""
        took = time.perf_counter() - self.began
        made = self.project()
        described = [*made["schema"], *made.get("left_out", [])]
        assert not any(c.get("guessed") for c in described), "something is still a guess"
        assert all(c.get("shown", "").startswith("sha256:") for c in described if c.get("confirmed"))
        assert made["plan"]["person"] == "patient_nbr"
        assert not self.page.locator("[data-testid=stException]").count()
        verdict = "" if self.clicks <= most else "  TOO MANY"
        print(f"{title}: {self.clicks} clicks (at most {most}) in {took:.1f} s{verdict}")


def open_and_guess(walker: Walker, base: str, table: Path) -> None:
    """Go from the empty Data page to the groups."""
    walker.page.goto(f"{base}/data")
    walker.rests()
    walker.give("Your table", table)
    walker.press("Guess the columns from the table")
    walker.page.get_by_text("columns confirmed").first.wait_for(timeout=60_000)
    walker.rests()
    assert walker.page.evaluate("() => document.querySelector('[data-testid=stMain]').scrollTop") == 0


def whole(page: Any, base: str, table: Path, book: Path, *, correct: bool) -> None:
    """Walk through the table of 48 columns and two identifiers, with its codebook."""
    walker = Walker(page)
    open_and_guess(walker, base, table)
    walker.give("A data dictionary", book)
    walker.tick("This dictionary was not produced from these rows")
    walker.page.wait_for_timeout(600)
    walker.rests()
    walker.press("Use this dictionary")
    page.get_by_text("diabetes_ids_mapping.csv").first.wait_for()
    walker.rests()
    walker.column("patient_nbr", "Identifies the person")
    page.get_by_text("identifies the person; at most").first.wait_for()
    walker.rests()
    walker.press("Use icd-9-cm for 3 columns")
    page.locator('[data-column="diag_3"][data-stage=confirmed]').wait_for()
    walker.rests()
    if correct:
        walker.column("payer_code", "Leave out")
        page.locator('[data-column="payer_code"]').get_by_text("left out").first.wait_for()
        walker.column("num_medications", "Change num_medications")
        walker.type("num_medications", "edges", "0; 5; 10; 20; 40; 100")
        walker.column("num_medications", "Apply")
        page.locator('[data-column="num_medications"]').get_by_text("5 bins").first.wait_for()
        walker.column("time_in_hospital", "Change time_in_hospital")
        walker.type("time_in_hospital", "unit", "days")
        walker.column("time_in_hospital", "Apply")
        page.locator('[data-column="time_in_hospital"]').get_by_text("days").first.wait_for()
        walker.rests()
    walker.confirm()
    page.get_by_text("Reviewed: all").wait_for()
    title = "48 columns and two identifiers, codebook"
    walker.finished(f"{title}, three corrections" if correct else title, 25 if correct else 12)


def twelve(page: Any, base: str, table: Path) -> None:
    """Walk through the first twelve columns."""
    walker = Walker(page)
    open_and_guess(walker, base, table)
    walker.column("patient_nbr", "Identifies the person")
    page.get_by_text("identifies the person; at most").first.wait_for()
    walker.rests()
    walker.confirm()
    page.get_by_text("Reviewed: all").wait_for()
    walker.finished("12 columns", 6)


def invented(columns: int, folder: Path, rows: int = 30_000) -> Path:
    """Return a table of codes, yes and no, amounts and free codes."""
    rng, cells = np.random.default_rng(columns), list[np.ndarray]()
    for i in range(columns):
        draws = (
            np.array(["no", "yes"])[rng.integers(0, 2, rows)],
            rng.integers(0, 6, rows).astype(str),
            rng.gamma(2, 400, rows).astype(int).astype(str),
            np.char.add("c", rng.integers(0, 60, rows).astype(str)),
        )
        cells.append(draws[i % 4])
    path = folder / f"invented-{columns}.csv"
    lines = [",".join(f"column_{i:03d}" for i in range(columns)), *map(",".join, np.column_stack(cells).tolist())]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def waits(page: Any, base: str, table: Path, columns: int, clicks: int, most: float) -> None:
    """Print the seconds from a click to the changed line, for leaving out columns, keeping them, and confirming
    groups."""
    walker = Walker(page)
    began = time.perf_counter()
    open_and_guess(walker, base, table)
    print(f"{columns} columns: upload and guess {time.perf_counter() - began:.1f} s")
    took: list[float] = []
    for i in range(clicks):
        line = page.locator(f'[data-column="column_{i * columns // clicks:03d}"]')
        button = line.get_by_role("button", name="Leave out")
        button.scroll_into_view_if_needed()
        for name, stage in (("Leave out", "left out"), ("Keep", "guessed")):
            pressed = line.get_by_role("button", name=name, exact=True)
            began = time.perf_counter()
            pressed.click()
            line.locator(".about").filter(has_text=stage).wait_for()
            took.append(time.perf_counter() - began)
            walker.rests()
    confirmed = []
    buttons = page.get_by_role("button", name="Confirm th")
    while (before := buttons.count()) > 0:
        began = time.perf_counter()
        buttons.first.click()
        page.wait_for_function(
            FEWER,
            arg=before,
        )
        confirmed.append(time.perf_counter() - began)
        walker.rests()
    every = [*took, *confirmed]
    p95 = float(np.quantile(every, 0.95))
    verdict = "" if p95 <= most else "  TOO SLOW"
    print(
        f"{columns} columns, {len(every)} clicks until the change is shown: median {np.median(every):.2f} s, p95 "
        f"{p95:.2f} s (at most {most} s); confirming a group up to {max(confirmed):.2f} s{verdict}"
    )


@contextmanager
def browser() -> Iterator[tuple[Any, str, Path]]:
    """Yield the running app, a page of a browser, and a folder."""
    from playwright.sync_api import sync_playwright

    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        sys.exit("no Chromium was found: apt-get install chromium")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    base = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless=true", f"--server.port={port}"]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(120):
            try:
                urllib.request.urlopen(base + "/_stcore/health", timeout=1)
                break
            except OSError:
                time.sleep(0.25)
        with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
            flags = ["--headless=new", "--no-sandbox", "--disable-gpu"]
            context = driver.chromium.launch_persistent_context(
                Path(folder) / "profile", executable_path=chromium, args=flags, viewport={"width": 1280, "height": 1400}
            )
            context.set_default_timeout(30_000)
            yield context, base, Path(folder)
            context.close()
    finally:
        server.terminate()
        server.wait(20)


def main() -> None:
    """Start the app and a browser, walk, and measure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("what", nargs="?", choices=("walks", "waits"))
    parser.add_argument("--clicks", type=int, default=20, help="columns to click on, per table")
    opt = parser.parse_args()
    with browser() as (context, base, folder):
        if opt.what != "waits":
            table, small = folder / "diabetes.csv", folder / "twelve.csv"
            table.write_bytes(gzip.decompress((DATA / "diabetes_readmission_20k.csv.gz").read_bytes()))
            lines = table.read_text("utf-8").splitlines()
            small.write_text("\n".join(",".join(line.split(",")[:12]) for line in lines) + "\n", "utf-8")
            for correct in (False, True):
                whole(context.new_page(), base, table, DATA / "diabetes_ids_mapping.csv", correct=correct)
            twelve(context.new_page(), base, small)
        if opt.what != "walks":
            for columns, most in ((50, 0.5), (200, 1.0)):
                waits(context.new_page(), base, invented(columns, folder), columns, opt.clicks, most)
        print(f"load average during the run: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
