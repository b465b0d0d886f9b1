"""Snapshot inside PostgreSQL, with codes in a temporary table in one REPEATABLE READ transaction. Only counts leave the
server.

The relation is read once, and all counts come from the temporary table. The transaction ensures that the statement that
fills it and all later queries see one consistent state of the rows. Closing rolls back and removes the table. A lost
connection does the same.

**Fresh lots.** A holdout and a declared total need random numbers ("lots") that depend on no row
(`espalier.core.privacy.contribution` has the proofs). `gen_random_uuid` draws them from the server's strong generator
(PostgreSQL 13 or later). One statement draws each lot and stores it, or the rows it chose, in a temporary table, so
every later query sees the same lots. A view with this function would draw new lots for each count.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import TableError
from espalier.core.graph.separations import Clique
from espalier.core.progress import interruptible
from espalier.core.project.public_grid import as_read
from espalier.core.project.schema import Schema
from espalier.core.tables.codes_only import CodesOnly, new_codes
from espalier.core.tables.counting import Cells, assign, cover, marginal, whole_cells
from espalier.core.tables.encoding import refusal
from espalier.core.tables.engine_errors import engine_errors
from espalier.core.tables.gradient import Weights, residual_sums
from espalier.core.tables.postgres_session import settings
from espalier.core.tables.postgres_statements import (
    CODES,
    HeldOut,
    cut,
    drawn,
    filler,
    joined,
    part_of,
    recoding,
    truncation,
)
from espalier.core.tables.random_rows import Deal
from espalier.core.tables.refusals import together
from espalier.core.tables.relation import Relation
from espalier.core.tables.row_limits import new_key, runs
from espalier.core.tables.source import More, check_limited
from espalier.core.tables.table import Table

STEP = 100_000
"""Number of rows fetched at a time by queries that need rows."""


class PostgresSnapshot(CodesOnly):
    """A private table as codes in a temporary table; see `Snapshot` for the permitted queries."""

    def __init__(
        self,
        relation: Relation,
        schema: Schema,
        person: str | None = None,
        most: int | None = None,
        key: str | None = None,
        pulse: Callable[[], None] = lambda: None,
    ) -> None:
        """Encode, and keep at most ``most`` rows of each person; raises a :class:`TableError` that quotes no cell."""
        self.schema, self.person_column, self.row_limit = schema, person, most
        self.lot_key = "" if person is None else key or new_key()
        """Key of the row limits. It need not be secret."""
        self._relation = relation  # the connection lives as long as an object refers to it
        self._shown, self._con = relation.shown, relation.backend.con
        self.pulse = pulse
        """Function that is called between the server's answers and while waiting for a long answer. Raising an
        exception from it cancels the request.
        """
        if person is not None and most is None:
            raise TableError("a person column in a database needs a row limit per person")
        self.names_people = person is not None
        """True if each row still has its person identifier, so that the number of rows is private."""
        self._table, self._numbers = CODES, itertools.count(1)
        try:
            self._run("BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE")
            self._run(settings())
            with self._asking():
                interruptible(relation.lock, pulse, self._con.cancel)
            self._run(f"CREATE TEMP TABLE {CODES} ON COMMIT DROP AS {relation.query(schema, person)}")
            with self._asking():
                relation.check()
            self.rows = self._check(person)
            self.digest = self._digested(self.rows)
            if person is not None and most is not None:
                for statement in truncation(schema, most, self.lot_key):
                    self._run(statement)
                self.rows = self._counted()
            if not self.rows:
                raise TableError("the table has a header but no rows")
        except BaseException:
            self.close()
            raise

    def _asking(self, what: str = "read the table") -> AbstractContextManager[None]:
        """Return the guard for engine errors while the server does ``what``."""
        return engine_errors(f"{self._shown}: the engine failed while it {what}")

    def _run(self, statement: str, what: str = "read the table") -> Any:
        """Return the server's answer, with no time limit in this process. The request is cancelled if :attr:`pulse`
        raises an exception while waiting.
        """
        with self._asking(what):
            return interruptible(lambda: self._con.execute(statement), self.pulse, self._con.cancel)

    def _counted(self) -> int:
        return int(self._run(f"SELECT count(*) FROM {self._table}", "counted").fetchone()[0])

    def _check(self, person: str | None) -> int:
        """Return the number of rows; raise for a code that marks a refused cell."""
        columns, unnamed = self.schema.columns, "coalesce(bool_or(coalesce(person, '') = ''), false)"
        largest = [f"coalesce(max(c{i}), 0)" for i in range(len(columns))]
        asked = ", ".join(["count(*)", *largest, *([unnamed] if person is not None else [])])
        rows, *found = self._run(f"SELECT {asked} FROM {CODES}").fetchone()
        wrong = [
            refusal(self._shown, column.name, empty=code > column.size)
            for column, code in zip(columns, found, strict=False)
            if code >= column.size
        ]
        if wrong:
            raise together(wrong)
        if person is not None and found[-1]:
            raise TableError(f"the person column {person!r} has an empty cell", column=person)
        return int(rows)

    def _digested(self, rows: int) -> bytes:
        """Return the digest of the rows, independent of their order. PRIVATE.

        The server adds up two hashes of each row's codes, before row limits. It differs from the digest of the same
        rows in a file.
        """
        sizes = [c.size for c in self.schema.columns]
        numbers = [joined(list(range(len(sizes)))[run], sizes[run]) for run in runs(sizes)]
        sums = []
        for seed in (1, 2):
            hashed = str(seed)
            for number in numbers:
                hashed = f"hashint8extended({number}, {hashed})"
            sums.append(f"coalesce(sum({hashed}), 0)")
        found = self._run(f"SELECT {', '.join(sums)} FROM {CODES}").fetchone()
        head = json.dumps([[c.name, c.labels] for c in self.schema.columns])
        return hashlib.sha256(f"{head}:{rows}:{':'.join(str(int(x)) for x in found)}".encode()).digest()

    def dealt_by(self, deal: Deal) -> PostgresSnapshot:  # noqa: ARG002
        """Return the snapshot itself: the server draws its lots."""
        return self

    @property
    def in_memory(self) -> None:
        """`None`, because the rows stay in the server."""
        return

    @property
    def counts_only(self) -> bool:
        """True, because only counts are available."""
        return True

    def encodes(self, schema: Schema) -> bool:
        """Return whether the rows were encoded for ``schema``, with columns to be bought at their finest public
        codes.
        """
        return self.schema == as_read(schema)

    def count(self, clique: Clique) -> NDArray[np.int64]:
        """Return exact counts, one axis per column of ``clique``."""
        return self.count_many([clique])[0]

    def count_many(self, cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        """Return the counts of each clique. The server counts a cover of blocks, and margins are summed here."""
        blocks = cover([q for q in dict.fromkeys(cliques) if q], self.schema.sizes)
        counted = []
        for block in blocks:
            self.pulse()
            counted.append(self._block(block))
        held = assign([q for q in cliques if q], blocks)
        total = np.array(self.rows, dtype=np.int64)
        return [marginal(counted[held[q]], blocks[held[q]], q) if q else total for q in cliques]

    def _block(self, block: Clique) -> NDArray[np.int64]:
        place, sizes = self.schema.names.index, self.schema.sizes
        cell = joined([place(name) for name in block], [sizes[name] for name in block])
        out = np.zeros(math.prod(sizes[name] for name in block), dtype=np.int64)
        found = self._run(f"SELECT {cell}, count(*) FROM {self._table} GROUP BY 1", "counted").fetchall()
        where, counts = np.array(found, dtype=np.int64).reshape(-1, 2).T
        out[where] = counts
        return out.reshape([sizes[name] for name in block])

    def cells(self, cliques: Sequence[Clique]) -> Iterator[Cells]:
        """Yield exact counts by cell."""
        return whole_cells(self.count_many, self.schema.sizes, cliques)

    def residual_sums(self, target: str, columns: Sequence[str], weights: Weights) -> NDArray[np.int64]:
        """Return the exact gradient of a logistic fit; codes of its columns are fetched in batches and not kept."""
        parts = [
            residual_sums(batch, target, columns, self.schema.sizes, weights)
            for batch in self.batches((*columns, target))
        ]
        return np.asarray(sum(parts), dtype=np.int64)

    def take(self, rows: NDArray[Any]) -> PostgresSnapshot:  # noqa: ARG002
        """Refuse, because rows have no numbers in a database; see :meth:`split`."""
        raise TableError(f"{self._shown}: database rows cannot be selected by number")

    def sample(self, most: int, rng: np.random.Generator) -> Table:  # noqa: ARG002
        """Refuse, because database rows stay in the database."""
        raise TableError(f"{self._shown}: database rows stay in the database, and only counts are read")

    def batches(self, names: Sequence[str] | None = None) -> Iterator[dict[str, NDArray[Any]]]:
        """Yield the codes in batches, by column name. No batch is kept."""
        names = self.schema.names if names is None else names
        wanted = [f"c{self.schema.names.index(name)}" for name in names]
        with self._asking("read codes"), self._con.cursor(name=f"{self._table}_scan") as cursor:
            cursor.execute(f"SELECT {', '.join(wanted)} FROM {self._table}")
            while rows := cursor.fetchmany(STEP):
                self.pulse()
                yield dict(zip(names, np.array(rows, dtype=np.int64).T, strict=True))

    def split(self, share: float, size: int | None = None) -> tuple[PostgresSnapshot, PostgresSnapshot]:
        """Return (rest, held): each person, or each row, is held with probability ``share``; or exactly ``size`` rows
        are held.
        """
        lots, asked = self._lots(people=self.names_people), HeldOut(share, size, self.names_people)
        rest, held = (self._part(part_of(self.schema, self._table, lots, asked, held=h)) for h in (False, True))
        self._run(f"DROP TABLE {lots}", "divided its rows")
        return rest, held

    def limited(self, most: int) -> PostgresSnapshot:
        """Return the snapshot itself, which was limited when it was made; raises :class:`TableError` otherwise."""
        check_limited(self, most)
        return self

    def to_total(self, total: int) -> PostgresSnapshot:
        """Return ``total`` rows: others are left out at random, or invented rows are added."""
        check_limited(self)
        lots = self._lots(people=False)
        made = self._part(cut(self.schema, lots, total))
        made.names_people = False
        if made.rows < total:
            made._run(filler(self.schema, made._table, total - made.rows), "added invented rows")
            made.rows = total
        self._run(f"DROP TABLE {lots}", "divided its rows")
        return made

    def _lots(self, *, people: bool) -> str:
        lots = self._new_name()
        self._run(drawn(self.schema, self._table, lots, people=people), "drew random numbers")
        return lots

    def widened(self, schema: Schema, more: More) -> PostgresSnapshot:
        """Return the rows with additional columns of ``schema``, which ``more`` computes from each batch's codes.

        Codes are fetched in batches and written back into a temporary table; none are kept here.
        """
        made = copy.copy(self)
        made.schema, made._table = schema, self._new_name()
        columns = ", ".join(f"c{i} int" for i in range(len(schema.names)))
        self._run(f"CREATE TEMP TABLE {made._table} ({columns}) ON COMMIT DROP", "stored the new codes")
        for batch in self.batches():
            codes = {**batch, **more(batch)}
            rows = np.column_stack([codes[name] for name in schema.names]).tolist()
            copied = f"COPY {made._table} FROM STDIN"
            with self._asking("stored the new codes"), self._con.cursor() as cursor, cursor.copy(copied) as lines:
                for row in rows:
                    lines.write_row(row)
        return made

    def recoded(self, schema: Schema) -> PostgresSnapshot:
        """Return the rows as ``schema`` describes them, from their finest public codes."""
        lists = {schema.names[i]: codes.tolist() for i, codes in new_codes(self.schema, schema).items()}
        made = self._part(recoding(schema, self._table, lists, people=self.names_people))
        made.schema = schema
        return made

    def _new_name(self) -> str:
        return f"{CODES}_{next(self._numbers)}"

    def _part(self, query: str) -> PostgresSnapshot:
        """Return the rows of ``query``, in their own temporary table in the same transaction."""
        made = copy.copy(self)
        made._table = self._new_name()
        self._run(f"CREATE TEMP TABLE {made._table} ON COMMIT DROP AS {query}", "stored some of the rows")
        made.rows = made._counted()
        return made

    def close(self) -> None:
        """Roll back, which removes all temporary tables. A part of another snapshot removes only its own table."""
        with suppress(Exception):  # a lost connection has already removed its tables
            self._con.execute("ROLLBACK" if self._table == CODES else f"DROP TABLE IF EXISTS {self._table}")
