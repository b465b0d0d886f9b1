"""Reading XLSForm (ODK, KoboToolbox, SurveyCTO): the sheets ``survey`` and ``choices`` of a workbook, or the same in
CSV.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from espalier.core.dictionaries.base import (
    MOST_COLUMNS,
    SHORT,
    YES,
    Dictionary,
    csv_lines,
    plain,
    text_of,
)
from espalier.core.dictionaries.questions import (
    NO_CHOICES,
    NO_COLUMNS,
    Question,
    choices_of,
    columns_of,
    for_each,
    kind_and_list,
    other_answer,
)
from espalier.core.dictionaries.workbook import Sheets, read_sheets
from espalier.core.errors import SchemaError

_SHEETS = ("survey", "choices", "settings", "entities", "external_choices", "osm")
_STEMS = (
    *("label", "hint", "name", "value", "list_name", "type", "constraint", "required", "relevant", "parameters"),
    *("read_only", "calculation"),
)
_STEM = re.compile(rf"({'|'.join(_STEMS)})(?:::?(.+))?")
_OTHER_HEADINGS = {
    **{"list name": "list_name", "listname": "list_name", "relevance": "relevant", "caption": "label"},
    **{"readonly": "read_only", "bind:readonly": "read_only", "bind::readonly": "read_only"},
    **{"bind:calculate": "calculation", "bind::calculate": "calculation", "calculate": "calculation"},
    **{"bind:required": "required", "bind:relevant": "relevant", "bind:constraint": "constraint"},
    **{"bind::required": "required", "bind::relevant": "relevant", "bind::constraint": "constraint"},
}
_TYPICAL = re.compile(
    r"(select[ _](one|multiple)\b|(begin|end)[ _](group|repeat)\b|(geopoint|acknowledge|note)$)", re.IGNORECASE
)
"""Types that no other kind of table contains."""
_BLOCK = re.compile(r"(begin|end)[ _](?:group|repeat|loop)\b(?:\s+over\s+(\S+))?", re.IGNORECASE)
_SHOWN = {"text"}
"""Types of questions that merely show text if they are read-only."""
MOST_STEPS, MOST_LANGUAGES = 50, 100
"""Maximum number of nested groups around a question, and of languages in a heading."""
MOST_SEEN = 200
"""Number of lines that are searched for types of questions."""


def is_xlsform(lines: Sequence[Sequence[str]]) -> bool:
    """Return whether these are the first lines of a form in CSV: of its sheets, or of the sheet ``survey`` alone."""
    if not lines:
        return False
    if _sheet_name(lines[0]):
        return True
    header = [_heading(cell)[0] for cell in lines[0]]
    if "type" not in header or "name" not in header:
        return False
    at = header.index("type")
    return any(len(line) > at and _TYPICAL.match(line[at]) for line in lines[1:])


def read_xlsform(data: bytes, source: str) -> Dictionary:
    """Return the dictionary of a form; raise :class:`SchemaError`."""
    sheets = read_sheets(data, source) if data.startswith(b"PK") else _sheets(data, source)
    survey = sheets.get("survey")
    if survey is None:
        raise SchemaError(f"{source} is not an XLSForm: it has no sheet 'survey'")
    lists = _lists(sheets.get("choices", []))
    notes: list[str] = []
    columns = tuple(islice(columns_of(_questions(survey, lists), notes), MOST_COLUMNS + 1))
    return Dictionary(columns, source, "XLSForm", tuple(notes))


def _sheets(data: bytes, source: str) -> Sheets:
    """Return the sheets of a form in CSV: the first column contains the name of a sheet, and the others contain its
    rows.
    """
    out: Sheets = {}
    current: list[list[str]] = []
    for number, (_, line) in enumerate(csv_lines(text_of(data), source)):
        if name := _sheet_name(line):
            current = out.setdefault(name, [])
        elif number == 0:
            current = out.setdefault("survey", [])
            current.append(line)
        else:
            current.append(line)
    return out


def _sheet_name(line: Sequence[str]) -> str:
    """Return the name of the sheet that a line starts, or an empty string."""
    name = line[0].casefold() if line else ""
    return name if name in _SHEETS and not any(line[1:]) else ""


def _heading(cell: str) -> tuple[str, str]:
    """Return the meaning of a heading and its language: ``label::English (en)`` is a label in English."""
    text = " ".join(cell[:SHORT].casefold().split()).strip()
    text = _OTHER_HEADINGS.get(text, text)
    found = _STEM.fullmatch(text)
    return (found[1], found[2] or "") if found else (text, "")


def _records(rows: Sequence[Sequence[str]]) -> Iterator[dict[str, str]]:
    """Yield the cells of each row by their headings. If there are several languages, English is used, or else the first
    one.
    """
    if not rows:
        return
    places: dict[str, list[tuple[int, int]]] = {}
    for at, cell in enumerate(rows[0]):
        stem, language = _heading(cell)
        rank = 0 if not language else 1 if language.startswith("en") or "(en" in language else 2
        places.setdefault(stem, []).append((rank, at))
    order = {stem: [at for _, at in sorted(places[stem])[:MOST_LANGUAGES]] for stem in _STEMS if stem in places}
    for row in rows[1:]:
        yield {stem: next((row[at] for at in found if at < len(row) and row[at]), "") for stem, found in order.items()}


def _lists(rows: Sequence[Sequence[str]]) -> dict[str, dict[str, str]]:
    """Return the choices of each list, with their labels."""
    out: dict[str, dict[str, str]] = {}
    for record in _records(rows):
        name, code = record.get("list_name", ""), record.get("name") or record.get("value", "")
        if name and code:
            out.setdefault(name, {}).setdefault(code, plain(record.get("label", "")))
    return out


def _questions(rows: Sequence[Sequence[str]], lists: Mapping[str, Mapping[str, str]]) -> Iterator[Question]:
    """Yield the questions. An answer may be empty if a condition can skip the question or a group around it."""
    shared = {name: choices_of(listed.items()) for name, listed in lists.items()}
    groups: list[tuple[str, bool]] = []
    loops: list[str] = []
    for record in _records(rows):
        stated = record.get("type", "")
        if block := _BLOCK.match(stated):
            if block[1].casefold() == "begin":
                around = bool(groups) and groups[-1][1]
                groups.append((record.get("name", "")[:SHORT], around or bool(record.get("relevant"))))
                loops.append(block[2] or (loops[-1] if loops else ""))
            elif groups:
                groups.pop()
                loops.pop()
            continue
        kind, listed, other = kind_and_list(stated)
        name = record.get("name", "")
        shows = kind in _SHOWN and _is_yes(record.get("read_only", "")) and not record.get("calculation")
        if not name or shows or kind in NO_COLUMNS:
            continue
        always = not record.get("relevant") and not (groups and groups[-1][1])
        question = Question(
            name,
            kind,
            tuple(group for group, _ in groups[-MOST_STEPS:]),
            plain(record.get("label", "")),
            plain(record.get("hint", "")),
            shared.get(listed, NO_CHOICES),
            record.get("constraint", ""),
            always and _is_yes(record.get("required", "")),
            record.get("parameters", ""),
        )
        asked = other_answer(question) if other else (question,)
        if loops and loops[-1]:
            yield from (one for asking in asked for one in for_each(asking, shared.get(loops[-1], NO_CHOICES)))
        else:
            yield from asked


def _is_yes(cell: str) -> bool:
    return cell.casefold().removesuffix("()") in YES
