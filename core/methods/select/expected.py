"""What a pair of columns is expected to look like, from noisy answers alone: the public half of an edge's score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from core.graph.separations import Clique
from core.models.graphical import SMOOTHING, GraphicalModel, estimate
from core.privacy.curator import Curator
from core.privacy.draws import Measurement

Expected = Callable[[Clique], NDArray[np.float64]]


def noisy_total(curator: Curator, measurements: Sequence[Measurement]) -> float:
    """n where it is public, else the mean of the measured totals (at least 0)."""
    if curator.rows is not None:
        return float(curator.rows)
    return max(0.0, float(np.mean([m.values.sum() for m in measurements])))


def independent(one_way: Sequence[Measurement], total: float) -> Expected:
    """n̂ · p̂(x) p̂(x′) from the noisy one-way counts (MST, PrivCI)."""
    shares = {m.clique[0]: _shares(m.values) for m in one_way}
    return lambda pair: total * np.outer(shares[pair[0]], shares[pair[1]])


def given_target(star: Sequence[Measurement], target: str, one_way: Sequence[Measurement], total: float) -> Expected:
    """n̂ · Σ_y p̂(y) p̂(x | y) p̂(x′ | y): what the star around ``target`` already explains of a pair.

    ``star`` are the noisy counts of (x, target); a column without one is taken as independent of the target.
    """
    alone = {m.clique[0]: _shares(m.values) for m in one_way}
    by_value = {}
    weight = [alone[target]]
    for m in star:
        counts = m.values if m.clique[1] == target else m.values.T
        counts = np.maximum(counts, 0.0)
        weight.append(_shares(counts.sum(axis=0)))
        name = m.clique[0] if m.clique[1] == target else m.clique[1]
        by_value[name] = np.stack([_shares(column) for column in counts.T], axis=1)
    y = np.mean(weight, axis=0)

    def expected(pair: Clique) -> NDArray[np.float64]:
        left, right = (by_value.get(n, np.repeat(alone[n][:, None], len(y), axis=1)) for n in pair)
        return total * np.asarray((left * y) @ right.T)

    return expected


def by_model(curator: Curator, measurements: Sequence[Measurement]) -> Expected:
    """The marginals of the model fitted to what is known so far; fitted when first asked, never in a rehearsal."""

    @cache
    def model() -> GraphicalModel:
        total = None if curator.rows is None else float(curator.rows)
        return estimate(curator.sizes, measurements, total, smoothing=SMOOTHING)

    return lambda clique: model().marginal(clique)


def _shares(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Noisy counts as shares: nothing negative, summing to one; uniform where nothing is left."""
    kept = np.maximum(values, 0.0)
    total = kept.sum()
    return kept / total if total > 0 else np.full(len(values), 1.0 / len(values))
