"""A fitted model with hidden columns."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from espalier.core.errors import DAMAGED, EspalierError
from espalier.core.graph.junction_tree import MAX_CELLS, FloatArray
from espalier.core.graph.separations import Separation
from espalier.core.models.base import Answer
from espalier.core.models.graphical.model import GraphicalModel
from espalier.core.models.graphical.sampling import Codes
from espalier.core.models.question_fit.projection import Certificate
from espalier.core.progress import Report

_NAMES = "visible"
"""Name of the array in a model's file that lists the visible columns."""


@dataclass(frozen=True)
class VisibleModel:
    """``inner`` covers visible columns, counts and hidden states. Callers see only the ``visible`` columns and, by
    name, the ``counts``.

    ``links`` are the pairs of visible columns that the model links: pairs inside measured cliques, and pairs within one
    question or one count. A hidden state is a function of visible columns of one question, so the distribution over
    visible columns is exactly Markov with respect to these pairs. ``fitted`` are the answers to directly asked
    questions in rows, by name. ``certificate`` is the bound for any table, and ``projected`` are the answers of the
    closest table. These three are written to release.json, but not to the model's file.
    """

    inner: GraphicalModel
    visible: tuple[str, ...]
    counts: tuple[str, ...]
    links: tuple[tuple[str, str], ...] = ()
    fitted: Mapping[str, float] = field(default_factory=dict)
    certificate: Certificate | None = None
    projected: Mapping[str, float] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the model draws, in schema order."""
        return self.visible

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Pairs of visible columns that the model links."""
        return self.links

    @property
    def sizes(self) -> Mapping[str, int]:
        """Visible columns with their numbers of categories."""
        return {name: self.inner.sizes[name] for name in self.visible}

    @property
    def total(self) -> float:
        """Number of rows."""
        return self.inner.total

    def answers(self, separation: Separation) -> Answer:
        """Return ``exact`` if the graph of the model's links respects ``separation``."""
        return "exact" if separation.holds(self.links) else "not promised"

    def facts(self) -> dict[str, Any]:
        """Return the outcome of the fit for release.json."""
        return self.inner.facts()

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
        self, rows: int, rng: np.random.Generator, *, even: bool = False, report: Report | None = None
    ) -> dict[str, Codes]:
        """Draw rows of the visible columns."""
        drawn = self.inner.sample(rows, rng, even=even, report=report)
        return {name: drawn[name] for name in self.visible}

    def dumps(self) -> bytes:
        """Return the inner model's file, with the names of the visible columns added."""
        with np.load(io.BytesIO(self.inner.dumps()), allow_pickle=False) as file:
            arrays: dict[str, NDArray[Any]] = dict(file)
        names = json.dumps({"visible": self.visible, "counts": self.counts, "links": self.links})
        out = io.BytesIO()
        np.savez_compressed(
            out, allow_pickle=False, **{**arrays, _NAMES: np.frombuffer(names.encode(), dtype=np.uint8)}
        )
        return out.getvalue()

    def _known(self, names: Sequence[str]) -> None:
        for name in names:
            if name not in self.visible and name not in self.counts:
                raise KeyError(f"the model has no column {name!r}")


def loads(data: bytes) -> GraphicalModel | VisibleModel:
    """Read a file written by ``dumps`` of this model or of `GraphicalModel`. Raises `EspalierError` for anything
    else."""
    inner = GraphicalModel.loads(data)
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        if _NAMES not in file:
            return inner
        try:
            names = json.loads(file[_NAMES].tobytes())
            visible, counts = tuple(map(str, names["visible"])), tuple(map(str, names["counts"]))
            links = tuple((str(a), str(b)) for a, b in names["links"])
        except DAMAGED as error:
            raise EspalierError("This is not a model saved by Espalier.") from error
    if not {*visible, *counts} <= set(inner.sizes):
        raise EspalierError("This is not a model saved by Espalier.")
    return VisibleModel(inner, visible, counts, links)
