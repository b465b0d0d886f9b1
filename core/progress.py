"""How long work tells how far it has come, and how it is cancelled."""

from __future__ import annotations

from collections.abc import Callable

Report = Callable[[float, str], None]
"""(fraction done, message). Raising from it, such as :class:`core.errors.Cancelled`, ends the work."""


def silent(fraction: float, message: str) -> None:
    """A report that nobody listens to."""


def part(report: Report, start: float, end: float) -> Report:
    """``report`` for a part of the work that takes it from ``start`` to ``end``."""
    return lambda fraction, message: report(start + (end - start) * fraction, message)
