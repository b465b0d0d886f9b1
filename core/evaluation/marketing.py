"""The paper's measures: what released rows add to a public table (ΔMSE), and the price metrics of its Table 4."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def delta_mse(public: float, combined: float) -> float:
    """(MSE_D′ − MSE_{D*+D′}) / MSE_D′ (Table 3): what share of a public table's error the released rows take away.

    ``public`` is the mean squared error of a model trained on D′ alone, ``combined`` on D′ and D* together.
    """
    if not public > 0:
        raise ValueError(f"an error of {public:g} leaves nothing to improve")
    return (public - combined) / public


def elasticity(log_price: NDArray[np.float64], log_sales: NDArray[np.float64]) -> float:
    """β̂ of y = β·x by least squares without a constant (§7.1)."""
    return float(log_price @ log_sales / (log_price @ log_price))


def mapd(estimated: NDArray[np.float64], true: NDArray[np.float64]) -> float:
    """Mean absolute percentage deviation of price elasticities, as a share."""
    return float(np.mean(np.abs((estimated - true) / true)))


def optimal_markup(beta: float) -> float:
    """The profit-maximising mark-up 1/(|β| − 1) as a share; infinite where demand is inelastic (|β| ≤ 1)."""
    return 1 / (abs(beta) - 1) if abs(beta) > 1 else float("inf")


def profit_ratio(estimated: float, true: float) -> float:
    """Optimal profit ratio: profit at the price that β̂ implies, over that at the best price; both below −1.

    (β+1)/(β̂+1) · ((β+1)/(β̂+1) · β̂/β)^β.
    """
    if estimated >= -1 or true >= -1:
        return 0.0
    step = (true + 1) / (estimated + 1)
    return float(step * (step * estimated / true) ** true)
