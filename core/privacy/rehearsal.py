"""Rehearsal: a curator without a table, which reports a plan's purchases and their prices."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from espalier.core.graph.separations import Clique
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.class_features import ColumnSets
from espalier.core.privacy.curator import Curator, Impossible
from espalier.core.privacy.draws import Draw, Merged
from espalier.core.privacy.question_recipes.recipes import WorstQuestion
from espalier.core.privacy.scores import Score
from espalier.core.privacy.steps import StepScore
from espalier.core.privacy.sums import SumRecipe
from espalier.core.privacy.unit import Unit
from espalier.core.project.linked import Pair

UNKNOWN_ROWS = 10_000
"""Number of rows that a rehearsal assumes if n is private. The plan's figures are for a table of this size."""


class Rehearsal(Curator):
    """A curator without rows, which spends the same budget, answers uniformly, and takes the first candidate.

    Candidates are ordered by the size of their marginals, the largest first, so a rehearsal gives a pessimistic
    estimate of a release's size. If a private choice determines the columns to measure, the draw of their counts leaves
    ``columns`` open.
    """

    takes_first = True

    def __init__(
        self,
        sizes: Mapping[str, int],
        unit: Unit,
        budget: Budget,
        rows: int | None,
        impossible: Impossible | None = None,
        *,
        held_out: bool = False,
    ) -> None:
        """``rows`` is n, or `None` if it is not known. The plan's preview checks the sizes."""
        public = rows if unit.neighbors == "replace-one" else None
        super().__init__(sizes, unit, budget, public, sys.maxsize, impossible, held_out=held_out)
        self._guess = rows or UNKNOWN_ROWS
        self._chosen = False

    def merge(self, merged: Merged) -> Merged:  # noqa: ARG002
        """Merge nothing: rare categories are unknown before a release, and a plan shows tables at their largest."""
        return {}

    def _debit(self, draws: Iterable[Draw]) -> None:
        bought = list(draws)
        super()._debit(bought)
        self._chosen |= any(draw.kind in ("choice", "scores", "gradient") for draw in bought)

    def _is_open(self, clique: Clique) -> bool:
        return self._chosen and len(clique) > 1  # later steps may depend on the choice

    def _score_rows(self) -> int | None:
        """Return n if it is public and given, otherwise a number so large that Δ reaches its limit."""
        return self.rows if self.unit.neighbors == "add-remove" or self.rows else 10**9

    def _noise_scale(self, sensitivity: float, rho: float) -> float:
        return sensitivity / math.sqrt(2 * rho if self.noise == "gaussian" else rho) if rho > 0 else 0.0

    def _choice_scale(self, sensitivity: int, rho: float) -> float:
        return sensitivity / math.sqrt(2 * rho) if rho > 0 else 0.0

    def _counts(self, cliques: Sequence[Clique], scales: Mapping[Clique, float]) -> list[NDArray[np.float64]]:  # noqa: ARG002
        shapes = [tuple(self.sizes[name] for name in clique) for clique in cliques]
        return [np.broadcast_to(np.float64(self._guess / math.prod(shape)), shape) for shape in shapes]

    def _pick(self, score: Score, candidates: Sequence[Clique], scale: float) -> Clique:  # noqa: ARG002
        return candidates[0]

    def _worst(self, recipe: WorstQuestion, scale: float) -> int:  # noqa: ARG002
        return 0

    def _best_step(self, score: StepScore, candidates: Sequence[Pair], scale: float) -> int:  # noqa: ARG002
        return 0

    def _set(self, recipe: ColumnSets, scale: float) -> int:  # noqa: ARG002
        """Return the largest set, because a plan shows tables at their largest."""
        return max(range(len(recipe.candidates)), key=lambda i: len(recipe.candidates[i]))

    def _scores(self, score: Score, cliques: Sequence[Clique], scale: float) -> NDArray[np.float64]:  # noqa: ARG002
        """Return the number of cells of each clique, because a plan shows tables at their largest."""
        return np.full(len(cliques), float(self._guess) * score.per_row(self._score_rows()))

    def _sums(self, recipe: SumRecipe, scale: float) -> NDArray[np.float64]:  # noqa: ARG002
        return np.zeros(recipe.cells)
