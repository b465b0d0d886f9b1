"""The further tests of Diagnostics: many targets, the membership attack, and how strong the arrows are."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from core.compare import membership
from core.errors import Cancelled
from pages.parts.diagnostics import attack
from tests.support.app import finish, go, press, sample, sentences, state


@pytest.fixture
def released(app: AppTest) -> AppTest:
    sample(go(app, "data"), "hiring")
    session = state(app)
    project = session.project
    assert project is not None
    session.project = project.with_plan(method="decoder", steps=2, fair=False, target=project.plan.target)
    finish(press(go(app, "release"), "Spend"))
    return go(app, "diagnostics")


def test_they_are_run_one_by_one_and_their_figures_shown(released: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = membership.play
    monkeypatch.setattr(
        attack,
        "play",
        lambda *args, targets, report: whole(*args, models=20, targets=targets, attacks=("density",), report=report),
    )
    assert [tab.label for tab in released.tabs] == ["Many targets", "Membership attack", "Arrows"]
    assert "what each arrow" not in sentences(released)
    assert "the arrow does nothing in the synthetic table" in sentences(released)
    finish(press(released, "Train the classifiers"))
    assert "Over all targets and classifiers the AUC is" in sentences(released)
    field = next(f for f in released.text_input if f.label == "Rows to attack")
    finish(press(field.set_value("4, none").run(), "Play the game"))
    assert "'none' is not the number of a row" in sentences(released)
    field = next(f for f in released.text_input if f.label == "Rows to attack")
    finish(press(field.set_value("4, 9 12").run(), "Play the game"))
    said = sentences(released)
    assert "The control publishes the rows themselves" in said
    played = state(released).further[1, "attack"]
    assert (played.models, len(played.verdicts[0].aucs)) == (20, 3)
    assert any(f"{played.top:.3f}" in line for line in said.splitlines())


def test_a_cancelled_one_says_so_and_leaves_no_figures(released: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise Cancelled("cancelled")

    monkeypatch.setattr(attack, "play", stop)
    finish(press(released, "Play the game"))
    assert "This did not finish: cancelled" in sentences(released)
    assert not state(released).further


def test_none_of_it_enters_the_release(released: AppTest) -> None:
    before = dict(state(released).released.files)  # type: ignore[union-attr]
    finish(press(released, "Train the classifiers"))
    assert state(released).released.files == before  # type: ignore[union-attr]
    assert not any(b"many_targets" in data or b"attack" in data for data in before.values())
