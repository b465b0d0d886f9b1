"""Public features of the regression, computed from noisy distributions and random numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from espalier.core.privacy.regression_features import TURN, Fourier, Polynomial

BASE = 2**7
"""Length, in units, of the vector whose products are the polynomial's terms."""

CONSTANT = 0.6
"""The constant's share of this squared length."""

FULL = 1.3
"""Values at least this many standard deviations from the mean are clipped to entries of 1. Larger entries would leave
too little length for the others.
"""

APART = 2.5
"""Distance between two categories, divided by √2, in standard deviations of a number."""


def polynomial(scores: Mapping[str, NDArray[np.float64]], categories: Mapping[str, int]) -> Polynomial:
    """Build a polynomial.

    ``scores`` maps each numeric column to the score of each tick, in standard deviations; scores are clipped to
    ±``FULL``. ``categories`` maps each nominal column to its number of categories.

    Most of the squared length goes to the constant, which gives single columns more weight than products of two
    columns; the columns share the rest evenly. Two categories share one entry with either sign; more categories have
    one entry each. Redundant products (of two categories of one column, or of a category with itself) are left out.
    """
    part = math.floor(BASE * math.sqrt((1 - CONSTANT) / (len(scores) + len(categories))))
    tables = {n: np.trunc(part * np.clip(s / FULL, -1, 1)[:, None]).astype(np.int64) for n, s in scores.items()}
    for name, size in categories.items():
        tables[name] = part * (np.array([[-1], [1]]) if size == 2 else np.eye(size, dtype=np.int64))
    owner = [""] + [name for name, table in tables.items() for _ in range(table.shape[1])]
    pairs = [
        (i, j)
        for i, j in itertools.combinations_with_replacement(range(len(owner)), 2)
        if owner[i] != owner[j] or owner[i] not in categories
    ]
    return Polynomial(math.floor(BASE * math.sqrt(CONSTANT)), tables, tuple(pairs))


def fourier(
    scores: Mapping[str, NDArray[np.float64]],
    categories: Mapping[str, int],
    frequencies: int,
    width: float,
    rng: np.random.Generator,
) -> Fourier:
    """Build a Gaussian kernel of the given ``width`` over scores (standard deviations, in ``APART``) and categories."""
    drawn = _orthogonal(len(scores) + sum(categories.values()), frequencies, rng) / width
    phases = {}
    for name, score in scores.items():
        phases[name], drawn = np.outer(score / APART, drawn[0]), drawn[1:]
    for name, size in categories.items():
        phases[name], drawn = drawn[:size], drawn[size:]
    return Fourier({n: np.rint(p * (TURN / (2 * math.pi))).astype(np.int64) for n, p in phases.items()})


def _orthogonal(dimensions: int, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return ``count`` standard normal frequencies as columns, orthogonal within blocks of ``dimensions``.

    Yu et al., Orthogonal Random Features (2016): each frequency has the same distribution as an independent one, and
    the kernel's error is smaller.
    """
    blocks = []
    for _ in range(-(-count // dimensions)):
        turned, _ = np.linalg.qr(rng.standard_normal((dimensions, dimensions)))
        blocks.append(turned * np.sqrt(rng.chisquare(dimensions, dimensions)))
    return np.asarray(np.hstack(blocks)[:, :count])
