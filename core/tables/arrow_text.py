"""Conversion of Arrow tables to text: the canonical text of each cell, and the types whose cells are plain values.

A type applies to a whole column and was chosen by the author of the file or frame. Each distinct value is converted
once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import TableError
from espalier.core.project.schema import MISSING, smallest_unsigned
from espalier.core.tables.text_table import MAX_CELLS, WHOLE_FLOATS, TextColumn, TextTable, cell_text, check_names


def from_arrow(table: Any, shown: str) -> TextTable:
    """Return an Arrow table's cells as text, as if read from a Parquet file; raise :class:`TableError` for a type that
    has no text form.
    """
    check_fields(table.schema, table.num_rows, shown)
    return table_as_text(table, shown)


def table_as_text(table: Any, shown: str) -> TextTable:
    """Return the cells of an Arrow table, whose types have been checked, as text."""
    import pyarrow as pa

    columns = {}
    for name, chunks in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_decimal(chunks.type):
            chunks = chunks.cast(wide(chunks.type))
        if is_uuid(chunks.type):
            chunks = pa.chunked_array([pa.array([x and str(x) for x in chunks.to_pylist()], pa.string())])
        if pa.types.is_dictionary(chunks.type):
            _check_places(chunks, name, shown)
            parts = chunks.chunks  # Arrow cannot merge dictionaries of most types
        else:
            array = chunks.combine_chunks().dictionary_encode()
            parts = [array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array]
        values, codes, row = list[str](), list[NDArray[Any]](), 0
        for part in parts:
            texts = [*_written(part, name, shown, row), MISSING]
            places = _codes(part.indices, len(texts) - 1)
            places += len(values)
            codes.append(places)
            values += texts
            row += len(part)
        column = _distinct(values, np.concatenate([np.empty(0, np.int8), *codes]))
        columns[name] = replace(column, ambiguous=_drops_digits(chunks))
    return TextTable(columns, table.num_rows, shown)


def check_fields(schema: Any, rows: int, shown: str) -> None:
    """Raise :class:`TableError` for names, sizes or types that are not allowed."""

    check_names(schema.names, shown)
    if rows * len(schema) > MAX_CELLS:
        raise TableError(f"{shown} has {rows:,} rows and {len(schema):,} columns, which is more than Espalier can read")
    for field in schema:
        check_type(field.name, value_type(field.type), shown)


def value_type(kind: Any) -> Any:
    """Return the Arrow type of a column's values, without the dictionary or the text layout."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        return value_type(kind.value_type)
    return pa.string() if types.is_large_string(kind) or types.is_string_view(kind) else kind


def is_plain(kind: Any) -> bool:
    """Return whether each cell of this Arrow type is one plain value with a canonical text."""
    import pyarrow as pa

    types = pa.types
    tests = (
        *(types.is_null, types.is_boolean, types.is_integer, types.is_floating, types.is_decimal, types.is_string),
        *(types.is_date, types.is_timestamp, types.is_time, types.is_duration, is_uuid),
    )
    return any(test(kind) for test in tests)


def check_type(name: str, kind: Any, shown: str) -> None:
    """Raise :class:`TableError` for a type whose cells are not plain values."""
    if not is_plain(kind):
        raise TableError(
            f"{shown}: column {name!r} contains {kind} values; use one plain value per cell",
            column=name,
        )


def wide(kind: Any) -> Any:
    """Return the decimal type with the same digits and at least 128 bits. Arrow cannot list the distinct values of
    narrower decimals.
    """
    import pyarrow as pa

    narrow = pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind)
    return pa.decimal128(kind.precision, kind.scale) if narrow else kind


def is_uuid(kind: Any) -> bool:
    """Return whether ``kind`` is Arrow's type for UUIDs."""
    import pyarrow as pa

    return isinstance(kind, pa.UuidType)


def _drops_digits(chunks: Any) -> bool:
    """Return whether the cells of two different people may be equal, or have the same text, in a column of this type.
    See :attr:`TextColumn.ambiguous`.
    """
    import pyarrow as pa
    from pyarrow import compute

    kind, types = value_type(chunks.type), pa.types
    if not types.is_floating(kind):  # a timestamp may already have been rounded, as INT96 timestamps are
        tests = types.is_string, types.is_integer, types.is_decimal, types.is_boolean, types.is_null, types.is_date32
        return not (is_uuid(kind) or any(test(kind) for test in tests))
    parts = [part.dictionary if pa.types.is_dictionary(chunks.type) else part for part in chunks.chunks]
    ends = [compute.min_max(part.cast(pa.float64())).as_py().values() for part in parts]
    return any(abs(end) >= WHOLE_FLOATS[kind.bit_width] for pair in ends for end in pair if end is not None)


def _written(array: Any, name: str, shown: str, before: int) -> list[str]:
    """Return the text of each distinct value of a dictionary array; ``before`` is the number of rows that precede the
    array.
    """
    import pyarrow as pa

    try:
        return [cell_text(value) for value in array.dictionary.to_pylist()]
    except (pa.ArrowException, ValueError, OverflowError):  # a year beyond 9999, or damaged text
        rows = np.flatnonzero(_codes(array.indices, -1) == _unreadable(array.dictionary))
        row = before + int(rows[0]) + 1 if len(rows) else 0  # 0 means that no row has this dictionary value
        raise TableError(
            f"{shown}{f', data row {row:,}' if row else ''}: column {name!r} contains a value that cannot be written "
            "as text; correct it",
            column=name,
            row=row,
        ) from None


def _check_places(chunks: Any, name: str, shown: str) -> None:
    """Refuse dictionary arrays with an index outside their dictionary, because Arrow does not check this."""
    from pyarrow import compute

    for chunk in chunks.chunks:
        places = compute.min_max(chunk.indices).as_py()
        if places["min"] is not None and not 0 <= places["min"] <= places["max"] < len(chunk.dictionary):
            raise TableError(
                f"{shown}: column {name!r} is damaged: an index is outside its dictionary; write the table again",
                column=name,
            )


def _unreadable(values: Any) -> int:
    """Return the index of the first value of an Arrow array that has no text."""
    import pyarrow as pa

    for i, value in enumerate(values):
        try:
            cell_text(value.as_py())
        except (pa.ArrowException, ValueError, OverflowError):
            return i
    raise ValueError("every value can be written as text")


def _codes(indices: Any, missing: int) -> NDArray[Any]:
    """Return a dictionary's indices, with ``missing`` for null. Arrow's own conversions would import pandas, which
    takes 0.3 s.
    """
    valid, data = indices.buffers()
    held = slice(indices.offset, indices.offset + len(indices))
    stored = np.frombuffer(data, np.dtype(str(indices.type)))[held]
    codes = stored.astype(np.int32 if stored.itemsize <= 4 and stored.dtype != np.uint32 else np.int64)
    if indices.null_count:
        codes[np.unpackbits(np.frombuffer(valid, np.uint8), bitorder="little")[held] == 0] = missing
    return codes


def _distinct(values: list[str], codes: NDArray[Any]) -> TextColumn:
    """Keep one copy of each text value that occurs in a row. Several dictionary values may have the same text (1 and
    1.0, a null and an empty string), and some occur in no row.
    """
    used = np.zeros(len(values), dtype=bool)
    used[codes] = True
    place: dict[str, int] = {}
    lookup = np.array(
        [place.setdefault(v, len(place)) if u else 0 for v, u in zip(values, used, strict=True)], np.int32
    )
    return TextColumn(tuple(place), lookup.astype(smallest_unsigned(len(place)))[codes])
