"""The gradient of a logistic fit as whole numbers, with its sensitivity: what a private fit may ask of the rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.privacy.accounting import Unit

UNITS = 2**20
"""Units per row: a residual of 1."""

LARGEST_WEIGHT = 1e12
"""Weights beyond this are refused: their sums could leave the numbers, and a residual would no longer be one."""

Weights = Mapping[str, NDArray[np.float64]]
"""Of a multinomial logistic model, class 0 being the reference: one row per category, one column per other class; the
target's own entry is the intercept, of one row."""


def residual_sums(
    codes: Mapping[str, NDArray[Any]], target: str, columns: Sequence[str], sizes: Mapping[str, int], weights: Weights
) -> NDArray[np.int64]:
    """Σ over rows of (1[y = c] − p_c(x)) for every category of every one of ``columns`` and class c > 0, in units.

    This is the gradient of the log-likelihood in the weights (negated loss). Each row's residual is rounded towards 0
    to a whole number of units first, so that sums are exact. One flat vector: columns one after the other.
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


def gradient_sensitivity(unit: Unit, columns: int, classes: int) -> int:
    """L2 sensitivity in units, rounded up: k·r·√d under add-remove and 2k·r·√d under replace-one, r = 1 or √2.

    Proof. The weights are public (made from earlier noisy answers), the same for both of two neighbouring tables, and
    numbers of at most `LARGEST_WEIGHT`, so that every p is a number from 0 to 1. A row adds its residual vector once
    for each of the d columns, at the category it has there, so it contributes a
    vector of norm √d times the residual's. With y = c > 0 the residual has one entry 1 − p_c and the others −p, whose
    squares sum to at most (1 − p_c)² + (Σ p)² ≤ 2, and at most 1 where there is one class beside the reference; with
    y = 0 it is −p, at most 1. Rounding towards 0 makes no entry larger. k rows that come or go move the sum by at most
    k such vectors, replaced rows by 2k, by the triangle inequality. One unit is added for the last digit of p.
    """
    rows = unit.rows_per_person * (2 if unit.neighbors == "replace-one" else 1)
    square = rows * rows * columns * (1 if classes == 2 else 2)
    return math.isqrt(square * (UNITS + 1) ** 2) + 1
