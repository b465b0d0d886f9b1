"""Cost of a fence: the release compared with the same plan without its fence, at the same budget. The result is not
private, because it is computed from real rows and from releases that are never delivered. It is for the curator only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from espalier.core.errors import Cancelled, EspalierError
from espalier.core.evaluation.classifier import auc, fit
from espalier.core.evaluation.dependence import cmi
from espalier.core.evaluation.fidelity import fidelity_of
from espalier.core.evaluation.quality import best_tree_quality, tree_quality
from espalier.core.evaluation.utility import target_of
from espalier.core.graph.separations import Clique, Separation
from espalier.core.methods import method_of
from espalier.core.privacy.contribution import check_fits
from espalier.core.progress import Report, silent
from espalier.core.project.file import Project
from espalier.core.release.spend import release
from espalier.core.tables.source import Source
from espalier.core.tables.table import Table

REPEATS = 3
"""Number of releases without the fence, each with its own noise."""

FIGURES = ("q", "two_way_tv", "kl", "auc", "cmi")
Figures = dict[str, float | None]


@dataclass(frozen=True)
class CostOfFence:
    """Figures of a release and of releases without its fence, computed on real rows. The figures are: q of the best
    tree of measured pairs, in rows, from exact counts; the means of TV and of KL (in nats) over pairs; the AUC of a
    model trained on the synthetic rows; and the CMI of the synthetic rows, in nats. ``without`` contains one set of
    figures for each release without the fence. ``q_best`` is the largest possible q of any tree.
    """

    method: str
    width: int
    with_fence: Figures
    without: tuple[Figures, ...]
    q_best: float
    looked_at_real_data: bool = field(default=True, init=False)

    def to_json(self) -> dict[str, Any]:
        """Return the output of ``evaluate``: means, and the range over the releases without the fence."""
        known = {f: [w[f] for w in self.without] for f in FIGURES}
        numbers = {f: [v for v in values if v is not None] for f, values in known.items()}
        return {
            "private": False,
            "method_without": self.method,
            "width": self.width,
            "repeats": len(self.without),
            "with": self.with_fence,
            "without": {f: float(np.mean(v)) if v else None for f, v in numbers.items()},
            "without_range": {f: [min(v), max(v)] for f, v in numbers.items() if v},
            "q_best": self.q_best,
            "looked_at_real_data": self.looked_at_real_data,
        }


def without_fence(project: Project) -> Project | None:
    """Return the same plan without the fence; `None` if there is no fence.

    If the method always has a fence, its counterpart without a fence replaces it.
    """
    method = method_of(project.plan)
    return project.with_plan(**method.without_fence) if method.fenced(project.plan) else None


def fence_cost(
    project: Project,
    real: Table,
    synthetic: Table,
    edges: Iterable[Clique],
    *,
    holdout: Table | None = None,
    report: Report = silent,
) -> CostOfFence | None:
    """Return the cost of the fence of ``project`` for its release of ``real``, or `None` if the plan has no fence.

    ``edges`` are the pairs inside the release's measured cliques. Models are tested on ``holdout``, or on ``real``
    without a holdout. Raises :class:`EspalierError` if the plan without the fence cannot be carried out, for example
    because it is too large, or if ``real`` does not fit the project
    (:func:`espalier.core.privacy.contribution.check_fits`).
    """
    free = without_fence(project)
    if free is None:
        return None
    check_fits(project, real, "the real table")

    def figures(table: Table, pairs: Iterable[Clique]) -> Figures:
        looks, roles, clique = fidelity_of(real, table, silent), project.roles, project.schema.clique
        fence = Separation(clique(roles.outcome), clique(roles.protected), clique(roles.admissible))
        return {
            "q": tree_quality(real, pairs),
            "two_way_tv": looks.two_way_tv,
            "kl": looks.kl,
            "auc": _auc(project, table, holdout or real),
            "cmi": cmi(table, fence).value,
        }

    report(0.0, "Judging the release")
    ours = figures(synthetic, edges)
    theirs = []
    for i in range(REPEATS):
        report((1 + i) / (1 + REPEATS), f"Releasing without the fence, for comparison ({i + 1} of {REPEATS})")
        made = release(free, real)
        theirs.append(figures(made.synthetic, made.edges))
    report(1.0, "The comparison is finished")
    width = method_of(free.plan).limits.width(free.plan)
    return CostOfFence(free.plan.method, width, ours, tuple(theirs), best_tree_quality(real))


def _auc(project: Project, table: Table, tested: Table) -> float | None:
    """Return the AUC on ``tested`` of a model trained on ``table``; `None` if either has only one target value."""
    target = target_of(project)
    if target is None or len(project.schema.columns) < 2:
        return None
    if any(len(np.unique(t.codes[target])) < 2 for t in (table, tested)):
        return None
    return auc(fit(table, target).scores(tested), tested.codes[target])


def cost_or_reason(project: Project, real: Source, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """Return the figures of `fence_cost` as ``evaluate`` prints them, or null with a reason."""
    if (table := real.in_memory) is None:
        why = (
            "this figure requires releasing the table again without the fence, from rows in memory, but the table is "
            "read in place; release from a file with fewer rows"
        )
        return {"fence_cost": None, "fence_cost_reason": why}
    try:
        cost = fence_cost(project, table, *args, **kwargs)
    except Cancelled:
        raise
    except EspalierError as error:
        return {"fence_cost": None, "fence_cost_reason": f"the plan without the fence cannot be carried out: {error}"}
    if cost is None:
        return {"fence_cost": None, "fence_cost_reason": "the plan has no fence"}
    return {"fence_cost": cost.to_json()}
