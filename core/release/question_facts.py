"""Facts of ``release.json`` about the plan's questions and counts.

They are computed from noisy answers, the model fitted to them and the synthetic rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from espalier.core.models.base import Codes, Model
from espalier.core.models.question_fit.model import VisibleModel
from espalier.core.planning.expected_answers import HasAnswers, factor_of_all
from espalier.core.privacy.question_recipes.lowering import mask_of
from espalier.core.project.question_types import Question


def question_facts(fitted: Any, model: Model, codes: Codes, rows: int) -> dict[str, Any]:
    """Return ``questions``, ``counts`` and ``agreement`` of release.json; empty without questions and counts.

    Answers are in rows of the private table, so answers of synthetic rows are scaled. ``low`` and ``high`` enclose all
    true answers simultaneously in 95 of 100 releases; null for an answer that only the fit provides.
    """
    if not isinstance(fitted, HasAnswers) or not isinstance(model, VisibleModel):
        return {}
    answers, scale = fitted.answers, model.total / max(rows, 1)
    seen = {**codes, **{count.name: count.values(codes) for count in answers.counts}}
    factor, top = factor_of_all(answers), model.total
    questions = []
    for j, question in enumerate(answers.questions):
        told = answers.told(j)
        line: dict[str, Any] = {"name": question.name, "answer": None, "sigma": None}
        low, high = (None, None)
        if told is not None:
            y, sigma = told
            line |= {"answer": y, "sigma": sigma}
            low, high = (min(max(y + side * factor * sigma, 0.0), top) for side in (-1, 1))
        line |= {
            "fitted": fitted_answer(model, question),
            "rows": scale * int(np.count_nonzero(question.holds(seen))),
            "low": low,
            "high": high,
        }
        questions.append(line)
    counts = [
        {
            "name": count.name,
            "answer": m.values.tolist(),
            "sigma": m.sigma,
            "fitted": model.marginal((count.name,)).tolist(),
            "rows": (scale * np.bincount(seen[count.name], minlength=count.size)).tolist(),
        }
        for count, m in zip(answers.counts, answers.histograms, strict=False)
    ]
    out: dict[str, Any] = {"questions": questions, "counts": counts}
    if best := agreement(model):
        out["agreement"] = best
    if model.projected is not None:
        for line in questions:
            line["projected"] = model.projected[line["name"]]
    return out


def agreement(model: Model) -> dict[str, Any] | None:
    """Return the best agreement with the noisy answers and the weights that prove it; `None` if not computed."""
    best = model.certificate if isinstance(model, VisibleModel) else None
    return None if best is None else {"alpha": best.alpha, "bound": best.bound, "weights": best.weights.tolist()}


def fitted_answer(model: VisibleModel, question: Question) -> float:
    """Return the expected answer of the model: as fitted, or from the marginal of the question's columns."""
    if question.name in model.fitted:
        return model.fitted[question.name]
    scope = question.columns((*model.visible, *model.counts))
    table = model.marginal(scope)
    return float(np.sum(table * mask_of(question, scope, dict(zip(scope, table.shape, strict=True)))))
