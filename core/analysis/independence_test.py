"""A test of a drawing's implied independences on noisy counts.

Each is tested by a quadratic form of the residuals of its fitted null (`espalier.core.analysis.null`), compared with
the same statistic in tables simulated from that null, rows and noise (after Gaboardi, Lim, Rogers & Vadhan 2016 and
Kifer & Rogers 2017, who treat one table), and all together by Holm's rule. The counts are noisy when they come here, so
nothing here costs budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from espalier.core.analysis.null import Counts, FloatArray, residuals
from espalier.core.analysis.strength import Strength, noticed, strength

SIMULATED = 999
"""Tables drawn from the fitted null; p is a multiple of 1/1000."""

LARGEST_NOTICED = 2.5
"""Where not even this odds ratio would be noticed with 80 % power, the answer is that the rows are too few to tell."""


@dataclass(frozen=True)
class Tested:
    """``p`` of one statement, ``adjusted`` after Holm over all of them, the ``strength``, and the smallest odds ratio
    ``noticed`` with 80 % power (None: not even one of 100)."""

    p: float
    adjusted: float
    strength: Strength
    noticed: float | None

    def contradicted(self, level: float = 0.05) -> bool:
        """Does the table contradict the statement?"""
        return self.adjusted <= level

    @property
    def telling(self) -> bool:
        """Would an association worth knowing have been noticed?"""
        return self.noticed is not None and self.noticed <= LARGEST_NOTICED

    def sentence(self, one: str, other: str, given: Sequence[str], level: float = 0.05) -> str:
        """The strength first, then what it means for the drawing."""
        s = self.strength
        place = f", given {' and '.join(given)}" if given else ""
        if s.kind == "odds ratio":
            lead = (
                f"{one} and {other}{place}: odds ratio {s.value:.2f} ({s.low:.2f} to {s.high:.2f}) where the drawing "
                "says 1."
            )
        else:
            lead = (
                f"{one} and {other}{place}: {s.value:.4f} nats of information ({s.low:.4f} to {s.high:.4f}) where the "
                "drawing says 0."
            )
        if self.contradicted(level):
            return f"{lead} The table contradicts the drawing here: an arrow between them may be missing."
        if not self.telling:
            least = f"an odds ratio below {self.noticed:.1f}" if self.noticed else "even an odds ratio of 100"
            return f"{lead} Too few rows to tell: {least} would often go unnoticed."
        return (
            f"{lead} The table does not contradict the drawing; an odds ratio of {self.noticed:.1f} would have been "
            "noticed four times in five. That says nothing about the direction of arrows."
        )


def p_value(counts: Counts, rng: np.random.Generator, tables: int = SIMULATED) -> float:
    """How often a table of the fitted null is at least as far from it as this one: (1 + as far) / (1 + tables)."""
    null = counts.null
    inverse = np.linalg.pinv(null.covariance(), rcond=1e-9, hermitian=True)

    def statistic(values: FloatArray) -> FloatArray:
        sums = residuals(values, counts.sigma).reshape(*values.shape[:-3], -1)
        out: FloatArray = np.einsum("...a,ab,...b->...", sums, inverse, sums)
        return out

    observed = statistic(counts.values)
    simulated = statistic(null.simulate(tables, rng))
    return (1 + int(np.count_nonzero(simulated >= observed))) / (1 + tables)


def holm(ps: Sequence[float]) -> tuple[float, ...]:
    """p values adjusted for testing all of them (Holm 1979): the chance of any false alarm is kept."""
    order = np.argsort(ps)
    out, worst = [0.0] * len(ps), 0.0
    for rank, i in enumerate(order):
        worst = max(worst, min(1.0, (len(ps) - rank) * ps[i]))
        out[i] = worst
    return tuple(out)


def judged(tables: Sequence[Counts], rng: np.random.Generator, level: float = 0.05) -> tuple[Tested, ...]:
    """All statements together; each table's noise must have been drawn on its own."""
    ps = [p_value(counts, rng) for counts in tables]
    return tuple(
        Tested(p, adjusted, strength(counts), noticed(counts.null, level / len(tables)))
        for p, adjusted, counts in zip(ps, holm(ps), tables, strict=True)
    )
