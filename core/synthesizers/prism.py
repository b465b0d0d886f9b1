"""PRISM: spend where it helps to predict one column (Algorithm 1)."""

from __future__ import annotations

import math

from core.graph.frame import Frame
from core.privacy.allocation import Purse
from core.privacy.curator import Curator
from core.privacy.scores import EdgeScore
from core.project import Project
from core.selection.expected import given_target, noisy_total
from core.selection.features import choose_features
from core.selection.trees import choose_tree
from core.synthesizers.base import Measured, Report, one_ways, silent

SELECTION, TASK, BACKGROUND = 0.10, 0.70, 0.20
"""Pools, as shares of the budget (§5.4). The paper's 0.05 for three-way marginals joins the task: none is measured."""


def prism(curator: Curator, project: Project, frame: Frame, report: Report = silent) -> Measured:
    """1. choose S; 2. two-way (X_j, Y) for j in S; 3. background: one-way for all and a tree over all but Y.

    S is the drawn parents (causal), the drawn blanket (graphical), or chosen privately (predictive); in the first two
    the selection pool goes to the task. The background pool pays for choosing its tree, by how far a pair is from what
    the star already explains, less the noise it would bring (measuring large weak pairs costs AUC: at ε = 0.2 on Adult
    the penalty is worth 0.015). Star and tree together have treewidth two. Y is linked by the star alone: an edge
    (child, Y) in the background would bring back the spurious link that the causal regime leaves out. Unspent shares
    go to the next measurement.
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
    task = TASK + spare if star else 0.0
    pairs = curator.measure(purse.split(task, star), "task")

    report(0.5, "Choosing the background tree")
    others = [name for name in order if name != target]
    expected = given_target(pairs, target, ones, noisy_total(curator, ones))
    score = EdgeScore(expected, _expected_noise(curator, purse, BACKGROUND / 3 / max(1, len(others) - 1)))
    tree, unspent = choose_tree(
        curator, purse, BACKGROUND / 3, frame.separations, score, others, linked=star, pool="background"
    )
    rest = BACKGROUND / 3 + unspent + (TASK + spare - task)
    report(0.8, "Counting the background's pairs")
    last = curator.measure(purse.split(rest, tree or star or one_ways(curator)), "background")
    return Measured((*ones, *pairs, *last), features)


def _expected_noise(curator: Curator, purse: Purse, share: float) -> float:
    """Expected absolute error, in rows per cell, of a measurement that gets ``share`` of the budget: σ√(2/π)."""
    (rho,) = purse.split(share, one_ways(curator)[:1]).values()
    return curator.unit.count_sensitivity / math.sqrt(2 * rho) * math.sqrt(2 / math.pi)
