"""PRISM's two SCM benchmarks (appendix C.1) and its allocation benchmark (C.5): `python -m benchmarks.scm`.

A, B ∈ {0, 1, 2} cause Y; ten children S1 … S10 copy Y with errors; ten noise columns. Spurious shift: the children
break at test time. Marginal shift: A and B move to higher values, the children keep working. The paper writes
η ~ N(0, 0.5) without saying which: here 0.5 is the variance (`--eta-sd` for the other reading).
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import auc, fit_auc
from core.graph.dag import Dag
from core.project import Plan, Project
from core.release import release
from core.schema import Column, Schema
from core.tables.table import Table

CHILDREN = [f"S{i}" for i in range(1, 11)]
NOISE = [f"N{i}" for i in range(1, 11)]
Codes = dict[str, NDArray[np.uint8]]


def scm(rng: np.random.Generator, n: int, flip: float, high: bool, sd: float) -> Codes:
    """``n`` rows of the SCM; ``high`` shifts A and B upward."""
    p = [0.1, 0.2, 0.7] if high else [1 / 3] * 3
    a, b = (rng.choice(3, n, p=p) for _ in "AB")
    odds = 0.9 * (a - 1) + 0.9 * (b - 1) + rng.normal(0, sd, n)
    y = rng.random(n) < 1 / (1 + np.exp(-odds))
    out = {"A": a, "B": b}
    out |= {s: y ^ (rng.random(n) < flip) for s in CHILDREN}
    out |= {s: rng.integers(0, 4, n) for s in NOISE}
    out["Y"] = y
    return {k: v.astype(np.uint8) for k, v in out.items()}


def scm_project(**plan: object) -> Project:
    """The SCM's schema and true graph."""
    sizes = {"A": 3, "B": 3, **dict.fromkeys(CHILDREN, 2), **dict.fromkeys(NOISE, 4), "Y": 2}
    columns = tuple(Column(n, "categorical", tuple(map(str, range(k)))) for n, k in sizes.items())
    edges = (("A", "Y"), ("B", "Y"), *(("Y", s) for s in CHILDREN))
    settings = {"method": "prism", "epsilon": 1.0, "target": "Y", **plan}
    return Project("scm", Schema(columns), Plan(**settings), Dag(edges))  # type: ignore[arg-type]


def shifts(seeds: int, sd: float) -> None:
    """TSTR AUC under both shifts, beside the non-private model on A and B on the same draws."""
    settings = [
        ("spurious", (0.10, 0.50, False), ("causal", "graphical", "mst", "independent")),
        ("marginal", (0.15, 0.15, True), ("causal", "graphical", "mst", "independent")),
    ]
    print(f"n = 5,000, ε = 1, δ = 1/n², 50,000 test rows, {seeds} seeds, variance of η {sd**2:.2g}\n")
    for shift, (flip, flip_test, high), methods in settings:
        scores: dict[str, list[float]] = {}
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            train = scm(rng, 5000, flip, False, sd)
            test = scm(rng, 50_000, flip_test, high, sd)
            sizes = scm_project().schema.sizes
            scores.setdefault("real, A and B only", []).append(fit_auc(train, test, sizes, "Y", ["A", "B"]))
            scores.setdefault("real, all columns", []).append(fit_auc(train, test, sizes, "Y"))
            for method in methods:
                plan = {"regime": method} if method in ("causal", "graphical") else {"method": method}
                project = scm_project(**plan)
                made = release(project, Table(project.schema, train, 5000))
                name = f"prism {method}" if "regime" in plan else method
                scores.setdefault(name, []).append(fit_auc(made.codes, test, sizes, "Y"))
        for name, values in scores.items():
            print(f"{shift:<9} {name:<20} {np.mean(values):.4f} ± {np.std(values):.4f}", flush=True)


def allocation(seeds: int) -> None:
    """C.5: four strong and sixteen weak features, n = 400, ε = 1; oracle weights, the paper's naive-Bayes backend."""
    from core.privacy.allocation import Purse
    from core.privacy.budget import Budget, Unit
    from core.privacy.curator import PrivateCurator

    names = [f"X{i}" for i in range(20)]
    sizes = {"Y": 2, **dict.fromkeys(names, 2)}
    p1 = np.array([0.9] * 4 + [0.55] * 16)
    weights = [1.0, *((2 * p1 - 1) ** 2)]
    schema = Schema(tuple(Column(n, "categorical", ("0", "1")) for n in sizes))
    cliques = [("Y",), *(("Y", n) for n in names)]
    print(f"\nallocation benchmark, n = 400, ε = 1, {seeds} seeds: AUC of naive Bayes from noisy pairs")
    for accounting in ("basic", "zcdp"):
        for rule in ("optimal", "uniform"):
            scores = []
            for seed in range(seeds):
                rng = np.random.default_rng(seed)
                y, x = _naive(rng, 400, p1)
                y_test, x_test = _naive(rng, 2000, p1)
                codes = {"Y": y, **{n: x[:, i] for i, n in enumerate(names)}}
                plan = Plan("independent", 1.0, 1 / 400**2, allocation=rule, accounting=accounting)  # type: ignore[arg-type]
                budget = Budget.of(plan, 400)
                curator = PrivateCurator(Table(schema, codes, 400), sizes, Unit(), budget, 100)
                made = curator.measure(Purse.of(plan, budget, sizes).split(1.0, cliques, weights))
                scores.append(auc(y_test, _log_odds([np.maximum(m.values, 1.0) for m in made], x_test)))
            half = 1.96 * np.std(scores) / np.sqrt(seeds)
            print(f"  {accounting:<6} {rule:<8} {np.mean(scores):.3f} ± {half:.3f}", flush=True)


def _naive(rng: np.random.Generator, n: int, p1: NDArray[np.float64]) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    y = rng.integers(0, 2, n)
    x = rng.random((n, len(p1))) < np.where(y[:, None] == 1, p1, 1 - p1)
    return y.astype(np.uint8), x.astype(np.uint8)


def _log_odds(counts: list[NDArray[np.float64]], x: NDArray[np.uint8]) -> NDArray[np.float64]:
    out = np.full(len(x), np.log(counts[0][1] / counts[0][0]))
    for i, c in enumerate(counts[1:]):
        given = c / c.sum(axis=1, keepdims=True)
        out += np.log(given[1, x[:, i]] / given[0, x[:, i]])
    return out


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scm", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--eta-sd", type=float, default=np.sqrt(0.5))
    opt = parser.parse_args()
    shifts(opt.seeds, opt.eta_sd)
    allocation(8 * opt.seeds)


if __name__ == "__main__":
    main()
