"""The private choice of a tree on a wide table: `python -m benchmarks.selection [--columns 200] [--rows 50000]`.

The table is random, and each column depends on the previous column. ε is 1, and the time includes all pair counts. The
command prints wall-clock and CPU seconds and the peak memory for 10 and for 50 categories per column, each in a
separate process.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import subprocess
import sys
import time

import numpy as np

from espalier.core.methods.select.allocation import BudgetSplit, Choices
from espalier.core.methods.select.expected import independent
from espalier.core.methods.select.greedy_tree import choose_tree
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.scores import EdgeScore
from espalier.core.privacy.unit import Unit
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.table import Table


def run(columns: int, rows: int, categories: int) -> str:
    """Return one line: the time and the memory of the choice."""
    rng = np.random.default_rng(0)
    names = [f"c{i}" for i in range(columns)]
    schema = Schema(tuple(Column(n, "categorical", tuple(map(str, range(categories)))) for n in names))
    codes = {names[0]: rng.integers(0, categories, rows)}
    for before, name in itertools.pairwise(names):
        fresh = rng.integers(0, categories, rows)
        codes[name] = np.where(rng.random(rows) < 0.5, codes[before], fresh)
    table = Table(schema, codes, rows)
    plan = Plan("mst", 1.0, 1e-9)
    budget = Budget.of(plan, rows)
    curator = PrivateCurator(table, Unit(), budget, plan.max_cells)
    split = BudgetSplit.of(plan, budget, schema.sizes)
    ones = curator.measure(split.split(1 / 3, [(n,) for n in names]))
    wall, cpu = time.perf_counter(), time.process_time()
    edges, _ = choose_tree(Choices(curator, split, 1 / 3), [], EdgeScore(independent(ones, float(rows))))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    right = sum(abs(int(a[1:]) - int(b[1:])) == 1 for a, b in edges)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return (
        f"{columns} columns × {rows:,} rows, {categories} categories, {columns * (columns - 1) // 2:,} pairs: "
        f"{wall:.1f} s ({cpu:.1f} s CPU), {peak:.2f} GB; {right} of {columns - 1} edges correct"
    )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.selection", description=__doc__)
    parser.add_argument("--columns", type=int, default=200)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--categories", type=int, nargs="+", default=[10, 50])
    opt = parser.parse_args()
    if len(opt.categories) == 1:
        print(run(opt.columns, opt.rows, opt.categories[0]), flush=True)
        return
    for categories in opt.categories:
        sizes = ["--columns", str(opt.columns), "--rows", str(opt.rows), "--categories", str(categories)]
        subprocess.run([sys.executable, "-m", "benchmarks.selection", *sizes], check=True)


if __name__ == "__main__":
    main()
