"""Speed and accuracy of questions and counts: ``python -m benchmarks.questions exact|widths|linear|counts|general``.

Noise is simulated with NumPy's Gaussian: nothing is released. Figures are for one thread (``OMP_NUM_THREADS=1
OPENBLAS_NUM_THREADS=1``).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from espalier.core.models.graphical.estimation import estimate
from espalier.core.models.question_fit import (
    Block,
    Count,
    Fit,
    Lowered,
    Network,
    Question,
    fit,
    lower,
    lower_bound,
    project,
    sensitivity,
)
from espalier.core.privacy.accounting import rho_of
from espalier.core.privacy.draws import Measurement

Rows = dict[str, NDArray[np.integer]]


def two_tree(columns: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Return the edges of a random 2-tree: every column after the second is joined to both ends of an earlier edge."""
    edges = [(0, 1)]
    for v in range(2, columns):
        a, b = edges[int(rng.integers(len(edges)))]
        edges += [(a, v), (b, v)]
    return edges


def triangles(edges: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Return the triangles of a 2-tree made by `two_tree`."""
    return [(edges[i][0], edges[i + 1][0], edges[i][1]) for i in range(1, len(edges), 2)]


def rows_along(
    edges: Sequence[tuple[int, int]], categories: int, n: int, rng: np.random.Generator, spread: float = 0.7
) -> Rows:
    """Return rows in which each column depends on the columns to which it was joined. A high ``spread`` weakens the
    dependence.
    """
    parents: dict[int, list[int]] = {0: []}
    for a, v in edges:
        parents.setdefault(v, []).append(a)
    codes: dict[int, NDArray[np.integer]] = {}
    for v in sorted(parents):
        group = np.zeros(n, dtype=np.intp)
        for a in parents[v]:
            group = group * categories + codes[a]
        table = rng.dirichlet(np.full(categories, spread), categories ** len(parents[v])).cumsum(axis=1)
        codes[v] = np.minimum((rng.random(n)[:, None] > table[group]).sum(axis=1), categories - 1)
    return {f"c{v}": codes[v] for v in sorted(codes)}


def predicates(scopes: Sequence[tuple[int, ...]], categories: int, k: int, rng: np.random.Generator) -> list[Question]:
    """Return k random conjunctions of category sets over the scopes in turn. Each set contains about half of the
    column's codes.
    """
    asked = []
    for j in range(k):
        condition = {}
        for v in sorted(scopes[j % len(scopes)]):
            size = int(rng.integers(1, categories))
            condition[f"c{v}"] = tuple(sorted(rng.permutation(categories)[:size].tolist()))
        asked.append(Question(f"q{j}", (condition,)))
    return asked


def truth_of(questions: Sequence[Question], rows: Rows) -> NDArray[np.float64]:
    """Return the true counts."""
    return np.array([q.holds(rows).sum() for q in questions], dtype=float)


def fit_and_project(lowered: Lowered, true: NDArray[np.float64], n: int, rng: np.random.Generator) -> str:
    """Return one line of output: noise at ε = 1, fit, linear program, certificate."""
    delta = sensitivity(lowered, replace=True, pair_cells=2_000_000)
    sigma = delta.value / np.sqrt(2 * rho_of(1.0, 1 / n**2))
    noisy = true[lowered.order] + rng.normal(0, sigma, len(true))
    scale = np.full(len(true), sigma)
    start = time.process_time()
    network = Network(lowered.sizes, lowered.blocks, lowered.zeros)
    found = fit(network, noisy, scale, float(n))
    fitted = time.process_time() - start
    start = time.process_time()
    drawn = network.draw(found.weights, 1_500, rng)
    best = project(network, noisy, scale, float(n), drawn, rng)
    solved = time.process_time() - start
    bound = lower_bound(network, noisy, scale, float(n), best.certificate.weights)
    apart = [np.abs(values - true[lowered.order]) / sigma for values in (noisy, best.answers, found.fitted)]
    errors = " | ".join(f"{a.max():.2f}/{np.sqrt((a * a).mean()):.2f}" for a in apart)
    return (
        f"fit {fitted:.2f} s of CPU ({found.iterations} steps, converged {found.converged}) + LP {solved:.2f} s, "
        f"{best.rounds} rounds, gap {best.certificate.alpha - bound:.1e} σ, α* {bound:.3f} σ, "
        f"support {len(best.shares)}; max/rms error in σ, plain | LP | fit: {errors}"
    )


def widths() -> None:
    """Print speed and certificates, and time by number of columns."""
    for n in (2_000, 20_000):
        rng = np.random.default_rng(1)
        edges = two_tree(50, rng)
        asked = [
            Question(f"{a},{b}={u},{v}", ({f"c{a}": (u,), f"c{b}": (v,)},))
            for a, b in edges
            for u in (0, 1)
            for v in (0, 1)
        ]
        rows = rows_along(edges, 2, n, rng)
        lowered = lower(dict.fromkeys(rows, 2), asked)
        print(
            f"d=50 binary 2-tree, k={len(asked)}, n={n:,}:",
            fit_and_project(lowered, truth_of(asked, rows), n, rng),
            flush=True,
        )
    for k, n in ((500, 50_000), (1_000, 50_000)):
        rng = np.random.default_rng(2)
        edges = two_tree(30, rng)
        rows = rows_along(edges, 6, n, rng)
        asked = predicates(triangles(edges), 6, k, rng)
        lowered = lower(dict.fromkeys(rows, 6), asked)
        print(
            f"d=30, 6 categories, k={k}, n={n:,}:", fit_and_project(lowered, truth_of(asked, rows), n, rng), flush=True
        )
    linear()


def linear() -> None:
    """Print the seconds of one sweep of each kind, and of a fit, by number of columns at width 2."""
    sizes = (25, 50, 100, 200, 400)
    times: dict[str, list[float]] = {"max-plus": [], "sum-product": [], "fit, per step": []}
    for d in sizes:
        rng = np.random.default_rng(3)
        edges = two_tree(d, rng)
        asked = [Question(f"{a},{b}", ({f"c{a}": (1,), f"c{b}": (1,)},)) for a, b in edges]
        rows = rows_along(edges, 2, 20_000, rng)
        network = Network(*parts_of(lower(dict.fromkeys(rows, 2), asked)))
        weights = rng.normal(0, 1, network.length)
        noisy = truth_of(asked, rows) + rng.normal(0, 100, network.length)
        times["max-plus"].append(_best_of(partial(network.best, weights)))
        times["sum-product"].append(_best_of(partial(network.evaluate, weights)))
        scale = np.full(network.length, 100.0)
        steps = fit(network, noisy, scale, 20_000.0).iterations
        once = _best_of(partial(fit, network, noisy, scale, 20_000.0), 2)
        times["fit, per step"].append(once / steps)
    for what, seconds in times.items():
        slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
        shown = ", ".join(f"{d}: {1e3 * s:.1f}" for d, s in zip(sizes, seconds, strict=True))
        print(f"{what} in ms by columns {shown}; exponent {slope:.2f}", flush=True)


def matrix_of(block: Block) -> NDArray[np.float64]:
    """Return the matrix of a block of questions, with a line per question."""
    assert block.matrix is not None
    return block.matrix.reshape(len(block.matrix), -1)


def parts_of(lowered: Lowered) -> tuple[Any, Any, Any]:
    return lowered.sizes, lowered.blocks, lowered.zeros


def _best_of(run: Callable[[], object], times: int = 50) -> float:
    found = []
    for _ in range(times):
        start = time.process_time()
        run()
        found.append(time.process_time() - start)
    return min(found)


def exact() -> None:
    """Compare maximum, log Z, expectations and the linear program with their values from all 3⁶ cells."""
    from scipy.optimize import linprog
    from scipy.special import logsumexp

    worst, enumerated = 0.0, 0.0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        sizes = {f"c{i}": 3 for i in range(6)}
        count = Count("n", dict.fromkeys(sizes, (1, 2)), 4)
        asked = predicates([tuple(sorted(rng.permutation(6)[:3].tolist())) for _ in range(30)], 3, 30, rng)
        asked.append(Question("many", ({"n": (3, 4), "c0": (0,)},)))
        lowered = lower(sizes, asked, [count])
        network = Network(*parts_of(lowered))
        grid = dict(zip(sizes, np.indices([3] * 6).reshape(6, -1), strict=True))
        held = np.array([q.holds({**grid, "n": count.values(grid)}) for q in asked], dtype=float)
        weights = rng.normal(0, 2, len(asked))
        scores = weights @ held[lowered.order]
        log_z, expected = network.evaluate(weights)
        enumerated = max(
            enumerated,
            abs(network.best(weights)[0] - scores.max()),
            abs(log_z - logsumexp(scores)),
            np.abs(expected - held[lowered.order] @ np.exp(scores - logsumexp(scores))).max(),
        )
        noisy = (held @ rng.dirichlet(np.ones(729)) * 1000 + rng.normal(0, 40, len(asked)))[lowered.order]
        scale = np.full(len(asked), 40.0)
        best = project(network, noisy, scale, 1000.0, {}, rng, tolerance=1e-11)
        full = np.concatenate([held[lowered.order], -held[lowered.order]])
        full = np.concatenate([full, np.full((len(full), 1), -0.04)], axis=1)
        cost, whole = np.zeros(730), np.ones((1, 730))
        cost[-1], whole[0, -1] = 1.0, 0.0
        direct = linprog(
            cost, full, np.concatenate([noisy, -noisy]) / 1000, whole, [1.0], (0, None), method="highs"
        ).fun
        again = lower_bound(network, noisy, scale, 1000.0, best.certificate.weights)
        worst = max(worst, abs(best.certificate.alpha - direct), abs(again - direct))
    print(
        "max, log Z, expectations = enumeration of 3^6 cells, ten workloads with a count: "
        f"largest difference {enumerated:.1e}"
    )
    print(
        f"LP = the full LP on 3^6 cells, bound from λ alone, ten workloads with a count: largest difference {worst:.1e}"
    )


def conditions(n: int, rng: np.random.Generator) -> tuple[Rows, list[tuple[str, str]]]:
    """Return 40 conditions that depend on a hidden frailty, and a random tree over them."""
    frailty = rng.normal(0, 1, n)
    base = rng.uniform(-4.2, -1.0, 40)
    load = rng.uniform(0.5, 1.8, 40)
    rows: Rows = {
        f"c{i}": (rng.random(n) < 1 / (1 + np.exp(-base[i] - load[i] * frailty))).astype(np.intp) for i in range(40)
    }
    return rows, [(f"c{int(rng.integers(i))}", f"c{i}") for i in range(1, 40)]


def counts(peer: bool) -> None:
    """Fit the count of 40 conditions together with a tree of pairs."""
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        n = 20_000
        rows, tree = conditions(n, rng)
        sizes = dict.fromkeys(rows, 2)
        count = Count("conditions", dict.fromkeys(rows, (1,)), 12)
        lowered = lower(sizes, [], [count], tree)
        rho, unit = rho_of(1.0, 1 / n**2), np.sqrt(2)
        made = []
        for a, b in tree:
            s = unit / np.sqrt(2 * 0.9 * rho / len(tree))
            exact = np.bincount(2 * rows[a] + rows[b], minlength=4).reshape(2, 2)
            made.append(Measurement((a, b), exact + rng.normal(0, s, (2, 2)), s))
        s = unit / np.sqrt(2 * 0.1 * rho)
        true = np.bincount(count.values(rows), minlength=13).astype(float)
        made.append(Measurement(("conditions",), true + rng.normal(0, s, 13), s))
        alone = estimate(lowered.sizes, made[:-1], float(n), zeros=lowered.zeros)
        start, cpu = time.perf_counter(), time.process_time()
        model = estimate(lowered.sizes, made, float(n), zeros=lowered.zeros)
        start, cpu = time.perf_counter() - start, time.process_time() - cpu
        at_least = [
            np.cumsum(t[::-1])[::-1] for t in (true, alone.marginal(("conditions",)), model.marginal(("conditions",)))
        ]
        off = np.abs(at_least[2] - at_least[0])[1:] / (s * np.sqrt(np.minimum(np.arange(1, 13), np.arange(12, 0, -1))))
        size = Network(lowered.sizes, [Block(("conditions",), None)], lowered.zeros, tree).cells
        print(
            f"seed {seed}: {start:.2f} s, {cpu:.2f} s CPU, f {model.fit.objective:.3f}, gap {model.fit.gap:.1e}, "
            f"{size:,} cells, worst 'at least t' {off.max():.2f} σ of its own answer"
        )
        for name, values in zip(("truth", "tree alone", "tree + count"), at_least, strict=True):
            print(f"  {name:12}", " ".join(f"≥{t}: {values[t]:,.0f}" for t in (1, 5, 8, 10, 12)), flush=True)
        if peer:
            _peer_count(lowered, made, n, Ours(model.fit.objective, cpu))


def general(peer: bool) -> None:
    """Fit 500 questions, each with its own columns, through the dual."""
    rng = np.random.default_rng(4)
    n = 20_000
    edges = two_tree(30, rng)
    rows = rows_along(edges, 4, n, rng)
    asked = predicates(triangles(edges), 4, 500, rng)
    start = time.perf_counter()
    lowered = lower(dict.fromkeys(rows, 4), asked)
    delta = sensitivity(lowered, replace=True, pair_cells=2_000_000)
    network = Network(*parts_of(lowered))
    laid = time.perf_counter() - start
    sigma = delta.value / np.sqrt(2 * rho_of(1.0, 1 / n**2))
    noisy = truth_of(asked, rows)[lowered.order] + rng.normal(0, sigma, len(asked))
    start, cpu = time.perf_counter(), time.process_time()
    found: Fit = fit(network, noisy, np.full(len(asked), sigma), float(n))
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    print(
        f"lowered and laid out in {laid:.2f} s; dual: {wall:.2f} s ({cpu:.2f} s CPU), f {found.objective:.3f}, "
        f"gap {found.gap:.1e}, {found.iterations} steps",
        flush=True,
    )
    if peer:
        _peer_questions(lowered, noisy, sigma, n, Ours(found.objective, cpu))


MBI_STEPS = (1_000, 2_000, 10_000)
"""mbi's default number of iterations, and larger numbers."""


class Ours(NamedTuple):
    """Result of Espalier's fit, and its CPU seconds."""

    objective: float
    cpu: float


def _peer_questions(lowered: Lowered, noisy: NDArray[np.float64], sigma: float, n: int, ours: Ours) -> None:
    """Print the figures of mbi's fit, with one `LinearMeasurement` per clique and the clique's matrix as the query."""
    import mbi

    parts = np.split(noisy, np.cumsum([len(matrix_of(block)) for block in lowered.blocks])[:-1])
    matrices = [matrix_of(block) for block in lowered.blocks]

    def made() -> list[Any]:
        return [
            mbi.LinearMeasurement(part, block.clique, stddev=sigma, query=lambda f, m=matrix: m @ f.datavector())
            for block, part, matrix in zip(lowered.blocks, parts, matrices, strict=True)
        ]

    def objective(model: Any) -> float:
        apart = [
            matrix @ np.asarray(model.project(block.clique).datavector()) - part
            for block, part, matrix in zip(lowered.blocks, parts, matrices, strict=True)
        ]
        return sum(0.5 * float(a @ a) / sigma**2 for a in apart)

    _mbi({c: lowered.sizes[c] for c in lowered.visible}, made, [], objective, n, ours)


def _peer_count(lowered: Lowered, measured: list[Measurement], n: int, ours: Ours) -> None:
    """Print the figures of mbi's fit, in which hidden sums are columns and gates are `Constraint` objects."""
    import mbi

    rules = [
        mbi.Constraint(mbi.Domain(rule.clique, rule.mask.shape), invalid=np.argwhere(rule.mask))
        for rule in lowered.zeros
    ]

    def made() -> list[Any]:
        return [mbi.LinearMeasurement(m.values.ravel(), m.clique, stddev=m.sigma) for m in measured]

    def objective(model: Any) -> float:
        apart = [np.asarray(model.project(m.clique).datavector()) - m.values.ravel() for m in measured]
        return sum(0.5 * float(a @ a) / m.sigma**2 for a, m in zip(apart, measured, strict=True))

    _mbi(lowered.sizes, made, rules, objective, n, ours)


def _mbi(
    sizes: Mapping[str, int],
    made: Callable[[], list[Any]],
    rules: Sequence[Any],
    objective: Callable[[Any], float],
    n: int,
    ours: Ours,
) -> None:
    """Print mbi's mirror descent, cold, with its default (JAX's single precision) and in double precision.

    In single precision, the line search ends when differences in the objective are lost in rounding, so more steps
    change nothing. Both precisions are therefore shown, with the effect of more steps.
    """
    import jax
    import mbi

    domain = mbi.Domain(list(sizes), list(sizes.values()))
    for double in (False, True):
        jax.config.update("jax_enable_x64", double)
        jax.clear_caches()
        told: list[str] = []
        cpu, done = time.process_time(), 0

        def seen(model: Any, told: list[str] = told, cpu: float = cpu) -> None:
            nonlocal done
            done += mbi.estimation.CALLBACK_EVERY
            if done in MBI_STEPS:
                spent, f = time.process_time() - cpu, objective(model)
                told.append(
                    f"{done:,} steps {spent:.1f} s CPU ({spent / ours.cpu:.0f} × ours), "
                    f"f {f:.4f} ({f / ours.objective - 1:+.2%} of ours)"
                )

        loss = mbi.marginal_loss.from_linear_measurements(made(), domain)
        descent = mbi.estimation.MirrorDescent()
        descent.estimate(domain, loss, float(n), constraints=rules, iters=MBI_STEPS[-1], callback_fn=seen)
        print(f"  mbi, cold, {'double' if double else 'single'} precision: {'; '.join(told)}", flush=True)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.questions", description=__doc__)
    parser.add_argument("what", choices=["exact", "widths", "linear", "counts", "general"])
    parser.add_argument("--peer", action="store_true", help="run mbi 2.0 on the same measurements too")
    opt = parser.parse_args()
    if opt.what in ("counts", "general"):
        {"counts": counts, "general": general}[opt.what](opt.peer)
    else:
        {"exact": exact, "widths": widths, "linear": linear}[opt.what]()


if __name__ == "__main__":
    main()
