"""Which columns take part and how: numbers, ordered categories and nominal ones. Public; refuses before spending."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from core.copula.axes import Axis
from core.copula.features import Fourier, Polynomial
from core.errors import ProjectError
from core.project.schema import Column, Schema

SMALL_TABLE = 5_000
"""Public rows below which the features are a polynomial."""

MOST_PRODUCTS = 400
"""Products of a polynomial at most: their moments are some 80,000 sums."""

FREQUENCIES = 32
"""Random frequencies, two features each."""

WIDTH = 1.0
"""Width of the kernel that they stand for, in scores."""


class Rows(Protocol):
    """Private rows: only what a curator holds can answer."""

    @property
    def codes(self) -> Mapping[str, NDArray[Any]]:
        """Schema codes by column."""
        ...

    def numbers(self, column: str) -> NDArray[np.float64]:
        """The values of a numeric column."""
        ...


@dataclass(frozen=True)
class Layout:
    """The columns in schema order: ``axes`` for numbers and ordered categories, ``categories`` (sizes) for others.

    ``ordered`` names the axes that stand for ordered categories: their values are codes.
    """

    axes: Mapping[str, Axis]
    categories: Mapping[str, int]
    ordered: tuple[str, ...]
    target: str

    @classmethod
    def of(cls, schema: Schema, target: str | None) -> Layout:
        """How the columns of ``schema`` take part; raises :class:`ProjectError` for what cannot be carried."""
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
            raise ProjectError("this method needs at least one column beside the target", key="target")
        return cls(axes, categories, tuple(ordered), target)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The numeric and ordered columns but the target."""
        return tuple(name for name in self.axes if name != self.target)

    @property
    def limits(self) -> tuple[str, ...]:
        """What the method cannot carry in this table, in sentences, for whoever decides before spending."""
        said = [
            f"{self.target} follows a smooth function of the other columns; a jump inside a column is smoothed.",
            f"What is left of {self.target} is drawn alike for all rows: a spread that differs between groups is lost.",
        ]
        if len(self.inputs) > 1:
            said.append("Numbers depend on one another as ranks of a Gaussian do: U-shaped dependence is lost.")
        if self.categories and self.inputs:
            said.append("A category moves the level of a number, not its spread.")
        if len(self.categories) > 1:
            said.append("Nominal columns depend on one another only as far as the marginal method for them carries it.")
        return tuple(said)

    def encode(self, rows: Rows) -> dict[str, NDArray[np.int64]]:
        """Rows as whole numbers: ticks of axes, codes of nominal columns. Private."""
        out = {}
        for name, axis in self.axes.items():
            values = rows.codes[name].astype(np.float64) if name in self.ordered else rows.numbers(name)
            out[name] = axis.code(values)
        return out | {name: np.asarray(rows.codes[name], dtype=np.int64) for name in self.categories}

    def features(
        self, scores: Mapping[str, NDArray[np.float64]], rows: int | None, rng: np.random.Generator
    ) -> Polynomial | Fourier:
        """A polynomial below ``SMALL_TABLE`` public rows, where it is not too long; random features otherwise."""
        width = 1 + len(scores) + sum(1 if size == 2 else size for size in self.categories.values())
        if rows is not None and rows < SMALL_TABLE and width * (width + 1) // 2 <= MOST_PRODUCTS:
            return Polynomial.plan(scores, self.categories)
        return Fourier.plan(scores, self.categories, FREQUENCIES, WIDTH, rng)


def _axis(column: Column) -> Axis:
    if column.missing:
        raise ProjectError(
            f"this method cannot carry empty cells of the numeric column {column.name!r}: fill them or leave it out",
            key="method", column=column.name,
        )  # fmt: skip
    return Axis.declared(column.name, column.edges, 1.0 if column.integer else 0.0)
