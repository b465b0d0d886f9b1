"""A fitted model with hidden columns that no one sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.models.graphical.junction_tree import FloatArray
from core.models.graphical.model import GraphicalModel
from core.models.graphical.sampling import Codes, Report
from core.models.graphical.size import MAX_CELLS


@dataclass(frozen=True)
class VisibleModel:
    """``inner`` over visible columns, counts and hidden states; to the outside only the ``visible`` ones and, where
    they are asked for by name, the ``counts``."""

    inner: GraphicalModel
    visible: tuple[str, ...]
    counts: tuple[str, ...]

    @property
    def sizes(self) -> Mapping[str, int]:
        """The visible columns with their numbers of categories."""
        return {name: self.inner.sizes[name] for name in self.visible}

    @property
    def total(self) -> float:
        """The number of rows."""
        return self.inner.total

    def marginal(self, clique: Sequence[str], *, max_cells: int = MAX_CELLS) -> FloatArray:
        """`GraphicalModel.marginal` of visible columns and counts. Raises ``KeyError`` for others."""
        self._known(clique)
        return self.inner.marginal(clique, max_cells=max_cells)

    def conditional(self, columns: Sequence[str], given: Sequence[str], *, max_cells: int = MAX_CELLS) -> FloatArray:
        """`GraphicalModel.conditional` of visible columns and counts. Raises ``KeyError`` for others."""
        self._known((*columns, *given))
        return self.inner.conditional(columns, given, max_cells=max_cells)

    def cmi(
        self, left: Sequence[str], right: Sequence[str], given: Sequence[str], *, max_cells: int = MAX_CELLS
    ) -> float:
        """`GraphicalModel.cmi` of visible columns and counts. Raises ``KeyError`` for others."""
        self._known((*left, *right, *given))
        return self.inner.cmi(left, right, given, max_cells=max_cells)

    def sample(
        self, n: int, rng: np.random.Generator, *, rounded: bool = False, report: Report | None = None
    ) -> dict[str, Codes]:
        """Rows of the visible columns alone."""
        rows = self.inner.sample(n, rng, rounded=rounded, report=report)
        return {name: rows[name] for name in self.visible}

    def _known(self, names: Sequence[str]) -> None:
        for name in names:
            if name not in self.visible and name not in self.counts:
                raise KeyError(f"the model has no column {name!r}")
