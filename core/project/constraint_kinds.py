"""Kinds of constraints (impossible combinations, ordered pairs of columns, and dependencies) and their text form.

A missing cell does not violate a constraint unless the constraint names it as an empty string.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import ProjectError, SchemaError
from espalier.core.graph.separations import Clique
from espalier.core.project.schema import MISSING, TOP_ONLY, Column, HierarchyToBuy

Mark = Literal["", "guessed", "confirmed"]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` up to, but not including, ``high``."""

    low: float = -math.inf
    high: float = math.inf

    def __str__(self) -> str:
        if self.high == math.inf:
            return f"≥ {self.low:g}"
        return f"< {self.high:g}" if self.low == -math.inf else f"from {self.low:g} to below {self.high:g}"


Values = tuple[str, ...] | Range
"""Categories (an empty string means the missing cell), or a range of a numeric column."""


@dataclass(frozen=True)
class Impossible:
    """No row has one of the ``values`` in every named column."""

    values: Mapping[str, Values]
    mark: Mark = ""

    @property
    def columns(self) -> Clique:
        """Columns that the constraint joins."""
        return tuple(self.values)

    def __str__(self) -> str:
        return " and ".join(
            f"{name} {v}" if isinstance(v, Range) else f"{name} = {' or '.join(t or '(missing)' for t in v)}"
            for name, v in self.values.items()
        )

    def mask(self, columns: Sequence[Column]) -> Mask:
        """Return the impossible cells: one axis per column. Raises :class:`SchemaError` for unknown values."""
        out = np.ones((), dtype=np.bool_)
        for column, values in zip(columns, self.values.values(), strict=True):
            out = np.logical_and.outer(out, _codes(column, values))
        return np.asarray(out)

    def to_json(self) -> Any:
        """Return the entry as the project file stores it."""
        given = {n: _range_json(v) if isinstance(v, Range) else list(v) for n, v in self.values.items()}
        return {"values": given, self.mark: True} if self.mark else given

    @classmethod
    def from_json(cls, data: Any) -> Impossible:
        """Return the constraint in the project file; raise :class:`ProjectError` if it is invalid."""
        inside, mark = _marked(data, "values", "impossible")
        if not isinstance(inside, Mapping) or len(inside) < 1:
            raise entry_error("impossible", 'each entry maps columns to values: {"sex": ["male"], "pregnant": ["yes"]}')
        return cls({str(name): _values(str(name), given) for name, given in inside.items()}, mark)


@dataclass(frozen=True)
class Monotone:
    """``lower`` never exceeds ``upper``; both are ordered columns with the same edges or categories."""

    lower: str
    upper: str
    mark: Mark = ""

    @property
    def columns(self) -> Clique:
        """Columns that the constraint joins."""
        return (self.lower, self.upper)

    def __str__(self) -> str:
        return f"{self.lower} ≤ {self.upper}"

    def mask(self, columns: Sequence[Column]) -> Mask:
        """Return the cells with ``lower`` above ``upper``. Raises :class:`SchemaError` for incomparable columns."""
        low, high = columns
        for column in columns:
            if column.kind == "categorical":
                raise SchemaError(
                    f"monotone: column {column.name!r} has unordered categories; make it ordinal, or leave {self} out",
                    column=column.name,
                )
        if low.kind != high.kind or low.edges != high.edges or low.categories != high.categories:
            shared = "bin edges" if low.kind == high.kind == "numeric" else "kind and categories"
            raise SchemaError(
                f"monotone: {low.name!r} and {high.name!r} must have the same {shared}, so that codes can be compared",
                column=low.name,
            )
        if (low.step, low.dates is None) != (high.step, high.dates is None):  # their numbers may change places in a bin
            raise SchemaError(
                f"monotone: {low.name!r} and {high.name!r} must have the same precision: both whole numbers, both the "
                "same number of decimals, or both dates",
                column=low.name,
            )
        out = np.zeros((low.size, high.size), dtype=np.bool_)
        out[: low.values, : high.values] = np.arange(low.values)[:, None] > np.arange(high.values)
        return out

    def to_json(self) -> Any:
        """Return the entry as the project file stores it."""
        pair = [self.lower, self.upper]
        return {"columns": pair, self.mark: True} if self.mark else pair

    @classmethod
    def from_json(cls, data: Any) -> Monotone:
        """Return the constraint in the project file; raise :class:`ProjectError` if it is invalid."""
        pair, mark = _marked(data, "columns", "monotone")
        return cls(*_pair(pair, "monotone"), mark)


@dataclass(frozen=True)
class Determines:
    """``cause`` determines ``effect`` by a full value table, from each category to a value of ``effect``."""

    cause: str
    effect: str
    table: Mapping[str, str] = field(default_factory=dict)
    mark: Mark = ""

    @property
    def columns(self) -> Clique:
        """Columns that the constraint joins."""
        return (self.cause, self.effect)

    def __str__(self) -> str:
        return f"{self.cause} determines {self.effect}"

    def mask(self, columns: Sequence[Column]) -> Mask:
        """Return the cells with a wrong ``effect``. Raises :class:`SchemaError` for a table that does not fit."""
        cause, effect = columns
        if cause.kind == "numeric":
            raise SchemaError(
                f"determines: {cause.name!r} is numeric, but only a column with categories can determine another "
                "column",
                column=cause.name,
            )
        for text in cause.categories:
            if text not in self.table:
                raise SchemaError(
                    f"determines: the table of {self} has no entry for {text!r}",
                    column=cause.name,
                    value=text,
                )
        for text in self.table:
            if text != MISSING and text not in cause.categories:
                raise SchemaError(f"determines: {text!r} is not a category of {cause.name!r}", column=cause.name)
        out = np.zeros((cause.size, effect.size), dtype=np.bool_)
        for i, text in enumerate((*cause.categories, MISSING)[: cause.size]):
            if text not in self.table:  # a missing cause implies nothing unless the table lists it
                continue
            out[i, : effect.values] = True
            value = self.table[text]
            if why := effect.why_not_released(value):
                raise SchemaError(f"determines: column {effect.name!r}: the value {value!r} {why}", column=effect.name)
            (code,) = effect.as_released.encode([value])
            out[i, code] = False
        return out

    def to_json(self) -> Any:
        """Return the entry as the project file stores it."""
        out: dict[str, Any] = {"columns": [self.cause, self.effect], "table": dict(self.table)}
        return {**out, self.mark: True} if self.mark else out

    @classmethod
    def from_json(cls, data: Any) -> Determines:
        """Return the constraint in the project file; raise :class:`ProjectError` if it is invalid."""
        if isinstance(data, list):
            cause, effect = _pair(data, "determines")
            raise entry_error(
                "determines",
                f"{cause!r} and {effect!r} need their full value table: "
                f'{{"columns": [{cause!r}, {effect!r}], "table": {{…}}}}; the Data page can fill it in',
            )
        pair, mark = _marked(data, "columns", "determines", also=("table",))
        table = data.get("table") if isinstance(data, Mapping) else None
        if not isinstance(table, Mapping) or not all(isinstance(x, str) for x in (*table, *table.values())):
            raise entry_error("determines", "table must map each category to a string, in quotes")
        return cls(*_pair(pair, "determines"), dict(table), mark)


def _codes(column: Column, values: Values) -> Mask:
    """Return the codes of ``column`` that these values denote."""
    out = np.zeros(column.size, dtype=np.bool_)
    if isinstance(values, Range):
        if column.kind != "numeric":
            raise SchemaError(f"impossible: {column.name!r} has categories; list them", column=column.name)
        for i, (first, last, closed) in enumerate(_bins(column)):
            inside = first >= values.low and (last < values.high if closed else last <= values.high)
            apart = first >= values.high or (last < values.low if closed else last <= values.low)
            if not inside and not apart:
                cut = values.high if first < values.high else values.low
                raise SchemaError(
                    f"impossible: {column.name} {values} cuts the bin {column.labels[i]} in two; add {cut:g} to the "
                    "bin edges",
                    column=column.name,
                )
            out[i] = inside
        if not out.any():
            raise SchemaError(f"impossible: no bin of {column.name!r} is {values}", column=column.name)
        return out
    if column.kind == "numeric" and any(text != MISSING for text in values):
        raise SchemaError(
            f'impossible: {column.name!r} is numeric; give a range, such as {{"below": 16}}', column=column.name
        )
    for text in values:
        if text == MISSING and not column.missing:
            raise SchemaError(f"impossible: {column.name!r} has no missing cells", column=column.name)
        if text != MISSING and text not in column.named:
            why = f"is not a category of {column.name!r}"
            if isinstance(column, HierarchyToBuy):
                why = f"cannot be named here. {TOP_ONLY}: {', '.join(list(column.named)[:12])}"
            raise SchemaError(f"impossible: {text!r} {why}", column=column.name, value=text)
        out[[column.values] if text == MISSING else list(column.named[text])] = True
    return out


def _bins(column: Column) -> list[tuple[float, float, bool]]:
    """Return the ends of each bin, and whether the upper end belongs to it; for whole numbers, the ends are whole."""
    last = column.values - 1
    pairs = itertools.pairwise(column.edges)
    if not column.integer:
        return [(low, high, i == last) for i, (low, high) in enumerate(pairs)]
    return [
        (math.ceil(low), math.floor(high) if i == last else math.ceil(high) - 1, True)
        for i, (low, high) in enumerate(pairs)
    ]


def entry_error(key: str, text: str) -> ProjectError:
    """Return the error for a bad entry under ``key`` of the project file."""
    return ProjectError(f"{key}: {text}", key=key)


def _marked(data: Any, inside: str, key: str, also: tuple[str, ...] = ()) -> tuple[Any, Mark]:
    """Return an entry's content and its mark. Without a mark, an entry may consist of the content alone."""
    if not isinstance(data, Mapping):
        return data, ""
    marks = [m for m in ("guessed", "confirmed") if isinstance(data.get(m), bool)]
    framed = bool(marks) or bool(also) or key == "monotone"
    if not framed:
        return data, ""
    if odd := set(data) - {inside, *also, "guessed", "confirmed"}:
        raise entry_error(key, f"unknown key {sorted(map(str, odd))[0]!r}")
    if inside not in data:
        raise entry_error(key, f"{inside} is missing")
    guessed, confirmed = (data.get(m) is True for m in ("guessed", "confirmed"))
    if guessed and confirmed:
        raise entry_error(key, "an entry is either guessed or confirmed, not both")
    return data[inside], "guessed" if guessed else "confirmed" if confirmed else ""


def _pair(data: Any, key: str) -> tuple[str, str]:
    if not isinstance(data, list) or len(data) != 2 or not all(isinstance(x, str) for x in data):
        raise entry_error(key, f"each entry names two columns, not {data!r}"[:200])
    if data[0] == data[1]:
        raise entry_error(key, f"{data[0]!r} is listed twice")
    return data[0], data[1]


def _values(name: str, given: Any) -> Values:
    if isinstance(given, list) and given and all(isinstance(x, str) for x in given):
        return tuple(dict.fromkeys(given))
    if isinstance(given, Mapping) and given and set(given) <= {"from", "below"}:
        ends = [given.get("from", -math.inf), given.get("below", math.inf)]
        if all(isinstance(x, int | float) and not isinstance(x, bool) for x in ends) and ends[0] < ends[1]:
            return Range(float(ends[0]), float(ends[1]))
    raise entry_error(
        "impossible",
        f'the values of {name!r} must be a list of strings, in quotes, or a range: {{"from": 0, "below": 16}}',
    )


def _range_json(given: Range) -> dict[str, float]:
    out = {"from": given.low, "below": given.high}
    return {key: int(x) if x == int(x) else x for key, x in out.items() if math.isfinite(x)}
