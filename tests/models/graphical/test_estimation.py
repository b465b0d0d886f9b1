"""The fit agrees with an exact solver on the whole joint table, and no input breaks it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from espalier.core.errors import EspalierError
from espalier.core.models.graphical import GraphicalModel, Zeros, estimate
from espalier.core.models.graphical.metric import closed_form, links
from espalier.core.models.graphical.problem import pose
from espalier.core.privacy.draws import Measurement
from tests.support.graphs import SHAPES, joint_probabilities, marginal_matrix, project, random_model


def noisy(model, n, rng, sigma):
    """Noisy counts of the model's cliques and of every column; ``sigma`` may be a function of the index."""
    cliques = list(dict.fromkeys([*model.cliques, *((name,) for name in model.sizes)]))
    scale = sigma if callable(sigma) else lambda _: sigma
    return [
        Measurement(
            clique,
            np.round(
                model.marginal(clique) * n / model.total + rng.normal(0, scale(i), [model.sizes[c] for c in clique])
            ),
            scale(i),
        )
        for i, clique in enumerate(cliques)
    ]


def objective(model, measurements):
    return sum(float(((model.marginal(m.clique) - m.values) ** 2).sum()) / (2 * m.sigma**2) for m in measurements)


def exact_optimum(sizes, measurements, total, allowed=None):
    """The smallest objective over all joint tables ≥ 0 with this total: nonnegative least squares."""
    rows = [marginal_matrix(sizes, m.clique) / m.sigma for m in measurements]
    aims = [m.values.ravel() / m.sigma for m in measurements]
    width = rows[0].shape[1]
    heavy = 1e4 / min(m.sigma for m in measurements)
    matrix = np.vstack([*rows, np.full((1, width), heavy)])
    if allowed is not None:
        matrix = matrix[:, allowed]
    joint, _ = nnls(matrix, np.concatenate([*aims, [heavy * total]]), maxiter=20_000)
    return 0.5 * float(np.sum((matrix[:-1] @ joint - np.concatenate(aims)) ** 2))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(5))
def test_the_objective_is_the_best_possible(shape, seed):
    rng = np.random.default_rng([SHAPES.index(shape), seed, 1])
    truth = random_model(shape, rng, columns=5, largest=4)
    sigma = float(rng.choice([1.0, 20.0, 300.0]))
    measurements = noisy(truth, 2000, rng, sigma)
    model = estimate(truth.sizes, measurements, 2000.0)
    assert model.fit.converged
    assert model.fit.objective == pytest.approx(objective(model, measurements), rel=1e-6, abs=1e-6)
    best = exact_optimum(truth.sizes, measurements, 2000.0)
    assert model.fit.objective - best <= model.fit.gap + 1e-6 * max(1.0, best)
    assert model.fit.objective <= best + 1.01e-3 * max(1.0, best)


@pytest.mark.parametrize("shape", ["tree", "cycle", "grid", "clique", "triples"])
@pytest.mark.parametrize("pattern", ["alternating", "random"])
def test_noise_that_differs_a_thousandfold_is_certified_and_the_gap_bounds_the_error(shape, pattern):
    rng = np.random.default_rng([SHAPES.index(shape), len(pattern)])
    for _ in range(3):
        truth = random_model(shape, rng, columns=5, largest=4)
        scales = [1.0, 1000.0] * 10 if pattern == "alternating" else 10 ** rng.uniform(0, 3, 20)
        measurements = noisy(truth, 5000, rng, lambda i, scales=scales: float(scales[i]))
        best = exact_optimum(truth.sizes, measurements, 5000.0)
        model = estimate(truth.sizes, measurements, 5000.0, max_iterations=120)
        assert model.fit.converged
        for steps in (3, 10, 30, 120):
            fit = estimate(truth.sizes, measurements, 5000.0, max_iterations=steps).fit
            assert fit.objective - best <= fit.gap + 1e-6 * max(1.0, best)
            assert fit.iterations <= steps


@pytest.mark.parametrize(("pattern", "seed"), [("equal", 14), ("alternating", 20), ("random", 21)])
def test_a_workload_full_of_loops_is_certified_whatever_the_noise(pattern, seed):
    rng = np.random.default_rng(seed)
    sizes = dict(zip("abcdefgh", (8, 9, 2, 7, 5, 6, 2, 3), strict=True))
    cliques: list[tuple[str, ...]] = [(name,) for name in sizes]
    cliques += [(name, "h") for name in "abcdefg"]
    cliques += [*pairwise("abcdefg"), ("a", "c", "e")]
    table = {name: rng.choice(n, 20_000, p=rng.dirichlet(np.full(n, 0.4))) for name, n in sizes.items()}
    measurements = []
    for i, clique in enumerate(cliques):
        sigma = {"equal": 30.0, "alternating": (1.0, 1000.0)[i % 2], "random": 10 ** rng.uniform(0, 3)}[pattern]
        shape = [sizes[name] for name in clique]
        flat = np.ravel_multi_index([table[name] for name in clique], shape)
        counts = np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)
        measurements.append(Measurement(clique, np.round(counts + rng.normal(0, sigma, shape)), sigma))
    fit = estimate(sizes, measurements, 20_000.0).fit
    assert fit.converged
    assert fit.gap <= 1e-3 * max(1.0, fit.objective)
    assert fit.iterations <= 200


def test_a_grid_is_certified():
    rng = np.random.default_rng(15)
    name = [[f"{i},{j}" for j in range(8)] for i in range(5)]
    cliques = [(name[i][a], name[i][b]) for i in range(5) for a, b in pairwise(range(8))]
    cliques += [(name[a][j], name[b][j]) for j in range(8) for a, b in pairwise(range(5))]
    measurements = [Measurement(c, np.round(1000.0 + rng.normal(0, 300, (2, 2))), 100.0) for c in cliques]
    fit = estimate({column: 2 for row in name for column in row}, measurements, 4000.0).fit
    assert fit.converged
    assert fit.iterations <= 60


def wide_star(seed: int, hub: int) -> tuple[dict[str, int], list[Measurement]]:
    """Return sizes and noisy pairs of a hub with 59 columns; a third of the cells are empty except for the noise."""
    rng = np.random.default_rng(seed)
    sizes = {"hub": hub, **{f"c{i}": int(n) for i, n in enumerate(rng.choice([2, 4, 8, 16], 59))}}
    given, measurements = rng.dirichlet(np.full(hub, 0.4)), []
    for name in list(sizes)[1:]:
        shares = rng.dirichlet(np.full(sizes[name], 0.4), hub)
        counts = 20_000 * given[:, None] * shares + rng.normal(0, 100.0, shares.shape)
        measurements.append(Measurement(("hub", name), np.round(counts), 100.0))
    return sizes, measurements


@pytest.mark.parametrize("seed", [18, 19, 21])
def test_a_wide_star_is_certified_in_a_few_steps(seed):
    sizes, measurements = wide_star(seed, 8)
    plain, smooth = (estimate(sizes, measurements, 20_000.0, smoothing=amount).fit for amount in (0.0, 0.3))
    assert plain.converged
    assert plain.iterations <= 40
    assert smooth.converged
    assert smooth.iterations <= 15


def test_the_closed_form_keeps_the_hub_where_cliques_disagree_about_it():
    rng = np.random.default_rng(20)
    problem = pose(*wide_star(20, 16), 20_000.0)
    chain = links(problem.regions)
    given = np.maximum(problem.target, 30.0) * rng.uniform(0.8, 1.2, problem.regions.size)
    found = problem.sweep(closed_form(problem.regions, chain, given)).marginals
    root = problem.regions.spans[chain[0].clique]
    np.testing.assert_allclose(found[root], 20_000.0 * given[root] / given[root].sum())


def test_products_with_the_covariance_are_the_derivative_of_the_marginals():
    rng = np.random.default_rng(16)
    truth = random_model("grid", rng, columns=6, largest=4)
    problem = pose(truth.sizes, noisy(truth, 1000, rng, 10.0), 1000.0)
    theta, direction = rng.normal(size=(2, problem.regions.size))
    change = problem.covariance(problem.sweep(theta), direction)
    apart = problem.sweep(theta + 1e-5 * direction).marginals - problem.sweep(theta - 1e-5 * direction).marginals
    np.testing.assert_allclose(change, apart / 2e-5, atol=1e-4)


def test_without_noise_a_tree_is_recovered():
    rng = np.random.default_rng(6)
    for _ in range(10):
        truth = random_model("tree", rng, columns=5, largest=4)
        measurements = [Measurement(c, truth.marginal(c), 0.01) for c in truth.cliques]
        model = estimate(truth.sizes, measurements, truth.total)
        joint, _ = joint_probabilities(truth)
        np.testing.assert_allclose(model.marginal(tuple(truth.sizes)), joint * truth.total, atol=1e-2)


def test_forbidden_cells_stay_exactly_zero():
    rng = np.random.default_rng(7)
    truth = random_model("cycle", rng, columns=4, largest=4)
    while len(truth.sizes) < 4 or min(truth.sizes.values()) < 2:
        truth = random_model("cycle", rng, columns=4, largest=4)
    names = list(truth.sizes)
    measurements = noisy(truth, 1000, rng, 15.0)
    mask = np.zeros((truth.sizes[names[0]], truth.sizes[names[2]]), dtype=bool)
    mask[0, :] = True
    mask[-1, -1] = True
    rule = Zeros((names[0], names[2]), mask)
    model = estimate(truth.sizes, measurements, 1000.0, zeros=[rule])
    assert not model.marginal(rule.clique)[mask].any()
    assert model.marginal(rule.clique).sum() == pytest.approx(1000.0)
    assert rule.clique in model.cliques
    allowed = ~mask[np.ix_(range(mask.shape[0]), range(mask.shape[1]))]
    shape = [truth.sizes[n] if n in rule.clique else 1 for n in names]
    flat = np.broadcast_to(allowed.reshape(shape), list(truth.sizes.values())).ravel()
    best = exact_optimum(truth.sizes, measurements, 1000.0, flat)
    assert model.fit.objective <= best * 1.001 + 1e-6
    rows = model.sample(5000, np.random.default_rng(0))
    assert not mask[rows[names[0]], rows[names[2]]].any()


def test_contradicting_impossibilities_are_refused():
    everything = Zeros(("a", "b"), np.ones((2, 2), dtype=bool))
    with pytest.raises(EspalierError, match="leave no possible row"):
        estimate({"a": 2, "b": 2}, [], 10.0, zeros=[everything])
    pair = [Zeros(("a", "b"), np.eye(2, dtype=bool)), Zeros(("a", "b"), ~np.eye(2, dtype=bool))]
    with pytest.raises(EspalierError, match="leave no possible row"):
        estimate({"a": 2, "b": 2}, [], 10.0, zeros=pair)


def test_totals():
    sizes = {"a": 2, "b": 3}
    precise = Measurement(("a",), np.array([60.0, 41.0]), 1.0)
    vague = Measurement(("b",), np.array([500.0, 0.0, 0.0]), 1000.0)
    assert estimate(sizes, [precise, vague], None).total == pytest.approx(101.0, abs=0.01)
    negative = Measurement(("b",), np.array([-5.0, -1.0, 2.0]), 4.0)
    for total in (None, -3.0, 0.0):
        model = estimate(sizes, [negative], total)
        assert model.total == 1.0
        assert model.marginal(("a", "b")).sum() == pytest.approx(1.0)
    with pytest.raises(ValueError, match="total"):
        estimate(sizes, [], float("nan"))


def test_what_must_not_break():
    sizes = {"a": 3, "b": 1, "c": 2, "d": 4}
    zero = estimate(sizes, [Measurement(("a", "c"), np.zeros((3, 2)), 5.0)], None)
    assert zero.marginal(("a", "c")).sum() == pytest.approx(1.0)
    nothing = estimate(sizes, [], 12.0)
    np.testing.assert_allclose(nothing.marginal(("a", "c")), 2.0)
    assert nothing.fit.converged
    assert nothing.cliques == ()
    single = estimate({"a": 3}, [Measurement(("a",), np.array([5.0, -2.0, 1.0]), 1.0)], 6.0)
    assert single.marginal(("a",))[0] == pytest.approx(5.0, abs=0.01)
    alone = estimate(sizes, [Measurement(("b",), np.array([9.0]), 2.0)], 10.0)
    assert alone.fit.objective == pytest.approx(0.125)
    empty = estimate({}, [], 3.0)
    assert empty.marginal(()) == 3.0
    overall = estimate(sizes, [Measurement((), np.array(20.0), 2.0)], None)
    assert overall.total == pytest.approx(20.0)
    wide = estimate({"x": 1000, "y": 2}, [Measurement(("x", "y"), np.ones((1000, 2)), 3.0)], 2000.0)
    np.testing.assert_allclose(wide.marginal(("x",)), 2.0, rtol=1e-2)


def test_repeated_contained_and_reordered_measurements_add_up():
    sizes = {"a": 2, "b": 3}
    table = np.array([[10.0, 20.0, 30.0], [5.0, 15.0, 20.0]])
    pair = Measurement(("a", "b"), table, 2.0)
    turned = Measurement(("b", "a"), table.T, 2.0)
    twice = estimate(sizes, [pair, turned, pair], 100.0, tolerance=1e-9)
    np.testing.assert_allclose(twice.marginal(("a", "b")), table, atol=1e-3)
    sharp = Measurement(("a",), np.array([70.0, 30.0]), 0.001)
    both = estimate(sizes, [pair, sharp], 100.0)
    np.testing.assert_allclose(both.marginal(("a",)), [70.0, 30.0], atol=0.01)
    np.testing.assert_allclose(both.marginal(("a", "b"))[0], table[0] + 10 / 3, atol=0.1)


@pytest.mark.parametrize(
    ("measurement", "text"),
    [
        (Measurement(("a",), np.zeros(3), 1.0), r"\(a\) has shape \(3,\), but its columns have sizes \(2,\)"),
        (Measurement(("a", "z"), np.zeros((2, 2)), 1.0), r"\(a, z\) names a column that does not exist: z"),
        (Measurement(("a", "a"), np.zeros((2, 2)), 1.0), r"\(a, a\) names a column twice"),
        (Measurement(("a",), np.zeros(2), 0.0), r"sigma \(0.0\) must be positive"),
        (Measurement(("a",), np.array([1.0, np.nan]), 1.0), r"the counts of \(a\) are not all finite"),
    ],
)
def test_measurements_that_do_not_fit_are_refused(measurement, text):
    with pytest.raises(ValueError, match=text):
        estimate({"a": 2, "b": 2}, [measurement], 10.0)


def test_a_warm_start_needs_fewer_steps_and_keeps_what_fits():
    rng = np.random.default_rng(8)
    truth = random_model("cycle", rng, columns=6, largest=5)
    measurements = noisy(truth, 3000, rng, 10.0)
    cold = estimate(truth.sizes, measurements, 3000.0)
    warm = estimate(truth.sizes, measurements, 3000.0, start=cold)
    assert warm.fit.iterations <= cold.fit.iterations
    assert warm.fit.objective == pytest.approx(cold.fit.objective, rel=3e-3, abs=1e-3)
    other = estimate({"new": 3, **truth.sizes}, measurements[:1], 3000.0, start=cold)
    assert other.fit.converged


def test_progress_is_told_and_cancels():
    rng = np.random.default_rng(9)
    truth = random_model("clique", rng, columns=6, largest=4)
    measurements = noisy(truth, 3000, rng, 30.0)
    told = []
    estimate(truth.sizes, measurements, 3000.0, report=lambda fraction, message: told.append((fraction, message)))
    fractions = [fraction for fraction, _ in told]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0

    def cancel(_fraction, message):
        raise InterruptedError(message)

    with pytest.raises(InterruptedError):
        estimate(truth.sizes, measurements, 3000.0, report=cancel)


def test_too_few_iterations_are_admitted():
    rng = np.random.default_rng(10)
    truth = random_model("clique", rng, columns=5, largest=4)
    model = estimate(truth.sizes, noisy(truth, 3000, rng, 30.0), 3000.0, max_iterations=1, tolerance=1e-9)
    assert not model.fit.converged
    assert model.fit.gap > 0
    assert model.fit.criterion == "duality gap at most 1e-09 times max(1, objective)"


def separated(cliques, left, right, middle):
    """Return whether every path from ``left`` to ``right`` in the graph of the cliques passes through ``middle``."""
    reached, waiting = {left}, [left]
    while waiting:
        here = waiting.pop()
        for clique in cliques:
            if here in clique:
                fresh = set(clique) - reached - middle
                reached |= fresh
                waiting.extend(fresh)
    return right not in reached


@settings(max_examples=60, derandomize=True)
@given(st.integers(0, 10**9), st.sampled_from(SHAPES), st.sampled_from([0.5, 20.0, 500.0]))
def test_separation_in_the_graph_is_independence_in_the_model(seed, shape, sigma):
    rng = np.random.default_rng(seed)
    truth = random_model(shape, rng, columns=6, largest=4)
    model = estimate(truth.sizes, noisy(truth, 1000, rng, sigma), 1000.0)
    names = list(truth.sizes)
    for i, left in enumerate(names):
        for right in names[i + 1 :]:
            rest = [name for name in names if name not in (left, right)]
            middle = set(rng.permutation(rest)[: rng.integers(0, len(rest) + 1)].tolist())
            if separated(model.cliques, left, right, middle):
                assert model.cmi((left,), (right,), tuple(middle)) <= 1e-9


@pytest.mark.nightly
def test_agreement_with_private_pgm():
    pytest.importorskip("mbi")
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jax

        jax.config.update("jax_enable_x64", True)
        import mbi
        from mbi.estimation import MirrorDescent
        from mbi.marginal_loss import LinearMeasurement

        rng = np.random.default_rng(11)
        truth = random_model("tree", rng, columns=4, largest=4)
        while len(truth.sizes) < 4:
            truth = random_model("tree", rng, columns=4, largest=4)
        measurements = noisy(truth, 2000, rng, 10.0)
        theirs = MirrorDescent().estimate(
            mbi.Domain(list(truth.sizes), list(truth.sizes.values())),
            [LinearMeasurement(m.values.ravel(), m.clique, stddev=m.sigma) for m in measurements],
            known_total=2000.0,
        )
        ours = estimate(truth.sizes, measurements, 2000.0, tolerance=1e-6)
        for m in measurements:
            np.testing.assert_allclose(ours.marginal(m.clique), np.asarray(theirs.project(m.clique).values), atol=2.0)


def test_the_model_is_the_projection_of_its_joint():
    rng = np.random.default_rng(12)
    truth = random_model("grid", rng, columns=5, largest=3)
    model = estimate(truth.sizes, noisy(truth, 500, rng, 5.0), 500.0)
    assert isinstance(model, GraphicalModel)
    joint, _ = joint_probabilities(model)
    for clique in model.cliques:
        np.testing.assert_allclose(model.marginal(clique), 500 * project(model, joint, clique), atol=1e-6)


def test_smoothing_trades_fit_for_independence():
    rng = np.random.default_rng(13)
    truth = random_model("clique", rng, columns=5, largest=4)
    while len(truth.sizes) < 5:
        truth = random_model("clique", rng, columns=5, largest=4)
    measurements = noisy(truth, 3000, rng, 30.0)
    plain = estimate(truth.sizes, measurements, 3000.0)
    previous = plain.fit.objective
    for smoothing in (0.3, 1.0, 3.0):
        smooth = estimate(truth.sizes, measurements, 3000.0, smoothing=smoothing)
        assert smooth.fit.converged
        assert smooth.fit.objective > previous * 0.999
        previous = smooth.fit.objective
    apart = estimate(truth.sizes, measurements, 3000.0, smoothing=1e6)
    product = np.full((), 3000.0)
    for name in truth.sizes:
        product = product[..., None] * apart.marginal((name,)) / 3000.0
    np.testing.assert_allclose(apart.marginal(tuple(truth.sizes)), product, rtol=0.05)
    with pytest.raises(ValueError, match=r"smoothing \(-1\) must not be negative"):
        estimate(truth.sizes, measurements, 3000.0, smoothing=-1)


def test_many_cells_leave_no_column_far_from_its_counts():
    """A thousandth of the objective of these tables is 1.8; stopping there would leave a column of two categories off
    by twice its noise."""
    rng, sizes = np.random.default_rng(0), {"a": 2, "b": 30, "c": 30, "d": 30, "e": 30}
    shares = {name: rng.dirichlet(np.ones(size)) for name, size in sizes.items()}
    found = []
    for clique in (("a", "b", "c"), ("a", "b", "d")):
        mean = np.full((), 400.0)
        for name in clique:
            mean = np.multiply.outer(mean, shares[name])
        found.append(Measurement(clique, np.round(mean + rng.normal(0, 20, mean.shape)), 20.0))
    fit = estimate(sizes, found, 400.0, smoothing=3.0).fit
    assert fit.objective > 1000
    assert fit.converged
    assert fit.gap <= 0.1
    assert fit.criterion == "duality gap at most 0.001 times max(1, objective), and at most 0.1, smoothing 3"
