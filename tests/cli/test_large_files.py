"""Files that are named on the command line, or are in a release folder, are read up to a limit; pipes are not read."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from espalier.core import limited_file
from espalier.core.cli.main import main
from espalier.core.limited_file import read_limited
from espalier.core.statement.claims import STATEMENT
from espalier.verifier.check import main as verify
from espalier.verifier.folder import MOST_JSON, Folder, Unreadable, parsed

TABLE = "smoker,age\nyes,61\nno,35\n"
RELEASE = '{"format": "espalier-release/1", "project": {"schema": []}, "method": "mst"}'


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """A sparse file of a terabyte."""
    path = tmp_path / "endless"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    return path


def test_no_more_is_read_than_the_limit(endless):
    assert read_limited(endless, 1000) == bytes(1001)


@pytest.mark.parametrize(
    "words",
    [
        ["plan", "endless"],
        ["graph", "endless"],
        ["init", "t.csv", "--out", "p.json", "--dictionary", "endless", "--not-from-these-rows"],
        ["init", "t.csv", "--out", "p.json", "--code-book", "age=endless"],
        ["statement", "release"],
        ["statement", "release", "--croissant"],
    ],
    ids=lambda words: " ".join(words[:1] + words[-2:]),
)
def test_a_file_of_a_terabyte_ends_in_a_message(words, tmp_path, endless, monkeypatch, capsys):
    """Previously, each command read the whole file first."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ESPALIER_KEY_PASSPHRASE", "long enough")
    for name in ("project.file", "graph.formats.describe", "dictionaries.reading", "statement.folder"):
        monkeypatch.setattr(f"espalier.core.{name}.read_limited", few)
    monkeypatch.setattr(limited_file, "read_limited", few)
    (tmp_path / "t.csv").write_text(TABLE)
    (tmp_path / "release").mkdir()
    (tmp_path / "release" / "release.json").write_text(RELEASE)
    for name in (STATEMENT, "croissant.json"):
        (tmp_path / "release" / name).symlink_to(endless)
    assert main(words) == 2
    assert "larger" in capsys.readouterr().err


def few(path: Path, most: int) -> bytes:
    """Read as the real function does; if the file is larger, return as many zeros without reading them."""
    found = read_limited(path, min(most, 1000))
    return bytes(most + 1) if len(found) > min(most, 1000) else found


def test_a_copy_that_unpacks_to_far_more_than_its_size_is_not_unpacked(tmp_path):
    """Previously, `analyse` and `verify` took 3 GB for a copy of 800 kB."""
    (tmp_path / "copies").mkdir()
    (tmp_path / "release.json").write_text(RELEASE)
    with gzip.open(tmp_path / "copies" / "01.csv.gz", "wb") as file:
        file.write(bytes(60_000_000))
    with pytest.raises(ValueError, match="unpacks to more than 150 times its size"):
        Folder(tmp_path).unpacked("copies/01.csv.gz")


def test_a_large_json_file_is_not_parsed():
    with pytest.raises(Unreadable, match="larger than 64 MiB"):
        parsed(bytes(MOST_JSON + 1), "release.json")


@pytest.mark.parametrize("name", [STATEMENT, "croissant.json", "copies/01.csv.gz"])
def test_a_pipe_in_a_release_folder_is_not_opened(name, tmp_path, capsys):
    """Previously, the command waited forever."""
    (tmp_path / "copies").mkdir()
    (tmp_path / "release.json").write_text(RELEASE)
    os.mkfifo(tmp_path / name)
    if name != "copies/01.csv.gz":
        assert main(["statement", str(tmp_path), *(["--croissant"] if name != STATEMENT else [])]) == 2
        assert STATEMENT in capsys.readouterr().err
    assert verify([str(tmp_path)]) == 2
    assert "is a pipe or a device" in capsys.readouterr().err
