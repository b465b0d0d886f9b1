"""Reading Excel workbooks that describe a table, such as a form. Rows of data are read elsewhere."""

from __future__ import annotations

import io
import zipfile
from typing import Any

from espalier.core.dictionaries.base import MOST_CELLS, code_text
from espalier.core.errors import SchemaError, TableError, wheel_with
from espalier.core.tables.excel import EXCEL_PARTS, check_workbook

MOST_SHEETS, MOST_HELD = 20, 1_000_000
"""Maximum number of sheets that are read, and of cells in them."""

Sheets = dict[str, list[list[str]]]
"""Rows of each sheet, by the sheet's name in lower case. Empty rows are left out."""


def read_sheets(data: bytes, source: str) -> Sheets:
    """Return the sheets of a workbook; raise :class:`SchemaError`. The stored value of a formula is used."""
    import warnings

    try:
        from openpyxl import load_workbook
    except ImportError:
        raise SchemaError(f"Excel workbooks need openpyxl: the extra [formats]. {wheel_with('formats')}") from None
    out: Sheets = {}
    held = 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # openpyxl warns about the styles and validations that it ignores
            if data.count(b"PK\x01\x02") > EXCEL_PARTS:
                raise SchemaError(f"{source} has more than {EXCEL_PARTS:,} parts")
            with zipfile.ZipFile(io.BytesIO(data)) as parts:
                check_workbook(parts, len(data), source)
            book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
            for sheet in book.worksheets[:MOST_SHEETS]:
                sheet.reset_dimensions()  # the size stated in the file is not trusted
                rows = out.setdefault(sheet.title.strip().casefold(), [])
                for cells in sheet.iter_rows(values_only=True):
                    held += len(cells) + 1
                    if held > MOST_HELD or len(cells) > MOST_CELLS:
                        raise SchemaError(f"{source} has more than {MOST_HELD:,} cells")
                    row = [_text(cell) for cell in cells]
                    if any(row):
                        rows.append(row)
    except SchemaError:
        raise
    except TableError as error:
        raise SchemaError(str(error)) from None
    except Exception:  # openpyxl passes on all errors of its zip and XML parsers
        raise SchemaError(f"{source} cannot be read as an Excel workbook; save it again") from None
    return out


def _text(cell: Any) -> str:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return "" if cell is None else code_text(cell).strip()
