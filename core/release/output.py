"""Write synthetic rows in batches. This needs only the memory of one batch, whatever the number of rows.

Parquet stores numbers as numbers and an empty cell as null. CSV has the format of
:meth:`espalier.core.release.Release.csv`, with formulas escaped. Numbers are drawn inside their bins as
:meth:`espalier.core.project.schema.Column.decode` draws them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.csv_safety import defuse
from espalier.core.models.base import BatchModel, Codes, Model
from espalier.core.progress import Report, silent
from espalier.core.project.bin_density import CHUNK, Inside, places
from espalier.core.project.file import Project
from espalier.core.project.plan import rows_shown
from espalier.core.project.schema import MISSING, Column, Schema
from espalier.core.release.files import with_identifiers
from espalier.core.tables.code_file import CodeFile
from espalier.core.tables.consistency import settle
from espalier.core.tables.destination import Destination
from espalier.core.tables.snapshot import Snapshot

STEP = 1 << 17
"""Rows per batch, for a model that does not draw batches itself."""
WHOLE = {"csv": "synthetic-whole.csv", "parquet": "synthetic.parquet"}
"""File with all rows. It is written if ``synthetic.csv`` does not contain all rows, or if Parquet is requested."""


def on_disk(
    model: Model, schema: Schema, rows: int, rng: np.random.Generator, *, even: bool, report: Report = silent
) -> tuple[Codes, Snapshot]:
    """Draw ``rows`` rows; return the first :func:`rows_shown` as codes, and all of them in a file of codes."""
    if isinstance(model, BatchModel):
        batches: Iterator[Codes] = model.sample_batches(rows, rng, even=even)
    else:
        batches = (model.sample(min(STEP, rows - start), rng, even=even) for start in range(0, rows, STEP))
    file, shown, most = CodeFile(Snapshot.sizes(schema)), [], rows_shown(len(schema.columns))
    for batch in batches:
        if file.rows < most:
            shown.append({name: batch[name][: most - file.rows] for name in schema.names})
        file.append({f"c{i}": batch[name] for i, name in enumerate(schema.names)})
        report(file.rows / rows, "Drawing synthetic rows")
    return {name: np.concatenate([part[name] for part in shown]) for name in schema.names}, Snapshot(schema, file)


def write_whole(project: Project, whole: Snapshot, path: Path, report: Report = silent) -> None:
    """Write all rows of a release that keeps them on disk, with the same constraints as ``synthetic.csv``."""
    made = _whole_cells(project, whole, defused=path.suffix == ".csv")
    _write(made, whole.schema, whole.rows, path, report)


def write_again(model: Model, project: Project, rows: int, path: Path, report: Report = silent) -> None:
    """Draw ``rows`` rows from a released model, and write all of them."""
    rng, even = np.random.default_rng(), project.plan.rows_drawn == "even"
    _, whole = on_disk(model, project.schema, rows, rng, even=even, report=report)
    write_whole(project, whole, path, report)
    whole.close()


def write_into(
    project: Project, rows: Mapping[str, Sequence[str]], place: Destination, report: Report = silent
) -> None:
    """Write ``rows`` as text into a new table of an engine in one transaction.

    Raises :class:`TableError` if that fails; the table then does not exist.
    """
    total = len(next(iter(rows.values())))
    _write_into(project, iter([_text_columns(project.schema, rows)]), total, place, report)


def write_whole_into(project: Project, whole: Snapshot, place: Destination, report: Report = silent) -> None:
    """Write all rows of a release that keeps them on disk, as :func:`write_into` does."""
    _write_into(project, _whole_cells(project, whole), whole.rows, place, report)


def _write_into(project: Project, batches: Iterator[list[Any]], total: int, place: Destination, report: Report) -> None:
    import pyarrow as pa

    columns = arrow_columns(project.schema)

    def cast() -> Iterator[Any]:
        done = 0
        for arrays in batches:
            batch = pa.record_batch([c.cast(f.type) for c, f in zip(arrays, columns, strict=True)], schema=columns)
            done += batch.num_rows
            yield batch
            report(done / total, "Writing rows")

    place.write(columns, cast())


def arrow_columns(schema: Schema) -> Any:
    """Return the Arrow schema of the released columns: text, whole numbers, numbers and days."""
    import pyarrow as pa

    columns = {c.name: c for c in schema.columns}

    def kind(name: str) -> Any:
        column = columns.get(name)
        if column is None or column.kind != "numeric":
            return pa.string()
        if column.dates is not None:
            return pa.date32()
        return pa.int64() if _fits_int64(column) else pa.float64()

    return pa.schema([(name, kind(name)) for name in schema.released])


def _fits_int64(column: Column) -> bool:
    """Return whether the column contains whole numbers that are stored as 64-bit integers; others are floats."""
    return column.integer and max(map(abs, column.edges)) < 2**62


def _whole_cells(project: Project, whole: Snapshot, *, defused: bool = False) -> Iterator[list[Any]]:
    """Yield the columns of each batch of ``whole``."""
    rng, schema = np.random.default_rng(), whole.schema
    for codes in whole.batches():
        if project.constraints or schema.identifiers:
            texts = {c.name: c.decode(codes[c.name], rng) for c in schema.columns}
            settled = with_identifiers(schema, settle(project.constraints, schema, codes, texts), rng)
            yield _text_columns(schema, settled, defused=defused)
        else:
            yield [cells(c, codes[c.name], rng, defused=defused) for c in schema.columns]


def _text_columns(schema: Schema, texts: Mapping[str, Sequence[str]], *, defused: bool = False) -> list[Any]:
    columns = {c.name: c for c in schema.columns}
    return [text_cells(columns.get(name), texts[name], defused=defused) for name in schema.released]


def write_texts(
    batches: Iterable[Mapping[str, Sequence[str]]], schema: Schema, rows: int, path: Path, report: Report = silent
) -> None:
    """Write rows that are already decoded, in the format of `write_rows`."""
    made = (_text_columns(schema, texts, defused=path.suffix == ".csv") for texts in batches)
    _write(made, schema, rows, path, report)


def slices(rows: Mapping[str, Sequence[str]]) -> Iterator[Mapping[str, Sequence[str]]]:
    """Yield the rows in batches of `STEP`."""
    for start in range(0, len(next(iter(rows.values()))), STEP):
        yield {name: cells[start : start + STEP] for name, cells in rows.items()}


EPOCH = date(1970, 1, 1).toordinal()
"""Ordinal number of the day that Parquet stores as 0."""


def write_rows(
    batches: Iterator[Codes],
    schema: Schema,
    rows: int,
    path: Path,
    rng: np.random.Generator,
    report: Report = silent,
) -> None:
    """Write ``batches`` with ``rows`` rows in total to ``path``: CSV if its name ends in ``.csv``, else Parquet.

    If ``report`` raises, the work is cancelled. An unfinished file is deleted.
    """
    plain = path.suffix == ".csv"
    made = ([cells(c, codes[c.name], rng, defused=plain) for c in schema.columns] for codes in batches)
    _write(made, schema, rows, path, report)


def _write(batches: Iterable[list[Any]], schema: Schema, rows: int, path: Path, report: Report) -> None:
    import pyarrow as pa
    from pyarrow import csv, parquet

    done, writer = 0, None
    plain = path.suffix == ".csv"
    names = [defuse(name) if plain else name for name in schema.released]
    try:
        for columns in batches:
            named = zip(names, schema.released, columns, strict=True)  # only columns that may be empty are nullable
            fields = [pa.field(n, c.type, nullable=plain or _may_be_empty(schema, own)) for n, own, c in named]
            batch = pa.record_batch(columns, schema=pa.schema(fields))
            if writer is None:
                if plain:
                    writer = csv.CSVWriter(path, batch.schema)
                else:
                    texts = [n for n, own in zip(names, schema.released, strict=True) if _is_text(schema, own)]
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


def _is_text(schema: Schema, name: str) -> bool:
    return name in schema and schema[name].kind != "numeric"


def _may_be_empty(schema: Schema, name: str) -> bool:
    return name not in schema or schema[name].missing


def text_cells(column: Column | None, texts: Sequence[str], *, defused: bool = False) -> Any:
    """Return text values as an Arrow array of the column's type; ``column`` is `None` for an identifier."""
    import pyarrow as pa

    if column is not None and column.dates is not None:
        return pa.array([None if t == MISSING else date.fromisoformat(t) for t in texts], type=pa.date32())
    if column is not None and column.kind == "numeric":
        whole = _fits_int64(column)
        kept = [None if t == MISSING else (int(t) if whole else float(t)) for t in texts]
        return pa.array(kept, type=pa.int64() if whole else pa.float64())
    return pa.array([None if t == MISSING else defuse(t) if defused else t for t in texts], type=pa.string())


def cells(column: Column, codes: NDArray[Any], rng: np.random.Generator, *, defused: bool = False) -> Any:
    """Return the cells of one column as an Arrow array of text, whole numbers or numbers; null if missing."""
    import pyarrow as pa

    missing = codes == column.values if column.missing else None
    if column.kind != "numeric":
        texts = pa.array([defuse(c) for c in column.categories] if defused else list(column.categories))
        return pa.DictionaryArray.from_arrays(pa.array(codes, mask=missing), texts)
    drawn = numbers(column, codes, rng)
    if column.dates is not None:
        return pa.array((drawn - EPOCH).astype(np.int32), mask=missing).cast(pa.date32())
    return pa.array(drawn, mask=missing)


def numbers(column: Column, codes: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    """Draw a number inside the bin of each code; a missing cell gets a number from the last bin.

    Numbers are whole, or have the declared decimals, or five significant digits of the bin's width.
    """
    counts = np.bincount(codes, minlength=column.values)
    low, high = np.asarray(column.edges[:-1]), np.asarray(column.edges[1:])
    if column.integer:
        return _whole_numbers(column, codes, rng, counts)
    codes = np.minimum(codes, column.values - 1)
    drawn = places(column.edges, codes, rng, counts)
    drawn *= (high - low)[codes]
    drawn += low[codes]
    figures = 4 - np.floor(np.log10(high - low)) if column.decimals is None else np.full(len(low), column.decimals)
    up, down = 10.0 ** np.clip(figures, 0, 300), 10.0 ** np.clip(-figures, 0, 300)
    rounded = np.floor(drawn * (up / down)[codes]) / up[codes] * down[codes]
    inside = (rounded >= low[codes]) & (rounded < high[codes])
    return np.asarray(np.where(inside, rounded, low[codes]))


def _whole_numbers(column: Column, codes: NDArray[Any], rng: np.random.Generator, counts: NDArray[Any]) -> NDArray[Any]:
    """Draw a whole number inside the bin of each code."""
    first, last = np.ceil(column.edges[:-1]), np.ceil(column.edges[1:]) - 1
    last[-1] = np.floor(column.edges[-1])
    span, inside = last - first + 1, Inside(column.edges, counts)
    several, some = span > 1, bool((span == 1).any())
    kind = np.int64 if _fits_int64(column) else np.float64
    lowest = first.astype(kind)
    out = np.empty(len(codes), kind)
    for start in range(0, len(codes), CHUNK):
        part = slice(start, start + CHUNK)
        bins = codes[part].astype(np.intp)
        np.minimum(bins, column.values - 1, out=bins)
        whole = lowest.take(bins, mode="clip")
        rows = np.flatnonzero(several.take(bins, mode="clip")) if some else slice(None)
        bins = bins[rows]
        place = inside.draw(bins, rng)
        place *= span.take(bins, mode="clip")
        whole[rows] += np.floor(place, out=place).astype(kind)
        out[part] = whole
    return out
