"""Division of a budget among planned analyses, based on the half-width that each can promise for its share.

If the budget cannot reach every desired half-width, each promise is the same multiple of its desired half-width. An
expensive analysis then does not take budget from a cheap one. If the budget is too small to promise every analysis a
half-width, the most expensive analyses get no promise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

LEAST_RHO, MOST_RHO = 1e-9, 1e3
STEPS = 72
"""Number of steps between the smallest and the largest ρ at which a promise is computed."""
CLOSE = 1e-3
"""Relative error of a ρ that reaches a half-width."""
ROUGH = 0.02
"""Relative error of the smallest ρ with a promise."""
SLACK = 1.05
"""If no budget reaches a desired half-width, the target is this multiple of the half-width without noise."""
UNPROMISED = 0.5
"""An analysis without a promise gets this fraction of an equal share of the budget."""


@dataclass(frozen=True, eq=False)
class Curve:
    """Promised half-width of one analysis as a function of ρ. It decreases with ρ, and is infinite if nothing can
    be promised.
    """

    promise: Callable[[float], float]
    wanted: float | None = None
    known: dict[float, float] = field(default_factory=dict)

    def at(self, rho: float) -> float:
        """Return the promise for ``rho``, computed once."""
        if rho not in self.known:
            self.known[rho] = self.promise(rho)
        return self.known[rho]

    @cached_property
    def target(self) -> float:
        """Desired half-width, or a half-width close to the smallest that the rows allow."""
        return max(self.wanted or 0.0, SLACK * self.at(MOST_RHO))

    @property
    def reachable(self) -> bool:
        """True if some budget reaches the desired half-width."""
        return self.wanted is None or SLACK * self.at(MOST_RHO) <= self.wanted

    @cached_property
    def least(self) -> float:
        """Smallest ρ with a promise; infinite if there is none."""
        return self._first(math.inf, ROUGH) if math.isfinite(self.at(MOST_RHO)) else math.inf

    @cached_property
    def needed(self) -> float:
        """Smallest ρ whose promise is the target; infinite if there is none."""
        return self._first(self.target) if math.isfinite(self.at(MOST_RHO)) else math.inf

    def roughly(self, width: float) -> float:
        """Estimate the smallest ρ with the promise ``width`` from promises that are already known."""
        low, high = self._step(width)
        if not math.isfinite(self.at(low)):
            low = max(low, self.least)
            if low >= high or self.at(low) <= width:
                return min(low, high)
        return self._between(low, high, width)

    def _first(self, width: float, close: float = CLOSE) -> float:
        """Return the smallest ρ with a finite promise of at most ``width``, up to the relative error ``close``."""
        low, high = self._step(width)
        while high > low * (1 + close) and not width * (1 - CLOSE) <= self.at(high) <= width:
            middle = math.sqrt(low * high)
            if math.isfinite(self.at(low)) and math.isfinite(width):
                middle = min(max(self._between(low, high, width * (1 - CLOSE / 2)), low * (1 + CLOSE / 2)), high)
            if middle >= high:
                break
            low, high = (low, middle) if self._fits(middle, width) else (middle, high)
        return high

    def _fits(self, rho: float, width: float) -> bool:
        return math.isfinite(self.at(rho)) and self.at(rho) <= width

    def _step(self, width: float) -> tuple[float, float]:
        """Return neighbouring grid points: the promise of the second is at most ``width``, and the promise of the first
        is larger.
        """
        low, high = 0, STEPS
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._fits(_place(middle), width) else (middle, high)
        return _place(low), _place(high)

    def _between(self, low: float, high: float, width: float) -> float:
        """Return the ρ at which a straight line in logarithms reaches ``width``."""
        drop = math.log(self.at(low) / self.at(high))
        part = math.log(self.at(low) / width) / drop if drop > 0 else 1.0
        return float(low * (high / low) ** min(max(part, 0.0), 1.0))


def _place(step: int) -> float:
    return float(LEAST_RHO * (MOST_RHO / LEAST_RHO) ** (step / STEPS))


def divided(curves: Sequence[Curve], rho: float) -> list[float]:
    """Divide ``rho`` so that every promise is the same multiple of its target, if all analyses can have one."""
    rho, many = rho * (1 - 1e-12), len(curves)
    served = sorted((i for i in range(many) if math.isfinite(curves[i].least)), key=lambda i: curves[i].least)
    while served and math.fsum(curves[i].least for i in served) > _for(served, many, rho):
        served.pop()
    parts = [UNPROMISED * rho / many if served else rho / many] * many
    if not served:
        return parts
    budget = _for(served, many, rho)
    found = [curves[i].needed for i in served]
    if math.fsum(found) > budget:
        low, high = 1.0, 1e9
        while high > low * (1 + CLOSE / 10):
            middle = math.sqrt(low * high)
            found = [max(curves[i].roughly(middle * curves[i].target), curves[i].least) for i in served]
            low, high = (low, middle) if math.fsum(found) <= budget else (middle, high)
        found = [max(curves[i].roughly(high * curves[i].target), curves[i].least) for i in served]
    for i, part in zip(served, found, strict=True):
        parts[i] = part * budget / math.fsum(found)
    return parts


def _for(served: Sequence[int], many: int, rho: float) -> float:
    """Return the budget to divide among the analyses that have a promise."""
    return rho * (1 - UNPROMISED * (many - len(served)) / many)
