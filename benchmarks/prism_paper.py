"""PRISM's tables under the paper's own accounting and pools: `python -m benchmarks.prism_paper [--seeds 5]`.

Both plans use basic composition. Without structure choices, the paper divides the budget between single columns and the
target's tables (Appendix C.2), but does not print the shares. With `DRAWN`, a fifth goes to single columns. On Adult
(`CHOSEN`), a tenth pays for choosing eight features. Everything else is as in `benchmarks.prism`, which also has the
default plans.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.common import fit_auc
from benchmarks.prism import PAPER, Row, adult_quantile_bins, scm, scm_project
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.release.spend import release
from espalier.core.tables.table import Table

DRAWN: dict[str, Any] = {"accounting": "basic", "pools": {"one-way": 0.2, "target": 0.8}}
CHOSEN: dict[str, Any] = {
    "accounting": "basic",
    "features": 8,
    "pools": {"one-way": 0.2, "selection": 0.1, "target": 0.7},
}
"""Plan keys in addition to the regime, for the causal and graphical regimes and for Adult."""


def scm_rows(seeds: int, sd: float) -> Iterator[Row]:
    """Yield the AUC of both regimes and rules under both shifts."""
    for name, flip, flip_test, high in (("scm spurious", 0.10, 0.50, False), ("scm marginal", 0.15, 0.15, True)):
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            train = scm(rng, 5000, flip, False, sd, 10)
            test = scm(rng, 20_000, flip_test, high, sd, 10)
            project = scm_project(10)
            table, sizes = Table(project.schema, train, 5000), project.schema.sizes
            known = fit_auc(train, test, sizes, "Y", ["A", "B"])
            yield {"benchmark": name, "method": "real rows, A and B", "auc": known}
            for regime in ("causal", "graphical"):
                for rule in ("optimal", "uniform"):
                    made = release(project.with_plan(regime=regime, allocation=rule, **DRAWN), table)
                    row = {"benchmark": name, "method": f"prism {regime} {rule}"}
                    yield {**row, "auc": fit_auc(made.codes, test, sizes, "Y")}


def adult_rows(seeds: int) -> Iterator[Row]:
    """Yield the AUC on held-out real rows of Adult, with optimal bought weights (as in the paper) and with uniform
    weights."""
    whole = adult_quantile_bins()
    project = Project("adult", whole.schema, Plan("prism", 1.0, target="income"))
    weighted = {**CHOSEN["pools"], "pair choice": 0.05, "target": 0.65}
    rules: dict[str, dict[str, Any]] = {
        "prism k=8 uniform": {**CHOSEN, "allocation": "uniform"},
        "prism k=8 optimal": {**CHOSEN, "task_weights": "bought", "pools": weighted},
    }
    for seed in range(seeds):
        rows = np.arange(whole.rows)
        train, test = train_test_split(rows, test_size=0.2, stratify=whole.codes["income"], random_state=seed)
        kept, held = whole.take(train), whole.take(test)
        for method, changes in rules.items():
            made = release(project.with_plan(**changes), kept)
            score = fit_auc(made.codes, held.codes, kept.schema.sizes, "income")
            yield {"benchmark": "adult, quantile bins", "method": method, "auc": score}


def main() -> None:
    """Read the command line and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prism_paper", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--eta-sd", type=float, default=float(np.sqrt(0.5)))
    opt = parser.parse_args()
    found: dict[tuple[str, str], list[float]] = {}
    for rows in (scm_rows(opt.seeds, opt.eta_sd), adult_rows(opt.seeds)):
        for row in rows:
            found.setdefault((row["benchmark"], row["method"]), []).append(row["auc"])
    print(f"| benchmark | plan | AUC, ε = 1 ({opt.seeds} seeds) | paper |\n| --- | --- | --- | --- |")
    for (benchmark, method), scores in found.items():
        half = 1.96 * np.std(scores, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else float("nan")
        paper = PAPER[benchmark].get(method)
        shown = "" if paper is None else f"{paper:.3f}"
        print(f"| {benchmark} | {method} | {np.mean(scores):.3f} ± {half:.3f} | {shown} |")


if __name__ == "__main__":
    main()
