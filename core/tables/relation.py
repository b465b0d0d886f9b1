"""Private table that is read in place, in files, PostgreSQL, Spark, or any engine that Ibis supports.

:func:`open_relation` connects, and reads only the catalogue, footers or header. :meth:`Relation.snapshot` scans the
rows once and keeps what a release needs: at most k rows per person, as small whole numbers. Files and most engines
return rows, which `espalier.core.tables.encoding` turns into codes. PostgreSQL and Spark encode rows themselves
(`espalier.core.tables.encoding_query`). Each statement sees one consistent state of the table, and files that change
during the scan are refused.

Messages name the column but never quote a cell or the number of wrong cells.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Generator, Sequence, Set
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from espalier.core.errors import EspalierError, TableError, wheel_with
from espalier.core.progress import Report, silent
from espalier.core.project.plan import Plan
from espalier.core.project.public_grid import as_read
from espalier.core.project.schema import Schema
from espalier.core.sqlite_steps import raise_interrupt
from espalier.core.tables.arrow_text import from_arrow, is_plain, value_type
from espalier.core.tables.catalogue import ROWS, TRUSTED
from espalier.core.tables.connection import while_opening
from espalier.core.tables.encoding import Batch, Encoder, fitting
from espalier.core.tables.engine_errors import OURS, engine_errors
from espalier.core.tables.refusals import together
from espalier.core.tables.row_limits import new_key
from espalier.core.tables.scan import scan, scan_people
from espalier.core.tables.snapshot import Snapshot
from espalier.core.tables.table import unclear_person
from espalier.core.tables.text_table import TextColumn, TextTable
from espalier.core.tables.unpacking import Facts, changes, check_ordinary

if TYPE_CHECKING:
    from espalier.core.tables.postgres_snapshot import PostgresSnapshot

ENGINES = ("postgres", "postgresql", "pyspark")
"""Schemes of the URLs of engines that encode rows themselves. Other engines send their rows in batches."""
EXTRAS = {"postgres": "postgres", "mysql": "mysql", "pyspark": "spark"}
"""Extras of this package that install an engine's driver."""
_KEPT = "Codes of the rows, not the rows themselves, are kept on this machine until the release ends."
SAMPLE_ROWS = 10_000
"""Number of rows in the sample from which a schema is guessed."""


class Feed(Protocol):
    """Rows in Arrow batches, to be encoded here."""

    @property
    def columns(self) -> dict[str, str]:
        """Names and types of the columns."""
        ...

    @property
    def rows(self) -> int | None:
        """Number of rows if it is known without a scan; for progress only."""
        ...

    @property
    def files(self) -> tuple[Path, ...]:
        """Files that are read; none for an engine."""
        ...

    @property
    def states(self) -> tuple[Facts | None, ...]:
        """States of these files when they were opened. Rows are read from them only in this state."""
        ...

    @property
    def unclear(self) -> Set[str]:
        """Columns in which two people may have the same text, according to the rows read so far."""
        ...

    def schema(self, names: Sequence[str]) -> Any:
        """Return the Arrow schema of these columns; raises :class:`TableError` if files disagree."""
        ...

    def batches(self, names: Sequence[str], most: int | None = None) -> Generator[Any]:
        """Yield the columns ``names`` of all rows, or of at least the first ``most``, as Arrow batches."""
        ...

    def spread(self, names: Sequence[str], rows: int) -> Generator[Any]:
        """Yield rows spread over the table: at least ``rows`` rows of a file (all rows if it has fewer), or about
        ``rows`` rows from an engine.
        """
        ...

    def statements(self, names: Sequence[str]) -> list[str]:
        """Return the statements of :meth:`batches`, as text."""
        ...

    def close(self) -> None:
        """Disconnect. Further calls do nothing."""
        ...


@dataclass(frozen=True, repr=False)
class Relation:
    """A table that is read in place; ``shown`` is its name in messages.

    ``feed`` returns rows that are encoded here. Without a feed, the engine encodes them: ``backend`` is the connection
    and ``table`` its relation. ``plain`` is then the query that reads ``table`` with text compared byte by byte, if the
    engine may compare differently: a collation that treats two identifiers as equal would merge two people. ``origin``
    is the kind of relation in the engine's catalogue (`espalier.core.tables.catalogue`); `None` for files. ``lock`` is
    called in a transaction before its first query and locks the relation. ``check`` raises :class:`TableError` if an
    engine's relation has since been replaced by a relation of another kind. ``keeps`` is true if the engine may keep
    codes in a temporary table; otherwise PostgreSQL streams them.
    """

    shown: str
    feed: Feed | None = None
    backend: Any = None
    table: Any = None
    plain: str | None = None
    origin: str | None = None
    keeps: bool = True
    lock: Callable[[], None] = lambda: None
    check: Callable[[], None] = lambda: None

    @property
    def columns(self) -> dict[str, str]:
        """Names and types of the columns, from the catalogue."""
        if self.feed is not None:
            return self.feed.columns
        return {name: str(kind) for name, kind in self.table.schema().items()}

    @property
    def remote(self) -> bool:
        """True if the rows stay in a server that answers only counts and sums."""
        return self.feed is None and bool(self.backend.name == "postgres") and self.keeps

    @property
    def notice(self) -> str:
        """Notice for users about the data that leave the table, their storage, and the parties that a release
        trusts.
        """
        return " ".join([self._leaves, *([TRUSTED[self.origin]] if self.origin in TRUSTED else [])])

    @property
    def _leaves(self) -> str:
        if self.remote:
            return (
                "A release asks the database for counts and sums. Rows stay there. Codes of all rows are read only for "
                "regressions, counts over several columns, and a private evaluation."
            )
        if self.feed is not None and not self.feed.files:
            return f"A release reads the table once, in batches that pass through Espalier. {_KEPT}"
        return f"A release reads the table once. {_KEPT}"

    def close(self) -> None:
        """Disconnect. The relation cannot be used afterwards."""
        if self.feed is not None:
            self.feed.close()
        else:
            from espalier.core.tables.engines import disconnect

            disconnect(self.backend)

    def sample(self, rows: int = SAMPLE_ROWS, *, every_value: bool = False) -> TextTable:
        """Return about ``rows`` rows, spread over the table, as text. Only a steward requests them, in order to guess a
        schema.

        With ``every_value``, all rows are read once, and rows that contain every value of each column are added.
        """
        from espalier.core.tables import spread_rows

        return spread_rows.every_value(self, rows) if every_value else spread_rows.sampled(self, rows)

    def merges(self, name: str) -> bool:
        """Return whether different text values of a column may become equal on their way from a PostgreSQL server."""
        from espalier.core.tables.postgres_names import keeps_texts_apart

        text = self.feed is None and self.backend.name == "postgres" and self.table[name].type().is_string()
        return bool(text) and not keeps_texts_apart(self.backend.con)

    def query_of(self, names: Sequence[str]) -> str:
        """Return the statement that reads these columns of an engine that encodes its rows, as text."""
        return self._text(self.table.select(*names))

    def query_of_rows(self, rows: int | None) -> str:
        """Return the statement that reads all rows of an engine that encodes them, as text.

        With ``rows``, it reads about that number of rows, each with the same probability.
        """
        from espalier.core.tables.engines import at_random, fetched

        if rows is None:
            return self._text(self.table)
        ((total,),) = fetched(self.backend, self._text(self.table.aggregate(rows=self.table.count())))
        return self._text(at_random(self.table, rows, total))

    def first(self, rows: int) -> TextTable:
        """Return the first ``rows`` rows as text, for a steward who requests them."""
        from espalier.core.tables.engines import fetched

        with engine_errors(f"{self.shown}: the engine refuses to read", OURS):
            if self.feed is not None:
                return self._first(self.feed, rows)
            found = fetched(self.backend, self._text(self.table.limit(rows)))
        if not found:
            raise TableError("the table has a header but no rows")
        cells = zip(self.columns, zip(*found, strict=True), strict=True)
        return TextTable({name: TextColumn.of(column) for name, column in cells}, len(found), self.shown)

    def _first(self, feed: Feed, rows: int) -> TextTable:
        """Return the first rows of a feed as text, without columns that no schema can describe."""
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
        """Return every statement that makes a release's snapshot, as text.

        An engine that returns rows gets one statement, and row limits are applied here. The statements of PostgreSQL
        have placeholders; see :func:`espalier.core.tables.postgres_statements.later_statements`.
        """
        read = as_read(schema)
        if self.feed is not None:
            return self.feed.statements(self._needed(read, plan.person))
        statements = [self.query(read, plan.person)]
        if self.remote:
            from espalier.core.tables.postgres_statements import later_statements

            statements += later_statements(schema, plan)
        return statements

    def query(self, schema: Schema, person: str | None = None) -> str:
        """Return the statement with which an engine encodes its rows, as text."""
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
        """Return the columns that a release reads; raise :class:`TableError` if the table lacks one of them."""
        columns = self.columns
        asked = (*schema.names, *([person] if person is not None else []))
        if lacking := [name for name in asked if name not in columns]:
            known = ", ".join(list(columns)[:12]) + (", …" if len(columns) > 12 else "")
            named = ", ".join(map(repr, lacking))
            what = f"there is no column {named}" if len(lacking) == 1 else f"these columns are missing: {named}"
            raise TableError(f"{what}; the table has {known}", column=lacking[0], columns=lacking)
        return [name for name in columns if name in schema or name == person]

    def _encoding(self, schema: Schema, person: str | None) -> Any:
        from espalier.core.tables.encoding_query import encoding, packed
        from espalier.core.tables.postgres_names import orders_as_utf8

        utf8 = self.backend.name != "postgres" or orders_as_utf8(self.backend.con)
        codes = encoding(self.table, schema, self.backend.name, person, utf8=utf8)
        return codes if self.remote else packed(codes, schema)

    def snapshot(
        self,
        schema: Schema,
        person: str | None = None,
        most: int | None = None,
        *,
        key: str | None = None,
        report: Report = silent,
    ) -> Snapshot | PostgresSnapshot:
        """Read the rows once, as codes; with ``person``, at most ``most`` rows of each person.

        Codes are stored in a file on this machine; PostgreSQL stores them in a temporary table on the server. ``key``
        is the key of the row limits (by default a fresh one).

        Raises :class:`TableError`, which names the column and never a value, for an undeclared cell, an undeclared
        empty cell, or a row without a person identifier. Columns to be bought are read as
        :func:`~espalier.core.project.public_grid.as_read` describes, which refuses some of them.
        """
        schema = as_read(schema)
        if self.remote:
            from espalier.core.tables.postgres_snapshot import PostgresSnapshot

            made = PostgresSnapshot(self, schema, person, most, key, lambda: report(0.0, "Reading the table"))
            made.origin = self.origin
            return made
        files = self.feed.files if self.feed is not None else ()
        before = state_of(files)
        with (
            engine_errors(f"{self.shown}: the engine failed while it read the table"),
            closing(self._batches(schema, person, report)) as batches,
        ):
            if person is None:
                read = scan(schema, batches)
            else:
                read = scan_people(schema, batches, person, most, key or new_key())
        if state_of(files) != before:
            read.close()
            raise TableError(f"{self.shown} changed while it was being read; try again once it has been written")
        read.origin = self.origin
        return read

    def _batches(self, schema: Schema, person: str | None, report: Report) -> Generator[Batch]:
        """Yield the rows as codes of the schema, and report progress between batches."""
        report(0.0, "Reading the table")
        needed, rows = self._needed(schema, person), 0
        if self.feed is None:
            answer, total = self._coded(schema, person, lambda: report(0.0, "Reading the table")), None
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
        encode.check()
        if person is not None and person in feed.unclear:
            raise unclear_person(self.shown, person)

    def _coded(self, schema: Schema, person: str | None, pulse: Callable[[], None]) -> Generator[Batch]:
        """Yield the codes of an engine that encodes rows without storing them."""
        query = self.query(schema, person)
        if person is not None and self.merges(person):
            raise unclear_person(self.shown, person)
        if self.backend.name == "postgres":
            from espalier.core.tables.postgres_rows import streamed

            answers = streamed(self.backend.con, query, schema, person is not None, pulse, self.lock, self.check)
        else:
            from espalier.core.tables.spark import written

            answers = written(self.backend._session, query, schema, pulse)
        wrong: dict[str, TableError] = {}
        with closing(answers) as batches:
            for batch in batches:
                pairs = zip(schema.columns, batch.codes, strict=True)
                yield Batch([fitting(self.shown, column, codes, wrong) for column, codes in pairs], batch.person)
        if wrong:
            raise together([wrong[name] for name in schema.names if name in wrong])


_URL = re.compile(r"([a-z][a-z0-9+]*)://")


def is_url(where: str) -> bool:
    """Return whether ``where`` is the URL of an engine, not a path."""
    return _URL.match(where) is not None


def open_relation(where: str | Path, relation: str | None = None) -> Relation:
    """Open a CSV or Parquet file, a folder of Parquet files, or the URL of any Ibis engine with the table's name.

    Raises :class:`TableError` if it cannot be opened. Messages never contain the URL, which may contain a password.
    """
    from espalier.core.tables import engines

    if (scheme := _URL.match(text := str(where))) is None:
        return Relation(text, _file(Path(text)))
    shown = f"the {scheme[1]} relation {relation!r}"
    if scheme[1] == "mariadb":
        text = text.replace("mariadb://", "mysql://", 1)
        scheme = _URL.match(text) or scheme
    if not relation:
        raise TableError("a connection needs the name of its table: add --relation NAME")
    try:
        if scheme[1] in ENGINES:
            backend, table, plain, origin, lock, check = engines.open_url(text, relation)
            with engines.closed_on_error(backend):
                keeps = engines.keeps_codes(backend)
            opened = Relation(
                shown, backend=backend, table=table, plain=plain, origin=origin, keeps=keeps, lock=lock, check=check
            )
            weakref.finalize(opened, engines.disconnect, backend)
        else:
            stream = engines.open_stream(text, relation, shown)
            opened = Relation(shown, stream, origin=stream.kind)
            weakref.finalize(opened, stream.close)
    except EspalierError:
        raise
    except ImportError:
        engine = scheme[1].replace("postgresql", "postgres")
        extra = EXTRAS.get(engine)
        how = wheel_with(extra) if extra else f"Install it with: pip install 'ibis-framework[{engine}]>=12,<13'"
        raise TableError(f"The driver for {engine} is not installed where Espalier runs. {how}") from None
    except Exception as error:
        raise_interrupt(error)
        raise TableError(f"cannot open {shown}: {while_opening(error)}") from None
    return opened


def _file(path: Path) -> Feed:
    """Return the rows of a CSV or Parquet file, or of a folder of Parquet files."""
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


def state_of(files: Sequence[Path]) -> list[Facts | None]:
    """Return the facts of each file that change when it is written; `None` for a missing one."""
    return [changes(file) for file in files]
