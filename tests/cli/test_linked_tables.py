"""Linked tables on the command line: two files go in, two come out, and every refusal comes before anything is
spent.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
from collections import Counter
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from espalier.core.cli.main import main
from espalier.core.errors import ProjectError
from espalier.core.project.linked import Linked
from espalier.core.tables import frames


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A table of 300 people and one of their visits."""
    folder, rng = tmp_path_factory.mktemp("linked"), np.random.default_rng(0)
    people: list[Any] = [["patient", "age"]]
    visits: list[Any] = [["patient", "encounter", "admitted", "diag", "back"]]
    for i in range(300):
        people.append([f"q{i}", rng.choice(["young", "old"])])
        day = date(2020, 1, 1) + timedelta(int(rng.integers(300)))
        for _ in range(int(rng.integers(1, 5))):
            visits.append([f"q{i}", len(visits), day.isoformat(), rng.choice(list("abc")), rng.choice(["no", "yes"])])
            day += timedelta(int(rng.integers(100)))
    for name, rows in (("patients", people), ("visits", visits)):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows(rows)
    return folder


def draft(tables: Path, folder: Path, *more: str) -> Path:
    out = folder / "visits.json"
    given = [str(tables / "patients.csv"), str(tables / "visits.csv"), "--by", "patient", "--order", "admitted"]
    assert main(["init", *given, "--visit-key", "encounter", "--keep", "3", "--out", str(out), *more]) == 0
    return out


def confirmed(path: Path, **plan: object) -> Path:
    data = json.loads(path.read_text().replace('"guessed"', '"confirmed"'))
    data["plan"] |= plan
    path.write_text(json.dumps(data))
    return path


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_two_files_in_two_files_out(tables, tmp_path, capsys):
    project, out = draft(tables, tmp_path), tmp_path / "out"
    both = [str(tables / "patients.csv"), str(tables / "visits.csv")]
    assert main(["release", str(project), "--data", *both, "--out", str(out)]) == 2
    assert "guesses from the real rows" in capsys.readouterr().err
    confirmed(project, count_at_visits=["visits.back"], count_returns_after=["visits.diag"])
    assert main(["plan", str(project), "--rows", "300"]) == 0
    said = capsys.readouterr().out
    assert "visits.back at each visit after the first" in said
    assert "returns after each value of visits.diag" in said
    assert "one person with all their rows in both tables ('patient') being there or not" in said
    assert "steps of a pair chosen at release" in said
    ledger = ["--ledger", str(tmp_path / "ledger.db"), "--table", "people"]
    opened = ["--epsilon", "1.2", "--delta", "1e-6", "--neighbors", "add-remove", "--person", "patient"]
    assert main(["ledger", "open", *ledger, *opened]) == 0
    given = ["release", str(project), "--data", *both, *ledger]
    assert main([*given, "--out", str(out), "--as", "parquet", "--quiet"]) == 0
    assert main([*given, "--out", str(tmp_path / "again"), "--quiet"]) == 3
    assert not (tmp_path / "again").exists()
    entry = json.loads((out / "release.json").read_text())["ledger"]
    assert entry["unit"]["person"] == "patient"
    assert main(["ledger", "verify", str(out), *ledger[:2]]) == 0
    assert main(["verify", str(out)]) == 0
    assert main(["ledger", "export", *ledger[:2], "--format", "json", "--out", str(tmp_path / "export.json")]) == 0
    assert main(["verify", str(out), "--ledger", str(tmp_path / "export.json")]) == 0  # the ledger covers no Parquet
    changed = Path(shutil.copytree(out, tmp_path / "changed"))
    (changed / "visits.csv").write_text((changed / "visits.csv").read_text("utf-8")[:-20], "utf-8")
    assert main(["verify", str(changed)]) == 1
    people, visits = rows_of(out / "patients.csv"), rows_of(out / "visits.csv")
    assert {"patients.parquet", "visits.parquet", "release.json", "statement.json"} <= {p.name for p in out.iterdir()}
    known = {row["patient"] for row in people}
    assert len(known) == len(people)
    assert {row["patient"] for row in visits} == known
    assert not known & {f"q{i}" for i in range(300)} or all(name.startswith("P") for name in known)
    assert max(Counter(row["patient"] for row in visits).values()) <= 3
    last: dict[str, tuple[int, str]] = {}
    for row in visits:
        at, day = last.get(row["patient"], (0, ""))
        assert int(row["visit"]) == at + 1
        assert row["admitted"] >= day
        last[row["patient"]] = at + 1, row["admitted"]
    assert {row["diag"] for row in visits} <= set("abc")
    capsys.readouterr()
    assert main(["evaluate", str(out), "--data", *both, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert 0 <= found["visits"]["next_visit_same"] <= 1
    assert found["visits"]["visits_per_person"] < 0.5
    assert set(found["verdict"]["grades"].values()) <= {"good", "fair", "poor", "unknown"}
    assert main(["analyse", str(out), "--transition", "visits.back", "no", "yes"]) == 0
    assert "visits.back: yes at the next visit after no" in capsys.readouterr().out
    assert main(["analyse", str(out), "--transition", "visits.back", "no", "never"]) == 2
    assert "'never' is not a value" in capsys.readouterr().err
    assert main(["analyse", str(out), "--at-visit", "visits.back", "no", "2", "--json"]) == 0
    (share,) = json.loads(capsys.readouterr().out)
    assert (share["visit"], share["level"]) == (2, 0.95)
    assert share["share"] is None or share["low"] <= share["share"] <= share["high"]
    assert main(["analyse", str(out), "--at-visit", "visits.diag", "a", "1"]) == 0
    assert "each person counts once" in capsys.readouterr().out
    for visit, why in (("3", "did not count visits.diag at visit 3"), ("x", "number of a visit"), ("4", "keeps 3")):
        assert main(["analyse", str(out), "--at-visit", "visits.diag", "a", visit]) == 2
        assert why in capsys.readouterr().err
    assert main(["analyse", str(out), "--returned", "visits.diag", "a", "30", "--json"]) == 0
    (share,) = json.loads(capsys.readouterr().out)
    assert (share["days"], share["level"]) == (30, 0.95)
    assert share["share"] is None or share["low"] <= share["share"] <= share["high"]
    assert main(["analyse", str(out), "--returned", "visits.diag", "a", "30"]) == 0
    assert "Each person has weight 1, spread evenly over their first 2 visits" in capsys.readouterr().out
    for days, why in (("90", "it counted visits.diag within 30 days"), ("-1", "number of days"), ("x", "of days")):
        assert main(["analyse", str(out), "--returned", "visits.diag", "a", days]) == 2
        assert why in capsys.readouterr().err
    # the ledger knows only one of the two tables
    alone, opened = tmp_path / "alone.json", ["--table", "alone", *ledger[:2], "--population", "others"]
    assert main(["init", str(tables / "patients.csv"), "--person", "patient", "--out", str(alone)]) == 0
    data = json.loads(confirmed(alone).read_text())
    confirmed(alone, person="patient", neighbors="add-remove", delta=1e-6, rows_per_person=1)
    assert data["schema"]
    capsys.readouterr()
    unit = ["--epsilon", "1.2", "--delta", "1e-6", "--neighbors", "add-remove", "--person", "patient"]
    assert main(["ledger", "open", *opened, *unit]) == 0
    given = ["release", str(alone), "--data", str(tables / "patients.csv"), *ledger[:2], "--table", "alone"]
    assert main([*given, "--out", str(tmp_path / "alone")]) == 3
    assert "was already released as 'people'" in capsys.readouterr().err


def test_one_file_with_declared_person_columns(tables, tmp_path):
    both = tmp_path / "both.csv"
    ages = {row["patient"]: row["age"] for row in rows_of(tables / "patients.csv")}
    visits = rows_of(tables / "visits.csv")
    with both.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*visits[0], "age"])
        writer.writeheader()
        writer.writerows({**row, "age": ages[row["patient"]]} for row in visits)
    project, out = tmp_path / "p.json", tmp_path / "out"
    given = ["--by", "patient", "--order", "encounter", "--person-columns", "age", "--out", str(project)]
    assert main(["init", str(both), *given]) == 0
    confirmed(project)
    assert json.loads(project.read_text())["tables"]["people"]["from"] == "visits"
    assert main(["release", str(project), "--data", str(both), "--out", str(out), "--quiet"]) == 0
    assert set(rows_of(out / "people.csv")[0]) == {"patient", "age"}


def in_duckdb(tables: Path, folder: Path, visits: str = "TABLE visits AS") -> str:
    """Return the URL of a database with both tables; ``visits`` may be a view."""
    with duckdb.connect(str(folder / "both.duckdb")) as con:
        con.execute(f"CREATE TABLE patients AS FROM read_csv('{tables}/patients.csv', all_varchar = true)")
        con.execute(f"CREATE TABLE seen AS FROM read_csv('{tables}/visits.csv', all_varchar = true)")
        con.execute(f"CREATE {visits} SELECT patient, encounter, admitted, diag, back FROM seen")
    return f"duckdb://{folder}/both.duckdb"


@pytest.mark.parametrize("visits", ["VIEW visits AS", pytest.param("TABLE visits AS", marks=pytest.mark.nightly)])
def test_a_database_holds_both_tables_by_their_names(tables, tmp_path, capsys, visits):
    project, url = confirmed(draft(tables, tmp_path)), in_duckdb(tables, tmp_path, visits)
    capsys.readouterr()
    assert main(["release", str(project), "--data", url, "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().err
    assert "reads the table once, in batches" in said
    assert ("Its author is trusted" in said) == ("VIEW" in visits)
    facts = json.loads((tmp_path / "out" / "release.json").read_text())
    assert facts["relation"] == ("view" if "VIEW" in visits else "table")
    assert main(["evaluate", str(tmp_path / "out"), "--data", url, url, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["visits"]["visits_per_person"] < 0.5
    assert main(["release", str(project), "--data", url, "--relation", "seen", "--out", str(tmp_path / "o")]) == 2
    assert "in a database the project names them" in capsys.readouterr().err


def test_a_project_is_drafted_from_the_two_tables_of_a_database(tables, tmp_path, capsys):
    url, out = in_duckdb(tables, tmp_path), tmp_path / "p.json"
    given = ["--by", "patient", "--order", "admitted", "--visit-key", "encounter", "--out", str(out)]
    assert main(["init", url, "--tables", "patients", "visits", *given]) == 0
    assert "spread over the tables" in capsys.readouterr().err
    drafted, from_files = json.loads(out.read_text()), json.loads(draft(tables, tmp_path).read_text())
    assert drafted["tables"] == from_files["tables"]
    assert drafted["schema"] == from_files["schema"]
    confirmed(out)
    assert main(["release", str(out), "--data", url, "--out", str(tmp_path / "out"), "--quiet"]) == 0
    assert {"patients.csv", "visits.csv"} <= {p.name for p in (tmp_path / "out").iterdir()}


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ([], "name the two tables"),
        (["--tables", "patients"], "name the two tables"),
        (["--tables", "patients", "nowhere"], "nowhere"),
        (["--tables", "patients", "pa/ths"], "pa/ths"),
    ],
)
def test_a_draft_from_a_database_names_its_tables(tables, tmp_path, capsys, more, why):
    url = in_duckdb(tables, tmp_path)
    given = ["--by", "patient", "--order", "admitted", "--out", str(tmp_path / "p.json")]
    assert main(["init", url, *more, *given]) == 2
    assert why in capsys.readouterr().err
    both = [str(tables / "patients.csv"), str(tables / "visits.csv")]
    assert main(["init", *both, "--tables", "patients", "visits", *given]) == 2
    assert "files have their own names" in capsys.readouterr().err


def test_large_files_are_drafted_from_a_sample_and_released_in_batches(tables, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(frames, "LARGE_BYTES", 1000)
    project = confirmed(draft(tables, tmp_path))
    both = [str(tables / "patients.csv"), str(tables / "visits.csv")]
    assert main(["release", str(project), "--data", *both, "--out", str(tmp_path / "out")]) == 0
    assert "reads the table once, in batches" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (["--by", "patient"], "linked tables need --order"),
        (["--order", "admitted"], "linked tables need --by"),
        (["--by", "patient", "--order", "nowhere"], "there is no column 'nowhere'"),
        (["--by", "patient", "--order", "admitted", "--person-columns", "age"], "give a table of people and"),
        (["--by", "patient", "--order", "admitted", "--person", "age"], "--person does not work with linked tables"),
        (["--by", "patient", "--order", "admitted", "--keep", "50"], "from 2 to 20"),
    ],
)
def test_a_draft_refuses_with_a_clear_message(tables, tmp_path, capsys, given, why):
    both = [str(tables / "patients.csv"), str(tables / "visits.csv")]
    assert main(["init", *both, *given, "--out", str(tmp_path / "p.json")]) == 2
    assert why in capsys.readouterr().err
    assert not (tmp_path / "p.json").exists()


def test_visits_with_dates_of_unclear_order_are_not_drafted_until_one_is_chosen(tmp_path, capsys):
    (tmp_path / "patients.csv").write_text("patient,age\n" + "".join(f"q{i},old\n" for i in range(40)))
    lines = "".join(f"q{i % 40},{1 + i % 12}/{1 + i % 5}/2020,{'ab'[i % 2]}\n" for i in range(120))
    (tmp_path / "visits.csv").write_text("patient,admitted,diag\n" + lines)
    given = [str(tmp_path / f) for f in ("patients.csv", "visits.csv")] + ["--by", "patient", "--order", "admitted"]
    out = tmp_path / "p.json"
    assert main(["init", *given, "--out", str(out)]) == 2
    assert "whether the day or the month comes first" in capsys.readouterr().err
    assert main(["init", *given, "--out", str(out), "--date-order", "mdy"]) == 0
    (dates,) = (c for c in json.loads(out.read_text())["schema"] if c["name"] == "visits.admitted")
    assert dates["date_order"] == "mdy"


@pytest.mark.parametrize("odd", ["soon", "7", "31/02/2020"])
def test_no_single_cell_decides_whether_a_draft_has_gaps(tmp_path, capsys, odd):
    (tmp_path / "patients.csv").write_text("patient,age\n" + "".join(f"q{i},old\n" for i in range(40)))
    days = [f"2020-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(120)]
    out = tmp_path / "p.json"
    given = [str(tmp_path / f) for f in ("patients.csv", "visits.csv")] + ["--by", "patient", "--order", "admitted"]

    def drafted(cells, *more):
        lines = "".join(f"q{i % 40},{day},{'ab'[i % 2]}\n" for i, day in enumerate(cells))
        (tmp_path / "visits.csv").write_text("patient,admitted,diag\n" + lines)
        return main(["init", *given, "--out", str(out), *more])

    assert drafted([*days[:-1], odd]) == 2
    assert "are dates, but others are not" in capsys.readouterr().err
    assert not out.exists()
    assert drafted([*days[:-1], odd], "--missing", odd) == 0
    assert '"gap"' in out.read_text()
    out.unlink()
    assert drafted(range(120)) == 0
    assert '"gap"' not in out.read_text()


@pytest.mark.parametrize(
    ("usual", "odd"),
    [
        ([f"2020-01-{d:02d}" for d in range(1, 29)], "1800-01-01"),  # too many years for bins
        ([f"202001{d:02d}" for d in range(1, 29)], "7"),  # digits that are dates
        ([f"{d}/1/2020" for d in range(13, 29)], "1/13/2020"),  # a day in another order
        ([""], "2020-01-01"),
        (["2020-01-01"], ""),
        (["2020-01-01"], "2020-01-02"),
    ],
)
def test_the_visits_of_one_person_never_decide_whether_a_draft_has_gaps(tmp_path, capsys, usual, odd):
    (tmp_path / "patients.csv").write_text("patient,age\n" + "".join(f"q{i},old\n" for i in range(40)))
    out = tmp_path / "p.json"
    given = [str(tmp_path / f) for f in ("patients.csv", "visits.csv")] + ["--by", "patient", "--order", "admitted"]
    gaps = []
    for last in (usual[0], odd):
        cells = [*(usual[i % len(usual)] for i in range(118)), last, last]
        lines = "".join(f"q{min(i // 3, 39)},{day},{'ab'[i % 2]}\n" for i, day in enumerate(cells))
        (tmp_path / "visits.csv").write_text("patient,admitted,diag\n" + lines)
        refused = main(["init", *given, "--out", str(out)]) != 0
        gaps.append(None if refused else '"gap"' in out.read_text())
        out.unlink(missing_ok=True)
    assert None in gaps or gaps[0] == gaps[1]
    assert not capsys.readouterr().out.count("Traceback")


def test_a_release_refuses_another_number_of_tables(tables, tmp_path, capsys):
    project = confirmed(draft(tables, tmp_path))
    for data in ([str(tables / "visits.csv")], [str(tables / "visits.csv")] * 3):
        assert main(["release", str(project), "--data", *data, "--out", str(tmp_path / "out")]) == 2
        assert "the tables patients and visits, in this order" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_fence_that_cannot_hold_is_refused_with_its_path_or_holds(tables, tmp_path, capsys):
    project = confirmed(draft(tables, tmp_path), fair=True)
    data = json.loads(project.read_text())
    data["roles"] = {"outcome": ["visits.back"], "protected": ["patients.age"], "admissible": ["visits.diag"]}
    project.write_text(json.dumps(data))
    capsys.readouterr()
    assert main(["plan", str(project), "--json"]) == 0
    (separation,) = json.loads(capsys.readouterr().out)["separations"]
    assert separation["right"] == ["patients.age"]
    assert {"visits.back", "visits per person"} <= set(separation["left"])
    data["roles"]["protected"] = ["visits per person"]
    project.write_text(json.dumps(data))
    assert main(["plan", str(project)]) == 2
    assert "can be neither protected nor admissible" in capsys.readouterr().err


@pytest.mark.parametrize(("people", "visits"), [("Visits", "visits"), ("SYNTHETIC", "visits")])
def test_two_tables_never_share_a_file_on_any_system(people: str, visits: str):
    with pytest.raises(ProjectError, match="different names|cannot name a table"):
        Linked(people, visits, "id", "id", "at", 2)


@pytest.mark.skipif(os.name != "posix", reason="POSIX permissions")
@pytest.mark.parametrize("linked", [False, True])
def test_only_its_owner_reads_a_draft_which_never_goes_through_a_link(tables: Path, tmp_path: Path, linked: bool):
    """Previously, each user of the machine could read the values of the rows in a draft, or choose where it went."""
    given = [str(tables / "patients.csv")]
    if linked:
        given += [str(tables / "visits.csv"), "--by", "patient", "--order", "admitted"]
    out, elsewhere = tmp_path / "draft.json", tmp_path / "elsewhere.json"
    assert main(["init", *given, "--out", str(out)]) == 0
    assert out.stat().st_mode & 0o777 == 0o600
    out.unlink()
    out.symlink_to(elsewhere)
    assert main(["init", *given, "--out", str(out)]) == 2
    assert not elsewhere.exists()
