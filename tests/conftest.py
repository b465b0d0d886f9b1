"""Fixtures and options shared by all tests."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.repeat import pytest_addoption, pytest_runtest_protocol, pytest_terminal_summary  # noqa: F401

# Tests start hundreds of processes that import the same modules, so compiled modules are kept whatever the machine's
# setting.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

settings.register_profile("espalier", deadline=None)  # slowness on a busy machine is not a failure
settings.load_profile("espalier")

LONGEST = ("tests/tables/test_row_by_row.py", "tests/test_noninterference.py")
"""Files that take a minute or more, whose tests run one after another."""


def pytest_xdist_auto_num_workers() -> int:
    """Return one worker more than there are processors: tests wait for browsers, servers and other processes."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with the longest files, so that no worker finishes long after the others."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))


def pytest_collection_finish() -> None:
    """Exempt all objects created so far from garbage collection, and collect less often; this saves time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


SHARED = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
SAMPLES = Path(__file__).resolve().parent.parent / "sample_data"


@pytest.fixture
def shared_data() -> Path:
    """The folder of real data, which is not part of the repository."""
    if not SHARED.is_dir():
        pytest.skip(f"the real data is not available ({SHARED} is missing); it is never committed")
    return SHARED


@pytest.fixture
def samples() -> Path:
    return SAMPLES


@pytest.fixture(autouse=True, scope="session")
def _nobodys_ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test, and no app that a test starts, touches the ledger of the person who runs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ESPALIER_LEDGER", str(tmp_path_factory.mktemp("ledger") / "ledger.db"))
        patch.delenv("ESPALIER_LEDGER_KEY", raising=False)
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server for the session."""
    from tests.support.postgres import Absent, server

    try:
        with server() as running:
            yield running.url
    except Absent as why:
        pytest.skip(str(why))
