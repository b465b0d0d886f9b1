"""Pairs of columns beside a tree, and pairs counted together with the target: PRISM's further private choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.graph.separations import Clique, Separation, clique_edges
from core.methods.select.allocation import BudgetSplit
from core.methods.select.cliques import further_cliques
from core.methods.select.constrained import trunk
from core.methods.select.spanning import Growth
from core.privacy.curator import Curator
from core.privacy.scores import ConditionalScore, EdgeScore


def choose_pairs(
    curator: Curator,
    budget: BudgetSplit,
    share: float,
    separations: Sequence[Separation],
    score: EdgeScore,
    tree: Sequence[Clique],
    linked: Sequence[Clique],
    columns: Sequence[str],
    most: int,
    width: int,
    max_cells: int,
    pool: str = "",
) -> tuple[list[Clique], float]:
    """At most ``most`` pairs beside the cliques ``tree``, and the part of ``share`` left unspent.

    share/most pays for each choice, by the exponential mechanism with ``score``; to stop is one of the candidates, so
    that where nothing is left to be said no more is counted.
    The graph over ``columns`` stays chordal with cliques of at most ``width`` + 1 columns (see `further_cliques`), so
    that what is measured together with ``linked`` stays small. The frame counts ``linked`` too.
    """
    growth = Growth(tuple(curator.sizes), separations)
    held: set[Clique] = set(clique_edges(tree))
    for pair in (*linked, *held):
        growth.link(pair)
    sizes = {name: curator.sizes[name] for name in columns}
    chosen: list[Clique] = []
    for paid in range(most):
        offered = further_cliques(sizes, [*tree, *chosen], (), width, max_cells)
        new = [pair for pair in offered if len(pair) == 2 and pair not in held]
        candidates = [pair for pair, fine in zip(new, growth.may_link(new).tolist(), strict=True) if fine]
        if not candidates:
            return chosen, share * (most - paid) / most
        pair = curator.choose(score, [*candidates, ()], budget.choice(share / most), "further pair", pool)
        if not pair:
            return chosen, share * (most - paid - 1) / most
        growth.link(pair)
        held.add(pair)
        chosen.append(pair)
    return chosen, 0.0


def choose_triples(
    curator: Curator,
    budget: BudgetSplit,
    share: float,
    separations: Sequence[Separation],
    target: str,
    features: Sequence[str],
    most: int,
    max_cells: int,
    linked: Sequence[Clique],
    pool: str = "",
) -> tuple[list[Clique], float]:
    """At most ``most`` tables (X, X′, target) with X, X′ among ``features``, and the part of ``share`` left unspent.

    PRISM §5.3: by association given the target (:class:`ConditionalScore`, where the paper has conditional mutual
    information), share/most a choice. Offered are tables of at most ``max_cells`` cells that the frame allows; the
    pairs stay a forest, so that the model's cliques stay triples.
    """
    order, sizes = list(curator.sizes), curator.sizes
    growth = Growth(tuple(order), separations, features, sizes)
    for pair in linked:
        growth.link(pair)
    for pair in trunk(curator):  # what constraints link must not close a loop either
        if target not in pair:
            growth.add(pair)
    score = ConditionalScore(target)
    chosen: list[Clique] = []
    paid = 0
    while len(chosen) < most:
        triples = _with(target, growth.candidates(), order, sizes, max_cells)
        if not triples:
            break
        triple = next(iter(triples))
        if len(triples) > 1:
            triple = curator.choose(score, list(triples), budget.choice(share / most), "three-way table", pool)
            paid += 1
        growth.add(triples[triple])
        chosen.append(triple)
    return chosen, share * (most - paid) / most if most else share


def _with(
    target: str, pairs: Sequence[Clique], order: Sequence[str], sizes: Mapping[str, int], max_cells: int
) -> dict[Clique, Clique]:
    """Each of ``pairs`` as a table with the target, where that has at most ``max_cells`` cells."""
    small = [(a, b) for a, b in pairs if sizes[a] * sizes[b] * sizes[target] <= max_cells]
    return {tuple(sorted((a, b, target), key=order.index)): (a, b) for a, b in small}
