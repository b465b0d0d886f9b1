"""Comparison of Espalier with alternative packages, on the same splits.

`python -m benchmarks.peers [general trees predict report rows wide]`:

- **general**: Adult under add-remove, ε = 0.2, 1 and 3, three splits: workload, mst (width 6), prism, the star and MST
  by mbi 2.0, and SWIFT's figures as measured elsewhere.
- **trees**: workload and mst (width 6) under add-remove on every table, ε = 0.2 and 1: two-way TV and AUC of both, and
  the mean difference, paired by split.
- **predict**: prism and the star on every table on which rules were chosen, ε = 0.2, 0.5, 1, 2, replace-one: the mean
  difference in AUC over runs on the same splits. There are at least `LEAST` runs, and more until the standard error is
  at most ``--until``. If prism has made the star's own measurements, each for the same ρ, the star is fitted to prism's
  measurements, so only the fits differ. The table states the number of such runs.
- **report**: the same on the tables on which no rule was chosen.
- **rows**: even rows compared with independent rows of the same model: one-way L1 at ε = 1 on every table and on the
  sample tables with their own plans, and the error due to noise alone.
- **wide**: CPU seconds of workload on 200 columns × 50,000 rows.

Every figure is TSTR AUC (logistic regression), the mean two-way TV and the mean one-way L1, mean ± standard error over
the splits, with the CPU seconds of measuring, fitting and drawing. If prism is compared with the star, TV is the mean
of the first ``--splits`` runs. The time for mbi's rows includes imports and compilation once, in this process.
Espalier's rows are drawn evenly, as in a release. ``--only`` restricts the tables by parts of their names.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.schema import SAMPLES
from benchmarks.tables import BINARY, CHOSEN, REPORTED, Case, by_codes, judge, predicted
from espalier.core.methods import METHODS, frame_of
from espalier.core.methods.marginals import Marginals
from espalier.core.models.graphical import estimate, smoothing_for
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.contribution import bounded
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.draws import Measurement
from espalier.core.privacy.unit import Unit
from espalier.core.project.file import Project
from espalier.core.project.plan import Neighbors, Plan
from espalier.core.release.artefact import Release
from espalier.core.release.spend import release
from espalier.core.tables.reading import read_table
from espalier.core.tables.table import Table

Codes = Mapping[str, NDArray[Any]]
Way = Callable[[Case, Table, float, Neighbors], Codes]

LEAST = 8
"""Minimum number of runs of **predict**: with fewer, the standard error is a poor estimate."""

QUOTED = (
    "adult, quantile bins, add-remove, ε = 1, one split: dpsynth SWIFT (source of August 2026, all pairs, clique cap "
    "10⁵) AUC 0.888, two-way TV 0.0099, one-way L1 0.0033, 165 CPU s; AIM (the same source, 4 MB) ended out of memory. "
    "These figures are quoted from this project's own measurement: neither package can be installed from a package "
    "registry."
)


def ours(**plan: Any) -> Way:
    """Return a release by one of these methods."""

    def make(case: Case, train: Table, epsilon: float, unit: Neighbors) -> Codes:
        return release(project_of(case, train, epsilon, unit, **plan), train).codes

    return make


def star(case: Case, train: Table, epsilon: float, unit: Neighbors) -> Codes:
    """Return the naive-Bayes star with the fit and the rows of releases."""
    curator, found = measured_star(case, train, epsilon, unit)
    known = None if curator.rows is None else float(curator.rows)
    model = estimate(train.schema.sizes, found, known, smoothing=smoothing_for(found, known))
    return model.sample(train.rows, np.random.default_rng(), even=True)


def measured_star(
    case: Case, train: Table, epsilon: float, unit: Neighbors, first: float = 0.1
) -> tuple[PrivateCurator, list[Measurement]]:
    """Measure one-way counts for ``first`` of the budget, and every (X, target) for the rest."""
    curator = curator_of(project_of(case, train, epsilon, unit), train)
    found = [
        m
        for share, cliques in _star(case, train, first)
        for m in curator.measure(dict.fromkeys(cliques, share * curator.budget.rho * (1 - 1e-9) / len(cliques)))
    ]
    return curator, found


def mbi_star(case: Case, train: Table, epsilon: float, unit: Neighbors) -> Codes:
    """Run what a user of mbi 2.0 would write: half of the budget for one-way counts, and half for the pairs with the
    target."""
    return _by_mbi(train, measured_star(case, train, epsilon, unit, 0.5)[1])


def mbi_mst(case: Case, train: Table, epsilon: float, unit: Neighbors) -> Codes:
    """Return MST as published, with the fit and the rows by mbi 2.0."""
    project = project_of(case, train, epsilon, unit, method="mst")
    fitted = METHODS["mst"].fit(curator_of(project, train), project, frame_of(project))
    assert isinstance(fitted, Marginals)
    return _by_mbi(train, fitted.measurements)


def _by_mbi(train: Table, found: Iterable[Any]) -> Codes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mbi

        domain = mbi.Domain(list(train.schema.sizes), list(train.schema.sizes.values()))
        given = [mbi.LinearMeasurement(m.values.ravel(), m.clique, stddev=m.sigma) for m in found]
        loss = mbi.marginal_loss.from_linear_measurements(given, domain)
        model = mbi.estimation.MirrorDescent().estimate(domain, loss, float(train.rows))
        return {name: np.asarray(codes) for name, codes in model.synthetic_data(train.rows).to_dict().items()}


def _star(case: Case, train: Table, first: float) -> list[tuple[float, list[tuple[str, ...]]]]:
    schema = train.schema
    pairs = [schema.clique((name, case.target)) for name in schema.names if name != case.target]
    return [(first, [(name,) for name in schema.names]), (1 - first, pairs)]


def project_of(case: Case, train: Table, epsilon: float, unit: Neighbors, **plan: Any) -> Project:
    given = {"method": "prism", "epsilon": epsilon, "delta": train.rows**-2, "target": case.target, "neighbors": unit}
    return Project(case.name, train.schema, Plan.from_json({**given, **plan}))


def curator_of(project: Project, train: Table) -> PrivateCurator:
    plan = project.plan
    return PrivateCurator(train, Unit(plan.neighbors), Budget.of(plan, train.rows), plan.max_cells)


def run(
    cases: Iterable[Case], ways: Mapping[str, Way], epsilons: Iterable[float], unit: Neighbors, splits: int
) -> None:
    """Print one line per table, ε and method."""
    epsilons = tuple(epsilons)
    print(f"\n{unit}, {splits} splits\n\n| table | ε | method | AUC | two-way TV | one-way L1 | CPU s |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for case in cases:
        for epsilon in epsilons:
            for name, way in ways.items():
                rows, start = [], 0.0
                for seed in range(splits):
                    train, test = case.split(seed)
                    before = time.process_time()
                    codes = way(case, train, epsilon, unit)
                    start += time.process_time() - before
                    rows.append(list(judge(codes, train, test, case.target).values()))
                mean = np.mean(rows, axis=0)
                error = np.std(rows, axis=0, ddof=1) / np.sqrt(splits) if splits > 1 else np.zeros(3)
                cells = " | ".join(f"{m:.4f} ± {e:.4f}" for m, e in zip(mean, error, strict=True))
                print(f"| {case.name} | {epsilon:g} | {name} | {cells} | {start / splits:.2f} |", flush=True)


def beside_mst(cases: Iterable[Case], epsilons: Iterable[float], splits: int) -> None:
    """Print one line per table and ε: workload, mst, and their differences, paired by split."""
    ways = (ours(method="workload"), ours(method="mst", width=6))
    print(f"\nadd-remove, {splits} splits, workload against mst with width 6\n")
    print("| table | ε | two-way TV: workload | mst | difference | AUC: workload | mst | difference |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for case, epsilon in itertools.product(cases, tuple(epsilons)):
        found = np.zeros((splits, 2, 2))
        for seed in range(splits):
            train, test = case.split(seed)
            for i, way in enumerate(ways):
                judged = judge(way(case, train, epsilon, "add-remove"), train, test, case.target)
                found[seed, :, i] = judged["two_way_tv"], judged["auc"]
        apart = found[:, :, :1] - found[:, :, 1:]
        columns = np.concatenate([found, apart], axis=2).reshape(splits, -1).T
        cells = " | ".join(f"{np.mean(runs):.4f} ± {_error(runs.tolist()):.4f}" for runs in columns)
        print(f"| {case.name} | {epsilon:g} | {cells} |", flush=True)


def beside_star(cases: Iterable[Case], epsilons: Iterable[float], splits: int, until: float, most: int) -> None:
    """Print one line per table and ε: prism, and its difference from the star, paired by split."""
    unit: Neighbors = "replace-one"
    epsilons = tuple(epsilons)
    print(f"\n{unit}, {LEAST} to {most} runs, until the standard error is {until:g}\n")
    print("| table | ε | AUC: prism | star | difference | runs (of them the same) | two-way TV: prism | difference |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for case in cases:
        for epsilon in epsilons:
            scores, apart, tvs, same = list[tuple[float, float]](), list[float](), list[list[float]](), 0
            while len(apart) < LEAST or (_error(apart) > until and len(apart) < most):
                train, test = case.split(len(apart))
                made = release(project_of(case, train, epsilon, unit), train)
                alike = is_star(made.fitted, case, train)
                ours, plain = made.codes, _plain(made, train) if alike else star(case, train, epsilon, unit)
                scores.append((predicted(ours, test, case.target), predicted(plain, test, case.target)))
                apart.append(scores[-1][0] - scores[-1][1])
                same += alike
                if len(tvs) < splits:
                    tvs.append([judge(codes, train, test, case.target)["two_way_tv"] for codes in (ours, plain)])
            auc, tv = np.mean(scores, axis=0), np.mean(tvs, axis=0)
            above = [ours - plain for ours, plain in tvs]
            print(
                f"| {case.name} | {epsilon:g} | {auc[0]:.4f} | {auc[1]:.4f} | {np.mean(apart):+.4f} ± "
                f"{_error(apart):.4f} | {len(apart)} ({same}) | {tv[0]:.4f} | {np.mean(above):+.4f} ± "
                f"{_error(above):.4f} |",
                flush=True,
            )


def _plain(made: Release, train: Table) -> Codes:
    """Return the rows of the star with the measurements of ``made``."""
    assert isinstance(made.fitted, Marginals)
    model = replace(made.fitted, shrunk=False).model()
    return model.sample(train.rows, np.random.default_rng(), even=True)


def _error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("inf")


def is_star(fitted: Any, case: Case, train: Table) -> bool:
    """Return whether prism measured the star's marginals, each for the same share of ρ."""
    rhos: dict[tuple[str, ...], float] = {}
    for m in fitted.measurements:
        rhos[m.clique] = rhos.get(m.clique, 0.0) + m.rho
    whole = sum(rhos.values())
    wanted = {q: share / len(cliques) for share, cliques in _star(case, train, 0.1) for q in cliques}
    return rhos.keys() == wanted.keys() and all(abs(rhos[q] / whole - part) < 1e-6 for q, part in wanted.items())


def even_rows(cases: Iterable[Case], epsilons: Iterable[float], splits: int) -> None:
    """Print one line per table and ε, then one per sample table with its own plan.

    The lines show the mean one-way L1 distance of independent and of even rows from the model and from the real rows.
    The distance from the model is the error that drawing adds; the distance from the real rows also contains the noise
    of the counts. Two distances from the real rows measure this noise: that of the model, without any drawing, and that
    of noisy counts of single columns that got the whole budget. If these exceed half of the independent rows' distance,
    no drawing rule and no share of the budget can halve that distance.
    """
    print(f"\nadd-remove, {splits} splits, prism; sample tables with their own plans\n")
    print(
        "| table | ε | L1 to the model: independent | even | L1 to the real rows: independent | even | model | "
        "columns counted with all of ρ | halved in |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for case, epsilon in itertools.product(cases, epsilons):
        trains = [case.split(seed)[0] for seed in range(splits)]
        _print_rows(case.name, [(project_of(case, train, epsilon, "add-remove"), train) for train in trains])
    for file in sorted(SAMPLES.glob("*.json")):
        project = Project.load(file)
        if METHODS[project.plan.method].capabilities.numbers:
            print(f"| {file.stem} | its rows are numbers, which every plan spreads evenly |")
            continue
        plan = project.plan
        table = Table.encode(read_table(file.with_suffix(".csv")), project.schema, plan.person)
        table = table if plan.person is None else bounded(table, plan.rows_per_person)
        _print_rows(file.stem, [(project, table)] * splits)


def _print_rows(name: str, given: Sequence[tuple[Project, Table]]) -> None:
    """Print one line of `even_rows`."""
    found: list[list[float]] = []
    for project, table in given:
        made: Any = release(project, table)
        model, names = made.model, [c.name for c in project.schema.columns if c.size > 1]
        drawn = [model.sample(made.rows, np.random.default_rng(), even=even) for even in (False, True)]
        expected = {n: _shares(model.marginal((n,))) for n in names}
        real = {n: _shares(table.count((n,))) for n in names}
        plan = project.plan
        budget = Budget.of(plan, plan.rows or table.rows)
        curator = PrivateCurator(table, Unit(plan.neighbors, plan.rows_per_person), budget, plan.max_cells)
        each = curator.measure(dict.fromkeys([(n,) for n in names], budget.rho * (1 - 1e-9) / len(names)))
        alone = {m.clique[0]: _shares(np.maximum(m.values, 0.0)) for m in each}
        to_model, to_real = ([_one_way(codes, other) for codes in drawn] for other in (expected, real))
        bounds = [float(np.mean([np.abs(p[n] - real[n]).sum() for n in names])) for p in (expected, alone)]
        found.append([*to_model, *to_real, *bounds])
    halved = sum(even <= independent / 2 for _, _, independent, even, _, _ in found)
    cells = " | ".join(f"{x:.5f}" for x in np.mean(found, axis=0))
    print(f"| {name} | {given[0][0].plan.epsilon:g} | {cells} | {halved} of {len(found)} |", flush=True)


def _shares(counts: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(counts / counts.sum(), dtype=np.float64)


def _one_way(codes: Codes, other: Mapping[str, NDArray[Any]]) -> float:
    """Return the mean L1 distance of the columns of ``codes`` from ``other``, given as shares."""
    apart = [np.abs(np.bincount(codes[n], minlength=len(p)) / len(codes[n]) - p).sum() for n, p in other.items()]
    return float(np.mean(apart))


def wide() -> None:
    """Run on 200 columns of five categories, where each cell copies a hidden column with probability one half."""
    rng = np.random.default_rng(0)
    hidden = rng.integers(0, 5, 50_000)
    columns = {
        f"c{i}": np.where(rng.random(50_000) < 0.5, hidden, rng.integers(0, 5, 50_000)).astype(np.uint8)
        for i in range(200)
    }
    table = by_codes(columns, dict.fromkeys(columns, 5))
    start = time.process_time()
    release(Project("wide", table.schema, Plan("workload", 1.0, 1e-9)), table)
    print(f"workload, 200 columns × 50,000 rows, ε = 1: {time.process_time() - start:.1f} CPU s")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="*", default=["general", "predict", "report"])
    parser.add_argument("--only", nargs="*", default=[""], help="tables whose names contain one of these")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--until", type=float, default=0.003, help="standard error at which predict stops")
    parser.add_argument("--most", type=int, default=60, help="maximum number of runs of predict")
    parser.add_argument("--without-mbi", action="store_true")
    parser.add_argument("--epsilon", type=float, nargs="*", default=[])
    parser.add_argument("--neighbors", default="add-remove", choices=("replace-one", "add-remove"), help="for general")
    opt = parser.parse_args()
    trees = {"workload": ours(method="workload"), "mst, width 6": ours(method="mst", width=6), "prism": ours()}
    plain: dict[str, Way] = {} if opt.without_mbi else {"mbi 2.0 star": mbi_star, "mbi 2.0 MST": mbi_mst}
    binary, chosen, reported = (
        [c for c in cases if any(o in c.name for o in opt.only)] for cases in (BINARY, CHOSEN, REPORTED)
    )
    if "general" in opt.what:
        run(chosen, trees | {"star": star} | plain, opt.epsilon or (0.2, 1.0, 3.0), opt.neighbors, opt.splits)
        print("\n" + QUOTED)
    if "trees" in opt.what:
        beside_mst([*binary, *chosen, *reported], opt.epsilon or (0.2, 1.0), opt.splits)
    if "rows" in opt.what:
        even_rows([*chosen, *reported], opt.epsilon or (1.0,), opt.splits)
    if "wide" in opt.what:
        wide()
    for part, cases in (("predict", chosen), ("report", reported)):
        if part not in opt.what:
            continue
        beside_star(cases, opt.epsilon or (0.2, 0.5, 1.0, 2.0), opt.splits, opt.until, opt.most)
        if not opt.without_mbi:
            star_only = {"mbi 2.0 star": mbi_star}
            run(cases, star_only, opt.epsilon or (0.2, 0.5, 1.0, 2.0), "replace-one", opt.splits)
    if "report" in opt.what:
        run(reported, trees | {"star": star} | plain, opt.epsilon or (0.2, 1.0, 3.0), "add-remove", opt.splits)


if __name__ == "__main__":
    main()
