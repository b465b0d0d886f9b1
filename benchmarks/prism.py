"""PRISM's tables and figures, compared with the paper's: `python -m benchmarks.prism [scm adult allocation folds]`.

    --quick            three seeds, ε = 1 only
    --out FOLDER       a CSV of every run and one Plotly figure per benchmark (default: out/prism)

- **scm** (tables 1 and 2, figures 1 and 2): A, B ∈ {0, 1, 2} cause Y; ten children copy Y with errors; ten noise
  columns. Spurious shift: the children break at test time. Marginal shift: A and B move to higher values, and the
  children keep working. With the paper's definition, every feature set with the children reaches an AUC of 1.000. A
  variant with three children that are wrong in 35 % of rows therefore distinguishes the methods. The paper writes η ~
  N(0, 0.5) without stating whether 0.5 is the variance; here it is the variance (`--eta-sd` for the other reading).
- **adult** (tables 3 and 4, figure 3): as prepared in the paper (8 quantile bins, in which capital-gain and
  capital-loss collapse to one value), and with public hand-made bins; 80/20 stratified, one-hot logistic regression.
- **allocation** (table 5, C.5): n = 400, oracle weights, the paper's naive-Bayes backend.
- **folds**: Adult and COMPAS, five folds, prism, mst and privbayes at ε = 1.

Every private figure is at δ = 1/n². `basic` rows use the paper's own accounting, to separate the gain of better
accounting from the gain of a better design.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import wilcoxon
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, train_test_split

from benchmarks import adult
from benchmarks.common import auc, fit_auc, one_hot
from espalier.core.graph.dag import Dag
from espalier.core.methods.select.allocation import BudgetSplit
from espalier.core.models.graphical import SMOOTHING, estimate
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.unit import Unit
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release.spend import release
from espalier.core.tables.table import Table

DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
EPSILONS = (0.2, 0.5, 1.0, 2.0, 4.0)
Codes = dict[str, NDArray[np.uint8]]
Row = dict[str, Any]

PAPER = {
    "scm spurious": {
        "prism causal uniform": 0.733,
        "prism causal optimal": 0.732,
        "mst": 0.519,
        "prism graphical optimal": 0.513,
        "prism graphical uniform": 0.513,
        "star, all features": 0.512,
        "independent": 0.502,
        "privbayes": 0.501,
        "corr top-8 (not private)": 0.490,
    },
    "scm marginal": {
        "mst": 1.000,
        "prism graphical uniform": 1.000,
        "prism graphical optimal": 1.000,
        "star, all features": 1.000,
        "privbayes": 0.977,
        "corr top-8 (not private)": 0.942,
        "prism causal uniform": 0.713,
        "prism causal optimal": 0.710,
        "independent": 0.465,
    },
    "adult, quantile bins": {
        "star, all features": 0.875,
        "prism k=8 optimal": 0.874,
        "prism k=8 uniform": 0.874,
        "corr top-8 (not private)": 0.874,
        "privbayes": 0.831,
        "mst": 0.792,
        "independent": 0.519,
    },
    "allocation": {"basic optimal": 0.900, "basic uniform": 0.769},
}
"""AUC at ε = 1, as printed in the paper (tables 1, 2, 3 and 5)."""


# --- the SCM -----------------------------------------------------------------------------------------------------


def scm(rng: np.random.Generator, n: int, flip: float, high: bool, sd: float, children: int) -> Codes:
    """Return ``n`` rows of the SCM; ``high`` shifts A and B upward."""
    p = [0.1, 0.2, 0.7] if high else [1 / 3] * 3
    a, b = (rng.choice(3, n, p=p) for _ in "AB")
    odds = 0.9 * (a - 1) + 0.9 * (b - 1) + rng.normal(0, sd, n)
    y = rng.random(n) < 1 / (1 + np.exp(-odds))
    out: dict[str, NDArray[Any]] = {"A": a, "B": b}
    out |= {f"S{i}": y ^ (rng.random(n) < flip) for i in range(1, children + 1)}
    out |= {f"N{i}": rng.integers(0, 4, n) for i in range(1, 11)}
    out["Y"] = y
    return {k: v.astype(np.uint8) for k, v in out.items()}


def scm_project(children: int, **plan: Any) -> Project:
    """Return the SCM's schema and true graph."""
    names = [f"S{i}" for i in range(1, children + 1)]
    sizes = {"A": 3, "B": 3, **dict.fromkeys(names, 2), **{f"N{i}": 4 for i in range(1, 11)}, "Y": 2}
    edges = (("A", "Y"), ("B", "Y"), *(("Y", s) for s in names))
    return Project(
        "scm", _schema(sizes), Plan.from_json({"method": "prism", "epsilon": 1.0, "target": "Y", **plan}), Dag(edges)
    )


def scm_rows(seeds: int, epsilons: Iterable[float], sd: float) -> Iterator[Row]:
    """Yield TSTR AUC on 50,000 test rows under each shift, and the non-private model's AUC on the same draws."""
    settings = [
        ("scm spurious", 10, 0.10, 0.50, False),
        ("scm marginal", 10, 0.15, 0.15, True),
        ("scm marginal, 3 noisy children", 3, 0.35, 0.35, True),
    ]
    for (name, children, flip, flip_test, high), seed in itertools.product(settings, range(seeds)):
        rng = np.random.default_rng(seed)
        train = scm(rng, 5000, flip, False, sd, children)
        test = scm(rng, 50_000, flip_test, high, sd, children)
        project = scm_project(children)
        table, sizes = Table(project.schema, train, 5000), project.schema.sizes

        def judge(
            codes: Mapping[str, NDArray[Any]], names: list[str] | None = None, sizes: Any = sizes, test: Any = test
        ) -> dict[str, float]:
            return {"auc": fit_auc(codes, test, sizes, "Y", names)}

        head = {"benchmark": name, "seed": seed}
        yield {**head, "method": "real rows, A and B only", "epsilon": None, **judge(train, ["A", "B"])}
        yield {**head, "method": "real rows, all columns", "epsilon": None, **judge(train)}
        for epsilon in epsilons:
            for method, make in _methods(project, table, ("causal", "graphical"), 8, epsilon).items():
                yield {**head, "method": method, "epsilon": epsilon, **judge(make())}


# --- Adult -------------------------------------------------------------------------------------------------------


def adult_quantile_bins() -> Table:
    """Return Adult as the paper prepares it: fnlwgt and native-country dropped, 8 quantile bins, duplicates dropped."""
    frame = pd.read_csv(DATA / "adult_private_pgm.csv.gz").drop(columns=["fnlwgt", "native-country"])
    for name in ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week"):
        frame[name] = pd.qcut(frame[name], 8, labels=False, duplicates="drop")
    frame = frame.rename(columns={"income>50K": "income"})
    names = [str(name) for name in frame]
    schema = _schema({name: int(frame[name].max()) + 1 for name in names})
    return Table(schema, {name: frame[name].to_numpy().astype(np.uint8) for name in names}, len(frame))


def adult_public_bins() -> Table:
    """Return Adult with the public bins of `benchmarks.adult`: gains and losses are kept."""
    from espalier.core.tables.reading import read_table

    return Table.encode(read_table(adult.DATA), adult.adult_project("mst").schema)


def adult_rows(seeds: int, epsilons: Iterable[float]) -> Iterator[Row]:
    """Yield AUC, accuracy, one-way L1 and mean two-way TV on ``seeds`` stratified 80/20 splits."""
    for name, load in (("adult, quantile bins", adult_quantile_bins), ("adult, public bins", adult_public_bins)):
        whole = load()
        for seed in range(seeds):
            rows = np.arange(whole.rows)
            train, test = train_test_split(rows, test_size=0.2, stratify=whole.codes["income"], random_state=seed)
            yield from _adult_split(name, seed, whole.take(train), whole.take(test), epsilons)


def _adult_split(name: str, seed: int, train: Table, test: Table, epsilons: Iterable[float]) -> Iterator[Row]:
    head = {"benchmark": name, "seed": seed}
    yield {**head, "method": "real rows", "epsilon": None, **_judge(train.codes, train, test, "income")}
    project = Project("adult", train.schema, Plan("prism", 1.0, target="income"))
    for epsilon in epsilons:
        methods = _methods(project, train, (), 8, epsilon)
        if epsilon != 1:  # as in the paper; the other methods only at ε = 1
            methods = {m: f for m, f in methods.items() if m.startswith(("prism", "star")) and "basic" not in m}
        for method, make in methods.items():
            yield {**head, "method": method, "epsilon": epsilon, **_judge(make(), train, test, "income")}


def _judge(codes: Mapping[str, NDArray[Any]], train: Table, test: Table, target: str) -> dict[str, float]:
    """Return the figures on ``test`` of a logistic regression on ``codes``, and the fidelity of ``codes`` to
    ``train``.
    """
    sizes, names = train.schema.sizes, [n for n in train.schema.names if n != target]
    model = LogisticRegression(max_iter=300).fit(one_hot(codes, sizes, names), codes[target])
    x = one_hot(test.codes, sizes, names)
    made = Table(train.schema, codes, len(codes[target]))

    def tv(clique: tuple[str, ...]) -> float:
        return 0.5 * float(np.abs(made.count(clique) / made.rows - train.count(clique) / train.rows).sum())

    return {
        "auc": auc(test.codes[target], model.decision_function(x)),
        "accuracy": float(np.mean(model.predict(x) == test.codes[target])),
        "one_way_l1": 2 * float(np.mean([tv((n,)) for n in train.schema.names])),
        "two_way_tv": float(np.mean([tv(pair) for pair in itertools.combinations(train.schema.names, 2)])),
    }


# --- methods -----------------------------------------------------------------------------------------------------


def _methods(
    project: Project, table: Table, regimes: tuple[str, ...], k: int, epsilon: float
) -> dict[str, Callable[[], Mapping[str, NDArray[Any]]]]:
    """Return functions that make each method's synthetic codes."""
    target = project.plan.target or ""

    def plan(**changes: Any) -> Callable[[], Mapping[str, NDArray[Any]]]:
        return lambda: release(project.with_plan(epsilon=epsilon, **changes), table).codes

    def top() -> Mapping[str, NDArray[Any]]:
        drawn = Dag(tuple((name, target) for name in correlated(table, target, k)))
        chosen = Project("top", project.schema, project.plan, drawn).with_plan(epsilon=epsilon, regime="causal")
        return release(chosen, table).codes

    def privbayes(**changes: Any) -> Callable[[], Mapping[str, NDArray[Any]]]:
        without_graph = Project("learned", project.schema, project.plan)
        return lambda: release(without_graph.with_plan(epsilon=epsilon, method="privbayes", **changes), table).codes

    out: dict[str, Callable[[], Mapping[str, NDArray[Any]]]] = {}
    for regime, rule in itertools.product(regimes, ("optimal", "uniform")):
        out[f"prism {regime} {rule}"] = plan(regime=regime, allocation=rule)
    out["prism predictive"] = plan()
    for rule in ("optimal", "uniform"):
        out[f"prism k={k} {rule}"] = plan(features=k, allocation=rule)
    out["star, all features"] = lambda: star(project.with_plan(epsilon=epsilon), table)
    if epsilon == 1:
        for regime in regimes:
            out[f"prism {regime}, basic"] = plan(regime=regime, accounting="basic")
        out["prism predictive, basic"] = plan(accounting="basic")
        out["mst, basic"] = plan(method="mst", accounting="basic")
        out["privbayes, basic"] = privbayes(accounting="basic")
        out["star, all features, basic"] = lambda: star(project.with_plan(epsilon=1.0, accounting="basic"), table)
    out[f"corr top-{k} (not private)"] = top
    out["mst"] = plan(method="mst")
    out["privbayes"] = privbayes()
    out["independent"] = plan(method="independent")
    return out


def star(project: Project, table: Table) -> Mapping[str, NDArray[Any]]:
    """Run the paper's naive Bayes over all features: a tenth for one-way counts, and the rest for every (X, Y)."""
    plan, sizes, target = project.plan, project.schema.sizes, project.plan.target or ""
    budget = Budget.of(plan, table.rows)
    curator = PrivateCurator(table, Unit(), budget, plan.max_cells)
    split = BudgetSplit.of(plan, budget, sizes)
    ones = curator.measure(split.split(0.1, [(name,) for name in sizes]))
    pairs = [project.schema.clique((name, target)) for name in sizes if name != target and sizes[name] > 1]
    found = [*ones, *curator.measure(split.split(0.9, pairs))]
    return estimate(sizes, found, float(table.rows), smoothing=SMOOTHING).sample(table.rows, np.random.default_rng())


def correlated(table: Table, target: str, k: int) -> list[str]:
    """Return the ``k`` columns most associated with the target by χ² on the real rows, which is not private."""

    def chi2(name: str) -> float:
        c = table.count((name, target)).astype(float)
        e = np.outer(c.sum(1), c.sum(0)) / c.sum()
        return float(np.sum(np.divide((c - e) ** 2, e, out=np.zeros_like(e), where=e > 0)))

    return sorted((n for n in table.schema.names if n != target), key=chi2, reverse=True)[:k]


# --- C.5 ---------------------------------------------------------------------------------------------------------

FLOOR = 10.0
"""Floor, in rows, to which noisy counts are raised before logarithms are taken. σ is above 100 under basic accounting.
The gap between optimal and uniform depends on this floor: 0.05 to 0.08 for floors of 1 to 10."""


def allocation_rows(seeds: int) -> Iterator[Row]:
    """Yield the figures of C.5: four strong and sixteen weak features, n = 400, oracle weights, naive Bayes from noisy
    pairs.
    """
    names = [f"X{i}" for i in range(20)]
    sizes = {"Y": 2, **dict.fromkeys(names, 2)}
    p1 = np.array([0.9] * 4 + [0.55] * 16)
    oracle = (2 * p1 - 1) ** 2
    weights = [float(oracle.mean()), *oracle.tolist()]  # the mean of P(Y), because the paper does not state P(Y)
    cliques = [("Y",), *(("Y", n) for n in names)]
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        y, x = _naive(rng, 400, p1)
        y_test, x_test = _naive(rng, 2000, p1)
        table = Table(_schema(sizes), {"Y": y, **{n: x[:, i] for i, n in enumerate(names)}}, 400)
        for accounting, rule in itertools.product(("basic", "zcdp"), ("optimal", "uniform", "auto")):
            plan = Plan("independent", 1.0, 1 / 400**2, allocation=rule, accounting=accounting)  # type: ignore[arg-type]
            budget = Budget.of(plan, 400)
            curator = PrivateCurator(table, Unit(), budget, 100)
            made = curator.measure(BudgetSplit.of(plan, budget, sizes).split(1.0, cliques, weights))
            score = auc(y_test, _log_odds([np.maximum(m.values, FLOOR) for m in made], x_test))
            yield {
                "benchmark": "allocation",
                "seed": seed,
                "method": f"{accounting} {rule}",
                "epsilon": 1.0,
                "auc": score,
            }


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


# --- folds -------------------------------------------------------------------------------------------------------


def fold_rows(folds: int) -> Iterator[Row]:
    """Yield the figures of prism, mst and privbayes at ε = 1 on stratified folds of Adult (public bins) and COMPAS."""
    from benchmarks.fair_tables import COMPAS, compas
    from espalier.core.tables.reading import read_table

    recidivism = Table.encode(read_table(COMPAS), compas().schema)
    for name, whole, target in (
        ("folds: adult", adult_public_bins(), "income"),
        ("folds: compas", recidivism, "is_recid"),
    ):
        cut = StratifiedKFold(5, shuffle=True, random_state=0)
        for seed, (train, test) in itertools.islice(
            enumerate(cut.split(whole.codes[target], whole.codes[target])), folds
        ):
            kept, held = whole.take(train), whole.take(test)
            here = Project(name, whole.schema, Plan("prism", 1.0, target=target))
            head = {"benchmark": name, "seed": seed, "epsilon": 1.0}
            yield {**head, "method": "real rows", "epsilon": None, **_judge(kept.codes, kept, held, target)}
            for method in ("prism", "mst", "privbayes"):
                made = release(here.with_plan(method=method), kept)
                yield {**head, "method": method, **_judge(made.codes, kept, held, target)}


# --- printing ----------------------------------------------------------------------------------------------------


def _schema(sizes: Mapping[str, int]) -> Schema:
    return Schema(tuple(Column(n, "categorical", tuple(map(str, range(k)))) for n, k in sizes.items()))


def collect(rows: Iterable[Row], path: Path) -> pd.DataFrame:
    """Run the benchmarks, write each run to ``path`` when it ends, and print a line of progress."""
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = ("benchmark", "seed", "method", "epsilon", "auc", "accuracy", "one_way_l1", "two_way_tv")
    found, start = [], time.time()
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        for row in rows:
            writer.writerow(row)
            file.flush()
            found.append(row)
            print(
                f"\r{len(found)} runs, {time.time() - start:.0f} s: {row['benchmark']}, seed {row['seed']}   ",
                end="",
                file=sys.stderr,
                flush=True,
            )
    print(file=sys.stderr)
    return pd.DataFrame(found, columns=columns)


def show(results: pd.DataFrame, folder: Path) -> None:
    """Print one table and one figure per benchmark."""
    for benchmark, part in results.groupby("benchmark", sort=False):
        print(f"\n## {benchmark}, ε = 1 (mean and 95 % interval over {part['seed'].nunique()} seeds)\n")
        extra = [c for c in ("accuracy", "one_way_l1", "two_way_tv") if part[c].notna().any()]
        print("| method | AUC | paper |" + "".join(f" {c.replace('_', ' ')} |" for c in extra))
        print("| --- | --- | --- |" + " --- |" * len(extra))
        at_one = part[part["epsilon"].isna() | (part["epsilon"] == 1)]
        for method, runs in at_one.groupby("method", sort=False):
            paper = PAPER.get(str(benchmark), {}).get(str(method))
            cells = "".join(f" {runs[c].mean():.4f} |" for c in extra)
            print(f"| {method} | {_interval(runs['auc'])} | {'' if paper is None else f'{paper:.3f}'} |{cells}")
        if len(part["epsilon"].dropna().unique()) > 1:
            _sweep(part)
        _paired(part)
        _figure(str(benchmark), part, folder)


def _interval(values: pd.Series) -> str:
    return f"{values.mean():.4f} ± {1.96 * values.std(ddof=1) / np.sqrt(len(values)):.4f}"


def _sweep(part: pd.DataFrame) -> None:
    table = part.dropna(subset="epsilon").pivot_table(index="method", columns="epsilon", values="auc", sort=False)
    print("\nAUC by ε\n\n| method |" + "".join(f" {e:g} |" for e in table.columns))
    print("| --- |" + " --- |" * len(table.columns))
    for method, values in table.dropna().iterrows():
        print(f"| {method} |" + "".join(f" {v:.4f} |" for v in values))


def _paired(part: pd.DataFrame) -> None:
    """Print the differences between prism and every other method on the same draws, at ε = 1."""
    at_one = part[part["epsilon"] == 1].pivot_table(index="seed", columns="method", values="auc", sort=False)
    ours = next((m for m in ("prism predictive", "prism") if m in at_one), None)
    if ours is None or len(at_one) < 3:
        return
    print(f"\n{ours} minus each method, paired (one-sided Wilcoxon p)\n")
    for method in at_one.columns:
        if method != ours and "basic" not in str(method):
            less = (at_one[ours] - at_one[method]).dropna()
            p = wilcoxon(less, alternative="greater").pvalue if (less != 0).any() else 1.0
            print(f"- {method}: {less.mean():+.4f}, p = {p:.4f}")


def _figure(benchmark: str, part: pd.DataFrame, folder: Path) -> None:
    import plotly.graph_objects as go

    figure = go.Figure()
    for method, runs in part.groupby("method", sort=False):
        if runs["epsilon"].isna().all():
            figure.add_hline(runs["auc"].mean(), line_dash="dot", annotation_text=str(method))
            continue
        by = runs.groupby("epsilon")["auc"]
        half: Any = 1.96 * by.std(ddof=1) / np.sqrt(by.count())
        figure.add_scatter(
            x=by.mean().index, y=by.mean(), error_y={"array": half}, name=str(method), mode="lines+markers"
        )
    for method, value in PAPER.get(benchmark, {}).items():
        figure.add_scatter(
            x=[1.0], y=[value], mode="markers", marker_symbol="x", name=f"paper: {method}", visible="legendonly"
        )
    figure.update_layout(title=benchmark, template="plotly_white")
    figure.update_xaxes(title="privacy loss ε", type="log", tickvals=EPSILONS)
    figure.update_yaxes(title="AUC, trained on synthetic, tested on real rows")
    name = f"{zlib.crc32(benchmark.encode()):08x}" if not benchmark.isascii() else benchmark.replace(" ", "-")
    figure.write_html(folder / f"{name.replace(',', '').replace(':', '')}.html", include_plotlyjs=True)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.prism", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="*", default=["scm", "adult", "allocation", "folds"])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--eta-sd", type=float, default=np.sqrt(0.5))
    parser.add_argument("--out", type=Path, default=Path("out/prism"))
    opt = parser.parse_args()
    seeds, epsilons = (3, (1.0,)) if opt.quick else (opt.seeds, EPSILONS)
    runs = {
        "scm": lambda: scm_rows(seeds, epsilons, opt.eta_sd),
        "adult": lambda: adult_rows(seeds, epsilons),
        "allocation": lambda: allocation_rows(40 * seeds),
        "folds": lambda: fold_rows(min(seeds, 5)),
    }
    if odd := set(opt.what) - set(runs):
        parser.error(f"{sorted(odd)[0]!r} is not one of {', '.join(runs)}")
    if {"adult", "folds"} & set(opt.what) and not DATA.exists():
        parser.error(f"{DATA} is missing: the real tables are not part of the repository; try scm or allocation")
    for what in opt.what:
        show(collect(runs[what](), opt.out / f"{what}.csv"), opt.out)


if __name__ == "__main__":
    main()
