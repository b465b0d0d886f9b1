"""A private table that stays where it is: in files, in DuckDB, in PostgreSQL, in Spark.

:func:`open_relation` connects and reads nothing but the catalogue. :meth:`Relation.snapshot` scans the rows once, in
one statement, and keeps what a release needs: small whole numbers, at most k rows of a person. One statement sees one
state of the table, so whoever writes meanwhile changes nothing.

No message here says what a cell holds or how many cells are wrong: a steward reads the column's name and looks there.
"""

from __future__ import annotations

import re
import tempfile
import weakref
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from core.errors import EspalierError, TableError
from core.progress import Report, silent
from core.project.finest import as_read
from core.project.plan import Plan
from core.project.schema import Schema
from core.tables.lots import kept_rows, new_key
from core.tables.reading import TextColumn, TextTable, from_arrow
from core.tables.snapshot import PERSON, CodeFile, Digest, Snapshot

if TYPE_CHECKING:
    from core.tables.remote import RemoteSnapshot

BATCH_ROWS = 1 << 19
ENGINES = ("duckdb", "postgres", "postgresql", "pyspark")
"""Schemes of the URLs of engines whose encoding is tested against the schema's own."""
SAMPLE_ROWS = 10_000
"""Rows of a sample that a schema is guessed from."""
ROWS = "espalier_rows"
"""What a statement calls the relation where it is not a table of the engine's catalogue."""


@dataclass(frozen=True, repr=False)
class Relation:
    """A table in an engine. ``backend`` is the connection, ``table`` the relation in it, ``shown`` what to call it.

    ``plain`` is the query that reads ``table`` with texts that are compared byte by byte, where the engine might not:
    a collation that finds two ids equal would merge two people. ``text_file`` is a CSV file, read block by block and
    handed to the engine as it asks for rows. ``path`` is the file or folder that it lies in, if it does.
    """

    backend: Any
    table: Any
    shown: str
    plain: str | None = None
    text_file: Path | None = None
    path: Path | None = None

    @property
    def columns(self) -> dict[str, str]:
        """Names and the engine's types, from the catalogue."""
        return {name: str(kind) for name, kind in self.table.schema().items()}

    @property
    def remote(self) -> bool:
        """Do its rows stay in a server, of which only counts and sums are asked?"""
        return bool(self.backend.name == "postgres")

    def close(self) -> None:
        """Disconnect; nothing can be asked afterwards."""
        from core.tables.sql import disconnect

        disconnect(self.backend)

    def sample(self, rows: int = SAMPLE_ROWS) -> TextTable:
        """The first ``rows`` rows as text, for a steward who asks for them: to guess a schema, and nothing else."""
        from core.tables.csv_batches import csv_batches
        from core.tables.sql import fetched

        try:
            if self.text_file is not None:
                import pyarrow as pa

                first = pa.Table.from_batches([next(csv_batches(self.text_file))])
                return from_arrow(first.slice(0, rows), self.shown)
            found = fetched(self.backend, self._text(self.table.limit(rows)))
        except StopIteration:
            found = []
        except EspalierError:
            raise
        except Exception as error:  # an engine's own message may quote a cell
            raise TableError(f"{self.shown}: the engine refuses to read ({type(error).__name__})") from None
        if not found:
            raise TableError("the table has a header but no rows")
        cells = zip(self.columns, zip(*found, strict=True), strict=True)
        return TextTable({name: TextColumn.of(column) for name, column in cells}, len(found), self.shown)

    def statements(self, schema: Schema, plan: Plan) -> list[str]:
        """All that an engine is told to make a release's snapshot, as text.

        An engine that is embedded is asked one thing; lots are dealt here. ``KEY`` stands for a key that is drawn anew
        each time, ``SIZE`` and ``SHORT`` for numbers of rows that are not known yet, ``CODES`` for what will be bought.
        """
        told = [self.query(as_read(schema), plan.person)]
        if self.remote:
            from core.tables.remote import told_later

            told += told_later(schema, plan)
        return told

    def query(self, schema: Schema, person: str | None = None) -> str:
        """The one statement that a snapshot runs, as text."""
        return self._text(self._encoding(schema, person))

    def _text(self, query: Any) -> str:
        text = str(self.backend.compile(query))
        if self.plain is None:
            return text
        import sqlglot

        dialect = self.backend.dialect
        whole = sqlglot.parse_one(text, read=dialect).with_(ROWS, as_=self.plain, dialect=dialect)
        return str(whole.sql(dialect))

    def _encoding(self, schema: Schema, person: str | None) -> Any:
        from core.tables.sql import encoding, packed

        codes = encoding(self.table, schema, self.backend.name, person)
        return packed(codes, schema) if self.backend.name == "pyspark" else codes

    def snapshot(
        self,
        schema: Schema,
        person: str | None = None,
        most: int | None = None,
        *,
        key: str | None = None,
        report: Report = silent,
    ) -> Snapshot | RemoteSnapshot:
        """The rows as codes, read in one statement; with ``person``, at most ``most`` rows of each.

        Of a file and of DuckDB they come into a file here, of PostgreSQL into a temporary table there.

        ``key`` is that of the lots (a fresh one if not given). Raises :class:`TableError` that names the column, and
        never a value, where a cell is not declared, empty against the schema, or a row says not whose it is. Columns
        that are to be bought are read :func:`~core.project.finest.as_read` says, which refuses some.
        """
        schema = as_read(schema)
        if self.remote:
            from core.tables.remote import RemoteSnapshot

            return RemoteSnapshot(self, schema, person, most, key, lambda: report(0.0, "Reading the table"))
        before = _state(self.path)
        try:
            with closing(self._batches(self._encoding(schema, person), schema, report)) as batches:
                if person is None:
                    read = _plain(schema, batches)
                else:
                    read = _by_person(schema, batches, person, most, key or new_key())
        except (EspalierError, MemoryError, AttributeError, TypeError, AssertionError):
            raise
        except Exception as error:  # an engine's own message may quote a cell
            raise TableError(
                f"{self.shown}: the engine gave up while it read the table ({type(error).__name__})"
            ) from None
        if _state(self.path) != before:
            read.close()
            raise TableError(f"{self.shown} was changed while it was read; start again once it has been written")
        return read

    def _batches(self, query: Any, schema: Schema, report: Report) -> Generator[Any]:
        """The query's answer as Arrow batches; each checked against the schema, with progress between them."""
        names = {f"c{i}": column for i, column in enumerate(schema.columns)}
        report(0.0, "Reading the table")
        rows, total = 0, _known_rows(self)
        with closing(_stream(self, query, schema, lambda: report(0.0, "Reading the table"))) as stream:
            for batch in stream:
                for own, column in names.items():
                    largest = int(batch.column(own).to_numpy(zero_copy_only=False).max(initial=0))
                    if largest >= column.size:
                        raise refusal(self.shown, column.name, empty=largest > column.size)
                rows += batch.num_rows
                report(min(rows / total, 1.0) if total else 0.0, "Reading the table")
                yield batch


def refusal(shown: str, name: str, *, empty: bool) -> TableError:
    if empty:
        text = f'column {name!r} has empty cells, but its schema does not say "missing": true'
    else:
        text = (
            f"column {name!r} holds a value that its schema does not declare (which one is not told here); "
            'correct the table, declare it, or say "unknown": "missing"'
        )
    return TableError(f"{shown}: {text}", column=name)


_URL = re.compile(r"([a-z][a-z0-9+]*)://")


def is_url(where: str) -> bool:
    """Is it the URL of an engine, and no path?"""
    return _URL.match(where) is not None


def open_relation(where: str | Path, relation: str | None = None) -> Relation:
    """A CSV or Parquet file, a folder of Parquet files, or the URL of an engine of `ENGINES` with the table's name.

    Raises :class:`TableError` where there is nothing to connect to; messages never hold the URL, which may hold a
    password.
    """
    from core.tables import sql
    from core.tables.csv_batches import csv_names

    if (scheme := _URL.match(text := str(where))) is None:
        path = Path(text)
        if not path.exists():
            raise TableError(f"cannot read {path}: no such file or folder", path=text)
        if path.is_dir() and not any(path.rglob("*.parquet")):
            raise TableError(f"cannot read the folder {path}: it holds no Parquet file", path=text)
        plain_text = path.is_file() and not _is_parquet(path)
        try:
            made = sql.open_lines(csv_names(path)) if plain_text else sql.open_parquet(path)
        except EspalierError:
            raise
        except Exception as error:
            raise TableError(f"{path} cannot be read as CSV or Parquet: {type(error).__name__}", path=text) from None
        return Relation(*made, shown=text, text_file=path if plain_text else None, path=path)
    shown = f"the {scheme[1]} relation {relation!r}"
    if scheme[1] not in ENGINES:
        raise TableError(f"{scheme[1]} is no engine that tables can stay in: {', '.join(ENGINES)}, or a file")
    if not relation:
        raise TableError("a connection needs the name of its table: say --relation NAME")
    try:
        backend, table, plain = sql.open_url(text, relation)
    except Exception as error:
        raise TableError(f"cannot open {shown}: {type(error).__name__}") from None
    opened = Relation(backend, table, shown, plain)
    weakref.finalize(opened, sql.disconnect, backend)
    return opened


def _state(path: Path | None) -> list[tuple[str, int, int, int]]:
    """What changes when somebody writes: the files of ``path``, with their inodes, sizes and times."""
    if path is None:
        return []
    found = []
    for file in sorted(path.rglob("*.parquet")) if path.is_dir() else [path]:
        with suppress(FileNotFoundError):
            of = file.stat()
            found.append((str(file), of.st_ino, of.st_size, of.st_mtime_ns))
    return found


def _is_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def _known_rows(relation: Relation) -> int | None:
    """How many rows, where the engine knows without a scan (for progress only)."""
    if relation.text_file is not None or relation.backend.name == "pyspark":
        return None
    rows = relation.table
    return int(relation.backend.con.sql(relation._text(rows.count())).fetchall()[0][0])


def _stream(relation: Relation, query: Any, schema: Schema, pulse: Callable[[], None]) -> Generator[Any]:
    """The answer in batches, never whole in memory."""
    if relation.text_file is not None:
        yield from _through(relation, relation.text_file, query)
    elif relation.backend.name == "pyspark":
        from core.tables.spark import written

        yield from written(relation.backend._session, relation._text(query), schema, pulse)
    else:  # Ibis' own reader keeps all rows
        yield from relation.backend.con.sql(relation._text(query)).to_arrow_reader(BATCH_ROWS)


def _through(relation: Relation, path: Path, query: Any) -> Iterator[Any]:
    """The query on a CSV file whose lines are handed to the engine; what is wrong with a line is told as it is."""
    import pyarrow as pa

    from core.tables.csv_batches import csv_batches

    refused: list[TableError] = []

    def lines() -> Iterator[Any]:
        try:
            yield from csv_batches(path)
        except TableError as error:  # the engine would wrap it
            refused.append(error)
            raise

    texts = pa.schema([(name, pa.string()) for name in relation.table.columns])
    con = relation.backend.con
    con.register(ROWS, pa.RecordBatchReader.from_batches(texts, lines()))
    try:
        yield from con.sql(relation._text(query)).to_arrow_reader(BATCH_ROWS)
    except Exception:
        if refused:
            raise refused[0] from None
        raise
    finally:
        con.unregister(ROWS)


def _codes(batch: Any, schema: Schema) -> dict[str, NDArray[Any]]:
    return {f"c{i}": batch.column(f"c{i}").to_numpy(zero_copy_only=False) for i in range(len(schema.columns))}


def _plain(schema: Schema, batches: Iterator[Any]) -> Snapshot:
    file = CodeFile(Snapshot.sizes(schema))
    for batch in batches:
        file.append(_codes(batch, schema))
    _some(file.rows)
    return Snapshot(schema, file)


def _by_person(schema: Schema, batches: Iterator[Any], person: str, most: int | None, key: str) -> Snapshot:
    """Rows dealt into parts by whose they are; then part by part, each with all rows of its people."""
    parts: dict[int, _Part] = {}
    digest, seen = Digest(schema), 0
    for batch in batches:
        codes = _codes(batch, schema)
        digest.add({c.name: codes[f"c{i}"] for i, c in enumerate(schema.columns)})
        seen += batch.num_rows
        for number, rows in _dealt(batch, person):
            parts.setdefault(number, _Part()).write(rows)
    _some(seen)
    file = CodeFile(Snapshot.sizes(schema, people=True))
    sizes = [c.size for c in schema.columns]
    for part in parts.values():
        names, whose, codes = part.read(schema)
        if most is not None:
            columns = list(codes.values())
            rows = kept_rows(key, names, whose, columns, sizes, most)
            whose, codes = whose[rows], {name: column[rows] for name, column in codes.items()}
        file.append(codes | {PERSON: whose})
    return Snapshot(schema, file, person, most, digest.value())


def _some(rows: int) -> None:
    if not rows:
        raise TableError("the table has a header but no rows")


def _dealt(batch: Any, person: str) -> Iterator[tuple[int, Any]]:
    """The batch's rows by part; a row without a person is refused."""
    import pyarrow as pa
    from pyarrow import compute

    names = batch.column("person")
    if names.null_count or compute.any(compute.equal(names, "")).as_py():
        raise TableError(
            f"the person column {person!r} is empty in some row; write there whose row it is, or take such rows out of "
            "the table",
            column=person,
        )
    bucket = batch.column("bucket").to_numpy()
    batch = batch.drop_columns(["bucket"])
    order = np.argsort(bucket.astype(np.uint8), kind="stable")
    dealt = pa.Table.from_batches([batch]).take(pa.array(order))
    ends = np.cumsum(np.bincount(bucket))
    for number, (start, stop) in enumerate(zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)):
        if stop > start:
            yield number, dealt.slice(start, stop - start)


class _Part:
    """Rows of some people, with whose they are as text, in a nameless file."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="espalier-")  # noqa: SIM115 (closed when it has been read)
        weakref.finalize(self, self._file.close)
        self._writer: Any = None

    def write(self, rows: Any) -> None:
        import pyarrow as pa

        if self._writer is None:
            self._writer = pa.ipc.new_stream(self._file, rows.schema)
        self._writer.write_table(rows)

    def read(self, schema: Schema) -> tuple[list[str], NDArray[np.int64], dict[str, NDArray[Any]]]:
        """(names of the people, whose each row is, codes); the file is gone afterwards."""
        import pyarrow as pa

        self._writer.close()
        self._file.seek(0)
        with pa.ipc.open_stream(self._file) as reader:
            table = reader.read_all().combine_chunks()
        self._file.close()
        coded = table.column("person").dictionary_encode().combine_chunks()
        if isinstance(coded, pa.ChunkedArray):
            coded = coded.chunk(0)
        codes = {f"c{i}": table.column(f"c{i}").to_numpy() for i in range(len(schema.columns))}
        return coded.dictionary.to_pylist(), coded.indices.to_numpy().astype(np.int64), codes
