"""The second stage for structure that pairs of columns do not show: `python -m benchmarks.high_order [PART …]`.

    --seeds N      runs per figure (default 3)
    --epsilon E …  (default 1 4)
    --neighbors replace-one
    --base METHOD (default workload)

- **characters**: accuracy of a random forest on rows of Artificial Characters that were set aside. Each run sets aside
  another of `PARTS_SET_ASIDE` parts; with `--seeds 12`, each row is set aside once. Bins are at public round numbers.
  The goal is 0.48 at ε = 1 and 0.56 at ε = 4, in 20 CPU s.
- **rules**: for XOR of 2 and 3 of ten columns, the share of synthetic rows that obey the rule. The share is 0.95 in
  real rows; the goal is 0.92. For latent classes and tree targets, the accuracy of a forest with and without the stage.
- **pairwise**: a chain, Adult, COMPAS, diabetes and insurance, where pairs carry the structure: AUC and two-way TV with
  "auto" and with the base alone, and how often the gate opened. The goal is TV ≤ 1.05 × base, and a closed gate in 9 of
  10 runs.
- **gate**: the probe's figures on the generated tables (`GENERATED`) on which its limits were set.
- **real**: accuracy of a forest on real rows of Artificial Characters, with raw numbers, by number of training rows.

Every figure is computed on a release through the curator, under add-remove with δ = 1e-5 unless stated otherwise.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.tables import CHOSEN, FOLDER, REPORTED, judge
from espalier.core.methods.embedding import Embedded
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release.artefact import Release
from espalier.core.release.spend import release
from espalier.core.tables.table import Table

DELTA = 1e-5
FOLDS = 14
PARTS_SET_ASIDE = 12
ROWS = 10_000
Codes = Mapping[str, NDArray[Any]]
EDGES: Mapping[str, tuple[float, ...]] = {
    "V1": (1, 2, 3, 4, 5, 6, 7),
    "V2": (1, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 38),
    "V3": (1, 4, 7, 10, 13, 16, 19, 22, 25, 28, 32, 36, 40, 44, 50),
    "V4": (1, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 38),
    "V5": (1, 4, 7, 10, 13, 16, 19, 22, 25, 28, 32, 36, 40, 44, 50),
    "V6": (4, 6, 8, 9, 10, 11, 12, 14, 16, 18, 20, 22, 24, 28, 34),
    "V7": (20, 24, 27, 30, 32, 34, 36, 38, 40, 42, 44, 47, 50, 54, 60),
}
"""Public round numbers that divide the columns of Artificial Characters into at most 16 bins."""


def table_of(columns: Codes, sizes: Mapping[str, int], target: str) -> Table:
    """Return a table of ordered codes with a nominal target."""
    kinds = {name: "categorical" if name == target else "ordinal" for name in sizes}
    made = tuple(Column(name, kinds[name], tuple(map(str, range(k)))) for name, k in sizes.items())  # type: ignore[arg-type]
    return Table(Schema(made), columns, len(next(iter(columns.values()))))


def characters() -> Iterator[tuple[Table, Table]]:
    """Yield Artificial Characters without one of `PARTS_SET_ASIDE` random parts (6,556 rows), together with this
    part."""
    frame = pd.read_csv(FOLDER / "artificial_characters.csv.gz")
    columns: dict[str, NDArray[Any]] = {"Class": frame["Class"].to_numpy() - 1}
    for name, edges in EDGES.items():
        columns[name] = np.searchsorted(edges, frame[name].to_numpy(), side="right")
    whole = table_of(columns, {"Class": 10, **{name: len(edges) + 1 for name, edges in EDGES.items()}}, "Class")
    order = np.random.default_rng(7).permutation(whole.rows)
    for part in range(PARTS_SET_ASIDE):
        test = order[part::PARTS_SET_ASIDE]
        yield whole.take(np.setdiff1d(order, test)), whole.take(test)


def xor(causes: int, seed: int, rows: int = ROWS) -> Table:
    """Return ten columns of eight levels. In 95 % of the rows, y states correctly whether an odd number of causes is
    high.
    """
    rng = np.random.default_rng(seed)
    columns: dict[str, NDArray[Any]] = {f"x{i}": rng.integers(0, 8, rows) for i in range(10)}
    columns["y"] = (rule(columns, causes) ^ (rng.random(rows) < 0.05)).astype(np.int64)
    return table_of(columns, {**{f"x{i}": 8 for i in range(10)}, "y": 2}, "y")


def rule(columns: Codes, causes: int) -> NDArray[np.int64]:
    """Return y without noise."""
    return np.asarray(sum((columns[f"x{i}"] >= 4).astype(np.int64) for i in range(causes)) % 2)


def latent(seed: int, rows: int = ROWS) -> Table:
    """Return twelve columns of four levels that are independent given one of nine hidden groups, three for each
    class."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 9, rows)
    columns: dict[str, NDArray[Any]] = {}
    for i in range(12):
        chance = rng.dirichlet(np.full(4, 0.5), 9)
        columns[f"x{i}"] = (rng.random(rows)[:, None] > np.cumsum(chance, axis=1)[group][:, :-1]).sum(axis=1)
    columns["y"] = group % 3
    return table_of(columns, {**{f"x{i}": 4 for i in range(12)}, "y": 3}, "y")


def tree(seed: int, rows: int = ROWS) -> Table:
    """Return eight columns of eight levels, and four classes from a random tree of depth six; 10 % of the classes are
    random."""
    rng = np.random.default_rng(seed)
    columns: dict[str, NDArray[Any]] = {f"x{i}": rng.integers(0, 8, rows) for i in range(8)}
    node = np.zeros(rows, dtype=np.int64)
    for depth in range(6):
        split, at = rng.integers(0, 8, 2**depth), rng.integers(2, 7, 2**depth)
        matrix = np.stack(list(columns.values()))
        node = 2 * node + (matrix[split[node], np.arange(rows)] >= at[node])
    y = rng.integers(0, 4, 64)[node]
    columns["y"] = np.where(rng.random(rows) < 0.1, rng.integers(0, 4, rows), y)
    return table_of(columns, {**{f"x{i}": 8 for i in range(8)}, "y": 4}, "y")


def chain(seed: int, rows: int = ROWS, columns: int = 10) -> Table:
    """Return a Markov chain of eight levels; y depends only on the last column."""
    rng = np.random.default_rng(seed)
    held: dict[str, NDArray[Any]] = {"x0": rng.integers(0, 8, rows)}
    for i in range(1, columns):
        chance = np.cumsum(rng.dirichlet(np.full(8, 0.3), 8), axis=1)
        held[f"x{i}"] = (rng.random(rows)[:, None] > chance[held[f"x{i - 1}"]][:, :-1]).sum(axis=1)
    held["y"] = (rng.random(rows) < rng.random(8)[held[f"x{columns - 1}"]]).astype(np.int64)
    return table_of(held, {**{f"x{i}": 8 for i in range(columns)}, "y": 2}, "y")


def pairs_network(seed: int, rows: int = ROWS) -> Table:
    """Return twelve columns of three to six levels. Each depends on one earlier column, and y depends additively on two
    columns."""
    rng = np.random.default_rng(seed)
    sizes = {f"x{i}": int(rng.integers(3, 7)) for i in range(12)}
    held: dict[str, NDArray[Any]] = {}
    for i, (name, size) in enumerate(sizes.items()):
        above = f"x{rng.integers(0, i)}" if i else None
        chance = np.cumsum(rng.dirichlet(np.full(size, 0.7), sizes[above] if above else 1), axis=1)
        group = held[above] if above else np.zeros(rows, dtype=np.int64)
        held[name] = (rng.random(rows)[:, None] > chance[group][:, :-1]).sum(axis=1)
    odds = sum(rng.normal(0, 1.5, sizes[n])[held[n]] for n in ("x3", "x8"))
    held["y"] = (rng.random(rows) < 1 / (1 + np.exp(-odds))).astype(np.int64)
    return table_of(held, {**sizes, "y": 2}, "y")


GENERATED: Mapping[str, Callable[[int], Table]] = {
    "chain": chain,
    "chain, 3,000 rows": lambda seed: chain(seed, 3_000),
    "chain, 40,000 rows": lambda seed: chain(seed, 40_000),
    "pairs": pairs_network,
    "pairs, 3,000 rows": lambda seed: pairs_network(seed, 3_000),
    "XOR of 2": lambda seed: xor(2, seed),
    "XOR of 3": lambda seed: xor(3, seed),
    "latent classes": latent,
    "tree": tree,
}
"""Tables on which the gate's limits were set."""


def made(table: Table, target: str, **plan: Any) -> tuple[Release, float]:
    """Return a release and its CPU seconds."""
    given = {"method": "workload", "epsilon": 1.0, "delta": DELTA, "neighbors": "add-remove", **plan}
    start = time.process_time()
    out = release(Project("benchmark", table.schema, Plan.from_json({**given, "target": target})), table)
    return out, time.process_time() - start


def accuracy(codes: Codes, test: Table, target: str) -> float:
    """Return the accuracy on ``test`` of a random forest of 300 trees trained on ``codes``."""
    from sklearn.ensemble import RandomForestClassifier

    names = [name for name in test.schema.names if name != target]
    forest = RandomForestClassifier(300, random_state=0)
    forest.fit(np.stack([codes[n] for n in names], axis=1), codes[target])
    return float(forest.score(np.stack([test.codes[n] for n in names], axis=1), test.codes[target]))


def gate_of(out: Release) -> str:
    """Return the facts of the probe."""
    if not isinstance(out.fitted, Embedded) or out.fitted.found is None:
        return ""
    f = out.fitted.found
    ratio = f.missed / max(f.by_noise, 1e-9)
    opened = "open" if out.fitted.sums is not None else "shut"
    return (
        f"{opened}: misses {f.missed:.4f}, {ratio:.2f} × base, z {f.sure:.1f}, limit {f.limit:.4f}, {out.fitted.marked}"
    )


def show(name: str, rows: Sequence[tuple[float, ...]], heading: str) -> None:
    """Print mean ± standard error over runs."""
    table = np.array(rows)
    error = table.std(axis=0, ddof=1) / np.sqrt(len(table)) if len(table) > 1 else np.zeros(table.shape[1])
    cells = [f"{m:.4f} ± {s:.4f}" for m, s in zip(table.mean(axis=0), error, strict=True)]
    print(f"{name:<46} {heading}: {'  '.join(cells)}", flush=True)


def run_characters(seeds: int, epsilons: list[float], plan: Mapping[str, Any]) -> None:
    parts = list(itertools.islice(characters(), seeds))
    for epsilon in epsilons:
        for more in ({}, {"embedding_share": "auto"}):
            rows = []
            for train, test in parts:
                out, seconds = made(train, "Class", epsilon=epsilon, **{**more, **plan})
                rows.append((accuracy(out.codes, test, "Class"), seconds))
                print("   ", gate_of(out), f"{rows[-1][0]:.4f}, {seconds:.1f} CPU s", flush=True)
            show(f"characters, ε = {epsilon:g}, workload {more}", rows, "accuracy, CPU s")
    show("characters, real rows in the same bins", [(accuracy(a.codes, b, "Class"),) for a, b in parts], "accuracy")


def run_rules(seeds: int, epsilons: list[float], plan: Mapping[str, Any]) -> None:
    for epsilon in epsilons:
        for causes in (2, 3):
            rows = []
            for seed in range(seeds):
                out, seconds = made(xor(causes, seed), "y", epsilon=epsilon, embedding_share="auto", **plan)
                rows.append((float(np.mean(rule(out.codes, causes) == out.codes["y"])), seconds))
                print("   ", gate_of(out), flush=True)
            show(f"XOR of {causes}, ε = {epsilon:g}", rows, "rows that obey the rule, CPU s")
        for name, table in (("latent classes", latent), ("tree", tree)):
            figures = []
            for seed in range(seeds):
                whole = table(seed, ROWS + 2_000)
                train, test = whole.take(np.arange(ROWS)), whole.take(np.arange(ROWS, ROWS + 2_000))
                base, _ = made(train, "y", epsilon=epsilon, **plan)
                out, seconds = made(train, "y", epsilon=epsilon, embedding_share="auto", **plan)
                figures.append((accuracy(base.codes, test, "y"), accuracy(out.codes, test, "y"), seconds))
                print("   ", gate_of(out), flush=True)
            show(f"{name}, ε = {epsilon:g}", figures, "accuracy of base and stage, CPU s")


def run_pairwise(seeds: int, epsilons: list[float], plan: Mapping[str, Any]) -> None:
    cases = {case.name: case for case in (*CHOSEN, *REPORTED)}
    for epsilon in epsilons:
        for name in ("chain", "adult, quantile bins", "compas", "diabetes", "insurance"):
            rows, opened = [], 0
            for seed in range(seeds):
                if name == "chain":
                    whole, target = chain(seed, ROWS + 2_000), "y"
                    train, test = whole.take(np.arange(ROWS)), whole.take(np.arange(ROWS, ROWS + 2_000))
                else:
                    target = cases[name].target
                    train, test = cases[name].split(seed)
                base, _ = made(train, target, epsilon=epsilon, **plan)
                out, seconds = made(train, target, epsilon=epsilon, embedding_share="auto", **plan)
                one, two = (judge(x.codes, train, test, target) for x in (base, out))
                opened += isinstance(out.fitted, Embedded) and out.fitted.sums is not None
                print("   ", gate_of(out), flush=True)
                rows.append(
                    (
                        one["auc"],
                        two["auc"],
                        one["two_way_tv"],
                        two["two_way_tv"],
                        two["two_way_tv"] / one["two_way_tv"],
                        seconds,
                    )
                )
            show(
                f"{name}, ε = {epsilon:g}, opened {opened} of {seeds}", rows, "AUC, TV of base and stage, ratio, CPU s"
            )


def run_gate(seeds: int, epsilons: list[float], plan: Mapping[str, Any]) -> None:
    for epsilon in epsilons:
        for name, table in GENERATED.items():
            for seed in range(seeds):
                out, _ = made(table(100 + seed), "y", epsilon=epsilon, embedding_share="auto", **plan)
                print(f"{name:<20} ε = {epsilon:g}: {gate_of(out)}", flush=True)


def run_real(seeds: int, epsilons: list[float], plan: Mapping[str, Any]) -> None:  # noqa: ARG001
    """Test on every second of `FOLDS` folds. Forests are trained on the other folds, and on 5,000 of their rows."""
    from sklearn.ensemble import RandomForestClassifier

    frame = pd.read_csv(FOLDER / "artificial_characters.csv.gz")
    y, x = frame["Class"].to_numpy(), frame.drop(columns="Class").to_numpy()
    order, found = np.random.default_rng(1).permutation(len(frame)), []
    for k in range(0, FOLDS, 2):
        test = order[k::FOLDS]
        whole = np.setdiff1d(order, test)
        parts = (whole, np.random.default_rng(k).choice(whole, 5_000, replace=False))
        forests = [RandomForestClassifier(60, random_state=0).fit(x[part], y[part]) for part in parts]
        found.append(tuple(float(forest.score(x[test], y[test])) for forest in forests))
    show("characters, real rows", found, f"accuracy with {len(whole):,} and 5,000 rows")


PARTS = {
    "characters": run_characters,
    "rules": run_rules,
    "pairwise": run_pairwise,
    "gate": run_gate,
    "real": run_real,
}


def main() -> None:
    """Run the named parts; without a name, all except gate and real."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], default=[])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 4.0])
    parser.add_argument("--neighbors", default="add-remove")
    parser.add_argument("--base", default="workload", choices=("workload", "mst", "prism"))
    opt = parser.parse_args()
    for part in opt.parts or ["characters", "rules", "pairwise"]:
        PARTS[part](opt.seeds, opt.epsilon, {"neighbors": opt.neighbors, "method": opt.base})


if __name__ == "__main__":
    main()
