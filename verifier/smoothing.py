"""Smoothing of pair counts along ordered columns, for check 4 (see ``core/models/graphical/smoothness.py``)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .folder import Array, Clique
from .noise import Counts

LENGTHS, ROUGH = (0, 1, 2, 4, 8), 0.2


def spans(columns: Sequence[Mapping[str, Any]], sizes: Mapping[str, int], counted: Mapping[str, int]) -> dict[str, int]:
    """Return the number of ordered values of each ordered column whose categories were not merged."""
    kept = {c["name"]: sizes[c["name"]] - bool(c.get("missing")) for c in columns if c["kind"] != "categorical"}
    return {n: span for n, span in kept.items() if span > 2 and counted[n] == sizes[n]}


def smoothed(c: Counts, shares: Sequence[Array], ordered: Sequence[int], how: Sequence[Any], total: float) -> Counts:
    """Return the counts ``c`` of a pair, smoothed with the lengths and the strength ``how``.

    ``shares`` are the shares of its columns in the first fit, ``ordered`` the columns' numbers of ordered values.
    """
    lengths, strength = how
    if not 1 <= strength <= max(2.0, total) * (1 + 1e-9) or not any(lengths):
        raise ValueError("a pair was smoothed by a strength outside the bounds")
    if any(x not in LENGTHS or (x and not span) for x, span in zip(lengths, ordered, strict=True)):
        raise ValueError("a pair was smoothed along a column that has no order, or by an unknown length")
    (u, a), (v, b) = (basis(*of) for of in zip(shares, ordered, lengths, strict=True))
    z = u.T @ (c.values - total * np.outer(*shares)) @ v
    g = strength * total * np.outer(a, b)
    kept = g / (g + c.sigma**2)
    kept = kept / max(float(kept.max()), 1e-300)
    values = total * np.outer(*shares) + u @ (kept * z) @ v.T
    return Counts(c.clique, values, c.sigma * float(np.sqrt(kept.mean())))


def basis(share: Array, span: int, length: int) -> tuple[Array, Array]:
    """Return the eigenvectors of a column's prior that sum to 0, and their eigenvalues."""
    prior = np.diag(share) - np.outer(share, share)
    if length:
        near, at = np.eye(len(share)), np.arange(span)
        near[:span, :span] = np.exp(-0.5 * (np.subtract.outer(at, at) / length) ** 2)
        smooth = prior @ near @ prior
        prior = ROUGH * prior + (1 - ROUGH) * np.trace(prior) / max(np.trace(smooth), 1e-300) * smooth
    values, vectors = np.linalg.eigh(prior - 1.0)
    return vectors[:, 1:], np.maximum(values[1:], 0.0)


def named(listed: Sequence[Any]) -> dict[Clique, tuple[Any, Any]]:
    """Return the lengths and the strength of each smoothed pair, from the model's head."""
    return {tuple(q): (tuple(lengths), float(strength)) for q, lengths, strength in listed}
