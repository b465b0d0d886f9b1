"""Shelf of shared releases: releases that a steward has made available to others.

Each release is one zip file in the folder ``ESPALIER_SHARED``, or in a folder of the current user. The zip contains the
files of the release, all of which are differentially private or public. Only files of a release are accepted, so no
private row can reach the shelf.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from espalier.core.analysis.loading import project_of, read_facts
from espalier.core.errors import DAMAGED, EspalierError, ProjectError
from espalier.core.ledger.archive import MOST_BYTES, check_names, has_model, unpacked, zipped
from espalier.core.project.file import Project

_FIRST = ("synthetic.csv", "report.html", "release.json", "project.json", "model.npz")
"""Files that :func:`identity` hashes first, in this order."""


@dataclass(frozen=True)
class Shared:
    """A release on the shelf: its identity, the facts of its ``release.json``, and its project."""

    id: str
    facts: Mapping[str, Any]
    project: Project


def shelf() -> Path:
    """Return the folder of shared releases."""
    if said := os.environ.get("ESPALIER_SHARED"):
        return Path(said)
    from platformdirs import user_data_path

    return user_data_path("espalier", appauthor=False) / "shared"


def share(files: Mapping[str, bytes]) -> str:
    """Put a release on the shelf and return its identity; sharing it again has no effect.

    Raises :class:`ProjectError`.
    """
    made = identity(files)
    _read(made, files["release.json"])
    check_names(files, has_model(files["release.json"]))
    try:
        shelf().mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile(dir=shelf(), delete=False) as part:
            part.write(zipped(files))
        Path(part.name).replace(_path(made))
    except OSError as error:
        raise ProjectError(f"cannot write to {shelf()}: {error.strerror or error}", path=str(shelf())) from None
    return made


def is_shared(files: Mapping[str, bytes]) -> bool:
    """Return whether this release is on the shelf."""
    return _path(identity(files)).exists()


def take_back(made: str) -> None:
    """Remove a release from the shelf. Copies that others have downloaded remain."""
    _path(made).unlink(missing_ok=True)


def shared() -> list[Shared]:
    """Return all releases on the shelf, most recently shared first; unreadable files are skipped."""
    found = []
    paths = shelf().glob("*.zip") if shelf().is_dir() else ()
    for path in sorted(paths, key=_last_first):
        try:
            found.append(_read(path.stem, unpacked(_data(path), ("release.json",))["release.json"]))
        except (OSError, EspalierError):
            continue
    return found


def _last_first(path: Path) -> tuple[float, str]:
    """Return a key that sorts files by time, even if another session has removed a file in the meantime."""
    try:
        return -path.stat().st_mtime, path.name
    except OSError:
        return 0.0, path.name


def files(made: str) -> dict[str, bytes]:
    """Return the files of a release on the shelf; raises :class:`ProjectError` if it is no longer there."""
    try:
        return unpacked(_data(_path(made)))
    except (OSError, ProjectError):
        raise ProjectError("This release is no longer shared.") from None


def _data(path: Path) -> bytes:
    """Return a zip file's bytes; raises :class:`ProjectError` for a pipe, whose reading may never end, and for a file
    that is larger than the files of a release.
    """
    if not path.is_file() or path.stat().st_size > MOST_BYTES:
        raise ProjectError("it is not a file, or too large")
    return path.read_bytes()


def _read(made: str, data: bytes) -> Shared:
    """Return the release with identity ``made`` from its ``release.json``; raises :class:`EspalierError`."""
    try:
        facts = read_facts(data)
        if facts.get("private") is not True:
            raise ProjectError("Only a differentially private release can be shared.")
        return Shared(made, facts, project_of(facts))
    except DAMAGED as error:
        raise ProjectError(f"release.json is damaged ({type(error).__name__})", key="release.json") from None


def identity(made: Mapping[str, bytes]) -> str:
    """Return the identity of a release, a hash of all its files."""
    digest = hashlib.sha256()
    for name in (n for n in _FIRST if n in made):
        digest.update(hashlib.sha256(made[name]).digest())
    for name in sorted(set(made).difference(_FIRST)):
        digest.update(name.encode() + hashlib.sha256(made[name]).digest())
    return digest.hexdigest()[:16]


def _path(made: str) -> Path:
    if not re.fullmatch(r"[0-9a-f]{16}", made):
        raise ProjectError(f"{made!r} is not a shared release")
    return shelf() / f"{made}.zip"
