"""Attacks on shadow releases, tested on unseen models, and the best result that the budget allows any attack."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from espalier.core.evaluation.membership.attack_features import SUMMARIES, densities
from espalier.core.evaluation.membership.game import FloatArray, Game, Report, Shadows, folds_by_model
from espalier.core.privacy.unit import Unit

FOLDS = 6
BLIND_BELOW = 0.95
"""Minimum AUC of the control (published real rows). Below it, an attack shows nothing about a method."""
RESAMPLES = 400
BLIND = "attack blind: no conclusion"

Attack = Literal["density", "naive", "histogram", "correlation", "ensemble"]
Classifier = Literal["forest", "logistic", "svc", "kernel", "knn"]
"""Classifiers that learn from summaries: the five of the causal-VAE paper."""


@dataclass(frozen=True)
class ResampledInterval:
    """A figure and its 95 % interval, computed by resampling models and targets."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class AttackResult:
    """Result of one attack on one method.

    ``auc`` is the mean over targets of the AUC over models, and ``aucs`` lists the AUC of each target. ``advantage`` is
    the mean of 2·accuracy − 1 for guessing the more likely side (0 is chance, 1 is always right). ``random`` and
    ``outlying`` are the mean AUC of each kind of target, None without such targets. ``present`` is the share of present
    targets recognised as present (the probability of attack), and ``absent`` the share of absent targets recognised as
    absent.
    """

    attack: Attack
    auc: ResampledInterval
    advantage: ResampledInterval
    aucs: tuple[float, ...]
    random: float | None
    outlying: float | None
    present: float = 0.5
    absent: float = 0.5

    def concludes(self, control: AttackResult) -> str:
        """Return a short verdict; ``control`` is the same attack on published real rows."""
        if control.attack != self.attack:
            raise ValueError("the control must belong to the same attack")
        if control.auc.value < BLIND_BELOW:
            return BLIND
        return "the release reveals members" if self.auc.low > 0.5 else "no better than chance"

    def says(self, control: AttackResult) -> str:
        """Return the verdict as one sentence with its figure."""
        words = self.concludes(control)
        if words == BLIND:
            return f"{BLIND} (it recognises published real rows only with AUC {control.auc.value:.2f})"
        return f"{words}: AUC {self.auc.value:.3f} ({self.auc.low:.3f} … {self.auc.high:.3f})"


def run(
    attack: Attack,
    game: Game,
    shadows: Shadows,
    targets: tuple[NDArray[np.intp], NDArray[np.bool_]],
    rng: np.random.Generator,
    report: Report | None = None,
    classifier: Classifier = "forest",
) -> AttackResult:
    """Attack every target with ``attack``, cross-validated by model. ``targets`` are rows of the pool and flags for
    outliers.

    ``classifier`` learns from the summaries. The density attack does not need one.
    """
    folds = folds_by_model(game, FOLDS, rng)
    shared = None if attack == "density" else np.array([SUMMARIES[attack](r, game.sizes) for r in shadows.releases])
    scores = np.zeros((len(targets[0]), game.models))
    for i, target in enumerate(targets[0].tolist()):
        if report:
            report(i / len(targets[0]), f"Attacking target {i + 1} of {len(targets[0])}")
        row = {name: int(codes[target]) for name, codes in game.pool.items()}
        seen = shared if shared is not None else np.array([densities(r, row) for r in shadows.releases])
        score = _ratio if attack == "density" else functools.partial(_classified, classifier)
        for part in folds:
            rest = np.setdiff1d(np.arange(game.models), part)
            scores[i, part] = score(seen[rest], shadows.inside[rest, target], seen[part])
    return _judged(attack, scores, shadows.inside[:, targets[0]].T, targets[1], rng)


def ceiling(rho: float, unit: Unit, rows_per_target: int = 1) -> float:
    """Return the largest AUC of any attack on Gaussian noise of this ρ in the replace-a-row game: Φ(√ρ').

    A ρ-zCDP Gaussian release of a sum separates two neighbouring tables like two normals √(2ρ) apart (Dong, Roth & Su
    2022: μ-GDP with μ = √(2ρ)), whose AUC is Φ(μ/√2) = Φ(√ρ). The game replaces a row. Under replace-one, that is one
    unit, so ρ' = ρ. Under add-remove, it is one removal and one addition, which are two units. In zCDP, g units cost
    g²ρ, so ρ' = 4ρ. If the unit is k rows and the target is one row, this ceiling is too high, never too low.
    Mechanisms that are not Gaussian may exceed it, within the limit of `epsilon_of`.
    """
    from scipy.stats import norm

    units = math.ceil(rows_per_target / unit.rows_per_person) * (2 if unit.neighbors == "add-remove" else 1)
    return float(norm.cdf(math.sqrt(rho) * units))


def _ratio(seen: FloatArray, inside: NDArray[np.bool_], new: FloatArray) -> FloatArray:
    """Return the log-likelihood ratio at ``new`` of two normals fitted to the features with and without the target.

    The common covariance is shrunk towards its diagonal by a tenth, because two dozen models would be too few for
    separate covariances. The ratio selects the scale automatically, because uninformative features cancel.
    """
    first, second = seen[inside], seen[~inside]
    if len(first) < 3 or len(second) < 3:
        return np.zeros(len(new))
    centred = np.vstack([first - first.mean(axis=0), second - second.mean(axis=0)])
    covariance = centred.T @ centred / (len(centred) - 2)
    covariance = 0.9 * covariance + 0.1 * np.diag(np.diag(covariance)) + 1e-10 * np.eye(len(covariance))
    direction = np.linalg.solve(covariance, first.mean(axis=0) - second.mean(axis=0))
    return np.asarray((new - (first.mean(axis=0) + second.mean(axis=0)) / 2) @ direction)


def _classified(classifier: Classifier, seen: FloatArray, inside: NDArray[np.bool_], new: FloatArray) -> FloatArray:
    """Return scores at ``new``, which are above 0 if the classifier predicts that the target was present."""
    if len(np.unique(inside)) < 2:
        return np.zeros(len(new))
    model = learner(classifier).fit(seen, inside)
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(new))
    p = model.predict_proba(new)[:, 1]
    return np.asarray(np.log((p + 0.01) / (1.01 - p)))


def learner(classifier: Classifier) -> Any:
    """Return an unfitted classifier of scikit-learn. All but the forest standardise the features first."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    if classifier == "forest":  # as in Stadler et al.
        return RandomForestClassifier(60, random_state=0)
    scaled = {
        "logistic": LogisticRegression(C=0.1, max_iter=300),
        "svc": SVC(kernel="linear", C=0.1),
        "kernel": SVC(kernel="rbf"),
        "knn": KNeighborsClassifier(5),
    }
    return make_pipeline(StandardScaler(), scaled[classifier])


def _judged(
    attack: Attack, scores: FloatArray, inside: NDArray[np.bool_], outlying: NDArray[np.bool_], rng: np.random.Generator
) -> AttackResult:
    """Return figures from scores (targets × models), with intervals that resample models and targets together. Models
    are drawn in pairs that used complementary halves of the pool, because the models of a pair are not independent.
    """
    targets, models = scores.shape
    aucs = tuple(_auc(s, i) for s, i in zip(scores, inside, strict=True))
    advantages = [_advantage(s, i) for s, i in zip(scores, inside, strict=True)]
    drawn = np.zeros((RESAMPLES, 2))
    for r in range(RESAMPLES):
        pairs = rng.integers(0, (models + 1) // 2, (models + 1) // 2)
        chosen: list[int] = [int(t) for t in rng.integers(0, targets, size=(targets,))]
        m = np.concatenate([2 * pairs, 2 * pairs + 1])
        m = m[m < models]
        drawn[r, 0] = np.mean([_auc(scores[t, m], inside[t, m]) for t in chosen])
        drawn[r, 1] = np.mean([_advantage(scores[t, m], inside[t, m]) for t in chosen])
    low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
    random, outliers = (
        float(np.mean(np.array(aucs)[outlying == kind])) if (outlying == kind).any() else None for kind in (False, True)
    )
    present, absent = (
        float(np.mean((scores > 0)[inside == side] == side)) if (inside == side).any() else 0.5
        for side in (True, False)
    )
    return AttackResult(
        attack,
        ResampledInterval(float(np.mean(aucs)), float(low[0]), float(high[0])),
        ResampledInterval(float(np.mean(advantages)), float(low[1]), float(high[1])),
        aucs,
        random,
        outliers,
        present,
        absent,
    )


def _auc(scores: FloatArray, inside: NDArray[np.bool_]) -> float:
    """Return the probability that a model with the target scores above a model without it. Ties count half. Return ½ if
    one side is empty.
    """
    ins, outs = scores[inside], np.sort(scores[~inside])
    if not len(ins) or not len(outs):
        return 0.5
    below = np.searchsorted(outs, ins, "left") + np.searchsorted(outs, ins, "right")
    return float(below.mean() / (2 * len(outs)))


def _advantage(scores: FloatArray, inside: NDArray[np.bool_]) -> float:
    """Return the true-positive rate minus the false-positive rate of predicting *in* for scores above 0; 0 if one side
    is empty.
    """
    said = scores > 0
    if inside.all() or not inside.any():
        return 0.0
    return float(said[inside].mean() - said[~inside].mean())
