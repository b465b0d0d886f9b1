"""Encoded rows on disk, read once and counted many times: columns of whole numbers in a file without a name.

The file has no name from the moment it is made (or loses it when it is closed, on systems that cannot do so), so
nothing of it can be found once the process has ended, however it ended. It lies in the folder that TMPDIR names.
"""

from __future__ import annotations

import hashlib
import math
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import TableError
from espalier.core.graph.separations import Clique
from espalier.core.project.schema import Schema, smallest_unsigned
from espalier.core.tables.counting import Counting
from espalier.core.tables.gradient import Weights, residual_sums

PERSON = "person"
"""What a file calls the column of people; no column of a schema can be mistaken for it, they are numbered."""
Batch = dict[str, NDArray[Any]]


class CodeFile:
    """Columns of codes, batch by batch, in a temporary file without a name; several to a byte where they are small."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        """``sizes`` are the numbers of codes by column: 0 … size − 1."""
        self._columns = {name: _Packing(size) for name, size in sizes.items()}
        self._file = tempfile.TemporaryFile(prefix="espalier-")  # noqa: SIM115 (it lives as long as this object)
        self.close = weakref.finalize(self, self._file.close)
        """Give the disk its space back; done in any case when nobody holds this object any more."""
        self._parts: list[tuple[int, int]] = []
        self._end, self._lock = 0, threading.Lock()
        self.rows = 0

    @property
    def sizes(self) -> dict[str, int]:
        """The columns and their numbers of codes."""
        return {name: packing.size for name, packing in self._columns.items()}

    def append(self, batch: Mapping[str, NDArray[Any]]) -> None:
        """Write one more batch; its columns are as long as one another."""
        rows = len(next(iter(batch.values())))
        if not rows:
            return
        with self._lock:
            self._file.seek(self._end)
            for name, packing in self._columns.items():
                if batch[name].shape != (rows,):
                    raise ValueError("the columns of a batch must be equally long")
                self._file.write(packing.packed(batch[name]).data)
            self._parts.append((self._end, rows))
            self._end += sum(packing.bytes(rows) for packing in self._columns.values())
            self.rows += rows

    def batches(self, names: Sequence[str] | None = None) -> Iterator[Batch]:
        """The batches as they were written, of some columns only; the arrays are the caller's."""
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


class _Packing:
    """How codes 0 … size − 1 lie in bytes: 1, 2 or 4 bits each, or whole bytes."""

    def __init__(self, size: int) -> None:
        self.size, self._kind = size, smallest_unsigned(size)
        self._bits = next(bits for bits in (1, 2, 4, 8 * self._kind.itemsize) if size <= 1 << bits)
        self._together = max(8 // self._bits, 1)
        """Runs of a column that share bytes: the first run has the lowest bits, the second the next, …"""

    def bytes(self, rows: int) -> int:
        """That many codes need."""
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


def _go_on() -> None:
    """Nobody cancels."""


class Snapshot:
    """A private table as codes in a file; see :class:`Source` for what may be asked, and by whom.

    With people, all rows of a person stand in one batch, and the column `PERSON` numbers the people of that batch.
    """

    def __init__(
        self,
        schema: Schema,
        file: CodeFile,
        person_column: str | None = None,
        kept: int | None = None,
        digest: bytes = b"",
    ) -> None:
        self.schema, self.file = schema, file
        self.person_column, self.kept = person_column, kept
        self._digest = digest
        self.pulse: Callable[[], None] = _go_on
        """Called between batches; raising from it cancels what is being counted."""

    @classmethod
    def sizes(cls, schema: Schema, *, people: bool = False) -> dict[str, int]:
        """The columns of a file for ``schema``, and how many codes each has."""
        return _inside(schema, schema.sizes) | ({PERSON: 1 << 32} if people else {})

    @property
    def rows(self) -> int:
        """How many rows."""
        return self.file.rows

    @property
    def names_people(self) -> bool:
        """Does each row still say whose it is?"""
        return PERSON in self.file.sizes

    @property
    def digest(self) -> bytes:
        """What tells this table from others, whatever the order of its rows. PRIVATE."""
        if not self._digest:
            adding = Digest(self.schema)
            for batch in self.batches(self.schema.names):
                adding.add(batch)
            self._digest = adding.value()
        return self._digest

    def count(self, clique: Clique) -> NDArray[np.int64]:
        """Exact counts, one axis per column of ``clique``."""
        return self.count_many([clique])[0]

    def count_many(self, cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        """The counts of each of ``cliques`` in one pass over the file."""
        counting = Counting(cliques, self.schema.sizes)
        for batch in self.batches(tuple({name for clique in cliques for name in clique})):
            counting.add(batch, len(next(iter(batch.values()))) if batch else 0)
        counts = counting.counts()
        return [np.array(self.rows, dtype=np.int64) if not q else c for q, c in zip(cliques, counts, strict=True)]

    def residual_sums(self, target: str, columns: Sequence[str], weights: Weights) -> NDArray[np.int64]:
        """Exact gradient of a logistic fit: each row is rounded before the sum, so batches add up to the same."""
        total: NDArray[np.int64] | int = 0
        for batch in self.batches((*columns, target)):
            total = total + residual_sums(batch, target, columns, self.schema.sizes, weights)
        return np.asarray(total, dtype=np.int64)

    def numbers(self, column: str) -> NDArray[np.float64]:
        """Refused: a snapshot holds codes, not the numbers they came from."""
        raise TableError(
            f"column {column!r}: the numbers themselves stay in the engine; only their bins are here", column=column
        )

    def take(self, rows: NDArray[Any]) -> Snapshot:
        """The table of some rows only: a mask, or numbers of rows, which then keep the file's order."""
        mask = np.asarray(rows)
        if mask.dtype != np.bool_:
            mask = np.zeros(self.rows, dtype=np.bool_)
            mask[rows] = True
        at = [0]

        def chosen(batch: Batch) -> NDArray[np.bool_]:
            start, at[0] = at[0], at[0] + len(next(iter(batch.values())))
            return mask[start : at[0]]

        return self.where(chosen)

    def where(self, chosen: Callable[[Batch], NDArray[Any]], *, people: bool = True) -> Snapshot:
        """The rows that ``chosen`` picks out of each batch of the file, in a file of their own."""
        kept = {n: size for n, size in self.file.sizes.items() if people or n != PERSON}
        out = CodeFile(kept)
        for batch in self.file.batches():
            rows = chosen(batch)
            out.append({name: batch[name][rows] for name in kept})
        return self.like(out)

    def widened(self, schema: Schema, more: Callable[[Batch], Mapping[str, NDArray[Any]]]) -> Snapshot:
        """The same rows with further columns of ``schema``, which ``more`` makes from each batch's codes by name."""
        file = CodeFile(self.sizes(schema, people=self.names_people))
        names = _inside(schema, {name: name for name in schema.names})
        for batch in self.file.batches():
            made = more({name: batch[own] for own, name in names.items() if own in batch})
            file.append({**{own: made[name] for own, name in names.items() if name in made}, **batch})
        return self.like(file, schema)

    def recoded(self, schema: Schema, codes: Mapping[str, NDArray[np.int64]]) -> Snapshot:
        """The same rows as ``schema`` sees them: for some columns, the new code of each code."""
        file = CodeFile(self.sizes(schema, people=self.names_people))
        place = {f"c{i}": codes[name] for i, name in enumerate(schema.names) if name in codes}
        for batch in self.file.batches():
            file.append({own: place[own][column] if own in place else column for own, column in batch.items()})
        return self.like(file, schema)

    def like(self, file: CodeFile, schema: Schema | None = None) -> Snapshot:
        """The rows in ``file`` under what is known of this table."""
        made = Snapshot(schema or self.schema, file, self.person_column, self.kept, self.digest)
        made.pulse = self.pulse
        return made

    def batches(self, names: Sequence[str] | None = None) -> Iterator[Batch]:
        """Codes by name of column, batch by batch."""
        inside = _inside(self.schema, {name: name for name in self.schema.names})
        wanted = {own: name for own, name in inside.items() if names is None or name in names}
        for batch in self.file.batches(tuple(wanted)):
            self.pulse()
            yield {name: batch[own] for own, name in wanted.items()}

    def close(self) -> None:
        """Give the disk its space back; nothing can be asked afterwards."""
        self.file.close()


def _inside(schema: Schema, by_name: Mapping[str, Any]) -> dict[str, Any]:
    """Keys as they are called in a file: c0, c1, … in schema order."""
    return {f"c{i}": by_name[name] for i, name in enumerate(schema.names)}


_MIXES = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB), (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)
"""Odd factors of two 64-bit mixes (those of SplitMix64 and of MurmurHash3)."""

_MARKS, _CHUNK = 1 << 12, 1 << 14
"""Sums of hashes in one table, and rows worked on at a time: both stay in the processor's cache."""


class Digest:
    """A hash of a multiset of encoded rows, added up batch by batch: the order of rows does not matter.

    Each row is the sum of one 64-bit hash per column name and label; two mixes of that sum are added over the rows.
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
        """Add rows, as codes by name of column."""
        rows = len(next(iter(batch.values())))
        for start in range(0, rows, _CHUNK):
            row = np.zeros(min(_CHUNK, rows - start), dtype=np.uint64)
            for names, marks in self._marks:
                place = np.zeros(len(row), dtype=np.intp)
                for name, size in zip(names, marks.shape, strict=True):
                    place *= size
                    place += batch[name][start : start + _CHUNK]
                row += marks.ravel()[place]
            for i, (a, b) in enumerate(_MIXES):
                mixed = (row ^ (row >> np.uint64(30))) * np.uint64(a)
                mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(b)
                added = int((mixed ^ (mixed >> np.uint64(31))).sum(dtype=np.uint64))
                self._sums[i] = (self._sums[i] + added) % 2**64
        self._rows += rows

    def value(self) -> bytes:
        """32 bytes. PRIVATE: it could be guessed from; it leaves only through a keyed fingerprint."""
        return hashlib.sha256(b"%d:%d:%d" % (self._rows, *self._sums)).digest()


def _hash(name: str, label: str) -> int:
    said = f"{len(name)}:{name}{label}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(said, digest_size=8).digest(), "little")
