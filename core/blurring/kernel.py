"""Stage two: kernel ridge regression with a cross-validated kernel. NOT private: it is fitted to the real rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist

from espalier.core.errors import SizeError

EXACT_ROWS = 5_000
"""Maximum number of rows for which the regression is solved exactly, because the cost grows with the cube of this
number.
"""

TRIED_ROWS = 800
"""Number of random rows used to choose the kernel and λ."""

WIDTHS = (0.5, 1.0, 2.0, 4.0)
"""Kernel widths to try, as multiples of the median distance."""

LAMBDAS = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
"""Values of λ in equation (7) to try."""


@dataclass(frozen=True)
class Kernel:
    """A kernel: its ``name``, "wendland" (equation (23), for any dimension) or "gauss", and its ``width``."""

    name: str
    width: float

    def of(self, left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return K for every pair of rows. Wendland's function (1 − r)₊^(l+1)·((l+1)r + 1) with l = ⌊d/2⌋ + 2 is
        positive definite up to dimension d. The paper prints its d = 3 case, which is not positive definite in higher
        dimensions.
        """
        r = cdist(left, right) / self.width
        if self.name == "gauss":
            return np.asarray(np.exp(-0.5 * r * r))
        power = left.shape[1] // 2 + 3
        return np.asarray(np.maximum(1 - r, 0.0) ** power * (power * r + 1))


@dataclass(frozen=True)
class Regression:
    """A fit: ``weights`` of the kernels at ``centres``, the outcome's ``mean``, and ``left``, the leave-one-out
    residuals.
    """

    kernel: Kernel
    lam: float
    centres: NDArray[np.float64]
    weights: NDArray[np.float64]
    mean: float
    left: NDArray[np.float64]

    def at(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the fitted outcome of each row."""
        parts = [rows[i : i + 2_000] for i in range(0, len(rows), 2_000)]
        return np.concatenate([self.kernel.of(p, self.centres) @ self.weights for p in parts]) + self.mean


def fit(
    rows: NDArray[np.float64], outcome: NDArray[np.float64], rng: np.random.Generator, landmarks: int | None = None
) -> Regression:
    """Fit equation (7). Kernel, width and λ minimise the leave-one-out error on at most ``TRIED_ROWS`` rows.

    ``landmarks``: Nyström's approximation with this many random centres (Williams & Seeger 2001). Raises
    :class:`SizeError` above ``EXACT_ROWS`` rows without them.
    """
    n = len(rows)
    if n > EXACT_ROWS and landmarks is None:
        raise SizeError(
            f"the cost of kernel ridge regression grows with the cube of the number of rows ({n:,} here); above "
            f"{EXACT_ROWS:,} rows, set landmarks, such as 1000",
            limit=EXACT_ROWS,
        )
    tried = rng.choice(n, min(n, TRIED_ROWS), replace=False)
    kernel, lam, left = _chosen(rows[tried], outcome[tried])
    mean = float(outcome.mean())
    if landmarks is None or landmarks >= n:
        gram = kernel.of(rows, rows)
        gram[np.diag_indices(n)] += n * lam
        weights = cho_solve(cho_factor(gram, overwrite_a=True), outcome - mean)
        return Regression(kernel, lam, rows, weights, mean, left)
    centres = rows[rng.choice(n, landmarks, replace=False)]
    between = kernel.of(centres, centres)
    right, square = np.zeros(landmarks), n * lam * between
    for i in range(0, n, 2_000):
        k = kernel.of(centres, rows[i : i + 2_000])
        square += k @ k.T
        right += k @ (outcome[i : i + 2_000] - mean)
    square[np.diag_indices(landmarks)] += 1e-10 * np.trace(square) / landmarks
    return Regression(kernel, lam, centres, np.asarray(np.linalg.solve(square, right), np.float64), mean, left)


def _chosen(rows: NDArray[np.float64], outcome: NDArray[np.float64]) -> tuple[Kernel, float, NDArray[np.float64]]:
    """Return the kernel and λ with the smallest leave-one-out error, and the residuals.

    With the eigenvectors of K, the residuals of all n leave-one-out fits are (y − ŷ)/(1 − H_ii), for every λ at once.
    """
    y = outcome - outcome.mean()
    apart = cdist(rows[:300], rows[:300])
    typical = float(np.median(apart[apart > 0])) if (apart > 0).any() else 1.0
    best: tuple[float, Kernel, float, NDArray[np.float64]] = (math.inf, Kernel("gauss", typical), 1e-3, y)
    for kernel in [
        Kernel(name, w * typical * (3 if name == "wendland" else 1)) for name in ("wendland", "gauss") for w in WIDTHS
    ]:
        values, vectors = np.linalg.eigh(kernel.of(rows, rows))
        values, turned = np.maximum(values, 0.0), vectors.T @ y
        for lam in LAMBDAS:
            gain = values / (values + len(rows) * lam)
            residual = (y - vectors @ (gain * turned)) / np.maximum(1 - (vectors**2) @ gain, 1e-9)
            error = float(np.mean(residual**2))
            if error < best[0]:
                best = (error, kernel, lam, residual)
    return best[1], best[2], best[3]
