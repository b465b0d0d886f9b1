"""What the published methods share: the values they take and give, and the tree-shaped loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from core.graph.frame import Frame
from core.privacy.allocation import Purse
from core.privacy.curator import Curator
from core.privacy.measurement import Clique, Measurement
from core.privacy.scores import EdgeScore
from core.project import Plan
from core.selection.expected import independent, noisy_total
from core.selection.trees import choose_tree

Report = Callable[[float, str], None]
"""How long work tells progress: (fraction done, message). Raising from it cancels."""


@dataclass(frozen=True)
class Measured:
    """What a method ends with: all that the fit may use, all of it paid for.

    ``features`` is prism's S (empty for other methods).
    """

    measurements: tuple[Measurement, ...]
    features: tuple[str, ...] = ()

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
    are none, to the one-way counts once more).
    """
    purse = Purse.of(plan, curator.budget, curator.sizes)
    report(0.0, "Counting every column")
    ones = curator.measure(purse.split(1 / 3, one_ways(curator)), "one-way")
    report(0.2, "Choosing the tree")
    score = EdgeScore(independent(ones, noisy_total(curator, ones)))
    edges, unspent = choose_tree(curator, purse, 1 / 3, frame.separations, score, pool="tree choice")
    report(0.7, "Counting the tree's pairs")
    share = 1 / 3 + unspent
    twos = curator.measure(purse.split(share, edges or one_ways(curator)), "two-way" if edges else "one-way")
    return Measured((*ones, *twos))
