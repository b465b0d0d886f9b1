"""The fit of one column of a visit: exact without noise, and close to simple laws where noise outweighs the counts."""

from __future__ import annotations

import numpy as np
import pytest

from espalier.core.models.linked.column import NoisyTable, StepColumn, Target, fit_column, shrunk
from espalier.core.models.linked.steps import StepModel
from espalier.core.project.linked import BEFORE, EARLIER, Linked

MARGIN = np.array([0.5, 0.3, 0.15, 0.05])
STAY = 0.6
PEOPLE = 20_000.0
LAW = STAY * np.diag(MARGIN) + (1 - STAY) * np.outer(MARGIN, MARGIN)
"""Share of each pair (previous visit, this visit): the value stays with probability `STAY`, otherwise it is drawn
again.
"""


def fitted(counts: np.ndarray, sigma: float) -> np.ndarray:
    """Return p(this visit | previous visit) of the column that is fitted to ``counts``."""
    rows = np.repeat(np.arange(4), np.round(4_000 * MARGIN).astype(int))
    cells = {"x" + BEFORE: rows, "x" + EARLIER: np.full(len(rows), 4)}
    target = Target("x", {"x" + BEFORE: NoisyTable(counts, sigma)}, PEOPLE * MARGIN, 0.0, PEOPLE)
    column = fit_column(target, cells.__getitem__, np.ones(len(rows)), evaluations=200)
    return column.probabilities({"x" + BEFORE: np.arange(4), "x" + EARLIER: np.full(4, 4)}.__getitem__)


def test_values_move_by_the_part_of_the_distance_that_noise_explains():
    values, towards = np.array([10.0, 0.0, 0.0, 0.0]), np.zeros(4)
    assert shrunk(values, towards, 0.0) is not towards
    assert shrunk(values, towards, 0.0).tolist() == values.tolist()
    assert shrunk(values, towards, 5.0).tolist() == [5.0, 0.0, 0.0, 0.0]  # (4 − 2)·25 of 100
    assert shrunk(values, towards, 100.0).tolist() == [0.0, 0.0, 0.0, 0.0]


def test_shrinking_helps_on_average_wherever_the_estimate_lies():
    rng = np.random.default_rng(1)
    for away in (0.0, 1.0, 3.0, 30.0):
        truth = np.full(8, away)
        noisy = truth + rng.normal(size=(4_000, 8))
        made = np.stack([shrunk(values, np.zeros(8), 1.0) for values in noisy])
        assert ((made - truth) ** 2).sum() < ((noisy - truth) ** 2).sum()


def test_counts_without_noise_are_fitted_also_where_the_chance_to_stay_differs():
    law = LAW.copy()
    law[0, 0], law[0, 1] = law[0, 0] - 0.1, law[0, 1] + 0.1
    law[1, 1], law[1, 0] = law[1, 1] - 0.1, law[1, 0] + 0.1
    found = fitted(PEOPLE * law, 0.1)
    assert np.allclose(found, law / law.sum(axis=1, keepdims=True), atol=0.02)


@pytest.mark.nightly
def test_counts_that_noise_outweighs_are_closer_to_the_law_than_the_counts_are():
    rng, errors = np.random.default_rng(2), []
    for _ in range(40):
        noisy = PEOPLE * LAW + rng.normal(scale=1_000.0, size=LAW.shape)
        found = fitted(noisy, 1_000.0) * MARGIN[:, None]
        errors.append((np.abs(found - LAW).sum(), np.abs(noisy / PEOPLE - LAW).sum()))
    mine, raw = np.mean(errors, axis=0)
    assert mine < 0.68 * raw, "0.64 with the stays shrunk, 0.72 without"


def drawn_twice(even: bool, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the second visits of 2,000 people: two columns that depend only on the previous visit."""
    link = Linked("people", "visits", "id", "id", "at", 2)
    columns = tuple(StepColumn(f"visits.{n}", np.log(MARGIN), np.ones(4), 0.0, {}) for n in "xy")
    sizes = {"people.a": 2, link.number: 2} | {
        f"visits.{n}{s}": 4 + bool(s) for n in "xy" for s in ("", BEFORE, EARLIER)
    }
    rows = {"people.a": rng.integers(2, size=2_000), link.number: np.ones(2_000, dtype=np.int64)}
    first = rng.choice(4, size=2_000, p=MARGIN)
    visits = StepModel(link, sizes, columns).visits(rows | {"visits.x": first, "visits.y": first}, rng, even=even)
    return np.stack([first, visits["visits.x"][:, 1]]), visits["visits.y"][:, 1]


def test_even_draws_are_closer_to_the_model_and_leave_columns_independent():
    law = np.exp(np.log(MARGIN) + np.eye(4))
    law /= law.sum(axis=1, keepdims=True)
    rng, errors, ties = np.random.default_rng(3), dict[bool, float](), list[float]()
    for even in (False, True):
        found = []
        for _ in range(20):
            (first, x), y = drawn_twice(even, rng)
            counts = np.zeros((4, 4))
            np.add.at(counts, (first, x), 1)
            found.append(np.abs(counts - np.bincount(first, minlength=4)[:, None] * law).sum())
            if even:
                ties.append(
                    float(np.mean([np.corrcoef(x[first == v] == v, y[first == v] == v)[0, 1] for v in range(3)]))
                )
        errors[even] = float(np.mean(found))
    assert errors[True] < 0.2 * errors[False]
    assert abs(np.mean(ties)) < 4 * np.std(ties) / np.sqrt(len(ties)), (
        "x says nothing about y beyond the previous visit"
    )
    assert np.std(ties) > 0.005, "the numbers of the two columns are not equal"
