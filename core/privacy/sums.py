"""Recipes for whole-number sums over the rows, each with its sensitivity and the proof.

A recipe is public, because it is fixed before the rows are read. Only a curator evaluates recipes, and no exact sum
leaves it. A new recipe needs a class, which must be listed in `PROVED`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from espalier.core.privacy.class_features import ClassSums
from espalier.core.privacy.clipped import ClippedGradient
from espalier.core.privacy.gradient import LogisticGradient
from espalier.core.privacy.moments import Histogram, Moments
from espalier.core.privacy.question_recipes.recipes import CountHistogram, QuestionSums
from espalier.core.privacy.regression_sums import RegressionSums
from espalier.core.privacy.steps import Echoes, ReturnCounts, StepCounts, VisitCounts
from espalier.core.privacy.unit import Unit
from espalier.core.tables.source import Source


class SumRecipe(Protocol):
    """Interface through which the curator uses a vector of sums. ``kind`` is the kind of its draw, and ``what`` its
    description.

    ``cells`` is the length of the vector. The entries are whole numbers of units, with ``units`` to a row.
    """

    @property
    def kind(self) -> Literal["gradient", "sums"]:
        """Kind of the draw. A gradient guides the choice of measurements; other sums are used to fit a model."""
        ...

    @property
    def what(self) -> str:
        """Description of the sums, for the report."""
        ...

    @property
    def cells(self) -> int:
        """Length of the vector."""
        ...

    @property
    def units(self) -> int:
        """Units per row."""
        ...

    @property
    def recipe(self) -> str:
        """Recipe's name in `espalier.core.privacy.draws.PROOFS`."""
        ...

    def given(self, unit: Unit) -> tuple[tuple[str, float], ...]:
        """Return the public numbers on which its sensitivity depends in addition to the ``unit``."""
        ...

    def check(self, sizes: Mapping[str, int]) -> None:
        """Raise :class:`ValueError` unless the recipe is defined for a table with columns of ``sizes``."""
        ...

    def sensitivity(self, unit: Unit) -> float:
        """Return the L2 sensitivity of the whole vector, in units."""
        ...

    def sums(self, source: Source) -> NDArray[np.int64]:
        """Return the exact sums. For the curator only."""
        ...


PROVED: tuple[type, ...] = (
    *(LogisticGradient, ClippedGradient, Histogram, Moments),
    *(QuestionSums, CountHistogram, RegressionSums, ClassSums),
    *(StepCounts, Echoes, VisitCounts, ReturnCounts),
)
"""Recipes with a proved sensitivity. A curator computes no others."""


@runtime_checkable
class PureRecipe(SumRecipe, Protocol):
    """Sums with a proof of their L1 sensitivity, which can be answered with Laplace noise."""

    def total_sensitivity(self, unit: Unit) -> int:
        """Return the L1 sensitivity of the whole vector, in units."""
        ...
