"""Jobs and results that survive a reload of a browser tab, in one registry of the server's process.

The tab keeps a random token in its own storage, never in an address. A session that starts a job stores the job and its
results under that token; the session of the reloaded tab presents the token and continues. Only the account that
started the work can continue it; for any other account, the token is treated as unknown. Results are kept for `LASTS`
seconds after the last tab that shows them is gone and the job has ended. They contain no rows of a table: rows are
discarded with their session. After `AWAY` seconds they are moved to a file without a name, because the files of a
release may be large.

A token has 256 random bits, so no one can guess it; it is matched by a dictionary lookup.
"""

from __future__ import annotations

import pickle
import secrets
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, Any

from espalier.core.server.queue import Job

LASTS = 15 * 60.0
"""Seconds for which results are kept after their tab is gone."""
AWAY = 30.0
"""Seconds after which the results of a closed tab leave memory."""
MOST = 100
"""Maximum number of tabs for which results are kept; beyond this number, the tab that closed first is forgotten."""

Watcher = Callable[[], bool]
"""A function that returns whether a tab is connected."""


@dataclass
class Work:
    """Job and the results kept under one token."""

    who: tuple[Any, ...]
    watchers: list[Watcher]
    seen: float
    """Time at which a tab was last connected or the job was last running, by the registry's clock."""
    job: Job | None = None
    results: Any = None
    away: IO[bytes] | None = None
    """The file that holds ``results`` while they are not in memory."""
    stays: bool = False
    """True if writing ``results`` to a file failed."""

    def bring_back(self) -> None:
        """Read the results again if they were moved to a file."""
        if self.away is not None:
            with self.away as file:
                file.seek(0)
                self.results = pickle.load(file)
            self.away = None

    def forget(self) -> None:
        """Discard the results, in memory or in the file."""
        self.job, self.results, self.stays = None, None, False
        if self.away is not None:
            self.away.close()
            self.away = None

    def busy(self) -> bool:
        """Return whether a tab is connected, or the job is running."""
        return any(watcher() for watcher in self.watchers) or (self.job is not None and not self.job.finished)


class Registry:
    """The kept work, by token."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._work: dict[str, Work] = {}

    def watch(self, token: str, who: tuple[Any, ...], watcher: Watcher) -> None:
        """Keep the work of ``who`` for a reload under ``token``; ``watcher`` is the tab that shows it."""
        self.sweep()
        with self._lock:
            if token not in self._work:
                self._work[token] = Work(who, [watcher], self._clock())

    def watched(self, token: str) -> bool:
        """Return whether a tab that shows this work is connected."""
        with self._lock:
            work = self._work.get(token)
            return work is not None and any(watcher() for watcher in work.watchers)

    def store(self, token: str, job: Job | None, results: Any) -> None:
        """Replace the work that is kept under a token; do nothing if the token has expired."""
        with self._lock:
            if work := self._work.get(token):
                work.forget()
                work.job, work.results, work.seen = job, results, self._clock()

    def take(self, token: str, who: tuple[Any, ...], watcher: Watcher) -> Work | None:
        """Return the work of a token and assign it to another tab; None if the token is unknown, expired or belongs to
        another account.
        """
        self.sweep()
        with self._lock:
            work = self._work.get(token)
            if work is None or work.who != who:
                return None
            work.bring_back()
            if work.results is None:
                return None
            work.watchers = [*work.watchers[-9:], watcher]  # a tab whose connection broke may come back
            work.seen = self._clock()
            return work

    def sweep(self) -> None:
        """Forget expired work, and the oldest if there are more than `MOST`; move the results of all other work to
        files.

        A job's result that no tab has collected stays in memory.
        """
        with self._lock:
            now, idle = self._clock(), []
            for token, work in list(self._work.items()):
                if work.busy():
                    work.seen = now
                elif now - work.seen >= LASTS:
                    self._work.pop(token).forget()
                else:
                    idle.append((work.seen, token))
            for _, token in sorted(idle)[: max(0, len(self._work) - MOST)]:
                self._work.pop(token).forget()
            quiet = [self._work[token] for seen, token in idle if now - seen >= AWAY and token in self._work]
            waiting = [one for one in quiet if one.results is not None and one.job is None and not one.stays]
        for one in waiting:
            self._put_away(one)

    def _put_away(self, work: Work) -> None:
        """Move results to a file. This takes a while for a large release and must not block other tabs."""
        results = work.results
        file = _file_of(results)
        with self._lock:
            if results is None or work.results is not results or work.away is not None:  # replaced in the meantime
                if file is not None:
                    file.close()
            elif file is None:
                work.stays = True
            else:
                work.results, work.away = None, file


def _file_of(results: Any) -> IO[bytes] | None:
    """Write the results to a file without a name, which disappears when the process ends, and return it."""
    try:
        with ExitStack() as unfinished:
            file = unfinished.enter_context(tempfile.TemporaryFile(prefix="espalier-"))
            pickle.dump(results, file, protocol=pickle.HIGHEST_PROTOCOL)
            file.flush()
            unfinished.pop_all()
            return file
    except (OSError, pickle.PicklingError, TypeError, AttributeError):
        return None


KEPT = Registry()
"""The registry of this server's process."""


def new_token() -> str:
    """Return a token that cannot be guessed."""
    return secrets.token_urlsafe(32)
