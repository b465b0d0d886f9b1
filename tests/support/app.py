"""The app, driven without a browser."""

from __future__ import annotations

import csv
import functools
import io
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.testing.v1 import AppTest, app_test, local_script_runner

from espalier.pages.data.typed_columns import row_of
from espalier.pages.session.session import KEY, Session

ROOT = Path(__file__).resolve().parents[2]
PAGE_FILES = {path.stem.split("_", 1)[1]: f"pages/{path.name}" for path in sorted((ROOT / "pages").glob("*.py"))}
"""The file of each page, by the name of the page in its address."""


_SCRIPTS = ScriptCache()


def share_scripts() -> None:
    """Let all apps of this process share compiled scripts and package metadata.

    Otherwise each `AppTest` reads the metadata of every installed package, and compiles its scripts in every run.
    """
    manifest_scanner.scan_component_manifests = functools.cache(manifest_scanner.scan_component_manifests)
    for module in (app_test, local_script_runner):
        vars(module)["ScriptCache"] = lambda: _SCRIPTS


share_scripts()


def start() -> AppTest:
    """Open the app as a first-time user does, and go to the Data page."""
    return go(at_home(), "data")


def at_home() -> AppTest:
    """Return the app on its first page."""
    return AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()


def state(app: AppTest) -> Session:
    """Return the session's state."""
    found: Session = app.session_state[KEY]
    return found


def act(app: AppTest, do: str, column: str, **typed: Any) -> AppTest:
    """Carry out an action on a column of the review, as its line in the browser would; ``typed`` changes its form."""
    session = state(app)
    sent: dict[str, Any] = {"do": do, "name": column}
    if do == "change":
        form = {"book": session.project.schema[column].code_book, "invented": False}
        sent["typed"] = {**row_of(session.project.schema[column]), **form, **typed}
    session.drafts.review.act(session.editor, session.text, sent)
    app.run()
    assert not app.exception, [e.value for e in app.exception]
    return app


def go(app: AppTest, page: str) -> AppTest:
    """Visit a page."""
    app.switch_page(PAGE_FILES[page]).run()
    assert not app.exception, [e.value for e in app.exception]
    return app


def unfold(app: AppTest, label: str, opened: bool = True) -> AppTest:
    """Open or close an expander whose contents are drawn only while it is open."""
    (found,) = (e.label for e in app.expander if e.label.startswith(label))
    app.session_state[f"folded-{found}"] = opened
    app.run()
    assert not app.exception, [e.value for e in app.exception]
    return app


def sample(app: AppTest, name: str) -> AppTest:
    """Open a sample, on the Data page."""
    if not any(b.key == f"sample-{name}" for b in app.button):
        go(app, "data")
    app.button(key=f"sample-{name}").click().run()
    assert not app.exception
    return app


def press(app: AppTest, label: str) -> AppTest:
    """Press the first button whose label begins with this text."""
    button = next(b for b in app.button if b.label.startswith(label))
    assert not button.disabled, f"{label} cannot be pressed"
    button.click().run()
    assert not app.exception, [e.value for e in app.exception]
    return app


def answer(app: AppTest, column: str | None = None, rows: int | None = None) -> AppTest:
    """Answer on the Data page whether one person can have several rows: no; yes, by a column; or yes, by promise."""
    if change := [b for b in app.button if (b.key or "").startswith("person-change")]:
        change[0].click().run()
    radio = next(r for r in app.radio if (r.key or "").startswith("person-answer"))
    radio.set_value("column" if column else "promise" if rows else "no").run()
    if column:
        next(s for s in app.selectbox if (s.key or "").startswith("person-column")).select(column).run()
    if rows:
        next(n for n in app.number_input if (n.key or "").startswith("person-")).set_value(rows).run()
    return press(app, "Use this answer")


def review(app: AppTest) -> AppTest:
    """Confirm each group of guessed columns; each person has one row, unless the question was answered before."""
    if state(app).has_project and state(app).project.unit_open:
        answer(app)
    while buttons := [b for b in app.button if (b.key or "").startswith("review-confirm")]:
        assert not buttons[0].disabled, sentences(app)
        buttons[0].click().run()
        assert not app.exception, [e.value for e in app.exception]
    return app


def finish(app: AppTest) -> AppTest:
    """Wait for the session's job, then let the page take its result."""
    if (job := state(app).job) is not None:
        job.wait(60)
        app.run()
    assert not app.exception
    return app


def until(holds: Callable[[], bool]) -> None:
    """Wait up to ten seconds until another thread has made this true."""
    for _ in range(1000):
        if holds():
            return
        time.sleep(0.01)
    pytest.fail("the state was never reached")


def _widgets(app: AppTest, kind: str) -> list[Any]:
    """Return the elements of a kind; their classes have different contents."""
    return list(app.get(kind))


def field(app: AppTest, kind: str, label: str) -> Any:
    """Return the first field of a kind whose label begins with this text."""
    return next(w for w in _widgets(app, kind) if w.label.startswith(label))


def upload(app: AppTest, text: str, name: str = "people.csv") -> AppTest:
    """Give the Data page a table."""
    uploader = next(u for u in app.file_uploader if u.label == "Your table")
    uploader.upload(name, text.encode(), "text/csv").run()
    assert not app.exception
    return app


def people(rows: int = 60) -> str:
    """Return a table with odd names."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["Name of ward, old", "年齢", "out*come*"])
    for i in range(rows):
        writer.writerow([("A; b", "C")[i % 2], 20 + i % 30, ("yes", "no")[i % 3 == 0]])
    return out.getvalue()


def sentences(app: AppTest) -> str:
    """Return all sentences on the page."""
    return "\n".join(
        str(e.value) for kind in ("markdown", "error", "warning", "info", "caption") for e in _widgets(app, kind)
    )


def free_port() -> int:
    """Return a port of this machine that nothing listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
