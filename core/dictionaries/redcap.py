"""Reading REDCap data dictionaries (CSV), and writing one for a released table.

Columns of the file with form layout, branching logic or access rights are not read.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from espalier.core.dictionaries.base import Declared, DeclaredKind, Dictionary, digest_of, pairs, plain
from espalier.core.errors import SchemaError
from espalier.core.tables.csv_safety import defuse

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
_OF_API = {"field_name", "field_type", "form_name"}
_CHOICES = {"radio", "dropdown", "select"}
_NO_CELLS = {"descriptive", "file", "signature"}
"""Field types that do not become a column of an exported table, or that contain a document."""
_YES_NO = {"yesno": (("1", "Yes"), ("0", "No")), "truefalse": (("1", "True"), ("0", "False"))}


def is_redcap(header: Sequence[str]) -> bool:
    """Return whether the first line of a CSV file is the header of a REDCap data dictionary.

    The first column may have another name, since editors of such files rename it: it always names the field.
    """
    named = {cell.strip().strip('"').casefold() for cell in header}
    kept = {"form name", "field type", "field label", "choices, calculations, or slider labels"} <= named
    return kept or any(both <= named for both in ({"variable / field name", "field type"}, _OF_API))


def read_redcap(data: bytes, source: str) -> Dictionary:
    """Return the dictionary in the file; raise :class:`SchemaError`."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("cp1252", "replace")
    lines = csv.reader(io.StringIO(text, newline=""))
    columns: list[Declared] = []
    notes: list[str] = []
    try:
        places = _places(next(lines, []))
        for line in lines:
            if any(cell.strip() for cell in line):
                field = {key: _cell(line, at) for key, at in places.items()}
                columns += _declared(field, notes, first=not columns)
    except csv.Error as error:
        raise SchemaError(f"{source}, line {lines.line_num}: {error}") from None
    return Dictionary(tuple(columns), source, "REDCap data dictionary", digest_of(data), tuple(notes))


def _cell(line: Sequence[str], at: int) -> str:
    """Return a cell. R writes NA for an empty one."""
    text = line[at].strip() if at < len(line) else ""
    return "" if text == "NA" else text


def _places(header: Sequence[str]) -> dict[str, int]:
    """Return the position of each column of the format, by its name in the API."""
    named = {cell.strip().casefold(): i for i, cell in enumerate(header)}
    both = zip(_API, HEADER, strict=True)
    return {"field_name": 0} | {api: named[n] for api, shown in both for n in (api, shown.casefold()) if n in named}


def _declared(field: Mapping[str, str], notes: list[str], *, first: bool) -> Iterator[Declared]:
    """Yield the columns of the exported table that one field of the form produces."""
    name, kind = field.get("field_name", ""), field.get("field_type", "").casefold()
    label = plain(_without_tags(field.get("field_label", "")))
    said = plain(_without_tags(field.get("field_note", "")))
    required = field.get("required_field", "").casefold() == "y"
    choices = _choices(field.get("select_choices_or_calculations", ""))
    if not name:
        raise SchemaError("a field of the REDCap data dictionary has no name")
    if kind in _NO_CELLS:
        notes.append(f"{name}: a field of type {kind!r} has no column of values")
    elif first or field.get("identifier", "").casefold() == "y":
        yield Declared(name, "identifier", label=label, description=said)
    elif kind == "checkbox":
        for code, choice in choices:
            labels = (("0", "Unchecked"), ("1", "Checked"))
            column = f"{name}___{code.casefold().replace('-', '_')}"
            yield Declared(column, "categorical", ("0", "1"), labels, label=f"{label}: {choice}", required=True)
    elif kind in _CHOICES or kind in _YES_NO:
        listed = _YES_NO.get(kind) or choices
        codes = tuple(code for code, _ in listed)
        shape: DeclaredKind = "categorical" if codes else "open"
        yield Declared(name, shape, codes, pairs(listed), required=required, label=label, description=said)
    else:
        yield _of_text(field, kind, Declared(name, "text", required=required, label=label, description=said))


def _of_text(field: Mapping[str, str], kind: str, plain_text: Declared) -> Declared:
    """Return a field of numbers, dates or free text, depending on its validation."""
    check = field.get("text_validation_type_or_show_slider_number", "").casefold()
    ends = (field.get("text_validation_min", ""), field.get("text_validation_max", ""))
    if kind == "slider":
        low, high = ends[0] or "0", ends[1] or "100"
        return replace(plain_text, kind="numeric", range=(low, high), integer=True)
    if kind == "calc":
        return replace(plain_text, kind="numeric")
    if kind == "text" and check == "integer":
        return replace(plain_text, kind="numeric", range=ends, integer=True)
    if kind == "text" and check.startswith("number"):
        digits = [c for c in check if c.isascii() and c.isdigit()]
        style = "1234,5" if "comma_decimal" in check else ""
        places = int(digits[0]) if digits else None
        return replace(plain_text, kind="numeric", range=ends, decimals=places, number_style=style)
    ontology = field.get("select_choices_or_calculations", "").casefold().startswith("bioportal:")
    if kind == "sql" or (kind == "text" and ontology):  # codes that another system lists
        return replace(plain_text, kind="open")
    if kind == "text" and check.startswith("date"):
        return replace(plain_text, kind="date", range=(ends[0][:10], ends[1][:10]))
    return plain_text


def _choices(cell: str) -> tuple[tuple[str, str], ...]:
    """Return the codes and labels of a cell such as ``1, Male | 2, Female``."""
    listed = [part.partition(",")[::2] for part in cell.replace("\\n", "|").split("|") if part.strip()]
    return pairs((code.strip(), _without_tags(label) or code.strip()) for code, label in listed)


def _without_tags(text: str) -> str:
    """Return a label without the markup that REDCap allows in it."""
    return re.sub(r"</?[A-Za-z][^<>]*>", " ", text).strip()


def redcap_csv(columns: Sequence[Declared], form: str) -> str:
    """Return a REDCap data dictionary of these columns; texts that look like formulas are defused."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADER)
    for c in columns:
        row = dict.fromkeys(HEADER, "")
        row |= {"Variable / Field Name": c.name, "Form Name": form, "Field Label": c.label or c.name}
        row |= {"Field Type": "text", "Field Note": " ".join(filter(None, (c.description, c.unit and f"[{c.unit}]")))}
        if c.categories:
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
