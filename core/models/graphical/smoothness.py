"""Smoothing of pair counts along the values of ordered columns. The noisy counts determine the length scale.

    Input: noisy counts y of pairs with σ; shares p, q of their columns in a first fit, N rows; the ordered columns
    1  d ← y − N p qᵀ, on tables with row and column sums of zero
    2  prior of d: normal with variance τ N A_a ⊗ A_b, where a column's A is either E = diag p − p pᵀ (no order) or
         S_ℓ = 0.8 c E R_ℓ E + 0.2 E,  R_ℓ[i, j] = exp(−(i − j)²/2ℓ²),  c: E and c E R_ℓ E have the same trace
    3  prior of (ℓ_a, ℓ_b, τ): the mixture over all pairs with the largest likelihood of all d (by EM)
    4  each pair takes its most probable (ℓ_a, ℓ_b), and the most probable τ given these; a pair without a length
         keeps its counts
    5  w ← τ g/(τ g + σ²) along the eigenvectors of the prior, whose variances at τ = 1 are g;  w ← w/max w
    6  y ← N p qᵀ + w d;  σ² ← σ² · mean w

With S_ℓ, d/(N p q) is a smooth function of the column's value plus an unordered part. Step 5 removes only the part that
the order reveals as noise. The whole association is shrunk afterwards, as for other pairs
(`espalier.core.models.graphical.shrinkage`). Single columns do not change, because the second fit holds them at their
values in the first. Everything here is computed from noisy counts alone, so it is post-processing.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from espalier.core.graph.junction_tree import FloatArray
from espalier.core.graph.separations import Clique
from espalier.core.privacy.draws import Measurement
from espalier.core.project.schema import Schema

LENGTHS = (0, 1, 2, 4, 8)
"""Candidate lengths, in values of the column; 0 for no order."""

ROUGH = 0.2
"""Part of a smooth prior's variance that does not depend on the order."""

MOST_CELLS = 10_000
"""Number of cells in the largest pair that is smoothed. Comparing its lengths takes about 0.2 s."""

STRENGTHS, STEPS, EVEN = 30, 40, 2.0
"""Number of candidate strengths τ, number of EM steps, and prior weight spread over all hypotheses, in pairs."""


@dataclass(frozen=True)
class Smooth:
    """Smoothing of one pair: the length for each of its columns, 0 for a column without order, and τ."""

    lengths: tuple[int, int]
    strength: float


@dataclass(frozen=True)
class Axis:
    """Eigenvectors of one column's A, except the constant vector, and their eigenvalues."""

    vectors: FloatArray
    values: FloatArray


def ordered_values(schema: Schema, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the number of ordered values of each column that has at least three. The category for empty cells, which
    comes last, is not part of the order.

    ``sizes`` are the numbers of categories in the counts. A column with merged categories has no order.
    """
    spans = {c.name: c.size - c.missing for c in schema.columns if c.kind != "categorical" and c.size == sizes[c.name]}
    return {name: span for name, span in spans.items() if span > 2}


def axis_of(share: FloatArray, span: int = 0, length: int = 0) -> Axis:
    """Return the axis of a column with ``share``; its first ``span`` values are ordered if ``length`` is not 0."""
    prior = np.diag(share) - np.outer(share, share)
    if length:
        near, at = np.eye(len(share)), np.arange(span)
        near[:span, :span] = np.exp(-0.5 * ((at[:, None] - at) / length) ** 2)
        smooth = prior @ near @ prior
        scale = float(np.trace(prior)) / max(float(np.trace(smooth)), 1e-300)
        prior = (1 - ROUGH) * scale * smooth + ROUGH * prior
    values, vectors = np.linalg.eigh(prior - 1.0)  # − 1 moves the constant to the front
    return Axis(vectors[:, 1:], np.maximum(values[1:], 0.0))


def along(values: FloatArray, axes: tuple[Axis, Axis], total: float) -> tuple[FloatArray, FloatArray]:
    """Return the contrasts of a table along two axes, and the prior variance of each at τ = 1."""
    a, b = axes
    return a.vectors.T @ values @ b.vectors, total * np.outer(a.values, b.values)


def filtered(
    m: Measurement, shares: tuple[FloatArray, FloatArray], axes: tuple[Axis, Axis], strength: float, total: float
) -> Measurement:
    """Return ``m`` after steps 5 and 6."""
    z, g = along(m.values - total * np.outer(*shares), axes, total)
    kept = strength * g / (strength * g + m.sigma**2)
    kept = kept / max(float(kept.max()), 1e-300)
    values = total * np.outer(*shares) + axes[0].vectors @ (kept * z) @ axes[1].vectors.T
    return replace(m, values=values, sigma=m.sigma * float(np.sqrt(kept.mean())))


def smoothed(
    pooled: Sequence[Measurement], shares: Mapping[str, FloatArray], ordered: Mapping[str, int], total: float
) -> tuple[list[Measurement], dict[Clique, Smooth]]:
    """Return ``pooled`` with smoothed pairs, and the smoothing of each smoothed pair.

    ``ordered`` are the ordered columns with their numbers of ordered values.
    """
    varying = {name for name, share in shares.items() if share.max() < 1 - 1e-9}  # a constraint may leave one value
    pairs = [m for m in pooled if _asked(m, ordered) and varying.issuperset(m.clique)]
    if not pairs:
        return list(pooled), {}
    lengths = {name: LENGTHS if name in ordered else LENGTHS[:1] for m in pairs for name in m.clique}
    axes = {(n, x): axis_of(shares[n], ordered.get(n, 0), x) for n, some in lengths.items() for x in some}
    both = list(itertools.product(LENGTHS, LENGTHS))
    strengths = strengths_for(total)
    likely, places = list[FloatArray](), list[list[int]]()
    for m in pairs:
        (a, b), noise = m.clique, m.sigma**2
        rest = m.values - total * np.outer(shares[a], shares[b])
        places.append([i for i, (x, y) in enumerate(both) if x in lengths[a] and y in lengths[b]])
        own = [
            likelihood(*along(rest, (axes[a, both[i][0]], axes[b, both[i][1]]), total), noise, strengths)
            for i in places[-1]
        ]
        likely.append(np.exp(np.stack(own) - np.max(own)))
    common = mixture(likely, places, (len(both), STRENGTHS))
    found = dict[Clique, Smooth]()
    for m, one, place in zip(pairs, likely, places, strict=True):
        chance = one * common[place]
        best = int(chance.sum(axis=1).argmax())
        if any(both[place[best]]):
            found[m.clique] = Smooth(both[place[best]], float(strengths[chance[best].argmax()]))
    made = []
    for m in pooled:
        if m.clique in found:
            (a, b), how = m.clique, found[m.clique]
            (x, y), pair = how.lengths, (shares[a], shares[b])
            m = filtered(m, pair, (axes[a, x], axes[b, y]), how.strength, total)
        made.append(m)
    return made, found


def _asked(m: Measurement, ordered: Mapping[str, int]) -> bool:
    """Return whether a pair with an ordered column is small enough to compare lengths."""
    pair = len(m.clique) == 2 and min(m.values.shape) > 1 and m.values.size <= MOST_CELLS
    return pair and not ordered.keys().isdisjoint(m.clique)


def strengths_for(total: float) -> FloatArray:
    """Return the candidate strengths, from 1 to the number of rows (at least 2)."""
    return np.geomspace(1.0, max(2.0, total), STRENGTHS)


def likelihood(z: FloatArray, g: FloatArray, noise: float, strengths: FloatArray) -> FloatArray:
    """Return the log-likelihood of contrasts ``z`` for each of ``strengths``; ``noise`` is σ²."""
    variance = strengths[:, None] * g.ravel() + noise
    return np.asarray(-0.5 * (np.log(variance) + z.ravel() ** 2 / variance).sum(axis=1))


def mixture(likely: Sequence[FloatArray], places: Sequence[Any], shape: tuple[int, ...]) -> FloatArray:
    """Return the distribution of hypotheses that maximises the likelihood of all pairs (Kiefer & Wolfowitz 1956; by EM,
    Laird 1978). ``places`` are the indices, into an array of ``shape``, of the hypotheses for each pair's likelihoods.
    """
    common = np.full(shape, 1.0 / np.prod(shape))
    for _ in range(STEPS):
        found = np.full(shape, EVEN / np.prod(shape))
        for one, place in zip(likely, places, strict=True):
            chance = one * common[place]
            found[place] += chance / chance.sum()
        common = found / found.sum()
    return common
