"""Limits on files: which may be read, and how far a packed file may unpack."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from espalier.core.errors import TableError

MAX_BYTES = 1 << 30
BOMB_BYTES, BOMB_RATIO = 50_000_000, 150
"""A file that unpacks to more than these bytes and more than this multiple of its size is refused as an attack:
ordinary tables compress to between a fifth and a fiftieth."""
FEW_ROWS, JOINED_ROWS = 64, 1 << 16
"""Rows per batch of texts that may be far longer than their bytes in the file, and rows per group of such batches."""


def check_ordinary(path: Path) -> None:
    """Refuse a pipe or a device: each byte can be read only once, so a second read would lack the first rows."""
    if path.exists() and not path.is_file():
        what = "a folder" if path.is_dir() else "a pipe or a device"
        raise TableError(f"cannot read {path}: it is {what}; write the rows into a file first", path=str(path))


def gunzip(data: bytes, shown: str) -> bytes:
    """Return the contents of a gzip file; raise :class:`TableError` if it is damaged or unpacks to too much."""
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
    """Refuse a file that would unpack to too much, before unpacking it."""
    if size > MAX_BYTES:
        raise TableError(f"{shown} unpacks to more than 1 GiB; Espalier reads smaller tables only")
    check_ratio(size, packed, shown)


def check_ratio(size: int, packed: int, shown: str) -> None:
    """Refuse a file that unpacks to far more than its size."""
    if size > BOMB_BYTES and size > BOMB_RATIO * packed:
        raise TableError(
            f"{shown} unpacks to more than {BOMB_RATIO} times its size, unlike any ordinary table; use a plain CSV file"
        )


def check_texts(facts: Any, packed: int, shown: str) -> None:
    """Refuse a Parquet file whose texts unpack to far more than its size, by the sizes in its footer."""
    groups = [facts.row_group(i) for i in range(facts.num_row_groups)]
    chunks = [group.column(i) for group in groups for i in range(group.num_columns)]
    check_ratio(sum(c.total_uncompressed_size for c in chunks if c.physical_type == "BYTE_ARRAY"), packed, shown)


def unshared(file: Any, packed: int, shown: str, names: Sequence[str] | None = None) -> Iterator[Any]:
    """Yield the batches of a Parquet file whose texts may be stored as differences from the preceding text.

    A few bytes of such a file may encode many long texts, so their sizes are summed after every few rows. Raise
    :class:`TableError` if the sum is far larger than the file.
    """
    import pyarrow as pa

    held, rows, size = list[Any](), 0, 0
    for batch in file.iter_batches(FEW_ROWS, columns=names):
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        check_ratio(size, packed, shown)
        if rows >= JOINED_ROWS:
            yield from pa.Table.from_batches(held).combine_chunks().to_batches()
            held, rows = [], 0
    if held:
        yield from pa.Table.from_batches(held).combine_chunks().to_batches()
