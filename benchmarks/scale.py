"""Tables larger than memory: the cost of a scan, the counts, random selection and the output.

    python -m benchmarks.scale                  every part, 10⁷ rows
    python -m benchmarks.scale counts           all 78 marginals of Adult's shape against DuckDB's encode scan: one
                                                file, 100 files, six text columns, whole numbers
    python -m benchmarks.scale wide             19,900 pairs of 200 columns × 10⁶ rows, by number of categories
    python -m benchmarks.scale people           at most 3 rows per person; one person has a tenth of all rows
    python -m benchmarks.scale output           rows drawn evenly, in batches, to Parquet
    python -m benchmarks.scale release          a whole prism release, from Parquet to Parquet, as the app makes it
    python -m benchmarks.scale app              opened, planned and released in a real browser: the memory of the server
    python -m benchmarks.scale sqlite           a tenth of the rows in an engine that streams its rows in batches
    python -m benchmarks.scale postgres         78 counts inside PostgreSQL against its encode scan, a tenth of the rows
    python -m benchmarks.scale spark            78 counts against Spark's encode scan (needs requirements-spark.txt)
    python -m benchmarks.scale numeric --rows 100000000     the last of these layouts alone: ten files in a folder

The table consists of Adult's rows, drawn repeatedly; above 10⁷ rows, it is a folder with the same file several times.
CPU seconds include all threads, and those of a server or of Spark. Each part runs in a separate process, so its memory
is measured separately.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.adult import DATA, ORDER, adult_project
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.counting import Counting, count_many
from espalier.core.tables.reading import read_table
from espalier.core.tables.table import Table

PARTS = ("counts", "numeric", "wide", "people", "output", "release", "app", "sqlite", "postgres", "spark")
STEP = 1_000_000
SAME = 10_000_000
"""Above this number of rows, a table is a folder with links to one file of this many rows."""


def clock(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result, and the CPU seconds of all threads."""
    start = time.process_time()
    out = work()
    return out, time.process_time() - start


def peak() -> int:
    """Return the peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def line(what: str, seconds: float, beside: float | None = None) -> None:
    """Print one line of the table, with the ratio to its reference."""
    print(f"{what:<58}{seconds:8.2f} CPU s" + (f"  {seconds / beside:5.2f} ×" if beside else ""), flush=True)


def agreed(same: bool, what: str) -> str:
    """End the run with an error unless ``what`` is true."""
    if not same:
        sys.exit(f"NOT {what}")
    return what


def generate(path: Path, rows: int, *, people: bool = False, files: int = 1) -> None:
    """Write Adult's rows, resampled, to one or several Parquet files. With ``people``, there are about five rows per
    person, and one person has a tenth of all rows.
    """
    import pyarrow as pa
    from pyarrow import parquet

    if files > 1 and rows <= SAME:
        path.mkdir()
        for i in range(files):
            generate(path / f"{i}.parquet", rows // files)
        return
    if rows > SAME and not people:
        times, more = divmod(rows, SAME)
        if more:
            sys.exit(f"more than {SAME:,} rows are a multiple of them")
        path.mkdir()
        generate(path / "0.parquet", SAME)
        for i in range(1, times):
            os.link(path / "0.parquet", path / f"{i}.parquet")
        return
    text = read_table(DATA)
    columns = {name: text.columns[name] for name in ORDER}
    rng, writer = np.random.default_rng(0), None
    for start in range(0, rows, STEP):
        n = min(STEP, rows - start)
        drawn = rng.integers(0, text.rows, n)
        made = {}
        for name, column in columns.items():
            numeric = adult_project("mst").schema[name].kind == "numeric"
            values = pa.array([int(v) for v in column.values] if numeric else list(column.values))
            made[name] = pa.DictionaryArray.from_arrays(pa.array(column.codes[drawn]), values).dictionary_decode()
        if people:
            whose = rng.integers(0, max(rows // 5, 1), n)
            whose[rng.random(n) < 0.1] = 0
            made["person"] = pa.array(np.char.add("p", whose.astype(str)))
        table = pa.table(made)
        writer = writer or parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer:
        writer.close()


def cliques() -> list[tuple[str, ...]]:
    """Return the 66 pairs and 12 single columns."""
    return [*itertools.combinations(ORDER, 2), *((name,) for name in ORDER)]


def duckdb_scan(path: Path, schema: Schema) -> float:
    """Return the CPU seconds that DuckDB needs to encode the rows of a Parquet file or folder without storing
    anything."""
    import ibis

    from espalier.core.tables.duckdb_apart import MEMORY
    from espalier.core.tables.encoding_query import encoding

    backend = ibis.duckdb.connect(temp_directory="", memory_limit=MEMORY, preserve_insertion_order=False)
    backend.con.execute("SET enable_progress_bar = false")
    table = backend.read_parquet(str(path / "*.parquet" if path.is_dir() else path))
    query = backend.compile(encoding(table, schema, "duckdb"))
    codes = ", ".join(f"max(c{i})" for i in range(len(schema.columns)))
    _, seconds = clock(lambda: backend.con.sql(f"select {codes} from ({query})").fetchall())
    backend.disconnect()
    return seconds


def counts(folder: Path, rows: int) -> None:
    """Print the speed of a snapshot and of all counts, relative to DuckDB's scan: one file, 100 files, text only,
    numbers only.
    """
    for layout in ("file", "folder", "texts"):
        apart(f"from benchmarks.scale import layout; layout({str(folder)!r}, {rows}, {layout!r})")
    numeric(folder, rows)


def numeric(folder: Path, rows: int) -> None:
    """Measure the speed of a snapshot and of all counts for whole numbers only."""
    apart(f"from benchmarks.scale import layout; layout({str(folder)!r}, {rows}, 'numbers')")


def layout(folder: str, rows: int, name: str) -> None:
    """Run one layout of :func:`counts` in a separate process. PyArrow's first imports are not part of a scan."""
    import pandas  # noqa: F401

    from espalier.core.tables.relation import open_relation

    path, schema = Path(folder, f"adult-{name}.parquet"), adult_project("mst").schema
    if name == "numbers":
        schema = Schema(tuple(Column(c.name, "numeric", edges=tuple(range(c.size + 1))) for c in schema.columns))
        apart(f"from benchmarks.scale import numbers; numbers({str(path)!r}, {rows})")
    else:
        generate_apart(path, rows, files=100 if name == "folder" else 1)
    if name == "texts":
        schema = Schema(tuple(c for c in schema.columns if c.kind != "numeric")[:6])
    asked = [q for q in cliques() if set(q) <= set(schema.names)]
    print(f"\n{name}: {rows:,} rows × {len(schema.columns)}")
    with ProcessPoolExecutor(1, get_context("spawn")) as other:  # memory of a separate process
        scan = other.submit(duckdb_scan, path, schema).result()
    relation = open_relation(path)
    snapshot, first = clock(lambda: relation.snapshot(schema))
    got, again = clock(lambda: snapshot.count_many(asked))
    line("DuckDB's own encode scan", scan)
    line("snapshot of codes", first, scan)
    line(f"snapshot and all {len(asked)} counts", first + again, scan)
    line("all counts again, on the snapshot", again, scan)
    print(f"peak {peak()} MB")
    if rows > 20_000_000 or name != "file":
        return
    table = Table.encode(read_table(path), schema)
    today, alone = clock(lambda: [table.count(q) for q in cliques()])
    joined = Counting(cliques(), schema.sizes)
    _, together = clock(lambda: joined.add(table.codes, table.rows))
    line("one Table.count each, in memory", alone, again)
    line("all in one go, in memory", together)
    same = all(
        np.array_equal(a, b) and np.array_equal(a, c) for a, b, c in zip(today, got, joined.counts(), strict=True)
    )
    print(agreed(same, "bit-identical"), f"· {alone / again:.1f} × less on the snapshot")


def numbers(path: str, rows: int) -> None:
    """Write whole numbers below each column's number of codes to a folder of links to files of a million rows."""
    import pyarrow as pa
    from pyarrow import parquet

    rng, schema, n = np.random.default_rng(0), adult_project("mst").schema, min(rows, STEP)
    Path(path).mkdir()
    table = pa.table({c.name: rng.integers(0, c.size, n) for c in schema.columns})
    parquet.write_table(table, Path(path, "0.parquet"))
    for i in range(1, rows // n):
        os.link(Path(path, "0.parquet"), Path(path, f"{i}.parquet"))


def wide(folder: Path, rows: int) -> None:  # noqa: ARG001
    """Print the speed of counting pairs of 200 columns, by number of categories."""
    rng, n = np.random.default_rng(0), min(rows, 1_000_000)
    for size in (2, 3, 10):
        sizes = {f"c{i}": size for i in range(200)}
        codes = {name: rng.integers(0, size, n, dtype=np.uint8) for name in sizes}
        pairs = list(itertools.combinations(sizes, 2))
        got, seconds = clock(partial(count_many, codes, sizes, n, pairs))
        sample = [int(i) for i in rng.integers(0, len(pairs), 50)]

        def each(sample: list[int] = sample, pairs: Any = pairs, codes: Any = codes, size: int = size) -> list[Any]:
            return [
                np.bincount(codes[a].astype(np.int64) * size + codes[b], minlength=size * size).reshape(size, size)
                for a, b in (pairs[i] for i in sample)
            ]

        expected, alone = clock(each)
        same = all(np.array_equal(got[i], e) for i, e in zip(sample, expected, strict=True))
        line(f"{len(pairs):,} pairs of {size} categories, {n:,} rows", seconds)
        line("   one by one (from 50)", alone / len(sample) * len(pairs), seconds)
        print("  ", agreed(same, "identical"), f"· peak {peak()} MB")


def people(folder: Path, rows: int) -> None:
    """Print the cost of row limits per person; one person has a tenth of all rows."""
    from espalier.core.tables.relation import open_relation

    path = folder / "people.parquet"
    generate_apart(path, rows, people=True)
    schema = adult_project("mst").schema
    before = peak()
    snapshot, seconds = clock(lambda: open_relation(path).snapshot(schema, "person", 3))
    line(f"at most 3 rows per person, {rows:,} rows → {snapshot.rows:,}", seconds)
    print(f"peak {peak()} MB ({before} before)")


def output(folder: Path, rows: int) -> None:
    """Print the cost of drawing rows evenly, in batches, to a Parquet file."""
    from espalier.core.models.graphical import estimate
    from espalier.core.privacy.draws import Measurement
    from espalier.core.release.output import write_rows

    schema = adult_project("mst").schema
    table = Table.encode(read_table(DATA), schema)
    tree = [
        ("age", "marital-status"),
        ("marital-status", "relationship"),
        ("relationship", "sex"),
        ("education", "income"),
        ("relationship", "income"),
        ("education", "occupation"),
        ("workclass", "occupation"),
        ("race", "sex"),
        ("capital-gain", "income"),
        ("capital-loss", "income"),
        ("hours-per-week", "sex"),
    ]
    made = [Measurement(q, table.count(schema.clique(q)).astype(float), 1.0) for q in map(schema.clique, tree)]
    model = estimate(schema.sizes, made, float(table.rows))
    before = peak()
    rng = np.random.default_rng(0)
    drawn = model.sample_batches(rows, rng, even=True)
    _, seconds = clock(lambda: write_rows(drawn, schema, rows, folder / "out.parquet", rng))
    line(f"{rows:,} rows drawn evenly, to Parquet", seconds)
    print(f"peak {peak()} MB ({before} before)")


def release(folder: Path, rows: int) -> None:
    """Print the cost of a whole prism release, from Parquet to Parquet."""
    from espalier.core.release.spend import release as made_of
    from espalier.core.tables.relation import open_relation

    path, project = folder / "adult.parquet", adult_project("prism")
    generate_apart(path, rows)
    scan, relation = duckdb_scan(path, project.schema), open_relation(path)
    made, spent = clock(lambda: made_of(project, relation))
    _, written = clock(lambda: made.save(folder / "out", "parquet"))
    line(f"DuckDB's own encode scan, {rows:,} rows", scan)
    line("release", spent, scan)
    line("release and writing its files", spent + written, scan)
    print(f"peak {peak()} MB")


def app(folder: Path, rows: int) -> None:
    """Open, plan and release a file on the server in a browser; print the memory of the real server."""
    from tests.reliability.load import CHROMIUMS, memory, server

    if importlib.util.find_spec("playwright") is None or not any(map(shutil.which, CHROMIUMS)):
        print("the app was not measured: there is no Chromium with playwright here")
        return
    path, project = folder / "adult.parquet", folder / "adult.json"
    generate_apart(path, rows)
    project.write_text(adult_project("prism").dumps(), "utf-8")
    os.environ["ESPALIER_SERVER_TABLES"] = str(path.parent)
    with server(str(folder)) as (address, pid):
        idle, start = memory(pid), tree_seconds(pid)
        seen = driven(address, path, project, rows)
        spent, most = tree_seconds(pid) - start, memory(pid, "VmHWM")
    print(agreed(f"{rows:,} synthetic rows" in seen, f"{rows:,} rows opened, planned and released in a browser"))
    line("total CPU of the server", spent)
    print(
        f"peak {1024 * most:.0f} MB of the server ({1024 * idle:.0f} idle; the rows as text in memory: {text_mb(rows)})"
    )


def text_mb(rows: int) -> str:
    """Return the minimum memory for ``rows`` rows held in memory: four bytes for each cell."""
    return f"at least {rows * len(ORDER) * 4 / 2**20:,.0f} MB"


def driven(address: str, path: Path, project: Path, rows: int) -> str:
    """Open, plan and release the table at ``path`` in a browser; return the last page's text."""
    from playwright.sync_api import sync_playwright

    from tests.reliability.load import CHROMIUMS, FLAGS, PATIENCE

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=next(filter(None, map(shutil.which, CHROMIUMS))), args=FLAGS)
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)

        def visit(name: str) -> None:
            page.locator("[data-testid=stSidebarNavLink]").filter(has_text=name).click()
            page.get_by_role("heading", name=name, exact=True).wait_for()

        page.goto(f"{address}/data")
        box = page.locator("[data-testid=stFileUploader]").filter(has_text="Its project file")
        box.locator("input[type=file]").set_input_files(project)
        page.get_by_role("button", name="Open the project").click()
        page.get_by_text("Open something else", exact=True).click()
        page.get_by_role("textbox", name="A file or database on the server").fill(str(path))
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Open it in this project").click()
        page.get_by_text("Open where it is").wait_for()
        visit("Plan")
        page.get_by_role("spinbutton", name="Number of rows n").fill(str(rows))
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="What noise hides").wait_for()
        visit("Release")
        page.get_by_role("button", name="Open this budget").click()
        page.get_by_role("button", name="Spend").first.click()
        page.get_by_text(f"{rows:,} synthetic rows").first.wait_for()
        seen = page.locator("[data-testid=stMain]").inner_text()
        browser.close()
    return str(seen)


def sqlite(folder: Path, rows: int) -> None:
    """Print the cost of an engine that streams its rows, whose memory is flat, and of the same counts in Parquet."""
    from espalier.core.tables.relation import open_relation

    path, file, rows, schema = folder / "adult.parquet", folder / "adult.db", rows // 10, adult_project("mst").schema
    generate_apart(path, rows)
    code = f"from benchmarks.scale import to_sqlite; to_sqlite({str(path)!r}, {str(file)!r})"
    subprocess.run([sys.executable, "-c", code], check=True)
    relation = open_relation(f"sqlite://{file}", "adult")
    before = peak()
    snapshot, seconds = clock(lambda: relation.snapshot(schema))
    most = peak()
    line(f"snapshot of {snapshot.rows:,} rows of SQLite", seconds)
    beside = open_relation(path).snapshot(schema)
    pairs = zip(snapshot.count_many(cliques()), beside.count_many(cliques()), strict=True)
    same = all(np.array_equal(a, b) for a, b in pairs)
    print(agreed(same, "the counts of the same rows in Parquet"), f"· peak {most} MB ({before} before)")


def to_sqlite(path: str, file: str) -> None:
    """Write the rows of a Parquet file to a SQLite table."""
    import sqlite3

    from pyarrow import parquet

    schema = adult_project("mst").schema
    kinds = {c.name: "INTEGER" if c.kind == "numeric" else "TEXT" for c in schema.columns}
    with sqlite3.connect(file) as con:
        con.execute("CREATE TABLE adult (" + ", ".join(f'"{name}" {kind}' for name, kind in kinds.items()) + ")")
        for batch in parquet.ParquetFile(path).iter_batches(100_000, columns=list(kinds)):
            cells = zip(*(batch.column(name).to_pylist() for name in kinds), strict=True)
            con.executemany(f"INSERT INTO adult VALUES ({', '.join('?' * len(kinds))})", cells)


def postgres(folder: Path, rows: int) -> None:
    """Print the cost of counts inside PostgreSQL, relative to its encode scan."""
    import psycopg
    from pyarrow import parquet

    from espalier.core.tables.relation import open_relation
    from tests.support.postgres import Absent, server

    path, rows, schema = folder / "adult.parquet", rows // 10, adult_project("mst").schema
    generate_apart(path, rows)
    with ExitStack() as held:
        try:
            running = held.enter_context(server())
        except Absent as why:
            print(why)
            return
        columns = ", ".join(
            f'"{c.name}" {"bigint" if c.kind == "numeric" else "text"}' for c in map(schema.__getitem__, ORDER)
        )
        with psycopg.connect(running.url, autocommit=True) as con:
            con.execute(f"CREATE TABLE adult ({columns})")
            with con.cursor().copy("COPY adult FROM STDIN") as copy:
                for batch in parquet.ParquetFile(path).iter_batches(100_000):
                    for row in zip(*(c.to_pylist() for c in batch.columns), strict=True):
                        copy.write_row(row)
            con.execute("VACUUM ANALYZE adult")
        relation = open_relation(running.url, "adult")
        codes = ", ".join(f"max(c{i})" for i in range(len(ORDER)))
        scanned = f"SELECT {codes} FROM ({relation.query(schema)}) AS scan"

        def cpu() -> float:
            return tree_seconds(running.process)

        _, scan = elsewhere(cpu, lambda: relation.backend.con.execute(scanned).fetchall())
        snapshot, first = elsewhere(cpu, lambda: relation.snapshot(schema))
        _, again = elsewhere(cpu, lambda: snapshot.count_many(cliques()))
        snapshot.close()
        relation.close()
        line(f"PostgreSQL's own encode scan, {rows:,} rows", scan)
        line("snapshot of codes", first, scan)
        line(f"snapshot and all {len(cliques())} counts", first + again, scan)


def spark(folder: Path, rows: int) -> None:
    """Print the cost of counts in Spark, relative to its encode scan."""
    if importlib.util.find_spec("pyspark") is None:
        print("Spark is not installed here: pip install -r requirements-spark.txt")
        return
    from espalier.core.tables import encoding_query, engines
    from espalier.core.tables.relation import open_relation

    path, schema = folder / "adult.parquet", adult_project("mst").schema
    generate_apart(path, rows)
    url = "pyspark://?spark.master=local[2]&spark.driver.memory=2g&spark.ui.showConsoleProgress=false"
    session = engines._spark(url)._session
    session.read.parquet(str(path)).createOrReplaceTempView("adult")
    session.sql("SELECT count(*) FROM adult").collect()  # it has started
    process = int(session._jvm.java.lang.ProcessHandle.current().pid())
    relation = open_relation(url, "adult")
    encoded = relation._text(encoding_query.encoding(relation.table, schema, "pyspark"))
    codes = ", ".join(f"max(c{i})" for i in range(len(ORDER)))

    def cpu() -> float:
        return tree_seconds(process)

    got: Any = None
    for when in ("the first time", "again"):  # Java compiles frequently used code at run time
        _, scan = elsewhere(cpu, lambda: session.sql(f"SELECT {codes} FROM ({encoded})").collect())
        snapshot, first = elsewhere(cpu, lambda: relation.snapshot(schema))
        got, more = elsewhere(cpu, partial(snapshot.count_many, cliques()))
        snapshot.close()
        line(f"Spark's own encode scan, {rows:,} rows, {when}", scan)
        line("snapshot of codes", first, scan)
        line(f"snapshot and all {len(cliques())} counts", first + more, scan)
    with_duckdb = open_relation(path).snapshot(schema).count_many(cliques())
    same = all(np.array_equal(a, b) for a, b in zip(got, with_duckdb, strict=True))
    print(agreed(same, "as DuckDB counts"), f"· peak {peak()} MB in addition to Spark's own")


def elsewhere(cpu: Callable[[], float], work: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result, and the CPU seconds of this process and of the process that ``cpu`` reads."""
    start = cpu()
    out, here = clock(work)
    return out, here + cpu() - start


def tree_seconds(process: int) -> float:
    """Return the CPU seconds of a process and of the processes that it started, including those that ended (Linux)."""
    ticks, known = 0, {process}
    for path in sorted(Path("/proc").glob("[0-9]*/stat"), key=lambda p: int(p.parent.name)):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(path.parent.name) == process or int(fields[1]) in known:
            known.add(int(path.parent.name))
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def generate_apart(path: Path, rows: int, *, people: bool = False, files: int = 1) -> None:
    """Run in a separate process, to exclude its memory."""
    given = f"Path({str(path)!r}), {rows}, people={people}, files={files}"
    apart(f"from pathlib import Path; from benchmarks.scale import generate; generate({given})")


def apart(code: str) -> None:
    """Run ``code`` in a separate process with its own memory."""
    subprocess.run([sys.executable, "-c", code], check=True)


def main() -> None:
    """Run one part, or each part in a separate process."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("part", nargs="?", choices=PARTS)
    options.add_argument("--rows", type=int, default=10_000_000)
    opt = options.parse_args()
    if opt.part is None:
        failed = []
        for part in PARTS:
            print(f"— {part}", flush=True)
            command = [sys.executable, "-m", "benchmarks.scale", part, "--rows", str(opt.rows)]
            if subprocess.run(command, check=False).returncode:
                failed.append(part)
        sys.exit(f"these parts ended with an error: {', '.join(failed)}" if failed else 0)
    with tempfile.TemporaryDirectory(prefix="espalier-scale-") as folder:
        globals()[opt.part](Path(folder), opt.rows)


if __name__ == "__main__":
    main()
