"""Speed and scaling of the inference engine: ``python -m benchmarks.inference COMMAND``, or ``all`` commands.

Every command prints what it measured and, if it compares two sides, the ratio. CPU seconds are user + system.
``peer`` needs mbi; ``--data`` takes a CSV of integer codes with a header (the private-pgm Adult file) instead
of the generated table of Adult's shape.
"""

from __future__ import annotations

import argparse
import json
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SHAPE = {
    "age": 8,
    "workclass": 9,
    "education": 16,
    "marital": 7,
    "occupation": 15,
    "relationship": 6,
    "race": 5,
    "sex": 2,
    "gain": 8,
    "loss": 8,
    "hours": 8,
    "income": 2,
}
SIGMA = 60.0

Sizes = dict[str, int]
Clique = tuple[str, ...]
Codes = dict[str, NDArray[Any]]
Counts = NDArray[np.float64]
Measured = tuple[Clique, Counts, float, Counts]
"""Clique, noisy counts, σ, true counts."""


def generated(sizes: Sizes, n: int, rng: np.random.Generator, parents: int = 2) -> Codes:
    """Return a table from a random Bayesian network with skewed conditionals."""
    names = list(sizes)
    table: Codes = {}
    for i, name in enumerate(names):
        held = rng.choice(i, min(i, parents), replace=False)
        group = np.zeros(n, dtype=int)
        for j in held:
            group = group * sizes[names[j]] + table[names[j]]
        shares = rng.dirichlet(np.full(sizes[name], 0.4), int(group.max()) + 1)
        ladder = np.cumsum(shares, axis=1)
        point = rng.random(n)
        table[name] = np.minimum((point[:, None] > ladder[group]).sum(1), sizes[name] - 1)
    return table


def from_csv(path: str) -> tuple[Codes, Sizes]:
    """Return the first 39,073 rows of an integer-coded table, with columns of more than 50 codes in 8 quantile bins."""
    codes = np.genfromtxt(path, delimiter=",", names=True, dtype=int, deletechars="")
    keep = [name for name in codes.dtype.names or () if name not in ("fnlwgt", "native-country")]
    table: Codes = {}
    sizes: Sizes = {}
    for name in keep:
        column = codes[name][:39_073]
        if column.max() >= 50:
            edges = np.unique(np.quantile(column, np.linspace(0, 1, 9)))[1:-1]
            column = np.searchsorted(edges if len(edges) else [1], column, side="right")
        table[name], sizes[name] = column, max(int(column.max()) + 1, 2)
    return table, sizes


def count(table: Codes, sizes: Sizes, clique: Clique) -> Counts:
    shape = [sizes[name] for name in clique]
    flat = np.ravel_multi_index([table[name] for name in clique], shape)
    return np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape).astype(float)


def spanning_tree(table: Codes, sizes: Sizes) -> list[Clique]:
    """Return the maximum spanning tree of mutual information."""

    def information(pair: Clique) -> float:
        p = count(table, sizes, pair)
        p /= p.sum()
        q = p.sum(1, keepdims=True) * p.sum(0, keepdims=True)
        return float(np.sum(p[p > 0] * np.log(p[p > 0] / q[p > 0])))

    group = {name: name for name in sizes}
    tree: list[Clique] = []
    for a, b in sorted(combinations(sizes, 2), key=information, reverse=True):
        if group[a] != group[b]:
            tree.append((a, b))
            old = group[b]
            group = {name: group[a] if g == old else g for name, g in group.items()}
    return tree


def workloads(table: Codes, sizes: Sizes) -> dict[str, list[Clique]]:
    """Return the compared shapes: a star, a tree, both, and the star with six triples."""
    names, target = list(sizes), list(sizes)[-1]
    star: list[Clique] = [(name, target) for name in names[:-1]]
    tree = spanning_tree(table, sizes)
    six = [(0, 1, 2), (3, 5, 6), (1, 4, 11), (2, 4, 10), (7, 8, 9), (5, 10, 11)]
    both = star + [pair for pair in tree if pair not in star]
    return {
        "star": star,
        "tree": tree,
        "star+tree": both,
        "star+six": star + [tuple(names[i] for i in triple) for triple in six],
    }


def measure(
    table: Codes, sizes: Sizes, cliques: Iterable[Clique], rng: np.random.Generator, sigma: float = SIGMA
) -> list[Measured]:
    """Return (clique, noisy counts, sigma, true counts) of every column and every clique."""
    out = []
    for clique in [*((name,) for name in sizes), *cliques]:
        truth = count(table, sizes, clique)
        out.append((clique, np.round(truth + rng.normal(0, sigma, truth.shape)), sigma, truth))
    return out


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def fit_ours(sizes: Sizes, measured: list[Measured], total: float) -> tuple[Any, Any]:
    """Return Espalier's model, and its marginals."""
    from espalier.core.models.graphical import estimate
    from espalier.core.privacy.draws import Measurement

    model = estimate(sizes, [Measurement(c, y, s) for c, y, s, _ in measured], total)
    return model, lambda clique: model.marginal(clique)


def fit_mbi(sizes: Sizes, measured: list[Measured], total: float, **settings: Any) -> tuple[Any, Any]:
    """Return mbi's model, and its marginals."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jax

        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_enable_compilation_cache", False)
        import mbi

    estimator = mbi.estimation.MirrorDescent()
    domain = mbi.Domain(list(sizes), list(sizes.values()))
    data = [mbi.LinearMeasurement(y.ravel(), c, stddev=s) for c, y, s, _ in measured]
    model = estimator.estimate(domain, mbi.marginal_loss.from_linear_measurements(data, domain), total, **settings)
    return model, lambda clique: np.asarray(model.project(clique).datavector(flatten=False))


def side(which: str, path: Path) -> None:
    """Run in a fresh process: fit and sample cold, then fit another structure, then the first structure with new noise.

    Reading the measured marginals is part of the time, because JAX computes on demand.
    """
    job = pickle.loads(path.read_bytes())
    fit: Callable[..., tuple[Any, Any]] = fit_ours if which == "ours" else fit_mbi
    sizes, total, n = job["sizes"], job["total"], int(job["total"])
    found = []
    for i, measured in enumerate(job["fits"]):
        before = cpu() if i else 0.0
        model, marginal = fit(sizes, measured, total)
        if i == 0:
            if which == "ours":
                model.sample(n, np.random.default_rng(0), even=True)
            else:
                model.synthetic_data(n)
        answers = [np.asarray(marginal(c)) for c, *_ in measured]
        fitted = cpu()
        loss = sum(float(((a - y) ** 2).sum()) / (2 * s**2) for a, (_, y, s, _) in zip(answers, measured, strict=True))
        error = np.mean([np.abs(a - t).sum() / total for a, (_, _, _, t) in zip(answers, measured, strict=True)])
        found.append({"cpu": fitted - before, "objective": loss, "error": float(error)})
    print(json.dumps(found))


def peer(data: str | None) -> None:
    """Run both packages on the same measurements, each in a fresh process."""
    rng = np.random.default_rng(0)
    table, sizes = from_csv(data) if data else (generated(SHAPE, 39_073, rng), SHAPE)
    works = workloads(table, sizes)
    names = list(sizes)
    chain = list(pairwise(names))
    print(
        f"{'workload':10} {'fit':16} {'ours CPU s':>10} {'mbi CPU s':>10} {'ratio':>7} "
        f"{'ours objective':>14} {'mbi objective':>14} {'excess':>8} {'ours error':>10} {'mbi error':>10}"
    )
    for name, cliques in works.items():
        fits = [measure(table, sizes, shape, rng) for shape in (cliques, chain, cliques)]
        with tempfile.TemporaryDirectory() as folder:
            job = Path(folder) / "job.pickle"
            job.write_bytes(pickle.dumps({"sizes": sizes, "total": float(len(table[names[0]])), "fits": fits}))
            sides = {}
            for which in ("ours", "mbi"):
                done = subprocess.run(
                    [sys.executable, "-m", "benchmarks.inference", "side", which, str(job)],
                    capture_output=True,
                    text=True,
                    check=True,
                )
                sides[which] = json.loads(done.stdout.splitlines()[-1])
        for label, ours, mbi in zip(("cold + rows", "new structure", "known structure"), *sides.values(), strict=True):
            best = min(ours["objective"], mbi["objective"])
            print(
                f"{name:10} {label:16} {ours['cpu']:10.2f} {mbi['cpu']:10.2f} {mbi['cpu'] / ours['cpu']:6.1f}x "
                f"{ours['objective']:14.3f} {mbi['objective']:14.3f} {ours['objective'] / best - 1:8.2%} "
                f"{ours['error']:10.5f} {mbi['error']:10.5f}",
                flush=True,
            )


def timed(
    sizes: Sizes,
    cliques: Iterable[Clique],
    n: int,
    rng: np.random.Generator,
    sigma: float = 100.0,
    singles: bool = True,
) -> tuple[float, float, Any]:
    """Return the CPU seconds of the fit and of drawing ``n`` rows on generated data, and the model."""
    table = generated(sizes, n, rng, parents=1)
    measured = measure(table, sizes, cliques, rng, sigma)[0 if singles else len(sizes) :]
    start = cpu()
    model, _ = fit_ours(sizes, measured, float(n))
    fitted = cpu()
    model.sample(n, rng)
    return fitted - start, cpu() - fitted, model


def random_tree(names: list[str], rng: np.random.Generator) -> list[Clique]:
    """Return a tree in which each column is joined to a random earlier column."""
    return [(names[int(rng.integers(0, i))], names[i]) for i in range(1, len(names))]


def wide() -> None:
    rng = np.random.default_rng(1)
    sizes = {f"c{i}": int(rng.choice([2, 4, 8, 16, 32])) for i in range(200)}
    names = list(sizes)
    for label, cliques in (("tree", random_tree(names, rng)), ("star", [(names[0], other) for other in names[1:]])):
        fit, rows, model = timed(sizes, cliques, 50_000, rng)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(
            f"200 columns × 50,000 rows, {label}: fit {fit:.2f} s, rows {rows:.2f} s CPU, peak {peak:.2f} GB, "
            f"{model.fit.iterations} steps; limit 10 s, 2 GB: {10 / (fit + rows):.1f}x below",
            flush=True,
        )


def scaling() -> None:
    """Print seconds per sweep and per fit over the number of binary columns, and the exponent of a power law."""
    rng = np.random.default_rng(2)
    columns, seconds, each = [100, 200, 400, 700, 1000], [], []
    for d in columns:
        sizes = {f"c{i}": 2 for i in range(d)}
        runs = [timed(sizes, random_tree(list(sizes), rng), 5_000, rng, 30.0) for _ in range(5)]
        seconds.append(float(np.median([fit for fit, _, _ in runs])))
        each.append(float(np.median([fit / max(model.fit.iterations, 1) for fit, _, model in runs])))
        print(f"{d} binary columns: fit {seconds[-1]:.3f} s CPU, {each[-1] * 1000:.1f} ms a step", flush=True)
    for label, values in (("fit", seconds), ("step", each)):
        print(f"exponent of a {label}: {np.polyfit(np.log(columns), np.log(values), 1)[0]:.2f} (1 is linear)")


def grid() -> None:
    """Time binary grids k × 12 with treewidth k. The seconds of one step of the fit must at most double per unit of
    treewidth.
    """
    from espalier.core.models.graphical import predict_size

    rng, before = np.random.default_rng(3), None
    for k in range(2, 11):
        name = [[f"{i},{j}" for j in range(14)] for i in range(k)]
        sizes = {name[i][j]: 2 for j in range(14) for i in range(k)}
        cliques = [(name[i][a], name[i][b]) for i in range(k) for a, b in pairwise(range(14))]
        cliques += [(name[a][j], name[b][j]) for j in range(14) for a, b in pairwise(range(k))]
        fit, _, model = timed(sizes, cliques, 20_000, rng)
        step = fit / model.fit.iterations
        size = predict_size(sizes, cliques)
        ratio = f"{step / before:.2f}x the last" if before else ""
        print(
            f"treewidth {k}: {size.cells:,} cells, fit {fit:.2f} s CPU, {model.fit.iterations} steps, converged "
            f"{model.fit.converged}, {step * 1000:.1f} ms a step {ratio}",
            flush=True,
        )
        before = step


def rows() -> None:
    rng = np.random.default_rng(4)
    table = generated(SHAPE, 39_073, rng)
    for label, cliques in workloads(table, SHAPE).items():
        model, _ = fit_ours(SHAPE, measure(table, SHAPE, cliques, rng), 39_073.0)
        for even in (False, True):
            start = cpu()
            model.sample(1_000_000, rng, even=even)
            used = cpu() - start
            print(
                f"1,000,000 rows × 12 columns, {label}, even={even}: {used:.2f} s CPU; limit 3 s: {3 / used:.1f}x below"
            )


def mirror_descent(problem: Any, sweeps: int, stop: float) -> tuple[int, float]:
    """Run mirror descent with line search (McKenna, Sheldon & Miklau 2019, algorithm 1); return the sweeps until
    ``stop``.
    """
    theta = np.zeros(problem.regions.size)
    marginals = problem.sweep(theta).marginals
    objective, step, used = problem.objective(marginals), 1.0 / problem.total, 1
    while used < sweeps and objective > stop:
        gradient = problem.precision * (marginals - problem.centre)
        step *= 2.0
        while used < sweeps:
            trial = problem.sweep(theta - step * gradient).marginals
            used += 1
            if objective - problem.objective(trial) >= 0.5 * float(gradient @ (marginals - trial)):
                break
            step *= 0.5
        theta = theta - step * gradient
        marginals, objective = trial, problem.objective(trial)
    return used, objective


def algorithms(data: str | None) -> None:
    """Print the passes over the junction tree (sweeps, and products with the covariance) until the objective is within
    0.1 % of the best possible, and until this is certified, with equal σ and with σ alternating between 1 and 1,000.
    """
    from espalier.core.models.graphical import estimation, solver
    from espalier.core.models.graphical.metric import TreeMetric
    from espalier.core.models.graphical.problem import inner, pose
    from espalier.core.privacy.draws import Measurement

    class Watched(solver.Solver):
        """Record when the objective is within ``stop``."""

        reached = 0
        stop = 0.0

        def _step(self, task: Any, point: Any) -> Any:
            moved = super()._step(task, point)
            if moved is not None and not self.reached and self.problem.objective(moved.marginals) <= self.stop:
                self.reached = self.sweeps
            return moved

    class Quasi(Watched):
        """L-BFGS (30 pairs) from the tree metric instead of conjugate gradients (Nocedal & Wright 2006, 7.4)."""

        def _step(self, task: Any, point: Any) -> Any:
            moved = super()._step(task, point)
            if moved is not None:
                step, change = moved.potentials - point.potentials, moved.marginals - point.marginals
                self.pairs = [*getattr(self, "pairs", [])[-29:], (step, change, self.problem.smooth(step))]
            return moved

        def _direction(self, task: Any, point: Any, gradient: Any) -> Any:
            scale = np.maximum(point.marginals, point.marginals - gradient) + task.damping * self.variance
            metric = TreeMetric(self.problem.regions, self.chain, self.levels, point.marginals, scale)
            vector: Any = -gradient
            used: list[tuple[Any, Any, float, float]] = []
            for step, change, smoothed in reversed(getattr(self, "pairs", [])):
                whole = change + task.damping * smoothed
                curvature = inner(step, whole)
                if curvature > 0.0:
                    used.append((step, whole, curvature, inner(step, vector) / curvature))
                    vector = vector - used[-1][3] * whole
            vector = metric.apply(vector)
            for step, whole, curvature, share in reversed(used):
                vector = vector + (share - inner(whole, vector) / curvature) * step
            return vector, self.problem.smooth(vector)

    class Flat:
        """No metric: conjugate gradients start from the identity."""

        def __init__(self, *_: object) -> None:
            pass

        def apply(self, residual: Any) -> Any:
            return residual

    rng = np.random.default_rng(5)
    table, sizes = from_csv(data) if data else (generated(SHAPE, 39_073, rng), SHAPE)
    total = float(len(table[next(iter(sizes))]))
    works = [(name, cliques, apart) for name, cliques in workloads(table, sizes).items() for apart in (False, True)]
    for workload, cliques, apart in works:
        name = f"{workload}{', σ 1 and 1,000' if apart else ''}"
        measured = []
        for i, (c, _, _, truth) in enumerate(measure(table, sizes, cliques, rng)):
            sigma = (1.0, 1000.0)[i % 2] if apart else SIGMA
            measured.append(Measurement(c, np.round(truth + rng.normal(0, sigma, truth.shape)), sigma))
        problem = pose(sizes, measured, total)
        best = solver.Solver(problem, 1e-4, 5000, None).solve(estimation._closed_form(problem)).objective
        variants: Mapping[str, tuple[Any, dict[str, Any]]] = {
            "proximal Newton-CG, tree metric": (Watched, {}),
            "the same, L-BFGS for Newton-CG": (Quasi, {}),
            "the same, no tree metric": (Watched, {"TreeMetric": Flat}),
            "Newton-CG on one regularised dual": (Watched, {"DAMPING": 1e-5, "LOWER": 1.0}),
        }
        for label, (kind, changes) in variants.items():
            kept = {key: getattr(solver, key) for key in changes}
            for key, value in changes.items():
                setattr(solver, key, value)
            run = kind(problem, 1e-3, 1000, None)
            run.stop = best * 1.001
            start = cpu()
            found = run.solve(estimation._closed_form(problem))
            print(
                f"{name:26} {label:34} within 0.1 % after {run.reached or '> ' + str(run.sweeps):>7} passes; "
                f"certified {found.converged} after {found.sweeps}, {cpu() - start:.2f} s CPU",
                flush=True,
            )
            for key, value in kept.items():
                setattr(solver, key, value)
        start = cpu()
        used, objective = mirror_descent(problem, 5000, best * 1.001)
        shown = used if objective <= best * 1.001 else f"> {used}"
        print(
            f"{name:26} {'mirror descent, line search':34} within 0.1 % after {shown:>7} passes; "
            f"no certificate, {cpu() - start:.2f} s CPU (objective {objective:.2f}, best {best:.2f})",
            flush=True,
        )


def smoothing(data: str | None) -> None:
    """Print the error relative to the true counts, with and without smoothing."""
    from espalier.core.models.graphical import estimate
    from espalier.core.privacy.draws import Measurement

    rng = np.random.default_rng(0)
    table, sizes = from_csv(data) if data else (generated(SHAPE, 39_073, rng), SHAPE)
    total = float(len(table[next(iter(sizes))]))
    for name, cliques in workloads(table, sizes).items():
        measured = measure(table, sizes, cliques, rng)
        plain = [Measurement(c, y, s) for c, y, s, _ in measured]
        for amount in (0.0, 0.03, 0.1, 0.3, 1.0, 3.0):
            start = cpu()
            model = estimate(sizes, plain, total, smoothing=amount)
            used = cpu() - start
            error = np.mean([np.abs(model.marginal(c) - truth).sum() / total for c, _, _, truth in measured])
            print(
                f"{name:10} smoothing {amount:<5} mean clique error {error:.5f}, "
                f"objective {model.fit.objective:9.2f}, {model.fit.iterations} steps, {used:.3f} s CPU",
                flush=True,
            )


def equal(data: str | None) -> None:
    """Compare mbi with its defaults, mbi iterated to Espalier's objective, and Espalier: equal objectives have equal
    errors.

    The measured marginals of the minimum are unique, so two fits at the minimum have the same error. By default, mbi
    benefits from early stopping, which smooths. Releases smooth deliberately (the last column).
    """
    rng = np.random.default_rng(0)
    table, sizes = from_csv(data) if data else (generated(SHAPE, 39_073, rng), SHAPE)
    total = float(len(table[next(iter(sizes))]))
    from espalier.core.models.graphical import SMOOTHING, estimate
    from espalier.core.privacy.draws import Measurement

    for name, cliques in workloads(table, sizes).items():
        measured = measure(table, sizes, cliques, rng)
        given = [Measurement(c, y, s) for c, y, s, _ in measured]
        smooth = estimate(sizes, given, total, smoothing=SMOOTHING)
        fits = {
            "ours": fit_ours(sizes, measured, total)[1],
            "mbi, 1,000 steps": fit_mbi(sizes, measured, total)[1],
            "mbi, 50,000 steps": fit_mbi(sizes, measured, total, iters=50_000, tol=0.0)[1],
            f"ours, smoothing {SMOOTHING}": smooth.marginal,
        }
        for label, marginal in fits.items():
            answers = [np.asarray(marginal(c)) for c, *_ in measured]
            loss = sum(
                float(((a - y) ** 2).sum()) / (2 * s**2) for a, (_, y, s, _) in zip(answers, measured, strict=True)
            )
            error = np.mean([np.abs(a - t).sum() / total for a, (_, _, _, t) in zip(answers, measured, strict=True)])
            print(f"{name:10} {label:20} objective {loss:12.3f}   mean clique error {error:.5f}", flush=True)


def noise(data: str | None) -> None:
    """Print the Newton steps to a certified fit if σ differs by a factor of 1,000, without and with a release's
    smoothing, for the workloads and a star of 60 columns.
    """
    from espalier.core.models.graphical import SMOOTHING, estimate
    from espalier.core.privacy.draws import Measurement

    rng = np.random.default_rng(0)
    table, sizes = from_csv(data) if data else (generated(SHAPE, 39_073, rng), SHAPE)
    works = [(name, table, sizes, cliques) for name, cliques in workloads(table, sizes).items()]
    many = {f"c{i}": 16 if i == 0 else int(rng.choice([2, 4, 8, 16, 32])) for i in range(60)}
    works.append(("wide star", generated(many, 20_000, rng, parents=1), many, [("c0", f"c{i}") for i in range(1, 60)]))
    for name, table, sizes, cliques in works:
        total = float(len(table[next(iter(sizes))]))
        wanted = [*((column,) for column in sizes), *cliques]
        for pattern in ("equal", "alternating", "random"):
            measured = []
            for i, clique in enumerate(wanted):
                sigma = {"equal": SIGMA, "alternating": (1.0, 1000.0)[i % 2], "random": 10 ** rng.uniform(0, 3)}[
                    pattern
                ]
                truth = count(table, sizes, clique)
                measured.append(Measurement(clique, np.round(truth + rng.normal(0, sigma, truth.shape)), sigma))
            for amount in (0.0, SMOOTHING):
                start = cpu()
                fit = estimate(sizes, measured, total, smoothing=amount).fit
                print(
                    f"{name:10} σ {pattern:12} smoothing {amount:<4} {fit.iterations:5} steps, "
                    f"{cpu() - start:.2f} s CPU, objective {fit.objective:9.1f}, "
                    f"gap {fit.gap:9.3f}, certified {fit.converged}",
                    flush=True,
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = ("all", "peer", "wide", "scaling", "grid", "rows", "algorithms", "smoothing", "equal", "noise")
    parser.add_argument("command", nargs="?", default="all", choices=(*commands, "side"))
    parser.add_argument("arguments", nargs="*")
    parser.add_argument("--data", help="integer-coded CSV instead of the generated table")
    chosen = parser.parse_args()
    if chosen.command == "side":
        side(chosen.arguments[0], Path(chosen.arguments[1]))
        return
    start = time.perf_counter()
    for command in commands[1:] if chosen.command == "all" else (chosen.command,):
        print(f"== {command}")
        function = globals()[command]
        function(chosen.data) if command in ("peer", "algorithms", "smoothing", "equal", "noise") else function()
    print(f"== done in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
