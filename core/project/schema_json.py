"""Reading and writing a schema in the project file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from espalier.core.code_books import checked_book, code_book
from espalier.core.errors import SchemaError
from espalier.core.project.column import Column, Kind
from espalier.core.project.column_types import Categories, Dates, Numbers
from espalier.core.project.columns_to_buy import (
    APART,
    BINS_FOUND,
    CategoriesToBuy,
    HierarchyToBuy,
    NumbersToBuy,
    ToBuy,
    with_categories,
)
from espalier.core.project.date_orders import DATE_ORDERS
from espalier.core.project.dates import DateBins
from espalier.core.project.schema import Identifier, LeftOut, Schema

_TEXTS = ("label", "unit", "description", "shown")
"""Keys for a column's descriptive text, and for the digest of what a person confirmed."""
_KEYS = {
    *("name", "kind", "categories", "groups", "edges", "integer", "decimals", "missing", "unknown", "missing_marks"),
    *("guessed", "confirmed", "dates", "at_most", "bins", "range", "hierarchy", "code_book", "number_style"),
    *("date_order", *_TEXTS, "labels"),
}


def schema_to_json(schema: Schema) -> list[dict[str, Any]]:
    """Return the columns and identifiers as the project file stores them, without ``left_out``."""
    out = [column_to_json(c) for c in schema.columns]
    for c in sorted(schema.identifiers, key=lambda c: c.place):
        out.insert(c.place, identifier_to_json(c))
    return out


def schema_from_json(data: Any, left_out: Any = ()) -> Schema:
    """Return the schema of the project file's ``schema`` and ``left_out``; raises :class:`SchemaError`."""
    if not isinstance(data, list):
        raise SchemaError("schema must be a list of columns")
    if not isinstance(left_out, list | tuple):
        raise SchemaError("left_out must be a list")
    named = [isinstance(c, Mapping) and c.get("kind") == "identifier" for c in data]
    return Schema(
        tuple(column_from_json(c) for c, is_one in zip(data, named, strict=True) if not is_one),
        tuple(left_out_from_json(c) for c in left_out),
        tuple(identifier_from_json(c, i) for i, c in enumerate(data) if named[i]),
    )


def left_out_to_json(left_out: LeftOut) -> dict[str, Any]:
    """Return the entry as the project file stores it."""
    out: dict[str, Any] = {"name": left_out.name, "confirmed" if left_out.confirmed else "guessed": True}
    return out | ({"shown": left_out.shown} if left_out.shown else {})


def left_out_from_json(data: Any) -> LeftOut:
    """Return an entry of the project file's ``left_out``; raises :class:`SchemaError`."""
    entry = data if isinstance(data, Mapping) else {}
    name, shown = entry.get("name"), entry.get("shown", "")
    marks = {key: value for key, value in entry.items() if key not in ("name", "shown")}
    known = marks in ({"guessed": True}, {"confirmed": True})
    if not isinstance(name, str) or not isinstance(shown, str) or not known:
        raise SchemaError('each entry of left_out needs a "name", and "guessed": true or "confirmed": true')
    return LeftOut(name, "confirmed" in marks, shown)


def identifier_to_json(identifier: Identifier) -> dict[str, Any]:
    """Return the identifier as the project file stores it."""
    return {"name": identifier.name, "kind": "identifier", **({"invented": True} if identifier.invented else {})}


def identifier_from_json(data: Mapping[str, Any], place: int) -> Identifier:
    """Return an identifier of the project file, with its position among all columns; raises :class:`SchemaError`."""
    name, invented = data.get("name"), data.get("invented", False)
    if not isinstance(name, str) or not name or not isinstance(invented, bool):
        raise SchemaError('an identifier must have a "name", and may have "invented": true')
    if odd := set(data) - {"name", "kind", "invented"}:
        raise SchemaError(f"column {name!r}: an identifier cannot have {sorted(odd)[0]!r}", column=name)
    return Identifier(name, invented, place)


def column_to_json(column: Column) -> dict[str, Any]:
    """Return the column as the project file stores it. Fields with their default value are left out."""
    out: dict[str, Any] = {"name": column.name, "kind": column.kind}
    match column:
        case CategoriesToBuy():
            return {**out, "at_most": column.at_most, **_texts_to_json(column), **_marks_to_json(column)}
        case NumbersToBuy():
            out |= {"bins": column.bins} | ({"integer": True} if column.integer else {}) | _texts_to_json(column)
            return {**out, **({"range": list(column.range)} if column.range else {}), **_marks_to_json(column)}
        case HierarchyToBuy():
            out["at_most"] = column.at_most
            out |= _missing_to_json(column)
            out |= _book_to_json(column) or {"hierarchy": dict(column.hierarchy)}
            return {**out, **_marks_to_json(column), **_texts_to_json(column)}
        case Dates(dates=DateBins() as dates):
            out |= {"kind": "date", "dates": dates.to_json()}
            out |= {"date_order": column.date_order} if column.date_order else {}
        case Numbers():
            out["edges"] = [int(e) if e == int(e) and abs(e) < 2**53 else e for e in column.edges]
        case Categories():
            out["categories"] = list(column.categories)
    if column.groups:
        out["groups"] = {group: list(members) for group, members in column.groups}
    if column.decimals is not None:
        out["decimals"] = column.decimals
    out |= _book_to_json(column) | _texts_to_json(column)
    out |= {"number_style": column.number_style} if column.number_style else {}
    out |= {"integer": True} if column.integer and column.dates is None else {}
    out |= _missing_to_json(column)
    return out | _marks_to_json(column)


def _marks_to_json(column: Column) -> dict[str, Any]:
    return {key: list(marked) for key in ("guessed", "confirmed") if (marked := getattr(column, key))}


def _missing_to_json(column: Column) -> dict[str, Any]:
    out: dict[str, Any] = {"missing": True} if column.missing else {}
    out |= {"unknown": column.unknown} if column.unknown != "refuse" else {}
    return out | ({"missing_marks": list(column.missing_marks)} if column.missing_marks else {})


def _texts_to_json(column: Column) -> dict[str, Any]:
    out: dict[str, Any] = {key: text for key in _TEXTS if (text := getattr(column, key))}
    return out | ({"labels": dict(column.value_labels)} if column.value_labels else {})


def _book_to_json(column: Column) -> dict[str, Any]:
    """Return the codebook's name and digest; nothing if there is none."""
    if not column.code_book:
        return {}
    return {"code_book": {"name": column.code_book, "digest": code_book(column.code_book).digest}}


def column_from_json(data: Any) -> Column:
    """Return a column of the project file; raises :class:`SchemaError`."""
    if not isinstance(data, Mapping):
        raise SchemaError(f"each entry of the schema must be an object, not {data!r}")
    name = data.get("name")
    if not isinstance(name, str):
        raise SchemaError(f"a column's name must be text, not {name!r}")
    if odd := set(data) - _KEYS:
        raise SchemaError(f"column {name!r}: unknown key {sorted(odd)[0]!r}", column=name, key=sorted(odd)[0])
    for key in ("integer", "missing"):
        if not isinstance(data.get(key, False), bool):
            raise SchemaError(f"column {name!r}: {key} must be true or false", column=name)
    labels = data.get("labels", {})
    if not isinstance(labels, Mapping):
        raise SchemaError(f"column {name!r}: labels must be an object that maps values to labels", column=name)
    texts = {key: data[key] for key in _TEXTS if key in data} | {"value_labels": tuple(labels.items())}
    rest = {key: value for key, value in data.items() if key not in (*_TEXTS, "labels")}
    book = _book(name, data.get("code_book"))
    if book and not {"categories", "groups"} & set(data):
        del rest["code_book"]
        return _hierarchy({**rest, "hierarchy": code_book(book).groups}, {**texts, "code_book": book})
    if "hierarchy" in data:
        return _hierarchy(rest, texts)
    if held := {"at_most", "bins", "range"} & set(data):
        return _to_buy(rest, sorted(held)[0], texts)
    return _declared(rest, {**texts, **({"code_book": book} if book else {})})


def _declared(data: Mapping[str, Any], more: Mapping[str, Any]) -> Column:
    name, kind = data["name"], data.get("kind", "categorical")
    common: dict[str, Any] = {
        "missing": data.get("missing", False),
        "unknown": data.get("unknown", "refuse"),
        **{key: _texts(name, key, data.get(key, [])) for key in ("missing_marks", "guessed", "confirmed")},
        **more,
    }
    if kind == "date":
        if odd := {"edges", "categories", "integer", "decimals", "groups", "number_style", "code_book"} & set(data):
            raise SchemaError(f"column {name!r}: a column of dates cannot have {sorted(odd)[0]}", column=name)
        try:
            dates = DateBins.from_json(data.get("dates"))
        except SchemaError as error:
            raise SchemaError(f"column {name!r}: {error}", column=name) from None
        order = data.get("date_order", "")
        if "date_order" in data and (not isinstance(order, str) or order not in DATE_ORDERS):
            known = ", ".join(f'"{key}" ({example})' for key, example in DATE_ORDERS.items())
            raise SchemaError(f"column {name!r}: date_order is {order!r}; it must be one of {known}", column=name)
        return Dates.of(name, dates, date_order=order, **common)
    if odd := {"dates", "date_order"} & set(data):
        raise SchemaError(f'column {name!r}: "{min(odd)}" belongs to the kind "date"', column=name)
    if kind == "numeric":
        if data.get("categories") or data.get("groups") or data.get("code_book"):
            raise SchemaError(f"column {name!r}: a numeric column has edges, not categories or groups", column=name)
        edges, style = _numbers(name, data.get("edges", [])), data.get("number_style", "")
        if not isinstance(style, str):
            raise SchemaError(f"column {name!r}: number_style must be a string, in quotes", column=name)
        return Numbers(name, kind, edges, data.get("integer", False), data.get("decimals"), style, **common)
    if data.get("edges"):
        raise SchemaError(
            f"column {name!r}: a column with categories cannot have edges; use kind numeric for edges", column=name
        )
    if data.get("integer") or data.get("decimals") is not None or data.get("number_style"):
        raise SchemaError(
            f'column {name!r}: "integer", "decimals" and "number_style" belong to numeric columns', column=name
        )
    categories, groups = _texts(name, "categories", data.get("categories", [])), _groups(name, data.get("groups", {}))
    return Column(name, kind, categories, groups, **common)


def _to_buy(data: Mapping[str, Any], key: str, texts: Mapping[str, Any]) -> ToBuy:
    name, kind = data["name"], data.get("kind", "categorical")
    if kind not in get_args(Kind):
        raise SchemaError(f"column {name!r}: {key} is not compatible with the kind {kind!r}", column=name)
    allowed = {"bins", "range", "integer"} if kind == "numeric" else {"at_most"}
    if odd := set(data) - allowed - {"name", "kind", "guessed", "confirmed"}:
        raise SchemaError(
            f"column {name!r} is to be bought ({key}), so it cannot have {sorted(odd)[0]!r}", column=name, key=key
        )
    for count in ("at_most", "bins"):
        if not isinstance(data.get(count, 0), int) or isinstance(data.get(count), bool):
            raise SchemaError(f"column {name!r}: {count} must be a whole number", column=name)
    ends = _numbers(name, data["range"]) if "range" in data else None
    if ends is not None and len(ends) != 2:
        raise SchemaError(f"column {name!r}: a range must be a list of two numbers", column=name)
    more = {**texts, **{key: _texts(name, key, data.get(key, [])) for key in ("guessed", "confirmed")}}
    if kind != "numeric":
        return CategoriesToBuy(name, kind, data["at_most"], **more)
    limits = (ends[0], ends[1]) if ends else None
    return NumbersToBuy(name, kind, data.get("bins", BINS_FOUND), limits, data.get("integer", False), **more)


def _hierarchy(data: Mapping[str, Any], more: Mapping[str, Any]) -> HierarchyToBuy:
    """Return a column with a hierarchy. Given categories must be among its codes. Categories that the hierarchy does
    not list are at the top.
    """
    name, given, at_most = data["name"], data["hierarchy"], data.get("at_most", APART)
    allowed = {"name", "kind", "hierarchy", "at_most", "missing", "unknown", "categories", "guessed", "confirmed"}
    if odd := set(data) - allowed - {"missing_marks"}:
        raise SchemaError(f"column {name!r} has a hierarchy, so it cannot have {sorted(odd)[0]!r}", column=name)
    if data.get("kind", "categorical") != "categorical":
        raise SchemaError(f"column {name!r} has a hierarchy, so its kind must be categorical", column=name)
    if not isinstance(at_most, int) or isinstance(at_most, bool):
        raise SchemaError(f"column {name!r}: at_most must be a whole number", column=name)
    guessed = _texts(name, "guessed", data.get("guessed", []))
    if set(guessed) - {"missing"}:
        raise SchemaError(
            f"column {name!r}: guessed categories are not allowed together with a hierarchy; leave the list out, "
            "because the hierarchy names the codes",
            column=name,
        )
    if not isinstance(given, Mapping):
        raise SchemaError(f"column {name!r}: a hierarchy must be an object that maps codes to groups", column=name)
    if data.get("unknown") == "missing" and not data.get("missing", False):
        raise SchemaError(
            f'column {name!r}: "unknown": "missing" needs "missing": true, so that these cells have a category',
            column=name,
        )
    listed = _texts(name, "categories", data.get("categories", []))
    return HierarchyToBuy.of(
        name,
        with_categories(name, given, listed),
        at_most,
        missing=data.get("missing", False),
        unknown=data.get("unknown", "refuse"),
        missing_marks=_texts(name, "missing_marks", data.get("missing_marks", [])),
        guessed=guessed,
        confirmed=_texts(name, "confirmed", data.get("confirmed", [])),
        **more,
    )


def _book(name: str, data: Any) -> str:
    """Return the name of a codebook after checking that its digest matches the book's current contents."""
    if data is None:
        return ""
    if isinstance(data, str):
        return code_book(data).name
    if not isinstance(data, Mapping) or set(data) != {"name", "digest"}:
        raise SchemaError(f'column {name!r}: a codebook must have a "name" and a "digest"', column=name)
    return checked_book(data["name"], data["digest"]).name


def _texts(name: str, key: str, data: Any) -> tuple[str, ...]:
    if not isinstance(data, list) or not all(isinstance(x, str) for x in data):
        raise SchemaError(f"column {name!r}: {key} must be a list of strings, in quotes", column=name)
    return tuple(data)


def _groups(name: str, data: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(data, Mapping):
        raise SchemaError(f"column {name!r}: groups must be an object of lists", column=name)
    return tuple((group, _texts(name, f"group {group!r}", members)) for group, members in data.items())


def _numbers(name: str, data: Any) -> tuple[float, ...]:
    if not isinstance(data, list) or not all(isinstance(x, int | float) and not isinstance(x, bool) for x in data):
        raise SchemaError(f"column {name!r}: edges must be a list of numbers", column=name)
    try:
        return tuple(float(x) for x in data)
    except OverflowError:
        raise SchemaError(f"column {name!r}: an edge is too large", column=name) from None
