"""Linked tables go through the app: two files go in, two come out, and no step needs the command line."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from espalier.core.ledger.archive import zipped
from espalier.core.server.allowed import VARIABLE
from espalier.core.server.events import LOG
from espalier.core.tables.catalogue import TRUSTED
from espalier.pages.data import column_review, opening_on_server
from tests.support.app import ROOT, field, finish, go, press, review, sample, sentences, state


def two_files(people: int = 250) -> tuple[bytes, bytes]:
    """Return a table of people and one of their visits, in which most visits repeat the previous visit."""
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
    assert "of the visits are kept; with" in sentences(app)
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
    counted = next(m for m in app.multiselect if m.label == "Columns counted at each visit")
    assert list(counted.options) == ["visits.diag", "visits.back"], "a target may be counted; a person column may not"
    counted.select("visits.diag").run()
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
    assert any("synthetic people and their visits" in s.value for s in app.subheader)
    with zipfile.ZipFile(io.BytesIO(zipped(made.files))) as archive:
        assert {"patients.csv", "visits.csv"} <= set(archive.namelist())
    labels = [b.label for b in app.get("download_button")]
    assert labels[1:4] == ["Table of patients", "Table of visits", "Report"]
    go(app, "diagnostics")
    finish(press(app, "Compare with the real tables"))
    assert "Predicting" in sentences(app) or "was not predicted" in sentences(app)
    assert not app.exception, [e.value for e in app.exception]
    go(app, "analyse")
    at_each = next(s for s in app.selectbox if s.label == "Column at each visit")
    assert at_each.value == "visits.diag"
    assert "at visit 1" in sentences(app)
    assert "at visit 3" in sentences(app)
    at_each.select("visits.back").run()
    assert "was counted at the first visit only" in sentences(app)
    for page in ("compare", "ledger", "data", "structure", "plan"):
        go(app, page)


def test_the_review_offers_only_what_can_be_changed(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[dict[str, Any]] = []
    monkeypatch.setattr(column_review, "_component", lambda: lambda **given: sent.extend(given["data"]["rows"]))
    sample(app, "clinic")
    names = {row["name"] for row in sent}
    assert "visits.back" in names
    assert not {"patient", "visits per person"} & names, "they are stated in the box above"
    assert all("person" not in row["acts"] for row in sent)
    sent.clear()
    sample(app, "hiring")
    assert all("person" in row["acts"] for row in sent)


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


def test_the_bins_of_days_between_visits_are_typed(opened: AppTest) -> None:
    def type_in(days: str) -> tuple[float, ...]:
        next(t for t in opened.text_input if t.label.startswith("Days between visits")).set_value(days).run()
        assert not opened.exception
        link = state(opened).project.linked
        assert link is not None
        return link.gap

    before = type_in("0, 15, 31, 366")
    assert before == (0, 15, 31, 366)
    table: Any = state(opened).table()
    assert table.steps.sizes["visits.days since the visit before"] == 3
    for wrong, why in (("0, x", "must be a number"), ("5, 31", "beginning with 0"), ("0, 1.5, 9", "whole days")):
        assert type_in(wrong) == before
        assert any(why in e.value and "bins are unchanged" in e.value for e in opened.error), opened.error
    assert type_in("0, 31, 62") == (0, 31, 62)
    assert not opened.error
    assert "A hierarchy for a column with many codes" not in sentences(opened)
    assert "do not support constraints yet" in sentences(opened)


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
    field(app, "number_input", "Declared number of people").set_value(7000).run()
    assert not any("rows" in n.label for n in app.number_input)


@pytest.mark.parametrize(
    ("odd", "why"), [(b",7,old,old,old,1\n", "has an empty cell"), (b"\xe9,7,old,old,old,1\n", "is not UTF")]
)
def test_visits_without_a_person_are_refused_with_a_message(app: AppTest, odd: bytes, why: str) -> None:
    """Previously, the project was opened, and the Data page showed an error page from then on."""
    document = (ROOT / "docs" / "linked-tables.md").read_text("utf-8")
    given = json.loads(document.split("```json")[1].split("```")[0])
    given["schema"] += [{**given["schema"][0], "name": f"visits.{n}"} for n in ("diag", "insulin", "readmitted")]
    del given["tables"]["visits"]["dates"]
    give(app, "Its project file", "p.json", json.dumps(given).encode())
    give(app, "Table of people", "patients.csv", b"patient_nbr,age\n1,young\n2,old\n")
    visits = b"patient_nbr,encounter_id,diag,insulin,readmitted,admitted\n1,7,young,old,old,1\n"
    give(app, "Table of their visits", "visits.csv", visits + odd)
    assert why in app.error[0].value
    assert not [b for b in app.button if b.label == "Open the project with these tables"]


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


@pytest.fixture
def database(tmp_path, monkeypatch) -> None:
    """A database of the server's allow-list with the two tables."""
    for name, content in zip(("patients", "visits"), two_files(), strict=True):
        (tmp_path / f"{name}.csv").write_bytes(content)
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as con:
        for name in ("patients", "visits"):
            con.execute(f"CREATE TABLE {name} AS FROM read_csv('{tmp_path}/{name}.csv')")
        con.execute("CREATE VIEW visits_seen AS FROM visits")
    monkeypatch.setenv("CLINIC", f"duckdb://{tmp_path}/clinic.duckdb")
    monkeypatch.setenv(VARIABLE, "env:CLINIC")


def read_both(app: AppTest, where: str = "env:CLINIC", visits: str = "visits") -> AppTest:
    names = {
        "The database": where,
        "Name of the table of people": "patients",
        "Name of the table of their visits": visits,
    }
    for label, value in names.items():
        next(t for t in app.text_input if t.label == label).set_value(value).run()
    return press(app, "Read these tables")


@pytest.mark.usefixtures("database")
def test_two_tables_of_a_database_are_drafted_and_opened_again(
    app: AppTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LOG, str(tmp_path / "audit.jsonl"))
    app.switch_page("pages/02_data.py").run()
    read_both(app, visits="nowhere")
    assert "nowhere" in app.error[0].value
    read_both(app, where="env:SECRET")
    assert "does not allow that table" in app.error[0].value
    read_both(app)
    choose(app, "What orders the visits?", "admitted")
    review(press(app, "Guess the columns of both tables"))
    project = state(app).project
    assert project.linked is not None
    assert (project.linked.people, project.linked.visits) == ("patients", "visits")
    assert project.linked.gap, "a column of dates is read as dates"
    assert state(app).table().rows == 250
    # the tables are opened again in the same project
    read_both(app)
    press(app, "Open these tables in the open project")
    assert state(app).project.linked == project.linked
    assert state(app).table().rows == 250
    logged = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    sources = [event["source"] for event in logged if event["event"] == "open"]
    assert sources == ["server"] * 4, "two readings, the draft, and the tables opened again"


@pytest.mark.usefixtures("database")
def test_a_view_among_two_tables_is_stated(app: AppTest) -> None:
    """Previously, plan, release and ledger did not state it, so no one knew that its author is trusted."""
    app.switch_page("pages/02_data.py").run()
    read_both(app)
    choose(app, "What orders the visits?", "admitted")
    press(app, "Guess the columns of both tables")
    assert state(app).table().origin == "table"
    assert state(app).notice == ""
    read_both(app, visits="visits_seen")
    choose(app, "What orders the visits?", "admitted")
    review(press(app, "Guess the columns of both tables"))
    assert state(app).table().origin == "view"
    go(app, "plan")
    assert TRUSTED["view"] in [shown.value for shown in app.info]


@pytest.mark.usefixtures("database")
def test_tables_beyond_the_limit_are_refused(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening_on_server, "LARGE_CELLS", 100)
    app.switch_page("pages/02_data.py").run()
    read_both(app)
    assert "too many for the app" in app.error[0].value


def test_the_fields_of_a_database_need_an_allow_list(app: AppTest) -> None:
    app.switch_page("pages/02_data.py").run()
    assert not [t for t in app.text_input if t.label == "The database"]
