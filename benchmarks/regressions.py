"""Bought regressions on six populations: coverage, width and bias. `python -m benchmarks.conclusions regressions`

Each draw takes rows with replacement from a fully known population, buys the sums with OpenDP noise, and compares each
coefficient with the population's own fit. ε = 1, δ = 1e-9, replace-one. The width is the interval's width divided by
the width of the interval from the same number of real rows. An unbounded interval counts as infinitely wide and as not
covering. ``bias`` is the largest mean error of any coefficient, as a share of half the interval.

Shares of the budget, weights and the residual limit were chosen on other regressions of adult, compas, diabetes and
insurance, and on two generated tables. The six tables here were first run after the settings were fixed.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks import adult
from espalier.core.analysis.bought_regressions import regressed
from espalier.core.privacy.accounting import Budget, rho_of
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.unit import Unit
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.regressions import BoughtRegression
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.table import Table

DATA = adult.DATA.parent
EPSILON, DELTA = 1.0, 1e-9
FloatArray = NDArray[np.float64]
Codes = Mapping[str, NDArray[np.int64]]


@dataclass(frozen=True)
class Population:
    """All rows as codes, the number of rows of a draw, and the regressions on them."""

    schema: Schema
    codes: Codes
    n: int
    asked: tuple[BoughtRegression, ...]


def _numbers(name: str, values: Any, edges: Any) -> tuple[Column, NDArray[np.int64]]:
    column = Column(name, "numeric", edges=tuple(float(e) for e in edges))
    return column, column.bins_of(np.asarray(values, dtype=float))


def _texts(name: str, values: pd.Series[Any], kept: tuple[str, ...]) -> tuple[Column, NDArray[np.int64]]:
    """Return categories. All categories that are not ``kept`` become the last category."""
    place = {value: i for i, value in enumerate(kept)}
    return Column(name, "categorical", kept), values.map(lambda v: place.get(v, len(kept) - 1)).to_numpy()


def _population(columns: list[tuple[Column, Any]], n: int, *asked: tuple[str, ...]) -> Population:
    schema = Schema(tuple(column for column, _ in columns))
    codes = {column.name: np.asarray(values, dtype=np.int64) for column, values in columns}
    families = {"linear": "linear", "logistic": "logistic", "robust": "linear"}
    listed = []
    for kind, outcome, *on in asked:
        data = {"name": kind, "outcome": outcome, "on": on, "family": families[kind], "robust": kind == "robust"}
        listed.append(BoughtRegression.from_json(data))
    return Population(schema, codes, n, tuple(listed))


def _read(name: str) -> tuple[pd.DataFrame, Callable[[str], Any]]:
    frame = pd.read_csv(DATA / name, dtype=str, keep_default_na=False)
    return frame, lambda column: pd.to_numeric(frame[column])


def of_adult() -> Population:
    """Return the population for years of education, and for being married."""
    frame, number = _read("adult.csv.gz")
    married = frame["marital-status"].str.startswith("Married").map({True: "yes", False: "no"})
    columns = [
        _numbers("age", number("age"), range(15, 80, 5)),
        _numbers("education", number("education-num"), np.arange(4.5, 17)),
        _numbers("hours", number("hours-per-week"), range(10, 75, 5)),
        _texts("sex", frame["sex"], ("Female", "Male")),
        _texts("married", married, ("no", "yes")),
        _texts("race", frame["race"], ("White", "Black", "Other")),
    ]
    linear = ("linear", "education", "age", "hours", "sex", "race")
    return _population(columns, 20_000, linear, ("logistic", "married=yes", "age", "education", "sex"))


def of_compas() -> Population:
    """Return the population for age, and for the degree of the charge."""
    frame, number = _read("compas.csv.gz")
    columns = [
        _numbers("age", number("age"), range(15, 75, 5)),
        _numbers("priors", number("priors_count"), np.arange(-0.5, 16)),
        _texts("sex", frame["sex"], ("Female", "Male")),
        _texts("race", frame["race"], ("African-American", "Caucasian", "Other")),
        _texts("charge", frame["c_charge_degree"], ("M", "F")),
    ]
    linear = ("linear", "age", "priors", "sex", "race", "charge")
    return _population(columns, 8_000, linear, ("logistic", "charge=F", "age", "priors", "sex"))


def of_diabetes() -> Population:
    """Return the population for the number of medications, and for a change of medication."""
    frame, number = _read("diabetes_readmission_20k.csv.gz")
    age = pd.to_numeric(frame["age"].str.extract(r"(\d+)")[0]) + 5
    columns = [
        _numbers("age", age, range(20, 101, 10)),
        _numbers("los", number("time_in_hospital"), np.arange(0.5, 15)),
        _numbers("medications", number("num_medications"), range(0, 41, 2)),
        _numbers("diagnoses", number("number_diagnoses"), np.arange(0.5, 10)),
        _texts("insulin", frame["insulin"], ("No", "Steady", "Up")),
        _texts("change", frame["change"], ("No", "Ch")),
        _texts("gender", frame["gender"], ("Female", "Male")),
    ]
    linear = ("linear", "medications", "los", "diagnoses", "insulin", "gender")
    robust = ("robust", "medications", "los", "diagnoses", "gender")
    return _population(columns, 20_000, linear, ("logistic", "change=Ch", "age", "los", "gender"), robust)


def of_insurance() -> Population:
    """Return the population for body mass index, and for smoking."""
    frame, number = _read("insurance.csv")
    columns = [
        _numbers("age", number("age"), range(15, 66, 5)),
        _numbers("bmi", number("bmi"), range(18, 47, 2)),
        _numbers("children", number("children"), np.arange(-0.5, 5)),
        _texts("sex", frame["sex"], ("female", "male")),
        _texts("smoker", frame["smoker"], ("no", "yes")),
        _texts("region", frame["region"], ("northeast", "northwest", "southeast", "southwest")),
    ]
    linear = ("linear", "bmi", "age", "sex", "region")
    return _population(columns, 8_000, linear, ("logistic", "smoker=yes", "age", "children", "sex"))


def of_lucas() -> Population:
    """Return the population for lung cancer by causes and effects, all with two values."""
    frame, _ = _read("lucas0.csv")
    names = ("Smoking", "Genetics", "Allergy", "Fatigue", "Lung_cancer")
    columns = [_texts(name, frame[name], ("0", "1")) for name in names]
    linear = ("linear", "Fatigue=1", "Smoking", "Genetics", "Allergy", "Lung_cancer")
    return _population(columns, 8_000, linear, ("logistic", "Lung_cancer=1", "Smoking", "Genetics", "Allergy"))


def generated() -> Population:
    """Return the population for a waiting time with a spread that grows with age, and for a rare event (4 %)."""
    rng, n = np.random.default_rng(2031), 400_000
    age, sick = rng.integers(0, 12, n), rng.random(n) < 0.35
    clinic = rng.choice(3, n, p=(0.5, 0.3, 0.2))
    wait = 5 + 0.7 * age + 3 * sick + np.array([0, 1.0, 2.0])[clinic] + rng.normal(size=n) * (1 + 0.5 * age)
    event = rng.random(n) < 1 / (1 + np.exp(4.2 - 0.1 * age - 0.7 * sick))
    columns = [
        _numbers("age", 5.0 * age + 22, range(20, 81, 5)),
        _numbers("wait", np.clip(wait, -10, 35), range(-10, 37, 2)),
        (Column("sick", "categorical", ("no", "yes")), sick),
        (Column("clinic", "categorical", tuple("abc")), clinic),
        (Column("event", "categorical", ("no", "yes")), event),
    ]
    on = ("age", "sick", "clinic")
    return _population(columns, 8_000, ("linear", "wait", *on), ("logistic", "event=yes", *on), ("robust", "wait", *on))


POPULATIONS: dict[str, Callable[[], Population]] = {
    "adult": of_adult,
    "compas": of_compas,
    "diabetes": of_diabetes,
    "insurance": of_insurance,
    "lucas": of_lucas,
    "generated": generated,
}


def usual(population: Population, asked: BoughtRegression, codes: Codes) -> tuple[FloatArray, FloatArray]:
    """Return the design matrix with treatment coding, and the outcome, from codes."""
    schema, parts = population.schema, [np.ones((len(codes[asked.on[0]]), 1))]
    for name in asked.on:
        column = schema[name]
        if column.kind == "numeric":
            parts.append(column.middles[codes[name]][:, None])
        else:
            parts.append((codes[name][:, None] == np.arange(1, column.values)).astype(float))
    column, event = asked.target(schema)
    y = column.middles[codes[column.name]] if event is None else (codes[column.name] == event).astype(float)
    return np.hstack(parts), y


def fitted(x: FloatArray, y: FloatArray, family: str, robust: bool) -> tuple[FloatArray, FloatArray]:
    """Return the coefficients of a fit, and the variance of each for one row (to be divided by the number of rows)."""
    if family == "linear":
        beta = np.linalg.lstsq(x, y, rcond=None)[0]
        weights, left = np.ones(len(y)), y - x @ beta
    else:
        beta = np.zeros(x.shape[1])
        for _ in range(50):
            mean = 1 / (1 + np.exp(-x @ beta))
            weights = mean * (1 - mean)
            beta = beta + np.linalg.solve((x * weights[:, None]).T @ x, x.T @ (y - mean))
        left = y - mean
    bread = np.linalg.inv((x * weights[:, None]).T @ x / len(y))
    scale = (left**2).mean() if family == "linear" else 1.0
    meat = (x * (left**2)[:, None]).T @ x / len(y)
    variance = np.diag(bread @ meat @ bread) if robust else scale * np.diag(bread)
    return np.asarray(beta, np.float64), np.asarray(variance, np.float64)


def reference(x: FloatArray, y: FloatArray, asked: BoughtRegression, beta: FloatArray) -> str:
    """Return the largest difference from statsmodels, or why there is none."""
    try:
        import statsmodels.api as sm
    except ImportError:
        return "statsmodels is not installed"
    family = sm.families.Gaussian() if asked.family == "linear" else sm.families.Binomial()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = sm.GLM(y, x, family=family).fit().params
    return f"statsmodels' glm differs by {np.abs(found - beta).max():.1e}"


def examine(name: str, asked: BoughtRegression, share: float, draws: int) -> dict[str, Any]:
    """Return all draws of one regression, bought with ``share`` of the budget."""
    population = POPULATIONS[name]()
    x, y = usual(population, asked, population.codes)
    beta, variance = fitted(x, y, asked.family, asked.robust)
    real = 2 * 1.96 * np.sqrt(variance / population.n)
    plan = Plan("independent", EPSILON, DELTA, regressions=(asked,), regression_share=0.9)
    project = Project("benchmark", population.schema, plan)
    whole = Budget(EPSILON, DELTA, rho_of(EPSILON, DELTA) * share / 0.9)
    rng = np.random.default_rng([31, round(100 * share)])
    lines = []
    for _ in range(draws):
        picked = rng.integers(0, len(y), population.n)
        table = Table(population.schema, {c: v[picked] for c, v in population.codes.items()}, population.n)
        curator = PrivateCurator(table, Unit(), whole, 10**6)
        with regressed(curator, project) as found:
            lines.append([(c["value"], c["low"], c["high"]) for c in found[0].facts(population.schema)["coefficients"]])
    made = np.array(lines, dtype=float)[:, 1:]  # without the intercept
    value, low, high = made[..., 0], made[..., 1], made[..., 2]
    bounded = np.isfinite(low)
    holds = (low <= beta[1:]) & (beta[1:] <= high)
    width = np.where(bounded, (high - low) / real[1:], np.inf)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        halves = np.nanmedian(np.where(bounded, (high - low) / 2, np.nan), axis=0)
        bias = np.nanmean(np.where(bounded, value - beta[1:], np.nan), axis=0) / halves
    shares = [h[b].mean() for h, b in zip(holds, bounded, strict=True) if b.any()]
    return {
        "coverage": float(holds[bounded].mean()) if bounded.any() else math.nan,
        "error": float(np.std(shares, ddof=1) / math.sqrt(len(shares))) if len(shares) > 1 else math.nan,
        "bounded": float(bounded.mean()),
        "widths": np.median(width, axis=0).tolist(),
        "bias": float(np.nanmax(np.abs(bias))) if bounded.any() else math.nan,
        "reference": reference(x, y, asked, beta),
    }


def show(draws: int) -> None:
    """Print every regression, with the whole budget and with a fifth of it."""
    for share in (1.0, 0.2):
        print(f"share {share:g}: {draws} draws each, ε = {EPSILON:g}, δ = {DELTA:g}, replace-one")
        widths: dict[str, list[float]] = {}
        covered: dict[str, list[float]] = {}
        for name in POPULATIONS:
            for asked in POPULATIONS[name]().asked:
                found = examine(name, asked, share, draws)
                widths.setdefault(asked.name, []).extend(found["widths"])
                covered.setdefault(asked.name, []).append(found["coverage"])
                print(
                    f"  {name:10} {asked.name:9} coverage {100 * found['coverage']:5.1f} ± {100 * found['error']:.1f} %"
                    f"  bounded {100 * found['bounded']:5.1f} %  width × {np.median(found['widths']):5.2f}"
                    f"  bias {found['bias']:.2f}   {found['reference']}",
                    flush=True,
                )
        for kind, every in widths.items():
            print(
                f"  {kind}: coverage {100 * float(np.mean(covered[kind])):.1f} %, "
                f"median width of {len(every)} coefficients × {np.median(every):.2f}",
                flush=True,
            )
