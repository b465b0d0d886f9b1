"""PrivCI's experiments (§V): what the fence costs and what it preserves, over five folds × five budgets × five methods.

    python -m benchmarks.privci [PROJECT.json TABLE.csv …] [--out FOLDER] [--folds 5] [--epsilons 0.1 0.5 …]

The tables are Adult and COMPAS with the paper's columns and roles and with public bins, and further projects with their
tables. Each run releases four fifths of the rows and is evaluated on those rows and on the held-out fifth. Runs are
appended to FOLDER/runs.csv and never repeated, so the program can be interrupted and restarted. At the end, it prints
Table II next to the paper's figures, prints the properties that must hold, and writes the plots as HTML.

Figures of one run: q (Σ ‖c − c_x c_y/n‖₁ over the best tree of measured pairs, in rows of the training part), KL and TV
(mean over pairs), AUC (logistic regression on held-out rows), CMI of the synthetic rows with its 95 % sampling floor,
CMI of the model, EO (equalized odds difference on held-out rows).
"""

from __future__ import annotations

import argparse
import csv
import itertools
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.adult import DATA as ADULT
from benchmarks.fair_tables import COMPAS, adult, compas
from espalier.core.project.file import Project
from espalier.core.tables.reading import read_table
from espalier.core.tables.table import Table

EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0)
METHODS: dict[str, dict[str, object]] = {
    "MST": {"method": "mst", "fair": None},
    "MST thicker": {"method": "mst", "fair": None, "width": 2},
    "PreFair": {"method": "prefair", "fair": None},
    "PrivCI": {"method": "privci", "fair": None},
    "PrivCI thicker": {"method": "privci", "fair": None, "width": 2},
    "PRISM + fair": {"method": "prism", "fair": True, "regime": "predictive"},
    "Workload + fair": {"method": "workload", "fair": True},
}
FIGURES = ("q", "KL", "TV", "AUC", "CMI", "EO")
UP = {"q", "AUC"}
"""Figures for which larger values are better."""
PAPER = {
    "adult": {
        "q": (34.7983, 0.6542),
        "KL": (0.0164, 0.5837),
        "TV": (-0.0007, 0.2712),
        "AUC": (0.0, 0.4895),
        "CMI": (0.0, 0.5),
        "EO": (0.0029, 0.7288),
    },
    "compas": {
        "q": (331.1423, 0.0),
        "KL": (-0.0464, 0.0019),
        "TV": (-0.0108, 0.0002),
        "AUC": (0.0885, 0.0001),
        "CMI": (0.0, 0.2209),
        "EO": (0.0125, 0.8343),
    },
}
"""Table II: the mean paired difference PrivCI − PreFair and its one-sided p."""
HEAD = (
    "data",
    "method",
    "epsilon",
    "fold",
    *FIGURES,
    "CMI_floor",
    "CMI_chance",
    "CMI_model",
    "holds",
    "seconds",
)
Row = dict[str, str]


def folds(table: Table, many: int, seed: int = 0) -> Iterator[tuple[Table, Table]]:
    """Yield (training part, held-out part) for each of ``many`` random folds."""
    fold = np.random.default_rng(seed).permutation(table.rows) % many
    for i in range(many):
        yield table.take(fold != i), table.take(fold == i)


def one_run(project: Project, train: Table, test: Table) -> Row:
    """Release from ``train`` and evaluate."""
    from espalier.core.evaluation import evaluate
    from espalier.core.evaluation.quality import tree_quality
    from espalier.core.release.spend import release

    start = time.perf_counter()
    made = release(project, train)
    seconds = time.perf_counter() - start
    found = evaluate(project, train, made.synthetic, model=made.model, holdout=test)
    fair = found.fairness
    assert fair is not None
    value = {
        "q": tree_quality(train, made.edges),
        "KL": found.fidelity.kl,
        "TV": found.fidelity.two_way_tv,
        "AUC": found.utility.auc_synthetic,
        "CMI": fair.cmi_synthetic,
        "EO": fair.equalized_odds_difference,
        "CMI_floor": fair.cmi_synthetic_floor,
        "CMI_chance": fair.cmi_synthetic_chance,
        "CMI_model": fair.cmi_model,
        "holds": float(all(s.holds(made.edges) for s in made.plan_frame.separations)),
        "seconds": seconds,
    }
    return {k: "" if v is None else f"{v:.8g}" for k, v in value.items()}


def sweep(data: Sequence[tuple[str, Project, Path]], out: Path, many: int, epsilons: Sequence[float]) -> list[Row]:
    """Make all runs that are not in ``out`` yet, with a line of progress for each, and return the contents of
    ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / "runs.csv"
    rows = _read(path)
    done = {(r["data"], r["method"], float(r["epsilon"]), int(r["fold"])) for r in rows}
    wanted = list(itertools.product([d[0] for d in data], epsilons, range(many), METHODS))
    left = sum((name, method, e, fold) not in done for name, e, fold, method in wanted)
    started, ran = time.perf_counter(), 0
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, HEAD)
        if not rows:
            writer.writeheader()
        for name, project, table in data:
            whole = Table.encode(read_table(table), project.schema)
            for fold, (train, test) in enumerate(folds(whole, many)):
                for epsilon, (method, plan) in itertools.product(epsilons, METHODS.items()):
                    if (name, method, epsilon, fold) in done:
                        continue
                    found = one_run(project.with_plan(epsilon=epsilon, **plan), train, test)
                    key = {"data": name, "method": method, "epsilon": f"{epsilon:g}", "fold": str(fold)}
                    rows.append({**key, **found})
                    writer.writerow(rows[-1])
                    file.flush()
                    ran += 1
                    _progress(ran, left, started, f"{name} ε = {epsilon:g} fold {fold + 1} {method}")
    if left:
        print(file=sys.stderr)
    names = {d[0] for d in data}
    return [r for r in rows if r["data"] in names]


def _read(path: Path) -> list[Row]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        found = csv.DictReader(file)
        if tuple(found.fieldnames or ()) != HEAD:
            sys.exit(f"{path} has columns that this benchmark does not write: name another folder with --out")
        return [dict(r) for r in found if all(r[k] not in ("", None) for k in HEAD[:4])]


def _progress(done: int, left: int, started: float, what: str) -> None:
    rest = (time.perf_counter() - started) / done * (left - done)
    bar = "█" * (24 * done // left) + "·" * (24 - 24 * done // left)
    end = "" if sys.stderr.isatty() else "\n" if done % 50 == 0 or done == left else None
    if end is not None:
        print(f"\r{bar} {done}/{left}, {rest / 60:.1f} min left   {what:<48}", end=end, file=sys.stderr, flush=True)


def values(rows: Sequence[Row], data: str, method: str, figure: str, epsilon: float | None = None) -> np.ndarray:
    """Return one figure over folds (and budgets), in a fixed order for pairing methods."""
    some = [r for r in rows if r["data"] == data and r["method"] == method]
    if epsilon is not None:
        some = [r for r in some if float(r["epsilon"]) == epsilon]
    some.sort(key=lambda r: (float(r["epsilon"]), int(r["fold"])))
    return np.array([float(r[figure]) if r[figure] else np.nan for r in some])


def paired(ours: np.ndarray, theirs: np.ndarray, figure: str) -> tuple[float, float]:
    """Return the mean of ours − theirs, and the one-sided Wilcoxon signed-rank p-value for "ours is better"."""
    from scipy.stats import wilcoxon

    difference = (ours - theirs)[~np.isnan(ours - theirs)]
    if not difference.size or not difference.any():
        return 0.0, 0.5
    side = "greater" if figure in UP else "less"
    return float(difference.mean()), float(wilcoxon(difference, alternative=side, zero_method="zsplit").pvalue)


def table_two(rows: Sequence[Row], names: Sequence[str]) -> None:
    """Print the paper's Table II: PrivCI − PreFair over folds and budgets, next to its own figures."""
    print(
        "\nTable II: PrivCI − PreFair, mean paired difference over folds and budgets, one-sided Wilcoxon p (✓ < 0.05)"
    )
    for name in names:
        n = len(values(rows, name, "PrivCI", "q"))
        print(f"\n{name} ({n} pairs){'':<{24 - len(name)}}here{'':<22}paper")
        for figure in FIGURES:
            mean, p = paired(values(rows, name, "PrivCI", figure), values(rows, name, "PreFair", figure), figure)
            there = PAPER.get(name, {}).get(figure)
            beside = "" if there is None else f"{there[0]:+12.4f}  p {there[1]:.4f} {'✓' if there[1] < 0.05 else ' '}"
            print(f"  {figure:<12}{mean:+14.4f}  p {p:.4f} {'✓' if p < 0.05 else ' '}   {beside}")


def by_method(rows: Sequence[Row], names: Sequence[str], epsilons: Sequence[float]) -> None:
    """Print means over the folds."""
    for name, epsilon in itertools.product(names, epsilons):
        print(f"\n{name}, ε = {epsilon:g}{'':<8}" + "".join(f"{f:>11}" for f in (*FIGURES, "floor", "seconds")))
        for method in METHODS:
            means = [
                float(np.nanmean(values(rows, name, method, f, epsilon))) for f in (*FIGURES, "CMI_floor", "seconds")
            ]
            print(f"  {method:<20}" + "".join(f"{m:>11.4f}" if abs(m) < 1000 else f"{m:>11.0f}" for m in means))


def must_hold(rows: Sequence[Row], names: Sequence[str]) -> None:
    """Print whether separations hold in every run, the model's CMI, the synthetic CMI and its floor, and the gain of
    wider cliques."""
    from scipy.stats import binom

    fenced = [r for r in rows if not r["method"].startswith("MST")]
    worst = max(float(r["CMI_model"]) for r in fenced if r["CMI_model"])
    above = sum(float(r["CMI"]) > float(r["CMI_floor"]) for r in fenced)
    most = int(binom.ppf(0.99, len(fenced), 0.05))
    holds = sum(float(r["holds"]) == 1 for r in fenced)
    print(f"\nseparations hold in {holds} of {len(fenced)} fenced runs; largest model CMI {worst:.1e} nats")
    print(
        f"synthetic CMI above its 95 % sampling floor in {above} of {len(fenced)} "
        f"({100 * above / len(fenced):.1f} %; chance alone stays at {most} or fewer 99 times in 100)"
    )
    for name in names:
        if not len(values(rows, name, "MST", "TV", 1.0)):
            continue
        gap, closed, won = (
            float(np.mean(values(rows, name, a, "TV", 1.0) - values(rows, name, b, "TV", 1.0)))
            for a, b in (("PrivCI", "MST"), ("PrivCI", "PrivCI thicker"), ("PrivCI thicker", "MST"))
        )
        auc = float(
            np.mean(values(rows, name, "PrivCI thicker", "AUC", 1.0) - values(rows, name, "PrivCI", "AUC", 1.0))
        )
        print(
            f"{name}, ε = 1: TV of PrivCI is {gap:+.4f} from MST's, width 2 takes {closed:.4f} off it "
            f"(then {won:+.4f} from MST's); AUC {auc:+.4f}"
        )


def draw(rows: Sequence[Row], names: Sequence[str], epsilons: Sequence[float], out: Path) -> list[Path]:
    """Write one HTML plot per data set: every figure by ε, with a line for each method and bars of ± one standard
    deviation."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    units = {
        "q": "q (rows)",
        "KL": "KL (nats)",
        "TV": "total variation",
        "AUC": "AUC",
        "CMI": "CMI (nats)",
        "EO": "equalized odds difference",
    }
    colors = ("#8796a5", "#5b6b79", "#c58a2b", "#3f9a6b", "#1f6f4a", "#5b8fc7", "#7a5fa8")
    marks = ("circle", "circle-open", "diamond", "square", "square-open", "triangle-up", "cross")
    paths = []
    for name in names:
        figure = make_subplots(2, 3, subplot_titles=[units[f] for f in FIGURES], horizontal_spacing=0.08)
        for (i, f), (m, color, mark) in itertools.product(enumerate(FIGURES), zip(METHODS, colors, marks, strict=True)):
            found = [values(rows, name, m, f, e) for e in epsilons]
            figure.add_trace(
                go.Scatter(
                    x=list(epsilons),
                    y=[float(np.nanmean(v)) for v in found],
                    name=m,
                    legendgroup=m,
                    showlegend=i == 0,
                    mode="lines+markers",
                    line={"color": color},
                    marker={"symbol": mark, "size": 8},
                    error_y={"array": [float(np.nanstd(v)) for v in found], "thickness": 1},
                ),
                row=i // 3 + 1,
                col=i % 3 + 1,
            )
        figure.update_xaxes(type="log", title="ε", tickvals=list(epsilons), ticktext=[f"{e:g}" for e in epsilons])
        figure.update_layout(title=f"{name}: means over folds, bars one standard deviation", height=760, width=1280)
        paths.append(out / f"{name}.html")
        figure.write_html(paths[-1], include_plotlyjs=True)
    return paths


def given(names: Sequence[str]) -> list[tuple[str, Project, Path]]:
    """Return the projects and tables on the command line, as pairs."""
    if len(names) % 2:
        sys.exit("name a table after each project: PROJECT.json TABLE.csv …")
    found = []
    for project, table in zip(names[::2], names[1::2], strict=True):
        opened = Project.load(project)
        if not (opened.roles.outcome and opened.roles.protected):
            sys.exit(f"{project} names no outcome or no protected column: a fence needs both")
        target = opened.plan.target if opened.plan.target in opened.roles.outcome else opened.roles.outcome[0]
        plan = replace(opened.plan, target=target, strict=False)
        found.append((opened.name, replace(opened, plan=plan), Path(table)))
    return found


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.privci", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("more", nargs="*", help="further projects, each followed by its table")
    parser.add_argument("--out", type=Path, default=Path("out/privci"))
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--epsilons", type=float, nargs="+", default=list(EPSILONS))
    opt = parser.parse_args()
    if opt.folds < 2:
        sys.exit("give at least two folds: one is held out for evaluation, the others are released")
    data = [d for d in (("adult", adult(), ADULT), ("compas", compas(), COMPAS)) if d[2].exists()]
    if len(data) < 2:
        print(f"{ADULT.parent} lacks a table of the paper, which is not part of the repository", file=sys.stderr)
    data += given(opt.more)
    if not data:
        sys.exit("there is no table to run on: name PROJECT.json and TABLE.csv")
    rows = sweep(data, opt.out, opt.folds, opt.epsilons)
    names = [d[0] for d in data]
    by_method(rows, names, opt.epsilons)
    table_two(rows, names)
    must_hold(rows, names)
    print("\n" + "\n".join(map(str, [opt.out / "runs.csv", *draw(rows, names, opt.epsilons, opt.out)])))


if __name__ == "__main__":
    main()
