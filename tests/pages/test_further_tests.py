"""The further tests of Diagnostics: many targets, the membership attack, and the strength of arrows."""

from __future__ import annotations

import re
import threading
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from espalier.core.compare import membership
from espalier.core.errors import Cancelled
from espalier.core.server.queue import Job
from espalier.pages.common.text import plain
from espalier.pages.diagnostics import membership_attack
from espalier.pages.session import session
from tests.support.app import finish, go, press, sample, sentences, state, until


@pytest.fixture
def released(app: AppTest) -> AppTest:
    sample(go(app, "data"), "hiring")
    session = state(app)
    project = session.project
    session.editor.project = project.with_plan(method="decoder", steps=2, fair=False, target=project.plan.target)
    finish(press(go(app, "release"), "Spend"))
    return go(app, "diagnostics")


@pytest.mark.nightly
def test_they_are_run_one_by_one_and_their_figures_shown(released: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = membership.play
    monkeypatch.setattr(
        membership_attack,
        "play",
        lambda *args, targets, report: whole(*args, models=20, targets=targets, attacks=("density",), report=report),
    )
    assert [tab.label for tab in released.tabs] == ["Many targets", "Membership attack", "Arrows"]
    assert "the arrow has no effect in the synthetic table" in sentences(released)
    finish(press(released, "Measure the arrows"))
    assert re.search(r"synthetic links are \*\*\d+ %\*\* as strong as the real ones", sentences(released))
    links = state(released).further[1, "arrows"]
    project = state(released).project
    assert {found.arrow for found in links} == set(project.dag.edges)
    assert links[0].real == max(found.real for found in links) > 0.05
    finish(press(released, "Train the classifiers"))
    assert "Over all targets and classifiers the AUC is" in sentences(released)
    field = next(f for f in released.text_input if f.label == "Rows to attack")
    finish(press(field.set_value("4, none").run(), "Play the game"))
    assert "'none' is not a row number" in sentences(released)
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

    monkeypatch.setattr(membership_attack, "play", stop)
    finish(press(released, "Play the game"))
    assert "This did not finish: cancelled" in sentences(released)
    assert not state(released).further


def test_the_attack_waits_for_its_turn_says_so_and_is_cancelled(
    released: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two sessions with running jobs occupy both places of the server's queue."""
    monkeypatch.setattr(session, "_still_here", lambda: lambda: True)  # no server is running
    let_go = threading.Event()

    def held(report: Any) -> None:
        while not let_go.wait(0.01):
            report(0.5, "half")

    others = [Job("attack", held, print, print) for _ in range(2)]
    try:
        until(lambda: all(job.state == "running" for job in others))
        press(released, "Play the game")
        mine = state(released).job
        assert mine is not None
        until(lambda: mine.message.startswith("Waiting"))
        assert mine.message == "Waiting: 2 jobs before yours"
        assert [bar.proto.text for bar in released.run().get("progress")] == [plain(mine.message)]
        assert released.button(key="attack-1").disabled, "a session has one job at a time"
        finish(press(released, "Cancel"))
    finally:
        let_go.set()
    assert "This did not finish: cancelled" in sentences(released)
    assert (mine.state, state(released).further) == ("cancelled", {})


@pytest.mark.parametrize(
    "button", ["Measure the arrows", pytest.param("Train the classifiers", marks=pytest.mark.nightly)]
)
def test_none_of_it_enters_the_release(released: AppTest, button: str) -> None:
    before = dict(state(released).released.files)  # type: ignore[union-attr]
    finish(press(released, button))
    assert state(released).further
    assert state(released).released.files == before  # type: ignore[union-attr]
    assert not any(b"many_targets" in data or b"attack" in data for data in before.values())
