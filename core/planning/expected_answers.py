"""The error that a plan expects in the answers to its questions and counts."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import Any, Protocol, runtime_checkable

from espalier.core.methods.question_answers import Answers

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
    factor = factor_of_all(answers)
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


def factor_of_all(answers: Answers) -> float:
    """All errors stay within so many σ: √(2 ln(2 m/β)) for m noisy numbers, discrete Gaussian noise being subgaussian
    with its σ (Canonne, Kamath & Steinke 2020, Corollary 9)."""
    numbers = len(answers.questions) + sum(m.values.size for m in answers.histograms)
    return sqrt(2.0 * log(2.0 * max(numbers, 1) / BETA))
