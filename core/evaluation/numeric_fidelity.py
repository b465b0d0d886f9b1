"""Numbers compared as numbers: quantiles, Wasserstein distance and correlation; a regression trained on synthetic rows.

Worked out on the real table, hence for the curator's eyes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.project.file import Project
from core.project.schema import Schema
from core.tables.table import Table

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


def numbers_of(project: Project, real: Table, synthetic: Table, holdout: Table | None) -> dict[str, Any] | None:
    """The numeric columns of both tables as numbers, and where the target is one, a regression; for the curator's eyes.

    None where there is no numeric column, or a table holds its codes only.
    """
    names = [c.name for c in project.schema.columns if c.kind == "numeric"]
    tables = [real, synthetic, *([holdout] if holdout else [])]
    if not names or any(name not in t.values for t in tables for name in names):
        return None
    columns = []
    for name in names:
        edges = project.schema[name].edges
        try:
            columns.append(
                vars(column_fidelity(name, real.values[name], synthetic.values[name], (edges[0], edges[-1])))
            )
        except ValueError:
            continue  # nothing but empty cells
    found: dict[str, Any] = {"quantiles": list(SHARES), "columns": [_finite(c) for c in columns]}
    if len(names) > 1:
        found["largest_correlation_difference"] = correlations(real.values, synthetic.values, names).largest_difference
    target = project.plan.target
    if target in names:
        tested = holdout or real
        against = design(project.schema, tested.codes, tested.values, target)
        for which, table in (("synthetic", synthetic), ("real", real)):
            if which == "real" and holdout is None:
                continue  # a forest tested on the rows that it was trained on says nothing
            told = train_and_test(design(project.schema, table.codes, table.values, target), against)
            found[f"r2_{which}"], found[f"mae_{which}"] = told.r2, told.mae
        found["target"] = target
    return found


def _finite(column: dict[str, Any]) -> dict[str, Any]:
    return {k: None if isinstance(v, float) and np.isnan(v) else v for k, v in column.items()}
