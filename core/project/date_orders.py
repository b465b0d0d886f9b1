"""Reading days that are not written as ISO dates: ``31.12.2020``, ``12/31/2020``, ``5 Jan 2020``,
``05JAN2020:10:30:00``.

A column's ``date_order`` states which of day, month and year comes first. Separators, month names and times are
recognised in each cell separately. Years have four digits, and months are numbers or English names.
"""

from __future__ import annotations

import re
from typing import NamedTuple

DATE_ORDERS = {
    "dmy": "31.12.2020, 31/12/2020 or 31 Dec 2020",
    "mdy": "12/31/2020, 12-31-2020 or Dec 31, 2020",
    "ymd": "2020/12/31, 2020.12.31 or 20201231",
}
"""Each order with its spellings. ISO dates are read in every order."""

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
BLANK = "[ \t\n\r\f\v]"
TIME = "(,?[T :] ?([0-9]{1,2}):([0-9]{2}[^ \t\n\r\f\v]*)( [AaPp][Mm])?)?"


def month_pattern(name: str) -> str:
    """Return the pattern of a month's name or its first three letters, in any case."""
    letters = [f"[{c.upper()}{c.lower()}]" for c in name]
    rest = "".join(letters[3:])
    also = f"|{letters[3]}" if name == "September" else ""
    return "".join(letters[:3]) + (f"(?:{rest}{also})?" if rest else "")


_DAY, _YEAR, _GAP = "([0-9]{1,2})", "([0-9]{4})", "(?:[.,/-] ?| )"
_NAMED = "(" + "|".join(map(month_pattern, MONTHS)) + ")"


class Spelling(NamedTuple):
    """A pattern without anchors, and the numbers of its groups for year, month and day."""

    pattern: str
    year: int
    month: int
    day: int


SPELLINGS: dict[str, tuple[Spelling, ...]] = {
    "dmy": (
        Spelling(f"{_DAY}{_GAP}{_DAY}{_GAP}{_YEAR}{TIME}", 3, 2, 1),
        Spelling(f"{_DAY}{_GAP}?{_NAMED}{_GAP}?{_YEAR}{TIME}", 3, 2, 1),
    ),
    "mdy": (
        Spelling(f"{_DAY}{_GAP}{_DAY}{_GAP}{_YEAR}{TIME}", 3, 1, 2),
        Spelling(f"{_NAMED}{_GAP}?{_DAY}{_GAP}{_YEAR}{TIME}", 3, 1, 2),
    ),
    "ymd": (
        Spelling(f"{_YEAR}{_GAP}{_DAY}{_GAP}{_DAY}{TIME}", 1, 2, 3),
        Spelling(f"{_YEAR}{_GAP}?{_NAMED}{_GAP}?{_DAY}{TIME}", 1, 2, 3),
        Spelling(f"{_YEAR}([0-9]{{2}})([0-9]{{2}}){TIME}", 1, 2, 3),
    ),
}
"""Spellings of each order: months as numbers, months by name, and digits alone. At most one spelling fits a text."""

_COMPILED = {
    order: [(re.compile(f"{BLANK}*{s.pattern}{BLANK}*"), s) for s in spellings]
    for order, spellings in SPELLINGS.items()
}
_MOMENT = re.compile(
    f"{BLANK}*([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})(?:[T ]([0-9]{{2}}:[0-9]{{2}}[^ \t\n\r\f\v]*))?{BLANK}*"
)
"""ISO date with or without a time of day."""
_NUMBER_OF = {name[:3].lower(): i for i, name in enumerate(MONTHS, 1)}


def iso_text(text: str, order: str) -> str:
    """Return ``text`` as an ISO date with its time of day; unchanged if it has no spelling of this order.

    >>> iso_text("5 Jan 2020, 9:30 PM", "dmy")
    '2020-01-05T21:30'
    """
    for pattern, spelling in _COMPILED[order]:
        if found := pattern.fullmatch(text):
            month = found[spelling.month]
            number = int(month) if month.isdigit() else _NUMBER_OF[month[:3].lower()]
            day = f"{found[spelling.year]}-{number:02d}-{int(found[spelling.day]):02d}"
            return f"{day}T{_time(found[5], found[6], found[7] or '')}" if found[4] else day
    return text


def sortable(text: str, order: str) -> str:
    """Return a date with its time of day in one spelling, so that earlier moments sort first as text; unchanged if
    ``text`` is not a date.

    >>> sortable(" 2020-01-05 09:30", "dmy"), sortable("05.01.2020 10:00", "dmy")
    ('2020-01-05T09:30', '2020-01-05T10:00')
    """
    iso = iso_text(text, order)
    found = _MOMENT.fullmatch(iso)
    if found is None:
        return iso
    return f"{found[1]}T{found[2]}" if found[2] else found[1]


def _time(hour: str, rest: str, half: str) -> str:
    """Return a time of day on the 24-hour clock; ``half`` is AM or PM and may be part of ``rest``."""
    half = half or rest[-2:]
    if half.strip().upper() not in ("AM", "PM"):
        return f"{int(hour):02d}:{rest}"
    return f"{int(hour) % 12 + 12 * (half.strip().upper() == 'PM'):02d}:{rest.removesuffix(half)}"
