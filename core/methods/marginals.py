"""Common part of methods that measure marginals: the answers, and the graphical model fitted to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from espalier.core.graph.separations import Clique, clique_edges
from espalier.core.methods.select.refused_pairs import fence_cost_of
from espalier.core.methods.select.scored_tree import ScoredTree
from espalier.core.models.graphical import (
    GraphicalModel,
    Size,
    Zeros,
    believed,
    check_size,
    estimate,
    refine,
    smoothing_for,
)
from espalier.core.privacy.curator import Curator
from espalier.core.privacy.draws import Measurement, Merged, ScoreMeasurement
from espalier.core.progress import Report, silent
from espalier.core.project.file import Project

TREE_CHOICE = "tree choice"
"""Pool that pays for choosing a tree."""
WEIGHTS = "weights"
"""Pool that pays for noisy associations that serve only as weights in an allocation."""


@runtime_checkable
class CountsInPart(Protocol):
    """A fit with a model that was trained on more than counts."""

    @property
    def told(self) -> Marginals:
        """The counts alone."""
        ...


@dataclass(frozen=True)
class Marginals:
    """Noisy counts of cliques, and scores that were bought in addition. ``sizes`` are the numbers of categories of all
    columns; ``counted`` are the numbers of categories in the counts, which are over groups of categories if ``merged``
    is not empty. ``rows`` is the number of rows if it is public. ``explained`` are the scores that were bought to
    report the cost of the fence: first the scores of the tree's edges, then the scores of the pairs that the frame
    refused. ``scores`` are all bought vectors of scores, including these. ``impossible`` are the cells that no row may
    be in, by clique: constraints of the model in addition to the counts. ``shrunk``: the model shrinks each pair's
    association by the part that noise explains (`espalier.core.models.graphical.shrinkage`), after smoothing the counts
    of pairs along the values of the ``ordered`` columns, given with their numbers of values. A model that is fitted
    together with questions does not shrink. ``best_tree`` is the tree found from scores bought for this purpose.
    """

    sizes: Mapping[str, int]
    counted: Mapping[str, int]
    rows: int | None
    measurements: tuple[Measurement, ...]
    features: tuple[str, ...] = ()
    merged: Merged = field(default_factory=dict)
    explained: ScoreMeasurement | None = None
    scores: tuple[ScoreMeasurement, ...] = ()
    impossible: Mapping[Clique, NDArray[np.bool_]] = field(default_factory=dict)
    shrunk: bool = False
    best_tree: ScoredTree | None = None
    ordered: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, curator: Curator, measurements: list[Measurement], **more: Any) -> Marginals:
        """Return the marginals from the ``measurements`` of ``curator``; ``more`` are the other fields."""
        return cls(
            curator.whole,
            curator.sizes,
            curator.rows,
            tuple(measurements),
            scores=tuple(curator.scored),
            impossible=curator.impossible,
            **more,
        )

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """Measured cliques, without repetition."""
        return tuple(dict.fromkeys(m.clique for m in self.measurements))

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Pairs inside measured cliques and constraints, without fill-in. The model is Markov with respect to the graph
        of these pairs.
        """
        return clique_edges((*self.cliques, *self.impossible))

    @property
    def smoothed(self) -> bool:
        """True if the model smooths counts along ordered columns."""
        return self.shrunk and any(len(q) == 2 and not self.ordered.keys().isdisjoint(q) for q in self.cliques)

    def size(self, max_cells: int, further: tuple[Clique, ...] = ()) -> Size:
        """Return the cost of the junction tree; raises :class:`SizeError` if a clique has more than ``max_cells``."""
        return check_size(self.sizes, (*self.cliques, *self.impossible, *further), max_cells=max_cells)

    def model(self, report: Report = silent) -> GraphicalModel:
        """Return the model whose marginals fit the counts best, by `espalier.core.models.graphical.estimation`."""
        total = None if self.rows is None else float(self.rows)
        smoothing = smoothing_for(self.measurements, total)
        zeros = [Zeros(q, mask) for q, mask in self.impossible.items()]
        fitted = estimate(self.counted, self.measurements, total, zeros=zeros, smoothing=smoothing, report=report)
        if self.shrunk:
            held = {name for clique in self.impossible for name in clique}
            ordered = {name: span for name, span in self.ordered.items() if name not in held}
            given, smoothing, before = believed(fitted, self.measurements, smoothing, ordered)
            again = estimate(self.counted, given, fitted.total, zeros=zeros, start=fitted, smoothing=smoothing)
            both = again.fit.converged and fitted.fit.converged
            said = f"{again.fit.criterion}, after a first fit that estimates how much of each association is noise"
            fitted = replace(again, fit=replace(again.fit, converged=both, criterion=said), first=before)
        return refine(fitted, self.sizes, self.merged) if self.merged else fitted

    def facts(self, project: Project) -> dict[str, Any]:
        """Return the entries that not all plans have: scores of refused pairs, errors of pairs, weights, merged
        categories.
        """
        out: dict[str, Any] = {}
        if (bought := self.explained) is not None:
            tree = [e for e in bought.cliques if e in self.cliques]
            cost = fence_cost_of(bought, tree)
            scores = sorted(zip(bought.cliques, bought.values.tolist(), strict=True), key=lambda x: -x[1])
            out["explained"] = {
                "refused": [{"columns": list(q), "score": v} for q, v in scores if q not in tree],
                "tree": [{"columns": list(q), "score": v} for q, v in scores if q in tree],
                "sigma": bought.sigma,
                "sensitivity": bought.sensitivity,
                "rho": bought.rho,
                "q": {
                    "tree": cost.tree,
                    "free": cost.free,
                    "given_up": cost.free - cost.tree,
                    "sigma": cost.noise,
                    "would_join": [list(q) for q in cost.swaps],
                },
            }
        if self.best_tree:
            out["best_tree"] = self.best_tree.to_json()
            out["method_notes"] = [self.best_tree.sentence]
        others = [x for x in self.scores if x is not bought and x.pool != TREE_CHOICE]
        if errors := [x for x in others if x.pool != WEIGHTS and any(len(q) == 2 for q in x.cliques)]:
            out["errors"] = [
                {"columns": list(q), "round": i, "error": v, "sigma": x.sigma}
                for i, x in enumerate(errors, 1)
                for q, v in zip(x.cliques, x.values.tolist(), strict=True)
            ]
        if weights := [x for x in others if x.pool == WEIGHTS or all(len(q) != 2 for q in x.cliques)]:
            out["associations"] = [
                {"columns": list(q), "score": v, "sigma": x.sigma}
                for x in weights
                for q, v in zip(x.cliques, x.values.tolist(), strict=True)
            ]
        if self.merged:
            out["merged"] = {
                name: [
                    c
                    for c, g in zip(project.schema[name].labels, groups.tolist(), strict=True)
                    if g == int(groups.max())
                ]
                for name, groups in self.merged.items()
            }
        return out


def one_ways(curator: Curator) -> list[Clique]:
    """Return all one-way cliques."""
    return [(name,) for name in curator.sizes]
