"""Inverse curvature of the estimation problem on a tree, which turns a gradient into a good step.

The log partition function of a decomposable model has an explicit inverse Hessian: add r_c/μ_c on every clique and
subtract r_s/μ_s on every separator (the second derivative of the Bethe entropy, which is exact on junction trees;
Wainwright & Jordan 2008, section 4.1). Here, each measured clique is attached to an earlier clique by the largest
intersection. If the cliques form a junction tree, the result is the exact inverse. If they close loops, it is a
positive definite approximation, and conjugate gradients correct its error.

The regularisation of a proximal step adds λ/w_b to the counts of a region ``b``. This amount is far smaller for a
precisely measured marginal than for the cells of a clique that contains it. Each region is therefore a separate level:
the part of a clique's form that belongs to ``b`` is replaced by a form with the smaller denominator of ``b``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from espalier.core.graph.junction_tree import FloatArray
from espalier.core.models.graphical.regions import Regions


@dataclass(frozen=True)
class Link:
    """A maximal clique (a region) and its attachment to an earlier clique.

    ``separator`` is the region that both share (−1 if there is none). ``loop`` is true if the clique shares further
    columns with other cliques and so closes a loop.
    """

    clique: int
    separator: int
    loop: bool


@dataclass(frozen=True)
class Level:
    """A region ``inner`` inside ``host`` whose form replaces its part of the host's form.

    ``drop`` are the host's axes that are not in the inner region.
    """

    host: int
    inner: int
    drop: tuple[int, ...]


def links(regions: Regions) -> list[Link]:
    """Return the maximal cliques in the order in which they are attached. Cliques that close no loop come first."""
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
    """Return the regions inside the cliques of ``chain``, each in the first clique that contains it."""
    found: list[Level] = []
    introduced: set[int] = set()
    for link in chain:
        inside = [*regions.below[link.clique], link.clique]
        for b in inside[:-1]:
            if b not in introduced:
                host = next(i for i in inside if b in regions.below[i])
                found.append(Level(host, b, regions.dropped(host, b)))
        introduced.update(inside)
    return found


class TreeMetric:
    """Inverse Hessian of a tree at one point, as a positive semidefinite operator on flat vectors. ``marginals`` are
    the marginals at the point. ``scale`` is a flat vector of positive counts, the denominators. In every region, it is
    at most the sums over a host. On a clique with separator s the form is Σ (r_c − p(c|s) r_s)² / scale_c: the part of
    the residual that the separator does not explain. The separator belongs to the clique that introduced it, so a hub
    with hundreds of cliques is moved only once instead of hundreds of times.
    """

    def __init__(
        self, regions: Regions, chain: list[Link], inner: list[Level], marginals: FloatArray, scale: FloatArray
    ) -> None:
        self.regions, self.chain = regions, chain
        self.diagonal = np.zeros(regions.size)
        inverse = 1.0 / scale
        for link in chain:
            span = regions.spans[link.clique]
            self.diagonal[span] = inverse[span]
        for level in inner:
            span = regions.spans[level.inner]
            table = scale[regions.spans[level.host]].reshape(regions.places[level.host].shape)
            self.diagonal[span] = inverse[span] - 1.0 / np.add.reduce(table, axis=level.drop).ravel()
        counts = regions.views(marginals)
        self.shares: list[FloatArray] = []
        for link in chain:
            if link.separator < 0:
                self.shares.append(counts[link.clique])
                continue
            shared = np.maximum(counts[link.separator], 1e-300)
            self.shares.append(counts[link.clique] / shared.reshape(regions.lifted(link.clique, link.separator)))

    def apply(self, residual: FloatArray) -> FloatArray:
        """Return the step in the potentials for a residual of the marginals."""
        regions = self.regions
        step = residual * self.diagonal
        steps, residuals, diagonals = regions.views(step), regions.views(residual), regions.views(self.diagonal)
        for link, share in zip(self.chain, self.shares, strict=True):
            if link.separator < 0:
                continue
            explained = share * residuals[link.separator].reshape(regions.lifted(link.clique, link.separator))
            own = steps[link.clique]
            own -= explained * diagonals[link.clique]
            steps[link.separator][...] -= np.add.reduce(share * own, axis=regions.dropped(link.clique, link.separator))
        return step


def closed_form(regions: Regions, chain: list[Link], marginals: FloatArray) -> FloatArray:
    """Return the log potentials of the decomposable model with the given positive marginals, leaving out loops.

    Each clique contributes its own p(clique | separator). Otherwise, the differences between cliques that do not quite
    agree on a separator (because cells raised above zero do not add up) would multiply. With 200 cliques around one
    hub, all of the mass would move to a wrong category of the hub.
    """
    potentials = np.zeros(regions.size)
    for link in chain:
        if link.loop:
            continue
        span = regions.spans[link.clique]
        potentials[span] += np.log(marginals[span])
        if link.separator >= 0:
            table = marginals[span].reshape(regions.places[link.clique].shape)
            given = np.add.reduce(table, axis=regions.dropped(link.clique, link.separator))
            potentials[regions.spans[link.separator]] -= np.log(given).ravel()
    return potentials
