"""Exports of a statement are valid where a schema is available, and have the same numbers everywhere."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from benchmarks import forgeries
from espalier.core.cli.main import main
from espalier.core.cli.statement import EXPORTS
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release import release
from espalier.core.statement.catalogues import address
from espalier.core.statement.registry import entry, text
from espalier.verifier.check import verify

SCHEMA = Path(__file__).resolve().parents[3] / "shared" / "data" / "registry" / "deployments-schema.yaml"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "r"
    release(forgeries.Case("privci", 2, None, None).project(), forgeries.table(2, 400)).save(out)
    return out


def test_the_registry_entry_is_valid(folder):
    yaml, jsonschema = pytest.importorskip("yaml"), pytest.importorskip("jsonschema")
    if not SCHEMA.exists():
        pytest.skip("the registry's schema is not on this machine")
    made = yaml.safe_load((folder / "registry.yaml").read_text("utf-8"))
    jsonschema.validate(made, yaml.safe_load(SCHEMA.read_text("utf-8")))
    assert made == entry(json.loads((folder / "statement.json").read_text("utf-8")))
    assert made["tier"] == 3


def test_the_registry_entry_holds_any_name(folder):
    """Previously, a control character in a name made the file unreadable, and line marks of Unicode became blanks."""
    yaml = pytest.importorskip("yaml")
    odd = "a\x7f\x80\x85\u2028\ufeffb\uffff: - &c"
    claims = json.loads((folder / "statement.json").read_text("utf-8"))
    made = {**claims, "release": {**claims["release"], "name": odd}}
    assert entry(made)["deployment"]["basic"]["name"] == odd
    assert yaml.safe_load(text(made)) == entry(made)


@pytest.mark.parametrize("name", EXPORTS)
def test_every_export_is_printed(folder, name, capsys):
    assert main(["statement", str(folder), f"--{name}"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("<!doctype html>" if name == "label" else "{")
    if name != "label":
        json.loads(text)


def test_catalogues_list_every_file_with_its_digest(folder, capsys):
    statement = json.loads((folder / "statement.json").read_text("utf-8"))
    for name in ("dcat", "spdx"):
        main(["statement", str(folder), f"--{name}"])
        text = capsys.readouterr().out
        assert all(f["sha256"] in text for f in statement["files"].values())
    assert address(statement).startswith("urn:sha256:")


def test_an_old_release_has_no_statement(capsys):
    before = Path(__file__).resolve().parents[1] / "release" / "before"
    assert main(["statement", str(before)]) == 2
    assert "earlier version" in capsys.readouterr().err


def test_a_name_like_a_number_stays_as_it_is_in_the_registry(folder):
    """Previously, a project called "c: 1e5" was called "c: 1.0e5" there, so the checker found the release forged."""
    statement = json.loads((folder / "statement.json").read_text("utf-8"))
    statement["release"]["name"], statement["release"]["columns"] = "c: 1e5", ["x: 1e-7", "y"]
    made = json.loads(text(statement))
    assert made["deployment"]["basic"]["name"] == "c: 1e5"
    assert made == json.loads(json.dumps(entry(statement)))
    assert b'"delta": 1.0e-' in text(statement)


def test_no_name_reorders_a_report_or_a_label(tmp_path):
    """Previously, a name could turn the numbers behind it around, up to the end of the paragraph."""
    odd = "a\u202eb"
    columns = [Column(name, "categorical", (odd, "\u2067x")) for name in (odd, "\u2066c")]
    plan = Plan("independent", epsilon=1, delta=1e-6)
    project = Project(odd, Schema(tuple(columns)), plan)
    release(project, pd.DataFrame({c.name: [odd] * 40 for c in columns})).save(tmp_path / "r")
    for file in ("report.html", "label.html"):
        text = (tmp_path / "r" / file).read_text("utf-8")
        assert "\\u202e" in text
        assert not set(text) & {chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}
    assert not [found.text for found in verify(tmp_path / "r") if found.holds is False]
