"""Scripts of a question: each runs unchanged on its own files and prints the figures of the page."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from espalier.core.analysis import figure_from_text as ask
from espalier.core.analysis import forest, script
from espalier.core.analysis.answer_text import shown
from espalier.core.analysis.study import Study
from espalier.core.graph.dag import Dag
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release import release
from espalier.core.tables.table import Table

ODD = 'ward "A", north'


@pytest.fixture(scope="module")
def study():
    """A release whose columns have odd names, quotes, commas, bins and missing cells."""
    rng = np.random.default_rng(11)
    n = 5000
    ward = rng.integers(0, 3, n)
    age = np.clip(rng.normal(50, 20, n), 0, 99) // 20
    sick = (rng.random(n) < 0.2 + 0.15 * ward + 0.05 * age).astype(int)
    sick[rng.random(n) < 0.05] = 2
    schema = Schema(
        (
            Column(ODD, "categorical", ("one, or\ttwo", 'the "third"', "Ä")),
            Column("age", "numeric", edges=(0, 20, 40, 60, 80, 100)),
            Column("sick", "categorical", ("no", "yes"), missing=True),
        )
    )
    rows = {ODD: ward, "age": age, "sick": sick}
    table = Table(schema, {name: v.astype(np.uint8) for name, v in rows.items()}, n)
    dag = Dag(((ODD, "sick"), ("age", "sick"), ("age", ODD)))
    plan = Plan("mst", epsilon=4, delta=1e-6)
    return Study.of(release(Project("odd", schema, plan, dag, one_row_per_person=True), table))


def figures(study):
    schema, project = study.project.schema, study.project
    return {
        "proportion": ask.proportion(schema, "sick=yes", f"{ODD}=Ä"),
        "difference": ask.difference(schema, "sick=yes", f"{ODD}=Ä:one, or\ttwo"),
        "odds ratio": ask.odds_ratio(schema, "sick", ODD),
        "mean": ask.mean(schema, "age", "sick=yes"),
        "quantile": ask.quantile(schema, "age", 0.3, "sick=yes"),
        "difference of means": ask.mean_difference(schema, "age", "sick=yes:no"),
        "logistic": ask.regression(schema, "sick=yes", [ODD, "age"]),
        "linear": ask.regression(schema, "age", [ODD]),
        "effect": ask.effect_by_drawing(project, ODD, "sick", None, study.rows),
        "effect by regression": ask.effect_by_drawing(project, ODD, "sick", None, 10),
    }


KINDS = ("proportion", "difference", "odds ratio", "mean", "difference of means", "logistic", "linear", "effect")
EVERY = (*KINDS, "effect by regression")


def printed(command, folder: Path):
    """Name, value, low and high of each line that a script prints."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = re.findall(r"^(.*): (\S+) \(95 % interval (\S+) to (\S+)\)$", done.stdout, re.MULTILINE)
    return [(name, *(float(x) for x in rest)) for name, *rest in found]


def agrees(study, kind, command, folder):
    figure = figures(study)[kind]
    part = study.about(figure.columns).with_copies()
    for name, data in script.files(part, figure).items():
        (folder / name).write_bytes(data)
    lines, answers = printed(command, folder), part.ask(figure)
    assert [line[0] for line in lines] == [a.name for a in answers]
    for (_, value, low, high), a in zip(lines, answers, strict=True):
        assert value == pytest.approx(a.value, rel=2e-5, abs=2e-6)
        if a.low is not None:  # scripts place numbers at the middle of their bins
            assert (low, high) == pytest.approx(a.at_midpoints or (a.low, a.high), rel=2e-5, abs=2e-6)


def together(study, command, tmp_path, kinds):
    for kind in kinds:
        folder = tmp_path / kind
        folder.mkdir()
        agrees(study, kind, command, folder)


@pytest.mark.nightly
def test_the_script_in_python_prints_the_answers(study, tmp_path):
    together(study, [sys.executable, script.PYTHON_FILE], tmp_path, ("odds ratio", "logistic", "effect"))


@pytest.mark.nightly
@pytest.mark.parametrize("kind", EVERY)
def test_every_script_in_python_prints_the_answers(study, tmp_path, kind):
    agrees(study, kind, [sys.executable, script.PYTHON_FILE], tmp_path)


@pytest.mark.parametrize("program", [sys.executable, pytest.param("Rscript", marks=pytest.mark.nightly)])
def test_scripts_of_a_quantile_run_and_are_in_its_interval(study, tmp_path, program):
    """The answer's interval ends at edges of bins; a script's interval does not."""
    if shutil.which(program) is None:
        pytest.skip("R is not installed: apt-get install r-base-core")
    figure = figures(study)["quantile"]
    part = study.about(figure.columns).with_copies()
    for name, data in script.files(part, figure).items():
        (tmp_path / name).write_bytes(data)
    file = script.R_FILE if program == "Rscript" else script.PYTHON_FILE
    [(name, value, _, _)] = printed([program, file], tmp_path)
    (answer,) = part.ask(figure)
    assert name == answer.name
    assert answer.low <= value <= answer.high


@pytest.mark.nightly
@pytest.mark.parametrize("kind", EVERY)
def test_every_script_in_r_prints_the_answers(study, tmp_path, kind):
    rscript = shutil.which("Rscript")
    if rscript is None:
        pytest.skip("R is not installed: apt-get install r-base-core")
    agrees(study, kind, [rscript, "--vanilla", script.R_FILE], tmp_path)


def test_the_counts_name_their_cells_and_their_noise(study):
    text = script.counts_csv(study, ("sick",))
    assert text.splitlines()[0] == "measurement,columns,values,count,sigma"
    cells = sum(m.values.size for m in study.counted.measurements if "sick" in m.clique)
    assert len(text.splitlines()) == 1 + cells


def test_no_table_of_numbers_is_a_formula():
    """Otherwise, a spreadsheet would run formulas in names from a release that someone else made."""
    schema = Schema((Column("=1+1", "categorical", ("@SUM(1)", "x")), Column("sick", "categorical", ("no", "yes"))))
    table = Table(schema, {name: np.arange(400, dtype=np.uint8) % 2 for name in schema.names}, 400)
    project = Project("odd", schema, Plan("mst", epsilon=4, delta=1e-6), one_row_per_person=True)
    study = Study.of(release(project, table))
    figure = ask.proportion(schema, "sick=yes")
    (answer,) = study.about(figure.columns).with_copies().ask(figure)
    tables = [script.counts_csv(study), forest.to_csv([forest.Line("=1+1", "share", answer)])]
    cells = [cell for text in tables for line in csv.reader(text.splitlines()) for cell in line]
    assert {"'=1+1", "'@SUM(1)"} <= set(cells)
    assert not [cell for cell in cells if cell.startswith(("=", "@"))]


def test_a_forest_plot_shows_each_number_once_and_its_interval(study):
    figure = figures(study)["logistic"]
    answers = study.about(figure.columns).with_copies().ask(figure)
    lines = [forest.Line("A <question>", "ratio", a) for a in answers]
    for width in (880, 380):
        drawn = forest.svg(lines, width)
        assert drawn.count('class="point') == len(answers)
        assert drawn.count('class="arm"') == sum(a.low is not None for a in answers)
        assert "A &lt;question&gt;" in drawn
        assert shown(answers[-1].value) in drawn
        places = [float(x) for x in re.findall(r' x="([-\d.]+)"', drawn)]
        assert min(places) >= 0
        assert max(places) < width
    assert len(forest.to_csv(lines).splitlines()) == 1 + len(answers)
    assert forest.svg([]) == ""


def test_a_forest_axis_keeps_order_and_ends():
    axis = forest.Axis(0.0, 10.0, 100.0, 300.0, ratio=False)
    assert [axis.at(v) for v in (-5, 0, 5, 10, 99)] == [100, 100, 200, 300, 300]
    assert axis.ticks() == [0, 2, 4, 6, 8, 10]
