"""The purchases from a budget: one record per draw, debited before anything is drawn."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from espalier.core.errors import BudgetError
from espalier.core.graph.separations import Clique
from espalier.core.privacy.accounting import round_up, total_up
from espalier.core.privacy.draws import Draw


@dataclass
class Spending:
    """The purchases so far: one :class:`Draw` each, in the order of spending. ``limit`` is never exceeded."""

    limit: float
    draws: list[Draw] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @property
    def rho(self) -> float:
        """ρ spent, rounded up."""
        return total_up(draw.rho for draw in self.draws)

    @property
    def delta(self) -> float:
        """The sum of the draws' δ₀, rounded up; 0 for nearly all releases."""
        return total_up(draw.delta for draw in self.draws)

    def debit(self, draws: Iterable[Draw]) -> None:
        """Debit the cost of ``draws`` from the rest, all or nothing; raises :class:`BudgetError`."""
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
            self.draws += asked

    def decided(self, columns: Clique) -> None:
        """Record ``columns`` as the outcome of the last draw, a choice."""
        with self._lock:
            self.draws[-1] = replace(self.draws[-1], columns=columns)
