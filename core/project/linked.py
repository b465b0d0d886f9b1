"""Linked tables: people and their ordered visits.

One schema describes both tables. The name of a column begins with the name of its table, such as ``visits.insulin``.
The drawing, the roles and the plan use these names. A *row* of a linked project is a person with the first visit and
the number of visits, `Linked.number`. A *step* is a visit after the first, together with earlier data:

| name | meaning at a step |
| --- | --- |
| ``patients.age`` | a column of the person |
| ``visits per person`` | the number of visits that are kept |
| ``position`` | the number of this visit |
| ``visits.insulin`` | this visit |
| ``visits.insulin@before`` | the previous visit |
| ``visits.insulin@earlier`` | the visit before the previous one, "none" if there is none |
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import ProjectError, first_twice
from espalier.core.project.column import Column
from espalier.core.project.column_types import Categories, Dates, Numbers
from espalier.core.project.schema import Schema

FORMAT = "espalier-project/2"
"""Format of a project file with linked tables."""
BEFORE, EARLIER, POSITION = "@before", "@earlier", "position"
NEXT = "next visit: "
"""Prefix of columns at the next visit. The drawing shows each column of a visit twice: at this visit and, with this
prefix, at the next visit.
"""
GAP = "days since the visit before"
"""Name of the column for the days between two visits, without the name of its table."""
VISIT = "visit"
"""Column for the position of a released visit, counted from 1."""
MOST_KEPT = 20
"""Maximum number of visits per person that a release keeps. Weights are counted in units of 1/lcm(1, …, k − 1)."""

RESERVED = ("synthetic", "synthetic-whole", "dictionary", "questions", "not-private")
"""Names that no table can have, because other files of a release have them."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")

Codes = Mapping[str, NDArray[Any]]
Pair = tuple[str, str]
"""An arrow in a step: its cause, and the column of this visit to which it leads."""


def is_table_name(name: str) -> bool:
    """Return whether a linked table and its file in a release may have this name."""
    return _NAME.fullmatch(name) is not None and name.lower() not in RESERVED


def by_visit(edges: Iterable[Any]) -> tuple[list[Any], list[Pair]]:
    """Return the arrows within a visit, and those from one visit to the next: their causes end in `BEFORE`."""
    within, between = [], []
    for edge in edges:
        cause, *rest = edge if isinstance(edge, list | tuple) else (None,)
        if isinstance(cause, str) and cause.endswith(BEFORE) and len(rest) == 1:
            between.append((cause.removesuffix(BEFORE), str(rest[0])))
        else:
            within.append(edge)
    return within, between


@dataclass(frozen=True)
class Linked:
    """Link between two tables.

    ``people`` and ``visits`` are the names of the tables. ``key`` is the person identifier in the first table, ``by``
    the person identifier in the second. ``order`` is the column that orders a person's visits; the first ``keep`` are
    kept. ``visit_key`` identifies a visit and is read only to break ties in ``order``. ``together`` is true if both
    tables are read from one file; the person columns then have the values of the first kept visit. ``gap`` are bin
    edges of the days between two visits; without them no date is released. ``arrows`` lead from one visit to the next.
    """

    people: str
    visits: str
    key: str
    by: str
    order: str
    keep: int
    visit_key: str = ""
    together: bool = False
    gap: tuple[float, ...] = ()
    arrows: tuple[Pair, ...] = ()

    def __post_init__(self) -> None:
        if not 2 <= self.keep <= MOST_KEPT:
            raise ProjectError(f"tables: keep must be a whole number from 2 to {MOST_KEPT}", key="tables")
        if odd := [name for name in (self.people, self.visits) if not is_table_name(name)]:
            raise ProjectError(
                f"tables: {odd[0]!r} cannot name a table and its file. Use letters, digits, - and _, beginning with a "
                "letter",
                key="tables",
            )
        if self.people.lower() == self.visits.lower():  # many file systems ignore case
            raise ProjectError("tables: the two tables need different names", key="tables")

    # Names ------------------------------------------------------------------------------------------------------------

    @property
    def number(self) -> str:
        """A person's column for the number of kept visits."""
        return f"{self.visits} per person"

    @property
    def number_column(self) -> Column:
        """Description of the number of kept visits: 1 to ``keep``. The description is public."""
        return Categories(self.number, "ordinal", tuple(map(str, range(1, self.keep + 1))))

    @property
    def dated(self) -> str:
        """Column of dates that are computed from the gaps; empty without gaps."""
        return f"{self.visits}.{self.order}" if self.gap else ""

    @property
    def gap_name(self) -> str:
        """Column for the days since the previous visit."""
        return f"{self.visits}.{GAP}"

    def gap_column(self, schema: Schema) -> Column:
        """Return the description of the days since the previous visit."""
        return Numbers(self.gap_name, "numeric", edges=self.gap, integer=True, missing=schema[self.dated].missing)

    def person_columns(self, schema: Schema) -> tuple[str, ...]:
        """Return the columns of the people's table."""
        return tuple(name for name in schema.names if name.startswith(f"{self.people}."))

    def visit_columns(self, schema: Schema) -> tuple[str, ...]:
        """Return the columns of the visits' table."""
        return tuple(name for name in schema.names if name.startswith(f"{self.visits}."))

    def step_columns(self, schema: Schema) -> tuple[str, ...]:
        """Return the columns of a visit after the first, in which the days since the last visit replace its date."""
        rest = tuple(name for name in self.visit_columns(schema) if name != self.dated)
        return (self.gap_name, *rest) if self.gap else rest

    def step_sizes(self, schema: Schema) -> dict[str, int]:
        """Return the number of codes of each column at a step. The last code of an earlier visit may mean "none"."""
        sizes = schema.sizes
        out = {name: sizes[name] for name in (*self.person_columns(schema), self.number)}
        out[POSITION] = self.keep - 1
        for name in self.step_columns(schema):
            is_gap = name == self.gap_name
            size = self.gap_column(schema).size if is_gap else sizes[name]
            out |= {name: size, name + BEFORE: size + is_gap, name + EARLIER: size + 1}
        return out

    def next_boxes(self, schema: Schema) -> dict[str, str]:
        """Return each box of the drawing at the next visit, with its column."""
        return {NEXT + self.plain(name): name for name in self.step_columns(schema)}

    def boxes(self, arrow: Pair) -> Pair:
        """Return the two boxes of an arrow from one visit to the next."""
        return arrow[0], NEXT + self.plain(arrow[1])

    def drawn(self, cause: str, effect: str) -> Linked:
        """Return the link with one more arrow from one visit to the next."""
        return self if (cause, effect) in self.arrows else replace(self, arrows=(*self.arrows, (cause, effect)))

    def without(self, arrows: Iterable[Pair]) -> Linked:
        """Return the link without these arrows from one visit to the next."""
        gone = set(arrows)
        return replace(self, arrows=tuple(arrow for arrow in self.arrows if arrow not in gone))

    # Schema -----------------------------------------------------------------------------------------------------------

    def check(self, schema: Schema) -> None:
        """Raise :class:`ProjectError` if the schema does not fit the two tables."""
        ours = {*self.person_columns(schema), *self.visit_columns(schema), self.number}
        if odd := [name for name in schema.names if name not in ours]:
            raise ProjectError(
                f"the column {odd[0]!r} belongs to neither table: begin its name with {self.people}. or {self.visits}.",
                key="schema",
                column=odd[0],
            )
        if odd := [name for name in schema.names if not self.plain(name)]:
            raise ProjectError(f"{odd[0]!r} names a table but no column", column=odd[0])
        if odd := [name for name in schema.names if name.endswith((BEFORE, EARLIER)) or name == self.gap_name]:
            raise ProjectError(f"{odd[0]!r} is a reserved name in linked tables; rename the column", column=odd[0])
        for name in (f"{self.people}.{self.key}", f"{self.people}.{self.by}", f"{self.visits}.{self.by}"):
            if name in schema:
                raise ProjectError(f"the person identifier {name!r} would be released; take it out of the schema")
        for table, columns in ((self.people, self.person_columns(schema)), (self.visits, self.step_columns(schema))):
            if not columns:
                raise ProjectError(f"the table {table!r} needs at least one column in the schema", key="schema")
        for table, columns in ((self.people, self.person_columns(schema)), (self.visits, self.visit_columns(schema))):
            if (twice := first_twice([*map(self.plain, columns), *self.identifiers(table)])) is not None:
                raise ProjectError(
                    f"the released table {table!r} would have two columns {twice!r}. Rename one, or name another "
                    "identifier of visits",
                    key="tables",
                    column=f"{table}.{twice}",
                )
        if self.gap and (self.dated not in schema or not isinstance(schema[self.dated], Dates)):
            raise ProjectError(
                f"gaps between visits need the order column {self.dated!r} in the schema, as a column of dates",
                key="tables",
            )
        if self.gap and (len(self.gap) < 2 or self.gap[0] != 0 or list(self.gap) != sorted(set(self.gap))):
            raise ProjectError("tables: gap lists days in ascending order, beginning with 0", key="tables")
        if self.gap and any(edge != int(edge) for edge in self.gap):
            raise ProjectError("tables: gap lists whole days", key="tables")
        steps = self.step_columns(schema)
        for cause, effect in self.arrows:
            for name in (cause, effect):
                if name not in steps:
                    raise ProjectError(
                        f"the drawing has an arrow from one visit to the next, {cause!r} → {effect!r}, but {name!r} is "
                        "not a column of every visit",
                        key="dag",
                        column=name,
                    )

    def identifiers(self, table: str) -> tuple[str, ...]:
        """Return the invented columns of a released table: the person, the visit's position, and the visit's
        identifier.
        """
        return (self.key,) if table == self.people else (self.by, VISIT, *filter(None, [self.visit_key]))

    def columns_read(self, schema: Schema, table: str) -> tuple[str, ...]:
        """Return the columns of the original table that a release needs, without those that only order visits."""
        if table == self.people and not self.together:
            return (self.key, *map(self.plain, self.person_columns(schema)))
        person = self.person_columns(schema) if self.together else ()
        return tuple(dict.fromkeys([self.by, *map(self.plain, (*person, *self.visit_columns(schema)))]))

    def completed(self, schema: Schema) -> Schema:
        """Return the schema with the number of visits, between the columns of the two tables."""
        columns = [c for c in schema.columns if c.name != self.number]
        people = [c for c in columns if c.name.startswith(f"{self.people}.")]
        rest = [c for c in columns if c not in people]
        return replace(schema, columns=(*people, self.number_column, *rest))

    def table_schema(self, schema: Schema, table: str) -> Schema:
        """Return the columns of one table under their own names, and the columns that link it."""
        names = self.person_columns(schema) if table == self.people else self.visit_columns(schema)
        return Schema(tuple(replace(schema[name], name=self.plain(name)) for name in names))

    def plain(self, name: str) -> str:
        """Return the name that a column has in its own table."""
        for table in (self.people, self.visits):
            if name.startswith(f"{table}."):
                return name[len(table) + 1 :]
        return name

    # Weights ----------------------------------------------------------------------------------------------------------

    @cached_property
    def units(self) -> int:
        """Number of units per person: lcm(1, …, k − 1), so that each weight 1/m is a whole number of units."""
        return math.lcm(*range(1, self.keep))

    # File -------------------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Return the entry ``tables`` of the project file."""
        visits: dict[str, Any] = {"of": self.people, "by": self.by, "order": self.order, "keep": self.keep}
        if self.visit_key:
            visits["key"] = self.visit_key
        if self.gap:
            visits["dates"] = {self.order: {"gap": list(self.gap)}}
        people: dict[str, Any] = {"key": self.key, **({"from": self.visits} if self.together else {})}
        return {self.people: people, self.visits: visits}

    @classmethod
    def from_json(cls, data: Any) -> Linked:
        """Return the link of a project file; raises :class:`ProjectError`."""
        if not isinstance(data, Mapping) or not all(isinstance(t, Mapping) for t in data.values()):
            raise ProjectError("tables must be an object with one object for each table", key="tables")
        children = [name for name, table in data.items() if "of" in table]
        if len(data) != 2 or len(children) != 1:
            raise ProjectError(
                'tables: Espalier links one table of people and one table of visits (with the key "of"). Release '
                "further tables on their own.",
                key="tables",
            )
        name = children[0]
        visits, (people,) = data[name], [other for other in data if other != name]
        parent = data[people]
        if visits["of"] != people:
            raise ProjectError(f"tables: {name!r} belongs to {visits['of']!r}, which is not a table", key="tables")
        for table, known in ((parent, {"key", "from"}), (visits, {"of", "by", "order", "keep", "key", "dates"})):
            if odd := set(table) - known:
                raise ProjectError(f"tables: unknown key {sorted(odd)[0]!r}", key="tables")
        for what, text in (("key", parent.get("key")), ("by", visits.get("by")), ("order", visits.get("order"))):
            if not isinstance(text, str) or not text:
                raise ProjectError(f"tables: {what} must be the name of a column", key="tables")
        keep = visits.get("keep")
        if isinstance(keep, bool) or not isinstance(keep, int):
            raise ProjectError("tables: keep must be a whole number", key="tables")
        if not isinstance(visits.get("key", ""), str) or parent.get("from", name) != name:
            raise ProjectError(f"tables: key must name a column, and from can only be {name!r}", key="tables")
        gap = _gap(visits.get("dates", {}), visits["order"])
        together = "from" in parent
        return cls(
            people, name, parent["key"], visits["by"], visits["order"], keep, visits.get("key", ""), together, gap
        )


def _gap(dates: Any, order: str) -> tuple[float, ...]:
    """Return the bin edges of the days between two visits."""
    if dates == {}:
        return ()
    entry = dates.get(order) if isinstance(dates, Mapping) and set(dates) == {order} else None
    edges = entry.get("gap") if isinstance(entry, Mapping) and set(entry) == {"gap"} else None
    whole = isinstance(edges, list) and all(isinstance(e, int | float) and not isinstance(e, bool) for e in edges)
    if not whole or not edges:
        raise ProjectError(f'tables: dates must be {{"{order}": {{"gap": [0, 8, 31]}}}}', key="tables")
    return tuple(float(e) for e in edges)


@dataclass(frozen=True)
class Steps:
    """All steps of some people, as codes.

    ``rows`` are the people's codes, one per person. ``visits`` are the codes of the visits' columns, one row per person
    and one column per position; those beyond a person's number of visits are arbitrary. ``sizes`` is
    `Linked.step_sizes`.
    """

    linked: Linked
    sizes: Mapping[str, int]
    rows: Codes
    visits: Codes

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        """Number of visits of each person."""
        return np.asarray(self.rows[self.linked.number], dtype=np.int64) + 1

    @cached_property
    def place(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Person and position of each step, in the order of positions; position 1 is the second visit."""
        whose = [np.flatnonzero(self.numbers > t) for t in range(1, self.linked.keep)]
        return np.concatenate(whose), np.repeat(np.arange(1, self.linked.keep), [len(who) for who in whose])

    @cached_property
    def of_person(self) -> NDArray[np.int64]:
        """Number m of steps of the person to whom each step belongs."""
        return self.numbers[self.place[0]] - 1

    def cells(self, name: str) -> NDArray[Any]:
        """Return the code of ``name`` at each step."""
        return self.cells_at(name, *self.place)

    def cells_at(self, name: str, who: NDArray[np.int64], at: NDArray[np.int64]) -> NDArray[Any]:
        """Return the code of ``name`` at the positions ``at`` of the people ``who``."""
        if name == POSITION:
            return at - 1
        if name.endswith(BEFORE):
            return self.visits[name.removesuffix(BEFORE)][who, at - 1]
        if name.endswith(EARLIER):
            found = self.visits[name.removesuffix(EARLIER)][who, np.maximum(at - 2, 0)]
            return np.where(at > 1, found, self.sizes[name] - 1)
        return self.visits[name][who, at] if name in self.visits else self.rows[name][who]
