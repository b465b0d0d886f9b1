"""Codebooks: public lists of codes in groups, which a column can use as its hierarchy.

A book declares all of its codes. A column that uses a book always lists all of them, because a list of only the codes
in the table would reveal which codes are absent. The data files are next to this module; ``docs/dictionaries.md``
states the source and licence of each.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

from espalier.core.errors import SchemaError

_FOLDER = Path(__file__).with_name("data")

Leaf = Callable[["CodeBook", str], str]
"""Function that maps a text to a code of a book, or to an empty string if there is none."""


@dataclass(frozen=True)
class CodeBook:
    """A public list of codes in groups.

    ``groups`` maps each code and group to its group, or to an empty string at the top. ``labels`` names codes and
    groups. ``digest`` identifies the contents. ``_leaf`` is the rule that finds the book's code for a longer code
    (``250.43`` belongs to ``249-259``). It depends only on that code and on this book.

    >>> from espalier.core.code_books import code_book
    >>> book = code_book("us-states")
    >>> book.groups["CA"], book.labels["CA"]
    ('Pacific', 'California')
    """

    name: str
    title: str
    source: str
    licence: str
    groups: Mapping[str, str]
    labels: Mapping[str, str]
    digest: str
    _leaf: Leaf = field(repr=False)

    @cached_property
    def codes(self) -> tuple[str, ...]:
        """Codes without members, in the book's order."""
        inner = set(self.groups.values())
        return tuple(code for code in self.groups if code not in inner)

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.codes)

    def leaf(self, text: str) -> str:
        """Return the book's code for ``text``, or an empty string if there is none."""
        return text if text in self._known else self._leaf(self, text)

    @property
    def by_rule(self) -> bool:
        """True if the book has a rule for text that is not among its codes."""
        return self._leaf is not _exact


def _exact(book: CodeBook, text: str) -> str:  # noqa: ARG001
    return ""


def _first_three(book: CodeBook, text: str) -> str:
    """Return the first three characters of an ICD-10-CM code or a NUTS region: its category."""
    head = text[:3]
    return head if re.fullmatch(r"[A-Z0-9]{3}\.?[A-Z0-9]{0,4}", text) and head in book._known else ""


_ICD9 = re.compile(r"(\d{1,3})(?:\.\d{0,2})?|(\d{3})\d{1,2}|(V\d\d)(?:\.?\d{0,2})|(E\d{3})(?:\.?\d?)", re.ASCII)


def _icd9_block(book: CodeBook, text: str) -> str:
    """Return the block that contains the category of an ICD-9-CM code.

    Files often omit leading zeros if a code has a point or at most three digits: ``8`` is category 008.
    """
    found = _ICD9.fullmatch(text)
    if not found:
        return ""
    category = (found[1] or "").zfill(3) if found[1] else found[2] or found[3] or found[4]
    for code in book.codes:
        first, _, last = code.partition("-")
        if len(first) == len(category) and first <= category <= last:
            return code
    return ""


@dataclass(frozen=True)
class _Entry:
    title: str
    source: str
    licence: str
    leaf: Leaf


_CDC = "US public domain (National Center for Health Statistics and Centers for Medicare & Medicaid Services)"
_CLDR = "ISO 3166-1 codes; names and regions of Unicode CLDR (the regions follow UN M49)"
_UNICODE = "Unicode License v3, © Unicode, Inc."
_ENTRIES: Mapping[str, _Entry] = {
    "icd-9-cm": _Entry(
        "ICD-9-CM diagnoses: blocks in chapters", "ICD-9-CM, tabular list, 2011 to 2015", _CDC, _icd9_block
    ),
    "icd-10-cm": _Entry(
        "ICD-10-CM diagnoses: categories in blocks in chapters",
        "ICD-10-CM, tabular list of April 2026",
        _CDC,
        _first_three,
    ),
    "iso-3166": _Entry("Countries (two-letter codes) in regions of the world", _CLDR, _UNICODE, _exact),
    "iso-3166-alpha-3": _Entry("Countries (three-letter codes) in regions of the world", _CLDR, _UNICODE, _exact),
    "nuts": _Entry(
        "Regions of the European Union: NUTS 1 in countries",
        "NUTS 2021, levels 0 and 1, Eurostat",
        "Reuse is allowed with attribution: © European Union, Eurostat",
        _first_three,
    ),
    "us-states": _Entry(
        "States of the United States and the District of Columbia, in census divisions and regions",
        "US Census Bureau, regions and divisions",
        "US public domain",
        _exact,
    ),
}
CODE_BOOKS = tuple(_ENTRIES)
"""Names of the books that come with Espalier."""


@cache
def code_book(name: str) -> CodeBook:
    """Return the book called ``name``; raise :class:`SchemaError` if there is none."""
    if name not in _ENTRIES:
        raise SchemaError(f"there is no codebook {name!r}; the books are {', '.join(CODE_BOOKS)}", key="code_book")
    entry, data = _ENTRIES[name], (_FOLDER / f"{name}.csv").read_bytes()
    rows = list(csv.DictReader(io.StringIO(data.decode(), newline="")))
    return CodeBook(
        name,
        entry.title,
        entry.source,
        entry.licence,
        {row["code"]: row["group"] for row in rows},
        {row["code"]: row["label"] for row in rows if row["label"]},
        "sha256:" + hashlib.sha256(data).hexdigest(),
        entry.leaf,
    )


def checked_book(name: str, digest: str) -> CodeBook:
    """Return the book called ``name`` if it still has this digest; raise :class:`SchemaError` otherwise."""
    book = code_book(name)
    if book.digest != digest:
        raise SchemaError(
            f"the codebook {name!r} has changed since this project was written. Choose the book again, so that "
            "the project refers to its current contents",
            key="code_book",
        )
    return book
