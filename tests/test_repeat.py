"""`--repeat N` repeats the tests that draw unseeded noise and no others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = """
from pathlib import Path

import numpy as np
import pytest

from {mechanisms} import add_gaussian

RUNS = Path(__file__).with_suffix(".txt")


def note(name):
    with RUNS.open("a") as file:
        file.write(name + "\\n")
    return RUNS.read_text().split().count(name)


@pytest.fixture(scope="module")
def noisy():
    note("fixture")
    return add_gaussian(np.zeros(3, dtype=np.int64), 1.0)


def test_seeded():
    note("seeded")
    np.random.default_rng(1).normal()


def test_unseeded():
    np.random.default_rng().normal()
    assert note("unseeded") != 3, "the third run fails"


def test_with_a_noisy_fixture(noisy):
    note("with")
"""


def test_repetition(tmp_path):
    from espalier.core.privacy import mechanisms

    file = tmp_path / "test_some.py"
    file.write_text(TESTS.replace("{mechanisms}", mechanisms.__name__))
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.repeat", "-p", "no:cacheprovider", "--repeat", "5"]
    ran = subprocess.run(
        [*command, "--rootdir", str(tmp_path), "-c", "/dev/null", str(file)], cwd=ROOT, capture_output=True, text=True
    )
    runs = file.with_suffix(".txt").read_text().split()
    assert {name: runs.count(name) for name in set(runs)} == {"seeded": 1, "unseeded": 5, "fixture": 5, "with": 5}
    assert ran.returncode == 1
    assert "1 failed, 2 passed" in ran.stdout
    assert "1 of 5 runs failed  test_some.py::test_unseeded" in ran.stdout
    assert "the third run fails" in ran.stdout
