"""Shrinkage of each pair's association by the part that noise explains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from espalier.core.graph.junction_tree import FloatArray
from espalier.core.graph.separations import Clique
from espalier.core.models.graphical.model import FirstFit, GraphicalModel
from espalier.core.models.graphical.smoothness import along, axis_of, likelihood, mixture, smoothed, strengths_for
from espalier.core.privacy.draws import Measurement

FIRM = 5.0
"""Factor on the precision of single columns in the second fit. With a factor of 2, single columns have larger errors
than in the first fit (COMPAS at ε = 0.2: one-way L1 + 0.0004, asia with 3,000 rows + 0.0008); 20 gives the same result
as 5.
"""

WIDEST = 2.0
"""Largest factor on a pair's σ. Without a bound, an important column is sometimes mistaken for noise. Changes in AUC
from the first fit, without and with the bound: alarm with 8,000 rows at ε = 0.2 −0.008 and −0.003 (± 0.009), diabetes
at 0.2 + 0.015 and + 0.011 (± 0.002), with 8,000 rows at 1 + 0.020 and + 0.013 (± 0.003), COMPAS at 0.2 + 0.0015 and +
0.0016 (± 0.0010).
"""


def believed(
    model: GraphicalModel,
    measurements: Sequence[Measurement],
    smoothing: float,
    ordered: Mapping[str, int] | None = None,
) -> tuple[list[Measurement], float, FirstFit]:
    """Return ``measurements`` for a second fit, the smoothing for it, and the record of the first fit ``model``.

    ``smoothing`` is the smoothing of the first fit. Pairs with one of the ``ordered`` columns, given with their numbers
    of ordered values, are smoothed first (`espalier.core.models.graphical.smoothness`).

    A release's first fit shrinks every pair equally toward independence. This function shrinks a pair further if its
    association may be noise. Let p, q be the shares of the pair's columns in ``model``, N the total, and y the pair's
    counts. The prior for d = μ − N p qᵀ is normal with variance τ · N (diag p − p pᵀ) ⊗ (diag q − q qᵀ), on tables with
    row and column sums of zero. This is τ times the chance variance of N rows with independent columns, so τ = 1
    corresponds to a χ² of 1 per degree of freedom. If λ is the fit's price of divergence (smoothing over noise, see
    `estimate`), λ N KL is, to second order, this prior with τ = 1/λ for all pairs. Here each pair has its own τ: along
    the eigenvectors of the prior's variance, d is measured as z_k ~ N(0, τ g_k + σ²). The distribution of τ over the
    pairs is the mixture with the largest likelihood of all z (Kiefer & Wolfowitz 1956; by EM, Laird 1978). The weight τ
    g/(τ g + σ²) of a pair, at its median g, is the mean under this mixture. A τ above 1/λ is set to 1/λ, so no pair is
    shrunk less than in the first fit.

    In the result, a pair's σ is multiplied by √(1/(λ τ)), at most `WIDEST`, which is equivalent to λ = 1/τ for this
    pair. Single columns are held at their values in ``model``. Tables of three columns or more are unchanged. The
    stored measurements, and all conclusions from them, do not change: the function post-processes noisy answers to draw
    one table of rows.
    """
    pooled = _pooled(measurements)
    limit = _noise(pooled) / smoothing
    names = {name for m in pooled for name in m.clique}
    shares = {name: model.marginal((name,)) / model.total for name in names}
    alone = _alone(pooled)
    pooled, smooth = smoothed(pooled, shares, ordered or {}, model.total)
    pairs = [m for m in pooled if len(m.clique) == 2 and min(m.values.shape) > 1]
    if not pairs:
        return list(measurements), smoothing, FirstFit(model.potentials, {})
    spectra = [_spectrum(m, shares, model.total) for m in pairs]
    tau = dict(zip((m.clique for m in pairs), _strengths(spectra, [m.sigma for m in pairs], model.total), strict=True))
    wider = {q: float(np.clip(np.sqrt(limit / t), 1.0, WIDEST)) for q, t in tau.items()}
    tables = [replace(m, sigma=m.sigma * wider.get(m.clique, 1.0)) for m in pooled if len(m.clique) > 1]
    columns = [Measurement((n,), model.marginal((n,)), sigma / FIRM) for n, sigma in alone.items()]
    made = [*columns, *tables]
    return made, _noise(made) / limit, FirstFit(model.potentials, wider, smooth)


def _pooled(measurements: Sequence[Measurement]) -> list[Measurement]:
    """Merge repeated measurements of a clique into one."""
    precision: dict[Clique, float] = {}
    sums: dict[Clique, FloatArray] = {}
    for m in measurements:
        precision[m.clique] = precision.get(m.clique, 0.0) + m.sigma**-2
        sums[m.clique] = sums.get(m.clique, np.zeros(m.values.shape)) + m.values * m.sigma**-2
    return [Measurement(q, sums[q] / p, p**-0.5) for q, p in precision.items()]


def _noise(pooled: Sequence[Measurement]) -> float:
    """Return the median noise scale of the maximal cliques, in rows, ignoring columns with one value (as in
    `Problem.noise`).
    """
    precision: dict[frozenset[str], float] = {}
    for m in pooled:
        own = frozenset(name for name, size in zip(m.clique, m.values.shape, strict=True) if size > 1)
        precision[own] = precision.get(own, 0.0) + m.sigma**-2
    top = [1 / p for own, p in precision.items() if own and not any(own < other for other in precision)]
    return float(np.sqrt(np.median(top)))


def _alone(pooled: Sequence[Measurement]) -> dict[str, float]:
    """Return σ of each column's counts, estimated from all of ``pooled``."""
    precision: dict[str, float] = {}
    for m in pooled:
        for axis, name in enumerate(m.clique):
            precision[name] = precision.get(name, 0.0) + m.values.shape[axis] / (m.sigma**2 * m.values.size)
    return {name: p**-0.5 for name, p in precision.items()}


def _spectrum(m: Measurement, shares: Mapping[str, FloatArray], total: float) -> tuple[FloatArray, FloatArray]:
    """Return z and g of one pair: its association along the prior's eigenvectors, and the variance of each at τ = 1."""
    p, q = (shares[name] for name in m.clique)
    z, g = along(m.values - total * np.outer(p, q), (axis_of(p), axis_of(q)), total)
    return z.ravel(), g.ravel()


def _strengths(spectra: Sequence[tuple[FloatArray, FloatArray]], sigmas: Sequence[float], total: float) -> list[float]:
    """Return τ of each pair, between 1 and the number of rows (at least 2)."""
    grid = strengths_for(total)
    logs = [likelihood(z, g, sigma**2, grid) for (z, g), sigma in zip(spectra, sigmas, strict=True)]
    likely = [np.exp(one - one.max()) for one in logs]
    common = mixture(likely, [...] * len(likely), grid.shape)
    found = []
    for one, (_, g), sigma in zip(likely, spectra, sigmas, strict=True):
        chance = one * common
        middling = max(float(np.median(g)), 1e-9)
        weight = float(chance @ (grid * middling / (grid * middling + sigma**2)) / chance.sum())
        found.append(max(1.0, weight / (1.0 - weight) * sigma**2 / middling))
    return found
