"""A method that the pages do not know is chosen, planned, released and judged on them."""

from __future__ import annotations

import json

import pytest
from streamlit.testing.v1 import AppTest

from espalier.core.methods import METHODS
from tests.support.app import field, finish, go, press, sample, sentences, state
from tests.support.toy import TOY


@pytest.fixture
def toyed(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    monkeypatch.setitem(METHODS, TOY.name, TOY)
    go(sample(app, "hiring"), "plan")
    field(app, "selectbox", "Method").set_value(TOY.name).run()
    assert not app.exception, [e.value for e in app.exception]
    return app


def plan_of(app: AppTest) -> dict[str, object]:
    project = state(app).project
    return dict(project.plan.options)


def test_its_options_are_drawn_from_what_it_declares(toyed: AppTest) -> None:
    assert f"{TOY.title}**: {TOY.summary}. {TOY.guidance.when}" in sentences(toyed)
    assert "Every row is alike" in sentences(toyed)
    assert not any(w.label.startswith("Dance steps") for w in toyed.slider)
    field(toyed, "selectbox", "Mood").set_value("wild").run()
    field(toyed, "selectbox", "Pace").set_value("fast").run()
    field(toyed, "slider", "Turns").set_value(7).run()
    field(toyed, "number_input", "Limit").set_value(12).run()
    field(toyed, "slider", "Wasted share (%)").set_value(40).run()
    field(toyed, "number_input", "Heat").set_value(33.5).run()
    field(toyed, "toggle", "Loud").set_value(True).run()
    field(toyed, "slider", "Dance steps").set_value(3).run()
    assert not toyed.exception
    given = plan_of(toyed)
    wanted = {"mood": "wild", "pace": "fast", "turns": 7, "limit": 12, "waste": 0.4, "heat": 33.5, "loud": True}
    assert {key: given[key] for key in wanted} == wanted
    assert given["dance"] == 3


def test_an_option_of_the_fence_is_drawn_where_there_is_one(toyed: AppTest) -> None:
    def there() -> bool:
        return any(w.label.startswith("Guards") for w in toyed.toggle)

    field(toyed, "toggle", "Fence between").set_value(True).run()
    assert there()
    field(toyed, "toggle", "Fence between").set_value(False).run()
    assert not there()


def test_it_is_released_judged_and_handed_over_without_a_model_file(toyed: AppTest) -> None:
    go(toyed, "release")
    assert f"**{TOY.title}** on" in sentences(toyed)
    finish(press(toyed, "Spend"))
    released = state(toyed).released
    assert released is not None
    facts = json.loads(released.files["release.json"])
    assert (facts["method"], facts["method_title"], facts["toys"]) == (TOY.name, TOY.title, 10)
    assert "model.npz" not in released.files
    labels = [b.label for b in toyed.get("download_button")]
    assert "Synthetic table" in labels
    assert "Model" not in labels
    finish(press(go(toyed, "diagnostics"), "Compare with the real rows"))
    assert not state(toyed).trouble
    assert state(toyed).findings
    go(toyed, "structure")
    go(toyed, "ledger")
