"""MST, PrivCI and PreFair: three methods that grow one tree of pair counts and differ only in the frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from espalier.core.errors import ProjectError
from espalier.core.graph.separations import Clique, Separation, clique_edges
from espalier.core.methods.base import Capabilities, Guidance, Limits, Method, Purpose, largest_pair
from espalier.core.methods.frame import Frame
from espalier.core.methods.marginals import Marginals, one_ways
from espalier.core.methods.select.adaptive import BATCHES, Further, measure_further
from espalier.core.methods.select.allocation import BudgetSplit, Choices
from espalier.core.methods.select.cliques import rounds
from espalier.core.methods.select.compression import folded, rare_categories
from espalier.core.methods.select.constrained import joined, trunk, worth_counting
from espalier.core.methods.select.expected import independent, noisy_total
from espalier.core.methods.select.greedy_tree import Growth, choose_tree
from espalier.core.methods.select.refused_pairs import refused_pairs
from espalier.core.methods.select.scored_tree import strongest
from espalier.core.privacy.curator import Curator
from espalier.core.privacy.draws import Merged
from espalier.core.privacy.scores import EdgeScore
from espalier.core.progress import Report, silent
from espalier.core.project.file import Project
from espalier.core.project.options import option, read_options

TREE = (1 / 3, 1 / 3, 1 / 3, 0.0)
"""Published shares of the budget for one-way counts, the choice of the tree, and two-way counts; nothing for further
cliques.
"""

ADAPTIVE = (0.15, 0.10, 0.35, 0.40)
"""The same shares if the model may be wider than a tree. Moving a tenth from one share to another changes TV and AUC on
Adult and COMPAS at ε = 1 by less than their spread over folds."""


@dataclass(frozen=True)
class TreeOptions:
    """Options of the tree methods beyond the common keys. The defaults follow the papers."""

    width: int = option(
        1,
        "Width (1: a tree)",
        low=1,
        high=6,
        whole=True,
        help="The largest group of columns counted together, minus one. At 2 or more, further pairs and triples are "
        "chosen privately where the tree fits worst; separations stay exact. On Adult and COMPAS, width 2 "
        "improved pairs and predictions at the same budget.",
    )
    explain: float = option(
        0.0,
        "Share of the budget for explaining the fence's cost",
        low=0.0,
        high=0.5,
        fenced=True,
        help="Buys noisy scores of the pairs that the fence refuses, and an estimate of the fence's cost. Without "
        "this share, a release reports neither. The share reduces the budget for the counts.",
        pool="explain",
        unbought="The fence of this plan refuses no pair in a tree, so the explanation share buys nothing",
    )
    tree: Literal["greedy", "exact"] = option(
        "greedy",
        "How the tree is found",
        choices={
            "greedy": "One edge at a time, each chosen privately.",
            "exact": "The tree with the highest total score, from noisy scores of all pairs bought in one step.",
        },
        help="The greedy search is the published one. The exact search buys noisy scores of all allowed pairs, then "
        "finds the strongest tree that respects the separations. The report states the shortfall of the greedy tree.",
    )
    compress: bool = option(
        False,
        "Merge rare categories",
        help="Categories with a noisy count below three standard deviations of the noise are counted together and "
        "drawn with equal probability. This helps columns with many categories, but blurs rare groups.",
    )


def tree(curator: Curator, project: Project, frame: Frame, report: Report = silent) -> Marginals:
    """Run PrivCI's Algorithm 1 for the given frame. One-way counts, the choice of the tree and two-way counts each get
    a third of ρ.

    With constraints, the tree starts from their pairs, which are measured without a choice.

    Budget that a forest, or a choice without alternatives, leaves unspent goes to the two-way counts (or to further
    one-way counts if there are no two-way counts). A plan can request three steps beyond the paper: rare categories are
    merged after the one-way counts (``compress``), scores of the refused pairs are bought (``explain``), and further
    cliques are chosen against the model so far (``width``).
    """
    plan, options = project.plan, read_options(TreeOptions, project.plan.options)
    steps = _rounds(project)
    first, choice, second, further = ((1 - options.explain) * share for share in (ADAPTIVE if steps else TREE))
    budget = BudgetSplit.of(plan, curator.budget, curator.sizes)
    report(0.0, "Counting every column")
    ones = curator.measure(budget.split(first, one_ways(curator)), "one-way")
    merged: Merged = {}
    if options.compress and (merged := curator.merge(rare_categories(ones))):
        ones = [folded(m, merged) for m in ones]
        budget = BudgetSplit.of(plan, curator.budget, curator.sizes)

    report(0.2, "Choosing the tree")
    score = EdgeScore(independent(ones, noisy_total(curator, ones)))
    links, found_best = clique_edges(joined(curator)), None
    if options.tree == "exact" and (pairs := _allowed(curator, frame, links)):
        (rho,) = budget.split(choice, one_ways(curator)[:1]).values()
        bought = curator.measure_scores(score, pairs, rho, f"scores of {len(pairs)} pairs", "tree choice")
        found_best = strongest(bought, curator.sizes, frame.separations, links, trunk(curator))
        edges, unspent = list(found_best.edges), 0.0
    else:
        edges, unspent = choose_tree(
            Choices(curator, budget, choice, "tree choice"),
            frame.separations,
            score,
            linked=links,
            start=trunk(curator),
        )
    edges = [*worth_counting(curator, project.constraints), *edges]
    explained = None
    if options.explain and (refused := refused_pairs(curator.sizes, frame.separations, edges)):
        (rho,) = budget.split(options.explain, one_ways(curator)[:1]).values()
        explained = curator.measure_scores(
            score, [*edges, *refused], rho, _scores_of(len(edges) + len(refused)), "explain"
        )
    elif options.explain:
        unspent += options.explain

    report(0.4 if steps else 0.7, "Counting the tree's pairs")
    share = second + unspent
    twos = curator.measure(budget.split(share, edges or one_ways(curator)), "two-way" if edges else "one-way")
    found = [*ones, *twos]
    if steps:
        found += measure_further(
            curator, budget, Further(further, steps, options.width, plan.max_cells), found, frame, report
        )
    return Marginals.of(curator, found, merged=merged, explained=explained, best_tree=found_best)


def _allowed(curator: Curator, frame: Frame, linked: Sequence[Clique]) -> list[Clique]:
    """Return the pairs that the frame allows as edges, largest table first; empty if there is nothing to choose."""
    growth = Growth(
        tuple(curator.sizes), frame.separations, [c for c in curator.sizes if curator.sizes[c] > 1], curator.sizes
    )
    for clique in linked:
        growth.link(clique)
    for pair in trunk(curator):
        growth.add(pair)
    return growth.candidates() if growth.parts > 1 else []


def _scores_of(count: int) -> str:
    return f"scores of refused pairs and of the tree (about {count}, depending on the tree)"


def _rounds(project: Project) -> int:
    """Return the number of further cliques chosen after the tree."""
    width = read_options(TreeOptions, project.plan.options).width
    return rounds(sum(size > 1 for size in project.schema.sizes.values()), width)


def _fits(project: Project) -> int:
    """Return the number of intermediate models for choosing further cliques."""
    return min(BATCHES, _rounds(project))


def _frame(project: Project, separations: tuple[Separation, ...], warnings: list[str]) -> Frame:
    """Return the frame unchanged; refuse merged categories in a plan with constraints."""
    if project.constraints and read_options(TreeOptions, project.plan.options).compress:
        raise ProjectError(
            "rare categories cannot be merged in a plan with constraints, which name single categories: "
            "set compress to false",
            key="compress",
        )
    return Frame(separations, warnings=tuple(warnings))


def _prefair(project: Project, separations: tuple[Separation, ...], warnings: list[str]) -> Frame:
    """PreFair (Pujol, Gilad & Machanavajjhala 2023), as described in PrivCI §II-C, expressed as a frame.

    The rule that an outcome o is linked only to admissible columns is the separation o | everything else, given
    admissible. The published code removes items from a list while iterating over it, and so admits forbidden edges.
    Here, the loop shared by all methods checks the frame.
    """
    schema, admissible = project.schema, set(project.roles.admissible)
    touching = tuple(
        Separation(
            (name,),
            schema.clique(set(schema.names) - admissible - {name}),
            schema.clique(admissible),
            f"prefair: {name} attaches to admissible columns only",
        )
        for name in schema.clique(project.roles.outcome)
        if set(schema.names) - admissible - {name}
    )
    return _frame(project, (*separations, *touching), warnings)


_POOLS = {
    "tree choice": "choosing the pairs",
    "two-way": "counts of pairs",
    "pair choice": "choosing the pairs",
    "further cliques": "counts of columns together",
    "explain": "scores of refused pairs",
}
_LIMITS = Limits(largest_pair, fits=_fits, width=lambda plan: read_options(TreeOptions, plan.options).width)
_WITHOUT_FENCE = {"method": "mst", "fair": None, "strict": False, "explain": 0.0}

MST = Method(
    name="mst",
    title="MST",
    summary="a tree of pair counts, no fence",
    fit=tree,
    options=TreeOptions,
    frame=_frame,
    guidance=Guidance("Choose it to compare with the published tree.", pools=_POOLS),
    capabilities=Capabilities(fence="never", questions="beside", embedding=True),
    limits=_LIMITS,
)
"""A maximum spanning tree of pair counts (McKenna, Miklau & Sheldon 2021): PrivCI §III-C without any separation."""

PRIVCI = Method(
    name="privci",
    title="PrivCI",
    summary="a tree of pair counts that respects the fence",
    fit=tree,
    options=TreeOptions,
    frame=_frame,
    guidance=Guidance(
        "Choose it if there is a fairness requirement.",
        purposes={
            "fairness": Purpose(
                "It counts only pairs that the fence allows, and links outcome and protected columns only through "
                "admissible ones."
            )
        },
        pools=_POOLS,
    ),
    capabilities=Capabilities(fence="always", questions="beside"),
    limits=_LIMITS,
    without_fence=_WITHOUT_FENCE,
)
"""PrivCI's Algorithm 1: the tree is grown inside the fence outcome ⊥ protected | admissible."""

PREFAIR = Method(
    name="prefair",
    title="PreFair",
    summary="a tree in which the outcome is linked only to admissible columns",
    fit=tree,
    options=TreeOptions,
    frame=_prefair,
    guidance=Guidance("Choose it to compare with PrivCI.", pools=_POOLS),
    capabilities=Capabilities(fence="always", questions="beside"),
    limits=_LIMITS,
    without_fence=_WITHOUT_FENCE,
)
"""PreFair, greedy: the same tree, but an outcome column attaches to admissible columns only."""
