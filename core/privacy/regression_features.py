"""Public whole-number features of a row for a private linear regression.

Features are looked up in tables computed from public numbers and earlier noisy answers, so a row's contribution does
not depend on any other row. The private sums and the rows drawn later use the same rounded features, so the rounding
costs no accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = Mapping[str, NDArray[Any]]
"""Rows as whole numbers from 0, one array per column."""

UNIT = 2**12
"""Length of a feature vector in units."""

SQUARE, MIXED = 5, 7
"""Whole-number weights of squares and of mixed products: 7/5 is slightly less than √2."""

TURN = 2**16
"""Units in a full turn."""

Tables = Mapping[str, NDArray[np.int64]]
"""Lines of a column, indexed by code."""


def looked_up(codes: Codes, tables: Tables) -> NDArray[np.int64]:
    """Return the sum over columns of each row's line in that column's table; all lines have one width."""
    return np.asarray(sum(tables[name][codes[name]] for name in tables), dtype=np.int64)


def side_by_side(codes: Codes, tables: Tables) -> NDArray[np.int64]:
    """Return each row's lines in the columns' tables, concatenated."""
    return np.hstack([tables[name][codes[name]] for name in tables])


def longest(tables: Sequence[NDArray[np.int64]]) -> int:
    """Return the largest Σ v² of concatenated lines of ``tables``."""
    return int(sum(int((t * t).sum(axis=1).max()) for t in tables))


def clipped(vectors: NDArray[np.int64], square: int) -> NDArray[np.int64]:
    """Shorten each of ``vectors`` with Σ v² > ``square`` until Σ v² ≤ ``square``, in whole numbers, row by row.

    Proof. With q = ⌊√square⌋ and r = ⌊√Σv²⌋ + 1 > √Σv², |v|·q ÷ r rounded down is at most |v|·q/√Σv² in every entry, so
    the squares sum to at most q² ≤ square. A floating-point square root may round up to the next whole number, but
    never beyond it.
    """
    length = (vectors * vectors).sum(axis=1, keepdims=True)
    r = np.floor(np.sqrt(length.astype(np.float64))).astype(np.int64) + 1
    shorter = np.sign(vectors) * (np.abs(vectors) * math.isqrt(square) // r)
    return np.where(length > square, shorter, vectors)


@dataclass(frozen=True)
class Polynomial:
    """All products of two entries of b = (1, scores, categories): a polynomial of degree 2 with every interaction.

    ``tables`` hold each column's part of b by code; ``one`` is the constant entry. The squares of b are weighted 5 and
    its mixed products 7. Proof of the length: as in :class:`~espalier.core.privacy.moments.Moments`, the squared length
    of the products is at most 5²·‖b‖⁴ (7² < 2·5²), and ‖b‖² is at most one² plus each table's longest line.
    """

    one: int
    tables: Tables
    pairs: tuple[tuple[int, int], ...]

    @property
    def size(self) -> int:
        """Number of products."""
        return len(self.pairs)

    @property
    def square(self) -> int:
        """Largest squared length of a row's products."""
        return (SQUARE * (self.one**2 + longest(list(self.tables.values())))) ** 2

    def of(self, codes: Codes) -> NDArray[np.int64]:
        """Return the products listed in ``pairs``."""
        inside = side_by_side(codes, self.tables)
        b = np.hstack([np.full((len(inside), 1), self.one), inside])
        left, right = np.array(self.pairs).T
        return np.asarray(b[:, left] * b[:, right] * np.where(left == right, SQUARE, MIXED))


@dataclass(frozen=True)
class Fourier:
    """Cosines and sines of m random frequencies (Rahimi & Recht 2007), and a constant: the features of a smooth kernel.

    ``phases`` hold, by column and code, the term of each frequency's angle, with ``TURN`` units to a full turn; cos and
    sin are looked up by the whole-number angle. Proof of the length: each pair of entries is a point at most r =
    UNIT·√(1 − share²)/√m from 0, rounded towards it, and the constant is UNIT·share rounded down.
    """

    phases: Tables
    share: float = 0.3

    @property
    def frequencies(self) -> int:
        """Number of random frequencies."""
        return int(next(iter(self.phases.values())).shape[1])

    @property
    def size(self) -> int:
        """Number of features: two per frequency, and the constant."""
        return 2 * self.frequencies + 1

    @property
    def square(self) -> int:
        """Largest squared length."""
        return UNIT**2

    @cached_property
    def circle(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the cosine and sine of each whole-number angle, in units."""
        turns = np.arange(TURN) * (2 * math.pi / TURN)
        radius = UNIT * math.sqrt((1 - self.share**2) / self.frequencies) * (1 - 1e-9)
        cos, sin = (np.trunc(radius * f(turns)).astype(np.int64) for f in (np.cos, np.sin))
        return cos, sin

    def of(self, codes: Codes) -> NDArray[np.int64]:
        """Return the constant, the cosines and the sines."""
        cos, sin = self.circle
        angle = looked_up(codes, self.phases) % TURN
        return np.hstack([np.full((len(angle), 1), math.floor(UNIT * self.share)), cos[angle], sin[angle]])


Features = Polynomial | Fourier


@dataclass(frozen=True)
class Surface:
    """A fitted value, linear in ``features``: ``weights`` · features + ``middle``, all in the target's unit.

    ``half`` is the intended range of the fit on either side of the middle; values are clipped at twice that.
    """

    features: Features
    weights: NDArray[np.float64]
    middle: float
    half: float

    def at(self, codes: Codes) -> NDArray[np.float64]:
        """Return the fitted value of each row."""
        return self.of(self.features.of(codes))

    def of(self, phi: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the fitted value for each line of the features ``phi``.

        Every row's terms are added in the same order, so its value depends on no other row.
        """
        out = np.zeros(len(phi))
        with np.errstate(invalid="ignore", over="ignore"):  # the caller checks for NaN
            for j in np.flatnonzero(self.weights):
                out += self.weights[j] * phi[:, j]
        return np.asarray(self.middle + np.clip(out, -2 * self.half, 2 * self.half))
