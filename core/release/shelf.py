"""The shelf of shared releases: what the steward marked for others to see and take.

One zip file for each release in a folder of the server's, ``ESPALIER_SHARED`` or one of this user's. It holds the files
that a release hands over, all of them differentially private or public; no private row can get here, since only files
of a release are taken.
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
from espalier.core.errors import EspalierError, ProjectError
from espalier.core.ledger.archive import check_names, has_model, unpacked, zipped
from espalier.core.project.file import Project

_FIRST = ("synthetic.csv", "report.html", "release.json", "project.json", "model.npz")
"""The files that come first in :func:`identity`, in this order."""


@dataclass(frozen=True)
class Shared:
    """A release on the shelf: its identity, the facts of its ``release.json``, and its project."""

    id: str
    facts: Mapping[str, Any]
    project: Project


def shelf() -> Path:
    """The folder."""
    if said := os.environ.get("ESPALIER_SHARED"):
        return Path(said)
    from platformdirs import user_data_path

    return user_data_path("espalier", appauthor=False) / "shared"


def share(files: Mapping[str, bytes]) -> str:
    """Put a release on the shelf (again, without harm) and return its identity; raises :class:`ProjectError`."""
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
    """Is this release on the shelf?"""
    return _path(identity(files)).exists()


def take_back(made: str) -> None:
    """Take a release off the shelf. Who has taken it already keeps it."""
    _path(made).unlink(missing_ok=True)


def shared() -> list[Shared]:
    """All releases on the shelf, the last shared first; what cannot be read is left out."""
    found = []
    paths = shelf().glob("*.zip") if shelf().is_dir() else ()
    for path in sorted(paths, key=lambda p: (-p.stat().st_mtime, p.name)):
        try:
            found.append(_read(path.stem, unpacked(path.read_bytes(), ("release.json",))["release.json"]))
        except (OSError, EspalierError):
            continue
    return found


def files(made: str) -> dict[str, bytes]:
    """The files of a release on the shelf; raises :class:`ProjectError` if it is not there any more."""
    path = _path(made)
    try:
        return unpacked(path.read_bytes())
    except (OSError, ProjectError):
        raise ProjectError("this release is not shared any more") from None


def _read(made: str, data: bytes) -> Shared:
    """The release with identity ``made``, from its ``release.json``; raises :class:`EspalierError`."""
    facts = read_facts(data)
    if facts.get("private") is not True:
        raise ProjectError("only a differentially private release can be shared")
    return Shared(made, facts, project_of(facts))


def identity(made: Mapping[str, bytes]) -> str:
    """What tells releases apart: a hash of everything handed over."""
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
