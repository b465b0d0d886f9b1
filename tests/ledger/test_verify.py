"""Exports and release folders are checked against the ledger: any change is found and named."""

from __future__ import annotations

import copy
import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from espalier.core.cli.main import main
from espalier.core.ledger.export import exported
from espalier.core.ledger.ledger import Ledger
from espalier.core.privacy.accounting import Budget
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release.spend import release
from espalier.core.tables.reading import read_table
from espalier.core.tables.table import Table

SCHEMA = Schema((Column("a", "categorical", ("x", "y")), Column("b", "categorical", ("u", "v"))))
PROJECT = Project("t", SCHEMA, Plan("independent", 1.0, 1e-6))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A ledger with a release, its folder and an export of it."""
    folder = tmp_path_factory.mktemp("ledger")
    ledger = Ledger(folder / "l.db", create=True)
    ledger.open_table("people", epsilon=3.0, delta=1e-6, who="Ada")
    table = Table.encode(read_table(b"a,b\n" + b"x,u\ny,v\n" * 30, "t.csv"), SCHEMA)
    release(PROJECT, table, ledger=ledger.account("people", "Bob")).save(folder / "out")
    (folder / "l.json").write_text(json.dumps(ledger.to_json()))
    return folder


def run(*args):
    try:
        return main(["ledger", "verify", *map(str, args)])
    except SystemExit as stop:
        return stop.code


def test_an_export_is_checked_by_itself_and_against_its_ledger(place, capsys, tmp_path):
    assert run(place / "l.json") == 0
    said = capsys.readouterr().out
    assert "sums and rules verified" in said
    assert "events are missing" in said, "the limits of the check are stated"
    assert run(place / "l.json", "--ledger", place / "l.db") == 0
    assert "ends there too" in capsys.readouterr().out
    events = Ledger(place / "l.db").events()
    (tmp_path / "earlier.json").write_text(json.dumps(exported(events[:-2])))
    assert run(tmp_path / "earlier.json", "--ledger", place / "l.db") == 0
    assert "2 later events" in capsys.readouterr().out

    other = Ledger(tmp_path / "other.db", create=True)
    other.open_table("people", epsilon=3.0, delta=1e-6, who="Eve")
    assert run(place / "l.json", "--ledger", tmp_path / "other.db") == 3
    assert "does not match" in capsys.readouterr().err


def changes():
    def event(**more):
        return lambda d: d["events"][1].update(more)

    def population(**more):
        return lambda d: d["populations"][0].update(more)

    return {
        "a smaller cost": event(rho=0.0001),
        "another plan": event(plan="{}"),
        "a column more": event(more=1),
        "a word for a number": event(rho="0.02"),
        "not a number": event(rho=float("nan")),
        "a list for a name": event(population=["people"]),
        "a smaller sum": population(spent=0.0),
        "another total": population(epsilon=9.0),
        "true for a number": population(rows_per_person=True),
        "a table more": population(tables=["people", "others"]),
        "an entry less": population(entries=[]),
        "an event less": lambda d: d["events"].pop(1),
        "the end is cut off, but the sums are not": lambda d: d["events"].pop(),
        "another order": lambda d: d["events"].reverse(),
        "an event that is none": lambda d: d["events"].append(3),
        "a part that cost less": lambda d: d["populations"][0]["entries"][0]["parts"][0].update(rho=0.0),
    }


@pytest.mark.parametrize("how", changes())
def test_whatever_is_changed_in_an_export_is_seen(place, tmp_path, capsys, how):
    data = copy.deepcopy(json.loads((place / "l.json").read_text()))
    changes()[how](data)
    (tmp_path / "l.json").write_text(json.dumps(data))
    assert run(tmp_path / "l.json") == 3
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert "Traceback" not in lines[0]


def test_an_export_whose_hashes_were_made_anew_shows_beside_its_ledger(place, tmp_path, capsys):
    first, *rest = Ledger(place / "l.db").events()
    forged = [replace(first, who="Eve")]
    for event in rest:
        forged.append(replace(event, previous=forged[-1].hash))
    (tmp_path / "l.json").write_text(json.dumps(exported(forged)))
    assert run(tmp_path / "l.json") == 0, "on its own, this is a valid ledger"
    assert run(tmp_path / "l.json", "--ledger", place / "l.db") == 3
    assert "rewritten" in capsys.readouterr().err


def test_an_export_from_before_draws_had_a_delta_still_holds(place, tmp_path):
    data = json.loads((place / "l.json").read_text())
    parts = [part for entry in data["populations"][0]["entries"] for part in entry["parts"]]
    new = ("delta_for_draws", "delta_spent", "delta_left", "delta_reserved", "delta_counted")
    removed = [one.pop(key, None) for one in (*data["populations"], *data["populations"][0]["entries"]) for key in new]
    removed += [part.pop("delta") for part in parts]
    assert removed.count(0.0) == 5 + len(parts)
    (tmp_path / "l.json").write_text(json.dumps(data))
    assert run(tmp_path / "l.json") == 0


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 100_000, '{"format": "espalier-ledger/1"}', "\xff", "1"])
def test_what_is_no_export_is_bad_input(tmp_path, capsys, text):
    (tmp_path / "l.json").write_text(text, "latin-1")
    assert run(tmp_path / "l.json") == 2
    assert run(tmp_path / "nothing.json") == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 2


def copied(place, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    for file in (place / "out").iterdir():
        (out / file.name).write_bytes(file.read_bytes())
    return out


def test_a_release_is_checked_against_its_ledger(place, tmp_path, capsys):
    out = copied(place, tmp_path)
    where = ("--ledger", place / "l.db")
    assert run(out, *where) == 0
    entry = json.loads((out / "release.json").read_text())["ledger"]["entry"]
    assert f"entry {entry} of people" in capsys.readouterr().out
    (out / "notes.txt").write_text("other files in the folder are ignored")
    assert run(out, *where) == 0

    (out / "synthetic.csv").write_text("a,b\nx,u\n")
    assert run(out, *where) == 3
    assert "synthetic.csv was changed" in capsys.readouterr().err
    (out / "synthetic.csv").unlink()
    assert run(out, *where) == 2
    assert "not a complete release" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"chain": "0" * 64}, "rewritten"),
        ({"entry": "nobody"}, "claims to be entry 'nobody'"),
        (None, "not recorded"),
    ],
)
def test_a_release_that_the_ledger_does_not_know(place, tmp_path, capsys, change, text):
    out = copied(place, tmp_path)
    facts = json.loads((out / "release.json").read_text())
    facts["ledger"] = {**facts["ledger"], **change} if change else None
    (out / "release.json").write_text(json.dumps(facts))
    assert run(out, "--ledger", place / "l.db") == 3
    assert text in capsys.readouterr().err


def test_a_release_whose_end_the_ledger_was_never_told(place, tmp_path, capsys):
    ledger = Ledger(tmp_path / "l.db", create=True)
    ledger.open_table("people", epsilon=3.0, delta=1e-6)
    kept = ledger.account("people").reserve(PROJECT, Budget.of(PROJECT.plan, None), b"d")
    out = copied(place, tmp_path)
    facts = json.loads((out / "release.json").read_text())
    (out / "release.json").write_text(json.dumps({**facts, "ledger": kept.facts()}))
    assert run(out, "--ledger", Path(tmp_path / "l.db")) == 3
    assert "cannot be checked" in capsys.readouterr().err


def test_further_files_of_a_release_are_kept_taken_and_checked(tmp_path, capsys):
    table = Table.encode(read_table(b"a,b\n" + b"x,u\ny,v\n" * 30, "t.csv"), SCHEMA)
    ledger = Ledger(tmp_path / "l.db", create=True)
    ledger.open_table("people", epsilon=3.0, delta=1e-6)
    reservation = ledger.account("people").reserve(PROJECT, Budget.of(PROJECT.plan, None), b"d")
    facts = release(PROJECT, table).to_json()
    files = {**release(PROJECT, table).files, "copies/01.csv.gz": b"1", "copies/02.csv.gz": b"2", "questions.csv": b"q"}
    files["release.json"] = json.dumps({**facts, "ledger": reservation.facts()}).encode()
    assert reservation.spend(0.001, files) == ""
    out = tmp_path / "out"
    assert main(["ledger", "take", "--ledger", str(tmp_path / "l.db"), reservation.entry.id, "--out", str(out)]) == 0
    assert {p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_file()} == set(files)
    assert run(out, "--ledger", tmp_path / "l.db") == 0
    lines = subprocess.run(
        "find * -type f ! -name 'statement.*' | LC_ALL=C sort | xargs sha256sum | sha256sum",
        shell=True,
        cwd=out,
        capture_output=True,
    ).stdout.decode()
    assert lines.split()[0] == ledger.population_of("people").entries[0].released
    (out / "copies" / "01.csv.gz").write_bytes(b"2")
    (out / "copies" / "03.csv.gz").write_bytes(b"3")
    (out / "questions.csv").unlink()
    capsys.readouterr()
    assert run(out, "--ledger", tmp_path / "l.db") == 3
    assert "copies/01.csv.gz, copies/03.csv.gz, questions.csv were changed" in capsys.readouterr().err
