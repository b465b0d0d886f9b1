"""Stage two: regressions that compute the outcome of each row, and the choice among them. NOT private.

Kernel ridge regression is the paper's method; the others are its comparisons (§5, Appendix D.1). Ridge fails on
strongly skewed tables, so five-fold cross-validation chooses the regression unless the plan names one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from espalier.core.blurring import kernel

FOLDS = 5
TRIED_ROWS = 1_000
"""Number of random rows used to compare the regressions."""

WIDTHS = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Widths tried for the kernel average, as multiples of the median distance."""

TREES, DEPTHS = 100, (2, 4, 6, 10)
"""Number of trees of AdaBoost and of the forest, and the depths that are tried."""

RESPONSES = ("ridge", "nearest", "adaboost", "forest")
"""Names of the regressions; in a tie, the first is chosen."""


class Fitted(Protocol):
    """A fitted regression."""

    def at(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the fitted outcome of each row."""
        ...


@dataclass(frozen=True)
class Response:
    """Fitted regression ``name``; ``left`` contains the residuals of rows that were left out of the fit.

    ``errors`` are the cross-validated mean squared errors of the candidates, as shares of the outcome's variance; empty
    if the plan names one.
    """

    name: str
    fitted: Fitted
    left: NDArray[np.float64]
    errors: Mapping[str, float]

    def at(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the fitted outcome of each row."""
        return self.fitted.at(rows)


@dataclass(frozen=True)
class Average:
    """Nadaraya–Watson regression: a Gaussian kernel average of the outcomes near a row."""

    rows: NDArray[np.float64]
    outcome: NDArray[np.float64]
    width: float

    def at(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the average at each row."""
        out = np.empty(len(rows))
        for i in range(0, len(rows), 1_000):
            apart = cdist(rows[i : i + 1_000], self.rows, "sqeuclidean") / (2 * self.width**2)
            weight = np.exp(apart.min(axis=1, keepdims=True) - apart)
            out[i : i + 1_000] = weight @ self.outcome / weight.sum(axis=1)
        return out


@dataclass(frozen=True)
class Ensemble:
    """Ensemble of trees, fitted by scikit-learn."""

    model: Any

    def at(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the prediction at each row."""
        return np.asarray(self.model.predict(rows), np.float64)


Fit = Callable[[NDArray[np.float64], NDArray[np.float64], np.random.Generator], Fitted]


def respond(
    rows: NDArray[np.float64],
    outcome: NDArray[np.float64],
    rng: np.random.Generator,
    wanted: str = "auto",
    landmarks: int | None = None,
) -> Response:
    """Fit the regression ``wanted``; ``auto`` selects the one with the smallest error in cross-validation.

    ``landmarks`` is as in :func:`espalier.core.blurring.kernel.fit`.
    """
    if wanted == "ridge":
        made = kernel.fit(rows, outcome, rng, landmarks)
        return Response("ridge", made, made.left, {})
    tried = rng.choice(len(rows), min(len(rows), TRIED_ROWS), replace=False)
    x, y = rows[tried], outcome[tried]
    names = RESPONSES if wanted == "auto" else (wanted,)
    left = {name: _left(_fits(None)[name], x, y, rng) for name in names}
    best = min(names, key=lambda name: float(np.mean(left[name] ** 2)))
    whole = max(float(y.var()), 1e-300)
    errors = {name: float(np.mean(left[name] ** 2)) / whole for name in names} if wanted == "auto" else {}
    return Response(best, _fits(landmarks)[best](rows, outcome, rng), left[best], errors)


def _fits(landmarks: int | None) -> Mapping[str, Fit]:
    return {
        "ridge": lambda x, y, rng: kernel.fit(x, y, rng, landmarks),
        "nearest": _average,
        "adaboost": _adaboost,
        "forest": _forest,
    }


def _left(fit: Fit, x: NDArray[np.float64], y: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the residual of each row under a fit to the other folds."""
    fold = rng.permutation(len(y)) % FOLDS
    left = np.empty(len(y))
    for k in range(FOLDS):
        if (fold != k).any() and (fold == k).any():
            left[fold == k] = y[fold == k] - fit(x[fold != k], y[fold != k], rng).at(x[fold == k])
    return left


def _average(x: NDArray[np.float64], y: NDArray[np.float64], rng: np.random.Generator) -> Fitted:
    """Return the kernel average whose width has the smallest leave-one-out error."""
    some = rng.choice(len(x), min(len(x), kernel.TRIED_ROWS), replace=False)
    apart = cdist(x[some], x[some], "sqeuclidean")
    typical = float(np.sqrt(np.median(apart[apart > 0]))) if (apart > 0).any() else 1.0
    np.fill_diagonal(apart, np.inf)
    errors = {}
    for width in WIDTHS:
        weight = np.exp((apart.min(axis=1, keepdims=True) - apart) / (2 * (width * typical) ** 2))
        errors[width] = float(np.mean((weight @ y[some] / weight.sum(axis=1) - y[some]) ** 2))
    return Average(x, y, typical * min(errors, key=errors.__getitem__))


def _forest(x: NDArray[np.float64], y: NDArray[np.float64], rng: np.random.Generator) -> Fitted:
    from sklearn.ensemble import RandomForestRegressor

    seed = int(rng.integers(2**31))
    return Ensemble(RandomForestRegressor(TREES, min_samples_leaf=2, random_state=seed, n_jobs=1).fit(x, y))


def _adaboost(x: NDArray[np.float64], y: NDArray[np.float64], rng: np.random.Generator) -> Fitted:
    """Return AdaBoost over trees of the depth with the smallest error on a fifth of the rows."""
    from sklearn.ensemble import AdaBoostRegressor
    from sklearn.tree import DecisionTreeRegressor

    seed, kept = int(rng.integers(2**31)), rng.random(len(x)) < 0.8
    if kept.all() or not kept.any():
        kept[0] = not kept[0]

    def model(depth: int, some: NDArray[np.bool_]) -> Any:
        return AdaBoostRegressor(DecisionTreeRegressor(max_depth=depth), n_estimators=50, random_state=seed).fit(
            x[some], y[some]
        )

    best = min(DEPTHS, key=lambda depth: float(np.mean((model(depth, kept).predict(x[~kept]) - y[~kept]) ** 2)))
    return Ensemble(model(best, np.ones(len(x), dtype=bool)))
