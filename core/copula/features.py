"""Public features of a row, as whole numbers: what the regression is linear in.

Each is found by lookup in tables made from public numbers and earlier noisy answers, and the same features serve the
private sums and the rows drawn later, so that rounding them costs no accuracy.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from core.copula.sums import Codes, longest, looked_up, side_by_side

UNIT = 2**12
"""Length of a feature vector in units."""

BASE = 2**7
"""Length of the vector whose products are the polynomial's terms, in units."""

CONSTANT = 0.7
"""The constant's part of that squared length."""

SQUARE, MIXED = 5, 7
"""Whole-number weights of squares and of mixed products: 7/5 is a little less than √2."""

TURN = 2**16
"""Units of a whole turn."""

Tables = Mapping[str, NDArray[np.int64]]
"""A column's lines by code."""


class Features(Protocol):
    """Whole-number features of rows, at most ``square`` in squared length."""

    @property
    def size(self) -> int:
        """How many."""
        ...

    @property
    def square(self) -> int:
        """The largest squared length of a row's features."""
        ...

    def of(self, codes: Codes) -> NDArray[np.int64]:
        """One line of features per row."""
        ...


@dataclass(frozen=True)
class Polynomial:
    """All products of two entries of b = (1, scores, categories): of degree 2, every interaction included.

    ``tables`` hold each column's part of b by code; ``one`` is the constant entry. The squares of b are weighted 5 and
    its mixed products 7. Proof of the length: as at :class:`~core.copula.sums.Moments`, the squared length of the
    products is at most 5²·‖b‖⁴ (7² < 2·5²), and ‖b‖² is at most one² plus each table's longest line.
    """

    one: int
    tables: Tables
    pairs: tuple[tuple[int, int], ...]

    @property
    def size(self) -> int:
        """How many products."""
        return len(self.pairs)

    @property
    def square(self) -> int:
        """The largest squared length of a row's products."""
        return (SQUARE * (self.one**2 + longest(list(self.tables.values())))) ** 2

    def of(self, codes: Codes) -> NDArray[np.int64]:
        """The products that ``pairs`` name."""
        inside = side_by_side(codes, self.tables)
        b = np.hstack([np.full((len(inside), 1), self.one), inside])
        left, right = np.array(self.pairs).T
        return np.asarray(b[:, left] * b[:, right] * np.where(left == right, SQUARE, MIXED))

    @classmethod
    def plan(cls, scores: Mapping[str, NDArray[np.float64]], categories: Mapping[str, int]) -> Polynomial:
        """From each numeric column's score by tick, clipped to −1 … 1, and each nominal column's number of categories.

        The constant has most of the squared length, so that single columns weigh more than products of two; the
        columns share the rest evenly. Two categories are one entry of either sign, more are one entry each. Products
        that repeat others (of two categories of one column, of a category with itself) are left out.
        """
        part = math.floor(BASE * math.sqrt((1 - CONSTANT) / (len(scores) + len(categories))))
        tables = {n: np.trunc(part * np.clip(s, -1, 1)[:, None]).astype(np.int64) for n, s in scores.items()}
        for name, size in categories.items():
            tables[name] = part * (np.array([[-1], [1]]) if size == 2 else np.eye(size, dtype=np.int64))
        owner = [""] + [name for name, table in tables.items() for _ in range(table.shape[1])]
        pairs = [
            (i, j)
            for i, j in itertools.combinations_with_replacement(range(len(owner)), 2)
            if owner[i] != owner[j] or owner[i] not in categories
        ]
        return cls(math.floor(BASE * math.sqrt(CONSTANT)), tables, tuple(pairs))


@dataclass(frozen=True)
class Fourier:
    """Cosines and sines of m random frequencies (Rahimi & Recht 2007), and a constant: a smooth kernel's features.

    ``phases`` hold by column and code what is added to each frequency's angle, in ``TURN``s of a whole turn; cos and
    sin are looked up by the whole-number angle. Proof of the length: each pair of entries is a point at most r =
    UNIT·√(1 − share²)/√m from 0, rounded towards it, and the constant is UNIT·share rounded down.
    """

    phases: Tables
    share: float = 0.3

    @property
    def frequencies(self) -> int:
        """How many."""
        return int(next(iter(self.phases.values())).shape[1])

    @property
    def size(self) -> int:
        """Two per frequency, and the constant."""
        return 2 * self.frequencies + 1

    @property
    def square(self) -> int:
        """The largest squared length."""
        return UNIT**2

    def of(self, codes: Codes) -> NDArray[np.int64]:
        """The constant, the cosines, the sines."""
        turns = np.arange(TURN) * (2 * math.pi / TURN)
        radius = UNIT * math.sqrt((1 - self.share**2) / self.frequencies) * (1 - 1e-9)
        cos, sin = (np.trunc(radius * f(turns)).astype(np.int64) for f in (np.cos, np.sin))
        angle = looked_up(codes, self.phases) % TURN
        return np.hstack([np.full((len(angle), 1), math.floor(UNIT * self.share)), cos[angle], sin[angle]])

    @classmethod
    def plan(
        cls,
        scores: Mapping[str, NDArray[np.float64]],
        categories: Mapping[str, int],
        frequencies: int,
        width: float,
        rng: np.random.Generator,
    ) -> Fourier:
        """A Gaussian kernel of the given ``width`` over scores and categories, two of which are √2 apart."""
        phases = {}
        for name, score in scores.items():
            phases[name] = np.outer(score, rng.standard_normal(frequencies) / width)
        for name, size in categories.items():
            phases[name] = rng.standard_normal((size, frequencies)) / width
        return cls({n: np.rint(p * (TURN / (2 * math.pi))).astype(np.int64) for n, p in phases.items()})
