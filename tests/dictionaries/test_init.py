"""``espalier init`` with dictionaries and codebooks."""

from __future__ import annotations

import json

import pytest

from espalier.core.analysis.loading import load_release
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


def test_a_code_book_declares_the_same_whatever_one_row_holds(work):
    """Previously, a mark given with --missing was declared for a column if one of its rows contained it."""
    (work / "t.csv").write_text((work / "t.csv").read_text() + "250.1,CA,?,A10B\n")
    drafts = []
    for cell in ("250.1", "?"):
        (work / "t.csv").write_text((work / "t.csv").read_text() + f"{cell},CA,1,A10B\n")
        assert init("--code-book", "diag=icd-9-cm", "--missing", "?") == 0
        drafts.append(next(c for c in json.loads((work / "p.json").read_text())["schema"] if c["name"] == "diag"))
        (work / "p.json").unlink()
    assert drafts[0] == drafts[1]
    assert "guessed" not in drafts[0]


def test_the_order_of_day_and_month_is_guessed_or_asked(work, capsys):
    rows = "".join(f"{1 + i % 28}.{1 + i % 12}.2020,{1 + i % 12}/{1 + i % 7}/2021,{i % 2}\n" for i in range(90))
    (work / "t.csv").write_text("seen,left,ill\n" + rows)
    assert init() == 0
    said = capsys.readouterr().err
    assert "Date columns: seen." in said
    assert "Dates kept as text: left." in said
    assert "--date-order dmy or mdy" in said
    columns = {c["name"]: c for c in json.loads((work / "p.json").read_text())["schema"]}
    assert columns["seen"]["date_order"] == "dmy"
    assert "date_order" in columns["seen"]["guessed"]
    assert columns["left"]["kind"] == "categorical"
    (work / "p.json").unlink()
    assert init("--date-order", "mdy") == 0
    columns = {c["name"]: c for c in json.loads((work / "p.json").read_text())["schema"]}
    assert [columns[n].get("date_order") for n in ("seen", "left", "ill")] == ["dmy", "mdy", None]
    project = (work / "p.json").read_text().replace('"guessed"', '"confirmed"')
    (work / "p.json").write_text(project)
    assert main(("release", "p.json", "--data", "t.csv", "--out", "out")) == 0, capsys.readouterr().err
    header, *made = (work / "out" / "synthetic.csv").read_text().splitlines()
    assert header == "seen,left,ill"
    assert all(line.startswith("2020-") and line.split(",")[1].startswith("2021-") for line in made), "as ISO dates"
    assert main(("evaluate", "out", "--data", "t.csv")) == 0, capsys.readouterr().err


def test_a_release_of_decimal_commas_has_points_and_is_read_again(work, capsys):
    (work / "t.csv").write_text("w;s\n" + "".join(f"{10 + i % 60},{i % 10};{'xy'[i % 2]}\n" for i in range(120)))
    assert init() == 0
    project = (work / "p.json").read_text().replace('"guessed"', '"confirmed"')
    assert json.loads(project)["schema"][0]["number_style"] == "1234,5"
    (work / "p.json").write_text(project)
    assert main(("release", "p.json", "--data", "t.csv", "--out", "out")) == 0, capsys.readouterr().err
    made = load_release("out").table.numbers("w")
    assert ((made >= 0) & (made <= 80)).all(), "each cell is a number"
    assert main(("evaluate", "out", "--data", "t.csv")) == 0, capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (("--dictionary", "d.csv:sex"), "--not-from-these-rows"),
        (("--dictionary", "d.csv", "--not-from-these-rows"), "write FILE:COLUMN"),
        (("--dictionary", "none.csv", "--not-from-these-rows"), "cannot read the dictionary none.csv"),
        (("--dictionary", "d.csv:diag", "--not-from-these-rows"), "--undeclared"),
        (("--undeclared", "sex=guess"), "needs --dictionary"),
        (("--code-book", "diag=icd-99"), "neither a file nor one of the books icd-9-cm"),
        (("--code-book", "nothing=nuts"), "the draft has no column 'nothing'"),
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
