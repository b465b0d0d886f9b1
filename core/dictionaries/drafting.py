"""Draft of a schema from a dictionary. Declared columns are public; the others are guessed and marked as guesses. A
declared column depends only on the dictionary and on the user's choices. Two tables that differ in one row therefore
produce the same declared columns, or require a choice. Only the form of dates in declared columns is read from the
rows, and it is always marked as a guess: the order of day, month and year, or the fact that all dates are ISO dates.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Literal

from espalier.core.dictionaries.base import Declared, Dictionary
from espalier.core.errors import SchemaError
from espalier.core.project.dates import DateBins, Period, day_number
from espalier.core.project.declared_by import DeclaredBy
from espalier.core.project.schema import MISSING, NUMBER, Column, Dates, Identifier, LeftOut, Schema
from espalier.core.tables.guessing import FEW, guess_bounds, guess_column, guessed_order, identifiers
from espalier.core.tables.text_table import TextColumn, TextTable

Choice = Literal["missing", "guess", "leave-out"]
CHOICES: dict[Choice, str] = {
    "missing": "count such cells as empty",
    "guess": "guess the column from the rows, to be confirmed",
    "leave-out": "leave the column out of the release",
}
"""Choices for cells that a dictionary does not declare."""
Problem = Literal["values that the dictionary does not declare", "empty cells, which the dictionary does not allow"]
BINS = 10
FINEST, FARTHEST = 1e-300, 1e300
"""Smallest width of a declared range, and largest absolute value of its bounds. Any other range is ignored, because its
rounded bounds would not be finite numbers.
"""


@dataclass(frozen=True)
class Undecided:
    """A column that needs a choice, and the reason. The reason neither quotes nor counts cells."""

    column: str
    problem: Problem


@dataclass(frozen=True)
class Draft:
    """A schema made from dictionaries.

    ``undecided`` lists the columns that still need a choice. ``free_text`` names columns of free text, which are left
    out. ``absent`` names declared columns that the table lacks. ``used`` records each dictionary with the columns that
    it declares.
    """

    schema: Schema
    undecided: tuple[Undecided, ...]
    free_text: tuple[str, ...]
    absent: tuple[str, ...]
    used: tuple[DeclaredBy, ...]

    def check(self) -> None:
        """Raise :class:`SchemaError` with a list of the open choices, if there are any."""
        if self.undecided:
            listed = "; ".join(f"{u.column!r} has {u.problem}" for u in self.undecided)
            ways = ", ".join(f"{choice} ({what})" for choice, what in CHOICES.items())
            raise SchemaError(
                f"these columns need a choice: {listed}. Give one for each (--undeclared COLUMN=CHOICE): {ways}",
                key="undeclared",
            )


def draft_schema(
    dictionaries: Sequence[Dictionary],
    text: TextTable,
    marks: Sequence[str] = (),
    choices: Mapping[str, Choice] | None = None,
    date_order: str = "",
) -> Draft:
    """Return a schema for the columns of ``text``. A later dictionary adds to an earlier one.

    Columns that no dictionary names are guessed, as in `espalier.core.tables.guessing.guess_schema`. ``choices`` state
    how to treat cells that are not declared.
    """
    named, chosen = [n for n in text.columns if n], choices or {}
    dictionaries = [spelled_as(dictionary, named) for dictionary in dictionaries]
    declared = merged(dictionaries)
    if strange := [n for n in chosen if n not in declared]:
        raise SchemaError(f"no dictionary declares {strange[0]!r}, so there is nothing to choose for it")
    columns: list[Column] = []
    aside: list[Identifier] = []
    free, undecided = list[str](), list[Undecided]()
    looks_like_id = set(identifiers(text, marks))
    left_out: list[LeftOut] = []
    for place, name in enumerate(named):
        about, choice = declared.get(name), chosen.get(name)
        if choice == "leave-out":
            continue
        if about is None or choice == "guess" or (about.kind == "open" and name in looks_like_id):
            if name in looks_like_id and (about is None or about.kind == "open"):
                left_out.append(LeftOut(name))
            else:
                columns.append(_labelled(_guessed(name, text.columns[name], about, marks, date_order), about))
        elif about.kind == "identifier":
            aside.append(Identifier(name, place=place))
        elif about.kind == "text":
            free.append(name)
        else:
            column = _labelled(_column(about, text.columns[name], marks, date_order), about)
            if choice == "missing":
                column = replace(column, missing=True, unknown="missing")
            undecided += _problems(column, text.columns[name])
            columns.append(column)
    if not columns:
        raise SchemaError(
            "the dictionary leaves no column to release, because it declares only free text and identifiers"
        )
    schema = Schema(tuple(columns), tuple(left_out), tuple(aside))
    used = tuple(
        DeclaredBy(d.source, d.format, d.digest, tuple(c.name for c in d.columns if c.name in text.columns))
        for d in dictionaries
    )
    absent = tuple(name for name in declared if name not in text.columns)
    return Draft(schema, tuple(undecided), tuple(free), absent, used)


def spelled_as(dictionary: Dictionary, names: Sequence[str]) -> Dictionary:
    """Return the dictionary with the table's column names, which may have surrounding blanks."""
    taken, own = {*names}, {column.name for column in dictionary.columns}
    spelled = {name.strip(): name for name in names if name.strip() in own and name.strip() not in taken}
    if not spelled:
        return dictionary
    renamed = (replace(column, name=spelled.get(column.name, column.name)) for column in dictionary.columns)
    return replace(dictionary, columns=tuple(renamed))


def merged(dictionaries: Iterable[Dictionary]) -> dict[str, Declared]:
    """Combine declarations; for each field, the last dictionary that declares it takes precedence."""
    out: dict[str, Declared] = {}
    for dictionary in dictionaries:
        for column in dictionary.columns:
            before = out.get(column.name)
            out[column.name] = column if before is None else _over(before, column)
    return out


def _over(before: Declared, after: Declared) -> Declared:
    """Return ``after``, completed with declarations that only ``before`` contains."""
    if after.kind == "open":
        kind, categories, ends, spellings = before.kind, before.categories, before.range, before.spellings
    else:
        kind, categories, spellings = after.kind, after.categories, after.spellings
        ends = after.range if any(after.range) else before.range
    return replace(
        after,
        kind=kind,
        categories=categories,
        range=ends,
        labels=tuple({**dict(before.labels), **dict(after.labels)}.items()),
        missing=tuple(dict.fromkeys((*before.missing, *after.missing))),
        integer=after.integer or before.integer,
        decimals=after.decimals or before.decimals,
        number_style=after.number_style or before.number_style,
        label=after.label or before.label,
        unit=after.unit or before.unit,
        description=after.description or before.description,
        spellings=spellings,
    )


def declared_column(about: Declared) -> Column | None:
    """Return the column if the dictionary declares it completely; `None` if the dictionary does not state the values or
    the bounds.
    """
    missing = not about.required or bool(about.missing)
    values = set(about.categories)
    marks = tuple(m for m in about.missing if m not in values)
    if about.kind in ("categorical", "ordinal") and about.categories:
        kind: Literal["categorical", "ordinal"] = "ordinal" if about.kind == "ordinal" else "categorical"
        groups = _spellings(about, marks) or _without_zeros((*about.categories, *marks), about.categories)
        column = Column(about.name, kind, about.categories, missing=missing, missing_marks=marks, groups=groups)
    elif about.kind == "date" and (dates := _dates(about)) is not None:
        column = Column(
            about.name, "numeric", edges=dates.edges, integer=True, missing=missing, missing_marks=marks, dates=dates
        )
    elif about.kind == "numeric" and (edges := _edges(about)) is not None:
        column = _numeric(about, edges, missing=missing, marks=marks)
    else:
        return None
    return _labelled(column, about)


def _spellings(about: Declared, marks: Sequence[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return each code with its other spellings, except those that are themselves codes or missing codes."""
    taken = {*about.categories, *marks}
    listed = ((code, tuple(t for t in texts if t not in taken)) for code, texts in about.spellings if code in taken)
    return tuple((code, texts) for code, texts in listed if texts)


def _without_zeros(taken: Sequence[str], categories: Sequence[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Map each whole number with leading zeros to its spelling without them; often only the codebook pads codes."""
    known, out = set(taken), []
    for code in categories:
        short = code.lstrip("0") or "0"
        if code.isascii() and code.isdigit() and short not in known:
            known.add(short)
            out.append((code, (short,)))
    return tuple(out)


def _column(about: Declared, read: TextColumn, marks: Sequence[str], date_order: str) -> Column:
    """Return the declared column, with guessed values or bounds if the dictionary declares none."""
    complete = declared_column(about)
    if complete is not None:
        return _in_order(complete, read, date_order) if isinstance(complete, Dates) else complete
    own = tuple(dict.fromkeys((*about.missing, *(m for m in marks if m in read.values))))
    edges = guess_bounds(read, own, about.number_style, whole=about.integer) if about.kind == "numeric" else None
    if edges is not None:
        if about.decimals is not None and not about.integer:
            edges = _outward(edges, about.decimals)
        missing = not about.required or bool(own)
        return replace(_numeric(about, edges, missing=missing, marks=own), guessed=("missing", "edges"))
    return _guessed(about.name, read, about, marks, date_order)


def _in_order(column: Dates, read: TextColumn, date_order: str) -> Dates:
    """Return declared dates with the order of day, month and year that the rows use, marked as a guess.

    The fact that all dates are ISO dates is marked as a guess too, because a single row could change it.
    """
    order = guessed_order([v for v in read.values if not column.is_empty(v)], date_order)
    return replace(column, date_order=order or "", guessed=("date_order",))


def _outward(edges: tuple[float, ...], decimals: int) -> tuple[float, ...]:
    """Return guessed edges with the declared decimals, the ends rounded outward. The declaration then never depends on
    the rows.
    """
    scale = 10**decimals
    low, high = math.floor(edges[0] * scale), math.ceil(edges[-1] * scale)
    inner = {round(edge * scale) for edge in edges[1:-1]}
    return tuple(whole / scale for whole in sorted({low, *inner, max(high, low + 1)}))


def _numeric(about: Declared, edges: tuple[float, ...], *, missing: bool, marks: tuple[str, ...]) -> Column:
    """Return a column of numbers. If the bounds have no decimals, the bins determine them."""
    rounded = about.decimals is not None and all(abs(round(e, about.decimals) - e) < 1e-9 for e in edges)
    return Column(
        about.name,
        "numeric",
        edges=edges,
        integer=about.integer,
        decimals=about.decimals if rounded and not about.integer else None,
        missing=missing,
        missing_marks=marks,
        number_style=about.number_style,
    )


def _guessed(name: str, read: TextColumn, about: Declared | None, marks: Sequence[str], date_order: str) -> Column:
    own = tuple(dict.fromkeys((*(about.missing if about else ()), *(m for m in marks if m in read.values))))
    made = guess_column(name, read, own, date_order)
    return replace(made, missing=True) if own and not made.missing else made


def _labelled(column: Column, about: Declared | None) -> Column:
    if about is None:
        return column
    return replace(column, label=about.label, unit=about.unit, description=about.description, value_labels=about.labels)


def _problems(column: Column, read: TextColumn) -> Iterable[Undecided]:
    """Yield the reasons why rows do not fit the declaration; guessed parts always fit."""
    codes = column.judge(read.values)
    if (codes == column.size).any():
        yield Undecided(column.name, "values that the dictionary does not declare")
    if (codes > column.size).any() and MISSING in read.values:
        yield Undecided(column.name, "empty cells, which the dictionary does not allow")


def undeclared_values(column: Column, read: TextColumn) -> tuple[str, ...]:
    """Return the values of the rows that a declared column does not allow, in order. Private."""
    codes = column.judge(read.values)
    return tuple(sorted(v for v, code in zip(read.values, codes.tolist(), strict=True) if code == column.size))


def _edges(about: Declared) -> tuple[float, ...] | None:
    """Return bins over the declared range: its ends, and round numbers between them."""
    ends = [end.replace(",", ".") if about.number_style == "1234,5" else end for end in about.range]
    if not all(NUMBER.fullmatch(end) for end in ends):
        return None
    low, high = map(float, ends)
    if not (FINEST < high - low < math.inf and max(abs(low), abs(high)) <= FARTHEST):
        return None
    if about.integer:
        low, high = math.ceil(low), math.floor(high)
        if high - low < FEW:
            return (*(float(low + i) for i in range(int(high - low) + 1)), high + 0.5)
    step = 10.0 ** math.floor(math.log10((high - low) / 4))
    while (high - low) / step > BINS + 2:
        step *= 2.5 if f"{step:e}"[0] == "2" else 2
    step = max(step, 1.0) if about.integer else step
    first, last = math.floor(low / step) + 1, math.ceil(high / step) - 1
    return (float(low), *(float(f"{i * step:.12g}") for i in range(first, last + 1)), float(high))


def _dates(about: Declared) -> DateBins | None:
    days = [day_number(end) for end in about.range]
    if days[0] is None or days[1] is None or not days[0] < days[1]:
        return None
    first, last = date.fromordinal(days[0]), date.fromordinal(days[1])
    years = last.year - first.year + 1
    by: Period = "month" if years <= 5 else "quarter" if years <= 20 else "year"
    return DateBins(first, last, by)
