"""Repeat every test that draws unseeded noise: `pytest --repeat 300`.

One run does not show whether a test passes by luck. `--repeat N` runs each test once and, if it drew unseeded noise, N
− 1 more times. Each repetition rebuilds the fixtures of the test and its module. Noise is found where it is drawn
(OpenDP, numpy's generator without a seed, the system's random bytes), so a test needs no marker. Noise drawn in another
process is not detected.

`--repeat-for SECONDS` stops repeating a test after this time. A test that fails is reported once, with the number of
its failures; the summary lists how often each test ran.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any
from unittest import mock

import numpy as np
import pytest
from _pytest.runner import runtestprotocol

OWN = ("core.", "espalier.core.")
"""Packages that draw random numbers from the system's random bytes."""
NOT_NOISE = ("ledger",)
"""Packages that use random bytes for keys and identities only."""
DRAWN = {"noise": False}
"""Whether the running test has drawn unseeded noise."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the two options."""
    group = parser.getgroup("noise")
    group.addoption("--repeat", type=int, default=1, metavar="N", help="run tests that draw unseeded noise N times")
    group.addoption("--repeat-for", type=float, default=float("inf"), metavar="SECONDS", help="at most, for one test")


def _noted(draw: Callable[..., Any], counts: Callable[..., bool]) -> Callable[..., Any]:
    """Return ``draw``, noting each call for which ``counts`` holds."""

    @wraps(draw)
    def drawing(*args: Any, **more: Any) -> Any:
        DRAWN["noise"] |= counts(*args, **more)
        return draw(*args, **more)

    return drawing


def _of_core(*_: Any) -> bool:
    caller = sys._getframe(2).f_globals.get("__name__", "")
    return caller.startswith(OWN) and not any(part in caller.split(".") for part in NOT_NOISE)


@contextmanager
def noting() -> Iterator[None]:
    """Note in `DRAWN` whether unseeded noise is drawn."""
    from opendp.mod import Measurement

    with (
        mock.patch.object(Measurement, "__call__", _noted(Measurement.__call__, lambda *_: True)),
        mock.patch.object(Measurement, "invoke", _noted(Measurement.invoke, lambda *_: True)),
        mock.patch.object(np.random, "default_rng", _noted(np.random.default_rng, lambda seed=None: seed is None)),
        mock.patch.object(os, "urandom", _noted(os.urandom, _of_core)),
    ):
        yield


def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    """Run ``item`` as often as the options require; report its first failure, or its last run."""
    times, seconds = item.config.getoption("--repeat"), item.config.getoption("--repeat-for")
    if times <= 1:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    DRAWN["noise"], begun, runs, failures = False, time.monotonic(), 0, 0
    shown: list[pytest.TestReport] = []
    while True:
        with noting():
            # between runs only the session's fixtures are kept
            reports = runtestprotocol(item, log=False, nextitem=item.session)  # type: ignore[arg-type]
        runs += 1
        failed = any(report.failed for report in reports)
        failures += failed
        if (failed and failures == 1) or not failures:
            shown = reports
        if not DRAWN["noise"] or runs >= times or time.monotonic() - begun > seconds:
            break
        item._initrequest()  # type: ignore[attr-defined]
    for report in shown:
        if DRAWN["noise"]:
            report.user_properties.append(("repeated", [runs, failures]))
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Report how often each test that draws noise ran, and how often it failed."""
    if terminalreporter.config.getoption("--repeat") <= 1:
        return
    rows: dict[str, Any] = {
        report.nodeid: dict(report.user_properties)["repeated"]
        for reports in terminalreporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport) and "repeated" in dict(report.user_properties)
    }
    terminalreporter.section(f"{len(rows)} tests draw unseeded noise")
    for nodeid, (runs, failures) in sorted(rows.items(), key=lambda row: (-row[1][1], row[0])):
        terminalreporter.write_line(f"{failures} of {runs} runs failed  {nodeid}")
