"""A ledger that someone else made, or whose budget is nearly spent, leads to a message; its address shows no
password."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from fractions import Fraction
from pathlib import Path

import pytest

from espalier.core.cli.main import main
from espalier.core.errors import LedgerError, LedgerUnavailable, ProjectError
from espalier.core.ledger.events import START, Event
from espalier.core.ledger.ledger import Ledger
from espalier.core.ledger.memory import head as _head
from espalier.core.ledger.population import Population
from espalier.core.ledger.replay import replay
from espalier.core.ledger.verify_copies import check_export, check_release
from espalier.core.privacy.accounting import rho_of, rounded_up

COMMANDS = (["list"], ["verify"], ["export"], ["export", "--format", "json"], ["take", "abcd", "--out", "o"])
TYPES = {"text": "abc", "nothing": None, "float": 1.5, "blob": b"1"}
VALUES = {
    "half a letter": {"plan": '{"person": "\\ud800"}'},
    "no rows per person": {"rows_per_person": 0},
    "rows per person below 0": {"rows_per_person": -5},
    "more rows per person than a plan has": {"rows_per_person": 2**62},
    "another relation of neighbours": {"neighbors": "none"},
    "a tiny total": {"rho": 5e-324},
    "an infinite sum": {"rho_before": float("inf")},
    "a sum below 0": {"rho_after": -1.0},
    "a sum that no ledger reaches": {"rho_before": 1e308},
    "an entry of an opened table": {"entry": "e"},
    "no number in the plan": {"plan": '{"person": null, "x": NaN}'},
    "an infinite number in the plan": {"plan": '{"person": null, "x": 1e999}'},
}


def crafted(path: Path, changes: dict, signed: bool) -> Path:
    """Return a ledger of one event with ``changes``, in tables without types; with ``signed``, all hashes are right."""
    made = Ledger(path.with_name("good.db"), create=True)
    made.open_table("register", epsilon=3, delta=1e-9)
    row = {**made.events()[0].row(), **changes}
    if signed:
        row["hash"] = Event(**{key: value for key, value in row.items() if key != "hash"}).hash
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE espalier_meta (key, value)")
        connection.execute(f"CREATE TABLE espalier_events ({', '.join(row)})")
        connection.execute("CREATE TABLE espalier_releases (hash, zip)")
        connection.execute(f"INSERT INTO espalier_events VALUES ({', '.join('?' * len(row))})", [*row.values()])
        meta = [("version", "4"), ("head", _head(1, row["hash"]))]
        connection.executemany("INSERT INTO espalier_meta VALUES (?, ?)", meta)
    connection.close()
    return path


def refused(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in COMMANDS:
        line = [str(tmp_path / "o") if word == "o" else word for word in command]
        assert main(["ledger", *line, "--ledger", str(path)]) == 3, line
        assert "tampered with" in capsys.readouterr().err


@pytest.mark.parametrize("odd", [None, b"1", 7])
def test_a_first_event_without_a_hash_ends_in_a_message(odd, tmp_path, monkeypatch, capsys):
    """Previously, this ended in a traceback: the first hash was used to name a file, but only the types of the last
    event had been checked."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    path = crafted(tmp_path / "l.db", {}, signed=True)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TEMP TABLE later AS SELECT * FROM espalier_events")
        connection.execute("UPDATE later SET seq = 2")
        connection.execute("INSERT INTO espalier_events SELECT * FROM later")
        connection.execute("UPDATE espalier_events SET hash = ? WHERE seq = 1", [odd])
        head = connection.execute("SELECT hash FROM espalier_events WHERE seq = 2").fetchone()[0]
        connection.execute("UPDATE espalier_meta SET value = ? WHERE key = 'head'", [_head(2, head)])
    connection.close()
    refused(path, tmp_path, capsys)


def test_a_damaged_name_of_a_table_ends_in_a_message(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    Ledger(tmp_path / "l.db", create=True).open_table("register", epsilon=3, delta=1e-9)
    damaged = (tmp_path / "l.db").read_bytes().replace(b"espalier_releases", b"espalier_rele\xff\xfees")
    (tmp_path / "l.db").write_bytes(damaged)
    assert main(["ledger", "list", "--ledger", str(tmp_path / "l.db")]) == 2
    assert "it is damaged; restore a backup" in capsys.readouterr().err


@pytest.mark.parametrize("name", TYPES)
def test_an_event_with_another_number_ends_in_a_message(name, tmp_path, monkeypatch, capsys):
    """Previously, each such event ended in a traceback."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    refused(crafted(tmp_path / "l.db", {"seq": TYPES[name]}, signed=False), tmp_path, capsys)


@pytest.mark.parametrize("name", VALUES)
def test_an_impossible_unit_or_total_is_refused_although_every_hash_holds(name, tmp_path, monkeypatch, capsys):
    """Previously, each was accepted or ended in a traceback."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    refused(crafted(tmp_path / "l.db", VALUES[name], signed=True), tmp_path, capsys)


def test_names_in_a_crafted_ledger_do_not_steer_the_terminal(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    odd = {"population": "p\x1b[2J", "table_name": "t\x1b[2J", "who": "w\x1b[2J", "at": "a\x1b[2J"}
    path = crafted(tmp_path / "l.db", odd, signed=True)
    for command in (["list"], ["open", "--table", "new", "--population", "p\x1b[2J"]):
        main(["ledger", *command, "--ledger", str(path)])
        told = capsys.readouterr()
        assert told.out or told.err
        assert "\x1b" not in told.out + told.err


def test_a_kept_release_that_is_no_archive_ends_in_a_message(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    ledger = Ledger(tmp_path / "l.db", create=True)
    ledger.open_table("register", epsilon=3, delta=1e-9)
    with sqlite3.connect(tmp_path / "l.db") as connection:
        connection.execute("INSERT INTO espalier_releases VALUES ('abc', 'text')")
    connection.close()
    assert ledger.verify() == ["a stored release belongs to no entry: abc"]
    from espalier.core.errors import LedgerError

    with pytest.raises(LedgerError, match="not an archive"):
        ledger.files("abc")


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("left", [1e-10, 1.85e-13, 1e-17, 1e-20])
def test_what_rounding_leaves_of_a_budget_allows_no_further_plan(left, delta):
    """A release spends slightly less than its plan's ρ; at δ = 1e-6, listing that ledger previously ended in a
    traceback."""
    people = Population("p", 1.0, delta, left, "replace-one", 1, "", "", "", ())
    assert 0 <= people.largest() < 1e-3


@pytest.mark.parametrize("where", ["u@127.0.0.1:1/d?password=s3cret", "127.0.0.1:1/d?user=u&sslpassword=s3cret"])
def test_a_password_among_a_url_s_options_is_not_shown(where):
    with pytest.raises(LedgerUnavailable) as said:
        Ledger(f"postgresql://{where}")
    assert "s3cret" not in str(said.value)


ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
COMPUTED = {
    "events": [
        "ALTER TABLE espalier_events RENAME TO kept",
        f"CREATE VIEW espalier_events AS {ENDLESS} SELECT kept.* FROM kept, c",
    ],
    "releases": [
        "DROP TABLE espalier_releases",
        f"CREATE VIEW Espalier_Releases AS {ENDLESS} SELECT 'x' AS hash, x'00' AS zip FROM c",
    ],
    "a large column": ["ALTER TABLE espalier_events ADD COLUMN more AS (zeroblob(900000000))"],
    "a virtual table": ["DROP TABLE espalier_journal", "CREATE VIRTUAL TABLE espalier_journal USING rtree(a, b, c)"],
}


@pytest.mark.parametrize("statements", COMPUTED.values(), ids=COMPUTED)
def test_a_ledger_that_computes_its_rows_is_refused(tmp_path, monkeypatch, statements):
    """Previously, `ledger list` never ended on a file of 50 kB."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    Ledger(tmp_path / "l.db", create=True).open_table("register", epsilon=3, delta=1e-9)
    with sqlite3.connect(tmp_path / "l.db") as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()
    with pytest.raises(LedgerUnavailable, match="has computed columns where a ledger stores values"):
        Ledger(tmp_path / "l.db")


def test_a_url_whose_options_a_ledger_would_ignore_is_refused():
    """Previously, the ledger was in a different schema from the one that its name stated."""
    with pytest.raises(LedgerUnavailable, match="contains options, which Espalier does not use"):
        Ledger("postgresql://u@127.0.0.1:1/d?options=-csearch_path%3Db")


def test_a_port_that_is_no_number_ends_in_a_message():
    with pytest.raises(LedgerUnavailable, match="cannot be read"):
        Ledger("postgresql://u:s3cret@127.0.0.1:port/d")


def test_a_file_of_something_else_stays_as_it_is(tmp_path, monkeypatch, capsys):
    """Previously, a table named as a ledger lost its permissions, a database lost its journal mode, and a memory was
    overwritten."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    table, other, place, memory = (tmp_path / name for name in ("t.csv", "other.db", "l.db", "l.db.seen"))
    table.write_text("a,b\n1,2\n")
    with sqlite3.connect(other) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE bookmarks (url)")
    connection.close()
    memory.write_text("my notes\n")
    files = (table, other, memory)
    for file in files:
        file.chmod(0o644)
    before = [file.read_bytes() for file in files]
    for file, status in ((table, 2), (other, 2), (place, 3)):
        for command in (["open", "--table", "x", "--epsilon", "1", "--delta", "1e-9"], ["list"]):
            assert main(["ledger", *command, "--ledger", str(file)]) == status, (file, command)
            assert "Traceback" not in capsys.readouterr().err
    assert [file.read_bytes() for file in files] == before
    assert [file.stat().st_mode & 0o777 for file in files] == [0o644] * 3


def test_a_release_folder_with_pipes_or_huge_files_is_refused_unread(tmp_path, monkeypatch):
    """Previously, `ledger verify DIR` waited for a pipe, and read files of any size into memory."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    ledger, folder = Ledger(tmp_path / "l.db", create=True), tmp_path / "o"
    folder.mkdir()
    (folder / "release.json").write_text("{}")
    with (folder / "synthetic.csv").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ProjectError, match="more than 1 GiB"):
        check_release(folder, ledger)
    (folder / "release.json").unlink()
    os.mkfifo(folder / "release.json")
    with pytest.raises(ProjectError, match=r"contains no release\.json"):
        check_release(folder, ledger)
    with pytest.raises(ProjectError, match="is not a file"):
        check_export(folder / "release.json")


def test_thousands_of_draws_in_one_entry_are_added_up_once():
    """Previously, all draws of an entry were added up again at each of them, which took hours for an export of 64 MiB.
    The sums are checked to the last digit, as before.
    """
    events: list[Event] = []

    def add(**fields):
        previous = events[-1].hash if events else START
        common = {"at": "2026-01-01T00:00Z", "who": "x", "population": "t", "table_name": "t"}
        events.append(Event(seq=len(events) + 1, previous=previous, **common, **fields))

    unit = {"neighbors": "replace-one", "rows_per_person": 1, "delta": 1e-9}
    rho, drawn, draws = rho_of(3.0, 1e-9), Fraction(0), 4000
    plan = json.dumps({"person": None, "random": "0"})
    add(kind="open", epsilon=3.0, rho=rho, rho_before=0.0, rho_after=0.0, plan=plan, **unit)
    plan = json.dumps({"project": "p", "plan": {}, "another_unit": False})
    add(kind="reserve", entry="e", epsilon=1.0, rho=rho, rho_before=0.0, rho_after=rho, plan=plan, **unit)
    for _ in range(draws):
        before = rounded_up(drawn)
        drawn += Fraction(rho / 5000)
        add(kind="measure", entry="e", rho=rho / 5000, rho_before=before, rho_after=rounded_up(drawn))
    same = {"rho_before": rounded_up(drawn), "rho_after": rounded_up(drawn)}
    add(kind="look", entry="e", rho=rho / 5000, **same)  # other people, and less than the others' sum
    start = time.process_time()
    (population,) = replay(events).values()
    assert time.process_time() - start < 5
    assert len(population.entries[0].parts) == draws + 1
    add(kind="measure", entry="e", rho=rho / 5000, **same)
    with pytest.raises(LedgerError, match="amounts drawn"):
        replay(events)
