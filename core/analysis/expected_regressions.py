"""Half-width that a planned regression can promise, derived only from declared assumptions and public facts.

The assumptions describe a table: each column cuts a normal variable at its assumed shares, and the variables have the
assumed correlations. The regression is bought from that table `DRAWS` times, with noise of the known size. The promise
is the half-width that 9 in 10 of these intervals do not exceed, multiplied by a `MARGIN`, because a table has features
that shares and correlations do not describe.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.analysis.bought_regressions import INTERCEPT, Purchase, bought_system, terms
from espalier.core.analysis.dividing import MOST_RHO
from espalier.core.errors import ProjectError
from espalier.core.privacy.draws import SumMeasurement
from espalier.core.privacy.regression_sums import Design, design_of
from espalier.core.privacy.sums import SumRecipe
from espalier.core.privacy.unit import Unit
from espalier.core.project.planned_regressions import PlannedRegression
from espalier.core.project.regressions import BoughtRegression
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.table import Table

FloatArray = NDArray[np.float64]
ROWS = 2**12
"""Number of rows of the assumed table."""
DRAWS = 30
WITHIN = 0.9
"""Share of the releases that stay within a promise if the assumptions hold."""
MOST_SPREAD = 1.25
"""No half-width is promised if 1 in 10 releases would exceed this multiple of the median half-width."""
MARGIN = {"linear": 1.15, "logistic": 1.3, "poisson": 1.3}
"""Margin for the features of a table that shares and correlations do not describe. Like `POWER`, it was chosen on six
regressions, and raised after an evaluation on regressions of three other populations. `benchmarks.planned_widths`
reports results for further regressions of these three populations that had not been run before.
"""
POWER = 0.1
"""Exponent with which the margin grows with the ratio of the width to the width without noise, because noise magnifies
errors in the assumptions.
"""
CAUTION = 1.2815515655446004
"""Number of standard deviations allowed for an unfavourable sample of rows."""


@dataclass(frozen=True)
class Expected:
    """Sums of an assumed table, scaled to ``size`` rows: with noise if there is an ``rng``, else without."""

    table: Table
    unit: Unit
    size: float
    rng: np.random.Generator | None = None

    @property
    def rows(self) -> int | None:
        """Number of rows, if it is public."""
        return round(self.size) if self.unit.neighbors == "replace-one" else None

    def measure_sums(self, recipe: SumRecipe, rho: float, pool: str = "") -> SumMeasurement:
        """Return the sums, as a release would measure them."""
        sensitivity = recipe.sensitivity(self.unit) / recipe.units
        sigma = sensitivity / math.sqrt(2 * rho)
        values = recipe.sums(self.table).astype(np.float64) * (self.size / self.table.rows / recipe.units)
        if self.rng is not None:
            values += sigma * self.rng.standard_normal(values.shape)
        return SumMeasurement(recipe.what, values, sigma, sensitivity, rho, pool)


@dataclass(frozen=True, eq=False)
class Outlook:
    """A planned regression of an assumed table, and the coefficient of interest."""

    regression: BoughtRegression
    design: Design
    outcome: Column
    contrast: FloatArray
    table: Table
    unit: Unit
    rows: float
    unlucky: float
    """Factor by which an interval may widen because the rows are only a sample."""

    def half_width(self, rho: float) -> float:
        """Return the promised half-width; infinite if noise may leave the interval unbounded or make its width
        unpredictable.
        """
        promise = self._usual(rho)
        if not math.isfinite(promise):
            return math.inf
        more: float = max(promise / self.without_noise, 1.0) ** POWER
        return MARGIN[self.regression.family] * self.unlucky * promise * more

    @cached_property
    def without_noise(self) -> float:
        """Half-width without noise, from the number of rows alone."""
        return self._usual(MOST_RHO)

    def _usual(self, rho: float) -> float:
        reached = sorted(self.reached(rho))
        promise, usual = reached[math.ceil(WITHIN * DRAWS) - 1], reached[DRAWS // 2]
        return promise if promise <= MOST_SPREAD * usual else math.inf

    def reached(self, rho: float) -> list[float]:
        """Return the half-widths of releases of the assumed table: the whole purchase, with noise of the known size."""
        unit = self.design.half if self.regression.family == "linear" else 1.0
        found = []
        for draw in range(DRAWS):
            seller = Expected(self.table, self.unit, self.rows, np.random.default_rng([31, draw]))
            purchase = Purchase(seller, self.regression, self.outcome, self.design, rho, [])
            system = replace(bought_system(purchase)[1], rows_per_person=self.unit.rows_per_person)
            _, low, high = system.interval(self.contrast) if system.definite else (0.0, None, None)
            found.append(math.inf if low is None or high is None else unit * (high - low) / 2)
        return found


@lru_cache(maxsize=64)
def outlook(one: PlannedRegression, schema: Schema, unit: Unit, rows: float) -> Outlook:
    """Return the outlook of a planned regression; raises :class:`ProjectError` for an unknown term."""
    table = assumed_table(one, schema)
    design = design_of(one.regression, schema)
    contrast = contrast_of(one, design, schema)
    categories = [n for n in one.columns(schema) if schema[n].kind != "numeric"]
    rarest = min((int(np.bincount(table.codes[n], minlength=schema[n].values).min()) for n in categories), default=ROWS)
    unlucky = 1 + CAUTION / (2 * math.sqrt(max(rarest * rows / ROWS, 1.0)))
    return Outlook(one.regression, design, one.regression.target(schema)[0], contrast, table, unit, rows, unlucky)


def contrast_of(one: PlannedRegression, design: Design, schema: Schema) -> FloatArray:
    """Return the contrast of the coefficient of interest; raises :class:`ProjectError`."""
    known = _known(design, schema)
    term = one.term or next(iter(known))
    if term not in known:
        raise ProjectError(
            f"analysis {one.name!r}: there is no coefficient {term!r}; the coefficients are {', '.join(known)}",
            key="analyses",
        )
    return known[term]


def coefficients(regression: BoughtRegression, schema: Schema) -> list[str]:
    """Return the names of a regression's coefficients, without the intercept."""
    return list(_known(design_of(regression, schema), schema))


def _known(design: Design, schema: Schema) -> dict[str, FloatArray]:
    return {term: contrast for term, contrast in terms(design, schema) if term != INTERCEPT}


def assumed_table(one: PlannedRegression, schema: Schema) -> Table:
    """Return a table of `ROWS` rows with exactly the assumed shares and approximately the assumed correlations."""
    names = one.columns(schema)
    shares = dict(one.assumed.shares)
    means, spreads = dict(one.assumed.means), dict(one.assumed.spreads)
    normal = np.random.default_rng(31).standard_normal((ROWS, len(names)))
    values, vectors = np.linalg.eigh(np.cov(normal.T).reshape(len(names), -1))
    normal = (normal - normal.mean(axis=0)) @ (vectors / np.sqrt(values)) @ vectors.T
    normal = normal @ np.linalg.cholesky(one.correlation(schema)).T
    codes: dict[str, NDArray[Any]] = {}
    for i, name in enumerate(names):
        places = (np.argsort(np.argsort(normal[:, i])) + 0.5) / ROWS
        parts = _shares(schema[name], shares.get(name), means.get(name), spreads.get(name))
        codes[name] = np.searchsorted(np.cumsum(parts)[:-1], places, side="right").astype(np.int64)
    return Table(Schema(tuple(schema[name] for name in names)), codes, ROWS)


def _shares(column: Column, given: tuple[float, ...] | None, mean: float | None, spread: float | None) -> FloatArray:
    """Return the assumed shares of a column's values, which add to 1."""
    if given is not None:
        return np.asarray(np.array(given) / math.fsum(given))
    if column.kind != "numeric":
        return np.full(column.values, 1 / column.values)
    edges = np.asarray(column.edges, dtype=np.float64)
    if mean is None and spread is None:
        return np.asarray(np.diff(edges) / (edges[-1] - edges[0]))
    from scipy.stats import norm

    mean = (edges[0] + edges[-1]) / 2 if mean is None else mean
    spread = (edges[-1] - edges[0]) / math.sqrt(12) if spread is None else spread
    parts = np.diff(norm.cdf(edges, mean, spread)) + 1e-9
    return np.asarray(parts / parts.sum())
