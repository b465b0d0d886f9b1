"""A private table that stays where it is: in files, in DuckDB, in PostgreSQL, in Spark, in any engine of Ibis.

:func:`open_relation` connects and reads nothing but the catalogue. :meth:`Relation.snapshot` scans the rows once, in
one statement, and keeps what a release needs: small whole numbers, at most k rows of a person. One statement sees one
state of the table, so whoever writes meanwhile changes nothing.

No message here says what a cell holds or how many cells are wrong: a steward reads the column's name and looks there.
"""

from __future__ import annotations

import re
import tempfile
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import EspalierError, TableError, wheel_with
from espalier.core.progress import Report, silent
from espalier.core.project.plan import Plan
from espalier.core.project.public_grid import as_read
from espalier.core.project.schema import Schema
from espalier.core.tables.catalogue import TRUSTED
from espalier.core.tables.lots import kept_rows, new_key
from espalier.core.tables.reading import TextColumn, TextTable, from_arrow
from espalier.core.tables.snapshot import PERSON, CodeFile, Digest, Snapshot

if TYPE_CHECKING:
    from espalier.core.tables.remote import RemoteSnapshot

BATCH_ROWS = 1 << 19
ENGINES = ("duckdb", "postgres", "postgresql", "pyspark")
"""Schemes of the URLs of engines that encode rows themselves. Rows of others come here in batches and are encoded by
the embedded engine (`espalier.core.tables.stream`)."""
EXTRAS = {"postgres": "postgres", "mysql": "mysql", "pyspark": "spark"}
"""This package's extras that install an engine's driver."""
SAMPLE_ROWS = 10_000
"""Rows of a sample that a schema is guessed from."""
ROWS = "espalier_rows"
"""What a statement calls the relation where it is not a table of the engine's catalogue."""


class Feed(Protocol):
    """Rows that are handed to the embedded engine as it asks for them."""

    def schema(self, names: Sequence[str]) -> Any:
        """The Arrow schema of :meth:`batches`."""
        ...

    def batches(self, names: Sequence[str], most: int | None = None) -> Generator[Any]:
        """The columns ``names`` of all rows, or of the first ``most``, as Arrow batches; more of both is no harm."""
        ...

    def statements(self, names: Sequence[str]) -> list[str]:
        """What an engine is asked for :meth:`batches`, as text."""
        ...

    def close(self) -> None:
        """Disconnect, as often as it is called."""
        ...


@dataclass(frozen=True, repr=False)
class Relation:
    """A table in an engine. ``backend`` is the connection, ``table`` the relation in it, ``shown`` what to call it.

    ``plain`` is the query that reads ``table`` with texts that are compared byte by byte, where the engine might not:
    a collation that finds two ids equal would merge two people. ``feed`` gives the rows of a CSV file, or of an engine
    that is no one of `ENGINES`, to an embedded engine. ``path`` is the file or folder that it lies in, if it does.
    ``origin`` is what the engine's catalogue says the relation is (`espalier.core.tables.catalogue`); None for files.
    """

    backend: Any
    table: Any
    shown: str
    plain: str | None = None
    feed: Feed | None = None
    path: Path | None = None
    origin: str | None = None

    @property
    def columns(self) -> dict[str, str]:
        """Names and the engine's types, from the catalogue."""
        return {name: str(kind) for name, kind in self.table.schema().items()}

    @property
    def remote(self) -> bool:
        """Do its rows stay in a server, of which only counts and sums are asked?"""
        return bool(self.backend.name == "postgres")

    @property
    def told(self) -> str:
        """What leaves the source and where it is kept, and who is trusted with the relation."""
        return " ".join([self._leaves, *([TRUSTED[self.origin]] if self.origin in TRUSTED else [])])

    @property
    def _leaves(self) -> str:
        if self.remote:
            return "A release asks the database for counts and sums. Rows and codes stay there."
        if self.feed is not None and self.path is None:
            return (
                "A release reads it once, in batches that pass through Espalier. Their codes, not the rows, are kept "
                "on this machine until it ends."
            )
        return "A release reads it once. Its codes, not the rows, are kept on this machine until it ends."

    def close(self) -> None:
        """Disconnect; nothing can be asked afterwards."""
        _disconnected(self.backend, self.feed)

    def sample(self, rows: int = SAMPLE_ROWS) -> TextTable:
        """The first ``rows`` rows as text, for a steward who asks for them: to guess a schema, and nothing else."""
        from espalier.core.tables.sql import fetched

        try:
            if self.feed is not None:
                import pyarrow as pa

                columns = self.feed.schema(list(self.columns))
                kept = [c.name for c in columns if not (pa.types.is_nested(c.type) or pa.types.is_binary(c.type))]
                with closing(_asked(self.feed, kept, rows)) as batches:
                    first = pa.Table.from_batches([next(batches)])
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
        told = [] if self.feed is None else self.feed.statements(self._needed(schema, plan.person))
        told.append(self.query(as_read(schema), plan.person))
        if self.remote:
            from espalier.core.tables.remote import told_later

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

    def _needed(self, schema: Schema, person: str | None) -> list[str]:
        """The columns that a release reads."""
        return [name for name in self.columns if name in schema or name == person]

    def _encoding(self, schema: Schema, person: str | None) -> Any:
        from espalier.core.tables.sql import encoding, packed

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
        that are to be bought are read :func:`~espalier.core.project.public_grid.as_read` says, which refuses some.
        """
        schema = as_read(schema)
        if self.remote:
            from espalier.core.tables.remote import RemoteSnapshot

            return RemoteSnapshot(self, schema, person, most, key, lambda: report(0.0, "Reading the table"))
        before = _state(self.path)
        try:
            needed = self._needed(schema, person)
            with closing(self._batches(self._encoding(schema, person), schema, needed, report)) as batches:
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

    def _batches(self, query: Any, schema: Schema, needed: Sequence[str], report: Report) -> Generator[Any]:
        """The query's answer as Arrow batches; each checked against the schema, with progress between them."""
        names = {f"c{i}": column for i, column in enumerate(schema.columns)}
        report(0.0, "Reading the table")
        rows, total = 0, _known_rows(self)
        if self.feed is not None:
            answer = _through(self, self.feed, needed, query)
        else:
            answer = _answer(self, query, schema, lambda: report(0.0, "Reading the table"))
        with closing(answer):
            for batch in answer:
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
    """A CSV or Parquet file, a folder of Parquet files, or the URL of any engine of Ibis with the table's name.

    Raises :class:`TableError` where there is nothing to connect to; messages never hold the URL, which may hold a
    password.
    """
    from espalier.core.tables import sql
    from espalier.core.tables.csv_batches import Lines, csv_names

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
        return Relation(*made, shown=text, feed=Lines(path) if plain_text else None, path=path)
    shown = f"the {scheme[1]} relation {relation!r}"
    if not relation:
        raise TableError("a connection needs the name of its table: say --relation NAME")
    try:
        if scheme[1] in ENGINES:
            backend, table, plain = sql.open_url(text, relation)
            opened = Relation(backend, table, shown, plain, origin=sql.origin_of(backend, relation))
        else:
            backend, table, stream = sql.open_stream(text, relation, shown)
            opened = Relation(backend, table, shown, feed=stream, origin=sql.origin_of(stream.backend, relation))
    except EspalierError:
        raise
    except ImportError:
        engine = scheme[1].replace("postgresql", "postgres")
        extra = EXTRAS.get(engine)
        how = wheel_with(extra) if extra else f"Install it with: pip install 'ibis-framework[{engine}]>=12,<13'"
        raise TableError(f"The driver for {engine} is not installed where Espalier runs. {how}") from None
    except Exception as error:
        raise TableError(f"cannot open {shown}: {type(error).__name__}") from None
    weakref.finalize(opened, _disconnected, backend, opened.feed)
    return opened


def _disconnected(backend: Any, feed: Feed | None) -> None:
    from espalier.core.tables.sql import disconnect

    disconnect(backend)
    if feed is not None:
        feed.close()


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
    if relation.feed is not None or relation.backend.name == "pyspark":
        return None
    rows = relation.table
    return int(relation.backend.con.sql(relation._text(rows.count())).fetchall()[0][0])


def _answer(relation: Relation, query: Any, schema: Schema, pulse: Callable[[], None]) -> Generator[Any]:
    """The answer in batches, never whole in memory."""
    if relation.backend.name == "pyspark":
        from espalier.core.tables.spark import written

        yield from written(relation.backend._session, relation._text(query), schema, pulse)
    else:  # Ibis' own reader keeps all rows
        yield from relation.backend.con.sql(relation._text(query)).to_arrow_reader(BATCH_ROWS)


def _through(relation: Relation, feed: Feed, needed: Sequence[str], query: Any) -> Generator[Any]:
    """The query on rows that are handed to the engine; what is wrong with them is told as it is."""
    import pyarrow as pa

    failed: list[Exception] = []

    def rows() -> Generator[Any]:
        try:
            yield from _asked(feed, needed)
        except Exception as error:  # the engine would wrap it
            failed.append(error)
            raise

    con, handed, columns = relation.backend.con, rows(), feed.schema(needed)
    _check_case(relation.shown, columns.names)
    con.register(ROWS, pa.RecordBatchReader.from_batches(columns, handed))
    try:
        yield from con.sql(relation._text(query)).to_arrow_reader(BATCH_ROWS)
    except Exception:
        if failed:
            raise failed[0] from None
        raise
    finally:
        con.unregister(ROWS)
        handed.close()


def _check_case(shown: str, names: Sequence[str]) -> None:
    """The embedded engine does not tell names apart by their case: it would read one column for another."""
    seen: dict[str, str] = {}
    for name in names:
        if (other := seen.setdefault(name.lower(), name)) != name:
            raise TableError(
                f"{shown}: the columns {other!r} and {name!r} differ in case only, and the engine that reads them "
                "cannot tell them apart; rename one",
                column=name,
            )


def _asked(feed: Feed, names: Sequence[str], most: int | None = None) -> Generator[Any]:
    with closing(feed.batches(names, most)) as batches:
        yield from batches


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
