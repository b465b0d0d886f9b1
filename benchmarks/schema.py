"""Cost of a bought schema, of constraints in the model, and of a column with 5,000 categories.

    python -m benchmarks.schema bought       compare declared bins and categories with bought ones (3 % of ρ, ε = 1)
    python -m benchmarks.schema settings     on other tables: how well bought bins represent their values, by setting
    python -m benchmarks.schema zeros        ten constraints on Adult: violations, error on other pairs, time of the fit
    python -m benchmarks.schema wide         5,000 categories in a hierarchy: seconds and memory from plan to report

All releases in *bought* are judged on the same separate, public bins. The tables are `../shared/data/adult.csv.gz` and
`diabetes_readmission_20k.csv.gz`. A bought schema declares only names, kinds and the ranges of numbers.
"""

from __future__ import annotations

import argparse
import itertools
import math
import resource
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from benchmarks.adult import DATA, EDGES, adult_project
from espalier.core.evaluation import evaluate
from espalier.core.methods import METHODS
from espalier.core.methods.frame import Frame
from espalier.core.models.graphical import Zeros, estimate, smoothing_for
from espalier.core.planning.preview import preview
from espalier.core.privacy import bought_schema, flat_bins
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.bought_schema import buy, prices
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.spending import Spending
from espalier.core.privacy.unit import Unit
from espalier.core.project.constraints import Constraints
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, HierarchyToBuy, Numbers, Schema, to_buy
from espalier.core.release.spend import release
from espalier.core.tables.consistency import settle, violations
from espalier.core.tables.reading import read_table
from espalier.core.tables.table import Table
from espalier.core.tables.text_table import TextColumn, TextTable

SHARE, AT_MOST = 0.03, 50
"""Share of ρ for the schema, and the largest number of categories in a column."""

WIDEST = 300
"""Maximum number of categories for a column with 5,000 codes."""

JUDGED = {
    "age": (17, 20, 24, 28, 33, 38, 43, 48, 53, 58, 68, 91),
    "capital-gain": (0, 1, 2000, 4000, 8000, 16000, 100000),
    "capital-loss": (0, 1, 1400, 1800, 2200, 5000),
    "hours-per-week": (1, 15, 25, 35, 40, 41, 48, 55, 100),
    "time_in_hospital": (1, 2, 3, 4, 6, 8, 10, 14),
    "num_lab_procedures": (0, 15, 25, 35, 42, 48, 55, 65, 75, 140),
    "num_medications": (0, 6, 9, 12, 15, 18, 22, 28, 85),
    "number_inpatient": (0, 1, 2, 4, 25),
    "number_diagnoses": (0, 4, 6, 8, 9, 17),
}
"""Public bins on which all releases are judged."""

DIABETES = {
    "time_in_hospital": (1, 2, 3, 4, 5, 7, 9, 14),
    "num_lab_procedures": (0, 10, 20, 30, 40, 50, 60, 70, 140),
    "num_medications": (0, 5, 10, 15, 20, 25, 30, 85),
    "number_inpatient": (0, 1, 2, 3, 5, 25),
    "number_diagnoses": (0, 3, 5, 7, 9, 10, 17),
}
DIABETES_TEXTS = {
    "race": "Caucasian,AfricanAmerican,Hispanic,Asian,Other,?",
    "gender": "Female,Male,Unknown/Invalid",
    "age": ",".join(f"[{i}-{i + 10})" for i in range(0, 100, 10)),
    "max_glu_serum": "None,Norm,>200,>300",
    "A1Cresult": "None,Norm,>7,>8",
    "insulin": "No,Steady,Up,Down",
    "change": "Ch,No",
}

ZEROS = {
    "impossible": [
        {"relationship": ["Wife"], "sex": ["Male"]},
        {"relationship": ["Husband"], "sex": ["Female"]},
        *(
            {"relationship": ["Husband", "Wife"], "marital-status": [status]}
            for status in ("Never-married", "Divorced", "Separated", "Widowed")
        ),
        {"relationship": ["Unmarried"], "marital-status": ["Married-civ-spouse"]},
        {"age": {"below": 22}, "education": ["Masters", "Prof-school", "Doctorate"]},
        *(
            {
                "workclass": [kind],
                "occupation": [
                    "Sales",
                    "Craft-repair",
                    "Other-service",
                    "Exec-managerial",
                    "Prof-specialty",
                    "Tech-support",
                    "Handlers-cleaners",
                    "Machine-op-inspct",
                    "Adm-clerical",
                    "Farming-fishing",
                    "Transport-moving",
                    "Priv-house-serv",
                    "Protective-serv",
                    "Armed-Forces",
                ],
            }
            for kind in ("Never-worked", "?")
        ),
    ],
}
"""Ten constraints that are known beforehand. Some rows of Adult violate them."""


def diabetes_project(method: str, **plan: object) -> Project:
    """Return the diabetes project with declared bins. A patient is readmitted or not."""
    columns = [
        *(Column(n, "categorical", tuple(t.split(","))) for n, t in DIABETES_TEXTS.items()),
        *(Column(n, "numeric", edges=tuple(map(float, e)), integer=True) for n, e in DIABETES.items()),
        Column("readmitted", "categorical", ("NO", "YES"), groups=(("YES", (">30", "<30")),)),
    ]
    given = Plan(**{"method": method, "epsilon": 1.0, "target": "readmitted", **plan})  # type: ignore[arg-type]
    return Project("diabetes", Schema(tuple(columns)), given)


def undeclared(project: Project, *, categories: bool = True) -> Project:
    """Return the project with only names, kinds, numeric ranges and the target declared.

    Without ``categories``, the categories stay declared, and only the bins must be bought.
    """
    columns = tuple(
        c
        if c.name == project.plan.target or not (categories or c.kind == "numeric")
        else to_buy(c.name, "numeric", bins=c.values, range=(c.edges[0], c.edges[-1]), integer=c.integer)
        if c.kind == "numeric"
        else to_buy(c.name, c.kind, AT_MOST)
        for c in project.schema.columns
    )
    return replace(project, schema=Schema(columns), plan=project.plan.changed(schema_share=SHARE))


def judge_schema(schema: Schema) -> Schema:
    """Return the schema with the public bins on which all releases are judged."""
    return Schema(
        tuple(
            replace(c, edges=tuple(map(float, JUDGED[c.name])), missing=True, unknown="missing")
            if isinstance(c, Numbers)
            else replace(c, missing=True, unknown="missing")
            for c in schema.columns
        )
    )


def bought(repeats: int, only: str = "") -> None:
    """Print AUC and TV with declared and with bought bins, for tables and methods whose names contain ``only``."""
    both = (
        ("Adult", adult_project, DATA),
        ("diabetes", diabetes_project, DATA.with_name("diabetes_readmission_20k.csv.gz")),
    )
    print(
        f"{'':<10} {'method':<8} {'schema':<11} {'AUC':>16} {'one-way TV':>11} {'two-way TV':>11}   bins of the numbers"
        "\n(the line below a schema is its mean difference from declared, paired by split, ± the standard error of "
        "that difference)"
    )
    for (name, make, path), method in itertools.product(both, ("prism", "mst")):
        if only not in f"{name} {method}":
            continue
        text = read_table(path)
        declared = make(method)
        judged = replace(declared, schema=judge_schema(declared.schema))
        whole = Table.encode(text, judged.schema)
        projects = {
            "declared": declared,
            "bins bought": undeclared(declared, categories=False),
            "all bought": undeclared(declared),
        }
        lines: dict[str, list[list[float]]] = {what: [] for what in projects}
        bins: dict[str, list[int]] = {}
        for seed in range(repeats):
            place = np.random.default_rng(seed).permutation(whole.rows)
            train = np.sort(place[whole.rows // 5 :])
            for what, project in projects.items():
                made = release(project, Table.encode(text, project.schema).take(train))
                bins[what] = [c.values for c in made.project.schema.columns if c.kind == "numeric"]
                shown = TextTable({n: _column(t) for n, t in made.table.items()}, made.rows, "synthetic")
                synthetic = Table.encode(shown, judged.schema)
                rest = whole.take(np.sort(place[: whole.rows // 5]))
                found = evaluate(judged, whole.take(train), synthetic, holdout=rest).to_json()
                fidelity = found["fidelity"]
                lines[what].append([found["tstr"]["auc_synthetic"], fidelity["one_way_tv"], fidelity["two_way_tv"]])
        for what, measured in lines.items():
            m, sd = np.mean(measured, axis=0), np.std(measured, axis=0)
            figures = f"{m[0]:.4f} ± {sd[0]:.4f} {m[1]:>11.4f} {m[2]:>11.4f}   {bins[what]}"
            print(f"{name:<10} {method:<8} {what:<11} {figures}", flush=True)
            if what != "declared" and repeats > 1:
                apart = np.subtract(measured, lines["declared"])
                error = np.std(apart, axis=0, ddof=1) / math.sqrt(repeats)
                differences = [f"{d:+.4f} ± {e:.4f}" for d, e in zip(apart.mean(axis=0), error, strict=True)]
                print(f"{'':<19} {'':<11} {differences[0]:>16} {'  '.join(differences[1:])}", flush=True)


SAMPLES = Path(__file__).resolve().parent.parent / "sample_data"
SETTINGS = (
    *((finer, 0.1, 0.2) for finer in (2, 4, 8)),
    *((4, cuts, 0.2) for cuts in (0.3, 0.5)),
    *((4, 0.1, lumped) for lumped in (0.0, 0.1, 0.4)),
)
"""Values of `FINER`, `CUTS` and `LUMPED`. Each line differs from the usual values in at most one of them."""


def settings(repeats: int) -> None:
    """Buy bins with each setting on COMPAS and the bundled samples, with the same share of ρ at ε = 1."""
    compas = Project(
        "compas",
        Schema(
            (
                Column("age", "numeric", edges=(18.0, 100.0), integer=True),
                Column("priors_count", "numeric", edges=(0.0, 60.0), integer=True),
                Column("decile_score", "numeric", edges=(-1.0, 10.0), integer=True),
                Column("is_recid", "categorical", ("0", "1")),
            )
        ),
        Plan("mst", 1.0, target="is_recid"),
    )
    given = [(compas, DATA.with_name("compas.csv.gz"))]
    given += [
        (Project.load(SAMPLES / f"{n}.json"), SAMPLES / f"{n}.csv") for n in ("hiring", "readmission", "services")
    ]
    print(f"{'finer':>5} {'cuts':>5} {'lumped':>6}  {'distance':>8} {'information kept':>18}")
    for finer, cuts, lumped in SETTINGS:
        found = []
        with (
            mock.patch.object(bought_schema, "FINER", finer),
            mock.patch.object(bought_schema, "CUTS", cuts),
            mock.patch.object(bought_schema, "COUNTS", 1 - cuts),
            mock.patch.object(flat_bins, "LUMPED", lumped),
        ):
            for (project, path), _ in itertools.product(given, range(repeats)):
                found += list(_stand_for(project, read_table(path)))
        far, told = np.mean(found, axis=0)
        print(f"{finer:>5} {cuts:>5} {lumped:>6}  {far:>8.4f} {told:>18.3f}", flush=True)


def _stand_for(project: Project, text: TextTable) -> Iterator[tuple[float, float]]:
    """Yield two figures per bought column.

    The first is the largest distance between the cumulative shares of its values and of values drawn uniformly in its
    bins. The second is the mutual information of its bins and the target, as a share of the mutual information of its
    values and the target.
    """
    names = [c.name for c in project.schema.columns if c.kind == "numeric" and c.name != project.plan.target]
    target = project.schema[project.plan.target or ""]
    columns = [
        to_buy(c.name, "numeric", bins=8, range=(c.edges[0], c.edges[-1]), integer=c.integer)
        for c in map(project.schema.__getitem__, names)
    ]
    plan = Plan("mst", 1.0, target=target.name, schema_share=SHARE)
    open_ = Project("settings", Schema((*columns, target)), plan)
    table = Table.encode(text, open_.schema)
    budget = Budget.of(plan, table.rows)
    bought = buy(table, open_.schema, Unit(), prices(open_, budget), budget.delta, Spending(budget.rho))
    rng = np.random.default_rng(0)
    for name in names:
        values, column = table.numbers(name), bought[name]
        known = ~np.isnan(values)
        values, outcome = values[known], table.codes[target.name][known]
        codes = np.searchsorted(column.edges[1:-1], values, side="right")
        drawn = column.numbers(column.decode(codes, rng))
        points = np.unique(np.concatenate([values, drawn]))
        below = [np.searchsorted(np.sort(x), points, side="right") / len(x) for x in (values, drawn)]
        whole = _information(np.unique(values, return_inverse=True)[1], outcome)
        yield float(np.abs(below[0] - below[1]).max()), _information(codes, outcome) / whole


def _information(a: NDArray[Any], b: NDArray[Any]) -> float:
    """Return the mutual information, in nats."""
    joint = np.zeros((int(a.max()) + 1, int(b.max()) + 1))
    np.add.at(joint, (a, b), 1 / len(a))
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    return float(np.sum(joint[joint > 0] * np.log(joint[joint > 0] / apart[joint > 0])))


def _column(texts: Sequence[str]) -> TextColumn:
    values, codes = np.unique(np.array(texts, dtype=object), return_inverse=True)
    return TextColumn(tuple(values.tolist()), codes)


def zeros(repeats: int) -> None:
    """Fit the same noisy answers with and without ten constraints."""
    project = adult_project("mst")
    table = Table.encode(read_table(DATA), project.schema)
    given = Constraints.from_json(ZEROS)
    given.check(project.schema)
    joined = set(map(frozenset, given.edges))
    others = [p for p in itertools.combinations(project.schema.names, 2) if frozenset(p) not in joined]
    real = {p: table.count(p) / table.rows for p in others}
    forbidden = [Zeros(clique, mask) for clique, mask in given.masks(project.schema).items()]
    dirty = {c.name: list(np.array([*c.labels], dtype=object)[table.codes[c.name]]) for c in project.schema.columns}
    dirty |= {n: [str(EDGES[n][i]) for i in table.codes[n].tolist()] for n in EDGES}
    print(f"rows of the table that break a constraint: {sum(n for _, n in violations(given, project.schema, dirty))}")
    print(f"{'':<10} {'violations':>10} {'TV, other pairs':>16} {'fit s':>7} {'steps':>6} certified")
    lines: dict[str, list[list[float]]] = {"without": [], "with": []}
    for seed in range(repeats):
        budget = Budget.of(project.plan, table.rows)
        curator = PrivateCurator(table, Unit(), budget, 10**7)
        measured: Any = METHODS["mst"].fit(curator, project, Frame())
        for what, rules in (("without", []), ("with", forbidden)):
            start = time.process_time()
            model = estimate(
                curator.sizes,
                measured.measurements,
                float(table.rows),
                zeros=rules,
                smoothing=smoothing_for(measured.measurements, float(table.rows)),
            )
            seconds = time.process_time() - start
            rng = np.random.default_rng(seed)
            codes = model.sample(table.rows, rng)
            texts = {c.name: c.decode(codes[c.name], rng) for c in project.schema.columns}
            rows = settle(given, project.schema, codes, texts) if rules else texts
            broken = sum(n for _, n in violations(given, project.schema, rows))
            tv = np.mean([0.5 * np.abs(model.marginal(p) / model.total - real[p]).sum() for p in others])
            lines[what].append([broken, float(tv), seconds, model.fit.iterations, model.fit.converged])
    for what, found in lines.items():
        m = np.mean(found, axis=0)
        print(f"{what:<10} {m[0]:>10.0f} {m[1]:>16.5f} {m[2]:>7.4f} {m[3]:>6.0f} {'yes' if m[4] == 1 else 'NO'}")


def wide() -> None:
    """Plan, release and report 100,000 rows with a column of 5,000 codes in 500 blocks and 50 chapters, and three other
    columns.
    """
    rng = np.random.default_rng(0)
    labels = tuple(f"{i:04d}" for i in range(5000))
    given = {text: f"block {text[:3]}" for text in labels} | {
        f"block {b:03d}": f"chapter {b // 10}" for b in range(500)
    }
    few = {"ward": tuple("abcdefgh"), "sex": ("f", "m"), "died": ("no", "yes")}
    columns = (
        HierarchyToBuy.of("code", given, WIDEST),
        *(Column(n, "categorical", values) for n, values in few.items()),
    )
    rows = 100_000
    code = rng.choice(5000, rows, p=rng.dirichlet(np.full(5000, 0.05)))
    ward = (code // 700 + rng.integers(0, 2, rows)) % 8
    codes = {"ward": ward, "sex": rng.integers(0, 2, rows), "died": (ward + rng.integers(0, 3, rows)) % 2}
    read = {"code": TextColumn(labels, code)} | {n: TextColumn(few[n], c) for n, c in codes.items()}
    text = TextTable(read, rows, "wide")
    print("method     plan s  release s  report s categories      TV of chapters")
    for method in ("mst", "prism", "workload"):
        plan = Plan(method, 1.0, target="died", schema_share=0.1)
        project = Project.loads(Project("wide", Schema(columns), plan).dumps())
        times = [time.perf_counter()]
        shown = preview(project, rows)
        times.append(time.perf_counter())
        made = release(project, Table.encode(text, project.schema))
        times.append(time.perf_counter())
        files = made.files  # including the report
        times.append(time.perf_counter())
        column = made.project.schema["code"]
        real = np.bincount(column.encode(labels)[code], minlength=column.size) / rows
        drawn = np.bincount(made.codes["code"], minlength=column.size) / rows
        first = [dict(column.groups).get(c, (c,))[0] for c in column.categories]
        by = [np.bincount([int(t) // 100 for t in first], x, minlength=50) for x in (real, drawn)]
        seconds = " ".join(f"{b - a:>{w}.2f}" for (a, b), w in zip(itertools.pairwise(times), (7, 10, 9), strict=True))
        tv = [0.5 * np.abs(a - b).sum() for a, b in ((real, drawn), by)]
        print(f"{method:<9} {seconds} {column.values:>10} {tv[0]:>7.4f} {tv[1]:>11.4f}", flush=True)
    print(f"the plan says: {shown.apart[0]}")
    kept = ", ".join(f"{name} {len(files[name]) / 1024:.0f} kB" for name in ("release.json", "report.html"))
    print(kept)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{most / 1024:.0f} MB at most in the whole process; {time.process_time():.1f} s of CPU with all imports")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.schema", description=__doc__)
    parser.add_argument("what", nargs="?", default="zeros", choices=("bought", "settings", "zeros", "wide"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="", help="of bought: a table, a method, or both (such as 'diabetes mst')")
    opt = parser.parse_args()
    if opt.what == "wide":
        wide()
    elif opt.what == "bought":
        bought(opt.repeats, opt.only)
    else:
        {"settings": settings, "zeros": zeros}[opt.what](opt.repeats)


if __name__ == "__main__":
    main()
