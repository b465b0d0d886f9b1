"""Opening of tables: data frames (pandas, and frames with an Arrow interface), files of any size, and tables in an
engine.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np

from espalier.core.errors import TableError
from espalier.core.process_memory import MANY_CELLS, give_back
from espalier.core.progress import Report, silent
from espalier.core.project.file import Project
from espalier.core.project.linked import Linked
from espalier.core.project.schema import Schema
from espalier.core.tables.arrow_text import from_arrow
from espalier.core.tables.catalogue import joint
from espalier.core.tables.destination import TAKE_ROWS, Destination
from espalier.core.tables.linked_text import LinkedText
from espalier.core.tables.narrow_text import Ranks, narrow_text
from espalier.core.tables.panel import Panel, panel_of, ranks_of
from espalier.core.tables.postgres_snapshot import PostgresSnapshot
from espalier.core.tables.reading import other_format, read_table
from espalier.core.tables.relation import Relation, is_url, open_relation
from espalier.core.tables.snapshot import Snapshot
from espalier.core.tables.source import Source
from espalier.core.tables.table import Table
from espalier.core.tables.text_table import WHOLE_FLOATS, Cells, TextColumn, TextTable, check_names

LARGE_BYTES, LARGE_CELLS = 100_000_000, 50_000_000
"""File size in bytes, and number of cells in a Parquet file, above which a file is read in place instead of as text in
memory.
"""
_WHOLE = re.compile(r"-?[0-9]+|")
"""A whole number as text, or an empty cell."""


def text_of(frame: Any) -> TextTable:
    """Return a frame's cells as text, as if read from a Parquet file (`espalier.core.tables.reading`).

    Raises :class:`TableError` for anything but a frame, and for column names that are repeated or not text.
    """
    import pyarrow as pa

    if not hasattr(frame, "__arrow_c_stream__"):
        raise TableError(
            "this is not a table: pass a data frame (pandas, polars, PyArrow, DuckDB) or the result of read_table"
        )
    shown = "the data frame"
    if (pandas := sys.modules.get("pandas")) is not None and isinstance(frame, pandas.DataFrame):
        return _of_pandas(frame, shown)
    if (ibis := sys.modules.get("ibis")) is not None and isinstance(frame, ibis.Table):
        raise TableError(
            "this is an Ibis query, whose reader may convert all cells of a column because of one cell. Pass the "
            "URL of its database with the name of a table or view"
        )
    try:
        arrow = pa.table(frame)
    except Exception:  # the producer may raise any type of error, and the error's text may quote a cell
        raise TableError("this frame cannot be read as a table: use one type of value in each column") from None
    return from_arrow(arrow, shown)


def _of_pandas(frame: Any, shown: str) -> TextTable:
    """Return a pandas frame as text. Arrow would infer a type for a column of Python objects from all its cells, so one
    row would change how others are read. Instead, each such cell is converted separately.
    """
    import pyarrow as pa

    named = [name for name in frame.index.names if name is not None]
    names = [*named, *frame.columns]
    if not all(isinstance(name, str) for name in names):
        raise TableError(f"{shown} has a column whose name is not text; rename it")
    check_names(names, shown)
    columns = {}
    for name in names:
        cells = _level(frame.index, name) if name in named else frame[name]
        inside = cells.dtype
        if str(inside) == "category":
            inside = cells.cat.categories.dtype
            _check_categories(cells.cat.categories, name, shown)
        if inside == np.dtype(object):
            columns[name] = _of_objects(cells.tolist(), name, shown)
            continue
        try:
            arrow = pa.table({name: pa.Array.from_pandas(cells)})
        except (pa.ArrowException, TypeError, ValueError):
            raise TableError(f"{shown}: column {name!r} cannot be read; use one type of value in it") from None
        columns |= from_arrow(arrow, shown).columns
    return TextTable(columns, len(frame), shown)


def _level(index: Any, name: str) -> Any:
    """Return a level of an index as a column. pandas' own ``reset_index`` infers a type from all its cells, and turns
    whole numbers into floats if one cell is missing."""
    import pandas as pd

    if not isinstance(index, pd.MultiIndex):
        return pd.Series(index, dtype=index.dtype)  # without a type, pandas infers a type from all cells
    place = index.names.index(name)
    return pd.Series(pd.Categorical.from_codes(index.codes[place], index.levels[place]))


def _check_categories(categories: Any, name: str, shown: str) -> None:
    """Refuse object categories that pandas may have merged.

    It merges equal cells of several types, such as 1 and True, and text values that differ only after a zero character.
    The first such row would decide how the others are read. pandas also turns whole numbers into floats if one cell is
    a fraction, which changes their text at or above 2⁵³.
    """
    import pandas as pd

    numbers = categories.to_numpy() if categories.dtype.kind == "f" else np.empty(0)
    if (np.isfinite(numbers) & (np.abs(numbers) >= WHOLE_FLOATS[64])).any():
        raise TableError(
            f"{shown}: column {name!r} has categories of numbers beyond 2⁵³, which pandas may have converted from "
            "whole numbers. Use a column of plain numbers, or make all categories text",
            column=name,
        )
    if categories.dtype != np.dtype(object) and not isinstance(categories.dtype, pd.StringDtype):
        return
    if any(type(cell) not in {str, dt.date, UUID} or (type(cell) is str and "\0" in cell) for cell in categories):
        raise TableError(
            f"{shown}: column {name!r} has categories that pandas may have merged: some are not text or contain a zero "
            "character. Use a column of plain cells, or make all categories text without zero characters",
            column=name,
        )


def _of_objects(cells: Sequence[Any], name: str, shown: str) -> TextColumn:
    """Return the text of each Python object, by its own type. A derived type, such as an Enum, may represent an equal
    value by different text. The same is true of NumPy's timestamps, whose text depends on their unit.
    """
    import pandas as pd

    allowed = {str, bool, int, float, Decimal, dt.date, dt.datetime, dt.time, dt.timedelta, UUID}
    allowed |= {pd.Timestamp, pd.Timedelta}
    made = Cells()
    for cell in cells:
        moment = isinstance(cell, np.datetime64 | np.timedelta64)
        plain = cell.item() if isinstance(cell, np.generic) and not moment else cell
        if plain is None or plain is pd.NA or plain is pd.NaT:
            made.add(None)
        elif type(plain) in allowed and not (type(plain) is str and _half_pair(plain)):
            try:
                made.add(plain)
            except ValueError:  # Python does not write numbers of more than 4,300 digits
                raise TableError(f"{shown}: column {name!r} has a number with too many digits", column=name) from None
        elif type(plain) is str:
            raise TableError(f"{shown}: column {name!r} has text that is not valid Unicode; correct it", column=name)
        else:
            raise TableError(
                f"{shown}: column {name!r} contains {type(cell).__name__} values; use one plain value per cell",
                column=name,
            )
    return made.column()


def _half_pair(text: str) -> bool:
    """Return whether the text contains half a surrogate pair, which no file can store."""
    return not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text)


def as_table(data: Any, schema: Schema, person: str | None = None) -> Table:
    """Return ``data`` as a table in memory: a :class:`Table` unchanged, a :class:`TextTable` or data frame encoded."""
    if isinstance(data, Table):
        return data
    if isinstance(data, Relation):
        raise TableError(
            "this needs the rows in memory, but the table is read in place: use a file with fewer rows",
        )
    return Table.encode(data if isinstance(data, TextTable) else text_of(data), schema, person)


def read_data(where: str | Path, relation: str | None = None) -> TextTable | Relation:
    """Return a small file as text, and a large file, a folder, or a URL with the name of its table as a relation.

    ``env:NAME`` means the URL in the environment variable NAME, which keeps the password off the command line.
    """
    text = str(where)
    if is_database(text) or relation is not None or too_large(Path(text)):
        return located(text, relation)
    return read_table(text)


def is_database(where: str) -> bool:
    """Return whether ``where`` is the URL of an engine, or the name of an environment variable that holds one."""
    return is_url(where) or where.startswith("env:")


def relation_of(data: Any) -> Relation | None:
    """Return ``data`` if it is a relation, which a release scans first; `None` for rows in memory and snapshots."""
    return data if isinstance(data, Relation) else None


def located(where: str, relation: str | None = None) -> Relation:
    """Return a file of any size, or the table at a URL, as a relation; ``env:NAME`` as in `read_data`."""
    return open_relation(resolved(where), relation)


def resolved(where: str) -> str:
    """Return ``where``, or the URL in the environment variable that it names. PRIVATE, because it may contain a
    password.
    """
    if not where.startswith("env:"):
        return where
    url = os.environ.get(where[4:], "")
    if not url:
        raise TableError(f"the environment variable {where[4:]} is not set")
    if not is_url(url):
        raise TableError(f"the variable {where[4:]} does not contain the URL of a table")
    return url


def destination(where: str, name: str) -> Destination:
    """Return a table to be created in the engine of ``where``, a URL or ``env:NAME``.

    Raises :class:`TableError` for a file, and for an engine that has no transactions.
    """
    url = resolved(where)
    if not is_url(url) or url.split("://")[0] not in TAKE_ROWS:
        raise TableError(
            "rows can be written only to a new table in the database of --data, which must be one of "
            f"{', '.join(TAKE_ROWS)}"
        )
    return Destination(name, url)


def too_large(path: Path) -> bool:
    """Return whether to read ``path`` in place: a folder, a CSV file larger than `LARGE_BYTES`, or a large Parquet
    file.
    """
    try:
        if not path.is_file():
            return path.is_dir()  # a pipe is not opened here, because each byte can be read only once
        with path.open("rb") as file:
            start = file.read(64)
        packed, other = start[:4] == b"PAR1", other_format(start)
        if other is not None and not packed:
            return False  # the readers of these formats need the whole file
        if path.stat().st_size > LARGE_BYTES:
            return True
    except OSError:
        return False  # the reader will explain the failure
    if not packed:
        return False
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with pa.OSFile(str(path)) as opened:  # a path may look like the URL of another file
            facts = parquet.read_metadata(opened)
    except (pa.ArrowException, OSError, ValueError):
        return False
    return bool(facts.num_rows * facts.num_columns > LARGE_CELLS)


def encoded(project: Project, text: TextTable) -> Table:
    """Return a table as read, or two linked tables, as the project describes them. Raises :class:`TableError`."""
    if project.linked is None:
        return Table.encode(text, project.schema, project.plan.person)
    return panel(project.linked, project.schema, text)


def panel(linked: Linked, schema: Schema, data: Any) -> Panel:
    """Return linked tables as codes: a :class:`Panel` unchanged, else a pair of tables, frames or relations, people
    first, or two tables as read (:class:`LinkedText`).

    A single table is enough if one file contains both.
    """
    if isinstance(data, Panel):
        read = data.linked  # arrows and ``together`` do not affect the rows
        if read is None or replace(read, arrows=linked.arrows, together=linked.together) != linked:
            raise TableError("the linked tables were read with a different link from the project's; read them again")
        return data
    if isinstance(data, LinkedText):
        data = data.tables
    both = list(data) if isinstance(data, tuple | list) else [data]
    if len(both) == 1 and linked.together:
        both *= 2
    if len(both) != 2:
        raise TableError(f"pass the table {linked.people!r} and then the table {linked.visits!r}")
    ordering = tuple(name for name in (linked.order, linked.visit_key) if name)
    named = [linked.columns_read(schema, table) for table in (linked.people, linked.visits)]
    visits, ranks = _read(both[1], named[1], ordering)
    people = visits if linked.together else _read(both[0], named[0])[0]
    digest = _digest(visits, named[1], ordering, ranks)
    if not linked.together:
        digest = _digest(people, named[0]) + digest
    made = panel_of(linked, schema, people, visits, ranks=ranks, digest=digest)
    _give_back(made)
    return replace(made, origin=joint((people.origin, visits.origin)))


def _read(table: Any, names: Sequence[str], ordering: Sequence[str] = ()) -> tuple[TextTable, Ranks]:
    """Return a linked table as text. If it is large, return only these columns, and the ranks of ``ordering``."""
    if isinstance(table, Relation):
        return narrow_text(table, names, ordering)
    return table if isinstance(table, TextTable) else text_of(table), {}


def _digest(table: TextTable, names: Sequence[str], ordering: Sequence[str] = (), ranks: Ranks | None = None) -> bytes:
    """Return the digest of a linked table, which a ledger compares. PRIVATE.

    For a database table, it covers the columns that the project names, because the app reads all columns, whereas the
    command line reads only these. If a column of whole numbers only orders visits, it may be read as ranks, so the
    digest covers only the order of its cells.
    """
    ranks = ranks or {}
    if table.origin is None:
        return table.digest_with(ranks)
    found = {name: table.columns[name] for name in (*names, *ordering) if name in table.columns}
    whole = {name for name in found if name not in names and all(map(_WHOLE.fullmatch, found[name].values))}
    ordered = {name: ranks_of(found.pop(name)) for name in whole}
    return replace(table, columns=found).digest_with({**ranks, **ordered})


def _give_back(source: Source) -> None:
    """Return the memory used for reading to the system, unless the table is too small to justify the time."""
    if source.rows * len(source.schema.columns) > MANY_CELLS:
        give_back()


@contextmanager
def opened(
    data: Any,
    schema: Schema,
    person: str | None = None,
    most: int | None = None,
    report: Report = silent,
    key: str | None = None,
) -> Iterator[Source]:
    """Open ``data`` as a source.

    A :class:`Relation` is read into one snapshot, with at most ``most`` rows of each person. The snapshot is removed at
    the end, even after an error. An error from ``report`` also cancels its scans. Other data goes through
    :func:`as_table`. ``key`` is the key of the row limits of an earlier snapshot, so that the same rows are kept.
    """
    if isinstance(data, Snapshot | PostgresSnapshot):
        yield data
        return
    if not isinstance(data, Relation):
        table = as_table(data, schema, person)
        _give_back(table)
        yield table
        return
    last = [(0.0, "Reading the table")]

    def heard(fraction: float, message: str) -> None:
        last[0] = fraction, message
        report(fraction, message)

    source = data.snapshot(schema, person, most if person is not None else None, key=key, report=heard)
    _give_back(source)
    source.pulse = lambda: report(*last[0])
    try:
        yield source
    finally:
        source.close()
