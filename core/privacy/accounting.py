"""Accounting in a single unit, ρ, of zero-concentrated differential privacy (zCDP), with tight conversion to and from
(ε, δ).

A mechanism is ρ-zCDP (Bun & Steinke 2016) if its Rényi divergence of every order α > 1 between neighbouring
tables is at most αρ. The ρ of several releases add up, even if each is chosen after seeing the earlier ones.
OpenDP computes the conversion, which is the tight one of Canonne, Kamath & Steinke (2020).

**Rounding.** Spent ρ is rounded up wherever it is summed (`total_up`, `rounded_up`), stored or shown (`round_up`).
Remaining ρ, and a total derived from (ε, δ), are rounded down. Comparisons of a sum with a limit are exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from functools import cache
from typing import Any

from espalier.core.errors import ProjectError
from espalier.core.project.plan import Plan

LARGEST_DELTA = 1e-3
"""Largest δ that a plan may set if the number of rows is private or not given."""


@dataclass(frozen=True)
class Budget:
    """Whole budget: (ε, δ) as given, and a ρ that implies (ε, δ)-DP. At most this ρ is spent. With δ = 0, the budget is
    ``pure``: the draws' ε also add up, and a ledger charges a pure release of ε at most ρ = ε²/2.
    """

    epsilon: float
    delta: float
    rho: float
    pure: bool = False

    @classmethod
    def of_pure(cls, epsilon: float) -> Budget:
        """Return the budget of a release with pure ε-differential privacy.

        ε-DP implies ε²/2-zCDP (Bun & Steinke 2016, Proposition 1.4), so such releases can be added to others in ρ.
        """
        return cls(epsilon, 0.0, math.nextafter(epsilon * epsilon / 2, math.inf), pure=True)

    def part(self, share: float) -> Budget:
        """Return this ``share`` of the budget, for code that divides its own budget. It scales ε, δ and ρ; for a pure
        budget, it scales ε.
        """
        if self.pure:
            return Budget.of_pure(share * self.epsilon)
        return Budget(share * self.epsilon, share * self.delta, share * self.rho)

    @classmethod
    def of(cls, plan: Plan, rows: int | None) -> Budget:
        """Return the budget of a plan; ``rows`` is n if it is public (see
        :func:`espalier.core.privacy.contribution.public_rows`).

        Raises :class:`ProjectError` without a δ, and for a δ above 1/n (above `LARGEST_DELTA` if n is private or not
        given), because publishing one random row would satisfy it.
        """
        if not plan.has_epsilon:
            raise ProjectError("this plan has no epsilon, so it has no budget and gives no guarantee", key="epsilon")
        if plan.pure:
            return cls.of_pure(plan.epsilon)
        delta = plan.delta
        if delta is None:
            if plan.neighbors == "add-remove":
                raise ProjectError("under add-remove, set delta to a number, such as 1e-9", key="delta")
            if not rows:
                raise ProjectError(
                    "delta is 1/n², so the number of rows is needed: give --rows, or set delta", key="rows"
                )
            delta = min(1.0 / rows**2, 0.25)
        known = rows if plan.neighbors == "replace-one" else None
        if delta > (1.0 / known if known else LARGEST_DELTA):
            most = f"1/n = {1.0 / known:.3g}" if known else f"{LARGEST_DELTA:g}"
            raise ProjectError(
                f"delta ({delta:g}) must not be above {most}, because publishing one random row would satisfy "
                "such a guarantee. Set delta far below 1/n, such as 1/n² or 1e-9",
                key="delta",
            )
        return cls(plan.epsilon, delta, rho_of(plan.epsilon, delta))


@cache
def _accountant() -> tuple[Any, Any]:
    """Return OpenDP's map from a Gaussian's scale to (ε, δ), importing only the modules that it needs."""
    from opendp.combinators import make_zCDP_to_approxDP
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    space = vector_domain(atom_domain(T="i64")), l2_distance(T="f64")
    unit = make_gaussian(*space, scale=math.sqrt(0.5))  # d_in → ρ = d_in²

    return make_zCDP_to_approxDP(unit), unit


def epsilon_of(rho: float, delta: float) -> float:
    """Return the smallest ε, rounded up, such that ρ-zCDP implies (ε, δ)-DP; zero for ρ = 0."""
    if rho <= 0:
        return 0.0
    return float(_profile(rho).epsilon(delta))


def delta_of(rho: float, epsilon: float) -> float:
    """Return the smallest δ such that ρ-zCDP implies (ε, δ)-DP."""
    return 0.0 if rho <= 0 else float(_profile(rho).delta(epsilon))


def _profile(rho: float) -> Any:
    converted, unit = _accountant()
    d_in = math.sqrt(rho)
    while unit.map(d_in) < rho:  # round up: never convert less than was spent
        d_in = math.nextafter(d_in, math.inf)
    return converted.map(d_in)


@cache
def rho_of(epsilon: float, delta: float) -> float:
    """Return the largest ρ, rounded down, whose tight conversion stays within (ε, δ)."""
    low, high = 0.0, 1e-6
    while delta_of(high, epsilon) <= delta:
        low, high = high, 2 * high
    while high - low > 1e-9 * low:
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(middle, epsilon) <= delta else (low, middle)
    while low > 0 and epsilon_of(low, delta) > epsilon:  # the two maps of OpenDP may differ in the last digit
        low *= 1 - 1e-9
    return low


def rho_asked(plan: Plan, delta: float) -> float:
    """Return the ρ that ``plan`` may spend if δ is ``delta``; a pure plan has no δ."""
    return Budget.of_pure(plan.epsilon).rho if plan.pure else rho_of(plan.epsilon, delta)


def guess_right(epsilon: float, delta: float) -> float:
    """Return the largest probability of guessing correctly which of two rows belongs to a person. A blind guess is
    right with probability one half.
    """
    odds = math.exp(-epsilon)
    return min(1.0, (1 + delta * odds) / (1 + odds))


def rounded_up(exact: Fraction) -> float:
    """Return the nearest float not below ``x``."""
    near = float(exact)
    return math.nextafter(near, math.inf) if Fraction(near) < exact else near


def rounded_down(exact: Fraction) -> float:
    """Return the nearest float not above ``x``."""
    near = float(exact)
    return math.nextafter(near, -math.inf) if Fraction(near) > exact else near


def total_up(spent: Iterable[float]) -> float:
    """Return the sum of the amounts ``spent``: the nearest float not below the exact sum.

    `math.fsum` rounds the exact sum to the nearest float, so the sign of the remainder is exact.
    """
    parts = list(spent)
    near = math.fsum(parts)
    return math.nextafter(near, math.inf) if math.fsum([*parts, -near]) > 0 else near


def round_up(x: float, figures: int = 4) -> str:
    """Return a privacy figure rounded up to this number of digits. The displayed number is never less than ``x``.

    The decimal representation of ``x`` is rounded, so 0.1 stays 0.1.
    """
    if x <= 0:
        return "0"
    exact = Decimal(repr(float(x)))
    up = exact.quantize(Decimal(1).scaleb(exact.adjusted() - figures + 1), ROUND_CEILING)
    return f"{float(up):.{figures}g}"
