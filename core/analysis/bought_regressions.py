"""Regressions from bought sums. Intervals of the coefficients follow from the noise, without copies. Every family ends
with one linear system A·γ = b of noisy sums. For a linear regression A and b are the sums of products of the scores.
For the others, γ is the last Newton step of maximum likelihood: A is the curvature and b the gradient at an earlier,
released fit, whose noise therefore does not matter.

An interval contains every value θ of a coefficient for which the score of the profile is within 1.96 standard
deviations of 0 (Fieller 1954). The interval covers the known noise of A and b, and the sampling error. It is bounded
only if the noise is too small to cancel the coefficient's own information. A system that is not positive definite
yields no number.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from espalier.core.privacy.curator import Curator
from espalier.core.privacy.draws import SumMeasurement
from espalier.core.privacy.regression_sums import (
    COEFFICIENT,
    GRID,
    ONE,
    OTHER,
    OUTCOME,
    STEEPEST,
    Block,
    Design,
    Fit,
    Part,
    RegressionSums,
    corners,
    design_of,
    whole,
)
from espalier.core.privacy.sums import SumRecipe
from espalier.core.project.file import Project
from espalier.core.project.regressions import BoughtRegression, centre_and_half
from espalier.core.project.schema import Column, Schema

POOL = "regressions"
LEVEL = 0.95
QUANTILE = 1.959963984540054
"""Quantile of the standard normal distribution for :data:`LEVEL`."""

FloatArray = NDArray[np.float64]

MOMENTS, EARLY, LAST = 0.2, (0.03, 0.05, 0.12), 0.35
"""Shares of a logistic or Poisson regression's budget for products of scores, for the early gradients, and for the last
gradient. The early steps only bring the fit close to the maximum. The remaining budget buys the curvature of the last
step.
"""
ROBUST = 0.3
"""Share of a regression's budget that buys the spread of its residuals, if the plan asks for robust intervals."""
WIDE = 3.0
"""Number of standard deviations at which a robust interval clips the residuals of a linear regression."""
BEYOND = 1.5
"""Rows whose linear predictor lies within this number of standard deviations keep their own weight."""
HERMITE = np.polynomial.hermite_e.hermegauss(15)
"""Quadrature points and weights for the mean over a standard normal variable."""
LARGEST_STEP = 2.0
"""Largest change of the linear predictor in one early Newton step."""


@dataclass(frozen=True)
class Coefficient:
    """One coefficient with its interval. An end is `None` if noise leaves it unbounded."""

    term: str
    value: float | None
    low: float | None
    high: float | None

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return dict(vars(self))


@dataclass(frozen=True, eq=False)
class Measured:
    """Noisy sums as a symmetric matrix. ``noise`` maps independent standard normal errors to errors of its entries."""

    matrix: FloatArray
    noise: FloatArray

    @classmethod
    def of(cls, sums: RegressionSums, answer: SumMeasurement, rows: float) -> Measured:
        """Return the matrix of one answer; ``rows`` is the number of complete rows if it is public."""
        linear, constant = sums.expansion
        return cls(linear @ answer.values + rows * constant, linear * answer.sigma)


@dataclass(frozen=True, eq=False)
class System:
    """``left`` · γ = ``right`` with noise, and the sampling variance ``spread`` of right − left · γ."""

    left: FloatArray
    right: FloatArray
    left_noise: FloatArray
    right_noise: FloatArray
    spread: FloatArray
    spread_noise: FloatArray | None = None
    rows_per_person: int = 1
    """Largest factor by which the sampling variance grows because all rows of one person may be equal."""

    @property
    def definite(self) -> bool:
        """True if ``left`` is positive definite."""
        return bool(np.linalg.eigvalsh(_scaled(self.left)).min() > 1e-9) if np.all(np.diag(self.left) > 0) else False

    def interval(self, contrast: FloatArray) -> tuple[float, float | None, float | None]:
        """Return the value of ``contrast`` · γ and the ends of its interval; an end is `None` if it is unbounded."""
        unit = float(np.abs(contrast).max())  # for a wide range, the squared coefficient per unit underflows to 0
        if unit != 1.0:
            found = self.interval(contrast / unit)
            value, low, high = (None if x is None else unit * x for x in found)
            return float(value or 0.0), low, high
        gamma = np.linalg.solve(self.left, self.right)
        towards = np.linalg.solve(self.left, contrast)
        v = float(contrast @ towards)
        w = towards / v
        zero = w @ (self.right_noise - np.tensordot(self.left_noise, gamma, axes=(1, 0)))
        slope = -(w @ np.tensordot(self.left_noise, w, axes=(1, 0)))
        value, q2 = float(contrast @ gamma), QUANTILE**2
        a = 1 / v**2 - q2 * float(slope @ slope)
        b = -q2 * float(zero @ slope)
        c = -q2 * (float(zero @ zero) + self._sampling(w))
        if a <= 0:
            return value, None, None
        root = math.sqrt(b * b - a * c)
        return value, value + (-b - root) / a, value + (-b + root) / a

    def _sampling(self, w: NDArray[Any]) -> float:
        """Return the sampling variance of w · (right − left · γ), plus one standard deviation if it was bought with
        noise.
        """
        variance = float(w @ self.spread @ w)
        if self.spread_noise is not None:
            variance += float(np.linalg.norm(w @ np.tensordot(self.spread_noise, w, axes=(1, 0))))
        return self.rows_per_person * max(variance, 0.0)


def _scaled(matrix: FloatArray) -> FloatArray:
    scale = np.sqrt(np.diag(matrix))
    return np.asarray(matrix / scale / scale[:, None])


class Seller(Protocol):
    """Interface that a purchase requires of a curator."""

    @property
    def rows(self) -> int | None:
        """Number of rows if it is public."""
        ...

    def measure_sums(self, recipe: SumRecipe, rho: float, pool: str = "") -> SumMeasurement:
        """Return the noisy sums."""
        ...


@dataclass(frozen=True, eq=False)
class Purchase:
    """A purchase of the sums of one regression from ``curator``, for ``rho`` in total."""

    curator: Seller
    regression: BoughtRegression
    column: Column
    design: Design
    rho: float
    answers: list[SumMeasurement]
    """Answers bought so far."""

    @property
    def counted(self) -> bool:
        """True if the number of complete rows must be bought."""
        return self.curator.rows is None or self.design.missing

    def ask(self, part: Part, share: float, fit: Fit | None = None) -> tuple[RegressionSums, SumMeasurement]:
        """Buy one vector for this share of the budget."""
        name = self.regression.name
        sums = RegressionSums(
            f"{part} of the regression {name}", self.design, part, fit is not None or self.counted, fit
        )
        self.answers.append(self.curator.measure_sums(sums, _down(share * self.rho), POOL))
        return sums, self.answers[-1]

    def matrix(self, part: Part, share: float, fit: Fit | None = None) -> Measured:
        """Buy products of scores."""
        sums, answer = self.ask(part, share, fit)
        return Measured.of(sums, answer, 0.0 if sums.counted else float(self.curator.rows or 0))


def linear(purchase: Purchase) -> System:
    """Buy a linear regression: the products of all scores, and for a robust interval the spread of the residuals."""
    robust = purchase.regression.robust
    told = purchase.matrix("moments", 1 - ROBUST * robust)
    a, b = told.matrix[:-1, :-1], told.matrix[:-1, -1]
    degrees = max(told.matrix[0, 0] - len(b), 1.0)
    gamma = _regularised(a, b, told.noise[:-1, :-1])
    variance = min(max(float(told.matrix[-1, -1] - gamma @ b) / degrees, 0.0), 1.0)
    spread, unsure = variance * a, None
    if robust:
        clip = min(max(math.ceil(ONE * WIDE * math.sqrt(variance) / 2), 1), ONE)
        shares = np.append((gamma[0] + 1) / 2, gamma[1:] / 2)  # shares of the outcome's range, from 0 to 1
        means = np.rint(ONE * np.clip(GRID, 0, 1)).astype(np.int64)
        fit = Fit(whole(shares), means, np.zeros(len(GRID), dtype=np.int64), clip)
        found, unit = purchase.matrix("spread", ROBUST, fit), (2 * clip / ONE) ** 2
        spread, unsure = unit * found.matrix, unit * found.noise
    return System(a, b, told.noise[:-1, :-1], told.noise[:-1, -1], spread, unsure)


def likelihood(purchase: Purchase) -> tuple[FloatArray, System]:
    """Buy a logistic or Poisson regression: noisy Newton steps. Return the last fit and the system of the last step."""
    regression = purchase.regression
    scale = 1 - ROBUST * regression.robust
    link = Link.of(regression.family, purchase.column)
    told = purchase.matrix("moments", scale * MOMENTS)
    beta = link.start(told)
    for share in EARLY:
        gradient = purchase.ask("gradient", scale * share, link.fit(beta, told)[0])[1]
        unit = link.typical(beta, told)
        step = _regularised(unit * told.matrix[:-1, :-1], gradient.values, unit * told.noise[:-1, :-1])
        beta = beta + step * min(1.0, LARGEST_STEP / max(float(np.abs(step).sum()), 1e-12))
    fit, weight = link.fit(beta, told)
    beta = np.array(fit.coefficients) / COEFFICIENT
    gradient = purchase.ask("gradient", scale * LAST, fit)[1]
    slope = purchase.matrix("curvature", scale * (1 - MOMENTS - sum(EARLY) - LAST), fit)
    a = weight * slope.matrix
    spread, unsure = a / link.top, None
    if regression.robust:
        found = purchase.matrix("spread", ROBUST, fit)
        spread, unsure = found.matrix, found.noise
    noise = weight * slope.noise
    width, cells = len(beta), noise.shape[-1]
    left = np.concatenate([noise, np.zeros((width, width, width))], axis=2)
    right = np.concatenate([np.zeros((width, cells)), gradient.sigma * np.eye(width)], axis=1)
    return beta, System(a, gradient.values, left, right, spread, unsure)


@dataclass(frozen=True)
class Link:
    """Mean of the outcome as a function of the linear predictor. ``low`` is the outcome's smallest value, ``top`` its
    range.
    """

    family: str
    low: float
    top: float

    @classmethod
    def of(cls, family: str, column: Column) -> Link:
        """Return the link of an outcome."""
        if family == "logistic":
            return cls(family, 0.0, 1.0)
        middles = column.middles[: column.values]
        return cls(family, float(middles[0]), float(middles[-1] - middles[0]))

    def fit(self, beta: FloatArray, told: Measured) -> tuple[Fit, float]:
        """Return a fit in the form that the recipes use, and the cap on a row's weight in its curvature. The cap makes
        the curvature slightly too small and the intervals slightly too wide. Without it, noise would hide the small
        weights of most rows when the outcome is rare.
        """
        mean, deviation = _predictor(beta, told)
        sides = np.array([mean - BEYOND * deviation, mean, mean + BEYOND * deviation])
        means, weights = self._curves(GRID)
        most = float(self._curves(sides)[1].max())
        if self.family == "logistic" and sides[0] < 0 < sides[2]:
            most = 0.25
        most = max(most, 1e-3 * float(weights.max()))
        tables = [np.rint(ONE * table).astype(np.int64) for table in (means, np.minimum(1, weights / most))]
        return Fit(whole(beta), tables[0], tables[1]), most

    def typical(self, beta: FloatArray, told: Measured) -> float:
        """Return the mean weight of a row, for linear predictors with a normal distribution."""
        mean, deviation = _predictor(beta, told)
        return float(HERMITE[1] @ self._curves(mean + deviation * HERMITE[0])[1] / HERMITE[1].sum())

    def _curves(self, predictors: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means as shares of the outcome's range, and weights in the same unit."""
        if self.family == "logistic":
            means = 1 / (1 + np.exp(-predictors))
            return means, means * (1 - means)
        mu = np.exp(np.clip(predictors, -STEEPEST, math.log(self.low + self.top)))
        return np.clip((mu - self.low) / self.top, 0, 1), mu / self.top

    def start(self, told: Measured) -> FloatArray:
        """Return a first fit: the linear regression, used as a discriminant (logistic) or on the mean's scale
        (Poisson)."""
        n = max(float(told.matrix[0, 0]), 1.0)
        a, b = told.matrix[:-1, :-1], told.matrix[:-1, -1]
        slopes = _regularised(a, b, told.noise[:-1, :-1])[1:] / 2
        mean = min(max((float(b[0]) / n + 1) / 2, 0.002), 0.998)
        centre = np.clip(a[0, 1:] / n, -1, 1)
        if self.family == "logistic":
            variance = mean * (1 - mean)
            explained = float(slopes @ (a[1:, 1:] / n - np.outer(centre, centre)) @ slopes) / variance
            slopes = slopes / variance / (1 - min(max(explained, 0.0), 0.7))
            return np.concatenate([[math.log(mean / (1 - mean)) - slopes @ centre], slopes])
        mu = max(self.low + self.top * mean, 1e-3 * self.top)
        slopes = self.top * slopes / mu
        return np.concatenate([[math.log(mu) - slopes @ centre], slopes])


def _predictor(beta: FloatArray, told: Measured) -> tuple[float, float]:
    """Return the mean and the standard deviation of the linear predictor over the rows, from noisy products of
    scores."""
    n = max(float(told.matrix[0, 0]), 1.0)
    mean = min(max(float(beta @ told.matrix[:-1, 0]) / n, -STEEPEST), STEEPEST)
    return mean, math.sqrt(min(max(float(beta @ told.matrix[:-1, :-1] @ beta) / n - mean**2, 0.01), 9.0))


def _regularised(left: FloatArray, right: FloatArray, noise: FloatArray) -> FloatArray:
    """Solve for a fit that only prepares the next purchase. Directions that noise hides are damped instead of
    inverted.
    """
    size = np.sqrt(np.maximum(np.diag(left), 1e-9 * np.abs(left).max() + 1e-9))
    values, vectors = np.linalg.eigh(left / size / size[:, None])
    turned = np.einsum("ia,ijk,ja->ak", vectors / size[:, None], noise, vectors / size[:, None])
    floor = 3 * np.sqrt((turned**2).sum(axis=1))
    return np.asarray((vectors @ ((vectors.T @ (right / size)) / np.maximum(values, floor))) / size)


def _down(rho: float) -> float:
    return rho * (1 - 1e-12)


@dataclass(frozen=True, eq=False)
class Regressed:
    """A bought regression: ``before`` is the fit that the last system corrects (0 for a linear regression)."""

    regression: BoughtRegression
    design: Design
    before: FloatArray
    system: System
    answers: tuple[SumMeasurement, ...]
    rows: float | None

    def facts(self, schema: Schema) -> dict[str, Any]:
        """Return the regression's entry in ``release.json``."""
        family = self.regression.family
        coefficients = [self.coefficient(*term) for term in terms(self.design, schema)]
        return {
            **self.regression.to_json(),
            "scale": {"linear": "outcome", "logistic": "log odds", "poisson": "log mean"}[family],
            "level": LEVEL,
            "complete_rows": self.rows,
            "coefficients": [one.to_json() for one in coefficients],
            "sums": [{"what": a.what, "sigma": a.sigma, "values": a.values.tolist()} for a in self.answers],
        }

    def coefficient(self, term: str, contrast: FloatArray) -> Coefficient:
        """Estimate one coefficient. It has no value if the system is not positive definite, or if floats cannot
        represent a change of one unit, as in a column of numbers around 10¹⁸.
        """
        if not self.system.definite or not contrast.any():
            return Coefficient(term, None, None, None)
        found = self.system.interval(contrast)
        linear = self.regression.family == "linear"
        unit = self.design.half if linear else 1.0
        offset = self.design.offset * (term == INTERCEPT) if linear else float(contrast @ self.before)
        value, low, high = (None if x is None or not math.isfinite(x) else offset + unit * x for x in found)
        return Coefficient(term, value, low, high) if None not in (low, high) else Coefficient(term, value, None, None)


INTERCEPT = "(intercept)"


@contextmanager
def regressed(curator: Curator, project: Project) -> Iterator[tuple[Regressed, ...]]:
    """Buy the plan's regressions. Inside the context, the curator can spend only the rest of the budget."""
    plan, whole = project.plan, curator.budget
    if not plan.regressions or not plan.regression_share:
        yield ()
        return
    rho = plan.regression_share * whole.rho / len(plan.regressions)
    found = tuple(bought(curator, one, project.schema, rho) for one in plan.regressions)
    with curator.within(whole.part(1 - plan.regression_share)):
        yield found


def bought_system(purchase: Purchase) -> tuple[FloatArray, System]:
    """Buy a regression. Return the fit that the system corrects (0 for a linear regression), and the system."""
    if purchase.regression.family == "linear":
        return np.zeros(purchase.design.width), linear(purchase)
    return likelihood(purchase)


def bought(curator: Curator, regression: BoughtRegression, schema: Schema, rho: float) -> Regressed:
    """Buy one regression for ``rho``."""
    design = design_of(regression, schema)
    purchase = Purchase(curator, regression, regression.target(schema)[0], design, rho, [])
    before, system = bought_system(purchase)
    first = purchase.answers[0]
    rows = float(first.values[0] * OUTCOME / OTHER) if purchase.counted else curator.rows
    system = replace(system, rows_per_person=curator.unit.rows_per_person)
    return Regressed(regression, design, before, system, tuple(purchase.answers), rows)


def terms(design: Design, schema: Schema) -> Iterator[tuple[str, FloatArray]]:
    """Yield each coefficient's name, and the coefficient as a contrast of the coefficients of the scores.

    A category is compared with the first one. The coefficient of a number is per unit. With an interaction, a column's
    own coefficients are those at the first category, or at 0, of the other column.
    """
    base, found = np.zeros(design.width), []
    base[0] = 1.0
    for start, block in zip(design.starts, design.blocks, strict=True):
        inside = slice(start, start + block.size)
        columns = [schema[name] for name in block.columns]
        base[inside] = _scores(block, columns, [_base(c) for c in columns])
        for some in itertools.chain.from_iterable(itertools.combinations(columns, r) for r in range(1, 3)):
            for changes in itertools.product(*(_changes(c) for c in some)):
                contrast = np.zeros(design.width)
                contrast[inside] = _difference(block, columns, dict(zip([c.name for c in some], changes, strict=True)))
                found.append((" × ".join(label for label, _ in changes), contrast))
    yield INTERCEPT, base
    yield from found


Point = FloatArray | int
"""A value of a column: the score of a number, or the code of a category."""


def _base(column: Column) -> Point:
    """Return the base value, with which coefficients compare the others: the number 0, or the first category."""
    if column.kind != "numeric":
        return 0
    centre, half = centre_and_half(column.middles[: column.values].tolist())
    return np.array([-centre / half])


def _changes(column: Column) -> list[tuple[str, Point]]:
    """Return the values that coefficients compare with the base: one unit more, or each further category."""
    if column.kind != "numeric":
        return [(f"{column.name}={column.value_names[code]}", code) for code in range(1, column.values)]
    centre, half = centre_and_half(column.middles[: column.values].tolist())
    return [(column.name, np.array([(1 - centre) / half]))]


def _scores(block: Block, columns: list[Column], points: list[Point]) -> FloatArray:
    """Return the scores of a block at these values of its columns."""
    if not block.products:
        return np.asarray(block.lines[tuple(points)] / ONE)
    each = [
        p if isinstance(p, np.ndarray) else corners(c.values)[p] / ONE for c, p in zip(columns, points, strict=True)
    ]
    if len(each) == 1:
        return each[0]
    return np.asarray(np.concatenate([*each, np.outer(*each).ravel()]) / math.sqrt(3))


def _difference(block: Block, columns: list[Column], changes: Mapping[str, tuple[str, Point]]) -> FloatArray:
    """Return the difference that a change makes to the scores; for two changes, the difference of these differences."""
    out = np.zeros(block.size)
    for some in itertools.chain.from_iterable(itertools.combinations(changes, r) for r in range(len(changes) + 1)):
        points = [changes[c.name][1] if c.name in some else _base(c) for c in columns]
        out += (-1) ** (len(changes) - len(some)) * _scores(block, columns, points)
    return out
