"""What the published methods share: the values they take and give, and the tree-shaped loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from core.methods.frame import Frame
from core.methods.select.allocation import Purse
from core.methods.select.cliques import rounds
from core.methods.select.compression import folded, rare_categories
from core.methods.select.expected import independent, noisy_total
from core.methods.select.fence_cost import refused_pairs
from core.methods.select.spanning import choose_tree
from core.privacy.curator import Curator
from core.privacy.draws import Clique, Measurement, Merged, ScoreMeasurement
from core.privacy.scores import EdgeScore
from core.project.file import Plan

Report = Callable[[float, str], None]
"""How long work tells progress: (fraction done, message). Raising from it cancels."""


TREE = (1 / 3, 1 / 3, 1 / 3, 0.0)
"""Shares of the budget as published: one-way counts, tree choice, two-way counts; nothing for further cliques."""

THICK = (0.15, 0.10, 0.35, 0.40)
"""The same where the model may be thicker than a tree. Moving a tenth from one to another changes TV and AUC on Adult
and COMPAS at ε = 1 by less than their spread over folds."""


@dataclass(frozen=True)
class Measured:
    """What a method ends with: all that the fit may use, all of it paid for.

    ``features`` is prism's S (empty for other methods). Where ``merged`` is not empty the measurements are over its
    groups of categories. ``explained`` are the scores that were bought, those of the tree's edges first, then those
    of the pairs that the frame refused.
    """

    measurements: tuple[Measurement, ...]
    features: tuple[str, ...] = ()
    merged: Merged = field(default_factory=dict)
    explained: ScoreMeasurement | None = None

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The measured cliques, each once."""
        return tuple(dict.fromkeys(m.clique for m in self.measurements))


def silent(fraction: float, message: str) -> None:
    """A report that nobody listens to."""


def one_ways(curator: Curator) -> list[Clique]:
    """All one-way cliques."""
    return [(name,) for name in curator.sizes]


def measure_tree(curator: Curator, plan: Plan, frame: Frame, report: Report) -> Measured:
    """PrivCI's Algorithm 1 for the frame given: a third of ρ each for one-way, tree choice and two-way counts.

    What a forest, or a choice without alternatives, leaves unspent goes to the two-way counts (or, where there
    are none, to the one-way counts once more). Beyond the paper, where the plan asks for it: rare categories are
    merged after the one-way counts (``compress``), the scores of what the frame refused are bought (``explain``), and
    further cliques are chosen against the model so far (``width``).
    """
    from core.methods.select.adaptive import measure_further

    steps = rounds(sum(size > 1 for size in curator.sizes.values()), plan.width)
    first, choice, second, further = ((1 - plan.explain) * share for share in (THICK if steps else TREE))
    purse = Purse.of(plan, curator.budget, curator.sizes)
    report(0.0, "Counting every column")
    ones = curator.measure(purse.split(first, one_ways(curator)), "one-way")
    merged: Merged = {}
    if plan.compress and (merged := curator.merge(rare_categories(ones))):
        ones = [folded(m, merged) for m in ones]
        purse = Purse.of(plan, curator.budget, curator.sizes)

    report(0.2, "Choosing the tree")
    score = EdgeScore(independent(ones, noisy_total(curator, ones)))
    edges, unspent = choose_tree(curator, purse, choice, frame.separations, score, pool="tree choice")
    explained = None
    if plan.explain and (refused := refused_pairs(curator.sizes, frame.separations, edges)):
        (rho,) = purse.split(plan.explain, one_ways(curator)[:1]).values()
        explained = curator.measure_scores(score, [*edges, *refused], rho, "explain")
    elif plan.explain:
        unspent += plan.explain

    report(0.4 if steps else 0.7, "Counting the tree's pairs")
    share = second + unspent
    twos = curator.measure(purse.split(share, edges or one_ways(curator)), "two-way" if edges else "one-way")
    found = [*ones, *twos]
    if steps:
        found += measure_further(curator, purse, further, steps, found, plan, frame.separations, report)
    return Measured(tuple(found), merged=merged, explained=explained)
