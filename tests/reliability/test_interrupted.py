"""Real kills, a full disk and a lost database, each followed by ``resume``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.nightly
def test_no_interrupted_release_is_lost_and_no_answer_is_drawn_twice():
    command = [sys.executable, "-m", "tests.reliability.interrupted", "--points", "4"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert sum(int(line.split("|")[3]) for line in ran.stdout.splitlines()[2:]) > 20, "most had paid"
