"""The Plan page offers a field only where the method reads it, or where a value has to be put right."""

from __future__ import annotations

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
