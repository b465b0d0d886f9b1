"""When a table is worth counting: θ-usefulness, decided from public quantities alone (PrivBayes, §4)."""

from __future__ import annotations

import math

from core.methods.select.allocation import BudgetSplit
from core.privacy.curator import Curator

USEFUL = 4
"""θ: a cell's average count is at least so many times its expected noise (the paper's value)."""

CELLS = 400
"""What stands in for that rule where n is not public: about what 40,000 rows at ε = 1 bear on a dozen columns."""


def expected_noise(curator: Curator, budget: BudgetSplit, share: float) -> float:
    """Expected absolute error, in rows per cell, of a measurement that gets ``share`` of the budget: σ√(2/π)."""
    first = next(iter(curator.sizes))
    (rho,) = budget.split(share, [(first,)]).values()
    return curator.unit.count_sensitivity / math.sqrt(2 * rho) * math.sqrt(2 / math.pi)


def useful_cells(curator: Curator, budget: BudgetSplit, share: float) -> int:
    """Cells m that a table counted for ``share`` of the budget may have: n/m ≥ θ · σ√(2/π)."""
    if curator.rows is None:
        return CELLS
    return math.floor(curator.rows / (USEFUL * expected_noise(curator, budget, share)))


def how_many(curator: Curator, budget: BudgetSplit, share: float, cells: int, most: int, held: int = 0) -> int:
    """How many tables, at most ``most``, are worth counting for ``share`` of the budget together with ``held`` others.

    The largest m for which a table of ``cells`` cells (a middling one) is useful at the price of share/(held + m).
    """
    fitting = (m for m in range(most, 0, -1) if cells <= useful_cells(curator, budget, share / (held + m)))
    return next(fitting, 0)
