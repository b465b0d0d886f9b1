"""Bad input through the upload widget: a file that cannot be opened is explained, and any other is shown."""

from __future__ import annotations

import json

import pytest
from streamlit.testing.v1 import AppTest

from tests.conftest import SAMPLES
from tests.support import corpus
from tests.support.app import go, people, press, review, sample, state, upload

TABLES = {c.name: c for c in corpus.tables()}
REFUSED = [c for c in TABLES.values() if c.status == 2 and c.name.startswith(("csv", "xlsx", "parquet"))]
SLOW = ("bomb", "laughs", "million", "ten thousand", "far corner", "gzipped twice")
ODD = [c for c in TABLES.values() if c.status == 0 and c.name.startswith("own project: column")]


def give(app: AppTest, label: str, file: str, content: bytes) -> None:
    next(u for u in app.file_uploader if u.label == label).upload(file, content).run()
    assert not app.exception, [e.value for e in app.exception]


@pytest.mark.parametrize("kind", ["csv", "xlsx", "parquet"])
def test_what_is_refused_is_explained_and_the_next_file_is_welcome(app: AppTest, kind: str) -> None:
    told = 0
    for case in [c for c in REFUSED if c.name.startswith(kind) and not any(s in c.name for s in SLOW)][::2]:
        give(app, "Your table", case.file, case.make())
        told += len(app.error)
        assert app.error or any(b.label.startswith("Guess") for b in app.button), case.name
        assert not state(app).has_project
    assert told >= 5
    give(app, "Your table", "good.csv", corpus.text().encode())
    assert not app.error
    press(app, "Guess the columns")


@pytest.mark.parametrize("name", ["csv: a gzip bomb", "xlsx: a bomb of rows", "parquet: a bomb of one long text"])
def test_bombs(app: AppTest, name: str) -> None:
    give(app, "Your table", TABLES[name].file, TABLES[name].make())
    assert app.error or any(b.label.startswith("Guess") for b in app.button)


@pytest.mark.parametrize("case", ODD[::3], ids=[c.name for c in ODD[::3]])
def test_odd_names_can_be_opened_planned_and_looked_at(app: AppTest, case: corpus.Case) -> None:
    give(app, "Your table", case.file, case.make())
    give(app, "Its project file", "p.json", json.dumps(case.project).encode())
    press(app, "Open the project with this table")
    for page in ("structure", "plan", "release", "diagnostics", "data"):
        go(app, page)
    assert len(app.success) == 1
    assert not app.error


def test_broken_projects(app: AppTest) -> None:
    for name, content in corpus.projects().items():
        give(app, "Its project file", "p.json", content)
        assert app.error, name
        assert not state(app).has_project


def test_a_project_with_an_unknown_key_of_the_plan_is_refused_with_the_next_step(app: AppTest) -> None:
    """No field of the Plan page could remove the key."""
    project = json.loads((SAMPLES / "hiring.json").read_text())
    project["plan"]["evaluation_share"] = 0.1
    give(app, "Its project file", "p.json", json.dumps(project).encode())
    (refusal,) = app.error
    assert refusal.value.replace("\\", "") == "plan: unknown key 'evaluation_share'; remove it from the project file."
    assert not state(app).has_project


def test_the_number_of_rows_of_an_own_table_is_declared_with_one_click(app: AppTest) -> None:
    go(review(press(upload(app, people()), "Guess the columns")), "plan")
    assert state(app).public_rows is None
    press(app, "Use the open table's number of rows")
    assert state(app).public_rows == 60


def test_home_leads_to_the_upload_even_if_a_sample_is_open(app: AppTest) -> None:
    def expanded() -> bool:
        found = next(e for e in app.expander if e.label == "Open something else")
        assert any(getattr(u, "label", "") == "Your table" for u in found.get("file_uploader"))
        return found.proto.expanded

    go(sample(app, "hiring"), "data")
    assert not expanded()
    press(go(app, "home"), "Open my own table")
    go(app, "data")
    assert expanded()
    give(app, "Your table", "own.csv", corpus.text().encode())
    assert expanded(), "it stays until a table is open"
    press(app, "Guess the columns")
    assert not expanded()
    press(app, "Go back to")
    assert not expanded()
