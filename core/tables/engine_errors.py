"""The one guard for errors of engines and drivers: their own messages may quote a cell or a password."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from espalier.core.errors import EspalierError, TableError
from espalier.core.tables.connection import while_reading

OURS = (EspalierError, MemoryError)
"""Errors that pass a guard unchanged: they quote nothing from a driver."""
BUGS = (AttributeError, TypeError, AssertionError)
"""Errors of our own code, where no driver converts cells. They pass too, so that a bug shows its traceback."""


@contextmanager
def engine_errors(message: str, ours: tuple[type[Exception], ...] = (*OURS, *BUGS)) -> Iterator[None]:
    """Raise :class:`TableError` with ``message`` and the cause, or the error's type, instead of an engine's own error.

    Errors in ``ours`` pass. Leave `BUGS` out where a driver's code raises them about a cell.
    """
    try:
        yield
    except ours:
        raise
    except Exception as error:
        cause = while_reading(error)
        raise TableError(f"{message}: {cause}" if cause else f"{message} ({type(error).__name__})") from None
