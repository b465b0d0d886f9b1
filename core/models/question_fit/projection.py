"""Search for the table with the smallest worst deviation from noisy answers, and a proof that no table has a smaller
deviation (Algorithm A of the paper). The problem is to minimise α over shares h of all rows subject to |Σ_x q_j(x) h(x)
− y_j| ≤ α s_j. The dual is max ⟨λ, y⟩ − max_x Σ_j λ_j q_j(x) over Σ_j s_j |λ_j| ≤ 1. The inner maximum is one max-plus
sweep, so any λ proves a lower bound on α without further assumptions.

The paper proposes the ellipsoid method. This module generates columns instead:

1. Fit the maximum-entropy table (`espalier.core.models.question_fit.fitting`) and draw rows from it as columns.
2. Solve one linear program over the columns with HiGHS. At 1,000 questions, interior point with crossover takes a
   quarter of the time of the simplex method.
3. Use the program's λ to search for a row that improves the table. Usually no row does, even in the first round.

Without ``start``, column generation needs no fit, but takes 20 to 300 rounds.

The projection is for comparison. In most cases its answers have *larger* errors than the noisy answers, because a
vertex of the linear program puts residuals on ±α. The table has at most k + 1 distinct rows, too few to be useful.
Columns that no question names are arbitrary, so the answers should include one-way counts. The maximum-entropy fit is
better than the projection and the noisy answers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from espalier.core.graph.junction_tree import FloatArray
from espalier.core.models.graphical.sampling import Codes
from espalier.core.models.question_fit.network import Network

ROUNDS = 500
PERTURBED = 8
"""Number of weight vectors near λ that each round also tries. Adding their best rows reduces the number of rounds by a
factor of six to nine.
"""


@dataclass(frozen=True)
class Certificate:
    """Proof that every table deviates from the noisy answers by at least ``bound`` in its worst question, while the
    table found deviates by ``alpha``.

    Both are in units of the scale given for each answer. ``weights`` are the λ that prove the bound, which
    `lower_bound` computes from them alone.
    """

    alpha: float
    bound: float
    weights: FloatArray


@dataclass(frozen=True)
class Projection:
    """Best table: ``codes`` of its rows (hidden columns included), their ``shares``, its expected ``answers`` in
    rows, the number of pricing ``rounds``, and the number of ``columns`` in the last program."""

    certificate: Certificate
    codes: dict[str, Codes]
    shares: FloatArray
    answers: FloatArray
    rounds: int
    columns: int


def lower_bound(network: Network, answers: FloatArray, scale: FloatArray, total: float, weights: FloatArray) -> float:
    """Return the bound that λ = ``weights`` proves, by weak duality and one max-plus sweep: every table of ``total``
    rows deviates from some answer by at least the bound times this answer's scale."""
    norm = float(np.sum(scale * np.abs(weights)))
    if norm == 0.0:
        return 0.0
    gained = float(weights @ answers) - total * network.highest(weights)
    return max(0.0, gained / norm)


def project(
    network: Network,
    answers: FloatArray,
    scale: FloatArray,
    total: float,
    start: dict[str, Codes],
    rng: np.random.Generator,
    *,
    tolerance: float = 1e-9,
    max_rounds: int = ROUNDS,
) -> Projection:
    """Run Algorithm A over the rows ``start`` (drawn from a fit; if empty, plain column generation) and the rows that
    each round adds.

    ``answers`` and ``scale`` are in rows. The search ends when alpha − bound ≤ ``tolerance``, or after ``max_rounds``
    programs. The certificate records both values.
    """
    codes = start if start and len(next(iter(start.values()))) else _rows([network.best(np.zeros(network.length))[1]])
    columns = network.statistics(codes)
    best_bound, best_weights = 0.0, np.zeros(network.length)
    rounds = 0
    while True:
        rounds += 1
        alpha, shares, weights, level = _program(columns, answers / total, scale / total)
        value, row = network.best(weights)
        bound = float(weights @ answers) / total - value
        norm = float(np.sum(scale * np.abs(weights))) / total
        bound = max(0.0, bound / max(norm, 1.0))
        if bound >= best_bound:
            best_bound, best_weights = bound, weights
        if alpha - best_bound <= tolerance or rounds == max_rounds:
            break
        fresh = [row]
        for _ in range(PERTURBED):
            noise = rng.normal(0.0, 0.1 * np.abs(weights).mean() + 1e-12, len(weights))
            fresh.append(network.best(weights + noise)[1])
        added = _rows(fresh)
        more = network.statistics(added)
        useful = np.flatnonzero(weights @ more > level + 1e-12)
        if not len(useful):
            break
        codes = {name: np.concatenate([codes[name], added[name][useful]]) for name in codes}
        columns = np.concatenate([columns, more[:, useful]], axis=1)
    kept = shares > 0
    return Projection(
        Certificate(alpha, best_bound, best_weights),
        {name: values[kept] for name, values in codes.items()},
        shares[kept],
        total * (columns[:, kept] @ shares[kept]),
        rounds,
        columns.shape[1],
    )


def _rows(rows: list[dict[str, int]]) -> dict[str, Codes]:
    return {name: np.array([row[name] for row in rows], dtype=np.uint32) for name in rows[0]}


def _program(columns: FloatArray, share: FloatArray, scale: FloatArray) -> tuple[float, FloatArray, FloatArray, float]:
    """Solve the linear program over the given columns; return α, the shares h, λ (Σ s|λ| ≤ 1), and the dual of Σ h =
    1.
    """
    from scipy.optimize import linprog

    k, m = columns.shape
    limits = np.concatenate([columns, -columns])
    limits = np.concatenate([limits, -np.tile(scale, 2)[:, None]], axis=1)
    whole = np.ones((1, m + 1))
    whole[0, m] = 0.0
    cost = np.zeros(m + 1)
    cost[m] = 1.0
    found = linprog(cost, limits, np.concatenate([share, -share]), whole, [1.0], (0, None), method="highs-ipm")
    if found.status != 0:
        raise RuntimeError(f"the linear program of a projection failed: {found.message}")
    duals: NDArray[np.float64] = -found.ineqlin.marginals
    weights = duals[k:] - duals[:k]
    return float(found.fun), np.maximum(found.x[:m], 0.0), weights, float(-found.eqlin.marginals[0])
