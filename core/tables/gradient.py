"""Gradient of a logistic fit as exact whole-number sums over the rows of a table. Private, for the curator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

UNITS = 2**20
"""Number of units in a residual of 1."""

LARGEST_WEIGHT = 1e12
"""Weights above this limit are refused, because their sums could overflow and a residual would no longer be a number.
"""

Weights = Mapping[str, NDArray[np.float64]]
"""Weights of a multinomial logistic model with class 0 as the reference: one row per category, one column per other
class. The target's entry is the intercept, one row."""


def residual_sums(
    codes: Mapping[str, NDArray[Any]], target: str, columns: Sequence[str], sizes: Mapping[str, int], weights: Weights
) -> NDArray[np.int64]:
    """Return the sum over rows of (1[y = c] − p_c(x)), for each category of each of ``columns`` and each class c > 0,
    in units.

    This is the gradient of the log-likelihood in the weights (negated loss). Each row's residual is rounded towards 0
    to a whole number of units first, so that sums are exact. The result is one flat vector, with the columns one after
    another.
    """
    classes = sizes[target]
    odds = np.repeat(weights[target], len(codes[target]), axis=0)
    for name in columns:
        odds += weights[name][codes[name]]
    odds = np.hstack([np.zeros((len(odds), 1)), odds])
    p = np.exp(odds - odds.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    hit = codes[target][:, None] == np.arange(1, classes)
    residuals = np.trunc((hit - p[:, 1:]) * UNITS).astype(np.int64)
    sums = []
    for name in columns:
        table = np.zeros((sizes[name], classes - 1), dtype=np.int64)
        np.add.at(table, codes[name], residuals)
        sums.append(table.ravel())
    return np.concatenate(sums)
