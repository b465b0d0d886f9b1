"""θ-usefulness of a table (PrivBayes, §4), computed from public quantities alone."""

from __future__ import annotations

import math

from espalier.core.methods.select.allocation import BudgetSplit
from espalier.core.privacy.curator import Curator

USEFUL = 4
"""θ: a cell's average count is at least this multiple of its expected noise (the paper's value)."""

CELLS = 400
"""Limit if n is not public and no noisy total has been bought yet. It is roughly the limit for 40,000 rows at ε = 1 and
a dozen columns.
"""


def expected_noise(curator: Curator, budget: BudgetSplit, share: float) -> float:
    """Return the expected absolute error, in rows per cell, of a measurement that gets ``share`` of the budget:
    σ√(2/π).
    """
    first = next(iter(curator.sizes))
    (rho,) = budget.split(share, [(first,)]).values()
    return curator.unit.count_sensitivity / math.sqrt(2 * rho) * math.sqrt(2 / math.pi)


def useful_cells(
    curator: Curator, budget: BudgetSplit, share: float, rows: float | None = None, theta: float = USEFUL
) -> int:
    """Return the number m of cells that a table measured for ``share`` of the budget may have: n/m ≥ θ · σ√(2/π).

    ``rows`` is n, or a noisy total if n is private.
    """
    n = curator.rows if curator.rows is not None else rows
    if n is None:
        return CELLS
    return math.floor(n / (theta * expected_noise(curator, budget, share)))
