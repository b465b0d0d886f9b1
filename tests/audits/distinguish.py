"""Lower bounds on a mechanism's privacy loss from a distinguishing test, with confidence.

A mechanism that is (ε′, δ)-DP satisfies P[M(D) ∈ E] ≤ e^ε′ P[M(D′) ∈ E] + δ for every event E. So for an event fixed
beforehand, Clopper–Pearson bounds on the two probabilities give δ(ε′) ≥ p_low − e^ε′ q_high (Gilbert & McMillan 2018;
Jagielski, Ullman & Oprea 2020). Here the claim is a whole curve, the δ(ε′) that ρ-zCDP implies, and it is tested at
several ε′, 0 among them. Runs are split: a quarter chooses each event's threshold, and only the others are counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from espalier.core.privacy.accounting import delta_of, epsilon_of

GRID = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
"""ε′ at which a claim is tested, in units of √(2ρ): the Δ/σ of a Gaussian mechanism of that cost."""


@dataclass(frozen=True)
class Bound:
    """At ``epsilon`` (ε′) the mechanism's δ is at least ``low``; ``claimed`` is the δ that ρ implies there."""

    epsilon: float
    low: float
    claimed: float


@dataclass(frozen=True)
class Verdict:
    """All bounds of one audit; together they hold with confidence 1 − ``alpha`` or more."""

    rho: float
    alpha: float
    bounds: tuple[Bound, ...]
    pure: float | None = None

    @property
    def refuted(self) -> bool:
        """True if the claim is wrong, with confidence 1 − alpha."""
        return any(b.low > b.claimed for b in self.bounds)

    @property
    def worst(self) -> Bound:
        """The bound that is closest to the claim, or that exceeds it most."""
        return max(self.bounds, key=lambda b: (b.low > b.claimed, b.low / max(b.claimed, 1e-9)))

    def epsilon_low(self, delta: float) -> float:
        """Return the smallest ε that allows these results: at ``delta`` for a claim of ρ, at δ = 0 for a pure claim."""
        if self.pure is None:
            return epsilon_of(min(self.rho_low, 1e3), delta)
        seen = [b for b in self.bounds if b.low > 0]
        return max((math.log((b.low + math.exp(b.epsilon)) / (1 - b.low)) for b in seen), default=0.0)

    @property
    def rho_low(self) -> float:
        """The smallest ρ whose curve allows these results."""
        return max(rho_at_least(b.low, b.epsilon) for b in self.bounds)


def audit(
    first: Sequence[float], second: Sequence[float], rho: float, alpha: float, pure: float | None = None
) -> Verdict:
    """Test the claim "ρ-zCDP" on a distinguishing statistic of many runs on D (``first``) and on D′ (``second``).

    With ``pure`` the claim is "(ε, 0)-DP" for this ε instead, whose curve is `pure_delta`.

    Any statistic of the released values is allowed; the log-likelihood ratio gives the strongest test. Both directions
    (large values speak for D, small ones for D′) at every ε′ of GRID share ``alpha`` (Bonferroni).
    """
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    each = alpha / (2 * len(GRID))
    bounds = []
    for unit in GRID:
        epsilon = unit * (math.sqrt(2 * rho) if pure is None else pure)
        lows = [_one(x, y, epsilon, each) for x, y in ((a, b), (-b, -a))]
        claimed = delta_of(rho, epsilon) if pure is None else pure_delta(pure, epsilon)
        bounds.append(Bound(epsilon, max(0.0, *lows), claimed))
    return Verdict(rho, alpha, tuple(bounds), pure)


def pure_delta(claimed: float, epsilon: float) -> float:
    """Return the largest δ(ε′) of any (ε, 0)-DP mechanism; randomised response attains it (Kairouz, Oh & Viswanath
    2015).
    """
    return max(0.0, (math.exp(claimed) - math.exp(epsilon)) / (1 + math.exp(claimed)))


def _one(first: NDArray[np.float64], second: NDArray[np.float64], epsilon: float, alpha: float) -> float:
    """Return a lower bound on δ(ε) from the event "the statistic exceeds a threshold"."""
    chooses = np.arange(max(len(first), len(second))) % 4 == 0
    train, test = ([x[chooses[: len(x)] == part] for x in (first, second)] for part in (True, False))
    threshold = _threshold(train[0], train[1], epsilon)
    hits, alarms = (int(np.count_nonzero(x > threshold)) for x in test)
    p = clopper_pearson(hits, len(test[0]), alpha / 2)[0]
    q = clopper_pearson(alarms, len(test[1]), alpha / 2)[1]
    return p - math.exp(epsilon) * q


def _threshold(first: NDArray[np.float64], second: NDArray[np.float64], epsilon: float) -> float:
    """Return the most promising threshold: by the estimate minus four of its standard errors."""
    cuts = np.unique(np.concatenate([first, second]))
    p = 1 - np.searchsorted(np.sort(first), cuts, side="right") / len(first)
    q = 1 - np.searchsorted(np.sort(second), cuts, side="right") / len(second)
    one = 1 / min(len(first), len(second))  # an event that was never observed may still happen
    spread = np.sqrt((p * (1 - p) + one) / len(first)) + math.exp(epsilon) * np.sqrt((q * (1 - q) + one) / len(second))
    return float(cuts[np.argmax(p - math.exp(epsilon) * q - 4 * spread)])


def clopper_pearson(hits: int, runs: int, alpha: float) -> tuple[float, float]:
    """Return bounds on a probability, each wrong with probability ``alpha`` at most (Clopper & Pearson 1934)."""
    low = float(beta.ppf(alpha, hits, runs - hits + 1)) if hits else 0.0
    high = float(beta.ppf(1 - alpha, hits + 1, runs - hits)) if hits < runs else 1.0
    return low, high


def rho_at_least(delta: float, epsilon: float) -> float:
    """Return the smallest ρ whose curve allows ``delta`` at ``epsilon``; infinite if no useful ρ does."""
    if delta <= 0:
        return 0.0
    low, high = 0.0, 1e-6
    while delta_of(high, epsilon) < delta:
        low, high = high, 2 * high
        if high > 1e4:
            return math.inf
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(middle, epsilon) < delta else (low, middle)
    return low
