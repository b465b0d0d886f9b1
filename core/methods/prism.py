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
from core.methods.select.cliques import MAX_CELLS, rounds
from core.methods.select.expected import by_model, given_target, noisy_total
from core.methods.select.features import choose_features, fit_features, suggested
from core.methods.select.pairs import choose_pairs, choose_triples
from core.methods.select.spanning import Growth, choose_tree
from core.methods.select.usefulness import expected_noise, how_many, useful_cells
from core.privacy.curator import Curator
from core.privacy.draws import Measurement, ScoreMeasurement
from core.privacy.scores import ConditionalScore, EdgeScore
from core.progress import Report, silent
from core.project.file import Project
from core.project.options import read_options

SELECTION, PAIRS, TASK, BACKGROUND = 0.10, 0.05, 0.65, 0.20
"""Pools, as shares of the budget (§5.4): choosing S, choosing pairs, counting with the target, the rest."""

ONE_WAY = BACKGROUND / 4
"""What of it goes to the one-way counts, a pool of their own; the rest goes to pairs."""

WIDTH = 3
"""Largest clique of the background, minus one. With exact counts of Adult a tree gives AUC 0.881, width two 0.889,
width three 0.891 and the real rows 0.892."""

CAUTION = 2.0
"""How many times its expected noise a pair of the tree should err. The tree is taken whole, so at a small ε its last
pairs bring more noise than they tell: at ε = 0.2 on Adult 2 instead of 1 is worth 0.004 AUC."""


def prism(curator: Curator, project: Project, frame: Frame, report: Report = silent) -> Marginals:
    """1. S; 2. (X, Y) for X in S, (X, X', Y) for some, (X_S, Y) if small; 3. one-way, a tree and further pairs.

    S is the drawn parents (causal), the drawn blanket (graphical), or chosen privately (predictive); in the first two
    the selection pool goes to the task. Y is linked by the task alone: an edge (child, Y) in the background would
    bring back the spurious link that the causal regime leaves out. Unspent shares go to the next measurement. Several
    targets divide the selection and task pools by their weights; tables of more than two columns are the first one's.
    """
    plan, options = project.plan, read_options(PrismOptions, project.plan.options)
    budget = BudgetSplit.of(plan, curator.budget, curator.sizes)
    whole = sum(task.weight for task in frame.tasks)

    report(0.0, "Choosing what to protect")
    chosen, shares, spare = [], [], 0.0
    for task in frame.tasks:
        part = task.weight / whole
        features, left = _features(curator, budget, options, task, part)
        chosen.append(features)
        shares.append(TASK * part + left if features else 0.0)
        spare += 0.0 if features else TASK * part + left

    report(0.2, "Choosing what to count with the target")
    target, features, share = frame.tasks[0].target, chosen[0], shares[0]
    star = _star(curator, features, target)
    joint = _joint(curator, budget, share, plan.max_cells, frame, features, target)
    plain = [name for name in features if name not in plan.weights]
    choice = PAIRS / 2 if options.three_way and not joint else 0.0
    triples, bought, unspent = _three_way(curator, budget, share, choice, options.three_way, frame, plain, target)
    importance = [*[1.0] * len(star), *_weights(bought), *[float(len(features))] * len(joint)]
    ones = curator.measure(budget.split(ONE_WAY, one_ways(curator)), "one-way")
    tables = curator.measure(budget.split(share, [*star, *triples, *joint], importance), "task")
    for task, features, share in zip(frame.tasks[1:], chosen[1:], shares[1:], strict=True):
        tables += curator.measure(budget.split(share, _star(curator, features, task.target)), f"task: {task.target}")

    report(0.4, "Choosing the background")
    pools = PAIRS - choice + unspent, BACKGROUND - ONE_WAY + spare
    last = _background(curator, project, budget, frame, pools, ones, tables, report)
    found = tuple(n for n in curator.sizes if any(n in s for s in chosen))
    return Marginals.of(
        curator, [*ones, *tables, *last], features=found, associations=() if bought is None else (bought,)
    )


def _features(
    curator: Curator, budget: BudgetSplit, options: PrismOptions, task: Task, part: float
) -> tuple[tuple[str, ...], float]:
    """S of one target, which has ``part`` of the pools, and what it leaves of its selection pool."""
    if task.features is not None:
        return task.features, SELECTION * part
    k = options.features or suggested(curator, budget, TASK * part, task.target, task.candidates)
    choose = fit_features if options.selector == "logistic" else choose_features
    return choose(curator, budget, SELECTION * part, task.target, task.candidates, k, "selection")


def _star(curator: Curator, features: Sequence[str], target: str) -> list[Clique]:
    return [_clique(curator, name, target) for name in features]


def _joint(
    curator: Curator, budget: BudgetSplit, share: float, most: int, frame: Frame, features: Sequence[str], target: str
) -> list[Clique]:
    """(X_S, Y), if with its weight |S| among the pairs' |S| it would be useful: from public quantities only."""
    whole = _clique(curator, *features, target)
    cells = math.prod(curator.sizes[name] for name in whole)
    others = {task.target for task in frame.tasks[1:]}
    if len(features) < 2 or others & set(features) or cells > min(most, useful_cells(curator, budget, share / 2)):
        return []
    growth = Growth(tuple(curator.sizes), frame.separations)
    try:
        for pair in itertools.combinations(whole, 2):
            growth.link(pair)
    except ValueError:  # the fence keeps two of the features apart
        return []
    return [whole]


def _three_way(
    curator: Curator,
    budget: BudgetSplit,
    share: float,
    choice: float,
    most: int,
    frame: Frame,
    features: Sequence[str],
    target: str,
) -> tuple[list[Clique], ScoreMeasurement | None, float]:
    """At most ``most`` tables (X, X', Y), the noisy association given Y of each, what is unspent."""
    if not choice or len(features) < 2:
        return [], None, choice
    cells = useful_cells(curator, budget, share / (len(features) + most))
    triples, unspent = choose_triples(
        curator, budget, 0.8 * choice, frame.separations, target, features, most, cells, "pair choice"
    )
    if not triples:
        return [], None, choice
    (rho,) = budget.split(0.2 * choice, [(target,)]).values()
    what = f"association given the target of {len(triples)} three-way tables (their weights)"
    return triples, curator.measure_scores(ConditionalScore(target), triples, rho, what, "pair choice"), unspent


def _weights(bought: ScoreMeasurement | None) -> list[float]:
    """The weights of three-way tables: their association given the target, scaled to mean 1."""
    if bought is None:
        return []
    values = np.maximum(bought.values, 1.0)
    weights: list[float] = (values / values.mean()).tolist()
    return weights


def _background(
    curator: Curator,
    project: Project,
    budget: BudgetSplit,
    frame: Frame,
    pools: tuple[float, float],
    ones: Sequence[Measurement],
    task: Sequence[Measurement],
    report: Report,
) -> list[Measurement]:
    """A tree over all columns but the target, then further pairs; ``pools`` pay for the choices and for the counts.

    The tree is chosen by what the star does not explain, the further pairs by how far the model fitted so far errs,
    both less the noise that counting them would bring. How many further pairs is decided from public quantities.
    """
    (choice, count), sizes, target = pools, curator.sizes, project.plan.target or ""
    targets = project.plan.weights
    others = [name for name in sizes if name not in targets and sizes[name] > 1]
    star = list(dict.fromkeys(m.clique for m in task if len(m.clique) == 2))
    inner = [tuple(name for name in m.clique if name in others) for m in task if len(m.clique) > 2]
    joined, known = _spanning(inner), [*star, *clique_edges(inner)]
    links = len(others) - 1 - len(joined)
    if links < 1:
        return curator.measure(
            budget.split(choice + count, [m.clique for m in task] or one_ways(curator)), "background"
        )
    cells = sorted(sizes[a] * sizes[b] for a, b in itertools.combinations(others, 2))
    room = max(0, rounds(len(others), WIDTH) - len(set(clique_edges(inner))) + len(joined))
    extra = how_many(curator, budget, count, cells[len(cells) // 2], room, links)
    total, each = noisy_total(curator, ones), count / (links + extra)
    noise = expected_noise(curator, budget, each)

    pairs = [m for m in task if len(m.clique) == 2 and target in m.clique]
    score = EdgeScore(given_target(pairs, target, ones, total), CAUTION * noise)
    tree, unspent = choose_tree(
        curator,
        budget,
        choice * links / (links + extra),
        frame.separations,
        score,
        others,
        known,
        joined,
        "pair choice",
    )
    left = choice * extra / (links + extra) + unspent + count
    if not extra or not tree:
        return curator.measure(budget.split(left, tree or star or one_ways(curator)), "background")

    report(0.6, "Counting the background's tree")
    counted = curator.measure(budget.split(each * len(tree), tree), "background")
    score = EdgeScore(by_model(curator, [*ones, *task, *counted]), noise)
    room_for = min(MAX_CELLS, project.plan.max_cells) // math.prod(sizes[name] for name in targets)
    pool = choice * extra / (links + extra)
    further, unspent = choose_pairs(
        curator, budget, pool, frame.separations, score, [*inner, *tree], star, others, extra, WIDTH, room_for,
        "pair choice",
    )  # fmt: skip
    report(0.9, "Counting the background's further pairs")
    more = curator.measure(budget.split(each * len(further), further), "background")
    left += unspent - pool - each * (len(tree) + len(further))
    return [*counted, *more, *curator.measure(budget.split(left, star or tree), "task" if star else "background")]


def _spanning(cliques: Sequence[Clique]) -> list[Clique]:
    """Pairs that link what the cliques link, without a loop (the cliques themselves form no loop)."""
    return [pair for clique in cliques for pair in itertools.pairwise(clique)]


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
