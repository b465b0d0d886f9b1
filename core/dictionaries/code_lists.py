"""Code lists (CSV): ``column,code,label`` for many columns, or ``code,label`` for one column named separately."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from espalier.core.dictionaries.base import (
    SHORT,
    YES,
    Declared,
    DeclaredKind,
    Dictionary,
    add_note,
    csv_lines,
    letters,
    pairs,
    plain,
    text_of,
)
from espalier.core.dictionaries.complete_lists import span_of
from espalier.core.dictionaries.headings import WEAK_NAMES, kinds_of, names_codes, names_labels
from espalier.core.errors import SchemaError
from espalier.core.project.schema import NUMBER

MOST_SEEN = 5_000
"""Number of lines that are read to judge the headings."""
MOST_TITLES = 10
"""Number of lines that are searched for the header."""
FEWEST = 2
"""Minimum number of codes for which a column is recognised as a code column."""


def is_code_list(lines: Sequence[Sequence[str]]) -> bool:
    """Return whether these are the first lines of a code list. A code list may have other columns, and a title above
    the header.
    """
    return _start(lines) is not None


def _start(lines: Sequence[Sequence[str]]) -> tuple[int, tuple[str, ...]] | None:
    """Return the position of the header among the first lines, and the meaning of each heading; `None` if there is no
    header.
    """
    first = next((at for at, line in enumerate(lines) if sum(map(bool, line)) > 1 and not _is_comment(line)), 0)
    for at, header in enumerate(lines[:MOST_TITLES]):
        rows = [line for line in lines[at + 1 :] if not _is_comment(line)]
        for kinds in (kinds_of(header), _kinds_by_cells(header, rows) if at == first else ()):
            if kinds.count("code") == 1 and "label" in kinds and kinds.count("column") <= 1:
                named = kinds.index("column") if "column" in kinds else None
                if named is not None and letters(header[named]) in WEAK_NAMES and _all_differ(named, rows):
                    kinds = tuple("label" if kind == "column" else kind for kind in kinds)
                return at, kinds
    return None


def _kinds_by_cells(header: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the meaning of each heading, by a word in it and by the cells below. The code column is the first column
    whose heading contains a word for codes, such as ``country_code``, and whose cells all differ: codes that repeat are
    data. If no heading means a label, a heading with a word for names does, such as ``Country Name``; in a file of two
    columns, the other column contains the labels, as in ``key,value``.
    """
    named = (*kinds_of(header), *("?" for _ in header))
    codes = [at for at, cell in enumerate(header) if names_codes(cell) and _all_differ(at, rows)]
    if not codes:
        return ()
    labels = [at for at in range(len(header)) if named[at] == "label" and at != codes[0]]
    labels += [at for at, cell in enumerate(header) if names_labels(cell) and at not in codes]
    if not labels and len(header) == 2 and _all_differ(1 - codes[0], rows):
        labels = [1 - codes[0]]
    kinds = ["?"] * len(header)
    for at in labels[:1]:
        kinds[at] = "label"
    kinds[codes[0]] = "code"
    return tuple(kinds)


def _all_differ(at: int, rows: Sequence[Sequence[str]]) -> bool:
    """Return whether a column has at least `FEWEST` cells, none of them empty or repeated."""
    cells = [row[at] if at < len(row) else "" for row in rows]
    return len(cells) >= FEWEST and all(cells) and len(set(cells)) == len(cells)


def _is_comment(line: Sequence[str]) -> bool:
    """Return whether a line is a comment: ``# text``, or one cell that starts with ``#``."""
    return line[0].startswith("# ") or (line[0].startswith("#") and not any(line[1:]))


def is_pair_list(lines: Sequence[Sequence[str]]) -> bool:
    """Return whether the lines may be a code list with unknown headings or without headings: each line has two
    different cells.
    """
    return _pair_start(lines) is not None


def _pair_start(lines: Sequence[Sequence[str]]) -> tuple[int, tuple[str, ...]] | None:
    """Return the position before the first code and the meanings of two columns; `None` unless there are two columns
    without repeated cells.

    The codes are in the column with the shorter text, unless the headings name them. The first line is a header if it
    contains a known heading word, or if a cell has a different shape from all cells below it.
    """
    shown = [line for line in lines if not _is_comment(line)]
    both = [[line[at] if at < len(line) else "" for line in shown] for at in (0, 1)]
    if any(any(line[2:]) for line in shown) or not all(map(all, both)) or len(shown) < FEWEST:
        return None
    words = [names_labels(cell) - names_codes(cell) for cell in shown[0][:2]]
    headed = any(words) or any(_shape(cells[0]) not in set(map(_shape, cells[1:])) for cells in both)
    codes = [cells[headed:] for cells in both]
    if any(len(set(cells)) < max(len(cells), FEWEST) for cells in codes):
        return None
    longer = words if words[0] != words[1] else [sum(map(len, cells)) for cells in codes]
    second = longer[0] > longer[1]
    return lines.index(shown[0]) - (not headed), ("label", "code") if second else ("code", "label")


def _shape(cell: str) -> str:
    """Return the shape of a cell, with one character for each run of similar characters: ``Aa`` for ``Male``."""
    kinds = ("A" if c.isupper() else "a" if c.isalpha() else "9" if c.isdigit() else c for c in cell[:SHORT])
    return "".join(kind for kind, _ in itertools.groupby(kinds))


def read_code_list(data: bytes, source: str, column: str | None = None) -> Dictionary:
    """Return the dictionary in the file. ``column`` names the column that a ``code,label`` file describes.

    A code list is complete: its codes are the column's categories. An empty column cell repeats the cell above. If a
    code has two labels, the first is kept, with a note. A column without codes is open. Raises
    :class:`SchemaError`.
    """
    text = text_of(data)
    seen = [cells for _, cells in itertools.islice(csv_lines(text, source), MOST_SEEN)]
    start, kinds = _start(seen) or _pair_start(seen) or (0, ())
    named = "column" in kinds
    if not named and column is None:
        raise SchemaError(
            f"{source} lists codes of one column but does not name it; write FILE:COLUMN"
            if _start(seen)
            else f"{source} is not a dictionary that Espalier can read. If it lists the codes of one column with "
            "labels, write FILE:COLUMN",
            key="column",
        )
    listed: dict[str, dict[str, str]] = {}
    missing: dict[str, dict[str, None]] = {}
    about: dict[str, str] = {}
    notes: list[str] = []
    name = "" if named else str(column)
    for number, line in itertools.islice(csv_lines(text, source), start + 1, None):
        if _is_comment(line):
            continue
        cells = _cells(kinds, line)
        name = cells.get("column") or name
        code, label = cells.get("code", ""), cells.get("label")
        if name and not code and (cells.get("column") or not named):
            add_note(notes, f"line {number}", "it has no code")
            if named:
                listed.setdefault(name, {})
                about.setdefault(name, cells.get("about") or label or "")
            continue
        if not (name and code) or label is None:
            raise SchemaError(
                f"{source}, line {number}: write {'a column, ' if named else ''}a code and a label", line=number
            )
        if listed.setdefault(name, {}).setdefault(code, label) != label:
            what = f"the code {code[:SHORT]!r} of {name[:SHORT]!r}"
            add_note(notes, f"line {number}", f"{what} has another label; the first label was used")
        if cells.get("missing", "").casefold() in YES:
            missing.setdefault(name, {})[code] = None
        about.setdefault(name, cells.get("about", ""))
    told = [label for codes in listed.values() for label in codes.values()]
    if told and "label" not in kinds_of(seen[start]) and not any(map(_has_letter, told)):
        raise SchemaError(
            f"{source}: no label contains a letter, so the labels may be counts of rows, which are private. If they "
            "are labels, head them with the word label"
        )
    columns = tuple(_declared(name, codes, missing.get(name, {}), about[name]) for name, codes in listed.items())
    return Dictionary(columns, source, "code list", tuple(notes))


def _has_letter(text: str) -> bool:
    return any(map(str.isalpha, text))


def _cells(kinds: Sequence[str], line: Sequence[str]) -> dict[str, str]:
    """Return the cells by their meaning. The first label is used. If the label is in the last column, further cells
    belong to it, because it contains commas.
    """
    cells = dict(reversed([*zip(kinds, line, strict=False)]))
    if kinds[-1] == "label" and kinds.count("label") == 1 and any(line[len(kinds) :]):
        cells["label"] = ", ".join(line[len(kinds) - 1 :])
    return cells


def _declared(name: str, codes: Mapping[str, str], missing: Mapping[str, None], about: str) -> Declared:
    texts = [code for code in codes if code not in missing]
    if all(NUMBER.fullmatch(code) for code in texts):
        texts.sort(key=float)
    if (span := span_of(texts)) is not None:
        code, ends = span
        labels = pairs((c, label) for c, label in codes.items() if c != code)
        whole = not any("." in end for end in ends)
        return Declared(name, "numeric", (), labels, tuple(missing), ends, integer=whole, label=plain(about))
    kind: DeclaredKind = "categorical" if texts else "open"
    return Declared(name, kind, tuple(texts), pairs(codes.items()), tuple(missing), label=plain(about))
