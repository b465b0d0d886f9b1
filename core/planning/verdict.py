"""Verdict on the effect of a plan's noise, computed from public facts and declared assumptions before anything is
spent. Public facts determine the noise but not the signal. A verdict therefore states, for example, "a loss of up to
0.04 AUC" or "associations below V = 0.1 are hidden". Its ratings have the same names as in the verdict on a release
(`espalier.core.evaluation.verdict`). The rules were chosen on some tables and are checked on others (``python -m
benchmarks.verdict``). One rule was changed after the results on the other tables had been seen, so these tables are not
a clean test of that rule (`espalier.core.planning.expectation.HIDDEN`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from espalier.core.evaluation.verdict import GOOD_TV, POOR_TV
from espalier.core.planning.expectation import (
    DROWNED,
    EPSILONS,
    FAINT,
    Assumed,
    Expectation,
    Purpose,
    Rating,
    Scale,
    rating_of,
    shares_of,
)
from espalier.core.planning.noise import Noise
from espalier.core.privacy.accounting import epsilon_of, rho_of

SHOWN, WORTH = 3, 0.8
"""Maximum number of changes that a verdict suggests. A change is suggested only if this share of the current ε is
enough after it.
"""

MENTIONED = 0.005
"""Share of the target's rarest value above which the first sentence states it as a limit."""


@dataclass(frozen=True)
class ColumnVerdict:
    """Verdict on one column. ``error`` is the share of its rows that noise moves, and ``share`` is its part of the
    plan's total noise.

    Noise hides associations with the target below V = ``drowned``; None for a column that is not counted with the
    target.
    """

    column: str
    rating: Rating
    error: float
    drowned: float | None
    share: float


@dataclass(frozen=True)
class Step:
    """A change of one column, and the smallest ε that is enough after the change; None if no ε of the grid is enough.

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
    """Verdict on one plan. ``grid`` holds the verdict at other ε, with everything else unchanged."""

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
        """Rating of the plan for its purpose."""
        return self.now.rating(self.purpose)

    @cached_property
    def columns(self) -> tuple[ColumnVerdict, ...]:
        """All columns with more than one value, the noisiest first."""
        noise, errors = self.noise, self.noise.column_errors
        shares, counted = shares_of(noise, self.purpose, self.assumed), noise.with_target > 0
        out = []
        for i, name in enumerate(noise.names):
            drowned = float(noise.visible[noise.target, i]) if noise.target is not None and counted[i] else None
            rating = rating_of(float(errors[i]), GOOD_TV, POOR_TV)
            if self.purpose == "outcome" and drowned is not None:
                rating = _worse(rating, rating_of(drowned, DROWNED, FAINT))
            out.append(ColumnVerdict(name, rating, float(errors[i]), drowned, float(shares[i])))
        return tuple(sorted(out, key=lambda c: -c.share))

    def pair(self, one: str, other: str) -> tuple[Rating, float]:
        """Return the rating of a pair of columns, and Cramér's V below which noise hides its association."""
        i, j = self.noise.names.index(one), self.noise.names.index(other)
        drowned = float(self.noise.visible[i, j])
        return rating_of(drowned, DROWNED, FAINT), drowned

    @cached_property
    def pair_counts(self) -> dict[Rating, int]:
        """Number of pairs with each rating."""
        seen = self.noise.visible[np.triu_indices(len(self.noise.names), 1)]
        works, noise = int((seen <= DROWNED).sum()), int((seen > FAINT).sum())
        return {"works": works, "weak": len(seen) - works - noise, "noise": noise}

    @property
    def headline(self) -> str:
        """First sentence of the verdict."""
        if self.purpose == "outcome" and self.now.loss is not None:
            lost = f"up to {self.now.loss:.2f}" if self.now.loss >= 0.005 else "less than 0.01"
            loss = f"Noise lowers its AUC by {lost}."
            model = "a model trained on this table"
            rare = self.now.rarest
            if rare is not None and rare > MENTIONED:
                loss += f" The loss may be larger if fewer than {enough(100 * rare)} % of rows have the rarest outcome."
            return {
                "works": f"Works: {model} will predict {self.target} about as well as without noise. {loss}",
                "weak": f"Weak: {model} may predict {self.target} less well than without noise. {loss}",
                "noise": f"Noise outweighs the data: {model} may not predict {self.target}, even if a model trained on "
                f"the real rows does. {loss}",
            }[self.rating]
        return self._pairs

    @property
    def sentences(self) -> tuple[str, ...]:
        """Other findings, in one or two sentences each."""
        now = self.now
        out = [] if self.purpose == "pairs" or now.loss is None else [self._pairs]
        out.append(f"In a typical pair of columns, noise hides associations below V = {now.drowned:.2g}.")
        if noisy := [c.column for c in self.columns if c.rating == "noise"]:
            more = f" and {len(noisy) - 5} more" if len(noisy) > 5 else ""
            out.append(f"Mostly noise: {', '.join(noisy[:5])}{more}.")
        if self.smallest_epsilon is None:
            out.append(f"No ε up to {EPSILONS[-1]:g} is enough for this purpose with these columns.")
        elif self.rating == "works":
            out.append(f"ε = {enough(self.smallest_epsilon)} would be enough for this purpose.")
        else:
            out.append(f"This purpose needs ε = {enough(self.smallest_epsilon)}.")
        return (*out, *map(str, self.steps), self.assumptions)

    @property
    def assumptions(self) -> str:
        """The assumptions that the verdict uses, in one sentence."""
        return str(self.assumed) if self.purpose == "outcome" else f"Assumed: {self.assumed.rows:,.0f} rows."

    @property
    def _pairs(self) -> str:
        moved = f"In a typical pair of columns, noise moves about {100 * self.now.tv:.2g} % of rows to another cell."
        return {
            "works": f"Works: this table will reproduce the real shares closely. {moved}",
            "weak": f"Weak: this table will reproduce the real shares only roughly. {moved}",
            "noise": f"Noise outweighs the data: this table will not reproduce the real shares. {moved}",
        }[self.now.pairs]

    def to_json(self) -> dict[str, Any]:
        """Return the verdict in the form that plans and releases store. No value depends on the rows."""
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


def verdict_of(
    noise: Noise, purpose: Purpose, epsilon: float, delta: float, assumed: Assumed, needed: Collection[str] = ()
) -> Verdict:
    """Return the verdict on a plan with this ``noise`` at (``epsilon``, ``delta``). It never suggests leaving out a
    column in ``needed``.

    For another ε, all noise of the plan is multiplied by the root of the ratio of the two ρ. (With that ε, a method may
    divide its budget differently; the verdict on a plan with that ε takes this into account.)
    """
    if noise.target is None or not noise.with_target.any():
        purpose = "pairs"
    rho, scale = rho_of(epsilon, delta), Scale(noise, assumed)
    grid = tuple(scale.expect(e, math.sqrt(rho / rho_of(e, delta))) for e in EPSILONS)
    found = scale.smallest_rho(purpose, rho, delta)
    smallest = None if found is None else _epsilon(found, delta)
    steps = _steps(noise, purpose, rho, delta, assumed, smallest, needed)
    name = None if noise.target is None else noise.names[noise.target]
    return Verdict(purpose, name, scale.expect(epsilon), grid, smallest, steps, assumed, noise)


def _epsilon(rho: float, delta: float) -> float:
    """Return the ε of the smallest ρ that works; for the ρ of the grid's first ε, return exactly that ε."""
    return EPSILONS[0] if rho == rho_of(EPSILONS[0], delta) else epsilon_of(rho, delta)


def _steps(
    noise: Noise,
    purpose: Purpose,
    rho: float,
    delta: float,
    assumed: Assumed,
    smallest: float | None,
    needed: Collection[str],
) -> tuple[Step, ...]:
    """Return the changes of single columns that most reduce the smallest ε."""
    if len(noise.names) < 3 or smallest == EPSILONS[0]:
        return ()
    worst = np.argsort(-shares_of(noise, purpose, assumed), kind="stable")[: 2 * SHOWN]
    out: list[tuple[float, str, int | None]] = []
    for i in worst.tolist():
        if i == noise.target:
            continue
        size = int(noise.sizes[i])
        changed: list[tuple[int | None, Noise]] = [] if noise.names[i] in needed else [(None, _without(noise, i))]
        if size >= 6:
            fewer = max(3, size // 3)
            changed.append((fewer, _coarser(noise, i, fewer)))
        for values, other in changed:
            enough_rho = Scale(other, assumed).smallest_rho(purpose, rho, delta)
            if enough_rho is not None:
                out.append((enough_rho, noise.names[i], values))
    best = sorted(out, key=lambda found: found[0])[:SHOWN]
    steps = [Step(name, values, _epsilon(enough_rho, delta)) for enough_rho, name, values in best]
    return tuple(s for s in steps if smallest is None or (s.epsilon or math.inf) < WORTH * smallest)


def _without(noise: Noise, i: int) -> Noise:
    """Return the plan without column ``i``, whose share of the budget is divided evenly among the others."""
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


def _worse(one: Rating, other: Rating) -> Rating:
    order: Sequence[Rating] = ("works", "weak", "noise")
    return max(one, other, key=order.index)


def enough(epsilon: float) -> str:
    """Return ε with two significant digits, rounded up so that it still meets the purpose."""
    step = 10 ** (math.floor(math.log10(epsilon)) - 1)
    return f"{math.ceil(epsilon / step - 1e-9) * step:.2g}"
