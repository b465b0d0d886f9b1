"""The method that is not private in the app: the page states this, asks for confirmation, and promises nothing."""

from __future__ import annotations

import math

import pytest
from streamlit.testing.v1 import AppTest

from espalier.core.blurring.notice import NOT_PRIVATE, NOT_PRIVATE_CSV
from espalier.core.methods import DEFAULT
from espalier.core.tables.reading import read_table
from espalier.pages.data.samples import FOLDER
from tests.support.app import finish, go, press, sample, sentences, state

FEW = "".join((FOLDER / "stays.csv").read_text("utf-8").splitlines(keepends=True)[:401]).encode()
"""The sample's first 400 rows."""


def chosen(app: AppTest) -> AppTest:
    sample(app, "stays")
    go(app, "plan")
    box = next(b for b in app.selectbox if b.label == "Method")
    box.set_value("two-stage").run()
    assert not app.exception
    return app


def test_the_plan_says_it_and_asks_for_no_epsilon(app: AppTest) -> None:
    chosen(app)
    plan = state(app).project.plan
    assert (plan.method, plan.epsilon, plan.delta) == ("two-stage", math.inf, None)
    assert any(NOT_PRIVATE in e.value for e in app.error)
    assert not any(t.label.startswith("ε") for t in app.text_input)
    next(b for b in app.selectbox if b.label == "Method").set_value("mst").run()
    assert not app.exception
    assert state(app).project.plan.epsilon == 1.0
    assert any(t.label.startswith("ε") for t in app.text_input)


@pytest.mark.nightly
def test_a_tick_then_rows_and_what_they_give_away(app: AppTest) -> None:
    chosen(app)
    state(app).editor.change_plan(anonymize=["marker", "haemoglobin"], lid=0.6, landmarks=200)
    go(app, "release")
    assert any(NOT_PRIVATE in e.value for e in app.error)
    button = next(b for b in app.button if "NOT PRIVATE" in b.label)
    assert button.disabled
    next(c for c in app.checkbox if "blurred copy" in c.label).check().run()
    press(app, "Make the rows (NOT PRIVATE)")
    finish(app)
    assert state(app).blurred is not None, state(app).trouble
    made = state(app).blurred.made
    assert NOT_PRIVATE_CSV in made.files
    assert state(app).released is None
    assert not state(app).spent
    go(app, "release")
    assert "NOT PRIVATE" in " ".join(s.value for s in app.subheader)


@pytest.mark.nightly
def test_the_defaults_are_refused_on_the_sample_and_one_click_takes_what_can_be_had(app: AppTest) -> None:
    chosen(app)
    state(app).text = read_table(FEW, "few.csv")
    go(app, "release")
    next(c for c in app.checkbox if "blurred copy" in c.label).check().run()
    finish(press(app, "Make the rows (NOT PRIVATE)"))
    assert state(app).blurred is None
    assert any("cannot be reached" in e.value for e in app.error)
    offer = state(app).offered["lid"]
    finish(press(app, f"Ask for a LID of {offer:.0%}"))
    assert state(app).blurred is not None, state(app).trouble
    made = state(app).blurred.made
    assert state(app).project.plan.options["lid"] == offer
    assert made.disclosure["lid_inputs"] <= offer
    assert not any(b.label.startswith("Ask for") for b in app.button)
    go(app, "diagnostics")
    assert any(NOT_PRIVATE in e.value for e in app.error)
    finish(press(app, "Compare with the real rows"))
    assert not state(app).trouble
    assert any("Predicting the number days" in s.value for s in app.subheader)
    before = len(app.dataframe)
    next(b for b in app.selectbox if b.label == "Price").set_value("marker").run()
    assert not app.exception
    assert next(b for b in app.selectbox if b.label == "Sales").value == "days", "the plan's target"
    assert any("(MAPD)" in m.value for m in app.markdown)
    assert len(app.dataframe) == before + 1
    next(b for b in app.selectbox if b.label == "Separate elasticities by").set_value("admission").run()
    assert not app.exception
    assert list(app.dataframe[-1].value["group"]) == ["planned", "emergency"]


def test_plans_are_compared_from_a_method_that_keeps_its_promise(app: AppTest) -> None:
    chosen(app)
    go(app, "compare")
    assert not app.exception
    assert state(app).project.plan.method == "two-stage"
    methods = next(m for m in app.multiselect if m.label == "Methods")
    assert methods.value == [DEFAULT]
    press(app, "Try this plan")
    finish(app)
    assert not app.exception
    assert "no other plan here is better than" not in sentences(app), "one plan has no other to compare with"
    assert not state(app).trouble
