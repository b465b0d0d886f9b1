"""Work of seconds to minutes, in a thread of its own: progress, cancel, one result.

The thread never touches Streamlit. A page starts a job, a fragment polls it, and the session collects what it made.
"""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, Literal

from core.errors import Cancelled, EspalierError

AT_ONCE = threading.BoundedSemaphore(2)
"""So many jobs run at once in the whole process; the others wait their turn."""
LONGEST = 30 * 60.0
"""Seconds after which a job gives up, also when its browser tab was closed."""

Report = Callable[[float, str], None]


class Job:
    """One piece of work. ``work(report)`` runs in the thread; ``done(result)`` later, in the session."""

    def __init__(
        self, kind: str, work: Callable[[Report], Any], done: Callable[[Any], None], ended: Callable[[str], None]
    ) -> None:
        """``ended(reason)`` is called in place of ``done`` if the work failed or was cancelled."""
        self.kind, self.done, self.ended = kind, done, ended
        self.state: Literal["waiting", "running", "done", "failed", "cancelled"] = "waiting"
        self.fraction, self.message = 0.0, "Waiting for a free place"
        self.result: Any = None
        self.reason = ""
        self._work, self._stop, self._deadline = work, threading.Event(), time.monotonic() + LONGEST
        self._thread = threading.Thread(target=self._run, name=f"job-{kind}", daemon=True)
        self._thread.start()

    @property
    def finished(self) -> bool:
        """Has it ended, one way or another?"""
        return not self._thread.is_alive()

    def cancel(self) -> None:
        """Ask it to stop at its next report."""
        self._stop.set()
        self.message = "Cancelling …"

    def wait(self, seconds: float) -> None:
        """Wait for the end, for work that is likely to be quick (and for tests)."""
        self._thread.join(seconds)

    def _report(self, fraction: float, message: str) -> None:
        if self._stop.is_set():
            raise Cancelled("cancelled")
        if time.monotonic() > self._deadline:
            raise Cancelled(
                "this took longer than half an hour and was stopped; coarsen the columns with most categories"
            )
        self.fraction, self.message = min(max(float(fraction), 0.0), 1.0), message

    def _run(self) -> None:
        try:
            while not AT_ONCE.acquire(timeout=0.2):
                self._report(0.0, "Waiting for a free place")
        except Cancelled as error:
            self.state, self.reason = "cancelled", str(error)
            return
        try:
            self.state = "running"
            self._report(0.0, "Starting")
            self.result = self._work(self._report)
            self.state = "done"
        except Cancelled as error:
            self.state, self.reason = "cancelled", str(error)
        except EspalierError as error:
            self.state, self.reason = "failed", str(error)
        except MemoryError:
            self.state, self.reason = "failed", "not enough memory; coarsen the columns with the most categories"
        except Exception as error:  # a thread's last resort: say so, keep values out of the log
            where = traceback.extract_tb(error.__traceback__)[-1]
            logging.getLogger(__name__).error(
                "job %s: %s in %s, line %s", self.kind, type(error).__name__, where.filename, where.lineno
            )
            self.state, self.reason = "failed", f"an unexpected error ({type(error).__name__}); please report it"
        finally:
            AT_ONCE.release()
