"""A guess of the schema, read off the table: a convenience, never public until the user says so.

Every field that the guess took from the data is listed in the column's ``guessed``, every column that it dropped in
the schema's ``left_out``; a release refuses both until they are confirmed.
"""

from __future__ import annotations

import math

from core.errors import SchemaError
from core.project.schema import MISSING, NUMBER, Column, Kind, LeftOut, Schema
from core.tables.reading import TextColumn, TextTable

FEW = 20
"""Up to so many distinct numbers a column is taken for categories."""


def guess_schema(text: TextTable) -> Schema:
    """A schema that fits ``text``: each field from the data marked as guessed, and what looks like an identifier left
    out, which is marked as a guess too. Where every column looks like one, none is left out.
    """
    named = tuple(n for n in text.columns if n)
    if not named:
        raise SchemaError(f"{text.source} has no named columns")
    out = identifiers(text)
    if len(out) == len(named):
        out = ()
    kept = tuple(guess_column(n, text.columns[n]) for n in named if n not in out)
    return Schema(kept, tuple(LeftOut(n) for n in out))


def identifiers(text: TextTable) -> tuple[str, ...]:
    """Columns that look like numbers or names of persons or cases: whole numbers or texts that hardly repeat.

    More than :data:`FEW` distinct values, and more than half as many as there are cells that hold one. Private.
    """
    return tuple(n for n, column in text.columns.items() if n and _hardly_repeats(column))


def _hardly_repeats(column: TextColumn) -> bool:
    values = [v for v in column.values if v != MISSING]
    empty = column.values.index(MISSING) if MISSING in column.values else -1
    cells = int((column.codes != empty).sum())
    if len(values) <= FEW or 2 * len(values) <= cells:
        return False
    numeric = all(NUMBER.fullmatch(v) for v in values)
    return not numeric or all(math.isfinite(x) and x.is_integer() for x in map(float, values))


def guess_column(name: str, column: TextColumn) -> Column:
    """One column's guess: numbers with many distinct values get about ten bins, all else categories."""
    values = [v for v in column.values if v != MISSING]
    missing = len(values) < len(column.values)
    guessed = ("kind", "missing")
    numeric = bool(values) and all(NUMBER.fullmatch(v) for v in values)
    numbers = [float(v) for v in values] if numeric else []
    if numeric and len(values) > FEW and all(math.isfinite(x) for x in numbers):
        whole = all(x.is_integer() for x in numbers)
        return Column(
            name,
            "numeric",
            edges=_round_edges(min(numbers), max(numbers), whole),
            integer=whole,
            missing=missing,
            guessed=(*guessed, "edges", "integer"),
        )
    kind: Kind = "ordinal" if numeric else "categorical"
    ordered = sorted(values, key=float) if numeric else sorted(values)
    return Column(name, kind, categories=tuple(ordered) or ("?",), missing=missing, guessed=(*guessed, "categories"))


def _round_edges(low: float, high: float, whole: bool) -> tuple[float, ...]:
    """Edges at round numbers, about ten bins, that cover low … high."""
    step = 10.0 ** math.floor(math.log10((high - low) / 4))
    while (high - low) / step > 12:
        step *= 2 if str(step / 10 ** math.floor(math.log10(step)))[0] != "2" else 2.5
    if whole:
        step = max(1.0, step)
    first = math.floor(low / step)
    last = max(math.ceil(high / step), first + 1)
    return tuple(round(i * step, 12) for i in range(first, last + 1))
