"""Constraints on rows: correction of values inside their bins, counts of violations, and candidates found in a table.

The model keeps every constraint in codes (`espalier.core.project.constraints`). This module handles cases that codes
cannot express: two ordered numbers in one bin, and a number that another column determines.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import SchemaError
from espalier.core.project.constraint_kinds import Determines, Impossible, Monotone, Range
from espalier.core.project.constraints import Constraint, Constraints
from espalier.core.project.schema import MISSING, NUMBER, Column, Schema

Texts = Mapping[str, Sequence[str]]
Codes = Mapping[str, NDArray[np.integer]]

SURPRISE = 20.0
"""A pair of values that no row has becomes a candidate if independence predicts at least this many rows with the pair.
"""

MOST_CANDIDATES = 50


def settle(constraints: Constraints, schema: Schema, codes: Codes, texts: Texts) -> dict[str, list[str]]:
    """Return ``texts`` with corrections inside bins. The texts were decoded from ``codes``, which satisfy the
    constraints.

    If the values of several ordered columns are in one bin, they are sorted among themselves. For a chain of columns
    whose numbers have the same distribution in the bin, the result has the conditional distribution given the order.
    Numbers that another column determines come from the constraint's table.
    """
    out = {name: list(column) for name, column in texts.items()}
    for names in _chains(constraints.monotone):
        if schema[names[0]].kind != "numeric":
            continue
        written = np.array([out[name] for name in names], dtype=object)
        held = np.array([codes[name] for name in names], dtype=np.int64)
        numbers = np.array([schema[name].as_released.numbers(out[name]) for name in names])
        places = np.argsort(held, axis=0, kind="stable")
        order = np.lexsort((numbers, held), axis=0)
        np.put_along_axis(written, places, np.take_along_axis(written, order, axis=0), axis=0)
        out |= {name: row.tolist() for name, row in zip(names, written, strict=True)}
    for c in constraints.determines:
        if schema[c.effect].kind == "numeric":
            known = zip(out[c.cause], out[c.effect], strict=True)
            out[c.effect] = [t if t == MISSING else c.table.get(cause, t) for cause, t in known]
    return out


def violations(constraints: Constraints, schema: Schema, texts: Texts) -> list[tuple[Constraint, int]]:
    """Return, for each constraint, the number of rows of ``texts`` that violate it. These numbers are private for a
    private table.
    """
    return [(c, int(np.count_nonzero(_broken(c, schema, texts)))) for c in constraints]


def _broken(constraint: Constraint, schema: Schema, texts: Texts) -> NDArray[np.bool_]:
    if isinstance(constraint, Impossible):
        parts = [_among(texts[name], values) for name, values in constraint.values.items()]
        return np.asarray(np.logical_and.reduce(parts))
    one, other = (texts[name] for name in constraint.columns)
    if isinstance(constraint, Monotone):
        low, high = (_numbers(texts[name], schema[name]) for name in constraint.columns)
        return np.asarray(low > high)  # false if either value is missing
    numeric = schema[constraint.effect].kind == "numeric"
    return np.array(
        [
            cause in constraint.table and not _same(t, constraint.table[cause], numeric)
            for cause, t in zip(one, other, strict=True)
        ],
        dtype=np.bool_,
    )


def _same(text: str, wanted: str, numeric: bool) -> bool:
    if text in (MISSING, wanted):
        return True
    return numeric and wanted != MISSING and bool(NUMBER.fullmatch(text)) and float(text) == float(wanted)


def _among(column: Sequence[str], values: tuple[str, ...] | Range) -> NDArray[np.bool_]:
    if not isinstance(values, Range):
        return np.isin(np.array(column, dtype=object), values)
    numbers = np.array([math.nan if t == MISSING else float(t) for t in column])
    return np.asarray((numbers >= values.low) & (numbers < values.high))


def _numbers(column: Sequence[str], described: Column) -> NDArray[np.float64]:
    if described.kind == "numeric":
        return described.numbers(column)
    place: dict[str, float] = {text: i for i, text in enumerate(described.categories)}
    return np.array([place.get(t, math.nan) for t in column])


def _chains(pairs: Sequence[Monotone]) -> list[tuple[str, ...]]:
    """Return the columns of each connected set of ordered pairs, with lower columns first."""
    names = list(dict.fromkeys(name for p in pairs for name in p.columns))
    below = {name: [p.lower for p in pairs if p.upper == name] for name in names}
    order: list[str] = []
    while len(order) < len(names):
        order += [n for n in names if n not in order and all(b in order for b in below[n])]
    part = {name: name for name in names}
    for p in pairs:
        old, new = part[p.upper], part[p.lower]
        part = {name: new if label == old else label for name, label in part.items()}
    return [tuple(n for n in order if part[n] == label) for label in dict.fromkeys(part.values())]


def candidates(schema: Schema, codes: Codes) -> Constraints:
    """Return likely constraints that all rows satisfy, each marked as guessed; at most `MOST_CANDIDATES` of each kind.

    There are three kinds of candidates: a pair of values that no row has although independence predicts at least
    `SURPRISE` rows; a pair of columns in which the first never exceeds the second; and a column that determines
    another. Candidates are private, and confirming one declares it public.
    """
    empty: list[tuple[float, Impossible]] = []
    ordered: list[Monotone] = []
    known: list[Determines] = []
    for a, b in itertools.combinations(schema.columns, 2):
        counts = np.zeros((a.size, b.size), dtype=np.int64)
        np.add.at(counts, (codes[a.name], codes[b.name]), 1)
        found = [d for d in (_determined(a, b, counts), _determined(b, a, counts.T)) if d is not None]
        known += found
        for low, high, table in ((a, b, counts), (b, a, counts.T)):
            pair = Monotone(low.name, high.name, "guessed")
            try:
                mask = pair.mask((low, high))
            except SchemaError:
                continue
            values = table[: low.values, : high.values]
            if not table[mask].any() and np.count_nonzero(values) > min(values.shape):
                ordered.append(pair)
        if not found:
            empty += _never_seen(a, b, counts)
    empty.sort(key=lambda item: -item[0])
    kept = tuple(c for _, c in empty[:MOST_CANDIDATES])
    return Constraints(kept, tuple(ordered[:MOST_CANDIDATES]), tuple(known[:MOST_CANDIDATES]))


def _determined(cause: Column, effect: Column, counts: NDArray[np.int64]) -> Determines | None:
    """Return the table by which ``cause`` determines ``effect``; `None` if the effect is constant or not determined by
    ``cause``.
    """
    if cause.kind == "numeric" or effect.kind == "numeric":
        return None
    seen = counts[: cause.values, : effect.values]
    if np.any((seen > 0).sum(axis=1) != 1) or counts[: cause.values, effect.values :].any():
        return None
    effects = seen.argmax(axis=1)
    if len(set(effects.tolist())) < 2:
        return None
    table = {c: effect.categories[t] for c, t in zip(cause.categories, effects.tolist(), strict=True)}
    return Determines(cause.name, effect.name, table, "guessed")


def _never_seen(a: Column, b: Column, counts: NDArray[np.int64]) -> list[tuple[float, Impossible]]:
    """Return pairs of values that no row has although many rows are expected to have them, with the expected number."""
    expected = np.outer(counts.sum(1), counts.sum(0)) / max(int(counts.sum()), 1)
    places = np.argwhere((counts == 0) & (expected >= SURPRISE))
    return [
        (float(expected[i, j]), Impossible({a.name: _value(a, int(i)), b.name: _value(b, int(j))}, "guessed"))
        for i, j in places
    ]


def _value(column: Column, code: int) -> tuple[str, ...] | Range:
    """Return a code in the form that constraints use."""
    if code == column.values:
        return (MISSING,)
    if column.kind != "numeric":
        return (column.categories[code],)
    last = code == column.values - 1
    high = math.nextafter(column.edges[-1], math.inf) if last else column.edges[code + 1]
    return Range(column.edges[code], high)
