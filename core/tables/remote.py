"""A snapshot inside PostgreSQL: codes in a temporary table, in one REPEATABLE READ transaction. Only counts leave.

Reading once and counting many times needs the temporary table; the transaction makes the one statement that fills it,
and all that is asked later, see one state of the rows. Closing rolls back, and the table is gone; so it is when the
connection is lost.

**Fresh lots.** A hold-out and a declared total need lots that depend on nobody (`espalier.core.privacy.contribution`
has the proofs). `gen_random_uuid` draws them, from the server's strong generator (PostgreSQL 13 or later). Each is
drawn in the one statement that writes it, or the rows it picked, into a temporary table: whoever asks again sees the
same lots. A view with such a function in it would draw anew for each count.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import math
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import EspalierError, TableError
from espalier.core.graph.separations import Clique
from espalier.core.progress import interruptible
from espalier.core.project.plan import Plan
from espalier.core.project.public_grid import as_read
from espalier.core.project.schema import Schema
from espalier.core.tables.counting import assign, cover, marginal
from espalier.core.tables.encoding import refusal
from espalier.core.tables.gradient import Weights, residual_sums
from espalier.core.tables.lots import new_key, runs
from espalier.core.tables.relation import Relation

CODES = "espalier_codes"
STEP = 100_000
"""Rows fetched at a time, where rows are needed one by one."""
FRESH = "('x' || left(replace(gen_random_uuid()::text, '-', ''), 12))::bit(48)::bigint"
"""48 fresh bits of the server's strong generator, as a whole number."""


class RemoteSnapshot:
    """A private table as codes in a temporary table; see `Snapshot` for what may be asked."""

    def __init__(
        self,
        relation: Relation,
        schema: Schema,
        person: str | None = None,
        most: int | None = None,
        key: str | None = None,
        pulse: Callable[[], None] = lambda: None,
    ) -> None:
        """Encode, and keep at most ``most`` rows of each person; raises :class:`TableError` that quotes no cell."""
        self.schema, self.person_column, self.kept = schema, person, most
        self._relation = relation  # its connection lasts as long as somebody holds it
        self._shown, self._con = relation.shown, relation.backend.con
        self.pulse = pulse
        """Called between the server's answers, and while it works on a long one; raising from it cancels."""
        if person is not None and most is None:
            raise TableError("rows of a person in a database need a limit; say how many are kept of each")
        self.names_people = person is not None
        """Are these some person's rows, so that how many there are is private?"""
        self._table, self._numbers = CODES, itertools.count(1)
        try:
            self._run("BEGIN ISOLATION LEVEL REPEATABLE READ")
            self._run(f"CREATE TEMP TABLE {CODES} ON COMMIT DROP AS {relation.query(schema, person)}")
            self.rows = self._check(person)
            self.digest = self._digested(self.rows)
            if person is not None and most is not None:
                for statement in truncation(schema, most, key or new_key()):
                    self._run(statement)
                self.rows = self._counted()
            if not self.rows:
                raise TableError("the table has a header but no rows")
        except BaseException:
            self.close()
            raise

    @contextmanager
    def _asking(self, what: str = "read the table") -> Iterator[None]:
        """While it lasts, what goes wrong with the server is told without its own message, which may quote a cell."""
        try:
            yield
        except (EspalierError, MemoryError, AttributeError, TypeError, AssertionError):
            raise
        except Exception as error:
            raise TableError(f"{self._shown}: the engine gave up while it {what} ({type(error).__name__})") from None

    def _run(self, statement: str, what: str = "read the table") -> Any:
        """The server's answer, however long it takes; it is told to stop when :attr:`pulse` raises meanwhile."""
        with self._asking(what):
            return interruptible(lambda: self._con.execute(statement), self.pulse, self._con.cancel)

    def _counted(self) -> int:
        return int(self._run(f"SELECT count(*) FROM {self._table}", "counted").fetchone()[0])

    def _check(self, person: str | None) -> int:
        """How many rows; raises where a code says that a cell must be refused."""
        columns, nobody = self.schema.columns, "coalesce(bool_or(coalesce(person, '') = ''), false)"
        largest = [f"coalesce(max(c{i}), 0)" for i in range(len(columns))]
        asked = ", ".join(["count(*)", *largest, *([nobody] if person is not None else [])])
        rows, *found = self._run(f"SELECT {asked} FROM {CODES}").fetchone()
        for column, code in zip(columns, found, strict=False):
            if code >= column.size:
                raise refusal(self._shown, column.name, empty=code > column.size)
        if person is not None and found[-1]:
            raise TableError(f"the person column {person!r} is empty in some row", column=person)
        return int(rows)

    def _digested(self, rows: int) -> bytes:
        """What tells this table from others, whatever the order of its rows. PRIVATE.

        The server adds up two hashes of each row's codes, before any row is left out by lot. It is not the digest of
        the same rows in a file.
        """
        sizes = [c.size for c in self.schema.columns]
        numbers = [_joined(list(range(len(sizes)))[run], sizes[run]) for run in runs(sizes)]
        sums = []
        for seed in (1, 2):
            hashed = str(seed)
            for number in numbers:
                hashed = f"hashint8extended({number}, {hashed})"
            sums.append(f"coalesce(sum({hashed}), 0)")
        found = self._run(f"SELECT {', '.join(sums)} FROM {CODES}").fetchone()
        head = json.dumps([[c.name, c.labels] for c in self.schema.columns])
        return hashlib.sha256(f"{head}:{rows}:{':'.join(str(int(x)) for x in found)}".encode()).digest()

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
        found = self._run(f"SELECT {cell}, count(*) FROM {self._table} GROUP BY 1", "counted").fetchall()
        where, counts = np.array(found, dtype=np.int64).reshape(-1, 2).T
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
        """Refused: rows have no numbers in a database; see :meth:`split`."""
        raise TableError(f"{self._shown}: rows of a database cannot be picked by number")

    def batches(self, names: Sequence[str] | None = None) -> Iterator[dict[str, NDArray[Any]]]:
        """Codes by name of column, fetched in batches and forgotten."""
        names = self.schema.names if names is None else names
        wanted = [f"c{self.schema.names.index(name)}" for name in names]
        with self._asking("told its codes"), self._con.cursor(name=f"{self._table}_scan") as cursor:
            cursor.execute(f"SELECT {', '.join(wanted)} FROM {self._table}")
            while rows := cursor.fetchmany(STEP):
                self.pulse()
                yield dict(zip(names, np.array(rows, dtype=np.int64).T, strict=True))

    def split(self, share: float, size: int | None = None) -> tuple[RemoteSnapshot, RemoteSnapshot]:
        """(rest, held): each person, where people are named, else each row, is held with chance ``share``.

        With ``size`` exactly that many rows are, which needs a public number of rows and no person column.
        """
        lots, asked = self._lots(people=self.names_people), HeldOut(share, size, self.names_people)
        rest, held = (self._part(part_of(self.schema, self._table, lots, asked, held=h)) for h in (False, True))
        self._run(f"DROP TABLE {lots}", "dealt its rows")
        return rest, held

    def to_total(self, total: int) -> RemoteSnapshot:
        """Exactly ``total`` rows of a snapshot cut to k a person: others left out by lot, or invented ones added."""
        lots = self._lots(people=False)
        made = self._part(cut(self.schema, lots, total))
        made.names_people = False
        if made.rows < total:
            made._run(filler(self.schema, made._table, total - made.rows), "filled up its rows")
            made.rows = total
        self._run(f"DROP TABLE {lots}", "dealt its rows")
        return made

    def _lots(self, *, people: bool) -> str:
        lots = self._new_name()
        self._run(drawn(self.schema, self._table, lots, people=people), "drew lots")
        return lots

    def widened(self, schema: Schema, more: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> RemoteSnapshot:
        """The same rows with the columns of ``schema``, some of which ``more`` makes from each batch's codes by name.

        Codes are fetched in batches and written back into a temporary table; nothing is kept here.
        """
        made = copy.copy(self)
        made.schema, made._table = schema, self._new_name()
        columns = ", ".join(f"c{i} int" for i in range(len(schema.names)))
        self._run(f"CREATE TEMP TABLE {made._table} ({columns}) ON COMMIT DROP", "took codes back")
        for batch in self.batches():
            codes = {**batch, **more(batch)}
            rows = np.column_stack([codes[name] for name in schema.names]).tolist()
            copied = f"COPY {made._table} FROM STDIN"
            with self._asking("took codes back"), self._con.cursor() as cursor, cursor.copy(copied) as lines:
                for row in rows:
                    lines.write_row(row)
        return made

    def recoded(self, schema: Schema, codes: Mapping[str, NDArray[np.int64]]) -> RemoteSnapshot:
        """The same rows as ``schema`` sees them: for some columns, the new code of each code."""
        lists = {name: told.tolist() for name, told in codes.items()}
        made = self._part(recoding(schema, self._table, lists, people=self.names_people))
        made.schema = schema
        return made

    def _new_name(self) -> str:
        return f"{CODES}_{next(self._numbers)}"

    def _part(self, query: str) -> RemoteSnapshot:
        """The rows that ``query`` gives, in a temporary table of their own in the same transaction."""
        made = copy.copy(self)
        made._table = self._new_name()
        self._run(f"CREATE TEMP TABLE {made._table} ON COMMIT DROP AS {query}", "set rows apart")
        made.rows = made._counted()
        return made

    def close(self) -> None:
        """Roll back, and all temporary tables are gone; a part of another snapshot gives back its own table."""
        with suppress(Exception):  # a connection that is lost took its tables with it
            self._con.execute("ROLLBACK" if self._table == CODES else f"DROP TABLE IF EXISTS {self._table}")


def told_later(declared: Schema, plan: Plan) -> list[str]:
    """What a release tells the server after the encoding, as text."""
    schema = as_read(declared)
    people, table = plan.person is not None, CODES
    told = truncation(schema, plan.rows_per_person, "KEY") if people else []
    share, temp = plan.private_evaluation, "ON COMMIT DROP AS"
    if share:
        size = None if people or plan.neighbors == "add-remove" else "SIZE"
        told.append(drawn(schema, CODES, f"{CODES}_1", people=people))
        for i in (2, 3):
            query = part_of(schema, CODES, f"{CODES}_1", HeldOut(share, size, people), held=i == 3)
            told.append(f"CREATE TEMP TABLE {CODES}_{i} {temp} {query}")
        table = f"{CODES}_2"
    if people and plan.neighbors == "replace-one" and plan.rows is not None:
        told.append(drawn(schema, table, f"{CODES}_4", people=False))
        total = plan.rows - round(share * plan.rows)
        told.append(f"CREATE TEMP TABLE {CODES}_5 {temp} {cut(schema, f'{CODES}_4', total)}")
        told.append(filler(schema, f"{CODES}_5", "SHORT"))
    if bought := [c.name for c in declared.undeclared]:  # never with a declared total
        for i, part in enumerate([table, *[f"{CODES}_3"] * bool(share)], 6):
            query = recoding(schema, part, {name: ["CODES"] for name in bought}, people=people)
            told.append(f"CREATE TEMP TABLE {CODES}_{i} {temp} {query}")
    return told


def truncation(schema: Schema, most: int, key: str) -> list[str]:
    """The statements that leave ``most`` rows of each person, by the lots of `espalier.core.tables.lots`."""
    sizes = [c.size for c in schema.columns]
    joined = [_joined(list(range(len(sizes)))[run], sizes[run]) for run in runs(sizes)]
    numbers = [f"r{i}" for i in range(len(joined))]
    said = " || ',' || ".join(f"{r}::text" for r in numbers)
    columns = ", ".join(_columns(schema, people=True))
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


def drawn(schema: Schema, table: str, lots: str, *, people: bool) -> str:
    """The statement that draws a fresh lot for each distinct person, or for each row, and writes it beside them."""
    if people:
        return (
            f"CREATE TEMP TABLE {lots} ON COMMIT DROP AS "
            f"SELECT person, gen_random_uuid() AS lot FROM (SELECT DISTINCT person FROM {table}) AS people"
        )
    columns = ", ".join(_columns(schema))
    return f"CREATE TEMP TABLE {lots} ON COMMIT DROP AS SELECT {columns}, gen_random_uuid() AS lot FROM {table}"


class HeldOut(NamedTuple):
    """Who is held out: those whose lot lies in the first ``share`` of all lots; or ``size`` rows, first lots first."""

    share: float
    size: int | str | None
    people: bool


def part_of(schema: Schema, table: str, lots: str, asked: HeldOut, *, held: bool) -> str:
    """The query for the rows of ``table`` that are held out by their ``lots``, or for the others.

    Two rows with one lot, which 122 bits make as good as impossible, go by their places and not by what they say.
    """
    share, size, people = asked
    columns = ", ".join(_columns(schema, people=people))
    if size is not None:
        placed = f"SELECT {columns}, row_number() OVER (ORDER BY lot, ctid) AS place FROM {lots}"
        return f"SELECT {columns} FROM ({placed}) AS placed WHERE place {'<=' if held else '>'} {size}"
    first = uuid.UUID(int=round(share * 2**48) << 80)
    rows = f"{table} JOIN {lots} USING (person)" if people else lots
    return f"SELECT {columns} FROM {rows} WHERE lot {'<' if held else '>='} '{first}'"


def recoding(schema: Schema, table: str, codes: Mapping[str, Sequence[Any]], *, people: bool) -> str:
    """The query for the rows of ``table`` with the codes of some columns replaced: by what stands in a list there."""
    lists = {f"c{i}": ",".join(map(str, codes[name])) for i, name in enumerate(schema.names) if name in codes}
    columns = _columns(schema, people=people)
    told = [f"('{{{lists[own]}}}'::int[])[{own} + 1] AS {own}" if own in lists else own for own in columns]
    return f"SELECT {', '.join(told)} FROM {table}"


def cut(schema: Schema, lots: str, total: int) -> str:
    """The query for the first ``total`` rows in the order of their lots; of one lot, in the order of what they say."""
    columns = ", ".join(_columns(schema))
    return f"SELECT {columns} FROM {lots} ORDER BY lot, {columns} LIMIT {total}"


def filler(schema: Schema, table: str, rows: int | str) -> str:
    """The statement that adds ``rows`` invented rows, each cell uniform over its column's values."""
    cells = ", ".join(f"{FRESH} % {column.size}" for column in schema.columns)
    return f"INSERT INTO {table} SELECT {cells} FROM generate_series(1, {rows})"


def _columns(schema: Schema, *, people: bool = False) -> list[str]:
    return [f"c{i}" for i in range(len(schema.columns))] + ["person"] * people


def _joined(columns: Sequence[int], sizes: Sequence[int]) -> str:
    """The columns' codes as one number: ((c0 · s1 + c1) · s2 + c2) …"""
    text = f"c{columns[0]}::bigint"
    for column, size in zip(columns[1:], sizes[1:], strict=True):
        text = f"({text}) * {size} + c{column}"
    return text
