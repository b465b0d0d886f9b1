"""Common representation of dictionaries in all formats, from which schemas are made."""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Literal

from espalier.core.errors import SchemaError, first_twice

DeclaredKind = Literal["categorical", "ordinal", "numeric", "date", "identifier", "text", "open"]
"""Kinds of columns in dictionaries. "text" is free text; "open" means that the kind is not declared."""

MOST_COLUMNS, MOST_TEXT = 20_000, 10_000
"""Maximum number of columns, and maximum length of a text in characters."""
MOST_CELLS, MOST_NOTES, SHORT = 16_384, 1_000, 200
"""Maximum number of cells in a line, maximum number of notes, and maximum length of a name in a note, in characters."""
MOST_MARKS = 50
"""Maximum number of missing codes into which a range of whole numbers is expanded."""
YES = {"y", "yes", "true", "1", "x"}
"""Words for yes in dictionaries."""
DELIMITERS = ",;\t|"
"""Delimiters of CSV files."""
_SPACE = re.compile(r"\s+")
_SEP = re.compile(r"sep=", re.IGNORECASE)
_QUOTED = re.compile(r'"[^"]*"')
_START, _FIRST = 1 << 16, 10
"""Number of characters, and of lines, that are searched for the delimiter."""


@dataclass(frozen=True)
class Declared:
    """A dictionary's declaration of one column.

    ``categories`` is the complete domain. It is empty if the dictionary lists none. ``labels`` may name only some of
    the values, so labels declare no domain. ``missing`` lists codes that mean an empty cell. ``range`` contains the
    smallest and the largest allowed value as written. Each may be empty. ``number_style`` is one of
    `espalier.core.project.numerals.STYLES`. ``required`` states that no cell is empty. ``spellings`` lists other
    spellings of a code, such as ``TRUE`` for ``true``.
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
    spellings: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True)
class Dictionary:
    """A data dictionary: its columns, the name and format of its file, and notes on what was not used."""

    columns: tuple[Declared, ...]
    source: str
    format: str
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [c.name for c in self.columns]
        if not names:
            raise SchemaError(f"{self.source} declares no columns")
        if len(names) > MOST_COLUMNS:
            raise SchemaError(f"{self.source} declares more than {MOST_COLUMNS:,} columns")
        if (twice := first_twice(names)) is not None:
            raise SchemaError(f"{self.source} declares the column {twice!r} twice", column=twice)

    @cached_property
    def digest(self) -> str:
        """Digest of the declarations. The digest is part of a release.

        A digest of the file would also cover rows and counts that the file may contain, so anyone could use it to test
        a guess about one row.
        """
        declared = json.dumps([asdict(column) for column in self.columns], sort_keys=True)
        return "sha256:" + hashlib.sha256(declared.encode()).hexdigest()

    def __contains__(self, name: object) -> bool:
        return any(c.name == name for c in self.columns)

    def __getitem__(self, name: str) -> Declared:
        return next(c for c in self.columns if c.name == name)


def text_of(data: bytes) -> str:
    """Return the text of a file: UTF-16 with its byte order mark, UTF-8, or else Windows-1252."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def csv_lines(text: str, source: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of each line that is not empty; raise :class:`SchemaError`.

    Excel's line ``sep=;`` is skipped.
    """
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text))
    begun = False
    try:
        for cells in reader:
            begun = begun or bool(cells and not _SEP.match(cells[0]))
            if len(cells) > MOST_CELLS:
                raise SchemaError(f"{source}, line {reader.line_num}: more than {MOST_CELLS:,} cells")
            if begun and any(cell.strip() for cell in cells):
                yield reader.line_num, [cell.strip() for cell in cells]
    except csv.Error as error:
        raise SchemaError(f"{source}, line {reader.line_num}: {error}") from None


def _delimiter(text: str) -> str:
    """Return the delimiter that most of the first lines contain, or else the most frequent one in the first line.
    Quoted cells, lines that consist only of delimiters, Excel's line ``sep=;`` and comments are ignored.
    """
    shown = _QUOTED.sub("q", text[:_START]).splitlines()
    lines = [x for x in shown if x.strip(DELIMITERS + " ") and not _SEP.match(x) and x[0] != "#"][:_FIRST]
    return max(DELIMITERS, key=lambda mark: (sum(mark in x for x in lines), lines[0].count(mark) if lines else 0))


def add_note(notes: list[str], about: str, text: str) -> None:
    """Add a note about a column, up to `MOST_NOTES`, because a crafted file may cause very many."""
    if len(notes) < MOST_NOTES:
        notes.append(f"{about[:SHORT]}: {text[:MOST_TEXT]}")


def once_each(found: Iterable[tuple[object, Declared]], notes: list[str]) -> tuple[Declared, ...]:
    """Return the columns of several files or tables, each once. The first description is used.

    ``found`` names the file of each column. A column that one file declares twice remains listed twice and is refused.
    """
    columns: list[Declared] = []
    first: dict[str, tuple[object, Declared]] = {}
    for file, column in itertools.islice(found, MOST_COLUMNS + 1):
        before, other = first.setdefault(column.name, (file, column))
        if other is column or before == file:
            columns.append(column)
        elif replace(other, label="", description="") != replace(column, label="", description=""):
            add_note(notes, column.name, "described differently for several files; the first description was used")
    return tuple(columns)


def letters(text: str) -> str:
    """Return the letters and digits of a heading without accents, because spellings vary: ``Field.Type``,
    ``field_type``.
    """
    return "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if c.isalnum())


def plain(text: str) -> str:
    """Return a label on one line, without control characters, and no longer than `MOST_TEXT` characters."""
    shown = "".join(c if c.isprintable() or c.isspace() else " " for c in text)
    return _SPACE.sub(" ", shown).strip()[:MOST_TEXT]


def code_text(value: object) -> str:
    """Return a code as a table would write it: whole numbers without a decimal point."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


def pairs(items: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return the labels that are not empty, each code once."""
    return tuple({code: plain(label) for code, label in items if code and plain(label)}.items())
