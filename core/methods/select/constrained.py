"""Effect of public constraints on the choice of counts. Constraints join columns in every model of a plan."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

from espalier.core.graph.junction_tree import junction_tree
from espalier.core.graph.separations import Clique, clique_edges
from espalier.core.privacy.curator import Curator
from espalier.core.project.constraints import Constraints


def joined(curator: Curator) -> list[Clique]:
    """Return the cliques of a small chordal graph in which the columns of every constraint are linked."""
    return linked_by(curator.sizes, curator.impossible)


def linked_by(sizes: Mapping[str, int], cliques: Iterable[Clique]) -> list[Clique]:
    """Return the cliques of a small chordal graph in which the columns of each of ``cliques`` are linked."""
    held = list(cliques)
    if not held:
        return []
    tree = junction_tree(sizes, held)
    nodes = (tree.names((*node.given, node.own)) for node in tree.nodes)
    return [names for names in nodes if len(names) > 1]


def fits(curator: Curator, cliques: Sequence[Clique], max_cells: int) -> bool:
    """Return whether a model of ``cliques`` and the constraints stays within ``max_cells`` in its largest table.

    The answer depends only on public sizes and earlier choices, so a choice may exclude cliques that do not fit.
    Without constraints, methods check their own cliques.
    """
    if not curator.impossible:
        return True
    tree = junction_tree(curator.sizes, [*curator.impossible, *cliques])
    return max(math.prod(node.shape) for node in tree.nodes) <= max_cells


def trunk(curator: Curator) -> list[Clique]:
    """Return pairs that link the columns in each component of the constraints' graph without a loop. They become the
    initial edges of a tree.
    """
    part = {name: name for name in curator.sizes}
    out: list[Clique] = []
    for a, b in clique_edges(joined(curator)):
        if part[a] != part[b]:
            out.append((a, b))
            old, new = part[b], part[a]
            part = {name: new if label == old else label for name, label in part.items()}
    return out


def worth_counting(curator: Curator, constraints: Constraints) -> list[Clique]:
    """Return the informative pairs inside constraints: all except those in which one column determines the other."""
    known = {frozenset(c.columns) for c in constraints.determines}
    pairs = dict.fromkeys(p for q in curator.impossible for p in itertools.combinations(q, 2))
    return [p for p in pairs if frozenset(p) not in known and min(curator.sizes[name] for name in p) > 1]
