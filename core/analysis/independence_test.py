"""Test of a drawing's implied independences on noisy counts.

The statistic of each independence is a quadratic form of the residuals of its fitted null
(`espalier.core.analysis.independence_fit`). The test compares it with the same statistic in tables simulated from that
null with sampling and noise, after Gaboardi, Lim, Rogers & Vadhan (2016) and Kifer & Rogers (2017), who consider a
single table. Holm's rule adjusts the p values of all independences. The counts are already noisy, so the test costs no
budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from espalier.core.analysis.independence_fit import Counts, FloatArray, residuals
from espalier.core.analysis.strength import Strength, noticed, strength

SIMULATED = 999
"""Number of tables drawn from the fitted null; p is a multiple of 1/1000."""

LARGEST_NOTICED = 2.5
"""A test that cannot detect this odds ratio with 80 % power reports that there are too few rows."""


@dataclass(frozen=True)
class Tested:
    """Result for one statement: ``p``, ``adjusted`` by Holm over all statements, and the ``strength``.

    ``noticed`` is the smallest odds ratio that the test detects with 80 % power; `None` if not even 100 is detected.
    """

    p: float
    adjusted: float
    strength: Strength
    noticed: float | None

    def contradicted(self, level: float = 0.05) -> bool:
        """Return whether the table contradicts the statement at ``level``."""
        return self.adjusted <= level

    @property
    def telling(self) -> bool:
        """True if the test would have detected an odds ratio of `LARGEST_NOTICED`."""
        return self.noticed is not None and self.noticed <= LARGEST_NOTICED

    def sentence(self, one: str, other: str, given: Sequence[str], level: float = 0.05) -> str:
        """Return two or three sentences: the strength of the association, then its meaning for the drawing."""
        s = self.strength
        place = f", given {' and '.join(given)}" if given else ""
        if s.kind == "odds ratio":
            lead = (
                f"{one} and {other}{place}: odds ratio {s.value:.2f} ({s.low:.2f} to {s.high:.2f}); the drawing "
                "implies 1."
            )
        else:
            lead = (
                f"{one} and {other}{place}: {s.value:.4f} nats of information ({s.low:.4f} to {s.high:.4f}); the "
                "drawing implies 0."
            )
        if self.contradicted(level):
            return f"{lead} The table contradicts the drawing here: an arrow between them may be missing."
        if not self.telling:
            least = f"an odds ratio below {self.noticed:.1f}" if self.noticed else "even an odds ratio of 100"
            return f"{lead} There are too few rows for a verdict: {least} would often go undetected."
        return (
            f"{lead} The table does not contradict the drawing; an odds ratio of {self.noticed:.1f} would have been "
            "detected four times in five. The test does not check the direction of arrows."
        )


def p_value(counts: Counts, rng: np.random.Generator, tables: int = SIMULATED) -> float:
    """Return the p value: the share of simulated ``tables`` that are at least as far from the fitted null as
    ``counts``.

    Both the numerator and the denominator are increased by one, so p is never 0.
    """
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
    """Return p values adjusted by Holm (1979), which bounds the chance of any false alarm over all tests."""
    order = np.argsort(ps)
    out, worst = [0.0] * len(ps), 0.0
    for rank, i in enumerate(order):
        worst = max(worst, min(1.0, (len(ps) - rank) * ps[i]))
        out[i] = worst
    return tuple(out)


def judged(tables: Sequence[Counts], rng: np.random.Generator, level: float = 0.05) -> tuple[Tested, ...]:
    """Test all statements together. The noise must be independent between their tables."""
    ps = [p_value(counts, rng) for counts in tables]
    return tuple(
        Tested(p, adjusted, strength(counts), noticed(counts.null, level / len(tables)))
        for p, adjusted, counts in zip(ps, holm(ps), tables, strict=True)
    )
