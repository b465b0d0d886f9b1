"""Dictionaries in JSON: Table Schema, CSV on the Web, JSON Schema, and the dictionary that Espalier writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from espalier.core.dictionaries.base import Declared, Dictionary, add_note, once_each, pairs
from espalier.core.dictionaries.csvw import has_columns, read_columns
from espalier.core.dictionaries.table_schema import declared_field, has_fields, read_fields, text_of_value, value_text
from espalier.core.dictionaries.writing import FORMAT
from espalier.core.errors import ProjectError, SchemaError
from espalier.core.project.json_text import read_json

_KEPT = ("title", "description", "format", "categories", "categoriesOrdered", "missingValues")
_LIMITS = ("enum", "minimum", "maximum", "pattern")
"""Keys with the same meaning in Table Schema, and keys that are constraints in Table Schema."""
_Reader = Callable[[Any, list[str]], Iterator[tuple[object, Declared]]]


def read_json_dictionary(data: bytes, source: str) -> Dictionary:
    """Return the dictionary in the file; raise :class:`SchemaError`."""
    try:
        value = read_json(data, source)
    except ProjectError as error:
        raise SchemaError(str(error)) from None
    notes: list[str] = []
    for name, known, read in _FORMATS:
        if known(value):
            return Dictionary(once_each(read(value, notes), notes), source, name, tuple(notes))
    raise SchemaError(
        f"{source} is JSON but not a dictionary that Espalier can read. Espalier reads Table Schema, data packages "
        "that contain their schemas, CSV on the Web, JSON Schema, and the dictionary.json of a release"
    )


def _is_own(value: Any) -> bool:
    return isinstance(value, dict) and value.get("format") == FORMAT and isinstance(value.get("columns"), list)


def _read_own(value: Any, notes: list[str]) -> Iterator[tuple[object, Declared]]:
    """Yield the columns of a released table's dictionary."""
    for column in value["columns"]:
        kind = column.get("kind") if isinstance(column, dict) else None
        if kind not in ("categorical", "ordinal", "numeric", "date") or not text_of_value(column.get("name")):
            add_note(notes, "a column", "it has no name or no known kind and was not read")
            continue
        listed = {key: _coded(column.get(key)) for key in ("values", "labelled_values", "missing_codes")}
        ends = column.get("range")
        decimals = column.get("decimals")
        yield (
            0,
            Declared(
                text_of_value(column["name"]),
                kind,
                tuple(dict.fromkeys(code for code, _ in listed["values"])),
                pairs(item for part in listed.values() for item in part),
                tuple(dict.fromkeys(code for code, _ in listed["missing_codes"])),
                (str(ends[0]), str(ends[1])) if isinstance(ends, list) and len(ends) == 2 else ("", ""),
                integer=column.get("integer") is True,
                decimals=decimals if isinstance(decimals, int) and 0 < decimals < 10 else None,
                required=column.get("may_be_empty") is False,
                label=text_of_value(column.get("label")),
                unit=text_of_value(column.get("unit")),
                description=text_of_value(column.get("description")),
            ),
        )


def _coded(given: Any) -> list[tuple[str, str]]:
    items = [item for item in given if isinstance(item, dict)] if isinstance(given, list) else []
    listed = [(value_text(item.get("code")), text_of_value(item.get("label"))) for item in items]
    return [(code, label) for code, label in listed if code]


def _has_properties(value: Any) -> bool:
    return isinstance(_row(value).get("properties"), dict)


def _row(value: Any) -> dict[str, Any]:
    """Return the schema of one row: the schema of the file, or of the items of a list."""
    for inner in (value, value.get("items") if isinstance(value, dict) else None):
        if isinstance(inner, dict):
            row = _resolved(inner, value)
            if isinstance(row.get("properties"), dict):
                return row
    return {}


def _read_properties(value: Any, notes: list[str]) -> Iterator[tuple[object, Declared]]:
    """Yield the properties of a JSON Schema, each described as a field of Table Schema."""
    row = _row(value)
    required = row.get("required")
    names = set(map(str, required)) if isinstance(required, list) else set[str]()
    for name, stated in row["properties"].items():
        if not (isinstance(stated, dict) and name.strip()):
            add_note(notes, name, "it is not described and was not read")
            continue
        field = _resolved(stated, value)
        kinds = field.get("type")
        kind = next((k for k in kinds if k != "null"), "") if isinstance(kinds, list) else kinds
        limits: dict[str, Any] = {key: field[key] for key in _LIMITS if key in field}
        for end in ("Minimum", "Maximum"):
            limits.setdefault(end.lower(), field.get(f"exclusive{end}"))
        if "const" in field:
            limits["enum"] = [field["const"]]
        choices = field.get("oneOf", field.get("anyOf"))
        listed = [x for x in choices if isinstance(x, dict)] if isinstance(choices, list) else []
        constants = [
            {"value": x["const"], "label": x.get("title") or x.get("description")} for x in listed if "const" in x
        ]
        about: dict[str, Any] = {key: field[key] for key in _KEPT if key in field}
        more = {"categories": constants} if constants else {}
        yield (
            0,
            declared_field(
                {"name": name, "type": kind, **about, **more, "constraints": {**limits, "required": name in names}},
                field.get("missingValues", row.get("missingValues")),
            ),
        )


def _resolved(stated: Mapping[str, Any], whole: Any) -> dict[str, Any]:
    """Return a schema completed with the definition that it refers to, if that definition is in the same file."""
    path = stated.get("$ref")
    if not (isinstance(path, str) and path.startswith("#/")):
        return dict(stated)
    found = whole
    for step in path[2:].split("/"):
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return {**(found if isinstance(found, dict) else {}), **{k: v for k, v in stated.items() if k != "$ref"}}


_FORMATS: tuple[tuple[str, Callable[[Any], bool], _Reader], ...] = (
    ("dictionary of a release", _is_own, _read_own),
    ("CSV on the Web", has_columns, read_columns),
    ("Table Schema", has_fields, read_fields),
    ("JSON Schema", _has_properties, _read_properties),
)
