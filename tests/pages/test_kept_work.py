"""Jobs and results that survive a reload have the right owner, lifetime and contents."""

from __future__ import annotations

import pickle
import threading
from dataclasses import replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from espalier.core.project.editor import ProjectEditor
from espalier.core.project.schema import Column, Schema
from espalier.pages.common import sign_in
from espalier.pages.release.payment import UNRECORDED
from espalier.pages.session import kept_work, session
from espalier.pages.session.bundles import ReleaseBundle
from espalier.pages.session.kept_work import AWAY, LASTS, Registry
from espalier.pages.session.session import Session, blank
from tests.support.app import at_home, field, finish, go, press, sample, sentences, start, state, until

ANNA, BEN = ("idp", "1", "anna@hospital.example"), ("idp", "2", "ben@hospital.example")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tab() -> threading.Event:
    """Set while the tabs of all sessions count as connected."""
    made = threading.Event()
    made.set()
    return made


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch, clock: Clock, tab: threading.Event) -> Registry:
    """A separate registry for each test, whose clock the test sets."""
    made = Registry(clock)
    monkeypatch.setattr(kept_work, "KEPT", made)
    monkeypatch.setattr(session, "_still_here", lambda: tab.is_set)
    return made


def nobody() -> bool:
    return False


def test_only_the_account_that_started_the_work_takes_it(kept: Registry) -> None:
    kept.watch("token", ANNA, nobody)
    kept.store("token", None, "results")
    assert kept.take("token", BEN, nobody) is None
    assert kept.take("token", (), nobody) is None
    assert kept.take("another", ANNA, nobody) is None
    found = kept.take("token", ANNA, nobody)
    assert found is not None
    assert found.results == "results"


def test_results_are_kept_while_a_tab_shows_them_and_fifteen_minutes_more(
    kept: Registry, clock: Clock, tab: threading.Event
) -> None:
    kept.watch("token", ANNA, tab.is_set)
    kept.store("token", None, "results")
    clock.now = 5 * LASTS
    kept.sweep()
    tab.clear()
    clock.now += LASTS - 1
    assert kept.take("token", ANNA, nobody) is not None
    clock.now += LASTS
    assert kept.take("token", ANNA, nobody) is None


def test_above_the_limit_the_tab_that_went_first_is_forgotten(
    kept: Registry, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_work, "MOST", 2)
    for i in range(3):
        clock.now = float(i)
        kept.watch(str(i), ANNA, nobody)
        kept.store(str(i), None, i)
    assert [kept.take(str(i), ANNA, nobody) is not None for i in range(3)] == [False, True, True]


@pytest.fixture
def released(app: AppTest) -> AppTest:
    go(sample(app, "hiring"), "release")
    if any(s.label == "Paid from the budget of" for s in app.selectbox):
        field(app, "selectbox", "Paid from the budget of").select(UNRECORDED).run()
    return finish(press(app, "Spend"))


def reloaded(token: str | None) -> AppTest:
    """Return the app of a new session whose tab presents this token."""
    app = at_home()
    state(app).take_back(token or "")
    return app.run()


def test_a_reload_returns_to_the_release_without_its_rows(released: AppTest) -> None:
    assert "Reloading this tab restores it for 15 minutes" in sentences(released)
    before = state(released).released
    assert before is not None
    assert before.real is not None, "the session that released has the rows"
    app = go(reloaded(state(released).token), "release")
    made = state(app).released
    assert made is not None
    assert (made.files, made.real, made.holdout) == (before.files, None, None)
    assert any(s.value.startswith("Release 1 of hiring") for s in app.subheader)
    go(app, "analyse")
    go(sample(app, "hiring"), "diagnostics")
    assert state(app).released.has_rows, "the same table was opened again"  # type: ignore[union-attr]
    go(app, "release")
    assert "This session has already made a release" in sentences(app)


def test_rows_come_back_only_from_the_same_table(released: AppTest) -> None:
    """Previously, a table of the same name with other rows was compared with the release, and held-out rows came back
    with the others.
    """
    made = state(released).released
    assert made is not None
    assert made.mark is not None
    again, text = Session(), state(released).text
    assert text is not None
    assert text.digest not in pickle.dumps(made.without_rows()), "it leaves only through a keyed digest"
    again.open(made.planned, text, 6000)
    another = replace(text, columns={n: replace(c, codes=c.codes[::-1]) for n, c in list(text.columns.items())[:1]})
    for table, mark, back in [
        (text, made.mark, True),
        (replace(text, columns=text.columns | another.columns), made.mark, False),
        (text, None, False),
    ]:
        again.text, again.released = table, replace(made.without_rows(), mark=mark)
        assert not again.released.has_rows
        again.give_rows_back()
        assert again.released.has_rows == back


def test_a_table_read_in_place_comes_back_once_it_was_opened_again() -> None:
    """Previously, the table's location outlived the session, so a reload bypassed the list of allowed places."""
    project, far = blank("far", Schema((Column("a", "categorical", ("x", "y")),))), ("warehouse", "people")
    relation = object()
    made = ReleaseBundle(1, project, None, {}, None, None, relation, far)  # type: ignore[arg-type]
    again = Session(ProjectEditor(project), released=made.without_rows())
    assert again.released is not None
    assert not again.released.has_rows
    assert not again.released.counted
    for where, back in (("warehouse", "others"), False), (far, True):
        again.relation, again.far = relation, where  # type: ignore[assignment]
        again.give_rows_back()
        assert again.released.has_rows == back


def test_results_of_a_tab_that_is_gone_leave_memory_and_come_back(
    released: AppTest, clock: Clock, kept: Registry, tab: threading.Event
) -> None:
    """Previously, twenty closed tabs kept two gigabytes of files for fifteen minutes."""
    made, token = state(released).released, state(released).token or ""
    tab.clear()
    kept.sweep()
    clock.now += AWAY
    kept.sweep()
    work = kept._work[token]
    assert work.results is None
    assert work.away is not None
    app = go(reloaded(token), "release")
    again = state(app).released
    assert made is not None
    assert again is not None
    assert again is not made
    assert (again.files, again.number, again.release.to_json()) == (made.files, made.number, made.release.to_json())
    assert work.away is None
    tab.clear()
    clock.now += AWAY
    kept.sweep()
    away = work.away
    assert away is not None
    clock.now += LASTS
    kept.sweep()
    assert away.closed
    assert token not in kept._work


def test_what_cannot_be_written_stays_in_memory(kept: Registry, clock: Clock) -> None:
    odd = threading.Lock()
    kept.watch("token", ANNA, nobody)
    kept.store("token", None, odd)
    clock.now += AWAY
    kept.sweep()
    found = kept.take("token", ANNA, nobody)
    assert found is not None
    assert found.results is odd


def test_another_person_cannot_take_the_token(released: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    token = state(released).token
    with monkeypatch.context() as patched:
        patched.setattr(sign_in, "identity", lambda: BEN)
        app = go(reloaded(token), "release")
    assert state(app).released is None
    assert state(app).job is None
    assert "no longer kept" in sentences(app)


def test_what_has_expired_is_said_to_be_gone(released: AppTest, clock: Clock, tab: threading.Event) -> None:
    tab.clear()
    clock.now += LASTS
    app = go(reloaded(state(released).token), "release")
    assert state(app).released is None
    assert "no longer kept" in sentences(app)


def test_a_reload_returns_to_the_job_that_runs_and_takes_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    let_go = threading.Event()

    def held(report: Any) -> str:
        while not let_go.wait(0.01):
            report(0.5, "Half of it")
        return "made"

    first = sample(start(), "hiring")
    monkeypatch.setattr(sign_in, "need_steward", lambda: None)
    state(first).start("release", held, lambda into, result: into.trouble.update(release=f"{result} after all."))
    job = state(first).job
    assert job is not None
    try:
        until(lambda: job.message == "Half of it")
        app = go(reloaded(state(first).token), "release")
        assert state(app).job is job
        assert [bar.proto.text for bar in app.get("progress")] == ["Half of it"]
    finally:
        let_go.set()
    finish(app)
    assert "made after all" in sentences(app)
    assert job._work is None, "everything that the work held is freed with it"
