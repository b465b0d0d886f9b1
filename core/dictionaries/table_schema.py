"""Reading Frictionless Data's Table Schema (JSON): a schema, a resource or a data package with schemas. The readers of
JSON Schema and CSV on the Web, which describe the same facts with other keys, also use `declared_field`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from espalier.core.dictionaries.base import Declared, DeclaredKind, add_note, code_text, pairs, plain

_WHOLE = {"integer", "int", "int64", "int32", "bigint", "smallint", "long", "year", "gyear"}
_NUMBER = {*_WHOLE, "number", "numeric", "float", "float64", "float32", "real", "double", "decimal"}
_DATE = {"date", "datetime", "timestamp", "date-time"}
_NO_VALUES = {"object", "array", "list", "geojson", "geopoint"}
"""Types with structured cells, which are treated as free text."""
_FREE_TEXT = {"email", "uri", "url", "binary"}
"""Text formats whose values are not codes."""
_MEANINGS = {"url": "url", "email": "email", "date": "date", "datetime": "datetime"}
"""schema.org properties that state the format of text."""
_TRUE, _FALSE = ("true", "True", "TRUE", "1"), ("false", "False", "FALSE", "0")
"""Values that the specification allows in a boolean cell."""
_NUMBER_STYLES = {(",", ""): "1234,5", (",", "."): "1.234,5", (",", " "): "1 234,5", (".", ","): "1,234.5"}
_NUMBER_STYLES |= {(".", "'"): "1'234.5"}
_ALTERNATIVES = re.compile(r"\^?(\((\?:)?)?([^\\^$.*+?()\[\]{}]+\|[^\\^$.*+?()\[\]{}]+)(?(1)\))\$?")
"""A pattern that lists values, such as ``^(yes|no)$``."""


def has_fields(value: Any) -> bool:
    """Return whether this is a schema, or an object that contains a schema."""
    return any(True for _ in _schemas(value))


def read_fields(value: Any, notes: list[str]) -> Iterator[tuple[object, Declared]]:
    """Yield the fields of each schema, with the schema's position."""
    for at, schema in enumerate(_schemas(value)):
        key = schema.get("primaryKey")
        keys = [key] if isinstance(key, str) else key if isinstance(key, list) else []
        for field in schema["fields"]:
            if not (isinstance(field, dict) and text_of_value(field.get("name"))):
                add_note(notes, "a field", "it has no name and was not read")
                continue
            marks = field.get("missingValues", schema.get("missingValues"))
            yield at, declared_field(field, marks, unique=keys == [field["name"]])


def _schemas(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the schemas in a descriptor: the descriptor itself, its ``schema``, or the schemas of its resources."""
    if isinstance(value, list):
        if value and all(isinstance(field, dict) and "name" in field for field in value):
            yield {"fields": value}
        return
    if not isinstance(value, dict):
        return
    if isinstance(value.get("fields"), list):
        yield value
    resources = value.get("resources")
    for inner in (value.get("schema"), *(resources if isinstance(resources, list) else ())):
        yield from _schemas(inner) if isinstance(inner, dict) else ()


def declared_field(field: Mapping[str, Any], marks: Any = None, *, unique: bool = False) -> Declared:
    """Return one field. ``marks`` are its missing values; ``unique`` states that the field is the whole primary key."""
    limits = field.get("constraints")
    limits = limits if isinstance(limits, dict) else {}
    missing = {code: label for code, label in _listed(marks) if code}
    kind = str(field.get("type") or "").casefold()
    kind = kind or _kind_of_bounds(limits)
    form = _format(field, limits)
    listed = [] if kind in _NO_VALUES else [(c, label) for c, label in _values(field, limits) if c and c not in missing]
    spellings: tuple[tuple[str, tuple[str, ...]], ...] = ()
    if kind in ("boolean", "bool") and not listed:
        true, false = _texts(field.get("trueValues")) or _TRUE, _texts(field.get("falseValues")) or _FALSE
        listed, spellings = [(true[0], ""), (false[0], "")], ((true[0], true[1:]), (false[0], false[1:]))
    codes = tuple(dict.fromkeys(code for code, _ in listed))
    shape = _kind(kind, form, unique=unique or limits.get("unique") is True)
    if codes:
        shape = "ordinal" if _ordered(field) else "categorical"
    elif field.get("bareNumber") is False:
        shape = "open"
    measured = shape in ("numeric", "date")
    return Declared(
        text_of_value(field["name"]),
        shape,
        codes,
        pairs([*listed, *missing.items()]),
        tuple(missing),
        _range(limits, shape) if measured else ("", ""),
        integer=shape == "numeric" and kind in _WHOLE,
        number_style=_style(field) if shape == "numeric" else "",
        required=(limits.get("required", field.get("required")) is True) and not missing,
        label=text_of_value(field.get("title") or field.get("label")),
        unit=text_of_value(field.get("unit") or field.get("units")),
        description=text_of_value(field.get("description")),
        spellings=spellings,
    )


def _kind_of_bounds(limits: Mapping[str, Any]) -> str:
    """Return the type of a field that has no stated type but numeric bounds."""
    bounds = [limits[end] for end in ("minimum", "maximum") if limits.get(end) is not None]
    return "number" if bounds and all(type(bound) in (int, float) for bound in bounds) else ""


def _format(field: Mapping[str, Any], limits: Mapping[str, Any]) -> str:
    """Return the format, which some files state as a constraint or as a property of schema.org."""
    stated = field.get("format") or limits.get("format")
    if stated and stated != "default":
        return str(stated).casefold()
    return _MEANINGS.get(str(field.get("rdfType") or "").rpartition("schema.org/")[2].casefold(), "")


def _kind(kind: str, form: str, *, unique: bool) -> DeclaredKind:
    if kind in _NO_VALUES or (kind in ("string", "") and form in _FREE_TEXT):
        return "text"
    if (unique or form == "uuid") and kind in ("string", "integer", "any", ""):
        return "identifier"
    if kind in _DATE or (kind == "string" and form in _DATE):
        return "date"
    return "numeric" if kind in _NUMBER else "open"


def _values(field: Mapping[str, Any], limits: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the listed values with their labels: categories of version 2, an enumeration, or a pattern."""
    shown = dict(_listed(field.get("enumLabels") or field.get("encodings")))
    for given in (field.get("categories"), limits.get("enum"), field.get("enum"), field.get("levels")):
        if listed := _listed(given):
            return [(code, label or shown.get(code, "")) for code, label in listed]
    found = _ALTERNATIVES.fullmatch(str(limits.get("pattern") or ""))
    if found and str(field.get("type") or "string") == "string":
        return [(text, shown.get(text, "")) for text in found[3].split("|")]
    return list(shown.items())


def _listed(given: Any) -> list[tuple[str, str]]:
    """Return values and labels: strings, numbers, objects with ``value`` and ``label``, or labels by value."""
    if isinstance(given, dict):
        return [(str(code), text_of_value(label)) for code, label in given.items()]
    out = []
    for item in given if isinstance(given, list) else [given] if isinstance(given, str) else []:
        if isinstance(item, dict):
            out.append((value_text(item.get("value")), text_of_value(item.get("label"))))
        else:
            out.append((value_text(item), ""))
    return out


def _texts(given: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(code for code, _ in _listed(given) if code))


def _ordered(field: Mapping[str, Any]) -> bool:
    return any(field.get(key) is True for key in ("categoriesOrdered", "enumOrdered", "ordered"))


def _range(limits: Mapping[str, Any], shape: str) -> tuple[str, str]:
    """Return the bounds as written. For dates with times, only the day is used."""
    low, high = (
        value_text(limits.get(f"{end}imum", limits.get(f"exclusive{end.capitalize()}imum"))) for end in ("min", "max")
    )
    return (low[:10], high[:10]) if shape == "date" else (low, high)


def _style(field: Mapping[str, Any]) -> str:
    point, thousands = str(field.get("decimalChar") or "."), str(field.get("groupChar") or "")
    return _NUMBER_STYLES.get((point, thousands.replace("\u00a0", " ")), "")


def value_text(value: Any) -> str:
    """Return a JSON value as a table would write it; structures and null are empty."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return code_text(value).strip() if isinstance(value, str | int | float) else ""


def text_of_value(value: Any) -> str:
    """Return text. If there are several languages, return the English text, or else the first one."""
    if isinstance(value, dict):
        value = value.get("@value", value.get("en", next(iter(value.values()), "")))
    if isinstance(value, Sequence) and not isinstance(value, str):
        value = value[0] if value else ""
    return plain(value) if isinstance(value, str) else ""
