"""Shares of people with a value at their t-th visit, with intervals, from the noisy counts in a release. Among people
with at least t kept visits, each person counts once. The cells of a visit are therefore counts of independent people.
The interval is computed as in `espalier.core.analysis.transitions`, with weights of 1; without noise it is Wilson's.
The answer depends only on the release and may be shared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.analysis.transitions import IntervalShare, interval, noisy_counts, reading
from espalier.core.errors import ProjectError
from espalier.core.project.linked import Linked
from espalier.core.project.schema import Schema


@dataclass(frozen=True)
class VisitShare(IntervalShare):
    """Share of ``value`` among people with this visit."""

    column: str
    value: str
    visit: int
    share: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str = ""

    @property
    def asked(self) -> str:
        """Description of the share."""
        return f"{self.column}: {self.value} at visit {self.visit}"


@dataclass(frozen=True)
class VisitTable:
    """Noisy numbers of people by a column's value at one visit, and the σ of each cell."""

    column: str
    visit: int
    counts: NDArray[np.float64]
    sigma: float

    def share(self, labels: tuple[str, ...], value: str) -> VisitShare:
        """Return one share with its interval, or the reason why it is not shown."""
        cell, people = float(self.counts[labels.index(value)]), float(self.counts.sum())
        made = interval(cell, people, len(self.counts), self.sigma)
        if made is None:
            why = f"there are too few people with this visit for the noise (σ = {self.sigma:.3g} people in each cell)"
            return VisitShare(self.column, value, self.visit, reason=why)
        return VisitShare(self.column, value, self.visit, *made)


def visit_tables(facts: Mapping[str, Any], linked: Linked, schema: Schema) -> dict[tuple[str, int], VisitTable]:
    """Return the counts at each visit in a release's ``release.json``, by column and visit.

    The result is empty for a release of an earlier version. Raises :class:`ProjectError` for damaged counts.
    """
    tables = facts.get("tables")
    found = tables.get("at_visits", []) if isinstance(tables, Mapping) else []
    columns, out = linked.step_columns(schema), dict[tuple[str, int], VisitTable]()
    with reading("counts at visits"):
        for entry in found:
            name, visit = entry["column"], entry["visit"]
            if name not in columns or type(visit) is not int or not 1 <= visit <= linked.keep:
                raise ValueError(name)
            out[name, visit] = VisitTable(name, visit, *noisy_counts(entry, (schema[name].size,)))
    return out


def visit_share(
    facts: Mapping[str, Any], linked: Linked, schema: Schema, column: str, value: str, visit: int
) -> VisitShare:
    """Return one share of a release with its interval; raises :class:`ProjectError` for one that is unknown or was not
    counted.
    """
    tables = visit_tables(facts, linked, schema)
    labels = labels_of(linked, schema, column, value)
    if not 1 <= visit <= linked.keep:
        raise ProjectError(f"the release keeps {linked.keep} visits per person: ask about visit 1 to {linked.keep}")
    if (column, visit) not in tables:
        raise ProjectError(uncounted(column, visit), column=column)
    return tables[column, visit].share(labels, value)


def labels_of(linked: Linked, schema: Schema, column: str, value: str) -> tuple[str, ...]:
    """Return the values of a column of every visit; raises :class:`ProjectError` if ``value`` is not one of them."""
    known = [name for name in linked.step_columns(schema) if name in schema]
    if column not in known:
        raise ProjectError(
            f"{column!r} is not a column of every visit; the release has {', '.join(known)}", column=column
        )
    if value not in (labels := tuple(schema[column].labels)):
        raise ProjectError(f"{value!r} is not a value of {column!r}", column=column)
    return labels


def uncounted(column: str, visit: int) -> str:
    """Explain why a release has no counts of ``column`` at this visit, and how to get them from another release."""
    if visit == 1:
        return f"this release contains no counts of {column} at the first visit; make a new release to get them"
    return (
        f"this release did not count {column} at visit {visit}. The counts over all steps cannot answer this, because "
        'a person with many visits has less weight in them. Name the column in the plan ("count_at_visits") and '
        "release again"
    )
