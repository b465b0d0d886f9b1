"""Schema guessed from the table, as a convenience. A guess is never public until the user confirms it.

Every field that was guessed from the data is listed in the column's ``guessed``, and every column that a guess dropped
is listed in the schema's ``left_out``. A release refuses both until they are confirmed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from espalier.core.errors import SchemaError
from espalier.core.project.column_types import LARGEST_EDGE
from espalier.core.project.numerals import plain_number
from espalier.core.project.schema import MISSING, NUMBER, Column, Kind, LeftOut, Schema
from espalier.core.tables.text_table import TextColumn, TextTable
from espalier.core.tables.value_patterns import (
    amounts,
    contact,
    date_bins,
    leading_zeros,
    named_like_a_person,
    named_with_an_id,
    no_yes,
    number_style,
    periods_in_order,
    possible_orders,
    ranges_in_order,
)

FEW = 20
"""Maximum number of distinct numbers in a column that is guessed to have categories."""
MANY_PEOPLE, ROWS_EACH = 100, 50
"""Whole numbers in a column named like an identifier are treated as person identifiers if the column has at least this
number of distinct values and, on average, at most this number of rows per value.
"""
LEAST_WIDTH = 1e-307
"""Smallest difference between two numbers for which bins are guessed. Smaller powers of ten underflow."""
MOST = 0.75
"""Bins of equal width are not proposed if one bin would hold more than this share of the distinct numbers."""
_MARKS = {
    "?",
    "na",
    "n/a",
    "n.a.",
    "#n/a",
    "nan",
    "null",
    "none",
    "nil",
    "-",
    "--",
    ".",
    "missing",
    "unknown",
    "not known",
}
_SIGNS = {"?", "na", "n/a", "n.a.", "#n/a", "nan", "null", "-", "--", "."}
"""Marks that always mean an empty cell. A word such as ``none`` is not among them, because it may be a value."""
_NEGATIVE = {-1.0, -7.0, -8.0, -9.0, -99.0, -999.0, -9999.0}
_NINES = {99.0, 999.0, 9999.0, 99999.0}


def guess_schema(text: TextTable, marks: Sequence[str] = (), date_order: str = "") -> Schema:
    """Return a schema for ``text``. Each field that comes from the data is marked as guessed. Columns that look like
    identifiers are left out, which is also marked as a guess, unless every column looks like one.

    ``marks`` are values that mean an empty cell, in each column that contains them. ``date_order`` ("dmy" or "mdy") is
    used if the rows do not show whether the day or the month comes first; without it, such columns stay text.

    >>> import espalier as es, pandas as pd
    >>> pd.DataFrame({"smoker": ["yes", "no"], "age": ["61", "35"]}).to_csv("clinic.csv", index=False)
    >>> table = es.read_table("clinic.csv")
    >>> schema = es.guess_schema(table)
    >>> schema["smoker"].categories
    ('no', 'yes')
    """
    named = tuple(n for n in text.columns if n)
    if not named:
        raise SchemaError(f"{text.source} has no named columns")
    out = identifiers(text, marks)
    if len(out) == len(named):
        out = ()
    held = {n: tuple(m for m in marks if m in text.columns[n].values) for n in named}
    kept = tuple(guess_column(n, text.columns[n], held[n], date_order) for n in named if n not in out)
    return Schema(kept, tuple(LeftOut(n) for n in out))


def identifiers(text: TextTable, marks: Sequence[str] = ()) -> tuple[str, ...]:
    """Return columns that look like identifiers or names of people or cases: whole numbers or text values that rarely
    repeat.

    They have more than :data:`FEW` distinct values, and their number of distinct values exceeds half their number of
    nonempty cells. Dates, and whole numbers that look like amounts (`espalier.core.tables.value_patterns.amounts`), are
    not identifiers. Whole numbers in a column named like an identifier may repeat more often, as in a table of visits.
    Text values such as ``P10007`` may also repeat if the name contains a word such as ``id``. Private.
    """
    return tuple(n for n, column in text.columns.items() if n and _hardly_repeats(n, column, marks))


def repeating(text: TextTable, names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns among ``names`` in which some value occurs in several rows. Private."""
    found = []
    for n in names:
        column = text.columns[n]
        counts = np.bincount(column.codes, minlength=len(column.values))
        if any(count > 1 for count, value in zip(counts.tolist(), column.values, strict=True) if value != MISSING):
            found.append(n)
    return tuple(found)


def _hardly_repeats(name: str, column: TextColumn, marks: Sequence[str]) -> bool:
    values = [v for v in column.values if v != MISSING and v not in marks]
    empty = [i for i, v in enumerate(column.values) if v == MISSING or v in marks]
    cells = int((~np.isin(column.codes, empty)).sum())
    if len(values) <= FEW:
        return False
    if 2 * len(values) <= cells:
        people = len(values) >= MANY_PEOPLE and cells <= ROWS_EACH * len(values) and named_like_a_person(name)
        return people and (named_with_an_id(name) or all(v.isascii() and v.isdigit() for v in values))
    orders = possible_orders(values)
    if len(orders) > 1 or (orders and date_bins(values, orders[0]) is not None):
        return False
    style = number_style(values)
    if style:
        values = [str(plain_number(v, style)) for v in values]
    if not all(NUMBER.fullmatch(v) for v in values):
        return ranges_in_order(values) is None
    whole = all(math.isfinite(x) and x.is_integer() for x in map(float, values))
    return whole and not amounts(name, values, cells)


def guess_column(name: str, column: TextColumn, marks: tuple[str, ...] = (), date_order: str = "") -> Column:
    """Guess one column. Numbers with many distinct values get about ten bins, dates get months or quarters, and all
    other columns get categories. Ranges such as ``18 to 25`` are categories in their order.

    ``marks`` are values that the user declared to mean an empty cell. They keep the declared order, because the schema
    is released and must not reveal the order in which rows contain them. ``date_order`` is used if the dates do not
    determine the order.
    """
    values = [v for v in column.values if v != MISSING and v not in marks]
    missing = len(values) < len(column.values)
    guessed = ("kind", "missing")
    order = guessed_order(values, date_order)
    if order is not None and (dates := date_bins(values, order)) is not None:
        return Column(
            name,
            "numeric",
            edges=dates.edges,
            integer=True,
            missing=missing,
            missing_marks=marks,
            dates=dates,
            date_order=order,
            guessed=(*guessed, "edges", "integer", *(["date_order"] if order else [])),
        )
    style = number_style(values)
    numeric, numbers = _numbers(values, style)
    whole = all(x.is_integer() for x in numbers)
    if numeric and len(values) > FEW and (edges := _round_edges(numbers, whole)):
        return Column(
            name,
            "numeric",
            edges=edges,
            integer=whole,
            missing=missing,
            missing_marks=marks,
            number_style=style,
            guessed=(*guessed, "edges", "integer", *(["number_style"] if style else [])),
        )
    in_order = ranges_in_order(values) or periods_in_order(values)
    kind: Kind = "ordinal" if numeric or in_order else "categorical"
    if numeric:
        by_size = dict(zip(values, numbers, strict=True))
        in_order = tuple(sorted(values, key=by_size.__getitem__))
    return Column(
        name,
        kind,
        categories=in_order or no_yes(values) or tuple(sorted(values)) or ("(no value)",),
        missing=missing,
        missing_marks=marks,
        guessed=(*guessed, "categories"),
    )


def guessed_order(values: Sequence[str], wanted: str = "") -> str | None:
    """Return the order of day, month and year in which all values are dates, or "" for ISO dates; `None` if there is no
    such order, or if there are several and ``wanted`` is not among them.
    """
    orders = possible_orders(values)
    return orders[0] if len(orders) == 1 else wanted if wanted in orders and wanted else None


def guess_bounds(column: TextColumn, marks: Sequence[str], style: str = "", *, whole: bool) -> tuple[float, ...] | None:
    """Return round bins for a column declared as numbers without bounds; `None` if there are none.

    Cells that are not numbers are ignored. Private.
    """
    plain = [plain_number(v, style) if style else v for v in column.values if v not in marks]
    numbers = [x for x in (float(v) for v in plain if v and NUMBER.fullmatch(v)) if math.isfinite(x)]
    if len(set(numbers)) < 2:
        return None
    return _round_edges(numbers, whole) or None


def _numbers(values: Sequence[str], style: str = "") -> tuple[bool, list[float]]:
    """Return whether all ``values`` are finite numbers, and the numbers. Codes with leading zeros are not numbers."""
    if leading_zeros(values):
        return False, []
    plain = [plain_number(v, style) if style else v for v in values]
    numbers = [float(v) for v in plain if v is not None and NUMBER.fullmatch(v)]
    every = bool(values) and len(numbers) == len(values) and all(math.isfinite(x) for x in numbers)
    return every, numbers if every else []


def looks_like_contacts(column: TextColumn) -> bool:
    """Return whether most values of ``column`` are e-mail addresses, telephone numbers or similar text. Private."""
    return contact([v for v in column.values if v != MISSING])


def reasons(column: TextColumn, guess: Column) -> tuple[str, ...]:
    """Return sentences that explain this guess of :func:`guess_column`. They are private, because they state how many
    values the column has.
    """
    values = [v for v in column.values if v != MISSING and v not in guess.missing_marks]
    numeric, _ = _numbers(values, number_style(values))
    many = f"{len(values):,} different value{'s' * (len(values) != 1)}"
    if guess.kind == "numeric" and guess.dates is None:
        why = f"All of its {many} are numbers, and there are more than {FEW}, so they are treated as numbers in bins."
        cover = "The bin edges are round numbers, and the last is above the largest number in the table."
        whole = "All of them are whole numbers." if guess.integer else "Some of them are not whole numbers."
        kind = [why, cover, whole]
    elif numeric and len(values) > FEW:
        kind = [
            f"Its {many} are numbers that are too large or too close for bins, so they are treated as ordered "
            "categories."
        ]
    elif numeric:
        kind = [f"Its {many} are numbers, but no more than {FEW}, so they are treated as ordered categories."]
    elif guess.dates is not None:
        kind = [
            f"Its {many} are dates, so they are grouped into calendar {guess.dates.by}s that cover whole years. "
            "Choose a range that is public knowledge without the table."
        ]
    elif ranges_in_order(values):
        kind = [f"Its {many} are ranges, so they are treated as categories in the order of the ranges."]
    elif periods_in_order(values):
        kind = [f"Its {many} are months, quarters or decades, so they are treated as categories in their order."]
    elif leading_zeros(values):
        kind = [f"Its {many} are codes with leading zeros, so they are treated as text."]
    else:
        kind = [f"Its {many} are not all numbers, so they are treated as categories."]
    empty = "At least one cell is empty" if len(values) < len(column.values) else "No cell is empty"
    return (*kind, f"{empty}, or contains a missing-value mark." if guess.missing_marks else f"{empty}.")


def sure_marks(text: TextTable) -> tuple[str, ...]:
    """Return a table's text values, such as ``?`` or ``NA``, that a guess treats as empty cells. Private."""
    found = {v for n, column in text.columns.items() if n for v in column.values if v.strip().casefold() in _SIGNS}
    return tuple(sorted(found))


def possible_marks(column: TextColumn) -> tuple[str, ...]:
    """Return values that often mean a missing cell, such as ``?``, ``NA`` or ``-9``. Private.

    A negative number that consists of nines (or -8, -7, -1) is such a value if no other number is negative. A positive
    number that consists of nines is such a value if it is more than twice the next smaller number.
    """
    found = [v for v in column.values if v.strip().casefold() in _MARKS]
    numeric, numbers = _numbers([v for v in column.values if v != MISSING and v not in found])
    if numeric and len(numbers) > 2:
        ordered = sorted(numbers)
        coded = {v: float(v) for v in column.values if NUMBER.fullmatch(v)}
        usual = [x for x in ordered if x not in _NEGATIVE]
        found += [v for v, x in coded.items() if x in _NEGATIVE and usual and usual[0] >= 0]
        found += [v for v, x in coded.items() if x in _NINES and x == ordered[-1] and x > 2 * max(ordered[-2], 1)]
    return tuple(found)


def _round_edges(numbers: Sequence[float], whole: bool) -> tuple[float, ...]:
    """Return round edges of about ten bins that cover ``numbers``. The bins have equal widths. If most numbers would
    then be in one bin and no number is negative, the edges are 1, 2, 5, 10, 20, … Return None if floats cannot
    represent the edges.

    The last edge is above the largest number, and the first edge is below the smallest number unless that number is 0,
    because an edge that equals a person's number would not be a public bound.
    """
    low, high = min(numbers), max(numbers)
    if not (high - low > LEAST_WIDTH and max(-low, high) <= LARGEST_EDGE / 2):
        return ()
    step = 10.0 ** math.floor(math.log10((high - low) / 4))
    while (high - low) / step > 11:
        step *= 2 if str(step / 10 ** math.floor(math.log10(step)))[0] != "2" else 2.5
    if whole:
        step = max(1.0, step)
    first = 0 if low == 0 else math.ceil(low / step) - 1
    last = math.floor(high / step) + 1
    edges = tuple(float(f"{i * step:.12g}") for i in range(first, last + 1))
    if len(set(edges)) < len(edges):
        return ()
    fullest = np.histogram(numbers, edges)[0].max()
    return (
        _growing_edges(numbers, whole)
        if low >= 0 and 1e-290 < high < 1e300 and fullest > MOST * len(numbers)
        else edges
    )


def _growing_edges(numbers: Sequence[float], whole: bool) -> tuple[float, ...]:
    """Return 0 and at most eleven of 1, 2, 5, 10, 20, … that cover the larger three quarters of ``numbers``, which are
    not negative. If eleven are not enough, use 1, 3, 10, … or 1, 10, 100, …
    """
    low, high = min(numbers), max(numbers)
    small = max(float(np.quantile([x for x in numbers if x > 0], 0.25)), 1.0 if whole else 1e-300)
    powers = range(
        math.floor(math.log10(small)), math.ceil(math.log10(high)) + 2
    )  # the logarithm may have been rounded down
    for digits in ((1, 2, 5), (1, 3), (1,)):
        ladder = [float(f"{digit}e{power}") for power in powers for digit in digits]
        last = next(i for i, x in enumerate(ladder) if x > high)
        edges = [x for i, x in enumerate(ladder[: last + 1]) if i == last or ladder[i + 1] > small]
        if len(edges) <= 11:
            break
    return tuple(edges[-11:]) if edges[-11:][0] <= low else (0.0, *edges[-11:])
