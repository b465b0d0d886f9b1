"""The pages of a Parquet file: what they unpack to, by their own headers, before one of them is unpacked.

A footer may state less than the pages hold, and PyArrow believes each page. A page is a header (a struct in Thrift's
compact protocol) and its packed bytes. The headers are read here, and the packed bytes are passed over. So is the
footer, since PyArrow ends the process where the statistics of a column contradict its schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

from espalier.core.errors import TableError
from espalier.core.tables.unpacking import check_ratio

HEADER = 1 << 9, 1 << 24
"""Bytes that are read of a header: at first, and at most."""
LARGEST = (1 << 31) - 1
"""The largest size of a page. PyArrow would cut off the upper bits of a larger one."""
FIXED = {1: 0, 2: 0, 3: 1, 7: 8}
"""Bytes of Thrift's types of a fixed size: true, false, a byte, a float."""
NUMBERS, TEXT, LIST, STRUCT = (4, 5, 6), 8, 9, 12
"""Further types of Thrift."""
NESTED = 8
"""Structs within structs at most."""
BYTE_ARRAY, DIFFERENCES = 6, 7
"""The stored type of texts, and their encoding as what differs from the text before."""


def check_pages(file: IO[bytes], facts: Any, shown: str) -> int:
    """Refuse a Parquet file that unpacks to far more than its size; ``facts`` is its footer as PyArrow reads it.

    Three things are compared with the file's size: the number of rows, all texts, and what is unpacked at once, which
    is one page of each column.

    Return the most bytes of a row's texts, if some are stored as what differs from the text before: such a text may be
    as long as its page, in every row of it. Return 0 if none are.

    Footer, row groups and pages must state the same number of rows. PyArrow would leave out rows that only some state.
    """
    packed, stated, texts = file.seek(0, 2), 0, 0
    flat = [facts.schema.column(i).max_repetition_level == 0 for i in range(facts.num_columns)]
    largest, differing = [0] * facts.num_columns, set[int]()
    check_ratio(facts.num_rows, packed, shown)
    try:
        groups = _groups(file)
        if sum(rows for rows, _ in groups) != facts.num_rows:
            raise ValueError("the groups have other rows than the file")
        for rows, chunks in groups:
            for place, chunk in enumerate(chunks):
                stated += chunk[7]
                if not 0 <= chunk[7] <= stated <= packed:  # the same pages in two columns or groups
                    raise ValueError("columns that do not fit into the file")
                if flat[place] and chunk[5] != rows:
                    raise ValueError("a column has other rows than its group")
                for size, encoding in _pages(file, chunk):
                    largest[place] = max(largest[place], size)
                    texts += size * (chunk[1] == BYTE_ARRAY)
                    differing |= {place} if encoding == DIFFERENCES else set()
            check_ratio(max(texts, sum(largest)), packed, shown)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, OSError):
        raise TableError(f"{shown} is a damaged Parquet file") from None
    return sum(largest[place] for place in differing)


def _groups(file: IO[bytes]) -> list[tuple[int, list[dict[int, Any]]]]:
    """Return the number of rows of each row group, and the facts of its columns by number of field, from the footer."""
    file.seek(-8, 2)
    length = int.from_bytes(file.read(4), "little")
    file.seek(-8 - length, 2)
    footer, _ = _struct(file.read(length), 0)
    return [(group[3], [chunk[3] for chunk in group[1]]) for group in footer.get(4) or []]


def _pages(file: IO[bytes], chunk: dict[int, Any]) -> Iterator[tuple[int, int]]:
    """Yield the unpacked size and the encoding of each page of a column in a row group, as PyArrow finds them.

    Raise :class:`ValueError` unless they hold as many values as the footer states.
    """
    at, dictionary = chunk[9], chunk.get(11, 0)
    if 0 < dictionary < at:
        at = dictionary
    end, values = at + chunk[7], 0
    while values < chunk[5] and at < end:
        header, length = _header(file, at)
        held = header.get(5) or header.get(8) or {}  # a page of the first or of the second version
        sizes = header[2], header[3], held.get(1, 0)
        if not all(0 <= size <= LARGEST for size in sizes):
            raise ValueError("a size that no page has")
        values += sizes[2]
        yield header[2], held.get(4 if 8 in header else 2, 0)
        at += length + header[3]
    if values != chunk[5]:
        raise ValueError("pages and footer disagree")


def _header(file: IO[bytes], at: int) -> tuple[dict[int, Any], int]:
    """Return the fields of the header at a place of the file, by number, and its length."""
    first, most = HEADER
    file.seek(at)
    data = file.read(first)
    try:
        return _struct(data, 0)
    except IndexError:
        if len(data) < first:
            raise
    return _struct(data + file.read(most - first), 0)


def _struct(data: bytes, at: int, within: int = 0) -> tuple[dict[int, Any], int]:
    """Return the numbers and structs of a struct, by number of field, and the place behind it.

    A field that is given twice is refused: PyArrow would choose by its type.
    """
    fields, number = dict[int, Any](), 0
    while kind := data[at]:
        step, kind, at = kind >> 4, kind & 15, at + 1
        if step:
            number += step
        else:
            number, at = _number(data, at)
        if number in fields:
            raise ValueError("a field is given twice")
        fields[number] = None
        if kind in NUMBERS:
            fields[number], at = _number(data, at)
        elif kind == TEXT:
            length, at = _varint(data, at)
            at += length
        elif kind == STRUCT and within < NESTED:
            fields[number], at = _struct(data, at, within + 1)
        elif kind == LIST:
            fields[number], at = _list(data, at, within)
        else:
            at += FIXED[kind]
    return fields, at + 1


def _list(data: bytes, at: int, within: int) -> tuple[list[Any], int]:
    """Return the structs of a list, or nothing for a list of other items, and the place behind it."""
    found, count, kind, at = list[Any](), data[at] >> 4, data[at] & 15, at + 1
    if count == 15:
        count, at = _varint(data, at)
    for _ in range(count):
        if kind == STRUCT and within < NESTED:
            item, at = _struct(data, at, within + 1)
            found.append(item)
        elif kind in NUMBERS:
            _, at = _varint(data, at)
        elif kind == TEXT:
            length, at = _varint(data, at)
            at += length
        else:
            at += max(FIXED[kind], 1)
        if at > len(data):
            raise IndexError
    return found, at


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Return a signed number and the place behind it."""
    found, at = _varint(data, at)
    return found >> 1 ^ -(found & 1), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    found = shift = 0
    while (byte := data[at]) & 0x80 and shift < 70:
        found, shift, at = found | (byte & 0x7F) << shift, shift + 7, at + 1
    return found | byte << shift, at + 1
