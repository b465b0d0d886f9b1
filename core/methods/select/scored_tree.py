"""Strongest tree by noisy scores that are bought together, and the shortfall of the greedy tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from espalier.core.graph.separations import Clique, Separation
from espalier.core.methods.select.exact_tree import best_tree
from espalier.core.methods.select.greedy_tree import strongest_greedy
from espalier.core.privacy.draws import ScoreMeasurement


@dataclass(frozen=True)
class ScoredTree:
    """Tree with the largest sum of noisy scores inside the frame; ``best``, ``greedy`` and ``bound`` are in rows.

    ``greedy`` is the sum for a tree grown edge by edge on the same scores. Both sums and their difference are biased
    upward, because the noise influenced the choice of each tree. ``sigma`` is the noise that the difference would have
    if both trees had been fixed in advance. ``scores`` are the bought scores.
    """

    edges: tuple[Clique, ...]
    best: float
    greedy: float
    bound: float
    sigma: float
    scores: ScoreMeasurement

    def to_json(self) -> dict[str, Any]:
        """Return the entry of release.json."""
        return {
            "edges": [list(e) for e in self.edges],
            "best": self.best,
            "greedy": self.greedy,
            "gap": self.best - self.greedy,
            "sigma": self.sigma,
            "proved": self.best >= self.bound,
            "scores": [
                {"columns": list(q), "score": v}
                for q, v in zip(self.scores.cliques, self.scores.values.tolist(), strict=True)
            ],
            "score_sigma": self.scores.sigma,
        }

    @property
    def sentence(self) -> str:
        """Return sentences for the report."""
        gap = self.best - self.greedy
        proof = (
            "No tree that respects the frame has a larger sum" if self.best >= self.bound else "The search ended early"
        )
        return (
            f"The tree's noisy scores sum to {self.best:,.0f} rows. {proof}. Growing it edge by edge on the same "
            f"scores would reach {self.greedy:,.0f}, which is {gap:,.0f} less (noise ± {self.sigma:,.0f}). The "
            "difference is biased upward, because the choice of the tree follows the noise."
        )


def strongest(
    scores: ScoreMeasurement,
    sizes: Mapping[str, int],
    separations: Sequence[Separation],
    linked: Sequence[Clique] = (),
    start: Sequence[Clique] = (),
) -> ScoredTree:
    """Return the strongest tree of ``scores`` inside ``separations``, by post-processing.

    ``linked`` are pairs that are measured anyway, ``start`` the tree's initial pairs.
    """
    value = dict(zip(scores.cliques, scores.values.tolist(), strict=True))
    greedy = strongest_greedy(sizes, separations, value, linked, start)
    found = best_tree(value, separations, [*linked, *start], greedy)
    apart = set(found.edges) ^ set(greedy)
    reached = sum(value[e] for e in greedy)
    return ScoredTree(found.edges, found.value, reached, found.bound, scores.sigma * len(apart) ** 0.5, scores)
