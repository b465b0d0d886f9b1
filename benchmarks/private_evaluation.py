"""Private figures: how often their 95 % intervals contain the truth.

    python -m benchmarks.private_evaluation [--runs 200] [--rows 60000] [--epsilon 2]

A population of 200,000 invented applicants (the sample *hiring*) is the truth. Each run draws a table from it at random
and makes a real release, with a tenth of the rows held out. The true values of the intervals' figures are then computed
on the whole population: accuracy and AUC of the classifier that was trained on the synthetic rows, the mean one-way
error of the synthetic table, and the dependence between outcome and protected column given the admissible one. A
dependence figure that covers only some strata, or merged strata, is not comparable, and is left out. ``bound`` is the
bound on AUC for any order of scores inside bins, and the bound on CMI if the rows support no interval. Noise is fresh
each time, so the printed shares vary by about two standard errors between calls. The exit status is 1 if a share is so
low that a coverage of 95 % would produce it only once in a thousand calls.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

import numpy as np
from scipy.stats import binom
from sklearn.metrics import roc_auc_score

from espalier.core.evaluation.classifier import fit
from espalier.core.evaluation.dependence import cmi
from espalier.core.evaluation.private.counts import HeldOutCounts
from espalier.core.graph.roles import Roles
from espalier.core.project.file import Project
from espalier.core.release.spend import release
from espalier.core.tables.table import Table
from espalier.core.tables.text_table import TextColumn, TextTable
from sample_data.make import HIRING, applicants

POPULATION = 200_000
ROLES = Roles(outcome=("hired",), protected=("gender",), admissible=("qualification",))


def population(project: Project, rng: np.random.Generator) -> Table:
    """Return the whole population."""
    columns = {}
    for name, cells in applicants(rng, POPULATION).items():
        values, codes = np.unique(cells.astype(str), return_inverse=True)
        columns[name] = TextColumn(tuple(values.tolist()), codes)
    return Table.encode(TextTable(columns, POPULATION, "everybody"), project.schema)


def truths(project: Project, everybody: Table, dependence: float, synthetic: Table) -> dict[str, float]:
    """Return the true values of this synthetic table's private figures; ``dependence`` is the same for all tables."""
    target, schema = project.plan.target, project.schema
    assert target is not None
    model, truth = fit(synthetic, target), everybody.codes[target]
    scores = model.scores(everybody)
    errors = [
        np.abs(everybody.count((c,)) / everybody.rows - synthetic.count((c,)) / synthetic.rows).sum() / 2
        for c in schema.names
    ]
    return {
        "accuracy": float(np.mean(scores.argmax(axis=1) == truth)),
        "auc": float(roc_auc_score(truth, scores[:, 1] - scores[:, 0])),
        "one_way_tv": float(np.mean(errors)),
        "cmi": dependence,
    }


def main() -> int:
    """Run the benchmark. Return 1 if a coverage is too low."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.private_evaluation", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--rows", type=int, default=60_000, help="of each table that is released")
    parser.add_argument("--epsilon", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=0, help="of the population and the tables; noise has none")
    opt = parser.parse_args()
    rng = np.random.default_rng(opt.seed)
    project = replace(Project.from_json(HIRING), roles=ROLES).with_plan(
        method="mst", fair=False, epsilon=opt.epsilon, delta=1e-6, private_evaluation=0.1
    )
    everybody, separation = population(project, rng), HeldOutCounts.of(project).separation
    assert separation is not None
    dependence = cmi(everybody, separation).value
    held: dict[str, list[tuple[bool, float, float]]] = {}
    for run in range(opt.runs):
        print(f"\r{run} of {opt.runs}", end="", file=sys.stderr, flush=True)
        made = release(project, everybody.take(rng.choice(POPULATION, opt.rows, replace=False)))
        assert made.private_evaluation is not None
        true = truths(project, everybody, dependence, made.synthetic)
        for figure in made.private_evaluation.figures:
            if (
                figure.low is not None
                and figure.high is not None
                and "strata" not in figure.method
                and not figure.about
            ):
                holds = figure.low <= true[figure.name] <= figure.high
                held.setdefault(figure.name, []).append((holds, (figure.high - figure.low) / 2, true[figure.name]))
            if figure.bound is not None:
                holds = figure.bound[0] <= true[figure.name] <= figure.bound[1]
                ends = (holds, (figure.bound[1] - figure.bound[0]) / 2, true[figure.name])
                held.setdefault(f"{figure.name} bound", []).append(ends)
    print(f"\r{opt.runs} releases of {opt.rows:,} rows each, ε = {opt.epsilon:g}, a tenth of the rows held out")
    print(f"{'figure':<12} {'carried':>8} {'held':>8} {'coverage':>9} {'half width':>11} {'truth':>7}")
    low = False
    for name, runs in held.items():
        hits, widths, true_values = (list(x) for x in zip(*runs, strict=True))
        print(
            f"{name:<12} {len(runs):>8} {sum(hits):>8} {sum(hits) / len(runs):>9.1%} {np.mean(widths):>11.3f} "
            f"{np.mean(true_values):>7.3f}"
        )
        low = low or bool(binom.cdf(sum(hits), len(runs), 0.95) < 0.001)
    return int(low)


if __name__ == "__main__":
    sys.exit(main())
