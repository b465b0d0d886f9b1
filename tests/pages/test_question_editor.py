"""Questions and counts in the app are built as sentences, planned, released and read."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from tests.support.app import field, finish, go, press, sample, start, state, unfold


def ask(app, kind, columns, values, name):
    kinds = next(w for w in app.get("button_group") if (w.key or "").startswith("ask-kind"))
    app.segmented_control(key=kinds.key).set_value(kind).run()
    label = "Number of rows in which" if kind == "a question" else "How many conditions does each row meet"
    field(app, "multiselect", label).set_value(columns).run()
    for column, chosen in values.items():
        fields = [w for k in ("multiselect", "select_slider", "slider") for w in app.get(k)]
        widget = next(w for w in fields if f"-{column}" in (w.key or ""))
        widget.set_value(chosen).run()
    field(app, "text_input", "Name").set_value(name).run()
    return press(app, "Add the")


def test_a_count_and_a_question_go_through_all_pages():
    app = go(sample(go(start(), "data"), "readmission"), "plan")
    state(app).editor.change_plan(method="mst", fair=None)
    before = state(app).project.question_list
    unfold(app, "Questions")
    ask(app, "a count", ["diabetes", "lives_alone"], {"diabetes": ["yes"], "lives_alone": ["yes"]}, "burdens")
    ask(app, "a question", ["burdens", "sex"], {"burdens": (1, 2), "sex": ["female"]}, "burdened women")
    listed = state(app).project.question_list
    assert dict(listed.counts[-1]) == {
        "name": "burdens",
        "of": {"diabetes": ["yes"], "lives_alone": ["yes"]},
        "up_to": 2,
    }
    assert dict(listed.questions[-1]) == {"name": "burdened women", "where": {"burdens": [1, 2], "sex": ["female"]}}
    assert any("rows with burdens from 1 to 2 and sex female" in m.value.replace("\\", "") for m in app.markdown)
    field(app, "slider", "Share of the budget for questions").set_value(30).run()
    assert state(app).project.plan.question_share == 0.3
    assert any("Expected precision of your answers" in s.value for s in app.subheader)
    go(app, "release")
    finish(press(app, "Spend"))
    facts = state(app).released.release.to_json()
    assert facts["questions"][-1]["name"] == "burdened women"
    assert any("Questions and counts" in s.value for s in app.subheader)
    go(app, "diagnostics")
    finish(press(app, "Compare"))
    assert not app.exception
    found = state(app).findings["The original table"]
    assert {q["name"] for q in found["asked"]["questions"]} >= {"burdened women"}
    assert any("Every table differs from some noisy answer" in c.value for c in app.caption)
    go(app, "plan")
    remove = [b for b in app.button if b.label == "Remove"]
    assert len(remove) == 2 + len(before.questions) + len(before.counts)
    remove[-1].click().run()
    assert not app.exception
    assert state(app).project.question_list.questions == before.questions


def test_a_question_that_cannot_be_asked_is_said_beside_the_builder():
    app = unfold(go(sample(go(start(), "data"), "readmission"), "plan"), "Questions")
    ask(app, "a question", ["sex"], {"sex": ["female"]}, "women")
    ask(app, "a question", ["sex"], {"sex": ["female"]}, "women")
    assert len(state(app).project.question_list.questions) == 1
    assert any("two questions have the name" in e.value.replace("\\", "") for e in app.error)


def test_names_in_tooltips_and_labels_are_shown_literally():
    """Previously, a name could load an image from another server, through “Remove” and the fields of a constraint."""

    def page():
        from espalier.core.project.schema import Column
        from espalier.pages.data.constraint_editor import _values
        from espalier.pages.plan.listed import line

        image = "![m](http://127.0.0.1/x.png)"
        line("a count", "k", f"Remove the count {image}", print)
        _values(Column(image, "categorical", ("x", "y")), "c")
        _values(Column(f"{image} 2", "numeric", edges=(0, 1, 2)), "n")

    app = AppTest.from_function(page).run()
    shown = [app.button[0].help, app.multiselect[0].label, *(field.label for field in app.number_input)]
    assert len(shown) == 4
    assert all(r"\!\[m\]" in text for text in shown)
