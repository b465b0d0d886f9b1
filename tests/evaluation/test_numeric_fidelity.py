"""Comparison of numeric columns by their values."""

from __future__ import annotations

import numpy as np
import pytest

from espalier.core.evaluation.numeric_fidelity import SHARES, column_fidelity, correlations, train_and_test


def test_a_shift_is_its_wasserstein_distance():
    x = np.append(np.linspace(0, 10, 101), np.nan)
    told = column_fidelity("x", x, x + 2, (0.0, 20.0))
    assert told.wasserstein == pytest.approx(2)
    assert told.relative == pytest.approx(0.1)
    assert told.spread == pytest.approx(1)
    assert np.allclose(np.subtract(told.synthetic, told.real), 2)
    assert told.real[SHARES.index(0.5)] == 5
    with pytest.raises(ValueError, match="no numbers"):
        column_fidelity("x", x, np.array([np.nan]), (0, 1))


def test_rank_correlations_differ_by_what_was_turned_round():
    x = np.arange(50.0)
    told = correlations({"a": x, "b": x**2, "c": x * 0}, {"a": x, "b": -x, "c": x * 0}, ["a", "b", "c"])
    assert told.real[0, 1] == pytest.approx(1)
    assert told.largest_difference == pytest.approx(2)
    assert told.real[0, 2] == 0


def test_training_on_noise_predicts_nothing_and_on_the_truth_much():
    rng = np.random.default_rng(0)
    x = rng.random((400, 2))
    y = 10 * x[:, 0]
    good = train_and_test((x, y), (x[:100], y[:100]))
    bad = train_and_test((x, rng.permutation(y)), (x[:100], y[:100]))
    assert good.r2 > 0.99 > 0.3 > bad.r2
    assert good.mae < 0.5 < bad.mae


def test_evaluate_tells_numbers_and_a_regression_where_the_tables_hold_them():
    from espalier.core.evaluation import evaluate
    from espalier.core.project.file import Project
    from espalier.core.project.plan import Plan
    from espalier.core.project.schema import Column, Schema
    from espalier.core.tables.table import Table

    schema = Schema((Column("x", "numeric", edges=(0, 5, 10)), Column("y", "numeric", edges=(-1, 10, 25))))
    rng = np.random.default_rng(0)

    def rows(n):
        x = rng.uniform(0, 10, n)
        held = {"x": x, "y": 2 * x + rng.normal(0, 0.1, n)}
        return Table(schema, {"x": x > 5, "y": held["y"] > 10}, n, values=held)

    project = Project("n", schema, Plan("mst", 1.0, target="y"))
    told = evaluate(project, rows(300), rows(300), holdout=rows(200)).to_json()["numbers"]
    assert told["r2_synthetic"] > 0.95
    assert told["r2_real"] > 0.95
    assert told["largest_correlation_difference"] < 0.05
    assert all(c["relative"] < 0.1 for c in told["columns"])
    bare = Table(schema, rows(50).codes, 50)
    bare_facts = evaluate(project, bare, bare).to_json()
    assert bare_facts["numbers"] is None
    assert bare_facts["numbers_reason"] == "one of the tables contains only bins, no numbers"


def test_a_forest_on_real_rows_without_a_hold_out_is_judged_on_rows_each_tree_did_not_see():
    from espalier.core.evaluation.numeric_fidelity import numbers_of
    from espalier.core.project.file import Project
    from espalier.core.project.plan import Plan
    from espalier.core.project.schema import Column, Schema
    from espalier.core.tables.table import Table

    schema = Schema((Column("x", "numeric", edges=(0, 1)), Column("y", "numeric", edges=(-9, 9))))
    rng = np.random.default_rng(1)
    held = {"x": rng.random(300), "y": rng.normal(size=300)}
    table = Table(schema, {"x": np.zeros(300), "y": np.zeros(300)}, 300, values=held)
    told = numbers_of(Project("n", schema, Plan("mst", 1.0, target="y")), table, table, None)
    assert told is not None
    assert told["r2_real"] < 0.1 < 0.2 < told["r2_synthetic"], "pure noise can be predicted only from the same rows"


def test_a_release_and_the_same_read_back_give_the_same_figures(tmp_path):
    from espalier.core.analysis.loading import load_release
    from espalier.core.evaluation.numeric_fidelity import numbers_of
    from espalier.core.project.file import Project
    from espalier.core.project.plan import Plan
    from espalier.core.project.schema import Column, Schema
    from espalier.core.release.spend import release
    from espalier.core.tables.table import Table

    schema = Schema(
        (
            Column("price", "numeric", edges=(0, 0.5, 7, 10.125)),
            Column("nights", "numeric", edges=(0, 2, 8), integer=True, missing=True),
        )
    )
    rng = np.random.default_rng(0)
    held = {
        "price": rng.uniform(0, 10, 200),
        "nights": np.where(rng.random(200) < 0.2, np.nan, rng.integers(0, 9, 200)),
    }
    codes = {"price": np.searchsorted([0.5, 7], held["price"], side="right")}
    codes["nights"] = np.where(np.isnan(held["nights"]), 2, held["nights"] >= 2)
    table = Table(schema, codes, 200, values=held)
    project = Project("n", schema, Plan("mst", 1.0, 1e-6, target="price"))
    made = release(project, table)
    made.save(tmp_path / "out")
    told = numbers_of(project, table, made.synthetic, None)
    assert told is not None
    assert told["columns"][1]["synthetic"][2] == np.median([float(t) for t in made.table["nights"] if t])
    assert numbers_of(project, table, load_release(tmp_path / "out").table, None) == told


def test_quantiles_of_dates_are_told_as_dates():
    import json

    from espalier.core.evaluation.numeric_fidelity import numbers_of
    from espalier.core.project.file import Project
    from espalier.core.project.plan import Plan
    from espalier.core.project.schema_json import schema_from_json
    from espalier.core.tables.table import Table

    dates = {"from": "2023-01-01", "to": "2023-12-31", "by": "month"}
    schema = schema_from_json([{"name": "day", "kind": "date", "dates": dates, "missing": True}])
    days = np.append(schema["day"].edges[0] + np.arange(9.0), np.nan)
    table = Table(schema, {"day": np.where(np.isnan(days), 12, 0)}, 10, values={"day": days})
    told = numbers_of(Project("n", schema, Plan("mst", 1.0)), table, table, None)
    (column,) = json.loads(json.dumps(told))["columns"]
    assert column["real"] == ["2023-01-01", "2023-01-03", "2023-01-05", "2023-01-07", "2023-01-08"]
    assert column["wasserstein"] == 0
