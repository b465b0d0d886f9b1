"""What a plan promises of its questions and counts, and what a release tells of them: public figures and noisy answers.

Everything here is worked out from answers that were paid for, from the model fitted to them, and from synthetic rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log, sqrt
from typing import Any, Protocol, runtime_checkable

import numpy as np

from espalier.core.methods.questions import Answers
from espalier.core.models.base import Codes, Model
from espalier.core.models.questions.model import VisibleModel
from espalier.core.privacy.questions.lowering import mask_of
from espalier.core.project.question_types import Question

BETA = 0.05
"""All bounds of a release's questions and counts hold together with probability 1 − β."""


@dataclass(frozen=True)
class Expected:
    """What a plan says of one question or count before any row is read: ``sigma`` of its noisy answer (of each value's,
    for a count), ``within`` what it stays within with all others in 95 of 100 releases, both in rows, and ``how`` it is
    answered. Both numbers are None where a private choice decides which questions are answered."""

    name: str
    kind: str
    how: str
    sigma: float | None
    within: float | None


def expected(fitted: Any) -> tuple[Expected, ...]:
    """Of everything that a rehearsed method asked; empty where nothing was."""
    if not isinstance(fitted, HasAnswers):
        return ()
    answers = fitted.answers
    factor = _factor(answers)
    out = []
    for j, question in enumerate(answers.questions):
        told = answers.told(j)
        how = "asked directly" if answers.direct else "from the counts of its columns"
        if told is None:
            out.append(Expected(question.name, "question", "asked if it is chosen", None, None))
        else:
            out.append(Expected(question.name, "question", how, told[1], factor * told[1]))
    for count, m in zip(answers.counts, answers.histograms, strict=False):
        out.append(Expected(count.name, "count", f"{count.size} values told apart", m.sigma, factor * m.sigma))
    return tuple(out)


@runtime_checkable
class HasAnswers(Protocol):
    """What a method that asked questions ends with."""

    @property
    def answers(self) -> Answers:
        """What was asked, and the noisy answers."""
        ...


def _factor(answers: Answers) -> float:
    """All errors stay within so many σ: √(2 ln(2 m/β)) for m noisy numbers, discrete Gaussian noise being subgaussian
    with its σ (Canonne, Kamath & Steinke 2020, Corollary 9)."""
    numbers = len(answers.questions) + sum(m.values.size for m in answers.histograms)
    return sqrt(2.0 * log(2.0 * max(numbers, 1) / BETA))


def question_facts(fitted: Any, model: Model, codes: Codes, rows: int) -> dict[str, Any]:
    """``questions``, ``counts`` and ``agreement`` of release.json; empty where nothing was asked.

    Answers are in rows of the private table: those of the synthetic rows are scaled to as many. ``low`` and ``high``
    hold the true answer, all of them together in 95 of 100 releases; null where only the fit tells the answer.
    """
    if not isinstance(fitted, HasAnswers) or not isinstance(model, VisibleModel):
        return {}
    answers, scale = fitted.answers, model.total / max(rows, 1)
    seen = {**codes, **{count.name: count.values(codes) for count in answers.counts}}
    factor, top = _factor(answers), model.total
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
    """How closely any table could agree with the noisy answers, and the weights that prove it, where that was asked."""
    best = model.certificate if isinstance(model, VisibleModel) else None
    return None if best is None else {"alpha": best.alpha, "bound": best.bound, "weights": best.weights.tolist()}


def agreement_said(best: Mapping[str, Any]) -> str:
    """The same for a screen."""
    return (
        f"No table agrees better with the noisy answers than to within {best['bound']:.3g} σ in the worst of them; the "
        "weights that prove it are in release.json."
    )


def fitted_answer(model: VisibleModel, question: Question) -> float:
    """The model's expected answer: as fitted, or from the marginal of the question's columns."""
    if question.name in model.fitted:
        return model.fitted[question.name]
    scope = question.columns((*model.visible, *model.counts))
    table = model.marginal(scope)
    return float(np.sum(table * mask_of(question, scope, dict(zip(scope, table.shape, strict=True)))))


def asked_words(project: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The project file's questions and counts by name."""
    return {str(e["name"]): e for key in ("questions", "counts") for e in project.get(key, [])}
