"""Readers that violate the encoding theorem, as Espalier's own readers once did. They show that the checker finds such
violations.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from espalier.core.errors import TableError
from espalier.core.privacy.contribution import bounded
from espalier.core.project.schema import Schema
from espalier.core.tables.arrow_text import from_arrow
from espalier.core.tables.table import Table
from espalier.core.tables.text_table import TextColumn, TextTable
from tests.support.row_by_row import LIMIT, PERSON, codes_of

Codes = Mapping[str, np.ndarray]


def by_query(path: Path, schema: Schema) -> Codes:
    """A query engine bins the numbers: it trusts the file's statistics, in which PyArrow ignores NaN."""
    import duckdb

    wanted = []
    for column in schema.columns:
        own = f'"{column.name}"'
        if column.kind == "numeric":
            empty, steps = f"{own} IS NULL OR isnan({own})", enumerate(column.edges[1:-1])
            bins = " ".join(f"WHEN {own} < {edge}::DOUBLE THEN {i}" for i, edge in steps)
            last = f"CASE WHEN isinf({own}) THEN {column.values} ELSE {column.values - 1} END"
        else:
            empty, last = f"{own} IS NULL", f"{column.values}"
            bins = " ".join(f"WHEN {own}::VARCHAR = '{text}' THEN {i}" for i, text in enumerate(column.categories))
        wanted.append(f"CASE WHEN {empty} THEN {column.values} {bins} ELSE {last} END AS {own}")
    with duckdb.connect() as con:
        return con.sql(f"SELECT {', '.join(wanted)} FROM '{path}'").fetchnumpy()


def _as_the_first_file(folder: Path) -> TextTable:
    """Return all files of a folder, cast to the types of the first one."""
    files = [parquet.read_table(file) for file in sorted(folder.rglob("*.parquet"))]
    try:
        return from_arrow(pa.concat_tables([file.cast(files[0].schema, safe=False) for file in files]), "the folder")
    except pa.ArrowException:
        raise TableError("the files cannot be read as one table") from None


def by_first_file(folder: Path, schema: Schema) -> Codes:
    """The types of the first file decide how all files are read."""
    return codes_of(Table.encode(_as_the_first_file(folder), schema))


def people_by_first_file(folder: Path, schema: Schema) -> Codes:
    """Person identifiers have the type of the first file: 7, 07 and 007 are one whole number."""
    return codes_of(bounded(Table.encode(_as_the_first_file(folder), schema, PERSON), LIMIT))


def by_sniffing(path: Path, schema: Schema) -> Codes:
    """The delimiter, the quotation mark and the types are guessed from the rows."""
    import duckdb

    with duckdb.connect() as con:
        try:
            read = con.sql(f"SELECT * FROM read_csv_auto('{path}')").to_arrow_table()
        except duckdb.Error:
            raise TableError("the file cannot be read") from None
    return codes_of(Table.encode(from_arrow(read, "the file"), schema))


def people_as_text(path: Path, schema: Schema) -> Codes:
    """Every person identifier of an Excel sheet is turned into text: 7 and "7" are one person."""
    from openpyxl import load_workbook

    header, *rows = load_workbook(path).worksheets[0].iter_rows(values_only=True)
    columns = {
        name: TextColumn.of(map(str, cells)) for name, cells in zip(header, zip(*rows, strict=True), strict=True)
    }
    return codes_of(bounded(Table.encode(TextTable(columns, len(rows)), schema, PERSON), LIMIT))
