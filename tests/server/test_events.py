"""Audit events of a walk through the app: every kind occurs, but no value from the table."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from espalier.core.server import events
from espalier.core.server.events import JsonLines, emit
from espalier.core.server.monitor import Monitor, serve
from espalier.core.server.queue import Queue
from espalier.pages.common.housekeeping import LASTS, Rounds, end, forget_last_page
from tests.support.app import finish, free_port, go, press, review, start, upload

MARK = "zanzibar"


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.setenv(events.LOG, str(tmp_path / "audit.jsonl"))
    monkeypatch.setenv("ESPALIER_LEDGER", str(tmp_path / "ledger.db"))
    return tmp_path / "audit.jsonl"


def walk(rows: str) -> None:
    app = review(press(upload(start(), rows), "Guess the columns"))
    press(go(app, "release"), "Open this budget")
    finish(press(app, "Spend"))


@pytest.mark.parametrize("names", [False, True])
def test_a_walk_is_recorded_without_values(log, monkeypatch, names):
    if names:
        monkeypatch.setenv(events.NAMES, "1")
    rows = f"ward {MARK},age {MARK}\n" + "".join(f"{MARK}-{i % 3},{4242 + i % 30}\n" for i in range(200))
    walk(rows)
    text = log.read_text("ascii")
    seen = [json.loads(line) for line in text.splitlines()]
    assert {e["event"] for e in seen} >= {"open", "plan", "ledger", "release"}
    assert [e["state"] for e in seen if e["event"] == "release"] == ["began", "done"]
    assert set(seen[0]) - {"names"} == {"at", "event", "who", "source"}
    assert MARK not in text
    assert "4242" not in text
    assert ("people" in text) == names, "names are for the operator who asks for them"
    assert log.stat().st_mode & 0o077 == 0


def test_an_event_that_cannot_be_written_goes_to_the_log(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv(events.LOG, str(tmp_path))
    with caplog.at_level(logging.INFO, "espalier.audit"):
        emit("open", "anna")
    assert caplog.records[0].facts["who"] == "anna"
    assert "cannot be written" in events.trouble()


def test_a_log_line_is_json_and_an_exception_quotes_nothing():
    try:
        raise ValueError(f"row 17: {MARK}")
    except ValueError as error:
        record = logging.LogRecord(
            "x", logging.ERROR, "f", 1, "broken\nline", None, (type(error), error, error.__traceback__)
        )
    line = json.loads(JsonLines().format(record))
    assert (line["message"], line["error"], line["level"]) == ("broken\nline", "ValueError", "error")
    assert line["where"].startswith("test_events.py:")
    assert MARK not in json.dumps(line)


def test_sessions_of_closed_tabs_end_on_an_idle_server():
    now, stored, closed = [0.0], ["a", "b"], []

    def close(name):
        closed.append(name)
        stored.remove(name)

    rounds = Rounds(lambda: list(stored), close, lambda: now[0])
    assert rounds.go() == 0
    now[0] = LASTS / 2
    stored.remove("b")  # its tab reconnected
    rounds.go()
    stored.append("b")
    now[0] = LASTS
    assert (rounds.go(), closed) == (1, ["a"])
    now[0] = 1.4 * LASTS
    assert rounds.go() == 0
    now[0] = 2 * LASTS
    assert (rounds.go(), closed) == (1, ["a", "b"])


class Rows:
    """Stands for a table, because a weak reference cannot refer to a list."""


def test_an_idle_server_forgets_the_names_of_its_last_page(monkeypatch):
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))
    rows = Rows()
    vars(sys.modules["__main__"])["state"] = rows
    kept = weakref.ref(rows)
    del rows
    assert kept() is not None
    forget_last_page()
    gc.collect()
    assert kept() is None


def test_an_ended_session_keeps_nothing_even_if_streamlit_refers_to_it():
    """Streamlit's loop refers to the last session that it served until another visitor comes."""
    from streamlit.runtime.media_file_manager import MediaFileManager
    from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage
    from streamlit.runtime.memory_session_storage import MemorySessionStorage
    from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
    from streamlit.runtime.script_data import ScriptData
    from streamlit.runtime.scriptrunner.script_cache import ScriptCache
    from streamlit.runtime.websocket_session_manager import WebsocketSessionManager

    async def served():
        storage = MemoryMediaFileStorage("/media")
        media = MediaFileManager(storage)
        manager = WebsocketSessionManager(MemorySessionStorage(), MemoryUploadedFileManager("/x"), ScriptCache(), None)
        name = manager.connect_session(object(), ScriptData("app.py", False), {})
        of_the_loop = manager.get_active_session_info(name)
        rows = Rows()
        kept = weakref.ref(rows)
        state: Any = of_the_loop.session.session_state
        state["rows"] = rows
        state._new_widget_state.widget_metadata["button"] = partial(id, rows)
        of_the_loop.session._fragment_storage.register("part", partial(id, rows))
        del rows, state
        media.add(b"a,b", "text/csv", "1.2", "table.csv", is_for_static_download=True)
        manager.disconnect_session(name)
        assert kept() is not None, "its tab may come back"
        media.clear_session_refs()  # as Streamlit's runtime does when a session ends
        media.remove_orphaned_files()
        assert storage._files_by_id
        end(SimpleNamespace(_session_mgr=manager, media_file_mgr=media), name)
        gc.collect()
        return kept() is None and of_the_loop.session is not None and not storage._files_by_id

    with ThreadPoolExecutor(1) as apart:  # a browser test before this one leaves a loop running in its thread
        assert apart.submit(asyncio.run, served()).result()


def test_streamlit_has_what_the_rounds_use():
    """Its session manager is not a public interface: a new version may rename the function that ends a session."""
    from streamlit.runtime import Runtime
    from streamlit.runtime.app_session import AppSession
    from streamlit.runtime.memory_session_storage import MemorySessionStorage
    from streamlit.runtime.websocket_session_manager import WebsocketSessionManager

    assert {"close_session", "num_active_sessions"} <= set(dir(WebsocketSessionManager))
    assert "_get_async_objs" in dir(Runtime)
    assert vars(MemorySessionStorage())["_cache"].ttl > LASTS + 2 * 5
    assert {"_session_state", "_fragment_storage"} <= set(AppSession.__init__.__code__.co_names)


def test_a_stopping_queue_takes_no_work():
    queue = Queue(at_once=1, most=2)
    assert queue.drain(0.1)
    with pytest.raises(Exception, match="about to stop"):
        queue.join(None)


def test_the_monitor_answers():
    import urllib.error
    import urllib.request

    monitor = Monitor({"ledger": lambda: "", "disk": lambda: "full"})
    port = free_port()
    server = serve(port, monitor)

    def ask(path: str, host: str = "localhost") -> tuple[int, str]:
        asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Host": host})
        try:
            with urllib.request.urlopen(asked, timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    try:
        assert ask("/healthz") == (200, "ok\n")
        status, body = ask("/readyz")
        assert (status, json.loads(body)) == (503, {"ledger": "ok", "disk": "full", "worker": "ok"})
        assert ask("/else")[0] == 404
        assert ask("/healthz", f"127.0.0.1:{port}")[0] == 200
        for other in (f"evil.example:{port}", "127.0.0.1.evil.example", "", "::1"):
            assert ask("/metrics", other) == (421, "unknown\n"), "the name of another site that leads here"
        status, body = ask("/metrics")
        assert status == 200
        values = dict(line.rsplit(" ", 1) for line in body.splitlines() if not line.startswith("#"))
        assert values['espalier_ready{part="disk"}'] == "0"
        assert int(values["espalier_memory_bytes"]) > 10_000_000
        assert {"espalier_jobs_running", "espalier_jobs_waiting", 'espalier_jobs_ended_total{state="done"}'} <= set(
            values
        )
    finally:
        server.shutdown()
        server.server_close()


def test_each_fetch_of_a_download_is_an_event(log, monkeypatch):
    """Of the files that a page offers, those that a browser fetches are recorded, with the person of the session."""
    from types import SimpleNamespace

    from streamlit.runtime import media_file_manager
    from streamlit.runtime.media_file_manager import MediaFileManager
    from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage

    from espalier.pages.common import downloads

    storage = MemoryMediaFileStorage("/media")
    manager = MediaFileManager(storage)
    monkeypatch.setattr(media_file_manager, "_get_session_id", lambda: "session")
    monkeypatch.setattr(downloads, "_people", {"session": "anna", "other": "ben"})
    downloads.watch(SimpleNamespace(media_file_mgr=manager))
    addresses = [
        manager.add(b"rows", "text/csv", "1", "secret name.csv", is_for_static_download=True),
        manager.add(
            b"figures", "application/json", "2", "x-diagnostics-CONFIDENTIAL.json", is_for_static_download=True
        ),
        manager.add(b"picture", "image/png", "3"),
    ]
    assert not log.exists(), "an offer is not a download"
    for address in addresses:
        assert storage.get_file(address.rpartition("/")[2]).content
    first, second = (json.loads(line) for line in log.read_text().splitlines())
    assert (first["event"], first["who"], first["type"], first["confidential"]) == ("download", "anna", "csv", False)
    assert (second["type"], second["confidential"]) == ("json", True)
    assert "secret name" not in log.read_text()
    downloads.forget(["other"])
    assert downloads._people == {"other": "ben"}
