"""The shelf of shared releases hands out the files of a release, and no others."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from espalier.core.errors import ProjectError
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release import shelf
from espalier.core.release.spend import release
from espalier.core.tables.reading import read_table
from espalier.core.tables.table import Table

SCHEMA = Schema((Column("a", "categorical", ("x", "y")), Column("b", "categorical", ("u", "v"))))


@pytest.mark.parametrize("name", ["/tmp/theirs", "../theirs", "notes.txt"])
def test_an_archive_with_another_file_is_no_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Whoever can write to the shelf cannot smuggle a file into what others take."""
    monkeypatch.setenv("ESPALIER_SHARED", str(tmp_path))
    table = Table.encode(read_table(b"a,b\n" + b"x,u\ny,v\n" * 30, "t.csv"), SCHEMA)
    files = release(Project("t", SCHEMA, Plan("independent", 1.0, 1e-6)), table).files
    id_ = shelf.share(files)
    assert shelf.files(id_) == files
    assert [s.id for s in shelf.shared()] == [id_]
    with zipfile.ZipFile(tmp_path / f"{id_}.zip", "a") as archive:
        archive.writestr(name, b"theirs")
    assert shelf.shared() == []
    with pytest.raises(ProjectError, match="not shared any more"):
        shelf.files(id_)
