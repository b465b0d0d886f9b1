"""Limit on the work that a SQLite file can cause. In a damaged file, following the pages might never end."""

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


def most_rows(file: Path) -> int:
    """Return an upper bound on the number of rows in any table of ``file`` and its log. A row takes at least
    six bytes.
    """
    log = file.with_name(f"{file.name}-wal")
    return sum(part.stat().st_size for part in (file, log) if part.exists()) // 4
