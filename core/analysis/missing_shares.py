"""Missing shares of a column by group, from noisy counts, and a test that they are equal.

A figure leaves out rows with a missing cell in its columns. It describes all rows only if missing cells do not depend
on the compared groups, so the missing shares are compared too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from espalier.core.analysis.effect import StandardisedEffect
from espalier.core.analysis.estimands import Difference, Figure, MeanDifference, OddsRatio, Regression
from espalier.core.privacy.draws import Measurement, Merged, summed

FloatArray = NDArray[np.float64]
LEVEL = 0.05
"""Level of all tests of one figure together."""
ENOUGH = 4.0
"""A group's missing share is reported and tested if the group's size is at least this multiple of its noise."""


@dataclass(frozen=True)
class Question:
    """A question about the missing share of ``column``, by the ``groups`` of column ``by`` or for all rows.

    ``missing`` is the code of a missing cell.
    """

    column: str
    missing: int
    by: str | None = None
    groups: tuple[int, ...] = ()


@dataclass(frozen=True)
class Share:
    """Missing share in the group ``code``, or in all rows if it is `None`. ``error`` is its standard error, including
    noise and sampling."""

    code: int | None
    value: float
    error: float


@dataclass(frozen=True)
class MissingShares:
    """Missing shares of ``column`` by group of ``by``, and ``p``, the p-value of the test that they are equal.

    ``level`` is the level of this test: `LEVEL` divided by the number of tests of the figure (Bonferroni). ``reason``
    states why there are no shares by group, and is empty if there are some.
    """

    column: str
    by: str | None
    shares: tuple[Share, ...]
    p: float | None = None
    level: float = LEVEL
    reason: str = ""

    @property
    def differ(self) -> bool:
        """True if the shares differ by more than noise and sampling explain."""
        return self.p is not None and self.p <= self.level


def questions(figure: Figure, sizes: Mapping[str, int]) -> Iterator[Question]:
    """Yield the questions for a figure: the outcome by each explanatory column, and each of these by the outcome."""

    def values(name: str) -> tuple[int, ...]:
        return tuple(code for code in range(sizes[name]) if code != figure.missing.get(name))

    outcome, explaining = figure.columns[0], figure.columns[1:]
    groups = {name: values(name) for name in figure.columns}
    for level in getattr(figure, "among", ()):
        groups[level.column] = (level.code,)
    match figure:
        case Difference() | OddsRatio() | MeanDifference():
            groups[figure.one.column] = (figure.one.code, figure.other.code)
        case Regression():
            outcome, explaining = figure.outcome, figure.predictors
        case StandardisedEffect():
            outcome, explaining = figure.outcome, (figure.treatment, *figure.adjust)
    if outcome in figure.missing:
        code = figure.missing[outcome]
        yield from (Question(outcome, code, name, groups[name]) for name in explaining)
        if not explaining:
            yield Question(outcome, code)
    for name in explaining:
        if name in figure.missing:
            yield Question(name, figure.missing[name], outcome, groups[outcome])


def missing_shares(
    asked: Iterable[Question], measurements: Sequence[Measurement], merged: Merged, rows_per_person: int = 1
) -> tuple[MissingShares, ...]:
    """Return the missing shares from the released counts, without the model."""
    found = [_answered(question, measurements, merged, rows_per_person) for question in asked]
    tests = sum(one.p is not None for one in found)
    return tuple(
        MissingShares(one.column, one.by, one.shares, one.p, LEVEL / max(tests, 1), one.reason) for one in found
    )


def _answered(asked: Question, measurements: Sequence[Measurement], merged: Merged, k: int) -> MissingShares:
    column, by = asked.column, asked.by
    if _shared(asked.missing, merged.get(column)):
        why = f"missing cells of {column} were counted together with rare values, so their share is unknown"
        return MissingShares(column, None, (), reason=why)
    found = None if by is None else summed(measurements, (column, by))
    if by is None or found is None:
        alone = summed(measurements, (column,))
        reason = "" if by is None else f"{column} and {by} were not counted together"
        if alone is None:
            return MissingShares(column, None, (), reason=f"{column} was not counted")
        values, sigma = alone[0][:, None], alone[1]
        groups: tuple[int | None, ...] = (None,)
        by = None
    else:
        values, sigma = found
        reason, groups = "", asked.groups
        if by in merged:
            places = [int(merged[by][code]) for code in asked.groups]
            first = dict(zip(reversed(places), reversed(asked.groups), strict=True))  # merged codes are one group
            groups, values = tuple(first.values()), values[:, list(first)]
        else:
            values = values[:, list(asked.groups)]
    code = asked.missing if column not in merged else int(merged[column][asked.missing])
    missing, total = values[code], values.sum(axis=0)
    noise = sigma**2, sigma**2 * (len(values) - 1)  # code of the missing cell, and the codes of all observed cells
    enough = total >= ENOUGH * math.sqrt(sum(noise))
    shares = tuple(
        Share(group, *_share(float(x), float(n), noise, k))
        for group, x, n, there in zip(groups, missing, total, enough, strict=True)
        if there
    )
    if by is None or enough.sum() < 2:
        return MissingShares(column, by, shares, reason=reason)
    return MissingShares(column, by, shares, _p(missing[enough], total[enough], noise, k))


def _share(missing: float, rows: float, noise: tuple[float, float], k: int) -> tuple[float, float]:
    share = min(max(missing / rows, 0.0), 1.0)
    return share, math.sqrt(_variance(share, rows, noise, k))


def _variance(share: float, rows: float, noise: tuple[float, float], k: int) -> float:
    """Return the variance of x / (x + o) by the delta method: k times sampling, plus the noise of x and o."""
    return k * share * (1 - share) / rows + ((1 - share) ** 2 * noise[0] + share**2 * noise[1]) / rows**2


def _p(missing: FloatArray, rows: FloatArray, noise: tuple[float, float], k: int) -> float:
    """Return the p-value of the χ² test of equal shares: Σ (s − s̄)² / v, with v at the pooled share and K − 1
    degrees.
    """
    from scipy.stats import chi2

    shares = missing / rows
    pooled = min(max(float(missing.sum() / rows.sum()), 0.0), 1.0)
    weights = np.array([1 / max(_variance(pooled, float(n), noise, k), 1e-300) for n in rows])
    middle = float(weights @ shares / weights.sum())
    return float(chi2.sf(float(weights @ (shares - middle) ** 2), len(rows) - 1))


def _shared(code: int, groups: NDArray[np.intp] | None) -> bool:
    return groups is not None and int(np.count_nonzero(groups == groups[code])) > 1
