"""The curvature of the estimation problem, inverted on a tree: what turns a gradient into a good step.

The log partition function of a decomposable model has an explicit inverse Hessian: add r_c/μ_c on every clique,
subtract r_s/μ_s on every separator (the second derivative of the Bethe entropy, which is exact on junction trees;
Wainwright & Jordan 2008, section 4.1). Here the measured cliques are attached one after the other to an earlier
one by their largest intersection. Where they form a junction tree this is the exact inverse; where they close
loops it is a positive definite stand-in, and L-BFGS learns the rest.

The regularisation of a proximal step adds λ/w_b to the counts of a region ``b``, which is far less on a
precisely measured marginal than on the cells of a clique that holds it. So each region is a level of its own:
the part of a clique's form that belongs to ``b`` is replaced by one with ``b``'s own, smaller denominator.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.inference.junction_tree import FloatArray
from core.inference.regions import Regions


@dataclass(frozen=True)
class Link:
    """A maximal clique (a region) and how it hangs on an earlier one.

    ``separator`` is the region they share (−1 if nothing), ``loop`` whether the clique shares yet more columns
    with others and so closes a loop.
    """

    clique: int
    separator: int
    loop: bool


@dataclass(frozen=True)
class Level:
    """The part of region ``host`` that region ``inner`` takes over, or gives up to an earlier clique.

    ``drop`` are the axes of the host that are not in the inner region; ``own`` whether the inner region then
    contributes a form of its own.
    """

    host: int
    inner: int
    drop: tuple[int, ...]
    own: bool


def links(regions: Regions) -> list[Link]:
    """The maximal cliques in the order in which they are attached: those that close no loop first."""
    members = {i: frozenset(regions.places[i].columns) for i in regions.maximal}
    holding: dict[int, list[int]] = {}
    for i, held in members.items():
        for c in held:
            holding.setdefault(c, []).append(i)
    found: list[Link] = []
    covered: set[int] = set()
    best: dict[int, frozenset[int]] = {i: frozenset() for i in members}
    waiting = dict.fromkeys(regions.maximal)
    near: dict[int, None] = {}
    while waiting:
        pool = near or dict.fromkeys([next(iter(waiting))])
        chosen = min(pool, key=lambda i: (len(members[i] & covered) - len(best[i]), -len(best[i]), i))
        shared = best[chosen]
        columns = regions.places[chosen].columns
        separator = regions.index[tuple(c for c in columns if c in shared)] if shared else -1
        found.append(Link(chosen, separator, len(members[chosen] & covered) > len(shared)))
        covered |= members[chosen]
        del waiting[chosen]
        near.pop(chosen, None)
        for other in {j for c in members[chosen] for j in holding[c]} & waiting.keys():
            near.setdefault(other)
            overlap = members[other] & members[chosen]
            if len(overlap) > len(best[other]):
                best[other] = overlap
    return found


def levels(regions: Regions, chain: list[Link]) -> list[Level]:
    """What the regions inside the cliques of ``chain`` change, in the order of the chain."""
    found: list[Level] = []
    introduced: set[int] = set()
    for link in chain:
        inside = [*regions.below[link.clique], link.clique]
        for b in inside[:-1]:
            fresh = b not in introduced
            if fresh or b == link.separator:
                host = next(i for i in inside if b in regions.below[i])
                found.append(Level(host, b, regions.dropped(host, b), fresh))
        introduced.update(inside)
    return found


def inverse_curvature(regions: Regions, chain: list[Link], inner: list[Level], scale: FloatArray) -> FloatArray:
    """The diagonal of the tree's inverse Hessian, as a flat vector.

    ``scale`` is a flat vector of positive expected counts, on no region above the sums of a host's. The form is
    positive semidefinite: where a level has no form of its own, by the inequality of Cauchy and Schwarz.
    """
    inverse = 1.0 / scale
    diagonal = np.zeros(regions.size)
    for link in chain:
        span = regions.spans[link.clique]
        diagonal[span] = inverse[span]
    for level in inner:
        span = regions.spans[level.inner]
        table = scale[regions.spans[level.host]].reshape(regions.places[level.host].shape)
        diagonal[span] -= 1.0 / np.add.reduce(table, axis=level.drop).ravel()
        if level.own:
            diagonal[span] += inverse[span]
    return diagonal


def closed_form(regions: Regions, chain: list[Link], marginals: FloatArray) -> FloatArray:
    """Log potentials of the decomposable model with the given positive marginals; loops are left out."""
    potentials = np.zeros(regions.size)
    for link in chain:
        if link.loop:
            continue
        span = regions.spans[link.clique]
        potentials[span] += np.log(marginals[span])
        if link.separator >= 0:
            span = regions.spans[link.separator]
            potentials[span] -= np.log(marginals[span])
    return potentials
