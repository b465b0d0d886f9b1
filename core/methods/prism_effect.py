"""PRISM's effect regime, which measures the tables that a treatment effect needs, and a background for the rest."""

from __future__ import annotations

import itertools
import math

from espalier.core.graph.separations import Clique
from espalier.core.methods.frame import Frame
from espalier.core.methods.marginals import Marginals, one_ways
from espalier.core.methods.select.allocation import BudgetSplit
from espalier.core.methods.select.expected import noisy_total
from espalier.core.methods.select.greedy_tree import Growth
from espalier.core.methods.workload import Request, measure_pairs
from espalier.core.methods.workload_weights import Workload
from espalier.core.privacy.curator import Curator
from espalier.core.progress import Report, silent
from espalier.core.project.file import Project

ONE_WAY, TASK, BACKGROUND = 0.05, 0.75, 0.20
"""Pools, as shares of the budget."""

JOINT_ROWS = 100
"""Average number of rows per cell of (treatment, target, all adjustment columns) at or above which the joint table is
measured instead of one table per column. With 167 rows both are equally good; with 22, the joint table has three times
the error.
"""

MAX_CELLS = 20_000


def effect_regime(
    curator: Curator, project: Project, frame: Frame, treatment: str, report: Report = silent
) -> Marginals:
    """Measure one-way counts, the tables (z, T, Y) for each adjustment column z (or (Z, T, Y) if it is small), the
    pairs within Z, and other pairs.

    Z is in the frame. The background's unused share is added to the task's tables.
    """
    (task,) = frame.tasks
    target, adjust = task.target, [name for name in task.features or () if name != treatment]
    budget = BudgetSplit.of(project.plan, curator.budget, curator.sizes)
    ones = curator.measure(budget.split(ONE_WAY, one_ways(curator)), "one-way")
    total = noisy_total(curator, ones)

    def clique(*names: str) -> Clique:
        return tuple(name for name in curator.sizes if name in names)

    def allowed(cliques: list[Clique]) -> bool:
        growth = Growth(tuple(curator.sizes), frame.separations)
        return growth.link_all([pair for q in cliques for pair in itertools.combinations(q, 2)])

    whole = clique(treatment, target, *adjust)
    cells = math.prod(curator.sizes[name] for name in whole)
    small = cells <= min(total / JOINT_ROWS, project.plan.max_cells) and allowed([whole])
    wanted = [whole] if small or not adjust else [clique(name, treatment, target) for name in adjust]
    report(0.2, "Counting treatment and target with the adjustment columns")
    tables = curator.measure(budget.split(TASK, wanted), "effect")

    report(0.4, "Counting the background")
    within = [] if small else [clique(*pair) for pair in itertools.combinations(adjust, 2)]
    within = [pair for pair in within if allowed([*wanted, pair])]
    share = BACKGROUND
    if within and allowed([*wanted, *within]):
        tables += curator.measure(budget.split(BACKGROUND / 2, within), "background")
        share = BACKGROUND / 2
    others = Workload({target: 0.0}, max_cells=min(MAX_CELLS, project.plan.max_cells))
    last, left = measure_pairs(Request(curator, budget, frame.separations, others, report), share, ones, tables)
    last += curator.measure(budget.split(left, wanted), "effect")
    return Marginals.of(curator, [*ones, *tables, *last], features=task.features or ())
