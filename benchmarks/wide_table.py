"""A table of 48 columns and 30,000 rows with a drawing, used to measure waiting times.

The people are invented. The columns depend on each other through one latent number, and the outcome on twelve of them.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

ROWS, COLUMNS = 30_000, 48


def write(folder: Path, rows: int = ROWS, columns: int = COLUMNS) -> tuple[Path, Path]:
    """Write ``wide.csv`` and ``wide.json`` into ``folder`` and return their paths."""
    rng = np.random.default_rng(5)
    latent = rng.normal(size=rows)
    described: list[dict[str, Any]] = []
    values: dict[str, list[str]] = {}
    risk = np.zeros(rows)
    for i in range(columns - 1):
        name = f"feature_{i + 1:02}"
        score = 0.6 * latent + rng.normal(size=rows) if i % 3 else rng.normal(size=rows)
        if i < 12:
            risk += 0.25 * score
        if i % 4 == 0:
            numbers = np.clip(50 + 15 * score, 0, 99.5)
            edges = [float(edge) for edge in range(0, 101, 10)]
            described.append({"name": name, "kind": "numeric", "edges": edges})
            values[name] = [f"{x:.1f}" for x in numbers]
        else:
            size = (2, 4, 8)[i % 3]
            ends = np.quantile(score, np.linspace(0, 1, size + 1)[1:-1])
            labels = [f"level {k}" for k in range(size)]
            described.append({"name": name, "kind": "categorical", "categories": labels})
            values[name] = [labels[k] for k in np.searchsorted(ends, score)]
    outcome = rng.random(rows) < 1 / (1 + np.exp(1.5 - risk))
    values["outcome"] = np.where(outcome, "yes", "no").tolist()
    described.append({"name": "outcome", "kind": "categorical", "categories": ["no", "yes"]})
    table, project = folder / "wide.csv", folder / "wide.json"
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(values)
        writer.writerows(zip(*values.values(), strict=True))
    project.write_text(_project(described).dumps(), "utf-8")
    return table, project


def _project(described: list[dict[str, Any]]) -> Any:
    from espalier.core.graph.dag import Dag
    from espalier.core.graph.roles import Roles
    from espalier.core.project.file import Project
    from espalier.core.project.plan import Plan
    from espalier.core.project.schema import Schema
    from espalier.core.project.schema_json import column_from_json

    names = [c["name"] for c in described]
    edges = [(name, "outcome") for name in names[:12]] + [(names[i], names[i + 3]) for i in range(24)]
    dag = Dag(tuple(edges))
    schema = Schema(tuple(column_from_json(c) for c in described))
    plan = Plan("workload", 1.0, target="outcome")
    return Project("wide", schema, plan, dag, Roles(outcome=("outcome",)), one_row_per_person=True)
