"""Random graphical models, and answers by brute force: d-separation by networkx, sums over the joint table."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from string import ascii_letters

import networkx as nx
import numpy as np

from espalier.core.graph.dag import Dag
from espalier.core.models.graphical import FitSummary, GraphicalModel

SHAPES = ("tree", "forest", "cycle", "grid", "clique", "triples")
NO_FIT = FitSummary(0, 0.0, 0.0, True, "none")


def d_separated(dag: Dag, left: Iterable[str], right: Iterable[str], given: Iterable[str]) -> bool:
    """Return whether the drawing implies left ⊥ right | given."""
    left, right, given = set(left), set(right), set(given)
    graph = nx.DiGraph(list(dag.links))
    graph.add_nodes_from(left | right | given)
    return bool(nx.is_d_separator(graph, left - given, right - given, given))


def shape_cliques(shape, count, rng):
    """The cliques of a graph of this shape over ``count`` numbered columns."""
    if shape == "tree":
        return [(int(rng.integers(0, i)), i) for i in range(1, count)]
    if shape == "forest":
        return [(int(rng.integers(0, i)), i) for i in range(1, count) if rng.random() < 0.6]
    if shape == "cycle":
        return [(i, i + 1) for i in range(count - 1)] + [(0, count - 1)] * (count > 2)
    if shape == "grid":
        down = [(i, i + 2) for i in range(count - 2)]
        return down + [(i, i + 1) for i in range(0, count - 1, 2)]
    if shape == "clique":
        return list(combinations(range(count), 2))
    triples = [tuple(sorted(rng.choice(count, 3, replace=False).tolist())) for _ in range(3)] if count > 2 else []
    return list(dict.fromkeys([*triples, *((i,) for i in range(count))]))


def random_model(shape, rng, *, largest=5, columns=6, zeros=False):
    """Return a model of random potentials whose joint table stays small."""
    count = int(rng.integers(1, columns + 1))
    sizes = {f"col {ascii_letters[i]}": int(rng.integers(1, largest + 1)) for i in range(count)}
    order = list(sizes)
    cliques = [tuple(order[i] for i in clique) for clique in shape_cliques(shape, count, rng)]
    potentials = {}
    for clique in dict.fromkeys(cliques):
        table = rng.normal(0.0, 1.5, [sizes[name] for name in clique])
        if zeros:
            table[rng.random(table.shape) < 0.1] = -np.inf
        potentials[clique] = table
    return GraphicalModel(sizes, tuple(potentials), potentials, float(rng.uniform(1, 1000)), NO_FIT)


def joint_scores(model):
    """log Π exp potentials over every row: one axis per column."""
    order = list(model.sizes)
    scores = np.zeros(list(model.sizes.values()))
    for clique, table in model.potentials.items():
        held = sorted(clique, key=order.index)
        table = table.transpose([clique.index(name) for name in held])
        scores = scores + table.reshape([model.sizes[n] if n in clique else 1 for n in order])
    return scores


def joint_probabilities(model):
    """The whole joint distribution and the log partition function."""
    scores = joint_scores(model)
    peak = scores.max()
    weights = np.exp(scores - peak)
    return weights / weights.sum(), float(peak + np.log(weights.sum()))


def project(model, joint, columns):
    """The marginal of a joint table, axes in the order of ``columns``."""
    order = list(model.sizes)
    table = joint.sum(axis=tuple(i for i, name in enumerate(order) if name not in columns))
    held = [name for name in order if name in columns]
    return table.transpose([held.index(name) for name in columns])


def marginal_matrix(sizes, clique):
    """The matrix that takes a flat joint table to the flat marginal of ``clique`` (in schema order)."""
    order, shape = list(sizes), list(sizes.values())
    codes = np.indices(shape).reshape(len(shape), -1)
    kept = [order.index(name) for name in clique]
    index = (
        np.ravel_multi_index(tuple(codes[kept]), [shape[i] for i in kept]) if kept else np.zeros(codes.shape[1], int)
    )
    matrix = np.zeros((int(np.prod([shape[i] for i in kept])), codes.shape[1]))
    matrix[index, np.arange(codes.shape[1])] = 1.0
    return matrix
