"""CSV text read line by line, so that no row changes how another row is read.

The header line alone determines the delimiter, the kind of line break and the names. Every line after it is one row.

Proof. A line is refused if it is empty, contains a zero byte or a line break of another kind, does not consist of
well-formed fields (`_fields`), or has a different number of fields from the header. Each check reads one line. In a
line that passes, every quote that opens a field is closed in the same line. A parser that starts a line outside quotes
therefore ends it outside quotes; by induction, it starts every line outside quotes. Bytes that are not UTF-8 are
decoded cell by cell. An accepted file therefore has exactly one row for each line, in order. Each row is a function of
its line and the header, and equal bytes in two cells of a column decode to equal text. If a line were decoded as a
whole, an invalid byte in one cell could change an accented letter in the identifier, and one person would become two.
Different bytes may decode to the same text, such as é in UTF-8 and in Latin-1. A person column with a cell that is not
UTF-8 is therefore refused, because two people would become one.

Line breaks inside quotes would break this property. A person with two rows could open a quote in one and close it in
the other, and all rows between them would become one value. UTF-16 would break it too: two rows of odd length shift
every byte between them.
"""

from __future__ import annotations

import csv
import itertools
import re
from functools import cache

from espalier.core.errors import TableError

DELIMITERS = "\t;|,"
"""Delimiters in the order in which they are tried; the first wins a tie."""
_LETTER = re.compile(rb"[\xc2-\xf4][\x80-\xbf]")
"""First two bytes of a letter in UTF-8. Without them, no cell with other bytes than ASCII is UTF-8."""


def refused(shown: str, line: int, what: str) -> TableError:
    """Return the error for one line, numbered from 1. The message quotes nothing from the line."""
    return TableError(f"{shown}, line {line}: {what}", row=line)


def plain_lines(data: bytes, shown: str) -> tuple[bytes, set[int]]:
    """Return the text as UTF-8 with line feeds and without a byte-order mark. Latin-1 is accepted; binary data is
    refused.

    Also return the positions of the columns that have a cell that is not UTF-8.

    The header determines the line break: a carriage return alone, or else a line feed, which may follow a carriage
    return. A header line or cell that is not UTF-8 is read as Latin-1.
    """
    if not data.strip():
        raise TableError(f"{shown} is empty; it needs a header line and at least one row")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise TableError(
            f"{shown} is UTF-16 text, in which one damaged row changes how others are read; save it as UTF-8 "
            "('CSV UTF-8' in Excel)"
        )
    text = data
    while text.startswith(b"\xef\xbb\xbf"):  # joined files may contain several byte-order marks
        text = text[3:]
    first = re.search(rb"\r?\n|\r", text)
    kind, other = (b"\r", b"\n") if first and first[0] == b"\r" else (b"\n", b"\r")
    if kind == b"\n":
        text = text.replace(b"\r\n", b"\n")
    if (at := text.find(b"\x00")) >= 0:
        line = text.count(kind, 0, at) + 1
        raise refused(shown, line, "a zero byte, so this is binary data, not text; use CSV, Parquet or Excel")
    if (at := text.find(other)) >= 0:
        what = "carriage return" if other == b"\r" else "line feed"
        raise refused(
            shown,
            text.count(kind, 0, at) + 1,
            f"a {what} in this line, but the header line ends in a different line break; use one kind throughout, and "
            "none inside values",
        )
    text = text.replace(b"\r", b"\n")
    odd = set[int]()
    if _is_utf8(text):
        return text, odd
    head, *lines = text.split(b"\n")
    head = _as_utf8(head)
    delimiter = header_names(head, shown)[1]
    mark = delimiter.encode()
    cells = re.compile(rb"(?:\A|" + re.escape(delimiter).encode() + rb")" + _field(delimiter))

    def read(line: bytes) -> bytes:
        place = itertools.count()

        def cell(found: re.Match[bytes]) -> bytes:
            at = next(place)
            if not _is_utf8(found[0]):
                odd.add(at)
            return _as_utf8(found[0])

        if line.isascii() or _is_utf8(line):
            return line
        if b'"' in line or _LETTER.search(line):
            return cells.sub(cell, line)
        odd.update(at for at, part in enumerate(line.split(mark)) if not part.isascii())  # faster than the pattern
        return line.decode("latin-1").encode()

    return b"\n".join([head, *map(read, lines)]), odd


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _as_utf8(text: bytes) -> bytes:
    return text if _is_utf8(text) else text.decode("latin-1").encode()


def _field(delimiter: str) -> bytes:
    """Return the pattern of one field: fully quoted, with each quote inside it doubled, or without a quote."""
    return rb'(?:"(?:[^"\n]|"")*+"|[^"\n' + re.escape(delimiter).encode() + rb"]*+)"


@cache
def _fields(delimiter: str) -> re.Pattern[bytes]:
    """Return the longest prefix of a line that consists of well-formed fields."""
    d, field = re.escape(delimiter).encode(), _field(delimiter)
    return re.compile(field + rb"(?:" + d + field + rb")*+")


def check_lines(text: bytes, delimiter: str, shown: str) -> None:
    """Refuse an empty line, and a line with a misplaced quote."""
    if (at := text.find(b"\n\n")) >= 0:
        raise refused(
            shown,
            text.count(b"\n", 0, at) + 2,
            'this line is empty; remove it (write a single empty cell as "")',
        )
    fields, at = _fields(delimiter), text.find(b'"')
    while at >= 0:  # skip to the next line with a quote
        start = text.rfind(b"\n", 0, at) + 1
        end = text.find(b"\n", at)
        end = len(text) if end < 0 else end
        found = fields.match(text, start, end)
        stop = found.end() if found else start
        if stop < end:
            before = text[stop - 1 : stop] if stop > start else delimiter.encode()
            if text[stop : stop + 1] != b'"':
                what = "text after a closing quote"
            elif before == delimiter.encode():
                what = "a quote is opened but not closed in the same line"
            else:
                what = "a quote inside a value that is not in quotes"
            raise refused(
                shown,
                text.count(b"\n", 0, start) + 1,
                f"{what}. Put such a value in quotes, and double the quotes inside it. If a value contains line "
                "breaks, replace them with spaces, or use Parquet or Excel",
            )
        at = text.find(b'"', end)


def header_names(text: bytes, shown: str) -> tuple[list[str], str]:
    """Return the column names and the delimiter from the header alone. The delimiter is a tab if there is one, else the
    most frequent candidate.
    """
    head = text.partition(b"\n")[0]
    if not head:
        raise refused(shown, 1, "this line is empty, where the header should be")
    best: list[str] = []
    chosen = ","
    for delimiter in DELIMITERS:
        if not _fields(delimiter).fullmatch(head):
            continue
        try:
            row = next(csv.reader([head.decode()], delimiter=delimiter))
        except csv.Error:  # a name longer than 128 kB
            continue
        if len(row) > len(best):
            best, chosen = row, delimiter
        if delimiter == "\t" and len(row) > 1:
            break
    if not best:
        raise refused(shown, 1, "the quotes in the header do not match, or a name is too long")
    return best, chosen
