"""Figures of a table equal those of statsmodels and, at night, of R; both programs estimate them independently."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from espalier.core.analysis import figure_from_text as ask
from espalier.core.analysis.bought_regressions import Purchase, bought_system, terms
from espalier.core.analysis.expected_regressions import Expected
from espalier.core.analysis.tally import Tally
from espalier.core.privacy.regression_sums import design_of
from espalier.core.privacy.unit import Unit
from espalier.core.project.regressions import BoughtRegression
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.table import Table

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
    """Coefficients and standard errors of ward b, ward c and age, by statsmodels."""
    code = {name: np.asarray(values) for name, values in table.codes.items()}
    kept = (code["ward"] < 3) & (code[outcome] < SCHEMA[outcome].values)
    y = code["sick"] if outcome == "sick" else np.asarray(ask.middles(SCHEMA["stay"]))[code["stay"]]
    x = pd.DataFrame({"b": code["ward"] == 1, "c": code["ward"] == 2, "age": 5 + 10 * code["age"]}).astype(float)
    found = sm.GLM(y[kept], sm.add_constant(x[kept]), family=family).fit(tol=1e-12)
    return found.params.to_numpy()[1:], found.bse.to_numpy()[1:]


IN_R = """
rows <- read.csv("rows.csv", stringsAsFactors = TRUE)
for (fit in list(glm(sick ~ ward + age, binomial, rows, control = glm.control(epsilon = 1e-14)),
                 glm(stay ~ ward + age, poisson, rows, control = glm.control(epsilon = 1e-14)),
                 lm(stay ~ ward + age, rows)))
  cat(sprintf("%.15g", coef(summary(fit))[-1, 1:2]), "\\n")
"""
"""R leaves out rows with a missing cell, as this package does."""


def fitted_by_r(table, folder):
    """Coefficients and standard errors by R: logistic, Poisson and linear, from the cells of a CSV file."""
    rscript = shutil.which("Rscript")
    if rscript is None:
        pytest.skip("R is not installed: apt-get install r-base-core")
    code = {name: np.asarray(values) for name, values in table.codes.items()}
    cells = {
        "ward": np.array(["a", "b", "c", "NA"])[code["ward"]],
        "age": 5 + 10 * code["age"],
        "sick": np.array(["0", "1", "NA"])[code["sick"]],
        "stay": np.asarray(ask.middles(SCHEMA["stay"]))[code["stay"]],
    }
    pd.DataFrame(cells).to_csv(folder / "rows.csv", index=False)
    (folder / "fit.R").write_text(IN_R, encoding="utf-8")
    done = subprocess.run([rscript, "--vanilla", "fit.R"], cwd=folder, capture_output=True, text=True, check=True)
    found = [np.array(line.split(), dtype=float).reshape(2, 3) for line in done.stdout.splitlines()]
    return dict(zip(("logistic", "poisson", "linear"), found, strict=True))


def bought_without_noise(table, family, outcome):
    """Coefficients of ward b, ward c and age from sums without noise."""
    regression = BoughtRegression("r", outcome, ("ward", "age"), family)
    design = design_of(regression, SCHEMA)
    seller = Expected(table, Unit(), float(table.rows))
    purchase = Purchase(seller, regression, regression.target(SCHEMA)[0], design, 1e9, [])
    before, system = bought_system(purchase)
    found = dict(terms(design, SCHEMA))
    unit = design.half if family == "linear" else 1.0
    contrasts = [found[name] for name in ("ward=b", "ward=c", "age")]
    return [unit * system.interval(c)[0] + float(c @ before) for c in contrasts]


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
    """Coefficients equal those of the rows, except for rounding to whole numbers: at most a twentieth of a standard
    error.
    """
    table = rows()
    params, errors = fitted(table, getattr(sm.families, model)(), outcome.partition("=")[0])
    values = bought_without_noise(table, family, outcome)
    assert (np.abs(values - params) < 0.05 * errors).all()


@pytest.mark.nightly
def test_regressions_are_those_of_r(tmp_path):
    """Figures of the rows agree with ``glm`` and ``lm``; bought ones are within a twentieth of a standard error."""
    table = rows()
    known = fitted_by_r(table, tmp_path)
    for family, outcome in (("logistic", "sick=yes"), ("linear", "stay")):
        figure = ask.regression(SCHEMA, outcome, ["ward", "age"])
        values, variances = figure.estimate(Tally.of_rows(table.codes, SCHEMA.sizes, figure.columns))
        params, errors = known[family]
        assert values == pytest.approx(params, abs=1e-7)
        assert np.sqrt(variances) == pytest.approx(errors, rel=1e-6)
    for family, outcome in (("linear", "stay"), ("logistic", "sick=yes"), ("poisson", "stay")):
        params, errors = known[family]
        values = bought_without_noise(table, family, outcome)
        assert (np.abs(values - params) < 0.05 * errors).all(), family
