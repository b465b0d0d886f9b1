"""The code that a user of mbi 2.0 would write for Adult: the star on income, from start to output file.

`benchmarks.adult cold` times it.

    python -m benchmarks.peer_mbi PROJECT.json TABLE OUT.csv

It uses the same columns and public bins, half of the budget on one-way counts, and half on the pairs with the target.
The noise is NumPy's, because mbi ships no mechanism. Pandas reads and bins the table.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd

from espalier.core.privacy.accounting import Budget
from espalier.core.project.file import Project


def main(project_file: str, table: str, out: str) -> None:
    """Measure, fit, sample, write."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mbi

    project = Project.load(project_file)
    raw = pd.read_csv(table, dtype=str, keep_default_na=False)
    codes: dict[str, Any] = {}
    for c in project.schema.columns:
        if c.kind == "numeric":
            codes[c.name] = np.searchsorted(c.edges[1:-1], raw[c.name].astype(float), side="right").astype(np.int64)
        else:
            codes[c.name] = raw[c.name].map({v: i for i, v in enumerate(c.categories)}).to_numpy()
    sizes, n, rng = project.schema.sizes, len(raw), np.random.default_rng()
    names, target = list(sizes), project.plan.target or ""
    rho = Budget.of(project.plan, n).rho
    pairs = [(x, target) for x in names if x != target]
    measured = []
    for cliques in ([(x,) for x in names], pairs):
        sigma = np.sqrt(2) / np.sqrt(2 * rho / 2 / len(cliques))
        for clique in cliques:
            flat = np.ravel_multi_index([codes[c] for c in clique], [sizes[c] for c in clique])
            counts = np.bincount(flat, minlength=int(np.prod([sizes[c] for c in clique])))
            measured.append(mbi.LinearMeasurement(counts + rng.normal(0, sigma, len(counts)), clique, stddev=sigma))
    domain = mbi.Domain(names, list(sizes.values()))
    loss = mbi.marginal_loss.from_linear_measurements(measured, domain)
    model = mbi.estimation.MirrorDescent().estimate(domain, loss, float(n))
    rows = pd.DataFrame(model.synthetic_data(n).to_dict())
    for c in project.schema.columns:
        if c.kind == "numeric":
            low, high = np.asarray(c.edges[:-1])[rows[c.name]], np.asarray(c.edges[1:])[rows[c.name]]
            rows[c.name] = np.floor(low + rng.random(n) * (high - low)).astype(int)
        else:
            rows[c.name] = np.asarray(c.categories)[rows[c.name]]
    rows.to_csv(out, index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
