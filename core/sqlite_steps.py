"""Limit on the work that a SQLite file can cause, because following the pages of a damaged file may never end."""

from __future__ import annotations

import itertools
import sqlite3
from pathlib import Path

STEP = 50_000
"""Number of SQLite's instructions between two checks of the limit."""
FEWEST = 1_000_000
"""Minimum number of instructions that a connection is allowed. A scan of a ledger takes about one instruction for every
ten bytes.
"""


def limit_steps(connection: sqlite3.Connection, file: Path) -> None:
    """Interrupt statements of ``connection`` that take more instructions than the size of ``file`` justifies."""
    most = FEWEST + file.stat().st_size // 2
    taken = itertools.count(STEP, STEP)
    connection.set_progress_handler(lambda: next(taken) > most, STEP)


def most_rows(file: Path) -> int:
    """Return a number of rows that no table in ``file`` and its log can reach, because a row takes at least six
    bytes.
    """
    log = file.with_name(f"{file.name}-wal")
    return sum(part.stat().st_size for part in (file, log) if part.exists()) // 4
