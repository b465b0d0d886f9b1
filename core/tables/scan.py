"""Scan of encoded rows into a snapshot, either plain or by person with row limits.

With people, rows are divided into parts by person identifier, and memory holds one part at a time.
"""

from __future__ import annotations

import tempfile
import weakref
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import TableError
from espalier.core.project.schema import Schema
from espalier.core.tables.code_file import PERSON, CodeFile
from espalier.core.tables.digest import Digest
from espalier.core.tables.encoding import Batch
from espalier.core.tables.row_limits import kept_rows
from espalier.core.tables.snapshot import Snapshot

BUCKETS = 64
"""Number of parts into which the rows are divided."""


def _named(codes: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the codes under the names that a file of codes uses."""
    return {f"c{i}": column for i, column in enumerate(codes)}


def scan(schema: Schema, batches: Iterator[Batch]) -> Snapshot:
    """Return a snapshot of the rows of ``batches``."""
    file = CodeFile(Snapshot.sizes(schema))
    for batch in batches:
        file.append(_named(batch.codes))
    _check_some(file.rows)
    return Snapshot(schema, file)


def scan_people(schema: Schema, batches: Iterator[Batch], column: str, most: int | None, key: str) -> Snapshot:
    """Return a snapshot of the rows of ``batches``, with at most ``most`` rows of each person.

    Rows are divided into parts by person identifier. Each part is then read with all rows of its people.
    """
    parts: dict[int, _Part] = {}
    digest, seen = Digest(schema), 0
    for batch in batches:
        digest.add(dict(zip(schema.names, batch.codes, strict=True)))
        seen += batch.rows
        for number, rows in _divided(batch, column):
            parts.setdefault(number, _Part()).write(rows)
    _check_some(seen)
    file = CodeFile(Snapshot.sizes(schema, people=True))
    sizes = [c.size for c in schema.columns]
    for part in parts.values():
        names, person, codes = part.read(schema)
        if most is not None:
            columns = list(codes.values())
            rows = kept_rows(key, names, person, columns, sizes, most)
            person, codes = person[rows], {name: codes_of[rows] for name, codes_of in codes.items()}
        file.append(codes | {PERSON: person})
    return Snapshot(schema, file, column, most, digest.value(), key)


def _check_some(rows: int) -> None:
    if not rows:
        raise TableError("the table has a header but no rows")


def _divided(batch: Batch, column: str) -> Iterator[tuple[int, Any]]:
    """Yield the batch's rows by part, which the identifier alone determines. Refuse a row without a person."""
    import pyarrow as pa
    from pyarrow import compute

    if batch.person.null_count or compute.any(compute.equal(batch.person, "")).as_py():
        raise TableError(
            f"the person column {column!r} has an empty cell; enter the person's identifier there, or remove all rows "
            "without an identifier from the table",
            column=column,
        )
    named = batch.person.dictionary_encode()
    names = (name.encode("utf-8", "surrogatepass") for name in named.dictionary.to_pylist())
    buckets = np.array(
        [zlib.crc32(name) % BUCKETS for name in names], dtype=np.uint8
    )  # this is the same in every process
    bucket = buckets[named.indices.to_numpy()]
    order = np.argsort(bucket, kind="stable")
    columns = {name: pa.array(codes[order]) for name, codes in _named(batch.codes).items()}
    rows = pa.table({**columns, PERSON: batch.person.take(pa.array(order))})
    ends = np.cumsum(np.bincount(bucket, minlength=BUCKETS))
    for number, (start, stop) in enumerate(zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)):
        if stop > start:
            yield number, rows.slice(start, stop - start)


class _Part:
    """All rows of some people, with their identifiers as text, in an unnamed temporary file."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="espalier-")  # noqa: SIM115 (closed when it has been read)
        weakref.finalize(self, self._file.close)
        self._writer: Any = None

    def write(self, rows: Any) -> None:
        import pyarrow as pa

        if self._writer is None:
            self._writer = pa.ipc.new_stream(self._file, rows.schema)
        self._writer.write_table(rows)

    def read(self, schema: Schema) -> tuple[list[str], NDArray[np.int64], dict[str, NDArray[Any]]]:
        """Return the identifiers, the index of each row's identifier, and the codes; remove the file."""
        import pyarrow as pa

        self._writer.close()
        self._file.seek(0)
        with pa.ipc.open_stream(self._file) as reader:
            table = reader.read_all()
        self._file.close()
        codes = {f"c{i}": table.column(f"c{i}").to_numpy() for i in range(len(schema.columns))}
        return *_numbered(table.column(PERSON)), codes


def _numbered(person: Any) -> tuple[list[str], NDArray[np.int64]]:
    """Return the distinct text values of a chunked column, and the index of each row's text among them.

    Arrow joins chunks of text only up to 2 GiB. The chunks therefore stay separate and share one dictionary.
    """
    import pyarrow as pa

    coded = person.cast(pa.large_string()).dictionary_encode().unify_dictionaries()
    places = np.concatenate([chunk.indices.to_numpy() for chunk in coded.chunks]).astype(np.int64)
    return coded.chunk(0).dictionary.to_pylist(), places
