"""Counts of columns at each visit of linked tables, which give shares of people with a value at their first, second, …
visit. The first visit is part of a person's row, so the person model's counts cover it at no further cost. Later visits
are counted only for the columns that the plan names. The counts are published with the release, but no model is fitted
to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import ProjectError, first_twice
from espalier.core.methods.marginals import Marginals
from espalier.core.privacy.curator import Curator
from espalier.core.privacy.draws import summed
from espalier.core.privacy.steps import VisitCounts
from espalier.core.project.linked import Linked
from espalier.core.project.schema import Schema

POOL = "shares at visits"


class AtVisit(TypedDict):
    """Noisy numbers of people with each value of ``column`` at one visit, and the σ of each cell."""

    column: str
    visit: int
    sigma: float
    counts: list[float]


def check_named(names: Sequence[str], linked: Linked, schema: Schema) -> None:
    """Raise :class:`ProjectError` unless ``names`` are distinct columns that every visit has."""
    known = [name for name in linked.step_columns(schema) if name in schema]
    if odd := [name for name in names if name not in known]:
        raise ProjectError(
            f"plan: count_at_visits names {odd[0]!r}, which is not a column of every visit. Name {', '.join(known)}",
            key="count_at_visits",
            column=odd[0],
        )
    if (twice := first_twice(names)) is not None:
        raise ProjectError(f"plan: count_at_visits names {twice!r} twice", key="count_at_visits", column=twice)


def count_later(curator: Curator, linked: Linked, sizes: dict[str, int], rho: float) -> list[AtVisit]:
    """Count the columns with these ``sizes`` at each visit after the first, for ``rho`` in total."""
    found = list[AtVisit]()
    for name, size in sizes.items():
        recipe = VisitCounts(name, size, linked.keep - 1)
        bought = curator.measure_sums(recipe, rho / len(sizes), POOL)
        found += [
            _answer(name, visit, counts, bought.sigma)
            for visit, counts in enumerate(bought.values.reshape(linked.keep - 1, size), 2)
        ]
    return found


def first_visits_of(people: Marginals, linked: Linked, schema: Schema) -> list[AtVisit]:
    """Return the counts of the visits' columns at the first visit, from the counts of people's rows."""
    names = [name for name in linked.step_columns(schema) if name in schema and name not in people.merged]
    read = ((name, summed(people.measurements, (name,))) for name in names)
    return [_answer(name, 1, *of) for name, of in read if of is not None]


def _answer(column: str, visit: int, counts: NDArray[Any], sigma: float) -> AtVisit:
    return {"column": column, "visit": visit, "sigma": sigma, "counts": np.round(counts, 3).tolist()}
