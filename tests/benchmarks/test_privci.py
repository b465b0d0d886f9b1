"""PrivCI's experiments: one real run, a sweep that continues where it stopped, and the paper's statistics."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import privci as bench
from benchmarks.fair_tables import adult, compas
from espalier.core.methods import frame_of
from espalier.core.project.file import Project
from espalier.core.tables.reading import read_table
from espalier.core.tables.table import Table

SAMPLES = Path(__file__).resolve().parents[2] / "sample_data"


def test_the_papers_columns_and_roles():
    for project, columns in ((adult(), 7), (compas(), 5)):
        assert len(project.schema.columns) == columns
        (fence,) = frame_of(project).separations
        assert fence.left == project.roles.outcome
        assert fence.given == project.roles.admissible
    assert adult().roles.protected == ("sex",)
    assert compas().roles.admissible == ("age",)


def test_folds_are_a_partition():
    project = Project.load(SAMPLES / "hiring.json")
    table = Table.encode(read_table(SAMPLES / "hiring.csv"), project.schema)
    parts = list(bench.folds(table, 4))
    assert sum(test.rows for _, test in parts) == table.rows
    assert all(train.rows + test.rows == table.rows for train, test in parts)


def test_one_real_run():
    project = Project.load(SAMPLES / "hiring.json").with_plan(**bench.METHODS["PrivCI thicker"])
    table = Table.encode(read_table(SAMPLES / "hiring.csv"), project.schema)
    train, test = next(bench.folds(table, 5))
    row = {k: float(v) for k, v in bench.one_run(project, train, test).items()}
    assert set(row) == set(bench.HEAD) - {"data", "method", "epsilon", "fold"}
    assert row["holds"] == 1
    assert row["CMI_model"] < 1e-9
    assert row["q"] > 0
    assert 0 < row["TV"] < 0.3
    assert 0.5 < row["AUC"] < 1


@pytest.fixture
def swept(tmp_path, monkeypatch):
    """A sweep whose runs cost nothing: each figure encodes its method, budget and fold."""
    ran = []

    def fake(project, *_):
        width = project.plan.options.get("width", 1)
        ran.append((project.plan.method, width, project.plan.epsilon))
        good = {"mst": 3, "privci": 2, "prefair": 1, "prism": 2, "workload": 2}[project.plan.method] + width / 10
        value = dict.fromkeys(bench.HEAD[4:], good + project.plan.epsilon / 100 + len(ran) / 1e4)
        return {k: f"{v:.6f}" for k, v in {**value, "holds": 1, "CMI_floor": 99, "CMI_model": 0}.items()}

    monkeypatch.setattr(bench, "one_run", fake)
    data = [("hiring", Project.load(SAMPLES / "hiring.json"), SAMPLES / "hiring.csv")]
    return data, tmp_path / "out", ran


def test_a_sweep_goes_on_where_it_stopped(swept):
    data, out, ran = swept
    first = bench.sweep(data, out, 2, [1.0])
    assert len(first) == len(ran) == 2 * len(bench.METHODS)
    lines = (out / "runs.csv").read_text().splitlines()
    (out / "runs.csv").write_text("\n".join(lines[:-3]) + "\n")
    again = bench.sweep(data, out, 2, [1.0])
    assert len(ran) == 2 * len(bench.METHODS) + 3
    assert len(again) == len(first)
    more = bench.sweep(data, out, 2, [1.0, 0.5])
    assert len(more) == 2 * len(first)
    with (out / "runs.csv").open() as file:
        assert len({tuple(r[k] for k in bench.HEAD[:4]) for r in csv.DictReader(file)}) == len(more)
    (out / "runs.csv").write_text("something,else\n")
    with pytest.raises(SystemExit, match="--out"):
        bench.sweep(data, out, 2, [1.0])


def test_what_is_printed_and_drawn(swept, capsys):
    data, out, _ = swept
    rows = bench.sweep(data, out, 3, [0.5, 1.0])
    bench.by_method(rows, ["hiring"], [0.5, 1.0])
    bench.table_two(rows, ["hiring"])
    bench.must_hold(rows, ["hiring"])
    said = capsys.readouterr().out
    assert "hiring, ε = 0.5" in said
    assert "separations hold in 30 of 30 fenced runs" in said
    assert "above its 95 % sampling floor in 0 of 30" in said
    (page,) = bench.draw(rows, ["hiring"], [0.5, 1.0], out)
    assert "Plotly" in page.read_text()[:200_000]


def test_pairs_and_their_one_sided_p():
    ours, theirs = np.array([3.0, 4.0, 5.0, 6.0, 9.0]), np.array([1.0, 2.5, 2.0, 2.0, 2.0])
    mean, p = bench.paired(ours, theirs, "AUC")
    assert mean == pytest.approx(3.5)
    assert p == pytest.approx(1 / 32), "all five pairs favour ours: one of 2⁵ sign patterns"
    assert bench.paired(ours, theirs, "TV")[1] == pytest.approx(1.0)
    assert bench.paired(ours, ours, "q") == (0.0, 0.5)
    assert bench.paired(np.array([1.0, np.nan]), np.array([0.5, 1.0]), "q")[0] == 0.5


def test_projects_of_the_command_line(tmp_path):
    path = SAMPLES / "hiring.json"
    ((name, project, table),) = bench.given([str(path), "t.csv"])
    assert (name, project.plan.target, table) == ("hiring", "hired", Path("t.csv"))
    with pytest.raises(SystemExit, match="name a table"):
        bench.given([str(path)])
    bare = json.loads(path.read_text())
    bare["roles"] = {}
    (tmp_path / "bare.json").write_text(json.dumps(bare))
    with pytest.raises(SystemExit, match="protected"):
        bench.given([str(tmp_path / "bare.json"), "t.csv"])
