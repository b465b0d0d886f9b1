"""Elimination orders agree with a slow search that scores every column again at each step."""

import itertools
import math
import random

import pytest

from espalier.core.graph import elimination
from espalier.core.graph.elimination import Order, eliminate


def graphs():
    """Random graphs: sparse, dense, a hub over a tree, and a hub over a tree with further pairs."""
    rng = random.Random(3)
    for trial in range(240):
        d = rng.randint(1, 30)
        sizes = {f"c{i}": rng.choice([1, 2, 2, 2, 3, 4, 5, 8, 10, 50]) for i in range(d)}
        names = list(sizes)
        tree = [(names[rng.randrange(i)], names[i]) for i in range(1, d)]
        hub = [(names[-1], name) for name in names[:-1] if rng.random() < 0.8]
        further = [tuple(rng.sample(names, 2)) for _ in range(d // 3) if d > 1]
        density = rng.random()
        yield (
            sizes,
            [
                [tuple(rng.sample(names, min(d, rng.randint(1, 4)))) for _ in range(rng.randint(0, d))],
                [pair for pair in itertools.combinations(names, 2) if rng.random() < density],
                tree + hub,
                tree + hub + further,
            ][trial % 4],
        )


def greedy_slowly(start, columns, weights, rule):
    """The definition: eliminate the column with the smallest (fill, weight, position), scored again at each step."""
    near = {v: {u for u in range(len(start)) if start[v] >> u & 1} for v in range(len(start))}

    def score(v):
        missing = sum(b not in near[a] for a, b in itertools.combinations(sorted(near[v]), 2))
        weight = weights[v] + sum(weights[u] for u in sorted(near[v]))
        return (missing, weight, v) if rule == "fill" else (weight, v)

    left, order = set(columns), []
    while left:
        v = min(left, key=score)
        left.remove(v)
        order.append((v, sum(1 << u for u in near[v])))
        for u in near[v]:
            near[u] = (near[u] | near[v]) - {u, v}
    return order


def test_the_greedy_orders_are_those_of_their_definition(monkeypatch):
    found = [eliminate(sizes, cliques) for sizes, cliques in graphs()]
    monkeypatch.setattr(elimination, "_greedy", greedy_slowly)
    for (sizes, cliques), quick in zip(graphs(), found, strict=True):
        assert quick == eliminate(sizes, cliques)


@pytest.mark.parametrize("seed", range(5))
def test_a_growing_graph_has_the_tables_of_its_order(seed):
    rng = random.Random(seed)
    for sizes, cliques in itertools.islice(graphs(), seed, None, 5):
        names = [name for name, size in sizes.items() if size > 1]
        rng.shuffle(names)
        half = len(cliques) // 2
        order = Order(sizes, buckets_slowly(cliques[:half], names))
        for k, clique in enumerate(cliques[half:], half):
            before = list(order.cells)
            grown = order.joined(clique)
            assert order.cells == before, "the old order stays unchanged"
            order = grown
            expected = buckets_slowly(cliques[: k + 1], names)
            assert order.cells == [sizes[own] * math.prod(sizes[name] for name in given) for own, given in expected]


def buckets_slowly(cliques, names):
    """Eliminate ``names`` in their order, with sets."""
    near = {name: {other for q in cliques if name in q for other in q if other in names} - {name} for name in names}
    buckets = []
    for name in names:
        buckets.append((name, tuple(near[name])))
        for other in near[name]:
            near[other] = (near[other] | near[name]) - {other, name}
    return buckets
