"""Verification of copies of the ledger: an export, alone or against its ledger; a release folder against its ledger.

Neither is trusted: every hash, sum and rule is computed again from the events, and a release's files are hashed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from espalier.core.errors import LedgerError, ProjectError
from espalier.core.ledger.archive import ADDED, check_names, digest_of, files_of, has_model
from espalier.core.ledger.events import START, Event, read_events
from espalier.core.ledger.export import FORMAT, exported
from espalier.core.ledger.ledger import Ledger
from espalier.core.project.json_text import MOST_JSON, read_json

_COLUMNS = {*Event.__dataclass_fields__, "hash"}


def check_export(path: Path, ledger: Ledger | None = None) -> str:
    """Check an exported JSON file against itself, and against the beginning of ``ledger``; return what was checked.

    Raises :class:`ProjectError` for what is no export, :class:`LedgerError` for one that was changed.
    """
    said = _object(_read(path), path)
    rows = said.get("events")
    if said.get("format") != FORMAT or not isinstance(rows, list) or not isinstance(said.get("populations"), list):
        raise ProjectError(f"{path} is not an exported ledger; make one with ledger export --format json")
    for place, row in enumerate(rows, start=1):
        if not isinstance(row, dict) or set(row) != _COLUMNS:
            raise LedgerError(f"{path}: event {place} does not have the columns of an event: the file was changed")
    try:
        events = read_events(rows)
        found = exported(events)
    except LedgerError as error:
        raise LedgerError(f"{path}: {str(error).partition('. ')[0]}") from None
    if where := _differs(said["populations"], found["populations"]):
        raise LedgerError(f"{path} was changed: {where} is not what its events add up to")
    last = events[-1].hash if events else START
    count = f"{len(events):,} event{'s' * (len(events) != 1)}"
    report = f"{path}: {count}, every hash, sum and rule holds; the last hash is {last}"
    if ledger is None:
        return report + ". Only the ledger (--ledger) or a hash you noted can show that none were cut off at its end"
    there = ledger.events()
    if len(there) < len(events) or (events and there[len(events) - 1].hash != last):
        raise LedgerError(
            f"{path} agrees with itself, but not with {ledger.name}: it is of another ledger, or an event was rewritten"
        )
    since = len(there) - len(events)
    return f"{report}; so does {ledger.name}" + (f", which has {since} more since" if since else ", and ends there too")


def check_release(folder: Path, ledger: Ledger) -> str:
    """Check that the files of ``folder`` are those handed over as an entry of ``ledger``; return a report on the entry.

    Raises :class:`ProjectError` for what is no release's folder, :class:`LedgerError` where it and the ledger differ.
    """
    files = files_of(folder)
    facts = _object(files["release.json"], folder / "release.json").get("ledger")
    try:
        check_names(files, has_model(files["release.json"]))
    except ProjectError as error:
        raise ProjectError(f"{folder} is not a whole release: {error}") from None
    if not isinstance(facts, dict):
        raise LedgerError(f"{folder} says of itself that it is not recorded in a ledger")
    id_ = facts.get("entry")
    entry = next((e for p in ledger.populations().values() for e in p.entries if e.id == id_), None)
    if entry is None:
        raise LedgerError(f"{folder} claims to be entry {id_!r}, but the ledger {ledger.name} has no such entry")
    if entry.chain != facts.get("chain"):
        raise LedgerError(
            f"entry {entry.id} of {ledger.name} and {folder} have different chains: one of the two was rewritten"
        )
    if entry.released is None:
        raise LedgerError(
            f"{folder} has the chain of entry {entry.id}, but the ledger has no record of the files handed over: its "
            "files cannot be checked"
        )
    if digest_of(files) != entry.released:
        changed = _changed(files, ledger, entry.released)
        raise LedgerError(f"{folder} is not what entry {entry.id} handed over: {changed}")
    return f"{folder}: the release of entry {entry.id} of {entry.population} in {ledger.name}, unchanged"


def _changed(files: Mapping[str, bytes], ledger: Ledger, released: str) -> str:
    """Return half a sentence that names the changed files, where the release was kept."""
    try:
        kept = ledger.files(released)
    except LedgerError:
        return "a file or more was changed"
    names = sorted(name for name in {*files, *kept} - {*ADDED} if kept.get(name) != files.get(name))
    return f"{', '.join(names)} {'was' if len(names) == 1 else 'were'} changed"


def _read(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise ProjectError(f"{path} is not a file", path=str(path))
        with path.open("rb") as file:
            return file.read(MOST_JSON + 1)  # `read_json` refuses more
    except OSError as error:
        raise ProjectError(f"cannot read {path}: {error.strerror or error}", path=str(path)) from None


def _object(data: bytes, path: Path) -> dict[str, Any]:
    said = read_json(data, str(path), finite=False)  # a changed number is no bad input
    if not isinstance(said, dict):
        raise ProjectError(f"{path} is not what a ledger or a release writes", path=str(path))
    return said


def _differs(said: Any, found: Any, where: str = "populations") -> str:
    """The first place where ``said`` is not what was ``found``; empty if it is. What it leaves out is not missed."""
    if isinstance(said, dict) and isinstance(found, dict):
        for key, value in said.items():
            if key not in found:
                return f"{where}, {key}"
            if deeper := _differs(value, found[key], f"{where}, {key}"):
                return deeper
        return ""
    if isinstance(said, list) and isinstance(found, list) and len(said) == len(found):
        pairs = enumerate(zip(said, found, strict=True), start=1)
        return next(filter(None, (_differs(a, b, f"{where} {place}") for place, (a, b) in pairs)), "")
    if isinstance(said, float) and isinstance(found, float):
        return "" if math.isclose(said, found, rel_tol=1e-9) else where
    return "" if type(said) is type(found) and said == found else where
