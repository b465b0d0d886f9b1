"""Interrupted releases store answers before they use them, use them again unchanged, and draw none twice."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from espalier.core.cli.main import main
from espalier.core.errors import Cancelled, LedgerError, ProjectError, SizeError, TableError, Unfinished
from espalier.core.ledger.account import Reservation
from espalier.core.ledger.ledger import Ledger
from espalier.core.ledger.store import Store
from espalier.core.methods import METHODS
from espalier.core.privacy.journal import Journal, Record, RequestDiffers, request_digest
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema, to_buy
from espalier.core.release.artefact import Release
from espalier.core.release.resume import resume
from espalier.core.release.spend import release
from espalier.core.release.unfinished import HEAD, Begun, FolderJournal, check_none, work_folder
from espalier.core.tables.frames import located
from espalier.core.tables.reading import read_table
from espalier.core.tables.table import Table
from tests.methods import test_linked_method
from tests.methods.test_contract import ASKED, CASES, project, table
from tests.models.copula import test_fit


class Crash(BaseException):
    """A simulated kill, which only the guard of the reservation catches."""


class Recorder:
    """Records every drawn and every used answer over all runs, and crashes at a chosen one."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.drawn: Counter[int] = Counter()
        self.used: dict[int, set[str]] = {}
        self.crash: tuple[int, str] | None = None
        real = Journal.answer

        def answer(own: Journal, request: Any, draw: Any) -> bytes:
            place = own.place

            def drawing() -> bytes:
                made: bytes = draw()
                assert place not in self.used, "a used answer is drawn again"
                self.drawn[place] += 1
                self.reach(place, "drawn")
                return made

            made = real(own, request, drawing)
            self.used.setdefault(place, set()).add(hashlib.sha256(made).hexdigest())
            self.reach(place, "used")
            return made

        patch.setattr(Journal, "answer", answer)

    def reach(self, place: int, when: str) -> None:
        if self.crash == (place, when):
            self.crash = None
            raise Crash

    def check(self) -> None:
        """Check that no stored answer changed, and that no answer drawn again had been used before."""
        assert all(len(answers) == 1 for answers in self.used.values())


@pytest.fixture
def recorder(monkeypatch) -> Recorder:
    return Recorder(monkeypatch)


def interrupted(out: Path, given: Project, rows: Any, recorder: Recorder, place: int, when: str) -> Path:
    recorder.crash = place, when
    with pytest.raises(Crash):
        release(given, rows, folder=out)
    return out


def of_contract(name: str) -> tuple[Project, Any]:
    return project(**CASES[name]), table(400)


def of_linked() -> tuple[Project, Any]:
    given = test_linked_method.project_of(plan={"rows": 300})
    return given, test_linked_method.panel_of(given, 300)


def of_numbers() -> tuple[Project, Any]:
    return test_fit.project(), test_fit.table(400)


def of_questions() -> tuple[Project, Any]:
    return project(method="fpt-mw", question_list=ASKED, rounds=4, epsilon=2.0), table(400)


DAILY = {"mst", "prism", "privbayes learned", "mst with regressions", "linked", "copula"}
MADE: dict[str, Callable[[], tuple[Project, Any]]] = {
    **{name: partial(of_contract, name) for name in CASES},
    "linked": of_linked,
    "copula": of_numbers,
    "fpt-mw": of_questions,
}


@pytest.mark.parametrize(
    "name",
    [name if name in DAILY else pytest.param(name, marks=pytest.mark.nightly) for name in MADE],
)
def test_every_method_is_resumed(name, tmp_path, recorder):
    """A crash in the middle, between a draw and its storage, then one after the last answer."""
    (given, rows), out = MADE[name](), tmp_path / "out"
    middle = 5 if name == "decoder additive" else 0 if given.plan.method == "independent" else 1
    interrupted(out, given, rows, recorder, middle, "drawn")
    if middle:
        with pytest.raises(Unfinished, match=f"{middle} answers? (is|are) stored, and the next one needs the rows"):
            resume(out)
        recorder.crash = middle, "used"
        with pytest.raises(Crash):
            resume(out, rows)
        made = resume(out, rows)
    else:  # all counts are one answer, and none is stored
        made = release(given, rows, folder=out)
    recorder.check()
    drawn = recorder.drawn.total()
    made.save(out)
    assert drawn <= len(recorder.used) + 1, "at most the answer that was never stored"
    assert made.spending.rho <= made.budget.rho
    assert not work_folder(out).exists()
    assert json.loads((out / "release.json").read_text())["spent"]["rho"] == made.spending.rho


@pytest.mark.parametrize("plan", [CASES["mst"], {"method": "decoder", "latent": 2, "steps": 3}], ids=["mst", "latent"])
def test_a_release_with_all_answers_needs_no_rows_and_is_the_same_again(tmp_path, monkeypatch, plan):
    """Randomness other than noise is the same too, so two resumed runs write the same table."""
    given, out = project(**plan, private_evaluation=0.2), tmp_path / "out"

    def fail(*_: Any, **__: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(Release, "__init__", fail)
        with pytest.raises(MemoryError) as error:
            release(given, table(400), folder=out)
    assert "espalier resume" in error.value.__notes__[0]
    shutil.copytree(work_folder(out), work_folder(tmp_path / "again"))
    tables = []
    for folder in (out, tmp_path / "again"):
        made = resume(folder)
        assert made.private_evaluation is not None
        made.save(folder)
        tables.append((folder / "synthetic.csv").read_bytes())
    assert tables[0] == tables[1]


def test_a_resumed_evaluation_has_the_same_part(tmp_path, recorder):
    """People who were held out before stay held out; with rows in a different order the release is refused."""
    given, rows, out = project(**CASES["independent"], private_evaluation=0.3), table(400), tmp_path / "out"
    release(given, rows, folder=tmp_path / "whole").save(tmp_path / "whole")
    last = max(recorder.used)
    recorder.used.clear()
    interrupted(out, given, rows, recorder, last, "drawn")
    order = np.arange(400)[::-1]
    mixed = Table(rows.schema, {n: c[order] for n, c in rows.codes.items()}, 400, source=rows.digest)
    with pytest.raises(TableError, match="a different order"):
        resume(out, mixed)
    assert resume(out, rows).private_evaluation is not None
    recorder.check()


def test_another_table_is_refused(tmp_path, recorder):
    given, out = project(**CASES["mst"]), tmp_path / "out"
    interrupted(out, given, table(400), recorder, 1, "used")
    with pytest.raises(TableError, match="not the table with which the release began"):
        resume(out, table(400, seed=1))
    assert resume(out, table(400)).rows == 400


@pytest.mark.parametrize("answers", [0, 1])
def test_the_ledger_does_not_show_that_a_table_has_changed(tmp_path, recorder, answers):
    """Previously, a resume with another table added an event to every export; one with the same table did not."""
    ledger = Ledger(str(tmp_path / "ledger.db"), create=True)
    ledger.open_table("people", epsilon=3.0, delta=1e-6)
    given = project(**CASES["mst"], delta=None)
    recorder.crash = answers, "drawn"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Reservation, "end", lambda *_: "")  # the process was killed
        with pytest.raises(Crash):
            release(given, table(400), ledger=ledger.account("people"))
    (entry,) = ledger.population_of("people").entries
    before = ledger.to_json()
    with pytest.raises(TableError, match="not the table with which the release began"):
        resume(ledger.account("people").resumed(entry.id), table(400, seed=1))
    assert ledger.to_json() == before
    resume(ledger.account("people").resumed(entry.id), table(400))
    assert ledger.population_of("people").entries[0].status == "spent"


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
def test_rows_are_chosen_again_independently(tmp_path, recorder, neighbors):
    """Previously, random numbers were reused by row position, so the rows of all others revealed whether a person's row
    had moved.
    """
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"who": rng.integers(0, 60, 300)}).astype(str)
    frame[["a", "b"]] = rng.choice(list("xy"), (300, 2))
    schema = Schema(tuple(Column(name, "categorical", ("x", "y")) for name in "ab"))
    plan = Plan("mst", 1.0, 1e-6, neighbors=neighbors, person="who", rows_per_person=2, rows=60)
    given, out = Project("people", schema, plan), tmp_path / "out"
    kept = []
    counts = Table.count_many

    def counting(own: Table, cliques: Any) -> Any:
        kept.append(own.codes["a"].tobytes() + own.codes["b"].tobytes())
        return counts(own, cliques)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Table, "count_many", counting)
        interrupted(out, given, frame, recorder, 1, "drawn")
        before = set(kept)
        resume(out, frame).save(out)
    assert len(before) == 1
    assert len(set(kept)) == 2


def test_bought_bins_and_categories_are_stored(tmp_path, recorder):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(0, 90, 900), "city": rng.choice(["Rome", "Oslo"], 900)}).astype(str)
    schema = Schema(
        (
            to_buy("age", "numeric", bins=4, range=(0.0, 90.0), integer=True),
            to_buy("city", "categorical", 5),
            Column("ill", "categorical", ("no", "yes")),
        )
    )
    frame["ill"] = rng.choice(["no", "yes"], 900)
    plan = Plan("independent", 4.0, 1e-6, neighbors="add-remove", rows=500, schema_share=0.4)
    given, out = Project("bought", schema, plan, one_row_per_person=True), tmp_path / "out"
    interrupted(out, given, frame, recorder, 1, "used")
    with pytest.raises(Unfinished):
        resume(out)
    made = resume(out, frame)
    recorder.check()
    assert recorder.drawn == {0: 1, 1: 1, 2: 1}
    assert set(made.project.schema["city"].categories) <= {"Rome", "Oslo"}


def test_nothing_in_a_journal_depends_on_a_row(tmp_path, recorder):
    """For neighbouring tables and tables of other sizes, the facts are equal except for seeds and keyed marks."""
    found = []
    for rows in (table(400), table(399), table(40, seed=3)):
        out = tmp_path / str(len(found))
        given = project(**CASES["mst"], neighbors="add-remove", rows=300)
        interrupted(out, given, rows, recorder, 0, "used")
        begun, records = FolderJournal(out).read()
        facts = json.loads(begun.dumps())
        assert len({mark.split(":")[2] for mark in facts.pop("marks")}) == 1
        assert facts.pop("seed") != facts.pop("nonce")
        found.append((facts, [(r.request, len(r.answer)) for r in records]))
        recorder.used.clear()
    assert found[0] == found[1] == found[2]
    assert "399" not in json.dumps(found)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
def test_a_journal_does_not_show_whether_rows_are_read_in_place(tmp_path, recorder, neighbors):
    """One long cell can make a file large enough. Previously, only rows in place had a key of row limits."""
    lines = (f"p{i % 60},{'xy'[i % 2]},{'xy'[i % 3 % 2]}\n" for i in range(300))
    (tmp_path / "t.csv").write_text("who,a,b\n" + "".join(lines))
    schema = Schema(tuple(Column(name, "categorical", ("x", "y")) for name in "ab"))
    plan = Plan("mst", 1.0, 1e-6, neighbors=neighbors, person="who", rows_per_person=2, rows=60)
    given, found = Project("people", schema, plan), []
    for way in (read_table, lambda path: located(str(path))):
        out = tmp_path / str(len(found))
        interrupted(out, given, way(tmp_path / "t.csv"), recorder, 0, "used")
        begun, records = FolderJournal(out).read()
        assert len(begun.lot_key) == 32
        facts = json.loads(begun.dumps())
        mine = {name: facts.pop(name) for name in ("marks", "seed", "nonce", "lot_key")}
        found.append((facts, len(mine["marks"][0]), [(r.request, len(r.answer)) for r in records]))
        recorder.used.clear()
    assert found[0] == found[1]


def test_a_torn_end_is_cut_off_and_a_damaged_answer_refused(tmp_path, recorder):
    given, rows, out = project(**CASES["mst"]), table(400), tmp_path / "out"
    interrupted(out, given, rows, recorder, 1, "used")
    path = work_folder(out) / "journal"
    whole = path.read_bytes()
    for torn in (whole[:-1], whole + b"\0", whole + bytes(60)):
        path.write_bytes(torn)
        storage = FolderJournal(out)
        stored = len(storage.read()[1])
        storage.leave()
        assert stored == (1 if len(torn) < len(whole) else 2)
    first = HEAD + int.from_bytes(whole[:8], "big") + 45
    for place in (first, 6, 7):  # damage in a record, then in the length of the first
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(Unfinished, match="is damaged"):
            resume(out)
        assert len(path.read_bytes()) == len(whole), "nothing is cut off"


def test_a_journal_without_content_is_refused_unread(tmp_path):
    """Previously, a journal of 30 GB ended in a traceback."""
    work_folder(tmp_path / "out").mkdir()
    path = work_folder(tmp_path / "out") / "journal"
    path.touch()
    os.truncate(path, 30 << 30)
    with pytest.raises(Unfinished, match="is damaged"):
        resume(tmp_path / "out")


@pytest.mark.parametrize("how", ["a link", "another user"])
def test_a_hidden_folder_that_another_user_made_is_not_used(tmp_path, recorder, monkeypatch, how):
    """In a shared folder, that user could have changed the journal and the release."""
    work = work_folder(tmp_path / "out")
    if how == "a link":
        (tmp_path / "theirs").mkdir()
        work.symlink_to(tmp_path / "theirs")
    else:
        work.mkdir()
        monkeypatch.setattr(os, "geteuid", lambda: work.stat().st_uid + 1)
    with pytest.raises(Unfinished, match="is a link, or belongs to another user"):
        release(project(**CASES["mst"]), table(400), folder=tmp_path / "out")
    assert not recorder.drawn


def test_a_resume_that_stops_before_its_first_answer_keeps_what_is_stored(tmp_path, recorder):
    given, rows, out = project(**CASES["mst"]), table(400), tmp_path / "out"
    interrupted(out, given, rows, recorder, 1, "used")
    recorder.crash = None

    def stop(*_: object) -> None:
        raise Cancelled("cancelled")

    with pytest.raises(Cancelled):
        resume(out, rows, stop)
    stored = FolderJournal(out)
    assert stored.answers == 2
    stored.leave()
    resume(out, rows)
    recorder.check()


def test_held_out_people_of_bought_columns_are_not_dealt_again(tmp_path, recorder):
    """The fingerprint of a part covers only codes, and a bought column has none yet."""
    frame = pd.DataFrame({"city": ["Rome", "Oslo"] * 200, "sick": ["yes", "no", "no", "no"] * 100})
    schema = Schema((to_buy("city", "categorical", 10), Column("sick", "categorical", ("no", "yes"))))
    plan = Plan("independent", 3.0, 1e-5, schema_share=0.3, private_evaluation=0.2, target="sick")
    given = Project("t", schema, plan, one_row_per_person=True)
    out = interrupted(tmp_path / "out", given, frame, recorder, 1, "used")
    recorder.crash = None
    with pytest.raises(Unfinished, match="the same people would be held out again"):
        resume(out, frame)


def test_a_second_release_to_the_folder_is_refused_while_answers_are_kept(tmp_path, recorder):
    given, rows, out = project(**CASES["mst"]), table(400), tmp_path / "out"
    interrupted(out, given, rows, recorder, 0, "drawn")  # nothing was stored, so nothing is lost
    interrupted(out, given, rows, recorder, 0, "used")
    with pytest.raises(ProjectError, match=r"is kept\. Finish it: espalier resume"):
        release(given, rows, folder=out)
    held = FolderJournal(out)
    with pytest.raises(Unfinished, match="Another process"):
        resume(out)
    held.leave()
    resume(out, rows).save(out)


def test_answers_are_kept_if_another_release_is_in_the_folder(tmp_path, recorder, monkeypatch, capsys):
    """Previously, `resume` found a complete release there and deleted the answers of this one."""
    given, rows, out = project(**CASES["independent"]), table(400), tmp_path / "out"
    other = release(given, rows)
    recorder.used.clear()
    interrupted(out, given, rows, recorder, 0, "used")
    other.save(out)
    assert main(["resume", str(out)]) == 2
    assert "contains another release. Move that release elsewhere" in capsys.readouterr().err
    shutil.rmtree(out)
    with monkeypatch.context() as patch:
        patch.setattr(FolderJournal, "forget", FolderJournal.leave)  # the process ends before the last step
        assert main(["resume", str(out), "--quiet"]) == 0
    assert FolderJournal(out).answers
    written = {path.name: path.read_bytes() for path in out.iterdir()}
    assert main(["resume", str(out)]) == 0
    assert "the release is complete" in capsys.readouterr().err
    assert not work_folder(out).exists()
    assert {path.name: path.read_bytes() for path in out.iterdir()} == written


def test_only_the_journal_is_removed_from_a_folder_with_other_files(tmp_path):
    """Previously, a folder with this name was removed with all its files."""
    work = work_folder(tmp_path / "out")
    work.mkdir()
    for name in ("journal", "thesis.txt"):
        (work / name).write_text("monday")
    check_none(tmp_path / "out")
    assert [path.name for path in work.iterdir()] == ["thesis.txt"]


def test_without_a_key_file_no_resume_is_promised(tmp_path, monkeypatch):
    """Previously, the message promised that the release could be finished."""
    monkeypatch.setenv("ESPALIER_LEDGER_KEY", "/dev/null/key")

    def report(fraction: float, message: str) -> None:  # noqa: ARG001
        if fraction >= 0.4:
            raise Cancelled("stop")

    with pytest.raises(Cancelled) as error:
        release(project(**CASES["independent"]), table(400), report, folder=tmp_path / "out")
    assert "can only be finished if no answer is missing" in error.value.__notes__[0]


def test_a_table_without_rows_is_resumed(tmp_path, recorder):
    given, rows, out = project(**CASES["independent"], delta=1e-6), table(0), tmp_path / "out"
    interrupted(out, given, rows, recorder, 0, "used")
    assert resume(out, rows).rows > 0


def test_a_release_that_is_saved_twice_keeps_the_answers_of_the_next(tmp_path, recorder):
    """Previously, the second `save` deleted the answers of a later release to the same folder."""
    given, rows, out = project(**CASES["independent"]), table(400), tmp_path / "out"
    first = release(given, rows, folder=out)
    first.save(out)
    shutil.rmtree(out)
    recorder.used.clear()
    interrupted(out, given, rows, recorder, 0, "used")
    first.save(tmp_path / "copy")
    assert FolderJournal(out).answers == 1


def test_an_entry_is_resumed_for_what_was_reserved(tmp_path, recorder):
    """It stays reserved after a crash and is spent once; another machine with the key file can finish it."""
    where = str(tmp_path / "ledger.db")
    ledger = Ledger(where, create=True)
    ledger.open_table("people", epsilon=3.0, delta=1e-6)
    given, rows = project(**CASES["mst"], delta=None), table(400)
    recorder.crash = 1, "used"
    with pytest.raises(Crash):
        release(given, rows, ledger=ledger.account("people"))
    (entry,) = ledger.population_of("people").entries
    assert (entry.status, entry.note) == ("reserved", "stopped: Crash")
    assert ledger.verify() == []
    other = Ledger(where)
    made = resume(other.account("people").resumed(entry.id), rows)
    (ended,) = other.population_of("people").entries
    assert (ended.status, ended.counted) == ("spent", made.spending.rho)
    assert ended.released is not None
    assert made.to_json()["ledger"]["entry"] == entry.id
    assert (other.verify(), other.store.unfinished()) == ([], {})
    recorder.check()
    with pytest.raises(Unfinished, match="No answers are stored"):
        resume(other.account("people").resumed(entry.id), rows)


def begun_in_a_database(folder: Path, recorder: Recorder) -> list[str]:
    """Interrupt a release of two linked tables of a database; return the command that resumes it, without --data."""
    (folder / "project.json").write_text(test_linked_method.project_of(plan={"rows": 60}).dumps())
    with duckdb.connect(str(folder / "clinic.duckdb")) as con:
        con.execute("CREATE TABLE people AS SELECT i AS id, 'p' AS age, 'q' AS region FROM range(60) AS made(i)")
        con.execute(
            "CREATE TABLE visits AS SELECT i % 60 AS id, i AS at, 'p' AS x, 'r' AS y FROM range(150) AS made(i)"
        )
    recorder.crash = 1, "used"
    with pytest.raises(Crash):
        main(
            [
                "release",
                f"{folder}/project.json",
                "--data",
                f"duckdb://{folder}/clinic.duckdb",
                "--out",
                f"{folder}/out",
            ]
        )
    return ["resume", f"{folder}/out", "--data"]


def test_linked_tables_of_a_database_are_resumed_on_the_command_line(tmp_path, recorder):
    """Previously, the tables' names were not known there, and the paid release could not be finished."""
    command = begun_in_a_database(tmp_path, recorder)
    assert main([*command, f"duckdb://{tmp_path}/clinic.duckdb"]) == 0
    assert (tmp_path / "out" / "release.json").is_file()
    recorder.check()


def test_a_view_that_replaced_a_table_is_not_resumed(tmp_path, recorder, capsys):
    """Previously, its rows were released, although the release described a table."""
    command = begun_in_a_database(tmp_path, recorder)
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as con:
        con.execute("ALTER TABLE visits RENAME TO stored")
        con.execute("CREATE VIEW visits AS FROM stored")
    assert main([*command, f"duckdb://{tmp_path}/clinic.duckdb"]) == 2
    assert "replaced by a relation of another kind" in capsys.readouterr().err


def test_a_closed_entry_stays_spent_and_is_not_resumed(tmp_path, recorder):
    ledger = Ledger(str(tmp_path / "ledger.db"), create=True)
    ledger.open_table("people", epsilon=3.0, delta=1e-6)
    recorder.crash = 1, "used"
    with pytest.raises(Crash):
        release(project(**CASES["mst"], delta=None), table(400), ledger=ledger.account("people"))
    (entry,) = ledger.population_of("people").entries
    ledger.account("people").resumed(entry.id).close("closed by Ada")
    (ended,) = ledger.population_of("people").entries
    assert (ended.status, ended.counted, ended.note) == ("spent", entry.reserved, "stopped: Crash; closed by Ada")
    assert ledger.store.unfinished() == {}
    with pytest.raises(Unfinished):
        resume(ledger.account("people").resumed(entry.id))


@pytest.mark.parametrize(
    "changed",
    [
        {"plan": {"epsilon": 50.0}},
        {"plan": {"neighbors": "add-remove"}},
        {"total": 10_000, "own": {"rows": 10_000}},
        {"relation": "table"},
    ],
    ids=["epsilon", "unit", "rows", "kind"],
)
def test_facts_that_the_ledger_did_not_reserve_are_refused(tmp_path, recorder, changed):
    """Previously, anyone who could write to the ledger's database could raise ε; answers were drawn and stored
    there."""
    ledger = Ledger(str(tmp_path / "ledger.db"), create=True)
    ledger.open_table("people", epsilon=3.0, delta=1e-6)
    recorder.crash = 1, "drawn"
    with pytest.raises(Crash):
        release(project(**CASES["mst"], delta=None), table(400), ledger=ledger.account("people"))
    (entry,) = ledger.population_of("people").entries
    facts, *answers = ledger.store.journal(entry.id)
    made = json.loads(facts)
    for own in (made["planned"], made["given"]):
        own["plan"] |= changed.get("plan", {})
    made |= {name: value for name, value in changed.items() if name in ("total", "relation")}
    made["own"] |= changed.get("own", {})
    with sqlite3.connect(tmp_path / "ledger.db") as database:
        database.execute("UPDATE espalier_journal SET record = ? WHERE place = 0", [json.dumps(made).encode()])
    drawn = recorder.drawn.copy()
    with pytest.raises((LedgerError, Unfinished), match="Nothing was drawn"):
        resume(ledger.account("people").resumed(entry.id), table(400))
    assert (recorder.drawn, ledger.store.journal(entry.id)[1:]) == (drawn, answers)


def test_two_processes_cannot_both_draw_the_next_answer(tmp_path, recorder):
    ledger = Ledger(str(tmp_path / "ledger.db"), create=True)
    ledger.open_table("people", epsilon=3.0, delta=1e-6)
    recorder.crash = 1, "used"
    with pytest.raises(Crash):
        release(project(**CASES["mst"], delta=None), table(400), ledger=ledger.account("people"))
    (entry,) = ledger.population_of("people").entries
    reservation = ledger.account("people").resumed(entry.id)
    reservation.append(2, b"first")
    said = set()
    for answer in (b"second", b"first"):  # previously, an equal answer was accepted, which compared two draws
        with pytest.raises(LedgerError, match="another process is working") as refused:
            reservation.append(2, answer)
        said.add(str(refused.value))
    assert len(said) == 1
    assert ledger.store.journal(entry.id)[-1] == b"first"


def test_an_entry_that_another_process_resumed_is_not_returned(tmp_path):
    """The first process is cancelled before a draw. Previously, the release of the other process was then not
    counted."""
    ledger = Ledger(str(tmp_path / "ledger.db"), create=True)
    ledger.open_table("people", epsilon=3.0, delta=1e-6)
    given, rows, resumed = project(**CASES["mst"], delta=None), table(400), []

    def report(fraction: float, message: str) -> None:  # noqa: ARG001
        if not resumed:
            (entry,) = ledger.population_of("people").entries
            resumed.append(entry.id)
            other = ledger.account("people").resumed(entry.id)

            def halfway(there: float, said: str) -> None:  # noqa: ARG001
                if there > 0.4:
                    raise Cancelled("the first process is cancelled now")

            with pytest.raises(Cancelled):
                resume(other, rows, halfway)
            raise Cancelled("before the first draw")

    with pytest.raises(Cancelled, match="another process has drawn"):
        release(given, rows, report, ledger.account("people"))
    (entry,) = ledger.population_of("people").entries
    assert (entry.status, entry.counted) == ("reserved", entry.reserved)
    resume(ledger.account("people").resumed(entry.id), rows)
    assert ledger.population_of("people").entries[0].status == "spent"


@pytest.mark.parametrize("stored", [False, True])
def test_an_interrupt_during_the_reservation_costs_nothing(tmp_path, monkeypatch, stored):
    """Previously, the whole budget of the release stayed reserved, although nothing was drawn."""
    ledger = Ledger(str(tmp_path / "ledger.db"), create=True)
    ledger.open_table("people", epsilon=3.0, delta=1e-6)
    real = Store.append

    def append(store: Store, make: Any, *given: Any, begun: Any = None, **more: Any) -> None:
        if begun is None:
            real(store, make, *given, **more)
            return
        if stored:
            real(store, make, *given, begun=begun, **more)
        else:
            make(store.read())
        raise KeyboardInterrupt

    monkeypatch.setattr(Store, "append", append)
    with pytest.raises(KeyboardInterrupt):
        release(project(**CASES["mst"], delta=None), table(400), ledger=ledger.account("people"))
    population = ledger.population_of("people")
    assert [entry.status for entry in population.entries] == ["returned"] * stored
    assert population.spent == 0
    assert ledger.store.unfinished() == {}


def test_no_answer_is_stored_for_an_entry_that_has_ended(tmp_path):
    ledger = Ledger(str(tmp_path / "ledger.db"), create=True)
    ledger.open_table("people", epsilon=3.0, delta=1e-6)
    made = release(project(**CASES["mst"], delta=None), table(400), ledger=ledger.account("people"))
    with pytest.raises(LedgerError, match="has ended; the answer was not used"):
        made.reservation.append(0, b"late")
    assert ledger.store.unfinished() == {}


@pytest.mark.parametrize(
    "changed",
    [
        {"seed": "-1"},
        {"own": {"rows": "x", "names_people": False, "person_column": None, "row_limit": None}},
        {"held": {"rows": 400, "names_people": False, "person_column": None, "row_limit": None}},
        {"total": "x"},
        {"total": 1.5},
        {"relation": [1]},
        {"marks": [1]},
        {"nonce": 7},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_facts_of_another_kind_are_refused(tmp_path, recorder, changed):
    """Previously, each of these facts ended in a traceback, or was used."""
    out = interrupted(tmp_path / "out", *of_contract("mst"), recorder, 1, "used")
    journal = FolderJournal(out)
    facts = json.loads(journal.read()[0].dumps())
    journal.leave()
    with pytest.raises(Unfinished, match="damaged"):
        Begun.loads(json.dumps(facts | changed).encode())
    with pytest.raises(Unfinished, match="damaged"):
        Begun.loads(b"[" * 100_000)


@pytest.mark.parametrize("answer", [bytes(8), b"\xff" * 16, bytes(15)], ids=["short", "no number", "cut"])
def test_a_stored_answer_of_another_shape_is_refused(answer):
    journal = Journal([Record(request_digest(("", "q")), answer)])
    with pytest.raises(Unfinished, match="Stored answer 1 does not have the requested shape, or is not a number"):
        journal.array("q", (2,), lambda: np.zeros(2))


def test_another_request_is_refused():
    class Kept:
        def __init__(self) -> None:
            self.records: list[bytes] = []

        def append(self, place: int, record: bytes) -> None:
            assert place == len(self.records)
            self.records.append(record)

    kept = Kept()
    first = Journal((), kept)
    assert first.number(("choice", ("a", "b"), 2.0), lambda: 7) == 7
    stored = [Record.unpacked(i, r) for i, r in enumerate(kept.records)]
    assert None not in stored
    assert Record.unpacked(1, kept.records[0]) is None, "a record belongs to its place"
    again = Journal([r for r in stored if r])
    with pytest.raises(RequestDiffers, match="answer 1 of 1"):
        again.number(("choice", ("a", "c"), 2.0), lambda: 8)
    assert again.number(("choice", ("a", "b"), 2.0 * (1 + 1e-15)), lambda: 8) == 7, "floats may differ in the last bit"


def test_requests_that_differ_have_other_digests():
    asked = [
        ("a", 1.0, (("x", "y"),)),
        ("a", 1.001, (("x", "y"),)),
        ("a", 1.0, (("x",), ("y",))),
        ("a", 1.0, {"x": np.arange(3)}),
        ("a", 1.0, {"x": np.arange(3.0)}),
        ("a", 1.0, {"x": np.array([0.0, 1.0, 2.001])}),
    ]
    assert len({request_digest(one) for one in asked}) == len(asked)
    near = np.array([1e-17, 1.0, 2.0])
    assert request_digest(near) == request_digest(near + np.array([1e-17, 0, 0]))


def test_the_facts_are_read_back():
    given = project(**CASES["mst"])
    begun = Begun(given, given, 400, None, run_facts(), None, 2**127, "ab", "", ("k:n:t",))
    assert Begun.loads(begun.dumps()) == begun
    with pytest.raises(Unfinished, match="damaged"):
        Begun.loads(b"{}")


def run_facts() -> Any:
    from espalier.core.tables.deferred import Facts

    return Facts(400, names_people=False, person_column=None, row_limit=None)


def test_every_method_has_a_case():
    """A new method must be resumed too."""
    assert set(METHODS) == {make()[0].plan.method for make in MADE.values()}


def test_a_disk_with_too_little_room_is_refused_before_anything_is_drawn(tmp_path, recorder, monkeypatch):
    """The check adds up everything that is written to one disk, from public facts alone."""
    free = SimpleNamespace(free=6 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: free)
    given, rows = project(**CASES["mst"]), table(400)
    release(given, rows, folder=tmp_path / "fits").save(tmp_path / "fits")
    recorder.used.clear()
    free.free = 3 << 20
    with pytest.raises(SizeError, match="has 3 MiB free, but the release may need [0-9]+ MiB there. Nothing was drawn"):
        release(given, rows, folder=tmp_path / "full")
    assert not recorder.used


def test_a_release_that_was_handed_over_without_the_ledger_is_recorded_later(tmp_path, monkeypatch):
    """The ledger is lost at the very end: the entry stays reserved, and all answers are still stored."""
    ledger = Ledger(str(tmp_path / "ledger.db"), create=True)
    ledger.open_table("people", epsilon=3.0, delta=1e-6)

    def lost(*_: Any) -> None:
        raise LedgerError("lost")

    with monkeypatch.context() as patch:
        patch.setattr(Reservation, "_close", lost)
        first = release(project(**CASES["mst"], delta=None), table(400), ledger=ledger.account("people"))
    assert "espalier resume" in first.ledger_trouble
    (entry,) = ledger.population_of("people").entries
    assert entry.status == "reserved"
    other = ledger.account("people").resumed(entry.id)
    again = resume(ledger.account("people").resumed(entry.id))
    late = other.spend(first.spending.rho, {**first.files, "label.html": b"written by another process"})
    assert "Another process has already ended the entry" in late
    (ended,) = ledger.population_of("people").entries
    assert (ended.status, ended.counted) == ("spent", first.spending.rho)
    assert again.csv() == first.csv()
