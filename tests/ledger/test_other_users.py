"""Ledgers in a folder that other users and other processes write to."""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from espalier.core.errors import LedgerUnavailable
from espalier.core.ledger.ledger import Ledger

BY_ROOT = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can make a file for another user"
)
STRANGER = 65534


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    tmp_path.chmod(0o1777)
    return tmp_path


@BY_ROOT
def test_no_key_is_used_that_another_user_put_there(shared: Path) -> None:
    """Previously, that user knew the secret, and so who would be held out and whether a guessed table was released."""
    key = shared / "ledger.db.key"
    key.write_text("00" * 32)
    os.chown(key, STRANGER, STRANGER)
    with pytest.raises(LedgerUnavailable, match="belongs to another user"):
        Ledger(shared / "ledger.db", create=True).store.secret()
    os.chown(key, 0, 0)
    assert Ledger(shared / "ledger.db").store.secret() == bytes(32)


@BY_ROOT
def test_no_ledger_is_begun_in_a_file_that_another_user_put_there(shared: Path) -> None:
    """Previously, that user could change the ledger."""
    file = shared / "ledger.db"
    file.touch(0o666)
    os.chown(file, STRANGER, STRANGER)
    with pytest.raises(LedgerUnavailable, match="belongs to another user"):
        Ledger(file, create=True)
    own = shared / "own"
    own.mkdir()
    os.chown(own, STRANGER, STRANGER)
    file.rename(own / "ledger.db")
    Ledger(own / "ledger.db", create=True).open_table(
        "people", epsilon=1.0, delta=1e-6
    )  # by the system's administrator


@BY_ROOT
@pytest.mark.parametrize("end", ["-journal", "-wal", "-shm"])
def test_no_log_is_used_that_another_user_put_there(shared: Path, end: str) -> None:
    """Previously, that user could read what SQLite writes there: earlier events and stored answers."""
    ledger = Ledger(shared / "ledger.db", create=True)
    ledger.open_table("people", epsilon=1.0, delta=1e-6)
    log = shared / f"ledger.db{end}"
    log.touch(0o666)
    os.chown(log, STRANGER, STRANGER)
    with pytest.raises(LedgerUnavailable, match="belongs to another user"):
        ledger.open_table("others", epsilon=1.0, delta=1e-6)
    assert log.read_bytes() == b""
    log.unlink()
    ledger.open_table("others", epsilon=1.0, delta=1e-6)


@BY_ROOT
def test_a_log_that_another_user_puts_there_later_shows_nothing(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the check and the first write, that user may be faster."""
    ledger = Ledger(shared / "ledger.db", create=True)
    ledger.open_table("people", epsilon=1.0, delta=1e-6)
    log, connect = shared / "ledger.db-journal", sqlite3.connect

    def late(*given: Any, **options: Any) -> sqlite3.Connection:
        log.touch(0o666)
        os.chown(log, STRANGER, STRANGER)
        os.link(log, shared / "kept")
        made: sqlite3.Connection = connect(*given, **options)
        return made

    monkeypatch.setattr(sqlite3, "connect", late)
    with pytest.raises(LedgerUnavailable, match="belongs to another user"):
        ledger.store.note("entry", 0, b"an answer")
    assert b"people" not in (shared / "kept").read_bytes()


def test_deleted_answers_are_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Previously, they stayed in the file, unless SQLite was compiled to overwrite what it deletes."""
    connect = sqlite3.connect

    def plain(*given: Any, **options: Any) -> sqlite3.Connection:
        made: sqlite3.Connection = connect(*given, **options)
        made.execute("PRAGMA secure_delete=OFF").close()
        return made

    monkeypatch.setattr(sqlite3, "connect", plain)
    ledger = Ledger(tmp_path / "l.db", create=True)
    ledger.store.note("entry", 0, b"an answer")
    assert b"an answer" in (tmp_path / "l.db").read_bytes()
    ledger.store.forget("entry")
    assert b"an answer" not in (tmp_path / "l.db").read_bytes()


def test_the_memory_of_a_ledger_never_goes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Previously, a process could bring an earlier event back while another one remembered a later one; a copy of the
    ledger without the last event then passed.
    """
    if os.name != "posix":
        pytest.skip("this system has no such locks")
    ledger = Ledger(tmp_path / "l.db", create=True)
    for name in ("a", "b", "c"):
        ledger.open_table(name, epsilon=1.0, delta=1e-6)
    rows = ledger.store.read()
    ledger.store.seen_file.unlink()
    names, later = secrets.token_hex, threading.Thread(target=ledger.store._remember, args=(rows,))

    def interrupted(size: int) -> str:
        if not later.ident:
            later.start()
            later.join(0.2)
        return names(size)

    monkeypatch.setattr(secrets, "token_hex", interrupted)
    ledger.store._remember(rows[:2])
    later.join(10)
    assert ledger.store.seen_file.read_text().split()[0].lstrip("0") == "3"
