"""Theoretical bounds on a plan's error, which hold for every table and use only public quantities.

They are much larger than typical errors, so plan with the expected error, σ√(2/π) per cell. A bound above 1 on a total
variation distance is useless and is called *vacuous*.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from espalier.core.analysis.drawing import POOL
from espalier.core.graph.separations import Clique
from espalier.core.methods import method_of
from espalier.core.privacy.draws import Draw, Noise
from espalier.core.privacy.tails import bound_in_sigmas
from espalier.core.project.plan import Plan

BETA = 0.05
"""All bounds hold simultaneously with probability 1 − β."""


@dataclass(frozen=True)
class Counted:
    """One marginal of a plan, as used by the bounds; ``sigma`` is in rows per cell."""

    clique: Clique
    cells: int
    sigma: float
    noise: Noise = "gaussian"


@dataclass(frozen=True)
class MarginalBound:
    """Expected TV (share of rows in the wrong cell) of one marginal, and a bound on it.

    ‖p̃ − p̂‖₁ is at most 2 ``tv``. ``expected_tv`` is ½ · cells · σ√(2/π)/n, before the fit lowers it.
    """

    clique: Clique
    cells: int
    expected_tv: float
    tv: float

    @property
    def vacuous(self) -> bool:
        """True if the bound exceeds the largest possible distance."""
        return self.tv > 1


@dataclass(frozen=True)
class ErrorBounds:
    """Bounds of one plan. ``tree`` and ``excess_risk`` are None if no pair is counted with the target.

    ``inputs`` lists the assumptions of the bound on the risk: a 1-Lipschitz loss between 0 and ``loss``, linear
    predictors of norm at most ``norm`` over one-hot features, ``rows`` synthetic rows, and confidence 1 − ``beta``.
    """

    marginals: tuple[MarginalBound, ...]
    tree: float | None
    excess_risk: float | None
    inputs: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        """Return the entries of ``release.json``."""
        return {
            "marginals": [{**asdict(m), "clique": list(m.clique), "vacuous": m.vacuous} for m in self.marginals],
            "tree": self.tree,
            "excess_risk": self.excess_risk,
            "inputs": dict(self.inputs),
        }


def error_bounds(
    counted: Iterable[Counted],
    rows: float,
    synthetic_rows: float,
    target: str | None,
    *,
    loss: float = 1.0,
    norm: float = 1.0,
    beta: float = BETA,
) -> ErrorBounds:
    """Return the bounds for marginals counted on a table of ``rows`` rows; if a marginal is counted repeatedly, its
    best count is used.

    These are bounds on the noisy counts, each projected onto the simplex, not on the model that is fitted to all counts
    together. The bound on a tree uses the star around ``target`` (its pairs) as the tree, whose columns are S. It
    therefore bounds the error of those pairs only. Under add-remove ``rows`` is a noisy total, whose error is ignored.
    """
    best: dict[Clique, Counted] = {}
    for item in counted:
        if item.clique not in best or item.sigma < best[item.clique].sigma:
            best[item.clique] = item
    each = beta / 2 / max(1, len(best))  # half of β covers the counts, and half the synthetic rows
    marginals = tuple(marginal_bound(item, rows, each) for item in best.values())
    star = [m.tv for m in marginals if target in m.clique and len(m.clique) == 2]
    tree = tree_bound(len(star), max(star)) if star else None
    risk = excess_risk(tree, len(star), synthetic_rows, loss, norm, beta / 2) if tree is not None else None
    return ErrorBounds(marginals, tree, risk, {"loss": loss, "norm": norm, "rows": synthetic_rows, "beta": beta})


def marginal_bound(item: Counted, rows: float, beta: float) -> MarginalBound:
    """Return the bound of Proposition A.1: with probability 1 − β, ‖p̃ − p̂‖₁ ≤ |Ω| (σ/n) √(2 ln(2|Ω|/β)), and the TV
    is at most half of this.

    p̂ are the table's shares; p̃ are the noisy shares projected onto the simplex. Proof: all cells' noise stays within
    t = σ√(2 ln(2|Ω|/β)) with probability 1 − β (`bound_in_sigmas`, which also has t for Laplace noise; the paper's
    union bound leaves out the 2). Then ‖η‖₂ ≤ √|Ω| t; the projection moves p̃ no farther from p̂ than the noise did,
    and ‖·‖₁ ≤ √|Ω| ‖·‖₂.
    """
    spread = item.sigma / rows
    tv = 0.5 * item.cells * spread * bound_in_sigmas(item.cells, beta, laplace=item.noise == "laplace")
    return MarginalBound(item.clique, item.cells, 0.5 * item.cells * spread * math.sqrt(2 / math.pi), tv)


def tree_bound(edges: int, alpha: float) -> float:
    """TV(P, P̃) ≤ (2|T| − 1) α for P and P̃ that both factor along a tree T whose edge marginals differ by at most α.

    Proposition A.2 hides its constants and assumes a smallest probability; this bound assumes none. Proof. Order the
    edges so that each edge (c, p) after the first adds one new column c to a column p that is already included. Let
    P_k, P̃_k be the distributions of the columns after k edges. P_k = P_{k−1} P(c | p), and the same holds for P̃.
    Compare both with Q = P̃_{k−1} P(c | p). Appending the same conditional changes no distance: TV(P_k, Q) =
    TV(P_{k−1}, P̃_{k−1}). Both Q and P̃_k draw c from p alone after P̃_{k−1}, so TV(Q, P̃_k) = TV(P̃(p)P(c | p), P̃(p,
    c)) ≤ TV(P̃(p)P(c | p), P(p, c)) + TV(P(p, c), P̃(p, c)) ≤ TV(P̃(p), P(p)) + α ≤ 2α, because margins of two tables
    are no farther apart than the tables. The first edge costs α, and each further edge 2α.
    """
    return (2 * edges - 1) * alpha


def excess_risk(distance: float, features: int, rows: float, loss: float, norm: float, beta: float) -> float:
    """Return the bound of Theorem 6.2: R(ĥ) − inf R ≤ 2 Δ_S + 2 ℜ + 2 √(ln(2/β)/(2 n_syn)), times the bound of the
    loss.

    Δ_S is ``distance``; ℜ ≤ B √|S| / √n_syn is the Rademacher complexity of linear predictors of norm at most B =
    ``norm`` over one-hot features, whose norm is √|S| (Bartlett & Mendelson 2002, Lemma 22).
    """
    complexity = norm * math.sqrt(features / rows)
    return 2 * loss * distance + 2 * complexity + 2 * loss * math.sqrt(math.log(2 / beta) / (2 * rows))


def error_bounds_of(draws: Sequence[Draw], rows: float, plan: Plan) -> ErrorBounds:
    """Return the bounds for all counts in ``draws``, on a table of ``rows`` rows."""
    counted = (
        Counted(d.columns, d.cells, d.scale, d.noise)
        for d in draws
        if d.kind == "count" and d.columns and d.pool != POOL
    )
    return error_bounds(counted, rows, plan.rows or rows, plan.target if method_of(plan).capabilities.targets else None)
