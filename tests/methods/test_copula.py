"""The private regression on numbers as a method: plan, refusals, release and folder."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from espalier.core.analysis.loading import load_release
from espalier.core.errors import ProjectError, TableError
from espalier.core.graph.separations import Separation
from espalier.core.methods import frame_of
from espalier.core.planning.preview import preview
from espalier.core.privacy.accounting import total_up
from espalier.core.release.spend import release
from espalier.core.report.page import render
from tests.models.copula.test_fit import SCHEMA, project, table


@pytest.fixture(scope="module")
def made():
    return release(project(), table(6000))


def test_everything_is_spent_and_the_plan_showed_it(made):
    facts = made.to_json()
    assert total_up(x["rho"] for x in [*facts["measurements"], *facts["choices"]]) == facts["spent"]["rho"]
    assert 0.99999 * made.budget.rho < made.spending.rho <= made.budget.rho
    shown = preview(project(), 6000)
    assert [(line.what, line.rho, line.sigma) for line in shown.lines] == [
        (d.what, pytest.approx(d.rho, rel=1e-9), pytest.approx(d.scale, rel=1e-6)) for d in made.spending.draws
    ]
    assert facts["private"] is True
    assert {m["what"] for m in facts["measurements"] if m["kind"] == "sums"} > {"products of features and the target"}


def test_what_it_cannot_carry_is_said_before_spending():
    said = " ".join(preview(project(), 6000).warnings)
    assert "U-shaped" in said
    assert "smooth function" in said
    assert "Nominal columns" not in said, "there is one"


def test_its_table_holds_numbers_and_its_folder_comes_back(made, tmp_path):
    made.save(tmp_path / "out")
    back = load_release(tmp_path / "out")
    assert back.model.columns == SCHEMA.names
    for name in SCHEMA.names:
        assert back.table.codes[name].tolist() == np.asarray(made.codes[name]).tolist()
    assert len(set(made.table["b"])) > 1000, "not a handful of bins"
    assert all(-1 <= float(t) <= 2 for t in made.table["b"])
    assert all(t == str(int(t)) for t in made.table["a"])
    page = render(json.loads(made.files["release.json"]))
    assert "counts of the residual of y" in page


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"fair": True}, "has no fence"),
        ({"target": "c"}, "choose a numeric column as the target"),
        ({"target": None}, "choose a numeric column as the target"),
    ],
)
def test_what_it_cannot_keep_is_refused_with_the_reason(changed, says):
    with pytest.raises(ProjectError, match=says):
        frame_of(project(**changed))


def test_bounds_whose_squares_no_float_holds_are_refused_with_the_plan():
    """Previously, the fit of such columns was useless, because the first fit contained values that are not numbers."""
    for name in ("b", "y"):
        wide = replace(cast(Any, SCHEMA[name]), edges=(-1.0, 0.5, 1e151))
        schema = type(SCHEMA)(tuple(wide if c.name == name else c for c in SCHEMA.columns))
        with pytest.raises(ProjectError, match=f"{name!r} is declared up to 1e\\+151.*narrower bounds or another unit"):
            preview(replace(project(), schema=schema), 6000)


@pytest.mark.parametrize(
    "edges", [(0.0, 5e-324, 1e-323), (1.0, 1 + 2**-52, 1 + 2**-51), (2.0**53, 2.0**53 + 2, 2.0**54)]
)
def test_bins_that_floats_cannot_divide_are_refused_with_the_plan(edges):
    """Previously, this caused an error after everything had been paid for."""
    for name in ("b", "y"):
        narrow = replace(cast(Any, SCHEMA[name]), edges=edges)
        schema = type(SCHEMA)(tuple(narrow if c.name == name else c for c in SCHEMA.columns))
        with pytest.raises(ProjectError, match=f"{name!r} has a bin that is too narrow for floating-point numbers"):
            preview(replace(project(), schema=schema), 6000)


def test_a_listed_separation_is_refused_until_the_plan_says_that_it_is_without():
    listed = replace(project(), separations=(Separation(("y",), ("c",), ("a",)),))
    with pytest.raises(ProjectError, match="cannot keep a separation"):
        frame_of(listed)
    assert frame_of(replace(listed, plan=listed.plan.changed(fair=False))).separations == ()


def test_rows_without_numbers_are_refused_before_anything_is_drawn():
    codes = replace(table(300), values={})
    with pytest.raises(TableError, match="holds only the codes of"):
        release(project(), codes)


@pytest.mark.parametrize("unit", [{"neighbors": "add-remove"}, {"person": "who", "rows": 900, "rows_per_person": 2}])
def test_other_units_of_privacy(unit):
    rows = table(1000)
    if "person" in unit:
        rows = replace(rows, person=np.arange(1000) // 3, person_column="who")
    made = release(project(epsilon=3.0, **unit), rows)
    assert made.spending.rho <= made.budget.rho
    left = [d.sensitivity for d in made.spending.draws if d.pool == "residuals"]
    assert left == [pytest.approx(1.0 if "person" not in unit else 2 * math.sqrt(2))] * 3


def test_one_input_and_no_category():
    schema = type(SCHEMA)((SCHEMA["b"], SCHEMA["y"]))
    rows = table(800)
    small = type(rows)(schema, {n: rows.codes[n] for n in "by"}, 800, values={n: rows.values[n] for n in "by"})
    made = release(replace(project(), schema=schema), small)
    assert made.rows == 800
    assert 0.999 * made.budget.rho < made.spending.rho <= made.budget.rho


def test_a_plan_that_asks_for_causes_only_is_warned():
    with_causal = preview(project(regime="causal"), 500)
    assert any("depends only on its drawn causes" in warning for warning in with_causal.warnings)
    assert not any("drawn causes" in warning for warning in preview(project(), 500).warnings)
