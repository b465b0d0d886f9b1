"""Speed of the drawing board in a real browser, on tables with invented columns.

    python -m benchmarks.board [--arrows 12]

For 40 columns with 120 arrows, it prints the seconds from releasing the mouse until Python has processed the arrow and
the board shows it, and the milliseconds per frame while a box is dragged. For 200 columns with 400 arrows, it prints
the seconds from the click on "Structure" until the drawing is visible.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from espalier.core.graph.dag import Dag
from espalier.core.graph.roles import Roles
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema

ROOT = Path(__file__).resolve().parent.parent
BOARD = """() => { for (const e of document.querySelectorAll('*'))
  if (e.shadowRoot && e.shadowRoot.querySelector('.board .canvas')) return e.shadowRoot.querySelector('.board'); }"""


def project(columns: int, arrows: int, rng: np.random.Generator) -> Project:
    """Return invented columns, with arrows from earlier to later columns."""
    names = [f"column {i:03d}" for i in range(columns)]
    edges: set[tuple[str, str]] = set()
    while len(edges) < arrows:
        a = int(rng.integers(columns - 1))
        b = min(columns - 1, a + 1 + int(rng.geometric(6 / columns)))
        edges.add((names[a], names[b]))
    schema = Schema(tuple(Column(n, "categorical", categories=("no", "yes")) for n in names))
    target = names[3 * columns // 4]
    roles = Roles(outcome=(target,), protected=(names[0],), admissible=tuple(names[columns // 4 : columns // 4 + 3]))
    return Project("board", schema, Plan("prism", 1.0, 1e-9, target=target), Dag(tuple(sorted(edges))), roles)


def where(page: Any, column: str) -> tuple[float, float] | None:
    """Return the position of a box on the screen."""
    spot = page.evaluate(
        f"""column => {{ const board = ({BOARD})(); if (!board) return null;
        const canvas = board.querySelector('.canvas'), detail = {{ column }};
        canvas.dispatchEvent(new CustomEvent('where', {{ detail }}));
        const frame = canvas.getBoundingClientRect();
        return detail.at && [frame.left + detail.at.x, frame.top + detail.at.y]; }}""",
        column,
    )
    return None if spot is None else (spot[0], spot[1])


def open_project(page: Any, base: str, made: Project, folder: Path) -> float:
    """Open a project and its Structure page; return seconds from the click until the drawing is visible and stable."""
    path = folder / f"{len(made.schema.names)}.json"
    path.write_text(made.dumps(), "utf-8")
    page.goto(f"{base}/data")
    page.locator("input[type=file]").nth(1).set_input_files(path)
    page.get_by_role("button", name="Open the project").first.click()
    page.get_by_role("button", name="Next: Structure").first.wait_for()
    page.wait_for_timeout(2500)
    began = time.perf_counter()
    page.get_by_role("button", name="Next: Structure").first.click()
    page.wait_for_function(
        f"""() => {{ const board = ({BOARD})(), c = board && board.querySelector('canvas');
        return c && c.width && c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(v => v); }}""",
        polling=30,
    )
    took = time.perf_counter() - began
    page.wait_for_timeout(2500)
    return took


def spent(process: int) -> float:
    """Return the CPU seconds used by the server, which do not depend on the machine's load."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def draw(page: Any, made: Project, rng: np.random.Generator, arrows: int) -> list[float]:
    """Return the seconds from releasing the mouse until the board shows Python's answer to the arrow."""
    out: list[float] = []
    drawn, names = set(made.dag.edges), made.schema.names
    while len(out) < arrows:
        i, j = sorted(int(k) for k in rng.choice(len(names), 2, replace=False))
        spots = where(page, names[i]), where(page, names[j])
        if (names[i], names[j]) in drawn or None in spots:
            continue
        drawn.add((names[i], names[j]))
        (x, y), (u, v) = spots  # type: ignore[misc]
        taken = page.evaluate(f"() => Number(({BOARD})().dataset.taken)")
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move((x + u) / 2, (y + v) / 2, steps=5)
        page.mouse.move(u, v, steps=5)
        began = time.perf_counter()
        page.mouse.up()
        page.wait_for_function(f"n => Number(({BOARD})().dataset.taken) > n", arg=taken, polling=10)
        out.append(time.perf_counter() - began)
        page.wait_for_timeout(400)
    return out


def smooth(page: Any, column: str) -> float:
    """Return the median number of milliseconds between two frames while a box is dragged."""
    board = page.locator(".board")
    board.get_by_role("button", name="Move boxes").click()
    spot = where(page, column)
    assert spot is not None
    page.evaluate(
        """() => { window.ticks = []; const tick = t => { window.ticks.push(t); requestAnimationFrame(tick); };
        requestAnimationFrame(tick); }"""
    )
    page.mouse.move(*spot)
    page.mouse.down()
    for k in range(60):
        page.mouse.move(spot[0] + 2 * k, spot[1] + k)
        page.wait_for_timeout(8)
    ticks: list[float] = page.evaluate("() => window.ticks")
    page.mouse.up()
    return statistics.median(b - a for a, b in pairwise(ticks))


def main() -> None:
    """Start the app and a browser, and measure."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--arrows", type=int, default=12, help="arrows to draw")
    opt = parser.parse_args()
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        sys.exit("no Chromium was found: apt-get install chromium")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    base = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless=true", f"--server.port={port}"]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    rng = np.random.default_rng(1)
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
            page = context.pages[0]
            small = project(40, 120, rng)
            opened = open_project(page, base, small, Path(folder))
            print(f"40 columns, 120 arrows: the drawing is visible after {opened:.2f} s (first page of the server)")
            page.locator(".board").get_by_role("button", name="Fit").click()
            before = spent(server.pid)
            times = draw(page, small, rng, opt.arrows)
            each = (spent(server.pid) - before) / len(times)
            print(
                f"  an arrow, mouse up until Python's answer is shown: median {statistics.median(times):.2f} s, "
                f"slowest of {len(times)} {max(times):.2f} s; {each:.2f} s of the server's CPU"
            )
            print(f"  dragging a box: {smooth(page, small.schema.names[20]):.0f} ms from frame to frame")
            for attempt in ("first", "again"):
                took = open_project(page, base, project(200, 400, rng), Path(folder))
                print(f"200 columns, 400 arrows, {attempt}: the drawing is visible after {took:.2f} s")
            context.close()
            print(f"load average during the run: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    finally:
        server.terminate()
        server.wait(20)


if __name__ == "__main__":
    main()
