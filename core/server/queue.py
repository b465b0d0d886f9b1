"""Jobs that take seconds to minutes, each in a separate thread with a place in the queue, progress, cancellation and
one result.

The thread never touches Streamlit. A page starts a job, a fragment polls it, and the session collects its result. All
sessions of the server share one queue. Only a few jobs run at once, so memory stays bounded for any number of users,
and each user sees the number of jobs ahead. A stopping server drains the queue: it accepts no new jobs and lets running
jobs finish.
"""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any, Literal

from espalier.core.errors import Cancelled, EspalierError
from espalier.core.progress import Report
from espalier.core.server.settings import number

LONGEST = 60.0 * number("ESPALIER_JOB_MINUTES")
"""Seconds after which a running job is stopped, even if its browser tab was closed."""
GONE = 60.0
"""Seconds after which a waiting job is dropped if its browser tab was closed; nothing is spent."""


class Queue:
    """Running and waiting jobs, in order of arrival."""

    def __init__(self, at_once: int, most: int) -> None:
        """At most ``at_once`` jobs run at a time, and at most ``most`` may wait."""
        self._at_once, self._most = at_once, most
        self._running: list[Job] = []
        self._waiting: list[Job] = []
        self._changed = threading.Condition()
        self._draining = False
        self.ended: Counter[str] = Counter()
        """Number of finished jobs, by state."""

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of running jobs and of waiting jobs."""
        with self._changed:
            return len(self._running), len(self._waiting)

    @property
    def draining(self) -> bool:
        """True if the server is stopping and accepts no job."""
        return self._draining

    def drain(self, seconds: float) -> bool:
        """Accept no more jobs, drop waiting jobs, and wait for running jobs. Return true if all have ended."""
        with self._changed:
            self._draining = True
            for job in self._waiting:
                job.cancel()
            return self._changed.wait_for(lambda: not self._running, seconds)

    def join(self, job: Job) -> None:
        """Join the end of the queue; raises :class:`EspalierError` if the queue is full."""
        with self._changed:
            if self._draining:
                raise EspalierError("The server is about to stop and accepts no new work. Nothing is spent")
            if len(self._waiting) >= self._most:
                raise EspalierError(
                    f"the server is busy; {self._most} jobs are already waiting. Try again in a few minutes"
                )
            self._waiting.append(job)

    def take(self, job: Job, seconds: float) -> bool:
        """Wait for at most this long until ``job`` is next and may run; return True once it runs."""
        with self._changed:
            free = self._changed.wait_for(
                lambda: self._waiting[0] is job and len(self._running) < self._at_once, seconds
            )
            if free:
                self._waiting.remove(job)
                self._running.append(job)
                self._changed.notify_all()
            return free

    def leave(self, job: Job) -> None:
        """Leave the queue."""
        with self._changed:
            for places in (self._waiting, self._running):
                if job in places:
                    places.remove(job)
                    self.ended[job.state] += 1
            self._changed.notify_all()

    def place(self, job: Job) -> str:
        """Return a sentence about the jobs before ``job`` in the queue."""
        with self._changed:
            if job not in self._waiting:
                return "Starting"
            before = [*self._running, *self._waiting[: self._waiting.index(job)]]
        what = "release" if all(j.kind == "release" for j in before) else "job"
        return f"Waiting: {len(before)} {what}{'s' if len(before) != 1 else ''} before yours"


QUEUE = Queue(at_once=number("ESPALIER_JOBS"), most=50)
"""Queue of this server's process."""


class Job:
    """One job. ``work(report)`` runs in the thread; ``done(session, result)`` runs where the result is collected."""

    def __init__(
        self,
        kind: str,
        work: Callable[[Report], Any],
        done: Callable[[Any, Any], None],
        ended: Callable[[Any, str], None] = lambda *_: None,
        wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        """``ended(session, reason)`` is called instead of ``done`` if the work failed or was cancelled.

        ``wanted()`` returns whether a session still waits for the result. Neither ``done`` nor ``ended`` should hold
        rows or a session: a result may remain after its tab is closed. ``work`` may hold them; it is dropped when the
        job has ended. Raises :class:`EspalierError` if the queue is full.
        """
        self.kind, self.done, self.ended = kind, done, ended
        self.state: Literal["waiting", "running", "done", "failed", "cancelled"] = "waiting"
        self.fraction, self.message = 0.0, "Starting"
        self._began = 0.0
        self.result: Any = None
        self.if_cancelled: Callable[[], str] = lambda: ""
        """Function that returns a sentence about the current cost of cancelling, or an empty string for work that
        spends nothing.
        """
        self.reason = ""
        self._work: Callable[[Report], Any] | None = work
        self._wanted, self._stop, self._deadline = wanted, threading.Event(), float("inf")
        self._thread = threading.Thread(target=self._run, name=f"job-{kind}", daemon=True)
        QUEUE.join(self)
        self._thread.start()

    @property
    def finished(self) -> bool:
        """True if the job has ended, with or without a result."""
        return not self._thread.is_alive()

    def cancel(self) -> None:
        """Request that the job stop at its next report."""
        self._stop.set()
        self.message = "Cancelling …"

    @property
    def too_late(self) -> bool:
        """True if the stop was requested too late."""
        return self.state == "done" and self._stop.is_set()

    def seconds_left(self, now: float | None = None) -> float | None:
        """Return the estimated remaining seconds, from the finished fraction; None before the job runs and in its first
        seconds.
        """
        past = (time.monotonic() if now is None else now) - self._began
        if self.state != "running" or self.fraction < 0.05 or past < 2.0:
            return None
        return past * (1 - self.fraction) / self.fraction

    def wait(self, seconds: float) -> None:
        """Wait for work that is likely to be quick (also used by tests)."""
        self._thread.join(seconds)

    def _report(self, fraction: float, message: str) -> None:
        if self._stop.is_set():
            raise Cancelled("cancelled")
        if time.monotonic() > self._deadline:
            raise Cancelled(
                f"the job took longer than {LONGEST / 60:.0f} minutes and was stopped; coarsen the columns with the "
                "most categories"
            )
        self.fraction, self.message = min(max(float(fraction), 0.0), 1.0), message

    def _queue(self) -> None:
        """Wait for a turn; raises :class:`Cancelled`."""
        seen = time.monotonic()
        while not QUEUE.take(self, 0.2):
            self._report(0.0, QUEUE.place(self))
            if self._wanted():
                seen = time.monotonic()
            elif time.monotonic() - seen > GONE:
                raise Cancelled("no one was still waiting for the result")

    def _run(self) -> None:
        try:
            self._queue()
            self.state, self._began = "running", time.monotonic()
            self._deadline = self._began + LONGEST
            self._report(0.0, "Starting")
            assert self._work is not None
            self.result = self._work(self._report)
            self.state = "done"
        except Cancelled as error:
            self.state, self.reason = "cancelled", str(error)
        except EspalierError as error:
            self.state, self.reason = "failed", str(error)
        except MemoryError:
            self.state, self.reason = "failed", "not enough memory; coarsen the columns with the most categories."
        except Exception as error:  # last resort of the thread: report the error, and keep values out of the log
            where = traceback.extract_tb(error.__traceback__)[-1]
            logging.getLogger(__name__).error(
                "job %s: %s in %s, line %s", self.kind, type(error).__name__, where.filename, where.lineno
            )
            self.state, self.reason = "failed", f"an unexpected error ({type(error).__name__}); please report it."
        finally:
            self._work = None
            QUEUE.leave(self)
