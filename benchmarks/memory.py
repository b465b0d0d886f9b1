"""Memory of a release: the plan's estimate and the peak of the process that makes the release.

    python -m benchmarks.memory                       every size and method
    python -m benchmarks.memory --only 1000000        cases whose name contains this

Each release runs in a separate process, from its file to its folder, as ``espalier release --as parquet`` does. Its
peak is the system's high-water mark of that process. One table contains resampled rows of Adult (12 columns);
the other has 200 columns of four categories each.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.adult import adult_project
from benchmarks.scale import apart, generate_apart
from espalier.core.planning.preview import preview
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema

WIDE, STEP = 200, 100_000
LABELS = tuple(f"level {i}" for i in range(4))
CASES = (
    *((1_000_000, "adult", "parquet", method) for method in ("prism", "mst", "workload", "privbayes", "copula")),
    (1_000_000, "adult", "csv", "prism"),
    (3_000_000, "adult", "parquet", "prism"),
    (3_000_000, "adult", "csv", "prism"),
    (10_000_000, "adult", "parquet", "prism"),
    (10_000_000, "adult", "parquet", "workload"),
    (1_000_000, "wide", "parquet", "independent"),
    (1_000_000, "wide", "parquet", "mst"),
)
"""Rows, table, format of its file, method."""
LIMITS, LARGER = {"adult": 600, "wide": 1200}, ("privbayes", "copula")
"""Maximum MiB for a release, except with methods that have millions of cells or read numbers."""
WITHIN = 1.5
RUN = """
import os; os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
from espalier.core.cli.main import main
from espalier.core.process_memory import peak
status = main(["release", {project!r}, "--data", {data!r}, "--out", {out!r}, "--as", "parquet", "--quiet"])
print(status, peak())
"""


def write_wide(path: str, rows: int) -> None:
    """Write 200 columns of four categories, each with a third of its cells from one latent column."""
    import pyarrow as pa
    from pyarrow import parquet

    rng, writer, labels = np.random.default_rng(0), None, pa.array(LABELS)
    for _ in range(rows // STEP):
        latent = rng.integers(0, len(LABELS), STEP)
        made = {}
        for i in range(WIDE):
            codes = np.where(rng.random(STEP) < 1 / 3, latent, rng.integers(0, len(LABELS), STEP)).astype(np.int32)
            made[f"c{i:03}"] = pa.DictionaryArray.from_arrays(pa.array(codes), labels).dictionary_decode()
        table = pa.table(made)
        writer = writer or parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer:
        writer.close()


def write_csv(source: str, path: str) -> None:
    """Write a Parquet file's rows as CSV."""
    from pyarrow import csv, parquet

    file = parquet.ParquetFile(source)
    with csv.CSVWriter(path, file.schema_arrow) as writer:
        for batch in file.iter_batches(STEP):
            writer.write_batch(batch)


def table(folder: Path, rows: int, kind: str, form: str) -> Path:
    """Return the table's file, which is written if it does not exist yet."""
    path = folder / f"{kind}-{rows}.parquet"
    if not path.exists():
        if kind == "adult":
            generate_apart(path, rows)
        else:
            apart(f"from benchmarks.memory import write_wide; write_wide({str(path)!r}, {rows})")
    if form == "csv" and not path.with_suffix(".csv").exists():
        apart(f"from benchmarks.memory import write_csv; write_csv({str(path)!r}, {str(path.with_suffix('.csv'))!r})")
    return path.with_suffix(f".{form}")


def project_of(kind: str, method: str) -> Project:
    """Return the project of a table."""
    if kind == "adult":
        made = adult_project(method)
        return made.with_plan(target="age") if method == "copula" else made
    columns = tuple(Column(f"c{i:03}", "categorical", LABELS) for i in range(WIDE))
    return Project(kind, Schema(columns), Plan(method, epsilon=1, delta=1e-7), one_row_per_person=True)


def main() -> int:
    """Print the table; return 1 if a figure exceeds its limit."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", default="")
    options.add_argument("--folder", type=Path, help="folder that keeps the tables between runs")
    opt = options.parse_args()
    missed = False
    print("| table | method | planned MiB (input, model, output) | measured MiB | planned / measured | limit |")
    print("| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory(prefix="espalier-memory-") as made:
        for rows, kind, form, method in CASES:
            project, name = project_of(kind, method), f"{kind} {form} {rows} {method}"
            if opt.only not in name:
                continue
            data, file = table(opt.folder or Path(made), rows, kind, form), Path(made, f"{method}.json")
            file.write_text(project.dumps(), "utf-8")
            planned = preview(project, rows).memory
            with tempfile.TemporaryDirectory(prefix="espalier-memory-") as out:
                code = RUN.format(project=str(file), data=str(data), out=str(Path(out, "out")))
                run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
            status, most = map(int, run.stdout.split())
            if status:
                sys.exit(run.stderr)
            ratio = planned.total / most
            limit = None if method in LARGER else LIMITS[kind]
            missed |= (limit is not None and most / 2**20 > limit) or not 1 / WITHIN <= ratio <= WITHIN
            parts = ", ".join(f"{part >> 20:,}" for part in (planned.input, planned.model, planned.output))
            columns = len(project.schema.columns)
            print(
                f"| {rows:,} × {columns}, {form} | {method} | {planned.total >> 20:,} ({parts}) | {most >> 20:,} | "
                f"{ratio:.2f} | {limit or ''} |",
                flush=True,
            )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
