"""Progress reporting and cancellation."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")
PULSE = 0.3
"""Seconds between two checks for cancellation."""
Report = Callable[[float, str], None]
"""Function that is called with (fraction done, message). The work is cancelled if the function raises an exception,
usually :class:`espalier.core.errors.Cancelled`.
"""


def silent(fraction: float, message: str) -> None:
    """Ignore progress. This is the default report."""


def part(report: Report, start: float, end: float) -> Report:
    """Return a report for one part of the work, which advances ``report`` from ``start`` to ``end``."""
    return lambda fraction, message: report(start + (end - start) * fraction, message)


def interruptible(work: Callable[[], T], pulse: Callable[[], None], stop: Callable[[], object]) -> T:
    """Run ``work`` in a thread and return its result. If ``pulse`` raises an exception in the meantime, call ``stop()``
    and raise it.
    """
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(work)
        try:
            while not wait([answer], PULSE).done:
                pulse()
        except BaseException:
            stop()
            raise
        return answer.result()
