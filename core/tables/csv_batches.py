"""Reader of CSV files of any size, a block of lines at a time, under the rules of `espalier.core.tables.csv_lines`.

An engine's own CSV reader lets a quoted value span line breaks, so one row could change how others are read. Here every
block consists of whole lines, is checked line by line against the header line, and is then parsed.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any

from espalier.core.errors import TableError
from espalier.core.tables.csv_lines import check_lines, header_names, plain_lines, refused
from espalier.core.tables.parquet_files import PLACE_ROWS, PLACES
from espalier.core.tables.reading import _parsed
from espalier.core.tables.text_table import check_names
from espalier.core.tables.unpacking import Facts, changes, check_ratio, open_ordinary, state

BLOCK = 1 << 24
PIECE = 1 << 18
"""Number of bytes read at each place of a sample."""
LINE = 1 << 26
"""Maximum number of bytes in a line."""


class Lines:
    """A CSV file as a feed (`espalier.core.tables.relation.Feed`) of text columns."""

    rows = None

    def __init__(self, path: Path) -> None:
        """Read the header line; raises :class:`TableError`."""
        self._seen = changes(path)
        self.columns = dict.fromkeys(csv_names(path, self._seen), "string")
        self.files, self.states = (path,), (self._seen,)
        self.unclear = set[str]()

    def schema(self, names: Sequence[str]) -> Any:
        """Return the Arrow schema of these columns."""
        import pyarrow as pa

        return pa.schema([(name, pa.string()) for name in names])

    def batches(self, names: Sequence[str], most: int | None = None) -> Generator[Any]:  # noqa: ARG002
        """Yield the columns ``names`` of all rows."""
        for batch in csv_batches(self.files[0], self.unclear, self._seen):
            yield batch.select(list(names))

    def spread(self, names: Sequence[str], rows: int) -> Generator[Any]:  # noqa: ARG002
        """Yield lines from `PLACES` places in the file; for a packed file, the first lines of each block."""
        for batch in csv_places(self.files[0], self._seen):
            yield batch.select(list(names))

    def statements(self, names: Sequence[str]) -> list[str]:
        """Return an SQL comment that lists the columns read; without an engine there are no statements."""
        return [f"-- Espalier reads these columns of the CSV file in batches: {', '.join(map(repr, names))}"]

    def close(self) -> None:
        """Do nothing, because no file stays open."""


def csv_names(path: Path, seen: Facts | None = None) -> tuple[str, ...]:
    """Return the names in the header line."""
    with _opened(path, seen) as file:
        head, _ = _header(file, path)
    names, _ = header_names(plain_lines(head, str(path))[0], str(path))
    check_names(names, str(path))
    return tuple(names)


def csv_batches(path: Path, unclear: set[str] | None = None, seen: Facts | None = None) -> Generator[Any]:
    """Yield the rows as Arrow batches of text columns, and add columns with a cell that is not UTF-8 to ``unclear``.

    Raises :class:`TableError`, which names the line and quotes no text, for a faulty line and for a file that has
    changed since it was ``seen``.
    """
    unclear = set() if unclear is None else unclear
    with _opened(path, seen) as file:
        head, end = _header(file, path)
        lines, rest, packed = 0, b"", path.stat().st_size
        while block := file.read(BLOCK):
            check_ratio(file.tell(), packed, str(path))
            if len(rest) > LINE:
                raise TableError(f"{path} has a line of more than {LINE >> 20} MiB; correct it")
            whole, found, tail = (rest + block).rpartition(end)
            rest = tail
            if found:
                rows = _rows(head, whole + found, path, lines, unclear)
                lines += rows.num_rows
                yield from rows.to_batches()
        if rest:
            yield from _rows(head, rest, path, lines, unclear).to_batches()


def csv_places(path: Path, seen: Facts | None = None) -> Generator[Any]:
    """Yield lines spread over the file; raises :class:`TableError`.

    If no place contains a whole line, because lines are very long, the first lines are yielded instead.
    """
    found = False
    with _opened(path, seen) as file:
        head, end = _header(file, path)
        start, size = file.tell(), path.stat().st_size
        if isinstance(file, gzip.GzipFile) or size - start <= PLACES * PIECE:
            every = csv_batches(path, seen=seen)
            yield from (batch.slice(0, PLACE_ROWS) if size > PLACES * PIECE else batch for batch in every)
            return
        for place in range(PLACES):
            at = start + place * (size - start - PIECE) // (PLACES - 1)
            file.seek(at)
            block = file.read(PIECE)
            first, last = block.find(end) + 1 if at > start else 0, block.rfind(end) + 1
            if last > first:
                try:
                    rows = _rows(head, block[first:last], path, 0, set())
                except TableError as error:  # the line number is not known here
                    raise TableError(re.sub(r", line [0-9,]+", "", str(error))) from None
                found |= rows.num_rows > 0
                yield from rows.to_batches()
    if not found:
        yield from islice(csv_batches(path, seen=seen), 1)


@contextmanager
def _opened(path: Path, seen: Facts | None) -> Iterator[IO[bytes]]:
    """Open the file and yield its unpacked bytes; refuse any file other than the one that was ``seen``."""
    with open_ordinary(path) as file:
        if seen is not None and state(file) != seen:
            raise TableError(f"{path} was changed after it was opened; open it again")
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        try:
            yield gzip.GzipFile(fileobj=file) if packed else file  # type: ignore[misc]
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise TableError(f"{path} is a damaged gzip file") from None


def _header(file: IO[bytes], path: Path) -> tuple[bytes, bytes]:
    """Return the header line with its line break, and the byte that ends a line. The file is then positioned after that
    line.
    """
    head = bytearray()
    places = list[int]()
    while not places and (block := file.read(1 << 20)):
        places = [len(head) + at for at in (block.find(b"\n"), block.find(b"\r")) if at >= 0]
        head += block
        if len(head) > LINE:
            raise TableError(f"{path} has a line of more than {LINE >> 20} MiB; correct it")
    if head.endswith(b"\r"):
        head += file.read(1)
    if not places:
        raise TableError(f"{path} has a header but no rows")
    at = min(places)
    if head[at : at + 2] == b"\r\n":
        at += 1
    file.seek(at + 1)
    return bytes(head[: at + 1]), bytes(head[at : at + 1])


def _rows(head: bytes, block: bytes, path: Path, before: int, unclear: set[str]) -> Any:
    """Return the rows of one block, parsed as a table with the header line in front; see `csv_batches`."""
    import pyarrow as pa

    shown = str(path)
    if head[-1:] == b"\r" and block[:1] == b"\n":  # together, they would form a different kind of line break
        raise refused(shown, before + 2, "a line feed follows a carriage return; use one kind of line break throughout")
    try:
        text, odd = plain_lines(head + block, shown)
        names, delimiter = header_names(text, shown)
        check_lines(text, delimiter, shown)
    except TableError as error:
        row = error.data.get("row", 0)
        raise TableError(str(error).replace(f", line {row}:", f", line {row + before}:"), row=row + before) from None
    try:
        table = _parsed(text, names, once=False, delimiter=delimiter)
    except pa.ArrowInvalid:  # its text may quote a row
        raise TableError(f"{shown}: a line has more or fewer cells than the header has names; correct it") from None
    if table.num_rows != text.count(b"\n") + (not text.endswith(b"\n")) - 1:
        raise TableError(f"{shown} cannot be read as CSV: its number of rows differs from its number of lines")
    unclear.update(names[place] for place in odd if place < len(names))
    return table
