"""Spellings of one category in different engines: 0, 0.0 and "0"; true, True and 1 in a column of Boolean values.

A file writes a whole number as ``0``, a float as ``0.0``, a decimal as ``0.00``, a Boolean value as ``True`` or
``true``; MariaDB returns a Boolean value as 1. A category therefore has additional spellings if all categories of its
column are numbers, or all are Boolean values. In any other column, text is compared as written; among diagnoses,
``250.00`` is not ``250``.

The spellings are a function of the public description, so the code of a cell still depends only on that cell and the
schema. The only change is that readers look up a cell's text in a longer list.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

NUMBER = re.compile(r"(0|-?[1-9][0-9]{0,14}|-?(0|[1-9][0-9]{0,14})\.[0-9]{1,4})", re.ASCII)
"""A number as written in a table, without a leading zero or an exponent."""
DECIMALS = 4
"""Maximum number of decimals in a spelling."""
TRUTH = {"true": 1, "false": 0}


def spellings(texts: Mapping[str, int]) -> tuple[dict[str, int], tuple[str, str] | None]:
    """Return additional spellings with their codes, and two of ``texts`` with the same meaning but different codes.

    >>> spellings({"no": 0, "yes": 1})
    ({}, None)
    >>> sorted(spellings({"false": 0, "true": 1})[0])[:4]
    ['0', '0.0', '0.00', '0.000']
    >>> spellings({"1": 0, "1.0": 1})[1]
    ('1', '1.0')
    """
    truth = all(text.lower() in TRUTH for text in texts)
    if not truth and not all(NUMBER.fullmatch(text) for text in texts):
        return {}, None
    values = {text: Decimal(TRUTH[text.lower()]) if truth else Decimal(text) for text in texts}
    first: dict[Decimal, str] = {}
    found: dict[str, int] = {}
    same = None
    for text, value in values.items():
        other = first.setdefault(value, text)
        if texts[other] != texts[text]:
            same = same or (other, text)
        found |= dict.fromkeys(_of_number(value), texts[other])
    if truth or set(values.values()) <= {Decimal(0), Decimal(1)}:
        for value, text in first.items():
            word = "true" if value else "false"
            found |= dict.fromkeys((word, word.title(), word.upper()), texts[text])
    return {text: code for text, code in found.items() if text not in texts}, same


def _of_number(value: Decimal) -> list[str]:
    least = max(-int(value.normalize().as_tuple().exponent), 0)
    made = [f"{value:.{places}f}" for places in range(least, DECIMALS + 1)]
    return [text for text in made if not text.startswith("-0") or value]
