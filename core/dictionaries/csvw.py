"""CSV on the Web metadata (JSON): the columns of one table or of a group of tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from espalier.core.dictionaries.base import Declared
from espalier.core.dictionaries.table_schema import declared_field, text_of_value

_WHOLE = {
    *("integer", "int", "long", "short", "byte", "nonnegativeinteger", "positiveinteger", "negativeinteger"),
    *("nonpositiveinteger", "unsignedint", "unsignedlong", "unsignedshort", "unsignedbyte", "gyear"),
}
_TYPES = {
    **dict.fromkeys(_WHOLE, "integer"),
    **dict.fromkeys(("number", "decimal", "double", "float"), "number"),
    **dict.fromkeys(("date", "datetime", "datetimestamp"), "date"),
    **dict.fromkeys(("string", "normalizedstring", "token", "name", "nmtoken", "language"), "string"),
    **dict.fromkeys(("json", "xml", "html", "anyuri", "binary", "base64binary", "hexbinary"), "object"),
    "boolean": "boolean",
}
"""Table Schema types for the datatypes of CSV on the Web. All other datatypes leave the kind open."""
_LEAST = {"positiveinteger": 1, **dict.fromkeys(("nonnegativeinteger", "unsignedint", "unsignedlong"), 0)}
_LEAST |= dict.fromkeys(("unsignedshort", "unsignedbyte"), 0)
_INHERITED = ("null", "datatype", "separator", "required")
_NAMES, _TITLES = ("dc:title", "dcterms:title", "rdfs:label", "schema:name"), ("dc:description", "dcterms:description")
_TEXTS = (*_TITLES, "description", "rdfs:comment", "schema:description", "skos:definition")


def has_columns(value: Any) -> bool:
    """Return whether this is the metadata of a table or of a group of tables."""
    return any(True for _ in _tables(value))


def read_columns(value: Any, _notes: list[str]) -> Iterator[tuple[object, Declared]]:
    """Yield the columns of each table, with the table's position. Virtual columns are skipped, because they are not in
    the file.
    """
    for at, (schema, above) in enumerate(_tables(value)):
        key = schema.get("primaryKey")
        keys = [key] if isinstance(key, str) else key
        for column in schema["columns"]:
            if isinstance(column, dict) and _name(column) and column.get("virtual") is not True:
                yield at, _declared({**above, **column}, unique=keys == [column.get("name", _name(column))])


def _tables(value: Any) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the schema of each table, with the properties that its columns inherit."""
    if not isinstance(value, dict):
        return
    listed = value.get("tables")
    for table in listed if isinstance(listed, list) else [value]:
        schema = table.get("tableSchema", value.get("tableSchema")) if isinstance(table, dict) else None
        if isinstance(schema, dict) and isinstance(schema.get("columns"), list):
            yield schema, {key: part[key] for part in (value, table, schema) for key in _INHERITED if key in part}


def _name(column: Mapping[str, Any]) -> str:
    """Return the heading of a column: its title, or else its name."""
    titles = column.get("titles", column.get("title"))
    return text_of_value(titles) or text_of_value(column.get("name"))


def _declared(column: Mapping[str, Any], *, unique: bool) -> Declared:
    """Return one column, described as a field of Table Schema."""
    stated = column.get("datatype", "string")
    facts = stated if isinstance(stated, dict) else {"base": stated}
    base = str(facts.get("base") or "string").rpartition(":")[2].rpartition("#")[2].casefold()
    kind, form = _TYPES.get(base, "any"), facts.get("format")
    limits: dict[str, Any] = {"required": column.get("required")}
    for end in ("min", "max"):
        given = (facts.get(f"{end}{part}") for part in ("imum", "Inclusive", "Exclusive"))
        limits[f"{end}imum"] = next((bound for bound in given if bound is not None), None)
    if limits["minimum"] is None:
        limits["minimum"] = _LEAST.get(base)
    field: dict[str, Any] = {"name": _name(column), "type": "array" if column.get("separator") else kind}
    if kind == "boolean":
        yes, _, no = form.partition("|") if isinstance(form, str) else ("", "", "")
        field |= {"trueValues": [yes] if yes and no else ["true", "1"]}
        field |= {"falseValues": [no] if yes and no else ["false", "0"]}
    elif kind == "string" and isinstance(form, str):
        limits["pattern"] = form
    elif isinstance(form, dict):
        field |= {key: form[key] for key in ("decimalChar", "groupChar") if key in form}
    about = {"title": _first(column, _NAMES), "description": _first(column, _TEXTS), "constraints": limits}
    return declared_field({**field, **about}, column.get("null"), unique=unique)


def _first(column: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    return next((text for key in keys if (text := text_of_value(column.get(key)))), "")
