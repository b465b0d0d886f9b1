"""The common form that every dictionary format is read into. Schemas are made from it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from espalier.core.errors import SchemaError, first_twice
from espalier.core.project.schema import NUMBER

DeclaredKind = Literal["categorical", "ordinal", "numeric", "date", "identifier", "text", "open"]
"""Kinds of columns in dictionaries. "text" is free text; "open" means that the kind is not declared."""

MOST_COLUMNS, MOST_TEXT = 20_000, 10_000
"""Largest number of columns, and longest text in characters."""
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True)
class Declared:
    """A dictionary's declaration of one column.

    ``categories`` is the complete domain; it is empty if the dictionary lists none. ``labels`` may name only some of
    the values, so labels declare no domain. ``missing`` lists codes that count as an empty cell. ``range`` contains the
    smallest and the largest allowed value as written; each may be empty. ``number_style`` is one of
    `espalier.core.project.numerals.STYLES`. ``required`` states that no cell is empty.
    """

    name: str
    kind: DeclaredKind = "open"
    categories: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    missing: tuple[str, ...] = ()
    range: tuple[str, str] = ("", "")
    integer: bool = False
    decimals: int | None = None
    number_style: str = ""
    required: bool = False
    label: str = ""
    unit: str = ""
    description: str = ""


@dataclass(frozen=True)
class Dictionary:
    """A data dictionary: its columns, the name, format and digest of its file, and notes on what was not used."""

    columns: tuple[Declared, ...]
    source: str
    format: str
    digest: str
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [c.name for c in self.columns]
        if not names:
            raise SchemaError(f"{self.source} declares no columns")
        if len(names) > MOST_COLUMNS:
            raise SchemaError(f"{self.source} declares more than {MOST_COLUMNS:,} columns")
        if (twice := first_twice(names)) is not None:
            raise SchemaError(f"{self.source} declares the column {twice!r} twice", column=twice)

    def __contains__(self, name: object) -> bool:
        return any(c.name == name for c in self.columns)

    def __getitem__(self, name: str) -> Declared:
        return next(c for c in self.columns if c.name == name)


def digest_of(data: bytes) -> str:
    """Return the digest of a dictionary's file."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def plain(text: str) -> str:
    """Return a label on one line, without control characters, and no longer than `MOST_TEXT` characters."""
    shown = "".join(c if c.isprintable() or c.isspace() else " " for c in text)
    return _SPACE.sub(" ", shown).strip()[:MOST_TEXT]


def code_text(value: object) -> str:
    """Return a code as a table would write it: whole numbers without a decimal point."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


SEVERAL = 5
"""With at least this many labelled whole numbers, gaps between them count as codes that do not exist."""
MANY = 20
"""At least this many labelled whole numbers are a complete list, however far apart they are: special values are few."""
NOT_A_VALUE = re.compile(
    r"\b(missing|niu|n\.i\.u|not in universe|refus\w*|don.?t know|do not know|not applicable|no answer"
    r"|not asked|unknown|not stated|inapplicable|not ascertained|no response|not reported|skip\w*)\b",
    re.IGNORECASE,
)
"""Labels of codes that are not values of the scale, even if the file does not declare them as missing."""


def declares_all(codes: Sequence[str], labels: Mapping[str, str]) -> bool:
    """Return whether the labelled codes are clearly a complete list.

    A list of texts is complete, and so are consecutive whole numbers from 0 or 1. At least `SEVERAL` whole numbers that
    fill a quarter of their range are complete too, such as codes of states. So are at least `MANY` whole numbers that
    all have a label, such as codes of occupations.

    Labels on only some codes declare no domain: ``0 = never`` and ``90 = 90 or more`` do not declare the values between
    them, and neither do labels on the ends of a scale. Codes such as ``9 = no answer`` may follow after a gap.
    """
    if len(codes) < 2:
        return False
    if not all(NUMBER.fullmatch(code) for code in codes):
        return True
    scale = sorted(float(c) for c in codes if not NOT_A_VALUE.search(labels.get(c, "")))
    if len(scale) < 2 or not all(map(float.is_integer, scale)):
        return False
    follow = scale[0] in (0, 1) and scale[-1] - scale[0] == len(scale) - 1
    dense = len(scale) >= SEVERAL and scale[-1] - scale[0] < 4 * len(scale)
    return follow or dense or (len(scale) >= MANY and all(labels.get(code) for code in codes))


def pairs(items: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return labels without empty ones, each code once."""
    return tuple({code: plain(label) for code, label in items if code and plain(label)}.items())
