"""Reader of tables in CSV (any delimiter, BOM, UTF-8 or Latin-1, gzip), Parquet or Excel, with cells as text.

CSV cells are read as written. Parquet and Excel cells become whole numbers without a point, True/False and ISO
dates. An empty cell is missing. PyArrow and openpyxl do the parsing.

No row changes how another row is read. Unless a file is refused, each of its rows is read as if it were the only row
under the header.

CSV. One line is one row (`espalier.core.tables.csv_lines` has the proof).

Excel. Each cell has its own type (`espalier.core.tables.excel` states which lines are rows).

Parquet and data frames. A type belongs to a whole column and was chosen by the author of the file or frame. Columns of
Python objects in a pandas frame have no such type, so each cell is converted separately.

`espalier.core.tables.encoding` encodes larger tables in batches. That module contains the table of canonical text, and
returns equal codes.

Refusals name the line or the row, but never quote a cell.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from espalier.core.errors import TableError
from espalier.core.tables.arrow_text import check_fields, table_as_text
from espalier.core.tables.csv_lines import DELIMITERS, check_lines, header_names, plain_lines
from espalier.core.tables.excel import read_excel
from espalier.core.tables.parquet_files import check_logs
from espalier.core.tables.parquet_pages import check_pages, opened
from espalier.core.tables.text_table import TextTable, check_names
from espalier.core.tables.unpacking import (
    MAX_BYTES,
    check_cells,
    check_ordinary,
    gunzip,
    open_ordinary,
    state,
    unshared,
)


def read_table(source: str | Path | bytes, name: str | None = None) -> TextTable:
    """Read a file, or its bytes with its ``name``. Raises :class:`TableError`, which states where the fault is.

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
            with open_ordinary(Path(source)) as file:
                before = state(file)
                data = file.read(MAX_BYTES + 1) if before.size <= MAX_BYTES else b""
                if len(data) > MAX_BYTES or before.size > MAX_BYTES:
                    raise TableError(f"{shown} is larger than 1 GiB, which is more than Espalier can read")
                if state(file) != before:  # a row that a writer moves might be read twice
                    raise TableError(
                        f"{shown} changed while it was being read; start again after it has been written", path=shown
                    )
        except OSError as error:
            what = "a table in a database cannot be used here; write its rows to a file" if "://" in str(source) else ""
            raise TableError(f"cannot read {shown}: {what or error.strerror or error}", path=shown) from None
    if data[:4] == b"PAR1" and not isinstance(source, bytes):
        check_logs(Path(source))
    if data[:2] == b"\x1f\x8b":
        packed, data = len(data), gunzip(data, shown)
        if other_format(data) is not None or data[:2] == b"\x1f\x8b":  # its size would be checked as if it were plain
            raise TableError(f"{shown} is a gzip file that contains another compressed file; unpack it first")
        table = _csv(data, shown, packed)
    else:
        table = (other_format(data) or _csv)(data, shown)
    if table.rows == 0:
        raise TableError(f"{shown} has a header but no rows")
    return table


def other_format(data: bytes) -> Callable[[bytes, str], TextTable] | None:
    """Return the reader of a file that is not CSV, by its first bytes; `None` for CSV."""
    from espalier.core.tables.stat_rows import kind_of, stat_table

    if data[:4] == b"PAR1":
        return _parquet
    return read_excel if data[:4] == b"PK\x03\x04" else stat_table if kind_of(data) else None


def misread(table: TextTable) -> bool:
    """Return whether a one-column table looks like several columns under a header with one name, because most cells
    contain a delimiter.
    """
    if len(table.columns) != 1:
        return False
    (column,) = table.columns.values()
    holds = np.array([any(d in value for d in DELIMITERS) for value in column.values])
    return bool(holds[column.codes].mean() > 0.5)


def _csv(data: bytes, shown: str, packed: int | None = None) -> TextTable:
    """Return CSV text as a table; ``packed`` is the size of the gzip file that contained it."""
    import pyarrow as pa

    text, odd = plain_lines(data, shown)
    names, delimiter = header_names(text, shown)
    check_names(names, shown)
    check_cells(text.count(b"\n") * len(names), len(text) if packed is None else packed, shown)
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
            f"{shown}{'' if number is None else f', line {number}'}: {bad[0].actual_columns} cells, but the header has "
            f"{bad[0].expected_columns} names; correct that line, or put quotes around cells that contain the "
            "delimiter",
            row=number,
        ) from None
    if not all(pa.types.is_dictionary(kind) for kind in table.schema.types):  # a guessed type would depend on all rows
        raise TableError(f"{shown} cannot be read as CSV: the names in its header are ambiguous")
    if table.num_rows != text.count(b"\n") + (not text.endswith(b"\n")) - 1:
        raise TableError(f"{shown} cannot be read as CSV: its number of rows differs from its number of lines")
    made = table_as_text(table, shown)
    for name in (names[place] for place in odd if place < len(names)):
        made.columns[name] = replace(made.columns[name], ambiguous=True)
    return made


def _parsed(text: bytes, names: Sequence[str], *, once: bool = True, **options: Any) -> Any:
    """Return CSV text as an Arrow table, each cell as written; raises ``pyarrow.ArrowInvalid``.

    With ``once``, each column is a dictionary, which stores repeated text once.
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
    """Return a synthetic table with these columns that Espalier wrote, possibly gzipped. No row belongs to a real
    person, so quoted cells may contain line breaks. Raises :class:`TableError`.
    """
    import pyarrow as pa

    shown = "a copy" if isinstance(source, bytes) else str(source)
    try:
        data = source if isinstance(source, bytes) else source.read_bytes()
        text = gunzip(data, shown) if data[:2] == b"\x1f\x8b" else data
        return table_as_text(_parsed(text, names, newlines_in_values=True), shown)
    except (pa.ArrowInvalid, OSError) as error:
        raise TableError(f"cannot read {shown}: {error}", path=shown) from None


def _parquet(data: bytes, shown: str) -> TextTable:
    import pyarrow as pa

    try:
        file = opened(io.BytesIO(data))
        schema, rows = file.schema_arrow, file.metadata.num_rows
    except (pa.ArrowException, OSError, ValueError):
        raise TableError(f"{shown} is a damaged Parquet file") from None
    check_fields(schema, rows, shown)
    check_cells(rows * len(schema), len(data), shown)
    longest = check_pages(io.BytesIO(data), file.metadata, shown)
    kept = [f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)]
    try:  # long repeated text is stored once
        try:
            if longest:
                raise OSError
            table = opened(io.BytesIO(data), read_dictionary=kept, coerce_int96_timestamp_unit="us").read()
        except OSError:  # Arrow cannot read every encoding as a dictionary
            file = opened(io.BytesIO(data), coerce_int96_timestamp_unit="us")
            table = pa.Table.from_batches(unshared(file, longest, len(data), shown), file.schema_arrow)
    except (pa.ArrowException, OSError, ValueError):  # the text of such an error may quote a cell
        raise TableError(f"{shown} is a damaged Parquet file") from None
    return table_as_text(table, shown)
