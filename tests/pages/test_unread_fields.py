"""The Plan page offers a field only where the method reads it, or where a value has to be corrected."""

from __future__ import annotations

from espalier.core.project.question_list import QuestionList
from tests.support.app import go, sample, start, state


def labels(app):
    return {w.label for kind in ("selectbox", "number_input") for w in app.get(kind)}


FIELDS = {"Allocation inside a pool", "Accounting", "Copies for intervals"}


def test_fields_follow_the_method():
    app = go(sample(go(start(), "data"), "readmission"), "plan")
    assert labels(app) >= {*FIELDS, "Second stage for whole rows"}
    state(app).editor.change_plan(method="decoder", fair=None)
    app.run()
    assert not labels(app) & {*FIELDS, "Second stage for whole rows"}
    state(app).editor.change_plan(accounting="basic")
    app.run()
    assert labels(app) & FIELDS == {"Accounting"}
    assert not app.exception


def accounting(app):
    return next(w for w in app.selectbox if w.label == "Accounting")


def test_pure_accounting_is_offered_where_every_draw_can_be_pure():
    app = go(sample(go(start(), "data"), "readmission"), "plan")
    assert "pure" not in accounting(app).options
    column = state(app).project.schema.columns[0]
    asked = QuestionList(({"name": "first", "where": {column.name: [column.labels[0]]}},))
    state(app).editor.change_questions(asked)
    state(app).editor.change_plan(method="fpt-mw", fair=None)
    app.run()
    assert accounting(app).options == ["zcdp", "pure"]
    accounting(app).select("pure").run()
    assert state(app).project.plan.delta == 0.0
    assert any("δ is 0" in c.value for c in app.caption)
    accounting(app).select("zcdp").run()
    assert state(app).project.plan.delta is None
    assert not app.exception
