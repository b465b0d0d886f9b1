"""Coverage of intervals: `python -m benchmarks.intervals [SETTING …] [--releases 30] [--quick]`.

Each release is made from rows drawn with replacement from a fully known population. Four kinds of figures are
estimated: proportions, risk differences, odds ratios, and coefficients of a logistic regression on up to four features.
The table shows, for each kind and badge, the coverage of three intervals: the naive interval (one synthetic table
treated as real), the interval from copies with evenly drawn rows (rule B), and the interval from copies with rows drawn
one by one (T ≥ ū). It also shows the width relative to the real table's interval. Two further figures follow: the share
of promised figures among those inside a clique whose true cells are at least 5 σ, and the CPU seconds of 20 copies.

``--keep FOLDER`` writes each release's numbers to the folder immediately, and continues where an earlier run ended.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks import adult
from benchmarks.tables import drawn
from espalier.core.analysis.combine import combine
from espalier.core.analysis.estimands import Difference, Figure, Level, OddsRatio, Proportion, Regression
from espalier.core.analysis.gate import Cell
from espalier.core.analysis.study import Study
from espalier.core.analysis.tally import Tally
from espalier.core.graph.dag import Dag
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release import Release, release
from espalier.core.tables.table import Table

Rows = Mapping[str, NDArray[np.integer]]
Record = dict[str, Any]


@dataclass
class Tallies:
    """A table of codes that tallies each combination of columns only once."""

    rows: Rows
    sizes: Mapping[str, int]
    _made: dict[tuple[str, ...], Tally] = field(default_factory=dict)

    def of(self, columns: tuple[str, ...]) -> Tally:
        """Return the patterns of ``columns``."""
        if columns not in self._made:
            self._made[columns] = Tally.of_rows(self.rows, self.sizes, columns)
        return self._made[columns]


@dataclass(frozen=True)
class Population:
    """All rows, as codes, and the project for the releases."""

    project: Project
    rows: Rows

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """Return ``n`` rows drawn with replacement."""
        whole = len(next(iter(self.rows.values())))
        picked = rng.integers(0, whole, n)
        return Table(self.project.schema, {name: codes[picked] for name, codes in self.rows.items()}, n)


def adult_population(method: str, epsilon: float) -> Population:
    """Return all of Adult, public bins."""
    from espalier.core.tables.reading import read_table

    project = adult.adult_project(method, epsilon=epsilon)
    table = Table.encode(read_table(adult.DATA), project.schema)
    return Population(project, table.codes)


def _schema(sizes: Mapping[str, int]) -> Schema:
    return Schema(
        tuple(Column(name, "categorical", tuple(f"c{i}" for i in range(size))) for name, size in sizes.items())
    )


def _generated(dependent: bool, epsilon: float) -> Population:
    """Return a known network of 400,000 rows: six causes and effects of Y and four columns of noise.

    With ``dependent``, the predictors also cause one another, so they depend on each other given the outcome.
    """
    rng = np.random.default_rng(190)
    n = 400_000

    def coin(log_odds: NDArray[np.floating]) -> NDArray[np.int64]:
        drawn: NDArray[np.int64] = (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(np.int64)
        return drawn

    a = rng.choice(3, n, p=[0.3, 0.4, 0.3])
    b: NDArray[np.int64] = rng.integers(0, 4, n)
    if dependent:
        b = np.minimum(rng.integers(0, 3, n) + coin(2.0 * (a - 1.0)), 3)
    c = coin(1.5 * (b - 1.5)) if dependent else coin(np.zeros(n))
    y = coin(-1.0 + 0.7 * (a - 1.0) + 0.5 * (b - 1.5) + 0.6 * c)
    d = coin(-0.5 + 1.2 * y + (0.8 * c if dependent else 0.0))
    rows = {"a": a, "b": b, "c": c, "d": d, "e": np.minimum(rng.integers(0, 3, n) + y, 2)}
    rows |= {f"n{i}": rng.integers(0, 4, n) for i in range(4)} | {"y": y}
    sizes = {name: int(codes.max()) + 1 for name, codes in rows.items()}
    dag = Dag((("a", "y"), ("b", "y"), ("c", "y"), ("y", "d"), ("y", "e")))
    plan = Plan("prism", epsilon, target="y", options={"regime": "graphical"})
    return Population(Project("generated", _schema(sizes), plan, dag), rows)


def diabetes_population(epsilon: float) -> Population:
    """Return the 20,000 stays of the diabetes table, ten columns with public bins."""
    frame = pd.read_csv(adult.DATA.parent / "diabetes_readmission_20k.csv.gz", dtype=str, keep_default_na=False)
    out: dict[str, NDArray[np.int64]] = {"readmitted": (frame["readmitted"] != "NO").to_numpy().astype(np.int64)}
    for name, edges in {
        "time_in_hospital": (2, 4, 7),
        "num_medications": (8, 13, 18, 25),
        "number_inpatient": (1, 2),
        "number_emergency": (1,),
        "number_diagnoses": (5, 8, 9),
        "num_lab_procedures": (25, 45, 60),
    }.items():
        out[name] = np.digitize(pd.to_numeric(frame[name]).to_numpy(), edges)
    out["age"] = np.minimum(pd.to_numeric(frame["age"].str.extract(r"(\d+)")[0]).to_numpy() // 10, 9).astype(np.int64)
    for name in ("insulin", "diabetesMed", "change"):
        out[name] = np.unique(frame[name].to_numpy(dtype=str), return_inverse=True)[1].astype(np.int64)
    sizes = {name: int(codes.max()) + 1 for name, codes in out.items()}
    return Population(Project("diabetes", _schema(sizes), Plan("prism", epsilon, target="readmitted")), out)


def asia_population(epsilon: float) -> Population:
    """Return 400,000 rows of the network asia. 1 % have tuberculosis, and one cause is the "or" of two others."""
    rows = drawn("asia", 400_000, 190)
    return Population(Project("asia", rows.schema, Plan("prism", epsilon, target="dysp")), rows.codes)


SETTINGS: dict[str, tuple[Callable[[], Population], int]] = {
    "adult prism 1": (lambda: adult_population("prism", 1.0), 8000),
    "adult prism 0.5": (lambda: adult_population("prism", 0.5), 8000),
    "adult prism 3": (lambda: adult_population("prism", 3.0), 8000),
    "adult mst 1": (lambda: adult_population("mst", 1.0), 8000),
    "network 0.5": (lambda: _generated(False, 0.5), 5000),
    "network 1": (lambda: _generated(False, 1.0), 5000),
    "network 3": (lambda: _generated(False, 3.0), 5000),
    "asia 1": (lambda: asia_population(1.0), 5000),
    "dependent 1": (lambda: _generated(True, 1.0), 5000),
    "diabetes 1": (lambda: diabetes_population(1.0), 8000),
}


def figures_of(population: Population, made: Release, rng: np.random.Generator) -> list[tuple[str, Figure]]:
    """Return figures drawn at random, most of them about columns that were measured together."""
    sizes, target = population.project.schema.sizes, population.project.plan.target or ""
    names = [n for n, size in sizes.items() if size > 1]
    pairs = [edge for edge in made.edges if sizes[edge[0]] > 1 and sizes[edge[1]] > 1]
    every = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    out: list[tuple[str, Figure]] = [("proportion", Proportion(Level(n, int(rng.integers(sizes[n]))))) for n in names]
    chosen = [pairs[int(i)] for i in rng.integers(0, len(pairs), 25)] + [
        every[int(i)] for i in rng.integers(0, len(every), 15)
    ]
    seen = set()
    for a, b in chosen:
        one, other = (Level(a, int(i)) for i in rng.choice(sizes[a], 2, replace=False))
        event, instead = (Level(b, int(i)) for i in rng.choice(sizes[b], 2, replace=False))
        if (cells := frozenset({one, other, event, instead})) in seen:
            continue  # two columns with two values each have one odds ratio
        seen.add(cells)
        out.append(("odds ratio", OddsRatio(event, instead, one, other)))
        out.append(("difference", Difference(event, one, other)))
    if target:
        features = [n for n in made.fitted.features or names if n != target]
        some = tuple(features[int(i)] for i in rng.permutation(len(features))[:4])
        out.append(("logistic", Regression(target, some, sizes, event=1)))
    return out


def examine(population: Population, n: int, m: int, rng: np.random.Generator) -> Record:
    """Return a record for each requested number of one release, and the CPU seconds of its copies."""
    sizes, everybody = population.project.schema.sizes, Tallies(population.rows, population.project.schema.sizes)
    real = population.sample(n, rng)
    made = release(population.project, real)
    start = time.process_time()
    study = Study.of(made)
    found = list(study.drawn(m, rng))
    seconds = time.process_time() - start
    tables = partial(Tallies, sizes=sizes)
    once, sampled = tables(made.codes), tables(real.codes)
    even, single = [tables(rows) for _, rows in found], [tables(copied.sample(n, rng)) for copied, _ in found]
    records: list[Record] = []
    for kind, figure in figures_of(population, made, rng):
        names = figure.columns
        whole = everybody.of(names)
        right, _ = figure.estimate(whole)
        naive, within = figure.estimate(once.of(names))
        _, real_variance = figure.estimate(sampled.of(names))
        evenly = np.array([figure.estimate(t.of(names))[0] for t in even])
        loosely = [figure.estimate(t.of(names)) for t in single]
        for i, part in enumerate(figure.parts()):
            badge, values = study.gate.judge(part.needs), np.array([v[i] for v, _ in loosely])
            spread = np.array([v[i] for _, v in loosely])
            if not np.isfinite([right[i], naive[i], *evenly[:, i], *values, *spread]).all() or not real_variance[i] > 0:
                continue  # the real table itself has no interval
            b, t = combine(evenly[:, i].tolist()), combine(values.tolist(), spread.tolist())
            thick = min(
                _rows(whole, cell, rest) * n / whole.total / study.gate.noise(cell, rest)
                for cells, rest in ((part.needs.cells, False), (part.needs.rests, True))
                for cell in cells
            )
            records.append(
                {
                    "kind": kind,
                    "badge": badge.kind,
                    "naive": bool(abs(naive[i] - right[i]) <= 1.96 * math.sqrt(within[i])),
                    "B": bool(b.low <= right[i] <= b.high),
                    "T": bool(t.low <= right[i] <= t.high),
                    "width": (b.high - b.low) / (3.92 * math.sqrt(real_variance[i])),
                    "off": (b.estimate - right[i]) / math.sqrt(b.variance) if b.variance else 0.0,
                    "thick": min(thick, 1e9),
                    "thinnest": min(badge.thinnest, 1e9),
                    "inside": study.gate.counted(part.needs.columns),
                    "columns": names,
                }
            )
    return {"copies": m, "seconds": seconds, "numbers": records}


def run(name: str, releases: int, m: int, keep: Path | None = None) -> list[Record]:
    """Return the releases of this setting. Releases stored in ``keep`` are not made again."""
    make, n = SETTINGS[name]
    file = None if keep is None else keep / f"{name}.jsonl"
    out = [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file and file.exists() else []
    out = [one for one in out if one["copies"] == m][:releases]
    population = make() if len(out) < releases else None
    while population is not None and len(out) < releases:
        out.append(examine(population, n, m, np.random.default_rng([7, len(out)])))
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(out[-1]) + "\n")
    return out


def _rows(tally: Tally, cell: Cell, rest: bool) -> float:
    """Return the rows of a cell or, with ``rest``, the rows that differ from it only in the first column."""
    keep = np.ones(len(tally.weights), dtype=np.bool_)
    for place, (name, code) in enumerate(cell):
        keep &= (tally.of(name) == code) != (rest and place == 0)
    return float(tally.weights[keep].sum())


def show(name: str, made: list[Record]) -> None:
    """Print one setting."""
    seconds = float(np.mean([one["seconds"] for one in made]))
    print(f"{name}: {len(made)} releases, {made[0]['copies']} copies, {seconds:.1f} CPU s for the copies of one")
    groups: dict[tuple[str, str], list[Record]] = defaultdict(list)
    records = [r for one in made for r in one["numbers"]]
    for r in records:
        groups[str(r["badge"]), str(r["kind"])].append(r)
        if r["badge"] == "counted":
            groups["promised", "all"].append(r)
    for (badge, kind), some in sorted(groups.items()):
        mean = {key: 100 * float(np.mean([r[key] for r in some])) for key in ("naive", "B", "T")}
        print(
            f"  {badge:22} {kind:11} {len(some):5}  naive {mean['naive']:3.0f}  B {mean['B']:5.1f}  T {mean['T']:5.1f}"
            f"  width × {np.median([r['width'] for r in some]):.1f}"
        )
    inside = [r["badge"] == "counted" for r in records if r["inside"] and float(r["thick"]) >= 5]
    if inside:
        print(
            f"  promised, of figures inside a clique whose true cells are at least 5 σ: {100 * np.mean(inside):.0f} %"
        )


def main() -> None:
    """Print the requested settings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("settings", nargs="*", default=list(SETTINGS))
    parser.add_argument("--releases", type=int, default=30)
    parser.add_argument("--copies", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="four releases each")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write numbers there, and continue from them")
    args = parser.parse_args()
    for name in args.settings:
        show(name, run(name, 4 if args.quick else args.releases, args.copies, args.keep))


if __name__ == "__main__":
    main()
