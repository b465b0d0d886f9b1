"""The command line as a user sees it: exit statuses, clear messages, no folder left behind."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from espalier.core.cli.evaluate import summary
from espalier.core.cli.main import main
from espalier.core.cli.terminal import Plain

ROOT = Path(__file__).resolve().parents[2]
SCHEMA: list[dict[str, Any]] = [
    {"name": "a", "kind": "categorical", "categories": ["x", "y"]},
    {"name": "b c", "kind": "numeric", "edges": [0, 5, 10], "missing": True},
]
PLAN = {"method": "mst", "epsilon": 1.0, "delta": 1e-6}
CSV = b"a,b c\n" + b"x,1\ny,7\nx,\n" * 20


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "p.json", {})
    (tmp_path / "t.csv").write_bytes(CSV)
    return tmp_path


def write(folder, name, changes, plan=None, schema=None):
    data = {
        "format": "espalier-project/1",
        "name": "t",
        "schema": schema or SCHEMA,
        "plan": {**PLAN, **(plan or {})},
    }
    (folder / name).write_text(json.dumps({**data, **changes}))


def run(*args):
    try:
        return main([str(a) for a in args])
    except SystemExit as stop:
        return stop.code


def test_plan_release_evaluate(work, capsys):
    assert run("plan", "p.json", "--rows", "60") == 0
    assert "total spent" in capsys.readouterr().out
    assert run("release", "p.json", "--data", "t.csv", "--out", "o") == 0
    assert "spent ε" in capsys.readouterr().err
    assert run("evaluate", "o", "--data", "t.csv") == 0
    assert capsys.readouterr().out.startswith("CONFIDENTIAL"), "the same in a pipe as on a terminal"
    assert run("evaluate", "o", "--data", "t.csv", "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert {"tstr", "fidelity", "fairness"} <= set(result)
    assert result["fidelity"]["one_way_tv"] >= 0
    assert run("evaluate", "o", "--data", "t.csv", "--holdout", "t.csv") == 0
    assert sorted(p.name for p in work.iterdir()) == ["o", "p.json", "t.csv"]


def test_a_folder_that_is_no_release_is_told_with_what_to_do(work, capsys):
    assert run("evaluate", "nothere", "--data", "t.csv") == 2
    said = capsys.readouterr().err
    assert run("analyse", "nothere", "--proportion", "a=x") == 2
    assert capsys.readouterr().err == said, "the same from every command"
    assert run("release", "p.json", "--data", "t.csv", "--out", "t.csv") == 2
    assert "t.csv is a file. Name a new folder" in capsys.readouterr().err
    assert "nothere does not exist" in said
    assert "name the folder that `release` wrote" in said
    assert "Errno" not in said
    (work / "empty").mkdir()
    assert run("evaluate", "empty", "--data", "t.csv") == 2
    assert "empty contains no release.json" in capsys.readouterr().err
    assert run("release", "p.json", "--data", "t.csv", "--out", "o", "--quiet") == 0
    (work / "o" / "model.npz").unlink()
    assert run("evaluate", "o", "--data", "t.csv") == 2
    said = capsys.readouterr().err
    assert "o is not a complete release folder, or is damaged: model.npz is missing" in said
    assert "Errno" not in said


@pytest.mark.parametrize("command", ["plan", "release", "attack"])
def test_an_unknown_key_of_the_plan_names_its_file(work, capsys, command):
    write(work, "odd.json", {}, plan={"colour": 1})
    more = {"plan": (), "release": ("--data", "t.csv", "--out", "o"), "attack": ("--data", "t.csv")}[command]
    assert run(command, "odd.json", *more) == 2
    assert "odd.json: plan: unknown key 'colour'" in capsys.readouterr().err


@pytest.mark.nightly
def test_rows_that_are_not_private_are_judged_with_a_remark(work, capsys):
    rows = "".join(f"{i % 7},{i % 10}\n" for i in range(60))
    (work / "n.csv").write_text("a,b\n" + rows)
    schema = [{"name": n, "kind": "numeric", "edges": [0, 5, 10]} for n in "ab"]
    plan = {"method": "two-stage", "target": "b", "eta": 0.001, "lid": 0.3}
    project = {"format": "espalier-project/1", "name": "n", "schema": schema, "plan": plan}
    (work / "n.json").write_text(json.dumps(project))
    assert run("release", "n.json", "--data", "n.csv", "--out", "o") == 0
    capsys.readouterr()
    assert run("evaluate", "o", "--data", "n.csv", "--json") == 0
    told = capsys.readouterr()
    found = json.loads(told.out)
    assert found["private"] is False
    assert "Not private" in found["warning"]
    assert "Not private" in told.err
    assert "closeness alone does not make a good release" in "\n".join(summary(found))


def test_plan_reads_no_data_and_gives_json(work, capsys):
    (work / "t.csv").unlink()
    assert run("plan", "p.json", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert sum(line["rho"] for line in shown["lines"]) == pytest.approx(shown["spent"])


def test_a_plan_of_many_choices_is_short_and_adds_up(work, capsys):
    write(work, "p.json", {}, plan={"method": "workload", "target": None, "delta": 1e-6})
    assert run("plan", "p.json", "--rows", "6000") == 0
    out = capsys.readouterr().out
    table = [line.split() for line in out.split("description\n")[1].split("\n\n")[0].splitlines()]
    said = [" ".join(words[-6:]) for words in table]
    assert len(said) == len(set(said)), "no sentence appears twice"
    rhos = [next(float(w) for w in words if re.fullmatch(r"[0-9.]+e-[0-9]+", w)) for words in table]
    assert sum(rhos) == pytest.approx(float(out.split("total spent: ρ = ")[1].split()[0]), rel=1e-3)


def test_a_person_column_and_private_figures(work, capsys):
    rows = "".join(f"p{i % 30},{'xy'[i % 2]},{i % 9}\n" for i in range(240))
    (work / "t.csv").write_text("who,a,b c\n" + rows)
    people = {"person": "who", "rows_per_person": 3, "neighbors": "add-remove", "looking": 0.2, "target": "a"}
    write(work, "p.json", {}, plan=people)
    assert run("plan", "p.json") == 0
    assert "held out at random" in capsys.readouterr().out
    assert run("release", "p.json", "--data", "t.csv", "--out", "o") == 0
    assert "at most 3 rows are kept for each person in 'who'" in capsys.readouterr().err
    facts = json.loads((work / "o" / "release.json").read_text())
    assert facts["spent"]["person"] == "who"
    assert facts["looking"]["by"] == "person"
    assert "who" not in (work / "o" / "synthetic.csv").read_text()
    assert run("evaluate", "o", "--data", "t.csv") == 0
    (work / "t.csv").write_text("who,a,b c\n,x,1\n" + rows)
    assert run("release", "p.json", "--data", "t.csv", "--out", "o2") == 2
    assert "empty cell in data row 1" in capsys.readouterr().err
    write(work, "p.json", {}, plan={**people, "neighbors": "replace-one"})
    assert run("plan", "p.json", "--rows", "240") == 2
    assert "declare a total" in capsys.readouterr().err
    write(work, "p.json", {}, plan={**people, "neighbors": "replace-one", "rows": 90, "delta": None})
    assert run("plan", "p.json", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["delta"] == 1 / 90**2
    assert shown["looking"][0]["error"] is not None


def project(schema=SCHEMA, plan=None, **more):
    data = {"format": "espalier-project/1", "schema": schema, "plan": {**PLAN, **(plan or {})}, **more}
    return json.dumps(data).encode()


PROJECTS = {
    "not json": b"{",
    "empty": b"",
    "binary": bytes(range(256)),
    "a list": b"[]",
    "nan": project(plan={"epsilon": float("nan")}),
    "text epsilon": project(plan={"epsilon": "one"}),
    "unordered": project([{"name": "b c", "kind": "numeric", "edges": [5, 0, 9]}]),
    "cycle": project(dag={"edges": [["a", "b c"], ["b c", "a"]]}),
    "twice": project([SCHEMA[0]] * 2),
    "fence without roles": project(plan={"method": "privci"}),
    "guessed": project([{**SCHEMA[0], "guessed": ["categories"]}, SCHEMA[1]]),
    "no delta": project(plan={"delta": None, "neighbors": "add-remove"}),
}


@pytest.mark.parametrize("name", PROJECTS)
def test_bad_projects(work, capsys, name):
    (work / "p.json").write_bytes(PROJECTS[name])
    refused(work, capsys)


TABLES = {
    "empty": b"",
    "header only": b"a,b c\n",
    "missing column": b"a\nx\n",
    "unknown category": b"a,b c\nz,1\n",
    "not a number": b"a,b c\nx,many\n",
    "undeclared missing": b"a,b c\n,1\n",
    "ragged": b"a,b c\nx,1\ny\n",
    "too wide": b"a,b c\nx,1,2\n",
    "duplicate columns": b"a,a,b c\nx,x,1\n",
    "binary": b"\x00\x01\x02" * 500,
    "open quote": b'a,b c\n"x,1\n',
    "not parquet": b"PAR1" + b"x" * 100,
    "not excel": b"PK\x03\x04" + b"x" * 100,
    "not gzip": b"\x1f\x8b" + b"x" * 100,
    "half a gzip": b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03",
}


@pytest.mark.parametrize("name", TABLES)
def test_bad_tables(work, capsys, name):
    (work / "t.csv").write_bytes(TABLES[name])
    refused(work, capsys)


def refused(work, capsys, *args):
    before = sorted(p.name for p in work.iterdir())
    args = args or ("release", "p.json", "--data", "t.csv", "--out", "o")
    assert run(*args) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert 1 <= len(lines) <= 3
    assert lines[-1].startswith("espalier: ")
    assert "Traceback" not in "".join(lines)
    assert sorted(p.name for p in work.iterdir()) == before, "no output folder is left"


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("plan",),
        ("dance",),
        ("plan", "none.json"),
        ("plan", "p.json", "--rows", "0"),
        ("plan", "p.json", "--rows", "many"),
        ("release", "p.json", "--data", "none.csv", "--out", "o"),
        ("release", "p.json", "--data", ".", "--out", "o"),
        ("release", "p.json", "--data", "t.csv", "--out", "."),
        ("release", "p.json", "--data", "t.csv", "--out", "t.csv"),
        ("evaluate", ".", "--data", "t.csv"),
        ("evaluate", "none", "--data", "t.csv"),
    ],
)
def test_bad_calls(work, capsys, args):
    before = sorted(p.name for p in work.iterdir())
    assert run(*args) == 2
    assert "Traceback" not in capsys.readouterr().err
    assert sorted(p.name for p in work.iterdir()) == before


def test_delta_by_default_needs_the_rows(work, capsys):
    write(work, "p.json", {}, {"delta": None})
    refused(work, capsys, "plan", "p.json")
    assert run("plan", "p.json", "--rows", "100") == 0


def test_a_delta_above_one_over_n_is_refused(work, capsys):
    write(work, "p.json", {}, {"delta": 0.9})
    assert run("release", "p.json", "--data", "t.csv", "--out", "o") == 2
    assert "1/n = 0.0167" in capsys.readouterr().err
    assert not (work / "o").exists()
    assert run("plan", "p.json") == 2


def test_the_plans_warnings_are_told_and_released(work, capsys):
    write(work, "p.json", {}, {"epsilon": 10.0, "rows_per_person": 3})
    assert run("release", "p.json", "--data", "t.csv", "--out", "o") == 0
    told = capsys.readouterr().err
    warnings = json.loads((work / "o" / "release.json").read_text())["warnings"]
    assert any("protects little" in w for w in warnings)
    assert any("promises that no one has more than 3 rows" in w for w in warnings)
    assert all(f"note: {w}" in told for w in warnings)


def test_too_large_a_plan_is_refused_with_the_columns(work, capsys):
    wide = [{"name": n, "kind": "categorical", "categories": [f"{i}" for i in range(4000)]} for n in "ab"]
    write(work, "p.json", {}, schema=wide)
    (work / "t.csv").write_bytes(b"a,b\n1,2\n3,4\n")
    assert run("release", "p.json", "--data", "t.csv", "--out", "o") == 2
    message = capsys.readouterr().err
    assert "a" in message
    assert "16,000,000" in message
    assert not (work / "o").exists()


@pytest.mark.nightly
def test_two_hundred_columns(work, capsys):
    schema = [{"name": f"c {i},", "kind": "categorical", "categories": ["0", "1"]} for i in range(200)]
    write(work, "p.json", {}, schema=schema)
    rows = ["\t".join(f"c {i}," for i in range(200))] + [
        "\t".join(str((r * i) % 2) for i in range(200)) for r in range(50)
    ]
    (work / "t.csv").write_text("\n".join(rows))
    assert run("release", "p.json", "--data", "t.csv", "--out", "o") == 0
    assert run("evaluate", "o", "--data", "t.csv") == 0
    capsys.readouterr()


def test_demo(work, capsys):
    assert run("demo", "--out", "d") == 0
    assert (work / "d" / "report.html").exists()
    capsys.readouterr()


def test_as_a_module_from_the_shell():
    got = subprocess.run([sys.executable, "-m", "core", "plan", "none.json"], cwd=ROOT, capture_output=True, text=True)
    assert got.returncode == 2
    assert got.stderr.startswith("espalier: cannot read none.json")


@pytest.mark.nightly
def test_every_method_on_adult(shared_data, work, capsys):
    from benchmarks.adult import write as write_projects

    for path in write_projects(work / "adult"):
        out = work / path.stem
        assert run("release", path, "--data", shared_data / "adult.csv.gz", "--out", out, "--quiet") == 0
        facts = json.loads((out / "release.json").read_text("utf-8"))
        assert all(s["holds"] for s in facts["separations"])
        assert facts["rows"] == 48_842
    capsys.readouterr()


def test_no_command_lists_the_commands(capsys):
    assert main([]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert all(command in shown.err for command in ("plan", "release", "evaluate", "graph", "demo", "ledger", "app"))


def test_one_line_of_a_table_cannot_swallow_the_others(work, capsys):
    """With a last column that accepts anything, this once released 4 of 2,000 rows with exit status 0."""
    loose = [
        SCHEMA[0],
        {"name": "b c", "kind": "categorical", "categories": ["0"], "missing": True, "unknown": "missing"},
    ]
    write(work, "p.json", {}, schema=loose)
    lines = ["a,b c", *["y,0"] * 2000]
    for line, words in {
        'x","0': "a quote inside a value", 'x,"0': "a quote is opened but not closed", '"x"0,0': "text after a closing",
    }.items():  # fmt: skip
        lines[7] = line
        (work / "t.csv").write_text("\n".join([*lines, ""]))
        assert run("release", "p.json", "--data", "t.csv", "--out", "o") == 2
        err = capsys.readouterr().err
        assert f"t.csv, line 8: {words}" in err
        assert "y,0" not in err
        assert not (work / "o").exists()


def test_a_dash_is_no_folder(work, capsys):
    assert run("release", "p.json", "--data", "t.csv", "--out", "-") == 2
    assert "cannot be printed. Name a new folder instead of -" in capsys.readouterr().err
    assert not (work / "-").exists()


@pytest.fixture
def far(work, postgres, monkeypatch):
    """The table of `work` in a database whose URL, with a password, is in the environment."""
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as con:
        con.execute('CREATE TABLE visits (a text, "b c" int)')
        con.execute("INSERT INTO visits SELECT x, y FROM (VALUES ('x', 1), ('y', 7), ('x', NULL)) AS t (x, y), "
                    "generate_series(1, 20)")  # fmt: skip
        monkeypatch.setenv("WAREHOUSE", postgres.replace("espalier@", "espalier:hush@"))
        yield work
        con.execute("DROP TABLE visits")


def test_a_table_in_a_database(far, capsys):
    where = ("--data", "env:WAREHOUSE", "--relation", "visits")
    assert run("init", "env:WAREHOUSE", "--relation", "visits", "--out", "draft.json") == 0
    assert {c["name"] for c in json.loads((far / "draft.json").read_text())["schema"]} == {"a", "b c"}
    assert run("plan", "p.json", "--explain-sql", *where) == 0
    said = capsys.readouterr()
    assert "CASE" in said.out
    assert run("release", "p.json", *where, "--out", "o", "--as", "parquet") == 0
    assert "60 rows" in capsys.readouterr().err
    assert run("evaluate", "o", "--data", "env:WAREHOUSE") == 2
    told = said.out + said.err + "".join(map(str, capsys.readouterr()))
    written = [p.read_bytes() for p in (*far.glob("*.json"), *(far / "o").iterdir())]
    assert "hush" not in told
    assert not any(b"hush" in data or b"host=" in data for data in written)
    from pyarrow import parquet

    table = parquet.read_table(far / "o" / "synthetic.parquet")
    assert table.num_rows == 60
    assert str(table.schema.field("b c").type) in ("int64", "double")
    assert table["b c"].null_count == sum(
        line.endswith(",") for line in (far / "o" / "synthetic.csv").read_text().splitlines()[1:]
    )


@pytest.mark.parametrize(
    "words",
    [
        ["attack", "p.json", "--data"],
        ["evaluate", "o", "--data", "t.csv", "--holdout"],
        ["plan"],
        ["verify"],
        ["graph"],
        ["restore"],
    ],
)
@pytest.mark.usefixtures("work")
def test_a_url_in_the_place_of_a_path_shows_no_password(words, capsys):
    """Previously, the message quoted the path, and with it the password."""
    assert run(*words, "postgresql://anna:hush@127.0.0.1:1/warehouse") != 0
    assert "hush" not in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    "words", [["--missing"], ["--by", "pid", "--order", "n", "--person-columns", "c", "--visit-key"]]
)
def test_an_argument_that_is_no_text_is_refused(words, tmp_path, monkeypatch, capsys):
    """Previously, this ended in a traceback."""
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("pid,n,c\n" + "".join(f"{i % 5},{i},{'xy'[i % 2]}\n" for i in range(20)))
    assert run("init", "t.csv", "--out", "o.json", *words, os.fsdecode(b"\xff")) == 2
    assert capsys.readouterr().err.startswith("espalier: ")


def test_a_visit_key_that_no_table_has_is_refused(tmp_path, monkeypatch, capsys):
    """Previously, the draft named a column that does not exist."""
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("pid,n,c\n" + "".join(f"{i % 5},{i},{'xy'[i % 2]}\n" for i in range(20)))
    words = ["--by", "pid", "--order", "n", "--person-columns", "c", "--visit-key", "nosuch"]
    assert run("init", "t.csv", "--out", "o.json", *words) == 2
    assert "there is no column 'nosuch'" in capsys.readouterr().err


def test_a_draft_of_a_file_whose_name_is_no_text(tmp_path):
    """Previously, this ended in a traceback and left an empty project file behind."""
    table, draft = tmp_path / os.fsdecode(b"n\xff.csv"), tmp_path / "draft.json"
    table.write_text("a\nx\ny\n", "utf-8")
    assert run("init", str(table), "--out", str(draft)) == 0
    assert json.loads(draft.read_text("utf-8"))["name"] == "n?"


def test_a_draft_warns_of_columns_that_may_name_people(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"p{i % 60},{'ab'[i % 2]}\n" for i in range(180))
    Path("t.csv").write_text("patient,ward\n" + rows, "utf-8")
    assert run("init", "t.csv") == 0
    said = capsys.readouterr().err
    assert "Columns with many values: patient (60)." in said
    assert "ward (" not in said


def test_a_large_file_stays_where_it_is(work, capsys, monkeypatch):
    monkeypatch.setattr("espalier.core.tables.frames.LARGE_BYTES", 10)
    monkeypatch.setattr("espalier.core.project.plan.IN_MEMORY", 50)
    monkeypatch.setattr("espalier.core.project.plan.SHOWN", 20)
    monkeypatch.setattr("espalier.core.tables.reading.read_table", lambda *_: pytest.fail("it was read into memory"))
    assert run("init", "t.csv", "--out", "draft.json") == 0
    assert "60 rows spread over the table" in capsys.readouterr().err
    assert run("release", "p.json", "--data", "t.csv", "--out", "o") == 0
    assert len((work / "o" / "synthetic.csv").read_text().splitlines()) == 21
    assert len((work / "o" / "synthetic-whole.csv").read_text().splitlines()) == 61
    facts = json.loads((work / "o" / "release.json").read_text())
    assert (facts["rows"], facts["rows_shown"]) == (60, 20)
    capsys.readouterr()
    assert run("evaluate", "o", "--data", "t.csv", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["random_rows"] == 60
    assert found["fidelity"]["one_way_tv"] < 0.5
    assert "release from a file with fewer rows" in found["fence_cost_reason"]
    assert run("evaluate", "o", "--data", "t.csv", "--classifiers") == 2
    assert "omit the option" in capsys.readouterr().err


def test_a_draft_says_what_looks_like_dates_and_like_marks_of_empty_cells(work, capsys):
    rows = "".join(
        f"2024-{1 + i % 12:02d}-{1 + i % 28:02d},{i % 40 if i % 9 else '?'},{i % 30 if i % 7 else -9}\n"
        for i in range(400)
    )
    (work / "m.csv").write_text("day,score,days off\n" + rows)
    assert run("init", "m.csv") == 0
    said = capsys.readouterr().err
    assert "Date columns: day." in said
    day = next(c for c in json.loads((work / "m.json").read_text())["schema"] if c["name"] == "day")
    assert day["dates"] == {"from": "2024-01-01", "to": "2024-12-31", "by": "month"}
    assert "'?' in score; '-9' in days off" in said
    assert "--missing '?' -9" in said
    assert "Columns with many values" not in said, "each column is reported once"
    (work / "m.json").unlink()
    assert run("init", "m.csv", "--missing", "NA") == 2
    assert "no column of m.csv contains 'NA'" in capsys.readouterr().err
    assert run("init", "m.csv", "--missing", "?", "-9") == 0
    assert "empty cell" not in capsys.readouterr().err
    columns = {c["name"]: c for c in json.loads((work / "m.json").read_text())["schema"]}
    assert (columns["score"]["kind"], columns["score"]["missing_marks"]) == ("numeric", ["?"])
    assert (columns["days off"]["edges"][0], columns["days off"]["missing_marks"]) == (0, ["-9"])
    assert "missing_marks" not in columns["day"]


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("release", "p.json", "--data", "t.csv", "--out", "o"), "noise already drawn counts as spent"),
        (("plan", "p.json", "--rows", "60"), "nothing was spent"),
    ],
)
@pytest.mark.usefixtures("work")
def test_a_cancelled_command_says_whether_it_spent(monkeypatch, capsys, command, told):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("espalier.core.cli.questions_option.load", stopped)
    assert run(*command) == 130
    assert told in capsys.readouterr().err


def test_cancelled_while_the_program_loads_shows_no_traceback(monkeypatch, capsys):
    import espalier.core.__main__ as entrance

    def stopped(_name):
        raise KeyboardInterrupt

    monkeypatch.setitem(
        sys.modules, "espalier.core.cli.main", type("Loading", (), {"__getattr__": lambda _, name: stopped(name)})()
    )
    assert entrance.run() == 130
    assert "cancelled" in capsys.readouterr().err


OBSERVED = ", of the rows where b c is observed"


@pytest.mark.parametrize(
    ("asked", "of"),
    [
        (("--proportion", "a=x"), "the share of rows with a = x"),
        (
            ("--difference", "a", "b c"),
            f"the difference in the share with a = y: b c = 5 – 10 minus b c = 0 – <5{OBSERVED}",
        ),
        (
            ("--odds-ratio", "a=x", "b c"),
            f"the odds ratio of a = x against y: b c = 5 – 10 relative to b c = 0 – <5{OBSERVED}",
        ),
        (("--outcome", "a", "--predictors", " b c "), f"a logistic regression: odds ratios of a = y{OBSERVED}"),
    ],
)
@pytest.mark.usefixtures("work")
def test_a_figure_says_which_values_it_is_of(capsys, asked, of):
    assert run("release", "p.json", "--data", "t.csv", "--out", "o", "--quiet") == 0
    capsys.readouterr()
    assert run("analyse", "o", *asked, "--number", "5") == 0
    assert f"Asked: {of}." in capsys.readouterr().out
    assert run("analyse", "o", *asked, "--number", "5", "--json") == 0
    assert all(figure["of"] == of for figure in json.loads(capsys.readouterr().out))


def test_a_draft_of_names_alone_is_planned_and_released(tmp_path, monkeypatch, capsys):
    """The file contains no value from the rows; an id column, for which no bins exist, is reported at the end."""
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("id,sex\n" + "".join(f"secret{i},{'fm'[i % 2]}\n" for i in range(2000)))
    assert run("init", "t.csv", "--buy", "--one-row-per-person") == 0
    assert "espalier plan t.json --rows N" in capsys.readouterr().err
    written = Path("t.json").read_text()
    assert "secret" not in written
    assert "guessed" not in written
    assert run("plan", "t.json", "--rows", "2000") == 0
    assert "categories of sex: those with" in capsys.readouterr().out
    assert run("release", "t.json", "--data", "t.csv", "--out", "out") == 0
    assert "No category of id was found" in capsys.readouterr().err
    assert "secret" not in Path("out/synthetic.csv").read_text()


@pytest.mark.parametrize("out", ["link", "dangling", ".", "a" * 256, "file/below"])
def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_spent(work, monkeypatch, capsys, out):
    (work / "empty").mkdir()
    (work / "link").symlink_to("empty")
    (work / "dangling").symlink_to("nowhere")
    (work / "file").write_text("")
    (work / "cwd").mkdir()
    monkeypatch.chdir(work / "cwd" if out == "." else work)
    monkeypatch.setattr("espalier.core.release.spend.release", lambda *_: pytest.fail("spent"))
    assert run("release", work / "p.json", "--data", work / "t.csv", "--out", out) == 2
    assert capsys.readouterr().err.startswith("espalier: cannot")
    assert not list(work.rglob(".espalier-*"))
    assert not (work / "nowhere").exists()


def test_a_refused_release_leaves_no_folder_behind(work):
    assert run("release", "p.json", "--data", "missing.csv", "--out", "a/b/" + "c" * 250) == 2
    assert not (work / "a").exists()


@pytest.mark.usefixtures("work")
@pytest.mark.parametrize("command", [["evaluate", "a" * 300, "--data", "t.csv"], ["init", "t.csv", "--out", "a" * 300]])
def test_a_name_that_is_too_long_is_no_traceback(capsys, command):
    assert run(*command) == 2
    assert capsys.readouterr().err.startswith("espalier: cannot use aaa")


def test_names_in_crafted_files_do_not_steer_the_terminal(work, capsys):
    """Previously, `plan` printed escape sequences from a project, `release` from a table's header, and `analyse` from a
    release."""
    odd = "x\x1b[2J\x9b\u202e\r\x7f"
    schema = [{"name": "a", "kind": "categorical", "categories": [odd, "y"]}, SCHEMA[1]]
    write(work, "odd.json", {"name": odd}, schema=schema)
    (work / "odd.csv").write_text("a,b c,d\x1b]0;e\x07\ny,1,2\ny,7,2\n", encoding="utf-8")
    assert run("plan", "odd.json", "--rows", "60") == 0
    assert run("release", "odd.json", "--data", "odd.csv", "--out", "o") == 0
    assert run("analyse", "o", "--proportion", "a=y", "--number", "2") == 0
    assert run("analyse", "o", "--difference", "a=y", "b c", "--number", "2", "--json") in (0, 2)
    told = capsys.readouterr()
    assert not {c for c in told.out + told.err if ord(c) < 32 or ord(c) in (0x7F, 0x9B, 0x202E)} - {"\n"}
    assert r"\u001b[2J" in told.out + told.err


def test_a_closed_output_is_no_traceback():
    """Previously, `espalier ledger list >&-` ended in a traceback."""
    assert Plain(None).write("text") == 4


def test_a_plan_asks_for_the_number_of_rows_where_a_verdict_needs_only_that(work, capsys):
    write(work, "p.json", {}, {"delta": 1e-6})
    assert run("plan", "p.json") == 0
    asked = "verdict: the number of rows is not given. Add --rows N to see what noise hides."
    assert asked in capsys.readouterr().out
    assert run("plan", "p.json", "--rows", "60") == 0
    assert asked not in capsys.readouterr().out


def closed_pipe():
    """Return a file that accepts no more, because its reader has closed it."""
    reads, writes = os.pipe()
    os.close(reads)
    return os.fdopen(writes, "wb", buffering=0)


def full_disk():
    """Return a file to which nothing can be written."""
    return Path("/dev/full").open("wb", buffering=0)


FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")


@pytest.mark.parametrize("lost", [closed_pipe, pytest.param(full_disk, marks=FULL)])
def test_lost_messages_do_not_stop_a_release(work, lost):
    with lost() as messages:
        command = [
            sys.executable,
            "-m",
            "core",
            "release",
            work / "p.json",
            "--data",
            work / "t.csv",
            "--out",
            work / "o",
        ]
        done = subprocess.run(command, cwd=ROOT, stderr=messages, check=False)
    assert done.returncode == 0
    assert (work / "o" / "release.json").exists()


@pytest.mark.parametrize(("lost", "status"), [(closed_pipe, 141), pytest.param(full_disk, 2, marks=FULL)])
@pytest.mark.parametrize("program", ["core verify", "verifier"])
def test_a_failed_check_that_nobody_reads_is_no_success(work, lost, status, program):
    assert run("release", "p.json", "--data", "t.csv", "--out", "o", "--quiet") == 0
    (work / "o" / "label.html").write_text("")
    with lost() as output:
        command = [sys.executable, "-m", *program.split(), work / "o"]
        done = subprocess.run(command, cwd=ROOT, stdout=output, stderr=subprocess.PIPE, check=False)
    assert done.returncode == (status if program != "verifier" else 2)
    assert b"Traceback" not in done.stderr
    assert b"ignored" not in done.stderr
