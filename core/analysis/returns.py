"""Shares of visits after which the person returned within a number of days, with intervals, from the noisy counts in a
release.

The estimand. For a person with n kept visits, the first m = min(n, k − 1) visits count, each with weight 1/m. The table
does not show what follows the k-th kept visit, so that visit is left out. For every other kept visit, the table shows
whether another visit follows. Let x_i be person i's weight at visits with the value, and y_i the part of this weight at
visits whose next visit comes at most D days later, by the dates of the order column. The share is Σ E y_i / Σ E x_i: an
average over people, not visits. A visit without a later visit in the table, or whose next visit has no date, counts as
a visit without a return. People whose records end within D days of a visit therefore lower the share, because this
censoring is not modelled.

The interval. Since 0 ≤ y_i ≤ x_i ≤ 1, it is computed as in `espalier.core.analysis.transitions`, from three noisy cells
per value: returned in time, returned later, did not return. The answer depends only on the release and may be shared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.analysis.transitions import IntervalShare, interval, noisy_counts, reading
from espalier.core.analysis.visit_shares import labels_of
from espalier.core.errors import ProjectError
from espalier.core.project.linked import Linked
from espalier.core.project.schema import Schema


@dataclass(frozen=True)
class ReturnShare(IntervalShare):
    """The share of visits with ``value`` after which the person returned within ``days`` days."""

    column: str
    value: str
    days: int
    share: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str = ""

    @property
    def asked(self) -> str:
        """Description of the share."""
        return f"{self.column}: return within {self.days} days after {self.value}"


@dataclass(frozen=True)
class ReturnTable:
    """Noisy weighted numbers of visits by a column's value and by return (within ``days``, later, or never), and the σ
    of each cell.
    """

    column: str
    days: int
    counts: NDArray[np.float64]
    sigma: float

    def share(self, labels: tuple[str, ...], value: str) -> ReturnShare:
        """Return one share with its interval, or the reason why it is not shown."""
        row = self.counts[labels.index(value)]
        made = interval(float(row[0]), float(row.sum()), len(row), self.sigma)
        if made is None:
            why = f"there are too few people with {value} for the noise (σ = {self.sigma:.3g} people in each cell)"
            return ReturnShare(self.column, value, self.days, reason=why)
        return ReturnShare(self.column, value, self.days, *made)


def return_tables(facts: Mapping[str, Any], linked: Linked, schema: Schema) -> dict[str, ReturnTable]:
    """Return the counts of returns in a release's ``release.json``, by column.

    The result is empty for a release that did not count returns. Raises :class:`ProjectError` for damaged counts.
    """
    tables = facts.get("tables")
    found = tables.get("returns", []) if isinstance(tables, Mapping) else []
    columns, out = linked.step_columns(schema), dict[str, ReturnTable]()
    with reading("counts of returns"):
        for entry in found:
            name, days = entry["column"], entry["days"]
            if name not in columns or type(days) is not int or days < 0:
                raise ValueError(name)
            out[name] = ReturnTable(name, days, *noisy_counts(entry, (schema[name].size, 3)))
    return out


def return_share(
    facts: Mapping[str, Any], linked: Linked, schema: Schema, column: str, value: str, days: int
) -> ReturnShare:
    """Return one share of a release with its interval; raises :class:`ProjectError` for one that is unknown or was not
    counted.
    """
    tables, labels = return_tables(facts, linked, schema), labels_of(linked, schema, column, value)
    if column not in tables or tables[column].days != days:
        counted = ", ".join(f"{name} within {table.days} days" for name, table in tables.items())
        raise ProjectError(
            f"this release did not count the returns within {days} days after {column}"
            + (f"; it counted {counted}" if counted else "")
            + f'. Name the column in the plan ("count_returns_after": ["{column}"], "return_days": {days}) and release '
            "again",
            column=column,
        )
    return tables[column].share(labels, value)
