"""Excel workbooks as text. openpyxl decodes the cells; Espalier decides which lines are rows.

Each cell has its own type. A formula is refused, because its value may come from other rows. A row is refused if its
number is not greater than that of the previous row.

A sheet has a million lines. A line is a row if and only if one of its cells contains a value, which depends on that
line alone. A line without a value between rows is refused; after the last row, such a line is not a row and does not
count towards n. Emptying the last line therefore removes a row. Under replace-one, the result is not a neighbouring
table, because n is public. To keep a person whose cells are all empty, enter an empty string or a missing-value mark in
one cell.

Text is read as it is stored: an escape such as ``_x000D_`` is not decoded.

A person column accepts only two kinds of cells (:attr:`Cell.exact`): a whole number of at most 15 digits, stored as
Espalier writes it, and text of which nothing is dropped. All other cells may have been rounded or joined, so two people
could have one identifier.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from itertools import pairwise
from typing import IO, Any, NamedTuple
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
EXCEL_HELD, EXCEL_HELD_BYTES = 250_000, 1 << 24
"""Maximum number of XML elements that are in memory at a time: those of one row, of one text, or of a part that is
parsed as a whole, such as the styles; and the maximum size in bytes of such a part. Excel's own limit is 16,384 cells
per row.
"""
EXCEL_ELEMENTS, EXCEL_DENSITY = 1_000_000, 10
"""A workbook is refused if a part has more XML elements than this limit and than this multiple of the workbook's size
in bytes. An ordinary workbook has about one element per byte.
"""
EXCEL_ROWS, EXCEL_COLUMNS = 1 << 20, 1 << 14
"""Maximum number of rows and of columns in a sheet, which are Excel's own limits."""
_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_WHOLE = re.compile("0|-?[1-9][0-9]{0,14}", re.ASCII)
"""Whole number that neither Excel, which keeps 15 digits, nor a float has rounded."""
_CELL = re.compile(rb"<(?:[\w.-]+:)?c[\s/>]")
_ENCODING = re.compile(rb"[^>]*?encoding\s*=\s*[\"']([^\"']*)")


class Cell(NamedTuple):
    """Cell of a sheet as openpyxl decodes it; ``kind`` is openpyxl's type of the value."""

    column: int
    value: Any
    kind: str
    exact: bool
    """True if cells that are stored differently have different values. Only how XML writes a character, and formats
    within a text, are ignored.
    """


class Workbook:
    """Workbook that is read one sheet at a time.

    ``sheets`` are the name, the state (``"visible"`` or hidden) and the part of each sheet in order. Raises
    :class:`TableError` if the workbook is larger than the limits of this module. Errors of openpyxl pass through.
    """

    def __init__(self, data: bytes, shown: str, *, formulas: bool = True) -> None:
        """Read the list of sheets. With ``formulas`` false, a formula's stored value is used."""
        from openpyxl.reader.excel import ExcelReader
        from openpyxl.styles.stylesheet import apply_stylesheet
        from openpyxl.xml.constants import SHARED_STRINGS

        if data.count(b"PK\x01\x02") > EXCEL_PARTS:
            raise TableError(f"{shown} has more than {EXCEL_PARTS:,} parts; save it again, or use CSV")
        self._shown, self._packed = shown, len(data)
        self._parts = _Parts(data, shown)
        check_workbook(self._parts, len(data), shown)
        reader = ExcelReader(io.BytesIO(data), read_only=True, data_only=not formulas, keep_links=False)
        reader.archive = self._parts
        reader.read_manifest()
        strings = reader.package.find(SHARED_STRINGS)
        shared = [] if strings is None else list(map(_text, self._each(strings.PartName[1:], "si")))
        self._inexact = {text for text, exact in shared if not exact}
        reader.read_workbook()
        apply_stylesheet(self._parts, reader.wb)
        self._book, self._shared, self._formulas = reader.wb, [text for text, _ in shared], formulas
        self.sheets: list[tuple[str, str, str]] = [
            (sheet.name, sheet.state, link.target)
            for sheet, link in reader.parser.find_sheets()
            if link.target in reader.valid_files and "chartsheet" not in link.Type
        ]

    def rows(self, part: str) -> Iterator[tuple[int, list[Cell]]]:
        """Yield the number and the cells of each row of a sheet. Raise :class:`TableError` for rows or cells that are
        out of order, because a wrong number could hide others.
        """
        from openpyxl.worksheet._reader import WorkSheetParser

        parser = WorkSheetParser(
            None,
            self._shared,
            data_only=not self._formulas,
            epoch=self._book.epoch,
            date_formats=self._book._date_formats,
            timedelta_formats=self._book._timedelta_formats,
        )
        last = 0
        for row in self._each(part, "row"):
            number = int(row.get("r", last + 1))
            if number > EXCEL_ROWS:
                raise TableError(
                    f"{self._shown}, row {number}: Excel allows {EXCEL_ROWS:,} rows; save it again", row=number
                )
            if number <= last:
                raise TableError(
                    f"{self._shown}, row {number}: the rows of the sheet are not in order; save it again, or use CSV",
                    row=number,
                )
            parser.row_counter, parser.col_counter, last = number, 0, number
            cells = [self._cell(parser.parse_cell(element), element) for element in row if element.tag == f"{_MAIN}c"]
            places = [cell.column for cell in cells]
            if any(second <= first for first, second in pairwise(places)):
                raise TableError(
                    f"{self._shown}, row {number}: the cells of this row are not in order; save it again, or use CSV",
                    row=number,
                )
            if places and places[-1] > EXCEL_COLUMNS:
                raise TableError(
                    f"{self._shown}, row {number}: Excel allows {EXCEL_COLUMNS:,} columns; save it again", row=number
                )
            yield number, cells

    def _cell(self, read: dict[str, Any], element: ElementTree.Element) -> Cell:
        value, stored = read["value"], element.get("t", "n")
        inline = element.find(f"{_MAIN}is")
        if stored == "inlineStr" and inline is not None:
            value, exact = _text(inline)
            exact &= len(element) == 1
        else:
            text = element[0].text or "" if len(element) == 1 and not len(element[0]) else None
            if stored == "n":
                exact = isinstance(value, int) and text is not None and bool(_WHOLE.fullmatch(text))
            elif stored == "s":
                exact = text is not None and bool(_WHOLE.fullmatch(text)) and value not in self._inexact
            else:
                exact = stored == "str" and text is not None and "\n" not in text
        return Cell(read["column"], value, read["data_type"], value is None or exact)

    def _each(self, part: str, tag: str) -> Iterator[ElementTree.Element]:
        """Yield each element ``tag`` of a part. Only one of them is in memory at a time."""
        if not part.startswith(_SHEETS):
            with self._parts.open(part) as file:
                _check_cells(file, self._shown)
        most = max(EXCEL_ELEMENTS, EXCEL_DENSITY * self._packed)
        seen, held, above = 0, 0, list[ElementTree.Element]()
        wanted = f"{_MAIN}{tag}"
        found: ElementTree.Element | None = None
        with self._parts.open(part) as file:
            for event, element in ElementTree.iterparse(file, events=("start", "end")):
                if event == "start":
                    above.append(element)
                    seen, held = seen + 1, held + 1 if found is not None else len(above)
                    if held > EXCEL_HELD or seen > most:
                        raise _too_many_elements(self._shown)
                    if element.tag == wanted:
                        if found is not None:
                            raise ValueError("one of them within another")
                        found = element
                    continue
                above.pop()
                if element is found:
                    yield found
                    found = None
                if found is None and above:
                    above[-1].clear()


class _Parts(zipfile.ZipFile):
    """Parts of a workbook. Only small parts can be read as a whole."""

    def __init__(self, data: bytes, shown: str) -> None:
        super().__init__(io.BytesIO(data))
        self._shown = shown

    def read(self, name: Any, pwd: bytes | None = None) -> bytes:
        with self.open(name, pwd=pwd) as part:
            text = part.read(EXCEL_HELD_BYTES + 1)
        if len(text) > EXCEL_HELD_BYTES or text.count(b"<") - text.count(b"</") > EXCEL_HELD:
            raise _too_many_elements(self._shown)
        return text


def _too_many_elements(shown: str) -> TableError:
    """Return the error for a part of a workbook that would take too much memory or time."""
    return TableError(f"{shown} has a part with too many XML elements; save it again, or use CSV")


def _text(holder: ElementTree.Element) -> tuple[str, bool]:
    """Return a text, shared or within a cell, and whether nothing of it was dropped: neither unknown parts, nor a
    carriage return, which XML reads as a line feed. Formats, and the pronunciation of Japanese text, are not text.
    """
    pieces, exact = list[str](), True
    for part in holder:
        inner = [part] if part.tag == f"{_MAIN}t" else part.findall(f"{_MAIN}t") if part.tag == f"{_MAIN}r" else []
        exact &= part.tag in _OF_TEXT and not any(map(len, inner))
        pieces += [piece.text or "" for piece in inner]
    text = "".join(pieces)
    plain = sum(part.tag == f"{_MAIN}t" for part in holder)
    exact &= plain == 0 or (plain == 1 and len(pieces) == 1)
    return text, exact and "\n" not in text


_OF_TEXT = frozenset(_MAIN + name for name in ("t", "r", "rPh", "phoneticPr"))
_SHEETS = "xl/worksheets/"


def read_excel(data: bytes, shown: str) -> TextTable:
    """Return the first sheet of a workbook; raise a :class:`TableError` that names a row and quotes no cell."""
    import warnings

    try:
        import openpyxl  # noqa: F401
    except ImportError:
        raise TableError(f"Excel workbooks need openpyxl: the extra [formats]. {wheel_with('formats')}") from None

    number, header, columns = 0, None, list[Cells]()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # openpyxl warns about styles and validations that it ignores
            book = Workbook(data, shown)
            _, state, part = book.sheets[0]
            if state != "visible":
                raise TableError(f"the first sheet of {shown} is hidden; show it, or delete it to use the next sheet")
            place = 0  # number of the next row
            for number, cells in book.rows(part):
                if any(cell.kind == "f" for cell in cells):
                    raise TableError(
                        f"{shown}, row {number} contains a formula, whose value may depend on other rows; replace "
                        "formulas with their values (Paste Special), or use CSV",
                        row=number,
                    )
                row = {cell.column - 1: cell for cell in cells if cell.value is not None}
                if not row:
                    continue
                if header is None:
                    header = _header(row, shown)
                    columns, place = [Cells() for _ in header], number + 1
                    continue
                if number != place:
                    raise TableError(f"{shown}, row {place}: this row is empty; delete it from the sheet", row=place)
                if max(row) >= len(header):
                    raise TableError(
                        f"{shown}, row {number}: this row has more cells than the header has names; add names, or "
                        "delete the extra cells",
                        row=number,
                    )
                place += 1
                for index, column in enumerate(columns):
                    cell = row.get(index)
                    column.add(None if cell is None else cell.value)
                    column.unclear |= cell is not None and not cell.exact
    except TableError:
        raise
    except Exception:  # openpyxl passes on any error of its zip and XML parsers, and the text may quote a cell
        where = f" (after row {number})" if number else ""
        raise TableError(f"{shown} cannot be read as an Excel workbook{where}; save it again, or use CSV") from None
    if header is None:
        raise TableError(f"{shown} is empty; its first sheet needs a header row and at least one row")
    made = {name: column.column() for name, column in zip(header, columns, strict=True)}
    return TextTable(made, len(next(iter(made.values())).codes) if made else 0, shown)


def _header(row: dict[int, Cell], shown: str) -> list[str]:
    header = [cell_text(row[place].value) if place in row else "" for place in range(max(row) + 1)]
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
        if part.filename.startswith(_SHEETS):
            with parts.open(part) as sheet:
                _check_cells(sheet, shown)
        elif part.file_size > EXCEL_TEXTS:
            raise TableError(f"{shown} has more than {EXCEL_TEXTS >> 20} MiB of distinct text; use CSV or Parquet")


def _check_cells(sheet: IO[bytes], shown: str) -> None:
    """Refuse a sheet with too many cells, or with too much text in a cell, before a parser reads it into memory."""
    cells, rest = 0, sheet.read(1 << 20)
    declared = _ENCODING.match(rest)
    if b"\0" in rest or b"<!DOCTYPE" in rest or (declared and declared[1].lower() not in (b"utf-8", b"us-ascii")):
        raise TableError(f"{shown} has a part that is not plain UTF-8; save it again, or use CSV")
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
