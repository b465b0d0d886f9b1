"""Downstream classification: up to 20 targets × 5 classifiers, trained on real and on synthetic rows (paper 003, B.4).

Each task is to predict whether a column takes its most common category. Every task is therefore binary, and AUC and F1
are comparable between tasks. Both classifiers of a pair are judged on the same real rows, which neither was trained on.
The figures are computed on real rows and are for the curator only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import SizeError, TableError
from espalier.core.tables.table import Table

Codes = Mapping[str, NDArray[Any]]
FloatArray = NDArray[np.float64]
Report = Callable[[float, str], None]

TARGETS = 20
CLASSIFIERS = ("kernel", "svc", "logistic", "forest", "knn")
"""The classifiers of the paper's table 1: an RBF kernel machine (Nyström, 200 landmarks), a linear SVM, logistic
regression, a random forest of 50 trees, and 15 nearest neighbours.
"""

TRAIN_ROWS = 4000
TEST_ROWS = 2000
"""Maximum number of rows. Longer tables are sampled, so that 200 fits take a minute."""

MAX_FEATURES = 1000
"""Maximum width of the one-hot table; with a wider table, neighbours and kernels would take minutes per target."""


FIGURES = tuple(f"{figure}_{side}" for figure in ("auc", "f1", "accuracy") for side in ("real", "synthetic"))


@dataclass(frozen=True)
class ClassifierFigures:
    """Figures for one target and one classifier, trained on real rows and on synthetic ones.

    ``target`` is the column, ``rarer`` the share of tested rows in the rarer class, which F1 counts as positive.
    The paper reports accuracy, which says little about a target with a rare class.
    """

    target: str
    classifier: str
    rarer: float
    auc_real: float
    auc_synthetic: float
    f1_real: float
    f1_synthetic: float
    accuracy_real: float
    accuracy_synthetic: float


@dataclass(frozen=True)
class Downstream:
    """All tasks; ``left_out`` are columns with one class too rare to judge (fewer than 20 rows of either table)."""

    tasks: tuple[ClassifierFigures, ...]
    left_out: tuple[str, ...]

    def macro(self, classifier: str | None = None, target: str | None = None) -> dict[str, float]:
        """Return means over all tasks, or over the tasks of one classifier or one target; empty if there are none."""
        chosen = [t for t in self.tasks if classifier in (None, t.classifier) and target in (None, t.target)]
        if not chosen:
            return {}
        return {figure: float(np.mean([getattr(t, figure) for t in chosen])) for figure in FIGURES}

    def to_json(self) -> dict[str, Any]:
        """Return the figures as ``evaluate`` prints them."""
        return {
            "macro": self.macro(),
            "classifiers": {name: self.macro(classifier=name) for name in CLASSIFIERS},
            "tasks": [dict(vars(t)) for t in self.tasks],
            "left_out": list(self.left_out),
            "looked_at_real_data": True,
        }


@dataclass(frozen=True)
class Tables:
    """Encoded rows of the same columns: ``real`` and ``synthetic`` for training, ``holdout`` (real) for testing."""

    real: Codes
    synthetic: Codes
    holdout: Codes
    sizes: Mapping[str, int]


def many_targets(
    real: Table,
    synthetic: Table,
    holdout: Table | None,
    rng: np.random.Generator,
    targets: Sequence[str] | None = None,
    report: Report | None = None,
) -> Downstream:
    """Return the figures of `downstream` for a release, tested on ``holdout`` if it is given, else on a third of
    ``real`` that is not used for training.

    Without a holdout, the release was also made from the tested rows. Raises :class:`TableError` if there are no rows
    to train and test on, and :class:`SizeError` like `downstream`.
    """
    if min(synthetic.rows, real.rows - (holdout is None), 1 if holdout is None else holdout.rows) < 1:
        raise TableError("there are too few rows to train and test classifiers")
    trained, tested = real, holdout
    if tested is None:
        held = rng.permutation(real.rows) < max(1, real.rows // 3)
        trained, tested = real.take(~held), real.take(held)
    return downstream(Tables(trained.codes, synthetic.codes, tested.codes, real.schema.sizes), rng, targets, report)


def downstream(
    tables: Tables, rng: np.random.Generator, targets: Sequence[str] | None = None, report: Report | None = None
) -> Downstream:
    """Train and judge every task; ``targets`` default to 20 random columns, or to all if there are fewer.

    ``report`` is called for every fit; an exception from it cancels the work. Raises :class:`SizeError` if the one-hot
    table would have more than `MAX_FEATURES` columns.
    """
    from threadpoolctl import threadpool_limits

    width = sum(tables.sizes.values())
    if width > MAX_FEATURES:
        raise SizeError(
            f"the columns have {width:,} categories in total, but this comparison supports at most {MAX_FEATURES:,}"
        )
    names = [name for name, size in tables.sizes.items() if size > 1]
    if targets is None:
        drawn = set(rng.permutation(names)[:TARGETS].tolist())
        targets = [name for name in names if name in drawn]
    thinned = [
        _thin(tables.real, TRAIN_ROWS, rng),
        _thin(tables.synthetic, TRAIN_ROWS, rng),
        _thin(tables.holdout, TEST_ROWS, rng),
    ]
    hot = [_one_hot(codes, tables.sizes) for codes in thinned]
    ends = np.cumsum([0, *tables.sizes.values()])
    spans = {name: (ends[i], ends[i + 1]) for i, name in enumerate(tables.sizes)}
    tasks: list[ClassifierFigures] = []
    left_out = []
    with threadpool_limits(1):
        for i, target in enumerate(targets):
            commonest = int(np.bincount(thinned[0][target]).argmax())
            sides = [codes[target] != commonest for codes in thinned]
            if any(min(side.sum(), (~side).sum()) < 20 for side in sides):
                left_out.append(target)
                continue
            kept = np.ones(width, dtype=bool)
            kept[slice(*spans[target])] = False
            x = [table[:, kept] for table in hot]
            positive = sides[2].mean() <= 0.5
            truth = sides[2] if positive else ~sides[2]
            for j, name in enumerate(CLASSIFIERS):
                if report:
                    report((i + j / len(CLASSIFIERS)) / len(targets), f"{target}: {name}")
                found = [_judge(name, x[k], sides[k] == positive, x[2], truth) for k in (0, 1)]
                figures = [figure for pair in zip(*found, strict=True) for figure in pair]
                tasks.append(ClassifierFigures(target, name, float(truth.mean()), *figures))
    return Downstream(tuple(tasks), tuple(left_out))


def _judge(
    name: str, x: FloatArray, y: NDArray[np.bool_], tested: FloatArray, truth: NDArray[np.bool_]
) -> tuple[float, float, float]:
    """Return AUC, F1 and accuracy, on the tested rows, of the classifier ``name`` trained on (x, y)."""
    from sklearn.metrics import f1_score, roc_auc_score

    model = _classifier(name, len(x)).fit(x, y)
    if name in ("forest", "knn"):
        score = model.predict_proba(tested)[:, 1]
        said = score > 0.5
    else:
        score = model.decision_function(tested)
        said = score > 0
    accuracy = float((said == truth).mean())
    return float(roc_auc_score(truth, score)), float(f1_score(truth, said, zero_division=0)), accuracy


def _classifier(name: str, rows: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import LogisticRegression, RidgeClassifier
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    if name == "kernel":
        return make_pipeline(Nystroem(n_components=min(200, rows), gamma=0.1, random_state=0), RidgeClassifier(0.1))
    if name == "svc":
        return LinearSVC(C=0.1, dual=False, max_iter=5000)
    if name == "logistic":
        return LogisticRegression(solver="newton-cholesky", max_iter=200)
    if name == "forest":
        return RandomForestClassifier(50, min_samples_leaf=2, random_state=0)
    return KNeighborsClassifier(min(15, rows), algorithm="brute")


def _thin(codes: Codes, most: int, rng: np.random.Generator) -> Codes:
    rows = len(next(iter(codes.values())))
    if rows <= most:
        return codes
    taken = rng.choice(rows, most, replace=False)
    return {name: values[taken] for name, values in codes.items()}


def _one_hot(codes: Codes, sizes: Mapping[str, int]) -> FloatArray:
    return np.hstack([np.eye(size)[codes[name]] for name, size in sizes.items()])
