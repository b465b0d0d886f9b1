"""Counting many marginals together gives the same whole numbers as counting them one at a time."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import espalier.core.tables.counting
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.counting import BLOCK_CELLS, Counting, assign, count_many, cover
from espalier.core.tables.table import Table


def table(sizes, rows, seed=0):
    rng = np.random.default_rng(seed)
    schema = Schema(tuple(Column(n, "categorical", tuple(f"v{i}" for i in range(s))) for n, s in sizes.items()))
    return Table(schema, {n: rng.integers(0, s, rows) for n, s in sizes.items()}, rows)


@pytest.mark.parametrize(
    "sizes",
    [
        {f"c{i}": s for i, s in enumerate((11, 9, 16, 7, 15, 6, 5, 2, 7, 6, 8, 2))},
        {f"c{i}": 2 for i in range(40)},
        {f"c{i}": 2 + i % 3 for i in range(30)},
        {f"c{i}": (3, 40, 300, 1)[i % 4] for i in range(12)},
    ],
    ids=["adult", "binary", "small", "mixed"],
)
@pytest.mark.parametrize("rows", [0, 1, 511, 70_001])
def test_many_at_once_are_the_counts_of_each(sizes, rows):
    data = table(sizes, rows)
    cliques = [*itertools.combinations(sizes, 2), *((n,) for n in sizes), ("c0", "c2", "c5"), ("c1", "c0")]
    for clique, got in zip(cliques, count_many(data.codes, sizes, rows, cliques), strict=True):
        assert np.array_equal(got, data.count(clique)), clique


def test_batches_add_up_and_planes_are_used():
    sizes = {f"c{i}": 2 + i % 2 for i in range(30)}
    data, pairs = table(sizes, 100_000), list(itertools.combinations(sizes, 2))
    counting = Counting(pairs, sizes)
    assert counting._pairs == pairs
    for start in range(0, 100_000, 7_777):
        part = {n: c[start : start + 7_777] for n, c in data.codes.items()}
        counting.add(part, len(part["c0"]))
    assert all(np.array_equal(got, data.count(q)) for q, got in zip(pairs, counting.counts(), strict=True))


@pytest.mark.parametrize("kept", [0, 70_000, 1 << 21])
def test_batches_add_up_whichever_blocks_are_kept_until_the_end(kept, monkeypatch):
    monkeypatch.setattr(espalier.core.tables.counting, "KEPT_CELLS", kept)
    sizes = {f"c{i}": s for i, s in enumerate((11, 9, 16, 7, 15, 6, 5, 2, 7, 6, 8, 2))}
    data, cliques = table(sizes, 5_000), [*itertools.combinations(sizes, 2), *((n,) for n in sizes)]
    counting = Counting(cliques, sizes)
    assert (0 < len(counting._totals) < len(counting._blocks)) == (kept == 70_000)
    for start in range(0, 5_000, 1_999):
        part = {n: c[start : start + 1_999] for n, c in data.codes.items()}
        counting.add(part, len(part["c0"]))
        counting.counts()  # a request in between changes nothing
    assert all(np.array_equal(got, data.count(q)) for q, got in zip(cliques, counting.counts(), strict=True))


def test_pairs_on_planes_may_be_asked_for_in_any_order():
    """A run of planes in an order other than their own, such as 1, 3, 2, 4, is not the run between its ends."""
    sizes = {f"c{i}": 2 for i in range(7)}
    data, pairs = table(sizes, 200), list(itertools.combinations(sizes, 2))
    assert Counting(pairs, sizes)._pairs
    for seed in range(50):
        asked = [pairs[i] for i in np.random.default_rng(seed).permutation(len(pairs))]
        for clique, got in zip(asked, data.count_many(asked), strict=True):
            assert np.array_equal(got, data.count(clique)), (seed, clique)


def test_a_cover_holds_everything_within_its_cells():
    sizes = {f"c{i}": (11, 9, 16, 7, 15, 6, 5, 2, 7, 6, 8, 2)[i] for i in range(12)}
    cliques = [*itertools.combinations(sizes, 2), *((n,) for n in sizes), *itertools.combinations(list(sizes)[:5], 3)]
    blocks = cover(cliques, sizes)
    assert set(assign(cliques, blocks)) == set(cliques)
    assert all(math.prod(sizes[n] for n in b) <= BLOCK_CELLS for b in blocks)
    assert len(cover(cliques[:78], sizes)) <= 9


def test_a_clique_larger_than_a_block_stands_alone():
    sizes = {"a": 300, "b": 300, "c": 2}
    assert cover([("a", "b"), ("a", "c")], sizes) == [("a", "b"), ("a", "c")]


def test_a_column_as_large_as_a_block_beside_one_of_one_value():
    sizes = {"one": 1, "large": BLOCK_CELLS}
    data = table(sizes, 1_000)
    assert np.array_equal(data.count_many([("one", "large")])[0], data.count(("one", "large")))


def test_planes_full_of_bits_are_counted():
    """Every bit of a plane is set if its column has only one value; their number may exceed what 16 bits can count."""
    sizes, rows = {f"c{i}": 2 for i in range(7)}, 200_003
    codes = {name: np.zeros(rows, dtype=np.uint8) for name in sizes}
    counting = Counting(list(itertools.combinations(sizes, 2)), sizes)
    assert counting._pairs
    counting.add(codes, rows)
    assert all(np.array_equal(got, [[rows, 0], [0, 0]]) for got in counting.counts())
