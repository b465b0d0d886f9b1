"""The dictionary that every format is read into, and that the schema of a project is made from."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from espalier.core.errors import SchemaError, first_twice
from espalier.core.project.schema import NUMBER

DeclaredKind = Literal["categorical", "ordinal", "numeric", "date", "identifier", "text", "open"]
"""What a dictionary says about a column. "text" is free text; "open" says nothing."""

MOST_COLUMNS, MOST_TEXT = 20_000, 10_000
"""Largest numbers of columns, and of characters of one text."""
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True)
class Declared:
    """What a dictionary declares about one column.

    ``categories`` is the complete domain; it is empty if the dictionary lists none. ``labels`` names values, which may
    be only some of them: they declare no domain. ``missing`` are codes that count as an empty cell. ``range`` holds the
    smallest and the largest allowed value as written, and each may be empty.
    ``number_style`` is one of `espalier.core.project.numerals.STYLES`.
    ``required`` says that no cell is empty.
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
    """A data dictionary as it was read: its columns, the file's name, format and digest, and what was not used."""

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
    """Return a code as the cell of a table is written: whole numbers without a point."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


SEVERAL = 5
"""Labelled whole numbers from which gaps between them are taken for codes that do not exist."""
MANY = 20
"""Labelled whole numbers that are a complete list however far apart they are: only a few special values get labels."""
NOT_A_VALUE = re.compile(
    r"\b(missing|niu|n\.i\.u|not in universe|refus\w*|don.?t know|do not know|not applicable|no answer"
    r"|not asked|unknown|not stated|inapplicable|not ascertained|no response|not reported|skip\w*)\b",
    re.IGNORECASE,
)
"""Labels of codes that are no values of the scale, though a file need not declare them as missing."""


def declares_all(codes: Sequence[str], labels: Mapping[str, str]) -> bool:
    """Whether labelled codes are plainly a complete list.

    A list of texts is complete, and so are whole numbers that follow each other from 0 or 1. At least `SEVERAL` whole
    numbers that fill a quarter of their range are complete too, such as codes of states. So are at least `MANY` whole
    numbers that all have a label, such as codes of occupations.

    Labels on some codes declare no domain: ``0 = never`` and ``90 = 90 or more`` leave open what is between them, as
    do labels on the ends of a scale. Codes such as ``9 = no answer`` may follow after a gap.
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
