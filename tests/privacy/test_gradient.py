"""The gradient of a logistic fit: its definition, its sensitivity, and its noise."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chi2

from espalier.core.methods.select.allocation import BudgetSplit, Choices
from espalier.core.methods.select.feature_subset import fit_features
from espalier.core.methods.select.greedy_tree import Growth
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.gradient import LogisticGradient, gradient_sensitivity
from espalier.core.privacy.rehearsal import Rehearsal
from espalier.core.privacy.unit import Unit
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.gradient import UNITS, residual_sums
from espalier.core.tables.table import Table

SIZES = {"a": 2, "b": 3, "y": 2}


def weights(rng, sizes, scale):
    others = sizes["y"] - 1
    out = {n: scale * rng.normal(size=(k, others)) for n, k in sizes.items() if n != "y"}
    return out | {"y": scale * rng.normal(size=(1, others))}


def sums(rows, sizes, w):
    codes = {n: np.array([r[i] for r in rows], dtype=np.uint8) for i, n in enumerate(sizes)}
    return residual_sums(codes, "y", ["a", "b"], sizes, w)


@pytest.mark.parametrize("sizes", [SIZES, {"a": 2, "b": 2, "y": 3}], ids=["two classes", "three classes"])
@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("k", [1, 2])
def test_no_person_moves_the_gradient_by_more_than_its_sensitivity(sizes, neighbors, k):
    """Every row is replaced by every other: the sum over the remaining rows is the same on both sides and drops out."""
    rng = np.random.default_rng(0)
    cells = list(itertools.product(*map(range, sizes.values())))
    bound = gradient_sensitivity(Unit(neighbors, k), 2, sizes["y"])
    worst = 0.0
    for scale in (0.0, 1.0, 30.0):  # at 30 the fit is confident, and often wrong
        w = weights(rng, sizes, scale)
        one = {cell: sums([cell], sizes, w).astype(float) for cell in cells}
        groups = [sum(one[c] for c in g) for g in itertools.combinations_with_replacement(cells, k)]
        others = groups if neighbors == "replace-one" else [np.zeros_like(groups[0])]
        worst = max(worst, max(float(np.linalg.norm(g - h)) for g in groups for h in others))
    assert worst <= bound
    assert worst >= 0.7 * bound, "the enumeration must come near the bound, or it tests nothing"


def test_the_sum_over_a_table_is_the_sum_over_its_rows():
    rng = np.random.default_rng(1)
    rows = [tuple(rng.integers(0, k) for k in SIZES.values()) for _ in range(50)]
    w = weights(rng, SIZES, 1.0)
    assert (sums(rows, SIZES, w) == sum(sums([r], SIZES, w) for r in rows)).all()


def test_it_is_the_gradient_of_the_log_likelihood():
    rng = np.random.default_rng(2)
    rows = [tuple(rng.integers(0, k) for k in SIZES.values()) for _ in range(40)]
    w = weights(rng, SIZES, 0.5)

    def likelihood(w):
        odds = [w["y"][0, 0] + w["a"][a, 0] + w["b"][b, 0] for a, b, _ in rows]
        return sum(z * y - math.log1p(math.exp(z)) for z, (_, _, y) in zip(odds, rows, strict=True))

    flat, at = sums(rows, SIZES, w) / UNITS, 0
    for name in ("a", "b"):
        for value in range(SIZES[name]):
            moved = {n: t.copy() for n, t in w.items()}
            moved[name][value, 0] += 1e-6
            assert (likelihood(moved) - likelihood(w)) / 1e-6 == pytest.approx(flat[at], abs=1e-3)
            at += 1


def table(n, seed=0, columns=8):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    x = {f"x{i}": np.where(rng.random(n) < (0.8 if i < 2 else 0.0), y, rng.integers(0, 2, n)) for i in range(columns)}
    schema = Schema(tuple(Column(name, "categorical", ("0", "1")) for name in (*x, "y")))
    return Table(schema, {name: v.astype(np.uint8) for name, v in {**x, "y": y}.items()}, n)


def curator(t, rho):
    return PrivateCurator(t, Unit(), Budget(1.0, 1e-9, rho), 1000)


def test_the_noise_is_what_the_price_buys_not_less_and_not_more():
    t = table(50, columns=60)
    names = [n for n in t.schema.names if n != "y"]
    w = {n: np.zeros((2, 1)) for n in names} | {"y": np.zeros((1, 1))}
    c = curator(t, 10.0)
    exact = t.residual_sums("y", names, w) / UNITS
    sigma = 2 * math.sqrt(60) / math.sqrt(2 * 0.1)
    draws = np.concatenate(
        [c.measure_sums(LogisticGradient("y", tuple(names), w), 0.1).values - exact for _ in range(60)]
    )
    square = float(np.sum((draws / sigma) ** 2))
    low, high = chi2.ppf([1e-7, 1 - 1e-7], len(draws))
    assert low < square < high
    assert not low < square / 0.8 < high, "a scale 11 % smaller would be detected"
    assert not low < square * 0.8 < high, "and one 11 % larger"
    assert c.spending.rho == pytest.approx(6.0)


def test_bad_weights_and_overspending_are_refused_before_anything_is_read():
    t = table(20, columns=2)
    c = curator(t, 0.1)
    good = {"x0": np.zeros((2, 1)), "y": np.zeros((1, 1))}
    with pytest.raises(ValueError, match="do not match"):
        c.measure_sums(LogisticGradient("y", ("x0",), {**good, "x0": np.zeros((3, 1))}), 0.01)
    for bad in (np.inf, np.nan, 1e308):
        with pytest.raises(ValueError, match="must be numbers"):
            c.measure_sums(LogisticGradient("y", ("x0",), {**good, "x0": np.full((2, 1), bad)}), 0.01)
    with pytest.raises(ValueError, match="target"):
        c.measure_sums(LogisticGradient("y", ("y",), good), 0.01)
    with pytest.raises(Exception, match="left"):
        c.measure_sums(LogisticGradient("y", ("x0",), good), 0.2)
    assert c.spending.rho == 0


def test_a_private_fit_finds_the_columns_that_matter_and_its_rehearsal_costs_the_same():
    t = table(4000)
    names = [n for n in t.schema.names if n != "y"]
    plan = Plan("prism", 1.0, 1e-9, target="y")
    c = curator(t, 0.5)
    r = Rehearsal(t.schema.sizes, Unit(), Budget(1.0, 1e-9, 0.5), 4000)
    for x in (c, r):
        budget = BudgetSplit.of(plan, x.budget, x.sizes)
        chosen, unspent = fit_features(Choices(x, budget, 0.5, "selection"), "y", names, 2, Growth(tuple(x.sizes), ()))
        assert len(chosen) == 2
        assert unspent == 0
        assert x.spending.rho == pytest.approx(0.25)
    free = Growth(tuple(c.sizes), ())
    chosen, _ = fit_features(Choices(c, BudgetSplit.of(plan, c.budget, c.sizes), 0.4), "y", names, 2, free)
    assert chosen == ("x0", "x1")
    assert fit_features(Choices(c, budget, 0.4), "y", names, 8, free) == (tuple(names), 0.4), (
        "nothing is drawn if all are taken"
    )
