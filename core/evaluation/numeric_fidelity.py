"""Comparison of numeric columns as numbers: quantiles, Wasserstein distance, correlation, and a regression trained on
synthetic rows.

The figures depend on the real table, so they are for the curator only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.project.dates import date_texts
from espalier.core.project.file import Project
from espalier.core.project.schema import Schema
from espalier.core.tables.table import Table

SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Quantiles that are compared."""

MOST_ROWS = 20_000
"""Maximum number of rows for training or testing a forest. Longer tables are sampled."""


@dataclass(frozen=True)
class NumericFidelity:
    """Comparison of one numeric column, in its own unit: ``real`` and ``synthetic`` quantiles at ``SHARES``.
    ``wasserstein`` is the mean distance by which values must move to match, and ``relative`` is this distance as a
    share of the declared range. ``spread`` is the synthetic standard deviation divided by the real one.
    """

    name: str
    real: tuple[float, ...]
    synthetic: tuple[float, ...]
    wasserstein: float
    relative: float
    spread: float


@dataclass(frozen=True)
class Correlations:
    """Rank correlations of all pairs of numeric columns, ``real`` and ``synthetic``, with one line per column."""

    names: tuple[str, ...]
    real: NDArray[np.float64]
    synthetic: NDArray[np.float64]

    @property
    def largest_difference(self) -> float:
        """Largest difference over all pairs; 0 for a single column."""
        return float(np.abs(self.real - self.synthetic).max(initial=0.0))

    @property
    def furthest(self) -> tuple[str, str]:
        """Pair with the largest difference."""
        apart = np.abs(self.real - self.synthetic)
        i, j = np.unravel_index(int(apart.argmax()), apart.shape)
        return self.names[i], self.names[j]


@dataclass(frozen=True)
class Prediction:
    """A forest trained on one table and tested on held-out real rows: R² and mean absolute error in the unit of y."""

    r2: float
    mae: float


def column_fidelity(
    name: str, real: NDArray[np.float64], synthetic: NDArray[np.float64], bounds: tuple[float, float]
) -> NumericFidelity:
    """Compare one column; empty cells (NaN) are left out on both sides. ``bounds`` are the declared bounds."""
    real, synthetic = real[~np.isnan(real)], synthetic[~np.isnan(synthetic)]
    if not len(real) or not len(synthetic):
        raise ValueError(f"column {name!r} has no numbers to compare")
    from scipy.stats import wasserstein_distance

    distance = float(wasserstein_distance(real, synthetic))
    spread = float(synthetic.std() / real.std()) if real.std() > 0 else float("nan")
    at, made = (tuple(float(q) for q in np.quantile(x, SHARES)) for x in (real, synthetic))
    return NumericFidelity(name, at, made, distance, distance / (bounds[1] - bounds[0]), spread)


def correlations(
    real: Mapping[str, NDArray[np.float64]], synthetic: Mapping[str, NDArray[np.float64]], names: Sequence[str]
) -> Correlations:
    """Return Spearman's correlation of ``names`` in both tables, over complete rows; 0 for a constant column."""
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
    """Train a random forest on ``train`` (inputs, outcome) and test it on real ``test``, in the same way for every
    method. Numbers enter unchanged, and categories enter one-hot. ``seed`` fixes the forest.
    """
    return _judged(test[1], forest(seed).fit(*train).predict(test[0]))


def _out_of_bag(rows: tuple[NDArray[np.float64], NDArray[np.float64]]) -> Prediction:
    """Return the forest's predictions for its training rows, each made only by trees that did not see the row."""
    told = forest(0).set_params(oob_score=True).fit(*rows).oob_prediction_
    return _judged(rows[1], told)


def _judged(truth: NDArray[np.float64], told: NDArray[np.float64]) -> Prediction:
    from sklearn.metrics import mean_absolute_error, r2_score

    return Prediction(float(r2_score(truth, told)), float(mean_absolute_error(truth, told)))


def forest(seed: int) -> Any:
    """Return the regression with which every method is evaluated."""
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(100, min_samples_leaf=5, random_state=seed)


def design(
    schema: Schema, codes: Mapping[str, NDArray[Any]], numbers: Mapping[str, NDArray[np.float64]], target: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the inputs and the outcome of a table: plain numbers (an empty cell becomes the middle of the range) and
    one-hot categories. Rows without an outcome are left out.
    """
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


def why_no_numbers(project: Project, real: Table, synthetic: Table, holdout: Table | None) -> str:
    """Return the reason why numbers cannot be compared; empty if they can."""
    names = _numeric(project)
    if not names:
        return "no column of the schema is numeric"
    tables = [real, synthetic, *([holdout] if holdout else [])]
    return (
        "one of the tables contains only bins, no numbers"
        if any(n not in t.values for t in tables for n in names)
        else ""
    )


def _numeric(project: Project) -> list[str]:
    return [c.name for c in project.schema.columns if c.kind == "numeric"]


def numbers_of(project: Project, real: Table, synthetic: Table, holdout: Table | None) -> dict[str, Any] | None:
    """Compare the numeric columns of both tables as numbers, and regressions trained on both if the target is numeric.
    For the curator only. Dates are compared by day, and their quantiles are ISO dates. The forest trained on ``real``
    is tested on ``holdout``, else on rows that each tree did not see. None if `why_no_numbers` returns a reason.
    """
    if why_no_numbers(project, real, synthetic, holdout):
        return None
    names, columns = _numeric(project), []
    for name in names:
        edges = project.schema[name].edges
        try:
            facts = vars(column_fidelity(name, real.values[name], synthetic.values[name], (edges[0], edges[-1])))
        except ValueError:
            continue  # there are only empty cells
        if project.schema[name].dates:
            facts = facts | {which: date_texts(np.floor(facts[which])) for which in ("real", "synthetic")}
        columns.append(facts)
    found: dict[str, Any] = {"quantiles": list(SHARES), "columns": [_finite(c) for c in columns]}
    if len(names) > 1:
        linked = correlations(real.values, synthetic.values, names)
        found["largest_correlation_difference"] = linked.largest_difference
        found["largest_correlation_pair"] = list(linked.furthest)
    target = project.plan.target
    if target in names:
        found |= {"target": target} | _regressed(project.schema, (real, synthetic, holdout), target)
    return found


def _regressed(schema: Schema, tables: tuple[Table, Table, Table | None], target: str) -> dict[str, Any]:
    """Return R² and MAE of the same forest trained on synthetic and on real rows."""
    real, synthetic, held = ((None if t is None else thinned(schema, t, target)) for t in tables)
    assert real is not None
    assert synthetic is not None
    if min(len(rows[1]) for rows in (real, synthetic, held or real)) < 2:
        return {"r2_reason": f"there are too few rows with a value of {target}"}
    told = {
        "synthetic": train_and_test(synthetic, held or real),
        "real": _out_of_bag(real) if held is None else train_and_test(real, held),
    }
    return {f"{figure}_{which}": value for which, one in told.items() for figure, value in vars(one).items()}


def thinned(schema: Schema, table: Table, target: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return `design` of a table, or of `MOST_ROWS` of its rows, drawn with a fixed seed."""
    if table.rows > MOST_ROWS:
        table = table.take(np.random.default_rng(0).choice(table.rows, MOST_ROWS, replace=False))
    return design(schema, table.codes, table.values, target)


def _finite(column: dict[str, Any]) -> dict[str, Any]:
    return {k: None if isinstance(v, float) and np.isnan(v) else v for k, v in column.items()}
