"""Shares at a visit: intervals cover the truth, damaged counts are refused, and messages state what is missing."""

from __future__ import annotations

import numpy as np
import pytest

from espalier.core.analysis.visit_shares import VisitTable, visit_share, visit_tables
from espalier.core.errors import ProjectError
from espalier.core.project.linked import Linked
from espalier.core.project.schema import Column, Schema

LINK = Linked("people", "visits", "id", "id", "at", 3)
SCHEMA = LINK.completed(
    Schema((Column("people.a", "categorical", ("n", "y")), Column("visits.x", "categorical", ("p", "q", "r"))))
)
P = np.array([0.6, 0.3, 0.1])


@pytest.mark.parametrize("sigma", [0.5, 20.0])
def test_the_intervals_cover_and_are_not_much_too_wide(sigma: float) -> None:
    """600 tables of 500 people. If 95 % of intervals cover, a share below 92 % has a chance below 1e-3."""
    rng, covered, wide = np.random.default_rng(5), [], []
    for _ in range(600):
        counts = rng.multinomial(500, P) + rng.normal(0, sigma, 3)
        found = VisitTable("visits.x", 2, counts, sigma).share(("p", "q", "r"), "q")
        assert found.low is not None
        assert found.high is not None
        covered.append(found.low <= P[1] <= found.high)
        wide.append(found.high - found.low)
    assert np.mean(covered) > 0.92
    ideal = 2 * 1.96 * np.sqrt(0.21 * 500 + sigma**2 * (0.49 + 2 * 0.09)) / 500
    assert np.mean(wide) < 1.1 * ideal


def facts(**changes: object) -> dict[str, object]:
    entry = {"column": "visits.x", "visit": 2, "sigma": 2.0, "counts": [60.0, 30.0, 10.0]}
    return {"tables": {"at_visits": [entry | changes]}}


def test_a_share_is_read_from_the_release() -> None:
    found = visit_share(facts(), LINK, SCHEMA, "visits.x", "q", 2)
    assert found.share == pytest.approx(0.3)
    assert "visits.x: q at visit 2: 30.0% (" in str(found)
    for column, value, visit, why in (
        ("people.a", "n", 2, "not a column of every visit"),
        ("visits.x", "z", 2, "not a value"),
        ("visits.x", "q", 4, "keeps 3 visits"),
        ("visits.x", "q", 3, 'Name the column in the plan \\("count_at_visits"\\)'),
        ("visits.x", "q", 1, "at the first visit"),
    ):
        with pytest.raises(ProjectError, match=why):
            visit_share(facts(), LINK, SCHEMA, column, value, visit)
    assert visit_tables({"tables": {}}, LINK, SCHEMA) == {}


def test_noise_that_outweighs_the_people_shows_no_figure() -> None:
    found = visit_share(facts(sigma=30.0), LINK, SCHEMA, "visits.x", "q", 2)
    assert found.share is None
    assert "too few people with this visit" in str(found)


@pytest.mark.parametrize(
    "change",
    [
        {"counts": [1.0]},
        {"counts": "text"},
        {"counts": [1.0, 2.0, float("nan")]},
        {"counts": [5.0, 1e308, 1e308]},
        {"sigma": 1e308},
        {"visit": 4},
        {"visit": True},
        {"visit": 1.5},
        {"sigma": -1.0},
        {"sigma": float("nan")},
        {"sigma": None},
        {"column": "people.a"},
        {"column": ["visits.x"]},
    ],
)
def test_damaged_counts_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ProjectError, match="damaged"):
        visit_tables(facts(**change), LINK, SCHEMA)
    with pytest.raises(ProjectError, match="damaged"):
        visit_tables({"tables": {"at_visits": 3}}, LINK, SCHEMA)
