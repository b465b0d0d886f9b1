"""Intervals computed directly from the released counts, for figures with a group about as small as its noise. A group's
share or mean m is tested through the sum Σ (s − m) x over its noisy counts x with scores s. The sum is linear in the
noise. The noise contributes σ² Σ (s − m)² to its variance, and the sampling of n rows, k per person, contributes k n
Var(s). An interval contains every m that the test does not reject, so it also covers the noise in the group's size
(Fieller 1954). Two groups have independent counts. The interval of their difference, or log odds ratio, contains every
value for which some pair of means passes the sum of both tests. Each statistic is compared with its minimum over the
possible range. Counts that noise makes negative therefore do not widen an interval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from espalier.core.privacy.draws import Measurement, Merged, summed

FloatArray = NDArray[np.float64]
POINTS = 400
"""Number of points of the grid over the values of one group."""
INFORMATIVE = 0.5
"""An interval of a share is informative if it is narrower than this; an interval of a difference is informative if it
is narrower than twice this. The upper end of an informative interval of an odds ratio is at most `APART` times the
lower end.
"""
APART = 100.0


@dataclass(frozen=True)
class Group:
    """Rows that have the codes ``within`` in other columns. The code of ``column`` determines the score of each row.

    ``rest`` is the score of codes that ``scores`` does not name, except the code ``missing``. Rows without a score are
    left out.
    """

    column: str
    scores: Mapping[int, float]
    within: tuple[tuple[str, int], ...] = ()
    rest: float | None = None
    missing: int | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The column, followed by the columns of the conditions."""
        return (self.column, *(name for name, _ in self.within))

    def score(self, code: int) -> float | None:
        """Return the score of a code; `None` for rows that are left out."""
        return None if code == self.missing else self.scores.get(code, self.rest)


class AnyContrast(Protocol):
    """A number that follows from the counts of its columns alone, with its interval."""

    @property
    def odds(self) -> bool:
        """True if the number is the logarithm of a ratio."""
        ...

    @property
    def most(self) -> float:
        """Width up to which an interval is informative."""
        ...

    def copies_serve(self, measurements: Sequence[Measurement], merged: Merged, enough: float) -> bool:
        """Return whether copies give an honest interval if no compared group is thin."""
        ...

    def interval(
        self, measurements: Sequence[Measurement], merged: Merged, k: int = 1, level: float = 0.95
    ) -> CountInterval | None:
        """Return the number with its interval; `None` if the counts do not determine it."""
        ...


@dataclass(frozen=True)
class Contrast:
    """Mean score of a group, or the difference of two groups' mean scores; on the scale of log odds if ``odds``."""

    groups: tuple[Group, ...]
    odds: bool = False

    @property
    def scores(self) -> set[float]:
        """Scores of all codes."""
        return {s for group in self.groups for s in (*group.scores.values(), group.rest) if s is not None}

    @property
    def most(self) -> float:
        """Width up to which an interval is informative, as in :data:`INFORMATIVE`."""
        if self.odds:
            return math.log(APART)
        return INFORMATIVE * len(self.groups) * (max(self.scores) - min(self.scores))

    def copies_serve(self, measurements: Sequence[Measurement], merged: Merged, enough: float) -> bool:
        """Return whether no bin of a mean is thin."""
        return not thin_bins(self, measurements, merged, enough)

    def interval(
        self, measurements: Sequence[Measurement], merged: Merged, k: int = 1, level: float = 0.95
    ) -> CountInterval | None:
        """Return the contrast with its interval from the counts alone; `None` if `counted` returns none."""
        return interval(self, measurements, merged, k, level)


@dataclass(frozen=True)
class Counted:
    """Noisy ``counts`` of a group by score. ``cells`` are the numbers of counted cells per score, each with noise
    ``sigma``.
    """

    scores: FloatArray
    counts: FloatArray
    cells: FloatArray
    sigma: float
    rows_per_person: int = 1

    @property
    def binary(self) -> bool:
        """True if the mean is a share."""
        return set(self.scores) <= {0.0, 1.0}

    def statistic(self, means: FloatArray) -> FloatArray:
        """Return the squared standardised sum Σ (s − m) x at each of these means."""
        off = self.scores[:, None] - means
        rows = max(float(self.counts.sum()), 0.0)
        if self.binary:
            sampled = rows * means * (1 - means)
        else:
            kept = np.maximum(self.counts, 0.0)
            sampled = off.T**2 @ (kept * (rows / max(float(kept.sum()), 1e-9)))
        noise = self.sigma**2 * (off.T**2 @ self.cells)
        return np.asarray((off.T @ self.counts) ** 2 / np.maximum(noise + self.rows_per_person * sampled, 1e-12))

    def grid(self, limit: float) -> tuple[FloatArray, FloatArray]:
        """Return means that a test with this limit may accept, and the statistic at each, minus the smallest."""
        low, high = float(self.scores.min()), float(self.scores.max())
        means = np.linspace(low, high, POINTS)
        if self.binary:
            odds = np.linspace(-14, 14, POINTS)
            means = np.unique(np.concatenate([means, 1 / (1 + np.exp(-odds))]))
        for _ in range(2):
            found = self.statistic(means)
            inside = np.flatnonzero(found - found.min() <= limit)
            ends = means[max(inside[0] - 1, 0)], means[min(inside[-1] + 1, len(means) - 1)]
            means = np.unique(np.concatenate([np.linspace(*ends, POINTS), means[inside], [means[found.argmin()]]]))
        found = self.statistic(means)
        return means, found - found.min()


@dataclass(frozen=True)
class CountInterval:
    """An estimate with its interval. On the scale of log odds, the ends may be infinite."""

    value: float
    low: float
    high: float
    contrast: AnyContrast

    @property
    def informative(self) -> bool:
        """True if the interval is bounded and excludes a large part of the possible values."""
        return self.high - self.low <= self.contrast.most


def counted(group: Group, measurements: Sequence[Measurement], merged: Merged, k: int = 1) -> Counted | None:
    """Return the noisy counts of a group; `None` if they were not counted together, or only with other categories."""
    found = summed(measurements, group.columns)
    if found is None:
        return None
    values, sigma = found
    for name, code in reversed(group.within):
        if name in merged:
            if np.count_nonzero(merged[name] == merged[name][code]) > 1:
                return None
            code = int(merged[name][code])
        values = values[..., code]
    codes = merged.get(group.column, np.arange(len(values)))
    by_score: dict[float, FloatArray] = {}
    for place, count in enumerate(values):
        scores = {group.score(int(code)) for code in np.flatnonzero(codes == place)}
        if len(scores) > 1:
            return None
        (score,) = scores
        if score is not None:
            by_score[score] = by_score.get(score, np.zeros(2)) + np.array([count, 1.0])
    table = np.array(list(by_score.values()))
    return Counted(np.array(list(by_score)), table[:, 0], table[:, 1], sigma, k)


def thin_bins(contrast: Contrast, measurements: Sequence[Measurement], merged: Merged, enough: float) -> bool:
    """Return whether a mean of more than two scores needs a cell with fewer rows than this multiple of its noise."""
    if contrast.scores <= {0.0, 1.0}:
        return False
    read = (counted(group, measurements, merged) for group in contrast.groups)
    return any(one is None or bool((one.counts < enough * one.sigma * np.sqrt(one.cells)).any()) for one in read)


def interval(
    contrast: Contrast, measurements: Sequence[Measurement], merged: Merged, k: int = 1, level: float = 0.95
) -> CountInterval | None:
    """Return a contrast with its interval from the counts alone; `None` if `counted` returns none."""
    from scipy.stats import chi2

    limit = float(chi2.ppf(level, 1))
    read = [counted(group, measurements, merged, k) for group in contrast.groups]
    if any(one is None for one in read):
        return None
    each = [one.grid(limit) for one in read if one is not None]
    if contrast.odds:
        with np.errstate(divide="ignore"):
            each = [(np.log(means) - np.log1p(-means), found) for means, found in each]
    best = [float(values[found.argmin()]) for values, found in each]
    values, found = each[0]
    if len(each) == 1:
        inside = values[found <= limit]
        return CountInterval(best[0], float(inside[0]), float(inside[-1]), contrast)
    keep = found <= limit
    lows, highs = _ends(*each[1], limit - found[keep])
    with np.errstate(invalid="ignore"):  # both are infinite, so the difference may have any value
        low = float(np.nan_to_num(values[keep] - highs, nan=-math.inf, posinf=math.inf, neginf=-math.inf).min())
        high = float(np.nan_to_num(values[keep] - lows, nan=math.inf, posinf=math.inf, neginf=-math.inf).max())
    if contrast.odds:
        best = [_half(one, value) for one, value in zip(read, best, strict=True) if one is not None]
    return CountInterval(min(max(best[0] - best[1], low), high), low, high, contrast)


def _ends(values: FloatArray, found: FloatArray, limits: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the first and the last of ``values`` whose statistic is within each limit."""
    from_left, from_right = np.minimum.accumulate(found), np.minimum.accumulate(found[::-1])
    first = len(values) - np.searchsorted(from_left[::-1], limits, side="right")
    last = np.searchsorted(from_right[::-1], limits, side="right") - 1
    return values[np.minimum(first, len(values) - 1)], values[np.maximum(last, 0)]


def _half(one: Counted, value: float) -> float:
    """Return log odds; half a row is added if a share is 0 or 1."""
    edge = math.log(2 * max(float(one.counts.sum()), 1.0))
    return min(max(value, -edge), edge)
