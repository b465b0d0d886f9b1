"""Digest of encoded rows that is independent of their order."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.project.schema import Schema

if TYPE_CHECKING:
    from espalier.core.tables.source import Source

_MIXES = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB), (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)
"""Odd factors of two 64-bit mixing functions (from SplitMix64 and MurmurHash3)."""

_MARKS, _CHUNK = 1 << 12, 1 << 14
"""Size of a table of hash sums, and number of rows per step. Both fit into the processor's cache."""


class Digest:
    """A hash of a multiset of encoded rows, added up batch by batch.

    A row's hash is the sum of one 64-bit hash per column name and label. Two mixes of that sum are added up over the
    rows.
    """

    def __init__(self, schema: Schema) -> None:
        self._marks: list[tuple[list[str], NDArray[np.uint64]]] = []
        """Runs of columns with the sums of their hashes, one axis per column."""
        for c in schema.columns:
            marks = np.array([_hash(c.name, label) for label in c.labels], dtype=np.uint64)
            if self._marks and self._marks[-1][1].size * len(marks) <= _MARKS:
                names, before = self._marks.pop()
                self._marks.append(([*names, c.name], before[..., None] + marks))
            else:
                self._marks.append(([c.name], marks))
        self._sums, self._rows = [0, 0], 0

    def add(self, batch: Mapping[str, NDArray[Any]]) -> None:
        """Add rows, given as codes by column name."""
        rows = len(next(iter(batch.values())))
        for start in range(0, rows, _CHUNK):
            row = np.zeros(min(_CHUNK, rows - start), dtype=np.uint64)
            for names, marks in self._marks:
                place = np.zeros(len(row), dtype=np.intp)
                for name, size in zip(names, marks.shape, strict=True):
                    place *= size
                    place += batch[name][start : start + _CHUNK]
                row += marks.ravel()[place]
            for i in range(len(_MIXES)):
                added = int(mixed(row, i).sum(dtype=np.uint64))
                self._sums[i] = (self._sums[i] + added) % 2**64
        self._rows += rows

    def value(self) -> bytes:
        """Return the digest, 32 bytes. PRIVATE, because rows could be guessed from it. It leaves this machine only
        through a keyed fingerprint.
        """
        return hashlib.sha256(b"%d:%d:%d" % (self._rows, *self._sums)).digest()


def mixed(numbers: NDArray[np.uint64], which: int = 0) -> NDArray[np.uint64]:
    """Return the numbers, each mixed separately by one of two functions."""
    a, b = _MIXES[which]
    out = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(a)
    out = (out ^ (out >> np.uint64(27))) * np.uint64(b)
    return out ^ (out >> np.uint64(31))


def digest_of(rows: Source) -> bytes:
    """Return the digest of encoded rows, which may be part of a table. PRIVATE."""
    adding = Digest(rows.schema)
    for batch in rows.batches():
        adding.add(batch)
    return adding.value()


def _hash(name: str, label: str) -> int:
    text = f"{len(name)}:{name}{label}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
