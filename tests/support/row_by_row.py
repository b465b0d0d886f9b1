"""A checker of the encoding theorem: the codes of a row depend on that row and on the public schema, on nothing else.

`check` writes a small table into a layout, reads it, adds one odd row, and reads it again. A column `row` marks each
row, so the codes are compared row by row. Every column pairs one special value in the base table with each special
value in the odd row, because some readers fail only if two of them meet (such as NaN in a narrow column).

`check_people` does the same for row limits: the kept rows of a person may depend only on that person's rows. A column
`owner` marks the true owner of each row, so that merged or divided people are noticed.

Nothing here knows how a reader works: data goes in through files and engines, and a source returns codes.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from espalier.core.errors import EspalierError
from espalier.core.privacy.contribution import bounded
from espalier.core.project.date_orders import DATE_ORDERS
from espalier.core.project.schema import Column, Schema
from espalier.core.project.schema_json import column_from_json
from espalier.core.tables.frames import opened
from espalier.core.tables.relation import Relation
from espalier.core.tables.source import Source
from espalier.core.tables.table import Table

Cells = Mapping[str, list[Any]]
ROW, OWNER, PERSON = "row", "owner", "id"
BASE_ROWS, ROWS_EACH, LIMIT = 5, 3, 2
"""Ordinary rows of a base table; rows of each person, and the row limit."""
TOGETHER = 6
"""Kinds share a table if their numbers of special values differ by less than this."""


class Kind(NamedTuple):
    """A type of cells: how an engine declares it, two ordinary values, special values, and how a schema may see it."""

    name: str
    declared: Any
    ordinary: tuple[Any, Any]
    special: tuple[Any, ...]
    views: tuple[str, ...]
    categories: tuple[str, ...]


class Layout(NamedTuple):
    """One way to store a table. ``write`` gets its cells, the kind of each column and an empty folder."""

    name: str
    write: Callable[[Cells, Mapping[str, Kind | None], Path], Any]
    odd_first: bool = False
    read: Callable[[Any, Schema], Mapping[str, np.ndarray]] | None = None
    """A reader to use instead of the product's."""
    without: tuple[str, ...] = ()
    """Kinds that the engine cannot write."""
    together: int = 4
    """Number of special values that one column holds at a time; one if the table is small and numbers are binned."""


@dataclass
class Outcome:
    """Coverage, refusals and breaks of a check."""

    combinations: int = 0
    refused: set[str] = field(default_factory=set)
    """Kinds with a column that was refused."""
    unnamed: list[str] = field(default_factory=list)
    """Refusals that name no column."""
    broken: list[str] = field(default_factory=list)

    def __iadd__(self, other: Outcome) -> Outcome:
        self.combinations += other.combinations
        self.refused |= other.refused
        self.unnamed += other.unnamed
        self.broken += other.broken
        return self


def described(name: str, view: str, categories: Sequence[str]) -> Column:
    """Return the public description of a column under a view: numeric, categorical, dates, or an order of dates."""
    if view == "categorical":
        return Column(name, "categorical", tuple(categories), missing=True, unknown="missing")
    if view == "dates" or view in DATE_ORDERS:
        bins = {"from": "1990-01-01", "to": "2024-12-31", "by": "year"}
        order = {"date_order": view} if view in DATE_ORDERS else {}
        more = {"missing": True, "unknown": "missing", **order}
        return column_from_json({"name": name, "kind": "date", "dates": bins, **more})
    return Column(name, "numeric", edges=(0, 0.3, 1, 2.5, 7, 9), missing=True, unknown="missing")


def codes_of(source: Source) -> dict[str, np.ndarray]:
    """Return all codes of a source, by column; its counts must say the same."""
    batches = list(source.batches())
    codes = {c.name: np.concatenate([np.asarray(b[c.name]) for b in batches]) for c in source.schema.columns}
    names = source.schema.names
    cliques = [*((name,) for name in names), *itertools.pairwise(names)]
    for clique, counts in zip(cliques, source.count_many(cliques), strict=True):
        sizes = [source.schema.sizes[name] for name in clique]
        cells = np.ravel_multi_index([codes[name].astype(np.int64) for name in clique], sizes)
        assert np.array_equal(np.bincount(cells, minlength=math.prod(sizes)), counts.ravel()), clique
    return codes


def read(data: Any, schema: Schema) -> Mapping[str, np.ndarray]:
    """Return the codes that the product reads."""
    with opened(data, schema) as source:
        return codes_of(source)


def released(data: Any) -> None:
    """Close a source's connection, if it has one."""
    with suppress(AttributeError):
        data.close()


class Grid:
    """Columns of one table: for each kind and view, columns that hold some of its special values each.

    Where numbers are binned, a column holds one special value, since statistics of the column may matter then.
    """

    def __init__(self, kinds: Sequence[Kind], most: int) -> None:
        self.kinds: dict[str, Kind | None] = {ROW: None}
        self.held: dict[str, tuple[Any, ...]] = {}
        described_columns = []
        for kind in kinds:
            for view in kind.views:
                together = 1 if view == "numeric" and isinstance(kind.ordinary[0], float) and most < 9 else most
                for i in range(0, len(kind.special), together):
                    name = f"{kind.name} {view} {i}"
                    self.kinds[name], self.held[name] = kind, kind.special[i : i + together]
                    described_columns.append(described(name, view, kind.categories))
        self.special = max(map(len, self.held.values()))
        self.rows = BASE_ROWS + self.special
        marks = Column(ROW, "categorical", tuple(f"r{i}" for i in range(self.rows + 1)))
        self.columns = [marks, *described_columns]
        self.turns = max(len(kind.special) for kind in kinds)

    def base(self) -> dict[str, list[Any]]:
        """Return the base table: ordinary values, and special ones between them."""
        cells: dict[str, list[Any]] = {ROW: [f"r{i}" for i in range(self.rows)]}
        for name, values in self.held.items():
            kind = self.kinds[name]
            assert kind is not None
            cells[name] = [kind.ordinary[i % 2] for i in range(self.rows)]
            for i in range(self.special):
                cells[name][2 * i % self.rows] = values[i % len(values)]
        return cells

    def odd(self, turn: int) -> dict[str, Any]:
        """Return the odd row of one turn: the special values of each kind take turns."""
        row: dict[str, Any] = {ROW: f"r{self.rows}"}
        for name in self.held:
            kind = self.kinds[name]
            assert kind is not None
            row[name] = kind.special[turn % len(kind.special)]
        return row


def with_row(cells: Cells, row: Mapping[str, Any], *, first: bool) -> dict[str, list[Any]]:
    """Return the table with one more row."""
    return {name: [row[name], *held] if first else [*held, row[name]] for name, held in cells.items()}


def check(kinds: Sequence[Kind], layout: Layout, folder: Path, step: int = 1) -> Outcome:
    """Check every special value in the base table against every ``step``-th one in the odd row, in one layout."""
    out, wanted = Outcome(), [kind for kind in kinds if kind.name not in layout.without]
    for size, alike in itertools.groupby(sorted(wanted, key=_size), key=_size):
        inside = folder / f"to{size}"
        inside.mkdir()
        out += _check_table(list(alike), layout, inside, step)
    return out


def _size(kind: Kind) -> int:
    return len(kind.special) // TOGETHER


def _check_table(kinds: Sequence[Kind], layout: Layout, folder: Path, step: int) -> Outcome:
    """Return the kinds as columns of one table."""
    grid, out = Grid(kinds, layout.together), Outcome()
    refusals: Counter[str] = Counter()

    def tried(cells: Cells, place: str) -> Mapping[str, np.ndarray]:
        """Return codes by column in the order of the marks, without the columns that are refused."""
        columns = [c for c in grid.columns if refusals[c.name] < 2]
        inside, data = folder / place, None
        inside.mkdir()
        try:
            data = layout.write(cells, grid.kinds, inside)
            while len(columns) > 1:
                try:
                    return _in_order((layout.read or read)(data, Schema(tuple(columns))))
                except EspalierError as error:
                    gone = error.data.get("column")
                    if gone not in grid.held:
                        out.unnamed.append(f"{layout.name}: {error}")
                        gone = columns[-1].name
                    refusals[gone] += 1
                    columns = [c for c in columns if c.name != gone]
        except EspalierError as error:
            out.unnamed.append(f"{layout.name}: {error}")
            refusals.update(c.name for c in columns[1:])
        finally:
            released(data)
        return {}

    first: dict[str, np.ndarray] = {}
    """The first codes of each column's ordinary rows."""
    alike: dict[tuple[str, int], tuple[str, int]] = {}
    """The first code of each special value."""
    for turn in (-1, *range(0, grid.turns, step)):
        odd = grid.odd(max(turn, 0))
        cells = grid.base() if turn < 0 else with_row(grid.base(), odd, first=layout.odd_first)
        codes = tried(cells, f"turn{turn + 1}")
        expected = sorted(int(text[1:]) for text in cells[ROW])
        if codes and codes[ROW].tolist() != expected:
            out.broken.append(f"{layout.name}, turn {turn}: rows {expected} are read as {codes[ROW].tolist()}")
            continue
        for name, values in grid.held.items():
            kind = grid.kinds[name]
            assert kind is not None
            if turn >= len(kind.special):
                continue
            out.combinations += len(values) * (turn >= 0)
            if name not in codes:
                continue
            others = codes[name][: grid.rows]
            where = f"{layout.name}: column {name!r} holds {grid.held[name]!r}, and {odd[name]!r} is added"
            if not np.array_equal(others, first.setdefault(name, others)):
                out.broken.append(f"{where}: {first[name].tolist()} becomes {others.tolist()}")
            if turn >= 0:
                code = int(codes[name][-1])
                before = alike.setdefault((name.rsplit(" ", 1)[0], turn), (where, code))
                if before[1] != code:
                    out.broken.append(f"{where}: it is read as {code}, and as {before[1]} where {before[0]}")
    out.refused = {name.split()[0] for name in refusals}
    return out


def _in_order(codes: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    order = np.argsort(codes[ROW], kind="stable")
    return {name: np.asarray(column)[order] for name, column in codes.items()}


class People(NamedTuple):
    """Person identifiers that must stay distinct: each has a different owner. ``odd`` are those of an odd row."""

    name: str
    kind: Kind | None
    ids: tuple[Any, ...]
    odd: tuple[Any, ...]


def _owner(people: People, who: Any) -> str:
    """Return the owner of an identifier; 1 and True, 7 and "7" are different."""
    alike = [i for i, known in enumerate(people.ids) if type(known) is type(who) and known == who]
    return f"o{alike[0]}" if alike else f"o{len(people.ids)}"


def kept(data: Any, schema: Schema, key: str) -> Mapping[str, np.ndarray]:
    """Return the codes of the rows that are left under the row limit."""
    if isinstance(data, Relation):
        source: Source = data.snapshot(schema, PERSON, LIMIT, key=key)
        try:
            return codes_of(source)
        finally:
            source.close()
    with opened(data, schema, PERSON, LIMIT) as table:
        return codes_of(bounded(table, LIMIT) if isinstance(table, Table) else table)


def check_people(people: People, layout: Layout, folder: Path) -> Outcome:
    """Each person keeps as many rows as the limit allows; an additional row changes the kept rows of its owner only."""
    out, told = Outcome(), f"{layout.name}, {people.name}"
    rows = ROWS_EACH * len(people.ids)
    schema = Schema(
        (
            Column(ROW, "categorical", tuple(f"r{i}" for i in range(rows + 1))),
            Column(OWNER, "categorical", tuple(f"o{i}" for i in range(len(people.ids) + 1))),
        )
    )
    base: dict[str, list[Any]] = {
        ROW: [f"r{i}" for i in range(rows)],
        OWNER: [f"o{i // ROWS_EACH}" for i in range(rows)],
        PERSON: [people.ids[i // ROWS_EACH] for i in range(rows)],
    }
    kinds: dict[str, Kind | None] = {ROW: None, OWNER: None, PERSON: people.kind}

    def tried(cells: Cells, place: str) -> dict[int, list[int]] | None:
        """Return the marks of the kept rows, by owner; None where the table is refused."""
        inside, data = folder / place, None
        inside.mkdir()
        try:
            data = layout.write(cells, kinds, inside)
            found = kept(data, schema, "key") if layout.read is None else layout.read(data, schema)
        except EspalierError:
            out.refused.add("people")
            return None
        finally:
            released(data)
        by_owner: dict[int, list[int]] = {}
        for mark, owner in zip(found[ROW].tolist(), found[OWNER].tolist(), strict=True):
            by_owner.setdefault(owner, []).append(mark)
        have = Counter(int(text[1:]) for text in cells[OWNER])
        wrong = {o: len(by_owner.get(o, [])) for o, n in have.items() if len(by_owner.get(o, [])) != min(n, LIMIT)}
        if wrong:
            out.broken.append(f"{told}, {place}: rows kept by owner {wrong}; people are merged or divided")
        return {owner: sorted(marks) for owner, marks in by_owner.items()}

    before = tried(base, "base")
    for turn, who in enumerate(people.odd):
        row = {ROW: f"r{rows}", OWNER: _owner(people, who), PERSON: who}
        after = tried(with_row(base, row, first=layout.odd_first), f"odd{turn}")
        out.combinations += 1
        if before is None or after is None:
            continue
        own = int(row[OWNER][1:])
        others = {o for o in before.keys() | after.keys() if o != own}
        keyed = layout.read is None and layout.name.endswith("relation")
        if keyed and any(before.get(o) != after.get(o) for o in others):
            out.broken.append(f"{told}: a row of {who!r} changes the kept rows of others")
    return out
