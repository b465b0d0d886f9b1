"""End the sessions of closed tabs and free their memory, even on an idle server.

Streamlit keeps a session for two minutes after its tab is closed, so that a broken connection can be resumed. It drops
old sessions only when it saves another session, so the tables of closed tabs would stay in memory on an idle server.
Memory freed by Python also stays with the process until it is returned to the system.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from streamlit import config, net_util, runtime
from streamlit.runtime.fragment import MemoryFragmentStorage
from streamlit.runtime.state import SessionState

from espalier.core.process_memory import give_back
from espalier.core.server import monitor
from espalier.pages.common import downloads
from espalier.pages.session import kept_work

LASTS = 100.0
"""Seconds for which a session is kept after its tab is closed; less than Streamlit's 120."""
EVERY = 5.0
"""Seconds between two checks."""
_started = threading.Lock()


class Rounds:
    """Sessions without a tab, and the time at which each tab was closed. ``close`` ends a session; ``stored`` lists the
    sessions.
    """

    def __init__(
        self,
        stored: Callable[[], list[str]],
        close: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stored, self._close, self._clock = stored, close, clock
        self._since: dict[str, float] = {}

    def go(self) -> int:
        """End each session whose tab has been closed for `LASTS` seconds; return their number."""
        now, there = self._clock(), self._stored()
        self._since = {name: self._since.get(name, now) for name in there}
        old = [name for name, since in self._since.items() if now - since >= LASTS]
        for name in old:
            self._close(name)
        return len(old)


def served() -> bool:
    """Return whether a server is running; tests run pages without a server."""
    return runtime.exists() and not config.get_option("global.appTest")


def end(server: Any, name: str) -> None:
    """End the session of a closed tab on ``server``, Streamlit's runtime, and drop everything the session holds.

    Streamlit's loop refers to the last session that it served, with its tables, until it serves another session. When a
    session ends, Streamlit only marks its downloads; the next call deletes them.
    """
    manager = server._session_mgr
    ended = manager._session_storage.get(name)
    manager.close_session(name)
    if ended is not None:
        ended.session._session_state = SessionState()
        ended.session._fragment_storage = MemoryFragmentStorage()  # the old context refers to the last page
        server.media_file_mgr.remove_orphaned_files()


def forget_last_page() -> None:
    """Drop the names of the page that ran last, such as the session's; Streamlit keeps them as ``__main__``."""
    sys.modules["__main__"] = ModuleType("__main__")


def stay_silent() -> None:
    """Keep Streamlit from asking a server on the internet for this machine's address. Otherwise, it asks whenever a
    page from another address tries to open the app.
    """
    net_util._external_ip = "127.0.0.1"


def start() -> None:
    """Start the checks of this process, once, when its first session begins."""
    if not served() or not _started.acquire(blocking=False):
        return
    stay_silent()
    server: Any = runtime.get_instance()
    manager = server._session_mgr
    monitor.count_sessions(manager.num_active_sessions)
    downloads.watch(server)

    def close(name: str) -> None:
        server._get_async_objs().eventloop.call_soon_threadsafe(end, server, name)

    rounds = Rounds(lambda: [info.session.id for info in manager._session_storage.list()], close)

    def forever() -> None:
        before = manager.num_active_sessions()
        while True:
            time.sleep(EVERY)
            try:
                kept_work.KEPT.sweep()
                ended, now = rounds.go(), manager.num_active_sessions()
                if ended:
                    time.sleep(1.0)  # the loop closes them in the meantime
                if ended or now < before:
                    downloads.forget([info.session.id for info in manager.list_sessions()])
                    if not now:
                        forget_last_page()
                    give_back()
                before = now
            except Exception as error:  # on any error, Streamlit's own cleanup remains
                logging.getLogger(__name__).error("housekeeping: %s", type(error).__name__)

    threading.Thread(target=forever, name="housekeeping", daemon=True).start()
