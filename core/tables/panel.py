"""People and their visits in memory, from two linked tables that are cut to the first visits of each person.

A panel is a table with one row per person: the columns of the person, the number of kept visits, and the first visit.
It also contains the kept visits of each person and counts their steps.

These rules ensure that a panel's data about a person depend only on that person's rows:

- Visits are ordered by the text of the order column. Ties are broken by the text of the visit's identifier, then by the
  visit's codes, and then, if one file contains both tables, by the person columns' codes. Numbers come first, in
  numerical order; other text, such as an ISO date, follows in alphabetical order; an empty cell comes last. Dates with
  a ``date_order`` are compared as ISO dates. The position of a row in a file never matters, because visits that are
  still tied have equal codes.
- The first ``keep`` visits are kept. The days between two visits are clipped to the declared range.
- A person is included if both tables have a row of that person. People without visits, and visits of people without a
  row among the people, are left out.
- If a person has several rows among the people, the row with the smallest codes is used, compared column by column.
- If one file contains both tables, the person columns have the values of the first kept visit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import TableError
from espalier.core.project.date_orders import sortable
from espalier.core.project.linked import Linked, Pair, Steps
from espalier.core.project.schema import MISSING, Schema, smallest_unsigned
from espalier.core.tables import random_rows
from espalier.core.tables.refusals import together
from espalier.core.tables.source import More, check_limited
from espalier.core.tables.table import Table, column_of, person_codes
from espalier.core.tables.text_table import TextColumn, TextTable


@dataclass(frozen=True, repr=False)
class Panel(Table):
    """A table of people with their visits: ``visits[name]`` has one row per person and one column per position.

    Positions beyond a person's number of visits hold zeros.
    """

    linked: Linked | None = None
    visits: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    @cached_property
    def steps(self) -> Steps:
        """Total number of steps of all people."""
        assert self.linked is not None
        return Steps(self.linked, self.linked.step_sizes(self.schema), self.codes, self.visits)

    def step_counts(self, pairs: Sequence[Pair]) -> list[NDArray[np.int64]]:
        """Return the weighted counts of each pair, in whole units (`espalier.core.project.linked.Linked.units`)."""
        return [self._weighted(pair) for pair in pairs]

    def step_echoes(self, columns: Sequence[str]) -> NDArray[np.int64]:
        """Return, for each column, the weighted number of steps that repeat the value of the visit before the previous
        one, in units.
        """
        cells = [(self._cells(name), self._cells(f"{name}@earlier")) for name in columns]
        m = self.steps.of_person
        repeated = [self._by_weight((this == earlier).astype(np.int64), 2, m)[1] for this, earlier in cells]
        return np.array(repeated, dtype=np.int64)

    def visit_counts(self, column: str) -> NDArray[np.int64]:
        """Return the number of people with each code of ``column`` at their second, third, … kept visit."""
        assert self.linked is not None
        codes, size, many = self.visits[column], self.steps.sizes[column], self.steps.numbers
        at = [np.bincount(codes[many > t, t], minlength=size) for t in range(1, self.linked.keep)]
        return np.stack(at).astype(np.int64)

    def return_counts(self, column: str, bins: int) -> NDArray[np.int64]:
        """Return the weighted number of kept visits with each code of ``column``, in units, by whether and how soon
        another visit follows.
        """
        assert self.linked is not None
        keep, many = self.linked.keep, self.steps.numbers
        who = np.concatenate([np.flatnonzero(many > t) for t in range(keep - 1)])
        at = np.repeat(np.arange(keep - 1), [np.count_nonzero(many > t) for t in range(keep - 1)])
        gaps = self.visits[self.linked.gap_name][who, at + 1]
        follows = np.where(many[who] == at + 1, 2, gaps >= bins)
        size, m = self.steps.sizes[column], np.minimum(many, keep - 1)[who]
        by_number = np.argsort(m, kind="stable")
        cells = 3 * self.visits[column][who, at].astype(np.int64) + follows
        return self._by_weight(cells[by_number], 3 * size, m).reshape(size, 3)

    def _weighted(self, pair: Pair) -> NDArray[np.int64]:
        shape = tuple(self.steps.sizes[name] for name in pair)
        cells = self._cells(pair[0]).astype(np.int64) * shape[1] + self._cells(pair[1])
        return self._by_weight(cells, shape[0] * shape[1], self.steps.of_person).reshape(shape)

    @cached_property
    def _by_number(self) -> NDArray[np.int64]:
        """Steps, sorted by the number of steps of their person."""
        return np.argsort(self.steps.of_person, kind="stable")

    @cached_property
    def _known(self) -> dict[str, NDArray[Any]]:
        return {}

    def _cells(self, name: str) -> NDArray[Any]:
        """Return the code of ``name`` at each step, in that order."""
        if name not in self._known:
            kind = smallest_unsigned(self.steps.sizes[name])
            self._known[name] = self.steps.cells(name)[self._by_number].astype(kind)
        return self._known[name]

    def _by_weight(self, cells: NDArray[np.int64], size: int, shared: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return Σ 1/m over the steps in each cell, in units. The result is exact, since each weight is a whole number
        of units.

        ``shared`` contains the m of each step, in any order; ``cells`` are sorted by m.
        """
        assert self.linked is not None
        total, start = np.zeros(size, dtype=np.int64), 0
        for m, steps in enumerate(np.bincount(shared).tolist()):
            if steps:
                total += self.linked.units // m * np.bincount(cells[start : start + steps], minlength=size)
            start += steps
        return total

    def take(self, rows: NDArray[Any]) -> Panel:
        """Return some of the people with all their visits."""
        kept = super().take(rows)
        assert isinstance(kept, Panel)
        return replace(kept, visits={name: of[rows] for name, of in self.visits.items()})

    def limited(self, most: int) -> Panel:
        """Return the panel itself, because each person is one row with all kept visits."""
        return replace(self, row_limit=most)

    def split(self, share: float, size: int | None = None) -> tuple[Panel, Panel]:
        """Return (rest, held): each person is held with probability ``share``, with all visits."""
        rest, held = super().split(share, size)
        assert isinstance(rest, Panel)
        assert isinstance(held, Panel)
        return rest, held

    def widened(self, schema: Schema, more: More) -> Panel:
        """Return the people with additional columns of ``schema``, which ``more`` computes from their codes."""
        made = super().widened(schema, more)
        assert isinstance(made, Panel)
        return made

    def to_total(self, total: int) -> Panel:
        """Return ``total`` people: others are left out at random, or invented people with invented visits are added."""
        check_limited(self)
        assert self.linked is not None
        chosen = np.sort(random_rows.first(random_rows.lots_for(self.rows, self.deal), total))
        short = total - len(chosen)
        codes = {
            c.name: np.concatenate([self.codes[c.name][chosen], random_rows.invented_codes(short, c.size, self.deal)])
            for c in self.schema.columns
        }
        sizes, visits = self.steps.sizes, {}
        for name, of in self.visits.items():
            cells = random_rows.invented_codes(short * self.linked.keep, sizes[name], self.deal)
            made = cells.reshape(short, self.linked.keep)
            made[:, 0] = codes[name][len(chosen) :] if name in codes else sizes[f"{name}@before"] - 1
            visits[name] = np.concatenate([of[chosen], made.astype(of.dtype)])
        return replace(self, codes=codes, visits=visits, rows=total, person=None)

    def recoded(self, schema: Schema) -> Panel:  # noqa: ARG002
        """Refuse a bought schema, because the columns of both tables must be declared."""
        raise TableError("the columns of linked tables cannot be bought; declare their categories and bins")


def panel_of(
    linked: Linked,
    schema: Schema,
    people: TextTable,
    visits: TextTable,
    order: Sequence[str] = (),
    ranks: Mapping[str, NDArray[np.int64]] | None = None,
    digest: bytes = b"",
) -> Panel:
    """Return the panel of two tables as read; ``people`` is ignored if one file contains both.

    ``order`` lists the columns that order visits, by default the order column and the visit's identifier. ``ranks``
    order the visits by a column that was not read as text. ``digest`` identifies the tables; by default, it covers all
    their contents.

    Raises :class:`TableError` for a column that a table does not have, an undeclared value, and a row without a person.
    """
    both = visits if linked.together else people
    key = linked.by if linked.together else linked.key
    whose, of = person_codes(both, key), person_codes(visits, linked.by)
    known = {text: i for i, text in enumerate(whose.values)}
    person = np.array([known.get(text, -1) for text in of.values], dtype=np.int64)[of.codes]
    wrong: list[TableError] = []
    child = _encoded(linked, schema, visits, linked.visit_columns(schema), wrong)
    parent = _encoded(linked, schema, both, linked.person_columns(schema), wrong)
    if wrong:
        raise together(wrong)
    cells = {**child, **parent} if linked.together else child
    dated = schema[linked.dated].date_order if linked.dated in schema else ""
    spelled = {linked.order: dated} if dated and not order else {}
    kept = _ordered(visits, order or (linked.order, linked.visit_key), person, cells, ranks or {}, spelled)
    kept = kept[person[kept] >= 0]
    start = np.flatnonzero(np.diff(person[kept], prepend=-1))
    place = np.arange(len(kept)) - np.repeat(start, np.diff(start, append=len(kept)))
    kept, place = kept[place < linked.keep], place[place < linked.keep]
    who = person[kept]
    first = kept[place == 0] if linked.together else _first_rows(parent, whose.codes)
    found = np.unique(who)
    found = found[np.isin(found, whose.codes)]
    index = np.full(len(whose.values), -1, dtype=np.int64)
    index[found] = np.arange(len(found))
    rows = first if linked.together else first[np.searchsorted(whose.codes[first], found)]
    codes = {name: of_person[rows] for name, of_person in parent.items()}
    at = index[who], place
    dense = {name: _dense(len(found), linked.keep, at, of_visit[kept]) for name, of_visit in child.items()}
    number = np.bincount(index[who], minlength=len(found)) - 1
    if linked.gap:
        dense[linked.gap_name] = _gaps(linked, schema, visits, kept, at, number)
    codes |= {linked.number: number, **{name: of_visit[:, 0] for name, of_visit in dense.items() if name in schema}}
    steps = {name: dense[name] for name in linked.step_columns(schema)}
    source = digest or digest_of_both([visits] if linked.together else [both, visits])
    return Panel(
        schema, codes, len(found), source, np.arange(len(found)), linked.key, linked=linked, visits=steps, row_limit=1
    )


def digest_of_both(tables: Sequence[TextTable]) -> bytes:
    """Return the digests of tables as read, one after the other. PRIVATE.

    A ledger compares each of them, so it also recognises a table that is released alone.
    """
    return b"".join(table.digest for table in tables)


def _encoded(
    linked: Linked, schema: Schema, text: TextTable, names: Sequence[str], wrong: list[TableError]
) -> dict[str, NDArray[Any]]:
    """Return the codes of some columns. Each code depends only on its own cell. The error of a column that does not fit
    its description is added to ``wrong``.
    """
    plain, codes = {name: column_of(text, linked.plain(name)) for name in names}, dict[str, NDArray[Any]]()
    for name, read in plain.items():
        try:
            codes[name] = schema[name].encode(read.values).astype(smallest_unsigned(schema[name].size))[read.codes]
        except TableError as error:
            wrong.append(error)
    return codes


def _ordered(
    text: TextTable,
    order: Sequence[str],
    person: NDArray[np.int64],
    codes: Mapping[str, NDArray[Any]],
    ranks: Mapping[str, NDArray[np.int64]],
    spelled: Mapping[str, str],
) -> NDArray[np.int64]:
    """Return the rows sorted by person, order, visit identifier, and codes. ``spelled`` is the order in which a column
    writes dates.
    """
    named = (name for name in order if name)
    keys = [ranks[n] if n in ranks else ranks_of(column_of(text, n), spelled.get(n, "")) for n in named]
    return np.asarray(np.lexsort([*reversed(list(codes.values())), *reversed(keys), person]))


def _first_rows(codes: Mapping[str, NDArray[Any]], person: NDArray[Any]) -> NDArray[np.int64]:
    """Return, for each person in order, the row with the smallest ``codes``."""
    rows = np.lexsort([*reversed(list(codes.values())), person])
    return np.asarray(rows[np.flatnonzero(np.diff(person[rows].astype(np.int64), prepend=-1))])


def ranks_of(column: TextColumn, date_order: str = "") -> NDArray[np.int64]:
    """Return the rank of each cell's text. The order of two cells depends on their text alone."""
    keys = [_key(sortable(text, date_order) if date_order else text) for text in column.values]
    place = {key: i for i, key in enumerate(sorted(set(keys)))}
    return np.asarray(np.array([place[key] for key in keys], dtype=np.int64)[column.codes])


def _key(text: str) -> tuple[int, Decimal, str]:
    """Return the sort key of a cell's text: numbers, then other text such as ISO dates, then an empty cell."""
    if text == MISSING:
        return 2, Decimal(0), ""
    try:
        number = Decimal(text) if text.isascii() and "_" not in text else None
    except InvalidOperation:
        number = None
    if number is not None and number.is_finite():
        return 0, number, ""
    return 1, Decimal(0), text


def _dense(
    people: int, keep: int, at: tuple[NDArray[np.int64], NDArray[np.int64]], codes: NDArray[Any]
) -> NDArray[Any]:
    out = np.zeros((people, keep), dtype=codes.dtype)
    out[at] = codes
    return out


def _gaps(
    linked: Linked,
    schema: Schema,
    text: TextTable,
    kept: NDArray[np.int64],
    at: tuple[NDArray[np.int64], NDArray[np.int64]],
    number: NDArray[np.int64],
) -> NDArray[Any]:
    """Return the bin of the days since the previous visit; "none" at the first visit."""
    read, column = column_of(text, linked.order), linked.gap_column(schema)
    days = schema[linked.dated].numbers(read.values)[read.codes]  # a missing-value mark is not a day
    dense = np.full((len(number), linked.keep), np.nan)
    dense[at] = days[kept]
    gaps = np.diff(dense, axis=1)
    bins = np.where(np.isnan(gaps), column.values, column.bins_of(np.clip(gaps, 0, linked.gap[-1])))
    present = np.arange(1, linked.keep) <= number[:, None]
    if not column.missing and (np.isnan(gaps) & present).any():
        schema[linked.dated].refuse_empty()
    none = np.full((len(number), 1), column.size)
    return np.concatenate([none, np.where(present, bins, 0)], axis=1).astype(smallest_unsigned(column.size + 1))
