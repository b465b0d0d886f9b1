"""Code lists (CSV): ``column,code,label`` for many columns, or ``code,label`` for one column named separately."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence

from espalier.core.dictionaries.base import (
    SHORT,
    YES,
    Declared,
    DeclaredKind,
    Dictionary,
    add_note,
    csv_lines,
    digest_of,
    letters,
    pairs,
    plain,
    text_of,
)
from espalier.core.errors import SchemaError
from espalier.core.project.schema import NUMBER

_COLUMN = {
    *("column", "variable", "field", "name", "var", "question", "item", "attribute", "feature", "element"),
    *("spalte", "merkmal", "champ", "campo", "columna", "coluna", "variavel", "variabele", "colonne"),
}
_CODE = {
    *("code", "value", "id", "key", "category", "level", "option", "response", "notation", "val"),
    *("wert", "schlussel", "valeur", "modalite", "valor", "codigo", "waarde", "kode", "codice"),
}
_LABEL = {
    *("label", "description", "meaning", "text", "desc", "definition", "title", "explanation", "term", "display"),
    *("decode", "bezeichnung", "bedeutung", "beschreibung", "libelle", "etiqueta", "descripcion", "descricao"),
    *("omschrijving", "etichetta", "rotulo", "preferredterm", "preflabel"),
}
_HEADINGS = {
    **{f"{code}{label}": "label" for code in _CODE for label in (*sorted(_LABEL), "name")},
    **{f"{code}{value}": "code" for code in (*_CODE, *_COLUMN) for value in ("value", "code", "id", "number")},
    **{f"{name}{label}": "about" for name in _COLUMN for label in _LABEL},
    **{f"{name}name": "column" for name in _COLUMN},
    **dict.fromkeys(_COLUMN, "column"),
    **dict.fromkeys(_CODE, "code"),
    **dict.fromkeys(_LABEL, "label"),
    **dict.fromkeys(("missing", "ismissing", "usermissing"), "missing"),
}
"""Meanings of headings, by their letters: the column, the code, its label, its missing flag, and the column's label.
"""


MOST_SEEN = 5_000
"""Number of lines by which the headings are judged."""
MOST_TITLES = 10
"""Number of lines in which the header is searched for."""
FEWEST = 2
"""Minimum number of codes by which a column is recognised as a column of codes."""
_PROPERTIES = {"id", "category", "level", "option", "response"}
"""Headings that usually name codes, but name another property if there is also a heading such as ``code``."""
_NAMES = {"name", "item", "element", "attribute", "feature"}
"""Headings that name columns if several codes have the same name, and otherwise codes."""
_CODE_WORDS = {"code", "kode", "codigo", "codice", "schlussel", "notation", "alpha2", "alpha3", "kod"}
_LABEL_WORDS = {*_LABEL, "name", "nom", "nombre", "nome", "naam", "navn", "namn"}
_WORD = re.compile(r"[^\W\d_]?[^\W\d_A-Z]+|[^\W\d_]+")
_LANGUAGE = re.compile(
    r"[\s_.:@(-]+(en|eng|english|fr|fra|de|es|pt|it|nl|sv|da|no|fi|pl|cs|ar|zh|ru)\)?$", re.IGNORECASE
)


def is_code_list(lines: Sequence[Sequence[str]]) -> bool:
    """Return whether these are the first lines of a code list. It may have other columns, and a title above the
    header.
    """
    return _start(lines) is not None


def _start(lines: Sequence[Sequence[str]]) -> tuple[int, tuple[str, ...]] | None:
    """Return the place of the header, one of the first lines, and the meaning of each of its headings; or `None`."""
    for at, header in enumerate(lines[:MOST_TITLES]):
        rows = lines[at + 1 :]
        for kinds in (_kinds(header), _kinds_by_cells(header, rows) if at == 0 else ()):
            if kinds.count("code") == 1 and "label" in kinds and kinds.count("column") <= 1:
                named = kinds.index("column") if "column" in kinds else None
                if named is not None and letters(header[named]) in _NAMES and _all_differ(named, rows):
                    kinds = tuple("label" if kind == "column" else kind for kind in kinds)
                return at, kinds
    return None


def _kinds(header: Sequence[str]) -> tuple[str, ...]:
    """Return the meaning of each heading, or ``?``. Empty headings at the end are ignored, as are plurals and a
    language at the end of a heading, as in ``name_en``. A name after the code is its label, as in ``code,name``; before
    the code, it names the column. If there is a code, an id or a category is another property of it.
    """
    cells = [letters(_LANGUAGE.sub("", cell.strip()[:SHORT])) for cell in header]
    while cells and not cells[-1]:
        cells.pop()
    kinds = [_HEADINGS.get(cell) or _HEADINGS.get(cell.removesuffix("s"), "?") for cell in cells]
    if sum(kind == "code" and cell not in _PROPERTIES for kind, cell in zip(kinds, cells, strict=True)) == 1:
        kinds = ["?" if cell in _PROPERTIES else kind for kind, cell in zip(kinds, cells, strict=True)]
    code = kinds.index("code") if "code" in kinds else len(kinds)
    return tuple("label" if at > code and cells[at] == "name" else kind for at, kind in enumerate(kinds))


def _kinds_by_cells(header: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the meaning of each heading, by a word in it and by the cells below.

    The codes are the first column headed by a word for codes, such as ``country_code``, in which every cell differs:
    codes that repeat are data. Without a label, a heading with a word for names counts as one, such as ``Country
    Name``, or the other column of two, as in ``key,value``.
    """
    words = [{letters(word) for word in _WORD.findall(cell[:SHORT])} for cell in header]
    plain_kinds = (*_kinds(header), *("?" for _ in header))
    codes = [
        at
        for at, found in enumerate(words)
        if (found & _CODE_WORDS or (plain_kinds[at] == "code" and letters(header[at]) not in _PROPERTIES))
        and _all_differ(at, rows)
    ]
    if not codes:
        return ()
    labels = [at for at in range(len(header)) if plain_kinds[at] == "label" and at != codes[0]]
    labels += [at for at, found in enumerate(words) if found & _LABEL_WORDS and at not in codes]
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


def read_code_list(data: bytes, source: str, column: str | None = None) -> Dictionary:
    """Return the dictionary in the file. ``column`` names the column that a ``code,label`` file describes.

    A code list is complete, so its codes are the column's categories. An empty cell for the column repeats the cell
    above it. A code with two labels keeps the first, and a note states this. Raises :class:`SchemaError`.
    """
    text = text_of(data)
    start, kinds = _start([cells for _, cells in itertools.islice(csv_lines(text, source), MOST_SEEN)]) or (0, ())
    named = "column" in kinds
    if not named and column is None:
        raise SchemaError(f"{source} lists codes of one column but does not name it; write FILE:COLUMN", key="column")
    listed: dict[str, dict[str, str]] = {}
    missing: dict[str, dict[str, None]] = {}
    about: dict[str, str] = {}
    notes: list[str] = []
    name = "" if named else str(column)
    for number, line in itertools.islice(csv_lines(text, source), start + 1, None):
        cells = _cells(kinds, line)
        name = cells.get("column") or name
        code, label = cells.get("code", ""), cells.get("label")
        if not (name and code) or label is None:
            raise SchemaError(
                f"{source}, line {number}: write {'a column, ' if named else ''}a code and a label", line=number
            )
        if listed.setdefault(name, {}).setdefault(code, label) != label:
            what = f"the code {code[:SHORT]!r} of {name[:SHORT]!r}"
            add_note(notes, f"line {number}", f"{what} has a second label; the first one was used")
        if cells.get("missing", "").casefold() in YES:
            missing.setdefault(name, {})[code] = None
        about.setdefault(name, cells.get("about", ""))
    columns = tuple(_declared(name, codes, missing.get(name, {}), about[name]) for name, codes in listed.items())
    return Dictionary(columns, source, "code list", digest_of(data), tuple(notes))


def _cells(kinds: Sequence[str], line: Sequence[str]) -> dict[str, str]:
    """Return the cells by their meaning, with the first label if there are several. If the label is in the last column,
    further cells are parts of a label with commas.
    """
    cells = dict(reversed([*zip(kinds, line, strict=False)]))
    if kinds[-1] == "label" and kinds.count("label") == 1 and any(line[len(kinds) :]):
        cells["label"] = ", ".join(line[len(kinds) - 1 :])
    return cells


def _declared(name: str, codes: Mapping[str, str], missing: Mapping[str, None], about: str) -> Declared:
    texts = [code for code in codes if code not in missing]
    if all(NUMBER.fullmatch(code) for code in texts):
        texts.sort(key=float)
    kind: DeclaredKind = "categorical" if texts else "open"
    return Declared(name, kind, tuple(texts), pairs(codes.items()), tuple(missing), label=plain(about))
