"""Statements of a snapshot inside PostgreSQL, as text: row limits, fresh lots, parts, totals and new codes."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from espalier.core.project.plan import Plan
from espalier.core.project.public_grid import as_read
from espalier.core.project.schema import Schema
from espalier.core.tables.row_limits import runs

CODES = "espalier_codes"
"""Name of the temporary table; names of other tables have a number."""
FRESH = "('x' || left(replace(gen_random_uuid()::text, '-', ''), 12))::bit(48)::bigint"
"""48 fresh bits from the server's strong generator, as a whole number."""


def later_statements(declared: Schema, plan: Plan) -> list[str]:
    """Return the statements of a release that follow the encoding.

    ``KEY`` is a key that is drawn for each release, ``SIZE`` and ``SHORT`` are numbers of rows that are not known yet,
    and ``CODES`` stands for the codes of columns that will be bought.
    """
    schema = as_read(declared)
    people, table = plan.person is not None, CODES
    made = truncation(schema, plan.rows_per_person, "KEY") if people else []
    share, temp = plan.private_evaluation, "ON COMMIT DROP AS"
    if share:
        size = None if people or plan.neighbors == "add-remove" else "SIZE"
        made.append(drawn(schema, CODES, f"{CODES}_1", people=people))
        for i in (2, 3):
            query = part_of(schema, CODES, f"{CODES}_1", HeldOut(share, size, people), held=i == 3)
            made.append(f"CREATE TEMP TABLE {CODES}_{i} {temp} {query}")
        table = f"{CODES}_2"
    if people and plan.neighbors == "replace-one" and plan.rows is not None:
        made.append(drawn(schema, table, f"{CODES}_4", people=False))
        total = plan.rows - round(share * plan.rows)
        made.append(f"CREATE TEMP TABLE {CODES}_5 {temp} {cut(schema, f'{CODES}_4', total)}")
        made.append(filler(schema, f"{CODES}_5", "SHORT"))
    if bought := [c.name for c in declared.undeclared]:  # never with a declared total
        for i, part in enumerate([table, *[f"{CODES}_3"] * bool(share)], 6):
            query = recoding(schema, part, {name: ["CODES"] for name in bought}, people=people)
            made.append(f"CREATE TEMP TABLE {CODES}_{i} {temp} {query}")
    return made


def truncation(schema: Schema, most: int, key: str) -> list[str]:
    """Return the statements that keep ``most`` rows of each person (`espalier.core.tables.row_limits`)."""
    sizes = [c.size for c in schema.columns]
    parts = [joined(list(range(len(sizes)))[run], sizes[run]) for run in runs(sizes)]
    numbers = [f"r{i}" for i in range(len(parts))]
    texts = " || ',' || ".join(f"{r}::text" for r in numbers)
    columns = ", ".join(_columns(schema, people=True))
    alike = ", ".join(("person", *numbers))
    return [
        f"ALTER TABLE {CODES} RENAME TO espalier_all",
        f"""CREATE TEMP TABLE {CODES} ON COMMIT DROP AS
        SELECT {columns} FROM (
          SELECT *, row_number() OVER (PARTITION BY person ORDER BY lot COLLATE "C", {", ".join(numbers)}, i) AS place
          FROM (
            SELECT *, left(md5(convert_to('{key}:' || {texts} || ':' || i::text || ':' || person, 'UTF8')), 16) AS lot
            FROM (
              SELECT *, row_number() OVER (PARTITION BY {alike}) - 1 AS i
              FROM (SELECT *, {", ".join(f"{j} AS {r}" for j, r in zip(parts, numbers, strict=True))}
                    FROM espalier_all) AS codes) AS numbered) AS dealt) AS placed
        WHERE place <= {most}""",
        "DROP TABLE espalier_all",
    ]


def drawn(schema: Schema, table: str, lots: str, *, people: bool) -> str:
    """Return the statement that stores a fresh lot for each distinct person, or for each row."""
    if people:
        return (
            f"CREATE TEMP TABLE {lots} ON COMMIT DROP AS "
            f"SELECT person, gen_random_uuid() AS lot FROM (SELECT DISTINCT person FROM {table}) AS people"
        )
    columns = ", ".join(_columns(schema))
    return f"CREATE TEMP TABLE {lots} ON COMMIT DROP AS SELECT {columns}, gen_random_uuid() AS lot FROM {table}"


class HeldOut(NamedTuple):
    """Rows that are held out: those whose lot is in the first ``share`` of the range of lots, or those with the
    ``size`` smallest lots.
    """

    share: float
    size: int | str | None
    people: bool


def part_of(schema: Schema, table: str, lots: str, asked: HeldOut, *, held: bool) -> str:
    """Return the query for the rows of ``table`` that their ``lots`` hold out, or for the other rows.

    Two rows with the same lot, which is almost impossible with 122 bits, are ordered by their places instead of their
    content.
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
    """Return the query for the rows of ``table`` with new codes of some columns, listed in ``codes`` by old code."""
    lists = {f"c{i}": ",".join(map(str, codes[name])) for i, name in enumerate(schema.names) if name in codes}
    columns = _columns(schema, people=people)
    cells = [f"('{{{lists[own]}}}'::int[])[{own} + 1] AS {own}" if own in lists else own for own in columns]
    return f"SELECT {', '.join(cells)} FROM {table}"


def cut(schema: Schema, lots: str, total: int) -> str:
    """Return the query for the first ``total`` rows in the order of their lots; rows with equal lots are ordered by
    content.
    """
    columns = ", ".join(_columns(schema))
    return f"SELECT {columns} FROM {lots} ORDER BY lot, {columns} LIMIT {total}"


def filler(schema: Schema, table: str, rows: int | str) -> str:
    """Return the statement that adds ``rows`` invented rows, each cell uniform over its column's values."""
    cells = ", ".join(f"{FRESH} % {column.size}" for column in schema.columns)
    return f"INSERT INTO {table} SELECT {cells} FROM generate_series(1, {rows})"


def _columns(schema: Schema, *, people: bool = False) -> list[str]:
    return [f"c{i}" for i in range(len(schema.columns))] + ["person"] * people


def joined(columns: Sequence[int], sizes: Sequence[int]) -> str:
    """Return the columns' codes as one number: ((c0 · s1 + c1) · s2 + c2) …"""
    text = f"c{columns[0]}::bigint"
    for column, size in zip(columns[1:], sizes[1:], strict=True):
        text = f"({text}) * {size} + c{column}"
    return text
