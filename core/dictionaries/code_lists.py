"""Code lists (CSV): ``column,code,label`` for many columns, or ``code,label`` for one column named separately."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from espalier.core.dictionaries.base import Declared, Dictionary, digest_of, pairs
from espalier.core.errors import SchemaError
from espalier.core.project.schema import NUMBER

_COLUMN = {"column", "variable", "field", "name", "variable name", "variable_name"}
_CODE = {"code", "value", "id", "key", "category"}
_LABEL = {"label", "description", "meaning", "text", "desc", "value label", "value_label"}


def is_code_list(header: Sequence[str]) -> bool:
    """Return whether the first line of a CSV file is the header of a code list."""
    return _kinds(header) in (("code", "label"), ("column", "code", "label"))


def _kinds(header: Sequence[str]) -> tuple[str, ...]:
    known = {**dict.fromkeys(_COLUMN, "column"), **dict.fromkeys(_CODE, "code"), **dict.fromkeys(_LABEL, "label")}
    return tuple(known.get(cell.strip().casefold(), "?") for cell in header)


def read_code_list(data: bytes, source: str, column: str | None = None) -> Dictionary:
    """Return the dictionary in the file. ``column`` names the column that a ``code,label`` file describes.

    A code list is complete: its codes are the column's categories. Raises :class:`SchemaError`.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SchemaError(f"{source} is not UTF-8 text; save it as CSV in UTF-8") from None
    first = text.splitlines()[0] if text else ""
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count))
    rows = _lines(lines, source)
    width = len(_kinds(next(rows, [])))
    if width == 2 and column is None:
        raise SchemaError(f"{source} lists codes of one column but does not name it; write FILE:COLUMN", key="column")
    listed: dict[str, dict[str, str]] = {}
    for line in rows:
        cells = [cell.strip() for cell in line]
        if not any(cells):
            continue
        if len(cells) != width or not all(cells[:-1]):
            raise SchemaError(
                f"{source}, line {lines.line_num}: write {'a column, ' if width == 3 else ''}a code and a label",
                line=lines.line_num,
            )
        name, code, label = (str(column), *cells) if width == 2 else cells
        codes = listed.setdefault(name, {})
        if code in codes:
            raise SchemaError(f"{source}, line {lines.line_num}: the code {code!r} of {name!r} is listed twice")
        codes[code] = label
    columns = tuple(_declared(name, codes) for name, codes in listed.items())
    return Dictionary(columns, source, "code list", digest_of(data))


def _lines(lines: Any, source: str) -> Iterator[list[str]]:
    """Yield the lines of a CSV reader; raise :class:`SchemaError` for a line that it cannot read."""
    try:
        yield from lines
    except csv.Error as error:
        raise SchemaError(f"{source}, line {lines.line_num}: {error}") from None


def _declared(name: str, codes: Mapping[str, str]) -> Declared:
    texts = list(codes)
    if all(NUMBER.fullmatch(code) for code in texts):
        texts.sort(key=float)
    return Declared(name, "categorical", tuple(texts), pairs(codes.items()))
