"""Limits on files: the accepted kinds of files, and the size to which a packed file may unpack."""

from __future__ import annotations

import gzip
import io
import os
import stat
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from espalier.core.errors import TableError

MAX_BYTES = 1 << 30
BOMB_BYTES, BOMB_RATIO = 50_000_000, 150
"""A file is refused as an attack if it unpacks to more than this number of bytes and to more than this multiple of its
size. Packing makes ordinary tables 5 to 50 times smaller.
"""
BOMB_CELLS, CELL_RATIO = 50_000_000, 15
"""A file whose cells are held in memory is refused if it has more cells than this number and than this multiple of its
size in bytes. Larger files are read in place, in batches.
"""
FEW_ROWS, JOINED_ROWS, BATCH_BYTES = 64, 1 << 16, 1 << 28
"""Sizes of batches if text may be far longer than its bytes in the file: rows per batch, rows after batches are joined,
and bytes per batch. A single row may have more bytes.
"""


def check_ordinary(path: Path) -> None:
    """Refuse a pipe or a device, because its bytes can be read only once and a second read would miss the first
    rows.
    """
    if path.exists() and not path.is_file():
        raise _unordinary(path, "a folder" if path.is_dir() else "a pipe or a device")


def open_ordinary(path: Path) -> IO[bytes]:
    """Open an ordinary file. If a pipe or a device has just replaced it, refuse without waiting for data."""
    file = os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb")
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise _unordinary(path, "a pipe or a device")


def _unordinary(path: Path, what: str) -> TableError:
    return TableError(f"cannot read {path}: it is {what}; write the rows into a file first", path=str(path))


class Facts(NamedTuple):
    """Facts that change when a file is written or replaced."""

    device: int
    inode: int
    size: int
    written: int
    changed: int


def state(file: IO[bytes]) -> Facts:
    """Return the `Facts` of an open file."""
    return _facts(os.fstat(file.fileno()))


def changes(path: Path | None) -> Facts | None:
    """Return the `Facts` of the file at ``path``; `None` if it is not a file."""
    with suppress(FileNotFoundError):
        return _facts(path.stat()) if path is not None and path.is_file() else None
    return None


def _facts(of: os.stat_result) -> Facts:
    return Facts(of.st_dev, of.st_ino, of.st_size, of.st_mtime_ns, of.st_ctime_ns)


def gunzip(data: bytes, shown: str) -> bytes:
    """Return the contents of a gzip file; raise :class:`TableError` if it is damaged or its contents are too large."""
    out = bytearray()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            while chunk := file.read(1 << 24):
                out += chunk
                check_unpacked(len(out), len(data), shown)
    except (OSError, EOFError, zlib.error):
        raise TableError(f"{shown} is a damaged gzip file") from None
    return bytes(out)


def check_unpacked(size: int, packed: int, shown: str) -> None:
    """Refuse a file whose contents would be too large, before it is unpacked."""
    if size > MAX_BYTES:
        raise TableError(f"{shown} unpacks to more than 1 GiB, which is more than Espalier can read")
    check_ratio(size, packed, shown)


def check_ratio(size: int, packed: int, shown: str) -> None:
    """Refuse a file that unpacks to far more than its size."""
    if size > BOMB_BYTES and size > BOMB_RATIO * packed:
        raise TableError(
            f"{shown} unpacks to more than {BOMB_RATIO} times its size, unlike any ordinary table; use a plain CSV file"
        )


def check_cells(cells: int, packed: int, shown: str) -> None:
    """Refuse a file that has far more cells than its size suggests, before they are read into memory."""
    if cells > BOMB_CELLS and cells > CELL_RATIO * packed:
        raise TableError(
            f"{shown} has more than {CELL_RATIO} cells for each of its bytes, unlike any ordinary table; use a plain "
            "CSV file"
        )


def unshared(file: Any, longest: int, packed: int, shown: str, names: Sequence[str] | None = None) -> Iterator[Any]:
    """Yield the batches of a Parquet file whose text may be stored as differences from the previous value. A few bytes
    of such a file may encode many long values. Therefore, few rows are read at a time and their sizes are added up.
    ``longest`` is the largest possible size, in bytes, of one row's text in this encoding
    (`espalier.core.tables.parquet_pages`). Raises :class:`TableError` if the sum is far larger than the file.
    """
    import pyarrow as pa

    held, rows, size = list[Any](), 0, 0
    for batch in file.iter_batches(max(1, min(FEW_ROWS, BATCH_BYTES // max(longest, 1))), columns=names):
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        check_ratio(size, packed, shown)
        if rows >= JOINED_ROWS:
            yield from pa.Table.from_batches(held).combine_chunks().to_batches()
            held, rows = [], 0
    if held:
        yield from pa.Table.from_batches(held).combine_chunks().to_batches()
