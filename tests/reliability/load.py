"""Load test: many sessions at once on one server, each releasing its own copy of Adult.

    python -m tests.reliability.load [--sessions 20] [--data TABLE] [--megabytes 50] [--afterwards 150]

Starts the app and one tab of Chromium per session, each in its own browser context. Each uploads its own copy of
Adult and its own project file, with an extra column: a mark with two values that occur in no other session. Each opens
a budget, all in one ledger. All press "Spend" before the first has finished, then wait.

The test checks that every session gets its release, that its rows and its tab never show another session's mark, that
some sessions saw their place in the queue, the time of answers to ``/_stcore/health``, and the server's memory, also
some time after all tabs were closed. Tables are repeated to ``--megabytes``. Prints two lines of figures; exit status 1
on a failure. Needs Chromium and playwright.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import gzip
import io
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.adult import DATA, adult_project
from tests.support.app import free_port

ROOT = Path(__file__).resolve().parents[2]
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
PATIENCE = 3_000_000
"""Longest wait in the queue, in milliseconds: other work may slow the machine down."""
MARK = re.compile(r"mark-[0-9a-f]{12}")


@dataclass
class Visitor:
    """One session: its files, its observations, its duration."""

    number: int
    table: Path
    project: Path
    mark: str
    places: set[str] = field(default_factory=set)
    foreign: set[str] = field(default_factory=set)
    rows: int = 0
    seconds: float = 0.0


def prepare(number: int, rows: list[list[str]], folder: Path) -> Visitor:
    """Write a table and a project with a column of values that are in no other session."""
    mark = f"mark-{secrets.token_hex(6)}"
    facts = adult_project("mst").to_json()
    facts["name"] = f"adult {number}"  # the shared ledger names it
    facts["schema"].append({"name": "mark", "kind": "categorical", "categories": [f"{mark} a", f"{mark} b"]})
    project, table = folder / f"{number}.json", folder / f"{number}.csv"
    project.write_text(json.dumps(facts), "utf-8")
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*rows[0], "mark"])
        writer.writerows([*row, f"{mark} {'ab'[i % 2]}"] for i, row in enumerate(rows[1:]))
    return Visitor(number, table, project, mark)


@contextmanager
def server(folder: str) -> Iterator[tuple[str, int]]:
    """Start the app on a free port with its ledger in ``folder``; yield its address and process id."""
    port, ask = free_port(), free_port()
    serve = ["serve", "--host=127.0.0.1", f"--port={port}", f"--monitor={ask}"]
    command = [sys.executable, "-m", "espalier.core", *serve]
    kit = {"MALLOC_ARENA_MAX": "2", "ARROW_DEFAULT_MEMORY_POOL": "system"}  # as in deploy/espalier.service
    env = os.environ | kit | {"ESPALIER_LEDGER": f"{folder}/ledger.db"}
    process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(240):
            with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=1):
                break
            time.sleep(0.25)
        yield f"http://127.0.0.1:{port}", process.pid
    finally:
        process.terminate()
        process.wait(20)


def memory(pid: int, what: str = "VmRSS") -> float:
    """Return the server's memory in GiB (``VmHWM``: its highest so far)."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"{what}:\s+(\d+)", status)[1]) / 2**20  # type: ignore[index]


class Pulse:
    """Times of answers to the server's health check, four times a second, until it is stopped."""

    def __init__(self, address: str) -> None:
        self.seconds: list[float] = []
        self._url, self._stop = f"{address}/_stcore/health", threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.25):
            start = time.monotonic()
            with suppress(OSError), urllib.request.urlopen(self._url, timeout=30) as answer:
                answer.read()
            self.seconds.append(time.monotonic() - start)

    def stop(self) -> str:
        """Return median, 95th percentile and maximum, in milliseconds."""
        self._stop.set()
        self._thread.join()
        ordered = sorted(self.seconds)
        at = (ordered[int(share * (len(ordered) - 1))] for share in (0.5, 0.95, 1))
        return "/".join(f"{1000 * seconds:.0f}" for seconds in at)


async def look(page: Any, visitor: Visitor) -> None:
    """Read what the tab shows."""
    text = await page.content()
    visitor.foreign |= set(MARK.findall(text)) - {visitor.mark}
    visitor.places |= set(re.findall(r"Waiting: \d+ \w+ before yours", text))


async def give(page: Any, label: str, file: Path) -> None:
    """Put a file into an uploader; try again if the page was redrawn and lost it."""
    from playwright.async_api import TimeoutError as Late

    box = page.locator("[data-testid=stFileUploader]").filter(has_text=label)
    for _ in range(6):
        await page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()
        await asyncio.sleep(0.3)
        await box.locator("input[type=file]").set_input_files(file)
        with suppress(Late):
            await box.get_by_text(file.name).first.wait_for(timeout=40_000)
            return
    raise TimeoutError(f"{label!r} does not accept {file.name}")


async def open_files(page: Any, visitor: Visitor, address: str) -> None:
    """Upload table and project, and go to the Release page."""
    await page.goto(f"{address}/data")
    for label, file in (("Your table", visitor.table), ("Its project file", visitor.project)):
        await give(page, label, file)
    await page.get_by_role("button", name="Open the project with this table").click()
    await page.get_by_text("columns are declared").wait_for()
    await page.locator("[data-testid=stSidebarNavLink]").filter(has_text="Release").click()
    await page.get_by_role("button", name="Open this budget").click()
    await page.get_by_role("button", name="Spend").first.wait_for()


async def release(page: Any, visitor: Visitor, start: float) -> None:
    """Press the button, wait for the release, read the delivered table."""
    await page.get_by_role("button", name="Spend").first.click()
    finished = page.get_by_text("synthetic rows", exact=False).first
    while not await finished.is_visible():
        await look(page, visitor)
        if time.monotonic() - start > PATIENCE / 1000:
            raise TimeoutError(f"session {visitor.number} is still waiting")
        await asyncio.sleep(0.5)
    visitor.seconds = time.monotonic() - start
    await look(page, visitor)
    async with page.expect_download() as download:
        await page.get_by_role("button", name="Synthetic table").click()
    made = Path(await (await download.value).path()).read_text("utf-8")
    visitor.foreign |= set(MARK.findall(made)) - {visitor.mark}
    visitor.rows = sum(1 for line in csv.reader(io.StringIO(made))) - 1 if visitor.mark in made else 0


async def visit(address: str, pid: int, visitors: list[Visitor]) -> tuple[float, float, float]:
    """Visit with all sessions at once; return the server's memory with all tables open, its peak, and the seconds."""
    from playwright.async_api import async_playwright

    chromium = next(filter(None, map(shutil.which, CHROMIUMS)), None)
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=chromium, args=FLAGS)
        pages = []
        for visitor in visitors:  # one after the other, because this tests the server and not the browser
            page = await (await browser.new_context()).new_page()
            page.set_default_timeout(PATIENCE)
            await open_files(page, visitor, address)
            pages.append(page)
            print(f"\r{len(pages)} tabs are open", end="", file=sys.stderr, flush=True)
        opened, start = memory(pid), time.monotonic()
        await asyncio.gather(*(release(p, v, start) for p, v in zip(pages, visitors, strict=True)))
        took = time.monotonic() - start
        await browser.close()
    print(file=sys.stderr)
    return opened, memory(pid, "VmHWM"), took


def main() -> int:
    """Run it; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--megabytes", type=int, default=0, help="repeat the rows of each table to this size")
    parser.add_argument("--afterwards", type=int, default=0, help="seconds to wait after all tabs are closed")
    parser.add_argument("--data", type=Path, default=DATA, help="UCI's Adult, as CSV or gzipped CSV")
    opt = parser.parse_args()
    data = opt.data.read_bytes()
    text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()
    rows = list(csv.reader(io.StringIO(text)))
    rows += rows[1:] * (max(1, round(opt.megabytes * 1e6 / (len(text) + 20 * len(rows)))) - 1)
    with tempfile.TemporaryDirectory() as folder, server(folder) as (address, pid):
        visitors = [prepare(i, rows, Path(folder)) for i in range(opt.sessions)]
        idle, pulse = memory(pid), Pulse(address)
        opened, highest, took = asyncio.run(visit(address, pid, visitors))
        answers, size = pulse.stop(), visitors[0].table.stat().st_size / 1e6
        time.sleep(opt.afterwards)
        left = memory(pid)
    done = sum(v.rows == len(rows) - 1 for v in visitors)
    foreign = sum(bool(v.foreign) for v in visitors)
    waited = sorted({p for v in visitors for p in v.places}, key=lambda p: int(re.search(r"\d+", p)[0]))  # type: ignore[index]
    print(
        f"{done} of {opt.sessions} sessions got their release, all within {took:.0f} s "
        f"(the first after {min(v.seconds for v in visitors):.0f} s); "
        f"{foreign} saw another's mark; {sum(bool(v.places) for v in visitors)} saw their place in the queue "
        f"({waited[-1] if waited else 'none'}); server memory {idle:.2f} GiB idle, {opened:.2f} with all tables open, "
        f"{highest:.2f} at most"
    )
    print(
        f"tables of {size:.0f} MB; health p50/p95/max {answers} ms; {opt.afterwards} s after the tabs were closed "
        f"{1024 * (left - idle):.0f} MB above the start"
    )
    return 0 if done == opt.sessions and not foreign and (waited or opt.sessions < 4) else 1


if __name__ == "__main__":
    sys.exit(main())
