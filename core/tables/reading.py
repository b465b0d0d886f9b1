"""Reading a table from CSV (any delimiter, BOM, UTF-8 or Latin-1, gzip), Parquet or Excel: cells as text.

CSV cells are read as they are written. Parquet and Excel give whole numbers without a point, True/False and ISO
dates. An empty cell is missing. PyArrow and openpyxl do the parsing.

What one row holds never changes how another row is read. A file is refused, or each of its rows is read as if it were
the only one under the header.

CSV. One line is one row (`espalier.core.tables.csv_lines` has the proof).

Excel. Each cell has a type of its own, and a person column must not mix types that may write two people in one way
(:attr:`TextColumn.ambiguous`). A formula is refused, because its value may come from other rows. So is a row whose
number is not above that of the row before.

A sheet has a million lines. A line is a row if and only if some cell of it holds a value, which depends on that line
alone. A line without a value between rows is refused; after the last row it is no row, so that n never counts it. Under
replace-one, an emptied last line is therefore one row less, and no neighbour: n is public there. To keep a person whose
cells are all empty, give the line a cell with an empty text, or a mark of a missing value.

Parquet and data frames. A type belongs to a whole column, and the author of the file or frame has chosen it. Columns
of Python objects in a pandas frame have no such type: each cell is written as text by itself.

`espalier.core.tables.encoding` encodes larger tables in batches. It has the table of canonical texts, and gives equal
codes.

Refusals name the line or the row. They quote no cell.
"""

from __future__ import annotations

import datetime as dt
import gzip
import hashlib
import io
import json
import math
import re
import zipfile
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import IO, Any
from uuid import UUID
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import TableError, wheel_with
from espalier.core.project.schema import MISSING
from espalier.core.tables.csv_lines import DELIMITERS, check_lines, header_names, plain_lines

MAX_BYTES = 1 << 30
MAX_CELLS = 200_000_000
MAX_COLUMNS = 1 << 14
"""Columns of a table at most, which is also Excel's limit."""
BOMB_BYTES, BOMB_RATIO = 50_000_000, 150
"""A file that unpacks to more than these bytes, and to more than this multiple of its size, is refused as an attack:
ordinary tables shrink to a fifth or a fiftieth."""


EXCEL_CELLS, EXCEL_BYTES, EXCEL_RATIO = 25_000_000, 5_000_000, 100
"""Cells of a sheet at most. A workbook is refused if it unpacks to more bytes, and to more times its size. An ordinary
sheet of 10⁶ rows has 10 to 20 million cells and unpacks to 10 to 25 times its size."""
EXCEL_TEXTS, EXCEL_TEXT = 1 << 28, 1 << 20
"""Bytes of the texts that the cells of a workbook share at most, and of one text: Excel's own limit is 32,767
characters."""
EXCEL_PARTS = 10_000
"""Parts of a workbook's zip archive at most: its directory is held in memory."""
EXCEL_ROWS = 1 << 20
"""Rows of a sheet at most, which is Excel's own limit: openpyxl makes each row that a row's number passes over."""
WHOLE_FLOATS = {16: 2.0**11, 32: 2.0**24, 64: 2.0**53}
"""By the bits of a float: the first number that two whole numbers may become."""
FEW_ROWS, JOINED_ROWS = 64, 1 << 16
"""Rows of a batch of texts that may be far longer than their bytes in the file, and of several such batches joined."""
_CELL = re.compile(rb"<(?:[\w.-]+:)?c[\s/>]")
_ENCODING = re.compile(rb"[^>]*?encoding\s*=\s*[\"']([^\"']*)")


@dataclass(frozen=True, repr=False)
class TextColumn:
    """A column as text: ``values`` are its distinct texts, ``codes`` which of them each row has."""

    values: tuple[str, ...]
    codes: NDArray[Any]
    ambiguous: bool = False
    """Do cells of several types share the column? Then one text may be two people (the number 7 and the text 7), or
    one person may have two texts (the numbers 1E+17 and 100000000000000000). Text with one other type is clear
    where no text spells a value of another type.

    A type that drops digits is ambiguous too: dates of 64 bits, times of nanoseconds, and floats that two whole
    numbers may become (2⁵³ and 2⁵³ + 1)."""

    @classmethod
    def of(cls, cells: Iterable[Any]) -> TextColumn:
        """From Python values, each written as :func:`_text` writes it."""
        made = Cells()
        for cell in cells:
            made.add(cell)
        return made.column()


class Cells:
    """A column of Python values as it grows: one small number per row, and each distinct text once."""

    def __init__(self) -> None:
        self._place: dict[str, int] = {}
        self._codes = array("i")
        self._texts: set[str] = set()
        """Distinct cells that are text themselves."""
        self._forms: set[object] = set()
        """The forms of cells that are neither text nor empty."""
        self._drops_digits = False

    def add(self, cell: Any) -> None:
        """Add the next row's cell."""
        text = _text(cell)
        self._codes.append(self._place.setdefault(text, len(self._place)))
        if isinstance(cell, str):
            self._texts.add(text)
        elif text != MISSING:
            self._forms.add(_form(cell))
            self._drops_digits |= isinstance(cell, float) and abs(cell) >= WHOLE_FLOATS[64]

    def column(self) -> TextColumn:
        """The column so far."""
        mixed = len(self._forms) > 1 or (bool(self._forms) and any(map(spells_another_type, self._texts)))
        ambiguous = mixed or self._drops_digits
        return TextColumn(tuple(self._place), np.array(self._codes, dtype=np.int32), ambiguous)


def _form(cell: Any) -> object:
    """The type of a cell. Two cells of one form that are equal have one text.

    A whole float below 2⁵³ has the form of a whole number. A decimal's places, and a moment's distance from UTC, are
    part of its form: 7.5 and 7.50 are equal and have two texts. pandas writes a duration in another way than Python.
    """
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return int
    if isinstance(cell, Decimal):
        return cell.as_tuple().exponent, Decimal
    if isinstance(cell, dt.datetime | dt.time):
        return cell.utcoffset(), isinstance(cell, dt.datetime)
    if isinstance(cell, dt.timedelta):
        return type(cell)
    return next(kind for kind in (bool, int, float, dt.date, object) if isinstance(cell, kind))


def spells_another_type(text: str) -> bool:
    """Is ``text`` what a number, a truth value, a date, a moment, a time of day or a UUID is written as?"""
    if text in ("True", "False"):
        return True
    for read in (int, float, Decimal, dt.date.fromisoformat, dt.datetime.fromisoformat, dt.time.fromisoformat, UUID):
        with suppress(ValueError, ArithmeticError):
            if _text(read(text)) == text:
                return True
    return False


@dataclass(frozen=True, repr=False)
class TextTable:
    """A table as it was read: text columns by name; ``source`` is what to call it in a message."""

    columns: dict[str, TextColumn]
    rows: int
    source: str = "the table"

    @cached_property
    def digest(self) -> bytes:
        """The digest of the rows, 32 bytes, whatever the order of rows and columns. PRIVATE: rows could be guessed from
        it; it leaves only through a keyed fingerprint.

        Each row is the sum of one 64-bit hash per column name and text; the sorted sums are hashed.
        """
        sums = np.zeros(self.rows, dtype=np.uint64)
        for name, column in self.columns.items():
            sums += np.array([_hash(name, value) for value in column.values], dtype=np.uint64)[column.codes]
        head = json.dumps([self.rows, sorted(self.columns)]).encode()
        return hashlib.sha256(head + np.sort(sums).astype("<u8").tobytes()).digest()

    def sample(self) -> TextTable:
        """Return the table itself: its rows are in memory."""
        return self


def _hash(name: str, value: str) -> int:
    """64 bits for a column's name and a text in it."""
    said = f"{len(name)}:{name}{value}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(said, digest_size=8).digest(), "little")


def read_table(source: str | Path | bytes, name: str | None = None) -> TextTable:
    """Read a file, or the bytes of one called ``name``. Raises :class:`TableError` saying where it is broken.

    >>> import espalier as es, pandas as pd
    >>> pd.DataFrame({"smoker": ["yes", "no"], "age": ["61", "35"]}).to_csv("clinic.csv", index=False)
    >>> table = es.read_table("clinic.csv")
    >>> table.rows, list(table.columns)
    (2, ['smoker', 'age'])
    """
    if isinstance(source, bytes):
        data, shown = source, name or "the table"
    else:
        shown = name or str(source)
        try:
            check_ordinary(Path(source))
            if Path(source).stat().st_size > MAX_BYTES:
                raise TableError(f"{shown} is larger than 1 GiB; Espalier reads smaller tables only")
            data = Path(source).read_bytes()
        except OSError as error:
            raise TableError(f"cannot read {shown}: {error.strerror or error}", path=shown) from None
    if data[:2] == b"\x1f\x8b":
        data = _gunzip(data, shown)
    parse = _parquet if data[:4] == b"PAR1" else _excel if data[:4] == b"PK\x03\x04" else _csv
    if parse is _csv:
        from espalier.core.tables.stat_rows import kind_of, stat_table

        parse = stat_table if kind_of(data) else _csv
    table = parse(data, shown)
    if table.rows == 0:
        raise TableError(f"{shown} has a header but no rows")
    return table


def check_ordinary(path: Path) -> None:
    """Refuse a pipe or a device. It gives each byte once, so a second read would lack the first rows."""
    if path.exists() and not path.is_file():
        what = "a folder" if path.is_dir() else "a pipe or a device"
        raise TableError(f"cannot read {path}: it is {what}; write the rows into a file first", path=str(path))


def _gunzip(data: bytes, shown: str) -> bytes:
    out = bytearray()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            while chunk := file.read(1 << 24):
                out += chunk
                _check_unpacked(len(out), len(data), shown)
    except (OSError, EOFError, zlib.error):
        raise TableError(f"{shown} is a damaged gzip file") from None
    return bytes(out)


def _check_unpacked(size: int, packed: int, shown: str) -> None:
    """Refuse a file that unpacks to too much, before it does."""
    if size > MAX_BYTES:
        raise TableError(f"{shown} unpacks to more than 1 GiB; Espalier reads smaller tables only")
    check_ratio(size, packed, shown)


def check_ratio(size: int, packed: int, shown: str) -> None:
    """Refuse a file that unpacks to far more than its size."""
    if size > BOMB_BYTES and size > BOMB_RATIO * packed:
        raise TableError(
            f"{shown} unpacks to more than {BOMB_RATIO} times its size, as no table that people keep does; "
            "give the table as a plain CSV file"
        )


def misread(table: TextTable) -> bool:
    """Does a table of one column look like several whose header names only one: a delimiter in most of its cells?"""
    if len(table.columns) != 1:
        return False
    (column,) = table.columns.values()
    holds = np.array([any(d in value for d in DELIMITERS) for value in column.values])
    return bool(holds[column.codes].mean() > 0.5)


def _csv(data: bytes, shown: str) -> TextTable:
    import pyarrow as pa

    text = plain_lines(data, shown)
    names, delimiter = header_names(text, shown)
    check_names(names, shown)
    check_lines(text, delimiter, shown)
    bad: list[Any] = []

    def refuse(row: Any) -> str:
        bad.append(row)
        return "error"

    try:
        table = _parsed(text, names, delimiter=delimiter, invalid_row_handler=refuse)
    except pa.ArrowInvalid:  # its text may quote a row
        if not bad:
            raise TableError(f"{shown} cannot be read as CSV") from None
        number = bad[0].number
        raise TableError(
            f"{shown}{'' if number is None else f', line {number}'}: {bad[0].actual_columns} cells where the header "
            f"names {bad[0].expected_columns}; correct that line, or put quotes around cells that hold the delimiter",
            row=number,
        ) from None
    if not all(pa.types.is_dictionary(kind) for kind in table.schema.types):  # a guessed type depends on all rows
        raise TableError(f"{shown} cannot be read as CSV: the names in its header are read in two ways")
    if table.num_rows != text.count(b"\n") + (not text.endswith(b"\n")) - 1:
        raise TableError(f"{shown} cannot be read as CSV: it has not as many rows as lines")
    return _from_arrow(table, shown)


def _parsed(text: bytes, names: Sequence[str], *, once: bool = True, **options: Any) -> Any:
    """CSV text as an Arrow table, each cell as it is written; raises ``pyarrow.ArrowInvalid``.

    ``once``: a column is a dictionary, which holds a text that many rows share once.
    """
    import pyarrow as pa
    from pyarrow import csv

    kind = pa.dictionary(pa.int32(), pa.string()) if once else pa.string()
    return csv.read_csv(
        io.BytesIO(text),
        read_options=csv.ReadOptions(use_threads=False, block_size=max(1 << 20, min(len(text) + 1, 1 << 30))),
        parse_options=csv.ParseOptions(ignore_empty_lines=False, **options),
        convert_options=csv.ConvertOptions(column_types=dict.fromkeys(names, kind), strings_can_be_null=False),
    )


def read_released(source: Path | bytes, names: Sequence[str]) -> TextTable:
    """A synthetic table with these columns, which Espalier wrote (perhaps gzipped): no row of it is anybody's, so that
    cells in quotes may hold line breaks. Raises :class:`TableError`."""
    import pyarrow as pa

    shown = "a copy" if isinstance(source, bytes) else str(source)
    try:
        data = source if isinstance(source, bytes) else source.read_bytes()
        text = _gunzip(data, shown) if data[:2] == b"\x1f\x8b" else data
        return _from_arrow(_parsed(text, names, newlines_in_values=True), shown)
    except (pa.ArrowInvalid, OSError) as error:
        raise TableError(f"cannot read {shown}: {error}", path=shown) from None


def check_names(names: Sequence[str], shown: str) -> None:
    """Raise :class:`TableError` for a name that two columns have, and for too many columns."""
    if len(names) > MAX_COLUMNS:
        raise TableError(f"{shown} has {len(names):,} columns; Espalier reads at most {MAX_COLUMNS:,}")
    seen: set[str] = set()
    for name in names:
        if name in seen:
            what = f"names column {name!r} twice" if name else "has more than one column without a name"
            raise TableError(f"the header of {shown} {what}; give each column its own name", column=name)
        seen.add(name)


def _parquet(data: bytes, shown: str) -> TextTable:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(io.BytesIO(data))
        schema, rows = file.schema_arrow, file.metadata.num_rows
    except (pa.ArrowException, OSError, ValueError):
        raise TableError(f"{shown} is a damaged Parquet file") from None
    _check_fields(schema, rows, shown)
    check_texts(file.metadata, len(data), shown)
    kept = [f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)]
    try:  # a long text that many rows share is kept once
        try:
            table = parquet.read_table(io.BytesIO(data), read_dictionary=kept, coerce_int96_timestamp_unit="us")
        except OSError:  # Arrow cannot read every encoding as a dictionary
            file = parquet.ParquetFile(io.BytesIO(data), coerce_int96_timestamp_unit="us")
            table = pa.Table.from_batches(unshared(file, len(data), shown), file.schema_arrow)
    except (pa.ArrowException, OSError, ValueError):  # the text of such an error may quote a cell
        raise TableError(f"{shown} is a damaged Parquet file") from None
    return _from_arrow(table, shown)


def check_texts(facts: Any, packed: int, shown: str) -> None:
    """Refuse a Parquet file whose texts unpack to far more than its size, by what its footer states."""
    groups = [facts.row_group(i) for i in range(facts.num_row_groups)]
    chunks = [group.column(i) for group in groups for i in range(group.num_columns)]
    check_ratio(sum(c.total_uncompressed_size for c in chunks if c.physical_type == "BYTE_ARRAY"), packed, shown)


def unshared(file: Any, packed: int, shown: str, names: Sequence[str] | None = None) -> Iterator[Any]:
    """Yield the batches of a Parquet file whose texts may be stored as what differs from the text before.

    Few bytes of such a file may state many long texts, so their sizes are added up after every few rows. Raise
    :class:`TableError` where they are far more than the file's.
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


def _check_fields(schema: Any, rows: int, shown: str) -> None:

    check_names(schema.names, shown)
    if rows * len(schema) > MAX_CELLS:
        raise TableError(f"{shown} holds {rows:,} rows of {len(schema):,} columns; Espalier reads smaller tables only")
    for field in schema:
        check_type(field.name, value_type(field.type), shown)


def value_type(kind: Any) -> Any:
    """The Arrow type of a column's values. A dictionary, and texts in another layout, hold the same values."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        return value_type(kind.value_type)
    return pa.string() if types.is_large_string(kind) or types.is_string_view(kind) else kind


def is_plain(kind: Any) -> bool:
    """Is each cell of this Arrow type one plain value, which has a canonical text?"""
    import pyarrow as pa

    types = pa.types
    tests = (
        *(types.is_null, types.is_boolean, types.is_integer, types.is_floating, types.is_decimal, types.is_string),
        *(types.is_date, types.is_timestamp, types.is_time, types.is_duration, is_uuid),
    )
    return any(test(kind) for test in tests)


def check_type(name: str, kind: Any, shown: str) -> None:
    """Raise :class:`TableError` for a type whose cells are no plain values."""
    if not is_plain(kind):
        raise TableError(
            f"{shown}: column {name!r} holds {kind} values; give one plain value per cell",
            column=name,
        )


def wide(kind: Any) -> Any:
    """The decimal type of at least 128 bits with these digits: Arrow cannot list distinct values of narrower ones."""
    import pyarrow as pa

    narrow = pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind)
    return pa.decimal128(kind.precision, kind.scale) if narrow else kind


def is_uuid(kind: Any) -> bool:
    """Is it Arrow's type of UUIDs?"""
    import pyarrow as pa

    return isinstance(kind, pa.UuidType)


def from_arrow(table: Any, shown: str) -> TextTable:
    """An Arrow table's cells as text, as a Parquet file of it would be read; raises :class:`TableError`."""
    _check_fields(table.schema, table.num_rows, shown)
    return _from_arrow(table, shown)


def _from_arrow(table: Any, shown: str) -> TextTable:
    import pyarrow as pa

    columns = {}
    for name, chunks in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_decimal(chunks.type):
            chunks = chunks.cast(wide(chunks.type))
        if is_uuid(chunks.type):
            chunks = pa.chunked_array([pa.array([x and str(x) for x in chunks.to_pylist()], pa.string())])
        if pa.types.is_dictionary(chunks.type):
            _check_places(chunks, name, shown)
            parts = chunks.chunks  # Arrow's own union of their dictionaries fails for most types
        else:
            array = chunks.combine_chunks().dictionary_encode()
            parts = [array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array]
        values, codes, row = list[str](), list[NDArray[np.int64]](), 0
        for part in parts:
            texts = [*_written(part, name, shown, row), MISSING]
            codes.append(_codes(part.indices, len(texts) - 1) + len(values))
            values += texts
            row += len(part)
        column = _distinct(values, np.concatenate([np.empty(0, np.int64), *codes]))
        columns[name] = replace(column, ambiguous=_drops_digits(chunks))
    return TextTable(columns, table.num_rows, shown)


def _drops_digits(chunks: Any) -> bool:
    """May two persons have one cell, or one text, in a column of this type? See :attr:`TextColumn.ambiguous`."""
    import pyarrow as pa
    from pyarrow import compute

    kind = value_type(chunks.type)
    if not pa.types.is_floating(kind):
        return bool(pa.types.is_date64(kind) or kind == pa.time64("ns"))
    parts = [part.dictionary if pa.types.is_dictionary(chunks.type) else part for part in chunks.chunks]
    ends = [compute.min_max(part.cast(pa.float64())).as_py().values() for part in parts]
    return any(abs(end) >= WHOLE_FLOATS[kind.bit_width] for pair in ends for end in pair if end is not None)


def _written(array: Any, name: str, shown: str, before: int) -> list[str]:
    """The texts of a dictionary array's distinct values; ``before`` is the number of rows that precede it."""
    import pyarrow as pa

    try:
        return [_text(value) for value in array.dictionary.to_pylist()]
    except (pa.ArrowException, ValueError, OverflowError):  # a year beyond 9999, damaged text
        rows = np.flatnonzero(_codes(array.indices, -1) == _unreadable(array.dictionary))
        row = before + int(rows[0]) + 1 if len(rows) else 0  # 0: a value of its dictionary that no row has
        raise TableError(
            f"{shown}{f', data row {row:,}' if row else ''}: column {name!r} holds a value that cannot be written "
            "as text; correct it",
            column=name,
            row=row,
        ) from None


def _check_places(chunks: Any, name: str, shown: str) -> None:
    """Refuse dictionary arrays with a place that their dictionary does not have: Arrow reads it unchecked."""
    from pyarrow import compute

    for chunk in chunks.chunks:
        places = compute.min_max(chunk.indices).as_py()
        if places["min"] is not None and not 0 <= places["min"] <= places["max"] < len(chunk.dictionary):
            raise TableError(f"{shown}: column {name!r} contradicts itself; write the table anew", column=name)


def _unreadable(values: Any) -> int:
    """Which of an Arrow array's values is the first without a text."""
    import pyarrow as pa

    for i, value in enumerate(values):
        try:
            _text(value.as_py())
        except (pa.ArrowException, ValueError, OverflowError):
            return i
    raise ValueError("every value has a text")


def _codes(indices: Any, missing: int) -> NDArray[np.int64]:
    """A dictionary's indices, ``missing`` where there is none. Arrow's own conversions import pandas: 0.3 s."""
    valid, data = indices.buffers()
    held = slice(indices.offset, indices.offset + len(indices))
    codes = np.frombuffer(data, np.dtype(str(indices.type)))[held].astype(np.int64)
    if indices.null_count:
        codes[np.unpackbits(np.frombuffer(valid, np.uint8), bitorder="little")[held] == 0] = missing
    return codes


def _distinct(values: list[str], codes: NDArray[Any]) -> TextColumn:
    """Texts may coincide (1 and 1.0, a null and an empty text) or not occur: keep each that occurs once."""
    used = np.zeros(len(values), dtype=bool)
    used[codes] = True
    place: dict[str, int] = {}
    lookup = np.array(
        [place.setdefault(v, len(place)) if u else 0 for v, u in zip(values, used, strict=True)], np.int32
    )
    return TextColumn(tuple(place), lookup[codes])


def _excel(data: bytes, shown: str) -> TextTable:
    import warnings

    try:
        from openpyxl import load_workbook
    except ImportError:
        raise TableError(f"Excel workbooks need openpyxl: the extra [formats]. {wheel_with('formats')}") from None

    number, header, columns = 0, None, list[Cells]()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # openpyxl warns about styles and validations it leaves out
            if data.count(b"PK\x01\x02") > EXCEL_PARTS:
                raise TableError(f"{shown} has more than {EXCEL_PARTS:,} parts; save it anew, or give CSV")
            with zipfile.ZipFile(io.BytesIO(data)) as parts:
                _check_workbook(parts, len(data), shown)
            book = load_workbook(io.BytesIO(data), read_only=True)
            sheet = book.worksheets[0]
            if sheet.sheet_state != "visible":
                raise TableError(f"the first sheet of {shown} is hidden; show it or delete it, so that it is clear")
            with book._archive.open(sheet._worksheet_path) as rows_of:
                _check_ascending(rows_of, shown)
            sheet.reset_dimensions()  # what the file says of its size is not believed
            place = 0  # the row that comes next
            for number, cells in enumerate(sheet.iter_rows(), start=1):
                if any(cell.data_type == "f" for cell in cells):
                    raise TableError(
                        f"{shown}, row {number}: a formula, whose value may come from other rows; replace formulas by "
                        "their values (Paste Special), or give CSV",
                        row=number,
                    )
                row = [cell.value for cell in cells]
                if all(cell is None for cell in row):
                    continue
                if header is None:
                    header = _header(row, shown)
                    columns, place = [Cells() for _ in header], number + 1
                    continue
                if number != place:
                    raise TableError(f"{shown}, row {place}: this row is empty; take it out of the sheet", row=place)
                if any(cell is not None for cell in row[len(header) :]):
                    raise TableError(f"{shown}, row {number}: more cells than the header has names", row=number)
                place += 1
                for column, cell in zip_longest(columns, row[: len(header)]):
                    column.add(cell)
    except TableError:
        raise
    except Exception:  # openpyxl raises whatever its zip and XML parsers do, and the text may quote a cell
        where = f" (after row {number})" if number else ""
        raise TableError(f"{shown} cannot be read as an Excel workbook{where}; save it anew, or give CSV") from None
    if header is None:
        raise TableError(f"{shown} is empty; its first sheet needs a header row and at least one row")
    made = {name: column.column() for name, column in zip(header, columns, strict=True)}
    return TextTable(made, len(next(iter(made.values())).codes) if made else 0, shown)


def _header(cells: Sequence[Any], shown: str) -> list[str]:
    header = ["" if cell is None else _text(cell) for cell in cells]
    while header and not header[-1]:
        header.pop()
    check_names(header, shown)
    return header


def _check_workbook(parts: zipfile.ZipFile, packed: int, shown: str) -> None:
    """Refuse a workbook that unpacks to too much, by the sizes in its directory, beyond which no part is read."""
    size = sum(part.file_size for part in parts.infolist())
    _check_unpacked(size, packed, shown)
    if size > EXCEL_BYTES and size > EXCEL_RATIO * packed:
        raise TableError(f"{shown} unpacks to more than {EXCEL_RATIO} times its size; save it anew, or give CSV")
    for part in parts.infolist():
        if part.filename.startswith("xl/worksheets/"):
            with parts.open(part) as sheet:
                _check_cells(sheet, shown)
        elif part.file_size > EXCEL_TEXTS:
            raise TableError(f"{shown} holds more than {EXCEL_TEXTS >> 20} MiB of distinct texts; give CSV or Parquet")


def _check_cells(sheet: IO[bytes], shown: str) -> None:
    """Refuse a sheet of too many cells, or with too long a text, before a parser holds it in memory."""
    cells, rest = 0, sheet.read(1 << 20)
    declared = _ENCODING.match(rest)
    if b"\0" in rest or b"<!DOCTYPE" in rest or (declared and declared[1].lower() not in (b"utf-8", b"us-ascii")):
        raise TableError(f"{shown} has a sheet that is not plain UTF-8; save it anew, or give CSV")
    while piece := sheet.read(1 << 20):
        done, _, opened = rest.rpartition(b"<")
        cells += len(_CELL.findall(done))
        rest = b"<" + opened + piece
        if cells > EXCEL_CELLS:
            break
        if len(opened) > EXCEL_TEXT:
            raise TableError(f"{shown} has a cell with a text longer than Excel allows; give CSV or Parquet")
    if cells + len(_CELL.findall(rest)) > EXCEL_CELLS:
        raise TableError(f"{shown} has a sheet of more than {EXCEL_CELLS:,} cells; give CSV or Parquet")


def _check_ascending(sheet: IO[bytes], shown: str) -> None:
    """Refuse a sheet with rows out of order.

    openpyxl skips a row with a number that is not above the last, and rows without their own number continue from the
    row before, so that one wrong number would hide many rows.
    """
    last = 0
    for event, element in ElementTree.iterparse(sheet, events=("start", "end")):
        if element.tag.rpartition("}")[2] != "row":
            continue
        if event == "end":
            element.clear()
            continue
        number = int(element.get("r", last + 1))
        if number > EXCEL_ROWS:
            raise TableError(f"{shown}, row {number}: Excel has {EXCEL_ROWS:,} rows; save it anew", row=number)
        if number <= last:
            raise TableError(
                f"{shown}, row {number}: the rows of the sheet are not in order; save it again, or give CSV",
                row=number,
            )
        last = number


def _text(value: Any) -> str:
    """A cell as text: whole numbers without a point, True/False, ISO dates, nothing for a null."""
    if value is None:
        return MISSING
    if isinstance(value, float):
        if math.isnan(value):
            return MISSING
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, Decimal):
        return MISSING if value.is_nan() else str(value.copy_abs() if value.is_zero() else value)
    if isinstance(value, dt.datetime):
        plain = value.tzinfo is None and not getattr(value, "nanosecond", 0)  # which pandas' moments have
        return value.date().isoformat() if plain and value.time() == dt.time() else value.isoformat()
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    return str(value)
