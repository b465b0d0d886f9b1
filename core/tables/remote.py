"""A snapshot inside PostgreSQL: codes in a temporary table, in one REPEATABLE READ transaction. Only counts leave.

Reading once and counting many times needs the temporary table; the transaction makes the one statement that fills it,
and all that is asked later, see one state of the rows. Closing rolls back, and the table is gone; so it is when the
connection is lost.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import EspalierError, TableError
from core.graph.separations import Clique
from core.project.schema import Schema
from core.tables.counting import assign, cover, marginal
from core.tables.gradient import Weights, residual_sums
from core.tables.lots import new_key, runs
from core.tables.relation import Relation, refusal

CODES = "espalier_codes"
STEP = 100_000
"""Rows fetched at a time, where rows are needed one by one."""


class RemoteSnapshot:
    """A private table as codes in a temporary table; see `Snapshot` for what may be asked."""

    def __init__(
        self,
        relation: Relation,
        schema: Schema,
        person: str | None = None,
        most: int | None = None,
        key: str | None = None,
    ) -> None:
        """Encode, and keep at most ``most`` rows of each person; raises :class:`TableError` that quotes no cell."""
        self.schema, self.person_column, self.kept = schema, person, most
        self._relation = relation  # its connection lasts as long as somebody holds it
        self._shown, self._con = relation.shown, relation.backend.con
        self.pulse: Callable[[], None] = lambda: None
        """Called between the server's answers; raising from it cancels."""
        if person is not None and most is None:
            raise TableError("rows of a person in a database need a limit; say how many are kept of each")
        try:
            self._con.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            self._con.execute(f"CREATE TEMP TABLE {CODES} ON COMMIT DROP AS {relation.query(schema, person)}")
            self._check(person)
            self.digest = self._digested()
            if most is not None:
                for statement in truncation(schema, most, key or new_key()):
                    self._con.execute(statement)
            self.rows = int(self._con.execute(f"SELECT count(*) FROM {CODES}").fetchone()[0])
        except EspalierError:
            self.close()
            raise
        except Exception as error:  # the server's own message may quote a cell
            self.close()
            raise TableError(
                f"{self._shown}: the engine gave up while it read the table ({type(error).__name__})"
            ) from None
        if not self.rows:
            self.close()
            raise TableError("the table has a header but no rows")

    def _check(self, person: str | None) -> None:
        columns = self.schema.columns
        largest = self._con.execute(
            f"SELECT {', '.join(f'coalesce(max(c{i}), 0)' for i in range(len(columns)))} FROM {CODES}"
        ).fetchone()
        for column, code in zip(columns, largest, strict=True):
            if code >= column.size:
                raise refusal(self._shown, column.name, empty=code > column.size)
        if (
            person
            and self._con.execute(f"SELECT EXISTS (SELECT 1 FROM {CODES} WHERE coalesce(person, '') = '')").fetchone()[
                0
            ]
        ):
            raise TableError(f"the person column {person!r} is empty in some row", column=person)

    @property
    def names_people(self) -> bool:
        """Are these some person's rows, so that how many there are is private?"""
        return self.person_column is not None

    def _digested(self) -> bytes:
        """What tells this table from others, whatever the order of its rows. PRIVATE.

        The server adds up two halves of a hash of each row's codes, before any row is left out by lot. It is not the
        digest of the same rows in a file.
        """
        sizes = [c.size for c in self.schema.columns]
        said = " || ',' || ".join(f"({_joined(list(range(len(sizes)))[run], sizes[run])})::text" for run in runs(sizes))
        halves = ", ".join(f"coalesce(sum(('x' || substr(m, {at}, 16))::bit(64)::bigint), 0)" for at in (1, 17))
        found = self._con.execute(
            f"SELECT count(*), {halves} FROM (SELECT md5({said}) AS m FROM {CODES}) AS hashed"
        ).fetchone()
        head = json.dumps([[c.name, c.labels] for c in self.schema.columns])
        return hashlib.sha256(f"{head}:{':'.join(str(int(x)) for x in found)}".encode()).digest()

    def count(self, clique: Clique) -> NDArray[np.int64]:
        """Exact counts, one axis per column of ``clique``."""
        return self.count_many([clique])[0]

    def count_many(self, cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        """The counts of each of ``cliques``: the server counts a cover of blocks, the margins are added up here."""
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
        cell = _joined([place(name) for name in block], [sizes[name] for name in block])
        out = np.zeros(math.prod(sizes[name] for name in block), dtype=np.int64)
        found = self._con.execute(f"SELECT {cell}, count(*) FROM {CODES} GROUP BY 1").fetchall()
        where, counts = np.array(found, dtype=np.int64).T
        out[where] = counts
        return out.reshape([sizes[name] for name in block])

    def residual_sums(self, target: str, columns: Sequence[str], weights: Weights) -> NDArray[np.int64]:
        """Exact gradient of a logistic fit; codes of these columns are fetched in batches and forgotten."""
        parts = [
            residual_sums(batch, target, columns, self.schema.sizes, weights)
            for batch in self.batches((*columns, target))
        ]
        return np.asarray(sum(parts), dtype=np.int64)

    def numbers(self, column: str) -> NDArray[np.float64]:
        """Refused: a snapshot holds codes, not the numbers they came from."""
        raise TableError(
            f"column {column!r}: the numbers themselves stay in the engine; only their bins are here", column=column
        )

    def take(self, rows: NDArray[Any]) -> RemoteSnapshot:  # noqa: ARG002
        """Refused: rows have no numbers in a database."""
        raise TableError(f"{self._shown}: holding rows out is not possible in a database; leave it out of the plan")

    def batches(self, names: Sequence[str] | None = None) -> Iterator[dict[str, NDArray[Any]]]:
        """Codes by name of column, fetched in batches and forgotten."""
        names = self.schema.names if names is None else names
        wanted = [f"c{self.schema.names.index(name)}" for name in names]
        with self._con.cursor(name="espalier_scan") as cursor:
            cursor.execute(f"SELECT {', '.join(wanted)} FROM {CODES}")
            while rows := cursor.fetchmany(STEP):
                self.pulse()
                yield dict(zip(names, np.array(rows, dtype=np.int64).T, strict=True))

    def close(self) -> None:
        """Roll back; the temporary table is gone."""
        if not self._con.closed:
            self._con.execute("ROLLBACK")


def truncation(schema: Schema, most: int, key: str) -> list[str]:
    """The statements that leave ``most`` rows of each person, by the lots of `core.tables.lots`."""
    sizes = [c.size for c in schema.columns]
    joined = [_joined(list(range(len(sizes)))[run], sizes[run]) for run in runs(sizes)]
    numbers = [f"r{i}" for i in range(len(joined))]
    said = " || ',' || ".join(f"{r}::text" for r in numbers)
    columns = ", ".join(f"c{i}" for i in range(len(sizes)))
    alike = ", ".join(("person", *numbers))
    return [
        f"ALTER TABLE {CODES} RENAME TO espalier_all",
        f"""CREATE TEMP TABLE {CODES} ON COMMIT DROP AS
        SELECT {columns} FROM (
          SELECT *, row_number() OVER (PARTITION BY person ORDER BY lot COLLATE "C", {", ".join(numbers)}, i) AS place
          FROM (
            SELECT *, left(md5(convert_to('{key}:' || {said} || ':' || i::text || ':' || person, 'UTF8')), 16) AS lot
            FROM (
              SELECT *, row_number() OVER (PARTITION BY {alike}) - 1 AS i
              FROM (SELECT *, {", ".join(f"{j} AS {r}" for j, r in zip(joined, numbers, strict=True))}
                    FROM espalier_all) AS codes) AS numbered) AS dealt) AS placed
        WHERE place <= {most}""",
        "DROP TABLE espalier_all",
    ]


def _joined(columns: Sequence[int], sizes: Sequence[int]) -> str:
    """The columns' codes as one number: ((c0 · s1 + c1) · s2 + c2) …"""
    text = f"c{columns[0]}::bigint"
    for column, size in zip(columns[1:], sizes[1:], strict=True):
        text = f"({text}) * {size} + c{column}"
    return text
