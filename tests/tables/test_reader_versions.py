"""Libraries that touch private rows are pinned, and a new version of one reruns the tests of the readers."""

from __future__ import annotations

import json
import re

import pytest

from tests.support.reader_versions import LIBRARIES, RECORD, ROOT, TESTS, installed

RERUN = (
    "A library that touches private rows does not have the version under which the reader tests last passed. Run "
    f"{' and '.join(TESTS)} and record the versions: python -m tests.support.reader_versions"
)
PIN = re.compile(r"^([A-Za-z0-9_.-]+)(?:\[[^\]]*\])?==([^\s;\\]+)", re.MULTILINE)


def pins(name: str) -> dict[str, str]:
    return {found[1]: found[2] for found in PIN.finditer((ROOT / name).read_text())}


@pytest.fixture
def recorded():
    return json.loads(RECORD.read_text())


def differing(found: dict[str, str], recorded: dict[str, str]) -> dict[str, str]:
    return {name: v for name, v in found.items() if recorded.get(name) != v}


def test_the_installed_versions_are_those_that_the_reader_tests_passed_under(recorded):
    assert differing(installed(), recorded) == {}, RERUN


def test_another_version_is_noticed(recorded):
    assert differing({**installed(), "pyarrow": "0.1"}, recorded) == {"pyarrow": "0.1"}


def test_each_of_them_is_pinned_to_the_recorded_version(recorded):
    found: dict[str, str] = {}
    for path in ROOT.glob("requirements*.txt"):
        found |= pins(path.name)
    for name in LIBRARIES:
        assert found.get(name) == recorded[name], f"{name}: a requirements file pins {found.get(name)}. {RERUN}"


def test_the_lock_file_has_a_hash_for_each_package_and_the_pinned_versions(recorded):
    text = (ROOT / "requirements.lock").read_text()
    locked = pins("requirements.lock")
    for name in set(LIBRARIES) - {"pymysql", "pyspark"}:  # these have requirements files of their own
        assert locked[name] == recorded[name]
    blocks = re.split(r"\n(?=[A-Za-z0-9])", text.partition("\n\n")[2] or text)
    for block in blocks:
        if PIN.match(block):
            assert "--hash=sha256:" in block, block.splitlines()[0]
