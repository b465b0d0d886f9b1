"""Groups of guessed columns for a person to review, and a digest of the facts to show for each column.

Everything here reads private rows for the steward. Only the digest of the shown facts is stored. A guess becomes public
once a person has seen all of `Reviewed.shown` and confirmed it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from espalier.core.code_books import CODE_BOOKS, code_book
from espalier.core.project.date_orders import DATE_ORDERS
from espalier.core.project.dates import day_number
from espalier.core.project.schema import MISSING, NUMBER, CategoriesToBuy, Column, HierarchyToBuy, Schema, ToBuy
from espalier.core.project.schema_json import column_to_json
from espalier.core.tables.guessing import FEW, looks_like_contacts
from espalier.core.tables.text_table import TextColumn, TextTable
from espalier.core.tables.value_patterns import (
    leading_zeros,
    named_like_a_person,
    named_like_an_id,
    no_yes,
    number_style,
    other_dates,
    possible_orders,
    two_styles,
)

Group = Literal["obviously public", "look closely", "identifies someone"]
GROUPS: tuple[Group, ...] = ("obviously public", "look closely", "identifies someone")
RARE = 20
"""Number of rows below which a value is rare, so that someone may recognise the person behind it."""
LONG = 30
"""Maximum number of values that a person can check at a glance."""
ORDERED = {"dmy": "with the day first", "mdy": "with the month first", "ymd": "with the year first"}
"""Names of the orders of day, month and year."""
HARDLY_REPEATS = "It has many values with few rows each, like an identifier or a name."
TELLING = 5
"""Minimum number of distinct values for which a codebook is proposed."""


@dataclass(frozen=True)
class Reviewed:
    """A column's ``group`` in the review.

    ``reason`` explains the group without quoting a value. ``shown`` lists everything that a person must see before the
    confirmation counts: the proposed values, bins and missing marks, in order. ``digest`` identifies this list.
    ``books`` are codebooks that contain every value; choosing one declares the whole book. ``orders`` are the orders
    of day, month and year from which a person must choose.
    """

    name: str
    group: Group
    reason: str
    shown: tuple[str, ...] = ()
    digest: str = ""
    books: tuple[str, ...] = ()
    orders: tuple[str, ...] = ()


def review(text: TextTable, schema: Schema) -> tuple[Reviewed, ...]:
    """Return the group of each column of a guessed schema, in the order of the table. Private."""
    out_of_it = {c.name for c in schema.left_out}
    kept = [name for name in text.columns if name in schema or name in out_of_it]
    return tuple(
        Reviewed(name, "identifies someone", HARDLY_REPEATS, ("left out",), left_out_digest(name))
        if name in out_of_it
        else review_column(text.columns[name], schema[name])
        for name in kept
    )


def review_column(read: TextColumn, column: Column) -> Reviewed:
    """Return the group of one guessed column. Private."""
    group, reason = _place(read, column)
    someone = group == "identifies someone" or named_like_a_person(column.name)
    books = () if someone else fitting_books(read, column.missing_marks)
    if books and group == "look closely" and not column.dates:
        reason = f"{reason} A codebook contains all of its values: {', '.join(books)}."
    orders = () if column.dates is not None or isinstance(column, ToBuy) else unclear_orders(read, column.missing_marks)
    return Reviewed(column.name, group, reason, shown(column), shown_digest(column), books, orders)


def unclear_orders(read: TextColumn, marks: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the orders of day, month and year that all values allow, if there are several. Private."""
    orders = possible_orders([v for v in read.values if v != MISSING and v not in marks])
    return orders if len(orders) > 1 else ()


def some_days(read: TextColumn, marks: Sequence[str] = ()) -> int:
    """Return the number of distinct values that are dates if some values are not dates; otherwise 0. Digits without
    separators are not a date. Private.
    """
    values = [v for v in read.values if v != MISSING and v not in marks]
    dates = [v for v in values if not v.isdigit() and any(day_number(v, o) is not None for o in ("", *DATE_ORDERS))]
    return len(dates) if len(dates) < len(values) else 0


def one_person_decides(read: TextColumn, person: TextColumn, marks: Sequence[str] = ()) -> bool:
    """Return whether one person's cells could turn a column into a date column: for some order of day, month and year,
    at most one person has a value that is not a date. Private.
    """
    for order in ("", *DATE_ORDERS):
        others = [
            i for i, v in enumerate(read.values) if v != MISSING and v not in marks and day_number(v, order) is None
        ]
        if len(np.unique(person.codes[np.isin(read.codes, others)])) < 2:
            return True
    return False


def shown(column: Column) -> tuple[str, ...]:
    """Return everything in a description that a person must see before confirming it: kind, values or bins, and missing
    marks.
    """
    kind = f"date {column.date_order}".strip() if column.dates else column.kind
    if column.code_book:
        return (kind, f"code book {column.code_book}", *column.missing_marks)
    listed = (*column.labels[: column.values], *(text for _, members in column.groups for text in members))
    return (kind, *listed, *(["(missing)"] if column.missing else []), *column.missing_marks)


def shown_digest(column: Column) -> str:
    """Return the digest of the facts that `shown` lists. Any change of the description changes it."""
    plain = replace(column, guessed=(), confirmed=(), shown="")
    return _digest([column.name, shown(column), column_to_json(plain)])


def left_out_digest(name: str) -> str:
    """Return the digest of the facts shown about a column that a guess left out."""
    return _digest([name, "left out"])


def _digest(parts: list[object]) -> str:
    said = json.dumps(parts, ensure_ascii=False, sort_keys=True)
    return "sha256:" + hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()


def fitting_books(read: TextColumn, marks: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the names of the codebooks that contain every value of a column. Private.

    Short numbers are also codes of ICD-9-CM, so at least one value must have a letter or a point.
    """
    values = [v for v in read.values if v != MISSING and v not in marks]
    if len(values) < TELLING or all(v.isdigit() for v in values) or all(NUMBER.fullmatch(v) for v in values):
        return ()
    return tuple(name for name in CODE_BOOKS if all(map(code_book(name).leaf, values)))


def _place(read: TextColumn, column: Column) -> tuple[Group, str]:
    values = [v for v in read.values if v != MISSING and v not in column.missing_marks]
    if looks_like_contacts(read):
        return "identifies someone", "Most values are e-mail addresses, telephone numbers or similar text."
    if isinstance(column, HierarchyToBuy):
        return "look closely", "Its codes are declared. The values that count as an empty cell were guessed."
    if isinstance(column, CategoriesToBuy):
        return "look closely", "The release buys its categories. Whether they are ordered was guessed."
    if isinstance(column, ToBuy):
        return "look closely", "The release buys its bins. Whether all its numbers are whole was guessed."
    if column.dates is not None:
        order = f" {ORDERED[column.date_order]}" if column.date_order else ""
        return "look closely", f"Dates{order}. Choose a range that is public knowledge without the table."
    if column.kind == "numeric":
        if column.integer and named_like_a_person(column.name):
            return "look closely", "Its name suggests an identifier, but numbers in bins make sense only for amounts."
        if column.number_style and two_styles(values):
            return "look closely", "A comma may mark decimals or separate thousands."
        return "look closely", "Numbers. The bounds are round numbers beyond those in the table."
    if len(possible_orders(values)) > 1:
        return "look closely", "Dates as text. No value shows whether the day or the month comes first, so choose one."
    if other_dates(values):
        why = "Dates as text in mixed orders, with two-digit years, or with months that are not in English."
        return "look closely", f"{why} Write them as 2024-01-31 in the table to get months or quarters."
    if no_yes(values):
        return "obviously public", "Yes and no."
    if leading_zeros(values):
        return "look closely", "Codes with leading zeros are kept as text."
    if named_like_an_id(column.name) and len(values) > FEW:
        return "look closely", "Its name suggests an identifier."
    if len(values) > LONG:
        return "look closely", "A long list of values."
    if _small_whole(values):
        return "obviously public", "Small whole numbers without gaps."
    if number_style(values):
        return "look closely", "Numbers with separators are treated as categories."
    if _rarest(read, column.missing_marks) < RARE:
        return "look closely", f"Some values are rare: they occur in fewer than {RARE} rows."
    if column.kind == "ordinal":
        return "obviously public", "A short ordered list, without rare values."
    return "obviously public", "A short list without rare values."


def _small_whole(values: Sequence[str]) -> bool:
    """Return whether the values are consecutive whole numbers from 0 or 1 up to at most 20."""
    if not values or not all(v.isascii() and v.isdigit() for v in values):
        return False
    found = sorted(map(int, values))
    return found[0] in (0, 1) and found == list(range(found[0], found[0] + len(found))) and found[-1] <= FEW


def _rarest(read: TextColumn, marks: Sequence[str]) -> int:
    counts = np.bincount(read.codes, minlength=len(read.values)).tolist()
    held = [n for n, v in zip(counts, read.values, strict=True) if v != MISSING and v not in marks]
    return min(held, default=0)
