"""The Analyse page, driven without a browser: a statistician's task, from release to sentence."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from espalier.core.analysis import figure_from_text
from espalier.core.analysis.estimands import Regression
from espalier.core.analysis.tally import Tally
from tests.support.app import field, finish, go, press, sample, sentences, state


@pytest.mark.nightly
def test_heart_failure_and_readmission_adjusted_for_age(app: AppTest) -> None:
    """“Is heart failure associated with readmission after adjusting for age, and how sure is that?” In under two
    minutes.
    """
    begun = time.monotonic()
    sample(go(app, "data"), "readmission")
    state(app).editor.change_plan(regime="predictive", features=None, epsilon=2.0)
    press(go(app, "release"), "Spend")
    finish(app)
    assert any(b.label.startswith("Analyse") for b in app.button)
    go(app, "analyse")
    field(app, "multiselect", "Predictors").set_value(["heart_failure", "age"]).run()
    assert not app.exception
    assert time.monotonic() - begun < 120
    said = sentences(app)
    shown = app.dataframe[0].value
    severe = shown[shown["figure"] == "heart_failure: severe against normal"].iloc[0]
    estimate, low, high = (float(severe[c]) for c in ("estimate", "low (95 %)", "high (95 %)"))
    assert severe["answer"] in ("counted", "given the model")
    table = state(app).table()
    schema = table.schema
    figure = figure_from_text.regression(schema, "readmitted=yes", ["heart_failure", "age"])
    assert isinstance(figure, Regression)
    truth = np.exp(figure.estimate(Tally.of_rows(table.codes, schema.sizes, figure.columns))[0][2])
    assert truth > 2
    assert low > 1, "associated, and the interval shows it"
    assert estimate == pytest.approx(truth, rel=0.5)
    assert low < estimate < high
    assert re.search(r"severe against normal.{0,8}: .*95 .*interval", said)
    assert not app.error


def test_each_kind_of_question_is_answered(app: AppTest) -> None:
    sample(go(app, "data"), "hiring")
    press(go(app, "release"), "Spend")
    finish(app)
    go(app, "analyse")
    app.segmented_control[0].set_value("Quantile").run()
    field(app, "selectbox", "Quantile of").set_value("experience").run()
    assert "the median of experience" in sentences(app).replace("\\", "")
    for kind in ("Proportion", "Difference", "Odds ratio"):
        app.segmented_control[0].set_value(kind).run()
        assert not app.exception
        group = next(b for b in app.selectbox if b.label in ("Column that selects the rows", "Group by"))
        group.set_value(next(o for o in group.options)).run()
        assert not app.exception
        assert not app.error
        assert len(app.dataframe[0].value) == 1, kind
    assert "is counted in bins" not in sentences(app)
    field(app, "selectbox", "Group by").set_value("experience").run()
    assert "`experience` is counted in bins: the question is about this bin only." in sentences(app)
    assert "**Question:** the odds ratio of hired" in sentences(app).replace("\\", "")


def test_conditions_a_level_and_intervals_that_hold_together(app: AppTest) -> None:
    sample(go(app, "data"), "hiring")
    press(go(app, "release"), "Spend")
    finish(app)
    go(app, "analyse")
    app.segmented_control[0].set_value("Proportion").run()
    field(app, "multiselect", "Only rows with all of these").set_value(["gender=woman"]).run()
    assert "among those with gender = woman" in sentences(app).replace("\\", "")
    wide = app.dataframe[0].value
    assert "low (95 %)" in wide
    field(app, "number_input", "Level of the intervals (%)").set_value(80.0).run()
    assert "low (80 %)" in app.dataframe[0].value
    field(app, "multiselect", "Only rows with all of these").set_value([]).run()
    press(app, "Keep this answer")
    field(app, "number_input", "Level of the intervals (%)").set_value(95.0).run()
    press(app, "Keep this answer")
    assert [(one.among, one.level) for one in state(app).project.asked] == [((), 0.8), ((), 0.95)]
    assert "Lines are 80 % or 95 % intervals" in sentences(app)
    field(app, "segmented_control", "Kind of intervals").set_value("simultaneous").run()
    press(app, "Compute 2 questions together")
    finish(app)
    assert "Lines are 95 % intervals; a hollow point has no interval." in sentences(app)
    assert not app.exception
    assert not app.error


def test_nothing_is_shown_before_a_release(app: AppTest) -> None:
    go(sample(go(app, "data"), "hiring"), "analyse")
    assert "Go to Release" in [b.label for b in app.button]
    assert not app.dataframe


def test_an_effect_is_asked_on_structure_and_answered_on_analyse(app: AppTest) -> None:
    sample(go(app, "data"), "readmission")
    go(app, "structure")
    field(app, "selectbox", "Effect of").set_value("diabetes").run()
    said = sentences(app)
    assert "Valid sets to adjust for" in said
    assert "would bias the effect" in said
    state(app).editor.change_plan(regime="effect", treatment="diabetes", features=None, epsilon=2.0)
    go(app, "plan")
    assert not app.error
    press(go(app, "release"), "Spend")
    finish(app)
    go(app, "analyse")
    app.segmented_control[0].set_value("Causal effect").run()
    assert not app.exception
    assert not app.error
    shown = app.dataframe[0].value
    assert any(f.startswith("adjusted difference") for f in shown["figure"])
    assert "Adjusted for" in sentences(app)


def test_kept_questions_are_saved_with_the_project_and_leave_again(app: AppTest) -> None:
    sample(go(app, "data"), "hiring")
    press(go(app, "release"), "Spend")
    finish(app)
    go(app, "analyse")
    app.segmented_control[0].set_value("Proportion").run()
    press(app, "Keep this answer")
    go(app, "plan")
    go(app, "analyse")
    assert "Answers so far" in [h.value for h in app.subheader]
    [asked] = state(app).project.asked
    assert asked.of == "hired=yes"
    assert '"asked"' in state(app).project.dumps()
    assert not any("differs from the one" in i.value for i in go(app, "release").info)
    press(go(app, "analyse"), "Remove")
    assert not state(app).project.asked
    assert "Answers so far" not in [h.value for h in app.subheader]
