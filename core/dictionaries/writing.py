"""Writing a released table's dictionary, as JSON and as a REDCap data dictionary."""

from __future__ import annotations

import json
from typing import Any

from espalier.core.dictionaries.base import Declared, DeclaredKind
from espalier.core.dictionaries.redcap import redcap_csv
from espalier.core.project.schema import NUMBER, Column, Schema

FORMAT = "espalier-dictionary/1"


def described(column: Column) -> Declared:
    """Return the schema's declaration of a released column."""
    kind: DeclaredKind = "date" if column.dates is not None else column.kind
    if column.dates is not None:
        ends = (column.dates.first.isoformat(), column.dates.last.isoformat())
    else:
        ends = (f"{column.edges[0]:.12g}", f"{column.edges[-1]:.12g}") if column.kind == "numeric" else ("", "")
    values = dict.fromkeys((*column.categories, *column.missing_marks, *labelled_numbers(column)))
    listed = tuple((c, column.label_of(c)) for c in values if column.label_of(c))
    return Declared(
        column.name,
        kind,
        column.categories,
        listed,
        column.missing_marks,
        ends,
        integer=column.integer and column.dates is None,
        decimals=column.decimals,
        required=not column.missing,
        label=column.label,
        unit=column.unit,
        description=column.description,
    )


def labelled_numbers(column: Column) -> list[str]:
    """Return the labelled values of a numeric column, such as ``90`` for "90 or more"."""
    if column.kind != "numeric" or column.dates is not None:
        return []
    return [code for code, _ in column.value_labels if NUMBER.fullmatch(code) and code not in column.missing_marks]


def dictionary_json(schema: Schema) -> str:
    """Return the dictionary as JSON: a list of columns, without keys that have no value."""
    columns = []
    for column in schema.columns:
        one = described(column)
        entry: dict[str, Any] = {"name": one.name, "kind": one.kind}
        entry |= {key: text for key in ("label", "unit", "description") if (text := getattr(one, key))}
        if one.categories:
            shown = dict(one.labels)
            entry["values"] = [{"code": c, **({"label": shown[c]} if c in shown else {})} for c in one.categories]
        elif numbers := labelled_numbers(column):
            entry["labelled_values"] = [{"code": c, "label": column.label_of(c)} for c in numbers]
        if one.range[0]:
            entry["range"] = list(one.range)
        if one.missing:
            shown = dict(one.labels)
            entry["missing_codes"] = [{"code": c, **({"label": shown[c]} if c in shown else {})} for c in one.missing]
        entry |= {"integer": True} if one.integer else {}
        entry |= {"decimals": one.decimals} if one.decimals else {}
        columns.append({**entry, "may_be_empty": not one.required})
    return json.dumps({"format": FORMAT, "columns": columns}, indent=1, ensure_ascii=False) + "\n"


def dictionary_csv(schema: Schema, form: str = "synthetic") -> str:
    """Return the dictionary as a REDCap data dictionary."""
    return redcap_csv([described(column) for column in schema.columns], form)
