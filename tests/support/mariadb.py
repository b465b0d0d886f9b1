"""A private MariaDB server for tests, on a free port of this machine, with its own folder."""

from __future__ import annotations

import getpass
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.postgres import Absent


class Server:
    """``url`` is that of its database ``test``; it can be killed at any moment."""

    def __init__(self, daemon: str, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"mysql://{getpass.getuser()}@127.0.0.1:{self.port}/test"
        made = shutil.which("mariadb-install-db") or "mariadb-install-db"
        whose = [f"--user={getpass.getuser()}"]
        options = [*whose, f"--datadir={folder}/data", "--auth-root-authentication-method=normal"]
        subprocess.run([made, "--no-defaults", *options], check=True, capture_output=True)
        command = [daemon, "--no-defaults", *options[:2], f"--socket={folder}/socket", "--bind-address=127.0.0.1"]
        # without a mode, the server accepts zero dates and damaged texts, as old versions did
        command += [f"--port={self.port}", "--skip-grant-tables", "--innodb-buffer-pool-size=32M", "--sql-mode="]
        with (folder / "log").open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def wait(self) -> None:
        """Wait until it answers; raises OSError if it does not."""
        for _ in range(300):
            if self.process.poll() is not None:
                break
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.1)
        raise OSError("it does not answer")

    def kill(self) -> None:
        """Kill it at once, as a power cut would."""
        self.process.kill()
        self.process.wait(20)


@contextmanager
def server() -> Iterator[Server]:
    """Yield a running server and stop it afterwards; raises :class:`Absent` if none can be started."""
    daemon = shutil.which("mariadbd") or shutil.which("mariadbd", path="/usr/sbin")
    if daemon is None:
        raise Absent("there is no MariaDB server here (apt-get install mariadb-server)")
    folder = Path(tempfile.mkdtemp(prefix="espalier-maria-"))
    try:
        try:
            made = Server(daemon, folder)
            made.wait()
        except (OSError, subprocess.CalledProcessError) as error:
            raise Absent(f"MariaDB is installed and does not start: {error}") from None
        try:
            yield made
        finally:
            made.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
