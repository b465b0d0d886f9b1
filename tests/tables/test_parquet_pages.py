"""Parquet files that unpack to far more than they state, or whose parts state different numbers of rows."""

from __future__ import annotations

import os
import struct

import pyarrow as pa
import pytest

from espalier.core.errors import TableError
from espalier.core.project.schema import Column, Schema
from espalier.core.tables import parquet_files, parquet_pages, unpacking
from espalier.core.tables.frames import located
from espalier.core.tables.reading import read_table
from tests.support.forged_parquet import (
    BYTE_ARRAY,
    DECIMAL,
    INT64,
    TEXT,
    Chunk,
    numbers,
    page,
    record,
    repeated,
    small,
    written,
)

EDGES = (0.0, 10.0, 20.0)
SCHEMA = Schema((Column("a", "numeric", edges=EDGES),))
MUCH = "unpacks to more than 150 times its size"


def in_place(path):
    return located(str(path)).snapshot(SCHEMA).rows


def in_memory(path):
    return read_table(path).rows


both = pytest.mark.parametrize("read", [in_place, in_memory])


@both
def test_a_file_whose_parts_agree_is_read(tmp_path, read):
    path = tmp_path / "t.parquet"
    path.write_bytes(written([(2, [Chunk(b"a", numbers(1, 2), 2)]), (1, [Chunk(b"a", numbers(3), 1)])], 3))
    assert read(path) == 3


LONG = struct.pack("<I", 60_000_000) + b"x" * 60_000_000
ONE_LARGE_PAGE = {
    "a text": lambda: Chunk(b"a", page(LONG, 1), 1, BYTE_ARRAY, TEXT),
    "a decimal": lambda: Chunk(b"a", page(LONG, 1), 1, BYTE_ARRAY, DECIMAL),
    "a whole number": lambda: Chunk(b"a", page(b"\0" * 60_000_000, 1), 1),
}


@both
@pytest.mark.parametrize("chunk", ONE_LARGE_PAGE.values(), ids=ONE_LARGE_PAGE)
def test_a_page_that_unpacks_to_more_than_its_footer_states_is_refused(tmp_path, read, chunk):
    """Previously, a file of 30 kB took 4.6 GB."""
    path = tmp_path / "t.parquet"
    path.write_bytes(written([(1, [chunk()])], 1))
    with pytest.raises(TableError, match=MUCH):
        read(path)


@both
@pytest.mark.parametrize("fields", [TEXT, DECIMAL], ids=["text", "decimal"])
def test_texts_that_share_a_page_are_read_a_few_at_a_time(tmp_path, monkeypatch, read, fields):
    """Previously, a file of 2 kB with an honest footer took 4.2 GB as texts and 6 GB as decimals."""
    path = tmp_path / "t.parquet"
    pages = repeated(b"7" * 4_000_000, 100)
    path.write_bytes(written([(100, [Chunk(b"a", pages, 100, BYTE_ARRAY, fields)])], 100))
    monkeypatch.setattr(unpacking, "BATCH_BYTES", 1 << 22)
    before, pool = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(pool)
    try:
        with pytest.raises(TableError):
            read(path)
    finally:
        pa.set_memory_pool(before)
    assert 4_000_000 < pool.max_memory() < 200_000_000


@both
def test_more_rows_than_a_file_can_hold_are_refused(tmp_path, read):
    """One page of 100 bytes may state 2³¹ rows; a scan of them would fill the disk."""
    path, rows = tmp_path / "t.parquet", 100_000_000
    path.write_bytes(written([(rows, [Chunk(b"a", page(b"", rows), rows)])], rows))
    said = MUCH if read is in_place else "more than 15 cells for each of its bytes"
    with pytest.raises(TableError, match=said):
        read(path)


@pytest.mark.parametrize("cell", [1_000_000_000, -1_000_000_000, 2**62, -(2**63)])
def test_a_decimal_of_more_digits_than_its_type_is_refused_in_place(tmp_path, cell):
    """Previously, a decimal within 64 bits was put in a different bin in place than in memory."""
    path = tmp_path / "t.parquet"
    for cells, fits in ((numbers(999_999_999, -999_999_999), True), (numbers(7, cell), False)):
        path.write_bytes(written([(2, [Chunk(b"a", cells, 2, INT64, DECIMAL)])], 2))
        if fits:
            assert in_place(path) == 2
        else:
            with pytest.raises(TableError, match="column 'a' contains a value that cannot be written as text"):
                in_place(path)


TWO, FAR = numbers(1, 2), [7**i % 2**62 for i in range(99)]
CONTRADICTIONS = {
    "a group states fewer rows than its pages": written([(1, [Chunk(b"a", TWO, 2)])], 1),
    "a group and its column state fewer": written([(1, [Chunk(b"a", TWO, 1)])], 1),
    "a group states more rows": written([(3, [Chunk(b"a", TWO, 2)])], 3),
    "a column states more values": written([(3, [Chunk(b"a", TWO, 3)])], 3),
    "the footer states fewer rows": written([(2, [Chunk(b"a", TWO, 2)])], 1),
    "columns are shifted": written(
        [
            (2, [Chunk(b"a", TWO, 2), Chunk(b"b", numbers(1), 1)]),
            (2, [Chunk(b"a", TWO, 2), Chunk(b"b", numbers(2, 1, 2), 3)]),
        ],
        4,
    ),
    "groups share their pages": written([(99, [Chunk(b"a", numbers(*FAR), 99)])] * 3, 297, shared=True),
    "a page of an index counts rows": written(
        [(2, [Chunk(b"a", page(b"", 1, kind=1) + numbers(1) + numbers(2), 2)])], 2
    ),
    "a page of a dictionary has the facts of data": written([(2, [Chunk(b"a", page(b"", 1, kind=2) + TWO, 2)])], 2),
    "a number is longer than its type": written([(2, [Chunk(b"a", b"\x25" + b"\xff" * 5 + b"\x01" + TWO, 2)])], 2),
    "a large page behind a page of an index": written(
        [(1, [Chunk(b"a", page(b"", 1, kind=1) + page(LONG, 1), 1, BYTE_ARRAY, TEXT)])], 1
    ),
    "a size hidden in a field's number": written(
        [(1, [Chunk(b"a", page(LONG, 1, stated=100), 1, BYTE_ARRAY, TEXT)])], 1
    ),
    "a field is given twice": written([(2, [Chunk(b"a", b"\x25\x02\x05\x00" + TWO, 2)])], 2),
}


@both
@pytest.mark.parametrize("data", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_parts_that_disagree_on_the_rows_are_refused(tmp_path, read, data):
    """Previously, rows that only some parts stated were left out, and a short column took rows of the next group."""
    path = tmp_path / "t.parquet"
    path.write_bytes(data)
    with pytest.raises(TableError, match="damaged Parquet file"):
        read(path)


@both
@pytest.mark.parametrize(
    "header", [b"", b"\xf5" + b"\x80" * 20, b"\x15\x00\x15", b"\x1c" * 40, b"\x19\xff" + b"\x05" * 30]
)
def test_a_damaged_header_of_a_page_is_refused(tmp_path, read, header):
    path = tmp_path / "t.parquet"
    path.write_bytes(written([(2, [Chunk(b"a", header + b"\x0b" * 20, 2)])], 2))
    with pytest.raises(TableError, match="damaged Parquet file"):
        read(path)


def test_a_long_header_of_a_page_is_read(tmp_path):
    """Such a header may contain the smallest and the largest text."""
    from pyarrow import parquet

    path = tmp_path / "t.parquet"
    cells = pa.array(["x" * 2000, "y" * 2000])
    parquet.write_table(pa.table({"a": cells}), path, use_dictionary=False, data_page_version="2.0")
    assert in_memory(path) == 2


def test_no_changed_byte_of_a_footer_ends_the_process(tmp_path):
    """Previously, PyArrow ended the process if the statistics of a column contradicted its schema."""
    from pyarrow import parquet

    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"a": ["x", "y", None], "b": [1, 2, 3]}), path, store_schema=False)
    data = path.read_bytes()
    read = refused = 0
    for at in range(len(data) - 8 - int.from_bytes(data[-8:-4], "little"), len(data) - 8):
        for other in (data[at] ^ 1, data[at] ^ 0x10):
            try:
                read += read_table(data[:at] + bytes([other]) + data[at + 1 :], "t.parquet").rows > 0
            except TableError:
                refused += 1
    assert read > 10
    assert refused > 10


def swapped(path):
    """Replace ``path`` by another file with the same types."""
    other = path.with_suffix(".other")
    other.write_bytes(written([(2, [Chunk(b"a", numbers(1, 2), 2)])], 2))
    os.replace(other, path)


def overwritten(path):
    """Write other rows of the same size into the same file, and restore its time."""
    before = path.stat()
    path.write_bytes(written([(1, [Chunk(b"a", numbers(15), 1)])], 1))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("change", [swapped, overwritten])
@pytest.mark.parametrize("when", ["after the check", "between check and read"])
def test_the_pages_that_are_read_are_those_that_were_checked(tmp_path, monkeypatch, change, when):
    """Previously, another file was read without a check of its pages."""
    path = tmp_path / "t.parquet"
    path.write_bytes(written([(1, [Chunk(b"a", numbers(3), 1)])], 1))
    if when == "between check and read":
        check = parquet_pages.check_pages

        def changes(*given):
            found = check(*given)
            change(path)
            return found

        monkeypatch.setattr(parquet_files, "check_pages", changes)
    relation = located(str(path))
    if when == "after the check":
        change(path)
    with pytest.raises(TableError, match="was changed after it was opened"):
        relation.snapshot(SCHEMA)


@pytest.mark.parametrize("name", ["t.parquet", "t.csv"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path, name):
    """Previously, the release waited forever."""
    path = tmp_path / name
    path.write_bytes(written([(1, [Chunk(b"a", numbers(3), 1)])], 1) if name == "t.parquet" else b"a\n3\n")
    relation = located(str(path))
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(TableError, match="a pipe or a device"):
        relation.snapshot(SCHEMA)


def of_bits(bits, kind, *, old, new):
    """The fields of a column of whole numbers of this size, by the older annotation, the newer one, or both."""
    whole = record({1: (3, bytes([bits])), 2: (1, b"")})
    return ({6: small(kind)} if old else {}) | ({10: record({10: whole})} if new else {})


@pytest.mark.parametrize(("bits", "kind"), [(8, 11), (16, 12), (8, 15), (16, 16)])
@pytest.mark.parametrize(("old", "new"), [(True, False), (False, True), (True, True)])
def test_numbers_are_read_in_all_bits_that_are_stored(tmp_path, bits, kind, old, new):
    """Previously, the upper bits were cut off, so two people became one."""
    cells = 7, 7 + (1 << bits), 7 + (3 << bits)
    chunk = Chunk(b"a", page(struct.pack("<3i", *cells), 3), 3, 1, of_bits(bits, kind, old=old, new=new))
    path = tmp_path / "t.parquet"
    path.write_bytes(written([(3, [chunk])], 3))
    assert read_table(path).columns["a"].values == tuple(map(str, cells))
    other = Schema((Column("b", "numeric", edges=EDGES, missing=True, unknown="missing"),))
    path.write_bytes(written([(3, [chunk, Chunk(b"b", numbers(1, 1, 1), 3)])], 3))
    assert located(str(path)).snapshot(other, "a", 1).rows == 3
