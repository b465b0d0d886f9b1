"""``espalier init`` with dictionaries and code books."""

from __future__ import annotations

import json

import pytest

from espalier.core.cli.main import main


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{250 + i % 40}.1,{('CA', 'NY')[i % 2]},{i % 3},A10B\n" for i in range(120))
    (tmp_path / "t.csv").write_text("diag,state,sex,drug\n" + rows)
    (tmp_path / "d.csv").write_text("code,label\n0,unknown\n1,male\n2,female\n")
    (tmp_path / "atc.csv").write_text("code,label\nA,Alimentary\nA10,Diabetes\nA10B,Oral\n")
    return tmp_path


def init(*more: str) -> int:
    return main(("init", "t.csv", "--out", "p.json", "--one-row-per-person", *more))


def test_dictionaries_and_books_make_a_draft(work, capsys):
    assert (
        init(
            *("--dictionary", "d.csv:sex", "--not-from-these-rows"),
            *("--code-book", "diag=icd-9-cm", "--code-book", "state=us-states", "--code-book", "drug=atc:atc.csv"),
        )
        == 0
    ), capsys.readouterr().err
    project = json.loads((work / "p.json").read_text())
    columns = {c["name"]: c for c in project["schema"]}
    assert columns["diag"]["code_book"]["name"] == "icd-9-cm"
    assert columns["drug"]["hierarchy"] == {"A": "", "A10": "A", "A10B": "A10"}
    assert columns["drug"]["labels"]["A10"] == "Diabetes"
    assert columns["sex"]["labels"] == {"0": "unknown", "1": "male", "2": "female"}
    assert not any("guessed" in c for c in columns.values())
    assert project["plan"]["schema_share"] > 0
    assert project["dictionaries"][0]["columns"] == ["sex"]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (("--dictionary", "d.csv:sex"), "--not-from-these-rows"),
        (("--dictionary", "d.csv", "--not-from-these-rows"), "write FILE:COLUMN"),
        (("--dictionary", "none.csv", "--not-from-these-rows"), "cannot read the dictionary none.csv"),
        (("--dictionary", "d.csv:diag", "--not-from-these-rows"), "--undeclared"),
        (("--undeclared", "sex=guess"), "needs --dictionary"),
        (("--code-book", "diag=icd-99"), "neither a file nor one of the books icd-9-cm"),
        (("--code-book", "nothing=nuts"), "there is no column 'nothing'"),
        (("--code-book", "nuts"), "takes COLUMN=VALUE"),
        (("--buy", "--code-book", "diag=nuts"), "--buy uses only the column names"),
    ],
)
def test_what_cannot_be_is_refused_with_a_next_step(work, capsys, more, why):
    assert init(*more) == 2
    assert why in capsys.readouterr().err
    assert not (work / "p.json").exists()


def test_a_choice_settles_undeclared_cells(work):
    (work / "d.csv").write_text("code,label\n1,male\n2,female\n")
    given = ("--dictionary", "d.csv:sex", "--not-from-these-rows")
    assert init(*given) == 2
    assert init(*given, "--undeclared", "sex=missing") == 0
    columns = {c["name"]: c for c in json.loads((work / "p.json").read_text())["schema"]}
    assert (columns["sex"]["unknown"], columns["sex"]["missing"]) == ("missing", True)
