"""Styles of numbers in a table: with a decimal comma, with thousands separators, or plain."""

from __future__ import annotations

import re

_SIGN, _POWER = r"\s*([+-]?)", r"\s*"
_STYLES = {
    "1234,5": (re.compile(rf"{_SIGN}(\d+(?:,\d+)?|,\d+){_POWER}", re.ASCII), ""),
    "1,234.5": (re.compile(rf"{_SIGN}(\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+(?:\.\d+)?){_POWER}", re.ASCII), ","),
    "1.234,5": (re.compile(rf"{_SIGN}(\d{{1,3}}(?:\.\d{{3}})+(?:,\d+)?|\d+(?:,\d+)?){_POWER}", re.ASCII), "."),
    "1 234,5": (
        re.compile(rf"{_SIGN}(\d{{1,3}}(?:[ \u00a0\u202f]\d{{3}})+(?:,\d+)?|\d+(?:,\d+)?){_POWER}"),
        " \u00a0\u202f",
    ),
    "1'234.5": (re.compile(rf"{_SIGN}(\d{{1,3}}(?:['’]\d{{3}})+(?:\.\d+)?|\d+(?:\.\d+)?){_POWER}"), "'’"),
}
"""Pattern of a number and characters that separate thousands, by style."""

STYLES = tuple(_STYLES)
"""Styles, each illustrated by the number 1234.5."""


def plain_number(text: str, style: str) -> str | None:
    """Return ``text`` with a decimal point and without separators; `None` if it is not a number in this style."""
    pattern, separators = _STYLES[style]
    found = pattern.fullmatch(text)
    if not found:
        return None
    digits = "".join(c for c in found[2] if c not in separators)
    if not digits.isascii():
        return None
    return found[1] + digits.replace(",", ".")
