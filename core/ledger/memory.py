"""A machine's memory of a ledger: a file with the number of events that it has seen and the last hash."""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from espalier.core.errors import LedgerError
from espalier.core.limited_file import read_limited

TRIES, EACH = 50, 0.1
"""Number of attempts to lock a folder, and seconds between them. Anyone who can read the folder could keep it locked.
"""


class Seen(NamedTuple):
    """A memory's file, the number of events, and the last hash."""

    file: Path
    events: int
    hash: str


def head(count: int, hash_: str) -> str:
    """Return a number of events and the last hash as text of fixed length."""
    return f"{count:020d} {hash_ or '0' * 64}"


def read(file: Path, ledger: str) -> Seen:
    """Return the content of a memory; raises :class:`LedgerError` for a file that contains something else."""
    try:
        text = read_limited(file, 200).decode("ascii") if file.is_file() or not file.exists() else ""
    except (FileNotFoundError, NotADirectoryError):
        return Seen(file, 0, "")
    except (OSError, ValueError):  # an unreadable file may describe a later copy
        text = ""
    if not re.fullmatch(r"[0-9]{1,20} [0-9a-f]{64}\s*", text):
        raise LedgerError(
            f"{file}, in which this machine records the last event of the ledger {ledger}, is unreadable or "
            "contains something else. No release is possible. Move that file away, or use another ledger"
        )
    count, hash_ = text.split()
    return Seen(file, int(count), hash_)


def write(file: Path, ledger: str, count: int, hash_: str) -> None:
    """Store the last event, unless a later one is stored or the folder is read-only."""
    if count <= read(file, ledger).events:
        return
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _alone(file.parent):  # another process must not restore an earlier event
            if count <= read(file, ledger).events:
                return
            new = file.with_name(f".{file.name}-{secrets.token_hex(8)}")  # other users cannot guess this name
            with open(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as out:
                out.write(f"{head(count, hash_)}\n")
            os.replace(new, file)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let only one process at a time write in a folder, if the system has such locks."""
    with ExitStack() as held:
        with suppress(ImportError, OSError):  # Windows, or a folder that cannot be opened
            import fcntl

            at = os.open(folder, os.O_RDONLY)
            held.callback(os.close, at)
            for _ in range(TRIES):
                with suppress(BlockingIOError):
                    fcntl.flock(at, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                time.sleep(EACH)
        yield
