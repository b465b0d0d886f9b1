"""Quantiles of a number that was counted in bins, with intervals from the noisy counts.

A quantile is above an edge if the share of rows below that edge is smaller than its probability q. Each edge is tested
through Σ (s − q) x over the noisy counts x, with s = 1 below the edge and 0 above. The noise adds σ² Σ (s − q)² to the
variance, and sampling adds k n q (1 − q), with k rows per person (Woodruff, 1952, inverts the same test).

An interval starts at the last edge before the first edge that the test does not reject, and ends at the first edge
after the last one that it does not reject. It misses the quantile on one side only if the test rejects an edge of the
quantile's own bin, so each side has half the error. Its ends are edges, so it is valid for any positions of the numbers
inside their bins.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from espalier.core.analysis.count_intervals import Counted, CountInterval, Group, counted
from espalier.core.analysis.estimands import FloatArray, Level, Part, kept, named, observed_cells
from espalier.core.analysis.gate import Cell, Needs
from espalier.core.analysis.tally import Tally
from espalier.core.privacy.draws import Measurement, Merged


@dataclass(frozen=True)
class QuantileContrast:
    """Quantile at ``probability`` of a column with these bin ``edges``, in a group of rows."""

    column: str
    edges: tuple[float, ...]
    probability: float
    within: Cell = ()
    missing: int | None = None
    odds: bool = field(default=False, init=False)

    @property
    def most(self) -> float:
        """Width up to which an interval is informative: half the range."""
        return (self.edges[-1] - self.edges[0]) / 2

    def copies_serve(self, measurements: Sequence[Measurement], merged: Merged, enough: float) -> bool:  # noqa: ARG002
        """Return False, because copies do not contain the position of a number inside its bin."""
        return False

    def interval(
        self, measurements: Sequence[Measurement], merged: Merged, k: int = 1, level: float = 0.95
    ) -> CountInterval | None:
        """Return the quantile with its interval; `None` if no edge can be tested."""
        from scipy.stats import norm

        critical = float(norm.ppf((1 + level) / 2))
        tested: list[tuple[float, float]] = []
        shares = []
        for i, edge in enumerate(self.edges[1:-1], start=1):
            below = dict.fromkeys(range(i), 1.0)
            found = counted(Group(self.column, below, self.within, 0.0, self.missing), measurements, merged, k)
            if found is not None:
                tested.append((edge, self._statistic(found)))
                rows = max(float(found.counts.sum()), 1.0)
                shares.append((edge, float(found.counts[found.scores == 1.0].sum()) / rows))
        if not tested and len(self.edges) > 2:
            return None
        low, high = self.edges[0], self.edges[-1]
        for edge, z in tested:
            if z >= -critical:
                break
            low = edge
        for edge, z in reversed(tested):
            if z <= critical:
                break
            high = edge
        low, high = min(low, high), max(low, high)
        places = [self.edges[0], *(edge for edge, _ in shares), self.edges[-1]]
        heights = np.maximum.accumulate([0.0, *(min(max(share, 0.0), 1.0) for _, share in shares), 1.0])
        return CountInterval(min(max(at(places, heights, self.probability), low), high), low, high, self)

    def _statistic(self, found: Counted) -> float:
        """Return the standardised Σ (s − q) x: negative if fewer rows than q are below the edge."""
        q = self.probability
        off = found.scores - q
        rows = max(float(found.counts.sum()), 0.0)
        variance = found.sigma**2 * float(off**2 @ found.cells) + found.rows_per_person * rows * q * (1 - q)
        return float(off @ found.counts) / math.sqrt(max(variance, 1e-12))


def at(edges: Sequence[float], shares: FloatArray, probability: float) -> float:
    """Return the value below which this share of the rows lies, assuming that numbers are evenly spread inside their
    bins. ``shares`` are the increasing shares below each edge.
    """
    i = min(max(int(np.searchsorted(shares, probability)), 1), len(edges) - 1)
    step = float(shares[i] - shares[i - 1])
    inside = (probability - float(shares[i - 1])) / step if step > 0 else 0.5
    return float(edges[i - 1] + (edges[i] - edges[i - 1]) * min(max(inside, 0.0), 1.0))


@dataclass(frozen=True)
class Quantile:
    """Quantile of a numeric column at ``probability``, in the rows ``among``, which fulfil all these conditions."""

    column: str
    probability: float
    edges: tuple[float, ...]
    among: tuple[Level, ...] = ()
    missing: Mapping[str, int] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """The numeric column, and the columns of the conditions."""
        return (self.column, *(level.column for level in self.among))

    def parts(self) -> tuple[Part, ...]:
        """Return the single number of the figure."""
        group = named(*self.among)
        groups = (group,) if group else ()
        rests = observed_cells(self.column, groups or ((),), self.missing)
        contrast = QuantileContrast(self.column, self.edges, self.probability, group, self.missing.get(self.column))
        needs = Needs(self.columns, groups, rests=rests, missing=self.missing)
        name = "median" if self.probability == 0.5 else f"{100 * self.probability:g} % quantile"
        return (Part(name, needs, contrast=contrast),)

    def estimate(self, tally: Tally) -> tuple[FloatArray, FloatArray]:
        """Return the quantile, and NaN as its variance, because its interval follows from the counts."""
        tally = tally.observed(self.missing)
        weights = tally.weights * kept(tally, self.among)
        rows = np.bincount(tally.of(self.column), weights, len(self.edges) - 1)
        unknown = np.array([math.nan])
        if rows.sum() <= 0:
            return unknown, unknown
        shares = np.concatenate([[0.0], np.cumsum(rows)]) / rows.sum()
        return np.array([at(self.edges, shares, self.probability)]), unknown
