"""Price elasticities, on rows with known ones, and the gain over a public table; both also on the command line."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from espalier.core.cli.evaluate import summary
from espalier.core.cli.main import main
from espalier.core.errors import ProjectError, TableError
from espalier.core.evaluation.marketing import gain_of, prices_of
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import Column, Schema
from espalier.core.release.spend import release
from espalier.core.tables.table import Table

SCHEMA = Schema(
    (
        Column("brand", "categorical", ("a", "b", "c")),
        Column("price", "numeric", edges=(0, 1, 2, 3, 5), decimals=3),
        Column("sold", "numeric", edges=(0, 5, 10, 20, 60, 400), decimals=2),
        Column("day", "numeric", edges=(0, 10)),
    )
)
TRUE = {"a": -1.5, "b": -2.5, "c": -0.5}


def table(rows=3000, seed=0, betas=TRUE):
    rng = np.random.default_rng(seed)
    brand, price = rng.integers(0, 3, rows), rng.uniform(1, 4, rows)
    slope = np.array(list(betas.values()))[brand]
    sold = np.clip(60 * price**slope * np.exp(0.2 * rng.standard_normal(rows)), 0, 400)
    held = {"price": price.round(3), "sold": sold.round(2), "day": rng.uniform(0, 10, rows)}
    codes = {n: np.searchsorted(SCHEMA[n].edges[1:-1], v, side="right") for n, v in held.items()}
    return Table(SCHEMA, {**codes, "brand": brand}, rows, values=held)


def earned(markup, beta=-2.5):
    """Profit with a cost of 1 and a mark-up, where sales are price^β."""
    return markup * (1 + markup) ** beta


def test_elasticities_are_those_that_the_rows_were_made_with():
    found = prices_of(table(), table(seed=1, betas={**TRUE, "b": -3.0}), "price", "sold", "brand")
    told = {g["group"]: g for g in found["groups"]}
    for brand, beta in TRUE.items():
        assert told[brand]["elasticity_real"] == pytest.approx(beta, abs=0.05)
    assert told["b"]["elasticity_synthetic"] == pytest.approx(-3.0, abs=0.05)
    assert told["b"]["markup_real"] == pytest.approx(1 / 1.5, rel=0.1)
    assert told["b"]["profit_ratio"] == pytest.approx(earned(1 / 2) / earned(1 / 1.5), abs=0.01)
    assert told["c"]["markup_real"] is None, "inelastic demand has no best mark-up"
    assert told["c"]["profit_ratio"] is None
    assert found["mapd"] == pytest.approx(0.5 / 2.5 / 3, abs=0.04)


def test_rows_beside_themselves_differ_in_nothing_and_empty_or_zero_sales_are_left_out():
    rows = table()
    rows.values["sold"][:100], rows.values["price"][100:150] = 0, np.nan
    found = prices_of(rows, rows, "price", "sold")
    assert found["mapd"] == 0
    assert [g["group"] for g in found["groups"]] == ["all rows"]
    assert found["groups"][0]["profit_ratio"] == pytest.approx(1)
    few = rows.take(np.arange(160))
    assert prices_of(rows, few, "price", "sold", "brand")["left_out"], "ten rows of three brands"
    one = replace(rows, values={**rows.values, "price": np.full(rows.rows, 2.0)})
    assert prices_of(rows, one, "price", "sold")["mapd"] is None, "a single price determines no slope"


@pytest.mark.parametrize(
    ("named", "says"),
    [
        (("brand", "sold", None), "price must be a numeric column of the table, not 'brand'"),
        (("price", "nothing", None), "sales must be a numeric column"),
        (("price", "price", None), "are both 'price'"),
        (("price", "sold", "day"), "per must be a column of categories"),
    ],
)
def test_columns_that_cannot_be_prices_are_refused(named, says):
    with pytest.raises(ProjectError, match=says):
        prices_of(table(50), table(50), *named)


@pytest.mark.nightly
def test_rows_like_the_public_ones_take_from_its_error_and_others_add_to_it():
    public = table(120, seed=5)
    alike = gain_of(SCHEMA, "sold", table(1500, seed=6), public)
    assert alike["rows"] == 120
    assert 0.02 < alike["delta_mse"] < 1
    assert alike["delta_mse"] == pytest.approx(1 - alike["mse_combined"] / alike["mse_public"])
    other = gain_of(SCHEMA, "sold", table(1500, seed=6, betas=dict.fromkeys("abc", 1.0)), public)
    assert other["delta_mse"] < 0
    with pytest.raises(TableError, match="at least 20 rows"):
        gain_of(SCHEMA, "sold", public, table(19))
    with pytest.raises(ProjectError, match="numeric column as the target"):
        gain_of(SCHEMA, "brand", public, public)


def test_the_command_line_tells_both_and_refuses_wrong_columns_first(tmp_path, capsys):
    project = Project("prices", SCHEMA, Plan.from_json({"method": "independent", "epsilon": 5.0, "target": "sold"}))
    rows = table(400)
    made = release(project, rows)
    made.save(tmp_path / "out")

    def write(name, held):
        texts = {c.name: c.write(held.values[c.name], held.codes[c.name]) if c.kind == "numeric" else c.decode(held.codes[c.name], np.random.default_rng()) for c in SCHEMA.columns}  # fmt: skip  # noqa: E501
        lines = [",".join(texts), *(",".join(map(str, line)) for line in zip(*texts.values(), strict=True))]
        (tmp_path / name).write_text("\n".join(lines))
        return str(tmp_path / name)

    given = ["evaluate", str(tmp_path / "out"), "--data", write("t.csv", rows)]
    asked = [*given, "--price", "price", "--per", "brand", "--public", write("p.csv", table(60, seed=4))]
    assert main([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["private"] is False
    assert found["prices"]["sales"] == "sold", "the plan's target"
    assert found["prices"]["mapd"] > 0.5, "columns released separately have no elasticity"
    assert found["public"]["rows"] == 60
    said = "\n".join(summary(found))
    assert "Price elasticity of sold" in said
    assert "(ΔMSE)" in said
    for wrong, says in ((["--price", "brand"], "not 'brand'"), (["--per", "brand"], "need --price")):
        assert main([*given, *wrong]) == 2
        assert says in capsys.readouterr().err
    release(project.with_plan(target="brand"), rows).save(tmp_path / "other")
    assert main(["evaluate", str(tmp_path / "other"), *given[2:], "--price", "price"]) == 2
    assert (
        "--price needs --sales COLUMN, the amounts sold at that price: the plan's target 'brand' is"
        in capsys.readouterr().err
    )
