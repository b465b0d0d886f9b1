"""The verdict on a plan before anything is spent: the effect of its noise, from public facts and declared assumptions.

Public facts give the noise, not the signal. So a verdict states "a loss of up to 0.04 AUC" and "associations below V =
0.1 are hidden". Its ratings are those of the verdict on a
release (`espalier.core.evaluation.verdict`). The constants were
fitted on one set of tables (``python -m benchmarks.verdict``). The form of the formula was chosen when the figures of
the other set were known, so that set is not a clean check.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from espalier.core.evaluation.verdict import CHANCE, CLOSE, GOOD_TV, POOR_TV
from espalier.core.planning.noise import FloatArray, Noise
from espalier.core.privacy.accounting import epsilon_of, rho_of

Rating = Literal["works", "weak", "noise"]
Purpose = Literal["outcome", "pairs"]

COLUMNS, PAIRS = 0.70, 0.13
"""Weights in the mean total variation of pairs that noise adds to a release: of the mean error of single columns, and
of the mean error of the counts of pairs. Fitted to the tables of ``TUNED`` in benchmarks/verdict.py."""

ODDS, CROWD = 0.2, 300.0
"""Weights of the two sources of noise in a score that predicts the outcome: the log odds of the counts with the target;
and, if private choices decide which columns are counted with it, the squared mean error of single columns, which
measures the noise of these choices. Chosen on the tables of ``TUNED``."""

SURE = 1.5
"""Ratio of the loss stated as "up to" to the expected loss."""

DROWNED, FAINT = 0.1, 0.3
"""Cramér's V of a small and of a medium association (Cohen 1988): below `DROWNED` a pair must be visible to be rated
"works"; a pair in which noise alone shows more than `FAINT` is rated "noise"."""

EPSILONS = tuple(round(10 ** (k / 10), 3) for k in range(-13, 11))
"""The grid of ε, from 0.05 to 10."""
SHOWN, WORTH = 3, 0.8
"""Largest number of changes that a verdict offers, and the share of ε that must suffice after an offered one."""


@dataclass(frozen=True)
class Assumed:
    """The assumptions of a verdict; none of them is measured.

    ``rows`` is n, public or declared. ``auc`` is the AUC that the method would reach without noise, and ``rarer`` the
    share of rows with the target's rarer value.
    """

    rows: float
    auc: float = 0.75
    rarer: float = 0.25

    def __str__(self) -> str:
        return (
            f"Assumed: {self.rows:,.0f} rows; an AUC of {self.auc:g} without noise; the rarer value of the target in "
            f"{100 * self.rarer:g} % of rows."
        )


@dataclass(frozen=True)
class Expectation:
    """The cost of noise at one ε.

    ``loss`` bounds the loss of AUC in most releases; None if nothing is predicted. ``tv`` is the share
    of rows that noise moves in a typical pair of columns. In a typical pair, noise hides associations below Cramér's V
    = ``drowned``. ``outcome`` is the rating for predicting the target, "noise" if the assumed AUC falls below
    `CHANCE`.
    """

    epsilon: float
    loss: float | None
    tv: float
    drowned: float
    outcome: Rating | None

    @property
    def pairs(self) -> Rating:
        """The rating for pairs of columns."""
        return _rating(self.tv, GOOD_TV, POOR_TV)

    def rating(self, purpose: Purpose) -> Rating:
        """The rating for ``purpose``."""
        return self.outcome or self.pairs if purpose == "outcome" else self.pairs

    def to_json(self) -> dict[str, Any]:
        """Return it as stored in plans and releases."""
        return {**vars(self), "pairs": self.pairs}


@dataclass(frozen=True)
class ColumnVerdict:
    """One column: ``error`` is the share of its rows that noise moves, ``share`` its part of the plan's whole noise.

    Associations with the target below V = ``drowned`` drown; None for a column that is not counted with it.
    """

    column: str
    rating: Rating
    error: float
    drowned: float | None
    share: float


@dataclass(frozen=True)
class Step:
    """A change of one column, and the smallest ε that suffices after it (None: none up to the grid's end).

    ``values_left`` is the number of values of a coarsened column; None if the column is left out.
    """

    column: str
    values_left: int | None
    epsilon: float | None

    def __str__(self) -> str:
        do = (
            f"Leave out {self.column!r}"
            if self.values_left is None
            else f"Coarsen {self.column!r} to {self.values_left} values"
        )
        then = "no ε up to 10 is enough even then" if self.epsilon is None else f"ε = {enough(self.epsilon)} is enough"
        return f"{do}: {then}."


@dataclass(frozen=True)
class Verdict:
    """The verdict on one plan. ``grid`` is the same for other ε, all else as planned."""

    purpose: Purpose
    target: str | None
    now: Expectation
    grid: tuple[Expectation, ...]
    smallest_epsilon: float | None
    steps: tuple[Step, ...]
    assumed: Assumed
    noise: Noise

    @property
    def rating(self) -> Rating:
        """The rating of the plan for its purpose."""
        return self.now.rating(self.purpose)

    @cached_property
    def columns(self) -> tuple[ColumnVerdict, ...]:
        """All columns with more than one value, the noisiest first."""
        noise, errors = self.noise, self.noise.column_errors
        shares, counted = _shares(noise, self.purpose, self.assumed), noise.with_target > 0
        out = []
        for i, name in enumerate(noise.names):
            drowned = float(noise.visible[noise.target, i]) if noise.target is not None and counted[i] else None
            rating = _rating(float(errors[i]), GOOD_TV, POOR_TV)
            if self.purpose == "outcome" and drowned is not None:
                rating = _worse(rating, _rating(drowned, DROWNED, FAINT))
            out.append(ColumnVerdict(name, rating, float(errors[i]), drowned, float(shares[i])))
        return tuple(sorted(out, key=lambda c: -c.share))

    def pair(self, one: str, other: str) -> tuple[Rating, float]:
        """The rating of a pair of columns, and Cramér's V below which noise hides its association."""
        i, j = self.noise.names.index(one), self.noise.names.index(other)
        drowned = float(self.noise.visible[i, j])
        return _rating(drowned, DROWNED, FAINT), drowned

    @cached_property
    def pair_counts(self) -> dict[Rating, int]:
        """The number of pairs with each rating."""
        seen = self.noise.visible[np.triu_indices(len(self.noise.names), 1)]
        works, noise = int((seen <= DROWNED).sum()), int((seen > FAINT).sum())
        return {"works": works, "weak": len(seen) - works - noise, "noise": noise}

    @property
    def headline(self) -> str:
        """The first sentence."""
        if self.purpose == "outcome" and self.now.loss is not None:
            lost = f"up to {self.now.loss:.2f}" if self.now.loss >= 0.005 else "less than 0.01"
            loss = f"Noise costs it {lost} AUC."
            model = "a model trained on this table"
            return {
                "works": f"Works: {model} will predict {self.target} about as well as without noise. {loss}",
                "weak": f"Weak: {model} may predict {self.target} less well than without noise. {loss}",
                "noise": f"Noise outweighs the data: {model} may not predict {self.target}. {loss}",
            }[self.rating]
        return self._pairs

    @property
    def sentences(self) -> tuple[str, ...]:
        """The other findings, one or two sentences each."""
        now = self.now
        out = [] if self.purpose == "pairs" or now.loss is None else [self._pairs]
        out.append(f"In a typical pair of columns, noise hides associations below V = {now.drowned:.2g}.")
        if noisy := [c.column for c in self.columns if c.rating == "noise"]:
            more = f" and {len(noisy) - 5} more" if len(noisy) > 5 else ""
            out.append(f"Mostly noise: {', '.join(noisy[:5])}{more}.")
        if self.smallest_epsilon is None:
            out.append(f"No ε up to {EPSILONS[-1]:g} meets this purpose with these columns.")
        elif self.rating == "works":
            out.append(f"ε = {enough(self.smallest_epsilon)} would be enough for this purpose.")
        else:
            out.append(f"This purpose needs ε = {enough(self.smallest_epsilon)}.")
        return (*out, *map(str, self.steps), str(self.assumed))

    @property
    def _pairs(self) -> str:
        moved = f"Noise moves about {100 * self.now.tv:.2g} % of rows in a typical pair of columns."
        return {
            "works": f"Works: this table will show the real shares closely. {moved}",
            "weak": f"Weak: this table will show the real shares roughly. {moved}",
            "noise": f"Noise outweighs the data: this table will not show the real shares. {moved}",
        }[self.now.pairs]

    def to_json(self) -> dict[str, Any]:
        """Return it as stored in plans and releases: no value depends on the rows."""
        return {
            "purpose": self.purpose,
            "rating": self.rating,
            "headline": self.headline,
            "sentences": list(self.sentences),
            "now": self.now.to_json(),
            "smallest_epsilon": self.smallest_epsilon,
            "columns": [vars(c) for c in self.columns],
            "pairs": dict(self.pair_counts),
            "steps": [vars(s) for s in self.steps],
            "grid": [e.to_json() for e in self.grid],
            "assumed": vars(self.assumed),
        }


def verdict_of(noise: Noise, purpose: Purpose, epsilon: float, delta: float, assumed: Assumed) -> Verdict:
    """Return the verdict on a plan with this ``noise`` at (``epsilon``, ``delta``).

    At another ε, all noise of the plan is multiplied by the root of the ratio of ρ. (A method may divide its budget
    differently there; a plan with that ε shows it.)
    """
    if noise.target is None or not noise.with_target.any():
        purpose = "pairs"
    rho = rho_of(epsilon, delta)

    def at(e: float) -> Expectation:
        return _expect(noise.scaled(math.sqrt(rho / rho_of(e, delta))), e, assumed)

    grid = tuple(at(e) for e in EPSILONS)
    smallest = _smallest(noise, purpose, rho, delta, assumed)
    steps = _steps(noise, purpose, rho, delta, assumed, smallest)
    name = None if noise.target is None else noise.names[noise.target]
    return Verdict(purpose, name, _expect(noise, epsilon, assumed), grid, smallest, steps, assumed, noise)


def _expect(noise: Noise, epsilon: float, assumed: Assumed) -> Expectation:
    i, j = np.triu_indices(len(noise.names), 1)
    seen = noise.visible[i, j]
    drowned = float(np.median(seen)) if len(seen) else 0.0
    loss = _loss(noise, assumed)
    outcome: Rating | None = None
    if loss is not None:
        outcome = "works" if loss <= CLOSE else "noise" if assumed.auc - loss < CHANCE else "weak"
    return Expectation(epsilon, loss, _tv(noise), drowned, outcome)


def _tv(noise: Noise) -> float:
    """Return the expected total variation that noise adds to a typical pair."""
    i, j = np.triu_indices(len(noise.names), 1)
    errors = noise.pair_errors[i, j]
    counted = np.isfinite(noise.pair[i, j])
    pairs = float(np.where(counted, errors, 0.0).mean()) if len(errors) else 0.0
    return min(1.0, COLUMNS * float(noise.column_errors.mean()) + PAIRS * pairs)


def _loss(noise: Noise, assumed: Assumed) -> float | None:
    """Return the loss of AUC, None if no table with the target is counted.

    Scores of the two classes are normal with distance d and variance d², AUC = Φ(d/√2). Noise in the counts adds a
    variance of v to the scores and no signal: AUC = Φ(d²/√(2(d² + v))).
    """
    if noise.target is None or not noise.with_target.any():
        return None
    inside = noise.with_target > 0
    odds = np.minimum(noise.log_odds(assumed.rarer)[inside] ** 2, 16.0)
    chosen = float(noise.chosen[noise.target, inside].mean())
    crowd = chosen * float(noise.column_errors.mean()) ** 2
    v = ODDS * float(noise.with_target[inside] @ odds) + CROWD * crowd
    d = math.sqrt(2) * _quantile(assumed.auc)
    expected = _normal(d / math.sqrt(2)) - _normal(d * d / math.sqrt(2 * (d * d + v)))
    return min(SURE * expected, assumed.auc - 0.5)


def _smallest(noise: Noise, purpose: Purpose, rho: float, delta: float, assumed: Assumed) -> float | None:
    """Return the smallest ε at which the plan works: bisection on the factor of its noise, then one conversion."""

    def works(factor: float) -> bool:
        other = noise.scaled(factor)
        loss = _loss(other, assumed) if purpose == "outcome" else None
        return _tv(other) <= GOOD_TV if loss is None else loss <= CLOSE

    low, high = math.sqrt(rho / rho_of(EPSILONS[-1], delta)), math.sqrt(rho / rho_of(EPSILONS[0], delta))
    if not works(low):
        return None
    if works(high):
        return EPSILONS[0]
    for _ in range(14):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if works(middle) else (low, middle)
    return epsilon_of(rho / low**2, delta)


def _shares(noise: Noise, purpose: Purpose, assumed: Assumed) -> FloatArray:
    """Return each column's share of the noise that affects the purpose."""
    if purpose == "outcome":
        odds = np.where(noise.with_target > 0, np.minimum(noise.log_odds(assumed.rarer) ** 2, 16.0), 0.0)
        found = np.nan_to_num(noise.with_target * odds)
    else:
        found = noise.column_errors
    total = float(found.sum())
    return np.asarray(found / total) if total > 0 else np.zeros(len(noise.names))


def _steps(
    noise: Noise, purpose: Purpose, rho: float, delta: float, assumed: Assumed, smallest: float | None
) -> tuple[Step, ...]:
    """Return the changes of one column that lower the smallest ε most."""
    if len(noise.names) < 3 or smallest == EPSILONS[0]:
        return ()
    worst = np.argsort(-_shares(noise, purpose, assumed), kind="stable")[: 2 * SHOWN]
    out = []
    for i in worst.tolist():
        if i == noise.target:
            continue
        size = int(noise.sizes[i])
        changed: list[tuple[int | None, Noise]] = [(None, _without(noise, i))]
        if size >= 6:
            fewer = max(3, size // 3)
            changed.append((fewer, _coarser(noise, i, fewer)))
        for values, other in changed:
            needed = _smallest(other, purpose, rho, delta, assumed)
            if needed is not None and (smallest is None or needed < WORTH * smallest):
                out.append(Step(noise.names[i], values, needed))
    out.sort(key=lambda s: s.epsilon or math.inf)
    return tuple(out[:SHOWN])


def _without(noise: Noise, i: int) -> Noise:
    """The plan without column ``i``: its share of the budget goes to the others, evenly."""
    kept = [k for k in range(len(noise.names)) if k != i]
    factor = math.sqrt(len(kept) / len(noise.names))
    target = None if noise.target is None else noise.target - (i < noise.target)
    square = np.ix_(kept, kept)
    names = tuple(noise.names[k] for k in kept)
    return replace(
        noise,
        names=names,
        sizes=noise.sizes[kept],
        one=noise.one[kept],
        pair=noise.pair[square],
        chosen=noise.chosen[square],
        target=target,
        with_target=noise.with_target[kept],
    ).scaled(factor)


def _coarser(noise: Noise, i: int, values: int) -> Noise:
    sizes = noise.sizes.copy()
    sizes[i] = values
    return replace(noise, sizes=sizes)


def _rating(value: float, good: float, poor: float) -> Rating:
    return "works" if value <= good else "weak" if value <= poor else "noise"


def _worse(one: Rating, other: Rating) -> Rating:
    order: Sequence[Rating] = ("works", "weak", "noise")
    return max(one, other, key=order.index)


def enough(epsilon: float) -> str:
    """Return ε with two significant digits, rounded up so that it still meets the purpose."""
    step = 10 ** (math.floor(math.log10(epsilon)) - 1)
    return f"{math.ceil(epsilon / step - 1e-9) * step:.2g}"


def _normal(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))


def _quantile(p: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(p)
