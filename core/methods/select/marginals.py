"""Choice of the marginals to measure, and of their precision, that minimises the predicted error. Everything here is
public, because it depends only on noisy answers, domain sizes and the price of noise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from espalier.core.graph.elimination import Order, eliminate
from espalier.core.graph.separations import Clique, Separation
from espalier.core.methods.select.greedy_tree import Growth
from espalier.core.privacy.draws import ScoreMeasurement

FITTED = 0.6
"""Fraction of a count's noise that remains after the fit. The fit removes noise because marginals share columns and no
cell is negative. On Adult, 0.4 selects pairs that add more noise than information (TV 0.0102 instead of 0.0096), and
0.9 drops useful pairs (0.0105).
"""

MEAN = math.sqrt(2 / math.pi)
"""E|x| of a standard normal x."""

TREES = 3
"""Limit on the cells of a whole junction tree, as a multiple of the limit on its largest clique."""


@dataclass(frozen=True)
class Candidate:
    """A marginal that may be measured.

    ``error`` estimates the model's distance from it (L1, in rows); ``weight`` is its weight in the workload; ``cells``
    is its effective number of cells under noise (see `noisy_cells`).
    """

    clique: Clique
    error: float
    weight: float
    cells: float


def noisy_cells(expected: NDArray[np.float64], sigma: float) -> float:
    """Return the effective number of cells of a table under noise: Σ min(1, E/(σ√(2/π))).

    The fit keeps counts non-negative, and close to their expectation if they are mostly noise. So the error of a cell
    with fewer rows than the noise is at most about its number of rows.
    """
    return float(np.minimum(1.0, np.maximum(expected, 0.0) / (MEAN * sigma)).sum())


LEVELS, STEPS = 100, 60
"""Numbers of candidate values for the exact scores, and of EM steps."""

MOST_MISSES = 25
"""A model is considered full after this number of consecutive candidates that do not fit into it. Each candidate costs
an elimination, and later candidates are less useful.
"""


def shrunk(scores: ScoreMeasurement) -> NDArray[np.float64]:
    """Return the expected exact scores given the noisy scores; none is below 0.

    The distribution of the exact scores is the mixture that makes the noisy scores most likely (Kiefer & Wolfowitz
    1956; by EM, Laird 1978). If the model is wrong for few pairs, most expected scores are near 0, and a few large
    scores stay large. Without this correction, the largest of many noisy scores are mostly noise, and the counts bought
    for them are useless.
    """
    values, sigma = scores.values, max(scores.sigma, 1e-9)
    levels = np.linspace(0.0, max(float(values.max()), sigma), LEVELS)
    likely = -0.5 * ((values[:, None] - levels) / sigma) ** 2
    likely = np.exp(likely - likely.max(axis=1, keepdims=True))
    common = np.full(LEVELS, 1.0 / LEVELS)
    for _ in range(STEPS):
        chance = likely * common
        common = (chance / chance.sum(axis=1, keepdims=True)).mean(axis=0)
    chance = likely * common
    return np.asarray((chance @ levels) / chance.sum(axis=1))


class Room:
    """Marginals that may be added to the ``held`` cliques, inside a frame and under a cap on cells."""

    def __init__(
        self,
        sizes: Mapping[str, int],
        held: Sequence[Clique],
        separations: Sequence[Separation],
        max_cells: int,
        quick: bool = False,
    ) -> None:
        """``max_cells`` bounds the largest clique of the junction tree, and `TREES` times that number bounds the whole
        tree.

        With ``quick`` (for a rehearsal of a wide table), a new elimination order is searched for only if the last order
        does not fit.
        """
        self._sizes, self._max_cells = sizes, max_cells
        self._quick, self._apart = quick, bool(separations)
        self._order: Order | None = None
        self._growth = Growth(tuple(sizes), separations)
        self._pairs: set[Clique] = set()
        self.held: list[Clique] = []
        for clique in dict.fromkeys(held):
            pairs = list(itertools.combinations(clique, 2))
            if not self._growth.link_all(pairs):
                raise ValueError(f"the frame forbids {clique}")
            self._pairs |= set(pairs)
            self.held.append(clique)

    def may_take(self, clique: Clique) -> bool:
        """Return whether the frame allows every pair of ``clique``, given the held cliques."""
        return not self._apart or bool(self._growth.may_link(list(itertools.combinations(clique, 2))).all())

    def take(self, clique: Clique) -> bool:
        """Add ``clique`` if frame and cap allow it; return whether it was added."""
        new = [pair for pair in itertools.combinations(clique, 2) if pair not in self._pairs]
        if not new:
            return True
        if not self._growth.may_link(new).all():
            return False
        order = self._order.joined(clique) if self._order else None
        if order is None or not self._fits(order):
            order = Order(self._sizes, eliminate(self._sizes, [*self.held, clique]))
            if not self._fits(order):
                return False
        if not self._growth.link_all(new):
            return False
        self._order = order if self._quick else None
        self._pairs |= set(new)
        self.held.append(clique)
        return True

    def _fits(self, order: Order) -> bool:
        """Return whether the tables of the junction tree stay under the cap."""
        return max(order.cells) <= self._max_cells and sum(order.cells) <= TREES * self._max_cells


def best_subset(candidates: Sequence[Candidate], noise: float, room: Room) -> list[Candidate]:
    """Choose the candidates to measure greedily. Each step takes the candidate that most reduces the predicted error Σ
    w·error.

    ``noise`` is σ in rows of a measurement that gets the whole budget of the step. If ρ_i ∝ a_i^(2/3) with a_i =
    w_i·cells_i, measuring a set leaves an error of `FITTED` · √(2/π) · ``noise`` · (Σ a_i^(2/3))^(3/2), the least for
    that budget (PRISM, Theorem 6.3); other candidates keep their error. A candidate that would add more error than it
    removes is not taken. The search ends after `MOST_MISSES` consecutive candidates that do not fit.
    """
    a = np.array([(c.weight * c.cells) ** (2 / 3) for c in candidates])
    error = np.array([c.weight * c.error for c in candidates])
    open_ = np.ones(len(candidates), dtype=bool)
    chosen: list[Candidate] = []
    taken, misses = 0.0, 0
    while open_.any() and misses < MOST_MISSES:
        brings = FITTED * MEAN * noise * ((taken + a) ** 1.5 - taken**1.5)
        gain = np.where(open_, error - brings, -np.inf)
        best = int(np.argmax(gain))
        if gain[best] <= 0:
            break
        open_[best] = False
        if room.take(candidates[best].clique):
            chosen.append(candidates[best])
            taken, misses = taken + float(a[best]), 0
        else:
            misses += 1
    return chosen
