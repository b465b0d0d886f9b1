"""Verification of an export, alone or against its ledger, and of a release folder against its ledger. Neither copy is
trusted: every hash, sum and rule is computed again from the events, and a release's files are hashed.
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

MOST_NAMED = 20
"""Maximum number of files that a report names."""
_COLUMNS = {*Event.__dataclass_fields__, "hash"}


def check_export(path: Path, ledger: Ledger | None = None) -> str:
    """Check that an exported JSON file is consistent and matches the beginning of ``ledger``; return a report of the
    checks. Raises :class:`ProjectError` for a file that is not an export, and :class:`LedgerError` for one that was
    changed.
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
        raise LedgerError(f"{path} was changed: {where} does not follow from its events")
    last = events[-1].hash if events else START
    count = f"{len(events):,} event{'s' * (len(events) != 1)}"
    report = f"{path}: {count}; hashes, sums and rules verified; the last hash is {last}"
    if ledger is None:
        return (
            report
            + ". Only the ledger (--ledger) or a hash you recorded can show that no events are missing at the end"
        )
    there = ledger.events()
    if len(there) < len(events) or (events and there[len(events) - 1].hash != last):
        raise LedgerError(
            f"{path} is consistent, but does not match {ledger.name}: it belongs to another ledger, or an event was "
            "rewritten"
        )
    since = len(there) - len(events)
    rest = f"has {since} later event{'s' * (since != 1)}" if since else "ends there too"
    return f"{report}; {ledger.name} agrees, and {rest}"


def check_release(folder: Path, ledger: Ledger) -> str:
    """Check that the files of ``folder`` belong to an entry of ``ledger``; return a report about the entry.

    Raises :class:`ProjectError` for a folder without a release, and :class:`LedgerError` if the folder and the ledger
    differ.
    """
    files = files_of(folder)
    facts = _object(files["release.json"], folder / "release.json").get("ledger")
    try:
        check_names(files, has_model(files["release.json"]))
    except ProjectError as error:
        raise ProjectError(f"{folder} is not a complete release: {error}") from None
    if not isinstance(facts, dict):
        raise LedgerError(f"{folder} states that it is not recorded in a ledger")
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
            f"{folder} states the chain hash of entry {entry.id}, but the ledger has no record of the released files, "
            "so they cannot be checked"
        )
    if digest_of(files) != entry.released:
        changed = _changed(files, ledger, entry.released)
        raise LedgerError(f"{folder} differs from the release of entry {entry.id}: {changed}")
    report = f"{folder}: the release of entry {entry.id} of {entry.population} in {ledger.name}, unchanged"
    there = {p.relative_to(folder).as_posix() for p in (*folder.iterdir(), *folder.glob("copies/*"))} - {"copies"}
    if others := sorted(there - {*files} | {*files} & {*ADDED}):
        more = f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
        report += f". Not covered by the ledger, so not checked: {', '.join(others[:MOST_NAMED])}{more}"
    return report


def _changed(files: Mapping[str, bytes], ledger: Ledger, released: str) -> str:
    """Return a clause that names the changed files, if the release was kept."""
    try:
        kept = ledger.files(released)
    except LedgerError:
        return "at least one file was changed"
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
    said = read_json(data, str(path), finite=False)  # a changed number is tampering, not bad input
    if not isinstance(said, dict):
        raise ProjectError(f"{path} was not written by a ledger or a release", path=str(path))
    return said


def _differs(said: Any, found: Any, where: str = "populations") -> str:
    """Return the first place where ``said`` differs from ``found``; empty if there is none. Omissions are ignored."""
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
