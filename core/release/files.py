"""The files of a release: the text of its table, and how they are written to a folder, all of them or nothing."""

from __future__ import annotations

import csv
import gzip
import io
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import ProjectError
from espalier.core.models.base import Model
from espalier.core.project.dates import invented
from espalier.core.project.file import Project
from espalier.core.project.schema import Schema
from espalier.core.tables.consistency import settle
from espalier.core.tables.csv_lines import DELIMITERS
from espalier.core.tables.csv_safety import defuse, restore
from espalier.core.tables.reading import TextColumn, TextTable, read_released
from espalier.core.tables.table import Table

NOT_PRIVATE = "Not private: each row is a blurred real person"
"""Wherever rows that no budget protects appear."""

NOT_PRIVATE_CSV = "synthetic-NOT-PRIVATE.csv"
"""Their file; that of a private release is ``synthetic.csv``."""


def csv_text(schema: Schema, table: Mapping[str, Sequence[str]]) -> str:
    """``synthetic.csv``'s text; names and categories that look like formulas are defused
    (`espalier.core.tables.csv_safety`).

    :func:`read_csv` takes the apostrophes off again.
    """
    names = [defuse(name) for name in table]
    # where a name holds another delimiter, only quotes tell a reader which one the file is written with
    odd = any(mark in name for name in names for mark in DELIMITERS if mark != ",")
    # a lone empty cell must not become a blank line
    cells = [_written(schema, name, texts, alone=len(table) == 1) for name, texts in table.items()]
    lines = [",".join(_quoted(names, always=odd)), *map(",".join, zip(*cells, strict=True)), ""]
    return "\n".join(lines)


def _written(schema: Schema, name: str, texts: Sequence[str], *, alone: bool) -> Sequence[str]:
    """A column's cells as they stand in the file; each text is looked at once."""
    known = list(set(texts))
    safe = [defuse(t) for t in known] if name in schema else known
    changed = {t: w for t, w in zip(known, _quoted(safe, always=alone), strict=True) if w != t}
    return [changed.get(t, t) for t in texts] if changed else texts


def _quoted(texts: Sequence[str], *, always: bool) -> list[str]:
    """Texts as cells of a CSV file, in quotes where they need them."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL if always else csv.QUOTE_MINIMAL)
    cells = []
    for text in texts:
        out.seek(0)
        out.truncate()
        writer.writerow([text, ""])  # of a lone cell the writer would quote the empty text
        cells.append(out.getvalue()[: -len(',""\n' if always else ",\n")])
    return cells


def read_csv(schema: Schema, source: Path | bytes) -> Table:
    """What :func:`csv_text` wrote, read back; raises :class:`TableError`."""
    read = read_released(source, [defuse(name) for name in schema.released])
    columns = {restore(n): TextColumn(tuple(map(restore, c.values)), c.codes) for n, c in read.columns.items()}
    return Table.encode(TextTable(columns, read.rows, read.source), schema)


def with_identifiers(schema: Schema, table: Mapping[str, list[str]], rng: np.random.Generator) -> dict[str, list[str]]:
    """``table`` with the identifiers that are to be invented, all columns in the schema's order."""
    rows = len(next(iter(table.values())))
    made = {c.name: invented(rows, rng) for c in schema.identifiers if c.invented}
    return {name: made[name] if name in made else table[name] for name in schema.released}


def copy_files(
    project: Project, copies: Iterable[tuple[Model, Mapping[str, NDArray[Any]]]]
) -> Iterator[tuple[str, bytes]]:
    """The files of copies, each given as its model and its codes: ``copies/01.csv.gz``, ``copies/01.npz`` and so on."""
    schema, rng = project.schema, np.random.default_rng()
    for i, (model, rows) in enumerate(copies, 1):
        table = {c.name: c.decode(rows[c.name], rng) for c in schema.columns}
        table = with_identifiers(schema, settle(project.constraints, schema, rows, table), rng)
        yield f"copies/{i:02d}.csv.gz", gzip.compress(csv_text(schema, table).encode(), 3, mtime=0)
        if (data := model.dumps()) is not None:
            yield f"copies/{i:02d}.npz", data


def save_files(
    files: Mapping[str, bytes], folder: str | Path, more: Mapping[str, Callable[[Path], None]] | None = None
) -> None:
    """Write a release's files into a new or empty folder; all of them or nothing. ``more`` write theirs themselves."""
    folder = Path(folder)
    check_folder(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as work:
            part = Path(work) / "part"
            part.mkdir()
            for name, data in files.items():
                (part / name).parent.mkdir(exist_ok=True)
                (part / name).write_bytes(data)
            for name, write in (more or {}).items():
                write(part / name)
            if folder.exists():
                folder.rmdir()
            shutil.move(part, folder)
    except OSError as error:
        raise ProjectError(f"cannot write to {folder}: {error.strerror or error}", path=str(folder)) from None


def check_release(folder: Path) -> None:
    """Raise :class:`ProjectError` unless ``folder`` is one that a release wrote."""
    if not (folder / "release.json").is_file():
        lacking = "holds no release.json" if folder.is_dir() else "is a file" if folder.exists() else "is not there"
        raise ProjectError(
            f"{folder} {lacking}, so it is not a release folder: name the folder that `release` wrote (its --out)",
            path=str(folder),
        )


def check_folder(folder: Path) -> None:
    """Raise :class:`ProjectError` unless ``folder`` can be made, or is empty: nothing is ever overwritten."""
    if str(folder) == "-":
        raise ProjectError("a release is a folder of files and cannot be printed: name a new folder in place of -")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        what = "is not empty" if folder.is_dir() else "is a file"
        raise ProjectError(f"{folder} {what}; name a new folder, nothing is overwritten", path=str(folder))
    parent = next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise ProjectError(f"cannot write to {folder}: {parent} does not allow it", path=str(folder))
