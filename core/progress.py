"""How long work tells how far it has come, and how it is cancelled."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")
PULSE = 0.3
"""Seconds between two looks whether somebody cancels, while something else works."""
Report = Callable[[float, str], None]
"""(fraction done, message). Raising from it, such as :class:`espalier.core.errors.Cancelled`, ends the work."""


def silent(fraction: float, message: str) -> None:
    """A report that nobody listens to."""


def part(report: Report, start: float, end: float) -> Report:
    """``report`` for a part of the work that takes it from ``start`` to ``end``."""
    return lambda fraction, message: report(start + (end - start) * fraction, message)


def interruptible(work: Callable[[], T], pulse: Callable[[], None], stop: Callable[[], object]) -> T:
    """What ``work`` returns, done in a thread; what ``pulse`` raises meanwhile comes out once ``stop()`` ended it."""
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(work)
        try:
            while not wait([answer], PULSE).done:
                pulse()
        except BaseException:
            stop()
            raise
        return answer.result()
