"""Files of a release: their allowed names, their hash, and the zip that stores and shares them."""

from __future__ import annotations

import hashlib
import io
import math
import re
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from espalier.core.errors import DAMAGED, ProjectError
from espalier.core.project.json_text import read_json
from espalier.core.project.linked import is_table_name
from espalier.core.tables.unpacking import BOMB_BYTES, BOMB_RATIO

REQUIRED = ("synthetic.csv", "report.html", "release.json", "project.json")
LINKED_TABLES = 2
"""Tables of a release of linked tables, which has no ``synthetic.csv``."""
MODEL = "model.npz"
MOST_BYTES = 1 << 30
"""Largest unpacked size of a release's files."""
MOST_ARRAYS = 100_000
"""Maximum number of arrays in one file of a model or of counts."""
_HEADER_2 = np.lib.format.read_array_header_2_0
ADDED = ("statement.json", "statement.sig")
"""Files that describe the other files. The hash of a release excludes them, so the release can be signed later."""
_OPTIONAL = re.compile(
    r"model\.npz|questions\.csv|croissant\.json|answers\.npz|copies/[0-9]{2,3}\.(csv\.gz|npz)"
    r"|statement\.(json|sig)|label\.html|registry\.yaml"
)


def is_known(name: str) -> bool:
    """Return whether a file of a release may have this name. No other file is ever packed, unpacked or written."""
    return name in REQUIRED or _OPTIONAL.fullmatch(name) is not None


def tables_of(names: Iterable[str]) -> list[str]:
    """Return the names of a release's tables: ``synthetic.csv``, or those of two linked tables."""
    names = list(names)
    if "synthetic.csv" in names:
        return ["synthetic.csv"]
    return [name for name in names if name.endswith(".csv") and is_table_name(name.removesuffix(".csv"))]


def check_names(names: Iterable[str], has_model: bool) -> None:
    """Raise :class:`ProjectError` unless ``names`` are the files of one complete release.

    These are the files in :data:`REQUIRED`, the model if the release ``has_model``, and any optional files.
    """
    names = list(names)
    tables = tables_of(names)
    needed = REQUIRED if len(tables) != LINKED_TABLES else (*tables, *REQUIRED[1:])
    needed = (*needed, MODEL) if has_model else needed
    odd = [name for name in names if not is_known(name) and name not in needed] + [
        name for name in needed if name not in names
    ]
    if odd or len(set(names)) < len(names):
        raise ProjectError(f"it does not contain the files of a release ({odd[0] if odd else 'a name occurs twice'!r})")


def has_model(release_json: bytes) -> bool:
    """Return whether the release of this ``release.json`` includes its model. In that file, null means a model that
    must not be written. Raises :class:`ProjectError` for any other file.
    """
    facts = read_json(release_json, "its release.json")
    if not isinstance(facts, dict):
        raise ProjectError("its release.json is damaged")
    return facts.get("model", MODEL) is not None  # earlier releases do not state this, and include the model


def digest_of(files: Mapping[str, bytes]) -> str:
    """Return the hash of the released files: SHA-256 of the output of ``sha256sum`` for them, sorted by name.

    In a release's folder, ``find * -type f ! -name 'statement.*' | LC_ALL=C sort | xargs sha256sum | sha256sum``
    prints the same.
    """
    covered = sorted(name for name in files if name not in ADDED)
    lines = "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in covered)
    return hashlib.sha256(lines.encode()).hexdigest()


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Return the files of a release as one zip."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(name), files[name], zipfile.ZIP_DEFLATED)
    return out.getvalue()


def check_size(archive: zipfile.ZipFile) -> None:
    """Raise :class:`ProjectError` for an archive (such as an .npz) that unpacks to more than `MOST_BYTES`. Sizes are
    taken from its directory. Only Deflate can be limited while unpacking, so bzip2 and LZMA, which no release uses, are
    refused.
    """
    if sum(info.file_size for info in archive.infolist()) > MOST_BYTES:
        raise ProjectError("it unpacks to more than 1 GiB")
    if any(info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for info in archive.infolist()):
        raise ProjectError("it is not compressed with Deflate")


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return one file of an archive, limited to the number of bytes that the archive's directory states."""
    with archive.open(name) as file:
        return file.read(archive.getinfo(name).file_size + 1)  # without a length, everything would be unpacked at once


def check_arrays(data: bytes, name: str) -> None:
    """Raise :class:`ProjectError` for an ``.npz`` that is too large when unpacked, whose arrays claim more data than
    it contains, or that contains arrays of anything but real numbers.

    Sizes are read from its directory and from the arrays' headers, before anything is unpacked.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            check_size(archive)
            members = archive.infolist()
            size = sum(info.file_size for info in members)
            if size > BOMB_BYTES and size > BOMB_RATIO * len(data):
                raise ProjectError(f"{name} unpacks to more than {BOMB_RATIO} times its size")
            if len(members) > MOST_ARRAYS or len({info.filename for info in members}) < len(members):
                raise ProjectError(f"{name} contains too many arrays, or two arrays with the same name")
            for info in members:
                with archive.open(info) as file:
                    version = np.lib.format.read_magic(file)
                    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else _HEADER_2
                    shape, _, kind = read(file)
                if kind.hasobject or math.prod(shape) * kind.itemsize > info.file_size:
                    raise ProjectError(f"{name}: an array claims more data than the file contains")
                if (kind.kind not in "biuf" or kind.itemsize > 8) and not (kind.kind == "U" and shape == ()):
                    raise ProjectError(f"{name}: an array contains something other than numbers or one text value")
    except DAMAGED as error:
        raise ProjectError(f"{name} is damaged") from error


def unpacked(data: bytes, names: Sequence[str] | None = None) -> dict[str, bytes]:
    """Return the files of a zipped release, or those of ``names``; raises :class:`ProjectError` unless `check_names`
    accepts their names.

    Callers write the files of a release under these names, so no other names are accepted. An absolute path, or a path
    that leads out of the folder, would let the archive's author write anywhere.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            check_size(archive)
            found = [info.filename for info in archive.infolist()]
            check_names(found, has_model=False)
            check_names(found, has_model(_member(archive, "release.json")))
            return {name: _member(archive, name) for name in (found if names is None else names)}
    except (OSError, ValueError, EOFError, NotImplementedError, RuntimeError, zlib.error, zipfile.BadZipFile):
        raise ProjectError("it is damaged, or not an archive") from None


def check_release(folder: Path) -> None:
    """Raise :class:`ProjectError` unless a release wrote ``folder``."""
    if not (folder / "release.json").is_file():
        lacking = (
            "contains no release.json" if folder.is_dir() else "is a file" if folder.exists() else "does not exist"
        )
        raise ProjectError(
            f"{folder} {lacking}, so it is not a release folder: name the folder that `release` wrote (its --out)",
            path=str(folder),
        )


def files_of(folder: Path, also: Sequence[str] = ()) -> dict[str, bytes]:
    """Return the allowed files of a release's folder, and those in ``also``.

    Raises :class:`ProjectError`; pipes and devices are never opened, and sizes are checked before anything is read.
    """
    check_release(folder)
    try:
        found = sorted(p for p in (*folder.iterdir(), *folder.glob("copies/*")) if p.is_file())
        paths = {p.relative_to(folder).as_posix(): p for p in found}
        tables = tables_of(paths) if "release.json" in paths else []
        paths = {name: p for name, p in paths.items() if is_known(name) or name in also or name in tables}
        if sum(p.stat().st_size for p in paths.values()) > MOST_BYTES:
            raise ProjectError(f"{folder} contains more than 1 GiB", path=str(folder))
        return {name: p.read_bytes() for name, p in paths.items()}
    except (OSError, ValueError) as error:
        what = f"cannot read {getattr(error, 'filename', None) or 'one of its files'}"
        why = getattr(error, "strerror", None) or error
        raise ProjectError(f"{folder} is not a complete release folder: {what}: {why}", path=str(folder)) from None
