"""Every command and Python block of the documents runs, page by page, on files with the names that it uses."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from espalier.core.cli.main import main
from tests.support.examples import PAGES, ROOT, blocks, panel, people, write_csv

LICENSED = "a file that its user has a licence for; the tests of codebooks read one of its form"
ELSEWHERE = {
    "espalier init drugs.csv --code-book atc_code=atc:ATC.csv": LICENSED,
    "espalier ledger close ENTRY": "a release that was interrupted; tests/release/test_resume.py closes one",
    "espalier init deaths.csv --code-book cause=icd10_claml.xml": LICENSED,
}
"""Commands that cannot run here, with what they need."""
SLOW = ("espalier attack ", "espalier evaluate DIR --data patients.csv --classifiers")
"""Commands that take minutes: they run at night."""
WITH_EXAMPLES = [page for page in PAGES if any(b.commands or b.kind == "python" for b in blocks(page))]
LONG = {
    "linked-tables.md",
    "patients-and-visits.md",
    "statistician.md",
    "data-steward.md",
    "questions.md",
    "databases.md",
}
"""Pages whose examples run at night."""


def _page(page: Path) -> Any:
    marks = [pytest.mark.nightly] if page.name in LONG else []
    return pytest.param(page, id=str(page.relative_to(ROOT)), marks=marks)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the tables, the projects and the release that the documents name."""
    monkeypatch.chdir(tmp_path)
    for name, value in (
        ("HOME", str(tmp_path)),
        ("ESPALIER_LEDGER", str(tmp_path / "ledger.db")),
        ("XDG_DATA_HOME", str(tmp_path / "data")),
        ("ESPALIER_KEY_PASSPHRASE", "a long passphrase of words"),
        ("WAREHOUSE", f"duckdb:///{tmp_path}/warehouse.duckdb"),
    ):
        monkeypatch.setenv(name, value)
    shutil.copytree(ROOT / "sample_data", tmp_path / "sample_data")
    stage(tmp_path)
    return tmp_path


def stage(folder: Path) -> None:
    """Write the files of a reader who has a table of patients and a release of it."""
    import duckdb
    import pyarrow.csv
    import pyarrow.parquet

    rows = people(400)
    own = [{key: row[key] for key in row if key != "patient_id"} for row in rows]
    for name in ("patients", "visits", "stays", "sales"):
        write_csv(folder / f"{name}.csv", own)
    write_csv(folder / "later.csv", [{k: v for k, v in row.items() if k != "patient_id"} for row in people(200, 3)])
    dictionary = [{"column": "sex", "code": "f", "label": "female"}, {"column": "sex", "code": "m", "label": "male"}]
    for name in ("dictionary", "visits_dictionary"):
        write_csv(folder / f"{name}.csv", dictionary)
    with (folder / "questions.csv").open("w", encoding="utf-8") as file:
        file.write("question,column,values\nolder and ill,age,60..90\nolder and ill,sick,yes\n")
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(folder / "visits.csv"), folder / "visits.parquet")
    with duckdb.connect(str(folder / "warehouse.duckdb")) as engine:
        engine.execute("create schema public; create table public.visits as from 'visits.parquet'")
    assert main(shlex.split("init patients.csv --missing '?' -9 --one-row-per-person --out project.json")) == 0
    confirm(folder)


def confirm(folder: Path) -> None:
    """Confirm each draft in the folder, as its reader would."""
    for path in folder.glob("*.json"):
        text = path.read_text("utf-8")
        if '"espalier-project/' in text:
            project = json.loads(text.replace('"guessed"', '"confirmed"'))
            if project.get("one_row_per_person", True) is None:
                project["one_row_per_person"] = True
            if not (project.get("dag") or {}).get("edges") and "smoker" in {c["name"] for c in project["schema"]}:
                project["dag"] = {"edges": [["age", "smoker"], ["age", "sick"], ["smoker", "sick"]]}
            path.write_text(json.dumps(project), "utf-8")


def run(folder: Path, command: str) -> int:
    """Run one command as a reader would: placeholders are filled in, and an output folder is new."""
    words = [os.path.expanduser(word) for word in shlex.split(command)[1:]]
    words = [{"DIR": "release", "ENTRY": entry(folder)}.get(word, word) for word in words]
    if words[0] == "init":
        for table in words:
            if table.endswith(".csv"):
                (folder / table).with_suffix(".json").unlink(missing_ok=True)
    if "older-release" in words:
        shutil.copytree(folder / "release", folder / "older-release", ignore=shutil.ignore_patterns("statement.sig"))
    if "release" in words[1:] and not (folder / "release").exists() and "--out" not in words:
        assert main(shlex.split("release project.json --data patients.csv --out release --quiet")) == 0
    if "--out" in words:
        out = folder / words[words.index("--out") + 1]
        shutil.rmtree(out, ignore_errors=True)
        out.unlink(missing_ok=True)
    try:
        status = main(words)
    except SystemExit as wrong:
        return int(wrong.code or 0)
    confirm(folder)
    return status


def entry(folder: Path) -> str:
    """Return the last entry of the ledger."""
    from espalier.core.ledger.ledger import Ledger

    if not (folder / "ledger.db").exists():
        return ""
    (budget,) = Ledger(folder / "ledger.db").populations().values()
    return budget.entries[-1].id if budget.entries else ""


@pytest.mark.parametrize("page", [_page(page) for page in WITH_EXAMPLES])
def test_the_examples_of_a_page_run(page: Path, desk: Path) -> None:
    prepare = PREPARE.get(str(page.relative_to(ROOT)))
    if prepare:
        prepare(desk)
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page):
        if block.kind == "python":
            exec(compile(block.text, str(page), "exec"), names)
        for command in block.commands:
            if command not in ELSEWHERE and not command.startswith(SLOW):
                assert run(desk, command) == 0, command


@pytest.mark.nightly
def test_the_slow_commands_of_all_pages_run(desk: Path) -> None:
    found = [command for page in WITH_EXAMPLES for block in blocks(page) for command in block.commands]
    slow = sorted({command for command in found if command.startswith(SLOW)})
    assert slow
    for command in slow:
        assert run(desk, command) == 0, command


def linked(folder: Path) -> None:
    """Write patients and visits instead of the table of patients."""
    import duckdb
    import pyarrow
    import pyarrow.parquet

    patients, visits = panel(300)
    write_csv(folder / "patients.csv", patients)
    write_csv(folder / "visits.csv", visits)
    both = {row["patient_nbr"]: row for row in patients}
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(patients), folder / "patients.parquet")
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(visits), folder / "visits.parquet")
    with duckdb.connect(str(folder / "clinic.duckdb")) as engine:
        for name in ("patients", "visits"):
            engine.execute(f"create table {name} as from '{folder}/{name}.parquet'")
    write_csv(folder / "encounters.csv", [both[row["patient_nbr"]] | row for row in visits])


PREPARE = {"docs/linked-tables.md": linked}


def test_a_wrong_command_is_found(desk: Path) -> None:
    assert run(desk, "espalier plan project.json --rowz 20000") == 2
