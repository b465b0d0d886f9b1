"""Folders inside folders, a thousand levels deep. Previously, these commands ended in tracebacks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from espalier.core.cli.main import main
from espalier.core.ledger.ledger import Ledger
from espalier.core.release.files import check_folder
from espalier.core.server import backup
from espalier.core.server.allowed import Allowed
from espalier.core.server.backup import back_up
from espalier.verifier.check import main as verifier

LEVELS = 1100


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[Path]:
    """A folder with many levels below it."""
    folder = tmp_path / "deep"
    made = [Path(f"{folder}{'/a' * level}") for level in range(LEVELS)]
    for path in made:
        path.mkdir()
    yield folder
    for path in reversed([path for path in made if path.exists()]):
        for file in [file for file in path.iterdir() if not file.is_dir()]:
            file.unlink()
        path.rmdir()


def test_a_folder_of_parquet_files(deep: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parquet.write_table(pa.table({"a": ["x", "y"] * 9}), deep / "t.parquet")
    assert main(["init", str(deep), "--out", str(tmp_path / "p.json")]) == 0
    assert Allowed((tmp_path,), (), ()).place(str(deep)) == str(deep)
    parquet.write_table(pa.table({"b": [1]}), f"{deep}{'/a' * (LEVELS - 1)}/t.parquet")
    assert main(["init", str(deep), "--out", str(tmp_path / "q.json")]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_release_folder(deep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (deep / "release.json").write_text("{}")
    assert verifier([str(deep)]) == 2
    assert "too many levels" in capsys.readouterr().err


def test_a_backup(deep: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    Ledger(tmp_path / "l.db", create=True).open_table("people", epsilon=1.0, delta=1e-6)
    back_up(str(tmp_path / "l.db"), tmp_path / "backup")
    deep.rename(tmp_path / "backup" / "deep")
    assert main(["restore", str(tmp_path / "backup"), "--ledger", str(tmp_path / "new.db")]) == 0
    (tmp_path / "backup" / "deep").rename(deep)


def test_what_another_user_leaves_where_a_release_is_written(deep: Path, tmp_path: Path) -> None:
    left = deep.rename(tmp_path / ".espalier-left")
    (left / "lock").write_text("locked")
    check_folder(tmp_path / "o")
    if left.exists():
        left.rename(deep)


def test_no_folder_is_searched_that_is_neither_release_nor_backup(
    deep: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Previously, a command that named / by mistake listed all folders of the machine."""
    assert verifier([str(deep)]) == 2
    assert "contains no release.json" in capsys.readouterr().err
    monkeypatch.setattr(backup, "walked", lambda _: pytest.fail("searched"))
    assert main(["restore", str(deep), "--ledger", str(tmp_path / "new.db")]) == 2
    assert "is not a backup" in capsys.readouterr().err
