"""The Data page asks whether one person can have several rows; Plan and Release wait for the answer."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from espalier.core.blurring.registry import BLURRINGS
from espalier.core.errors import EspalierError
from espalier.core.project.file import Project
from espalier.core.project.people import ROWS_KEPT
from espalier.core.tables.reading import read_table
from espalier.pages.session import restore
from espalier.pages.session.session import Session, blank
from tests.support.app import answer, field, finish, go, press, review, sample, sentences, start, state, upload

TABLE = "encounter_id,patient_nbr,sex,ill\n" + "".join(
    f"{1000 + i},{i % 70},{'fm'[i % 2]},{('no', 'yes')[i % 3 == 0]}\n" for i in range(100)
)
ABSENT = "no key"
CASES = [
    pytest.param(given, person, k, id=f"{json.dumps(given)}, {'person' if person else 'no person'}, k={k}")
    for given, person, k in itertools.product((True, False, None, ABSENT), (True, False), (1, 3))
]


@pytest.fixture
def app() -> AppTest:
    return start()


@pytest.fixture
def guessed(app: AppTest) -> AppTest:
    """A table that was guessed, with two identifiers set aside."""
    return press(upload(app, TABLE, "ward.csv"), "Guess")


def asked(app: AppTest) -> bool:
    return any(h.value.startswith("First: can one person") for h in app.subheader)


def waiting(app: AppTest) -> bool:
    return "One question comes first" in sentences(app)


def test_a_guessed_table_is_asked_first_and_plan_and_release_wait(guessed: AppTest) -> None:
    assert asked(guessed)
    assert state(guessed).project.one_row_per_person is None
    assert not any(b.label == "Skip to Plan" for b in guessed.button)
    for page in ("plan", "release"):
        assert waiting(go(guessed, page))
        assert not guessed.selectbox
        assert not any(b.label.startswith("Spend") for b in guessed.button)
    assert not waiting(go(guessed, "structure"))
    press(go(guessed, "plan"), "Answer it on the Data page")


def test_a_bought_schema_is_asked_too(app: AppTest) -> None:
    press(upload(app, TABLE, "ward.csv"), "Buy the schema")
    assert asked(app)
    assert waiting(go(app, "plan"))


def test_the_patients_column_is_proposed_and_protects_them(guessed: AppTest) -> None:
    app = guessed
    field(app, "radio", "Can one person").set_value("column").run()
    assert field(app, "selectbox", "Column that identifies").value == "patient_nbr"
    assert field(app, "number_input", "Keep at most").value == ROWS_KEPT
    press(app, "Use this answer")
    project = state(app).project
    assert (project.one_row_per_person, project.plan.person, project.plan.rows_per_person) == (
        False,
        "patient_nbr",
        ROWS_KEPT,
    )
    assert project.schema.unconfirmed[-1:] == ("encounter_id",), "naming the person confirms that it stays out"
    review(app)
    go(app, "plan")
    assert not waiting(app)
    field(app, "number_input", "Declared total").set_value(90).run()
    go(app, "release")
    field(app, "selectbox", "Paid from").set_value("Not recorded in a ledger").run()
    finish(press(app, "Spend"))
    unit = json.loads(state(app).released.files["release.json"])["unit"]
    assert (unit["person"], unit["one_row_per_person"]) == ("patient_nbr", False)


def test_one_row_per_person_warns_where_an_identifier_repeats(guessed: AppTest) -> None:
    field(guessed, "radio", "Can one person").set_value("no").run()
    (said,) = [w.value for w in guessed.warning if "looks like an identifier" in w.value]
    assert "`patient_nbr`" in said
    assert "encounter" not in said
    assert "Confidential" in said
    press(guessed, "Use this answer")
    assert state(guessed).project.one_row_per_person is True
    assert "One row per person. This is your promise; nothing checks it." in sentences(guessed)
    assert not waiting(go(guessed, "plan"))
    assert not any(n.label.startswith("Rows per person") for n in guessed.number_input)


def test_a_promise_needs_a_number(guessed: AppTest) -> None:
    field(guessed, "radio", "Can one person").set_value("promise").run()
    assert next(b for b in guessed.button if b.label == "Use this answer").disabled
    answer(guessed, rows=5)
    assert (state(guessed).project.one_row_per_person, state(guessed).project.plan.rows_per_person) == (False, 5)
    assert field(go(guessed, "plan"), "number_input", "Rows per person").min == 2


def test_an_answer_is_changed_or_kept(guessed: AppTest) -> None:
    answer(guessed, "patient_nbr", 3)
    press(guessed, "Change the answer")
    assert asked(guessed)
    assert field(guessed, "radio", "Can one person").value == "column"
    assert field(guessed, "number_input", "Keep at most").value == 3
    assert not waiting(go(guessed, "plan")), "the old answer is valid until another one is given"
    press(go(guessed, "data"), "Keep the old answer")
    assert not asked(guessed)
    answer(guessed)
    plan = state(guessed).project.plan
    assert (state(guessed).project.one_row_per_person, plan.person, plan.rows_per_person) == (True, None, 1)
    assert waiting(go(answer_again(guessed), "release")) is False


def answer_again(app: AppTest) -> AppTest:
    return answer(go(app, "data"), "patient_nbr")


def test_the_only_column_cannot_be_the_person(app: AppTest) -> None:
    press(upload(app, "id\n" + "\n".join(f"p{i}" for i in range(40)) + "\n"), "Guess")
    answer(app, "id")
    assert "is the only column" in sentences(app)
    assert state(app).project.unit_open


@pytest.mark.parametrize("name", ["readmission", "hiring", "services", "stays", "visits"])
def test_samples_answer_the_question(app: AppTest, name: str) -> None:
    sample(app, name)
    assert not asked(app)
    assert state(app).project.one_row_per_person is (name != "visits")
    assert not waiting(go(app, "plan"))


def test_a_method_that_promises_nothing_is_not_asked(guessed: AppTest) -> None:
    state(guessed).editor.change_plan(method=next(iter(BLURRINGS)))
    assert not waiting(go(guessed, "plan"))


@pytest.mark.parametrize(("given", "person", "k"), CASES)
def test_a_project_file_is_asked_only_where_it_leaves_the_question_open(
    app: AppTest, given: Any, person: bool, k: int
) -> None:
    plan = {"method": "independent", "epsilon": 1.0, "delta": 1e-6, "rows_per_person": k}
    data = {
        "format": "espalier-project/1",
        "name": "ward",
        "schema": [{"name": "sex", "kind": "categorical", "categories": ["f", "m"]}],
        "plan": {**plan, **({"person": "patient_nbr", "rows": 80} if person else {})},
        **({} if given == ABSENT else {"one_row_per_person": given}),
    }
    try:
        project = Project.loads(json.dumps(data))
    except EspalierError:
        assert (given is True and (person or k > 1)) or (given is False and not person and k == 1)
        uploader = next(u for u in app.file_uploader if u.label == "Its project file")
        uploader.upload("p.json", json.dumps(data).encode(), "application/json").run()
        assert "one\\_row\\_per\\_person" in sentences(app)
        assert not state(app).has_project
        return
    state(app).open(project, read_table(TABLE.encode(), "ward.csv"))
    is_open = given is None and not person
    assert asked(go(app, "data")) == is_open
    for page in ("plan", "release"):
        assert waiting(go(app, page)) == is_open
        assert not app.error
    answer(go(app, "data"))
    assert state(app).project.one_row_per_person is True, "each answer can be changed"


@pytest.mark.parametrize("given", [(True, None, 1), (False, "patient_nbr", 3), (False, None, 4)])
def test_the_answer_survives_a_reload_while_columns_are_guessed(guessed: AppTest, given: Any) -> None:
    state(guessed).answer(*given)
    text = restore.kept(state(guessed))
    assert json.loads(text)["project"] is None, "guesses were read from rows, so they are not kept"
    app = start()
    state(app).found = restore.read(text)
    app.run()
    assert "was open before the reload" in sentences(app)
    press(upload(app, TABLE, "ward.csv"), "Guess")
    press(app, "Restore the answer")
    project = state(app).project
    assert (project.one_row_per_person, project.plan.person, project.plan.rows_per_person) == given
    assert not asked(app)


@pytest.mark.parametrize("given", ["yes", [1, None, 1], [True], [True, "who", 1], [False, None, 1], [False, 3, 2]])
def test_a_forged_answer_from_the_browser_is_refused(guessed: AppTest, given: Any) -> None:
    state(guessed).answer(True)
    data = json.loads(restore.kept(state(guessed)))
    with pytest.raises(EspalierError):
        restore.read(json.dumps({**data, "answer": given}))


def test_an_answer_for_another_table_is_not_offered(guessed: AppTest) -> None:
    state(guessed).answer(False, "patient_nbr", 2)
    found = restore.read(restore.kept(state(guessed)))
    session = Session()
    assert not session.has_project
    text = read_table(b"sex,ill\nf,no\nm,yes\n", "other.csv")
    session.open(blank("other", state(guessed).project.schema), text)
    assert not restore.fits(session, replace(found))
