"""A private PostgreSQL server for tests and benchmarks, on a socket in its own folder."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


class Absent(Exception):
    """No server can be started here; the text states the reason."""


class Server:
    """``url`` is that of its database ``postgres``; it can be stopped at any moment, and started again."""

    def __init__(self, tools: str, folder: str) -> None:
        self.url = f"postgresql://espalier@/postgres?host={folder}"
        self._tools, self._folder = tools, folder
        # the server refuses to run as root
        self._as: dict[str, Any] = {"user": "postgres"} if os.name == "posix" and os.getuid() == 0 else {}
        if self._as:
            shutil.chown(folder, "postgres")
        self._run("initdb", "-U", "espalier", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")

    def start(self) -> None:
        """Start, and wait until it answers."""
        # a stopped server's writes survive in the machine's memory, so no fsync is needed
        options = f"-k {self._folder} -c listen_addresses='' -c fsync=off -c full_page_writes=off"
        self._run("pg_ctl", "-w", "-l", f"{self._folder}/log", "-o", options, "start")

    def stop(self) -> None:
        """Stop at once, as a power cut would."""
        self._run("pg_ctl", "-w", "-m", "immediate", "stop")

    @property
    def process(self) -> int:
        """Number of its first process."""
        with open(f"{self._folder}/data/postmaster.pid") as file:
            return int(file.readline())

    def _run(self, tool: str, *args: str) -> None:
        command = [f"{self._tools}/{tool}", "-D", f"{self._folder}/data", *args]
        subprocess.run(command, check=True, capture_output=True, cwd=self._folder, **self._as)


@contextmanager
def server() -> Iterator[Server]:
    """Yield a running server and stop it afterwards; raises :class:`Absent` if none can be started."""
    tools = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"), reverse=True)
    if found := tools[0] if tools else shutil.which("initdb"):
        folder = tempfile.mkdtemp(prefix="espalier-pg-")
        try:
            made = Server(os.path.dirname(found), folder)
            made.start()
        except (OSError, LookupError, subprocess.CalledProcessError) as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise Absent(f"PostgreSQL is installed and does not start: {error}") from None
        try:
            yield made
        finally:
            with suppress(subprocess.CalledProcessError):  # it may be stopped already
                made.stop()
            shutil.rmtree(folder, ignore_errors=True)
    else:
        raise Absent("there is no PostgreSQL server here (apt-get install postgresql)")
