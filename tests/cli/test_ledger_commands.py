"""The ledger on the command line, as a steward uses it."""

from __future__ import annotations

import csv
import json
from types import SimpleNamespace
from typing import Any

import pytest

from espalier.core.cli import ledger as ledger_commands
from espalier.core.cli.main import main
from espalier.core.errors import ProjectError
from espalier.core.ledger.ledger import Ledger
from espalier.core.privacy.accounting import Budget
from espalier.core.project.file import Project
from espalier.core.statement.keys import PASSPHRASE, new_key
from verifier.check import verify

PROJECT: dict[str, Any] = {
    "format": "espalier-project/1",
    "name": "t",
    "schema": [{"name": "a", "kind": "categorical", "categories": ["x", "y"]}],
    "plan": {"method": "independent", "epsilon": 1.0, "delta": 1e-6},
}


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.json").write_text(json.dumps(PROJECT))
    (tmp_path / "t.csv").write_text("a\n" + "x\ny\n" * 30)
    return tmp_path


def run(*args):
    try:
        return main([str(a) for a in args])
    except SystemExit as stop:
        return stop.code


@pytest.mark.usefixtures("work")
def test_a_total_with_a_large_delta_is_refused(capsys):
    assert run("ledger", "open", "--ledger", "l.db", "--table", "t", "--epsilon", "3", "--delta", "0.01") == 2
    assert "must not be above 0.001" in capsys.readouterr().err


def spend(out, *more):
    return run("release", "p.json", "--data", "t.csv", "--out", out, *more)


def test_open_release_list_verify_export_take(work, capsys):
    where = ("--ledger", "l.db")
    opened = ("ledger", "open", *where, "--table", "people", "--epsilon", "1.5", "--delta", "1e-6", "--by", "Ada")
    assert run(*opened) == 0
    assert "one more plan with ε up to 1.5" in capsys.readouterr().out
    assert run(*opened) == 3
    assert "set once" in capsys.readouterr().err
    assert run("plan", "p.json", *where, "--table", "people") == 0
    assert "would leave" in capsys.readouterr().out
    assert run("plan", "p.json", *where, "--table", "people", "--json") == 0
    assert json.loads(capsys.readouterr().out)["ledger"]["fits"] is True
    assert spend("o", *where, "--table", "people", "--by", "Bob", "--note", "for the board") == 0
    entry = json.loads((work / "o" / "release.json").read_text())["ledger"]["entry"]
    said = capsys.readouterr().err
    assert f"entry {entry}" in said
    assert "is left, enough for one more plan with ε up to 1." in said

    assert spend("o2", *where, "--table", "people") == 0
    capsys.readouterr()
    (work / "t.csv").unlink()
    assert spend("o3", *where, "--table", "people") == 3, "refused before the table is read"
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert "the ledger refuses" in lines[0]
    assert not (work / "o3").exists()
    assert run("plan", "p.json", *where, "--table", "people") == 0
    assert "would be refused" in capsys.readouterr().out

    assert run("ledger", "list", *where) == 0
    listed = capsys.readouterr().out
    assert entry in listed
    assert "for the board" in listed
    assert "by Bob" in listed
    assert "one-way, 1 draw" in listed
    assert run("ledger", "verify", *where) == 0
    assert "7 events" in capsys.readouterr().out
    assert run("ledger", "export", *where, "--format", "json", "--out", "l.json") == 0
    assert json.loads((work / "l.json").read_text())["format"] == "espalier-ledger/1"
    assert run("ledger", "export", *where, "--out", "l.csv") == 0
    with (work / "l.csv").open(newline="") as file:
        kinds = [r["kind"] for r in csv.DictReader(file)]
    assert kinds == ["open", "reserve", "measure", "spend", "reserve", "measure", "spend"]
    assert run("ledger", "export", *where, "--out", "l.csv") == 2
    assert "overwritten" in capsys.readouterr().err
    assert run("ledger", "take", *where, entry, "--out", "again") == 0
    for file in (work / "o").iterdir():
        assert (work / "again" / file.name).read_bytes() == file.read_bytes()
    assert run("ledger", "take", *where, entry[:8], "--out", "short") == 0
    assert (work / "short" / "release.json").read_bytes() == (work / "o" / "release.json").read_bytes()
    capsys.readouterr()
    assert run("ledger", "take", *where, entry[:3], "--out", "x") == 2
    assert "at least 4 digits" in capsys.readouterr().err
    assert not (work / "x").exists()


def test_an_entry_is_told_by_its_first_digits_where_they_tell_it_from_others(monkeypatch):
    known = {name: SimpleNamespace(id=name) for name in ("12345678", "12349999", "abcdef00")}
    monkeypatch.setattr(ledger_commands, "_entries", lambda ledger: known)
    one = SimpleNamespace(name="l.db")
    assert ledger_commands.entry_of(one, "abcd").id == "abcdef00"
    assert ledger_commands.entry_of(one, "12345").id == "12345678"
    with pytest.raises(ProjectError, match="2 entries begin with '1234' .*give more digits"):
        ledger_commands.entry_of(one, "1234")
    with pytest.raises(ProjectError, match="no entry '9999'"):
        ledger_commands.entry_of(one, "9999")


def test_names_do_not_steer_the_terminal(work, capsys):
    (work / "p.json").write_text(json.dumps({**PROJECT, "name": "a\x1b[31mb"}))
    assert run("ledger", "open", "--ledger", "l.db", "--table", "t", "--epsilon", "3", "--delta", "1e-6") == 0
    assert spend("o", "--ledger", "l.db", "--table", "t") == 0
    capsys.readouterr()
    assert run("ledger", "list", "--ledger", "l.db") == 0
    listed = capsys.readouterr().out
    assert "\x1b" not in listed
    assert "[31mb" in listed


@pytest.mark.usefixtures("work")
def test_the_unit_that_was_fixed(capsys):
    assert run("ledger", "open", "--ledger", "l.db", "--table", "t", "--epsilon", "3", "--delta", "1e-9") == 0
    assert spend("o", "--ledger", "l.db", "--table", "t") == 3
    assert "fixed delta at 1e-09" in capsys.readouterr().err


def test_a_plan_whose_draws_need_more_delta_does_not_fit(work, capsys):
    """Previously, `plan` said that it fits, and `release` was refused."""
    schema = [*PROJECT["schema"], {"name": "w", "kind": "categorical", "at_most": 5}]
    plan = {**PROJECT["plan"], "method": "mst", "schema_share": 0.3}
    (work / "p.json").write_text(json.dumps({**PROJECT, "schema": schema, "plan": plan}))
    where = ("--ledger", "l.db", "--table", "t")
    assert run("ledger", "open", *where, "--epsilon", "9", "--delta", "1e-6") == 0
    capsys.readouterr()
    assert run("plan", "p.json", "--rows", "60", *where) == 0
    assert "for its draws, which the budget does not have left, and would be refused" in capsys.readouterr().out
    assert run("plan", "p.json", "--rows", "60", "--json", *where) == 0
    left = json.loads(capsys.readouterr().out)["ledger"]
    assert (left["fits"], left["like_it_after"]) == (False, 0)


def test_another_person_column_is_refused_unless_it_is_said(work, capsys):
    where = ("--ledger", "l.db", "--table", "t")
    unit = ("--neighbors", "add-remove", "--rows-per-person", "2")
    assert run("ledger", "open", *where, "--epsilon", "9", "--delta", "1e-6", *unit, "--person", "pid") == 0
    assert "t: 2 rows per person, enforced by the person column 'pid'" in capsys.readouterr().out
    assert run("ledger", "open", "--ledger", "l.db", "--table", "s", "--population", "t") == 0
    (work / "t.csv").write_text("pid,visit,a\n" + "".join(f"p{i // 2},v{i},x\n" for i in range(60)))
    plan = {**PROJECT["plan"], "neighbors": "add-remove", "rows_per_person": 2, "rows": 60}

    def planned(person):
        (work / "p.json").write_text(json.dumps({**PROJECT, "plan": {**plan, "person": person}}))

    planned("pid")
    assert spend("o1", *where) == 0
    for person in ("visit", None):
        planned(person)
        capsys.readouterr()
        assert spend(f"o-{person}", *where) == 3
        (line,) = capsys.readouterr().err.strip().splitlines()
        assert "fixed the person column 'pid'" in line
        assert "--another-unit" in line
        assert not (work / f"o-{person}").exists()
    assert run("plan", "p.json", *where) == 3
    planned("visit")
    assert spend("o2", *where, "--another-unit") == 0
    assert json.loads((work / "o2" / "release.json").read_text())["ledger"]["unit"]["another_unit"] is True
    capsys.readouterr()
    assert run("ledger", "list", "--ledger", "l.db") == 0
    listed = capsys.readouterr().out
    assert "s: 2 rows per person, promised; no person column enforces it" in listed
    assert listed.count("enforced by the person column 'pid'") == 1, "stated once for the table, not for each release"
    assert "; enforced by the person column 'visit'; a different unit from the table's" in listed
    assert "1 release used a different unit" in listed
    assert run("ledger", "verify", "--ledger", "l.db") == 0


@pytest.mark.usefixtures("work")
def test_a_table_that_another_budget_paid_for_needs_consent(capsys):
    for table in ("t", "copy"):
        where = ("--ledger", "l.db", "--table", table)
        assert run("ledger", "open", *where, "--epsilon", "3", "--delta", "1e-6") == 0
    assert spend("o", "--ledger", "l.db", "--table", "t") == 0
    capsys.readouterr()
    assert spend("o2", *where) == 3
    *_, line = capsys.readouterr().err.strip().splitlines()
    assert "already released as 't'" in line
    assert "--again" in line
    assert Ledger("l.db").population_of("copy").entries == ()
    assert spend("o2", *where, "--again") == 0
    assert "warning: this table was already released" in capsys.readouterr().err
    assert spend("o3", "--ledger", "l.db", "--table", "t") == 3, "and now the other way round"


def test_evaluate_is_recorded_before_what_it_may_steer(work, monkeypatch, capsys):
    where = ("--ledger", "l.db", "--table", "t")
    assert run("ledger", "open", *where, "--epsilon", "9", "--delta", "1e-6") == 0
    assert spend("o", *where) == 0
    capsys.readouterr()
    assert run("evaluate", "o", "--data", "t.csv", "--ledger", "l.db", "--by", "Eve", "--json") == 0
    said = capsys.readouterr()
    assert "recorded a view of diagnostics for t" in said.err
    assert json.loads(said.out)
    assert run("evaluate", "o", "--data", "t.csv") == 0, "another ledger, the default"
    assert "this view of diagnostics is not recorded" in capsys.readouterr().err
    monkeypatch.setenv("ESPALIER_LEDGER", str(work / "l.db"))
    (work / "h.csv").write_text("a\nx\ny\n")
    assert run("evaluate", "o", "--data", "h.csv") == 0, "the release's entry is known"
    assert run("evaluate", "o", "--data", "t.csv", "--table", "x") == 3
    assert spend("o2", *where) == 0
    assert json.loads((work / "o2" / "release.json").read_text())["ledger"]["diagnostics_before"] == 2
    capsys.readouterr()
    assert run("ledger", "list", "--ledger", "l.db") == 0
    listed = capsys.readouterr().out
    assert listed.count("diagnostics viewed before: 2") == 1
    assert "were viewed twice" in listed
    with Ledger("l.db").store._writing():
        monkeypatch.setattr("espalier.core.ledger.database.PATIENCE", 1)
        monkeypatch.setattr("espalier.core.evaluation.evaluate", lambda *_, **__: pytest.fail("looked"))
        assert run("evaluate", "o", "--data", "t.csv") == 2, "what cannot be recorded is not computed"


def test_verify_lists_the_files_that_no_ledger_covers(work, capsys):
    """Previously, a folder whose Parquet file was replaced counted as unchanged."""
    where = ("--ledger", "l.db", "--table", "t")
    assert run("ledger", "open", *where, "--epsilon", "9", "--delta", "1e-6") == 0
    assert spend("o", *where, "--as", "parquet") == 0
    (work / "o" / "synthetic.parquet").write_bytes(b"real rows")
    (work / "o" / "copies" / "deeper").mkdir(parents=True)
    capsys.readouterr()
    assert run("ledger", "verify", "o", "--ledger", "l.db") == 0
    said = capsys.readouterr().out
    assert "so not checked: copies/deeper, statement.json, synthetic.parquet\n" in said


@pytest.mark.parametrize("table", [{}, {"table": "u"}])
def test_the_ledger_knows_whose_table_an_entry_is(work, table, capsys):
    """Previously, the release's folder said so: its author could hide a view from the ledger's readers."""
    for name in ("t", "u"):
        assert run("ledger", "open", "--ledger", "l.db", "--table", name, "--epsilon", "9", "--delta", "1e-6") == 0
    assert spend("o", "--ledger", "l.db", "--table", "t") == 0
    facts = json.loads((work / "o" / "release.json").read_text())
    facts["ledger"] = {"chain": facts["ledger"]["chain"], **table}
    (work / "o" / "release.json").write_text(json.dumps(facts))
    (work / "h.csv").write_text("a\nx\ny\n")
    capsys.readouterr()
    assert run("evaluate", "o", "--data", "h.csv", "--ledger", "l.db") == 0
    assert "recorded a view of diagnostics for t" in capsys.readouterr().err


def test_a_private_table_that_someone_calls_public_is_a_view_too(work, capsys):
    """Previously, the command printed figures of its rows, and no ledger recorded them."""
    schema = [*PROJECT["schema"], {"name": "v", "kind": "numeric", "edges": [0, 5, 10]}]
    plan = {**PROJECT["plan"], "target": "v"}
    (work / "p.json").write_text(json.dumps({**PROJECT, "schema": schema, "plan": plan}))
    for name, rows in (("t", 60), ("h", 80)):
        (work / f"{name}.csv").write_text("a,v\n" + "".join(f"{'xy'[i % 2]},{i % 10}\n" for i in range(rows)))
    where = ("--ledger", "l.db", "--table", "t")
    assert run("ledger", "open", *where, "--epsilon", "9", "--delta", "1e-6") == 0
    assert spend("o", *where) == 0
    assert run("release", "p.json", "--data", "h.csv", "--out", "elsewhere") == 0
    capsys.readouterr()
    given = ("evaluate", "elsewhere", "--data", "h.csv", "--public", "t.csv", "--ledger", "l.db")
    assert run(*given) == 3
    assert "already released as 't'" in capsys.readouterr().err
    assert run(*given, "--table", "t") == 0
    assert "recorded a view of diagnostics for t" in capsys.readouterr().err


@pytest.mark.usefixtures("work")
def test_evaluate_without_any_ledger_makes_none(work, monkeypatch, capsys):
    monkeypatch.setenv("ESPALIER_LEDGER", str(work / "none.db"))
    assert spend("o") == 0
    capsys.readouterr()
    assert run("evaluate", "o", "--data", "t.csv") == 0
    assert capsys.readouterr().err == ""
    assert not (work / "none.db").exists()
    assert run("evaluate", "o", "--data", "t.csv", "--table", "t") == 2


def test_what_an_archive_says_does_not_choose_where_files_go(work, capsys):
    """A writer of the shared ledger adds a file with an absolute name; sums and hashes still hold."""
    ledger = Ledger("l.db", create=True)
    ledger.open_table("t", epsilon=3.0, delta=1e-6)
    project = Project.load(work / "p.json")
    target = work / "theirs.txt"
    reserved = ledger.account("t").reserve(project, Budget.of(project.plan, None), b"d")
    assert reserved.spend(0.0, {str(target): b"theirs"}) == ""
    assert run("ledger", "take", "--ledger", "l.db", reserved.entry.id, "--out", "o") == 3
    assert "does not contain the files of a release" in capsys.readouterr().err
    assert not target.exists()
    assert not (work / "o").exists()
    assert run("ledger", "verify", "--ledger", "l.db") == 3


def test_the_ledger_by_default_is_the_environments(work, monkeypatch, capsys):
    monkeypatch.setenv("ESPALIER_LEDGER", str(work / "mine" / "l.db"))
    assert run("ledger", "open", "--table", "t", "--epsilon", "3", "--delta", "1e-6") == 0
    assert spend("o", "--table", "t") == 0
    assert len(Ledger(work / "mine" / "l.db").population_of("t").entries) == 1
    assert spend("o2") == 0, "without --table nothing is recorded, with a message"
    assert "not recorded in a ledger" in capsys.readouterr().err
    assert len(Ledger(work / "mine" / "l.db").population_of("t").entries) == 1


@pytest.mark.usefixtures("work")
def test_a_folder_that_cannot_be_written_after_paying(monkeypatch, capsys):
    import espalier.core.release.artefact
    from espalier.core.errors import ProjectError

    assert run("ledger", "open", "--ledger", "l.db", "--table", "t", "--epsilon", "3", "--delta", "1e-6") == 0
    full = ProjectError("cannot write to o: No space left on device")

    def disk(*_):
        raise full

    with monkeypatch.context() as patch:
        patch.setattr(espalier.core.release.artefact, "save_files", disk)
        assert spend("o", "--ledger", "l.db", "--table", "t") == 2
    said = capsys.readouterr().err
    assert "No space left" in said
    assert "ledger take" in said
    (entry,) = Ledger("l.db").population_of("t").entries
    assert entry.id in said
    assert run("ledger", "take", "--ledger", "l.db", entry.id, "--out", "o") == 0


@pytest.mark.parametrize("signed", [False, True])
def test_a_long_release_that_is_taken_again_has_all_files_of_its_statement(work, monkeypatch, capsys, signed):
    """Previously, all rows were added to the folder but not to the statement, so the checker refused the folder."""
    monkeypatch.setattr("espalier.core.project.plan.IN_MEMORY", 50)
    monkeypatch.setattr("espalier.core.project.plan.SHOWN", 20)
    monkeypatch.setenv(PASSPHRASE, "secret words")
    new_key(work / "keys" / "k.pem", "secret words")
    key = ("--key", "keys/k.pem") if signed else ()
    assert run("ledger", "open", "--ledger", "l.db", "--table", "t", "--epsilon", "3", "--delta", "1e-6") == 0
    assert spend("o", "--ledger", "l.db", "--table", "t", "--as", "parquet", *key) == 0
    (entry,) = Ledger("l.db").population_of("t").entries
    capsys.readouterr()
    assert run("ledger", "take", "--ledger", "l.db", entry.id, "--out", "again") == 0
    assert ("a file of all rows cannot be added" in capsys.readouterr().err) == signed
    assert (work / "again" / "synthetic-whole.csv").exists() != signed
    assert all(found.holds is not False for found in verify(work / "again") if found.check == 1)
    for more in (("--as", "parquet"), ("--key", "keys/k.pem")):
        assert run("resume", entry.id, "--ledger", "l.db", "--out", "more", *more) == 2
        assert "Omit --key and --as" in capsys.readouterr().err


def test_a_changed_table_is_warned_of(work, capsys):
    assert run("ledger", "open", "--ledger", "l.db", "--table", "t", "--epsilon", "3", "--delta", "1e-6") == 0
    assert spend("o", "--ledger", "l.db", "--table", "t") == 0
    (work / "t.csv").write_text("a\n" + "x\ny\n" * 31)
    capsys.readouterr()
    assert spend("o2", "--ledger", "l.db", "--table", "t") == 0
    assert "warning: the table has changed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "status"),
    [
        (("ledger",), 2),
        (("ledger", "dance"), 2),
        (("ledger", "list", "--ledger", "none.db"), 2),
        (("ledger", "verify", "--ledger", "p.json"), 2),
        (("ledger", "open", "--ledger", "n.db", "--table", "t"), 2),
        (("ledger", "open", "--ledger", "n.db", "--epsilon", "1", "--delta", "1e-6"), 2),
        (("ledger", "open", "--ledger", "n.db", "--table", "t", "--epsilon", "-1", "--delta", "1e-6"), 2),
        (("ledger", "take", "--ledger", "l.db", "nothing", "--out", "o"), 2),
        (("release", "p.json", "--data", "t.csv", "--out", "o", "--ledger", "l.db"), 2),
        (("release", "p.json", "--data", "t.csv", "--out", "o", "--ledger", "none.db", "--table", "t"), 2),
        (("release", "p.json", "--data", "t.csv", "--out", "o", "--ledger", "l.db", "--table", "x"), 3),
        (("plan", "p.json", "--ledger", "l.db", "--table", "x"), 3),
    ],
)
def test_bad_calls(work, capsys, args, status):
    Ledger("l.db", create=True)
    assert run(*args) == status
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert "Traceback" not in lines[0]
    assert not (work / "o").exists()


def test_numbers_and_acts_that_are_not_some_are_refused_in_words(monkeypatch, work, capsys):
    monkeypatch.setenv("ESPALIER_LEDGER", str(work / "l.db"))
    assert run("ledger", "open", "--table", "t", "--epsilon", "1,5", "--delta", "1e-9") == 2
    assert "'1,5' is not a number; write 1.5" in capsys.readouterr().err
    assert run("ledger") == 2
    assert "open|list|verify|export|take" in capsys.readouterr().err
    assert run("ledger", "open", "--table", "t", "--epsilon", "1", "--delta", "1e-9") == 0
    assert run("ledger", "verify") == 0
    assert ": 1 event; hashes" in capsys.readouterr().out
    assert run("ledger", "take", "ab", "--out", "o") == 2
    assert "at least 4 digits" in capsys.readouterr().err


def test_a_ledger_in_a_folder_that_may_not_be_written_to_says_so(work, monkeypatch, capsys):
    def refused(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("espalier.core.ledger.store.os.open", refused)
    where = ("--ledger", str(work / "new.db"))
    assert run("ledger", "open", "--table", "t", "--epsilon", "1", "--delta", "1e-9", *where) == 2
    assert "is not writable" in capsys.readouterr().err


@pytest.mark.usefixtures("work")
def test_attack_names_the_table_that_the_ledger_knows(capsys):
    """Previously, the ledger recorded the view if and only if the rows were those of the release, and exported it."""
    where = ("--ledger", "l.db", "--table", "t")
    assert run("ledger", "open", *where, "--epsilon", "9", "--delta", "1e-6") == 0
    assert spend("o", *where) == 0
    capsys.readouterr()
    before = Ledger("l.db").to_json()
    assert run("evaluate", "o", "--data", "t.csv", "--ledger", "l.db") == 0
    after = Ledger("l.db").to_json()
    assert len(after["events"]) == len(before["events"]) + 1, "the release names its entry"
    assert run("attack", "p.json", "--data", "t.csv", "--ledger", "l.db") == 3
    assert "already released as 't'" in capsys.readouterr().err
    assert Ledger("l.db").to_json() == after
