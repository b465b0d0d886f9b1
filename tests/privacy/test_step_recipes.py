"""Recipes over steps: sensitivities by enumeration over all people with few visits, under both relations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from espalier.core.errors import BudgetError
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.steps import Echoes, StepCounts, StepScore, VisitCounts
from espalier.core.privacy.unit import Unit
from espalier.core.project.linked import Linked
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.panel import Panel

RELATIONS = ("add-remove", "replace-one")
PAIRS = [
    ("visits.x@before", "visits.x"),
    ("visits.x@earlier", "visits.x"),
    ("patients.a", "visits.x"),
    ("visits per person", "visits.x"),
    ("position", "visits.x"),
]


def link(keep: int) -> Linked:
    return Linked("patients", "visits", "id", "id", "at", keep)


def schema_of(linked: Linked) -> Schema:
    columns = (Column("patients.a", "categorical", ("n", "y")), Column("visits.x", "categorical", ("n", "y")))
    return linked.completed(Schema(columns))


def panel(people: list[tuple[int, tuple[int, ...]]], keep: int) -> Panel:
    """Return people, each with a person column and the visits."""
    linked = link(keep)
    visits = np.array([[*seen, *[0] * (keep - len(seen))] for _, seen in people], dtype=np.int64).reshape(-1, keep)
    codes = {
        "patients.a": np.array([a for a, _ in people], dtype=np.int64),
        linked.number: np.array([len(seen) - 1 for _, seen in people], dtype=np.int64),
        "visits.x": visits[:, 0],
    }
    rows = len(people)
    return Panel(
        schema_of(linked), codes, rows, b"x", np.arange(rows), "id", 1, linked=linked, visits={"visits.x": visits}
    )


def everyone(keep: int) -> list[tuple[int, tuple[int, ...]]]:
    """Return every possible person."""
    visits = [seen for n in range(1, keep + 1) for seen in itertools.product((0, 1), repeat=n)]
    return [(a, seen) for a in (0, 1) for seen in visits]


def distance(relation: str, vectors: list[np.ndarray], norm: int) -> float:
    """Return the largest change due to one person, who comes, goes, or is replaced."""
    if relation == "add-remove":
        return max(float(np.linalg.norm(u, norm)) for u in vectors)
    return max(float(np.linalg.norm(u - v, norm)) for u, v in itertools.product(vectors, repeat=2))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("keep", [2, 3, 4])
@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: p[0])
def test_counts_of_steps_move_by_their_sensitivity_and_no_more(pair, keep, relation):
    sizes = link(keep).step_sizes(schema_of(link(keep)))
    recipe = StepCounts(pair, (sizes[pair[0]], sizes[pair[1]]), link(keep).units)
    people = [recipe.sums(panel([one], keep)) for one in everyone(keep)]
    bound = recipe.sensitivity(Unit(relation))
    reached = distance(relation, people, 2)
    assert reached <= bound
    assert bound <= reached + 1 or pair[0] == "visits.x@earlier"  # rounding up to whole units


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("keep", [3, 4])
def test_echoes_move_by_their_sensitivity_at_most(keep, relation):
    recipe = Echoes(("visits.x",), link(keep).units)
    people = [recipe.sums(panel([one], keep)) for one in everyone(keep)]
    assert 0 < distance(relation, people, 2) <= recipe.sensitivity(Unit(relation)) == link(keep).units
    assert Echoes(("a", "b", "c"), 6).sensitivity(Unit(relation)) == math.isqrt(3 * 36) + 1


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("keep", [2, 3, 4])
def test_counts_at_each_visit_move_by_their_sensitivity_and_no_more(keep, relation):
    recipe = VisitCounts("visits.x", 2, keep - 1)
    people = [recipe.sums(panel([one], keep)) for one in everyone(keep)]
    bound, reached = recipe.sensitivity(Unit(relation)), distance(relation, people, 2)
    assert reached <= bound <= reached + 1e-12
    seen = recipe.sums(panel([(0, (1, 0, 1)[:keep]), (1, (1, 1)), (0, (0,))], keep)).reshape(-1, 2).tolist()
    assert seen == [[1, 1], [0, 1], [0, 0]][: keep - 1]
    with pytest.raises(ValueError, match="inconsistent counts"):
        VisitCounts("visits.x", 3, keep - 1).sums(panel([(0, (0, 0))], keep))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("target", ["", "visits.y"])
def test_scores_move_by_their_sensitivity_at_most(relation, target):
    rng, keep = np.random.default_rng(0), 3
    pair, others = PAIRS[0], [everyone(keep)[i] for i in (3, 5, 9, 12)]
    base = panel(others, keep).step_counts([pair])[0]
    changes = [panel([one], keep).step_counts([pair])[0] for one in everyone(keep)]
    largest = 0
    for _ in range(20):
        expected = rng.uniform(0, 3, base.shape)
        score = StepScore(lambda _, table=expected: table, link(keep).units, 0.1, target)
        values = [score.value(pair, base + u) for u in changes]
        without = [score.value(pair, base)] if relation == "add-remove" else values
        largest = max(largest, *(abs(a - b) for a, b in itertools.product(without, values)))
    assert largest <= score.sensitivity(Unit(relation))
    if not target:
        assert largest > 0.9 * score.sensitivity(Unit(relation))


def test_a_score_of_huge_expected_counts_stays_inside_64_bits():
    units, counts = link(20).units, np.zeros((50, 50), dtype=np.int64)
    score = StepScore(lambda _: np.full((50, 50), 1e12), units)
    empty = score.value(PAIRS[0], counts)
    counts[0, 0] = units
    assert 0 < empty < 2**62
    assert abs(empty - score.value(PAIRS[0], counts)) == units


def test_weight_one_would_break_the_sensitivity():
    """A person with three visits adds two steps, which weigh 1/2 each."""
    counts = panel([(0, (0, 0, 0))], 3).step_counts([PAIRS[0]])[0]
    assert counts.sum() == link(3).units
    assert len(panel([(0, (0, 0, 0))], 3).steps.place[0]) == 2


def test_people_with_several_rows_are_refused():
    with pytest.raises(ValueError, match="unit of linked tables"):
        StepCounts(PAIRS[0], (2, 2), 2).sensitivity(Unit("add-remove", 2))


def test_a_curator_debits_before_it_counts_and_refuses_what_is_not_left():
    people = panel([(0, (0, 1, 0)), (1, (1, 1))] * 50, 3)
    curator = PrivateCurator(people, Unit("add-remove"), Budget(1.0, 1e-6, 0.5), 10**6)
    found = curator.measure_sums(StepCounts(PAIRS[0], (2, 2), 2), 0.4, "visits")
    assert found.values.shape == (4,)
    assert found.sigma == pytest.approx(1 / math.sqrt(0.8))
    score = StepScore(lambda pair: np.zeros((2, 2)) if pair == PAIRS[0] else np.zeros((3, 2)), 2)
    assert curator.choose_step(score, PAIRS[:2], 0.05, "visit choice") in PAIRS[:2]
    assert [d.recipe for d in curator.spending.draws] == ["step-counts", "step-score"]
    with pytest.raises(BudgetError):
        curator.measure_sums(Echoes(("visits.x",), 2), 0.1, "echoes")
