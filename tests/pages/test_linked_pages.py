"""The journey of linked tables through the app: two files in, two files out, and nothing sent to the command line."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from datetime import date, timedelta

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from espalier.core.ledger.archive import zipped
from tests.support.app import ROOT, finish, go, press, review, sentences, state


def two_files(people: int = 250) -> tuple[bytes, bytes]:
    """A table of people and one of their visits, in which most visits repeat the previous visit."""
    rng = np.random.default_rng(0)
    first, second = [["patient", "age"]], [["patient", "admitted", "diag", "back"]]
    for i in range(people):
        first.append([f"q{i}", ("young", "old")[i % 2]])
        day, diag = date(2020, 1, 1) + timedelta(int(rng.integers(300))), "a"
        for _ in range(int(rng.integers(1, 5))):
            diag = diag if rng.random() < 0.7 else str(rng.choice(list("abc")))
            second.append([f"q{i}", day.isoformat(), diag, ("no", "yes")[int(rng.random() < 0.3)]])
            day += timedelta(int(rng.integers(1, 100)))
    out = []
    for rows in (first, second):
        text = io.StringIO()
        csv.writer(text).writerows(rows)
        out.append(text.getvalue().encode())
    return out[0], out[1]


def give(app: AppTest, label: str, file: str, content: bytes) -> None:
    next(u for u in app.file_uploader if u.label == label).upload(file, content).run()
    assert not app.exception, [e.value for e in app.exception]


def choose(app: AppTest, label: str, value: str) -> None:
    next(s for s in app.selectbox if s.label.startswith(label)).select(value).run()
    assert not app.exception, [e.value for e in app.exception]


@pytest.fixture
def opened(app: AppTest) -> AppTest:
    people, visits = two_files()
    give(app, "Table of people, or one table with both", "patients.csv", people)
    give(app, "Table of their visits", "visits.csv", visits)
    choose(app, "What orders the visits?", "admitted")
    assert "of the visits; one more would retain" in sentences(app)
    return press(app, "Guess the columns of both tables")


def test_two_files_become_a_release_of_two_files(opened: AppTest) -> None:
    app = review(opened)
    link = state(app).project.linked
    assert link is not None
    assert (link.people, link.visits, link.by, link.order) == ("patients", "visits", "patient", "admitted")
    assert not state(app).project.unconfirmed
    go(app, "structure")
    choose(app, "Column of the next visit", "visits.back")
    next(m for m in app.multiselect if m.label == "Its causes at the previous visit").select("visits.diag").run()
    assert not app.exception
    assert state(app).project.linked.arrows == (("visits.diag", "visits.back"),)
    assert ["visits.diag@before", "visits.back"] in json.loads(state(app).project.dumps())["dag"]["edges"]
    go(app, "plan")
    assert not app.error, [e.value for e in app.error]
    go(app, "release")
    choose(app, "Paid from", "Not recorded in a ledger")
    assert "all their rows in both tables" in sentences(app), "what it will spend"
    finish(press(app, "Spend ε"))
    assert "of them kept" not in sentences(app), "what it spent"
    assert not app.error, [e.value for e in app.error]
    made = state(app).released
    assert made is not None
    assert {"patients.csv", "visits.csv", "release.json"} <= set(made.files)
    with zipfile.ZipFile(io.BytesIO(zipped(made.files))) as archive:
        assert {"patients.csv", "visits.csv"} <= set(archive.namelist())
    labels = [b.label for b in app.get("download_button")]
    assert labels[1:4] == ["Table of patients", "Table of visits", "Report"]
    go(app, "diagnostics")
    finish(press(app, "Compare with the real tables"))
    assert "Predicting" in sentences(app) or "was not predicted" in sentences(app)
    assert not app.exception, [e.value for e in app.exception]
    for page in ("analyse", "compare", "ledger", "data", "structure", "plan"):
        go(app, page)


def test_another_number_of_kept_visits_changes_the_number_of_visits(opened: AppTest) -> None:
    box = next(n for n in opened.number_input if n.label == "How many visits of each person are kept?")
    box.set_value(2).run()
    assert not opened.exception
    project, text = state(opened).project, state(opened).text
    assert project.linked is not None
    assert project.linked.keep == 2
    assert project.schema["visits per person"].size == 2
    assert text is not None
    assert text.columns["visits per person"].values == ("1", "2")
    assert state(opened).table().rows == 250


def test_a_project_of_linked_tables_opens_with_its_two_files(app: AppTest) -> None:
    document = (ROOT / "docs" / "linked-tables.md").read_text("utf-8")
    given = json.loads(document.split("```json")[1].split("```")[0])
    given["schema"] += [{**given["schema"][0], "name": f"visits.{n}"} for n in ("diag", "insulin", "readmitted")]
    del given["tables"]["visits"]["dates"]
    give(app, "Its project file", "p.json", json.dumps(given).encode())
    give(app, "Table of people", "patients.csv", b"patient_nbr,age\n1,young\n2,old\n")
    assert "Also choose the other table" in sentences(app)
    give(
        app, "Table of their visits", "visits.csv", b"patient_nbr,diag,insulin,readmitted,admitted\n1,young,old,old,1\n"
    )
    assert "there is no column" in app.error[0].value
    visits = b"patient_nbr,encounter_id,diag,insulin,readmitted,admitted\n1,7,young,old,old,1\n2,8,old,old,old,2\n"
    give(app, "Table of their visits", "visits.csv", visits)
    press(app, "Open the project with these tables")
    assert state(app).table().rows == 2
    go(app, "plan")
    assert not app.error, [e.value for e in app.error]


def test_one_file_with_both_asks_for_the_columns_of_the_person(app: AppTest) -> None:
    _, visits = two_files(40)
    give(app, "Table of people, or one table with both", "encounters.csv", visits)
    choose(app, "Who are the people?", "patient")
    choose(app, "What orders the visits?", "admitted")
    assert not [b for b in app.button if b.label.startswith("Guess the columns of both")]
    next(m for m in app.multiselect if m.label == "Which columns describe the person?").select("diag").run()
    press(app, "Guess the columns of both tables")
    assert state(app).project.linked.together
    assert "people.diag" in state(app).project.schema
