"""Private choices made once a tree has been chosen: further pairs of columns, and PRISM's pairs that are measured
together with the target.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from espalier.core.graph.separations import Clique, clique_edges
from espalier.core.methods.select.allocation import Choices
from espalier.core.methods.select.cliques import first_new_pair, further_cliques
from espalier.core.methods.select.greedy_tree import Growth
from espalier.core.privacy.scores import ConditionalScore, EdgeScore


@dataclass(frozen=True)
class Reach:
    """Limits on the pairs that may be added to a tree: the candidate ``pairs``, their number, width and cells, and
    whether a table may be measured instead of its pairs (see `tells_its_pairs`). A rehearsal tries the pairs
    ``ordered`` first (see `by_cells`)."""

    pairs: Sequence[Clique]
    most: int
    width: int
    max_cells: int
    together: bool = False
    ordered: Sequence[Clique] = ()


def tells_its_pairs(sizes: Mapping[str, int], clique: Clique) -> bool:
    """Return whether one table of ``clique`` determines each of its pairs as precisely as separate counts with the same
    total ρ.

    A pair is the table summed over the other columns, so its noise is σ times the square root of their number of cells.
    If the C(k, 2) pairs of k columns were measured separately, each would get one of C(k, 2) parts of ρ, and its noise
    would be σ times the square root of C(k, 2). The pair of the two smallest columns is decisive. The function is true
    for a pair, for three columns with at most three values, for four columns with two values (one may have three), and
    for five columns with two values. It is never true for more columns.
    """
    return math.prod(sorted(sizes[name] for name in clique)[2:]) <= math.comb(len(clique), 2)


def choose_pairs(
    choices: Choices, growth: Growth, score: EdgeScore, tree: Sequence[Clique], reach: Reach
) -> tuple[list[Clique], float]:
    """Return pairs to add to the cliques ``tree``, inside the frame of ``growth``, and the unspent part of the share.

    Each choice, by the exponential mechanism with ``score``, costs share/most. Stopping is one of the candidates, so
    the search ends when nothing informative is left. If ``reach`` allows it, a table that determines its pairs is also
    a candidate; it links at most one new pair. The graph over the columns stays chordal with cliques of at most
    ``width`` + 1 columns (see `further_cliques`), so the model stays small even with the links of ``growth``.
    """
    share, most = choices.share, reach.most
    held: set[Clique] = set(clique_edges(tree))
    for pair in held:
        growth.link(pair)
    allowed = set(reach.pairs)
    paired = set(itertools.chain.from_iterable(allowed))
    sizes = {name: size for name, size in choices.curator.sizes.items() if name in paired}
    largest = MOST_COLUMNS if reach.together else 2
    chosen: list[Clique] = []
    for paid in range(most):
        if first := _rehearsed(sizes, [*tree, *chosen], reach, growth):
            choices.one(score, [first, ()], most, "further pair")
            growth.link(first)
            held.add(first)
            chosen.append(first)
            continue
        offered = further_cliques(sizes, [*tree, *chosen], (), reach.width, reach.max_cells, largest)
        pairs = [q for q in offered if q in allowed and q not in held]
        new = {pair for pair, fine in zip(pairs, growth.may_link(pairs).tolist(), strict=True) if fine}
        taken, linked = {*tree, *chosen}, held | new
        candidates = [q for q in offered if q in new or (_told_together(reach, sizes, q) and q not in taken)]
        candidates = [q for q in candidates if linked.issuperset(itertools.combinations(q, 2))]
        if not candidates:
            return chosen, share * (most - paid) / most
        clique = choices.one(score, [*candidates, ()], most, "further pair")
        if not clique:
            return chosen, share * (most - paid - 1) / most
        for pair in itertools.combinations(clique, 2):
            growth.link(pair)
            held.add(pair)
        chosen.append(clique)
    return chosen, 0.0


MOST_COLUMNS, MOST_TOGETHER = 5, 32
"""Numbers of columns and cells of the largest table that determines its pairs (`tells_its_pairs`), which has five
columns of two values.
"""


def by_cells(sizes: Mapping[str, int], pairs: Sequence[Clique]) -> list[Clique]:
    """Return the pairs with more cells than any table that determines its pairs, the largest first."""
    order = {name: i for i, name in enumerate(sizes)}
    large = [q for q in pairs if sizes[q[0]] * sizes[q[1]] > MOST_TOGETHER]
    return sorted(large, key=lambda q: (-sizes[q[0]] * sizes[q[1]], order[q[0]], order[q[1]]))


def _rehearsed(sizes: Mapping[str, int], cliques: Sequence[Clique], reach: Reach, growth: Growth) -> Clique | None:
    """Return the first candidate if it is ``ordered``, to save a rehearsal from building the others."""
    if not reach.ordered:
        return None
    return first_new_pair(
        sizes, cliques, reach.ordered, reach.width, reach.max_cells, lambda pair: bool(growth.may_link([pair])[0])
    )


def _told_together(reach: Reach, sizes: Mapping[str, int], clique: Clique) -> bool:
    """Return whether ``clique`` has more than two columns and may be measured as one table."""
    return reach.together and len(clique) > 2 and tells_its_pairs(sizes, clique)


def choose_triples(
    choices: Choices, growth: Growth, target: str, most: int, max_cells: int
) -> tuple[list[Clique], float]:
    """Choose at most ``most`` tables (X, X′, target) with X, X′ among the columns of ``growth``; also return the
    unspent share.

    This is PRISM's §5.3. Candidates are tables of at most ``max_cells`` cells that the frame allows. They are scored by
    association given the target (:class:`ConditionalScore`, instead of the paper's conditional mutual information).
    Each choice costs share/most. The pairs stay a forest, so the model's cliques stay triples.
    """
    share, sizes = choices.share, choices.curator.sizes
    order = list(sizes)
    score = ConditionalScore(target)
    chosen: list[Clique] = []
    paid = 0
    while len(chosen) < most:
        triples = _with(target, growth.candidates(), order, sizes, max_cells)
        if not triples:
            break
        triple = next(iter(triples))
        if len(triples) > 1:
            triple = choices.one(score, list(triples), most, "three-way table")
            paid += 1
        growth.add(triples[triple])
        chosen.append(triple)
    return chosen, share * (most - paid) / most if most else share


def _with(
    target: str, pairs: Sequence[Clique], order: Sequence[str], sizes: Mapping[str, int], max_cells: int
) -> dict[Clique, Clique]:
    """Return each of ``pairs`` as a table with the target, provided that it has at most ``max_cells`` cells."""
    small = [(a, b) for a, b in pairs if sizes[a] * sizes[b] * sizes[target] <= max_cells]
    return {tuple(sorted((a, b, target), key=order.index)): (a, b) for a, b in small}
