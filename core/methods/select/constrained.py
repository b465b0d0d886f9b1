"""What public constraints mean for the choice of what to count: which columns they join in every model of a plan."""

from __future__ import annotations

import itertools

from core.graph.junction_tree import junction_tree
from core.graph.separations import Clique, clique_edges
from core.privacy.curator import Curator
from core.project.constraints import Constraints


def joined(curator: Curator) -> list[Clique]:
    """The cliques of the smallest chordal graph we find in which the columns of every constraint are linked."""
    if not curator.impossible:
        return []
    tree = junction_tree(curator.sizes, curator.impossible)
    nodes = (tree.names((*node.given, node.own)) for node in tree.nodes)
    return [names for names in nodes if len(names) > 1]


def trunk(curator: Curator) -> list[Clique]:
    """Pairs that link the columns of each part of that graph without a loop: what a tree begins with."""
    part = {name: name for name in curator.sizes}
    out: list[Clique] = []
    for a, b in clique_edges(joined(curator)):
        if part[a] != part[b]:
            out.append((a, b))
            old, new = part[b], part[a]
            part = {name: new if label == old else label for name, label in part.items()}
    return out


def worth_counting(curator: Curator, constraints: Constraints) -> list[Clique]:
    """The pairs inside constraints whose counts tell something: all but those of which one column says the other."""
    known = {frozenset(c.columns) for c in constraints.determines}
    pairs = dict.fromkeys(p for q in curator.impossible for p in itertools.combinations(q, 2))
    return [p for p in pairs if frozenset(p) not in known and min(curator.sizes[name] for name in p) > 1]
