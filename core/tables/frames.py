"""Data frames as tables: pandas, and anything that speaks Arrow (polars, DuckDB, PyArrow), without a file between."""

from __future__ import annotations

from typing import Any

from core.errors import TableError
from core.project.schema import Schema
from core.tables.reading import TextTable, from_arrow
from core.tables.table import Table


def text_of(frame: Any) -> TextTable:
    """A frame's cells as text, as a Parquet file of it would be read (`core.tables.reading`).

    Raises :class:`TableError` for what is no frame, and for names that are doubled or no text.
    """
    import pyarrow as pa

    if not hasattr(frame, "__arrow_c_stream__"):
        raise TableError(
            "this is no table: give a data frame (pandas, polars, PyArrow, DuckDB) or a table that was read"
        )
    try:
        arrow = pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError):
        raise TableError("this frame cannot be read as a table: give each column one type of values") from None
    return from_arrow(arrow.drop_columns([n for n in arrow.column_names if n == "__index_level_0__"]), "the data frame")


def as_table(data: Any, schema: Schema, person: str | None = None) -> Table:
    """``data`` as its schema sees it: a :class:`Table` as it is, a :class:`TextTable` or a data frame encoded."""
    if isinstance(data, Table):
        return data
    return Table.encode(data if isinstance(data, TextTable) else text_of(data), schema, person)
