"""Files of a release: the text of its copies, and a function that writes all files to a folder, or none of them."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import ProjectError
from espalier.core.models.base import Model
from espalier.core.project.dates import invented
from espalier.core.project.file import Project
from espalier.core.project.schema import Schema
from espalier.core.release.unfinished import check_none, lock, synced
from espalier.core.tables.consistency import settle
from espalier.core.tables.released import csv_bytes

PREFIX, LOCK = ".espalier-", "lock"
"""Name of a folder while it is being written, and name of the file in it that the writing process locks."""


def with_identifiers(schema: Schema, table: Mapping[str, list[str]], rng: np.random.Generator) -> dict[str, list[str]]:
    """Return ``table`` with invented identifiers added, in the schema's column order."""
    rows = len(next(iter(table.values())))
    made = {c.name: invented(rows, rng) for c in schema.identifiers if c.invented}
    return {name: made[name] if name in made else table[name] for name in schema.released}


def copy_files(
    project: Project, copies: Iterable[tuple[Model, Mapping[str, NDArray[Any]]]]
) -> Iterator[tuple[str, bytes]]:
    """Yield names and contents of the files of ``copies``: ``copies/01.csv.gz``, ``copies/01.npz`` and so on."""
    schema, rng = project.schema, np.random.default_rng()
    for i, (model, rows) in enumerate(copies, 1):
        table = {c.name: c.decode(rows[c.name], rng) for c in schema.columns}
        table = with_identifiers(schema, settle(project.constraints, schema, rows, table), rng)
        yield f"copies/{i:02d}.csv.gz", gzip.compress(csv_bytes(schema, table), 3, mtime=0)
        if (data := model.dumps()) is not None:
            yield f"copies/{i:02d}.npz", data


def save_files(
    files: Mapping[str, bytes],
    folder: str | Path,
    more: Mapping[str, Callable[[Path], None]] | None = None,
    sealed: Callable[[Mapping[str, Mapping[str, Any]]], Mapping[str, bytes]] | None = None,
    mode: int = 0o777,
) -> None:
    """Write a release's files into a new or empty folder, all of them or none.

    ``more`` maps names to writers. ``sealed`` receives the digests of these files and returns further files, which are
    written last. ``mode`` states who may open the folder, unless the user's own settings are stricter.
    """
    folder = Path(folder)
    check_empty(folder)
    _write(files, folder, more or {}, sealed, mode)


def check_folder(folder: Path) -> None:
    """Raise :class:`ProjectError` unless a release can be written to ``folder``, where nothing is ever overwritten.

    An empty release is written there and removed again. Anything that would fail after the budget is spent, such as a
    link, a mounted or current folder, or a name that is too long, therefore fails now.
    """
    check_empty(folder)
    check_none(folder)
    made = [p for p in (folder, *folder.parents) if not p.exists()]
    try:
        _write({}, folder, {})
    finally:
        for path in made:
            with suppress(OSError):
                path.rmdir()


def _write(
    files: Mapping[str, bytes],
    folder: Path,
    more: Mapping[str, Callable[[Path], None]],
    sealed: Callable[[Mapping[str, Mapping[str, Any]]], Mapping[str, bytes]] | None = None,
    mode: int = 0o777,
) -> None:
    """Write a folder next to its destination, then move it there."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(folder.parent)
        with (
            tempfile.TemporaryDirectory(prefix=PREFIX, dir=folder.parent) as work,
            (Path(work) / LOCK).open("w") as held,
        ):
            lock(held)
            print("locked", file=held, flush=True)  # from now on, other processes can see that it is locked
            part = Path(work) / "part"
            part.mkdir(mode)
            for name, data in files.items():
                (part / name).parent.mkdir(exist_ok=True)
                (part / name).write_bytes(data)
            for name, write in more.items():
                write(part / name)
            if more and sealed is not None:
                for name, data in sealed({name: _digest(part / name) for name in more}).items():
                    (part / name).write_bytes(data)
            for path in (*part.rglob("*"), part):
                synced(path)
            if folder.exists():
                folder.rmdir()
            part.rename(folder)
            synced(folder.parent)
    except OSError as error:
        raise ProjectError(
            f"cannot write to {folder}: {error.strerror or error}. Name a new folder", path=str(folder)
        ) from None


def _remove_leftovers(parent: Path) -> None:
    """Remove the folders of processes that were killed while writing here. No process holds the locks of these
    folders.
    """
    for left in parent.glob(f"{PREFIX}*/{LOCK}"):
        with suppress(OSError, RecursionError):  # another user's folder may be very deep
            if left.stat().st_size:  # otherwise its process may be about to lock it
                with left.open("r+") as file:
                    lock(file)
                    shutil.rmtree(left.parent, ignore_errors=True)


def _digest(path: Path) -> dict[str, Any]:
    """Return the size and the SHA-256 of a file of any size."""
    with path.open("rb") as file:
        return {"bytes": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def check_empty(folder: Path) -> None:
    """Raise :class:`ProjectError` unless ``folder`` is empty or can be made."""
    if str(folder) == "-":
        raise ProjectError("A release is a folder of files and cannot be printed. Name a new folder instead of -.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        what = "is not empty" if folder.is_dir() else "is a file"
        raise ProjectError(f"{folder} {what}. Name a new folder; nothing is overwritten.", path=str(folder))
    parent = next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise ProjectError(f"cannot write to {folder}: {parent} is not a writable folder.", path=str(folder))
