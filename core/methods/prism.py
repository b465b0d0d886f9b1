"""PRISM: spend the budget where it helps to predict one column (Algorithm 1)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from espalier.core.graph.separations import Clique, clique_edges
from espalier.core.methods.base import Capabilities, Guidance, Limits, Method, Purpose
from espalier.core.methods.frame import Frame, Task
from espalier.core.methods.marginals import WEIGHTS, Marginals, one_ways
from espalier.core.methods.prism_effect import effect_regime
from espalier.core.methods.prism_frame import (
    PrismOptions,
    advice,
    arrows,
    causes_only,
    counts_with,
    effect_of,
    frame_of_prism,
    largest,
)
from espalier.core.methods.prism_pools import Pools, pools_of
from espalier.core.methods.select.allocation import BudgetSplit, Choices
from espalier.core.methods.select.constrained import fits, trunk
from espalier.core.methods.select.expected import noisy_total
from espalier.core.methods.select.feature_subset import choose_features, fit_features, suggested
from espalier.core.methods.select.greedy_tree import Growth
from espalier.core.methods.select.pairs import choose_triples
from espalier.core.methods.select.usefulness import expected_noise, useful_cells
from espalier.core.methods.workload import Request, measure_pairs, most_cells
from espalier.core.methods.workload_weights import Workload
from espalier.core.models.graphical import ordered_values
from espalier.core.privacy.curator import Curator
from espalier.core.privacy.draws import Measurement
from espalier.core.privacy.scores import ConditionalScore, FeatureScore
from espalier.core.progress import Report, silent
from espalier.core.project.file import Project
from espalier.core.project.options import read_options

ONE_WAY, SELECTION, TASK, BACKGROUND = 0.05, 0.10, 0.55, 0.30
"""Pools, as shares of the budget (§5.4): one-way counts, choosing S, counts with the target, and the background
including its own choices. If S contains all columns, nothing is chosen, and the task also gets the share for choosing
S. The task also gets the share that `CLEAR` takes from the background.
"""

FITS = 4
"""Number of intermediate models, for the planned time: two for the background, and two for shrinkage in the last fit.
On 18 tables at ε = 0.2 to 3, a release took 0.2 to 3.3 times the planned time."""

TRIPLES = 0.025
"""Share of the budget for choosing three-way tables, taken from the background's share."""

FOR_WEIGHTS = 0.05
"""Share of the budget for weights of the target's pairs (§5.4: ε_mi), taken from the task's share."""

CLEAR = 45.0
"""Signal at or above which the background gets its full share. Below this value, it gets proportionally less, but no
less than the one-way counts, and the task gets the rest. The signal is the number of rows of the target's rarer value
per value of a feature, divided by the noise in a cell. A background makes features correlated, and a regression on
correlated features magnifies the noise of their counts with the target. The differences from the star's AUC, over 50
pairs of runs and for the values 30, 45 and 60, are: COMPAS at ε = 0.5 (signal about 22) −0.0024, −0.0016 and −0.0011,
at 1 (about 42) −0.0030, −0.0024 and −0.0020 (each ± 0.0009); over eight pairs, Adult at 0.5 (about 33) + 0.0073, +
0.0064 and + 0.0046 (± 0.0009).
"""

CHEAP = 0.4
"""The background is measured if a typical pair's expected TV error is at most this value. Small tables benefit greatly
from a background: with an error of 0.03 (asia, 3,000 rows, ε = 2) two-way TV falls from 0.031 to 0.009, with 0.05
(alarm, 8,000 rows, ε = 2) from 0.040 to 0.022, with 0.12 (diabetes, 8,000 rows, ε = 2) from 0.048 to 0.043, with 0.24
(child, 5,000 rows, ε = 0.5) from 0.085 to 0.082; with 0.5 it does not change. Without a background, single columns are
measured a second time. If S then contains all columns, the model is the star: a tenth of the budget for one-way counts,
the rest for the pairs with the target. A larger share for single columns lowers the AUC (with 0.15, COMPAS at ε = 0.2
has 0.004 ± 0.003 less than the star, paired over thirty splits).
"""

MAX_CELLS = 20_000
"""Number of cells in the background's largest clique, including the targets."""


@dataclass(frozen=True)
class _Run:
    """Arguments shared by all steps of a fit; ``total`` is n or a noisy total that was paid for."""

    curator: Curator
    budget: BudgetSplit
    project: Project
    frame: Frame
    options: PrismOptions
    total: float
    pools: Pools

    def clique(self, *names: str) -> Clique:
        """Return ``names`` in schema order."""
        return tuple(name for name in self.curator.sizes if name in names)


@dataclass(frozen=True)
class _Star:
    """S of one target. ``part`` is the target's part of every pool, and ``unspent`` the unspent part of its selection
    share."""

    target: str
    part: float
    features: tuple[str, ...]
    unspent: float
    pairs: tuple[Clique, ...]


def prism(curator: Curator, project: Project, frame: Frame, report: Report = silent) -> Marginals:
    """Choose S; measure (X, Y) for X in S, (X, X', Y) for some pairs, (X_S, Y) if small; measure columns and a
    background.

    S is the set of drawn parents (causal) or the drawn blanket (graphical), or is chosen privately (predictive). In the
    first two regimes, the selection pool goes to the task. Only the task links Y, because an edge (child, Y) in the
    background would restore the spurious link that the causal regime leaves out. Unspent shares go to the next
    measurement. Several targets divide the selection and task pools by their weights. Each has its own S, three-way
    tables and joint table. The background is chosen as in the workload method, relative to the model of the task, from
    all pairs except pairs with a target. The fit smooths the counts of pairs along ordered columns
    (`espalier.core.models.graphical.smoothness`), and shrinks each pair's association by the part that noise explains
    (`espalier.core.models.graphical.shrinkage`).
    """
    options = read_options(PrismOptions, project.plan.options)
    if options.regime == "effect" and options.treatment is not None:
        return effect_regime(curator, project, frame, options.treatment, report)
    budget = BudgetSplit.of(project.plan, curator.budget, curator.sizes)
    if options.task_weights == "bought":
        budget = replace(budget, rule="optimal")
    pools = pools_of(options.pools) or Pools(ONE_WAY, SELECTION, 0.0, TASK, BACKGROUND)
    ones = curator.measure(budget.split(pools.one_way, one_ways(curator)), "one-way")
    run = _Run(curator, budget, project, frame, options, noisy_total(curator, ones), pools)
    if not pools.given:
        run, more = _by_noise(run, ones)
        ones += more
    pools = run.pools
    background, choice = pools.background, pools.pairs

    report(0.05, "Choosing features")
    growth = Growth(tuple(curator.sizes), frame.separations)
    stars = [_choose(run, asked, growth) for asked in frame.tasks]

    report(0.2, "Choosing what to count with the target")
    tables: list[Measurement] = []
    for star in stars:
        share = pools.task * star.part + star.unspent
        if not star.features:
            background += share + (choice * star.part if pools.given else 0.0)
            continue
        linked = [*itertools.chain(*(s.pairs for s in stars)), *clique_edges([m.clique for m in tables])]
        made, spent = _count(run, star, share, choice * star.part, linked)
        tables += made
        background -= 0.0 if pools.given else spent

    report(0.4, "Choosing the background")
    last, left = list[Measurement](), background
    if background > 0:
        targets = dict.fromkeys(project.plan.weights, 0.0)
        wanted = Workload(targets, max_cells=min(MAX_CELLS, project.plan.max_cells), batches=1)
        last, left = measure_pairs(Request(curator, budget, frame.separations, wanted, report), left, ones, tables)
    last += curator.measure(budget.split(left, [m.clique for m in tables] or one_ways(curator)), "background")
    found = tuple(n for n in curator.sizes if any(n in s.features for s in stars))
    ordered = ordered_values(project.schema, curator.sizes)
    return Marginals.of(curator, [*ones, *tables, *last], features=found, shrunk=True, ordered=ordered)


def _by_noise(run: _Run, ones: Sequence[Measurement]) -> tuple[_Run, list[Measurement]]:
    """Return the run with the pools that its noise allows. Without a background, single columns are measured again."""
    share = max(ONE_WAY, BACKGROUND * min(1.0, _signal(run, ones) / CLEAR))
    background = share if _pair_error(run, share) <= CHEAP else 0.0
    task, pairs = TASK + BACKGROUND - (background or ONE_WAY), TRIPLES if background else 0.0
    made = replace(run, pools=Pools(ONE_WAY, SELECTION, pairs, task, background))
    again = {} if background else run.budget.split(ONE_WAY, one_ways(run.curator))
    return made, run.curator.measure(again, "one-way") if again else []


def _pair_error(run: _Run, share: float) -> float:
    """Return the expected TV error of a typical pair without targets, if a tree of these pairs gets ``share``."""
    targets = {task.target for task in run.frame.tasks}
    sizes = [size for name, size in run.curator.sizes.items() if name not in targets and size > 1]
    cells = sorted(a * b for a, b in itertools.combinations(sizes, 2))
    if not cells or run.total <= 0:
        return math.inf
    return 0.5 * cells[len(cells) // 2] * expected_noise(run.curator, run.budget, share / (len(sizes) - 1)) / run.total


def _signal(run: _Run, ones: Sequence[Measurement]) -> float:
    """Return the number of rows of the first target's rarer values in a cell of a typical feature, divided by the noise
    in a cell.
    """
    target = run.frame.tasks[0].target
    sizes = sorted(size for name, size in run.curator.sizes.items() if name != target and size > 1)
    (alone,) = [m.values for m in ones if m.clique == (target,)]
    if not sizes or len(alone) < 2:
        return math.inf
    rarer = (run.total - float(alone.max())) / (len(alone) - 1)
    noise = expected_noise(run.curator, run.budget, (TASK + SELECTION) / len(sizes))
    return max(0.0, rarer) / sizes[len(sizes) // 2] / noise


def _choose(run: _Run, task: Task, growth: Growth) -> _Star:
    """Return S of one target, drawn or chosen."""
    curator, budget, options = run.curator, run.budget, run.options
    part = task.weight / sum(other.weight for other in run.frame.tasks)
    features, left = task.features, run.pools.selection * part
    if features is not None:
        for name in features:
            growth.link((name, task.target))
    else:
        counted = (run.pools.task if run.pools.given else TASK) * part
        k = options.features or suggested(curator, budget, counted, task.target, task.candidates, run.total)
        choose = fit_features if options.selector == "logistic" else choose_features
        choices = Choices(curator, budget, left, "selection")
        features, left = choose(choices, task.target, task.candidates, k, growth)
    return _Star(task.target, part, features, left, tuple(run.clique(name, task.target) for name in features))


def _count(
    run: _Run, star: _Star, share: float, choice: float, linked: Sequence[Clique]
) -> tuple[list[Measurement], float]:
    """Return the counts with one target for ``share``, and the part of ``choice`` spent on choosing three-way tables.

    Weights of the pairs are bought from ``choice`` if the plan gives the pools, and from ``share`` otherwise.
    """
    given, pool = run.pools.given, "task" if star.target == run.frame.tasks[0].target else f"task: {star.target}"
    joint = _joint(run, star, share, linked)
    bought = run.options.task_weights == "bought" and len(star.pairs) > 1
    choosing = choice if run.options.three_way and not joint else 0.0
    of_pairs = [1.0] * len(star.pairs)
    if bought and not given:
        of_pairs = _weights(run, star, FOR_WEIGHTS * share)
        share *= 1 - FOR_WEIGHTS
    elif bought and choice:
        weighing = choice / 2 if choosing else choice
        of_pairs = _weights(run, star, weighing)
        choice, choosing = choice - weighing, max(0.0, choosing - weighing)
    triples, weights, unspent = _three_way(run, star, share, choosing, linked)
    spent = choosing - unspent
    share += choice - spent if given else 0.0
    importance = [*of_pairs, *weights, *[float(len(star.features))] * len(joint)]
    return run.curator.measure(run.budget.split(share, [*star.pairs, *triples, *joint], importance), pool), spent


def _weights(run: _Run, star: _Star, share: float) -> list[float]:
    """Buy each pair's association with the target; return them scaled to mean 1 (Appendix C.2).

    The score is :class:`FeatureScore`, the safe total-variation association, while the paper uses mutual information.
    Each pair is assumed to have an association of at least one σ of its noise.
    """
    (rho,) = run.budget.split(share, [(star.target,)]).values()
    what = f"association with {star.target} of {len(star.pairs)} columns (their weights)"
    made = run.curator.measure_scores(FeatureScore(star.target), star.pairs, rho, what, WEIGHTS)
    values = np.maximum(made.values, max(1.0, made.sigma))
    return [float(v) for v in values / values.mean()]


def _joint(run: _Run, star: _Star, share: float, linked: Sequence[Clique]) -> list[Clique]:
    """Return the table (X_S, Y) if it would be useful when measured with weight |S| next to |S| pairs. The decision
    uses only quantities that are public or already paid for.
    """
    whole = run.clique(*star.features, star.target)
    cells = math.prod(run.curator.sizes[name] for name in whole)
    others = {task.target for task in run.frame.tasks} - {star.target}
    most = min(run.project.plan.max_cells, useful_cells(run.curator, run.budget, share / 2, run.total))
    if len(star.features) < 2 or others & set(star.features) or cells > most:
        return []
    growth = Growth(tuple(run.curator.sizes), run.frame.separations)
    allowed = growth.link_all([*linked, *itertools.combinations(whole, 2)])
    return [whole] if allowed and fits(run.curator, [*linked, whole], run.project.plan.max_cells) else []


def _three_way(
    run: _Run, star: _Star, share: float, choice: float, linked: Sequence[Clique]
) -> tuple[list[Clique], list[float], float]:
    """Return tables (X, X', Y), their weights (association given Y, scaled to mean 1), and the rest of ``choice``."""
    curator, budget, most = run.curator, run.budget, run.options.three_way
    features = [name for name in star.features if name not in run.project.plan.weights]
    if not choice or len(features) < 2:
        return [], [], choice
    cells = useful_cells(curator, budget, share / (len(features) + most), run.total)
    growth = Growth(tuple(curator.sizes), run.frame.separations, features, curator.sizes)
    for pair in linked:
        growth.link(pair)
    for pair in trunk(curator):  # they must not close a loop with links from constraints
        if star.target not in pair:
            growth.add(pair)
    triples, unspent = choose_triples(
        Choices(curator, budget, 0.8 * choice, "pair choice"), growth, star.target, most, cells
    )
    if not triples:
        return [], [], choice
    (rho,) = budget.split(0.2 * choice, [(star.target,)]).values()
    what = f"association given the target of {len(triples)} three-way tables (their weights)"
    score = ConditionalScore(star.target)
    values = np.maximum(curator.measure_scores(score, triples, rho, what, "pair choice").values, 1.0)
    return triples, (values / values.mean()).tolist(), unspent


PRISM = Method(
    name="prism",
    title="PRISM",
    summary="most of the budget goes to predicting one column",
    fit=prism,
    options=PrismOptions,
    frame=frame_of_prism,
    guidance=Guidance(
        when="Choose it if one outcome matters most.",
        purposes={
            "here": Purpose(
                "Most of the budget goes to the columns that predict the target.", {"regime": "predictive"}
            ),
            "elsewhere": Purpose(
                "Only the drawn direct causes of the target shape the table. These links remain valid where "
                "coincidental associations break.",
                {"regime": "causal"},
            ),
        },
        advice=advice,
        counts_with=counts_with,
        pools={
            "selection": "choosing columns to count",
            "task": "counts with the target",
            "effect": "counts for the effect",
            "background": "counts of the other columns",
            "pair choice": "choosing the pairs",
            WEIGHTS: "importance of the target's pairs",
        },
    ),
    capabilities=Capabilities(targets=True, questions="beside", embedding=True),
    limits=Limits(
        largest,
        cells=lambda project: most_cells(project, min(MAX_CELLS, project.plan.max_cells)),
        fits=lambda project: FITS,  # noqa: ARG005
    ),
    arrows=arrows,
    effect_of=effect_of,
    causes_only=causes_only,
)
