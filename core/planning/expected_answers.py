"""Expected error of a plan's answers to its questions and counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from espalier.core.methods.question_answers import Answers
from espalier.core.privacy.tails import bound_in_sigmas

BETA = 0.05
"""All bounds of a release's questions and counts hold simultaneously with probability 1 − β."""


@dataclass(frozen=True)
class Expected:
    """Expected error of one question or count, stated before any row is read.

    ``sigma`` is the noise scale of its noisy answer, or of each value of a count. In 95 of 100 releases, every answer
    errs by at most its ``within``. Both are in rows; they are None if a private choice decides which questions are
    answered. ``how`` describes how the question is answered.
    """

    name: str
    kind: str
    how: str
    sigma: float | None
    within: float | None


def expected(fitted: Any) -> tuple[Expected, ...]:
    """Return the expected errors of all questions of a rehearsed method."""
    if not isinstance(fitted, HasAnswers):
        return ()
    answers = fitted.answers
    factor = factor_of_all(answers)
    out = []
    for j, question in enumerate(answers.questions):
        told = answers.told(j)
        how = "asked directly" if answers.direct else "from the counts of its columns"
        if told is None:
            out.append(Expected(question.name, "question", "measured if chosen", None, None))
        else:
            out.append(Expected(question.name, "question", how, told[1], factor * told[1]))
    for count, m in zip(answers.counts, answers.histograms, strict=False):
        out.append(Expected(count.name, "count", f"{count.size} values distinguished", m.sigma, factor * m.sigma))
    return tuple(out)


@runtime_checkable
class HasAnswers(Protocol):
    """Result of a method that answers questions."""

    @property
    def answers(self) -> Answers:
        """Questions and their noisy answers."""
        ...


def factor_of_all(answers: Answers) -> float:
    """Return the multiple of σ that bounds all errors simultaneously."""
    numbers = len(answers.questions) + sum(m.values.size for m in answers.histograms)
    return bound_in_sigmas(numbers, BETA, laplace=answers.noise == "laplace")
