"""Dependence of the outcome on a protected feature, beyond the dependence that admissible features explain.

The dependence in the data is the conditional mutual information I(outcome; protected | admissible) in nats, which is 0
exactly if the separation holds (PrivCI §III-B). The dependence in a model trained on the data is measured by equalized
odds and demographic parity (fairlearn), over the joint groups of all protected columns, with each group's accuracy, AUC
and calibration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import SizeError
from espalier.core.evaluation.classifier import SEED, accuracy
from espalier.core.evaluation.dependence import IntArray, cells_of, cmi
from espalier.core.evaluation.figure_or_reason import Figure, shown, split
from espalier.core.evaluation.groups import (
    CalibrationBin,
    Interval,
    calibration,
    calibration_error,
    difference_intervals,
    group_auc,
    probability,
)
from espalier.core.evaluation.utility import Predictions
from espalier.core.graph.separations import Clique, Separation
from espalier.core.models.base import MarginalModel, Model
from espalier.core.project.file import Project
from espalier.core.tables.table import Table

if TYPE_CHECKING:
    from espalier.core.progress import Report

MAX_GROUPS = 1_000
"""Number of protected groups above which the largest difference is not computed, because chance alone would make it 1.
"""


@dataclass(frozen=True)
class Group:
    """The tested rows with one combination of protected values. All rates are shares of these rows.

    ``selection_rate_*`` is the share for which the model trained on synthetic (real) rows predicts ``positive``, and
    ``accuracy_*`` the share for which the prediction is correct. ``outcome_rate_*`` is the share for which ``positive``
    is true among the tested real rows and in the synthetic table. ``auc_*`` is the AUC among the group's rows with its
    95 % bootstrap interval; ``calibration_error_*`` the mean distance between predicted probability and observed
    frequency, and ``calibration_*`` its bins. A figure that is not available is None, with the cause in ``reasons``.
    """

    values: Mapping[str, str]
    rows: int
    selection_rate_synthetic: float | None = None
    selection_rate_real: float | None = None
    accuracy_synthetic: float | None = None
    accuracy_real: float | None = None
    outcome_rate_synthetic: float | None = None
    outcome_rate_real: float | None = None
    auc_synthetic: float | None = None
    auc_real: float | None = None
    calibration_error_synthetic: float | None = None
    calibration_error_real: float | None = None
    auc_synthetic_interval: Interval | None = None
    auc_real_interval: Interval | None = None
    calibration_synthetic: tuple[CalibrationBin, ...] = ()
    calibration_real: tuple[CalibrationBin, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the output of ``evaluate``."""
        return {
            "group": dict(self.values),
            "rows": self.rows,
            **shown(self, _GROUP_FIGURES),
            **_known({"auc_synthetic_interval": self.auc_synthetic_interval}),
            **_known({"auc_real_interval": self.auc_real_interval}),
            "calibration_synthetic": [b.to_json() for b in self.calibration_synthetic],
            "calibration_real": [b.to_json() for b in self.calibration_real],
        }


@dataclass(frozen=True)
class Fairness:
    """Dependence in the tables and in the model, and its effect on a trained classifier, computed on real rows.

    ``cmi_*`` are in nats. ``cmi_model`` is exact. The others are plug-in estimates: under a true separation, they are
    about ``cmi_*_chance`` and exceed ``cmi_*_floor`` in 5 % of tables. ``cmi_*_debiased`` is the estimate minus chance
    and may be below 0. Differences (0 to 1) are between the groups that fare best and worst under the model trained on
    synthetic rows. ``*_real`` belong to the model trained on real rows, and ``*_interval`` are 95 % bootstrap intervals
    over the tested rows. Groups without both target values among the tested rows have no odds and are ``left_out`` of
    the equalized odds. A figure that is not available is None, with the cause in ``reasons``.
    """

    separation: Separation
    target: str | None
    positive: str | None
    cmi_real: float
    cmi_synthetic: float
    cmi_real_chance: float
    cmi_synthetic_chance: float
    cmi_real_floor: float
    cmi_synthetic_floor: float
    cmi_model: float | None = None
    equalized_odds_difference: float | None = None
    equalized_odds_difference_real: float | None = None
    demographic_parity_difference: float | None = None
    demographic_parity_difference_real: float | None = None
    accuracy_synthetic: float | None = None
    accuracy_real: float | None = None
    groups: tuple[Group, ...] = ()
    left_out: tuple[Mapping[str, str], ...] = ()
    intervals: Mapping[str, Interval | None] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    looked_at_real_data: bool = field(default=True, init=False)

    @property
    def cmi_real_debiased(self) -> float:
        """CMI of the real table minus its chance level."""
        return self.cmi_real - self.cmi_real_chance

    @property
    def cmi_synthetic_debiased(self) -> float:
        """CMI of the synthetic table minus its chance level."""
        return self.cmi_synthetic - self.cmi_synthetic_chance

    def to_json(self) -> dict[str, Any]:
        """Return the output of ``evaluate``."""
        s = self.separation
        return {
            "outcome": list(s.left),
            "protected": list(s.right),
            "admissible": list(s.given),
            "target": self.target,
            "positive": self.positive,
            **shown(self, _FIGURES),
            **_known({f"{name}_interval": found for name, found in self.intervals.items()}),
            "groups": [g.to_json() for g in self.groups],
            "groups_without_both_values": [dict(g) for g in self.left_out],
            "looked_at_real_data": self.looked_at_real_data,
        }


def _known(intervals: Mapping[str, Interval | None]) -> dict[str, Interval]:
    """Return the available intervals."""
    return {name: found for name, found in intervals.items() if found is not None}


_GROUP_FIGURES = (
    "selection_rate_synthetic",
    "selection_rate_real",
    "accuracy_synthetic",
    "accuracy_real",
    "outcome_rate_synthetic",
    "outcome_rate_real",
    "auc_synthetic",
    "auc_real",
    "calibration_error_synthetic",
    "calibration_error_real",
)
_TRAINED = (
    "equalized_odds_difference",
    "equalized_odds_difference_real",
    "demographic_parity_difference",
    "demographic_parity_difference_real",
    "accuracy_synthetic",
    "accuracy_real",
)
_FIGURES = (
    "cmi_real",
    "cmi_synthetic",
    "cmi_model",
    "cmi_real_chance",
    "cmi_synthetic_chance",
    "cmi_real_floor",
    "cmi_synthetic_floor",
    "cmi_real_debiased",
    "cmi_synthetic_debiased",
    *_TRAINED,
)


def fairness_of(
    project: Project,
    real: Table,
    synthetic: Table,
    model: Model | None,
    predictions: Predictions,
    report: Report,
) -> Fairness | None:
    """Return all fairness figures of a release, or None if no column is an outcome or none is protected.

    CMI of the real rows is computed on ``real``, and group figures on the tested rows of ``predictions`` where the
    target is observed. For CMI, a missing cell is an additional value, because a fence applies to missing cells too.
    """
    clique, roles = project.schema.clique, project.roles
    separation = Separation(clique(roles.outcome), clique(roles.protected), clique(roles.admissible))
    if not separation.left or not separation.right:
        return None
    report(0.0, "Measuring the dependence on protected columns")
    figures: dict[str, Figure] = {}
    for which, table in (("real", real), ("synthetic", synthetic)):
        found = cmi(table, separation)
        figures[f"cmi_{which}"] = found.value
        figures[f"cmi_{which}_chance"], figures[f"cmi_{which}_floor"] = found.chance, found.floor
    figures["cmi_model"] = _cmi_model(model, separation)

    report(0.5, "Comparing the groups")
    p, target = predictions, predictions.target
    if target is None:
        figures.update(dict.fromkeys(_TRAINED, p.why_not["synthetic"]))
        return Fairness(separation, None, None, **split(figures))
    truth, protected = p.tested.codes[target], separation.right
    intervals: dict[str, Interval | None] = {}
    for which, scores, suffix in (("synthetic", p.synthetic, ""), ("real", p.real, "_real")):
        odds, parity = f"equalized_odds_difference{suffix}", f"demographic_parity_difference{suffix}"
        if scores is None:
            figures.update(dict.fromkeys((odds, parity, f"accuracy_{which}"), p.why_not[which]))
        else:
            guess = scores.argmax(axis=1)
            figures[odds], figures[parity] = _differences(p.tested, target, protected, guess)
            intervals[odds], intervals[parity] = _intervals(p.tested, target, protected, guess, figures[parity])
            figures[f"accuracy_{which}"] = accuracy(scores, truth)
    groups = _groups(p, target, synthetic, protected)
    left_out: tuple[Mapping[str, str], ...] = ()
    if not _not_binary(p.tested, target) and target not in protected:
        both = _with_both(truth, cells_of(p.tested, protected)[0])
        left_out = tuple(g.values for g, kept in zip(groups, both, strict=True) if not kept)
    column = p.tested.schema[target]
    positive = column.labels[1] if column.values == 2 else None
    return Fairness(
        separation, target, positive, groups=groups, left_out=left_out, intervals=intervals, **split(figures)
    )


def _cmi_model(model: Model | None, s: Separation) -> Figure:
    if model is None:
        return "no model was given with the table"
    if not isinstance(model, MarginalModel):
        return "this kind of model cannot compute the dependence of groups of columns"
    try:
        return model.cmi(s.left, s.right, s.given)
    except SizeError:
        pass
    large = "the conditional table would have more than 10⁷ cells"
    if path := s.path(model.edges):
        return f"{large}, and the model's graph has a path that may connect them: {' – '.join(path)}"
    return (
        f"{large}; the dependence is 0 because of the separation: in the model's graph, every path from the "
        "outcome to the protected columns passes through the admissible ones"
    )


def _differences(tested: Table, target: str, protected: Clique, guess: NDArray[Any]) -> tuple[Figure, Figure]:
    """Return the (equalized odds, demographic parity) differences of the predictions between protected groups.

    Equalized odds (Hardt, Price & Srebro 2016) is the larger of the spreads in the true and false positive rates.
    A group without one of the target's values has no such rate (fairlearn returns 0) and is left out.
    """
    truth, (group, _) = tested.codes[target], cells_of(tested, protected)
    why_not = _not_binary(tested, target)
    if not why_not and target in protected:
        why_not = "the target is itself a protected column"
    if not why_not and not group.any():
        why_not = "all tested rows are in one protected group"
    if not why_not and group.max() >= MAX_GROUPS:
        why_not = _too_many(int(group.max()) + 1)
    if why_not:
        return why_not, why_not

    from fairlearn.metrics import demographic_parity_difference, equalized_odds_difference

    # fairlearn takes 10 µs per row, so pass each distinct row once, with its count as a weight
    kinds, weight = np.unique(np.stack([group, truth, guess]), axis=1, return_counts=True)
    g, t, y = kinds
    parity = float(demographic_parity_difference(t, y, sensitive_features=g, sample_weight=weight))
    kept = _with_both(truth, group)[g]
    if len(np.unique(g[kept])) < 2:
        return "fewer than two protected groups have both target values among the tested rows", parity
    g, t, y, weight = g[kept], t[kept], y[kept], weight[kept]
    return float(equalized_odds_difference(t, y, sensitive_features=g, sample_weight=weight)), parity


def _too_many(groups: int) -> str:
    return f"the protected columns form {groups:,} groups with few rows each; coarsen these columns first"


def _intervals(
    tested: Table, target: str, protected: Clique, guess: NDArray[Any], parity: Figure
) -> tuple[Interval | None, Interval | None]:
    """Return 95 % bootstrap intervals of the two differences; empty without differences."""
    if isinstance(parity, str):
        return None, None
    group = cells_of(tested, protected)[0]
    return difference_intervals(group, tested.codes[target], guess, np.random.default_rng(SEED))


def _with_both(truth: NDArray[Any], group: IntArray) -> NDArray[np.bool_]:
    """Return a flag for each group, which is true if both values of a binary target occur in it."""
    positives = np.bincount(group, weights=truth)
    return np.asarray((positives > 0) & (positives < np.bincount(group)))


def _not_binary(table: Table, target: str) -> str:
    size = table.schema[target].values
    return "" if size == 2 else f"{target} has {size} declared values, but this figure needs exactly two"


def _groups(p: Predictions, target: str, synthetic: Table, protected: Clique) -> tuple[Group, ...]:
    """Return each protected group among the tested rows, in the schema order of its values."""
    labels = [p.tested.schema[name].labels for name in protected]
    truth = p.tested.codes[target]
    group, codes = cells_of(p.tested, protected)
    rows = np.bincount(group)
    figures: dict[str, list[Figure]] = {}
    beside: dict[str, list[Any]] = {}
    many = _not_binary(p.tested, target)

    def share(right: NDArray[np.bool_]) -> list[Figure]:
        return list((np.bincount(group, weights=right) / rows).tolist())

    for which, scores in (("synthetic", p.synthetic), ("real", p.real)):
        selected, correct = f"selection_rate_{which}", f"accuracy_{which}"
        area, error = f"auc_{which}", f"calibration_error_{which}"
        if scores is None:
            for name in (selected, correct, area, error):
                figures[name] = [p.why_not[which]] * len(codes)
            continue
        guess = scores.argmax(axis=1)
        figures[selected] = [many] * len(codes) if many else share(guess == 1)
        figures[correct] = share(guess == truth)
        if why := many or (_too_many(len(codes)) if len(codes) > MAX_GROUPS else ""):
            figures[area] = figures[error] = [why] * len(codes)
            continue
        found = [_of_group(scores[group == g], truth[group == g]) for g in range(len(codes))]
        figures[area] = [f[0] for f in found]
        figures[error] = [calibration_error(f[2]) for f in found]
        beside[f"{area}_interval"] = [f[1] for f in found]
        beside[f"calibration_{which}"] = [f[2] for f in found]
    if many:
        figures["outcome_rate_synthetic"] = figures["outcome_rate_real"] = [many] * len(codes)
    else:
        synthetic = synthetic.observed(target)
        other, others = cells_of(synthetic, protected)
        rates = np.bincount(other, weights=synthetic.codes[target]) / np.bincount(other)
        rate_of = dict(zip(others, rates.tolist(), strict=True))
        figures["outcome_rate_synthetic"] = [rate_of.get(c, "no synthetic row is in this group") for c in codes]
        figures["outcome_rate_real"] = share(truth == 1)
    return tuple(
        Group(
            {name: known[code] for name, known, code in zip(protected, labels, one, strict=True)},
            int(rows[g]),
            **{name: column[g] for name, column in beside.items()},
            **split({name: column[g] for name, column in figures.items()}),
        )
        for g, one in enumerate(codes)
    )


def _of_group(scores: NDArray[Any], truth: NDArray[Any]) -> tuple[Figure, Interval | None, tuple[CalibrationBin, ...]]:
    """Return the AUC of one group's rows (or the reason why there is none), its interval, and the calibration."""
    bins = calibration(probability(scores), truth)
    if len(np.unique(truth)) < 2:
        return "all tested rows of this group have the same outcome", None, bins
    return *group_auc(scores, truth, np.random.default_rng(SEED)), bins
