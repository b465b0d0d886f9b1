"""Figures that a release can estimate. Each figure is a small recipe. ``columns`` are the columns that it reads.
``parts`` are its numbers, each with the counts that it :class:`Needs`. ``estimate`` returns these numbers and their
variances within one table. Ratios are logarithms.

A figure describes the rows where all its columns are observed, as in R's ``lm`` and ``glm``. ``missing`` maps each
column whose missing cells are left out to the code of such a cell. A figure about the missing cells of a column omits
this column from ``missing``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from espalier.core.analysis.count_intervals import AnyContrast, Contrast, Group
from espalier.core.analysis.gate import Cell, Needs
from espalier.core.analysis.tally import Tally

FloatArray = NDArray[np.float64]
HALF = 0.5
"""Number added to each cell of an odds ratio to keep the ratio finite (Haldane 1956; Anscombe 1956)."""


@dataclass(frozen=True)
class Part:
    """One number of a figure: its ``name``, the counts it ``needs``, and whether it is the logarithm of a ``ratio``.

    ``contrast`` computes the same number from the counts alone; `None` if no interval follows from them.
    """

    name: str
    needs: Needs
    ratio: bool = False
    contrast: AnyContrast | None = None


class Figure(Protocol):
    """A figure that a release can estimate."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the estimate reads."""
        ...

    def parts(self) -> tuple[Part, ...]:
        """Return the numbers of the figure, in the order of the estimates."""
        ...

    @property
    def missing(self) -> Mapping[str, int]:
        """Columns whose missing cells are left out, with the code of such a cell."""
        ...

    def estimate(self, tally: Tally) -> tuple[FloatArray, FloatArray]:
        """Return the numbers and their variances for a simple random sample; NaN if they cannot be estimated."""
        ...


@dataclass(frozen=True)
class Level:
    """One category of a column, by its code."""

    column: str
    code: int


@dataclass(frozen=True)
class Proportion:
    """P(event), or P(event | among) if ``among`` lists conditions that the rows must fulfil."""

    event: Level
    among: tuple[Level, ...] = ()
    missing: Mapping[str, int] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the event and of the conditions."""
        return (self.event.column, *_columns(self.among))

    def parts(self) -> tuple[Part, ...]:
        """Return the single number of the figure."""
        cell, contrast = named(self.event, *self.among), Contrast((_share_of(self.event, self.among, self.missing),))
        needs = Needs(self.columns, (cell,), rests=(cell,), missing=self.missing)
        return (Part("proportion", needs, contrast=contrast),)

    def estimate(self, tally: Tally) -> tuple[FloatArray, FloatArray]:
        """Return p and p (1 − p) / n."""
        p, n = _share(tally.observed(self.missing), self.event, self.among)
        return np.array([p]), np.array([p * (1 - p) / n if n else math.nan])


@dataclass(frozen=True)
class Difference:
    """P(event | one) − P(event | other), each ``among`` the rows that fulfil all these conditions."""

    event: Level
    one: Level
    other: Level
    missing: Mapping[str, int] = field(default_factory=dict)
    among: tuple[Level, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the event, the groups and the conditions."""
        return (self.event.column, self.one.column, *_columns(self.among))

    def parts(self) -> tuple[Part, ...]:
        """Return the single number of the figure."""
        groups = [(group, *self.among) for group in (self.one, self.other)]
        cells = tuple(named(self.event, *group) for group in groups)
        contrast = Contrast(tuple(_share_of(self.event, group, self.missing) for group in groups))
        needs = Needs(self.columns, cells, rests=cells, missing=self.missing)
        return (Part("difference", needs, contrast=contrast),)

    def estimate(self, tally: Tally) -> tuple[FloatArray, FloatArray]:
        """Return the difference of two independent shares."""
        tally = tally.observed(self.missing)
        (p, n), (q, m) = (_share(tally, self.event, (group, *self.among)) for group in (self.one, self.other))
        variance = p * (1 - p) / n + q * (1 - q) / m if n and m else math.nan
        return np.array([p - q]), np.array([variance])


@dataclass(frozen=True)
class OddsRatio:
    """Odds of ``event`` against ``instead`` in group ``one``, divided by those in group ``other``; ``among`` as in
    :class:`Difference`."""

    event: Level
    instead: Level
    one: Level
    other: Level
    missing: Mapping[str, int] = field(default_factory=dict)
    among: tuple[Level, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the event, the groups and the conditions."""
        return (self.event.column, self.one.column, *_columns(self.among))

    def parts(self) -> tuple[Part, ...]:
        """Return the single number of the figure, a logarithm."""
        groups = [named(group, *self.among) for group in (self.one, self.other)]
        cells = tuple((*named(e), *group) for e in (self.event, self.instead) for group in groups)
        scores = {self.event.code: 1.0, self.instead.code: 0.0}
        contrast = Contrast(tuple(Group(self.event.column, scores, group) for group in groups), odds=True)
        return (Part("odds ratio", Needs(self.columns, cells, missing=self.missing), ratio=True, contrast=contrast),)

    def estimate(self, tally: Tally) -> tuple[FloatArray, FloatArray]:
        """Return the logarithm, with half a row added to each cell, and Woolf's variance."""
        events, groups = (self.event, self.instead), (self.one, self.other)
        tally = tally.observed(self.missing)
        cells = np.array([_rows(tally, e, g, *self.among) for e in events for g in groups]) + HALF
        a, b, c, d = np.log(cells)
        return np.array([a - b - c + d]), np.array([float((1 / cells).sum())])


@dataclass(frozen=True)
class Mean:
    """Mean of a column's ``scores`` in the rows ``among``, which fulfil all these conditions. A score is a number per
    category, such as the middle of a bin. ``ranges`` are the smallest and the largest number of each bin; none if the
    scores are exact.
    """

    column: str
    scores: tuple[float, ...]
    among: tuple[Level, ...] = ()
    missing: Mapping[str, int] = field(default_factory=dict)
    ranges: tuple[tuple[float, float], ...] = ()

    def extremes(self) -> tuple[Mean, Mean]:
        """Return the figure twice, with every number at the low end of its bin and at the high end."""
        low, high = (replace(self, scores=tuple(r[i] for r in self.ranges), ranges=()) for i in (0, 1))
        return low, high

    @property
    def columns(self) -> tuple[str, ...]:
        """The column, followed by the columns of the conditions."""
        return (self.column, *_columns(self.among))

    def parts(self) -> tuple[Part, ...]:
        """Return the single number of the figure."""
        group = (named(*self.among),) if self.among else ()
        rests = observed_cells(self.column, group or ((),), self.missing)
        contrast = Contrast((Group(self.column, dict(enumerate(self.scores)), named(*self.among)),))
        return (Part("mean", Needs(self.columns, group, rests=rests, missing=self.missing), contrast=contrast),)

    def estimate(self, tally: Tally) -> tuple[FloatArray, FloatArray]:
        """Return the mean and s² / n."""
        mean, variance = _mean(tally.observed(self.missing), self.column, self.scores, self.among)
        return np.array([mean]), np.array([variance])


@dataclass(frozen=True)
class MeanDifference:
    """Mean of a column's ``scores`` in group ``one`` minus the mean in group ``other``; ``among`` as in
    :class:`Difference`, ``ranges`` as in :class:`Mean`. ``opposite`` are the scores in group ``other`` if they
    differ."""

    column: str
    scores: tuple[float, ...]
    one: Level
    other: Level
    missing: Mapping[str, int] = field(default_factory=dict)
    among: tuple[Level, ...] = ()
    ranges: tuple[tuple[float, float], ...] = ()
    opposite: tuple[float, ...] = ()

    def extremes(self) -> tuple[MeanDifference, MeanDifference]:
        """Return the figure twice: with the lowest numbers in group ``one`` and the highest in ``other``, and vice
        versa.
        """
        ends = [tuple(r[i] for r in self.ranges) for i in (0, 1)]
        low, high = (replace(self, scores=ends[i], opposite=ends[1 - i], ranges=()) for i in (0, 1))
        return low, high

    @property
    def columns(self) -> tuple[str, ...]:
        """Column, and the columns of the groups and the conditions."""
        return (self.column, self.one.column, *_columns(self.among))

    def parts(self) -> tuple[Part, ...]:
        """Return the single number of the figure."""
        groups = (named(self.one, *self.among), named(self.other, *self.among))
        needs = Needs(
            self.columns, groups, rests=observed_cells(self.column, groups, self.missing), missing=self.missing
        )
        scores = (self.scores, self.opposite or self.scores)
        contrast = Contrast(
            tuple(Group(self.column, dict(enumerate(s)), group) for s, group in zip(scores, groups, strict=True))
        )
        return (Part("difference of means", needs, contrast=contrast),)

    def estimate(self, tally: Tally) -> tuple[FloatArray, FloatArray]:
        """Return the difference of two independent means."""
        tally = tally.observed(self.missing)
        m, v = _mean(tally, self.column, self.scores, (self.one, *self.among))
        n, w = _mean(tally, self.column, self.opposite or self.scores, (self.other, *self.among))
        return np.array([m - n]), np.array([v + w])


@dataclass(frozen=True)
class Regression:
    """Regression of ``outcome`` on ``predictors`` with main effects.

    ``event`` is the category whose log odds are modelled; `None` for a linear regression of the outcome's scores. A
    column in ``scores`` enters as one number per row, such as its bin midpoint. Any other column enters as one effect
    per category against its reference: the code in ``reference``, or the first category. ``sizes`` are numbers of
    categories, ``labels`` their names.
    """

    outcome: str
    predictors: tuple[str, ...]
    sizes: Mapping[str, int]
    event: int | None = None
    scores: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    reference: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    missing: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.predictors or self.outcome in self.predictors:
            raise ValueError("a regression needs predictors other than its outcome")
        if self.event is None and self.outcome not in self.scores:
            raise ValueError(f"a linear regression needs a score for each category of {self.outcome!r}")

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the predictors, followed by the outcome."""
        return (*self.predictors, self.outcome)

    def _levels(self, name: str) -> list[int]:
        first = self.reference.get(name, 0)
        return [code for code in self._values(name) if code != first]

    def _values(self, name: str) -> list[int]:
        return [code for code in range(self.sizes[name]) if code != self.missing.get(name)]

    def parts(self) -> tuple[Part, ...]:
        """Return one number per coefficient, without the intercept: one per scored column and per further category."""
        out = []
        for name in self.predictors:
            if name in self.scores:
                out.append(
                    Part(
                        name,
                        self._needs(name, self._values(name)),
                        ratio=self.event is not None,
                    )
                )
                continue
            first = self.reference.get(name, 0)
            out += [
                Part(
                    compared(name, code, first, self.labels),
                    self._needs(name, (first, code)),
                    ratio=self.event is not None,
                )
                for code in self._levels(name)
            ]
        return tuple(out)

    def _needs(self, name: str, codes: Iterable[int]) -> Needs:
        """Return the counts that a coefficient needs: its groups or, for an event, the rows of each group with the
        event."""
        groups: tuple[Cell, ...] = tuple(((name, code),) for code in codes)
        if self.event is None:
            rests = observed_cells(self.outcome, groups, self.missing)
            return Needs(self.columns, groups, self.outcome, rests=rests, missing=self.missing)
        events = tuple(((self.outcome, self.event), *group) for group in groups)
        return Needs(self.columns, events, self.outcome, rests=events, missing=self.missing)

    def design(self, tally: Tally) -> FloatArray:
        """Return the design matrix: a row per pattern, a column of ones, then one column per number of `parts`."""
        blocks = [np.ones((len(tally.weights), 1))]
        for name in self.predictors:
            codes = tally.of(name)
            if name in self.scores:
                blocks.append(np.asarray(self.scores[name], dtype=np.float64)[codes][:, None])
            else:
                blocks.append((codes[:, None] == np.array(self._levels(name))[None, :]).astype(np.float64))
        return np.hstack(blocks)

    def estimate(self, tally: Tally) -> tuple[FloatArray, FloatArray]:
        """Return maximum likelihood estimates; NaN for a category that does not occur or that separates the outcome."""
        tally = tally.observed(self.missing)
        x, w = self.design(tally), tally.weights
        if self.event is not None:
            beta, covariance = logistic(x, (tally.of(self.outcome) == self.event).astype(np.float64), w)
        else:
            beta, covariance = linear(x, np.asarray(self.scores[self.outcome])[tally.of(self.outcome)], w)
        return beta[1:], np.diag(covariance)[1:].copy()


LARGEST = 15.0
"""Absolute value above which a logistic coefficient counts as having no finite estimate, because some category
determines the outcome.
"""


def logistic(x: FloatArray, y: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the coefficients of a logistic regression by Newton's method, and their covariance (inverse information).

    Columns of ``x`` without weight and coefficients without a finite estimate are NaN.
    """
    used = np.flatnonzero((np.abs(x) * weights[:, None]).sum(axis=0) > 0)
    if not len(used):
        return np.full(x.shape[1], math.nan), np.full((x.shape[1], x.shape[1]), math.nan)
    design, beta = x[:, used], np.zeros(len(used))
    hessian = np.eye(len(used))
    for _ in range(40):
        p = 1 / (1 + np.exp(-np.clip(design @ beta, -30, 30)))
        hessian = (design * (weights * p * (1 - p))[:, None]).T @ design + 1e-9 * np.eye(len(used))
        step = np.linalg.solve(hessian, design.T @ (weights * (y - p)))
        beta = np.clip(beta + step, -2 * LARGEST, 2 * LARGEST)
        if np.abs(step).max() < 1e-9:
            break
    beta = np.where(np.abs(beta) > LARGEST, math.nan, beta)
    covariance = np.asarray(np.linalg.inv(hessian), dtype=np.float64)
    return _spread(beta, covariance, used, x.shape[1])


def linear(x: FloatArray, y: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the coefficients of weighted least squares and their covariance; NaN for columns that do not occur."""
    used = np.flatnonzero((np.abs(x) * weights[:, None]).sum(axis=0) > 0)
    design = x[:, used]
    gram = np.asarray(np.linalg.pinv((design * weights[:, None]).T @ design), dtype=np.float64)
    beta = gram @ (design.T @ (weights * y))
    free = max(float(weights.sum()) - len(used), 1.0)
    variance = float((weights * (y - design @ beta) ** 2).sum()) / free
    covariance: FloatArray = variance * gram
    return _spread(beta, covariance, used, x.shape[1])


def _spread(beta: FloatArray, cov: FloatArray, used: NDArray[np.intp], size: int) -> tuple[FloatArray, FloatArray]:
    whole, covariance = np.full(size, math.nan), np.full((size, size), math.nan)
    whole[used] = beta
    covariance[np.ix_(used, used)] = cov
    return whole, covariance


def compared(name: str, code: int, reference: int, labels: Mapping[str, Sequence[str]]) -> str:
    """Return the name of a comparison between two categories, with labels if there are any."""
    if name not in labels:
        return f"{name}={code}"
    return f"{name}: {labels[name][code]} against {labels[name][reference]}"


def named(*levels: Level) -> Cell:
    """Return the cell of these categories."""
    return tuple((level.column, level.code) for level in levels)


def observed_cells(column: str, groups: Iterable[Cell], missing: Mapping[str, int]) -> tuple[Cell, ...]:
    """Return cells whose remainders are the observed rows of each group; none for a column without missing cells."""
    return tuple(((column, missing[column]), *group) for group in groups) if column in missing else ()


def _columns(levels: Iterable[Level]) -> tuple[str, ...]:
    return tuple(level.column for level in levels)


def _share_of(event: Level, within: Sequence[Level], missing: Mapping[str, int]) -> Group:
    return Group(event.column, {event.code: 1.0}, named(*within), 0.0, missing.get(event.column))


def _mean(tally: Tally, column: str, scores: Sequence[float], among: Sequence[Level]) -> tuple[float, float]:
    """Return the mean of the scores in a group, and its variance."""
    weights = tally.weights * kept(tally, among)
    n = float(weights.sum())
    if n <= 0:
        return math.nan, math.nan
    values = np.asarray(scores, dtype=np.float64)[tally.of(column)]
    mean = float(weights @ values) / n
    return mean, float(weights @ (values - mean) ** 2) / max(n - 1, 1.0) / n


def kept(tally: Tally, levels: Iterable[Level]) -> NDArray[np.bool_]:
    """Return a mask of the patterns that have all these categories."""
    keep = np.ones(len(tally.weights), dtype=np.bool_)
    for level in levels:
        keep &= tally.of(level.column) == level.code
    return keep


def _rows(tally: Tally, *levels: Level) -> float:
    return float(tally.weights[kept(tally, levels)].sum())


def _share(tally: Tally, event: Level, among: Sequence[Level]) -> tuple[float, float]:
    """Return P(event | among) and the number of rows that fulfil ``among``."""
    n = _rows(tally, *among)
    return (_rows(tally, event, *among) / n if n else math.nan), n
