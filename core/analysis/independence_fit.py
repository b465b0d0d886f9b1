"""Noisy counts of (X, Y, Z), and X ⊥ Y | Z fitted to them: e_xyz = n_xz n_yz / n_z.

Residuals are summed over the strata of Z with weights n_z / (n_z + I J σ²), which are small for strata that are mostly
noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Counts:
    """Noisy counts of (X, Y, Z): ``values`` has the shape I × J × K, and ``sigma`` is their noise, both in rows.

    ``rows_per_person`` is the row limit per person. ``ordered``: both columns are ordered or have two values.
    """

    values: FloatArray
    sigma: float
    rows_per_person: int = 1
    ordered: bool = True

    def __post_init__(self) -> None:
        if self.values.ndim != 3 or min(self.values.shape[:2]) < 2:
            raise ValueError("the counts need three axes, the first two with at least two categories")
        if not (self.sigma >= 0 and math.isfinite(self.sigma)):
            raise ValueError(f"sigma ({self.sigma}) must be a finite number of rows, at least 0")
        if self.rows_per_person < 1:
            raise ValueError(f"rows_per_person ({self.rows_per_person}) must be at least 1")

    @cached_property
    def null(self) -> Null:
        """Fitted null hypothesis."""
        return Null.fit(self.values, self.sigma, self.rows_per_person)


@dataclass(frozen=True)
class Null:
    """Fitted X ⊥ Y | Z: rows ``n`` of each stratum, and the shares ``x`` (K × I) and ``y`` (K × J) in the stratum."""

    n: FloatArray
    x: FloatArray
    y: FloatArray
    sigma: float
    rows_per_person: int

    @classmethod
    def fit(cls, values: FloatArray, sigma: float, rows_per_person: int = 1) -> Null:
        """Return the null of ``values`` in closed form, with margins shrunk by the noise in their spread (Louis 1984).

        Without shrinkage, the margins of a table that is mostly noise are too extreme. The tables simulated from them
        are even more extreme, so p is too large.
        """
        i, j, _ = values.shape
        n = _shrunk(values.sum(axis=(0, 1)), i * j * sigma**2)
        n *= max(float(values.sum()), 1.0) / n.sum()
        x, y = (_shares(values.sum(axis=axis).T, n, other * sigma**2) for axis, other in ((1, j), (0, i)))
        return cls(n, x, y, sigma, rows_per_person)

    @classmethod
    def uniform(cls, shape: tuple[int, int, int], rows: float, sigma: float, rows_per_person: int = 1) -> Null:
        """Return the null with equal cells, which is the assumption before anything is counted."""
        i, j, k = shape
        return cls(np.full(k, rows / k), np.full((k, i), 1 / i), np.full((k, j), 1 / j), sigma, rows_per_person)

    @property
    def expected(self) -> FloatArray:
        """Expected counts e_xyz, I × J × K."""
        out: FloatArray = np.einsum("k,ki,kj->ijk", self.n, self.x, self.y)
        return out

    @property
    def weights(self) -> FloatArray:
        """Weights of the strata, n_z / (n_z + I J σ²)."""
        cells = self.x.shape[1] * self.y.shape[1]
        return np.asarray(self.n / (self.n + cells * self.sigma**2), dtype=np.float64)

    def covariance(self) -> FloatArray:
        """Return the covariance (IJ × IJ) of the weighted sum of residuals under the null: k times the covariance of
        sampling, plus that of the noise.

        The residual of stratum z is (A ⊗ B) applied to its counts, with A = I − x 1ᵀ and B = I − y 1ᵀ.
        """
        size = self.x.shape[1] * self.y.shape[1]
        out = np.zeros((size, size))
        for n, x, y, w in zip(self.n, self.x, self.y, self.weights, strict=True):
            a, b = np.eye(len(x)) - x[:, None], np.eye(len(y)) - y[:, None]
            sampled = np.kron(np.diag(x) - np.outer(x, x), np.diag(y) - np.outer(y, y))
            out += w**2 * (self.rows_per_person * n * sampled + self.sigma**2 * np.kron(a @ a.T, b @ b.T))
        return out

    def simulate(self, tables: int, rng: np.random.Generator) -> FloatArray:
        """Draw ``tables`` noisy tables from the null. Each has the rounded number of rows of the fit.

        With k rows per person, n / k people are drawn and all rows of a person are equal. This is the widest spread
        that k rows per person can cause.
        """
        p = np.maximum(self.expected, 0.0).ravel()
        people = max(round(float(p.sum()) / self.rows_per_person), 1)
        drawn = self.rows_per_person * rng.multinomial(people, p / p.sum(), size=tables)
        noisy = drawn + rng.normal(0.0, self.sigma, drawn.shape) if self.sigma else drawn.astype(np.float64)
        return noisy.reshape(tables, *self.expected.shape)


def _shrunk(values: FloatArray, noise: float, centre: FloatArray | float | None = None) -> FloatArray:
    """Shrink ``values`` towards ``centre`` (by default their mean) to the spread that they would have without
    ``noise``.

    ``noise`` is a variance. The full correction of James & Stein would shrink further, and a Z on which both columns
    depend would appear too weak. Every value is at least half a row.
    """
    middle = values.mean() if centre is None else centre
    spread = float(np.mean((values - middle) ** 2))
    kept = math.sqrt(max(0.0, 1 - noise / spread)) if spread > 0 else 0.0
    return np.maximum(middle + kept * (values - middle), 0.5)


def _shares(margin: FloatArray, n: FloatArray, noise: float) -> FloatArray:
    """Return shares (K × I) of a margin, shrunk towards the shares over all strata, which are shrunk towards even
    shares.
    """
    whole = _shrunk(margin.sum(axis=0), len(margin) * noise)
    found = _shrunk(margin, noise, n[:, None] * (whole / whole.sum()))
    return np.asarray(found / found.sum(axis=1, keepdims=True), dtype=np.float64)


def margins(values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return n (… K), x (… K × I) and y (… K × J) of tables … I × J × K; margins are at least half a row."""
    x = np.maximum(np.moveaxis(values.sum(axis=-2), -1, -2), 0.5)
    y = np.maximum(np.moveaxis(values.sum(axis=-3), -1, -2), 0.5)
    n = np.maximum(values.sum(axis=(-3, -2)), 1.0)
    return n, x / x.sum(axis=-1, keepdims=True), y / y.sum(axis=-1, keepdims=True)


def residuals(values: FloatArray, sigma: float) -> FloatArray:
    """Return the weighted sum of the residuals of each table (… I × J) from its own fitted null."""
    n, x, y = margins(values)
    weights = n / (n + values.shape[-3] * values.shape[-2] * sigma**2)
    expected = np.einsum("...k,...ki,...kj->...ijk", n, x, y)
    sums: FloatArray = np.einsum("...ijk,...k->...ij", values - expected, weights)
    return sums
