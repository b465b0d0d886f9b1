"""Quality, on real rows, of a model trained on the synthetic table (train on synthetic, test on real: TSTR; PRISM §7,
appendix C). For comparison, the same model is trained on real rows, and the accuracy of always guessing the most common
value is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from espalier.core.evaluation.classifier import MAX_ENTRIES, FloatArray, accuracy, auc, cross_scores, fit
from espalier.core.evaluation.figure_or_reason import Figure, shown, split
from espalier.core.project.file import Project
from espalier.core.tables.table import Table

if TYPE_CHECKING:
    from espalier.core.progress import Report

HOLDOUT = "holdout"
ITSELF = "the table itself"
_NOTES = {
    HOLDOUT: "Neither model saw the tested rows. The real model was trained on all rows of the release's own table.",
    ITSELF: (
        "No rows were held out. The model trained on synthetic rows is tested on all rows of the table from which the "
        "release was made, so its figures may be slightly too good. The real model's figures are for the same rows, "
        "each predicted by a model that did not train on it (five folds, fixed seed)."
    ),
}
FIGURES = ("auc_synthetic", "auc_real", "accuracy_synthetic", "accuracy_real", "accuracy_baseline")
_THINNED = " Very long tables were sampled for training."


@dataclass(frozen=True)
class Predictions:
    """Predictions of the two classifiers for the tested rows. Private, because it contains real rows.

    ``synthetic`` and ``real`` are scores (rows × K, :meth:`espalier.core.evaluation.classifier.Classifier.scores`)
    by the model trained on synthetic and on real rows; None if ``why_not`` gives a reason. ``target`` is None if there
    is nothing to predict. ``missing`` is the share of rows that ``tested`` leaves out.
    """

    tested: Table
    tested_on: str
    target: str | None
    synthetic: FloatArray | None = None
    real: FloatArray | None = None
    commonest: int = 0
    why_not: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    missing: float = 0.0


@dataclass(frozen=True)
class Utility:
    """Train on synthetic, test on real. All figures are shares between 0 and 1 and were computed on real
    rows.

    ``auc_*`` is the area under the ROC curve (macro one-vs-rest over the values that occur among the tested rows, if
    the target has more than two); ``accuracy_baseline`` is the accuracy of always guessing the real table's most common
    value. ``missing`` is the share of test rows that were left out because the target is missing; ``tested_rows``
    excludes them. A figure that is not available is None, with the cause in ``reasons``.
    """

    target: str | None
    tested_on: str
    tested_rows: int
    auc_synthetic: float | None = None
    auc_real: float | None = None
    accuracy_synthetic: float | None = None
    accuracy_real: float | None = None
    accuracy_baseline: float | None = None
    note: str = ""
    reasons: Mapping[str, str] = field(default_factory=dict)
    missing: float = 0.0
    looked_at_real_data: bool = field(default=True, init=False)

    def to_json(self) -> dict[str, Any]:
        """Return the output of ``evaluate``."""
        return {
            "target": self.target,
            "tested_on": self.tested_on,
            "tested_rows": self.tested_rows,
            "target_missing": self.missing,
            **shown(self, FIGURES),
            "note": self.note,
            "looked_at_real_data": self.looked_at_real_data,
        }


def target_of(project: Project) -> str | None:
    """Return the prediction target: the plan's, else the first outcome column, else None."""
    return project.plan.target or next(iter(project.roles.outcome), None)


def predict(
    project: Project, real: Table, synthetic: Table, holdout: Table | None, report: Report, target: str | None = None
) -> Predictions:
    """Train once on synthetic and once on real rows, and predict ``target`` (the project's) of the tested rows.

    The tested rows come from ``holdout`` if given, else from ``real``. If they come from ``real``, the real model is
    cross-fitted, so it never predicts a row on which it was trained. Rows where the target is missing are used neither
    for training nor for testing, in any table.
    """
    tested, tested_on = (real, ITSELF) if holdout is None else (holdout, HOLDOUT)
    target = target or target_of(project)
    if target is None:
        why = "the project names neither a target nor an outcome column, so there is nothing to predict"
    elif len(project.schema.columns) == 1:
        why = f"{target!r} is the only column, so nothing can predict it"
    else:
        why = ""
    if why or target is None:
        return Predictions(tested, tested_on, None, why_not={"synthetic": why, "real": why})
    given = tested.rows
    real, synthetic, tested = (table.observed(target) for table in (real, synthetic, tested))
    if not tested.rows:
        why = f"{target} is missing in every tested row"
        return Predictions(tested, tested_on, None, why_not={"synthetic": why, "real": why})
    share = 1 - tested.rows / given
    left_out = f" The {100 * share:.0f} % of the tested rows where {target} is missing are left out." if share else ""

    from_synthetic = from_real = None
    why_not = {}
    if why := _one_value(synthetic, target, "synthetic"):
        why_not["synthetic"] = why
    else:
        report(0.0, "Training on synthetic rows")
        from_synthetic = fit(synthetic, target).scores(tested)
    if why := _one_value(real, target, "real"):
        why_not["real"] = why
    elif holdout is None:
        from_real = cross_scores(real, target, lambda f, m: report(0.2 + 0.8 * f, m))
    else:
        report(0.5, "Training on real rows")
        from_real = fit(real, target).scores(tested)
    thinned = max(real.rows, synthetic.rows) * (len(project.schema.columns) - 1) > MAX_ENTRIES
    return Predictions(
        tested,
        tested_on,
        target,
        from_synthetic,
        from_real,
        commonest=int(np.bincount(real.codes[target], minlength=1).argmax()),
        why_not=why_not,
        note=_NOTES[tested_on] + _THINNED * thinned + left_out,
        missing=share,
    )


def _one_value(table: Table, target: str, which: str) -> str:
    codes = np.unique(table.codes[target])
    if len(codes) > 1:
        return ""
    if not len(codes):
        return f"every {which} row has {target} missing, so no model can be trained on these rows"
    value = table.schema[target].labels[int(codes[0])]
    return f"every {which} row has {target} = {value}, so no model can be trained on these rows"


def utility_of(predictions: Predictions) -> Utility:
    """Return the figures of both models on the tested rows."""
    p = predictions
    figures: dict[str, Figure] = {}
    truth = None if p.target is None else p.tested.codes[p.target]
    both = truth is not None and len(np.unique(truth)) > 1
    for which, scores in (("synthetic", p.synthetic), ("real", p.real)):
        if scores is None or truth is None:
            figures[f"auc_{which}"] = figures[f"accuracy_{which}"] = p.why_not[which]
            continue
        one = f"every tested row has the same {p.target}, so there is nothing to distinguish"
        figures[f"auc_{which}"] = auc(scores, truth) if both else one
        figures[f"accuracy_{which}"] = accuracy(scores, truth)
    known = truth is not None
    figures["accuracy_baseline"] = float(np.mean(truth == p.commonest)) if known else p.why_not["real"]
    return Utility(p.target, p.tested_on, p.tested.rows, note=p.note, missing=p.missing, **split(figures))
