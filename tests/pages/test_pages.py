"""The pages, driven without a browser: empty states, all steps on a sample, errors, and things that must never
happen.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pytest
from streamlit import runtime
from streamlit.elements.lib import policies
from streamlit.testing.v1 import AppTest

from espalier.core.graph.roles import Roles
from espalier.core.methods import method_of
from espalier.core.project.file import Project
from espalier.core.server.queue import QUEUE, Job
from espalier.pages.structure import implications
from tests.support.app import (
    ROOT,
    act,
    answer,
    at_home,
    field,
    finish,
    go,
    people,
    press,
    review,
    sample,
    sentences,
    state,
    unfold,
    upload,
)

PAGES = ("home", "compare", "glossary", "structure", "plan", "release", "diagnostics", "ledger", "data")


def values(sent: Any) -> list[float]:
    """Return the numbers of a figure's axis, sent as a list or packed."""
    if isinstance(sent, dict):
        return np.frombuffer(base64.b64decode(sent["bdata"]), sent["dtype"]).tolist()
    return list(sent)


def released(app: AppTest, name: str = "hiring") -> AppTest:
    go(sample(app, name), "release")
    return finish(press(app, "Spend"))


@pytest.mark.parametrize("page", PAGES)
def test_every_page_says_what_to_do_when_nothing_is_open(app: AppTest, page: str) -> None:
    go(app, page)
    labels = [b.label for b in app.button]
    if page in ("home", "glossary"):
        assert page == "glossary" or "Open my own table" in labels
    elif page == "ledger":
        assert "Open this budget" in labels
        assert "No budget is open yet" in sentences(app)
    elif page == "data":
        assert {"Open readmission", "Open hiring", "Open social services", "Open visits"} <= set(labels)
    else:
        assert "Go to Data" in labels
        press(app, "Go to Data")
        assert any(b.key == "sample-hiring" for b in app.button)


@pytest.mark.parametrize("name", ["readmission", "hiring", "services", "visits", "stays"])
def test_every_page_shows_every_sample(app: AppTest, name: str) -> None:
    sample(app, name)
    for page in PAGES:
        go(app, page)
        assert not app.error
    project = Project.load(ROOT / "sample_data" / f"{name}.json")
    assert state(app).project == project, "opening the pages changes nothing"


def test_home_leads_to_the_first_release() -> None:
    app = press(at_home(), "Open hiring")
    links = [b.label for b in app.button]
    assert {"Next: the plan", "See what was drawn", "Go straight to the release"} <= set(links)
    finish(press(press(app, "Go straight to the release"), "Spend"))
    assert state(app).released is not None


def test_the_whole_way_on_a_sample(app: AppTest) -> None:
    released(app, "hiring")
    made = state(app).released
    assert made is not None
    facts = json.loads(made.files["release.json"])
    assert facts["private"]
    assert facts["spent"]["epsilon"] <= 1.0
    assert made.files["synthetic.csv"].startswith(b"gender,")
    assert made.files["report.html"].startswith(b"<!doctype html>")
    assert Project.loads(made.files["project.json"]) == made.release.project
    assert made.files["model.npz"][:2] == b"PK"
    assert "Red dashed lines are links" in sentences(go(app, "release")), "gender and hired are not measured"

    finish(press(go(app, "diagnostics"), "Compare"))
    found = state(app).findings["The original table"]
    assert found["private"] is False
    assert 0 < found["tstr"]["auc_synthetic"] <= 1
    assert found["fairness"]["cmi_model"] < 1e-9
    assert "Confidential: do not share" in sentences(app)
    assert len(app.get("plotly_chart")) >= 5
    distances = next(d.value for d in app.dataframe if "mean distance" in d.value)
    assert set(distances["column"]) == {c["name"] for c in found["numbers"]["columns"]}


def test_the_other_hospital(app: AppTest) -> None:
    released(app, "readmission")
    go(app, "diagnostics")
    finish(press(app, "Compare"))
    verdict = next(w.value for w in app.warning if "At home" in w.value)
    assert "in the other hospital the model trained on synthetic rows does" in verdict
    assert "keeps only the direct causes" in verdict
    tested = state(app).findings["The other hospital"]["tstr"]
    assert tested["auc_synthetic"] > tested["auc_real"] + 0.1, "causes hold elsewhere, correlations do not"
    go(app, "diagnostics")
    assert "hold-out" not in sentences(app)
    heading = "Does a model treat the groups alike on "
    assert f"{heading}the original table?" in [s.value for s in app.subheader]
    next(b for b in app.button_group if b.label.startswith("Details")).set_value("The other hospital").run()
    assert f"{heading}the other hospital?" in [s.value for s in app.subheader]


def test_a_table_drowned_in_noise_is_not_recommended(app: AppTest) -> None:
    sample(app, "readmission")
    state(app).editor.change_plan(epsilon=0.01)
    finish(press(go(app, "release"), "Spend"))
    finish(press(go(app, "diagnostics"), "Compare"))
    assert any("This table should not be used" in e.value for e in app.error)


def test_a_column_and_a_pair_are_shown_beside_the_real_rows(app: AppTest) -> None:
    released(app, "hiring")
    finish(press(go(app, "diagnostics"), "Compare"))
    next(s for s in app.selectbox if s.label.startswith("Show one column")).select("gender").run()
    next(s for s in app.selectbox if s.label == "Show one pair").select(("gender", "hired")).run()
    assert not app.exception
    made = state(app).released
    figures = [json.loads(c.proto.spec) for c in app.get("plotly_chart")]
    real = (made.real.count(("gender",)) / made.real.rows).tolist()
    bars = [t for f in figures for t in f["data"] if t["type"] == "bar" and t["name"] == "real"]
    assert any(values(t["y"]) == pytest.approx(real) for t in bars)
    assert any(t["type"] == "heatmap" for f in figures for t in f["data"])


def test_reruns_and_visits_spend_nothing_and_draw_nothing(app: AppTest) -> None:
    released(app)
    made, spent = state(app).released, list(state(app).spent)
    for page in ("plan", "release", "structure", "release", "diagnostics", "data", "release"):
        go(app, page).run()
    assert state(app).released is made
    assert state(app).spent == spent


def test_a_second_release_is_agreed_to_and_adds_up(app: AppTest) -> None:
    released(app)
    button = next(b for b in app.button if b.label.startswith("Spend"))
    assert button.disabled
    next(c for c in app.checkbox if "again" in c.label).check().run()
    finish(press(app, "Spend"))
    assert len(state(app).spent) == 2
    assert "together" in sentences(app)


def test_who_answers_is_saved_and_stands_in_the_report(app: AppTest) -> None:
    go(sample(app, "hiring"), "release")
    field(app, "text_input", "Approved").set_value("Dr. Ada Approver").run()
    assert state(app).project.signoff == {"approved_by": "Dr. Ada Approver"}
    finish(press(app, "Spend"))
    files = state(app).released.files
    assert Project.loads(files["project.json"]).signoff["approved_by"] == "Dr. Ada Approver"
    assert b"Dr. Ada Approver" in files["report.html"]
    assert next(b.label for b in app.get("download_button")) == "Download everything (zip)"


def test_a_chosen_purpose_changes_the_plan_at_once_and_is_remembered(app: AppTest) -> None:
    go(sample(app, "readmission"), "plan")
    next(b for b in app.button_group if b.label.startswith("What is the table")).set_value("here").run()
    assert state(app).project.plan.options["regime"] == "predictive"
    assert "The plan below uses this" in sentences(app)
    go(go(app, "structure"), "plan")
    assert next(b for b in app.button_group if b.label.startswith("What is the table")).value == "here"
    state(app).editor.change_plan(method="independent")
    assert "You changed the method or its options after you chose this purpose" in sentences(app.run())
    press(app, "Use this method again")
    assert state(app).project.plan.method != "independent"
    assert "This plan uses none of the" in sentences(app)
    next(b for b in app.button_group if b.label.startswith("What is the table")).set_value("elsewhere").run()
    assert state(app).project.plan.options["regime"] == "causal"
    assert "is right half the time. With it, they are right at most" in sentences(app)
    next(b for b in app.button_group if b.label.startswith("What is the table")).set_value("questions").run()
    assert "No question is listed yet" in sentences(app), "none is listed yet"
    assert "The plan below uses this" not in sentences(app)


def test_a_changed_plan_leaves_the_release_as_it_was(app: AppTest) -> None:
    released(app)
    made = state(app).released
    go(app, "plan")
    next(n for n in app.text_input if n.label.startswith("ε")).set_value("2,0").run()
    assert state(app).project.plan.epsilon == 2.0
    go(app, "release")
    assert state(app).released is made
    assert "differs from the one" in sentences(app)


def test_rows_kept_back_are_tested_on(app: AppTest) -> None:
    go(sample(app, "hiring"), "release")
    app.select_slider[0].set_value(20).run()
    assert "25 % larger" in sentences(app)
    finish(press(app, "Spend"))
    made = state(app).released
    assert made is not None
    assert made.holdout is not None
    assert (made.real.rows, made.holdout.rows) == (4800, 1200)
    finish(press(go(app, "diagnostics"), "Compare"))
    assert state(app).findings["The held-out rows"]["tstr"]["tested_on"] == "holdout"


def test_cancelling_counts_as_spent(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    import espalier.core.release.spend
    from espalier.core.errors import Cancelled

    def slow(*given: Any) -> None:
        given[2](0.1, "Counting")
        raise Cancelled("cancelled")

    monkeypatch.setattr(espalier.core.release.spend, "release", slow)
    released(app)
    assert state(app).released is None
    assert [s.complete for s in state(app).spent] == [False]
    assert "counts as spent" in sentences(app)


def test_a_cancel_that_comes_too_late_loses_nothing_and_says_so(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    import espalier.core.release.spend

    real = espalier.core.release.spend.release

    def cancelled_at_the_end(*given: Any) -> Any:
        made = real(*given)
        running[0].cancel()
        return made

    running: list[Job] = []
    monkeypatch.setattr(espalier.core.release.spend, "release", cancelled_at_the_end)
    monkeypatch.setattr(QUEUE, "join", lambda job, join=QUEUE.join: (running.append(job), join(job)))
    released(app)
    assert state(app).released is not None
    assert [s.complete for s in state(app).spent] == [True]
    assert "too late to cancel" in sentences(app)


def test_an_unexpected_error_shows_no_value_and_no_traceback(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    import espalier.core.release.spend

    def broken(*_: Any) -> None:
        raise RuntimeError("row 17: Alice")

    monkeypatch.setattr(espalier.core.release.spend, "release", broken)
    released(app)
    assert "RuntimeError" in sentences(app)
    assert "Alice" not in sentences(app)
    assert state(app).spent == [], "it failed before anything was drawn"


def test_guesses_stand_out_and_block_a_release_until_confirmed(app: AppTest) -> None:
    upload(app, people())
    assert not state(app).has_project, "nothing is read into a schema before it is asked for"
    press(app, "Guess the columns")
    project = state(app).project
    assert len(project.schema.guessed) == 3
    assert any(h.value.startswith("Look closely") for h in app.subheader)
    go(app, "release")
    assert not any(b.label.startswith("Spend") for b in app.button)
    go(app, "data")
    review(app)
    assert state(app).project.schema.guessed == ()
    go(app, "release")
    press(go(app, "plan"), "Use the open table")
    assert state(app).rows == 60
    go(app, "release")
    assert not any(b.label.startswith("Spend") for b in app.button), "the page must ask which budget pays for it"
    next(s for s in app.selectbox if s.label.startswith("Paid from")).set_value("Not recorded in a ledger").run()
    finish(press(app, "Spend"))
    made = state(app).released
    assert made is not None
    assert made.files["synthetic.csv"].decode().startswith('"Name of ward, old",年齢,out*come*')
    report = made.files["report.html"].decode()
    assert "The curator has confirmed that they are public knowledge: kind, " in report
    assert " of “Name of ward, old”" in report


@pytest.mark.parametrize(("typed", "guessed"), [('"A; b"; C; other', True), ("C; other", True), ("D; other", False)])
def test_adding_to_a_guessed_list_confirms_nothing(app: AppTest, typed: str, guessed: bool) -> None:
    press(upload(app, people()), "Guess the columns")
    act(app, "change", "Name of ward, old", categories=typed)
    column = state(app).project.schema["Name of ward, old"]
    assert column.categories[-1] == "other"
    assert ("categories" in column.guessed) == guessed
    assert "kind" in column.guessed


def test_a_description_that_cannot_be_is_explained_and_changes_nothing(app: AppTest) -> None:
    sample(app, "hiring")
    before = state(app).project
    numeric = next(c.name for c in before.schema.columns if c.kind == "numeric")
    act(app, "change", numeric, edges="0; 5; x")
    assert "'x' is not a number" in state(app).drafts.review.errors[numeric]
    assert state(app).project == before


def test_leaving_a_column_out_keeps_its_arrows_aside(app: AppTest) -> None:
    sample(app, "hiring")
    before = state(app).project
    act(app, "out", "gender")
    assert "gender" not in state(app).project.schema
    go(go(app, "structure"), "data")
    assert "gender" not in state(app).project.schema
    act(app, "keep", "gender")
    after = state(app).project
    assert after.roles == before.roles
    assert set(after.dag.edges) == set(before.dag.edges)


def test_a_cycle_is_refused_and_nothing_is_lost(app: AppTest) -> None:
    go(sample(app, "readmission"), "structure")
    before = state(app).project.dag
    effect = next(s for s in app.selectbox if s.label == "Effect")
    effect.set_value("heart_failure").run()
    causes = next(m for m in app.multiselect if m.label == "Direct causes")
    causes.set_value([*causes.value, "readmitted"]).run()
    assert "cycle" in sentences(app)
    assert state(app).project.dag == before
    go(app, "plan")
    go(app, "structure")
    causes = next(m for m in app.multiselect if m.label == "Direct causes")
    assert "readmitted" in causes.value


def test_a_column_moves_to_its_new_role(app: AppTest) -> None:
    go(sample(app, "hiring"), "structure")
    protected = next(m for m in app.multiselect if m.label == "Protected")
    protected.set_value(["gender", "postcode"]).run()
    roles = state(app).project.roles
    assert roles.protected == ("gender", "postcode")
    assert "postcode" not in roles.inadmissible


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"method": "mst", "fair": True}, "has no fence"),
        ({"method": "prism", "fair": False, "target": None}, "Next: choose the **Target**"),
        ({"neighbors": "add-remove"}, "Enter δ here"),
        ({"method": "prism", "fair": True, "target": "hobby"}, "must be an outcome column"),
    ],
)
def test_conflicts_are_explained(app: AppTest, changes: dict[str, Any], text: str) -> None:
    sample(app, "hiring")
    state(app).editor.change_plan(**changes)
    go(app, "plan")
    assert text in sentences(app).replace("\\", "")
    assert ("set **the target** above" in sentences(app)) == ("Next: choose" in text)
    for page in PAGES:
        go(app, page)


def fenced(app: AppTest) -> bool:
    project = state(app).project
    return method_of(project.plan).fenced(project.plan)


def beside(app: AppTest) -> str:
    """Return the board's sentences next to the drawing."""
    project = state(app).project
    return "\n".join(line["text"] for line in implications.told(project, implications.now(state(app))[1]))


def test_the_structure_page_claims_a_fence_only_where_the_plan_has_one(app: AppTest) -> None:
    go(sample(app, "hiring"), "structure")
    assert fenced(app)
    assert "fence removes these links" in beside(app)
    state(app).editor.change_plan(method="mst", fair=None)
    go(app, "structure")
    assert "fence removes" not in beside(app)
    assert "has no fence, so these links may appear" in beside(app)


def test_changing_methods_keeps_the_switch_and_logs_no_complaint(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(runtime, "exists", lambda: True)
    monkeypatch.setattr(policies, "_shown_default_value_warning", False)
    monkeypatch.setattr(policies._LOGGER, "warning", lambda text, *_, **__: said.append(text))
    go(sample(app, "hiring"), "plan")
    for method in ("mst", "prism", "privci", "independent"):
        next(s for s in app.selectbox if s.label == "Method").set_value(method).run()
        assert not app.exception
        assert next(t for t in app.toggle if t.label.startswith("Fence")).value == fenced(app)
    next(n for n in app.text_input if n.label.startswith("ε")).set_value("2").run()
    assert state(app).project.plan.epsilon == 2.0
    assert next(t for t in app.text_input if t.label.startswith("ε")).value == "2"
    assert not said


def test_a_fence_that_the_plan_asks_for_stays_when_the_method_leaves_it_to_the_plan(app: AppTest) -> None:
    go(sample(app, "hiring"), "plan")
    assert state(app).project.plan.fair
    for method in ("workload", "mst", "prism"):
        next(s for s in app.selectbox if s.label == "Method").set_value(method).run()
        assert fenced(app) == (method != "mst")
    next(s for s in app.selectbox if s.label == "Method").set_value("decoder").run()
    assert "The drawing does not make hired independent of gender" in sentences(app).replace("\\", "")


def test_a_share_for_questions_that_a_method_cannot_use_can_be_taken_back(app: AppTest) -> None:
    go(sample(app, "services"), "plan")
    next(s for s in app.selectbox if s.label == "Method").set_value("decoder").run()
    assert "measures no marginals" in sentences(app)
    next(s for s in app.slider if s.label.startswith("Share of the budget for questions")).set_value(0).run()
    assert "measures no marginals" not in sentences(app)
    assert any(m.label == "Time to fit" for m in unfold(app, "Details").metric)


def test_a_wrong_delta_stays_in_its_field(app: AppTest) -> None:
    go(sample(app, "hiring"), "plan")
    field = next(t for t in app.text_input if t.label.startswith("δ"))
    field.set_value("tiny").run()
    assert "must be a number" in sentences(app)
    go(app, "structure")
    go(app, "plan")
    assert next(t for t in app.text_input if t.label.startswith("δ")).value == "tiny"
    assert state(app).project.plan.delta is None


def test_what_was_open_can_be_brought_back(app: AppTest) -> None:
    sample(app, "hiring")
    state(app).editor.change_plan(epsilon=0.3)
    app.run()
    sample(app, "services")
    press(app, "Go back to")
    assert state(app).project.name == "hiring"
    assert state(app).project.plan.epsilon == 0.3


def test_a_broken_file_is_named(app: AppTest) -> None:
    upload(app, "a,b\n1,2,3\n", "broken.csv")
    assert "broken.csv" in sentences(app).replace("\\", "")
    assert any(b.key == "sample-hiring" for b in app.button)


def test_no_private_value_before_it_is_asked_for(app: AppTest) -> None:
    go(sample(app, "hiring"), "data")
    shown = len(app.dataframe)
    next(t for t in app.toggle if t.label.startswith("Show me the rows")).set_value(True).run()
    assert len(app.dataframe) == shown + 2
    assert "Confidential: do not share" in sentences(app)


def test_an_undeclared_value_is_not_shown_unasked(app: AppTest) -> None:
    project = Project.load(ROOT / "sample_data" / "hiring.json")
    from espalier.core.tables.reading import read_table

    text = (ROOT / "sample_data" / "hiring.csv").read_text().replace("job fair", "SECRET", 1)
    go(sample(app, "hiring"), "data")
    state(app).open(project, read_table(text.encode(), "hiring.csv"))
    go(app, "data")
    assert "values that their descriptions do not allow" in sentences(app)
    assert "SECRET" not in sentences(app)
    next(t for t in app.toggle if t.label.startswith("Show me which")).set_value(True).run()
    assert "SECRET" in sentences(app)


def test_no_cache_is_shared_between_sessions() -> None:
    for file in [ROOT / "app.py", *(ROOT / "pages").rglob("*.py")]:
        source = file.read_text("utf-8")
        assert "cache_data" not in source, file
        assert "cache_resource" not in source, file


def test_the_fence_of_a_release_is_shown_explained_and_asked_about(app: AppTest) -> None:
    go(sample(app, "hiring"), "plan")
    state(app).editor.change_plan(explain=0.2, width=2)
    go(app, "release")
    finish(press(app, "Spend"))
    said = sentences(app)
    assert "**Protected side**: `gender`" in said
    assert "**Gate (admissible)**: `qualification`, `experience`, `interview_score`" in said
    assert "**Cost of the fence** (measured with budget)" in said
    assert "`postcode` and `hired` are not measured together" in said
    app.selectbox(key="ask-a").select("hired").run()
    assert "Choose two different columns." in sentences(app)
    app.selectbox(key="ask-a").select("gender").run()
    assert "the frame forbids the pair" in sentences(app)


def test_without_paying_nothing_is_said_of_refused_pairs(app: AppTest) -> None:
    released(app, "hiring")
    said = sentences(app)
    assert "Cost of the fence" not in said
    assert "this plan did not pay for that" in said


def test_fairness_is_judged_with_its_floor_and_the_fences_cost(app: AppTest) -> None:
    released(app, "hiring")
    go(app, "diagnostics")
    finish(press(app, "Compare with"))
    said = sentences(app)
    assert "Chance alone raises" in said
    assert "What a separation does not promise" in said
    facts = next(iter(state(app).findings.values()))
    assert facts["fence_cost"]["method_without"] == "mst"
    tables = [set(d.value.columns) for d in app.dataframe]
    assert any("without the fence" in t for t in tables)
    assert any("upper limit by chance" in t for t in tables)
    go(app, "plan")
    assert any("More: options of" in e.label for e in app.expander)
    app.slider(key=f"plan-{state(app).opened}-width").set_value(3).run()
    app.slider(key=f"plan-{state(app).opened}-explain").set_value(15).run()
    assert state(app).project.plan.options["width"] == 3
    assert state(app).project.plan.options["explain"] == pytest.approx(0.15)
    assert not app.exception


def test_further_separations_are_added_refused_removed_and_parked(app: AppTest) -> None:
    go(sample(app, "hiring"), "structure")
    key = f"separation-{state(app).opened}"

    def choose(left: list[str], right: list[str], gate: list[str]) -> None:
        for side, columns in (("left", left), ("right", right), ("given", gate)):
            app.multiselect(key=f"{key}-{side}").set_value(columns)
        app.run()
        press(app, "Add this separation")

    choose(["club"], ["hobby"], ["gender"])
    assert [(s.left, s.right, s.given) for s in state(app).project.separations] == [
        (("club",), ("hobby",), ("gender",))
    ]
    assert app.multiselect(key=f"{key}-left").value == [], "the fields are empty for the next one"
    choose(["club"], ["club"], [])
    assert any("twice" in e.value for e in app.error)
    assert app.multiselect(key=f"{key}-left").value == ["club"], "the choice is not lost"
    assert len(state(app).project.separations) == 1
    assert "Further separations (1)" in [e.label for e in app.expander]

    schema = state(app).project.schema
    state(app).editor.change_schema(type(schema)(tuple(c for c in schema.columns if c.name != "hobby")))
    assert state(app).project.separations == ()
    app.run()
    assert "1 further separation is set aside" in sentences(app)
    state(app).editor.change_schema(schema)
    assert len(state(app).project.separations) == 1
    app.run()
    press(app, "Remove")
    assert state(app).project.separations == ()


def visits(people: int = 60) -> str:
    """Return a table in which the person p0 has forty rows and everyone else two."""
    lines = ["patient,sex,stage,again"]
    for i in range(people):
        lines += [f"p{i},{'fm'[i % 2]},{i % 3},{('no', 'yes')[(i + j) % 2]}" for j in range(2 if i else 40)]
    return "\n".join(lines) + "\n"


def test_a_person_column_leaves_the_schema_and_bounds_everybody(app: AppTest) -> None:
    upload(app, visits())
    press(app, "Guess")
    review(app)
    assert "patient" in state(app).project.schema
    go(app, "plan")
    assert "One row per person. This is your promise; nothing checks it." in sentences(app)
    answer(go(app, "data"), "patient")
    go(app, "plan")
    assert "patient" not in state(app).project.schema
    assert "Next: type the **Declared total**" in sentences(app)
    assert not app.error
    next(n for n in app.number_input if n.label == "Declared total of rows").set_value(60).run()
    next(n for n in app.number_input if n.label.startswith("Rows per person")).set_value(1).run()
    assert "at most 1 of them kept" in sentences(unfold(app, "Details"))
    assert not app.error

    go(app, "data")
    next(t for t in app.toggle if t.label.startswith("Show me the rows")).set_value(True).run()
    assert "`patient` identifies 60 people, with at most 40 rows each" in sentences(app)
    assert "patient" not in state(app).project.schema, "opening the pages does not bring it back"

    go(app, "release")
    next(s for s in app.selectbox if s.label.startswith("Paid from")).set_value("Not recorded in a ledger").run()
    finish(press(app, "Spend"))
    facts = json.loads(state(app).released.files["release.json"])
    assert facts["spent"]["person"] == "patient"
    assert facts["rows"] == 60
    assert b"patient" not in state(app).released.files["synthetic.csv"]
    finish(press(go(app, "diagnostics"), "Compare"))
    assert state(app).findings

    answer(go(app, "data"), rows=40)
    assert state(app).project.plan.person is None
    assert "No person has more than 40 rows. This is your promise; nothing checks it." in sentences(go(app, "plan"))


def test_people_are_kept_back_whole(app: AppTest) -> None:
    upload(app, visits())
    press(app, "Guess")
    review(app)
    session = state(app)
    session.answer(False, "patient", 2)
    session.editor.change_plan(rows=100)
    go(app, "release")
    next(s for s in app.selectbox if s.label.startswith("Paid from")).set_value("Not recorded in a ledger").run()
    app.select_slider[0].set_value(30).run()
    assert not app.exception
    finish(press(app, "Spend"))
    made = state(app).released
    assert not set(made.real.person) & set(made.holdout.person)
    assert made.release.rows == 70


def test_private_figures_stand_apart_from_those_that_are_not(app: AppTest) -> None:
    go(sample(app, "readmission"), "plan")
    assert not any("Private evaluation" in s.value for s in app.subheader)
    next(t for t in app.toggle if t.label.startswith("Private evaluation")).set_value(True).run()
    assert not app.exception
    assert state(app).project.plan.private_evaluation == 0.1
    assert any("Private evaluation" in s.value for s in app.subheader)
    assert "adds no privacy cost" in sentences(app)

    assert "10 % of the rows, chosen at random" in sentences(go(app, "release"))
    finish(press(app, "Spend"))
    section = json.loads(state(app).released.files["release.json"])["looking"]
    assert section["rows"] == 800
    assert b"private evaluation" in state(app).released.files["report.html"]

    go(app, "diagnostics")
    shown = sentences(app)
    assert shown.index("Safe to share") < shown.index("Confidential: do not share")
    accuracy = next(f for f in section["figures"] if f["figure"] == "accuracy")
    deltas = [m.delta for m in app.metric]
    assert any(f"{accuracy['low']:.3f} to {accuracy['high']:.3f}" in d for d in deltas)
    assert "not shown" in shown, "the page states what the tenth leaves out"


def test_an_identifier_is_left_out_and_can_be_the_person_column(app: AppTest) -> None:
    rows = "".join(f"{1000 + i},{'fm'[i % 2]}\n" for i in range(40))
    press(upload(app, f"patient_nbr,sex\n{rows}"), "Guess")
    assert state(app).project.schema.names == ("sex",)
    assert state(app).drafts.review.sections["patient_nbr"] == "identifies someone"
    answer(app)
    press(app, "Confirm this column (obviously public)")
    assert state(app).project.schema.unconfirmed == ("patient_nbr",), "left-out columns were also read from the rows"
    go(app, "release")
    assert "unconfirmed guesses: `patient_nbr`" in sentences(app)
    assert not any(s.label.startswith("Paid from") for s in app.selectbox)
    press(go(app, "data"), "Confirm this column (identifies someone)")
    assert state(app).project.schema.unconfirmed == ()
    answer(app, "patient_nbr")
    assert state(app).project.plan.person == "patient_nbr"


def test_a_table_of_identifiers_only_is_guessed_all_the_same(app: AppTest) -> None:
    press(upload(app, "id\n" + "\n".join(f"p{i}" for i in range(40)) + "\n"), "Guess")
    assert state(app).project.schema.names == ("id",)
    assert "1 column is guessed: confirm it below" in "".join(s.value for s in app.success)
    assert any(h.value.startswith("Look closely") for h in app.subheader)


def test_a_table_read_as_one_column_is_doubted(app: AppTest) -> None:
    upload(app, 'hello\n"1,2,3"\n"4,5,6"\n')
    assert "was read as **one column**" in sentences(app)
    press(app, "Guess")
    assert "was read as **one column**" in sentences(app)


@pytest.mark.parametrize("method", ["privci", "prefair"])
def test_the_fence_of_a_method_that_has_it_is_not_said_to_be_a_switch(app: AppTest, method: str) -> None:
    sample(app, "readmission")
    state(app).editor.redraw(roles=Roles())
    state(app).editor.change_plan(method=method, fair=None)
    said = sentences(go(app, "plan"))
    assert "A fence needs at least one protected column" in said.replace("\\", "")
    assert "choose a method without a fence" in said
    assert "plan without the fence" not in said
