"""A new file is written completely or not at all, so a full disk does not prevent a second attempt."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from espalier.core.cli.main import main
from espalier.core.ledger.ledger import Ledger
from espalier.core.limited_file import write_own


@contextmanager
def full_after(size: int) -> Iterator[None]:
    """Let no file grow beyond ``size`` bytes, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("size", [0, 50, 200])
def test_a_full_disk_leaves_no_half_of_a_pair_of_keys(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Previously, an empty file was left, and the next attempt refused to overwrite it."""
    monkeypatch.setenv("ESPALIER_KEY_PASSPHRASE", "a passphrase of some length")
    new = ["keys", "new", str(tmp_path / "keys" / "clinic.pem")]
    with full_after(size):
        assert main(new) == 2
    assert not any((tmp_path / "keys").iterdir())
    assert main(new) == 0


def test_a_full_disk_leaves_no_part_of_an_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    Ledger(tmp_path / "l.db", create=True).open_table("register", epsilon=3, delta=1e-9)
    export = ["ledger", "export", "--ledger", str(tmp_path / "l.db"), "--format", "json", "--out", str(tmp_path / "e")]
    with full_after(200):
        assert main(export) == 2
    assert not (tmp_path / "e").exists()
    assert main(export) == 0


def test_a_full_disk_leaves_no_part_of_a_draft(tmp_path: Path) -> None:
    with full_after(5), pytest.raises(OSError, match="too large"):
        write_own(tmp_path / "draft.json", "longer than that")
    assert not (tmp_path / "draft.json").exists()
