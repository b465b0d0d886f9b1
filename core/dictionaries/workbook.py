"""Reading Excel workbooks that describe a table, such as a form. Rows of data are read elsewhere."""

from __future__ import annotations

from typing import Any

from espalier.core.dictionaries.base import MOST_CELLS, code_text
from espalier.core.errors import SchemaError, TableError, wheel_with
from espalier.core.tables.excel import Workbook

MOST_SHEETS, MOST_HELD = 20, 1_000_000
"""Maximum number of sheets that are read, and of cells in them."""

Sheets = dict[str, list[list[str]]]
"""Rows of each sheet, by the sheet's name in lower case. Empty rows are left out."""


def read_sheets(data: bytes, source: str) -> Sheets:
    """Return the sheets of a workbook; raise :class:`SchemaError`. The stored value of a formula is used."""
    import warnings

    try:
        import openpyxl  # noqa: F401
    except ImportError:
        raise SchemaError(f"Excel workbooks need openpyxl: the extra [formats]. {wheel_with('formats')}") from None
    out: Sheets = {}
    held = 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # openpyxl warns about the styles and validations that it ignores
            book = Workbook(data, source, formulas=False)
            for name, _, part in book.sheets[:MOST_SHEETS]:
                rows = out.setdefault(name.strip().casefold(), [])
                for _, cells in book.rows(part):
                    width = cells[-1].column if cells else 0
                    held += width + 1
                    if held > MOST_HELD or width > MOST_CELLS:
                        raise SchemaError(f"{source} has more than {MOST_HELD:,} cells")
                    row = [""] * width
                    for cell in cells:
                        row[cell.column - 1] = _text(cell.value)
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
