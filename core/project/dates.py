"""Dates in bins of weeks, months, quarters or years over a declared range, and invented identifiers.

A date is a whole number: the day counted from 1 January of the year 1 (:meth:`datetime.date.toordinal`). A column of
dates is therefore a numeric column of whole numbers whose bins end with calendar periods. Both ends of the range are
public.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import SchemaError
from espalier.core.project.cells import MISSING
from espalier.core.project.date_orders import iso_text

Period = Literal["week", "month", "quarter", "year"]
MOST_PERIODS = 1000
_ISO = re.compile(r"\s*(\d{4}-\d{2}-\d{2})([T ]\d{2}:\d{2}\S*)?\s*", re.ASCII)


@dataclass(frozen=True)
class DateBins:
    """Bins of a date column: each calendar period ``by`` from ``first`` to ``last``, both included.

    The outermost bins are cut off at the ends of the range. Weeks begin on Monday. Raises :class:`SchemaError` for an
    impossible range, or one with more than `MOST_PERIODS` bins.
    """

    first: date
    last: date
    by: Period

    def __post_init__(self) -> None:
        if self.by not in get_args(Period):
            raise SchemaError(f"dates are binned by week, month, quarter or year, not by {self.by!r}")
        if not self.first < self.last:
            raise SchemaError(f"a range of dates must go from a day to a later one, not {self.first} to {self.last}")
        if self.last.year == date.max.year:
            raise SchemaError(f"the last day ({self.last}) must be before the year {date.max.year}")
        count = sum(1 for _ in itertools.islice(self._starts(), MOST_PERIODS + 1))
        if count > MOST_PERIODS:
            raise SchemaError(
                f"{self.first} to {self.last} has more than {MOST_PERIODS:,} bins by {self.by}; choose a longer period"
            )

    def _starts(self) -> Iterator[date]:
        """Yield the first day of each bin."""
        day = self.first
        while day <= self.last:
            yield day
            day = _next_start(day, self.by)

    @property
    def edges(self) -> tuple[float, ...]:
        """Bin edges as day numbers, for a numeric column of whole numbers.

        The last edge lies half a day after the last day, because the outermost bin is closed. Otherwise the last bin
        would include the day after the range, or lack the last day if a period begins on that day.
        """
        return (*(float(day.toordinal()) for day in self._starts()), self.last.toordinal() + 0.5)

    @property
    def labels(self) -> tuple[str, ...]:
        """Name of each bin: 2024-W09, 2024-03, 2024-Q1 or 2024."""
        return tuple(_label(day, self.by) for day in self._starts())

    def to_json(self) -> dict[str, str]:
        """Return the dates as the project file stores them."""
        return {"from": self.first.isoformat(), "to": self.last.isoformat(), "by": self.by}

    @classmethod
    def from_json(cls, data: Any) -> DateBins:
        """Return the bins in the project file; raise :class:`SchemaError` if they are invalid."""
        if not isinstance(data, Mapping) or set(data) != {"from", "to", "by"}:
            raise SchemaError(
                'dates need a range and a period: {"from": "2020-01-01", "to": "2024-12-31", "by": "month"}'
            )
        days = [day_number(data[key]) if isinstance(data[key], str) else None for key in ("from", "to")]
        if days[0] is None or days[1] is None:
            raise SchemaError(
                f"the ends of a date column's range must be written like 2020-01-31, not {data['from']!r} and "
                f"{data['to']!r}"
            )
        return cls(date.fromordinal(days[0]), date.fromordinal(days[1]), data["by"])


def _next_start(day: date, by: Period) -> date:
    if by == "week":
        return day + timedelta(days=7 - day.weekday())
    if by == "year":
        return date(day.year + 1, 1, 1)
    months = 1 if by == "month" else 3 - (day.month - 1) % 3
    month = day.month + months
    return date(day.year + (month > 12), (month - 1) % 12 + 1, 1)


def _label(day: date, by: Period) -> str:
    if by == "week":
        year, week, _ = day.isocalendar()
        return f"{year}-W{week:02d}"
    if by == "quarter":
        return f"{day.year}-Q{(day.month + 2) // 3}"
    return f"{day.year}-{day.month:02d}" if by == "month" else f"{day.year}"


def day_number(text: str, order: str = "") -> int | None:
    """Return the day of an ISO date, or of a date in this ``order``; `None` if ``text`` is not a date.

    A time of day is ignored.
    """
    found = _ISO.fullmatch(iso_text(text, order) if order else text)
    if not found:
        return None
    try:
        return date.fromisoformat(found[1]).toordinal()
    except ValueError:
        return None


def date_texts(days: NDArray[np.float64]) -> list[str]:
    """Return day numbers as ISO dates; NaN is a missing cell."""
    return [MISSING if np.isnan(day) else date.fromordinal(int(day)).isoformat() for day in days.tolist()]


def invented(rows: int, rng: np.random.Generator, prefix: str = "S") -> list[str]:
    """Return distinct identifiers for ``rows`` synthetic rows, in random order: S0001, S0002, …

    Identifiers depend only on the number of rows. The contents of an identifier column are neither read nor released.
    """
    width = len(str(rows))
    return [f"{prefix}{i:0{width}d}" for i in (rng.permutation(rows) + 1).tolist()]
