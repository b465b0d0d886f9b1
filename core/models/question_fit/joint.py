"""Joint fit of marginals, questions and counts, each weighted by its noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from espalier.core.graph.junction_tree import FloatArray, Zeros
from espalier.core.graph.separations import Clique
from espalier.core.models.graphical.problem import SMALLEST_TOTAL
from espalier.core.models.question_fit.fitting import Fit, fit
from espalier.core.models.question_fit.model import VisibleModel
from espalier.core.models.question_fit.network import Network
from espalier.core.privacy.draws import Merged
from espalier.core.privacy.question_recipes.lowering import Block, Lowered


class Marginal(Protocol):
    """Noisy counts of one clique in rows, with one axis per column, and their noise scale. A measured count is the
    marginal of the column with its name."""

    @property
    def clique(self) -> Clique:
        """Columns of the marginal."""
        ...

    @property
    def values(self) -> NDArray[np.float64]:
        """Noisy counts, one axis per column."""
        ...

    @property
    def sigma(self) -> float:
        """Scale of the noise, in rows."""
        ...


def fit_together(
    lowered: Lowered,
    marginals: Sequence[Marginal],
    answers: FloatArray,
    sigma: float,
    total: float,
    *,
    zeros: Sequence[Zeros] = (),
    merged: Merged | None = None,
    smoothing: float = 0.0,
    report: Callable[[float, str], None] | None = None,
) -> tuple[VisibleModel, Fit]:
    """Return the model of ``total`` rows that minimises Σ (μ − y)²/(2σ²) over all marginals and questions, plus τ KL.

    ``answers`` are noisy counts of the questions, in their order, with noise of scale ``sigma``. ``zeros`` are the
    project's impossible cells; ``merged`` are the groups of categories in the marginals. ``smoothing`` has the same
    meaning as in `espalier.core.models.graphical.estimate`: τ = smoothing · total / (median noise scale of the
    marginals), but at least 1. The first entries of the fit's ``fitted`` are the questions, in the order of the blocks
    (`Lowered.back` restores the order of the questions). Raises `EspalierError` if the impossibilities leave no row.
    """
    total = max(total, SMALLEST_TOTAL)
    blocks = [*lowered.blocks, *(_block(m.clique, lowered.sizes, merged or {}) for m in marginals)]
    network = Network(lowered.sizes, blocks, (*lowered.zeros, *zeros))
    noisy = np.concatenate([answers[lowered.order], *(m.values.ravel() for m in marginals)])
    scales = [np.full(len(answers), sigma), *(np.full(m.values.size, m.sigma) for m in marginals)]
    tau = 1.0
    if smoothing and marginals:
        tau = max(1.0, smoothing * total / float(np.median([m.sigma for m in marginals])))
    found = fit(network, noisy, np.concatenate(scales), total, smoothing=tau, report=report)
    inner = network.model(found.weights, total, found.summary())
    return VisibleModel(inner, lowered.visible, lowered.counts), found


def _block(clique: Clique, sizes: Mapping[str, int], merged: Merged) -> Block:
    """Return the cells of a marginal as statistics. Over groups of categories, there is one statistic for each cell of
    groups.
    """
    if not any(name in merged for name in clique):
        return Block(clique, None)
    shape = [sizes[name] for name in clique]
    groups = [merged[name] if name in merged else np.arange(sizes[name]) for name in clique]
    counted = [int(g.max()) + 1 for g in groups]
    cell = np.ravel_multi_index(np.ix_(*groups), counted)
    return Block(clique, (np.arange(np.prod(counted))[:, None] == cell.ravel()).astype(np.float64).reshape(-1, *shape))
