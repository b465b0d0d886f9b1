"""Whole-number sums over the rows for a bought regression: products of each row's public scores.

A row becomes a vector v = (1, scores of the predictors, score of the outcome), by lookup in public tables. The sums of
products of its entries determine a linear regression. Logistic and Poisson regressions need sums weighted by an
earlier, released fit. A row with a missing cell in one of the columns contributes nothing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from espalier.core.privacy.unit import Unit
from espalier.core.project.regressions import BoughtRegression, centre_and_half
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.source import Source

ONE = 2**10
"""Units per score of 1."""

COEFFICIENT = 2**12
"""Units per coefficient of 1 in a :class:`Fit`."""

STEEPEST = 16.0
"""Linear predictors are clipped to ± this value."""

LARGEST_COEFFICIENT = 1e4
"""Coefficients of a fit are clipped to this value."""

OUTCOME, OTHER = 7, 5
"""Whole-number weights of moments: one for products with the outcome, which cause nearly all of the error, and one for
the others."""

BLOCK = 2**14
"""Number of rows whose products are added at a time."""

Part = Literal["moments", "gradient", "curvature", "spread"]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Block:
    """Scores of one predictor, or of an interaction of two: ``lines`` by code, each of length at most ``ONE``.

    ``products`` is true if products inside the block are bought. For categories, these products follow from the sums of
    the scores, because each row has one of a few affinely independent lines.
    """

    columns: tuple[str, ...]
    lines: IntArray
    products: bool

    @property
    def size(self) -> int:
        """Number of scores."""
        return int(self.lines.shape[-1])

    @property
    def flat(self) -> IntArray:
        """One line per combination of codes."""
        return self.lines.reshape(-1, self.size)

    @cached_property
    def least(self) -> int:
        """Smallest inner product of two lines."""
        lines = self.flat
        return -(ONE**2) if self.products else int((lines @ lines.T).min())


@dataclass(frozen=True, eq=False)
class Design:
    """Public tables that turn a row into scores.

    ``sizes`` are the columns' numbers of codes, excluding missing. ``outcome`` is the outcome's position in its range
    by code, from 0 to ``ONE``. ``missing`` is true if a row can have a missing cell.
    """

    sizes: Mapping[str, int]
    blocks: tuple[Block, ...]
    target: str
    outcome: IntArray
    missing: bool
    offset: float
    """Outcome at the middle of its range; with ``half``, it converts a score to the outcome's unit."""
    half: float

    @property
    def width(self) -> int:
        """Number of scores of the predictors, including the constant."""
        return 1 + sum(block.size for block in self.blocks)

    @property
    def starts(self) -> tuple[int, ...]:
        """Position of each block's first score; the constant is at 0."""
        return tuple(itertools.accumulate((b.size for b in self.blocks[:-1]), initial=1))

    def of(self, codes: Mapping[str, NDArray[Any]]) -> tuple[IntArray, IntArray]:
        """Return each row's scores and its outcome from 0 to ``ONE``; all 0 if a cell is missing."""
        held = {name: np.asarray(codes[name], dtype=np.int64) for name in self.sizes}
        seen = np.all([held[name] < size for name, size in self.sizes.items()], axis=0)
        held = {name: np.where(seen, values, 0) for name, values in held.items()}
        lines = [block.lines[tuple(held[name] for name in block.columns)] for block in self.blocks]
        scores = np.hstack([np.full((len(seen), 1), ONE), *lines])
        return scores * seen[:, None], self.outcome[held[self.target]] * seen


@dataclass(frozen=True, eq=False)
class Fit:
    """An earlier, released fit: whole-number ``coefficients`` of the scores, in ``COEFFICIENT`` units.

    ``means`` has the fitted outcome and ``weights`` the weight of a row's products, each from 0 to ``ONE``, by the
    position of the linear predictor on a grid. Residuals are clipped to ``clip``.
    """

    coefficients: tuple[int, ...]
    means: IntArray
    weights: IntArray
    clip: int = ONE

    def places(self, scores: IntArray) -> IntArray:
        """Return the position of each row's linear predictor on the grid, in whole-number arithmetic."""
        found = np.zeros(len(scores), dtype=np.int64)
        for j, coefficient in enumerate(self.coefficients):
            found += scores[:, j] * coefficient
        most = round(STEEPEST * ONE)
        return np.clip(found // COEFFICIENT, -most, most) + most


GRID = np.arange(-round(STEEPEST * ONE), round(STEEPEST * ONE) + 1) / ONE
"""Linear predictors at the grid positions of a :class:`Fit`."""


def whole(coefficients: NDArray[np.float64]) -> tuple[int, ...]:
    """Return coefficients in the form that a :class:`Fit` stores."""
    bounded = np.clip(np.nan_to_num(coefficients), -LARGEST_COEFFICIENT, LARGEST_COEFFICIENT)
    return tuple(int(x) for x in np.rint(bounded * COEFFICIENT))


@dataclass(frozen=True, eq=False)
class RegressionSums:
    """One vector of sums for a regression; ``what`` names it.

    ``moments``: products of the scores, including the outcome's (from −1 to 1). ``gradient``: scores times the residual
    of the outcome after ``fit``. ``curvature``: products of scores times the fit's weight. ``spread``: products of
    scores times the squared residual, as a share of its largest possible value.
    """

    what: str
    design: Design
    part: Part
    counted: bool = False
    """True if the number of complete rows is bought as well, which is unnecessary if it is public."""
    fit: Fit | None = None
    kind: Literal["sums"] = field(default="sums", init=False)
    recipe: str = field(default="regression", init=False)

    @property
    def units(self) -> int:
        """Units per row if all scores are 1; for moments, per product with the outcome."""
        return {"moments": OUTCOME * ONE**2, "gradient": ONE**2}.get(self.part, ONE**3)

    @cached_property
    def weights(self) -> IntArray:
        """Whole-number weight of each entry of the vector: 1 except for moments."""
        if self.part != "moments":
            return np.ones(self.cells, dtype=np.int64)
        return np.array([OUTCOME if i < j == self.design.width else OTHER for i, j in self.pairs], dtype=np.int64)

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Pairs of scores whose products are bought. A gradient pairs each score with the residual."""
        design, width = self.design, self.design.width
        if self.part == "gradient":
            return tuple((i, i) for i in range(width))
        groups = [(0,), *(tuple(range(s, s + b.size)) for s, b in zip(design.starts, design.blocks, strict=True))]
        if self.part == "moments":
            groups.append((width,))
        inside = {i for i, b in enumerate(design.blocks, start=1) if b.products}
        if self.part == "moments" and not self.binary:
            inside.add(len(groups) - 1)
        found = [(0, 0)] if self.counted else []
        for a, b in itertools.combinations_with_replacement(range(len(groups)), 2):
            if a != b:
                found += itertools.product(groups[a], groups[b])
            elif a in inside:
                found += itertools.combinations_with_replacement(groups[a], 2)
        return tuple(found)

    @property
    def binary(self) -> bool:
        """True if the outcome is an event, which has a constant square."""
        return bool(np.all((self.design.outcome == 0) | (self.design.outcome == ONE)))

    @property
    def cells(self) -> int:
        """Length of the vector."""
        return len(self.pairs)

    def check(self, sizes: Mapping[str, int]) -> None:
        """Raise :class:`ValueError` unless the columns match the table and the scores respect their bounds."""
        design = self.design
        for name, size in design.sizes.items():
            if name not in sizes or sizes[name] - size not in (0, 1) or (sizes[name] > size and not design.missing):
                raise ValueError(f"the scores of {name!r} belong to another table")
        for block in design.blocks:
            if np.abs(block.lines.astype(np.float64)).max() > ONE:  # larger squares would wrap around
                raise ValueError(f"the scores of {block.columns} are too long")
            squares = (block.flat.astype(np.int64) ** 2).sum(axis=1)
            if block.lines.shape[:-1] != tuple(design.sizes[c] for c in block.columns) or squares.max() > ONE**2:
                raise ValueError(f"the scores of {block.columns} do not fit the columns, or are too long")
        tables = [(design.outcome, (design.sizes[design.target],))]
        if (self.fit is None) != (self.part == "moments"):
            raise ValueError("moments need no fit, and the other sums need one")
        if self.fit is not None:
            if len(self.fit.coefficients) != design.width or not 0 < self.fit.clip <= ONE:
                raise ValueError("the fit belongs to another regression")
            tables += [(self.fit.means, GRID.shape), (self.fit.weights, GRID.shape)]
        if any(t.shape != shape or t.min() < 0 or t.max() > ONE for t, shape in tables):
            raise ValueError("a table of a regression exceeds its bounds")

    @cached_property
    def _squared(self) -> dict[bool, int]:
        return {}

    def squared(self, replace: bool) -> int:
        """Return the squared L2 sensitivity for one row, in units of ``ONE``⁴; see :meth:`sensitivity`."""
        if replace not in self._squared:
            self._squared[replace] = self._bound(replace)
        return self._squared[replace]

    def _bound(self, replace: bool) -> int:
        blocks, top, moments = self.design.blocks, ONE**4, self.part == "moments"
        x = 1 + len(blocks)
        if self.part == "gradient":
            return (4 if replace else 1) * x * top
        heavy, light = (OUTCOME**2, OTHER**2) if moments else (0, 1)
        several = sum(b.products and b.size > 1 for b in blocks)
        inside = sum(b.products for b in blocks) + (moments and not self.binary)
        full = top * (heavy * x + light * (x * (x - 1) // 2 + inside + self.counted))
        if not replace:
            return full
        least = _least([b.least for b in blocks], heavy, light)
        if moments:
            both = 2 * (top * (heavy * x + light * (x * (x - 1) // 2 + several)) - least)
            return max(both, full) if self.design.missing else both
        return 2 * full - 2 * min(0, least + (top if self.counted else 0))

    def given(self, unit: Unit) -> tuple[tuple[str, float], ...]:
        """Return the squared L2 sensitivity in rows for one row per person, on which the sensitivity depends."""
        scale = self.units // (ONE**2 if self.part in ("moments", "gradient") else ONE**3)
        return (("squared", self.squared(unit.neighbors == "replace-one") / (ONE**4 * scale**2)),)

    def sensitivity(self, unit: Unit) -> int:
        """Return the L2 sensitivity in units, rounded up.

        Proof. Let one row have the vector x of scores in blocks x_a (the constant, each predictor or interaction, and
        for moments the outcome), all with |x_a|² ≤ 1 in units of ``ONE``. There are s blocks, and the constant is 1.

        *Moments, add-remove.* A row adds the products φ(x). Products of two blocks have the squared length
        |x_a|²·|x_b|² ≤ 1, and products inside a block at most |x_a|⁴ ≤ 1 (each unordered pair is bought once). With t
        blocks whose inner products are bought, ‖φ(x)‖² ≤ s(s−1)/2 + t, and 1 more if complete rows are counted.

        *Moments, replace-one.* Let both rows be complete, with x and y, n_a = |x_a|², m_a = |y_a|², d_a = x_a·y_a. The
        products of two blocks move by n_a n_b + m_a m_b − 2 d_a d_b, squared. Raising n_a and m_a to 1 only increases
        this. For a block of one score, u in one row and v in the other, the pair with the constant then grows by (1 −
        u²) + (1 − v²) ≥ |u² − v²| ≥ (u² − v²)², which covers its own square. The squares of larger blocks move by at
        most 2 in squared length: each row's have length at most 1, and their inner product, ((x_a·y_a)² + Σ x_ai²
        y_ai²)/2, is not negative. The remaining term, s(s−1) − 2 Σ_{a<b} d_a d_b, is linear in each d_a, so its maximum
        is at a corner of the box from the smallest inner product of two lines to 1; d of the constant is 1. All corners
        are evaluated. If one row has a missing cell, it adds nothing, and the other moves the sum by ‖φ‖.

        *Curvature and spread.* The row's products are multiplied by a weight from 0 to 1, so their length does not
        grow. Two rows: ‖wφ − w′φ′‖² ≤ 2·max‖φ‖² − 2·min(0, min φ·φ′), and φ·φ′ ≥ Σ_{a<b} d_a d_b (+ 1 if rows are
        counted).

        *Gradient.* The row adds r·x with |r| ≤ 1 and ‖x‖² ≤ s. Two rows differ by at most 2√s.

        k rows move each sum at most k times as far, by the triangle inequality. A row's part depends on that row and
        public tables alone, through lookup and whole-number arithmetic.
        """
        square = self.squared(unit.neighbors == "replace-one") * unit.rows_per_person**2
        root = math.isqrt(square)
        return (root if root * root == square else root + 1) * (1 if self.part in ("moments", "gradient") else ONE)

    def sums(self, source: Source) -> IntArray:
        """Return the exact sums in units. For the curator only."""
        width = self.design.width + (self.part == "moments")
        total = np.zeros(width if self.part == "gradient" else (width, width), dtype=np.int64)
        for batch in source.batches():
            rows = len(next(iter(batch.values())))
            for start in range(0, rows, BLOCK):
                total += self._of({n: batch[n][start : start + BLOCK] for n in self.design.sizes})
        if self.part == "gradient":
            return total
        left, right = np.array(self.pairs).T
        return np.asarray(total[left, right] * self.weights)

    def _of(self, codes: Mapping[str, NDArray[Any]]) -> IntArray:
        """Return the sums of some rows: whole numbers below 2⁵³, hence exact in floats."""
        scores, outcome = self.design.of(codes)
        if self.part == "moments":
            v = np.hstack([scores, (2 * outcome - np.where(scores[:, 0] > 0, ONE, 0))[:, None]]).astype(np.float64)
            return (v.T @ v).astype(np.int64)
        assert self.fit is not None
        places = self.fit.places(scores)
        left = outcome - self.fit.means[places]
        v = scores.astype(np.float64)
        if self.part == "gradient":
            return (v.T @ left.astype(np.float64)).astype(np.int64)
        if self.part == "curvature":
            weights = self.fit.weights[places]
        else:
            clip = self.fit.clip
            weights = ONE * np.minimum(np.abs(left), clip) ** 2 // clip**2
        return (v.T @ (v * weights[:, None].astype(np.float64))).astype(np.int64)

    @cached_property
    def expansion(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Linear map from the vector (in rows) to the matrix of all products, and its constant per row.

        The matrix is ``map @ vector + rows × constant``, where ``rows`` is the number of complete rows if it is not
        bought.
        """
        design, width = self.design, self.design.width + (self.part == "moments")
        place = {pair: i for i, pair in enumerate(self.pairs)}
        linear, constant = np.zeros((width, width, self.cells)), np.zeros((width, width))
        scale = self.units / ONE**2 / self.weights if self.part == "moments" else np.ones(self.cells)

        def put(i: int, j: int, at: int, weight: float) -> None:
            linear[i, j, at] += weight * scale[at]
            linear[j, i, at] = linear[i, j, at]

        for (i, j), at in place.items():
            put(i, j, at, 1.0)
        if not self.counted:
            constant[0, 0] = 1.0
        for start, block in zip(design.starts, design.blocks, strict=True):
            if block.products:
                continue
            lines = block.flat / ONE
            counts = np.linalg.inv(np.vstack([lines.T, np.ones(len(lines))]))  # derived from the sums and the total
            for i, j in itertools.combinations_with_replacement(range(block.size), 2):
                weights = (lines[:, i] * lines[:, j]) @ counts
                for k in range(block.size):
                    put(start + i, start + j, place[0, start + k], float(weights[k]))
                if self.counted:
                    put(start + i, start + j, place[0, 0], float(weights[-1]))
                else:
                    constant[start + i, start + j] = constant[start + j, start + i] = weights[-1]
        if self.part == "moments" and self.binary:
            if self.counted:
                put(width - 1, width - 1, place[0, 0], 1.0)
            else:
                constant[-1, -1] = 1.0
        return linear, constant


def _least(lows: list[int], heavy: int, light: int) -> int:
    """Return the smallest light·Σ_{a<b} d_a d_b + heavy·e·Σ_a d_a over the corners of a box.

    d of the constant is ``ONE``², each further d between one of ``lows`` and ``ONE``², and e between ±``ONE``².
    """
    top = ONE**2
    alike: dict[int, int] = {}
    for low in lows:
        alike[low] = alike.get(low, 0) + 1
    found = []
    for taken in itertools.product(*(range(many + 1) for many in alike.values())):
        total, squares = top, top * top
        for (low, many), down in zip(alike.items(), taken, strict=True):
            total += down * low + (many - down) * top
            squares += down * low * low + (many - down) * top * top
        found.append(light * (total * total - squares) // 2 - heavy * top * abs(total))
    return min(found)


def design_of(regression: BoughtRegression, schema: Schema) -> Design:
    """Return the public tables of a regression."""
    column, event = regression.target(schema)
    names = tuple(dict.fromkeys((*regression.on, column.name)))
    paired = {name for pair in regression.interactions for name in pair}
    blocks = [_alone(schema[name]) for name in regression.on if name not in paired]
    blocks += [_together(schema[a], schema[b]) for a, b in regression.interactions]
    if event is None:
        centre, half = centre_and_half(column.middles[: column.values].tolist())
        shares = ((column.middles[: column.values] - centre) / half + 1) / 2
        outcome = np.rint(ONE * np.clip(shares, 0, 1)).astype(np.int64)
    else:
        centre = half = 0.5
        outcome = np.where(np.arange(column.values) == event, ONE, 0).astype(np.int64)
    sizes = {name: schema[name].values for name in names}
    return Design(sizes, tuple(blocks), column.name, outcome, any(schema[name].missing for name in names), centre, half)


def _alone(column: Column) -> Block:
    if column.kind == "numeric":
        return Block((column.name,), _number(column)[:, None], True)
    return Block((column.name,), corners(column.values), False)


def _together(one: Column, other: Column) -> Block:
    """Return all scores of two columns and their products; for two categorical columns, one line per combination."""
    shape = (one.values, other.values)
    if one.kind != "numeric" and other.kind != "numeric":
        return Block((one.name, other.name), corners(math.prod(shape)).reshape(*shape, -1), False)
    a, b = (_alone(column).lines / ONE for column in (one, other))
    first, second = np.broadcast_to(a[:, None], (*shape, a.shape[1])), np.broadcast_to(b[None], (*shape, b.shape[1]))
    products = (first[..., :, None] * second[..., None, :]).reshape(*shape, -1)
    lines = np.concatenate([first, second, products], axis=2) / math.sqrt(3)
    return Block((one.name, other.name), np.trunc(ONE * lines).astype(np.int64), True)


def _number(column: Column) -> IntArray:
    """Return scores from −``ONE`` to ``ONE`` for the bin midpoints of a numeric column."""
    middles = column.middles[: column.values]
    centre, half = centre_and_half(middles.tolist())
    return np.rint(ONE * np.clip((middles - centre) / half, -1, 1)).astype(np.int64)


def corners(many: int) -> IntArray:
    """Return the corners of a regular simplex around 0, one per category, by Helmert's contrasts, rounded towards 0.

    All categories have scores of the same length; two categories have the scores −1 and 1.
    """
    lines = np.zeros((many, many - 1))
    for j in range(1, many):
        lines[:j, j - 1], lines[j, j - 1] = -1 / math.sqrt(j * (j + 1)), j / math.sqrt(j * (j + 1))
    lines *= math.sqrt(many / (many - 1))
    return np.trunc(ONE * lines * (1 + 1e-9)).astype(np.int64)
