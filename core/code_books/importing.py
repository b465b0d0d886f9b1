"""Codebooks from the user's own file: ATC and WHO ICD-10, which Espalier may not ship, or any other table of codes.

The result is a hierarchy for the project file and a label for each code. Nothing else in the file is kept.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element

from espalier.core.errors import SchemaError, first_twice

ATC_LEVELS = (1, 3, 4, 5, 7)
"""Lengths of ATC codes, from anatomical main group to substance."""
MOST_BYTES, MOST_CODES = 64 << 20, 200_000


@dataclass(frozen=True)
class OwnBook:
    """A codebook from a user's file. ``groups`` maps each code and group to its group, or to an empty string at the
    top; ``labels`` names them.
    """

    groups: Mapping[str, str]
    labels: Mapping[str, str]


def read_own_book(data: bytes, *, atc: bool = False) -> OwnBook:
    """Return the book in a file: ClaML (XML of the WHO), or a table with the columns code, label and optionally group.

    With ``atc`` the groups follow from the lengths of the codes. Raises :class:`SchemaError`.
    """
    if len(data) > MOST_BYTES:
        raise SchemaError(f"the codebook is larger than {MOST_BYTES >> 20} MiB")
    rows = list(_claml(data) if data.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"<") else _table(data))
    if not rows:
        raise SchemaError("the codebook is empty: write a line for each code, such as A10BA02,metformin")
    if len(rows) > MOST_CODES:
        raise SchemaError(f"the codebook has more than {MOST_CODES:,} codes")
    known = {code for code, _, _ in rows}
    if (twice := first_twice(code for code, _, _ in rows)) is not None:
        raise SchemaError(f"the codebook lists {twice!r} twice")
    if atc:
        rows = [(code, label, _atc_group(code, known)) for code, label, _ in rows]
    for code, _, group in rows:
        if group and group not in known:
            raise SchemaError(f"the codebook assigns {code!r} to the group {group!r}, which it does not list")
    return OwnBook({code: group for code, _, group in rows}, {code: label for code, label, _ in rows if label})


def _atc_group(code: str, known: set[str]) -> str:
    """Return the longest ATC code above ``code`` that the file lists."""
    if len(code) not in ATC_LEVELS:
        raise SchemaError(f"{code!r} is not an ATC code; ATC codes have 1, 3, 4, 5 or 7 characters")
    return next((code[:n] for n in reversed(ATC_LEVELS) if n < len(code) and code[:n] in known), "")


def _table(data: bytes) -> Iterator[tuple[str, str, str]]:
    """Yield the code, label and group in each line of a table with a header."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SchemaError("the codebook is not UTF-8 text") from None
    first = text.splitlines()[0] if text else ""
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count))
    rows = _lines(lines)
    header = [cell.strip().casefold() for cell in next(rows, [])]
    if "code" not in header:
        raise SchemaError("a codebook needs a header with the columns code, label and optionally group")
    places = [header.index(name) if name in header else None for name in ("code", "label", "group")]
    for line in rows:
        cells = ["" if at is None or at >= len(line) else line[at].strip() for at in places]
        if any(cells):
            if not cells[0]:
                raise SchemaError(f"line {lines.line_num} of the codebook has no code", line=lines.line_num)
            yield cells[0], cells[1], cells[2]


def _lines(lines: Any) -> Iterator[list[str]]:
    try:
        yield from lines
    except csv.Error as error:
        raise SchemaError(f"line {lines.line_num} of the codebook: {error}") from None


def _claml(data: bytes) -> Iterator[tuple[str, str, str]]:
    """Yield the code, label and group of each class in a ClaML file, without modifiers."""
    from espalier.core.xml_text import read_xml

    for one in read_xml(data, "the codebook").iterfind("Class"):
        code = one.get("code", "")
        if code:
            above = one.find("SuperClass")
            yield code, _preferred(one), "" if above is None else above.get("code", "")


def _preferred(one: Element) -> str:
    for rubric in one.iterfind("Rubric"):
        label = rubric.find("Label")
        if rubric.get("kind") == "preferred" and label is not None:
            return " ".join("".join(label.itertext()).split())
    return ""
