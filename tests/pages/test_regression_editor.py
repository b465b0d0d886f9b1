"""Regressions and planned analyses in the app: built on the Plan page, released, and read on the Analyse page."""

from __future__ import annotations

import pytest

from tests.support.app import field, finish, go, press, sample, start, state, unfold


def test_a_regression_is_built_planned_released_and_read():
    app = go(sample(go(start(), "data"), "readmission"), "plan")
    state(app).editor.change_plan(method="mst", fair=None, epsilon=3.0)
    unfold(app, "Regressions")
    field(app, "selectbox", "Family").set_value("logistic").run()
    field(app, "selectbox", "Outcome").set_value("readmitted=yes").run()
    field(app, "multiselect", "Predictors").set_value(["age", "sex"]).run()
    field(app, "text_input", "Name").set_value("back").run()
    press(app, "Add the regression")
    plan = state(app).project.plan
    assert [one.name for one in plan.regressions] == ["back"]
    assert plan.regression_share == 0.2
    field(app, "slider", "Share of the budget for regressions").set_value(60).run()
    assert state(app).project.plan.regression_share == 0.6
    assert any("What your regressions need" in s.value for s in app.subheader)
    unfold(app, "Planned analyses")
    field(app, "selectbox", "Figure").set_value("difference").run()
    field(app, "selectbox", "Event").set_value("readmitted=yes").run()
    field(app, "selectbox", "Group by").set_value("sex").run()
    field(app, "text_input", "Name").set_value("gap").run()
    press(app, "Add the analysis")
    assert not app.exception
    assert [one.name for one in state(app).project.analyses] == ["gap"]
    assert state(app).project.plan.analysis_share == 0.2
    assert any("gap: ± " in m.value.replace("\\", "") for m in app.markdown)
    field(app, "selectbox", "Figure").set_value("regression").run()
    app.selectbox(key=next(s.key for s in app.selectbox if (s.key or "").startswith("analysis-family"))).set_value(
        "logistic"
    ).run()
    next(s for s in app.selectbox if (s.key or "").startswith("analysis-outcome")).set_value("readmitted=yes").run()
    next(m for m in app.multiselect if (m.key or "").startswith("analysis-on")).set_value(["age", "sex"]).run()
    assert next(s for s in app.selectbox if (s.key or "").startswith("analysis-term")).options[0] == "age"
    next(t for t in app.text_input if (t.key or "").startswith("analysis-name")).set_value("by age").run()
    press(app, "Add the analysis")
    assert not app.exception
    assert [one.kind for one in state(app).project.analyses] == ["difference", "regression"]
    assert any("by age: " in m.value.replace("\\", "") for m in app.markdown)
    finish(press(go(app, "release"), "Spend"))
    assert state(app).released.release.analyses[0]["promised"] is not None
    assert state(app).released.release.regression("back")["coefficients"][0]["term"] == "(intercept)"
    go(app, "analyse")
    assert not app.exception
    assert any("Bought regressions" in e.label for e in app.expander)
    assert list(app.dataframe[0].value["analysis"]) == ["gap", "by age"]
    assert list(app.dataframe[1].value["term"])[:2] == ["(intercept)", "age"]
    go(app, "plan")
    next(b for b in app.button if b.key and b.key.startswith("remove-regression")).click().run()
    assert not app.exception
    assert state(app).project.plan.regressions == ()
    assert state(app).project.plan.regression_share == 0.0


@pytest.mark.parametrize("method", ["mst", "copula"])  # copula has no noisy counts of marginals
def test_a_survival_table_is_built_planned_released_and_read(method):
    app = go(sample(go(start(), "data"), "readmission"), "plan")
    state(app).editor.change_plan(method=method, target="age", fair=None, epsilon=3.0)
    unfold(app, "Planned analyses")
    field(app, "selectbox", "Figure").set_value("survival").run()
    field(app, "selectbox", "Time from the start").set_value("age").run()
    field(app, "selectbox", "Event at that time").set_value("readmitted=yes").run()
    field(app, "selectbox", "Groups to compare").set_value("sex").run()
    field(app, "text_input", "Name").set_value("later").run()
    press(app, "Add the analysis")
    assert not app.exception
    (made,) = state(app).project.analyses
    assert (made.kind, made.time, made.group.partition("=")[0]) == ("survival", "age", "sex")
    assert any("later: " in m.value.replace("\\", "") for m in app.markdown)
    finish(press(go(app, "release"), "Spend"))
    found = state(app).released.release.survival("later")
    assert found["promised"] is not None
    go(app, "analyse")
    assert not app.exception
    assert any("Survival: later" in e.label for e in app.expander)
    shown = next(d.value for d in app.dataframe if "at risk" in d.value)
    assert list(shown["age"]) == [part["interval"] for part in found["table"]]


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_half_filled_builder_keeps_its_contents_while_it_is_closed_or_another_page_is_open(elsewhere):
    app = unfold(go(sample(go(start(), "data"), "readmission"), "plan"), "Regressions")
    field(app, "selectbox", "Family").set_value("logistic").run()
    field(app, "selectbox", "Outcome").set_value("readmitted=yes").run()
    field(app, "multiselect", "Predictors").set_value(["age", "sex"]).run()
    field(app, "text_input", "Name").set_value("back").run()
    if elsewhere:
        go(go(go(app, "structure"), "release"), "plan")
    else:
        unfold(app, "Regressions", False).run()
    assert not [s for s in app.selectbox if s.label == "Family"]
    unfold(app, "Regressions")
    assert field(app, "selectbox", "Outcome").value == "readmitted=yes"
    assert field(app, "multiselect", "Predictors").value == ["age", "sex"]
    press(app, "Add the regression")
    assert [one.name for one in state(app).project.plan.regressions] == ["back"]
    assert field(app, "selectbox", "Outcome").value is None
