"""Adult with public bins: quality and cost of each method.

python -m benchmarks.adult                 quality of the five methods, ε = 1 and 0.2, on an 80/20 split python -m
benchmarks.adult cold            CPU seconds of `python -m core release`, cold, and of mbi 2.0 python -m
benchmarks.adult copies          total CPU seconds of 20 copies of a release, ε = 1 python -m benchmarks.adult preview
milliseconds of a plan's preview, which reads no data python -m benchmarks.adult compare         seconds of six plans on
the Compare page, and their figures python -m benchmarks.adult classifiers     seconds in which five classifiers judge
every column of a release python -m benchmarks.adult write FOLDER    the project files themselves

The table is `../shared/data/adult.csv.gz`. Categories come from the data set's public documentation, and bin edges are
round numbers; nothing is derived from the rows.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from espalier.core.graph.dag import Dag
from espalier.core.graph.roles import Roles
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema

DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "adult.csv.gz"

CATEGORIES = {
    "workclass": "Private, Self-emp-not-inc, Self-emp-inc, Federal-gov, Local-gov, State-gov, Without-pay, "
    "Never-worked, ?",
    "education": "Preschool, 1st-4th, 5th-6th, 7th-8th, 9th, 10th, 11th, 12th, HS-grad, Some-college, Assoc-voc, "
    "Assoc-acdm, Bachelors, Masters, Prof-school, Doctorate",
    "marital-status": "Married-civ-spouse, Divorced, Never-married, Separated, Widowed, Married-spouse-absent, "
    "Married-AF-spouse",
    "occupation": "Tech-support, Craft-repair, Other-service, Sales, Exec-managerial, Prof-specialty, "
    "Handlers-cleaners, Machine-op-inspct, Adm-clerical, Farming-fishing, Transport-moving, Priv-house-serv, "
    "Protective-serv, Armed-Forces, ?",
    "relationship": "Wife, Own-child, Husband, Not-in-family, Other-relative, Unmarried",
    "race": "White, Asian-Pac-Islander, Amer-Indian-Eskimo, Other, Black",
    "sex": "Female, Male",
    "income": "<=50K, >50K",
}
EDGES = {
    "age": (17, 22, 26, 30, 35, 40, 45, 50, 55, 60, 65, 91),
    "capital-gain": (0, 1, 2500, 5000, 7500, 10000, 15000, 100000),
    "capital-loss": (0, 1, 1500, 1750, 2000, 2500, 5000),
    "hours-per-week": (1, 20, 30, 40, 41, 46, 51, 61, 100),
}
ORDER = (
    "age",
    "workclass",
    "education",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "income",
)
METHODS = ("prism", "workload", "privci", "mst", "prefair", "independent")


def adult_project(method: str, **plan: object) -> Project:
    """Return the Adult project for ``method``, without native-country, fnlwgt and education-num (a copy of
    education)."""
    columns = tuple(
        Column(n, "numeric", edges=tuple(map(float, EDGES[n])), integer=True)
        if n in EDGES
        else Column(n, "ordinal" if n == "education" else "categorical", categories=tuple(CATEGORIES[n].split(", ")))
        for n in ORDER
    )
    causes = ("age", "education", "occupation", "hours-per-week", "capital-gain", "marital-status")
    return Project(
        "adult",
        Schema(columns),
        Plan.from_json({"method": method, "epsilon": 1.0, "target": "income", **plan}),
        Dag(tuple((c, "income") for c in causes)),
        Roles(
            outcome=("income",),
            protected=("sex",),
            admissible=("education", "occupation", "hours-per-week"),
            inadmissible=("age", "marital-status"),
        ),
    )


def write(folder: Path) -> list[Path]:
    """Write one project file per method."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"adult-{m}.json" for m in METHODS]
    for method, path in zip(METHODS, paths, strict=True):
        path.write_text(adult_project(method).dumps(), "utf-8")
    return paths


def cold(data: Path) -> None:
    """Print the CPU seconds (user + system, including child processes) of each method's command line, and of mbi
    2.0."""
    with tempfile.TemporaryDirectory() as work:
        paths = write(Path(work))
        peer = [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "benchmarks.peer_mbi",
            str(paths[0]),
            str(data),
            f"{work}/peer.csv",
        ]
        theirs = _cpu(peer)
        print("48,842 rows × 12 columns, cold process, start to files")
        print(f"{'':<22} {'CPU s':>6} {'ratio':>7}")
        print(f"{'mbi 2.0, star':<22} {theirs:>6.2f} {1:>6.1f}x", flush=True)
        for path in paths:
            command = [sys.executable, "-m", "core", "release", str(path), "--data", str(data), "--quiet"]
            ours = _cpu([*command, "--out", str(Path(work) / path.stem)])
            print(f"{path.stem[6:]:<22} {ours:>6.2f} {theirs / ours:>6.1f}x", flush=True)


def _cpu(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def quality(data: Path, repeats: int) -> None:
    """Print the AUC on held-out real rows, one- and two-way TV, and the effect of the fence."""
    from espalier.core.evaluation import evaluate, split_holdout
    from espalier.core.release.spend import release
    from espalier.core.tables.reading import read_table
    from espalier.core.tables.table import Table

    whole = Table.encode(read_table(data), adult_project("mst").schema)
    plans: list[tuple[str, dict[str, Any]]] = [(m, {}) for m in METHODS]
    plans += [("prism", {"fair": True}), ("prism", {"regime": "causal"})]
    print("method                    ε   TSTR AUC (real)   one-way TV  two-way TV   CMI real/synthetic/model   holds")
    for epsilon in (1.0, 0.2):
        for method, extra in plans:
            rows = []
            for seed in range(repeats):
                train, test = split_holdout(whole, 0.2, np.random.default_rng(seed))
                project = adult_project(method, epsilon=epsilon, **extra)
                made = release(project, train)
                r = evaluate(project, train, made.synthetic, model=made.model, holdout=test).to_json()
                f = r["fairness"]
                rows.append(
                    [
                        r["tstr"]["auc_synthetic"],
                        r["tstr"]["auc_real"],
                        r["fidelity"]["one_way_tv"],
                        r["fidelity"]["two_way_tv"],
                        f["cmi_real"],
                        f["cmi_synthetic"],
                        f["cmi_model"],
                        float(all(s.holds(made.edges) for s in made.plan_frame.separations)),
                    ]
                )
            m, sd = np.mean(rows, axis=0), np.std(rows, axis=0)
            name = method + "".join(f" {k}={v}" for k, v in extra.items())
            print(
                f"{name:<24} {epsilon:<4g} {m[0]:.4f} ± {sd[0]:.4f} ({m[1]:.3f})  {m[2]:.4f}      {m[3]:.4f}      "
                f"{m[4]:.4f} / {m[5]:.4f} / {m[6]:.1e}      {'yes' if m[7] == 1 else 'NO'}",
                flush=True,
            )


def side_by_side(data: Path) -> None:
    """Print the seconds that the Compare page takes for six methods at ε = 1, including the evaluation, and the
    methods' figures.
    """
    from espalier.core.compare.plans import compare
    from espalier.core.tables.reading import read_table
    from espalier.core.tables.table import Table

    table = Table.encode(read_table(data), adult_project("mst").schema)
    start, cpu = time.perf_counter(), time.process_time()
    found = compare({m: adult_project(m) for m in METHODS}, table)
    seconds = f"{time.perf_counter() - start:.1f} s (CPU {time.process_time() - cpu:.1f} s)"
    print(f"{len(found)} plans on {table.rows:,} rows in {seconds}")
    for o in found:
        print(f"{o.name:<12} " + "  ".join(f"{k} {v:.3f}" for k, v in o.figures.items() if v is not None))


def classifiers(data: Path) -> None:
    """Print the seconds that five classifiers take for all targets (at most 20; Adult has twelve), and the classifiers'
    mean figures."""
    from espalier.core.evaluation.downstream import many_targets
    from espalier.core.release import release
    from espalier.core.tables.reading import read_table
    from espalier.core.tables.table import Table

    table = Table.encode(read_table(data), adult_project("prism").schema)
    made = release(adult_project("prism"), table)
    start, cpu = time.perf_counter(), time.process_time()
    found = many_targets(table, made.synthetic, None, np.random.default_rng(0))
    seconds = f"{time.perf_counter() - start:.1f} s (CPU {time.process_time() - cpu:.1f} s)"
    print(f"{len(found.tasks)} tasks, trained on real and on synthetic rows, in {seconds}")
    print("  ".join(f"{name} {value:.3f}" for name, value in found.macro().items()))


PREVIEWED: dict[str, dict[str, object]] = {
    **{m: {"method": m} for m in (*METHODS, "privbayes")},
    "prism causal": {"method": "prism", "regime": "causal"},
    "prism graphical": {"method": "prism", "regime": "graphical"},
    "prism, S by a logistic fit": {"method": "prism", "selector": "logistic"},
    "prism, three-way": {"method": "prism", "three_way": 20},
    "privci, width 2": {"method": "privci", "width": 2},
    "privci, explained, compressed": {"method": "privci", "explain": 0.1, "compress": True},
    "mst, private figures": {"method": "mst", "private_evaluation": 0.1},
}


def previews() -> None:
    """Print the median and the slowest of seven previews of each plan, for 48,842 rows. No rows are read."""
    from espalier.core.planning.preview import preview

    for name, changes in PREVIEWED.items():
        project = adult_project("mst").with_plan(**changes)
        seconds = []
        for _ in range(7):
            start = time.perf_counter()
            preview(project, 48_842)
            seconds.append(time.perf_counter() - start)
        print(f"{name:<32} {1000 * sorted(seconds)[3]:6.1f} ms, slowest {1000 * max(seconds):.1f} ms", flush=True)


def copies(data: Path, repeats: int) -> None:
    """Print CPU seconds of 20 copies: perturb and fit counts, draw rows, pack the text, save models."""
    from espalier.core.analysis.study import Study
    from espalier.core.release import release
    from espalier.core.release.files import copy_files
    from espalier.core.tables.reading import read_table
    from espalier.core.tables.table import Table

    for method in ("prism", "mst"):
        project = adult_project(method)
        made = release(project, Table.encode(read_table(data), project.schema))
        found = []
        for _ in range(repeats):
            study, start = Study.of(made), time.process_time()
            packed = sum(len(text) for _, text in copy_files(project, study.more(20, np.random.default_rng())))
            found.append(time.process_time() - start)
        print(
            f"{method:<6} {min(found):.1f}–{max(found):.1f} CPU s in {repeats} runs, {packed / 1e6:.1f} MB", flush=True
        )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.adult", description=__doc__)
    whats = ("quality", "cold", "compare", "copies", "classifiers", "preview", "write")
    parser.add_argument("what", nargs="?", default="quality", choices=whats)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("out/adult"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--data", type=Path, default=DATA, help="UCI Adult as one CSV with a header (48,842 rows)")
    opt = parser.parse_args()
    if opt.what not in ("preview", "write") and not opt.data.exists():
        sys.exit(
            f"{opt.data} is missing: the real data is not part of the repository. Give --data TABLE, UCI's Adult "
            "(adult.data and adult.test below one header, columns named as in this file)"
        )
    if opt.what == "write":
        print(*write(opt.folder), sep="\n")
    elif opt.what == "preview":
        previews()
    elif opt.what == "compare":
        side_by_side(opt.data)
    elif opt.what == "copies":
        copies(opt.data, opt.repeats)
    elif opt.what == "classifiers":
        classifiers(opt.data)
    elif opt.what == "cold":
        cold(opt.data)
    else:
        quality(opt.data, opt.repeats)


if __name__ == "__main__":
    main()
