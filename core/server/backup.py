"""Back up and restore a ledger: its database, its key, this machine's memories of its last event, and shared releases.

The memories show whether a restored database is older than one seen before. They are only a few bytes long. Copy them
often (``espalier backup --memories``), and store the copies separately from the database dumps. A restoration uses the
latest memory in the given backups or on the machine. It refuses a database that is older than this memory as a
rollback.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import secrets
import shutil
import sqlite3
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, cast

import sqlalchemy as sa

from espalier import __version__
from espalier.core.errors import EspalierError, LedgerError, LedgerUnavailable, ProjectError
from espalier.core.ledger.ledger import Ledger
from espalier.core.ledger.places import database_url, key_file, memory_files, remembered
from espalier.core.ledger.reasons import reason
from espalier.core.limited_file import read_limited, walked
from espalier.core.project.json_text import MOST_JSON, read_json
from espalier.core.sqlite_steps import limit_steps

FORMAT = "espalier-backup/1"
MANIFEST, DATABASE, KEY, MEMORIES, SHELF = "backup.json", "ledger.dump", "ledger.key", "memories", "shelf"


def back_up(where: str, folder: Path, shelf: Path | None = None, *, memories_only: bool = False) -> str:
    """Write a backup to a new folder and return a sentence about it; raises :class:`EspalierError`.

    The ledger is verified first, because a backup of a damaged ledger would replace a good one.
    """
    ledger = Ledger(where)
    if problems := ledger.verify():
        raise EspalierError("the ledger was not backed up, because its verification failed: " + "; ".join(problems))
    count, last = ledger.head()
    try:
        folder.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        raise ProjectError(f"{folder} already exists; nothing is overwritten", path=str(folder)) from None
    try:
        (folder / MEMORIES).mkdir(mode=0o700)
        for memory in _memories(ledger):
            if memory.exists():
                _copy(memory, folder / MEMORIES / memory.name)
        if not memories_only:
            _dump(ledger, where, folder / DATABASE)
            if ledger.store.key_file.exists():
                _copy(ledger.store.key_file, folder / KEY)
            for file in sorted(shelf.glob("*.zip")) if shelf is not None and shelf.is_dir() else ():
                if not file.is_file():  # reading a pipe may never end
                    continue
                (folder / SHELF).mkdir(mode=0o700, exist_ok=True)
                _copy(file, folder / SHELF / file.name)
        facts = {"format": FORMAT, "espalier": __version__, "at": datetime.now(UTC).isoformat(timespec="seconds")}
        digests = {str(f.relative_to(folder)): _digest(f) for f in sorted(folder.rglob("*")) if f.is_file()}
        said = {**facts, "events": count, "last": last, "database": not memories_only, "sha256": digests}
        _write(folder / MANIFEST, io.BytesIO((json.dumps(said, indent=1) + "\n").encode()))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return f"{folder}: {count:,} event{'s' * (count != 1)}, the last hash is {last}"


def restore(folder: Path, where: str, shelf: Path | None = None, memories: Iterable[Path] = ()) -> str:
    """Restore a backup to a place without a ledger, and return a sentence; raises :class:`EspalierError`.

    ``memories`` are additional backups that contain only memories. No file is overwritten, except that a later memory
    replaces an earlier one.
    """
    facts = _checked(folder)
    if not facts["database"]:
        raise ProjectError(f"{folder} contains only memories; pass it with --memories", path=str(folder))
    url = database_url(where)
    path = Path(os.path.realpath(url.database or "")) if url.get_backend_name() == "sqlite" else None
    key = key_file(url, path)
    if key.exists() and (folder / KEY).exists() and key.read_bytes() != (folder / KEY).read_bytes():
        raise ProjectError(f"{key} belongs to another ledger; move it first", path=str(key))
    beside, earlier = memory_files(url, path)
    given = [folder, *memories]
    for extra in memories:
        _checked(extra)
    latest = max((_said(f) for g in given for f in (g / MEMORIES).glob("*.seen")), default=(0, ""))
    before = _said(beside)
    known = before if before[1] else _said(earlier)
    _need_empty(url, path)
    if (folder / KEY).exists() and not key.exists():
        key.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _copy(folder / KEY, key)
    _remember(beside, max(latest, known))  # before the ledger, which may be older, if the process ends in between
    try:
        _load(folder / DATABASE, url, path)
        others = [(place, _said(place)) for place in map(remembered, _first_hash(url, path))]
    except FileExistsError:  # another process has made a ledger since, which must not be undone
        _remember(beside, before)
        raise _exists(path) from None
    except BaseException:
        if path is not None:
            path.unlink(missing_ok=True)
            _remember(beside, before)
        raise
    for place, said in others:
        _remember(place, max(latest, said))
    if shelf is not None:
        for file in sorted((folder / SHELF).glob("*.zip")):
            shelf.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not (shelf / file.name).exists():
                _copy(file, shelf / file.name)
    ledger = Ledger(where)
    if problems := ledger.verify():
        raise LedgerError("the restored ledger is refused: " + "; ".join(problems))
    for entry in ledger.store.unfinished():  # older versions also backed up answers; more may have been drawn since
        ledger.store.forget(entry)
    count, last = ledger.head()
    return f"{ledger.name}: {count:,} event{'s' * (count != 1)} restored; hashes, sums and rules verified; {last}"


def _memories(ledger: Ledger) -> list[Path]:
    events = ledger.events()
    return [ledger.store.seen_file, *([remembered(events[0].hash)] if events else [])]


def _said(memory: Path) -> tuple[int, str]:
    """Return the number of events that a memory states, and its text; 0 and an empty string if it is missing."""
    if not memory.exists():
        return 0, ""
    try:
        text = memory.read_text("ascii")
    except (OSError, ValueError):
        text = ""
    if not re.fullmatch(r"[0-9]{1,20} [0-9a-f]{64}\s*", text):
        raise ProjectError(
            f"{memory} is not a ledger memory file, or it is damaged. Move it elsewhere first", path=str(memory)
        )
    return int(text.split()[0]), text


def _remember(memory: Path, said: tuple[int, str]) -> None:
    """Write a memory in one step; remove it if nothing is known."""
    if not said[1]:
        memory.unlink(missing_ok=True)
        return
    memory.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = memory.with_name(f".{memory.name}-{secrets.token_hex(8)}")
    _write(new, io.BytesIO(said[1].encode("ascii")))
    os.replace(new, memory)


def _dump(ledger: Ledger, where: str, to: Path) -> None:
    """Copy the database without stored answers, so that a running release and its copy never draw an answer twice."""
    if ledger.store.path is not None:
        os.close(os.open(to, os.O_CREAT | os.O_EXCL, 0o600))
        try:
            with closing(sqlite3.connect(to)) as target:
                ledger.store.copy_to(target)
                if target.execute("SELECT 1 FROM sqlite_master WHERE name = 'espalier_journal'").fetchone():
                    target.execute("DELETE FROM espalier_journal")
                    target.commit()
                    target.execute("VACUUM")  # also removes deleted answers, which remain in unused pages of the file
        except sqlite3.Error as error:  # such as a full disk
            raise EspalierError(
                f"no backup was made, because the database could not be copied: {reason(error)}"
            ) from None
        return
    os.close(os.open(to, os.O_CREAT | os.O_EXCL, 0o600))
    _tool("pg_dump", database_url(where), "--format=custom", "--exclude-table-data=espalier_journal", f"--file={to}")


def _need_empty(url: sa.URL, path: Path | None) -> None:
    """Raise :class:`EspalierError` unless the location exists and contains no ledger."""
    if path is not None:
        if path.exists():
            raise _exists(path)
        for end in ("-journal", "-wal", "-shm"):  # SQLite would apply what another database left to the restored one
            left = f"{path}{end}"
            if os.path.lexists(left) and (os.lstat(left).st_size > 0 or not Path(left).is_file()):
                raise ProjectError(
                    f"{left} was left by a database that used to be at this location. Move it to where that "
                    "database is now, or restore to a different location",
                    path=left,
                )
        return
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    try:
        there = sa.inspect(engine).has_table("espalier_meta")
    except sa.exc.SQLAlchemyError:
        raise LedgerUnavailable("the target database cannot be reached") from None
    if there:
        raise ProjectError("the database already contains a ledger; restore to an empty database")


def _exists(path: Path | None) -> ProjectError:
    return ProjectError(f"a ledger already exists at {path}; move it away first", path=str(path))


def _load(dump: Path, url: sa.URL, path: Path | None) -> None:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _copy(dump, path)
        return
    _tool("pg_restore", url, "--single-transaction", "--exit-on-error", str(dump))


def _first_hash(url: sa.URL, path: Path | None) -> list[str]:
    """Return the first event's hash, which is part of the memory's file name; an empty list without events."""
    here = url if path is None else sa.URL.create("sqlite", database=str(path))  # its name may contain ? or #
    engine = sa.create_engine(here, poolclass=sa.NullPool)
    try:
        with engine.connect() as connection:
            if path is not None:
                limit_steps(cast(sqlite3.Connection, connection.connection.driver_connection), path)
            found = connection.scalar(sa.text("SELECT hash FROM espalier_events WHERE seq = 1"))
    except (sa.exc.SQLAlchemyError, ValueError):
        raise LedgerUnavailable("the backup contains no readable ledger; restore another one") from None
    return [str(found)] if found and str(found).isalnum() else []


def _tool(name: str, url: sa.URL, *options: str) -> None:
    """Run a tool of PostgreSQL. The password is passed in the environment, which other users cannot read."""
    if shutil.which(name) is None:
        raise EspalierError(f"{name} is not installed; install PostgreSQL's client")
    plain = url.set(drivername="postgresql", password=None).render_as_string(hide_password=False)
    secret: Mapping[str, str] = {"PGPASSWORD": str(url.password)} if url.password else {}
    done = subprocess.run(
        [name, f"--dbname={plain}", *options], env={**os.environ, **secret}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        first = next(iter(done.stderr.strip().splitlines()), "no reason given")[:200]
        raise EspalierError(f"{name} failed: {first}")


def _checked(folder: Path) -> dict[str, Any]:
    """Return a backup's facts; raises :class:`ProjectError` if any file was changed, added or removed.

    Only ordinary files inside the folder are read, because reading a pipe could block forever.
    """
    try:
        if not (folder / MANIFEST).is_file():  # checked before all folders of a large disk are listed
            raise ValueError
        found = [where / name for where, folders, names in walked(folder) for name in (*folders, *names)]
        inside = {p.relative_to(folder).as_posix(): p for p in found if p.is_symlink() or not p.is_dir()}
        if not all(p.is_file() and not p.is_symlink() for p in inside.values()):
            raise ValueError
        facts = read_json(read_limited(inside.pop(MANIFEST), MOST_JSON), f"{folder / MANIFEST}")
        if not isinstance(facts, dict) or facts.get("format") != FORMAT or type(facts.get("database")) is not bool:
            raise ValueError
        if facts["sha256"].keys() != inside.keys():
            raise ValueError
        wrong = [name for name, digest in facts["sha256"].items() if _digest(inside[name]) != digest]
    except (OSError, ValueError, KeyError, AttributeError):
        raise ProjectError(f"{folder} is not a backup, or files are missing or were added", path=str(folder)) from None
    if wrong:
        raise ProjectError(f"{folder}: {wrong[0]} was changed since the backup was made", path=str(folder))
    return facts


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _copy(source: Path, to: Path) -> None:
    with source.open("rb") as file:
        _write(to, file)


def _write(to: Path, data: BinaryIO) -> None:
    with open(os.open(to, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        shutil.copyfileobj(data, file)
        file.flush()
        os.fsync(file.fileno())
