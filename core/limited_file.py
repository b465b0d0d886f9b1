"""Files of unknown size, read up to a limit."""

from __future__ import annotations

from pathlib import Path


def read_limited(path: Path, most: int) -> bytes:
    """Return the bytes of a file, at most ``most`` and one more, with which its reader refuses it as too large.

    The size is not asked beforehand: a pipe and a device have none.
    """
    with path.open("rb") as file:
        return file.read(most + 1)
