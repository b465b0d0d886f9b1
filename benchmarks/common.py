"""Logistic regression on one-hot columns, used by several benchmarks to measure TSTR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score


def one_hot(codes: Mapping[str, NDArray[Any]], sizes: Mapping[str, int], names: Sequence[str]) -> NDArray[np.float64]:
    """Return the whole table with one column per category."""
    return np.hstack([np.eye(sizes[n])[codes[n]] for n in names])


def auc(truth: NDArray[Any], score: NDArray[Any]) -> float:
    """Return ROC-AUC."""
    return float(roc_auc_score(truth, score))


def fit_auc(
    train: Mapping[str, NDArray[Any]],
    test: Mapping[str, NDArray[Any]],
    sizes: Mapping[str, int],
    target: str,
    names: Sequence[str] | None = None,
) -> float:
    """Train on one table and return the AUC on another; ``names`` are the features (default: all but the target)."""
    names = names or [n for n in sizes if n != target]
    if len(np.unique(train[target])) < 2:
        return 0.5
    model = LogisticRegression(solver="newton-cholesky", max_iter=200).fit(one_hot(train, sizes, names), train[target])
    return auc(test[target], model.decision_function(one_hot(test, sizes, names)))
