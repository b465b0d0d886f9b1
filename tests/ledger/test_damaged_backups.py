"""A damaged backup or memory leads to a message, and leaves no incomplete ledger behind."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from espalier.core.cli.main import main
from espalier.core.errors import LedgerError
from espalier.core.ledger.ledger import Ledger
from espalier.core.server import backup as backup_module
from espalier.core.server.backup import back_up

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def backup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The backup of a ledger that is gone, on a machine that never saw it."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "first"))
    Ledger(tmp_path / "old.db", create=True).open_table("register", epsilon=3, delta=1e-9)
    back_up(str(tmp_path / "old.db"), tmp_path / "backup")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "second"))
    return tmp_path / "backup"


def changed(backup: Path, name: str, data: bytes) -> None:
    """Replace a file in a backup, and its digest."""
    (backup / name).write_bytes(data)
    facts = json.loads((backup / "backup.json").read_text())
    facts["sha256"][name] = hashlib.sha256(data).hexdigest()
    (backup / "backup.json").write_text(json.dumps(facts))


def refused(backup: Path, new: Path, capsys: pytest.CaptureFixture[str], why: str) -> None:
    assert main(["restore", str(backup), "--ledger", str(new)]) == 2
    assert why in capsys.readouterr().err
    assert not new.exists(), "a ledger without its memories would not notice an earlier copy"


@pytest.mark.parametrize("text", [b"", b"x y", b"\xff\xfe", b"7"])
def test_a_damaged_memory_of_the_machine_or_of_the_backup_is_named(text, backup, tmp_path, capsys):
    memory = tmp_path / "new.db.seen"
    memory.write_bytes(text)
    refused(backup, tmp_path / "new.db", capsys, "Move it elsewhere first")
    memory.unlink()
    (there,) = {path.relative_to(backup).as_posix() for path in backup.glob("memories/old*")}
    changed(backup, there, text)
    refused(backup, tmp_path / "new.db", capsys, "Move it elsewhere first")


@pytest.mark.parametrize("data", [b"", b"x" * 100])
def test_a_damaged_database_is_refused(data, backup, tmp_path, capsys):
    changed(backup, "ledger.dump", data)
    refused(backup, tmp_path / "new.db", capsys, "no readable ledger")


KILLED = """
import os, sys
from espalier.core.cli.main import main
from espalier.core.server import backup
backup._first_hash = lambda *_: os._exit(9)  # the database is in its place
main(sys.argv[1:])
"""


def test_a_restore_that_is_killed_leaves_no_ledger_without_a_memory(backup, tmp_path, monkeypatch):
    """Previously, the ledger of an older backup was accepted, although a later memory was given."""
    old, new = str(tmp_path / "old.db"), str(tmp_path / "new.db")
    Ledger(old).open_table("later", epsilon=3, delta=1e-9)
    back_up(old, tmp_path / "later", memories_only=True)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "third"))
    given = ["restore", str(backup), "--memories", str(tmp_path / "later"), "--ledger", new]
    done = subprocess.run([sys.executable, "-c", KILLED, *given], cwd=ROOT, check=False)
    assert done.returncode == 9
    assert Path(new).exists()
    with pytest.raises(LedgerError, match="restored to an earlier copy"):
        Ledger(new).events()


def test_a_restore_that_fails_is_undone(backup, tmp_path, monkeypatch):
    """Previously, an error of the disk left the ledger there."""
    memory, new = tmp_path / "new.db.seen", tmp_path / "new.db"
    for before in (None, "0" * 20 + " " + "0" * 64 + "\n"):
        if before is not None:
            memory.write_text(before)
        monkeypatch.setattr("espalier.core.server.backup._first_hash", lambda *_: os.stat("/nowhere/at/all"))
        assert main(["restore", str(backup), "--ledger", str(new)]) == 2
        assert not new.exists()
        assert (memory.read_text() if memory.exists() else None) == before
    monkeypatch.undo()


def half_written(database: Path) -> bytes:
    """Return the journal that SQLite leaves if the process is killed while it changes a database."""
    with closing(sqlite3.connect(database, isolation_level=None)) as there:
        there.execute("PRAGMA cache_size = 2")
        there.execute("BEGIN IMMEDIATE")
        there.execute("CREATE TABLE further (data BLOB)")
        for _ in range(50):
            there.execute("INSERT INTO further VALUES (zeroblob(3000))")
        return Path(f"{database}-journal").read_bytes()


@pytest.mark.usefixtures("backup")
def test_a_restore_to_where_a_killed_process_left_a_journal_is_refused(tmp_path, monkeypatch, capsys):
    """Previously, SQLite applied the journal of the lost database to the restored ledger, which was then damaged."""
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    journal = half_written(old)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "first"))
    Ledger(old).open_table("later", epsilon=3, delta=1e-9)
    back_up(str(old), tmp_path / "later")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "third"))
    for end in ("-journal", "-wal", "-shm"):
        left = Path(f"{new}{end}")
        left.write_bytes(journal)
        refused(tmp_path / "later", new, capsys, f"new.db{end} was left by a database that used to be at this location")
        assert left.read_bytes() == journal
        left.unlink()
    Path(f"{new}-journal").touch()  # a ledger that was moved away leaves an empty one
    assert main(["restore", str(tmp_path / "later"), "--ledger", str(new)]) == 0
    assert Ledger(new).verify() == []


@pytest.mark.parametrize("name", ["new.db", "new?a=b.db", "new#%20.db"])
def test_a_whole_backup_is_restored(name, backup, tmp_path):
    before = {*tmp_path.iterdir()}
    assert main(["restore", str(backup), "--ledger", str(tmp_path / name)]) == 0
    assert Ledger(tmp_path / name).verify() == []
    assert {p.name for p in {*tmp_path.iterdir()} - before} >= {name, f"{name}.seen"}


def test_a_backup_holds_no_stored_answer(tmp_path, monkeypatch):
    """Previously, a restore that was killed before it deleted them left answers that could be drawn a second time."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    ledger = Ledger(tmp_path / "l.db", create=True)
    ledger.open_table("register", epsilon=3, delta=1e-9)
    for place in (0, 1):
        ledger.store.note("entry", place, b"a noisy answer")
    back_up(str(tmp_path / "l.db"), tmp_path / "backup")
    assert b"a noisy answer" not in (tmp_path / "backup" / "ledger.dump").read_bytes()
    assert ledger.store.unfinished() == {"entry": 1}


@pytest.mark.parametrize("listed", ["/dev/zero", "../pipe", "pipe", "nothing"])
def test_nothing_outside_a_backup_is_read_and_no_pipe(listed, backup, tmp_path, capsys):
    """Previously, the command never ended."""
    os.mkfifo(tmp_path / "pipe")
    if listed == "pipe":
        os.mkfifo(backup / "pipe")
    facts = json.loads((backup / "backup.json").read_text())
    facts["sha256"][listed] = "0" * 64
    (backup / "backup.json").write_text(json.dumps(facts))
    refused(backup, tmp_path / "new.db", capsys, "is not a backup, or files are missing or were added")


def test_a_file_that_was_added_is_refused(backup, tmp_path, capsys):
    (backup / "memories" / "other.seen").write_text("9" * 20 + " " + "0" * 64)
    refused(backup, tmp_path / "new.db", capsys, "were added")


def test_a_list_of_files_that_is_nested_deeply_is_refused(backup, tmp_path, capsys):
    """Previously, this ended in a traceback."""
    (backup / "backup.json").write_text("[" * 200_000)
    refused(backup, tmp_path / "new.db", capsys, "backup.json is not JSON")


def test_a_pipe_among_the_shared_releases_is_not_read(tmp_path, monkeypatch):
    """Previously, the backup waited for it."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "first"))
    Ledger(tmp_path / "old.db", create=True).open_table("register", epsilon=3, delta=1e-9)
    (tmp_path / "shelf").mkdir()
    (tmp_path / "shelf" / "b.zip").write_bytes(b"a release")
    os.mkfifo(tmp_path / "shelf" / "a.zip")
    back_up(str(tmp_path / "old.db"), tmp_path / "backup", tmp_path / "shelf")
    assert [path.name for path in (tmp_path / "backup" / "shelf").iterdir()] == ["b.zip"]


def test_a_disk_that_is_full_leads_to_a_message_and_leaves_no_backup(tmp_path, monkeypatch, capsys):
    """Previously, the copy of the database ended in a traceback."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "first"))
    Ledger(tmp_path / "l.db", create=True).open_table("register", epsilon=3, delta=1e-9)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, hard))
    try:
        status = main(["backup", str(tmp_path / "backup"), "--ledger", str(tmp_path / "l.db")])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert status == 2
    assert (
        "no backup was made, because the database could not be copied: the disk accepts no" in capsys.readouterr().err
    )
    assert not (tmp_path / "backup").exists()


def test_a_backup_undoes_what_a_killed_release_left_while_it_was_made(tmp_path, monkeypatch):
    """Previously, the copy was opened for reading only, so it failed."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "first"))
    ledger = Ledger(tmp_path / "l.db", create=True)
    ledger.open_table("register", epsilon=3, delta=1e-9)
    memories = backup_module._memories

    def killed(ledger):
        found = memories(ledger)
        (tmp_path / "l.db-journal").write_bytes(half_written(tmp_path / "l.db"))
        return found

    monkeypatch.setattr(backup_module, "_memories", killed)
    back_up(str(tmp_path / "l.db"), tmp_path / "backup")
    monkeypatch.undo()
    with closing(sqlite3.connect(tmp_path / "backup" / "ledger.dump")) as copy:
        assert copy.execute("SELECT count(*) FROM espalier_events").fetchone() == (1,)


def test_a_restore_never_removes_a_ledger_that_another_process_made_meanwhile(backup, tmp_path, monkeypatch, capsys):
    """Previously, it removed that ledger, to undo itself."""
    new, load = tmp_path / "new.db", backup_module._load

    def later(dump, url, path):
        new.write_bytes(b"another ledger")
        load(dump, url, path)

    monkeypatch.setattr(backup_module, "_load", later)
    assert main(["restore", str(backup), "--ledger", str(new)]) == 2
    assert f"a ledger already exists at {new}" in capsys.readouterr().err
    assert new.read_bytes() == b"another ledger"
    assert not (tmp_path / "new.db.seen").exists()
