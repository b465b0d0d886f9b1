"""A short run of the faults that the ledger withstands: kill -9, a full disk, a lost database, and so on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "more", [("12",), pytest.param(("12", "--postgres"), marks=pytest.mark.nightly)], ids=["sqlite", "postgresql"]
)
def test_every_fault_ends_in_a_message_and_a_consistent_ledger(more):
    command = [sys.executable, "-m", "tests.reliability.faults", "--releases", *more]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if ran.stderr.startswith("skipped"):
        pytest.skip(ran.stderr)
    assert "Traceback" not in ran.stderr, ran.stderr
    found = json.loads(ran.stdout)
    wrong = [one for one in found if one["wrong"]]
    assert not wrong, "\n".join(map(str, wrong))
    assert ran.returncode == 0
    kills = found[0]
    assert kills["kills"] > 0
    assert kills["entries"]["spent"] > 0
    assert len(found) == (2 if len(more) > 1 else 9)
