"""Rows spread over a table, as text, for guessing a schema: a bounded sample, or rows that contain every value, from
one scan.

This code runs only if a steward asked for a guess. The guess stays marked until a person confirms it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import TableError
from espalier.core.tables.arrow_text import from_arrow, is_plain, value_type
from espalier.core.tables.engine_errors import OURS, engine_errors
from espalier.core.tables.text_table import TextColumn, TextTable

if TYPE_CHECKING:
    from espalier.core.tables.relation import Feed, Relation

KEPT = 2_000
"""Number of distinct values that a scan keeps of each column. If a column has more, the scan also keeps its first and
its last value.
"""


def sampled(relation: Relation, rows: int) -> TextTable:
    """Return about ``rows`` rows spread over the table. For files, these are the rows at a few positions."""
    parts = list(_parts(relation, rows))
    share = min(1.0, rows / max(1, sum(part.rows for part in parts)))
    evenly = (np.linspace(0, part.rows - 1, math.ceil(share * part.rows)).astype(np.int64) for part in parts)
    return _joined([_rows(part, chosen) for part, chosen in zip(parts, evenly, strict=True)], relation.shown)


def every_value(relation: Relation, rows: int) -> TextTable:
    """Return a sample, and rows that contain every value of each column, from one scan of the whole table. For a column
    with more than `KEPT` values, the rows contain `KEPT` of them and its first and last value.
    """
    kept, seen, ends = [], dict[str, set[str]](), dict[str, list[Any]]()
    sample, total = list[TextTable](), 0
    for part in _parts(relation):
        total += part.rows
        wanted = set[int]()
        for name, column in part.columns.items():
            known, found = seen.setdefault(name, set()), np.unique(column.codes, return_index=True)
            for code, row in zip(*(x.tolist() for x in found), strict=True):
                value = column.values[code]
                if value not in known and len(known) < KEPT:
                    known.add(value)
                    wanted.add(row)
            if len(known) >= KEPT:
                wanted |= _ends(column, found, ends.setdefault(name, []))
        kept.append(_rows(part, np.array(sorted(wanted), dtype=np.int64)))
        sample.append(_rows(part, np.linspace(0, part.rows - 1, min(part.rows, max(1, rows // 50))).astype(np.int64)))
        while sum(x.rows for x in sample) > 2 * rows:  # keep every second row: the table is longer than expected
            sample = [_rows(x, np.arange(0, x.rows, 2)) for x in sample]
    return _joined([*kept, *sample], relation.shown)


def _ends(column: TextColumn, found: tuple[NDArray[Any], NDArray[Any]], ends: list[Any]) -> set[int]:
    """Return the rows whose value is below or above all earlier values; ``ends`` are the smallest and the largest so
    far.
    """
    keyed = [(_key(column.values[code]), row) for code, row in zip(*(x.tolist() for x in found), strict=True)]
    low, high = min(keyed), max(keyed)
    rows = set()
    if not ends or low[0] < ends[0]:
        rows.add(low[1])
    if not ends or high[0] > ends[1]:
        rows.add(high[1])
    ends[:] = [low[0] if not ends else min(ends[0], low[0]), high[0] if not ends else max(ends[1], high[0])]
    return rows


def _key(text: str) -> tuple[int, float, str]:
    """Return the sort key of a value: numbers by value, then text."""
    with suppress(ValueError):
        if math.isfinite(number := float(text)):
            return 0, number, ""
    return 1, 0.0, text


def _parts(relation: Relation, rows: int | None = None) -> Iterator[TextTable]:
    """Yield rows spread over the table; all rows if ``rows`` is None."""
    from espalier.core.tables.engines import streamed_rows

    feed = relation.feed
    with engine_errors(f"{relation.shown}: the engine refuses to read", OURS):
        if feed is None:
            query = relation.query_of_rows(rows)
            yield from _tuples(relation, streamed_rows(relation.backend, query, lock=relation.lock))
            return
        kept = _plain(feed)
        with closing(feed.batches(kept) if rows is None else feed.spread(kept, rows)) as batches:
            yield from (_text(batch, feed, kept, relation.shown) for batch in batches)


def _plain(feed: Feed) -> list[str]:
    """Return the columns that a schema can describe."""
    return [c.name for c in feed.schema(list(feed.columns)) if is_plain(value_type(c.type))]


def _text(batch: Any, feed: Feed, kept: Sequence[str], shown: str) -> TextTable:
    import pyarrow as pa

    return from_arrow(pa.Table.from_batches([batch.cast(feed.schema(kept))]), shown)


def _tuples(relation: Relation, parts: Iterator[list[tuple[Any, ...]]]) -> Iterator[TextTable]:
    for found in parts:
        cells = zip(relation.columns, zip(*found, strict=True), strict=True)
        yield TextTable({name: TextColumn.of(column) for name, column in cells}, len(found), relation.shown)


def _rows(part: TextTable, rows: NDArray[np.int64]) -> TextTable:
    columns = {n: TextColumn(c.values, c.codes[rows], c.ambiguous) for n, c in part.columns.items()}
    return TextTable(columns, len(rows), part.source)


def _joined(parts: Sequence[TextTable], shown: str) -> TextTable:
    """Return the rows of all parts as one table."""
    if not sum(part.rows for part in parts):
        raise TableError("the table has a header but no rows")
    columns = {}
    for name in parts[0].columns:
        cells = (part.columns[name] for part in parts)
        columns[name] = TextColumn.of(c.values[code] for c in cells for code in c.codes.tolist())
    return TextTable(columns, sum(part.rows for part in parts), shown)
