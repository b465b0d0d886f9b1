"""A table is opened without reading its rows: its schema is planned, shown and bought."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from espalier.core.project.schema import to_buy
from espalier.pages.data.typed_columns import column_of, row_of
from espalier.pages.release.spending import start
from tests.support.app import act, answer, field, finish, go, press, sentences, state, unfold, upload

TEXT = "age,job,ill\n" + "".join(f"{20 + i % 60},{'clerk' if i % 3 else 'nurse'},{'ny'[i % 2]}\n" for i in range(600))


def test_a_table_is_opened_by_its_header_and_every_part_is_seen_in_the_plan(app: AppTest):
    go(app, "data")
    upload(app, TEXT)
    press(app, "Buy the schema without reading rows")
    project = state(app).project
    assert project.schema.undeclared == project.schema.columns
    assert not project.unconfirmed
    go(app, "data")
    assert project == state(app).project, "the editor leaves it as it is"
    answer(app)
    state(app).rows = 600
    unfold(go(app, "plan"), "Details")
    shown = " ".join(str(frame.value) for frame in app.dataframe)
    for name in ("age", "job", "ill"):
        assert f"categories of {name}" in shown


def test_what_is_to_be_bought_is_written_in_the_cells():
    columns = (
        to_buy("age", "numeric", bins=8, range=(0.0, 100.0), integer=True),
        to_buy("income", "numeric", bins=5),
        to_buy("job", "categorical", 50),
    )
    rows = [row_of(c) for c in columns]
    assert [row["edges"] for row in rows] == ["8 bins from 0 to 100", "5 bins", ""]
    assert rows[2]["categories"] == "at most 50"
    assert [column_of(row, c) for row, c in zip(rows, columns, strict=True)] == list(columns)


def test_a_release_with_a_bought_schema_is_judged_on_its_own_rows(app: AppTest):
    go(app, "data")
    upload(app, TEXT)
    press(app, "Buy the schema without reading rows")
    assert "5% of the budget buys" in sentences(app)
    act(app, "change", "age", kind="numeric")
    assert state(app).project.schema["age"] == to_buy("age", "numeric", bins=10), "its kind is enough"
    act(app, "change", "age", kind="categorical", categories="", edges="8 bins")
    assert state(app).project.schema["age"] == to_buy("age", "categorical", 50)
    state(app).answer(True)
    state(app).editor.project = state(app).project.with_plan(epsilon=50.0)
    start(state(app), 0.2, state(app).preview(300, 1e-6))
    finish(app)
    assert "release" not in state(app).trouble
    go(app, "diagnostics")
    assert "differs from the one" not in sentences(app)
    press(app, "Compare with the real rows")
    finish(app)
    assert "diagnostics" not in state(app).trouble
    assert set(state(app).findings) == {"The held-out rows"}


def test_repeated_people_and_a_bought_schema_conflict_at_the_kind_of_neighbouring_tables(app: AppTest):
    go(app, "data")
    upload(app, TEXT)
    press(app, "Buy the schema without reading rows")
    act(app, "person", "job")
    state(app).editor.change_plan(rows_per_person=2)
    go(app, "plan")
    (advanced,) = (e for e in app.expander if e.label.startswith("Advanced"))
    assert [e.value.replace("\\", "") for e in advanced.error] == [
        "A schema cannot be bought from a table that is filled to a declared total; choose add-remove."
    ]
    field(app, "radio", "Neighbouring tables").set_value("add-remove").run()
    (advanced,) = (e for e in app.expander if e.label.startswith("Advanced"))
    assert ["Enter δ here" in e.value for e in advanced.error] == [True]
    field(app, "text_input", "δ (required; for example 1e-9)").set_value("1e-9").run()
    assert not app.exception
    assert not [e.value for e in app.error]
