"""Allocation of a budget pool to its measurements.

A synthesizer works with *shares* of the whole budget. A :class:`BudgetSplit` converts shares to ρ under the plan's
accounting:

- ``zcdp``: pools are shares of ρ.
- ``pure``: ε adds up, and each draw is pure: Laplace noise of σ = √2·Δ₁/ε_q costs ρ = ε_q²/2; pools are shares of ε.
- ``basic``: (ε, δ) compose by addition and each Gaussian has the classical σ = Δ√(2 ln(1.25/δ_q))/ε_q, as in
  PRISM's experiments (§5.5); pools are shares of ε and of δ. The curator debits the ρ that corresponds to that σ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from espalier.core.graph.separations import Clique
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.curator import Curator
from espalier.core.privacy.scores import Score
from espalier.core.project.plan import AccountingRule, Plan

Rule = Literal["optimal", "uniform"]
AUTO: dict[AccountingRule, Rule] = {"zcdp": "uniform", "basic": "optimal", "pure": "optimal"}
"""Meaning of ``allocation: auto``: the better rule on the benchmarks (``python -m benchmarks.prism``).

``pure`` divides ε as ``basic`` does, so it uses the same rule."""

MOST_BY_HAND = 0.95
"""Largest part of a pool that shares set by hand may take if the pool also pays for other counts."""


def label(clique: Clique) -> str:
    """Return the marginal's name as shown in the plan and used in ``allocation``."""
    return " × ".join(clique)


@dataclass(frozen=True)
class BudgetSplit:
    """Budget of one release, and the rules that divide it."""

    budget: Budget
    sizes: Mapping[str, int]
    rule: Rule
    accounting: AccountingRule
    shares: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan, budget: Budget, sizes: Mapping[str, int]) -> BudgetSplit:
        """Return the budget of ``plan``."""
        given = plan.allocation
        if isinstance(given, str):
            return cls(budget, sizes, AUTO[plan.accounting] if given == "auto" else given, plan.accounting)
        return cls(budget, sizes, AUTO[plan.accounting], plan.accounting, given)

    def choice(self, share: float) -> float:
        """Return ρ of one private choice that gets ``share`` of the budget.

        If ε adds up, the choice is (share·ε, 0)-DP, and an ε-DP exponential mechanism is ε²/8-zCDP.
        """
        return _down(share * self.budget.rho if self.accounting == "zcdp" else (share * self.budget.epsilon) ** 2 / 8)

    def split(
        self, share: float, cliques: Sequence[Clique], weights: Sequence[float] | None = None
    ) -> dict[Clique, float]:
        """Return ρ of each clique if all cliques together get ``share`` of the budget; ``weights`` w_t default to 1.

        ``optimal`` minimises Σ a_t σ_t with a_t = w_t · cells_t · Δ_t. Under zCDP σ_t ∝ ρ_t^(−1/2), so the minimum
        under Σ ρ_t fixed is at ρ_t ∝ a_t^(2/3); where ε adds up, σ_t ∝ 1/ε_t gives ε_t ∝ √a_t (PRISM, Theorem 6.3). Δ
        is the same for all cliques of a release and cancels. A share set by hand is the part of this pool (of ρ under
        ``zcdp``, otherwise of ε) that the marginal gets; the other marginals divide the rest by the rule.
        """
        if not cliques or share <= 0:
            return {}
        weights = weights or [1.0] * len(cliques)
        a = [w * math.prod(self.sizes[c] for c in q) for w, q in zip(weights, cliques, strict=True)]
        power = 0.0 if self.rule == "uniform" else 2 / 3 if self.accounting == "zcdp" else 1 / 2
        parts = self._with_hand(cliques, [x**power for x in a])
        return dict(zip(cliques, self._divide(share, parts), strict=True))

    def evenly(self, share: float, sensitivities: Sequence[float]) -> list[float]:
        """Return ρ of several vectors that together get ``share`` of the budget and all have the same σ: σ_t ∝
        Δ_t/√ρ_t."""
        return self._divide(share, [s * s if self.accounting == "zcdp" else s for s in sensitivities])

    def _divide(self, share: float, parts: Sequence[float]) -> list[float]:
        """Return ρ of measurements that get these parts of ρ (under ``zcdp``) or of ε."""
        whole = math.fsum(parts)
        if self.accounting == "zcdp":
            return [_down(share * self.budget.rho * part / whole) for part in parts]
        if self.accounting == "pure":
            return [_down((share * self.budget.epsilon * part / whole) ** 2 / 2) for part in parts]
        delta = share * self.budget.delta / len(parts)
        per_epsilon = 1 / (4 * math.log(1.25 / delta))  # ρ = Δ²/(2σ²) = ε_q² / (4 ln(1.25/δ_q))
        return [_down((share * self.budget.epsilon * part / whole) ** 2 * per_epsilon) for part in parts]

    def _with_hand(self, cliques: Sequence[Clique], parts: Sequence[float]) -> list[float]:
        """Return ``parts`` scaled to sum to one. Parts set by hand stay fixed (together at most `MOST_BY_HAND`)."""
        hand = {i: self.shares[label(q)] for i, q in enumerate(cliques) if label(q) in self.shares}
        rest = math.fsum(part for i, part in enumerate(parts) if i not in hand)
        if rest == 0:  # noise may leave the weights indistinguishable
            parts, rest = [1.0] * len(parts), len(parts) - len(hand)
        taken = math.fsum(hand.values())
        scale = min(1.0, MOST_BY_HAND / taken) if rest and taken else 1 / taken if taken else 0.0
        left = 1 - taken * scale
        return [hand[i] * scale if i in hand else part / rest * left for i, part in enumerate(parts)]


@dataclass(frozen=True)
class Choices:
    """Private choices that ``curator`` makes for ``share`` of the ``budget``, charged to ``pool``."""

    curator: Curator
    budget: BudgetSplit
    share: float
    pool: str = ""

    def one(self, score: Score, candidates: Sequence[Clique], of: int, what: str) -> Clique:
        """Choose one of ``candidates``, at the price of one of ``of`` equal choices."""
        return self.curator.choose(score, candidates, self.budget.choice(self.share / of), what, self.pool)


def _down(rho: float) -> float:
    """Return the value rounded down slightly, so that converted shares never sum to more than one."""
    return rho * (1 - 1e-12)
