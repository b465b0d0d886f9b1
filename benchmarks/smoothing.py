"""Smoothing of pair counts along ordered columns, by `workload` and `prism`, compared with the same counts unsmoothed.

`python -m benchmarks.smoothing [chosen] [reported] [wrong] [star] [--epsilon ε ...] [--splits N] [--only NAME ...]`
prints a line per table, ε and method: AUC and two-way TV without smoothing, and the mean differences due to smoothing.
Both fits use the same noisy counts (add-remove by default, see ``--neighbors``), and rows of both are drawn evenly.

The settings were chosen on COMPAS, Adult in quantile bins, diabetes and invented factors. In the tables of **wrong**,
every column with three or more values is declared as ordered, although none or only some of its values have an order.

**star** compares prism with the star on all tables: two-way TV and AUC of prism, and the mean differences, paired by
split, from the star with prism's fit (smoothing and shrinkage) and from the star with a plain fit. If prism has made
the star's own measurements, each for the same ρ, the star is fitted to prism's measurements. The number of such runs is
stated.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from benchmarks import peers, small_tables, tables
from benchmarks.tables import Case, judge
from espalier.core.methods import METHODS, frame_of
from espalier.core.methods.marginals import Marginals
from espalier.core.models.graphical import ordered_values
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.unit import Unit
from espalier.core.project.file import Project
from espalier.core.project.plan import Neighbors, Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.table import Table

ADULT = "age education-num hours-per-week capital-gain capital-loss"
COMPAS = "age juv_fel_count juv_misd_count juv_other_count priors_count decile_score"
DIABETES = """age time_in_hospital num_lab_procedures num_procedures num_medications number_outpatient number_emergency
number_inpatient number_diagnoses"""
INSURANCE = "age bmi children"
EVERY = "*"
"""Every column with three or more values."""

CHOSEN = {"compas": COMPAS, "adult, quantile bins": ADULT, "diabetes": DIABETES, "factors 1": EVERY}
REPORTED = {
    "adult": ADULT,
    "insurance": INSURANCE,
    "diabetes 8k, rare": DIABETES,
    "diabetes 10k, part 2": DIABETES,
    "factors 2": EVERY,
}
WRONG = dict.fromkeys(
    (
        "classes 1",
        "classes 2",
        "child 5k, BirthAsphyxia",
        "child 20k, Sick",
        "child 10k, LVH",
        "child 3k, GruntingReport",
        "alarm 8k, LVFAILURE",
        "alarm 30k, HYPOVOLEMIA",
        "alarm 50k, LVFAILURE",
        "alarm 20k, PULMEMBOLUS",
    ),
    EVERY,
)
CASES = {
    case.name: case
    for case in (*tables.CHOSEN, *tables.BINARY, *tables.REPORTED, *small_tables.CHOSEN, *small_tables.REPORTED)
}
Split = tuple[Table, Table]


def in_order(table: Table, ordered: str) -> Table:
    """Return ``table`` with the columns ``ordered`` declared as ordinal, and all others as categorical."""
    names = ordered.split()
    columns = tuple(
        Column(
            c.name,
            "ordinal" if c.size > 2 and (ordered == EVERY or c.name in names) else "categorical",
            tuple(map(str, range(c.size))),
        )
        for c in table.schema.columns
    )
    return Table(Schema(columns), table.codes, table.rows)


def differences(
    case: Case, ordered: str, epsilon: float, method: str, splits: int, unit: Neighbors = "add-remove"
) -> np.ndarray:
    """Return AUC and TV of both fits (without and with smoothing) for each split."""
    found = np.zeros((splits, 2, 2))
    for seed in range(splits):
        train, test = (in_order(part, ordered) for part in case.split(seed))
        plan = {"method": method, "epsilon": epsilon, "delta": train.rows**-2, "target": case.target}
        project = Project(case.name, train.schema, Plan.from_json({**plan, "neighbors": unit}))
        budget = Budget.of(project.plan, train.rows)
        curator = PrivateCurator(train, Unit(unit), budget, project.plan.max_cells)
        fitted = METHODS[method].fit(curator, project, frame_of(project))
        assert isinstance(fitted, Marginals)
        plain = replace(fitted, ordered={}, shrunk=method == "prism")
        for i, way in enumerate((plain, fitted)):
            codes = way.model().sample(train.rows, np.random.default_rng(seed), even=True)
            judged = judge(codes, train, test, case.target)
            found[seed, i] = judged["auc"], judged["two_way_tv"]
    return found


def compare(
    cases: Iterable[tuple[str, str]], epsilons: Sequence[float], methods: Sequence[str], splits: int, unit: Neighbors
) -> None:
    """Print one line per table, ε and method."""
    print(f"\n{unit}, {splits} splits\n\n| table | ε | method | AUC | difference | two-way TV | difference |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for (name, ordered), epsilon, method in itertools.product(cases, epsilons, methods):
        found = differences(CASES[name], ordered, epsilon, method, splits, unit)
        cells = []
        for i in range(2):
            cells += [f"{found[:, 0, i].mean():.4f}", _apart(found[:, 1, i] - found[:, 0, i])]
        print(f"| {name} | {epsilon:g} | {method} | " + " | ".join(cells) + " |", flush=True)


def _apart(runs: np.ndarray) -> str:
    error = float(runs.std(ddof=1)) / np.sqrt(len(runs)) if len(runs) > 1 else float("inf")
    return f"{runs.mean():+.4f} ± {error:.4f}"


def beside_star(cases: Iterable[Case], epsilons: Sequence[float], splits: int, unit: Neighbors) -> None:
    """Print one line per table and ε: prism, and its differences from the star with prism's fit and with a plain
    fit."""
    print(f"\n{unit}, {splits} splits; differences from the star with prism's fit, and with a plain fit\n")
    print("| table | ε | star's own measurements | TV | prism's fit | plain fit | AUC | prism's fit | plain fit |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    ordered = CHOSEN | REPORTED
    for case, epsilon in itertools.product(cases, epsilons):
        found, same = np.zeros((splits, 3, 2)), 0
        for seed in range(splits):
            train, test = (in_order(part, ordered.get(case.name, "")) for part in case.split(seed))
            project = peers.project_of(case, train, epsilon, unit)
            fitted = METHODS["prism"].fit(peers.curator_of(project, train), project, frame_of(project))
            assert isinstance(fitted, Marginals)
            alike = peers.is_star(fitted, case, train)
            star = fitted if alike else _star(case, train, epsilon, unit)
            same += alike
            for i, way in enumerate((fitted, star, replace(star, shrunk=False))):
                codes = way.model().sample(train.rows, np.random.default_rng(seed), even=True)
                judged = judge(codes, train, test, case.target)
                found[seed, i] = judged["two_way_tv"], judged["auc"]
        cells = []
        for i in range(2):
            cells += [f"{found[:, 0, i].mean():.4f}", *(_apart(found[:, 0, i] - found[:, j, i]) for j in (1, 2))]
        print(f"| {case.name} | {epsilon:g} | {same} of {splits} | " + " | ".join(cells) + " |", flush=True)


def _star(case: Case, train: Table, epsilon: float, unit: Neighbors) -> Marginals:
    """Measure the star, for a fit like that of prism's counts."""
    curator, found = peers.measured_star(case, train, epsilon, unit)
    return Marginals.of(curator, found, shrunk=True, ordered=ordered_values(train.schema, train.schema.sizes))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.smoothing",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    groups = {"chosen": CHOSEN, "reported": REPORTED, "wrong": WRONG}
    parser.add_argument("what", nargs="*", default=[*groups], metavar="|".join([*groups, "star"]))
    parser.add_argument("--epsilon", type=float, nargs="*", default=[0.2, 0.5, 1.0, 3.0])
    parser.add_argument("--methods", nargs="*", default=["workload", "prism"])
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--only", nargs="*", default=[""], help="tables whose names contain one of these")
    parser.add_argument("--neighbors", default="add-remove", choices=("replace-one", "add-remove"))
    opt = parser.parse_args()
    for what in opt.what:
        if what == "star":
            every = [c for c in CASES.values() if any(part in c.name for part in opt.only)]
            beside_star(every, opt.epsilon, opt.splits, opt.neighbors)
            continue
        if what not in groups:
            parser.error(f"there is no group {what!r}; choose from {', '.join([*groups, 'star'])}")
        cases = [(n, of) for n, of in groups[what].items() if any(part in n for part in opt.only)]
        print(f"\n{what}:")
        compare(cases, opt.epsilon, opt.methods, opt.splits, opt.neighbors)


if __name__ == "__main__":
    main()
