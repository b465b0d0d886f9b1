"""Functions that read, export and sign the statement of a release folder."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from espalier.core.errors import ProjectError
from espalier.core.ledger.archive import check_release
from espalier.core.limited_file import read_limited, write_new
from espalier.core.project.json_text import MOST_JSON, read_json
from espalier.core.statement import label, registry
from espalier.core.statement.catalogues import EXPORTS, dumps
from espalier.core.statement.claims import FORMAT, SIGNATURE, STATEMENT
from espalier.core.statement.keys import Signer


def read_statement(folder: Path) -> dict[str, Any]:
    """Return ``statement.json`` of a release folder; raise :class:`ProjectError` if there is none."""
    check_release(folder)
    try:
        made = read_json(_read(folder / STATEMENT), STATEMENT)
    except FileNotFoundError:
        raise ProjectError(
            f"{folder} contains no {STATEMENT}, because it was released by an earlier version",
            path=str(folder),
        ) from None
    except OSError as error:
        raise ProjectError(f"cannot read {folder / STATEMENT}: {error.strerror or error}", path=str(folder)) from None
    if not isinstance(made, dict) or made.get("format") != FORMAT or not isinstance(made.get("files"), dict):
        raise ProjectError(f"{folder / STATEMENT} is not a statement that this version can read", path=str(folder))
    return made


def exported(folder: Path, kind: str | None) -> str:
    """Return the statement, or its export as ``kind``, as text; raise :class:`ProjectError`."""
    made = read_statement(folder)
    try:
        if kind is None:
            return _read(folder / STATEMENT).decode()
        if kind == "croissant":
            return _read(folder / "croissant.json").decode()
        if kind in EXPORTS:
            return dumps(EXPORTS[kind](made))
        if not made["private"]:
            raise ProjectError("rows without a privacy guarantee have no registry entry and no label")
        return (registry.text(made) if kind == "registry" else label.page(made)).decode()
    except OSError as error:
        raise ProjectError(f"cannot read {error.filename}: {error.strerror}", path=str(folder)) from None
    except (KeyError, TypeError, AttributeError, ValueError):
        raise ProjectError(f"{folder / STATEMENT} is damaged", path=str(folder)) from None


def _read(path: Path) -> bytes:
    """Return the bytes of a JSON file of a release folder; raise :class:`OSError` for a pipe or a device."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is not a file", str(path))
    data = read_limited(path, MOST_JSON)
    if len(data) > MOST_JSON:
        raise OSError(errno.EFBIG, f"it is larger than {MOST_JSON >> 20} MiB", str(path))
    return data


def sign_folder(folder: Path, signer: Signer) -> None:
    """Sign the statement of ``folder``; raise :class:`ProjectError` if it is already signed or names another key."""
    made = read_statement(folder)
    named = made.get("signer")
    if named is not None and named != signer.facts:
        raise ProjectError(f"{folder} names another key as its signer; sign it with that key", path=str(folder))
    signature = signer.sign(made)
    try:
        write_new(folder / SIGNATURE, signature)
    except FileExistsError:
        raise ProjectError(f"{folder} is already signed; nothing is overwritten", path=str(folder)) from None
    except OSError as error:
        raise ProjectError(f"cannot write {folder / SIGNATURE}: {error.strerror}", path=str(folder)) from None


def signed_files(files: Mapping[str, bytes], signer: Signer | None) -> dict[str, bytes]:
    """Return the files of a release, with a signature if ``signer`` may sign, which is the case if the statement does
    not name a different key.
    """
    if signer is None or STATEMENT not in files or SIGNATURE in files:
        return dict(files)
    made = read_json(files[STATEMENT], STATEMENT)
    if not isinstance(made, dict) or made.get("signer") not in (None, signer.facts):
        return dict(files)
    return {**files, SIGNATURE: signer.sign(made)}
