"""The shelf of shared releases hands out the files of a release, and no others."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import pytest

from espalier.core.errors import EspalierError, ProjectError
from espalier.core.ledger.archive import zipped
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
    """A writer of the shelf cannot add a file to the files that others download."""
    monkeypatch.setenv("ESPALIER_SHARED", str(tmp_path))
    table = Table.encode(read_table(b"a,b\n" + b"x,u\ny,v\n" * 30, "t.csv"), SCHEMA)
    files = release(Project("t", SCHEMA, Plan("independent", 1.0, 1e-6)), table).files
    id_ = shelf.share(files)
    assert shelf.files(id_) == files
    assert [s.id for s in shelf.shared()] == [id_]
    with zipfile.ZipFile(tmp_path / f"{id_}.zip", "a") as archive:
        archive.writestr(name, b"theirs")
    assert shelf.shared() == []
    with pytest.raises(ProjectError, match="no longer shared"):
        shelf.files(id_)


def crafted(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return release.json files that the Shared page cannot show, each by name."""
    facts = json.loads(files["release.json"])
    asked, spent, project = facts["asked"], facts["spent"], facts["project"]
    changes: dict[str, dict] = {
        "no project": {"project": "x"},
        "a list as project": {"project": []},
        "a project without a schema": {"project": {k: v for k, v in project.items() if k != "schema"}},
        "nothing asked": {"asked": {}},
        "asked as a list": {"asked": []},
        "nothing spent": {"spent": None},
        "epsilon as text": {"asked": {**asked, "epsilon": "1"}},
        "epsilon below 0": {"asked": {**asked, "epsilon": -1}},
        "epsilon of no size": {"asked": {**asked, "epsilon": 1e308}},
        "epsilon within": {"asked": {**asked, "epsilon": {"x": 1}}},
        "no unit": {"spent": {k: v for k, v in spent.items() if k != "neighbors"}},
        "another unit": {"spent": {**spent, "neighbors": "add-remove"}},
        "more rows per person": {"spent": {**spent, "rows_per_person": 5}},
        "person as a list": {"spent": {**spent, "person": ["a"]}},
        "rows as text": {"rows": "many"},
        "a column named by a list": {"project": {**project, "schema": [{**project["schema"][0], "name": ["a"]}]}},
        "rows without end": {"rows": 10**400},
        "a separation of nothing": {"separations": [{"left": 1}]},
        "separations as a number": {"separations": 5},
        "a separation of text": {"separations": [{"left": "ab", "right": ["a"], "given": []}]},
        "a separation of numbers": {"separations": [{"left": 5, "right": ["a"], "given": []}]},
        "not private": {"private": False},
    }
    out = {name: json.dumps({**facts, **change}).encode() for name, change in changes.items()}
    out["deep"] = b'{"project": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    out["nan"] = files["release.json"].replace(b'"epsilon": 1.0', b'"epsilon": NaN', 1)
    return out


def test_one_crafted_release_does_not_close_the_shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each crafted release is left out; the others are listed as before."""
    monkeypatch.setenv("ESPALIER_SHARED", str(tmp_path))
    table = Table.encode(read_table(b"a,b\n" + b"x,u\ny,v\n" * 30, "t.csv"), SCHEMA)
    files = release(Project("t", SCHEMA, Plan("independent", 1.0, 1e-6)), table).files
    id_ = shelf.share(files)
    for name, data in crafted(files).items():
        assert data != files["release.json"], name
        (tmp_path / "0123456789abcdef.zip").write_bytes(zipped({**files, "release.json": data}))
        assert [s.id for s in shelf.shared()] == [id_], name
        with pytest.raises(EspalierError):
            shelf.share({**files, "release.json": data})


def test_a_file_that_is_gone_and_a_pipe_do_not_close_the_shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another session may take a release back between the listing and its reading."""
    monkeypatch.setenv("ESPALIER_SHARED", str(tmp_path))
    (tmp_path / "0123456789abcdef.zip").symlink_to(tmp_path / "gone")
    os.mkfifo(tmp_path / "fedcba9876543210.zip")
    assert shelf.shared() == []


def test_a_huge_file_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Previously, it was read whole, and the page ended with an error for lack of memory."""
    monkeypatch.setenv("ESPALIER_SHARED", str(tmp_path))
    with (tmp_path / "0123456789abcdef.zip").open("wb") as file:
        file.truncate(1 << 40)
    assert shelf.shared() == []
    with pytest.raises(ProjectError, match="no longer shared"):
        shelf.files("0123456789abcdef")
