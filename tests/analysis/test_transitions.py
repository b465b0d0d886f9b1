"""Intervals for transitions cover the truth, and none is shown where noise outweighs the counts."""

from __future__ import annotations

import numpy as np
import pytest

from espalier.core.analysis.transitions import interval, step_tables, transition
from espalier.core.errors import ProjectError
from tests.support.tables import schema_of

P = np.array([0.6, 0.3, 0.1])


@pytest.mark.parametrize("sigma", [0.5, 15.0])
def test_the_intervals_cover_and_are_not_much_too_wide(sigma: float) -> None:
    """400 panels of 600 people with 1 to 5 steps each. If 95 % cover, fewer than 90 % has a chance far below 1e-4."""
    rng, covered, wide = np.random.default_rng(5), [], []
    for _ in range(400):
        steps = rng.integers(1, 6, 600)
        made = np.stack([rng.multinomial(m, P) / m for m in steps]).sum(axis=0) + rng.normal(0, sigma, 3)
        found = interval(float(made[1]), float(made.sum()), 3, sigma)
        assert found is not None
        covered.append(found[1] <= P[1] <= found[2])
        wide.append(found[2] - found[1])
    assert np.mean(covered) > 0.93
    ideal = 2 * 1.96 * np.sqrt(0.21 * 600 + sigma**2 * (0.49 + 2 * 0.09)) / 600
    assert np.mean(wide) < 1.1 * ideal


def test_noise_that_outweighs_the_counts_shows_no_figure() -> None:
    assert interval(3.0, 9.0, 3, 20.0) is None
    assert interval(3.0, -1.0, 3, 1.0) is None
    assert interval(30.0, 90.0, 3, 1.0) is not None


def facts(counts: object) -> dict[str, object]:
    return {"tables": {"transitions": [{"column": "a", "sigma": 2.0, "counts": counts}]}}


def test_a_transition_is_read_from_the_release() -> None:
    schema = schema_of(a=2)
    one, other = schema["a"].labels
    found = transition(facts([[90.0, 10.0], [30.0, 70.0]]), schema, "a", one, other)
    assert found.share == pytest.approx(0.1)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.1 < found.high
    assert "10.0%" in str(found)
    with pytest.raises(ProjectError, match="not a value"):
        transition(facts([[90.0, 10.0], [30.0, 70.0]]), schema, "a", one, "nowhere")
    with pytest.raises(ProjectError, match="people who never return are missing"):
        transition(facts([[90.0, 10.0], [30.0, 70.0]]), schema, "visits.days since the visit before", one, other)
    with pytest.raises(ProjectError, match="not a column"):
        transition(facts([[90.0, 10.0], [30.0, 70.0]]), schema, "b", one, other)


@pytest.mark.parametrize(
    "counts",
    [[[1.0]], "text", [[1.0, float("nan")], [1.0, 1.0]], None, [["x", 1], [2, 3]], [[5.0, 1e308], [5.0, 1e308]]],
)
def test_damaged_counts_are_refused(counts: object) -> None:
    with pytest.raises(ProjectError, match="damaged"):
        step_tables(facts(counts), schema_of(a=2))
    with pytest.raises(ProjectError, match="contains no counts"):
        step_tables({}, schema_of(a=2))
