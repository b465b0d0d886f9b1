"""Treatment of each column as numeric, ordered or nominal, from public facts alone. An unsuitable table is refused
before anything is spent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import ProjectError
from espalier.core.models.copula.planned import fourier, polynomial
from espalier.core.privacy.moments import Reading
from espalier.core.privacy.regression_features import Fourier, Polynomial
from espalier.core.project.numeric_axis import Axis
from espalier.core.project.schema import Column, Schema

SMALL_TABLE = 5_000
"""Public number of rows below which the features are a polynomial even if all columns are numeric."""

LEAST, LARGEST = 1e-150, 1e150
"""Minimum width of a tick and largest bound of a number. A regression sums the squares of both."""

MOST_PRODUCTS = 400
"""Maximum number of products in a polynomial. Their moments are then about 80,000 sums."""

FREQUENCIES = 48
"""Number of random frequencies, with two features each."""

WIDTH = 0.8
"""Width of the approximated kernel; see :func:`espalier.core.models.copula.planned.fourier`."""


@dataclass(frozen=True)
class Layout:
    """Columns in schema order: ``axes`` for numbers and ordered categories, ``categories`` (sizes) for others.

    ``ordered`` names the axes of ordered categories, which have codes as values. ``names`` are all columns; ``edges``
    are the schema's bins of the numeric columns.
    """

    axes: Mapping[str, Axis]
    categories: Mapping[str, int]
    ordered: tuple[str, ...]
    target: str
    names: tuple[str, ...]
    edges: Mapping[str, tuple[float, ...]]

    @classmethod
    def of(cls, schema: Schema, target: str | None) -> Layout:
        """Return the layout of ``schema``; raise :class:`ProjectError` for columns that the method cannot use."""
        if target is None or target not in schema or schema[target].kind != "numeric":
            raise ProjectError(
                "this method predicts a number from the other columns: choose a numeric column as the target",
                key="target",
            )
        axes, categories, ordered = {}, {}, []
        for column in schema.columns:
            if column.kind == "numeric":
                axes[column.name] = _axis(column)
            elif column.kind == "ordinal" and not column.missing and column.size > 2:
                axes[column.name] = Axis.declared(column.name, range(column.size), 1.0, column.size)
                ordered.append(column.name)
            else:
                categories[column.name] = column.size
        if len(axes) + len(categories) < 2:
            raise ProjectError("this method needs at least one column besides the target", key="target")
        edges = {c.name: c.edges for c in schema.columns if c.kind == "numeric"}
        return cls(axes, categories, tuple(ordered), target, schema.names, edges)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Numeric and ordered columns except the target."""
        return tuple(name for name in self.axes if name != self.target)

    @property
    def limits(self) -> tuple[str, ...]:
        """Sentences on the limits of the method for this table, shown before anything is spent."""
        said = [
            f"{self.target} follows a smooth function of the other columns, so a jump inside a column is smoothed.",
            f"The residual of {self.target} has one distribution for all rows, so differences in spread between "
            "groups are lost.",
        ]
        if len(self.inputs) > 1:
            said.append("Dependence between numbers follows a Gaussian copula, so U-shaped dependence is lost.")
        if self.categories and self.inputs:
            said.append("A category shifts the mean of a number, not its spread.")
        if len(self.categories) > 1:
            said.append("Nominal columns depend on one another only through the marginal method that models them.")
        return tuple(said)

    @property
    def reading(self) -> Reading:
        """Row encoding for a curator: ticks for axes, codes for nominal columns."""
        return Reading(self.axes, self.ordered, self.categories)

    def binned(self, name: str, values: NDArray[Any]) -> NDArray[np.int64]:
        """Return the schema's codes of a column's drawn values; for numbers, their bins."""
        if name not in self.edges:
            return np.asarray(values, dtype=np.int64)
        return np.searchsorted(np.asarray(self.edges[name][1:-1]), values, side="right").astype(np.int64)

    def features(
        self, scores: Mapping[str, NDArray[np.float64]], rows: int | None, rng: np.random.Generator
    ) -> Polynomial | Fourier:
        """Return random features if all columns are numeric and the table is large; otherwise a polynomial, unless it
        would be too long.

        ``scores`` are standard deviations by tick; ``rows`` is a public number of rows. A polynomial contains each
        category's level and its products with numbers exactly; random features only approximate them.
        """
        width = 1 + len(scores) + sum(1 if size == 2 else size for size in self.categories.values())
        few = self.categories or (rows is not None and rows < SMALL_TABLE)
        if few and width * (width + 1) // 2 <= MOST_PRODUCTS:
            return polynomial(scores, self.categories)
        return fourier(scores, self.categories, FREQUENCIES, WIDTH, rng)


def _axis(column: Column) -> Axis:
    if column.missing:
        raise ProjectError(
            f"this method cannot handle empty cells of the numeric column {column.name!r}: fill them or leave it out",
            key="method",
            column=column.name,
        )
    if max(map(abs, column.edges)) > LARGEST:
        raise ProjectError(
            f"column {column.name!r} is declared up to {max(map(abs, column.edges)):g}, but this method squares its "
            f"numbers, and floats can hold the squares of numbers only up "
            f"to {LARGEST:g}: give it narrower bounds or another unit, or choose "
            "another method",
            key="method",
            column=column.name,
        )
    axis = Axis.declared(column.name, column.edges, column.step)
    if np.diff(axis.ticks).min() < max(LEAST, 2 * math.ulp(max(map(abs, column.edges)))):
        raise ProjectError(
            f"column {column.name!r} has a bin that is too narrow for floating-point numbers: give it wider bins "
            "or another unit, or choose another method",
            key="method",
            column=column.name,
        )
    return axis
