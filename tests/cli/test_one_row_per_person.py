"""The question "can one person have several rows?": every answer, with every plan, through every entry point."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from espalier.core.cli.main import main
from espalier.core.compare.membership import play
from espalier.core.compare.plans import compare
from espalier.core.errors import ProjectError
from espalier.core.ledger.ledger import Ledger
from espalier.core.planning.preview import preview
from espalier.core.project.file import Project
from espalier.core.project.people import ROWS_KEPT, UNASKED, proposed
from espalier.core.release.spend import release
from espalier.core.report.page import render
from espalier.core.tables.reading import read_table
from espalier.core.tables.table import Table

ROOT = Path(__file__).resolve().parents[2]
DIABETES = ROOT.parent / "shared" / "data" / "diabetes_readmission_20k.csv.gz"
SCHEMA = [
    {"name": "sex", "kind": "categorical", "categories": ["f", "m"]},
    {"name": "ill", "kind": "categorical", "categories": ["no", "yes"]},
]
CSV = "patient,sex,ill\n" + "".join(f"p{i % 40},{'fm'[i % 2]},{('no', 'yes')[i % 3 == 0]}\n" for i in range(80))
ABSENT = "no key"

LOADS, OPEN, CONFLICT = "loads", "open", "conflict"


def expected(answer: Any, person: bool, k: int) -> str:
    """Return the contract, written out independently of the code."""
    if answer is True:
        return CONFLICT if person or k > 1 else LOADS
    if answer is False:
        return LOADS if person or k > 1 else CONFLICT
    return OPEN if answer is None and not person else LOADS


CASES = [
    pytest.param(answer, person, k, id=f"{json.dumps(answer)}, {'person' if person else 'no person'}, k={k}")
    for answer, person, k in itertools.product((True, False, None, ABSENT), (True, False), (1, 3))
]


def file_of(answer: Any, person: bool, k: int) -> dict[str, Any]:
    plan = {"method": "independent", "epsilon": 1.0, "delta": 1e-6, "rows_per_person": k}
    return {
        "format": "espalier-project/1",
        "name": "ward",
        "schema": SCHEMA,
        "plan": {**plan, **({"person": "patient", "rows": 80} if person else {})},
        **({} if answer == ABSENT else {"one_row_per_person": answer}),
    }


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(CSV)
    return tmp_path


def run(*args: object) -> int:
    try:
        return main([str(a) for a in args])
    except SystemExit as stop:
        return int(str(stop.code))


@pytest.mark.parametrize(("answer", "person", "k"), CASES)
def test_a_project_file_loads_is_open_or_contradicts_itself(work: Path, answer: Any, person: bool, k: int) -> None:
    (work / "p.json").write_text(json.dumps(file_of(answer, person, k)))
    outcome = expected(answer, person, k)
    if outcome == CONFLICT:
        with pytest.raises(ProjectError, match="one_row_per_person") as caught:
            Project.load("p.json")
        assert caught.value.data["key"] == "one_row_per_person"
        return
    project = Project.load("p.json")
    assert project.unit_open == (outcome == OPEN)
    assert Project.loads(project.dumps()) == project
    assert ("one_row_per_person" in project.to_json()) == (answer != ABSENT), "an older file stays as it is"


@pytest.mark.parametrize(("answer", "person", "k"), CASES)
def test_the_command_line_plans_and_releases_what_is_answered(
    work: Path, capsys: pytest.CaptureFixture[str], answer: Any, person: bool, k: int
) -> None:
    (work / "p.json").write_text(json.dumps(file_of(answer, person, k)))
    outcome = expected(answer, person, k)
    codes = run("plan", "p.json", "--rows", 80), run("release", "p.json", "--data", "t.csv", "--out", "o", "--quiet")
    said = capsys.readouterr()
    if outcome != LOADS:
        assert codes == (2, 2)
        assert said.err.count("one_row_per_person") >= 2
        assert not (work / "o").exists()
        assert run("attack", "p.json", "--data", "t.csv") == 2
        assert ("Answer on the Data page, or in the project file" in said.err) == (outcome == OPEN)
        return
    assert codes == (0, 0)
    facts = json.loads((work / "o" / "release.json").read_text())
    unit = facts["unit"]
    assert (unit["person"], unit["rows_per_person"]) == ("patient" if person else None, k)
    assert unit["one_row_per_person"] is (False if person else None if answer == ABSENT else answer)
    assert unit["stated"] in said.out
    report = (work / "o" / "report.html").read_text()
    promise = {
        True: "each person has one row",
        False: f"no person has more than {k} rows",
        None: "does not state whether",
    }
    shown = "in the column" if person else promise[unit["one_row_per_person"]]
    assert shown in report
    assert ("This is a promise" in report or "read as a promise" in report) == (not person)
    assert run("plan", "p.json", "--rows", 80, "--json") == 0
    assert json.loads(capsys.readouterr().out)["unit"] == unit


@pytest.mark.parametrize(("answer", "person", "k"), CASES)
def test_a_notebook_releases_what_is_answered(answer: Any, person: bool, k: int) -> None:
    data = pd.read_csv(io.StringIO(CSV), dtype=str)
    outcome = expected(answer, person, k)
    if outcome == CONFLICT:
        with pytest.raises(ProjectError, match="one_row_per_person"):
            Project.from_json(file_of(answer, person, k))
        return
    project = Project.from_json(file_of(answer, person, k))
    if outcome == OPEN:
        for act in (
            lambda: preview(project, 80),
            lambda: release(project, data),
            lambda: play(
                project, Table.encode(read_table(CSV.encode(), "t.csv"), project.schema), np.random.default_rng()
            ),
            lambda: compare({"it": project}, Table.encode(read_table(CSV.encode(), "t.csv"), project.schema)),
        ):
            with pytest.raises(ProjectError, match="can one person have several rows"):
                act()
        return
    assert release(project, data).to_json()["unit"] == preview(project, 80).to_json()["unit"]


def test_nothing_is_read_while_the_question_is_open(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (work / "p.json").write_text(json.dumps(file_of(None, False, 1)))
    monkeypatch.setattr("espalier.core.tables.frames.read_data", lambda *_: pytest.fail("the table was read"))
    monkeypatch.setattr("espalier.core.tables.reading.read_table", lambda *_: pytest.fail("the table was read"))
    assert run("release", "p.json", "--data", "t.csv", "--out", "o") == 2
    assert run("attack", "p.json", "--data", "t.csv") == 2


@pytest.mark.parametrize("given", ["yes", 1, 0, [], {}])
def test_an_answer_is_true_false_or_null(given: Any) -> None:
    with pytest.raises(ProjectError, match="must be true, false or null"):
        Project.from_json({**file_of(ABSENT, False, 1), "one_row_per_person": given})


def test_the_answer_follows_the_person_column() -> None:
    project = Project.from_json(file_of(True, False, 1))
    named = project.with_plan(person="patient", rows=80)
    assert named.one_row_per_person is False
    assert named.with_plan(person=None).unit_open, "without the column, the question is open again"
    assert project.answered(False, "patient", 2).answered(True) == project
    with pytest.raises(ProjectError, match="3 rows per person"):
        project.with_plan(rows_per_person=3)
    assert replace(project, one_row_per_person=UNASKED).with_plan(rows_per_person=3).plan.rows_per_person == 3


@pytest.mark.parametrize(
    ("answer", "person", "k"), [(True, False, 1), (False, False, 3), (None, True, 1), (ABSENT, False, 1)]
)
def test_the_ledger_holds_the_answer(tmp_path: Path, answer: Any, person: bool, k: int) -> None:
    project = Project.from_json(file_of(answer, person, k))
    ledger = Ledger(tmp_path / "l.db", create=True)
    ledger.open_table("ward", epsilon=2.0, delta=1e-6, rows_per_person=k, person="patient" if person else None)
    release(project, pd.read_csv(io.StringIO(CSV), dtype=str), ledger=ledger.account("ward"))
    (entry,) = ledger.population_of("ward").entries
    assert entry.one_row_per_person is (False if person else None if answer == ABSENT else answer)
    assert ("the project states one row per person" in entry.unit) == (answer is True)


def test_a_column_named_after_people_is_proposed() -> None:
    assert proposed(["encounter_id", "patient_nbr"]) == "patient_nbr"
    assert proposed(["case"]) == "case"
    assert proposed(["encounter_id"], ["age", "patient_nbr"]) == "patient_nbr"
    assert proposed(["encounter_id", "order"], ["customer_type", "patient_age"]) is None
    assert proposed([], ["age"]) is None


def draft(name: str = "t.json") -> Project:
    return Project.load(name)


@pytest.mark.parametrize("extra", [(), ("--buy",)])
@pytest.mark.parametrize(
    ("options", "answer", "person", "k"),
    [
        ((), None, None, 1),
        (("--one-row-per-person",), True, None, 1),
        (("--rows-per-person", "4"), False, None, 4),
        (("--person", "patient"), False, "patient", ROWS_KEPT),
        (("--person", "patient", "--rows-per-person", "1"), False, "patient", 1),
    ],
)
@pytest.mark.usefixtures("work")
def test_init_writes_the_answer_of_its_options(
    capsys: pytest.CaptureFixture[str],
    extra: tuple[str, ...],
    options: tuple[str, ...],
    answer: Any,
    person: Any,
    k: int,
) -> None:
    assert run("init", "t.csv", *extra, *options) == 0
    made = draft()
    assert (made.one_row_per_person, made.plan.person, made.plan.rows_per_person) == (answer, person, k)
    assert ("patient" in made.schema) == (person is None and "patient" not in {c.name for c in made.schema.left_out})
    assert ("until then, no plan is possible" in capsys.readouterr().err) == (answer is None)
    assert run("plan", "t.json", "--rows", "80") == (2 if answer is None or person else 0)
    said = capsys.readouterr().err
    assert ("one_row_per_person" in said) == (answer is None)
    lacking = "cannot be bought from a table that is filled" if extra else "declare a total (rows)"
    assert (lacking in said) == (person is not None), "with a person column, only the public total is missing"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--one-row-per-person", "--person", "patient"), "not allowed with"),
        (("--one-row-per-person", "--rows-per-person", "2"), "contradicts"),
        (("--rows-per-person", "1"), "write --one-row-per-person"),
        (("--person", "nobody"), "there is no column 'nobody'"),
    ],
)
def test_init_refuses_options_that_contradict(
    work: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], said: str
) -> None:
    assert run("init", "t.csv", *options) == 2
    assert said in capsys.readouterr().err
    assert not (work / "t.json").exists()


class Terminal(io.StringIO):
    """Someone who types at a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("typed", "answer", "person", "k"),
    [
        ("\n", None, None, 1),
        ("what\nn\n", True, None, 1),
        ("y\n\n\n", False, "patient", ROWS_KEPT),
        ("yes\nnobody\npatient\nx\n3\n", False, "patient", 3),
        ("y\n-\n1\n5\n", False, None, 5),
        pytest.param(f"y\n-\n{'9' * 5000}\n5\n", False, None, 5, id="5,000 digits"),
    ],
)
@pytest.mark.usefixtures("work")
def test_init_asks_on_a_terminal(monkeypatch: pytest.MonkeyPatch, typed: str, answer: Any, person: Any, k: int) -> None:
    errors = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    monkeypatch.setattr(sys, "stderr", errors)
    assert run("init", "t.csv") == 0
    made = draft()
    assert (made.one_row_per_person, made.plan.person, made.plan.rows_per_person) == (answer, person, k)
    assert "Can one person have several rows" in errors.getvalue()


def test_a_terminal_that_ends_writes_no_draft(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert run("init", "t.csv") == 2
    assert not (work / "t.json").exists()


@pytest.mark.skipif(not DIABETES.exists(), reason="the diabetes table is not on this machine")
def test_the_diabetes_table_is_walked_from_draft_to_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two columns look like identifiers; the one that names patients is proposed, and protects all rows of each
    patient.
    """
    monkeypatch.chdir(tmp_path)
    wanted = ["encounter_id", "patient_nbr", "race", "gender", "age", "time_in_hospital", "readmitted"]
    with gzip.open(DIABETES, "rt") as file:
        pd.read_csv(file, dtype=str, keep_default_na=False)[wanted].to_csv("d.csv", index=False)
    assert run("init", "d.csv") == 0
    assert '"person": "patient_nbr"' in capsys.readouterr().err
    data = json.loads(Path("d.json").read_text())
    assert data["one_row_per_person"] is None
    text = Path("d.json").read_text().replace('"guessed"', '"confirmed"')
    Path("d.json").write_text(text)
    assert run("plan", "d.json", "--rows", "20000") == 2
    assert run("release", "d.json", "--data", "d.csv", "--out", "o") == 2
    capsys.readouterr()
    data = json.loads(text)
    data["plan"] |= {
        "person": "patient_nbr",
        "rows_per_person": 2,
        "rows": 19_000,
        "delta": 1e-6,
        "target": "readmitted",
    }
    Path("d.json").write_text(json.dumps(data))
    assert run("plan", "d.json") == 0
    assert "one person with all their rows ('patient_nbr', at most 2 of them kept)" in capsys.readouterr().out
    assert run("release", "d.json", "--data", "d.csv", "--out", "o", "--quiet") == 0
    facts = json.loads(Path("o/release.json").read_text())
    assert (facts["unit"]["person"], facts["unit"]["one_row_per_person"]) == ("patient_nbr", False)
    assert "patient_nbr" not in Path("o/synthetic.csv").read_text().splitlines()[0]
    assert "The protected unit is one person with all their rows" in render(facts)


def test_a_draft_does_not_show_whether_the_person_column_looked_like_an_identifier(tmp_path, monkeypatch):
    """Previously, it was listed as left out and confirmed if more than half of its cells differed."""
    monkeypatch.chdir(tmp_path)
    rows = [(f"p{i % 21}", "xy"[i % 2]) for i in range(41)]
    drafts = []
    for kept in (rows, [row for row in rows if row[0] != "p20"]):
        Path("t.csv").write_text("code,c\n" + "".join(f"{a},{b}\n" for a, b in kept))
        Path("p.json").unlink(missing_ok=True)
        assert main(["init", "t.csv", "--person", "code", "--rows-per-person", "2", "--out", "p.json"]) == 0
        drafts.append(json.loads(Path("p.json").read_text()))
    assert drafts[0] == drafts[1]
