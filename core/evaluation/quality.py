"""Dependence between columns that a tree captures: PrivCI's proxy objective q (§V-B1)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from espalier.core.graph.separations import Clique
from espalier.core.tables.table import Table


def dependence(table: Table, pair: Clique) -> float:
    """Return ‖c − c_x c_y/n‖₁ in rows, the distance of a pair's counts from independence. It is computed exactly from
    real rows, so it is not private.
    """
    counts = table.count(pair)
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / max(table.rows, 1)
    return float(np.abs(counts - expected).sum())


def tree_quality(table: Table, pairs: Iterable[Clique]) -> float:
    """Return q: the sum of `dependence` over the best spanning tree (or forest) of ``pairs``; for a tree, over its
    edges.
    """
    import networkx as nx

    graph = nx.Graph()
    graph.add_weighted_edges_from((a, b, dependence(table, (a, b))) for a, b in pairs)
    return float(nx.maximum_spanning_tree(graph).size("weight"))


def best_tree_quality(table: Table) -> float:
    """Return q of the best tree over all columns, which is an upper bound for every choice."""
    names = table.schema.names
    return tree_quality(table, [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]])
