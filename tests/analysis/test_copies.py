"""Copies have the right moments and coverage, and keep the facts of the release."""

from __future__ import annotations

import numpy as np
import pytest

from espalier.core.analysis.combine import combine
from espalier.core.analysis.copies import MOST_DRAWN, Recipe, copies, drawn_sample, one_ways, perturbed, warm_refit
from espalier.core.graph.dag import Dag
from espalier.core.graph.roles import Roles
from espalier.core.models.graphical import SMOOTHING, estimate
from espalier.core.privacy.draws import Measurement
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.table import Table
from tests.support.loosely import release

SIZES = {"a": 2, "b": 3, "c": 2}
TRUE = np.array([[0.1, 0.2, 0.1], [0.25, 0.05, 0.3]])
FLIP = np.array([[0.8, 0.2], [0.5, 0.5], [0.3, 0.7]])


def population_rows(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    flat = rng.choice(6, n, p=TRUE.ravel())
    a, b = np.divmod(flat, 3)
    return {"a": a, "b": b, "c": (rng.random(n) < FLIP[b, 1]).astype(int)}


def measured(rng: np.random.Generator, rows: dict[str, np.ndarray], sigma: float) -> list[Measurement]:
    out = []
    for one, other in (("a", "b"), ("b", "c")):
        counts = np.zeros((SIZES[one], SIZES[other]))
        np.add.at(counts, (rows[one], rows[other]), 1)
        out.append(Measurement((one, other), counts + rng.normal(0, sigma, counts.shape), sigma))
    return out


@pytest.mark.parametrize(("k", "most"), [(1, MOST_DRAWN), (4, MOST_DRAWN), (4, 100)])
def test_what_is_added_has_the_variance_of_sample_and_noise(k, most, monkeypatch):
    """This holds even if fewer rows are drawn than the model has, since a release may state more rows than fit in
    memory."""
    monkeypatch.setattr("espalier.core.analysis.copies.MOST_DRAWN", most)
    rng = np.random.default_rng(1)
    n, sigma = 400, 3.0
    counts = measured(rng, population_rows(rng, n), sigma)
    model = estimate(SIZES, counts, float(n), smoothing=SMOOTHING)
    recipe = Recipe(1, n, rows_per_person=k)
    added = np.array([perturbed(counts, model, recipe, rng)[0].values - counts[0].values for _ in range(3000)])
    p = model.marginal(("a", "b")) / n
    variance = k * n * p * (1 - p) + sigma**2
    assert np.allclose(added.var(axis=0) / variance, 1, atol=0.15)  # 5 standard errors of 3,000 draws
    assert np.abs(added.mean(axis=0) / np.sqrt(variance / 3000)).max() < 5


def test_a_release_that_states_a_thousand_million_rows_draws_a_few_of_them():
    rng = np.random.default_rng(3)
    model = estimate(SIZES, measured(rng, population_rows(rng, 400), 3.0), 1e9)
    assert len(drawn_sample(model, rng)["a"]) == MOST_DRAWN


def test_both_cliques_are_perturbed_by_the_same_rows():
    rng = np.random.default_rng(2)
    counts = [Measurement(m.clique, m.values, 1e-9) for m in measured(rng, population_rows(rng, 300), 1e-9)]
    model = estimate(SIZES, counts, 300.0)
    first, second = perturbed(counts, model, Recipe(1, 300), rng)
    assert np.allclose(first.values.sum(axis=0), second.values.sum(axis=1), atol=1e-3)
    assert not np.allclose(first.values, counts[0].values, atol=0.5)


@pytest.mark.parametrize("evenly", [pytest.param(True, marks=pytest.mark.nightly), False])
def test_intervals_of_copies_cover_the_population(evenly):
    """The naive interval of one release covers about half as often as it claims; the interval from copies covers as
    claimed.
    """
    rng = np.random.default_rng(3)  # seeded, so the result never changes
    runs, n, sigma, hit, naive = 60, 1000, 25.0, 0, 0
    truth = TRUE[1, 2] / TRUE[:, 2].sum()
    for _ in range(runs):
        counts = measured(rng, population_rows(rng, n), sigma)
        model = estimate(SIZES, counts, float(n), smoothing=SMOOTHING)
        values, within = [], []
        for _, rows in copies(counts, model, warm_refit(model, float(n)), Recipe(12, n, evenly=evenly), rng):
            inside = rows["a"][rows["b"] == 2]
            values.append(float(inside.mean()))
            within.append(float(inside.var() / len(inside)))
        got = combine(values, None if evenly else within)
        hit += got.low <= truth <= got.high
        naive += abs(got.estimate - truth) <= 1.96 * np.sqrt(np.mean(within))
    assert hit / runs >= 0.87  # 0.95 minus three standard errors
    assert naive / runs < 0.85


SCHEMA = Schema(
    (
        Column("s", "categorical", ("f", "m")),
        Column("a", "ordinal", ("lo", "mid", "hi")),
        Column("p", "categorical", ("n", "e", "s", "w")),
        Column("y", "categorical", ("no", "yes")),
    )
)


def project(**plan) -> Project:
    roles = Roles(outcome=("y",), protected=("s",), admissible=("a",), inadmissible=("p",))
    dag = Dag((("a", "y"), ("s", "a"), ("s", "p")))
    whole = Plan.from_json({"method": "privci", "epsilon": 1.0, "target": "y", **plan})
    return Project("copies", SCHEMA, whole, dag, roles)


def table(n: int = 3000) -> Table:
    rng = np.random.default_rng(4)
    s = rng.integers(0, 2, n)
    a = np.minimum(rng.integers(0, 3, n) + s, 2)
    p = np.where(rng.random(n) < 0.97, s, rng.integers(0, 4, n))
    return Table(SCHEMA, {"s": s, "a": a, "p": p, "y": rng.random(n) < 0.2 + 0.3 * a}, n)


@pytest.mark.parametrize(
    "plan",
    [
        {},
        {"neighbors": "add-remove", "delta": 1e-6},
        {"compress": True, "epsilon": 0.3},
        {"method": "prism", "regime": "causal", "targets": {"p": 0.5}},
        {"rows_per_person": 3},
    ],
    ids=["fenced", "add-remove", "merged", "two targets", "people"],
)
def test_copies_of_a_release_keep_what_it_keeps(plan):
    made = release(project(**plan), table())
    counts, merged = made.fitted.measurements, made.fitted.merged
    total = None if made.project.plan.neighbors == "add-remove" else made.model.total
    recipe = Recipe(3, 2000, rows_per_person=made.project.plan.rows_per_person, merged=merged)
    rng = np.random.default_rng(5)
    models = []
    for model, rows in copies(counts, made.model, warm_refit(made.model, total, merged), recipe, rng):
        assert model.cliques == made.model.cliques
        assert dict(model.sizes) == SCHEMA.sizes
        assert all(len(rows[name]) == 2000 and rows[name].max() < size for name, size in SCHEMA.sizes.items())
        for separation in made.plan_frame.separations:
            assert model.cmi(separation.left, separation.right, separation.given) < 1e-9
        for name, groups in merged.items():
            one_way = model.marginal((name,))
            assert np.allclose(one_way, (np.bincount(groups, one_way) / np.bincount(groups))[groups])
        models.append(model)
    totals = {model.total for model in models}
    assert (len(totals) == 3) == (total is None)
    assert not np.allclose(models[0].marginal(("a", "y")), models[1].marginal(("a", "y")))


def test_a_copy_follows_the_counts_where_the_release_leans_towards_independence():
    """Seeded noise of 30 rows; the pull on a cell is about smoothing · σ · log(p / q)."""
    rng = np.random.default_rng(6)
    counts = measured(rng, population_rows(rng, 4000), 30.0)
    model = estimate(SIZES, counts, 4000.0, smoothing=3.0)
    again = warm_refit(model, 4000.0)(counts)
    off = [np.abs(m.marginal(("b", "c")) - counts[1].values).mean() for m in (model, again)]
    assert off[1] < off[0] / 2
    assert np.allclose(again.marginal(("a",)), model.marginal(("a",)), atol=30)


def test_columns_alone_are_what_all_counts_say_of_them():
    counts = [
        Measurement(("a",), np.array([10.0, 30.0]), 2.0),
        Measurement(("a", "b"), np.array([[4.0, 4.0, 4.0], [10.0, 9.0, 9.0]]), 1.0),
    ]
    a, b = one_ways(counts)
    assert np.allclose(a.values, (np.array([10, 30]) / 4 + np.array([12, 28]) / 3) / (1 / 4 + 1 / 3))
    assert a.sigma == pytest.approx((1 / 4 + 1 / 3) ** -0.5 / 2)
    assert np.allclose(b.values, [14, 13, 13])


def test_recipes_that_cannot_be():
    with pytest.raises(ValueError, match=r"copies \(0\) must be at least 1"):
        Recipe(0, 5)
