"""Interruption of SQLite's statements: a limit on the work that a file can cause, and Ctrl-C.

In a damaged file, following the pages might never end, and neither might a view that computes an aggregate.
"""

from __future__ import annotations

import itertools
import sqlite3
from pathlib import Path

STEP = 50_000
"""Number of SQLite instructions between two checks of the limit."""
FEWEST = 1_000_000
"""Minimum number of instructions that a connection is allowed. A scan of a ledger takes about one instruction for every
ten bytes.
"""


def limit_steps(connection: sqlite3.Connection, file: Path) -> None:
    """Interrupt statements on ``connection`` that take more instructions than the size of ``file`` justifies."""
    most = FEWEST + file.stat().st_size // 2
    taken = itertools.count(STEP, STEP)
    connection.set_progress_handler(lambda: next(taken) > most, STEP)


def heed_signals(connection: sqlite3.Connection) -> None:
    """Let Ctrl-C and SIGTERM end a statement on ``connection``; see :func:`raise_interrupt`.

    Python runs the signal's handler inside the progress handler. Its exception is lost there, and the statement fails
    with the code ``SQLITE_INTERRUPT``.
    """
    connection.set_progress_handler(lambda: False, STEP)


def raise_interrupt(error: Exception) -> None:
    """Raise :class:`KeyboardInterrupt` if ``error`` shows that :func:`heed_signals` ended a statement."""
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
        raise KeyboardInterrupt from None


def most_rows(file: Path) -> int:
    """Return an upper bound on the number of rows in any table of ``file`` and its log. A row takes at least
    six bytes.
    """
    log = file.with_name(f"{file.name}-wal")
    return sum(part.stat().st_size for part in (file, log) if part.exists()) // 4
