"""Worker process for a release, with limits on memory, disk and time.

The memory of its rows is freed when the process ends.

The server starts ``python -m espalier.core.server.worker`` and communicates with it over a pair of sockets that no
other process has. Both ends are the same program of the same user, so messages are pickled. Open files are passed as
descriptors, because a large release keeps its rows in a file without a name. A lock in a message is replaced by a new
lock. The worker sends a report before it draws, and waits until the report is written. If the worker dies, the server
therefore knows whether anything may have been spent. A worker whose server has ended cancels at its next report.
"""

from __future__ import annotations

import array
import io
import logging
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from espalier.core.errors import Cancelled, EspalierError
from espalier.core.progress import Report
from espalier.core.server import events
from espalier.core.server.settings import number

GRACE = 60.0
"""Seconds within which a worker that was asked to stop must reach its next report."""
OFTEN = 0.2
"""Seconds between checks of whether the work is still wanted."""
STARTED = "Starting"
NEW_LOCK = -1
_LOCK = type(threading.Lock())

Begun = Callable[[], None]
Task = Callable[[Any, Report, Begun], Any]
"""A module-level function, called with its input, a function that reports progress, and a function to call before the
first draw.
"""


@dataclass(frozen=True)
class Limits:
    """Maximum memory of the process and maximum size of each of its files, in MB; `None` means the system's limit."""

    memory: int | None = None
    file: int | None = None

    @classmethod
    def of_the_server(cls) -> Limits:
        """Return the limits set in the environment."""
        return cls(number("ESPALIER_JOB_MEMORY"), number("ESPALIER_JOB_DISK"))


def run_apart(task: Task, given: Any, report: Report, begun: Begun, limits: Limits) -> Any:
    """Run ``task(given, report, begun)`` in a separate process and return its result.

    Raises the task's error if it is an :class:`EspalierError`. Any other error, or the end of the process, becomes an
    :class:`EspalierError` that quotes nothing. An error from ``report``, usually :class:`Cancelled`, asks the worker to
    stop. A result that still arrives is returned, because it was paid for.
    """
    ours, theirs = socket.socketpair()
    paths = os.pathsep.join(path for path in sys.path if path)
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "espalier.core.server.worker", str(theirs.fileno())],
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr.fileno() if _has_descriptor(sys.stderr) else subprocess.DEVNULL,
        env={"ARROW_DEFAULT_MEMORY_POOL": "system", **os.environ, "PYTHONPATH": paths},  # frees unused memory
    )
    theirs.close()
    with _Line(ours) as line:
        try:
            line.send((task, given, limits))
            return _followed(line, process, report, begun)
        except (BrokenPipeError, ConnectionResetError):
            raise _ended(process) from None
        finally:
            if process.poll() is None:
                try:
                    process.wait(GRACE)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def _followed(line: _Line, process: subprocess.Popen[bytes], report: Report, begun: Begun) -> Any:
    """Pass on the worker's reports until it ends."""
    last: tuple[float, str] = (0.0, STARTED)
    stopped: BaseException | None = None
    until = float("inf")
    while True:
        if stopped is None:
            try:
                report(*last)
            except BaseException as error:
                stopped, until = error, time.monotonic() + GRACE
                line.send("cancel")
        if time.monotonic() > until:
            process.kill()
            until = float("inf")
        if not line.poll(OFTEN):
            continue
        try:
            kind, said = line.receive()
        except EOFError:
            raise stopped or _ended(process) from None
        if kind == "report":
            last = said
        elif kind == "begun":
            begun()
        elif kind == "done":
            return said
        else:
            raise stopped if stopped is not None and isinstance(said, Cancelled) else said


def _ended(process: subprocess.Popen[bytes]) -> EspalierError:
    """Return the error for a worker that ended without a message because the system or a limit killed it."""
    process.wait(GRACE)
    return EspalierError(
        f"the process of this release ended (status {process.returncode}). If memory was short, coarsen the columns "
        "with the most categories, or ask the server's operator for a larger limit. Otherwise, report it"
    )


def _has_descriptor(stream: Any) -> bool:
    try:
        return isinstance(stream.fileno(), int)
    except (AttributeError, OSError, ValueError):
        return False


class _Line:
    """One end of the pair of sockets, which carries messages and the open files in them."""

    def __init__(self, end: socket.socket) -> None:
        self._socket, self._connection = end, Connection(os.dup(end.fileno()))
        self._lock = threading.Lock()

    def __enter__(self) -> _Line:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self._socket.close()

    def send(self, message: Any) -> None:
        """Send one message. On return, the message has left this process."""
        files: list[int] = []
        buffer = io.BytesIO()
        _Pickler(buffer, files).dump(message)
        with self._lock:
            self._connection.send_bytes(buffer.getbuffer())
            self._connection.send_bytes(array.array("i", [len(files)]).tobytes())
            if files:
                socket.send_fds(self._socket, [b"f"], files)

    def poll(self, seconds: float) -> bool:
        """Wait for a message, or for the end of the other side."""
        return self._connection.poll(seconds)

    def receive(self) -> Any:
        """Return the next message; raises :class:`EOFError` if there are no more."""
        try:
            data = self._connection.recv_bytes()
            (count,) = array.array("i", self._connection.recv_bytes())
            files = socket.recv_fds(self._socket, 1, count)[1] if count else []
        except OSError:
            raise EOFError from None
        return _Unpickler(io.BytesIO(data), files).load()


class _Pickler(pickle.Pickler):
    def __init__(self, buffer: io.BytesIO, files: list[int]) -> None:
        super().__init__(buffer, protocol=5)
        self._files = files

    def persistent_id(self, thing: Any) -> int | None:
        if isinstance(thing, _LOCK):
            return NEW_LOCK
        if isinstance(thing, io.BufferedRandom):
            thing.flush()
            self._files.append(thing.fileno())
            return len(self._files) - 1
        return None


class _Unpickler(pickle.Unpickler):
    def __init__(self, buffer: io.BytesIO, files: list[int]) -> None:
        super().__init__(buffer)
        self._files = files

    def persistent_load(self, place: Any) -> Any:
        if place == NEW_LOCK:
            return threading.Lock()
        return os.fdopen(self._files[place], "r+b")


def _limit(limits: Limits) -> None:
    """Set the limits of this process; on a system without limits, such as Windows, do nothing."""
    try:
        import resource
    except ImportError:
        return
    kinds = ((resource.RLIMIT_DATA, limits.memory), (resource.RLIMIT_FSIZE, limits.file), (resource.RLIMIT_CORE, 0))
    for kind, megabytes in kinds:
        if megabytes is not None:
            _, hard = resource.getrlimit(kind)
            asked = megabytes << 20
            most = asked if hard == resource.RLIM_INFINITY else min(asked, hard)
            resource.setrlimit(kind, (most, most))


def work(descriptor: int) -> None:
    """Carry out the single task that arrives over the socket."""
    events.log_as_json()
    with _Line(socket.socket(fileno=descriptor)) as line:
        task, given, limits = line.receive()
        _limit(limits)
        stop, sent = threading.Event(), [0.0]
        signal.signal(
            signal.SIGINT, signal.SIG_IGN
        )  # a terminal sends the signal to both processes, and the server decides
        signal.signal(signal.SIGTERM, lambda *_: stop.set())

        def listen() -> None:
            with suppress(EOFError):
                line.receive()
            stop.set()

        def report(fraction: float, message: str) -> None:
            if stop.is_set():
                raise Cancelled("cancelled")
            if time.monotonic() - sent[0] > OFTEN / 2:
                line.send(("report", (float(fraction), message)))
                sent[0] = time.monotonic()

        threading.Thread(target=listen, name="listen", daemon=True).start()
        try:
            answer = "done", task(given, report, lambda: line.send(("begun", None)))
        except EspalierError as error:
            error.__traceback__ = error.__cause__ = error.__context__ = None
            answer = "failed", error
        except MemoryError:
            answer = "failed", EspalierError("not enough memory; coarsen the columns with the most categories")
        except Exception as error:  # its text may quote a cell
            place = traceback.extract_tb(error.__traceback__)[-1]
            logging.getLogger(__name__).error(
                "worker: %s in %s, line %s", type(error).__name__, place.filename, place.lineno
            )
            text = f"an unexpected error ({type(error).__name__}); please report it"
            answer = "failed", EspalierError(text)
        try:
            line.send(answer)
        except (TypeError, AttributeError, pickle.PicklingError) as error:
            text = f"the result could not be handed over ({type(error).__name__}); please report it"
            line.send(("failed", EspalierError(text)))


if __name__ == "__main__":
    from espalier.core.server import worker  # so that classes belong to the module and not to this script

    worker.work(int(sys.argv[1]))
