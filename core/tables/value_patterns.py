"""Patterns that a guess recognises in a column's values: ranges, yes and no, dates, number styles, names and
identifiers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import date

from espalier.core.project.date_orders import DATE_ORDERS
from espalier.core.project.dates import DateBins, Period, day_number
from espalier.core.project.numerals import STYLES, plain_number
from espalier.core.project.schema import NUMBER

LONGEST_RANGE = 100
"""Maximum number of characters of a range. The time that a pattern takes may grow with the square of the length."""
_N = r"[$€£¥]?\s?([+-]?(?:\d{1,3}(?:[, \u00a0\u202f']\d{3}){1,5}|\d+)(?:\.\d+)?)"
_UNIT = r"(?:\s*[A-Za-zµ%/²³€£$]+\.?)?"
_BETWEEN = re.compile(rf"[\[(]?\s*{_N}\s*(?:-|–|—|to|until|bis|à|,|;|\.\.)\s*<?{_N}\s*[\])]?{_UNIT}", re.IGNORECASE)
_ABOVE = re.compile(
    rf"(?:(>=?|≥|over|above|more than|greater than|older than|from|at least|über|ab|plus de)\s*{_N}{_UNIT}|"
    rf"{_N}\s*(\+){_UNIT})",
    re.IGNORECASE,
)
_OLDER = re.compile(rf"{_N}{_UNIT}\s+(?:and|or)\s+(?:over|above|older|more)", re.IGNORECASE)
_BELOW = re.compile(
    rf"(?:<=?|≤|under|below|less than|younger than|up to|at most|unter|bis|moins de)\s*{_N}{_UNIT}", re.IGNORECASE
)


def range_order(text: str) -> tuple[float, float] | None:
    """Return the lower and upper end of a range such as ``[0-10)``, ``18 to 25`` or ``>200``; `None` for any other
    text.
    """
    text = text.strip()
    if len(text) > LONGEST_RANGE:
        return None
    if found := _BETWEEN.fullmatch(text):
        low, high = _end(found[1]), _end(found[2])
        return (low, high) if low < high else None
    if found := _ABOVE.fullmatch(text):
        return _end(found[2] or found[3]), math.inf
    if found := _OLDER.fullmatch(text):
        return _end(found[1]), math.inf
    if found := _BELOW.fullmatch(text):
        return -math.inf, _end(found[1])
    return None


def _end(number: str) -> float:
    """Return an end of a range, in which thousands may be separated."""
    return float(re.sub(r"[, \u00a0\u202f']", "", number))


_CALENDAR = (re.compile(r"\d{4}-(0[1-9]|1[0-2])"), re.compile(r"\d{4}[- ]?Q[1-4]"), re.compile(r"\d{3}0s"))
"""Patterns of months, quarters and decades, whose order as text is their order in time."""
_OTHER_DATE = re.compile(
    r"\d{1,2}[./-]\d{1,2}[./-](\d{4}|\d{2})|\d{4}[./]\d{1,2}[./]\d{1,2}|\d{1,2}[- ][A-Za-z]{3,9}[- ,]+\d{4}"
    r"|[A-Za-z]{3,9} \d{1,2},? \d{4}",
)


def periods_in_order(values: Sequence[str]) -> tuple[str, ...] | None:
    """Return the values in their order if all are months, quarters or decades in the same format; `None` otherwise."""
    if len(values) > 1 and any(all(one.fullmatch(v) for v in values) for one in _CALENDAR):
        return tuple(sorted(values))
    return None


def other_dates(values: Sequence[str]) -> bool:
    """Return whether all values look like dates in a format other than ``2024-01-31``, such as ``31.1.2024``."""
    return bool(values) and all(_OTHER_DATE.fullmatch(v.strip()) for v in values)


def ranges_in_order(values: Sequence[str]) -> tuple[str, ...] | None:
    """Return the values in the order of the ranges that they denote; `None` unless all are ranges or single numbers."""
    placed, ranges = [], 0
    for value in values:
        ends = range_order(value)
        ranges += ends is not None
        if ends is None:
            if not NUMBER.fullmatch(value):
                return None
            ends = (float(value), float(value))
        placed.append((ends, value))
    if ranges < 2:
        return None
    return tuple(value for _, value in sorted(placed))


NO_YES = (
    *(("no", "yes"), ("n", "y"), ("false", "true"), ("f", "t"), ("nein", "ja"), ("nee", "ja"), ("nej", "ja")),
    *(("nei", "ja"), ("non", "oui"), ("no", "si"), ("no", "sí"), ("no", "sì"), ("não", "sim"), ("nao", "sim")),
    *(("nie", "tak"), ("ne", "ano"), ("ne", "da"), ("nu", "da"), ("нет", "да"), ("ні", "так"), ("ei", "kyllä")),
    *(
        ("hayır", "evet"),
        ("nem", "igen"),
        ("όχι", "ναι"),
        ("いいえ", "はい"),
        ("否", "是"),
        ("لا", "نعم"),
        ("לא", "כן"),
    ),
)
"""Words for no and yes."""


def no_yes(values: Sequence[str]) -> tuple[str, ...] | None:
    """Return the two values as (no, yes) if they are these words in some language; `None` otherwise."""
    folded = {value.strip().casefold(): value for value in values}
    if len(values) == 2 and len(folded) == 2:
        for no, yes in NO_YES:
            if {no, yes} == set(folded):
                return folded[no], folded[yes]
    return None


def number_style(values: Sequence[str]) -> str:
    """Return the style in which all values are numbers; an empty string if they are plain numbers, or not numbers in
    any style.
    """
    if not values or all(NUMBER.fullmatch(v) for v in values):
        return ""
    return next((s for s in STYLES if all(plain_number(v, s) is not None for v in values)), "")


def two_styles(values: Sequence[str]) -> bool:
    """Return whether commas in the values could mark decimals or separate thousands, as in ``1,234``."""
    return sum(all(plain_number(v, s) is not None for v in values) for s in ("1234,5", "1,234.5")) == 2 and any(
        "," in v for v in values
    )


def leading_zeros(values: Sequence[str]) -> bool:
    """Return whether some value is a whole number with a leading zero, which shows that it is a code."""
    return any(len(v) > 1 and v[0] == "0" and v.isascii() and v.isdigit() for v in values)


PLAUSIBLE = (date(1900, 1, 1).toordinal(), date(2100, 1, 1).toordinal())
"""Values that consist only of digits, such as 20201231, are treated as dates if all of them are between these two days.
"""


def possible_orders(values: Sequence[str]) -> tuple[str, ...]:
    """Return every order of day, month and year in which all values are dates (`espalier.core.project.date_orders`);
    only "" for ISO dates.

    If there are several, only a person can say whether the day or the month comes first.
    """
    if not values or not values[0].strip()[:1].isalnum():
        return ()
    digits = any(v.isdigit() for v in values)
    found = []
    for order in ("", *DATE_ORDERS):
        days = _days(values, order)
        if days and (not digits or (PLAUSIBLE[0] <= min(days) and max(days) < PLAUSIBLE[1])):
            found.append(order)
            if not order:
                break
    return tuple(found)


def _days(values: Sequence[str], order: str) -> list[int]:
    """Return the day of each value; an empty result unless all values are days."""
    days = []
    for value in values:
        day = day_number(value, order)
        if day is None:
            return []
        days.append(day)
    return days


def date_bins(values: Sequence[str], order: str = "") -> DateBins | None:
    """Return months, quarters or years over whole calendar years around the days; `None` unless all values are ISO
    dates or dates in this ``order``.
    """
    found = _days(values, order)
    if len(found) < 2:
        return None
    first, last = date.fromordinal(min(found)).year, date.fromordinal(max(found)).year
    years = last - first + 1
    by: Period = "month" if years <= 5 else "quarter" if years <= 20 else "year"
    if years > 150 or last >= date.max.year:
        return None
    return DateBins(date(first, 1, 1), date(last, 12, 31), by)


_ID_NAME = re.compile(
    r"(^|[_\W])(id|ids|nr|nbr|no|num|number|key|guid|uuid|mrn|ssn|nhs|pid|identifier|barcode|accession|patient|person"
    r"|subject|participant|encounter|case|record|account|passport|license|licence)($|[_\W])"
)
_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")


def named_like_an_id(name: str) -> bool:
    """Return whether a column's name contains a word for an identifier, as in ``patient_nbr`` or ``caseId``."""
    return bool(_ID_NAME.search(_WORDS.sub("_", name).casefold()))


_PERSON_NAME = re.compile(
    r"(^|[_\W])(id|ids|guid|uuid|mrn|ssn|nhs|pid|identifier|patient|person|subject|participant)($|[_\W])"
)


def named_like_a_person(name: str) -> bool:
    """Return whether a column's name contains a word for an identifier of people, such as ``subject``."""
    return bool(_PERSON_NAME.search(_WORDS.sub("_", name).casefold()))


_ID_WORD = re.compile(r"(^|[_\W])(id|ids|guid|uuid|mrn|ssn|nhs|pid|identifier)($|[_\W])")


def named_with_an_id(name: str) -> bool:
    """Return whether a column's name contains a word for an identifier, not just for a person, as in ``patient_id``."""
    return bool(_ID_WORD.search(_WORDS.sub("_", name).casefold()))


_CONTACT = re.compile(
    r"[^@\s]+@[^@\s]+\.[A-Za-z]{2,}|\+\d[\d ()/-]{6,}|\d{3}-\d{2}-\d{4}|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}",
    re.IGNORECASE,
)


def contact(values: Sequence[str]) -> bool:
    """Return whether most values are e-mail addresses, telephone or social security numbers, or UUIDs."""
    return bool(values) and 2 * sum(bool(_CONTACT.fullmatch(v.strip())) for v in values) > len(values)


def amounts(name: str, values: Sequence[str], cells: int) -> bool:
    """Return whether whole numbers that rarely repeat are amounts rather than identifiers.

    Identifiers are all different, or their column has an identifier's name. Numbers of one length with six or more
    digits, and numbers that fill their range without gaps, are assumed to identify rows or people. All others are
    amounts, such as a loan in a currency.
    """
    if named_like_an_id(name) or leading_zeros(values) or len(values) == cells:
        return False
    numbers = [float(v) for v in values]
    one_length = len({len(v.strip()) for v in values}) == 1 and len(values[0].strip()) >= 6
    return not one_length and max(numbers) - min(numbers) + 1 > 1.5 * len(numbers)
