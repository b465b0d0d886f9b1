"""Reading of files of unknown size, up to a limit."""

from __future__ import annotations

from pathlib import Path


def read_limited(path: Path, most: int) -> bytes:
    """Return at most ``most`` + 1 bytes of a file; the extra byte lets the caller refuse the file as too large.

    The size is not queried first, because pipes and devices have none.
    """
    with path.open("rb") as file:
        return file.read(most + 1)
