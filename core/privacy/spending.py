"""Purchases from a budget, with one record per draw, debited before anything is drawn."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from espalier.core.errors import BudgetError
from espalier.core.graph.separations import Clique
from espalier.core.privacy.accounting import Budget, round_up, total_up
from espalier.core.privacy.draws import Draw
from espalier.core.privacy.partitions import epsilon_beside


@dataclass
class Spending:
    """Purchases so far, one :class:`Draw` each, in the order of spending. ``limit`` is never exceeded.

    ``pure`` is the largest sum of the draws' ε under a pure budget, else None. Proof that the ε also add up for
    adaptive choices: given the earlier answers, each draw's likelihood ratio between neighbouring tables is at most
    exp(ε of the draw); the ratio of the whole transcript is their product, and the sum of the ε is at most ``pure`` for
    every sequence of answers (Rogers, Roth, Ullman & Vadhan 2016, Theorem 3.6). A draw without a pure guarantee has an
    infinite ε.
    """

    limit: float
    draws: list[Draw] = field(default_factory=list)
    pure: float | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """Return everything except the lock. A copy gets its own lock."""
        return {key: value for key, value in self.__dict__.items() if key != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    @classmethod
    def of(cls, budget: Budget, draws: Iterable[Draw] = ()) -> Spending:
        """Return the spending of ``draws`` from ``budget``."""
        return cls(budget.rho, list(draws), budget.epsilon if budget.pure else None)

    def epsilon_at(self, delta: float) -> float:
        """Return the ε that was spent at ``delta``, rounded up: the sum of the draws' ε under a pure budget."""
        if self.pure is not None:
            return total_up(draw.epsilon for draw in self.draws)
        return epsilon_beside(self.rho, delta, [self.delta] if self.delta else [])

    @property
    def rho(self) -> float:
        """ρ spent, rounded up."""
        return total_up(draw.rho for draw in self.draws)

    @property
    def delta(self) -> float:
        """Sum of the draws' δ₀, rounded up; 0 for nearly all releases."""
        return total_up(draw.delta for draw in self.draws)

    def debit(self, draws: Iterable[Draw]) -> None:
        """Debit the cost of all ``draws`` from the remaining budget. Raises :class:`BudgetError`, and debits nothing,
        if it is too small."""
        with self._lock:
            asked = list(draws)
            for draw in asked:
                if not (draw.rho > 0 and math.isfinite(draw.rho)):
                    raise BudgetError(f"a draw needs a positive ρ, not {draw.rho}", requested=draw.rho)
            rhos = [draw.rho for draw in asked]
            if total_up([*(draw.rho for draw in self.draws), *rhos]) > self.limit:
                left = self.limit - self.rho
                raise BudgetError(
                    f"this needs ρ = {round_up(total_up(rhos), 6)}, but only {left:.6g} of {self.limit:.6g} is left; "
                    "nothing was read",
                    requested=total_up(rhos),
                    remaining=left,
                )
            if self.pure is not None:
                self._check_pure(asked, self.pure)
            self.draws += asked

    def _check_pure(self, asked: list[Draw], most: float) -> None:
        """Raise an error unless each of ``asked`` has a pure guarantee and the sum of their ε is within the remaining
        budget.
        """
        for draw in asked:
            if draw.epsilon == math.inf or draw.delta:
                raise BudgetError(
                    f"pure accounting cannot pay for {draw.what}, with Gaussian noise or a separate δ; nothing was "
                    "read. Leave this out of the plan, or set accounting to zcdp",
                    requested=draw.rho,
                )
        spent = total_up(draw.epsilon for draw in self.draws)
        if total_up([spent, *(draw.epsilon for draw in asked)]) > most:
            wanted = total_up(draw.epsilon for draw in asked)
            raise BudgetError(
                f"this needs ε = {round_up(wanted, 6)}, but only {most - spent:.6g} of {most:.6g} is left; "
                "nothing was read",
                requested=wanted,
                remaining=most - spent,
            )

    def decided(self, columns: Clique) -> None:
        """Record ``columns`` as the outcome of the last draw, a choice."""
        with self._lock:
            self.draws[-1] = replace(self.draws[-1], columns=columns)
