"""The ledger in the app: a budget is opened and spent, its remainder is shown, and releases are downloaded again."""

from __future__ import annotations

import gc
import json
import re
import threading
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from espalier.core.errors import ProjectError
from espalier.core.ledger.ledger import Ledger
from espalier.core.ledger.population import PART_NAMES, Population
from espalier.core.privacy.journal import Journal
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release.shelf import identity
from espalier.core.release.spend import release
from espalier.core.server.release_job import Paid
from espalier.core.tables.table import Table
from espalier.pages.release import bundle, spending
from espalier.pages.release.payment import NEW, UNRECORDED
from espalier.pages.session.session import Session
from tests.support.app import ROOT, field, finish, go, people, press, review, sample, sentences, state, upload


@pytest.fixture(autouse=True)
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ESPALIER_LEDGER", str(tmp_path / "ledger.db"))
    return tmp_path / "ledger.db"


def pay_from(app: AppTest, budget: str) -> AppTest:
    field(app, "selectbox", "Paid from").set_value(budget).run()
    assert not app.exception
    return app


def opened(app: AppTest, epsilon: float = 2.0) -> AppTest:
    """Return the sample, with a budget."""
    pay_from(go(sample(app, "hiring"), "release"), NEW)
    field(app, "text_input", "Total ε").set_value(f"{epsilon:g}").run()
    return press(app, "Open this budget")


def budget(where: Path, table: str = "hiring") -> Population:
    return Ledger(where).population_of(table)


def test_a_table_named_like_a_choice_is_paid_for(app: AppTest, where: Path) -> None:
    """Previously, a release from a table of this name was not recorded."""
    Ledger(where, create=True).open_table(UNRECORDED, epsilon=4, delta=1e-7)
    pay_from(pay_from(go(sample(app, "hiring"), "release"), NEW), UNRECORDED)
    assert state(app).paid_from == UNRECORDED
    assert "more like this" in sentences(app), "what is left of the budget"


def test_an_interrupted_release_is_finished_on_the_ledger_page(
    app: AppTest, where: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answers are stored except for one, which comes from the open table: nothing more is spent."""
    opened(app)
    project, table = state(app).project, state(app).table()
    real = Journal.answer

    def crash(own: Journal, *asked: Any) -> bytes:
        if own.place == 1:
            raise KeyboardInterrupt
        return real(own, *asked)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "answer", crash)
        with pytest.raises(KeyboardInterrupt):
            release(project.with_plan(delta=None), table, ledger=Ledger(where).account("hiring"))
    (entry,) = budget(where).entries
    assert (entry.status, entry.note) == ("reserved", "stopped: cancelled")
    go(app, "ledger")
    assert "1 of its noisy answers are stored" in sentences(app)
    finish(press(app, "Finish the release"))
    (entry,) = budget(where).entries
    assert entry.status == "spent"
    assert entry.released is not None
    assert "has not finished" not in sentences(app)


def test_a_budget_is_opened_paid_from_and_seen(app: AppTest, where: Path) -> None:
    opened(app)
    assert state(app).paid_from == "hiring"
    assert (budget(where).epsilon, budget(where).neighbors) == (2.0, "replace-one")
    assert "After this plan" in sentences(app)
    assert re.search(r"uses \*\*[\d.]+ %\*\* of the total budget\.", sentences(app))
    assert len(re.findall(r"\d+ more like this", sentences(app))) == 1, "one line only"
    field(app, "text_input", "Note for the ledger").set_value("for the board").run()
    finish(press(app, "Spend"))
    (entry,) = budget(where).entries
    assert (entry.status, entry.note) == ("spent", "for the board")
    assert "Recorded in the ledger" in sentences(app)
    made = state(app).released
    assert json.loads(made.files["release.json"])["ledger"]["entry"] == entry.id

    go(app, "plan")
    assert "After this plan" in sentences(app)
    go(app, "ledger")
    assert [m.label for m in app.metric] == ["Total ε", "Spent ε", "Spent ρ", "Remaining ρ", "Largest next ε"]
    assert "Releasing the same plan again, ε = 1, would leave" in sentences(app)
    state(app).editor.change_plan(epsilon=0.5)
    assert "The open plan, ε = 0.5, would leave" in sentences(go(app, "ledger"))
    shown = app.dataframe[0].value
    assert shown["entry"].dropna().tolist() == [entry.id]
    assert set(shown["status"]) == {"spent"}
    assert shown["what"].tolist() == ["release", *(f"↳ {PART_NAMES[x.kind]}" for x in entry.parts)]
    assert shown["ρ"].tolist() == [entry.counted, *(x.rho for x in entry.parts)]
    field(app, "toggle", "Show every selection").set_value(False).run()
    assert app.dataframe[0].value["what"].tolist() == ["release"]
    press(app, "Check every hash")
    assert any(f"{3 + len(entry.parts)} events" in s.value for s in app.success)

    field(app, "selectbox", "Release").set_value(entry.id).run()
    assert not app.exception
    downloads = {d.proto.label for d in app.get("download_button")}
    assert {"All files (zip)", "Synthetic table", "Report", "Export as CSV"} <= downloads
    kept = Ledger(where).files(entry.released)
    assert kept == made.files
    from espalier.core.ledger.archive import zipped

    assert zipfile.ZipFile(BytesIO(zipped(kept))).read("synthetic.csv") == made.files["synthetic.csv"]
    press(app, "Open its project")
    assert state(app).project == made.release.project

    field(app, "selectbox", "Release").set_value(entry.id).run()
    press(app, "Analyse it")
    assert list(state(app).taken) == [identity(kept)]
    assert field(app, "selectbox", "Release").value == identity(kept)
    assert "Choose the columns above" in sentences(app) or "The answer and its interval appear here" in sentences(app)


def test_what_is_not_left_cannot_be_spent(app: AppTest, where: Path) -> None:
    opened(app, 1.2)
    finish(press(app, "Spend"))
    assert "has only ρ =" in sentences(app)
    assert not any(b.label.startswith("Spend") for b in app.button)
    assert len(budget(where).entries) == 1
    assert any(b.label == "Choose another ε on the Plan page" for b in app.button)
    state(app).editor.change_plan(epsilon=budget(where).largest())
    go(app, "release")
    finish(press(app, "Spend"))
    assert len(budget(where).entries) == 2


def test_somebody_else_was_faster(app: AppTest, where: Path) -> None:
    """Another release took the budget that the page shows: the refusal is clear, and nothing is drawn or spent."""
    opened(app, 1.2)
    from espalier.core.privacy.accounting import Budget

    project = budget(where).fits(Project.load(ROOT / "sample_data" / "hiring.json"), "hiring")
    Ledger(where).account("hiring").reserve(project, Budget.of(project.plan, 6000), b"other")
    finish(press(app, "Spend"))
    assert "the ledger refuses" in sentences(app)
    assert state(app).spent == []
    assert [e.status for e in budget(where).entries] == ["reserved"]


def test_another_unit_is_explained_and_mended(app: AppTest) -> None:
    opened(app)
    state(app).answer(False, None, 3)
    state(app).editor.change_plan(delta=1e-7)
    go(app, "plan")
    assert "fixed rows per person" in sentences(app).replace("\\", "")
    go(app, "release")
    assert not any(b.label.startswith("Spend") for b in app.button)
    press(app, "Use the ledger's unit")
    assert "the project states that a person can have several rows" in sentences(app)
    assert state(app).project.plan.rows_per_person == 3, "the answer about people is not a setting"
    state(app).answer(True)
    press(app.run(), "Use the ledger's unit")
    plan = state(app).project.plan
    assert (plan.rows_per_person, plan.delta) == (1, None)
    assert any(b.label.startswith("Spend") for b in app.button)


def test_the_person_column_is_fixed_and_mended(app: AppTest, where: Path) -> None:
    pay_from(go(sample(app, "visits"), "release"), NEW)
    person = state(app).project.plan.person
    assert person
    assert field(app, "text_input", "Person column").value == person
    press(app, "Open this budget")
    assert budget(where, "visits").persons == {"visits": person}
    plan = state(app).project.plan
    state(app).answer(False, None, plan.rows_per_person)
    go(app, "release")
    assert f"fixed the person column '{person}'" in sentences(app).replace("\\", "")
    assert not any(b.label.startswith("Spend") for b in app.button)
    press(app, "Use the ledger's unit")
    assert state(app).project.plan.person == person
    assert state(app).project.plan.rows_per_person == plan.rows_per_person
    shown = sentences(go(app, "ledger")).replace("\\", "")
    assert f"in `visits`: at most {plan.rows_per_person}, enforced by the person column '{person}'" in shown

    field(app, "text_input", "Name of the table").set_value("survey").run()
    field(app, "selectbox", "People in the table").set_value("visits").run()
    field(app, "text_input", "Person column").set_value("").run()
    press(app, "Open this budget")
    assert budget(where, "survey").persons == {"visits": person, "survey": None}
    assert "in 'survey'; no person column enforces this" in sentences(app).replace("\\", "")


def test_diagnostics_are_recorded_before_the_next_release(app: AppTest, where: Path) -> None:
    opened(app)
    finish(press(app, "Spend"))
    finish(press(go(app, "diagnostics"), "Compare with the real rows"))
    assert state(app).findings
    (looked,) = budget(where).diagnoses
    assert looked.what == "the Diagnostics page"
    state(app).editor.change_plan(epsilon=0.3)
    finish(press(go(app, "release"), "Spend"))
    assert [e.diagnostics_before for e in budget(where).entries] == [0, 1]
    assert json.loads(state(app).released.files["release.json"])["ledger"]["diagnostics_before"] == 1
    go(app, "ledger")
    assert "were viewed once" in sentences(app).replace("\\", "")
    shown = app.dataframe[0].value
    assert shown["looked"].dropna().tolist() == [1, 0]
    assert set(shown["unit"].dropna()) == {
        "promised; no person column enforces it; the project states one row per person"
    }


def test_diagnostics_that_cannot_be_recorded_are_not_computed(app: AppTest, where: Path) -> None:
    opened(app)
    finish(press(app, "Spend"))
    kept = where.read_bytes()
    where.write_bytes(b"not a database" * 100)
    finish(press(go(app, "diagnostics"), "Compare with the real rows"))
    assert not state(app).findings
    assert "did not finish" in sentences(app)
    where.write_bytes(kept)
    finish(press(go(app, "diagnostics"), "Compare with the real rows"))
    assert state(app).findings
    assert len(budget(where).diagnoses) == 1


def test_a_sample_needs_no_ledger_and_says_so(app: AppTest, where: Path) -> None:
    finish(press(go(sample(app, "hiring"), "release"), "Spend"))
    assert "Not recorded in a ledger" in sentences(app)
    assert json.loads(state(app).released.files["release.json"])["ledger"] is None
    assert not where.exists(), "viewing the page creates no ledger"


def test_a_table_of_ones_own_is_asked_about_and_known_again(app: AppTest, where: Path) -> None:
    def open_people(rows: int) -> None:
        press(upload(app, people(rows)), "Guess the columns")
        review(app)
        go(app, "release")

    open_people(60)
    assert not any(b.label.startswith("Spend") for b in app.button)
    assert field(app, "text_input", "Name of the table").value == "people"
    field(app, "text_input", "δ").set_value("tiny").run()
    press(app, "Open this budget")
    assert "δ must be a number" in sentences(app)
    field(app, "text_input", "δ").set_value("1e-9").run()
    press(app, "Open this budget")
    finish(press(app, "Spend"))
    assert len(budget(where, "people").entries) == 1

    go(app, "data")
    open_people(61)
    assert state(app).paid_from == "people", "known by its name"
    assert "has changed since" in sentences(app)
    assert next(b for b in app.button if b.label.startswith("Spend")).disabled
    field(app, "checkbox", "I have read this").check().run()
    finish(press(app, "Spend"))
    assert len(budget(where, "people").entries) == 2


def test_what_was_released_since_the_page_was_drawn_needs_a_tick(app: AppTest, where: Path) -> None:
    opened(app)
    project, text = state(app).project, state(app).text
    assert text is not None
    ledger = Ledger(where)
    ledger.open_table("elsewhere", epsilon=2.0, delta=1e-9)
    release(project.with_plan(delta=1e-9), Table.encode(text, project.schema), ledger=ledger.account("elsewhere"))
    finish(press(app, "Spend"))
    assert state(app).released is None
    assert "this table was already released" in sentences(app)
    assert not budget(where).entries
    field(app, "checkbox", "I have read this").check().run()
    finish(press(app, "Spend"))
    assert state(app).released is not None


def test_names_and_notes_are_shown_as_they_are(app: AppTest, where: Path) -> None:
    name = "<b>x</b> [a](http://e.org) `c`"
    Ledger(where, create=True).open_table(name, epsilon=1.0, delta=1e-9, note="<script>1</script> **b**", who="![i](u)")
    go(sample(app, "hiring"), "ledger")
    shown = "\n".join(str(e.value) for e in app.caption)
    assert "<script>" not in shown.replace("\\<script\\>", "")
    assert "**b**" not in shown
    assert not any(e.allow_html for e in app.markdown)


def test_a_ledger_in_trouble_is_said_on_every_page(app: AppTest, where: Path) -> None:
    where.write_text("not a database" * 100)
    sample(app, "hiring")
    for page in ("plan", "release", "ledger", "data"):
        go(app, page)
    go(app, "ledger")
    assert "it is not a ledger" in sentences(app)
    finish(press(go(app, "release"), "Spend"))
    assert state(app).released is not None, "a sample is still released without a ledger"
    assert where.read_text().startswith("not a database"), "and the file stays unchanged"


def test_a_closed_tab_leaves_a_finished_entry(where: Path) -> None:
    """The session ends while the work is running: the work finishes, and the ledger keeps the release."""
    from espalier.core.tables.reading import read_table

    Ledger(where, create=True).open_table("hiring", epsilon=2.0, delta=1e-9)
    state = Session()
    state.open(
        Project.load(ROOT / "sample_data" / "hiring.json"), read_table(ROOT / "sample_data" / "hiring.csv"), 6000
    )
    spending.start(state, 0.0, state.preview(6000, 1e-9), Paid("hiring", "Ada", "", False))
    (worker,) = [t for t in threading.enumerate() if t.name == "job-release"]
    del state
    gc.collect()
    worker.join(60)
    (entry,) = budget(where).entries
    assert entry.status == "spent"
    assert Ledger(where).files(entry.released)["synthetic.csv"]


def test_paying_is_chosen_anew_for_another_table(app: AppTest) -> None:
    opened(app)
    pay_from(app, UNRECORDED)
    assert state(app).paid_from == ""
    pay_from(app, "hiring")
    sample(go(app, "data"), "services")
    assert state(app).paid_from is None
    press(app, "Go back to")
    assert state(app).paid_from == "hiring"


def test_only_the_budget_that_pays_is_told_what_the_plan_would_leave(app: AppTest, where: Path) -> None:
    Ledger(where, create=True).open_table("compas", epsilon=2.0, delta=1e-9)
    go(sample(app, "readmission"), "ledger")
    assert "would leave" not in sentences(app)
    assert "not paid from this budget" in sentences(app)
    pay_from(go(app, "release"), "compas")
    assert "The open plan, ε = 1, would leave" in sentences(go(app, "ledger"))


@pytest.mark.parametrize(
    ("file", "data"),
    [
        ("release.json", b"{}"),
        ("release.json", b'{"rows": "x", "method": "mst", "spent": {"epsilon": 1, "delta": 0}}'),
        ("release.json", b'{"rows": 3, "method": ["mst"], "spent": [1]}'),
        ("release.json", b"[" * 100_000),
        ("synthetic.csv", b"a\n\xff\n"),
        ("synthetic.csv", b"a\n" + b"x" * 200_000 + b"\n"),
    ],
)
def test_a_kept_release_that_someone_made_up_is_a_message(file, data):
    """Previously, the page ended in an error."""
    facts = b'{"rows": 3, "method": "mst", "spent": {"epsilon": 1.0, "delta": 1e-6}}'
    files = {"release.json": facts, "synthetic.csv": b"a\nx\n"}
    project = Project("p", Schema((Column("a", "categorical", ("x", "y")),)), Plan("mst", 1.0, 1e-6))
    assert bundle.in_short(project, files)[1] == [[{"a": "x"}]]
    with pytest.raises(ProjectError, match="damaged"):
        bundle.in_short(project, {**files, file: data})


def test_a_comparison_of_plans_is_recorded_and_publishes_no_figure(app: AppTest, where: Path) -> None:
    """Previously, figures of a table that someone had called public entered the project and the next report, without a
    budget; and a table of another place was not even called public.
    """
    opened(app)
    finish(press(app, "Spend"))
    state(app).sample = ""
    go(app, "compare")
    assert not any(b.label == "Try this plan" for b in app.button)
    app.checkbox[0].check().run()
    field(app, "selectbox", "Tested on").set_value("another table (upload)").run()
    app.file_uploader[0].upload("b.csv", b"a\n1\n").run()
    assert any(c.label.startswith("That table is public") for c in app.checkbox)
    field(app, "selectbox", "Tested on").set_value("this table").run()
    field(app, "multiselect", "Methods").set_value(["independent"]).run()
    finish(press(app, "Try this plan"))
    assert [looked.what for looked in budget(where).diagnoses] == ["the Compare page"]
    (made,) = state(app).compared
    assert made.figures["one_way_tv"] is not None
    field(app, "selectbox", "Use this plan").set_value(made.name).run()
    press(app, "Use it")
    assert state(app).project.signoff["compared_with"] == made.name
