"""Reader of REDCap data dictionaries (CSV), and writer of such a dictionary for a released table.

The file's columns for form layout, branching logic and access rights are not read.
"""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from espalier.core.csv_safety import defuse, restore
from espalier.core.dictionaries.base import (
    MOST_COLUMNS,
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
from espalier.core.errors import SchemaError

HEADER = (
    "Variable / Field Name",
    "Form Name",
    "Section Header",
    "Field Type",
    "Field Label",
    "Choices, Calculations, OR Slider Labels",
    "Field Note",
    "Text Validation Type OR Show Slider Number",
    "Text Validation Min",
    "Text Validation Max",
    "Identifier?",
    "Branching Logic (Show field only if...)",
    "Required Field?",
    "Custom Alignment",
    "Question Number (surveys only)",
    "Matrix Group Name",
    "Matrix Ranking?",
    "Field Annotation",
)
_API = (
    *("field_name", "form_name", "section_header", "field_type", "field_label", "select_choices_or_calculations"),
    *("field_note", "text_validation_type_or_show_slider_number", "text_validation_min", "text_validation_max"),
    *("identifier", "branching_logic", "required_field", "custom_alignment", "question_number", "matrix_group_name"),
    *("matrix_ranking", "field_annotation"),
)
"""Names of the same columns in files from REDCap's API."""
_OLD = {
    "choicesorcalculations": "select_choices_or_calculations",
    "textvalidationtype": "text_validation_type_or_show_slider_number",
    "fieldunits": "field_units",
    "variablename": "field_name",
}
"""Headings of earlier versions, without spaces."""
_CHOICES = {"radio", "dropdown", "select"}
_NO_CELLS = {"descriptive", "file", "signature", "attachment"}
"""Field types that do not become a column of an exported table, or that contain a document."""
_YES_NO = {"yesno": (("1", "Yes"), ("0", "No")), "truefalse": (("1", "True"), ("0", "False"))}
_TYPES = (
    {"text", "notes", "textarea", "calc", "slider", "checkbox", "sql", "advcheckbox"}
    | _CHOICES
    | _NO_CELLS
    | {*_YES_NO}
)
_OTHER_TYPES = {"textbox": "text", "notesbox": "notes", "calculatedfield": "calc", "checkboxes": "checkbox"}
_VALIDATION = re.compile("int|number|float|date|time|email|phone|zip|ssn|mrn|alpha")
"""Prefixes of the names of validation types. People who edit these files write some of them as field types."""
_SERVICE = re.compile(r"[A-Za-z][A-Za-z0-9_]*:\S")
"""Name of a service that lists codes and of its list, such as ``BIOPORTAL:ICD10``."""
_SIGN, _NOT_IN_NAME = re.compile(r"[-.]"), re.compile(r"[^a-z0-9_]")
"""Characters of a code that REDCap writes as ``_`` in the name of a checkbox; it leaves out all other special
characters.
"""
_LONG_NUMBER = re.compile(r"&#[0-9]{8,};?")
"""A character reference with too many digits for any character. Python converts at most 4,300 digits."""
_ONE_BOX = (("0", "Unchecked"), ("1", "Checked"))


def is_redcap(lines: Sequence[Sequence[str]]) -> bool:
    """Return whether the first two lines of a CSV file belong to a REDCap data dictionary.

    The first column may have any name, because people who edit such files rename it: it always contains the field's
    name. A header in another language is recognised by its width and by the type of the first field.
    """
    known = _named(lines[0] if lines else ()).keys()
    if "field_type" in known and ("field_name" in known or {"form_name", "field_label"} <= known):
        return True
    return len(lines) > 1 and len(lines[0]) == len(lines[1]) == len(HEADER) and letters(lines[1][3]) in _TYPES


def read_redcap(data: bytes, source: str) -> Dictionary:
    """Return the dictionary in the file; raise :class:`SchemaError`."""
    lines = csv_lines(text_of(data), source)
    columns: list[Declared] = []
    notes: list[str] = []
    places = _places(next(lines, (0, []))[1])
    for at, (_, line) in enumerate(lines):
        columns += _declared({key: _cell(line, place) for key, place in places.items()}, notes, first=at == 0)
        if len(columns) > MOST_COLUMNS:
            break
    return Dictionary(tuple(columns), source, "REDCap data dictionary", tuple(notes))


def _cell(line: Sequence[str], at: int) -> str:
    """Return a cell. R writes NA for an empty cell. An apostrophe protects choices such as ``-1, worse`` in Excel."""
    text = line[at] if at < len(line) else ""
    return "" if text == "NA" else restore(text)


def _named(header: Sequence[str]) -> dict[str, int]:
    """Return the position of each known heading, by its name in the API."""
    known = {letters(api): api for api in _API} | {letters(n): api for api, n in zip(_API, HEADER, strict=True)} | _OLD
    return {known[letters(cell)]: at for at, cell in reversed([*enumerate(header)]) if letters(cell) in known}


def _places(header: Sequence[str]) -> dict[str, int]:
    """Return the position of each column of the format. A header without known names has the usual order."""
    named = _named(header)
    return {"field_name": 0} | (named if "field_type" in named else {api: at for at, api in enumerate(_API)})


def _declared(field: Mapping[str, str], notes: list[str], *, first: bool) -> Iterator[Declared]:
    """Yield the columns of the exported table that correspond to one field of the form."""
    name, kind = field.get("field_name", ""), letters(field.get("field_type", ""))
    kind = _OTHER_TYPES.get(kind, kind)
    label = plain(_without_tags(field.get("field_label", "")))
    said = plain(_without_tags(field.get("field_note", "")))
    required = field.get("required_field", "").casefold() in YES
    unit = plain(field.get("field_units", ""))
    choices = _choices(field.get("select_choices_or_calculations", ""))
    if not (name or kind):
        add_note(notes, "a line", "it has neither a field name nor a field type, and was not read")
    elif not name:
        raise SchemaError("a field of the REDCap data dictionary has no name")
    elif kind in _NO_CELLS:
        add_note(notes, name, f"a field of type {kind!r} has no column of values")
    elif (first and kind == "text" and _names_records(field)) or field.get("identifier", "").casefold() in YES:
        yield Declared(name, "identifier", label=label, description=said)
    elif kind == "checkbox" and choices:
        boxes = {f"{name}___{_NOT_IN_NAME.sub('', _SIGN.sub('_', code.lower()))}": choice for code, choice in choices}
        for column, choice in boxes.items():
            yield Declared(
                column, "categorical", ("0", "1"), _ONE_BOX, label=f"{label[:SHORT]}: {choice}", required=True
            )
    elif kind in _CHOICES or kind in _YES_NO or kind == "advcheckbox":
        listed = _YES_NO.get(kind) or choices or (_ONE_BOX if kind == "advcheckbox" else ())
        codes = tuple(code for code, _ in listed)
        shape: DeclaredKind = "categorical" if codes else "open"
        yield Declared(name, shape, codes, pairs(listed), required=required, label=label, description=said)
    elif kind and kind not in _TYPES and not _VALIDATION.match(kind):
        add_note(notes, name, f"the type {field['field_type'][:SHORT]!r} is not known, so its kind is open")
        yield Declared(name, "open", required=required, label=label, unit=unit, description=said)
    else:
        if kind not in _TYPES and kind:  # a validation type instead of a field type
            field, kind = {**field, "text_validation_type_or_show_slider_number": field["field_type"]}, "text"
        yield _of_text(field, kind, Declared(name, "text", required=required, label=label, unit=unit, description=said))


def _names_records(field: Mapping[str, str]) -> bool:
    """Return whether a text field that comes first can be the record's name. A form that was saved separately lacks
    that field.
    """
    check = field.get("text_validation_type_or_show_slider_number", "").casefold()
    return not check.startswith(("date", "time", "email", "phone", "zip"))


def _of_text(field: Mapping[str, str], kind: str, plain_text: Declared) -> Declared:
    """Return a field of numbers, dates or free text, depending on its validation."""
    check = field.get("text_validation_type_or_show_slider_number", "").casefold()
    ends = _bound(field.get("text_validation_min", "")), _bound(field.get("text_validation_max", ""))
    if kind == "slider":
        low, high = ends[0] or "0", ends[1] or "100"
        return replace(plain_text, kind="numeric", range=(low, high), integer=True)
    if kind == "calc":
        return replace(plain_text, kind="numeric")
    if kind == "text" and check in ("integer", "int"):
        return replace(plain_text, kind="numeric", range=ends, integer=True)
    if kind == "text" and check.startswith(("number", "float")):
        digits = [c for c in check if c.isascii() and c.isdigit()]
        style = "1234,5" if "comma_decimal" in check else ""
        places = int(digits[0]) if digits else None
        return replace(plain_text, kind="numeric", range=ends, decimals=places, number_style=style)
    ontology = _SERVICE.match(field.get("select_choices_or_calculations", "")) is not None
    if kind == "sql" or (kind == "text" and ontology):  # codes listed in another system
        return replace(plain_text, kind="open")
    if kind == "text" and check.startswith("date"):
        return replace(plain_text, kind="date", range=(ends[0][:10], ends[1][:10]))
    return plain_text


def _bound(cell: str) -> str:
    """Return a bound as written. References to other fields and words such as ``today`` are not fixed bounds."""
    return cell if cell[:1].isdigit() or cell[:1] in tuple("+-.,") else ""


def _choices(cell: str) -> tuple[tuple[str, str], ...]:
    """Return the codes and labels of a cell such as ``1, Male | 2, Female``.

    A cell without bars has one choice per line. A cell in which no choice has a comma may use ``=`` instead.
    """
    parts = cell.replace("\\n", "|").replace("\n", " " if "|" in cell else "|").split("|")
    sign = "," if "," in cell else "="
    listed = [part.partition(sign)[::2] for part in parts if part.strip()]
    return pairs((code.strip(), _without_tags(label) or code.strip()) for code, label in listed)


def _without_tags(text: str) -> str:
    """Return a label without the markup that REDCap allows in it."""
    return html.unescape(_LONG_NUMBER.sub(" ", re.sub(r"</?[A-Za-z][^<>]*>", " ", text))).strip()


def redcap_csv(columns: Sequence[Declared], form: str) -> str:
    """Return a REDCap data dictionary of these columns; text that looks like a formula is escaped.

    REDCap ends a code at the first comma, so a column whose codes contain a comma or a bar becomes text, and its codes
    become a note.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADER)
    for c in columns:
        row = dict.fromkeys(HEADER, "")
        row |= {"Variable / Field Name": c.name, "Form Name": form, "Field Label": c.label or c.name}
        row |= {"Field Type": "text", "Field Note": " ".join(filter(None, (c.description, c.unit and f"[{c.unit}]")))}
        if any(mark in code for code in c.categories for mark in ",|"):
            row["Field Note"] = " ".join(filter(None, (row["Field Note"], f"Values: {'; '.join(c.categories)}.")))
        elif c.categories:
            shown = dict(c.labels)
            listed = " | ".join(f"{code}, {shown.get(code, code)}".replace("|", "/") for code in c.categories)
            row |= {"Field Type": "radio", "Choices, Calculations, OR Slider Labels": listed}
        elif c.kind in ("numeric", "date"):
            check = "date_ymd" if c.kind == "date" else "integer" if c.integer else "number"
            row |= {"Text Validation Type OR Show Slider Number": check}
            row |= {"Text Validation Min": c.range[0], "Text Validation Max": c.range[1]}
        row["Required Field?"] = "y" if c.required else ""
        writer.writerow([defuse(row[name]) for name in HEADER])
    return out.getvalue()
