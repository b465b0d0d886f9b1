"""Counts of linked tables that answer questions: the share of people with a value at their first, second, … visit, and
the share of visits with a value after which the person returns within a number of days.

The first visit is part of a person's row, so the person model's counts cover it at no further cost. Everything else is
measured only for the columns that the plan names. The counts are published with the release, but no model is fitted to
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypedDict

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import ProjectError, first_twice
from espalier.core.methods.marginals import Marginals
from espalier.core.privacy.curator import Curator
from espalier.core.privacy.draws import summed
from espalier.core.privacy.steps import ReturnCounts, VisitCounts
from espalier.core.project.linked import Linked
from espalier.core.project.schema import Schema

POOL = "shares at visits"


class AtVisit(TypedDict):
    """Noisy numbers of people with each value of ``column`` at one visit, and the σ of each cell."""

    column: str
    visit: int
    sigma: float
    counts: list[float]


class Returns(TypedDict):
    """Noisy weighted numbers of visits with each value of ``column``, and the σ of each cell. Each row holds three
    numbers: visits after which the person returned within ``days``, visits after which the person returned later, and
    visits with no later kept visit.
    """

    column: str
    days: int
    sigma: float
    counts: list[list[float]]


class Asked(Protocol):
    """Plan options that request these counts."""

    @property
    def count_at_visits(self) -> Sequence[str] | None:
        """Columns measured at each visit after the first."""
        ...

    @property
    def count_returns_after(self) -> Sequence[str] | None:
        """Columns measured with the return after the visit."""
        ...

    @property
    def return_days(self) -> int:
        """Number of days within which the next visit counts as a return."""
        ...


def check_asked(asked: Asked, linked: Linked, schema: Schema) -> None:
    """Raise :class:`ProjectError` unless the plan names distinct columns that every visit has, and returns can be
    counted.
    """
    known = [name for name in linked.step_columns(schema) if name in schema]
    for key in ("count_at_visits", "count_returns_after"):
        names: Sequence[str] = getattr(asked, key) or ()
        if odd := [name for name in names if name not in known]:
            raise ProjectError(
                f"plan: {key} names {odd[0]!r}, which is not a column of every visit. Name {', '.join(known)}",
                key=key,
                column=odd[0],
            )
        if (twice := first_twice(names)) is not None:
            raise ProjectError(f"plan: {key} names {twice!r} twice", key=key, column=twice)
    if asked.count_returns_after:
        bins_within(linked, asked.return_days)


def bins_within(linked: Linked, days: int) -> int:
    """Return the number of bins for the days between visits that cover at most ``days`` days.

    Raises :class:`ProjectError` if the tables have no such column, or if a bin contains both shorter and longer times.
    """
    if not linked.gap:
        raise ProjectError(
            "plan: count_returns_after needs the days between visits. Order the visits by a column of dates that is in "
            f'the schema, and add "dates": {{"{linked.order}": {{"gap": [0, {days + 1}, {2 * days + 2}]}}}} to '
            f"the table {linked.visits!r} of the project file",
            key="count_returns_after",
        )
    inner = linked.gap[1:-1]
    if days + 1 not in inner:
        others = ", ".join(f"{edge - 1:g}" for edge in inner)
        raise ProjectError(
            f"plan: return_days is {days}, but no bin of the days between visits begins on day {days + 1}. Add "
            f'{days + 1} to the bins on the Data page ("gap" in the project file)'
            + (f", or choose {others}" if others else ""),
            key="return_days",
        )
    return linked.gap.index(days + 1)


def count_asked(
    curator: Curator, linked: Linked, schema: Schema, asked: Asked, rho: float
) -> tuple[list[AtVisit], list[Returns]]:
    """Measure each column that the plan names, at each visit after the first or with the return after it, for ``rho``
    in total.
    """
    later, after, sizes = asked.count_at_visits or (), asked.count_returns_after or (), schema.sizes
    shares, returns, days = list[AtVisit](), list[Returns](), asked.return_days
    each = rho / max(len(later) + len(after), 1)
    for name in later:
        bought = curator.measure_sums(VisitCounts(name, sizes[name], linked.keep - 1), each, POOL)
        tables = bought.values.reshape(linked.keep - 1, sizes[name])
        shares += [_answer(name, visit, counts, bought.sigma) for visit, counts in enumerate(tables, 2)]
    for name in after:
        recipe = ReturnCounts(name, sizes[name], bins_within(linked, days), linked.units)
        bought = curator.measure_sums(recipe, each, POOL)
        table = np.round(bought.values.reshape(sizes[name], 3), 3).tolist()
        returns.append({"column": name, "days": days, "sigma": bought.sigma, "counts": table})
    return shares, returns


def first_visits_of(people: Marginals, linked: Linked, schema: Schema) -> list[AtVisit]:
    """Return the counts of the visit columns at the first visit, from the counts of people's rows."""
    names = [name for name in linked.step_columns(schema) if name in schema and name not in people.merged]
    read = ((name, summed(people.measurements, (name,))) for name in names)
    return [_answer(name, 1, *of) for name, of in read if of is not None]


def _answer(column: str, visit: int, counts: NDArray[Any], sigma: float) -> AtVisit:
    return {"column": column, "visit": visit, "sigma": sigma, "counts": np.round(counts, 3).tolist()}
