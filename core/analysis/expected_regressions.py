"""The half-width that a planned regression can promise, from declared assumptions and public facts alone.

The assumptions describe a table: each column cuts a normal variable at its assumed shares, and the variables have the
assumed correlations. The regression is bought from that table without noise, which gives its expected system of
equations. Noise of the known size is then added `DRAWS` times. The promise is what 9 of 10 of these intervals reach,
times a `MARGIN`, because shares and correlations do not describe a table completely.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.analysis.bought_regressions import INTERCEPT, Purchase, System, bought_system, terms
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
ROWS = 2**13
"""Rows of the assumed table."""
DRAWS = 30
WITHIN = 0.9
"""Share of the releases that stay within a promise if the assumptions hold."""
MARGIN = {"linear": 1.2, "logistic": 1.4, "poisson": 1.4}
"""Chosen on twelve regressions of `benchmarks.planned_widths` at ε = 0.5, 1 and 3: without it, 46 % stayed within."""
CAUTION = 1.2815515655446004
"""Standard deviations by which the sample of rows may be unlucky."""


@dataclass(frozen=True)
class Expected:
    """Sums of an assumed table of ``rows`` rows, without noise, with the scale that the noise would have."""

    table: Table
    unit: Unit
    size: float

    @property
    def rows(self) -> int | None:
        """Number of rows where it is public."""
        return round(self.size) if self.unit.neighbors == "replace-one" else None

    def measure_sums(self, recipe: SumRecipe, rho: float, pool: str = "") -> SumMeasurement:
        """Return the expected sums."""
        sensitivity = recipe.sensitivity(self.unit) / recipe.units
        values = recipe.sums(self.table).astype(np.float64) * (self.size / self.table.rows / recipe.units)
        return SumMeasurement(recipe.what, values, sensitivity / math.sqrt(2 * rho), sensitivity, rho, pool)


@dataclass(frozen=True, eq=False)
class Outlook:
    """The expected system at ρ = 1, and the coefficient of interest."""

    system: System
    contrast: FloatArray
    unit: float
    unlucky: float

    def half_width(self, rho: float) -> float:
        """Return the promised half-width; infinite if noise may leave the interval without bounds."""
        rng, found = np.random.default_rng(31), []
        scaled = _scaled(self.system, rho)
        for _ in range(DRAWS):
            noise = rng.standard_normal(scaled.left_noise.shape[-1])
            drawn = replace(
                scaled,
                left=scaled.left + scaled.left_noise @ noise,
                right=scaled.right + scaled.right_noise @ noise,
            )
            _, low, high = drawn.interval(self.contrast) if drawn.definite else (0.0, None, None)
            found.append(math.inf if low is None or high is None else (high - low) / 2)
        return self.unit * self.unlucky * sorted(found)[math.ceil(WITHIN * DRAWS) - 1]


def _scaled(system: System, rho: float) -> System:
    by = 1 / math.sqrt(rho)
    return replace(
        system,
        left_noise=by * system.left_noise,
        right_noise=by * system.right_noise,
        spread_noise=None if system.spread_noise is None else by * system.spread_noise,
    )


@lru_cache(maxsize=64)
def outlook(one: PlannedRegression, schema: Schema, unit: Unit, rows: float) -> Outlook:
    """Return the expected system of a planned regression; raises :class:`ProjectError` for an unknown term."""
    table = assumed_table(one, schema)
    design = design_of(one.regression, schema)
    contrast = contrast_of(one, design, schema)
    purchase = Purchase(Expected(table, unit, rows), one.regression, one.regression.target(schema)[0], design, 1.0, [])
    system = replace(bought_system(purchase)[1], rows_per_person=unit.rows_per_person)
    categories = [n for n in one.columns(schema) if schema[n].kind != "numeric"]
    rarest = min((int(np.bincount(table.codes[n], minlength=schema[n].values).min()) for n in categories), default=ROWS)
    unlucky = MARGIN[one.regression.family] * (1 + CAUTION / (2 * math.sqrt(max(rarest * rows / ROWS, 1.0))))
    return Outlook(system, contrast, design.half if one.regression.family == "linear" else 1.0, unlucky)


def contrast_of(one: PlannedRegression, design: Design, schema: Schema) -> FloatArray:
    """Return the contrast of the coefficient of interest; raises :class:`ProjectError`."""
    known = _known(design, schema)
    term = one.term or next(iter(known))
    if term not in known:
        raise ProjectError(
            f"analysis {one.name!r}: there is no coefficient {term!r}; there are {', '.join(known)}", key="analyses"
        )
    return known[term]


def coefficients(regression: BoughtRegression, schema: Schema) -> list[str]:
    """Return the names of a regression's coefficients, without the intercept."""
    return list(_known(design_of(regression, schema), schema))


def _known(design: Design, schema: Schema) -> dict[str, FloatArray]:
    return {term: contrast for term, contrast in terms(design, schema) if term != INTERCEPT}


def assumed_table(one: PlannedRegression, schema: Schema) -> Table:
    """Return a table of `ROWS` rows with the assumed shares, exactly, and the assumed correlations, nearly."""
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
