"""The most accurate table that the budget can buy: what to count is chosen for a workload, by all pairs unless told.

In the manner of SWIFT (dpsynth) and AIM (McKenna, Mullins, Sheldon & Miklau 2022), with the exact solver of this
project: noisy errors first, then the subset and the shares that minimise the predicted error, and once more against
the fitted model.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from core.graph.separations import Clique, Separation, clique_edges
from core.methods.base import Method, largest_pair
from core.methods.frame import Frame
from core.methods.marginals import Marginals, one_ways
from core.methods.select.allocation import BudgetSplit
from core.methods.select.cliques import rounds
from core.methods.select.constrained import joined
from core.methods.select.expected import Expected, by_model, independent, noisy_total
from core.methods.select.marginals import FITTED, MEAN, Candidate, Room, best_subset, largest_error, noisy_cells, shrunk
from core.methods.select.pairs import choose_pairs
from core.methods.select.spanning import choose_tree
from core.methods.select.usefulness import expected_noise
from core.privacy.curator import Curator
from core.privacy.draws import Measurement
from core.privacy.scores import EdgeScore
from core.progress import Report, silent
from core.project.file import Project

MAX_CELLS = 100_000
"""Cells of the largest clique. On Adult at ε = 1 50,000 give a TV of 0.0097 in 1.6 s, 200,000 0.0092 in 6 s."""

FEW = 350
"""So many candidates at most are scored together. Their noise grows with the root of their number, that of a choice at
a time with the root of how many are chosen."""

ONE_WAY, MOST_ONE_WAY = 0.08, 0.6
"""The least and the most of the budget that the one-way counts get."""

GOOD_ENOUGH = 0.015
"""The expected TV error of a one-way count below which it gets no more than `ONE_WAY`."""

CHOICE = 0.06
"""The part of the budget that each of the two rounds chooses with."""

FIRST = 0.6
"""The part of what is left for pairs that the first round counts with."""

WIDTH, MOST_PAIRS = 4, 40
"""Where pairs are chosen one at a time: the largest clique less one, and how many join the tree at most."""


@dataclass(frozen=True)
class Workload:
    """What the table is for: ``columns`` and ``cliques`` have weights, 1 unless given.

    A pair weighs what is given for it, else the product of its columns' weights. ``cliques`` may hold triples; these
    are candidates beside the pairs. ``max_cells`` caps the model.
    """

    columns: Mapping[str, float] = field(default_factory=dict)
    cliques: Mapping[Clique, float] = field(default_factory=dict)
    max_cells: int = MAX_CELLS

    def weight(self, clique: Clique) -> float:
        """Of one marginal."""
        return self.cliques.get(clique, math.prod(self.columns.get(name, 1.0) for name in clique))

    def candidates(self, sizes: Mapping[str, int]) -> list[Clique]:
        """All pairs of columns that vary and the cliques named, those of weight 0 left out."""
        varied = [name for name in sizes if sizes[name] > 1]
        pairs = [*itertools.combinations(varied, 2), *(q for q in self.cliques if len(q) > 2)]
        return [q for q in dict.fromkeys(pairs) if self.weight(q) > 0]


ALL_PAIRS = Workload()


def workload(
    curator: Curator, project: Project, frame: Frame, report: Report = silent, wanted: Workload = ALL_PAIRS
) -> Marginals:
    """One-way counts, then two rounds of choosing and counting for ``wanted``, inside ``frame``."""
    budget = BudgetSplit.of(project.plan, curator.budget, curator.sizes)
    report(0.0, "Counting every column")
    ones, left = measure_ones(curator, budget, 1.0)
    made, left = measure_pairs(curator, budget, left, ones, (), frame.separations, wanted, report)
    made += curator.measure(budget.split(left, one_ways(curator)), "one-way")
    return Marginals.of(curator, [*ones, *made])


def measure_ones(curator: Curator, budget: BudgetSplit, share: float) -> tuple[list[Measurement], float]:
    """One-way counts, and what they leave of ``share``.

    They get as much as brings their expected TV error to `GOOD_ENOUGH`, between `ONE_WAY` and `MOST_ONE_WAY` of
    ``share``. How much that is depends on n: where n is private, on the noisy total of the first of two portions.
    """
    ones = curator.measure(budget.split(ONE_WAY * share, one_ways(curator)), "one-way")
    cells = sum(curator.sizes.values()) / len(curator.sizes)
    each = expected_noise(curator, budget, share / len(ones))
    error = 0.5 * cells * each / max(1.0, noisy_total(curator, ones))
    wanted = min(MOST_ONE_WAY, (error / GOOD_ENOUGH) ** 2)
    if wanted <= ONE_WAY:
        return ones, (1 - ONE_WAY) * share
    ones += curator.measure(budget.split((wanted - ONE_WAY) * share, one_ways(curator)), "one-way")
    return ones, (1 - wanted) * share


def measure_pairs(
    curator: Curator,
    budget: BudgetSplit,
    share: float,
    ones: Sequence[Measurement],
    known: Sequence[Measurement],
    separations: Sequence[Separation],
    wanted: Workload,
    report: Report,
) -> tuple[list[Measurement], float]:
    """What ``share`` of the budget counts for ``wanted`` beside the counts ``ones`` and ``known``, and what it leaves.

    Where nothing is worth its noise nothing is counted.
    """
    if not wanted.candidates(curator.sizes):
        return [], share
    if len(wanted.candidates(curator.sizes)) <= FEW:
        return _at_once(curator, budget, share, ones, known, separations, wanted, report)
    return _one_by_one(curator, budget, share, ones, known, separations, wanted, report)


def _at_once(
    curator: Curator,
    budget: BudgetSplit,
    share: float,
    ones: Sequence[Measurement],
    known: Sequence[Measurement],
    separations: Sequence[Separation],
    wanted: Workload,
    report: Report,
) -> tuple[list[Measurement], float]:
    """Two rounds; in each the noisy errors of all candidates together, then the best subset of them."""
    best = replace(budget, rule="optimal")
    cliques = wanted.candidates(curator.sizes)
    alone = independent(ones, noisy_total(curator, ones))
    held = [*curator.impossible, *(m.clique for m in known)]
    room = Room(curator.sizes, held, separations, wanted.max_cells)
    made: list[Measurement] = []
    chosen: list[Candidate] = []
    left = 0.0
    for step, part in enumerate((FIRST, 1 - FIRST)):
        report(0.1 + 0.5 * step, "Choosing what to count" if not step else "Choosing what the model still gets wrong")
        found = [*ones, *known, *made]
        score = EdgeScore(by_model(curator, found) if known or made else alone)
        (rho,) = budget.split(CHOICE * share, one_ways(curator)[:1]).values()
        what = f"errors of {len(cliques)} marginals, all together"
        errors = shrunk(curator.measure_scores(score, cliques, rho, what, "pair choice"))
        count = (1 - 2 * CHOICE) * part * share
        noise = expected_noise(curator, budget, count) / MEAN
        sigma = noise * math.sqrt(2 * len(curator.sizes))
        candidates = [
            Candidate(
                q,
                error,
                wanted.weight(q),
                noisy_cells(alone(q), sigma),
                0.0 if known or made else largest_error(alone(q)),
            )
            for q, error in zip(cliques, errors.tolist(), strict=True)
        ]
        if chosen := best_subset(candidates, noise, room) or chosen:
            made += curator.measure(_split(best, count, chosen), "pairs")
        else:
            left += count
    return made, left


def _split(budget: BudgetSplit, share: float, chosen: Sequence[Candidate]) -> dict[Clique, float]:
    """ρ_i ∝ (w_i·cells_i)^(2/3), cells as noise sees them; shares given by hand are kept."""
    weights = [c.weight * c.cells / math.prod(budget.sizes[name] for name in c.clique) for c in chosen]
    return budget.split(share, [c.clique for c in chosen], weights)


def _one_by_one(
    curator: Curator,
    budget: BudgetSplit,
    share: float,
    ones: Sequence[Measurement],
    known: Sequence[Measurement],
    separations: Sequence[Separation],
    wanted: Workload,
    report: Report,
) -> tuple[list[Measurement], float]:
    """A tree, then further pairs against the model so far, each by the exponential mechanism."""
    sizes, best = curator.sizes, replace(budget, rule="optimal")
    alone = independent(ones, noisy_total(curator, ones))
    columns = [name for name in sizes if sizes[name] > 1 and wanted.columns.get(name, 1.0) > 0]
    star = list(dict.fromkeys(clique_edges([*joined(curator), *(m.clique for m in known)])))
    most = min(MOST_PAIRS, rounds(len(columns), WIDTH))

    report(0.1, "Choosing a tree")
    expect = by_model(curator, [*ones, *known]) if known else alone
    tree, unspent = choose_tree(
        curator, budget, CHOICE * share, separations, EdgeScore(expect), columns, star, pool="pair choice"
    )
    count = (1 - 2 * CHOICE) * share
    first = FIRST * count + unspent
    if not tree:
        return [], share
    made = curator.measure(_split(best, first, _weighed(curator, budget, first, tree, alone, wanted)), "pairs")

    report(0.6, "Choosing further pairs")
    second = (1 - FIRST) * count
    noise = FITTED * expected_noise(curator, budget, second / max(1, most))
    score = EdgeScore(by_model(curator, [*ones, *known, *made]), noise)
    further, unspent = choose_pairs(
        curator, budget, CHOICE * share, separations, score, tree, star, columns, most, WIDTH, wanted.max_cells,
        "pair choice",
    )  # fmt: skip
    last = _weighed(curator, budget, second, further or tree, alone, wanted)
    return [*made, *curator.measure(_split(best, second + unspent, last), "pairs")], 0.0


def _weighed(
    curator: Curator, budget: BudgetSplit, share: float, cliques: Sequence[Clique], alone: Expected, wanted: Workload
) -> list[Candidate]:
    """Cliques that are to share ``share`` of the budget, with what decides how."""
    sigma = expected_noise(curator, budget, share / max(1, len(cliques))) / MEAN
    return [Candidate(q, 0.0, wanted.weight(q), noisy_cells(alone(q), sigma)) for q in cliques]


WORKLOAD = Method(
    name="workload",
    title="Workload",
    summary="the pairs that bring the whole table closest to the real one, chosen and counted in two rounds",
    when="Choose it for general use: all pairs of columns should be right.",
    fit=workload,
    largest=largest_pair,
)
