"""Excel workbooks as text. openpyxl reads the first sheet cell by cell.

Each cell has its own type. A formula is refused, because its value may come from other rows. A row is refused if its
number is not greater than that of the previous row.

A sheet has a million lines. A line is a row if and only if one of its cells contains a value, which depends on that
line alone. A line without a value between rows is refused; after the last row, such a line is not a row and does not
count towards n. Emptying the last line therefore removes a row. Under replace-one, the result is not a neighbouring
table, because n is public. To keep a person whose cells are all empty, enter an empty string or a missing-value mark in
one cell.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Sequence
from itertools import zip_longest
from typing import IO, Any
from xml.etree import ElementTree

from espalier.core.errors import TableError, wheel_with
from espalier.core.tables.text_table import Cells, TextTable, cell_text, check_names
from espalier.core.tables.unpacking import check_unpacked

EXCEL_CELLS, EXCEL_BYTES, EXCEL_RATIO = 25_000_000, 5_000_000, 100
"""Maximum number of cells in a sheet. A workbook is refused if it unpacks to more bytes than this limit and to more
than this multiple of its own size. An ordinary sheet of 10⁶ rows has 10 to 20 million cells and unpacks to 10 to 25
times its size.
"""
EXCEL_TEXTS, EXCEL_TEXT = 1 << 28, 1 << 20
"""Maximum size in bytes of all shared text in a workbook, and of the text in one cell (Excel's own limit is 32,767
characters).
"""
EXCEL_PARTS = 10_000
"""Maximum number of parts in a workbook's zip archive, whose directory is held in memory."""
EXCEL_ROWS = 1 << 20
"""Maximum number of rows in a sheet, which is Excel's own limit, because openpyxl creates every row that the row
numbers skip.
"""
_UNCLEAR = ("e", "d", "b")
"""Types of cells that may give two people the same text: an error such as #N/A, a time rounded to milliseconds, and a
Boolean, since every number but 0 is read as true.
"""
ROUNDED = 10**15
"""Smallest whole number to which Excel may have rounded other numbers, because Excel keeps 15 digits. Excel may also
have rounded any fraction, or removed the zeros at its end.
"""
_CELL = re.compile(rb"<(?:[\w.-]+:)?c[\s/>]")
_ENCODING = re.compile(rb"[^>]*?encoding\s*=\s*[\"']([^\"']*)")


def read_excel(data: bytes, shown: str) -> TextTable:
    """Return the first sheet of a workbook; raise a :class:`TableError` that names a row and quotes no cell."""
    import warnings

    try:
        from openpyxl import load_workbook
    except ImportError:
        raise TableError(f"Excel workbooks need openpyxl: the extra [formats]. {wheel_with('formats')}") from None

    number, header, columns = 0, None, list[Cells]()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # openpyxl warns about styles and validations that it ignores
            if data.count(b"PK\x01\x02") > EXCEL_PARTS:
                raise TableError(f"{shown} has more than {EXCEL_PARTS:,} parts; save it again, or use CSV")
            with zipfile.ZipFile(io.BytesIO(data)) as parts:
                check_workbook(parts, len(data), shown)
            book = load_workbook(io.BytesIO(data), read_only=True)
            sheet = book.worksheets[0]
            if sheet.sheet_state != "visible":
                raise TableError(f"the first sheet of {shown} is hidden; show it, or delete it to use the next sheet")
            with book._archive.open(sheet._worksheet_path) as rows_of:
                _check_ascending(rows_of, shown)
            sheet.reset_dimensions()  # the size that the file states is not trusted
            place, held = 0, 0  # number of the next row, and number of cells so far
            for number, cells in enumerate(sheet.iter_rows(), start=1):
                held += len(cells)
                if held > EXCEL_CELLS:  # openpyxl creates every cell that is skipped in a row
                    raise TableError(_too_many(shown))
                if any(cell.data_type == "f" for cell in cells):
                    raise TableError(
                        f"{shown}, row {number} contains a formula, whose value may depend on other rows; replace "
                        "formulas with their values (Paste Special), or use CSV",
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
                    raise TableError(f"{shown}, row {place}: this row is empty; delete it from the sheet", row=place)
                if any(cell is not None for cell in row[len(header) :]):
                    raise TableError(
                        f"{shown}, row {number}: this row has more cells than the header has names; add names, or "
                        "delete the extra cells",
                        row=number,
                    )
                place += 1
                for column, cell in zip_longest(columns, row[: len(header)]):
                    column.add(cell)
                for column, read in zip(columns, cells, strict=False):
                    column.unclear |= read.data_type in _UNCLEAR or _perhaps_rounded(read.value)
    except TableError:
        raise
    except Exception:  # openpyxl passes on any error of its zip and XML parsers, and the text may quote a cell
        where = f" (after row {number})" if number else ""
        raise TableError(f"{shown} cannot be read as an Excel workbook{where}; save it again, or use CSV") from None
    if header is None:
        raise TableError(f"{shown} is empty; its first sheet needs a header row and at least one row")
    made = {name: column.column() for name, column in zip(header, columns, strict=True)}
    return TextTable(made, len(next(iter(made.values())).codes) if made else 0, shown)


def _perhaps_rounded(number: Any) -> bool:
    """Return whether two different numbers may have become this one. A number too small for a float becomes 0.0."""
    if isinstance(number, float):
        return number == 0 or not number.is_integer() or abs(number) >= ROUNDED
    return isinstance(number, int) and abs(number) >= ROUNDED


def _header(cells: Sequence[Any], shown: str) -> list[str]:
    header = ["" if cell is None else cell_text(cell) for cell in cells]
    while header and not header[-1]:
        header.pop()
    check_names(header, shown)
    return header


def check_workbook(parts: zipfile.ZipFile, packed: int, shown: str) -> None:
    """Refuse a workbook that unpacks to too many bytes according to its directory. No part is read beyond its stated
    size.
    """
    size = sum(part.file_size for part in parts.infolist())
    check_unpacked(size, packed, shown)
    if size > EXCEL_BYTES and size > EXCEL_RATIO * packed:
        raise TableError(f"{shown} unpacks to more than {EXCEL_RATIO} times its size; save it again, or use CSV")
    for part in parts.infolist():
        if part.filename.startswith("xl/worksheets/"):
            with parts.open(part) as sheet:
                _check_cells(sheet, shown)
        elif part.file_size > EXCEL_TEXTS:
            raise TableError(f"{shown} has more than {EXCEL_TEXTS >> 20} MiB of distinct text; use CSV or Parquet")


def _check_cells(sheet: IO[bytes], shown: str) -> None:
    """Refuse a sheet with too many cells, or with too much text in a cell, before a parser reads it into memory."""
    cells, rest = 0, sheet.read(1 << 20)
    declared = _ENCODING.match(rest)
    if b"\0" in rest or b"<!DOCTYPE" in rest or (declared and declared[1].lower() not in (b"utf-8", b"us-ascii")):
        raise TableError(f"{shown} has a sheet that is not plain UTF-8; save it again, or use CSV")
    while piece := sheet.read(1 << 20):
        done, _, opened = rest.rpartition(b"<")
        cells += len(_CELL.findall(done))
        rest = b"<" + opened + piece
        if cells > EXCEL_CELLS:
            break
        if len(opened) > EXCEL_TEXT:
            raise TableError(f"{shown} has a cell with text longer than Excel allows; use CSV or Parquet")
    if cells + len(_CELL.findall(rest)) > EXCEL_CELLS:
        raise TableError(_too_many(shown))


def _too_many(shown: str) -> str:
    return f"{shown} has a sheet with more than {EXCEL_CELLS:,} cells; use CSV or Parquet"


def _check_ascending(sheet: IO[bytes], shown: str) -> None:
    """Refuse a sheet with rows out of order.

    openpyxl skips a row whose number is not greater than that of the previous row. Rows without a number continue from
    the previous row, so one wrong number would hide many rows.
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
            raise TableError(f"{shown}, row {number}: Excel allows {EXCEL_ROWS:,} rows; save it again", row=number)
        if number <= last:
            raise TableError(
                f"{shown}, row {number}: the rows of the sheet are not in order; save it again, or use CSV",
                row=number,
            )
        last = number
