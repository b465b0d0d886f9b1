"""Reading of files of unknown size, up to a limit, and writing of confidential files."""

from __future__ import annotations

import os
from pathlib import Path


def read_limited(path: Path, most: int) -> bytes:
    """Return at most ``most`` + 1 bytes of a file; the extra byte lets the caller refuse the file as too large.

    The size is not queried first, because pipes and devices have none.
    """
    with path.open("rb") as file:
        return file.read(most + 1)


def write_own(path: Path, text: str) -> None:
    """Write a new file that only its owner may read; raises :class:`FileExistsError` if a file or link has that name.

    A draft may contain private values until it is confirmed.
    """
    with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
