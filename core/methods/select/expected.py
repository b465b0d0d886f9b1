"""Expected counts of a pair of columns, computed from noisy answers alone. They are the public half of an
edge's score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from espalier.core.graph.separations import Clique
from espalier.core.models.graphical import GraphicalModel, Zeros, estimate, smoothing_for
from espalier.core.privacy.curator import Curator
from espalier.core.privacy.draws import Measurement

ROUGH = 1e-2
"""Duality gap of a model that is used only to choose the next measurement: ten times the gap of the released model."""

Expected = Callable[[Clique], NDArray[np.float64]]


def noisy_total(curator: Curator, measurements: Sequence[Measurement]) -> float:
    """Return n if it is public, otherwise the mean of the measured totals (at least 0)."""
    if curator.rows is not None:
        return float(curator.rows)
    return max(0.0, float(np.mean([m.values.sum() for m in measurements])))


def independent(one_way: Sequence[Measurement], total: float) -> Expected:
    """Return n̂ · p̂(x) p̂(x′) … from the noisy one-way counts (MST, PrivCI); if a column was measured more than once,
    the last measurement is used.
    """
    shares = {m.clique[0]: _shares(m.values) for m in one_way}

    def expected(clique: Clique) -> NDArray[np.float64]:
        table = np.full((), total)
        for name in clique:
            table = table[..., None] * shares[name]
        return table

    return expected


def by_model(curator: Curator, measurements: Sequence[Measurement]) -> Expected:
    """Return the marginals of the model fitted to the answers so far. The model is fitted on first use, and never in a
    rehearsal.
    """

    @cache
    def model() -> GraphicalModel:
        total = None if curator.rows is None else float(curator.rows)
        zeros = [Zeros(q, mask) for q, mask in curator.impossible.items()]
        smoothing = smoothing_for(measurements, total)
        return estimate(curator.sizes, measurements, total, zeros=zeros, smoothing=smoothing, tolerance=ROUGH)

    return lambda clique: model().marginal(clique)


def _shares(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return noisy counts as non-negative shares that sum to one; uniform if all counts are 0."""
    kept = np.maximum(values, 0.0)
    total = kept.sum()
    return kept / total if total > 0 else np.full(len(values), 1.0 / len(values))
