"""Writer and reader of released tables as CSV text."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from espalier.core.csv_safety import defuse, restore
from espalier.core.project.linked import VISIT, Linked
from espalier.core.project.schema import Identifier, Schema
from espalier.core.tables.csv_lines import DELIMITERS
from espalier.core.tables.panel import Panel, panel_of
from espalier.core.tables.reading import read_released
from espalier.core.tables.table import Table
from espalier.core.tables.text_table import TextColumn, TextTable

LINES = 50_000
"""Number of lines of a CSV file that are joined at a time."""


def csv_bytes(schema: Schema, table: Mapping[str, Sequence[str]]) -> bytes:
    """Return the content of ``synthetic.csv``; names and categories that look like formulas are escaped
    (`espalier.core.csv_safety`).

    :func:`read_csv` removes the apostrophes again.
    """
    names = [defuse(name) for name in table]
    # if a name contains another delimiter, only quotes show a reader which delimiter the file uses
    odd = any(mark in name for name in names for mark in DELIMITERS if mark != ",")
    # a lone empty cell must not become a blank line
    cells = [_written(schema, name, texts, alone=len(table) == 1) for name, texts in table.items()]
    lines = map(",".join, zip(*cells, strict=True))
    out = io.BytesIO((",".join(_quoted(names, always=odd)) + "\n").encode())
    out.seek(0, io.SEEK_END)
    while block := list(itertools.islice(lines, LINES)):
        out.write(("\n".join(block) + "\n").encode())
    return out.getvalue()


def linked_schemas(linked: Linked, schema: Schema) -> dict[str, Schema]:
    """Return the schema of each released table with its identifiers, by name."""
    out = {}
    for table in (linked.people, linked.visits):
        identifiers = tuple(Identifier(name, True, i) for i, name in enumerate(linked.identifiers(table)))
        out[table] = replace(linked.table_schema(schema, table), identifiers=identifiers)
    return out


def read_linked(linked: Linked, schema: Schema, files: Mapping[str, bytes]) -> Panel:
    """Return the panel of two released tables; raises :class:`TableError`."""
    made = {}
    for table, own in linked_schemas(linked, schema).items():
        read = read_released(files[f"{table}.csv"], [defuse(name) for name in own.released])
        columns = {restore(n): TextColumn(tuple(map(restore, c.values)), c.codes) for n, c in read.columns.items()}
        made[table] = TextTable(columns, read.rows, read.source)
    both = made[linked.people], made[linked.visits]
    return replace(panel_of(replace(linked, together=False), as_released(schema), *both, [VISIT]), schema=schema)


def _written(schema: Schema, name: str, texts: Sequence[str], *, alone: bool) -> Sequence[str]:
    """Return a column's cells as the file contains them. Each distinct text is converted once."""
    known = list(set(texts))
    safe = [defuse(t) for t in known] if name in schema else known
    changed = {t: w for t, w in zip(known, _quoted(safe, always=alone), strict=True) if w != t}
    return [changed.get(t, t) for t in texts] if changed else texts


def _quoted(texts: Sequence[str], *, always: bool) -> list[str]:
    """Return text values as cells of a CSV file, in quotes if they need them."""
    out = io.StringIO(newline="")
    # with "\r\n", the writer also quotes a lone "\r", which many readers treat as the end of a line
    writer = csv.writer(out, lineterminator="\r\n", quoting=csv.QUOTE_ALL if always else csv.QUOTE_MINIMAL)
    cells = []
    for text in texts:
        out.seek(0)
        out.truncate()
        writer.writerow([text, ""])  # the writer would quote an empty cell that is alone in its row
        cells.append(out.getvalue()[: -len(',""\r\n' if always else ",\r\n")])
    return cells


def read_csv(schema: Schema, source: Path | bytes) -> Table:
    """Read back the output of :func:`csv_bytes`; raises :class:`TableError`."""
    read = read_released(source, [defuse(name) for name in schema.released])
    columns = {restore(n): TextColumn(tuple(map(restore, c.values)), c.codes) for n, c in read.columns.items()}
    return replace(Table.encode(TextTable(columns, read.rows, read.source), as_released(schema)), schema=schema)


def as_released(schema: Schema) -> Schema:
    """Return the schema by which released cells are read."""
    return replace(schema, columns=tuple(c.as_released for c in schema.columns))
