"""Encoded rows on disk, as columns of whole numbers in an unnamed temporary file.

The file is in the folder named by TMPDIR and never has a name. (On systems without unnamed files, its name is removed
when it is closed.) No trace remains after the process ends, even if it crashes.
"""

from __future__ import annotations

import math
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import TableError
from espalier.core.project.schema import smallest_unsigned

PERSON = "person"
"""Name of the person column in a file. It cannot clash with the columns of a schema, which are named by number."""
Batch = dict[str, NDArray[Any]]


class CodeFile:
    """Columns of codes, stored batch by batch in an unnamed temporary file. Small codes share a byte."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        """``sizes`` contains the number of codes of each column; its codes are 0 … size − 1."""
        self._columns = {name: _Packing(size) for name, size in sizes.items()}
        self._file = tempfile.TemporaryFile(prefix="espalier-")  # noqa: SIM115 (the file lives as long as this object)
        self.close = weakref.finalize(self, _close, self._file)
        """Release the space on disk. Garbage collection also releases it."""
        self._parts: list[tuple[int, int]] = []
        self._end, self._lock = 0, threading.Lock()
        self.rows = 0

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for another process, which takes over the open file (`espalier.core.server.worker`)."""
        return {key: value for key, value in self.__dict__.items() if key != "close"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.close = weakref.finalize(self, _close, self._file)

    @property
    def sizes(self) -> dict[str, int]:
        """Number of codes of each column."""
        return {name: packing.size for name, packing in self._columns.items()}

    def append(self, batch: Mapping[str, NDArray[Any]]) -> None:
        """Write another batch, whose columns must have the same length."""
        rows = len(next(iter(batch.values())))
        if not rows:
            return
        with self._lock:
            if any(batch[name].shape != (rows,) for name in self._columns):
                raise ValueError("the columns of a batch must have equal lengths")
            try:
                self._file.seek(self._end)
                for name, packing in self._columns.items():
                    self._file.write(packing.packed(batch[name]).data)
                self._file.flush()
            except OSError as error:
                raise TableError(
                    f"cannot store rows as codes in {tempfile.gettempdir()}: {error.strerror}. Free some space "
                    "there, or set TMPDIR to a folder on another disk"
                ) from None
            self._parts.append((self._end, rows))
            self._end += sum(packing.bytes(rows) for packing in self._columns.values())
            self.rows += rows

    def batches(self, names: Sequence[str] | None = None) -> Iterator[Batch]:
        """Yield the batches as they were written, with the given columns; the caller owns the arrays."""
        for offset, rows in self._parts:
            batch, at = {}, offset
            for name, packing in self._columns.items():
                if names is None or name in names:
                    stored = np.empty(packing.bytes(rows), dtype=np.uint8)
                    with self._lock:
                        self._file.flush()
                        self._file.seek(at)
                        self._file.readinto(stored.data)
                    batch[name] = packing.unpacked(stored, rows)
                at += packing.bytes(rows)
            yield batch


def _close(file: IO[bytes]) -> None:
    with suppress(OSError):  # a full disk may refuse the last bytes
        file.close()


class _Packing:
    """Storage of codes 0 … size − 1: 1, 2 or 4 bits each, or whole bytes."""

    def __init__(self, size: int) -> None:
        self.size, self._kind = size, smallest_unsigned(size)
        self._bits = next(bits for bits in (1, 2, 4, 8 * self._kind.itemsize) if size <= 1 << bits)
        self._together = max(8 // self._bits, 1)
        """Runs of a column that share bytes. The first run uses the lowest bits, the second run uses the next ones, and
        so on.
        """

    def bytes(self, rows: int) -> int:
        """Return the bytes for ``rows`` codes."""
        return math.ceil(rows / self._together) * self._kind.itemsize

    def packed(self, codes: NDArray[Any]) -> NDArray[Any]:
        if int(codes.max(initial=0)) >= self.size:
            raise ValueError("a column has a code that is too large")
        column = np.ascontiguousarray(codes, dtype=self._kind)
        if self._together == 1:
            return column
        run = math.ceil(len(column) / self._together)
        out = column[:run].copy()
        for i in range(1, self._together):
            part = column[i * run : (i + 1) * run]
            out[: len(part)] |= part << np.uint8(self._bits * i)
        return out

    def unpacked(self, stored: NDArray[np.uint8], rows: int) -> NDArray[Any]:
        if self._together == 1:
            return stored.view(self._kind)
        out, run = np.empty(rows, dtype=np.uint8), len(stored)
        for i in range(self._together):
            part = out[i * run : (i + 1) * run]
            np.right_shift(stored[: len(part)], np.uint8(self._bits * i), out=part)
            part &= np.uint8((1 << self._bits) - 1)
        return out
