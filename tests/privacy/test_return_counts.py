"""Counts of returns: the counted visits, and sensitivities by enumeration over all people with few visits."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from espalier.core.errors import TableError
from espalier.core.privacy.steps import ReturnCounts
from espalier.core.privacy.unit import Unit
from espalier.core.project.column_types import Dates
from espalier.core.project.dates import DateBins
from espalier.core.project.linked import Linked
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.panel import Panel
from espalier.core.tables.table import Table

RELATIONS = ("add-remove", "replace-one")
UNKNOWN = 3
"""The code of an unknown number of days; the bins 0 and 1 are in time, and 2 is later."""
Person = tuple[tuple[int, ...], tuple[int, ...]]
"""The values of x at a person's visits, and the bins of the days between them."""


def panel(people: list[Person], keep: int) -> Panel:
    linked = Linked("patients", "visits", "id", "id", "at", keep, gap=(0, 8, 31, 91))
    year = DateBins.from_json({"from": "2020-01-01", "to": "2020-12-31", "by": "year"})
    day = Dates.of("visits.at", year, missing=True)
    columns = (Column("patients.a", "categorical", ("n",)), day, Column("visits.x", "categorical", ("n", "y")))
    number, zeros = np.array([len(seen) - 1 for seen, _ in people]), np.zeros(len(people), dtype=np.int64)
    x = np.array([[*seen, *[1] * (keep - len(seen))] for seen, _ in people])  # arbitrary values beyond the visits
    gaps = np.array([[UNKNOWN + 1, *between, *[0] * (keep - 1 - len(between))] for _, between in people])
    codes = {"patients.a": zeros, linked.number: number, "visits.at": zeros, "visits.x": x[:, 0]}
    return Panel(
        linked.completed(Schema(columns)),
        *(codes, len(people), b"x", np.arange(len(people)), "id", 1),
        linked=linked,
        visits={"visits.x": x, linked.gap_name: gaps},
    )


def everyone(keep: int) -> list[Person]:
    """Return every possible person."""
    some = [
        itertools.product(itertools.product((0, 1), repeat=n), itertools.product((0, 1, 2, UNKNOWN), repeat=n - 1))
        for n in range(1, keep + 1)
    ]
    return list(itertools.chain.from_iterable(some))


def by_hand(person: Person, keep: int) -> list[Fraction]:
    """Return the person's part of the counts: their visits one by one, without the k-th."""
    (seen, between), cells = person, [Fraction(0)] * 6
    asked = seen[: keep - 1]
    for t, value in enumerate(asked):
        follows = 2 if t == len(between) else 0 if between[t] < 2 else 1
        cells[3 * value + follows] += Fraction(1, len(asked))
    return cells


@pytest.mark.parametrize("keep", [2, 3, 4])
def test_returns_are_counted_person_by_person(keep):
    people, units = everyone(keep), math.lcm(*range(1, keep))
    recipe = ReturnCounts("visits.x", 2, 2, units)
    expected = [[int(units * cell) for cell in by_hand(one, keep)] for one in people]
    assert [recipe.sums(panel([one], keep)).tolist() for one in people] == expected
    assert recipe.sums(panel(people, keep)).tolist() == np.sum(expected, axis=0).tolist()
    assert {sum(each) for each in expected} == {units}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("keep", [2, 3, 4])
def test_counts_of_returns_move_by_their_sensitivity_and_no_more(keep, relation):
    recipe = ReturnCounts("visits.x", 2, 2, math.lcm(*range(1, keep)))
    parts = np.unique([recipe.sums(panel([one], keep)) for one in everyone(keep)], axis=0)
    moves = parts[:, None] - (parts if relation == "replace-one" else np.zeros((1, 6)))
    bound, reached = recipe.sensitivity(Unit(relation)), np.linalg.norm(moves, axis=-1).max()
    assert reached <= bound <= reached + 1
    with pytest.raises(ValueError, match="unit of linked tables"):
        recipe.sensitivity(Unit(relation, 2))


def test_impossible_counts_are_refused():
    for odd in (
        ReturnCounts("visits.x", 0, 1, 1),
        ReturnCounts("visits.x", 1, 0, 1),
        ReturnCounts("visits.x", 1, 1, 0),
    ):
        with pytest.raises(ValueError, match="at least one value"):
            odd.check({})
    with pytest.raises(ValueError, match="inconsistent counts"):
        ReturnCounts("visits.x", 3, 2, 1).sums(panel([((0,), ())], 2))
    alone = Table(Schema((Column("x", "categorical", ("n",)),)), {"x": np.zeros(1, dtype=np.int64)}, 1)
    with pytest.raises(TableError, match="visits"):
        alone.return_counts("x", 1)
