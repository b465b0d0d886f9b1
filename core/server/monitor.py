"""Monitoring of a running server on a local port: ``/healthz``, ``/readyz`` and ``/metrics``.

The answers contain memory use and numbers of jobs, which depend on the tables that people opened. They are confidential
and meant for the operator, so the monitor listens on this machine only. They contain neither names nor the running
times of single jobs.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from espalier import __version__
from espalier.core.errors import EspalierError, LedgerUnavailable
from espalier.core.process_memory import used
from espalier.core.server import events
from espalier.core.server.queue import QUEUE

LEAST_DISK = 1 << 30
"""Free bytes of the temporary folder below which the server is not ready."""
FRESH = 5.0
"""Seconds for which the ledger's status is cached, so that a probe does not read the whole ledger each second."""

OWN = ("127.0.0.1", "localhost")
"""Host names that the monitor answers. This prevents a web page from reading the answers by pointing its own domain at
this machine.
"""

Check = Callable[[], str]
"""Function that returns a description of a problem; empty if there is none."""


def ledger_answers() -> str:
    """Return the reason why the ledger cannot be read; empty if it can, or if there is none yet."""
    from espalier.core.ledger.ledger import Ledger, default_ledger

    try:
        Ledger(default_ledger()).populations()
    except LedgerUnavailable as error:
        return "" if error.data.get("missing") else "the ledger cannot be reached"
    except EspalierError:
        return "the ledger cannot be used: run espalier ledger verify"
    return ""


def disk_has_room() -> str:
    """Return the reason why the temporary folder cannot be used; empty if it can."""
    try:
        free = shutil.disk_usage(tempfile.gettempdir()).free
    except OSError:
        return "the temporary folder cannot be used"
    return "" if free >= LEAST_DISK else f"the temporary folder has less than {LEAST_DISK >> 20} MB left"


def worker_starts() -> str:
    """Return the reason why no job would run; empty if jobs run."""
    return "the server is stopping" if QUEUE.draining else ""


CHECKS: Mapping[str, Check] = {
    "ledger": ledger_answers,
    "disk": disk_has_room,
    "worker": worker_starts,
    "audit": events.trouble,
}


class Monitor:
    """Responses. ``sessions()`` returns the number of open sessions, if the app has registered a counter."""

    def __init__(self, checks: Mapping[str, Check] = CHECKS) -> None:
        self._checks, self._began = checks, time.time()
        self._kept: tuple[float, dict[str, str]] | None = None
        self._lock = threading.Lock()

    def troubles(self) -> dict[str, str]:
        """Return a description of the problem found by each check; empty if there is none."""
        with self._lock:
            if self._kept is None or time.monotonic() - self._kept[0] > FRESH:
                self._kept = time.monotonic(), {name: check() for name, check in self._checks.items()}
            return self._kept[1]

    def ready(self) -> tuple[int, str]:
        """Return status and body of ``/readyz``."""
        troubles = self.troubles() | {"worker": worker_starts()}
        said = {name: trouble or "ok" for name, trouble in troubles.items()}
        return (503 if any(troubles.values()) else 200), json.dumps(said) + "\n"

    def metrics(self) -> str:
        """Return the metrics in Prometheus's text format."""
        running, waiting = QUEUE.sizes
        free = shutil.disk_usage(tempfile.gettempdir()).free
        lines = [
            *_metric("espalier_info", "Version of Espalier", {f'version="{__version__}"': 1}),
            *_metric("espalier_start_time_seconds", "Start time of the server", {"": round(self._began)}),
            *_metric("espalier_jobs_running", "Number of running jobs", {"": running}),
            *_metric("espalier_jobs_waiting", "Number of waiting jobs", {"": waiting}),
            *_metric(
                "espalier_jobs_ended_total",
                "Number of ended jobs",
                {f'state="{state}"': QUEUE.ended[state] for state in ("done", "failed", "cancelled")},
                "counter",
            ),
            *_metric("espalier_sessions", "Number of open sessions", {"": sessions()}),
            *_metric("espalier_memory_bytes", "Resident memory of the server", {"": used()}),
            *_metric("espalier_temporary_free_bytes", "Free space in the temporary folder", {"": free}),
            *_metric(
                "espalier_ready",
                "1 if this part of the server is ready, otherwise 0",
                {f'part="{name}"': int(not trouble) for name, trouble in self.troubles().items()},
            ),
        ]
        return "\n".join(lines) + "\n"


def _metric(name: str, text: str, values: Mapping[str, int], kind: str = "gauge") -> list[str]:
    points = [f"{name}{{{labels}}} {value}" if labels else f"{name} {value}" for labels, value in values.items()]
    return [f"# HELP {name} {text}.", f"# TYPE {name} {kind}", *points]


_counted: list[Callable[[], int]] = []


def count_sessions(how: Callable[[], int]) -> None:
    """Register the counter of open sessions. The app calls this when its first session begins."""
    _counted[:] = [how]


def sessions() -> int:
    """Return the number of open sessions; 0 before the first."""
    return _counted[0]() if _counted else 0


def serve(port: int, monitor: Monitor | None = None) -> ThreadingHTTPServer:
    """Answer on ``port`` of this machine, in a thread. Raises :class:`EspalierError` if the port is taken."""
    said = monitor or Monitor()

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.headers.get("Host", "").partition(":")[0] not in OWN:
                self._send(421, "unknown\n")
            elif self.path == "/healthz":
                self._send(200, "ok\n")
            elif self.path == "/readyz":
                self._send(*said.ready())
            elif self.path == "/metrics":
                self._send(200, said.metrics(), "text/plain; version=0.0.4; charset=utf-8")
            else:
                self._send(404, "unknown\n")

        def _send(self, status: int, text: str, kind: str = "text/plain; charset=utf-8") -> None:
            body = text.encode("utf-8")
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Write nothing, because probes arrive every few seconds."""

    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), Answer)
    except OSError as error:
        raise EspalierError(f"the monitor cannot listen on port {port}: {error.strerror}") from None
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="monitor", daemon=True).start()
    return server
