"""Figures of a table are those of statsmodels, which estimates them independently. R checks the scripts at night."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from espalier.core.analysis import figure_from_text as ask
from espalier.core.analysis.bought_regressions import Purchase, bought_system, terms
from espalier.core.analysis.expected_regressions import Expected
from espalier.core.analysis.tally import Tally
from espalier.core.privacy.regression_sums import design_of
from espalier.core.privacy.unit import Unit
from espalier.core.project.regressions import BoughtRegression
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.table import Table

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    sm = pytest.importorskip("statsmodels.api")

SCHEMA = Schema(
    (
        Column("ward", "categorical", tuple("abc"), missing=True),
        Column("age", "numeric", edges=tuple(range(0, 101, 10))),
        Column("sick", "categorical", ("no", "yes"), missing=True),
        Column("stay", "numeric", edges=tuple(range(0, 31, 2))),
    )
)


def rows(n=4000):
    """Rows with missing cells in a predictor and in the outcome."""
    rng = np.random.default_rng(8)
    ward, age = rng.choice(4, n, p=(0.4, 0.3, 0.2, 0.1)), rng.integers(0, 10, n)
    sick = (rng.random(n) < 1 / (1 + np.exp(2 - 0.3 * age - 0.4 * (ward == 1)))).astype(int)
    sick[rng.random(n) < 0.1] = 2
    stay = np.clip(rng.poisson(2 + 0.4 * age), 0, 14)
    return Table(SCHEMA, {"ward": ward, "age": age, "sick": sick, "stay": stay}, n)


def fitted(table, family, outcome):
    """Coefficients and standard errors of ward b, ward c and age."""
    code = {name: np.asarray(values) for name, values in table.codes.items()}
    kept = (code["ward"] < 3) & (code[outcome] < SCHEMA[outcome].values)
    y = code["sick"] if outcome == "sick" else np.asarray(ask.middles(SCHEMA["stay"]))[code["stay"]]
    x = pd.DataFrame({"b": code["ward"] == 1, "c": code["ward"] == 2, "age": 5 + 10 * code["age"]}).astype(float)
    found = sm.GLM(y[kept], sm.add_constant(x[kept]), family=family).fit(tol=1e-12)
    return found.params.to_numpy()[1:], found.bse.to_numpy()[1:]


@pytest.mark.parametrize(("outcome", "asked"), [("sick", "sick=yes"), ("stay", "stay")])
def test_regressions_of_rows_with_missing_cells(outcome, asked):
    table = rows()
    figure = ask.regression(SCHEMA, asked, ["ward", "age"])
    values, variances = figure.estimate(Tally.of_rows(table.codes, SCHEMA.sizes, figure.columns))
    family = sm.families.Binomial() if outcome == "sick" else sm.families.Gaussian()
    params, errors = fitted(table, family, outcome)
    assert values == pytest.approx(params, abs=1e-7)
    assert np.sqrt(variances) == pytest.approx(errors, rel=1e-6)


@pytest.mark.parametrize(
    ("family", "outcome", "model"),
    [("linear", "stay", "Gaussian"), ("logistic", "sick=yes", "Binomial"), ("poisson", "stay", "Poisson")],
)
def test_bought_regressions_without_noise(family, outcome, model):
    """Coefficients are those of the rows but for rounding to whole numbers, in thousandths of a standard error."""
    table = rows()
    regression = BoughtRegression("r", outcome, ("ward", "age"), family)
    design = design_of(regression, SCHEMA)
    seller = Expected(table, Unit(), float(table.rows))
    purchase = Purchase(seller, regression, regression.target(SCHEMA)[0], design, 1e9, [])
    before, system = bought_system(purchase)
    params, errors = fitted(table, getattr(sm.families, model)(), outcome.partition("=")[0])
    found = dict(terms(design, SCHEMA))
    unit = design.half if family == "linear" else 1.0
    for name, value, error in zip(("ward=b", "ward=c", "age"), params, errors, strict=True):
        contrast = found[name]
        estimate = unit * system.interval(contrast)[0] + float(contrast @ before)
        assert estimate == pytest.approx(value, abs=0.05 * error), name
