"""Gradient of a logistic fit as a recipe for a curator, with its sensitivity and the proof.

`espalier.core.tables.gradient` computes the sums.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from espalier.core.privacy.unit import Unit
from espalier.core.tables.gradient import LARGEST_WEIGHT, UNITS, Weights
from espalier.core.tables.source import Source


@dataclass(frozen=True)
class LogisticGradient:
    """Gradient of a multinomial logistic fit of ``target`` on ``columns`` at public ``weights``."""

    target: str
    columns: tuple[str, ...]
    weights: Weights
    kind: Literal["gradient"] = "gradient"
    units: int = UNITS
    recipe: str = "logistic-gradient"

    @property
    def what(self) -> str:
        """Description of the sums, for the report."""
        return f"gradient of a logistic fit of {self.target}"

    @property
    def cells(self) -> int:
        """Length of the vector: one entry for each category of each column and each class except the first."""
        others = self.weights[self.target].shape[1]
        return int(others * sum(self.weights[name].shape[0] for name in self.columns))

    def check(self, sizes: Mapping[str, int]) -> None:
        """Raise :class:`ValueError` unless all weights have the shape required by ``sizes``."""
        others = sizes[self.target] - 1
        if self.target in self.columns or not self.columns or others < 1 or len(set(self.columns)) < len(self.columns):
            raise ValueError(
                "a logistic fit needs a target with at least two values and at least one other column, and no column "
                "may appear twice"
            )
        for name in (*self.columns, self.target):
            if self.weights[name].shape != (1 if name == self.target else sizes[name], others):
                raise ValueError(f"the weights of {name!r} do not match its categories")
            if not np.all(np.abs(self.weights[name]) <= LARGEST_WEIGHT):  # also true if one is NaN
                raise ValueError(f"the weights of {name!r} must be numbers of at most {LARGEST_WEIGHT:g}")

    def given(self, unit: Unit) -> tuple[tuple[str, float], ...]:  # noqa: ARG002
        """Return the numbers of columns and of classes."""
        return (("columns", len(self.columns)), ("classes", self.weights[self.target].shape[1] + 1))

    def sensitivity(self, unit: Unit) -> int:
        """Return the L2 sensitivity in units; see :func:`gradient_sensitivity`."""
        return gradient_sensitivity(unit, len(self.columns), self.weights[self.target].shape[1] + 1)

    def sums(self, source: Source) -> NDArray[np.int64]:
        """Return the exact sums. For the curator only."""
        return source.residual_sums(self.target, self.columns, self.weights)


def gradient_sensitivity(unit: Unit, columns: int, classes: int) -> int:
    """Return the L2 sensitivity in units, rounded up: k·r·√d under add-remove and 2k·r·√d under replace-one, r = 1 or
    √2.

    Proof. The weights are public (computed from earlier noisy answers), the same for two neighbouring tables, and at
    most `LARGEST_WEIGHT` in absolute value, so every p is a number from 0 to 1. For each of the d columns, a row adds
    its residual vector at its category in that column. It therefore contributes a vector of norm √d times the
    residual's norm. With y = c > 0 the residual has one entry 1 − p_c and the others −p, whose squares sum to at most
    (1 − p_c)² + (Σ p)² ≤ 2, and to at most 1 if there is only one class besides the reference; with y = 0 it is −p, of
    norm at most 1. Rounding towards 0 makes no entry larger. Adding or removing k rows moves the sum by at most k such
    vectors, and replacing k rows by at most 2k, by the triangle inequality. One unit is added for the last digit of p.
    """
    rows = unit.rows_per_person * (2 if unit.neighbors == "replace-one" else 1)
    square = rows * rows * columns * (1 if classes == 2 else 2)
    return math.isqrt(square * (UNITS + 1) ** 2) + 1
