"""Numbers compared as numbers: quantiles, Wasserstein distance and correlation; a regression trained on synthetic rows.

Worked out on the real table, hence for the curator's eyes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.project.schema import Schema

SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The quantiles compared."""


@dataclass(frozen=True)
class ColumnFidelity:
    """One numeric column, all in its own unit: ``real`` and ``synthetic`` quantiles at ``SHARES``.

    ``wasserstein`` is the mean distance that values must move; ``relative`` the same as a share of the declared range.
    ``spread`` is the synthetic standard deviation over the real one.
    """

    name: str
    real: tuple[float, ...]
    synthetic: tuple[float, ...]
    wasserstein: float
    relative: float
    spread: float


@dataclass(frozen=True)
class Correlations:
    """Rank correlations of every pair of numeric columns: ``real`` and ``synthetic``, one line per column."""

    names: tuple[str, ...]
    real: NDArray[np.float64]
    synthetic: NDArray[np.float64]

    @property
    def largest_difference(self) -> float:
        """The largest over all pairs; 0 for a single column."""
        return float(np.abs(self.real - self.synthetic).max(initial=0.0))


@dataclass(frozen=True)
class Prediction:
    """A forest trained on one table and tested on held-out real rows: R² and mean absolute error in the unit of y."""

    r2: float
    mae: float


def column_fidelity(
    name: str, real: NDArray[np.float64], synthetic: NDArray[np.float64], bounds: tuple[float, float]
) -> ColumnFidelity:
    """Compare one column; empty cells (NaN) are left out on both sides. ``bounds`` are the declared ones."""
    real, synthetic = real[~np.isnan(real)], synthetic[~np.isnan(synthetic)]
    if not len(real) or not len(synthetic):
        raise ValueError(f"column {name!r} has no numbers to compare")
    from scipy.stats import wasserstein_distance

    distance = float(wasserstein_distance(real, synthetic))
    spread = float(synthetic.std() / real.std()) if real.std() > 0 else float("nan")
    at, made = (tuple(float(q) for q in np.quantile(x, SHARES)) for x in (real, synthetic))
    return ColumnFidelity(name, at, made, distance, distance / (bounds[1] - bounds[0]), spread)


def correlations(
    real: Mapping[str, NDArray[np.float64]], synthetic: Mapping[str, NDArray[np.float64]], names: Sequence[str]
) -> Correlations:
    """Spearman's correlation of ``names`` in both tables, over rows without empty cells; 0 beside a constant column."""
    return Correlations(tuple(names), _ranked(real, names), _ranked(synthetic, names))


def _ranked(table: Mapping[str, NDArray[np.float64]], names: Sequence[str]) -> NDArray[np.float64]:
    from scipy.stats import rankdata

    values = np.column_stack([table[name] for name in names])
    ranks = rankdata(values[~np.isnan(values).any(axis=1)], axis=0)
    centred = ranks - ranks.mean(axis=0)
    length = np.sqrt((centred**2).sum(axis=0))
    centred = np.divide(centred, length, out=np.zeros_like(centred), where=length > 0)
    out = centred.T @ centred
    np.fill_diagonal(out, 1.0)
    return np.asarray(out)


def train_and_test(
    train: tuple[NDArray[np.float64], NDArray[np.float64]],
    test: tuple[NDArray[np.float64], NDArray[np.float64]],
    seed: int = 0,
) -> Prediction:
    """Train a random forest on ``train`` (inputs, outcome), test it on real ``test``: the same for every method.

    Inputs are numbers, categories one-hot. ``seed`` fixes the forest.
    """
    from sklearn.metrics import mean_absolute_error, r2_score

    told = forest(seed).fit(*train).predict(test[0])
    return Prediction(float(r2_score(test[1], told)), float(mean_absolute_error(test[1], told)))


def forest(seed: int) -> Any:
    """The regression that every method is judged by."""
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(100, min_samples_leaf=5, random_state=seed)


def design(
    schema: Schema, codes: Mapping[str, NDArray[Any]], numbers: Mapping[str, NDArray[np.float64]], target: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Inputs and outcome of a table: numbers as they are (an empty cell as the middle of the range), categories
    one-hot; rows without an outcome left out."""
    parts = []
    for c in schema.columns:
        if c.name == target:
            continue
        if c.kind == "numeric":
            middle = (c.edges[0] + c.edges[-1]) / 2
            parts.append(np.where(np.isnan(numbers[c.name]), middle, numbers[c.name])[:, None])
            if c.missing:
                parts.append(np.isnan(numbers[c.name]).astype(np.float64)[:, None])
        else:
            parts.append(np.eye(c.size)[np.asarray(codes[c.name], dtype=np.int64)])
    y = numbers[target]
    x = np.hstack(parts) if parts else np.zeros((len(y), 1))
    return x[~np.isnan(y)], y[~np.isnan(y)]
