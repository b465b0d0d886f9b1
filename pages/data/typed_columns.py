"""Convert a column's description to typed text and back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from espalier.core.errors import SchemaError
from espalier.core.project.dates import DateBins
from espalier.core.project.schema import (
    BINS_FOUND,
    MOST_FOUND,
    Categories,
    CategoriesToBuy,
    Column,
    Dates,
    HierarchyToBuy,
    Numbers,
    NumbersToBuy,
    to_buy,
)

IN_HIERARCHY = re.compile(r"\s*at most (\d{1,6}) of [\d,]+ codes in a hierarchy\s*")


def row_of(column: Column) -> dict[str, Any]:
    """Return the text fields and switches that describe a column."""
    return {
        "name": column.name,
        "kind": column.kind if column.dates is None else "date",
        "categories": _categories(column),
        "edges": _edges(column),
        "date_order": column.date_order,
        "decimals": "" if column.decimals is None else str(column.decimals),
        "marks": join(column.missing_marks),
        "label": column.label,
        "unit": column.unit,
        "description": column.description,
        "labels": "\n".join(f"{value} = {label}" for value, label in column.value_labels),
        "integer": column.integer,
        "missing": column.missing,
        "unknown": column.unknown == "missing",
    }


def column_of(row: Mapping[str, Any], origin: Column) -> Column:
    """Return the column described by ``row``; raise :class:`SchemaError`.

    Only the text fields that the kind needs are read.

    ``origin`` is the description that it replaces: any remaining guess stays marked.
    """
    made = _column_of(row, origin)
    return replace(
        made,
        label=row["label"].strip(),
        unit=row["unit"].strip(),
        description=row["description"].strip(),
        value_labels=_labels(row["labels"], made.name),
    )


def _column_of(row: Mapping[str, Any], origin: Column) -> Column:
    """Return the column without its labels and notes."""
    numeric = row["kind"] == "numeric"
    found = IN_HIERARCHY.fullmatch(row["categories"])
    if isinstance(origin, HierarchyToBuy) and found and row["kind"] == "categorical":
        return replace(
            origin,
            at_most=int(found[1]),
            missing=row["missing"] or row["unknown"],
            unknown="missing" if row["unknown"] else "refuse",
            missing_marks=split(row["marks"]),
        )
    if row["kind"] != "date" and (wanted := _to_buy(row, numeric)) is not None:
        field = "integer" if numeric else "kind"  # stays a guess, even if the bins or categories are bought
        kept = getattr(wanted, field) == getattr(origin, field)
        guessed, confirmed = (tuple(f for f in m if f == field) for m in (origin.guessed, origin.confirmed))
        return replace(wanted, guessed=guessed, confirmed=confirmed) if kept else wanted
    marked = _declared(row, origin).marked_like(origin)
    return replace(marked, shown=origin.shown if marked.confirmed else "")


def _declared(row: Mapping[str, Any], origin: Column) -> Column:
    """Return a column of categories, numbers or dates, without the marks of ``origin``."""
    name, of_names = origin.name, row["kind"] not in ("date", "numeric")
    categories = split(row["categories"]) if of_names else ()
    marks = tuple(m for m in split(row["marks"]) if m not in categories) if row["missing"] else ()
    unknown = "missing" if row["unknown"] else "refuse"
    common: dict[str, Any] = {"missing": row["missing"], "unknown": unknown, "missing_marks": marks}
    if row["kind"] == "date":
        return Dates.of(name, _dates(row["edges"], name), date_order=row.get("date_order", ""), **common)
    if row["kind"] == "numeric":
        edges, style = numbers(row["edges"], name), origin.number_style
        return Numbers(name, "numeric", edges, row["integer"], _decimals(row), style, **common)
    inside = ((title, tuple(t for t in texts if t not in marks)) for title, texts in origin.groups)
    groups = tuple((title, texts) for title, texts in inside if title in categories and texts)
    return Categories(name, row["kind"], categories, groups, origin.code_book if origin.groups else "", **common)


def _labels(text: str, column: str) -> tuple[tuple[str, str], ...]:
    """Return value labels from lines such as ``1 = male``."""
    out: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.split("\n"))):
        value, between, label = line.partition(" = ")
        if not between:
            raise SchemaError(f"column {column!r}: write each label on its own line, like 1 = male", column=column)
        out[value.strip()] = label.strip()
    return tuple(out.items())


def _decimals(row: Mapping[str, Any]) -> int | None:
    typed = row["decimals"].strip()
    if not typed:
        return None
    if not typed.isascii() or not typed.isdigit() or len(typed) > 1:
        raise SchemaError(
            f"column {row['name']!r}: decimals is {typed!r}; it must be a whole number from 1 to 9, or blank"
        )
    return int(typed)


def _categories(column: Column) -> str:
    if isinstance(column, HierarchyToBuy):
        return f"at most {column.at_most} of {len(column.tree.texts):,} codes in a hierarchy"
    return f"at most {column.at_most}" if isinstance(column, CategoriesToBuy) else join(column.categories)


def _edges(column: Column) -> str:
    if column.dates is not None:
        return _range(column.dates)
    if isinstance(column, NumbersToBuy):
        between = f" from {column.range[0]:.12g} to {column.range[1]:.12g}" if column.range else ""
        return f"{column.bins} bins{between}"
    return "; ".join(f"{e:.12g}" for e in column.edges)


def _to_buy(row: Mapping[str, Any], numeric: bool) -> Column | None:
    """Return the column if its bins or categories are to be bought; None if the row declares them. They are also bought
    if the user changed the column's kind and left the new kind's cell empty, unless “to be bought” was cleared from the
    old kind's cell.
    """
    texts = re.fullmatch(r"\s*at most (\d{1,6})\s*", row["categories"])
    found = re.fullmatch(r"\s*(\d{1,3}) bins(?: from (\S+) to (\S+))?\s*", row["edges"])
    if not numeric:
        most = int(texts[1]) if texts else MOST_FOUND if found and not row["categories"].strip() else 0
        return to_buy(row["name"], row["kind"] or "categorical", most) if texts or most else None
    if texts and not row["edges"].strip():
        return to_buy(row["name"], "numeric", bins=BINS_FOUND, integer=row["integer"])
    if found is None:
        return None
    ends = numbers(f"{found[2]}; {found[3]}", row["name"]) if found[2] else None
    limits = (ends[0], ends[1]) if ends else None
    return to_buy(row["name"], "numeric", bins=int(found[1]), range=limits, integer=row["integer"])


def _range(dates: DateBins) -> str:
    return f"{dates.first}; {dates.last}; {dates.by}"


def _dates(text: str, column: str) -> DateBins:
    """Return the range and period of a date column, read from a cell."""
    parts = [part.strip() for part in text.split(";")]
    if len(parts) != 3:
        raise SchemaError(f"column {column!r}: write its date range like 2020-01-01; 2024-12-31; month", column=column)
    return DateBins.from_json({"from": parts[0], "to": parts[1], "by": parts[2]})


def join(categories: tuple[str, ...]) -> str:
    """Return categories on one line, separated by semicolons. A category that contains a semicolon or a quote is
    quoted.
    """
    quoted = ['"' + p.replace('"', '""') + '"' if re.search(r'[;"\n]|^\s|\s$', p) else p for p in categories]
    return "; ".join(quoted)


def split(text: str) -> tuple[str, ...]:
    """Return the categories in a cell, which are separated by semicolons or line breaks; a quoted category may contain
    either.
    """
    out: list[str] = []
    for match in re.finditer(r'\s*(?:"((?:[^"]|"")*)"\s*(?=[;\n]|$)|([^;\n]*))(?:[;\n]|$)', text):
        quoted, bare = match.group(1), (match.group(2) or "").strip()
        if quoted is not None:
            out.append(quoted.replace('""', '"'))
        elif bare:
            out.append(bare)
    return tuple(out)


def numbers(text: str, column: str) -> tuple[float, ...]:
    """Return the bin edges in a cell, which are separated by semicolons or spaces."""
    out = []
    for part in re.split(r"[;\s]+|,\s+", text.strip()):
        if part:
            try:
                out.append(float(part))
            except ValueError:
                raise SchemaError(
                    f"column {column!r}: {part!r} is not a number; write bin edges like 0; 18; 40; 65; 100",
                    column=column,
                ) from None
    return tuple(out)
