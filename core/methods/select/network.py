"""Private choice of a Bayesian network by PrivBayes' greedy search (Zhang, Cormode, Procopiuc, Srivastava & Xiao
2017)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from espalier.core.graph.separations import Clique
from espalier.core.methods.select.allocation import Choices
from espalier.core.methods.select.constrained import fits
from espalier.core.privacy.scores import FeatureScore

DEGREE = 2
"""Maximum number of parents."""

WIDE = 100
"""Number of columns above which each column gets only one parent. The number of candidates grows cubically and the
number of tables quadratically (a few seconds for 100 columns and 50,000 rows).
"""


def choose_network(choices: Choices, first: str, useful: int, max_cells: int) -> tuple[list[Clique], float]:
    """Return a clique {X} ∪ Pa(X) for every column X except ``first``, and the unspent share of the budget.

    Each round of this greedy search draws one (X, Pa) by the exponential mechanism with the R score, where X is not
    placed yet and Pa are at most `DEGREE` placed columns. A round costs share/(d − 1), or nothing without alternatives.
    As in the paper, the candidates are maximal parent sets (R never falls when a parent is added): several parents if
    their table with X has at most ``useful`` cells, otherwise one. Unlike in the paper, Pa lies inside one earlier
    clique. The moral graph is therefore chordal, and the junction tree has the chosen cliques. The model is never
    larger than its largest table. Without this restriction, a model could turn out too large to fit after the budget is
    spent. Constraints link columns as well: candidates that would bring the model with its constraints above
    ``max_cells`` are left out, and a column without candidates is measured alone.
    """
    sizes, share = choices.curator.sizes, choices.share
    place = {name: i for i, name in enumerate(sizes)}
    left = [name for name in sizes if name != first]
    degree = DEGREE if len(sizes) <= WIDE else 1
    child: dict[Clique, str] = {}  # exactly one column of a candidate is not placed yet: X
    offered: dict[Clique, int] = {}
    score = FeatureScore(child)

    def clique(names: Sequence[str]) -> Clique:
        return tuple(sorted(names, key=place.__getitem__))

    def offer(parents: Clique) -> None:
        for x in left:
            cells = math.prod(sizes[name] for name in (x, *parents))
            if len(parents) == 1 or cells <= useful:
                for k in range(1, len(parents)):
                    for fewer in itertools.combinations(parents, k):
                        offered.pop(clique((x, *fewer)), None)
                offered[clique((x, *parents))] = cells
                child[clique((x, *parents))] = x

    chosen: list[Clique] = []
    paid, rounds = 0, len(left)
    offer((first,))
    while left:
        offered = {q: held for q, held in offered.items() if fits(choices.curator, [*chosen, q], max_cells)}
        candidates = sorted(offered, key=lambda q: -offered[q])  # largest first, because a rehearsal takes the first
        if not candidates:
            chosen += [(name,) for name in left]
            break
        found = candidates[0]
        if len(candidates) > 1:
            found = choices.one(score, candidates, rounds, "column and its parents")
            paid += 1
        x = child[found]
        chosen.append(found)
        left.remove(x)
        offered = {q: cells for q, cells in offered.items() if child[q] != x}
        parents = [name for name in found if name != x]
        for k in range(degree):
            for others in itertools.combinations(parents, k):
                offer((x, *others))
    return chosen, share * (rounds - paid) / rounds if rounds else share
