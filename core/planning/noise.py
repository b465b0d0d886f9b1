"""Noise of a plan in each column and pair, computed only from its rehearsed draws, and therefore public before anything
is read.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from espalier.core.graph.separations import Clique
from espalier.core.privacy.draws import Draw

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]

EXPECTED = math.sqrt(2 / math.pi)
"""Expected absolute value of a standard normal."""


@dataclass(frozen=True)
class Noise:
    """Scales of the noise in rows, for a table of ``rows`` rows. Arrays follow the order of ``names``.

    ``one`` is σ for the counts of each column, and ``pair`` for the counts of each pair. Both are infinite for columns
    and pairs that are not counted. A private choice decides whether the pairs marked in ``chosen`` are counted, and
    ``choice`` is its noise in rows. ``with_target`` is the probability that each column's pair with ``target`` is
    counted. ``along`` is true if each column is drawn from its causes, along the arrows of the drawing.
    """

    names: tuple[str, ...]
    sizes: FloatArray
    rows: float
    one: FloatArray
    pair: FloatArray
    chosen: NDArray[np.bool_]
    choice: float
    target: int | None
    with_target: FloatArray
    along: bool = False

    def scaled(self, factor: float) -> Noise:
        """Return this noise multiplied by ``factor``."""
        return replace(self, one=factor * self.one, pair=factor * self.pair, choice=factor * self.choice)

    @property
    def unbounded_column_errors(self) -> FloatArray:
        """Expected total variation of each column's counts, without its upper limit of 1."""
        return np.asarray(0.5 * EXPECTED * self.sizes * self.one / self.rows)

    @property
    def column_errors(self) -> FloatArray:
        """Expected total variation of each column's counts, between 0 and 1."""
        return np.asarray(np.minimum(1.0, self.unbounded_column_errors))

    def unbounded_pair_errors(self, i: IndexArray, j: IndexArray) -> FloatArray:
        """Expected total variation of the counts of the pairs (i, j), without its upper limit of 1."""
        return np.asarray(0.5 * EXPECTED * self.sizes[i] * self.sizes[j] * self.pair[i, j] / self.rows)

    def unbounded_visible(self, i: IndexArray, j: IndexArray) -> FloatArray:
        """`visible` of the pairs (i, j) without its upper limit of 1, and therefore proportional to the noise."""
        one, other = self.sizes[i], self.sizes[j]
        less, least = np.maximum(one - 1, 1.0), np.maximum(other - 1, 1.0)
        phi = np.sqrt(less * least * one * other) * self.pair[i, j] / self.rows
        overlooked = np.where(self.chosen[i, j], 2 * self.choice / (EXPECTED * self.rows), 0.0)
        return np.asarray(np.maximum(phi, overlooked) / np.sqrt(np.minimum(less, least)))

    @cached_property
    def visible(self) -> FloatArray:
        """Cramér's V that noise alone produces in each pair, or that a private choice overlooks. Weaker associations
        are lost.

        Noise of σ in every cell gives φ² ≈ (a − 1)(b − 1)·a·b·σ²/n² in a table of a × b values with even margins. A
        choice scores a pair by n·‖p − p_a p_b‖₁, about 0.8·n·φ. It prefers this pair, with odds of e², to a pair
        without association if the score is twice the scale of the choice's noise.
        """
        pairs: IndexArray = np.indices(self.pair.shape)
        return np.asarray(np.minimum(1.0, self.unbounded_visible(pairs[0], pairs[1])))

    def log_odds(self, rarer: float) -> FloatArray:
        """Return the standard deviation of the log odds of the target that noise causes, for one cell of each column.

        A cell of a column with k values holds n·``rarer``/k rows of the target's rarer value.
        """
        if self.target is None:
            return np.zeros(len(self.names))
        few, many = self.rows * rarer, self.rows * (1 - rarer)
        return np.asarray(self.sizes * self.pair[self.target] * math.sqrt(1 / few**2 + 1 / many**2))


def noise_of(
    draws: Iterable[Draw],
    sizes: Mapping[str, int],
    rows: float,
    target: str | None,
    features: bool,
    trained: Mapping[Clique, float] | None = None,
) -> Noise | None:
    """Return the noise of the counts among ``draws``; None if there are none.

    Columns of one value are left out. With ``features``, the method counts tables because they contain the target, so a
    privately chosen table contains the target if the rehearsed table does. ``trained`` are the pairs that training
    steps learn, with the weight of a row. The mean of the steps is as noisy as counts of the pair with the σ of a step,
    divided by the weight and by the root of the number of steps. None means that the method does not train columns
    along a drawing.
    """
    names = tuple(name for name, size in sizes.items() if size > 1)
    place = {name: i for i, name in enumerate(names)}
    many = len(names)
    bought = list(draws)
    counts = [d for d in bought if d.kind == "count" and d.columns and d.scale > 0]
    if not counts or many < 1:
        return None
    values = np.array([sizes[name] for name in names], dtype=float)
    at = None if target is None else place.get(target)
    one, pair, with_target = np.zeros(many), np.zeros((many, many)), np.zeros(many)
    open_pairs: dict[tuple[str, ...], float] = {}
    open_target: dict[tuple[str, ...], float] = {}
    for d in counts:
        inside = [place[name] for name in d.columns or () if name in place]
        if d.is_open and len(inside) > 1:
            key = tuple(d.columns or ())
            held = open_target if features and at in inside else open_pairs
            held[key] = held.get(key, 0.0) + _precision(d, values, inside)
            continue
        cells = float(np.prod(values[inside]))
        for i in inside:
            one[i] += values[i] / cells / d.scale**2
        for i in inside:
            for j in inside:
                if i != j:
                    pair[i, j] += values[i] * values[j] / cells / d.scale**2
    steps = math.fsum(1 / d.scale**2 for d in bought if d.recipe == "clipped-gradient" and d.scale > 0)
    for (cause, effect), weight in (trained or {}).items():
        if cause in place and effect in place:
            i, j = place[cause], place[effect]
            pair[[i, j], [j, i]] += steps * weight**2
    chosen = np.zeros((many, many), dtype=bool)
    if at is not None:
        with_target[pair[at] > 0] = 1.0
        if open_target:
            free = [i for i in range(many) if i != at and not pair[at, i]]
            pair[at, free] = pair[free, at] = float(np.mean(list(open_target.values())))
            chosen[at, free] = chosen[free, at] = True
            with_target[free] = min(1.0, len(open_target) / max(1, len(free)))
    if open_pairs:
        free_pairs = (pair == 0) & ~np.eye(many, dtype=bool)
        if features and at is not None:  # pairs with the target are chosen separately
            free_pairs[at] = free_pairs[:, at] = False
        pair[free_pairs] = float(np.mean(list(open_pairs.values())))
        chosen |= free_pairs
        counted = min(1.0, len(open_pairs) / max(1.0, free_pairs.sum() / 2))
        one += counted * np.where(free_pairs, pair / values, 0.0).sum(axis=1)
        if at is not None and not with_target.any():
            with_target[free_pairs[at]] = counted
    scales = [d.scale for d in bought if d.kind in ("choice", "scores")]
    with np.errstate(divide="ignore"):
        sigma, sigmas = 1 / np.sqrt(one), 1 / np.sqrt(pair)
    choice = min(scales, default=0.0)
    return Noise(names, values, rows, sigma, sigmas, chosen, choice, at, with_target, trained is not None)


def _precision(d: Draw, values: FloatArray, inside: list[int]) -> float:
    """Return 1/σ² of a typical pair inside a table whose columns have not been chosen yet."""
    if len(inside) == 2:
        return 1 / d.scale**2
    pairs = [values[i] * values[j] for i, j in itertools.combinations(inside, 2)]
    return float(np.mean(pairs) / np.prod(values[inside])) / d.scale**2
