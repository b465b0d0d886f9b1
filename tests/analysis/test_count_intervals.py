"""Intervals from released counts: their coverage where a group is about as large as its noise, and their refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from espalier.core.analysis import figure_from_text
from espalier.core.analysis.count_intervals import Contrast, Group, counted, interval
from espalier.core.analysis.study import Study
from espalier.core.analysis.tally import Tally
from espalier.core.errors import EspalierError, ProjectError
from espalier.core.privacy.draws import Measurement
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release.spend import release
from espalier.core.tables.table import Table


def group(place, rest=0.0, scores=None):
    return Group("e", scores or {1: 1.0}, (("g", place),), rest)


def noisy(counts, sigma, rng=None):
    values = np.array(counts, dtype=float)
    return Measurement(("e", "g"), values if rng is None else values + rng.normal(0, sigma, values.shape), sigma)


def test_without_noise_a_share_has_the_interval_of_the_score_test():
    found = interval(Contrast((group(0),)), [noisy([[70, 1], [30, 1]], 1e-9)], {})
    p, n, z = 0.3, 100, 1.959964
    centre, half = (
        (p + z * z / 2 / n) / (1 + z * z / n),
        z / (1 + z * z / n) * math.sqrt(p * 0.7 / n + z * z / 4 / n**2),
    )
    assert (found.low, found.high) == pytest.approx((centre - half, centre + half), abs=0.002)
    assert found.value == pytest.approx(0.3, abs=0.002)


@pytest.mark.parametrize(
    ("shares", "rows", "sigma", "odds"),
    [((0.3, 0.2), (1000, 1000), 10, False), ((0.3, 0.2), (20, 1000), 15, False), ((0.1, 0.2), (300, 900), 15, True)],
)
def test_the_interval_covers_where_groups_are_large_and_where_they_are_as_small_as_noise(shares, rows, sigma, odds):
    """At least 95 % of 400 intervals cover the truth; fewer than 360 do so with probability below 1e-4."""
    rng = np.random.default_rng(5)
    scale = (lambda p: math.log(p / (1 - p))) if odds else float
    truth, contrast, held = scale(shares[0]) - scale(shares[1]), Contrast((group(0), group(1)), odds), 0
    for _ in range(400):
        events = rng.binomial(rows, shares)
        found = interval(contrast, [noisy([rows - events, events], sigma, rng)], {})
        held += found.low <= truth <= found.high
        assert found.low <= found.value <= found.high
    assert held >= 360


def test_noise_in_the_group_widens_and_a_person_with_more_rows_does_too():
    counts = [[700, 1], [300, 1]]
    narrow, noisier = (interval(Contrast((group(0),)), [noisy(counts, s)], {}) for s in (1.0, 40.0))
    people = interval(Contrast((group(0),)), [noisy(counts, 1.0)], {}, k=4)
    assert noisier.high - noisier.low > 2 * (narrow.high - narrow.low)
    assert people.high - people.low == pytest.approx(2 * (narrow.high - narrow.low), rel=0.05)
    wide = interval(Contrast((group(0),)), [noisy(counts, 1.0)], {}, level=0.999)
    assert wide.low < narrow.low < narrow.high < wide.high


def test_counts_of_merged_categories_or_of_other_columns_give_no_interval():
    counts = noisy([[40, 1], [30, 1], [30, 1]], 1.0)
    three = Group("e", {1: 1.0}, (("g", 0),), 0.0)
    merged = {"e": np.array([0, 1, 1, 2])}
    assert counted(three, [counts], merged) is None  # code 1 was counted with code 2
    assert counted(Group("e", {3: 1.0}, (("g", 0),), 0.0), [counts], merged).counts.tolist() == [70.0, 30.0]
    assert counted(Group("e", {1: 1.0}, (("g", 0),), 0.0), [counts], {"g": np.array([0, 0, 1])}) is None
    assert interval(Contrast((Group("e", {1: 1.0}, (("h", 0),), 0.0),)), [counts], {}) is None
    assert counted(Group("e", {2: 1.0}, (("g", 0),), 0.0, missing=1), [counts], {}).counts.tolist() == [40.0, 30.0]


SCHEMA = Schema(
    (
        Column("ward", "categorical", tuple("abcd")),
        Column("sick", "categorical", ("no", "yes")),
        Column("age", "numeric", edges=(0.0, 20.0, 40.0, 60.0, 100.0)),
    )
)


@pytest.fixture(scope="module")
def study():
    rng, n = np.random.default_rng(8), 3000
    ward = rng.choice(4, n, p=(0.5, 0.445, 0.05, 0.005))
    codes = {"ward": ward, "sick": (rng.random(n) < 0.1 + 0.25 * ward).astype(int), "age": rng.integers(0, 4, n)}
    table = Table(SCHEMA, {name: values.astype(np.int64) for name, values in codes.items()}, n)
    made = release(Project("wards", SCHEMA, Plan("mst", 1.0, 1e-6)), table)
    return Study.of(made).with_copies(20)


def test_a_thin_group_that_was_counted_gets_an_interval_that_says_where_it_comes_from(study):
    figure = figure_from_text.difference(SCHEMA, "sick=yes", "ward=d:a")
    (found,) = study.ask(figure)
    assert found.badge.kind == "counted"
    assert "the interval follows from the noisy counts alone" in found.badge.sentence
    assert -1 <= found.low < found.value < found.high <= 1
    (wide,) = study.ask(figure, level=0.999)
    assert wide.level == 0.999
    assert wide.high - wide.low > found.high - found.low


def test_conditions_must_all_hold_and_name_different_columns():
    two = figure_from_text.proportion(SCHEMA, "sick=yes", ["ward=a"])
    assert two.columns == ("sick", "ward")
    with pytest.raises(ProjectError, match="names 'ward' twice"):
        figure_from_text.proportion(SCHEMA, "sick=yes", ["ward=a", "ward=b"])
    bins = SCHEMA["age"].labels
    three = figure_from_text.difference(SCHEMA, "sick=yes", "ward=a:b", among=f"age={bins[1]}")
    rows = {"ward": np.array([0, 0, 1, 1, 1]), "sick": np.array([1, 0, 1, 0, 1]), "age": np.array([1, 1, 1, 1, 0])}
    assert three.estimate(Tally.of_rows(rows, SCHEMA.sizes, three.columns))[0] == pytest.approx([0.0])


def test_intervals_that_hold_together_are_wider_and_max_t_needs_many_copies(study):
    figures = [figure_from_text.proportion(SCHEMA, f"ward={ward}") for ward in "ab"] + [
        figure_from_text.proportion(SCHEMA, "sick=yes")
    ]
    single = [study.ask(figure)[0] for figure in figures]
    joint = [answers[0] for answers in study.together(figures)]
    assert {one.family for one in joint} == {3}
    assert all(b.high - b.low > 1.1 * (a.high - a.low) for a, b in zip(single, joint, strict=True))
    with pytest.raises(EspalierError, match="needs at least 100 copies"):
        study.together(figures, rule="max-t")
    with pytest.raises(EspalierError, match="must be between 0 and 1"):
        study.ask(figures[0], level=95)
