"""Reading a table from CSV (any delimiter, BOM, UTF-8 or Latin-1, gzip), Parquet or Excel: cells as text.

CSV cells are read as they are written. Parquet and Excel give whole numbers without a point, True/False and ISO
dates. An empty cell is missing. PyArrow and openpyxl do the parsing.
"""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import hashlib
import io
import json
import math
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import TableError
from core.schema import MISSING

DELIMITERS = "\t;|,"
"""In the order in which they are tried; the first of equals wins."""
MAX_BYTES = 1 << 30
MAX_CELLS = 200_000_000
BOMB_BYTES, BOMB_RATIO = 50_000_000, 150
"""What unpacks to more than so many bytes, and to more than so many times its size, was made to do harm: tables that
people keep shrink to a fifth or a fiftieth."""


@dataclass(frozen=True, repr=False)
class TextColumn:
    """A column as text: ``values`` are its distinct texts, ``codes`` which of them each row has."""

    values: tuple[str, ...]
    codes: NDArray[Any]

    @classmethod
    def of(cls, cells: Iterable[Any]) -> TextColumn:
        """From Python values, each written as :func:`_text` writes it."""
        place: dict[str, int] = {}
        codes = [place.setdefault(_text(cell), len(place)) for cell in cells]
        return cls(tuple(place), np.asarray(codes, dtype=np.int32))


@dataclass(frozen=True, repr=False)
class TextTable:
    """A table as it was read: text columns by name; ``source`` is what to call it in a message."""

    columns: dict[str, TextColumn]
    rows: int
    source: str = "the table"

    @cached_property
    def digest(self) -> bytes:
        """32 bytes that tell this table from others, whatever the order of its rows and columns. PRIVATE: it could be
        guessed from; it leaves only through a keyed fingerprint.

        Each row is the sum of one 64-bit hash per column name and text; the sorted sums are hashed.
        """
        sums = np.zeros(self.rows, dtype=np.uint64)
        for name, column in self.columns.items():
            sums += np.array([_hash(name, value) for value in column.values], dtype=np.uint64)[column.codes]
        head = json.dumps([self.rows, sorted(self.columns)]).encode()
        return hashlib.sha256(head + np.sort(sums).astype("<u8").tobytes()).digest()


def _hash(name: str, value: str) -> int:
    """64 bits for a column's name and a text in it."""
    said = f"{len(name)}:{name}{value}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(said, digest_size=8).digest(), "little")


def read_table(source: str | Path | bytes, name: str | None = None) -> TextTable:
    """Read a file, or the bytes of one called ``name``. Raises :class:`TableError` saying where it is broken."""
    if isinstance(source, bytes):
        data, shown = source, name or "the table"
    else:
        shown = name or str(source)
        try:
            if Path(source).stat().st_size > MAX_BYTES:
                raise TableError(f"{shown} is larger than 1 GiB; Espalier reads smaller tables only")
            data = Path(source).read_bytes()
        except OSError as error:
            raise TableError(f"cannot read {shown}: {error.strerror or error}", path=shown) from None
    if data[:2] == b"\x1f\x8b":
        data = _gunzip(data, shown)
    parse = _parquet if data[:4] == b"PAR1" else _excel if data[:4] == b"PK\x03\x04" else _csv
    table = parse(data, shown)
    if table.rows == 0:
        raise TableError(f"{shown} has a header but no rows")
    return table


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
    from pyarrow import csv as pa_csv

    text = _utf8(data, shown)
    header, delimiter = _header(text, shown)
    _check_names(header, shown)
    bad: list[Any] = []

    def refuse(row: Any) -> str:
        bad.append(row)
        return "error"

    try:
        table = pa_csv.read_csv(
            io.BytesIO(text),
            read_options=pa_csv.ReadOptions(use_threads=False, block_size=max(1 << 20, min(len(text) + 1, 1 << 30))),
            parse_options=pa_csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, invalid_row_handler=refuse,
                ignore_empty_lines=len(header) > 1,
            ),
            convert_options=pa_csv.ConvertOptions(
                column_types={n: pa.string() for n in header}, strings_can_be_null=False
            ),
        )  # fmt: skip
    except pa.ArrowInvalid as error:
        if bad:
            line = f"row {bad[0].number}" if bad[0].number is not None else "a row"
            raise TableError(
                f"{shown}, {line}: {bad[0].actual_columns} cells where the header names {bad[0].expected_columns}; "
                "mend that row, or put quotes around cells that hold the delimiter",
                row=bad[0].number,
            ) from None
        raise TableError(f"{shown} cannot be read as CSV: {_first_line(error)}") from None
    return _from_arrow(table, shown)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0][:160] if str(error) else type(error).__name__


def _utf8(data: bytes, shown: str) -> bytes:
    """The text as UTF-8 without a byte-order mark; Latin-1 is accepted, binary is not.

    A line that is not UTF-8 is taken as Latin-1, line by line: what one row holds must not change how others read.
    """
    if not data.strip():
        raise TableError(f"{shown} is empty; it needs a header line and at least one row")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        try:
            data = data.decode("utf-16").encode()
        except UnicodeDecodeError:
            raise TableError(f"{shown} is damaged UTF-16 text") from None
    if b"\x00" in data:
        raise TableError(f"{shown} is not a text table (it holds binary data); give CSV, Parquet or Excel")
    data = data.removeprefix(b"\xef\xbb\xbf")
    if data.count(b'"') % 2:
        raise TableError(f"{shown} has a quote that is opened and never closed; rows after it would be swallowed")
    try:
        data.decode("utf-8")
        return data
    except UnicodeDecodeError:
        text = b"".join(map(_line_as_utf8, data.splitlines(keepends=True)))
    head = text[:100_000].decode("utf-8", errors="ignore")
    if sum(1 for c in head if ord(c) < 32 and c not in "\t\r\n\f") > len(head) / 100:
        raise TableError(f"{shown} is not a text table (it holds binary data); give CSV, Parquet or Excel")
    return text


def _line_as_utf8(line: bytes) -> bytes:
    try:
        line.decode("utf-8")
        return line
    except UnicodeDecodeError:
        return line.decode("latin-1").encode()


def _header(text: bytes, shown: str) -> tuple[list[str], str]:
    """Column names and the delimiter, from the header alone: a tab if it has one, else what splits it most often."""
    head = text[: 1 << 20].decode("utf-8", errors="ignore").lstrip("\r\n")
    best: list[str] = []
    chosen = ","
    for delimiter in DELIMITERS:
        try:
            row = next(csv.reader(io.StringIO(head, newline=""), delimiter=delimiter), [])
        except csv.Error:
            continue
        if len(row) > len(best):
            best, chosen = row, delimiter
        if delimiter == "\t" and len(row) > 1:
            break
    if not best:
        raise TableError(f"{shown} has no header line")
    return best, chosen


def _check_names(names: Sequence[str], shown: str) -> None:
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
    except (pa.ArrowException, OSError, ValueError) as error:
        raise TableError(f"{shown} is a damaged Parquet file: {_first_line(error)}") from None
    _check_names(schema.names, shown)
    if rows * len(schema) > MAX_CELLS:
        raise TableError(f"{shown} holds {rows:,} rows of {len(schema):,} columns; Espalier reads smaller tables only")
    for field in schema:
        if pa.types.is_nested(field.type) or pa.types.is_binary(field.type) or pa.types.is_large_binary(field.type):
            raise TableError(
                f"{shown}: column {field.name!r} holds {field.type} values; give one plain value per cell",
                column=field.name,
            )
    kept = [f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)]
    try:  # a long text that many rows share is kept once
        table = parquet.read_table(io.BytesIO(data), read_dictionary=kept)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise TableError(f"{shown} is a damaged Parquet file: {_first_line(error)}") from None
    return _from_arrow(table, shown)


def _from_arrow(table: Any, shown: str) -> TextTable:
    import pyarrow as pa

    columns = {}
    for name, chunks in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_dictionary(chunks.type):
            chunks = chunks.unify_dictionaries()
        array = chunks.combine_chunks().dictionary_encode()
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        values = [_text(v) for v in array.dictionary.to_pylist()]
        codes = array.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
        values.append(MISSING)
        columns[name] = _distinct(values, codes)
    return TextTable(columns, table.num_rows, shown)


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

    from openpyxl import load_workbook

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # openpyxl warns about styles and validations it leaves out
            with zipfile.ZipFile(io.BytesIO(data)) as parts:
                _check_unpacked(sum(part.file_size for part in parts.infolist()), len(data), shown)
            book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
            sheet = book.worksheets[0]
            sheet.reset_dimensions()  # what the file says of its size is not believed
            rows = [list(row) for row in sheet.iter_rows(values_only=True) if any(cell is not None for cell in row)]
    except TableError:
        raise
    except Exception as error:  # openpyxl raises whatever its zip and XML parsers do
        raise TableError(f"{shown} cannot be read as an Excel workbook: {_first_line(error)}") from None
    if not rows:
        raise TableError(f"{shown} is empty; its first sheet needs a header row and at least one row")
    header = ["" if cell is None else _text(cell) for cell in rows[0]]
    while header and not header[-1]:
        header.pop()
    _check_names(header, shown)
    for number, row in enumerate(rows[1:], start=2):
        if any(cell is not None for cell in row[len(header) :]):
            raise TableError(f"{shown}, row {number}: more cells than the header has names", row=number)
    cells = zip(*(row[: len(header)] + [None] * (len(header) - len(row)) for row in rows[1:]), strict=True)
    columns = {name: TextColumn.of(column) for name, column in zip(header, cells, strict=False)}
    if len(rows) == 1:
        columns = {name: TextColumn.of([]) for name in header}
    return TextTable(columns, len(rows) - 1, shown)


def _text(value: Any) -> str:
    """A cell as text: whole numbers without a point, True/False, ISO dates, nothing for a null."""
    if value is None:
        return MISSING
    if isinstance(value, float):
        if math.isnan(value):
            return MISSING
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, dt.datetime):
        return value.date().isoformat() if value.time() == dt.time() and value.tzinfo is None else value.isoformat()
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    return str(value)
