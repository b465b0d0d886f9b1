"""Crude and adjusted effect of a treatment on an outcome in one table of rows.

The adjusted risk under treatment t is Σ_z p(z) P(event | t, z): the adjustment formula (Pearl, Causality, 2nd ed.,
equation 3.19), with Z from `espalier.core.graph.adjustment`. P(event | t, z) comes from each stratum of Z (saturated),
or from a logistic regression of the outcome on treatment and Z with main effects. The two estimands differ if the
effect varies between strata in a way that main effects cannot express.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from espalier.core.analysis.estimands import FloatArray, Part, Regression, compared, linear, logistic, observed_cells
from espalier.core.analysis.gate import Cell, Needs
from espalier.core.analysis.tally import Tally

Form = Literal["saturated", "logistic"]
Means = dict[int, tuple[float, float]]
"""Mean outcome under each treatment level and under the reference."""

ROWS_PER_STRATUM = 20
"""Rows per stratum and treatment, on average, below which some strata are likely to be empty."""


def suggested_form(rows: int, sizes: Mapping[str, int], treatment: str, adjust: tuple[str, ...]) -> Form:
    """Return "saturated" if ``rows`` fill the strata, else "logistic". The choice uses only public numbers."""
    cells = math.prod(sizes[name] for name in (treatment, *adjust))
    return "saturated" if rows >= ROWS_PER_STRATUM * cells else "logistic"


@dataclass(frozen=True)
class StandardisedEffect:
    """Differences and ratios of risk between treatment levels: crude, and adjusted for the columns ``adjust``.

    ``event`` is the category of the outcome that defines the risk. If it is `None`, the figure compares means of the
    outcome's ``scores``, one number per category (bin midpoints of a binned column), and has no ratios. Each category
    of the treatment is compared with ``reference``. ``sizes`` are numbers of categories, ``labels`` their names.
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
    missing: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = (self.treatment, self.outcome, *self.adjust)
        if len(set(names)) != len(names):
            raise ValueError("treatment, outcome and adjustment columns must all differ")
        if self.event is None and len(self.scores) != self.sizes[self.outcome] - (self.outcome in self.missing):
            raise ValueError(f"{self.outcome!r} needs an event, or a score for each of its categories")

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the treatment, the adjustment set and the outcome."""
        return (self.treatment, *self.adjust, self.outcome)

    @property
    def levels(self) -> tuple[int, ...]:
        """Codes of the treatment's categories that are compared with the reference."""
        left_out = (self.reference, self.missing.get(self.treatment))
        return tuple(code for code in range(self.sizes[self.treatment]) if code not in left_out)

    def parts(self) -> tuple[Part, ...]:
        """Return, for each level, the crude and adjusted difference, and for an event the crude and adjusted ratio.

        Without adjustment columns there are no adjusted numbers, because they would equal the crude ones.
        """
        out = []
        for code in self.levels:
            groups: tuple[Cell, ...] = tuple(((self.treatment, level),) for level in (self.reference, code))
            events: tuple[Cell, ...] = ()
            rests = observed_cells(self.outcome, groups, self.missing)
            if self.event is not None:
                events = rests = tuple(((self.outcome, self.event), *group) for group in groups)
            pair = self.treatment, self.outcome
            crude = Needs(pair, groups + events, rests=rests, missing=self._missing(pair))
            full = replace(
                crude,
                columns=self.columns,
                outcome=self.outcome,
                together=(self.treatment,),
                missing=self.missing,
                support=groups,
            )
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
        """Return the numbers of `parts`, with ratios as logarithms, and NaN as variances, because the copies provide
        the variances.

        Crude figures use rows where treatment and outcome are observed. Adjusted figures use rows where all columns are
        observed.
        """
        told = [self._crude(tally.observed(self._missing((self.treatment, self.outcome))))]
        if self.adjust:
            told.append(self._adjusted(tally.observed(self.missing)))
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

    def _missing(self, columns: Sequence[str]) -> dict[str, int]:
        return {name: code for name, code in self.missing.items() if name in columns}

    def _crude(self, tally: Tally) -> Means:
        means = _means(tally.of(self.treatment), self._values(tally), tally.weights, self.sizes[self.treatment])
        return {code: (float(means[code]), float(means[self.reference])) for code in self.levels}

    def _adjusted(self, tally: Tally) -> Means:
        """Return the mean outcome if everyone had a given treatment level, for each level, and if everyone had the
        reference.
        """
        values = self._values(tally)
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
            both = np.isfinite(pair).all(axis=1)  # the effect in the strata with rows of both levels
            whole = float(shares[both].sum())
            treated, control = shares[both] @ pair[both] / whole if whole else (math.nan, math.nan)
            out[code] = (float(treated), float(control))
        return out

    def _strata(self, tally: Tally) -> tuple[int, NDArray[np.int64]]:
        codes = np.stack([tally.of(name) for name in self.adjust], axis=1)
        found, of = np.unique(codes, axis=0, return_inverse=True)
        return len(found), of.reshape(-1).astype(np.int64)

    def _by_regression(self, tally: Tally, values: FloatArray) -> Means:
        reference, predictors = {self.treatment: self.reference}, (self.treatment, *self.adjust)
        model = Regression(self.outcome, predictors, self.sizes, 0, {}, reference, missing=self.missing)
        x = model.design(tally)
        levels = 1 + len(self.levels)
        beta, _ = (linear if self.event is None else logistic)(x, values, tally.weights)
        beta = np.where(np.isfinite(beta) | (np.arange(len(beta)) < levels), beta, 0.0)  # a category of Z without rows
        risk = {}
        for code in (self.reference, *self.levels):
            treated = x.copy()
            treated[:, 1:levels] = 0.0
            if code != self.reference:
                treated[:, 1 + self.levels.index(code)] = 1.0
            score = treated @ beta
            means = score if self.event is None else 1 / (1 + np.exp(-score))
            risk[code] = float(np.average(means, weights=tally.weights)) if len(means) else math.nan
        return {code: (risk[code], risk[self.reference]) for code in self.levels}


def _means(groups: NDArray[np.int64], values: FloatArray, weights: FloatArray, size: int) -> FloatArray:
    """Return the weighted mean of ``values`` in each group; NaN for a group without rows."""
    rows = np.bincount(groups, weights, size)
    sums = np.bincount(groups, weights * values, size)
    out = np.full(size, math.nan)
    np.divide(sums, rows, out=out, where=rows > 0)
    return out
