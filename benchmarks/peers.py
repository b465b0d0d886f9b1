"""What a user would install instead, on the same splits: `python -m benchmarks.peers [general predict report wide]`.

- **general**: Adult under add-remove, ε = 0.2, 1 and 3, three splits: workload, mst (width 6), prism, the star and MST
  of mbi 2.0; SWIFT's figures as they were measured elsewhere.
- **predict**: prism beside the star on every table that rules were chosen on, ε = 0.2, 0.5, 1, 2, replace-one.
- **report**: the same on the tables that no rule was chosen on.
- **wide**: CPU seconds of workload on 200 columns × 50,000 rows.

Every figure is TSTR AUC (logistic regression), the mean two-way TV and the mean one-way L1, mean ± standard error over
the splits, with the CPU seconds of measuring, fitting and drawing. mbi's rows pay for imports and compilation once,
in this process; ours are drawn evenly, as a release draws them. A further word restricts the tables by name.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.tables import CHOSEN, REPORTED, Case, by_codes, judge
from core.methods.marginals import Marginals
from core.models.graphical import estimate, smoothing_for
from core.privacy.accounting import Budget
from core.privacy.curator import PrivateCurator
from core.privacy.unit import Unit
from core.project.file import Project
from core.project.plan import Neighbors, Plan
from core.release.spend import release
from core.tables.table import Table

Codes = Mapping[str, NDArray[Any]]
Way = Callable[[Case, Table, float, Neighbors], Codes]

QUOTED = (
    "adult, quantile bins, add-remove, ε = 1, one split: dpsynth SWIFT (source of August 2026, all pairs, clique cap "
    "10⁵) AUC 0.888, two-way TV 0.0099, one-way L1 0.0033, 165 CPU s; AIM (the same source, 4 MB) ended out of memory. "
    "Quoted from this project's own measurement of them: they cannot be installed from a package registry."
)


def ours(**plan: Any) -> Way:
    """A release by one of the methods here."""

    def make(case: Case, train: Table, epsilon: float, unit: Neighbors) -> Codes:
        return release(_project(case, train, epsilon, unit, **plan), train).codes

    return make


def star(case: Case, train: Table, epsilon: float, unit: Neighbors) -> Codes:
    """The naive-Bayes star, one-way counts for a tenth and every (X, target) for the rest, with the fit of releases."""
    project = _project(case, train, epsilon, unit)
    curator = _curator(project, train)
    found = [
        m
        for share, cliques in _star(case, train, 0.1)
        for m in curator.measure(dict.fromkeys(cliques, share * curator.budget.rho * (1 - 1e-9) / len(cliques)))
    ]
    known = None if curator.rows is None else float(curator.rows)
    model = estimate(train.schema.sizes, found, known, smoothing=smoothing_for(found, known))
    return model.sample(train.rows, np.random.default_rng(), even=True)


def mbi_star(case: Case, train: Table, epsilon: float, unit: Neighbors) -> Codes:
    """What a user of mbi 2.0 would write: half for one-way counts, half for the pairs with the target."""
    curator = _curator(_project(case, train, epsilon, unit), train)
    found = [
        m
        for share, cliques in _star(case, train, 0.5)
        for m in curator.measure(dict.fromkeys(cliques, share * curator.budget.rho * (1 - 1e-9) / len(cliques)))
    ]
    return _by_mbi(train, found)


def mbi_mst(case: Case, train: Table, epsilon: float, unit: Neighbors) -> Codes:
    """MST as published, its measurements fitted and its rows drawn by mbi 2.0."""
    from core.methods import METHODS, frame_of

    project = _project(case, train, epsilon, unit, method="mst")
    fitted = METHODS["mst"].fit(_curator(project, train), project, frame_of(project))
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


def _project(case: Case, train: Table, epsilon: float, unit: Neighbors, **plan: Any) -> Project:
    given = {"method": "prism", "epsilon": epsilon, "delta": train.rows**-2, "target": case.target, "neighbors": unit}
    return Project(case.name, train.schema, Plan.from_json({**given, **plan}))


def _curator(project: Project, train: Table) -> PrivateCurator:
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


def wide() -> None:
    """200 columns of five categories, each half of the time a copy of one that nobody sees."""
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
    parser.add_argument("--only", default="", help="tables whose names hold this")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--without-mbi", action="store_true")
    parser.add_argument("--epsilon", type=float, nargs="*", default=[])
    opt = parser.parse_args()
    trees = {"workload": ours(method="workload"), "mst, width 6": ours(method="mst", width=6), "prism": ours()}
    plain: dict[str, Way] = {} if opt.without_mbi else {"mbi 2.0 star": mbi_star, "mbi 2.0 MST": mbi_mst}
    both = {"prism": ours(), "star": star} | {k: v for k, v in plain.items() if "star" in k}
    chosen, reported = ([c for c in cases if opt.only in c.name] for cases in (CHOSEN, REPORTED))
    if "general" in opt.what:
        run(chosen, trees | {"star": star} | plain, opt.epsilon or (0.2, 1.0, 3.0), "add-remove", opt.splits)
        print("\n" + QUOTED)
    if "wide" in opt.what:
        wide()
    if "predict" in opt.what:
        run(chosen, both, opt.epsilon or (0.2, 0.5, 1.0, 2.0), "replace-one", opt.splits)
    if "report" in opt.what:
        run(reported, trees | {"star": star} | plain, opt.epsilon or (0.2, 1.0, 3.0), "add-remove", opt.splits)
        run(reported, both, opt.epsilon or (0.2, 0.5, 1.0, 2.0), "replace-one", opt.splits)


if __name__ == "__main__":
    main()
