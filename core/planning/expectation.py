"""Effect of a plan's noise on its purpose, at any ε. All noise, in rows, is proportional to one factor. Everything that
does not depend on this factor is computed once (`Scale`), because a verdict evaluates a plan at hundreds of factors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from espalier.core.evaluation.verdict import CHANCE, CLOSE, GOOD_TV, POOR_TV
from espalier.core.planning.noise import FloatArray, Noise
from espalier.core.privacy.accounting import rho_of
from espalier.core.project.plan import LEAST_RARER

Rating = Literal["works", "weak", "noise"]
Purpose = Literal["outcome", "pairs"]

COLUMNS, PAIRS = 0.70, 0.13
"""Two weights for the mean total variation of pairs that noise adds to a release: the weight of the mean error of
single columns, and the weight of the mean error of the counts of pairs. Fitted to the first seven tables of ``TUNED``
in benchmarks/verdict.py.
"""

ALONG, ALONG_ODDS = 1.35, 0.5
"""`COLUMNS` and `ODDS` if every column is drawn from its causes, because errors of causes then reach their effects. The
first was fitted to decoder releases of all tables of ``TUNED``, for which the weight of pairs is 0.12. The second is
the smallest value with which the rating "works" for an outcome is correct for nine out of ten of these plans.
"""

ODDS, CROWD = 0.2, 300.0
"""Weights of the two sources of noise in a score that predicts the outcome: the log odds of the counts with the target;
and, if private choices decide which columns are counted with it, the squared mean error of single columns, which
measures the noise of these choices. Chosen on the same tables.
"""

SURE, SAFE = 3.0, 1.2
"""Two ratios: the loss stated as "up to" relative to the expected loss, and the total variation that must be small for
"works" relative to the expected total variation. They are the smallest values with which the rating "works" is right
for nearly all plans of ``TUNED``, and 70 % of the plans that work receive this rating.
"""

DROWNED, FAINT, HIDDEN = 0.1, 0.3, 2.0
"""Cramér's V of a small and of a medium association (Cohen 1988), and twice its largest possible value. A pair is rated
"works" if noise alone produces at most `DROWNED`, and "noise" if noise alone produces more than `FAINT`. An outcome is
rated "noise" only if the V that noise alone would produce with each column, if V were not bounded, is at least
`HIDDEN`: twice the V of a perfect association. A single strong predictor that is counted accurately may save a plan
whose expected loss is large, and a predictor that is only as strong as the noise is still often visible. `HIDDEN` was
0.5 and then 1 until the tables on which the rules are reported showed plans that worked although they were rated
"noise".
"""

EPSILONS = tuple(round(10 ** (k / 10), 3) for k in range(-13, 11))
"""Grid of ε, from 0.05 to 10."""


@dataclass(frozen=True)
class Assumed:
    """Assumptions of a verdict, none of which is measured. ``rows`` is n, which is public or declared. ``auc`` is the
    AUC that the method would reach without noise, and ``rarer`` the share of rows with the target's rarest value.
    """

    rows: float
    auc: float = 0.75
    rarer: float = 0.25

    def __str__(self) -> str:
        return (
            f"Assumed: {self.rows:,.0f} rows; an AUC of {self.auc:g} without noise; the rarest value of the target in "
            f"{100 * self.rarer:g} % of rows."
        )


@dataclass(frozen=True)
class Expectation:
    """Cost of noise at one ε. ``loss`` bounds the loss of AUC in most releases; None if nothing is predicted. ``tv`` is
    the share of rows that noise moves in a typical pair of columns. In a typical pair, noise hides associations below
    Cramér's V = ``drowned``. ``outcome`` is the rating for predicting the target, "noise" if the assumed AUC falls
    below `CHANCE` and noise hides even a perfect association of each column with the target. If it is "works",
    ``rarest`` is the smallest share of rows with the target's rarest value at which the plan still works.
    """

    epsilon: float
    loss: float | None
    tv: float
    drowned: float
    outcome: Rating | None
    rarest: float | None = None

    @property
    def pairs(self) -> Rating:
        """Rating for pairs of columns."""
        return rating_of(self.tv, GOOD_TV / SAFE, POOR_TV)

    def rating(self, purpose: Purpose) -> Rating:
        """Return the rating for ``purpose``."""
        return self.outcome or self.pairs if purpose == "outcome" else self.pairs

    def to_json(self) -> dict[str, Any]:
        """Return the cost as plans and releases store it."""
        return {**vars(self), "pairs": self.pairs}


class Scale:
    """A plan with all its noise multiplied by a ``factor``, from which the cost of noise and the smallest ε that works
    are computed.
    """

    def __init__(self, noise: Noise, assumed: Assumed) -> None:
        i, j = np.triu_indices(len(noise.names), 1)
        pair = noise.pair[i, j]
        self._columns = noise.unbounded_column_errors
        self._pairs = np.where(np.isfinite(pair), noise.unbounded_pair_errors(i, j), 0.0)
        self._seen = np.sort(noise.unbounded_visible(i, j))
        self._assumed, self._inside = assumed, noise.with_target > 0
        self._weight, self._odds_weight = (ALONG, ALONG_ODDS) if noise.along else (COLUMNS, ODDS)
        self._target = noise.target if self._inside.any() else None
        if self._target is not None:
            at = np.flatnonzero(self._inside)
            self._odds = noise.log_odds(assumed.rarer)[at] ** 2 / _rarity(assumed.rarer)
            self._shares, self._chosen = noise.with_target[at], float(noise.chosen[self._target, at].mean())
            self._best = float(noise.unbounded_visible(np.full(len(at), self._target), at).min())

    def tv(self, factor: float) -> float:
        """Return the expected total variation that noise adds to a typical pair."""
        pairs = float(np.minimum(1.0, factor * self._pairs).mean()) if len(self._pairs) else 0.0
        return min(1.0, self._weight * self._column_error(factor) + PAIRS * pairs)

    def loss(self, factor: float, rarer: float | None = None) -> float | None:
        """Return the loss of AUC, None if no table with the target is counted. ``rarer`` replaces the assumed share.

        Scores of the two classes are normal with distance d and variance d², AUC = Φ(d/√2). Noise in the counts adds a
        variance of v to the scores and no signal: AUC = Φ(d²/√(2(d² + v))).
        """
        if self._target is None:
            return None
        auc, normal = self._assumed.auc, NormalDist()
        crowd = self._chosen * self._column_error(factor) ** 2
        odds = factor**2 * _rarity(rarer or self._assumed.rarer) * self._odds
        v = self._odds_weight * float(self._shares @ np.minimum(odds, 16.0)) + CROWD * crowd
        d = math.sqrt(2) * normal.inv_cdf(auc)
        return min(SURE * (auc - normal.cdf(d * d / math.sqrt(2 * (d * d + v)))), auc - 0.5)

    def expect(self, epsilon: float, factor: float = 1.0) -> Expectation:
        """Return the cost of noise at ``epsilon``, where all noise is multiplied by ``factor``."""
        many, loss = len(self._seen), self.loss(factor)
        middle = np.minimum(1.0, factor * self._seen[(many - 1) // 2 : many // 2 + 1])
        outcome: Rating | None = None
        if loss is not None:
            lost = self._assumed.auc - loss < CHANCE and factor * self._best >= HIDDEN
            outcome = "works" if loss <= CLOSE else "noise" if lost else "weak"
        rarest = self._rarest(factor) if outcome == "works" else None
        return Expectation(epsilon, loss, self.tv(factor), float(middle.mean()) if many else 0.0, outcome, rarest)

    def _rarest(self, factor: float) -> float:
        """Return the smallest share of the rarest value at which a plan that works still works, by bisection."""
        low, high = min(LEAST_RARER, self._assumed.rarer), self._assumed.rarer
        for _ in range(12):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if (self.loss(factor, middle) or 0.0) <= CLOSE else (middle, high)
        return high

    def smallest_rho(self, purpose: Purpose, rho: float, delta: float) -> float | None:
        """Return the smallest ρ at which the plan works, by bisection; None if no ε of the grid is enough.

        ``rho`` is the plan's own. A plan that works at the grid's smallest ε has that ε's ρ.
        """

        def works(factor: float) -> bool:
            loss = self.loss(factor) if purpose == "outcome" else None
            return self.tv(factor) <= GOOD_TV / SAFE if loss is None else loss <= CLOSE

        most, least = rho_of(EPSILONS[-1], delta), rho_of(EPSILONS[0], delta)
        low, high = math.sqrt(rho / most), math.sqrt(rho / least)
        if not works(low):
            return None
        if works(high):
            return least
        for _ in range(14):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if works(middle) else (low, middle)
        return rho / low**2

    def _column_error(self, factor: float) -> float:
        return float(np.minimum(1.0, factor * self._columns).mean())


def _rarity(rarer: float) -> float:
    """Return the factor by which the share of the rarest value multiplies the squared noise of the log odds."""
    return 1 / rarer**2 + 1 / (1 - rarer) ** 2


def rating_of(value: float, good: float, poor: float) -> Rating:
    """Return the rating of a ``value``: "works" up to ``good``, "noise" above ``poor``, otherwise "weak"."""
    return "works" if value <= good else "weak" if value <= poor else "noise"


def shares_of(noise: Noise, purpose: Purpose, assumed: Assumed) -> FloatArray:
    """Return each column's share of the noise that affects the purpose."""
    if purpose == "outcome":
        odds = np.where(noise.with_target > 0, np.minimum(noise.log_odds(assumed.rarer) ** 2, 16.0), 0.0)
        found = np.nan_to_num(noise.with_target * odds)
    else:
        found = noise.column_errors
    total = float(found.sum())
    return np.asarray(found / total) if total > 0 else np.zeros(len(noise.names))
