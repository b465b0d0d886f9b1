"""PRISM: spend where it helps to predict one column (Algorithm 1)."""

from __future__ import annotations

from core.graph.frame import Frame
from core.privacy.allocation import Purse
from core.privacy.curator import Curator
from core.project import Project
from core.selection.features import choose_features
from core.selection.trees import choose_tree
from core.synthesizers.base import Measured, Report, one_ways, silent

SELECTION, TASK, BACKGROUND = 0.10, 0.70, 0.20
"""Pools, as shares of the budget (§5.4). The paper's 0.05 for three-way marginals joins the task: none is measured."""


def prism(curator: Curator, project: Project, frame: Frame, report: Report = silent) -> Measured:
    """1. choose S; 2. two-way (X_j, Y) for j in S; 3. background: one-way for all and a tree over all but Y.

    S is the drawn parents (causal), the drawn blanket (graphical), or chosen privately (predictive); in the first two
    the selection pool goes to the task. The background pool pays for choosing its tree. Star and tree together have
    treewidth two. Y is linked by the task's star alone: an edge (child, Y) in the background would bring back the
    spurious link that the causal regime leaves out. Unspent shares go to the next measurement.
    """
    plan, purse = project.plan, Purse.of(project.plan, curator.budget, curator.sizes)
    target, order = plan.target or "", list(curator.sizes)

    report(0.0, "Choosing what to protect")
    if frame.features is None:
        features, spare = choose_features(
            curator, purse, SELECTION, target, frame.candidates, plan.features, "selection"
        )
    else:
        features, spare = frame.features, SELECTION
    star = [tuple(sorted((name, target), key=order.index)) for name in features]

    report(0.3, "Counting every column")
    ones = curator.measure(purse.split(BACKGROUND / 3, one_ways(curator)), "background")
    report(0.4, "Choosing the background tree")
    others = [name for name in order if name != target]
    tree, unspent = choose_tree(
        curator, purse, BACKGROUND / 3, frame.separations, ones, others, linked=star, pool="background"
    )
    background, task = BACKGROUND / 3 + unspent, TASK + spare
    if not star:
        task, background = 0.0, task + background
    elif not tree:
        task, background = task + background, 0.0
    report(0.7, "Counting the pairs")
    pairs = curator.measure(purse.split(task, star), "task")
    pairs += curator.measure(purse.split(background, tree or one_ways(curator)), "background")
    return Measured((*ones, *pairs), features)
