"""Classifier for utility and fairness: logistic regression on the one-hot codes of all other columns. It represents the
downstream analyst in PRISM §7 and appendix C, who trains on one table and predicts the target on another. Training uses
scikit-learn. A prediction only looks up each row's weights, so test rows are never expanded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.tables.table import Table

if TYPE_CHECKING:
    from espalier.core.progress import Report

FOLDS = 5
SEED = 20_251_101
"""Seed for the folds and for thinning very long tables, so that the same table always gets the same figures."""
MAX_ENTRIES = 20_000_000
"""Largest product of rows and features in one fit (about 240 MB). If the product is larger, a random part of the rows
is used.
"""

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Classifier:
    """A multinomial logistic regression over K target codes.

    ``weights[column]`` is (codes of the column) × K, ``bias`` has K entries. A target code that does not occur in the
    training rows has bias −∞ and is never predicted. ``rows`` is the number of training rows.
    """

    weights: Mapping[str, FloatArray]
    bias: FloatArray
    rows: int

    def scores(self, table: Table) -> FloatArray:
        """Return log-probabilities of the target's codes up to a constant per row: rows × K."""
        return self.scores_of(table.codes, table.rows)

    def scores_of(self, codes: Mapping[str, NDArray[Any]], rows: int) -> FloatArray:
        """Return the scores of ``rows`` rows given as codes by column."""
        out = np.tile(self.bias, (rows, 1))
        for name, weight in self.weights.items():
            out += weight[codes[name]]
        return out


def fit(table: Table, target: str) -> Classifier:
    """Train on all columns of ``table`` except ``target``, with scikit-learn's default L2 penalty (C = 1).

    Rows where the target is missing are left out, so a missing target is never predicted. A table in which the target
    has a single value trains the constant classifier.
    """
    features = tuple(name for name in table.schema.names if name != target)
    table = _thin(table.observed(target), MAX_ENTRIES // max(len(features), 1))
    truth, size = table.codes[target], table.schema[target].size
    seen = np.unique(truth)
    bias = np.full(size, -np.inf)
    if not len(seen):  # no row has a target, so all values are equally likely
        bias[: table.schema[target].values] = 0.0
        return Classifier({}, bias, 0)
    if len(seen) == 1 or not features:
        bias[seen] = np.log(np.bincount(truth, minlength=size)[seen] / table.rows)
        return Classifier({}, bias, table.rows)

    from sklearn.linear_model import LogisticRegression

    # Newton steps reach the optimum in about ten passes, even for very skewed categories.
    model = LogisticRegression(solver="newton-cg", max_iter=1000).fit(_one_hot(table, features), truth)
    coefficients = np.zeros((size, model.coef_.shape[1]))
    if len(seen) == 2:  # one row of coefficients: the log-odds of the second code
        coefficients[seen[1]], bias[seen] = model.coef_[0], (0.0, model.intercept_[0])
    else:
        coefficients[seen], bias[seen] = model.coef_, model.intercept_
    ends = np.cumsum([table.schema[name].size for name in features])
    blocks = np.split(coefficients, ends[:-1], axis=1)
    weights = {name: np.ascontiguousarray(block.T) for name, block in zip(features, blocks, strict=True)}
    return Classifier(weights, bias, table.rows)


def _thin(table: Table, most: int) -> Table:
    if table.rows <= most:
        return table
    kept = np.random.default_rng(SEED).choice(table.rows, max(most, 1), replace=False)
    return table.take(np.sort(kept))


def _one_hot(table: Table, features: tuple[str, ...]) -> Any:
    """Return the codes as a sparse 0/1 matrix, rows × all codes of all features."""
    from scipy.sparse import csr_matrix

    sizes = [table.schema[name].size for name in features]
    starts = np.cumsum([0, *sizes[:-1]])
    places = np.empty((table.rows, len(features)), dtype=np.int32)
    for i, name in enumerate(features):
        places[:, i] = table.codes[name]
        places[:, i] += starts[i]
    ends = np.arange(0, places.size + 1, len(features), dtype=np.int32)
    return csr_matrix((np.ones(places.size), places.ravel(), ends), shape=(table.rows, sum(sizes)))


def cross_scores(table: Table, target: str, report: Report) -> FloatArray:
    """Return the scores of every row (rows × K) by a classifier that was not trained on it: five stratified folds."""
    rng = np.random.default_rng(SEED)
    order = rng.permutation(table.rows)
    order = order[np.argsort(table.codes[target][order], kind="stable")]
    fold = np.empty(table.rows, dtype=np.int64)
    fold[order] = np.arange(table.rows) % FOLDS
    out = np.empty((table.rows, table.schema[target].size))
    for i in range(min(FOLDS, table.rows)):
        report(i / FOLDS, f"Training on real rows, fold {i + 1} of {FOLDS}")
        tested = fold == i
        out[tested] = fit(table.take(~tested), target).scores(table.take(tested))
    return out


def auc(scores: FloatArray, truth: NDArray[Any]) -> float:
    """Return the area under the ROC curve; macro one-vs-rest over the codes in ``truth`` if there are more than two.

    ``scores`` (rows × K) come from :meth:`Classifier.scores`. The statistic of code c is its log-odds. For a code that
    the classifier never saw, all rows have the same rank and the area is ½. ``truth`` must contain at least two codes.
    """
    from sklearn.metrics import roc_auc_score

    odds = log_odds(scores)
    codes = [1] if scores.shape[1] == 2 else np.unique(truth).tolist()
    areas = []
    for code in codes:
        _, rank = np.unique(odds[:, code], return_inverse=True)  # use ranks, because odds may be infinite
        areas.append(float(roc_auc_score(truth == code, rank)))
    return float(np.mean(areas))


def log_odds(scores: FloatArray) -> FloatArray:
    """Return log P(c)/(1 − P(c)) for every code, without saturation if P is within rounding of 1."""
    rows, top = np.arange(len(scores)), scores.argmax(axis=1)
    shifted = scores - scores[rows, top][:, None]
    weight = np.exp(shifted)
    rest = weight.sum(axis=1, keepdims=True) - weight
    weight[rows, top] = 0.0
    rest[rows, top] = weight.sum(axis=1)  # avoids the cancellation of 1 + tiny − 1
    return np.asarray(shifted - np.log(np.maximum(rest, np.finfo(float).tiny)))


def accuracy(scores: FloatArray, truth: NDArray[Any]) -> float:
    """Return the share of rows whose most likely code is the true code."""
    return float(np.mean(scores.argmax(axis=1) == truth))
