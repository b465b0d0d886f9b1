"""A private table that stays where it is: in files, in PostgreSQL, in Spark, in any engine of Ibis.

:func:`open_relation` connects, and reads only the catalogue, footers or header. :meth:`Relation.snapshot` scans the
rows once and keeps what a release needs: small whole numbers, at most k rows of a person. Files and most engines give
rows, which `espalier.core.tables.encoding` turns into codes. PostgreSQL and Spark encode rows themselves
(`espalier.core.tables.sql`). One statement sees one state of the table, and files that change during the scan are
refused.

No message here quotes a cell or says how many cells are wrong. It names the column.
"""

from __future__ import annotations

import re
import tempfile
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
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
from espalier.core.tables.encoding import Batch, Encoder, refuse
from espalier.core.tables.lots import kept_rows, new_key
from espalier.core.tables.reading import TextColumn, TextTable, check_ordinary, from_arrow, is_plain, value_type
from espalier.core.tables.snapshot import PERSON, CodeFile, Digest, Snapshot

if TYPE_CHECKING:
    from espalier.core.tables.remote import RemoteSnapshot

ENGINES = ("postgres", "postgresql", "pyspark")
"""Schemes of the URLs of engines that encode rows themselves. Rows of others come here in batches."""
EXTRAS = {"postgres": "postgres", "mysql": "mysql", "pyspark": "spark"}
"""This package's extras that install an engine's driver."""
BUCKETS = 64
"""Parts into which the rows of people are divided, so that one part at a time is in memory."""
SAMPLE_ROWS = 10_000
"""Rows of a sample that a schema is guessed from."""
ROWS = "espalier_rows"
"""What a statement calls the relation where it is not a table of the engine's catalogue."""


class Feed(Protocol):
    """Rows that are encoded here, in Arrow batches."""

    @property
    def columns(self) -> dict[str, str]:
        """Names and types of the columns."""
        ...

    @property
    def rows(self) -> int | None:
        """The number of rows if it is known without a scan; for progress only."""
        ...

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that are read; none for an engine."""
        ...

    def schema(self, names: Sequence[str]) -> Any:
        """The Arrow schema of these columns; raises :class:`TableError` where files disagree."""
        ...

    def batches(self, names: Sequence[str], most: int | None = None) -> Generator[Any]:
        """The columns ``names`` of all rows, or of at least the first ``most``, as Arrow batches."""
        ...

    def statements(self, names: Sequence[str]) -> list[str]:
        """What an engine is asked for :meth:`batches`, as text."""
        ...

    def close(self) -> None:
        """Disconnect, as often as it is called."""
        ...


@dataclass(frozen=True, repr=False)
class Relation:
    """A table whose rows stay where they are; ``shown`` is its name in messages.

    ``feed`` gives rows that are encoded here. Without one the engine encodes: ``backend`` is the connection, ``table``
    the relation in it. ``plain`` is then the query that reads ``table`` with texts that are compared byte by byte,
    where the engine might not: a collation that finds two ids equal would merge two people. ``origin`` is what the
    engine's catalogue says the relation is (`espalier.core.tables.catalogue`); None for files.
    """

    shown: str
    feed: Feed | None = None
    backend: Any = None
    table: Any = None
    plain: str | None = None
    origin: str | None = None

    @property
    def columns(self) -> dict[str, str]:
        """Names and types of the columns, from the catalogue."""
        if self.feed is not None:
            return self.feed.columns
        return {name: str(kind) for name, kind in self.table.schema().items()}

    @property
    def remote(self) -> bool:
        """Do its rows stay in a server, of which only counts and sums are asked?"""
        return self.feed is None and bool(self.backend.name == "postgres")

    @property
    def told(self) -> str:
        """What leaves the source and where it is kept, and who is trusted with the relation."""
        return " ".join([self._leaves, *([TRUSTED[self.origin]] if self.origin in TRUSTED else [])])

    @property
    def _leaves(self) -> str:
        if self.remote:
            return "A release asks the database for counts and sums. Rows and codes stay there."
        if self.feed is not None and not self.feed.files:
            return (
                "A release reads it once, in batches that pass through Espalier. Their codes, not the rows, are kept "
                "on this machine until it ends."
            )
        return "A release reads it once. Its codes, not the rows, are kept on this machine until it ends."

    def close(self) -> None:
        """Disconnect; nothing can be asked afterwards."""
        if self.feed is not None:
            self.feed.close()
        else:
            from espalier.core.tables.sql import disconnect

            disconnect(self.backend)

    def sample(self, rows: int = SAMPLE_ROWS) -> TextTable:
        """The first ``rows`` rows as text, for a steward who asks for them: to guess a schema, and nothing else."""
        from espalier.core.tables.sql import fetched

        try:
            if self.feed is not None:
                return self._first(self.feed, rows)
            found = fetched(self.backend, self._text(self.table.limit(rows)))
        except EspalierError:
            raise
        except Exception as error:  # an engine's own message may quote a cell
            raise TableError(f"{self.shown}: the engine refuses to read ({type(error).__name__})") from None
        if not found:
            raise TableError("the table has a header but no rows")
        cells = zip(self.columns, zip(*found, strict=True), strict=True)
        return TextTable({name: TextColumn.of(column) for name, column in cells}, len(found), self.shown)

    def _first(self, feed: Feed, rows: int) -> TextTable:
        """The first rows of a feed as text, without columns that no schema can describe."""
        import pyarrow as pa

        columns = feed.schema(list(self.columns))
        kept = [c.name for c in columns if is_plain(value_type(c.type))]
        parts: list[Any] = []
        with closing(feed.batches(kept, rows)) as batches:
            while sum(len(part) for part in parts) < rows and (batch := next(batches, None)) is not None:
                parts.append(batch.cast(pa.schema([columns.field(name) for name in kept])))
        if not sum(len(part) for part in parts):
            raise TableError("the table has a header but no rows")
        return from_arrow(pa.Table.from_batches(parts).slice(0, rows), self.shown)

    def statements(self, schema: Schema, plan: Plan) -> list[str]:
        """All that an engine is told to make a release's snapshot, as text.

        An engine that gives rows is asked one thing; lots are dealt here. ``KEY`` stands for a key that is drawn anew
        each time, ``SIZE`` and ``SHORT`` for numbers of rows that are not known yet, ``CODES`` for what will be bought.
        """
        read = as_read(schema)
        if self.feed is not None:
            return self.feed.statements(self._needed(read, plan.person))
        told = [self.query(read, plan.person)]
        if self.remote:
            from espalier.core.tables.remote import told_later

            told += told_later(schema, plan)
        return told

    def query(self, schema: Schema, person: str | None = None) -> str:
        """The one statement by which an engine encodes its rows, as text."""
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
        """The columns that a release reads; raises :class:`TableError` for one that the table does not have."""
        columns = self.columns
        for name in (*schema.names, *([person] if person is not None else [])):
            if name not in columns:
                known = ", ".join(list(columns)[:12]) + (", …" if len(columns) > 12 else "")
                raise TableError(f"there is no column {name!r}; the table has {known}", column=name)
        return [name for name in columns if name in schema or name == person]

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
        """The rows as codes, read once; with ``person``, at most ``most`` rows of each.

        The codes go into a file here, those of PostgreSQL into a temporary table there.

        ``key`` is that of the lots (a fresh one if not given). Raises :class:`TableError` that names the column, and
        never a value, where a cell is not declared, empty against the schema, or a row says not whose it is. Columns
        that are to be bought are read :func:`~espalier.core.project.public_grid.as_read` says, which refuses some.
        """
        schema = as_read(schema)
        if self.remote:
            from espalier.core.tables.remote import RemoteSnapshot

            return RemoteSnapshot(self, schema, person, most, key, lambda: report(0.0, "Reading the table"))
        files = self.feed.files if self.feed is not None else ()
        before = _state(files)
        try:
            with closing(self._batches(schema, person, report)) as batches:
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
        if _state(files) != before:
            read.close()
            raise TableError(f"{self.shown} was changed while it was read; start again once it has been written")
        return read

    def _batches(self, schema: Schema, person: str | None, report: Report) -> Generator[Batch]:
        """The rows as codes that the schema has, with progress between the batches."""
        report(0.0, "Reading the table")
        needed, rows = self._needed(schema, person), 0
        if self.feed is None:
            answer, total = self._spark(schema, person, lambda: report(0.0, "Reading the table")), None
        else:
            answer, total = self._encoded(self.feed, needed, schema, person), self.feed.rows
        with closing(answer):
            for batch in answer:
                rows += batch.rows
                report(min(rows / total, 1.0) if total else 0.0, "Reading the table")
                yield batch

    def _encoded(self, feed: Feed, needed: Sequence[str], schema: Schema, person: str | None) -> Generator[Batch]:
        encode = Encoder(schema, feed.schema(needed), self.shown, person)
        with closing(feed.batches(needed)) as batches:
            for batch in batches:
                yield encode(batch)

    def _spark(self, schema: Schema, person: str | None, pulse: Callable[[], None]) -> Generator[Batch]:
        from espalier.core.tables.spark import written

        with closing(written(self.backend._session, self.query(schema, person), schema, pulse)) as batches:
            for batch in batches:
                for column, codes in zip(schema.columns, batch.codes, strict=True):
                    refuse(self.shown, column, codes)
                yield batch


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

    if (scheme := _URL.match(text := str(where))) is None:
        return Relation(text, _file(Path(text)))
    shown = f"the {scheme[1]} relation {relation!r}"
    if not relation:
        raise TableError("a connection needs the name of its table: say --relation NAME")
    try:
        if scheme[1] in ENGINES:
            backend, table, plain = sql.open_url(text, relation)
            opened = Relation(shown, backend=backend, table=table, plain=plain, origin=sql.origin_of(backend, relation))
            weakref.finalize(opened, sql.disconnect, backend)
        else:
            stream = sql.open_stream(text, relation, shown)
            opened = Relation(shown, stream, origin=sql.origin_of(stream.backend, relation))
            weakref.finalize(opened, stream.close)
    except EspalierError:
        raise
    except ImportError:
        engine = scheme[1].replace("postgresql", "postgres")
        extra = EXTRAS.get(engine)
        how = wheel_with(extra) if extra else f"Install it with: pip install 'ibis-framework[{engine}]>=12,<13'"
        raise TableError(f"The driver for {engine} is not installed where Espalier runs. {how}") from None
    except Exception as error:
        raise TableError(f"cannot open {shown}: {type(error).__name__}") from None
    return opened


def _file(path: Path) -> Feed:
    """The rows of a CSV or Parquet file, or of a folder of Parquet files."""
    from espalier.core.tables.csv_batches import Lines
    from espalier.core.tables.parquet_files import ParquetFiles, is_parquet

    if not path.exists():
        raise TableError(f"cannot read {path}: no such file or folder", path=str(path))
    try:
        if not path.is_dir():
            check_ordinary(path)
        return ParquetFiles(path) if path.is_dir() or is_parquet(path) else Lines(path)
    except OSError as error:
        raise TableError(f"cannot read {path}: {error.strerror or type(error).__name__}", path=str(path)) from None


def _state(files: Sequence[Path]) -> list[tuple[int, int, int] | None]:
    """What changes when someone writes one of ``files``: its inode, size and time; `None` for one that is gone."""
    found: list[tuple[int, int, int] | None] = []
    for file in files:
        try:
            of = file.stat()
            found.append((of.st_ino, of.st_size, of.st_mtime_ns))
        except FileNotFoundError:
            found.append(None)
    return found


def _named(codes: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Codes by the names that a file of codes gives its columns."""
    return {f"c{i}": column for i, column in enumerate(codes)}


def _plain(schema: Schema, batches: Iterator[Batch]) -> Snapshot:
    file = CodeFile(Snapshot.sizes(schema))
    for batch in batches:
        file.append(_named(batch.codes))
    _some(file.rows)
    return Snapshot(schema, file)


def _by_person(schema: Schema, batches: Iterator[Batch], person: str, most: int | None, key: str) -> Snapshot:
    """Rows divided into parts by person identifier; then part by part, each with all rows of its people."""
    parts: dict[int, _Part] = {}
    digest, seen = Digest(schema), 0
    for batch in batches:
        digest.add(dict(zip(schema.names, batch.codes, strict=True)))
        seen += batch.rows
        for number, rows in _divided(batch, person):
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


def _divided(batch: Batch, person: str) -> Iterator[tuple[int, Any]]:
    """The batch's rows by part, which the identifier alone determines; a row without a person is refused."""
    import pyarrow as pa
    from pyarrow import compute

    if batch.person.null_count or compute.any(compute.equal(batch.person, "")).as_py():
        raise TableError(
            f"the person column {person!r} is empty in some row; write there whose row it is, or take such rows out of "
            "the table",
            column=person,
        )
    named = batch.person.dictionary_encode()
    buckets = np.array([hash(name) % BUCKETS for name in named.dictionary.to_pylist()], dtype=np.uint8)
    bucket = buckets[named.indices.to_numpy()]
    order = np.argsort(bucket, kind="stable")
    columns = {name: pa.array(codes[order]) for name, codes in _named(batch.codes).items()}
    rows = pa.table({**columns, PERSON: batch.person.take(pa.array(order))})
    ends = np.cumsum(np.bincount(bucket, minlength=BUCKETS))
    for number, (start, stop) in enumerate(zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)):
        if stop > start:
            yield number, rows.slice(start, stop - start)


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
