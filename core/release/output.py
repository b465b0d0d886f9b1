"""Synthetic rows to a file in batches: any number of rows, the memory of one batch.

Parquet keeps numbers as numbers and an empty cell as null; CSV is written as :meth:`core.release.Release.csv` writes
it, formulas defused. A number is drawn uniformly inside its bin, as :meth:`core.project.schema.Column.decode` draws it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.models.base import Codes
from core.progress import Report, silent
from core.project.schema import Column, Schema
from core.tables.csv_safety import defuse

EPOCH = date(1970, 1, 1).toordinal()
"""The day that Parquet counts from."""


def write_rows(
    batches: Iterator[Codes], schema: Schema, rows: int, path: Path, rng: np.random.Generator,
    report: Report = silent,
) -> None:  # fmt: skip
    """Write ``batches``, ``rows`` rows in all, to ``path``: Parquet, or CSV where it is named ``.csv``.

    Raising from ``report`` cancels; a file that is not finished is taken away.
    """
    import pyarrow as pa
    from pyarrow import csv, parquet

    done, writer = 0, None
    plain = path.suffix == ".csv"
    names = [defuse(name) if plain else name for name in schema.names]
    try:
        for codes in batches:
            columns = [cells(column, codes[column.name], rng, defused=plain) for column in schema.columns]
            batch = pa.record_batch(columns, names=names)
            if writer is None:
                if plain:
                    writer = csv.CSVWriter(path, batch.schema)
                else:
                    texts = [name for name, c in zip(names, schema.columns, strict=True) if c.kind != "numeric"]
                    writer = parquet.ParquetWriter(path, batch.schema, use_dictionary=texts, write_statistics=False)
            writer.write_batch(batch)
            done += batch.num_rows
            report(done / rows, "Writing rows")
        if writer is not None:
            writer.close()
    except BaseException:
        if writer is not None:
            writer.close()
        path.unlink(missing_ok=True)
        raise


def cells(column: Column, codes: NDArray[Any], rng: np.random.Generator, *, defused: bool = False) -> Any:
    """The cells of one column as an Arrow array: texts, whole numbers or numbers; null where missing."""
    import pyarrow as pa

    missing = codes == column.values if column.missing else None
    if column.kind != "numeric":
        texts = pa.array([defuse(c) for c in column.categories] if defused else list(column.categories))
        indices = pa.array(codes.astype(np.int32), mask=missing)
        return pa.DictionaryArray.from_arrays(indices, texts)
    drawn = numbers(column, np.minimum(codes, column.values - 1), rng)
    if column.dates is not None:
        return pa.array((drawn - EPOCH).astype(np.int32), mask=missing).cast(pa.date32())
    return pa.array(drawn, mask=missing)


def numbers(column: Column, codes: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    """A number uniform inside each bin: whole ones where declared, else with five figures of the bin's width."""
    low, high = np.asarray(column.edges[:-1]), np.asarray(column.edges[1:])
    drawn = rng.random(len(codes))
    if column.integer:
        first = np.ceil(low)
        last = np.ceil(high) - 1
        last[-1] = np.floor(high[-1])
        whole = first[codes] + np.floor(drawn * (last - first + 1)[codes])
        return np.asarray(whole.astype(np.int64) if abs(whole).max(initial=0) < 2**62 else whole)
    drawn *= (high - low)[codes]
    drawn += low[codes]
    places = 4 - np.floor(np.log10(high - low))
    up, down = 10.0 ** np.clip(places, 0, 300), 10.0 ** np.clip(-places, 0, 300)
    rounded = np.floor(drawn * (up / down)[codes]) / up[codes] * down[codes]
    inside = (rounded >= low[codes]) & (rounded < high[codes])
    return np.asarray(np.where(inside, rounded, low[codes]))
