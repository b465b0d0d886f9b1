"""The test of the drawing on Plan and Structure."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from tests.support.app import field, finish, go, press, sample, sentences, state


def test_the_drawing_is_tested_from_the_plan_to_the_structure_page(app: AppTest) -> None:
    sample(go(app, "data"), "readmission")
    go(app, "plan")
    field(app, "slider", "Share of the budget for testing").set_value(20).run()
    field(app, "slider", "Maximum number of statements").set_value(3).run()
    project = state(app).project
    assert (project.plan.test_drawing, project.plan.statements) == (0.2, 3)
    assert "would be detected four times in five" in sentences(app)
    press(go(app, "release"), "Spend")
    finish(app)
    go(app, "structure")
    assert "Result of release 1 for the drawing" in [e.label for e in app.expander]
    assert "the drawing implies" in sentences(app)
    project = state(app).project
    made = state(app).released
    assert made is not None
    assert project.dag == made.release.project.dag, "the program draws no arrow"
    assert not app.error
