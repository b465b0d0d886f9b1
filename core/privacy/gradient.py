"""The sensitivity of the gradient of a logistic fit, whose sums `core.tables.gradient` works out."""

from __future__ import annotations

import math

from core.privacy.unit import Unit
from core.tables.gradient import UNITS


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
