"""PRISM: spend where it helps to predict one column (Algorithm 1)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from core.graph.separations import Clique, clique_edges
from core.methods.base import Method
from core.methods.frame import Frame, Task
from core.methods.marginals import Marginals, one_ways
from core.methods.prism_frame import PrismOptions, advice, frame_of_prism, largest
from core.methods.select.allocation import BudgetSplit
from core.methods.select.expected import noisy_total
from core.methods.select.features import choose_features, fit_features, suggested
from core.methods.select.pairs import choose_triples
from core.methods.select.spanning import Growth
from core.methods.select.usefulness import expected_noise, useful_cells
from core.methods.workload import Workload, measure_pairs
from core.privacy.curator import Curator
from core.privacy.draws import Measurement
from core.privacy.scores import ConditionalScore
from core.progress import Report, silent
from core.project.file import Project
from core.project.options import read_options

ONE_WAY, SELECTION, TASK, BACKGROUND = 0.05, 0.10, 0.55, 0.30
"""Pools, as shares of the budget (§5.4): one-way counts, choosing S, counting with the target, the rest with its own
choices. Where S takes all columns nothing is chosen, and the task gets that share too."""

TRIPLES = 0.025
"""What choosing three-way tables costs, out of the background's share."""

SIGNAL = 10.0
"""Rows of the target's rarer value per value of a feature, over the noise in a cell, below which no background is
counted. A background makes features correlated, and a regression on correlated features magnifies the noise of their
counts with the target; below this it costs more AUC than it brings (diabetes at ε = 0.2: about 8, 0.61 against the
star's 0.63; Adult at ε = 0.2: about 13, 0.880 against 0.878)."""

QUIET_ONE_WAY = 0.10
"""What the one-way counts get beside `ONE_WAY` where no background is counted: they are then most of the error."""

MAX_CELLS = 20_000
"""Cells of the largest clique of the background, the targets included."""


def prism(curator: Curator, project: Project, frame: Frame, report: Report = silent) -> Marginals:
    """1. S; 2. (X, Y) for X in S, (X, X', Y) for some, (X_S, Y) if small; 3. one-way and a background.

    S is the drawn parents (causal), the drawn blanket (graphical), or chosen privately (predictive); in the first two
    the selection pool goes to the task. Y is linked by the task alone: an edge (child, Y) in the background would
    bring back the spurious link that the causal regime leaves out. Unspent shares go to the next measurement. Several
    targets divide the selection and task pools by their weights; each has its own S, three-way and joint tables. The
    background is that of the workload method: all pairs but those with a target, against what the task explains.
    """
    plan, options = project.plan, read_options(PrismOptions, project.plan.options)
    budget = BudgetSplit.of(plan, curator.budget, curator.sizes)
    whole = sum(task.weight for task in frame.tasks)
    ones = curator.measure(budget.split(ONE_WAY, one_ways(curator)), "one-way")
    total = noisy_total(curator, ones)

    report(0.05, "Choosing what to protect")
    growth = Growth(tuple(curator.sizes), frame.separations)
    target = frame.tasks[0].target
    loud = _signal(curator, budget, ones, total, target) >= SIGNAL
    counts = TASK if loud else TASK + BACKGROUND - QUIET_ONE_WAY
    if not loud:
        ones += curator.measure(budget.split(QUIET_ONE_WAY, one_ways(curator)), "one-way")
    chosen, parts, spare = [], [], 0.0
    for task in frame.tasks:
        part = task.weight / whole
        features, left = _features(curator, budget, options, task, part, growth, total)
        chosen.append(features)
        parts.append(counts * part + left if features else 0.0)
        spare += 0.0 if features else counts * part + left

    report(0.2, "Choosing what to count with the target")
    tables: list[Measurement] = []
    choice = 0.0
    for task, features, share in zip(frame.tasks, chosen, parts, strict=True):
        pool = "task" if task is frame.tasks[0] else f"task: {task.target}"
        linked = [*itertools.chain(*(_star(curator, s, t.target) for s, t in zip(chosen, frame.tasks, strict=True)))]
        linked += clique_edges([m.clique for m in tables])
        most = TRIPLES * task.weight / whole if options.three_way and loud else 0.0
        made, spent = _task(curator, budget, share, most, project, frame, task, features, linked, total, pool)
        tables += made
        choice += spent

    report(0.4, "Choosing the background")
    wanted = Workload(dict.fromkeys(plan.weights, 0.0), max_cells=min(MAX_CELLS, plan.max_cells))
    share = (BACKGROUND if loud else 0.0) - choice + spare
    last, left = list[Measurement](), share
    if share > BACKGROUND / 2:
        last, left = measure_pairs(curator, budget, share, ones, tables, frame.separations, wanted, report)
    last += curator.measure(budget.split(left, [m.clique for m in tables] or one_ways(curator)), "background")
    found = tuple(n for n in curator.sizes if any(n in s for s in chosen))
    return Marginals.of(curator, [*ones, *tables, *last], features=found)


def _signal(curator: Curator, budget: BudgetSplit, ones: Sequence[Measurement], total: float, target: str) -> float:
    """Rows of the rarer values of ``target`` in a cell of a middling feature, over the noise if all are counted."""
    sizes = sorted(size for name, size in curator.sizes.items() if name != target and size > 1)
    (alone,) = [m.values for m in ones if m.clique == (target,)]
    if not sizes or len(alone) < 2:
        return math.inf
    rarer = (total - float(alone.max())) / (len(alone) - 1)
    noise = expected_noise(curator, budget, (TASK + SELECTION) / len(sizes))
    return max(0.0, rarer) / sizes[len(sizes) // 2] / noise


def _features(
    curator: Curator, budget: BudgetSplit, options: PrismOptions, task: Task, part: float, growth: Growth, total: float
) -> tuple[tuple[str, ...], float]:
    """S of one target, which has ``part`` of the pools, and what it leaves of its selection pool."""
    if task.features is not None:
        for name in task.features:
            growth.link((name, task.target))
        return task.features, SELECTION * part
    k = options.features or suggested(curator, budget, TASK * part, task.target, task.candidates, total)
    choose = fit_features if options.selector == "logistic" else choose_features
    return choose(curator, budget, SELECTION * part, task.target, task.candidates, k, growth, "selection")


def _task(
    curator: Curator,
    budget: BudgetSplit,
    share: float,
    choice: float,
    project: Project,
    frame: Frame,
    task: Task,
    features: tuple[str, ...],
    linked: Sequence[Clique],
    total: float,
    pool: str,
) -> tuple[list[Measurement], float]:
    """What is counted with one target for ``share``, and what of ``choice`` was spent to choose three-way tables."""
    plan, options = project.plan, read_options(PrismOptions, project.plan.options)
    star = _star(curator, features, task.target)
    joint = _joint(curator, budget, share, plan.max_cells, frame, features, task, linked, total)
    plain = [name for name in features if name not in plan.weights]
    if joint:
        choice = 0.0
    triples, weights, unspent = _three_way(
        curator, budget, share, choice, options.three_way, frame, plain, task.target, linked, total
    )
    importance = [*[1.0] * len(star), *weights, *[float(len(features))] * len(joint)]
    return curator.measure(budget.split(share, [*star, *triples, *joint], importance), pool), choice - unspent


def _star(curator: Curator, features: Sequence[str], target: str) -> list[Clique]:
    return [_clique(curator, name, target) for name in features]


def _joint(
    curator: Curator,
    budget: BudgetSplit,
    share: float,
    most: int,
    frame: Frame,
    features: Sequence[str],
    task: Task,
    linked: Sequence[Clique],
    total: float,
) -> list[Clique]:
    """(X_S, Y), if with its weight |S| among the pairs' |S| it would be useful: from public and paid-for quantities."""
    whole = _clique(curator, *features, task.target)
    cells = math.prod(curator.sizes[name] for name in whole)
    others = {other.target for other in frame.tasks} - {task.target}
    if (
        len(features) < 2
        or others & set(features)
        or cells > min(most, useful_cells(curator, budget, share / 2, total))
    ):
        return []
    growth = Growth(tuple(curator.sizes), frame.separations)
    return [whole] if growth.link_all([*linked, *itertools.combinations(whole, 2)]) else []


def _three_way(
    curator: Curator,
    budget: BudgetSplit,
    share: float,
    choice: float,
    most: int,
    frame: Frame,
    features: Sequence[str],
    target: str,
    linked: Sequence[Clique],
    total: float,
) -> tuple[list[Clique], list[float], float]:
    """At most ``most`` tables (X, X', Y), their weights (association given Y, scaled to mean 1), what is unspent."""
    if not choice or len(features) < 2:
        return [], [], choice
    cells = useful_cells(curator, budget, share / (len(features) + most), total)
    triples, unspent = choose_triples(
        curator, budget, 0.8 * choice, frame.separations, target, features, most, cells, linked, "pair choice"
    )
    if not triples:
        return [], [], choice
    (rho,) = budget.split(0.2 * choice, [(target,)]).values()
    what = f"association given the target of {len(triples)} three-way tables (their weights)"
    values = np.maximum(curator.measure_scores(ConditionalScore(target), triples, rho, what, "pair choice").values, 1.0)
    return triples, (values / values.mean()).tolist(), unspent


def _clique(curator: Curator, *names: str) -> Clique:
    return tuple(name for name in curator.sizes if name in names)


PRISM = Method(
    name="prism",
    title="PRISM",
    summary="most of the budget goes to what predicts one column",
    when="Choose it where one outcome matters most.",
    fit=prism,
    questions="beside",
    options=PrismOptions,
    frame=frame_of_prism,
    largest=largest,
    targets=True,
    advice=advice,
)
