"""Guard for errors of engines and drivers, whose messages may quote a cell or a password."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from espalier.core.errors import EspalierError, TableError
from espalier.core.sqlite_steps import raise_interrupt
from espalier.core.tables.connection import while_reading

OURS = (EspalierError, MemoryError)
"""Errors that pass unchanged, because they quote nothing from a driver."""
BUGS = (AttributeError, TypeError, AssertionError)
"""Errors of Espalier's own code, if no driver converts cells there. They also pass unchanged, so that a bug shows its
traceback.
"""


class EngineFailed(Exception):
    """An engine in another process raised an error. The text of this exception is the type of that error."""


@contextmanager
def engine_errors(message: str, ours: tuple[type[Exception], ...] = (*OURS, *BUGS)) -> Iterator[None]:
    """Raise :class:`TableError` with ``message`` and the cause, or the error's type, instead of an engine's own error.

    Errors in ``ours`` pass unchanged. Pass ``ours`` without `BUGS` if a driver may raise such an error because of a
    cell. :class:`KeyboardInterrupt` is raised if a signal ended a statement of SQLite.
    """
    try:
        yield
    except ours:
        raise
    except Exception as error:
        raise_interrupt(error)
        cause = while_reading(error)
        named = str(error) if isinstance(error, EngineFailed) else type(error).__name__
        raise TableError(f"{message}: {cause}" if cause else f"{message} ({named})") from None
