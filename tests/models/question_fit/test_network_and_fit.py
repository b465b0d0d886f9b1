"""Maximum, log Z, expectations, covariances, fit and sensitivity agree with an enumeration of all rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import espalier.core.privacy.question_recipes.lowering as lowering
from espalier.core.errors import EspalierError, SizeError
from espalier.core.graph.junction_tree import junction_tree
from espalier.core.models.question_fit import (
    Block,
    Count,
    Network,
    Question,
    VisibleModel,
    check_cost,
    fit,
    lower,
    sensitivity,
)
from espalier.core.models.question_fit.newton import newton_direction
from tests.support.enumeration import answers, every_row, workload


@pytest.fixture(params=[(seed, direct) for seed in range(30) for direct in (4096, 1)], ids=str)
def case(request, monkeypatch):
    """A workload, answered from marginals where they are small, and by automata throughout."""
    seed, direct = request.param
    monkeypatch.setattr(lowering, "DIRECT_CELLS", direct)
    rng = np.random.default_rng(seed)
    sizes, questions, counts = workload(rng)
    lowered = lower(sizes, questions, counts, [tuple(list(sizes)[:2]), tuple(list(sizes)[1:3])])
    blocks = (*lowered.blocks, *(Block((c.name,), None) for c in counts), Block(tuple(list(sizes)[:2]), None))
    rows = every_row(sizes)
    held, told = answers(rows, questions, counts)
    first, second = list(sizes)[:2]
    pair = rows[first] * sizes[second] + rows[second]
    slow = [held[lowered.order], *(np.eye(c.size)[told[c.name]].T for c in counts)]
    slow.append(np.eye(sizes[first] * sizes[second])[pair].T)
    return Network(lowered.sizes, blocks, lowered.zeros), np.concatenate(slow), lowered, rng


def test_maximum_log_partition_and_expectations_equal_enumeration(case):
    network, slow, lowered, rng = case
    weights = rng.normal(0, 1.5, network.length)
    scores = weights @ slow
    log_partition, mean = network.evaluate(weights)
    peak = scores.max()
    p = np.exp(scores - peak)
    assert log_partition == pytest.approx(peak + np.log(p.sum()), abs=1e-9)
    p /= p.sum()
    np.testing.assert_allclose(mean, slow @ p, atol=1e-9)
    assert network.highest(weights) == pytest.approx(peak, abs=1e-9)
    value, row = network.best(weights)
    assert value == pytest.approx(peak, abs=1e-9)
    reached = network.statistics({name: np.array([code]) for name, code in row.items()})[:, 0]
    assert reached @ weights == pytest.approx(peak, abs=1e-9)
    spot = np.ravel_multi_index([row[n] for n in lowered.visible], [lowered.sizes[n] for n in lowered.visible])
    np.testing.assert_array_equal(reached, slow[:, spot])
    at = network.calibrate(weights)
    exact = (slow * p) @ slow.T - np.outer(slow @ p, slow @ p)
    np.testing.assert_allclose(network.covariance(at), exact, atol=1e-9)
    np.testing.assert_allclose(network.product(at, weights), exact @ weights, atol=1e-9)
    scale, slope = rng.uniform(0.1, 1.0, len(weights)), rng.normal(size=len(weights))
    direction = newton_direction(network, at, scale, slope)
    np.testing.assert_allclose(direction + exact / np.outer(scale, scale) @ direction, -slope, atol=1e-8)


def test_sensitivity_equals_enumeration(case):
    _, slow, lowered, _ = case
    held = slow[: len(lowered.order)]
    assert sensitivity(lowered, replace=False).squared == held.sum(axis=0).max()
    apart = np.abs(held[:, :, None] - held[:, None, :]).sum(axis=0).max()
    exact = sensitivity(lowered, replace=True)
    assert (exact.squared, exact.exact) == (apart, True)
    capped = sensitivity(lowered, replace=True, pair_cells=0)
    assert not capped.exact
    assert apart <= capped.squared == min(2 * held.sum(axis=0).max(), len(held))
    assert exact.value**2 >= apart
    assert sensitivity(lowered, replace=True, rows_per_person=3).value >= 3 * np.sqrt(apart)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(("dense", "sparse"), [(2000, 0.0), (0, 0.0), (0, 1e9)], ids=["dense", "cg", "sparse"])
def test_fit_is_the_optimum_of_the_enumerated_problem(seed, dense, sparse, monkeypatch):
    monkeypatch.setattr("espalier.core.models.question_fit.fitting.DENSE", dense)
    monkeypatch.setattr("espalier.core.models.question_fit.fitting.SPARSE_SHARE", sparse)
    rng = np.random.default_rng([seed, 5])
    sizes, questions, counts = workload(rng)
    lowered = lower(sizes, questions, counts)
    blocks = (*lowered.blocks, *(Block((c.name,), None) for c in counts))
    network = Network(lowered.sizes, blocks, lowered.zeros)
    held, told = answers(every_row(sizes), questions, counts)
    slow = np.concatenate([held[lowered.order], *(np.eye(c.size)[told[c.name]].T for c in counts)])
    total, sigma = 1000.0, rng.uniform(5, 50, len(slow))
    noisy = slow @ rng.dirichlet(np.ones(slow.shape[1])) * total + rng.normal(0, sigma)
    found = fit(network, noisy, sigma, total, smoothing=2.0, tolerance=1e-10)
    assert found.converged

    def loss(z):
        p = np.exp(z - z.max())
        p /= p.sum()
        apart = (slow @ p * total - noisy) / sigma
        return 0.5 * apart @ apart + 2.0 * (p @ np.log(np.maximum(p, 1e-300)) + np.log(len(p)))

    p = np.exp(found.weights @ slow)
    p /= p.sum()
    np.testing.assert_allclose(found.fitted, slow @ p * total, atol=1e-6)
    best = minimize(loss, np.log(p), method="L-BFGS-B", options={"maxiter": 200}).fun
    assert loss(np.log(p)) == pytest.approx(best, rel=1e-6)
    assert loss(np.log(p) + rng.normal(0, 0.5, len(p))) > best + 1e-4
    model = VisibleModel(network.model(found.weights, total, found.summary()), lowered.visible, lowered.counts)
    assert set(model.sample(5, rng)) == set(sizes)
    np.testing.assert_allclose(model.marginal(("n0",)).sum(), total)
    with pytest.raises(KeyError):
        model.marginal(("~0",))


@pytest.mark.parametrize("branching", [False, True])
def test_both_shapes_of_a_counter_count(branching):
    rng = np.random.default_rng(3)
    sizes = {f"c{i}": 2 for i in range(9)}
    tree = [(f"c{i}", f"c{int(rng.integers(i))}") for i in range(1, 9)]
    count = Count("n", {f"c{i}": (1,) for i in range(9)}, 5)
    built = lowering._Gates({**sizes, "n": count.size}, junction_tree(sizes, tree))
    built.count(count, branching)
    network = Network(built.sizes, (Block(("n",), None),), built.zeros)
    exact = np.bincount(count.values(every_row(sizes)), minlength=6) / 512
    np.testing.assert_allclose(network.evaluate(np.zeros(6))[1], exact, atol=1e-12)


def test_a_family_of_width_two_that_encodes_3_sat_is_refused():
    """One question requires that all copies of each variable agree; the others are clauses of three columns (3-SAT)."""
    rng = np.random.default_rng(0)
    variables, clauses = 9, 14
    of = [rng.permutation(variables)[:3] for _ in range(clauses)]
    sizes = {f"x{c}{i}": 2 for c in range(clauses) for i in range(3)}
    used = sorted({int(v) for members in of for v in members})
    agree = [
        {f"x{c}{i}": ((bits >> used.index(int(v))) & 1,) for c, members in enumerate(of) for i, v in enumerate(members)}
        for bits in range(1 << len(used))
    ]
    questions = [Question("agree", tuple(agree))]
    questions += [
        Question(f"clause {c}", tuple({f"x{c}{i}": (int(rng.integers(2)),)} for i in range(3))) for c in range(clauses)
    ]
    with pytest.raises(SizeError):
        check_cost(lower(sizes, questions), max_cells=1_000_000)


def test_bad_names_and_codes_are_refused():
    sizes = {"a": 2, "b": 3}
    with pytest.raises(EspalierError, match="neither a column nor a count"):
        lower(sizes, [Question("q", ({"c": (0,)},))])
    with pytest.raises(EspalierError, match="code 3 of 'b'"):
        lower(sizes, [Question("q", ({"b": (3,)},))])
    with pytest.raises(EspalierError, match="is already in use"):
        lower(sizes, [], [Count("a", {"b": (1,)}, 1)])
    with pytest.raises(EspalierError, match="no condition"):
        Question("q", ())
    with pytest.raises(EspalierError, match="at least 1"):
        Count("n", {"b": (1,)}, 0)
