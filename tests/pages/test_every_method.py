"""Every private method for a single table goes through the app; linked tables do so in `test_linked_pages.py`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from espalier.core.methods import METHODS
from espalier.core.project.question_list import QuestionList
from espalier.core.tables.reading import read_table
from tests.support.app import finish, go, press, sample, sentences, state
from tests.support.entrances import QUESTIONS, needed, rows_of, sample_of


@pytest.mark.nightly
@pytest.mark.parametrize("name", [n for n, m in METHODS.items() if not m.capabilities.linked])
def test_it_is_planned_released_and_judged_in_the_app(app: AppTest, name: str, tmp_path: Path) -> None:
    method = METHODS[name]
    sample(app, sample_of(name))
    if method.capabilities.questions == "alone":
        state(app).editor.change_questions(QuestionList(tuple(QUESTIONS["questions"])))
    state(app).editor.change_plan(**{"fair": None, **needed({"method": name})})
    [path] = rows_of(name, tmp_path)
    state(app).text = read_table(Path(path).read_bytes(), "few.csv")
    go(app, "plan")
    assert not app.error, [e.value for e in app.error]
    go(app, "release")
    assert f"**{method.title}**" in sentences(app)
    finish(press(app, "Spend"))
    released = state(app).released
    assert released is not None, state(app).trouble
    assert json.loads(released.files["release.json"])["method"] == name
    assert method.title in released.files["report.html"].decode()
    finish(press(go(app, "diagnostics"), "Compare with the real rows"))
    assert not state(app).trouble
    assert state(app).findings


def test_tstr_and_cmi_are_named_and_explained_on_plan(app: AppTest) -> None:
    go(sample(app, "hiring"), "plan")
    said = sentences(app)
    assert '[CMI](glossary "Conditional mutual information' in said
    assert "of each is exactly 0" in said
    assert '[TSTR](glossary "Train on synthetic, test on real' in said
    state(app).editor.change_plan(private_evaluation=0.1)
    app.run()
    assert not app.exception
    [expected] = [d.value for d in app.dataframe if "expected" in d.value.columns]
    assert any(what.startswith("TSTR") for what in expected[""])
    assert any(what.startswith("CMI") for what in expected[""])


def test_tstr_and_cmi_are_named_and_explained_on_compare(app: AppTest, tmp_path: Path) -> None:
    sample(app, "hiring")
    [path] = rows_of("mst", tmp_path)
    state(app).text = read_table(Path(path).read_bytes(), "few.csv")
    finish(press(go(app, "compare"), "Compare these"))
    assert not state(app).trouble
    said = sentences(app)
    assert '[TSTR](glossary "Train on synthetic, test on real' in said
    assert '[CMI](glossary "Conditional mutual information' in said
    assert "**CMI: dependence on protected columns (nats)**" in said
    shown = app.dataframe[0].value
    assert (shown["cmi"] > 0).all()
    assert shown["cmi"].tolist() == [o.facts["fairness"]["cmi_synthetic"] for o in state(app).compared]


def test_the_plan_explains_how_each_column_is_modelled_from_its_causes(app: AppTest) -> None:
    sample(app, "readmission")
    state(app).editor.change_plan(method="decoder", fair=None)
    go(app, "plan")
    box = next(e for e in app.expander if e.label == "How each column is modelled from its causes")
    assert "a table of 64 cells" in box.markdown[0].value
    assert "Additive causes act separately" in box.caption[0].value
