"""Releases that are written next to each other at the same time leave each other's files alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from espalier.core.release import files
from espalier.core.release.unfinished import lock, synced


def test_a_folder_whose_process_has_not_locked_it_yet_is_not_a_leftover(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Previously, another release could remove it in this moment, even after this one had been paid for."""
    others: list[Any] = []

    def lock_late(file: Any) -> None:
        if not others:
            others.append(file)
            files.check_folder(tmp_path / "other")
        lock(file)

    monkeypatch.setattr(files, "lock", lock_late)
    files.save_files({"release.json": b"{}"}, tmp_path / "out")
    assert others
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_the_folder_of_a_killed_process_is_removed(tmp_path: Path) -> None:
    left = tmp_path / ".espalier-killed"
    (left / "part").mkdir(parents=True)
    (left / "lock").write_text("locked")
    files.save_files({"release.json": b"{}"}, tmp_path / "out")
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_the_folder_of_a_running_process_is_not_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def sync(path: Path) -> None:
        if path.name == "part":
            seen.append([p.name for p in path.parent.iterdir()])
            files.check_folder(tmp_path / "other")
        synced(path)

    monkeypatch.setattr(files, "synced", lambda path: sync(path) if not seen else synced(path))
    files.save_files({"release.json": b"{}"}, tmp_path / "out")
    assert seen
    assert (tmp_path / "out" / "release.json").read_bytes() == b"{}"
