"""Unpacked size of a Parquet file's pages, read from the pages' own headers before any page is unpacked.

A footer may state less than the pages contain, and PyArrow trusts each page. A page is a header (a struct in Thrift's
compact protocol) and its packed bytes. The headers are read here, and the packed bytes are skipped. The footer is read
here too, because PyArrow ends the process if the statistics of a column contradict its schema, and cuts off bits of
numbers that are larger than their type (:func:`opened`).
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import IO, Any

from espalier.core.errors import TableError
from espalier.core.tables.arrow_text import value_type
from espalier.core.tables.unpacking import check_ratio

HEADER = 1 << 9, 1 << 24
"""Number of header bytes that are read first, and the maximum number that are read."""
LARGEST = (1 << 31) - 1
"""Maximum size of a page. PyArrow would cut off the upper bits of a larger size."""
FIXED = {1: 0, 2: 0, 3: 1, 7: 8}
"""Sizes in bytes of Thrift's types of fixed size (true, false, a byte, a float)."""
PLACE, BYTE = 0, 3
"""Key of the position of a field's value (a number that Thrift uses for no type), and Thrift's type for a byte."""
INT32, INT64, TEXT, LIST, STRUCT = 5, 6, 8, 9, 12
"""Numbers of Thrift's other types."""
BITS = {4: 16, INT32: 32, INT64: 64}
"""Number of bits in each type of whole number."""
NESTED = 8
"""Maximum nesting depth of structs."""
DIFFERENCES = 7
"""Encoding that stores each text value as its difference from the previous one."""
PAGES = {0: 5, 2: 7, 3: 8}
"""Each type of page (data, dictionary, data of the second version) and the field that describes it."""
ENCODING = {0: 2, 3: 4}
"""Number of the field with the encoding, for each type of page that holds values."""
WIDER = {22: 26, 24: 26, 30: 34, 32: 34}
"""Older annotations in a footer: those of whole numbers of 8 and 16 bits, and those of 32 bits."""
Fields = dict[tuple[int, int], Any]
"""Values of a struct by number and type of field, because PyArrow skips a field of an unexpected type."""


def opened(file: IO[bytes], **options: Any) -> Any:
    """Return PyArrow's reader for a Parquet file, which reads all 32 or 64 stored bits of each whole number.

    A column of 8 or 16 bits is stored in 32. PyArrow would cut off the other bits, so 7 and 263 would identify the same
    person.
    """
    import pyarrow as pa
    from pyarrow import parquet

    made = parquet.ParquetFile(file, **options)
    narrow = pa.int8(), pa.int16(), pa.uint8(), pa.uint16()
    if not any(value_type(field.type) in narrow for field in made.schema_arrow):
        return made
    return parquet.ParquetFile(file, metadata=_with_wide_numbers(file), **options)


def _with_wide_numbers(file: IO[bytes]) -> Any:
    """Return the footer as PyArrow reads it, with whole numbers of 8 and 16 bits as those of 32 bits."""
    from pyarrow import parquet

    footer = bytearray(_footer(file))
    try:
        columns = _struct(bytes(footer), 0)[0][2, LIST]
    except (IndexError, KeyError):
        raise ValueError("a damaged footer") from None
    for column in columns:
        if (6, INT32) in column:
            at = column[6, PLACE]
            footer[at] = WIDER.get(footer[at], footer[at])
        kind = (column.get((10, STRUCT)) or {}).get((10, STRUCT)) or {}
        if (1, BYTE) in kind and footer[kind[1, PLACE]] in (8, 16):
            footer[kind[1, PLACE]] = 32
    return parquet.read_metadata(io.BytesIO(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"))


def check_pages(file: IO[bytes], facts: Any, shown: str) -> int:
    """Refuse a Parquet file that unpacks to far more than its size; ``facts`` is its footer as PyArrow reads it.

    Three numbers are compared with the file's size: the number of rows, the bytes of all text, and the bytes that are
    unpacked at once (one page of each column).

    If some text values are stored as differences from the previous value, return the largest possible number of bytes
    of text in a row, because each such value may be as long as its page. Otherwise return 0.

    Footer, row groups and pages must state the same number of rows. PyArrow would leave out rows that only some of them
    state.
    """
    packed, stated, texts = file.seek(0, 2), 0, 0
    columns = [facts.schema.column(i) for i in range(facts.num_columns)]
    largest, differing = [0] * facts.num_columns, set[int]()
    check_ratio(facts.num_rows, packed, shown)
    try:
        groups = _groups(file)
        if sum(rows for rows, _ in groups) != facts.num_rows:
            raise ValueError("the groups and the file state different numbers of rows")
        for rows, chunks in groups:
            for place, chunk in enumerate(chunks):
                stated += chunk[7, INT64]
                if not 0 <= chunk[7, INT64] <= stated <= packed:  # the same pages in two columns or groups
                    raise ValueError("columns that do not fit into the file")
                if columns[place].max_repetition_level == 0 and chunk[5, INT64] != rows:
                    raise ValueError("a column and its group state different numbers of rows")
                for size, encoding in _pages(file, chunk):
                    largest[place] = max(largest[place], size)
                    texts += size * (columns[place].physical_type == "BYTE_ARRAY")
                    differing |= {place} if encoding == DIFFERENCES else set()
            check_ratio(max(texts, sum(largest)), packed, shown)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, OSError):
        raise TableError(f"{shown} is a damaged Parquet file") from None
    return sum(largest[place] for place in differing)


def _groups(file: IO[bytes]) -> list[tuple[int, list[Fields]]]:
    """Return the number of rows of each row group, and the facts of its columns, from the footer."""
    footer, _ = _struct(_footer(file), 0)
    groups = footer.get((4, LIST), [])
    return [(group[3, INT64], [chunk[3, STRUCT] for chunk in group[1, LIST]]) for group in groups]


def _footer(file: IO[bytes]) -> bytes:
    file.seek(-8, 2)
    length = int.from_bytes(file.read(4), "little")
    file.seek(-8 - length, 2)
    return file.read(length)


def _pages(file: IO[bytes], chunk: Fields) -> Iterator[tuple[int, int]]:
    """Yield the unpacked size and the encoding of each page of a column in a row group, as PyArrow finds them.

    Raise :class:`ValueError` for any other type of page, which PyArrow would skip, and if the pages do not contain as
    many values as the footer states.
    """
    at, dictionary, left = chunk[9, INT64], chunk.get((11, INT64), 0), chunk[5, INT64]
    if 0 < dictionary < at:
        at = dictionary
    end = at + chunk[7, INT64]
    while left > 0 and at < end:
        header, length = _header(file, at)
        kind, unpacked, packed = (header[number, INT32] for number in (1, 2, 3))
        if {number for number, _ in header}.intersection(range(5, 9)) != {PAGES[kind]}:
            raise ValueError("a header that does not match the type of its page")
        held = header[PAGES[kind], STRUCT]
        values = held[1, INT32] if kind in ENCODING else 0
        if not all(0 <= size <= LARGEST for size in (unpacked, packed, values)):
            raise ValueError("an impossible page size")
        left -= values
        yield unpacked, held[ENCODING[kind], INT32] if kind in ENCODING else 0
        at += length + packed
    if left:
        raise ValueError("pages and footer disagree")


def _header(file: IO[bytes], at: int) -> tuple[Fields, int]:
    """Return the fields of the header at a position in the file, and the header's length."""
    first, most = HEADER
    file.seek(at)
    data = file.read(first)
    try:
        return _struct(data, 0)
    except IndexError:
        if len(data) < first:
            raise
    return _struct(data + file.read(most - first), 0)


def _struct(data: bytes, at: int, within: int = 0) -> tuple[Fields, int]:
    """Return the fields of a struct, and the position after it.

    A repeated field is refused, because PyArrow would choose one of its values by type. A number that is too large for
    its type is refused, because PyArrow would cut off its upper bits.
    """
    fields, seen, number = Fields(), set[int](), 0
    while kind := data[at]:
        step, kind, at = kind >> 4, kind & 15, at + 1
        if step:
            number += step
        else:
            number, at = _number(data, at, 16)
        if number in seen or not 0 < number < 1 << 15:
            raise ValueError("a field appears twice, or its number is out of range")
        seen.add(number)
        fields[number, PLACE] = at
        found: Any = None
        if kind in BITS:
            found, at = _number(data, at, BITS[kind])
        elif kind == TEXT:
            length, at = _varint(data, at)
            at += length
        elif kind == STRUCT and within < NESTED:
            found, at = _struct(data, at, within + 1)
        elif kind == LIST:
            found, at = _list(data, at, within)
        else:
            at += FIXED[kind]
        fields[number, kind] = found
    return fields, at + 1


def _list(data: bytes, at: int, within: int) -> tuple[list[Any], int]:
    """Return the structs of a list, or nothing for a list of other items, and the position after it."""
    found, count, kind, at = list[Any](), data[at] >> 4, data[at] & 15, at + 1
    if count == 15:
        count, at = _varint(data, at)
    for _ in range(count):
        if kind == STRUCT and within < NESTED:
            item, at = _struct(data, at, within + 1)
            found.append(item)
        elif kind in BITS:
            _, at = _varint(data, at)
        elif kind == TEXT:
            length, at = _varint(data, at)
            at += length
        else:
            at += max(FIXED[kind], 1)
        if at > len(data):
            raise IndexError
    return found, at


def _number(data: bytes, at: int, bits: int) -> tuple[int, int]:
    """Return a signed number of ``bits`` bits and the position after it."""
    found, at = _varint(data, at)
    if found >> bits:
        raise ValueError("a number that is too large for its type")
    return found >> 1 ^ -(found & 1), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    found = shift = 0
    while (byte := data[at]) & 0x80 and shift < 70:
        found, shift, at = found | (byte & 0x7F) << shift, shift + 7, at + 1
    return found | byte << shift, at + 1
