"""Purchases from a curator, one :class:`Draw` each, and the noisy answers passed to the fit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from espalier.core.graph.separations import Clique
from espalier.core.privacy.accounting import total_up

Kind = Literal["count", "choice", "scores", "gradient", "sums", "schema"]
"""Kinds of draws: counts of a marginal, a private choice, a vector of scores, a gradient that guides a choice, and
other sums over the rows.
"""


Noise = Literal["gaussian", "laplace"]
"""Distribution of the noise in counts, scores and sums. A choice is always an exponential mechanism."""


@dataclass(frozen=True)
class Draw:
    """A purchase and its cost, without the answer.

    ``what`` describes it. ``columns`` are the columns that were counted or chosen, None if there are none. ``is_open``
    is true in a rehearsal if a private choice will determine the columns; ``columns`` is then the largest candidate.
    ``cells`` is the length of the answer (0 for a choice, which states its number of ``candidates``). ``sensitivity`` Δ
    and ``scale`` are in rows; the scale is σ of a discrete Gaussian, or the scale of a choice's noise. ``rho`` is its
    price in zCDP and ``delta`` the δ₀ of an approximate-zCDP draw (0 for nearly all draws). ``held_out`` is true if it
    was drawn from the people held out to judge the release. ``recipe`` names the proof of Δ (`PROOFS`), and ``given``
    lists the public numbers that Δ depends on in addition to the unit of privacy. ``noise`` is the noise distribution.
    With Laplace noise, Δ is an L1 sensitivity, and the scale is σ = √2·b, the standard deviation of a Laplace
    distribution with parameter b.
    """

    kind: Kind
    what: str
    columns: Clique | None
    pool: str
    cells: int
    sensitivity: float
    scale: float
    rho: float
    delta: float = 0.0
    candidates: int = 0
    held_out: bool = False
    is_open: bool = False
    recipe: str = "counts"
    given: tuple[tuple[str, float], ...] = ()
    noise: Noise = "gaussian"

    @property
    def epsilon(self) -> float:
        """ε of the draw's pure guarantee, rounded up; infinite for a draw without one.

        A choice of cost ρ is an exponential mechanism with scale s = Δ/√(2ρ): each candidate's probability is
        proportional to exp(score/s) and changes by a factor of at most exp(2Δ/s), so it is √(8ρ)-DP. Laplace noise of
        cost ρ is √(2ρ)-DP (`espalier.core.privacy.mechanisms.laplace_scale`).
        """
        if self.kind == "choice":
            return math.nextafter(math.sqrt(8 * self.rho), math.inf)
        return math.nextafter(math.sqrt(2 * self.rho), math.inf) if self.noise == "laplace" else math.inf


PROOFS = {
    "counts": "core/privacy/unit.py: Unit.count_sensitivity",
    "histogram": "core/privacy/moments.py: Histogram.sensitivity",
    "moments": "core/privacy/moments.py: Moments.sensitivity",
    "class-features": "core/privacy/class_features.py: ClassSums.sensitivity",
    "questions": "core/privacy/question_recipes/recipes.py: QuestionSums",
    "count-histogram": "core/privacy/question_recipes/recipes.py: CountHistogram",
    "regression": "core/privacy/regression_sums.py: RegressionSums.sensitivity",
    "clipped-gradient": "core/privacy/clipped.py: clipped_sensitivity",
    "logistic-gradient": "core/privacy/gradient.py: gradient_sensitivity",
    "edge-score": "core/privacy/scores.py: EdgeScore",
    "feature-score": "core/privacy/scores.py: FeatureScore",
    "conditional-score": "core/privacy/scores.py: ConditionalScore",
    "worst-question": "core/privacy/question_recipes/recipes.py: WorstQuestion",
    "step-counts": "core/privacy/steps.py: StepCounts.sensitivity",
    "echoes": "core/privacy/steps.py: Echoes.sensitivity",
    "visit-counts": "core/privacy/steps.py: VisitCounts.sensitivity",
    "return-counts": "core/privacy/steps.py: ReturnCounts.sensitivity",
    "step-score": "core/privacy/steps.py: StepScore",
    "quantiles": "core/privacy/quantiles.py: calls_of_level",
    "threshold": "core/privacy/partitions.py: distances",
}
"""Location of each recipe's sensitivity proof: a file, and the class or function whose docstring contains it."""
L1_PROOFS = {
    "counts": "core/privacy/unit.py: Unit.rows_moved",
    "questions": "core/privacy/question_recipes/recipes.py: QuestionSums.total_sensitivity",
    "count-histogram": "core/privacy/question_recipes/recipes.py: CountHistogram.total_sensitivity",
}
"""Location of the proof of each recipe's L1 sensitivity, for draws with Laplace noise."""

PartKind = Literal["select", "measure", "look"]
"""Purpose of a draw in a ledger entry: choosing, measuring, or judging the result."""


@dataclass(frozen=True)
class Subtotal:
    """Totals of all draws of one ``kind`` from one ``pool`` of the budget: their number, and the sums of their ρ and
    δ₀, rounded up.
    """

    kind: PartKind
    pool: str
    draws: int
    rho: float
    delta: float = 0.0


def subtotals_of(draws: Iterable[Draw]) -> tuple[Subtotal, ...]:
    """Return subtotals of the draws by kind and pool, in the order in which each was first paid."""
    bought: dict[tuple[PartKind, str], list[Draw]] = {}
    for draw in draws:
        kind: PartKind = "look" if draw.held_out else "measure" if draw.kind in ("count", "sums") else "select"
        bought.setdefault((kind, draw.pool), []).append(draw)
    return tuple(
        Subtotal(kind, pool, len(of), total_up(d.rho for d in of), total_up(d.delta for d in of))
        for (kind, pool), of in bought.items()
    )


@dataclass(frozen=True)
class Measurement:
    """Noisy counts of one clique.

    ``values`` has one axis per column of ``clique`` and is in rows; ``sigma`` is the scale in rows of the discrete
    noise that was *drawn* for ``values`` (computed once, in the curator; see :class:`Draw`); ``rho`` is their cost in
    zCDP; ``pool`` is the pool of the budget that paid.
    """

    clique: Clique
    values: NDArray[np.float64]
    sigma: float
    rho: float = 0.0
    pool: str = ""


def summed(measurements: Iterable[Measurement], columns: tuple[str, ...]) -> tuple[NDArray[np.float64], float] | None:
    """Return noisy counts over ``columns`` and their σ; `None` if no clique contains them.

    Cliques are weighted by precision. Summing out a clique's other columns adds up the noise of the summed cells.
    """
    total, precision = None, 0.0
    for m in measurements:
        if not set(columns) <= set(m.clique):
            continue
        out = tuple(axis for axis, name in enumerate(m.clique) if name not in columns)
        weight = 1 / (m.sigma**2 * math.prod(m.values.shape[axis] for axis in out))
        left = [name for name in m.clique if name in columns]
        values = weight * np.transpose(m.values.sum(axis=out), [left.index(name) for name in columns])
        total = values if total is None else total + values
        precision += weight
    return None if total is None else (total / precision, precision**-0.5)


@dataclass(frozen=True)
class ScoreMeasurement:
    """Noisy scores of several cliques, bought together.

    ``values`` are in rows, one for each of ``cliques``; ``sigma`` is the scale in rows of their discrete Gaussian
    noise, ``sensitivity`` the L2 sensitivity in rows of the whole vector.
    """

    cliques: tuple[Clique, ...]
    values: NDArray[np.float64]
    sigma: float
    sensitivity: float
    rho: float
    pool: str = ""


@dataclass(frozen=True)
class SumMeasurement:
    """Noisy sums over the rows (see `espalier.core.privacy.sums`).

    ``values`` is one flat vector in rows; ``sigma`` the scale in rows of the discrete noise on each entry,
    ``sensitivity`` the sensitivity in rows of the whole vector (see :class:`Draw`).
    """

    what: str
    values: NDArray[np.float64]
    sigma: float
    sensitivity: float
    rho: float
    pool: str = ""


Merged = Mapping[str, NDArray[np.intp]]
"""Columns whose categories are counted in groups: for each category, the number of its group."""


def fold(values: NDArray[Any], clique: Clique, merged: Merged) -> NDArray[Any]:
    """Return counts of ``clique`` over the groups in ``merged`` instead of single categories."""
    for axis, name in enumerate(clique):
        if name in merged:
            groups = merged[name]
            moved = np.moveaxis(values, axis, 0)
            out = np.zeros((int(groups.max()) + 1, *moved.shape[1:]), dtype=values.dtype)
            np.add.at(out, groups, moved)
            values = np.moveaxis(out, 0, axis)
    return values


def counts_of(clique: Clique, is_open: bool) -> str:
    """Return the name of a draw of counts. If it is open, a private choice determines the columns at release."""
    if not is_open:
        return "counts of " + " × ".join(clique)
    chosen = "a pair" if len(clique) == 2 else f"{len(clique)} columns"
    return f"counts of {chosen} chosen at release (largest shown)"
