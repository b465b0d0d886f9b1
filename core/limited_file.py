"""Read files of unknown size up to a limit, list folders, and write confidential files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any


def read_limited(path: Path, most: int) -> bytes:
    """Return at most ``most`` + 1 bytes of a file; the extra byte lets the caller refuse the file as too large.

    The size is not queried first, because pipes and devices have no size.
    """
    with path.open("rb") as file:
        return file.read(most + 1)


def walked(
    folder: Path, onerror: Callable[[OSError], Any] | None = None
) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Yield each folder below ``folder``, at any depth, with the names of its folders and files, as `os.walk` does."""
    waiting = [folder]
    while waiting:
        for where, folders, names in islice(os.walk(waiting.pop(), onerror=onerror), 1):
            yield Path(where), folders, names
            waiting += [inside for name in folders if not (inside := Path(where, name)).is_symlink()]


def write_own(path: Path, text: str) -> None:
    """Write a new file that only its owner may read; raises :class:`FileExistsError` if a file or link has that name.

    A draft may contain private values until it is confirmed.
    """
    write_new(path, text.encode("utf-8"), 0o600)


def write_new(path: Path, data: bytes, mode: int = 0o666) -> None:
    """Write a new file completely or not at all, because part of a file would prevent a second attempt; raises
    :class:`FileExistsError` if a file or link has that name.
    """
    with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb") as file:
        try:
            file.write(data)
            file.flush()
        except BaseException:
            path.unlink(missing_ok=True)
            raise
