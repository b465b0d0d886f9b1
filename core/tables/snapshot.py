"""Private table stored as codes on disk, which is read once and counted many times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.graph.separations import Clique
from espalier.core.project.public_grid import as_read
from espalier.core.project.schema import Schema
from espalier.core.tables import random_rows
from espalier.core.tables.code_file import PERSON, Batch, CodeFile
from espalier.core.tables.codes_only import CodesOnly, new_codes
from espalier.core.tables.counting import Cells, Counting, whole_cells
from espalier.core.tables.digest import Digest
from espalier.core.tables.gradient import Weights, residual_sums
from espalier.core.tables.source import More, check_limited
from espalier.core.tables.table import Table

FILL_ROWS = 1 << 20
"""Number of invented rows written at a time."""


def _go_on() -> None:
    """Do nothing, so that the count continues."""


class Snapshot(CodesOnly):
    """A private table as codes in a file. :class:`Source` describes the possible requests and the code that may make
    them.

    With people, all rows of a person are in one batch, and the column `PERSON` numbers the people of that batch.
    """

    def __init__(
        self,
        schema: Schema,
        file: CodeFile,
        person_column: str | None = None,
        row_limit: int | None = None,
        digest: bytes = b"",
        lot_key: str = "",
    ) -> None:
        self.schema, self.file = schema, file
        self.lot_key = lot_key
        """Key of the row limits (:mod:`espalier.core.tables.row_limits`). It need not be secret."""
        self._deal: random_rows.Deal | None = None
        self.person_column, self.row_limit = person_column, row_limit
        self._digest = digest
        self.pulse: Callable[[], None] = _go_on
        """Function that is called between batches. Raising an exception from it cancels the count."""

    @classmethod
    def sizes(cls, schema: Schema, *, people: bool = False) -> dict[str, int]:
        """Return the columns of a file for ``schema``, with the number of codes of each."""
        return _inside(schema, schema.sizes) | ({PERSON: 1 << 32} if people else {})

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.file.rows

    @property
    def names_people(self) -> bool:
        """True if each row still has its person identifier."""
        return PERSON in self.file.sizes

    @property
    def digest(self) -> bytes:
        """Digest of the rows, independent of their order. PRIVATE."""
        if not self._digest:
            adding = Digest(self.schema)
            for batch in self.batches(self.schema.names):
                adding.add(batch)
            self._digest = adding.value()
        return self._digest

    def dealt_by(self, deal: random_rows.Deal) -> Snapshot:
        """Return the same rows; random parts are chosen with the lots of ``deal``."""
        made = self._like(self.file)
        made._deal = deal
        return made

    @property
    def in_memory(self) -> None:
        """`None`, because a file stores only codes."""
        return

    @property
    def counts_only(self) -> bool:
        """False, because the codes are on this machine."""
        return False

    def encodes(self, schema: Schema) -> bool:
        """Return whether the rows were encoded for ``schema``, with columns to be bought at their finest public
        codes.
        """
        return self.schema == as_read(schema)

    def count(self, clique: Clique) -> NDArray[np.int64]:
        """Return exact counts, one axis per column of ``clique``."""
        return self.count_many([clique])[0]

    def count_many(self, cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        """Return the counts of each of ``cliques``, in one pass over the file."""
        counting = Counting(cliques, self.schema.sizes)
        for batch in self.batches(tuple({name for clique in cliques for name in clique})):
            counting.add(batch, len(next(iter(batch.values()))) if batch else 0)
        counts = counting.counts()
        return [np.array(self.rows, dtype=np.int64) if not q else c for q, c in zip(cliques, counts, strict=True)]

    def cells(self, cliques: Sequence[Clique]) -> Iterator[Cells]:
        """Yield exact counts by cell, from one pass over the file."""
        return whole_cells(self.count_many, self.schema.sizes, cliques)

    def residual_sums(self, target: str, columns: Sequence[str], weights: Weights) -> NDArray[np.int64]:
        """Return the exact gradient of a logistic fit. Each row is rounded before the sum, so batches add up."""
        total: NDArray[np.int64] | int = 0
        for batch in self.batches((*columns, target)):
            total = total + residual_sums(batch, target, columns, self.schema.sizes, weights)
        return np.asarray(total, dtype=np.int64)

    def take(self, rows: NDArray[Any]) -> Snapshot:
        """Return some of the rows, by a mask or by their numbers, in the order of the file."""
        mask = np.asarray(rows)
        if mask.dtype != np.bool_:
            mask = np.zeros(self.rows, dtype=np.bool_)
            mask[rows] = True
        at = [0]

        def chosen(batch: Batch) -> NDArray[np.bool_]:
            start, at[0] = at[0], at[0] + len(next(iter(batch.values())))
            return mask[start : at[0]]

        return self.where(chosen)

    def where(self, chosen: Callable[[Batch], NDArray[Any]], *, people: bool = True) -> Snapshot:
        """Return the rows that ``chosen`` selects from each batch, in a separate file."""
        kept = {n: size for n, size in self.file.sizes.items() if people or n != PERSON}
        out = CodeFile(kept)
        for batch in self.file.batches():
            rows = chosen(batch)
            out.append({name: batch[name][rows] for name in kept})
        return self._like(out)

    def sample(self, most: int, rng: np.random.Generator) -> Table:
        """Return ``most`` random rows as a table in memory, or all rows if there are fewer."""
        left, asked = self.rows, min(most, self.rows)
        parts = []
        for batch in self.batches():
            rows = len(next(iter(batch.values())))
            share = int(
                rng.hypergeometric(rows, left - rows, asked)
            )  # this is equivalent to drawing from all rows at once
            chosen = rng.choice(rows, share, replace=False)
            parts.append({name: codes[chosen] for name, codes in batch.items()})
            left, asked = left - rows, asked - share
        codes = {name: np.concatenate([part[name] for part in parts]) for name in self.schema.names}
        return Table(self.schema, codes, min(most, self.rows))

    def split(self, share: float, size: int | None = None) -> tuple[Snapshot, Snapshot]:
        """Return (rest, held): each person, or each row, is held with probability ``share``; or exactly ``size`` rows
        are held.
        """
        held = np.zeros(self.rows, dtype=np.bool_)
        if self.names_people:
            at = 0
            for batch in self.file.batches((PERSON,)):
                person = batch[PERSON]
                chosen = random_rows.by_chance(int(person.max()) + 1, share, self._deal)
                held[at : at + len(person)] = chosen[person]
                at += len(person)
        elif size is None:
            held = random_rows.by_chance(self.rows, share, self._deal)
        else:
            held = random_rows.subset(self.rows, size, self._deal)
        return self.take(~held), self.take(held)

    def limited(self, most: int) -> Snapshot:
        """Return the snapshot itself, which was limited when it was made; raises :class:`TableError` otherwise."""
        check_limited(self, most)
        return self

    def to_total(self, total: int) -> Snapshot:
        """Return ``total`` rows: others are left out at random, or invented rows are added."""
        check_limited(self)
        chosen = self.take(random_rows.subset(self.rows, min(total, self.rows), self._deal))
        sizes = _inside(self.schema, self.schema.sizes)
        file = CodeFile(sizes)
        for batch in chosen.file.batches():
            file.append({name: batch[name] for name in sizes})
        for start in range(chosen.rows, total, FILL_ROWS):
            rows = min(FILL_ROWS, total - start)
            file.append({name: random_rows.invented_codes(rows, size, self._deal) for name, size in sizes.items()})
        chosen.close()
        return self._like(file)

    def recoded(self, schema: Schema) -> Snapshot:
        """Return the rows as ``schema`` describes them, from their finest public codes."""
        file = CodeFile(self.sizes(schema, people=self.names_people))
        place = {f"c{i}": codes for i, codes in new_codes(self.schema, schema).items()}
        for batch in self.file.batches():
            file.append({own: place[own][column] if own in place else column for own, column in batch.items()})
        return self._like(file, schema)

    def widened(self, schema: Schema, more: More) -> Snapshot:
        """Return the rows with additional columns of ``schema``, which ``more`` computes from each batch's codes."""
        file = CodeFile(self.sizes(schema, people=self.names_people))
        names = _inside(schema, {name: name for name in schema.names})
        for batch in self.file.batches():
            made = more({name: batch[own] for own, name in names.items() if own in batch})
            file.append({**{own: made[name] for own, name in names.items() if name in made}, **batch})
        return self._like(file, schema)

    def _like(self, file: CodeFile, schema: Schema | None = None) -> Snapshot:
        """Return the rows of ``file`` as a snapshot with the properties of this one."""
        made = Snapshot(schema or self.schema, file, self.person_column, self.row_limit, self.digest, self.lot_key)
        made.pulse, made._deal = self.pulse, self._deal
        return made

    def batches(self, names: Sequence[str] | None = None) -> Iterator[Batch]:
        """Yield the codes in batches, by column name."""
        inside = _inside(self.schema, {name: name for name in self.schema.names})
        wanted = {own: name for own, name in inside.items() if names is None or name in names}
        for batch in self.file.batches(tuple(wanted)):
            self.pulse()
            yield {name: batch[own] for own, name in wanted.items()}

    def close(self) -> None:
        """Release the space on disk; the snapshot cannot be used afterwards."""
        self.file.close()


def _inside(schema: Schema, by_name: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``by_name`` with the keys that a file of codes uses: c0, c1, … in schema order."""
    return {f"c{i}": by_name[name] for i, name in enumerate(schema.names)}
