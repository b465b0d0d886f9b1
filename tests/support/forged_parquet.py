"""Parquet files whose parts contradict each other, written byte by byte in Thrift's compact protocol."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

Field = tuple[int, bytes]
"""The type of a field and its bytes."""
INT64, BYTE_ARRAY = 2, 6
PLAIN, DIFFERENCES = 0, 7
ZSTD = 6


def varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
    return out + bytes([number])


def signed(number: int) -> bytes:
    return varint(number << 1 if number >= 0 else (-number << 1) - 1)


def small(number: int) -> Field:
    return 5, signed(number)


def large(number: int) -> Field:
    return 6, signed(number)


def text(data: bytes) -> Field:
    return 8, varint(len(data)) + data


def parts(items: Sequence[Field]) -> Field:
    return 9, bytes([0xF0 | items[0][0]]) + varint(len(items)) + b"".join(data for _, data in items)


def record(fields: Mapping[int, Field]) -> Field:
    out, last = b"", 0
    for key, (kind, data) in sorted(fields.items()):
        out, last = out + bytes([(key - last) << 4 | kind]) + data, key
    return 12, out + b"\0"


DECIMAL = {6: small(5), 7: small(0), 8: small(9)}
"""Fields that turn a column of bytes into a column of decimals."""
TEXT = {6: small(0)}


def page(
    body: bytes, values: int, encoding: int = PLAIN, before: bytes = b"", *, stated: int | None = None, kind: int = 0
) -> bytes:
    """Return a packed data page; ``before`` are bytes of its header that precede its fields.

    With ``stated``, the header states this unpacked size, and the true one in a field whose number is 2 in 16 bits.
    ``kind`` is the stated type of page: 1 is an index, which a reader skips.
    """
    packed = pa.compress(body, codec="zstd", asbytes=True)
    held = record({1: small(values), 2: small(encoding), 3: small(3), 4: small(3)})
    size = len(body) if stated is None else stated
    header = record({1: small(kind), 2: small(size), 3: small(len(packed)), 5: held})[1]
    hidden = b"" if stated is None else b"\x05" + signed((1 << 16) + 2) + signed(len(body))
    return before + header[:-1] + hidden + header[-1:] + packed


def numbers(*cells: int) -> bytes:
    """Return a page of whole numbers."""
    return page(struct.pack(f"<{len(cells)}q", *cells), len(cells))


def repeated(cell: bytes, rows: int) -> bytes:
    """Return a page that gives one text in all rows, stored as an empty difference from the previous text."""
    lengths = _lengths([0] + [len(cell)] * (rows - 1)) + _lengths([len(cell)] + [0] * (rows - 1))
    return page(lengths + cell, rows, DIFFERENCES)


def _lengths(cells: Sequence[int]) -> bytes:
    """Return at most 129 whole numbers, stored as differences of 32 bits each."""
    steps = [b - a for a, b in itertools.pairwise(cells)]
    least = min(steps)
    packed = b"".join((step - least).to_bytes(4, "little") for step in steps).ljust(512, b"\0")
    return varint(128) + varint(4) + varint(len(cells)) + signed(cells[0]) + signed(least) + bytes([32] * 4) + packed


@dataclass(frozen=True)
class Chunk:
    """A column in a row group: its pages, its number of values, and the unpacked size that the footer states."""

    name: bytes
    pages: bytes
    values: int
    kind: int = INT64
    fields: Mapping[int, Field] = field(default_factory=dict)
    stated: int = 100


def written(groups: Sequence[tuple[int, Sequence[Chunk]]], rows: int, *, shared: bool = False) -> bytes:
    """Return a file of row groups, each with the rows that it states. ``shared``: all have the pages of the first."""
    out, made = b"PAR1", []
    for stated, chunks in groups:
        facts = []
        for chunk in chunks:
            start = 4 if shared else len(out)
            out += b"" if shared and len(out) > 4 else chunk.pages
            held = {1: small(chunk.kind), 2: parts([small(0)]), 3: parts([text(chunk.name)]), 4: small(ZSTD)}
            sizes = {5: large(chunk.values), 6: large(chunk.stated), 7: large(len(chunk.pages)), 9: large(start)}
            facts.append(record({2: large(start), 3: record({**held, **sizes})}))
        made.append(record({1: parts(facts), 2: large(100), 3: large(stated)}))
    columns = groups[0][1]
    schema = [record({4: text(b"schema"), 5: small(len(columns))})]
    schema += [record({1: small(c.kind), 3: small(0), 4: text(c.name), **c.fields}) for c in columns]
    footer = record({1: small(2), 2: parts(schema), 3: large(rows), 4: parts(made), 6: text(b"forged")})[1]
    return out + footer + struct.pack("<I", len(footer)) + b"PAR1"
