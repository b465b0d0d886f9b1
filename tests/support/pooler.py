"""A pooler in front of a PostgreSQL server, like PgBouncer in transaction mode.

Each transaction may run in a different session. A session keeps its settings for the next client that gets it. The
options of a client are dropped, as PgBouncer does if it is configured to ignore them. Passwords and TLS are not
supported.
"""

from __future__ import annotations

import itertools
import select
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

SESSIONS = 3
REFUSED, CANCEL = (80877103, 80877104), 80877102
"""Numbers of the requests for TLS and for GSSAPI, and of a request to cancel."""
FOLDER, FILE = "host=", ".s.PGSQL.5432"


class Pooler:
    """``url`` is the server's database through the pooler."""

    def __init__(self, url: str, folder: Path) -> None:
        before, _, where = url.partition(FOLDER)
        self._server, rest = (where.partition("&")[0], where.partition("&")[2])
        self.url = f"{before}{FOLDER}{folder}" + (f"&{rest}" if rest else "")
        self._sessions: dict[bytes, list[socket.socket]] = {}
        self._facts: dict[bytes, bytes] = {}
        self._turn, self._lock = itertools.count(), threading.Lock()
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(folder / FILE))
        self._door.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """End all sessions."""
        self._door.close()
        for session in itertools.chain.from_iterable(self._sessions.values()):
            session.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._door.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError, EOFError):
            while (body := _body(client))[:4] in {code.to_bytes(4, "big") for code in REFUSED}:
                client.sendall(b"N")
            if body[:4] == CANCEL.to_bytes(4, "big"):  # the numbers of the sessions are not known here
                return
            parts = body[4:].split(b"\0")
            given = dict(zip(parts[::2], parts[1::2], strict=False))
            wanted = b"\0".join(given[key] for key in (b"user", b"database"))
            with self._lock:
                if wanted not in self._sessions:
                    start = b"".join(key + b"\0" + given[key] + b"\0" for key in (b"user", b"database"))
                    made = [self._connected(start) for _ in range(SESSIONS)]
                    self._sessions[wanted] = [session for session, _ in made]
                    self._facts[wanted] = made[0][1]
            client.sendall(self._facts[wanted])
            self._relay(client, self._sessions[wanted])

    def _relay(self, client: socket.socket, sessions: list[socket.socket]) -> None:
        while data := client.recv(1 << 16):
            if data[:1] == b"X":
                return
            server, idle = sessions[next(self._turn) % len(sessions)], False
            server.sendall(data)
            while not idle:
                for ready in select.select([client, server], [], [])[0]:
                    if ready is server:
                        kind, message = _message(server)
                        client.sendall(message)
                        idle = kind == b"Z" and message[5:] == b"I"
                    elif not (more := client.recv(1 << 16)) or more[:1] == b"X":
                        server.sendall(b"Q" + (13).to_bytes(4, "big") + b"ROLLBACK\0")
                        while _message(server)[0] != b"Z":
                            pass
                        return
                    else:
                        server.sendall(more)

    def _connected(self, start: bytes) -> tuple[socket.socket, bytes]:
        """Return a session of the server, and what the server said about it."""
        session = socket.socket(socket.AF_UNIX)
        session.connect(f"{self._server}/{FILE}")
        body = (196608).to_bytes(4, "big") + start + b"\0"
        session.sendall((len(body) + 4).to_bytes(4, "big") + body)
        said, kind = b"", b""
        while kind != b"Z":
            kind, message = _message(session)
            said += message
        return session, said


def _exactly(of: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        if not (more := of.recv(size - len(data))):
            raise EOFError
        data += more
    return data


def _body(of: socket.socket) -> bytes:
    return _exactly(of, int.from_bytes(_exactly(of, 4), "big") - 4)


def _message(of: socket.socket) -> tuple[bytes, bytes]:
    kind, length = _exactly(of, 1), _exactly(of, 4)
    return kind, kind + length + _exactly(of, int.from_bytes(length, "big") - 4)


@contextmanager
def pooler(url: str) -> Iterator[Any]:
    """Yield a running pooler for the server at ``url``, and stop it afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="espalier-pool-"))
    made = Pooler(url, folder)
    try:
        yield made
    finally:
        made.close()
        shutil.rmtree(folder, ignore_errors=True)
