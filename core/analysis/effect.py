"""The effect of a treatment on an outcome, crude and adjusted, in one table of rows.

The adjusted risk under treatment t is Σ_z p(z) P(event | t, z): the adjustment formula (Pearl, Causality, 2nd ed.,
equation 3.19), with Z from `espalier.core.graph.adjustment`. P(event | t, z) is read off each stratum of Z (saturated),
or from a logistic regression of the outcome on treatment and Z by main effects. The two estimate different things where
the effect differs between strata in ways that main effects cannot follow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from espalier.core.analysis.figures import FloatArray, Part, Regression, compared, linear, logistic
from espalier.core.analysis.gate import Cell, Needs
from espalier.core.analysis.tally import Tally

Form = Literal["saturated", "logistic"]
Means = dict[int, tuple[float, float]]
"""By treatment level, the mean outcome under it and under the reference."""

ROWS_PER_STRATUM = 20
"""Below this many rows for each stratum and treatment, on average, strata run empty."""


def suggested_form(rows: int, sizes: Mapping[str, int], treatment: str, adjust: tuple[str, ...]) -> Form:
    """Saturated where the strata are few for so many ``rows``, else logistic; from public numbers."""
    cells = math.prod(sizes[name] for name in (treatment, *adjust))
    return "saturated" if rows >= ROWS_PER_STRATUM * cells else "logistic"


@dataclass(frozen=True)
class StandardisedEffect:
    """Differences and ratios of risk between treatment levels: crude, and adjusted for ``adjust`` if that names any.

    ``event`` is the outcome's category whose risk is compared; where it is None, means of the outcome's ``scores`` (a
    number per category; the middles of bins for a binned one) are, and there are no ratios. Each category of the
    treatment is compared with ``reference``. ``sizes`` are the numbers of categories, ``labels`` what they are called.
    """

    treatment: str
    outcome: str
    adjust: tuple[str, ...]
    sizes: Mapping[str, int]
    event: int | None = None
    scores: tuple[float, ...] = ()
    reference: int = 0
    form: Form = "saturated"
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = (self.treatment, self.outcome, *self.adjust)
        if len(set(names)) != len(names):
            raise ValueError("treatment, outcome and the columns adjusted for must all differ")
        if self.event is None and len(self.scores) != self.sizes[self.outcome]:
            raise ValueError(f"there must be a score for each category of {self.outcome!r}, or an event")

    @property
    def columns(self) -> tuple[str, ...]:
        """Treatment, the columns adjusted for, outcome."""
        return (self.treatment, *self.adjust, self.outcome)

    @property
    def levels(self) -> tuple[int, ...]:
        """The treatment's categories that are compared with the reference."""
        return tuple(code for code in range(self.sizes[self.treatment]) if code != self.reference)

    def parts(self) -> tuple[Part, ...]:
        """For each level the crude and the adjusted difference, then (of an event) the crude and adjusted ratio.

        Where nothing is adjusted for, the crude ones alone: the adjusted ones would say the same again.
        """
        out = []
        for code in self.levels:
            groups: tuple[Cell, ...] = tuple(((self.treatment, level),) for level in (self.reference, code))
            events: tuple[Cell, ...] = ()
            if self.event is not None:
                events = tuple(((self.outcome, self.event), *group) for group in groups)
            crude = Needs((self.treatment, self.outcome), groups + events, rests=events)
            full = replace(crude, columns=self.columns, outcome=self.outcome, together=(self.treatment,))
            for what in ("difference", "ratio") if self.event is not None else ("difference",):
                out += [
                    Part(
                        f"{kind} {what}, {compared(self.treatment, code, self.reference, self.labels)}",
                        needs,
                        what == "ratio",
                    )
                    for kind, needs in (("crude", crude), ("adjusted", full))[: 2 if self.adjust else 1]
                ]
        return tuple(out)

    def estimate(self, tally: Tally) -> tuple[FloatArray, FloatArray]:
        """The numbers of `parts`; ratios as logarithms. Variances are NaN: the copies tell them."""
        values = self._values(tally)
        told = [self._crude(tally, values), *([self._adjusted(tally, values)] if self.adjust else [])]
        out: list[float] = []
        with np.errstate(divide="ignore", invalid="ignore"):
            for code in self.levels:
                pairs = [means[code] for means in told]
                out += [treated - control for treated, control in pairs]
                if self.event is not None:
                    out += [float(np.log(np.divide(treated, control))) for treated, control in pairs]
        found = np.array(out, dtype=np.float64)
        found[~np.isfinite(found)] = math.nan
        return found, np.full(len(found), math.nan)

    def _values(self, tally: Tally) -> FloatArray:
        codes = tally.of(self.outcome)
        if self.event is None:
            scores: FloatArray = np.asarray(self.scores, dtype=np.float64)[codes]
            return scores
        happened: FloatArray = np.asarray(codes == self.event, dtype=np.float64)
        return happened

    def _crude(self, tally: Tally, values: FloatArray) -> Means:
        means = _means(tally.of(self.treatment), values, tally.weights, self.sizes[self.treatment])
        return {code: (float(means[code]), float(means[self.reference])) for code in self.levels}

    def _adjusted(self, tally: Tally, values: FloatArray) -> Means:
        """The mean outcome, had everybody had each level of the treatment, and had everybody had the reference."""
        if self.form == "logistic":
            return self._by_regression(tally, values)
        strata, of = self._strata(tally)
        levels = self.sizes[self.treatment]
        means = _means(of * levels + tally.of(self.treatment), values, tally.weights, strata * levels)
        means = means.reshape(strata, levels)
        shares = np.bincount(of, tally.weights, strata)
        out = {}
        for code in self.levels:
            pair = means[:, [code, self.reference]]
            both = np.isfinite(pair).all(axis=1)  # other strata cannot tell the effect: it is that in these
            whole = float(shares[both].sum())
            treated, control = shares[both] @ pair[both] / whole if whole else (math.nan, math.nan)
            out[code] = (float(treated), float(control))
        return out

    def _strata(self, tally: Tally) -> tuple[int, NDArray[np.int64]]:
        codes = np.stack([tally.of(name) for name in self.adjust], axis=1)
        found, of = np.unique(codes, axis=0, return_inverse=True)
        return len(found), of.reshape(-1).astype(np.int64)

    def _by_regression(self, tally: Tally, values: FloatArray) -> Means:
        model = Regression(
            self.outcome, (self.treatment, *self.adjust), self.sizes, 0, {}, {self.treatment: self.reference}
        )
        x = model.design(tally)
        levels = self.sizes[self.treatment]
        beta, _ = (linear if self.event is None else logistic)(x, values, tally.weights)
        beta = np.where(np.isfinite(beta) | (np.arange(len(beta)) < levels), beta, 0.0)  # a category of Z without rows
        risk = []
        for code in range(levels):
            treated = x.copy()
            treated[:, 1:levels] = 0.0
            if code != self.reference:
                treated[:, 1 + self.levels.index(code)] = 1.0
            score = treated @ beta
            means = score if self.event is None else 1 / (1 + np.exp(-score))
            risk.append(float(np.average(means, weights=tally.weights)))
        return {code: (risk[code], risk[self.reference]) for code in self.levels}


def _means(groups: NDArray[np.int64], values: FloatArray, weights: FloatArray, size: int) -> FloatArray:
    """The weighted mean of ``values`` in each group; NaN where it has no rows."""
    rows = np.bincount(groups, weights, size)
    sums = np.bincount(groups, weights * values, size)
    out = np.full(size, math.nan)
    np.divide(sums, rows, out=out, where=rows > 0)
    return out


def unsupported(effect: StandardisedEffect, tally: Tally) -> float:
    """The share of rows in strata that lack some level of the treatment: what a saturated effect says nothing of."""
    if not effect.adjust:
        return 0.0
    strata, of = effect._strata(tally)
    levels = effect.sizes[effect.treatment]
    rows = np.bincount(of * levels + tally.of(effect.treatment), tally.weights, strata * levels).reshape(strata, levels)
    return float(rows[(rows == 0).any(axis=1)].sum() / rows.sum())
