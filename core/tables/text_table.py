"""Table as text: its columns, the text of each cell, and checks of its names.

A person column must not mix types that may give two people the same text (:attr:`TextColumn.ambiguous`).
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import TableError
from espalier.core.project.schema import MISSING, smallest_unsigned
from espalier.core.tables.digest import mixed

MAX_CELLS = 200_000_000
MAX_COLUMNS = 1 << 14
"""Maximum number of columns in a table, which is also Excel's limit."""
WHOLE_FLOATS = {16: 2.0**11, 32: 2.0**24, 64: 2.0**53}
"""Smallest float to which two whole numbers round, by the number of bits of the float type."""


@dataclass(frozen=True, repr=False)
class TextColumn:
    """A column as text: ``values`` are its distinct text values, and ``codes`` the index of each row's text among them.

    Codes have the smallest unsigned type. Convert them before arithmetic.
    """

    values: tuple[str, ...]
    codes: NDArray[Any]
    ambiguous: bool = False
    """True if cells of several types share the column. One text may then identify two people (the number 7 and the text
    7), or one person may have two text values (the numbers 1E+17 and 100000000000000000). Text together with one other
    type is unambiguous if no text spells a value of that type.

    A type that may lose digits is ambiguous too: dates of 64 bits, and floats to which two whole numbers may be rounded
    (2⁵³ and 2⁵³ + 1). Timestamps, times and durations are ambiguous as well, because formats and libraries round them
    to their own units.
    """

    @classmethod
    def of(cls, cells: Iterable[Any]) -> TextColumn:
        """Build a column from Python values, each converted by :func:`cell_text`."""
        made = Cells()
        for cell in cells:
            made.add(cell)
        return made.column()


class Cells:
    """A growing column of Python values, with one small number per row and each distinct text once."""

    def __init__(self, exact: float = WHOLE_FLOATS[64]) -> None:
        """``exact`` is the smallest float that the column's storage may have rounded from two values."""
        self._exact = exact
        self._place: dict[str, int] = {}
        self._codes = array("i")
        self._texts: set[str] = set()
        """Distinct cells that are already text."""
        self._forms: set[object] = set()
        """Forms of the cells that are neither text nor empty."""
        self.unclear = False
        """True if two people may have the same text although their cells have the same form."""

    def add(self, cell: Any) -> None:
        """Add the next row's cell."""
        text = cell_text(cell)
        self._codes.append(self._place.setdefault(text, len(self._place)))
        if isinstance(cell, str):
            self._texts.add(text)
        elif text != MISSING:
            self._forms.add(_form(cell))
            moment = isinstance(cell, dt.datetime | dt.time | dt.timedelta)  # may already have been rounded
            self.unclear |= moment or (isinstance(cell, float) and abs(cell) >= self._exact)

    def column(self) -> TextColumn:
        """Return the column so far."""
        mixed = len(self._forms) > 1 or (bool(self._forms) and any(map(spells_another_type, self._texts)))
        ambiguous = mixed or self.unclear
        codes = np.array(self._codes, dtype=smallest_unsigned(len(self._place)))
        return TextColumn(tuple(self._place), codes, ambiguous)


def _form(cell: Any) -> object:
    """Return the form of a cell, which is more specific than its type. Equal cells of one form have the same text.

    A whole float below 2⁵³ has the form of a whole number. A decimal's places are part of its form: 7.5 and 7.50 are
    equal, but their text differs.
    """
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return int
    if isinstance(cell, Decimal):
        return cell.as_tuple().exponent, Decimal
    return next(kind for kind in (bool, int, float, dt.date, object) if isinstance(cell, kind))


def spells_another_type(text: str) -> bool:
    """Return whether ``text`` is the text of a number, a Boolean, a date, a timestamp, a time of day or a UUID."""
    if text in ("True", "False"):
        return True
    for read in (int, float, Decimal, dt.date.fromisoformat, dt.datetime.fromisoformat, dt.time.fromisoformat, UUID):
        with suppress(ValueError, ArithmeticError):
            if cell_text(read(text)) == text:
                return True
    return False


@dataclass(frozen=True, repr=False)
class TextTable:
    """A table as read: text columns by name; ``source`` is its name in messages.

    ``origin`` is the kind of relation in the engine's catalogue (`espalier.core.tables.catalogue`); `None` for files.
    """

    columns: dict[str, TextColumn]
    rows: int
    source: str = "the table"
    origin: str | None = None

    @cached_property
    def digest(self) -> bytes:
        """Digest of the rows, 32 bytes, independent of the order of rows and columns. PRIVATE: rows could be guessed
        from it. It leaves this machine only through a keyed fingerprint.

        Each row is the sum of one 64-bit hash per column name and text. The sorted sums are hashed.
        """
        return self.digest_with({})

    def digest_with(self, ranks: Mapping[str, NDArray[np.int64]]) -> bytes:
        """Return the digest of the rows with additional columns, for which only the order of the cells matters.
        PRIVATE.
        """
        sums = np.zeros(self.rows, dtype=np.uint64)
        for name, column in self.columns.items():
            sums += np.array([_hash(name, value) for value in column.values], dtype=np.uint64)[column.codes]
        for name, rank in ranks.items():
            places = np.unique(rank, return_inverse=True)[1].astype(np.uint64)
            sums += mixed(places + np.uint64(_hash(name, "")))
        head = json.dumps([self.rows, sorted([*self.columns, *ranks])]).encode()
        return hashlib.sha256(head + np.sort(sums).astype("<u8").tobytes()).digest()

    def sample(self) -> TextTable:
        """Return the table itself, because its rows are in memory."""
        return self


def _hash(name: str, value: str) -> int:
    """Return a 64-bit hash of a column's name and a text in it."""
    said = f"{len(name)}:{name}{value}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(said, digest_size=8).digest(), "little")


def check_names(names: Sequence[str], shown: str) -> None:
    """Raise :class:`TableError` for a repeated name, and for too many columns."""
    if len(names) > MAX_COLUMNS:
        raise TableError(f"{shown} has {len(names):,} columns; Espalier reads at most {MAX_COLUMNS:,}")
    seen: set[str] = set()
    for name in names:
        if name in seen:
            what = f"names column {name!r} twice" if name else "has more than one column without a name"
            raise TableError(f"the header of {shown} {what}; give each column its own name", column=name)
        seen.add(name)


def cell_text(value: Any) -> str:
    """Return a cell as text: whole numbers without a point, True/False, ISO dates, an empty string for a null."""
    if value is None:
        return MISSING
    if isinstance(value, float):
        if math.isnan(value):
            return MISSING
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, Decimal):
        return MISSING if value.is_nan() else str(value.copy_abs() if value.is_zero() else value)
    if isinstance(value, dt.datetime):
        plain = value.tzinfo is None and not getattr(value, "nanosecond", 0)  # an attribute of pandas timestamps
        return value.date().isoformat() if plain and value.time() == dt.time() else value.isoformat()
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    return str(value)
