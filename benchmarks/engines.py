"""One project on seven engines, and the cost of reading rows as a read-only role.

    python -m benchmarks.engines tables                four typed tables in seven engines: are all counts identical?
    python -m benchmarks.engines reader                CPU time to read 10⁷ rows as a read-only role of PostgreSQL

``tables`` guesses one schema from each table in memory, and every engine counts all single columns and pairs. The
tables contain whole numbers, floats, booleans, days, text and empty cells. MariaDB needs requirements-mysql.txt. The
PostgreSQL and MariaDB servers are started for the run. Engines that are not installed are listed.
"""

from __future__ import annotations

import argparse
import datetime as dt
import itertools
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.adult import DATA, adult_project
from benchmarks.scale import generate_apart, tree_seconds
from espalier.core.process_memory import peak
from espalier.core.project.schema import Schema
from espalier.core.tables.frames import as_table, text_of
from espalier.core.tables.guessing import guess_schema
from espalier.core.tables.relation import open_relation
from tests.support import mariadb, postgres

FOLDER, NAME, STEP = DATA.parent, "t", 100_000
SIZES = 60
"""Columns with more values are left out, because different tables lead to different guesses of identifiers."""


def insurance() -> Any:
    """Return a table of whole numbers, floats, a boolean and text."""
    import pandas as pd

    frame = pd.read_csv(FOLDER / "insurance.csv")
    return frame.assign(smoker=frame["smoker"] == "yes")


def compas() -> Any:
    """Return a table of whole numbers with empty cells, and two booleans."""
    import pandas as pd

    frame = pd.read_csv(FOLDER / "compas.csv.gz").drop(columns=["c_charge_desc"])
    truths = {name: frame[name] == 1 for name in ("is_recid", "two_year_recid")}
    return frame.assign(**truths, days_b_screening_arrest=frame["days_b_screening_arrest"].astype("Int64"))


def diabetes() -> Any:
    """Return text, numbers, and a day computed from the encounter's number."""
    import pandas as pd

    frame = pd.read_csv(FOLDER / "diabetes_readmission_20k.csv.gz", keep_default_na=False)
    days = [dt.date(1999, 1, 1) + dt.timedelta(days=int(i) % 3650) for i in frame["encounter_id"]]
    kept = [n for n in frame if frame[n].nunique() <= SIZES and n not in ("encounter_id", "patient_nbr")]
    return frame[kept].assign(admitted=pd.Series(days, dtype="date32[pyarrow]"))


def adult() -> Any:
    """Return a table of whole numbers and text."""
    import pandas as pd

    return pd.read_csv(DATA, keep_default_na=False).drop(columns=["fnlwgt"])


def _arrow() -> Any:
    import pyarrow

    return pyarrow


TABLES: tuple[Callable[[], Any], ...] = (insurance, compas, diabetes, adult)


def typed(frame: Any) -> tuple[Any, dict[str, str]]:
    """Return the frame as an Arrow table, and the SQL type of each column."""
    pa = _arrow()
    table = pa.Table.from_pandas(frame, preserve_index=False)
    kinds = {}
    for field in table.schema:
        test = pa.types
        kinds[field.name] = next(
            sql
            for is_kind, sql in (
                (test.is_boolean, "BOOLEAN"),
                (test.is_integer, "BIGINT"),
                (test.is_floating, "DOUBLE PRECISION"),
                (test.is_date, "DATE"),
                (lambda _: True, "VARCHAR(100)"),
            )
            if is_kind(field.type)
        )
    return table, kinds


def engines(folder: Path, frame: Any, servers: dict[str, Any]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield each engine and a function that opens the frame's rows in it."""
    import duckdb
    from pyarrow import csv, parquet

    table, kinds = typed(frame)
    csv.write_csv(table, folder / "t.csv")
    yield "CSV", lambda: open_relation(folder / "t.csv")
    parquet.write_table(table, folder / "t.parquet")
    yield "Parquet", lambda: open_relation(folder / "t.parquet")
    with closing(duckdb.connect(str(folder / "t.duckdb"))) as con:
        con.register("given", table)
        con.execute(f"CREATE TABLE {NAME} AS SELECT * FROM given")
    yield "DuckDB", lambda: open_relation(f"duckdb://{folder}/t.duckdb", NAME)
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    with closing(sqlite3.connect(folder / "t.sqlite")) as con, con:
        con.execute(_created(kinds, '"'))
        written = [[str(cell) if isinstance(cell, dt.date) else cell for cell in row] for row in rows]
        con.executemany(f"INSERT INTO {NAME} VALUES ({', '.join('?' * len(kinds))})", written)
    yield "SQLite", lambda: open_relation(f"sqlite://{folder}/t.sqlite", NAME)
    if isinstance(server := servers["PostgreSQL"], postgres.Server):
        import psycopg

        with psycopg.connect(server.url, autocommit=True) as con:
            con.execute(f"DROP TABLE IF EXISTS {NAME}")
            con.execute(_created(kinds, '"'))
            with con.cursor().copy(f"COPY {NAME} FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
        yield "PostgreSQL", lambda: open_relation(server.url, NAME)
    if isinstance(maria := servers["MariaDB"], mariadb.Server):
        import pymysql

        with closing(pymysql.connect(host="127.0.0.1", port=maria.port, database="test", charset="utf8mb4")) as con:
            cursor = con.cursor()
            cursor.execute(f"DROP TABLE IF EXISTS {NAME}")
            cursor.execute(_created(kinds, "`"))
            cursor.executemany(f"INSERT INTO {NAME} VALUES ({', '.join(['%s'] * len(kinds))})", rows)
            con.commit()
        yield "MariaDB", lambda: open_relation(maria.url, NAME)


def _created(kinds: dict[str, str], quote: str) -> str:
    columns = ", ".join(f"{quote}{name}{quote} {kind}" for name, kind in kinds.items())
    return f"CREATE TABLE {NAME} ({columns})"


def asked(schema: Schema) -> list[tuple[str, ...]]:
    """Return all single columns and pairs."""
    return [*((name,) for name in schema.names), *itertools.combinations(schema.names, 2)]


def tables() -> int:
    """Print the table; return 1 if an engine counts differently or refuses."""
    failed = False
    with ExitStack() as held:
        servers: dict[str, Any] = {}
        for name, start in (("PostgreSQL", postgres.server), ("MariaDB", mariadb.server)):
            try:
                servers[name] = held.enter_context(start())
                if name == "MariaDB":
                    import pymysql  # noqa: F401
            except (postgres.Absent, ImportError) as why:
                servers[name] = None
                print(f"{name} was not run: {why}")
        for made in TABLES:
            frame = made()
            text = text_of(frame)
            schema = guess_schema(text)
            memory = as_table(text, schema)
            cliques = asked(schema)
            expected = memory.count_many(cliques)
            found = []
            with tempfile.TemporaryDirectory(prefix="espalier-engines-") as folder:
                for engine, opened in engines(Path(folder), frame, servers):
                    with closing(opened()) as relation:
                        try:
                            snapshot = relation.snapshot(schema)
                            got = snapshot.count_many(cliques)
                            snapshot.close()
                            same = all(np.array_equal(a, b) for a, b in zip(expected, got, strict=True))
                            found.append(f"{engine} {'=' if same else 'DIFFERENT'}")
                            failed |= not same
                        except Exception as error:
                            found.append(f"{engine} refuses: {error}")
                            failed = True
            kinds = len(schema.columns)
            print(
                f"| {made.__name__} | {text.rows:,} × {kinds} | {len(cliques):,} | memory, {', '.join(found)} |",
                flush=True,
            )
    return int(failed)


def reader(rows: int) -> int:
    """Print the CPU time of a snapshot and of all counts, for a role that has only the SELECT privilege."""
    import psycopg
    from pyarrow import parquet

    schema = adult_project("mst").schema
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="espalier-engines-")))
        try:
            server = held.enter_context(postgres.server())
        except postgres.Absent as why:
            print(why)
            return 1
        generate_apart(folder / "adult.parquet", rows)
        file = parquet.ParquetFile(folder / "adult.parquet")
        names = file.schema_arrow.names
        columns = ", ".join(f'"{n}" {"bigint" if schema[n].kind == "numeric" else "text"}' for n in names)
        with psycopg.connect(server.url, autocommit=True) as con:
            con.execute(f"CREATE TABLE adult ({columns})")
            from io import BytesIO

            from pyarrow import csv

            with con.cursor().copy("COPY adult FROM STDIN (FORMAT csv)") as copy:
                for batch in file.iter_batches(STEP):
                    csv.write_csv(batch, out := BytesIO(), csv.WriteOptions(include_header=False))
                    copy.write(out.getvalue())
            con.execute("VACUUM ANALYZE adult")
            con.execute("CREATE ROLE reader LOGIN; GRANT SELECT ON adult TO reader")
            con.execute("REVOKE TEMP ON DATABASE postgres FROM PUBLIC")
        relation = open_relation(server.url.replace("espalier@", "reader@"), "adult")
        print(f"temporary tables allowed: {relation.keeps}")
        here, there = time.process_time(), tree_seconds(server.process)
        snapshot = relation.snapshot(schema)
        scanned, served = time.process_time() - here, tree_seconds(server.process) - there
        snapshot.count_many(asked(schema))
        counted = time.process_time() - here
        print(
            f"{rows:,} rows: {scanned:.1f} CPU s to read, {counted:.1f} with all counts; PostgreSQL {served:.1f}; "
            f"peak {peak() >> 20} MB"
        )
        relation.close()
    return int(counted > 20 * rows / 10_000_000)


def main() -> int:
    """Run one part."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("part", choices=("tables", "reader"))
    options.add_argument("--rows", type=int, default=10_000_000)
    opt = options.parse_args()
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    return tables() if opt.part == "tables" else reader(opt.rows)


if __name__ == "__main__":
    sys.exit(main())
