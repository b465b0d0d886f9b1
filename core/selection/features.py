"""PRISM's feature subset S, chosen privately (regime 3a, §5.2)."""

from __future__ import annotations

from collections.abc import Sequence

from core.privacy.allocation import Purse
from core.privacy.curator import Curator
from core.privacy.scores import FeatureScore
from core.selection.useful import how_many


def choose_features(
    curator: Curator,
    purse: Purse,
    share: float,
    target: str,
    candidates: Sequence[str],
    k: int,
    pool: str = "",
) -> tuple[tuple[str, ...], float]:
    """``k`` of ``candidates`` by association with ``target``, and the share of the budget left unspent.

    Greedy exponential mechanism, share/k a round, with :class:`FeatureScore` (the safe total-variation score, not
    the paper's clipped χ²). Where k takes them all nothing is drawn or paid. What is chosen predicts; it is not
    claimed to be causal or a blanket.
    """
    if k >= len(candidates):
        return tuple(candidates), share
    order = list(curator.sizes)
    pairs = {tuple(sorted((name, target), key=order.index)): name for name in candidates}
    left = sorted(pairs, key=lambda q: -curator.sizes[pairs[q]])
    score = FeatureScore(target)
    chosen: set[str] = set()
    for _ in range(k):
        pair = curator.choose(score, left, purse.choice(share / k), f"feature for {target}", pool)
        left.remove(pair)
        chosen.add(pairs[pair])
    return tuple(name for name in order if name in chosen), 0.0


def suggested(curator: Curator, purse: Purse, share: float, target: str, candidates: Sequence[str]) -> int:
    """k where the plan leaves it open: as many as ``share`` of the budget counts usefully, at least one.

    From the budget, n where it is public, and the sizes of the domains alone.
    """
    cells = sorted(curator.sizes[name] * curator.sizes[target] for name in candidates)
    return max(1, how_many(curator, purse, share, cells[len(cells) // 2], len(cells))) if cells else 1
