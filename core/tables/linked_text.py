"""Linked tables as they were read, before their columns are described, and a first draft of their project."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePath

import numpy as np

from espalier.core.errors import ProjectError, TableError
from espalier.core.project.column_types import Dates
from espalier.core.project.file import Project
from espalier.core.project.linked import Linked, is_table_name
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, LeftOut, Schema
from espalier.core.tables.catalogue import joint
from espalier.core.tables.guessing import guess_schema
from espalier.core.tables.panel import digest_of_both
from espalier.core.tables.review import one_person_decides, some_days, unclear_orders
from espalier.core.tables.table import column_of, person_codes
from espalier.core.tables.text_table import TextColumn, TextTable

KEEP = 3
"""Number of visits per person that a draft keeps."""
GAP = (0.0, 1.0, 8.0, 31.0, 91.0, 181.0, 366.0)
"""Bin edges of the days between two visits in a draft: 0, 1 to 7, 8 to 30 and so on. Longer gaps belong to the last
bin.
"""


@dataclass(frozen=True, repr=False)
class LinkedText(TextTable):
    """Two linked tables as read. ``columns`` holds the columns of both tables by their names in the project.

    Each column has as many cells as its table has rows; ``rows`` is the number of rows of the people's table. The
    columns that link the two tables are excluded. ``visits_read`` is `None` if one file contains both tables.
    """

    linked: Linked | None = None
    people_read: TextTable | None = None
    visits_read: TextTable | None = None

    @classmethod
    def of(cls, linked: Linked, tables: Sequence[TextTable]) -> LinkedText:
        """Return the tables as one; raises :class:`TableError` if a column that links them is missing, or does not
        identify the person in each row.
        """
        people, visits = tables[0], tables[-1]
        for table, named in ((people, [linked.key]), (visits, [linked.by, linked.order, linked.visit_key])):
            for column in filter(None, named):
                column_of(table, column)
            person_codes(table, named[0])
        apart = {linked.key, linked.by}, {linked.by, linked.visit_key, *([] if linked.gap else [linked.order])}
        both = ((linked.people, people, apart[0]), (linked.visits, visits, apart[1]))
        columns = {f"{name}.{n}": c for name, table, out in both for n, c in table.columns.items() if n not in out}
        columns[linked.number] = _numbers(visits, linked.by, linked.keep)
        source = visits.source if linked.together else f"{people.source} and {visits.source}"
        kind = joint((people.origin, visits.origin))
        return cls(columns, people.rows, source, kind, linked, people, None if linked.together else visits)

    @property
    def tables(self) -> tuple[TextTable, ...]:
        """Tables as they were read, people first; a single table if one file contains both."""
        assert self.people_read is not None
        return (self.people_read,) if self.visits_read is None else (self.people_read, self.visits_read)

    @cached_property
    def digest(self) -> bytes:
        """Digests of the tables, one after the other. PRIVATE; see `TextTable.digest`."""
        return digest_of_both(self.tables)

    def kept(self, keep: int) -> float:
        """Return the share of visits that remain if a release keeps the first ``keep`` visits of each person.
        PRIVATE.
        """
        assert self.linked is not None
        many = np.bincount(person_codes(self.tables[-1], self.linked.by).codes)
        return float(np.minimum(many, keep).sum() / max(many.sum(), 1))


def _numbers(visits: TextTable, by: str, keep: int) -> TextColumn:
    """Return the number of kept visits of each person who has visits."""
    many = np.bincount(column_of(visits, by).codes)
    codes = np.minimum(many[many > 0], keep) - 1
    return TextColumn(tuple(map(str, range(1, keep + 1))), codes.astype(np.int32))


def draft(
    tables: Sequence[TextTable],
    linked: Linked,
    method: str,
    person_columns: Sequence[str] = (),
    missing: Sequence[str] = (),
    date_order: str = "",
) -> Project:
    """Return a project that links ``tables``, people first, with a guessed schema; for one table, ``person_columns``
    name the columns of the person.

    Gaps between visits are drafted if the order column contains dates. ``date_order`` is used if the rows do not show
    whether the day or the month comes first.

    Raises :class:`TableError` if a table lacks a column of the link, if the order of visits is unclear, or if only some
    values of the order column are dates. Gaps are drafted if all its cells are dates, and left out if at least two
    people have a cell that is not a date. Any other column is refused, so that no single person's rows decide. Raises
    :class:`ProjectError` for an invalid project.
    """
    for table, named in ((tables[0], [linked.key]), (tables[-1], [linked.by, linked.order, linked.visit_key])):
        for name in filter(None, named):
            if name not in table.columns:
                raise TableError(f"{table.source}: there is no column {name!r}", column=name)
    names = (linked.people, linked.visits)
    guessed = [guess_schema(table, missing, date_order) for table in tables]
    order = next((c for c in guessed[-1].columns if c.name == linked.order), None)
    if not isinstance(order, Dates) and unclear_orders(tables[-1].columns[linked.order], missing):
        raise TableError(
            f"column {linked.order!r} orders the visits, but its dates do not show whether the day or the month comes "
            "first. Write them as 2024-01-31, or choose the order (espalier init --date-order dmy or mdy)",
            column=linked.order,
        )
    if not isinstance(order, Dates) and (days := some_days(tables[-1].columns[linked.order], missing)):
        raise TableError(
            f"column {linked.order!r} orders the visits, and {days} of its distinct values are dates, but others are "
            "not. Correct the others, or name the values that mark missing cells (espalier init --missing)",
            column=linked.order,
        )
    filled = tables[-1].columns[linked.order], tables[-1].columns[linked.by]
    if not isinstance(order, Dates) and one_person_decides(*filled, missing):
        raise TableError(
            f"column {linked.order!r} orders the visits, and the values of one person would decide whether it contains "
            "dates. Correct the values that are not dates, or name those that mark missing cells (espalier init "
            "--missing)",
            column=linked.order,
        )
    linking = {linked.key, linked.by, linked.visit_key, *([] if isinstance(order, Dates) else [linked.order])}
    if linked.together:
        parts = _parted(guessed[0], person_columns, linking)
    else:
        parts = _unlinked(guessed[0], linking), _unlinked(guessed[1], linking)
    columns = [replace(c, name=f"{table}.{c.name}") for table, some in zip(names, parts, strict=True) for c in some]
    out: list[LeftOut] = [
        replace(c, name=f"{table}.{c.name}")
        for table, schema in zip(names[-len(guessed) :], guessed, strict=True)
        for c in schema.left_out
        if c.name not in linking
    ]
    link = replace(linked, gap=GAP if isinstance(order, Dates) else ())
    plan = Plan(method, 1.0, 1e-6, neighbors="add-remove", person=link.key)
    schema = Schema(tuple(columns), tuple(out))
    return Project(link.visits, schema, plan, one_row_per_person=False, linked=link)


def table_names(sources: Sequence[str]) -> tuple[str, str]:
    """Return names for two tables, from their file names. A single file contains people and visits."""
    stems = [PurePath(source).name.split(".")[0] for source in sources]
    both = ("people", "visits") if len(stems) == 1 else (stems[0], stems[1])
    fit = all(is_table_name(name) for name in both) and both[0].lower() != both[1].lower()
    return both if fit else ("people", "visits")


def _unlinked(schema: Schema, linking: set[str]) -> list[Column]:
    """Return the columns of one table, without those that link and order."""
    return [column for column in schema.columns if column.name not in linking]


def _parted(schema: Schema, person: Sequence[str], linking: set[str]) -> tuple[list[Column], list[Column]]:
    """Return the columns of people and the columns of visits from a file that contains both."""
    if odd := [name for name in person if name not in schema or name in linking]:
        raise ProjectError(
            f"{odd[0]!r} cannot be a column of the person: it is not in the table, or it links or orders the visits",
            column=odd[0],
        )
    rest = _unlinked(schema, linking)
    return [c for c in rest if c.name in person], [c for c in rest if c.name not in person]
