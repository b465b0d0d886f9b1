"""Separate process in which DuckDB reads a file, so that a damaged file can crash only that process.

The program of this module is started once, imports DuckDB, and forks for each question. A child answers one question:
it opens the file and sends the rows as an Arrow stream. A crash therefore causes only an error message, and other
sessions of a server continue. On a system that cannot fork, DuckDB reads in this process.
"""

from __future__ import annotations

import array
import atexit
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from espalier.core.errors import TableError
from espalier.core.tables.engine_errors import EngineFailed

MEMORY = "384MB"
"""Memory limit of DuckDB, which never spills to disk. A scan does not need more memory than this."""
QUIET = ("SET enable_progress_bar = false", "SET python_enable_replacements = false")
SHUT = (
    f"SET memory_limit = '{MEMORY}'",
    "SET temp_directory = ''",
    "SET allowed_directories = []",  # otherwise, these two would remain accessible
    "SET allowed_paths = []",
    "SET enable_external_access = false",
)
"""Settings of a connection that reads only its own file."""
CATALOGUE = ("SELECT * FROM information_schema.tables", "SELECT * FROM information_schema.columns")
"""Queries about the catalogue, which are answered before the rows are read."""
WHOLE, FAILED, LONGEST = b"whole", b"failed ", 200
"""Marks at the end of a child's answer: everything was sent, or DuckDB raised an error of the type that follows. After
a crash, neither is sent.
"""
CRASHED = "DuckDB crashed while it read the file, which is damaged. Copy its tables into a new file"
_PROGRAM = "from espalier.core.tables.duckdb_apart import serve; serve()"


class _Server:
    """Program that forks, started by the first question of this process."""

    def __init__(self) -> None:
        self._lock, self._owner = threading.Lock(), 0
        self._line: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.end)

    def ask(self, question: Any) -> tuple[IO[bytes], IO[bytes]]:
        """Return the files from which the rows of the answer and the mark at its end are read."""
        (rows, rows_out), (end, end_out) = os.pipe(), os.pipe()
        try:
            with self._lock:
                for _ in range(2):  # the program may have ended
                    try:
                        text = json.dumps(question).encode()
                        sent = array.array("i", [rows_out, end_out])
                        line = self._started()
                        line.sendmsg([len(text).to_bytes(4, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, sent)])
                        line.sendall(text)
                        break
                    except OSError:
                        self.end()
                else:
                    raise TableError("the process that reads DuckDB files cannot be started")
        finally:
            os.close(rows_out)
            os.close(end_out)
        return os.fdopen(rows, "rb"), os.fdopen(end, "rb")

    def _started(self) -> socket.socket:
        if self._line is None or self._owner != os.getpid():  # a fork of this process starts its own server
            ours, theirs = socket.socketpair()
            paths = os.pathsep.join(map(os.path.abspath, sys.path))
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,  # a crash there may print the contents of memory
                env={**os.environ, "PYTHONPATH": paths},
                start_new_session=True,
            )
            theirs.close()
            self._line, self._owner = ours, os.getpid()
        return self._line

    def end(self) -> None:
        """Close the connection, which ends the program, and wait for it."""
        if self._line is not None and self._owner == os.getpid():
            self._line.close()
            if self._process is not None:
                self._process.wait()
        self._line = self._process = None


_server = _Server()
APART = hasattr(os, "fork") and hasattr(socket, "SCM_RIGHTS")


def check_program(path: Path) -> None:
    """Raise :class:`TableError` for another program's file.

    For a SQLite file, or a name such as ``md:x``, DuckDB would download an extension.
    """
    with path.open("rb") as file:
        if file.read(12)[8:] != b"DUCK":
            raise TableError(f"{path} is not a DuckDB database")


def check_catalogue(path: Path) -> None:
    """Raise :class:`TableError` if DuckDB crashes when it reads the file's catalogue."""
    with suppress(EngineFailed):  # the caller gets the same error
        for _ in answered(path, CATALOGUE, 1 << 16) if APART else ():
            pass


def answered(path: Path, statements: Sequence[str], rows: int) -> Generator[Any]:
    """Yield the result of the last statement, as Arrow batches of ``rows`` rows.

    Raises :class:`EngineFailed` for an error of DuckDB, and :class:`TableError` if it crashed.
    """
    import pyarrow as pa

    stream, end = _server.ask([str(path), list(statements), rows])
    with stream, end:
        try:
            with pa.ipc.open_stream(stream) as batches:
                yield from batches
            found = end.read(LONGEST)
        except (pa.ArrowInvalid, OSError):  # a stream that was cut off
            found = end.read(LONGEST).replace(WHOLE, b"")
    if found.startswith(FAILED):
        raise EngineFailed(found.removeprefix(FAILED).decode())
    if found != WHOLE:
        raise TableError(CRASHED)


def serve() -> None:
    """Fork for each question that arrives; end when the asking process ends."""
    import signal

    import duckdb  # noqa: F401  (once, for all children)
    import pyarrow  # noqa: F401

    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # so that a crash leaves no rows in a core file
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    line = socket.socket(fileno=0)
    while True:
        head, files, _, _ = socket.recv_fds(line, 4, 2)
        if len(head) < 4:
            return
        text = b""
        while len(text) < int.from_bytes(head, "big"):
            part = line.recv(1 << 16)
            if not part:  # the process that asked has ended
                return
            text += part
        if os.fork() == 0:
            line.close()  # otherwise a question would wait for this process if the program has ended
            with suppress(BaseException):
                _answer(json.loads(text), *(os.fdopen(file, "wb") for file in files))
            os._exit(0)
        for file in files:
            os.close(file)


def _answer(question: Any, stream: IO[bytes], end: IO[bytes]) -> None:
    import duckdb
    import pyarrow as pa

    path, statements, rows = question
    threading.Thread(target=_end_with_reader, args=(end,), daemon=True).start()
    try:
        con = duckdb.connect(path, read_only=True)
        con.execute("SET TimeZone = 'UTC'")
        for statement in (*QUIET, *SHUT, *statements[:-1]):
            con.execute(statement).fetchall()
        answer = con.sql(statements[-1]).to_arrow_reader(rows)
        with pa.ipc.new_stream(stream, answer.schema) as out:
            for batch in answer:
                out.write_batch(batch)
        stream.close()
        said = WHOLE
    except Exception as error:
        said = FAILED + type(error).__name__.encode()
    end.write(said)
    end.close()


def _end_with_reader(end: IO[bytes]) -> None:
    """End this process once no one waits for its answer, because a query may never end."""
    import select

    gone = select.poll()
    gone.register(end, 0)  # a pipe without a reader is always reported
    gone.poll()
    os._exit(1)
