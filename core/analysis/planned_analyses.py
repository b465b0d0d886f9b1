"""Planned analyses of a study: counts of exactly the rows that they use, the promised half-width, and the achieved
half-width.

Each analysis buys the counts of its own cells, the rows with and without the event in each group, or the sums of its
regression. Promises depend only on public facts and the declared assumptions, so a plan and a release divide the budget
in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from espalier.core.analysis.bought_regressions import Regressed, bought
from espalier.core.analysis.dividing import Curve, divided
from espalier.core.analysis.expected_regressions import contrast_of, outlook
from espalier.core.analysis.survival_table import figure, promise, table
from espalier.core.privacy.accounting import Budget, epsilon_of, round_up
from espalier.core.privacy.curator import Curator
from espalier.core.privacy.question_recipes.recipes import QuestionSums
from espalier.core.privacy.rehearsal import UNKNOWN_ROWS
from espalier.core.privacy.unit import Unit
from espalier.core.project.analyses import PlannedAnalysis, PlannedCounts
from espalier.core.project.file import Project
from espalier.core.project.planned_regressions import PlannedRegression
from espalier.core.project.planned_survival import PlannedSurvival
from espalier.core.project.question_types import Question
from espalier.core.project.schema import Schema

POOL = "analyses"
SURE = 0.98
"""Nothing is promised unless all counts exceed their noise with at least this probability."""
EVEN = 0.8
"""Share of the assumed rows in each stratum on which an effect's promise relies, because the groups are not equally
large in real strata. It was chosen on three effects by `benchmarks.planned_widths`. The benchmark reports results on
three other effects, which had been seen before.
"""
QUANTILE = 1.959963984540054
"""Quantile of the standard normal distribution for 95 % intervals."""
CAUTION = 1.2815515655446004
"""A promise allows for counts this many standard deviations below their expectation, so that 9 in 10 intervals are
shorter.
"""
CLEAR = 3.0
"""A count must exceed this many standard deviations of its noise to have an interval."""

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """Public facts that a promise depends on: the columns, the unit of privacy, and the number of rows, or a guess."""

    schema: Schema
    unit: Unit
    rows: float

    @classmethod
    def of(cls, project: Project, unit: Unit, rows: int | None) -> Setting:
        """Return the setting of a project. A private number of rows is replaced by the plan's ``rows`` or 10,000."""
        return cls(project.schema, unit, float(rows or project.plan.rows or UNKNOWN_ROWS))

    def sums(self, one: PlannedCounts | PlannedSurvival) -> QuestionSums:
        """Return the counts that an analysis buys: per group (and interval of time), the rows with the event and those
        without. Each row is in at most one of them, so together they have the sensitivity of one marginal."""
        cells = [cell for pair in one.cells(self.schema) for cell in pair]
        questions = tuple(Question(f"{one.name} {i}", (cell,)) for i, cell in enumerate(cells))
        return QuestionSums(questions, (), self.schema.sizes)

    def expected(self, one: PlannedCounts | PlannedSurvival) -> FloatArray:
        """Return the counts expected under the declared assumptions."""
        found = np.array([[self.rows * f * p, self.rows * f * (1 - p)] for f, p in one.assumed_cells(self.schema)])
        return found.reshape(one.shape(self.schema))

    def promised(self, one: PlannedAnalysis, rho: float) -> float:
        """Return the half-width that 9 in 10 releases do not exceed if the assumptions hold; infinite if nothing can be
        promised.
        """
        return self.curve(one).at(rho)

    def promise(self, one: PlannedAnalysis) -> Callable[[float], float]:
        """Return the promised half-width as a function of ρ."""
        if isinstance(one, PlannedRegression):
            return outlook(one, self.schema, self.unit, self.rows).half_width
        sums, expected, k = self.sums(one), self.expected(one), self.unit.rows_per_person
        delta = sums.sensitivity(self.unit) / sums.units
        if isinstance(one, PlannedSurvival):
            survived = promise(one, self.schema, expected, k)
            return lambda rho: survived(delta / math.sqrt(2 * rho))
        if len(expected) > 1 and one.kind == "effect":
            expected = EVEN * expected
        return lambda rho: half_width(one, expected, delta / math.sqrt(2 * rho), k, CAUTION)

    def curve(self, one: PlannedAnalysis) -> Curve:
        """Return the promise as a curve, whose points are computed once."""
        return _curve(self, one)


@lru_cache(maxsize=256)
def _curve(setting: Setting, one: PlannedAnalysis) -> Curve:
    return Curve(setting.promise(one), one.half_width)


def variance(one: PlannedCounts, counts: FloatArray, sigma: float, k: int) -> float:
    """Return the variance of the figure: sampling (``k`` rows per person) and noise, by the delta method."""
    if one.kind == "effect":
        slopes = standardised(counts)[1]
        return float(np.sum(slopes**2 * (k * np.maximum(counts, 0.0) + sigma**2)))
    if one.kind == "odds_ratio":
        return float(np.sum(k / counts + sigma**2 / counts**2))
    n = counts.sum(axis=1)
    p = np.clip(counts[:, 0] / n, 0, 1)
    return float(np.sum(k * p * (1 - p) / n + sigma**2 * (p**2 + (1 - p) ** 2) / n**2))


def standardised(counts: FloatArray) -> tuple[float, FloatArray]:
    """Return the standardised difference Σ_z n_z (p_1z − p_0z) / n of an effect, and its slope in each count.

    ``counts`` are by stratum, group and event. A third group contains the rows that are not compared.
    """
    groups, whole = counts.sum(axis=2), max(float(counts.sum()), 1.0)
    rates = counts[..., 0] / groups
    apart, weight = rates[:, 0] - rates[:, 1], groups.sum(axis=1) / whole
    value = float(weight @ apart)
    slopes = np.broadcast_to(((apart - value) / whole)[:, None, None], counts.shape).copy()
    for group, sign in ((0, 1.0), (1, -1.0)):
        inside = sign * weight / groups[:, group]
        slopes[:, group, 0] += inside * (1 - rates[:, group])
        slopes[:, group, 1] -= inside * rates[:, group]
    return value, slopes


def half_width(one: PlannedCounts, counts: FloatArray, sigma: float, k: int, caution: float = 0.0) -> float:
    """Return the half-width of the 95 % interval; infinite if a count does not clearly exceed its noise.

    ``caution`` is the number of standard deviations by which the variance may be larger, and a count smaller, than
    expected.
    """
    compared = counts[:, :2] if one.kind == "effect" else counts
    sizes, terms = (counts, 1) if one.kind == "odds_ratio" else (compared.sum(axis=-1), 2)  # counts in each
    if sizes.min() <= max(CLEAR * sigma * math.sqrt(terms), 0.0):
        return math.inf
    if caution and _clear(sizes, sigma * math.sqrt(terms)) < SURE:
        return math.inf
    found = variance(one, counts, sigma, k)
    if caution:
        spread = 0.0
        for place in np.ndindex(counts.shape):
            count = float(counts[place])
            step = 0.01 * count or -0.01
            moved = counts.copy()
            moved[place] -= step
            slope = (variance(one, moved, sigma, k) - found) / step
            spread += slope**2 * (count + sigma**2)
        found += caution * math.sqrt(spread)
    return QUANTILE * math.sqrt(found)


def _clear(sizes: FloatArray, sigma: float) -> float:
    """Return the probability that each of these sizes will clearly exceed its noise."""
    from scipy.stats import norm

    return float(np.prod(norm.cdf((sizes - CLEAR * sigma) / np.sqrt(sigma**2 + sizes))))


class Analysed(Protocol):
    """A bought analysis of any kind."""

    @property
    def analysis(self) -> PlannedAnalysis:
        """Planned analysis."""
        ...

    @property
    def setting(self) -> Setting:
        """Public facts on which the promise depends."""
        ...

    @property
    def rho(self) -> float:
        """Cost in ρ (zCDP)."""
        ...

    @property
    def regressed(self) -> Regressed | None:
        """Bought regression; `None` for counts."""
        ...

    def facts(self) -> dict[str, Any]:
        """Return the entry in ``release.json``; ``low`` and ``high`` are null if noise allows no interval."""
        ...

    def plan(self) -> dict[str, Any]:
        """Return the entry in the output of ``plan``, before anything is bought."""
        ...


@dataclass(frozen=True)
class CountedAnalysis:
    """One analysis with its noisy ``counts`` by group, their ``sigma``, and what was ``promised``."""

    analysis: PlannedCounts
    setting: Setting
    counts: FloatArray
    sigma: float
    rho: float
    promised: float
    regressed: None = None

    def facts(self) -> dict[str, Any]:
        """Return the entry in ``release.json``; ``low`` and ``high`` are null if noise allows no interval."""
        one, counts = self.analysis, self.counts
        half = half_width(one, counts, self.sigma, self.setting.unit.rows_per_person)
        value = low = high = None
        if math.isfinite(half):
            if one.kind == "odds_ratio":
                log = float(np.log(counts[0, 0] * counts[1, 1] / counts[0, 1] / counts[1, 0]))
                value, low, high = (math.exp(log + side * half) for side in (0, -1, 1))
            elif one.kind == "effect":
                value, low, high = (min(max(standardised(counts)[0] + side * half, -1.0), 1.0) for side in (0, -1, 1))
            else:
                p = counts[:, 0] / counts.sum(axis=1)
                floor = 0.0 if one.kind == "proportion" else -1.0
                value = float(p[0] - p[1]) if len(p) > 1 else float(p[0])
                value, low, high = (min(max(value + side * half, floor), 1.0) for side in (0, -1, 1))
        return {
            **one.to_json(),
            "value": value,
            "low": low,
            "high": high,
            "promised": _finite(self.promised),
            "reached": _finite(half),
            "counts": counts.tolist(),
            "sigma": self.sigma,
        }

    def plan(self) -> dict[str, Any]:
        """Return the entry in the output of ``plan``, before anything is bought."""
        shares, groups = self.analysis.assumed(self.setting.schema)
        strata = {} if self.analysis.strata is None else {"strata": list(self.analysis.strata)}
        assumed = {"rows": self.setting.rows, "shares": list(shares), "groups": list(groups), **strata}
        return _planned(self, self.promised, assumed)


@dataclass(frozen=True)
class RegressionAnalysis:
    """A bought regression with what was ``promised`` for one coefficient."""

    analysis: PlannedRegression
    setting: Setting
    regressed: Regressed
    rho: float
    promised: float

    def facts(self) -> dict[str, Any]:
        """Return the entry in ``release.json``. The regression itself is listed with the bought regressions."""
        contrast = contrast_of(self.analysis, self.regressed.design, self.setting.schema)
        found = self.regressed.coefficient(self.analysis.term, contrast)
        half = None if found.low is None or found.high is None else (found.high - found.low) / 2
        ends = {"value": found.value, "low": found.low, "high": found.high}
        return {**self.analysis.to_json(), **ends, "promised": _finite(self.promised), "reached": half}

    def plan(self) -> dict[str, Any]:
        """Return the entry in the output of ``plan``, before anything is bought."""
        return _planned(self, self.promised, {"rows": self.setting.rows, **self.analysis.assumed.to_json()})


@dataclass(frozen=True)
class SurvivalAnalysis:
    """A survival table with its noisy ``counts`` by group and interval, their ``sigma``, and what was ``promised``."""

    analysis: PlannedSurvival
    setting: Setting
    counts: FloatArray
    sigma: float
    rho: float
    promised: float
    regressed: None = None

    def facts(self) -> dict[str, Any]:
        """Return the entry in ``release.json``, with the ``table``; numbers that cannot be estimated because of noise
        are null.
        """
        one, schema, k = self.analysis, self.setting.schema, self.setting.unit.rows_per_person
        value, low, high = (_finite(float(x)) for x in figure(one, schema, self.counts, self.sigma, k))
        return {
            **one.to_json(),
            "value": value,
            "low": low,
            "high": high,
            "promised": _finite(self.promised),
            "reached": None if low is None or high is None else (high - low) / 2,
            "exact": one.exact(schema),
            "table": table(one, schema, self.counts, self.sigma, k),
            "counts": self.counts.tolist(),
            "sigma": self.sigma,
        }

    def plan(self) -> dict[str, Any]:
        """Return the entry in the output of ``plan``, before anything is bought."""
        shares, groups = self.analysis.assumed(self.setting.schema)
        assumed = {"rows": self.setting.rows, "shares": list(shares), "groups": list(groups)}
        return _planned(self, self.promised, assumed)


def _planned(one: Analysed, promised: float, assumed: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": one.analysis.name,
        "kind": one.analysis.kind,
        "wanted": one.analysis.half_width,
        "promised": _finite(promised),
        "reachable": one.setting.curve(one.analysis).reachable,
        "rho": one.rho,
        "assumed": assumed,
    }


@contextmanager
def analysed(curator: Curator, project: Project) -> Iterator[tuple[Analysed, ...]]:
    """Buy the project's analyses. Inside the context, the curator can spend only the rest of the budget."""
    share, whole = project.plan.analysis_share, curator.budget
    if not share or not project.analyses:
        yield ()
        return
    setting = Setting.of(project, curator.unit, curator.rows)
    parts = divided([setting.curve(one) for one in project.analyses], share * whole.rho)
    found = tuple(_bought(curator, setting, one, rho) for one, rho in zip(project.analyses, parts, strict=True))
    with curator.within(whole.part(1 - share)):
        yield found


def _bought(curator: Curator, setting: Setting, one: PlannedAnalysis, rho: float) -> Analysed:
    promised = setting.promised(one, rho)
    if isinstance(one, PlannedRegression):
        regressed = bought(curator, one.regression, setting.schema, rho)
        return RegressionAnalysis(one, setting, regressed, rho, promised)
    told = curator.measure_sums(setting.sums(one), rho, POOL)
    counts = told.values.reshape(one.shape(setting.schema))
    if isinstance(one, PlannedSurvival):
        return SurvivalAnalysis(one, setting, counts, told.sigma, rho, promised)
    return CountedAnalysis(one, setting, counts, told.sigma, rho, promised)


def epsilon_needed(found: Sequence[Analysed], whole: Budget) -> float | None:
    """Return the ε at which every desired half-width is reached with the same share of the ``whole`` budget, if there
    is one.
    """
    curves = [one.setting.curve(one.analysis) for one in found]
    if all(curve.wanted is None for curve in curves) or not all(curve.reachable for curve in curves):
        return None
    return _epsilon(found, math.fsum(curve.needed for curve in curves), whole)


def epsilon_promising(found: Sequence[Analysed], whole: Budget) -> float | None:
    """Return the smallest ε at which every analysis has a promise with the same share of the ``whole`` budget, if there
    is one.
    """
    least = math.fsum(one.setting.curve(one.analysis).least for one in found)
    return _epsilon(found, least, whole) if found and math.isfinite(least) else None


def _epsilon(found: Sequence[Analysed], rho: float, whole: Budget) -> float:
    share = math.fsum(one.rho for one in found) / whole.rho
    return float(
        round_up(epsilon_of(rho / share, whole.delta), 3)
    )  # rounded as printed, so that a plan with this ε keeps the promise


def epsilons(found: Sequence[Analysed], whole: Budget) -> dict[str, float | None]:
    """Return the entries of ``plan --json``: the ε at which every desired half-width is reached, and the ε at which
    every analysis has a promise.
    """
    if not found:
        return {}
    return {"analyses_epsilon": epsilon_needed(found, whole), "promises_epsilon": epsilon_promising(found, whole)}


def _finite(x: float) -> float | None:
    return x if math.isfinite(x) else None


def unpromised(found: Sequence[Analysed], whole: Budget) -> str:
    """Explain why some analyses have no promise, and give the smallest ε at which all have one; empty if all have
    one.
    """
    without = [one.analysis.name for one in found if one.plan()["promised"] is None]
    if not without:
        return ""
    why = (
        f"{', '.join(without)}: no half-width is promised, because more than 1 in 10 releases could have an "
        "interval that is unbounded or much wider than usual."
    )
    promising = epsilon_promising(found, whole)
    if promising is None:
        return f"{why} With these assumptions and this number of rows, no ε gives every analysis a promise."
    return f"{why} At ε = {promising:.3g} or above, every analysis has a promise, with these shares of the budget."
