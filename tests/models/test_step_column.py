"""The fit of one column of a visit: exact without noise, and close to simple laws where noise outweighs the counts."""

from __future__ import annotations

import numpy as np

from espalier.core.models.linked.column import NoisyTable, Target, fit_column, shrunk
from espalier.core.project.linked import BEFORE, EARLIER

MARGIN = np.array([0.5, 0.3, 0.15, 0.05])
STAY = 0.6
PEOPLE = 20_000.0
LAW = STAY * np.diag(MARGIN) + (1 - STAY) * np.outer(MARGIN, MARGIN)
"""Share of each (visit before, this visit): stay with probability `STAY`, else draw afresh."""


def fitted(counts: np.ndarray, sigma: float) -> np.ndarray:
    """Return p(this visit | visit before) of the column that is fitted to ``counts``."""
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


def test_counts_that_noise_outweighs_are_closer_to_the_law_than_the_counts_are():
    rng, errors = np.random.default_rng(2), []
    for _ in range(20):
        noisy = PEOPLE * LAW + rng.normal(scale=1_000.0, size=LAW.shape)
        found = fitted(noisy, 1_000.0) * MARGIN[:, None]
        errors.append((np.abs(found - LAW).sum(), np.abs(noisy / PEOPLE - LAW).sum()))
    mine, raw = np.mean(errors, axis=0)
    assert mine < 0.68 * raw, "0.62 with the stays shrunk, 0.76 without"
