"""A release with missing cells, queried on the command line and described in the report."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from espalier.core.analysis import answer_text, figure_from_text
from espalier.core.analysis.study import Study
from espalier.core.cli.main import main
from espalier.core.graph.dag import Dag
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release import release
from espalier.core.tables.table import Table

SCHEMA = Schema(
    (
        Column("z", "categorical", ("a", "b"), missing=True),
        Column("t", "categorical", ("no", "yes"), missing=True),
        Column("y", "categorical", ("no", "yes"), missing=True),
        Column("days", "numeric", edges=(0, 2, 4, 8), missing=True),
    )
)


def table(n: int = 8000) -> Table:
    rng = np.random.default_rng(3)
    z = rng.integers(0, 2, n)
    t = (rng.random(n) < 0.4 + 0.2 * z).astype(np.int64)
    y = (rng.random(n) < 0.2 + 0.22 * t).astype(np.int64)
    days = np.minimum(rng.integers(0, 2, n) + (rng.random(n) < 0.2 + 0.4 * t), 2)
    y[rng.random(n) < np.where(t == 1, 0.5, 0.05)] = 2
    days[rng.random(n) < np.where(t == 1, 0.3, 0.1)] = 3
    z[rng.random(n) < 0.1] = 2
    t[rng.random(n) < 0.02] = 2
    return Table(SCHEMA, {"z": z, "t": t, "y": y, "days": days}, n)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A release with a budget so large that the noise hardly matters."""
    out = tmp_path_factory.mktemp("missing") / "made"
    plan = Plan.from_json(
        {"method": "prism", "epsilon": 60.0, "target": "y", "regime": "effect", "treatment": "t", "copies": 10}
    )
    drawn = Dag((("z", "t"), ("z", "y"), ("t", "y"), ("t", "days")))
    release(Project("missing", SCHEMA, plan, drawn), table()).save(out)
    return out


def complete(*columns: str) -> pd.DataFrame:
    out = pd.DataFrame({name: table().codes[name].astype(float) for name in columns})
    for name in columns:
        out[name] = out[name].where(out[name] < SCHEMA[name].values)
    return out.dropna()


def asked(folder, capsys, *question: str) -> list[dict]:
    assert main(["analyse", str(folder), *question, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.nightly
def test_answers_on_the_command_line_are_those_of_complete_rows(folder, capsys):
    both = complete("t", "y")
    risk = both.groupby("t")["y"].mean()
    (found,) = asked(folder, capsys, "--difference", "y", "t")
    assert found["value"] == pytest.approx(risk[1] - risk[0], abs=0.02)
    assert found["low"] < risk[1] - risk[0] < found["high"]
    assert found["observed"] == ["y", "t"]
    assert found["left_out"] == pytest.approx(1 - len(both) / 8000, abs=0.02)
    assert found["of"].endswith("of the rows where y and t are observed")
    by_t = found["missing"][0]
    assert (by_t["column"], by_t["by"]) == ("y", "t")
    assert [s["group"] for s in by_t["shares"]] == ["yes", "no"]
    assert [s["share"] for s in by_t["shares"]] == pytest.approx([0.5, 0.05], abs=0.04)
    assert by_t["differ"]
    assert "χ² test of equal shares" in found["warnings"][0]
    assert found["width_from"][-1] == "missing"
    (odds,) = asked(folder, capsys, "--outcome", "y", "--predictors", "t")
    assert odds["value"] == pytest.approx(risk[1] / (1 - risk[1]) / risk[0] * (1 - risk[0]), rel=0.15)
    crude, adjusted = asked(folder, capsys, "--effect", "t", "y")[:2]
    assert crude["observed"] == ["t", "y"]
    assert set(adjusted["observed"]) == {"t", "y", "z"}
    assert adjusted["value"] == pytest.approx(risk[1] - risk[0], abs=0.04)
    (gone,) = asked(folder, capsys, "--proportion", "y=", "--among", "t=yes")
    assert gone["value"] == pytest.approx(0.5, abs=0.04)
    assert gone["observed"] == ["t"]


def test_a_number_with_missing_cells_is_answered(folder, capsys):
    days = np.array([1.0, 3.0, 6.0])[complete("days")["days"].astype(int)]
    (found,) = asked(folder, capsys, "--mean", "days")
    assert found["value"] == pytest.approx(days.mean(), abs=0.2)
    assert found["of"] == "the mean of days, of the rows where days is observed"
    assert main(["analyse", str(folder), "--mean-difference", "days", "t"]) == 0
    assert "difference of means" in capsys.readouterr().out
    assert main(["analyse", str(folder), "--mean", "y"]) == 2
    assert "'y' has categories, so it has no mean or quantile" in capsys.readouterr().err
    assert main(["analyse", str(folder), "--outcome", "days", "--predictors", "t"]) == 0


def test_the_command_line_warns(folder, capsys):
    assert main(["analyse", str(folder), "--difference", "y", "t"]) == 0
    said = capsys.readouterr().out
    assert "The figures describe the rows where y and t are observed: about" in said
    assert "of the rows with t = yes" in said
    assert "Warning: The missing share of y differs by t" in said
    assert "may be shared" in said


def test_the_report_of_an_effect_says_what_is_missing(folder):
    facts = json.loads((folder / "release.json").read_text())["effect"]
    assert any("Adjusted figures describe the rows where t, z and y are observed" in line for line in facts["missing"])
    assert any("differs by t" in line for line in facts["warnings"])
    report = (folder / "report.html").read_text()
    assert "Adjusted figures describe the rows where" in report
    assert "<strong>Warning.</strong> The missing share of y differs by t" in report
    assert "The width of the interval comes mostly from" in report


def test_columns_that_cannot_be_missing_are_answered_as_before():
    whole = Schema(tuple(Column(c.name, c.kind, c.categories, c.edges) for c in SCHEMA.columns[:3]))
    rng = np.random.default_rng(1)
    codes = {name: rng.integers(0, 2, 3000) for name in whole.names}
    study = Study.of(release(Project("w", whole, Plan("mst", 3.0, copies=4)), Table(whole, codes, 3000)))
    (found,) = study.ask(figure_from_text.proportion(whole, "y=yes"))
    assert (found.observed, found.left_out, found.missing) == ((), 0.0, ())
    assert "observed" not in answer_text.sentence(found)
    assert "observed" not in answer_text.asked(whole, figure_from_text.proportion(whole, "y=yes"))
