"""Shared by all tests: where the real data is, and small projects to work on."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
SAMPLES = Path(__file__).resolve().parent.parent / "sample_data"


@pytest.fixture
def shared_data() -> Path:
    """The folder of real data, which is not part of the repository."""
    if not SHARED.is_dir():
        pytest.skip(f"the real data is not here ({SHARED} is missing); it is never committed")
    return SHARED


@pytest.fixture
def samples() -> Path:
    return SAMPLES


@pytest.fixture(autouse=True, scope="session")
def _nobodys_ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test, and no app that a test starts, touches the ledger of whoever runs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ESPALIER_LEDGER", str(tmp_path_factory.mktemp("ledger") / "ledger.db"))
        patch.delenv("ESPALIER_LEDGER_KEY", raising=False)
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server of our own, on a socket in a folder of its own."""
    tools = next(iter([*sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True), *_on_path("initdb")]), None)
    if tools is None:
        pytest.skip("there is no PostgreSQL server here; apt-get install postgresql")
    user: dict[str, str] = {}
    if os.name == "posix" and os.getuid() == 0:  # the server refuses to run as root
        user = {"user": "postgres"}
    folder = tempfile.mkdtemp(prefix="espalier-pg-")
    try:
        if user:
            shutil.chown(folder, "postgres")
        control = [f"{tools}/pg_ctl", "-D", f"{folder}/data", "-w", "-l", f"{folder}/log"]
        quiet = {"check": True, "capture_output": True, "cwd": folder, **user}
        make = [f"{tools}/initdb", "-D", f"{folder}/data", "-U", "espalier", "-A", "trust", "-E", "UTF8", "-N"]
        subprocess.run([*make, "--locale=C"], **quiet)
        subprocess.run([*control, "-o", f"-k {folder} -c listen_addresses=''", "start"], **quiet)
        try:
            yield f"postgresql://espalier@/postgres?host={folder}"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], **{**quiet, "check": False})
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a PostgreSQL server is installed and does not start: {error}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _on_path(tool: str) -> list[str]:
    found = shutil.which(tool)
    return [str(Path(found).parent)] if found else []
