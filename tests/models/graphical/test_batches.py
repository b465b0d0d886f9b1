"""Rows in batches: quotas of the whole output, and the distribution of rows drawn at once."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from espalier.core.models.graphical import estimate
from espalier.core.models.graphical.batches import _shuffled, draw_batches, quotas, runs
from espalier.core.privacy.draws import Measurement
from espalier.core.project.schema import Column, Schema
from espalier.core.release.output import numbers, write_rows
from espalier.core.tables.reading import read_table
from espalier.core.tables.table import Table

SIZES = {"a": 3, "b": 4, "c": 2, "d": 3, "e": 1}
CLIQUES = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")]


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(3)
    joint = rng.dirichlet(np.ones(72)).reshape(3, 4, 2, 3) * 1000
    made = []
    for clique in CLIQUES:
        gone = tuple(i for i, n in enumerate("abcd") if n not in clique)
        made.append(Measurement(clique, joint.sum(axis=gone), 1.0))
    return estimate(SIZES, made, 1000.0)


def drawn(model, n, step, seed):
    fitted = model._calibrated
    parts = list(draw_batches(fitted.tree, fitted.conditionals, n, np.random.default_rng(seed), step=step))
    return {name: np.concatenate([p[name] for p in parts]) for name in SIZES}, parts


def test_the_whole_output_keeps_the_quotas(model):
    n = 10_007
    codes, parts = drawn(model, n, 1_000, 0)
    assert [len(p["a"]) for p in parts] == [1_000] * 10 + [7]
    for clique in CLIQUES:
        shape = [SIZES[c] for c in clique]
        got = np.bincount(np.ravel_multi_index([codes[c] for c in clique], shape), minlength=np.prod(shape))
        assert abs(got.reshape(shape) - n * model.marginal(clique) / model.marginal(clique).sum()).max() < 6
    one_by_one = np.bincount(codes["d"], minlength=3)
    assert one_by_one.sum() == n


def test_batches_are_exchangeable(model):
    """Each row of the first batch follows the model: its mean over many runs is the model's share."""
    fitted, share = model._calibrated, model.marginal(("a", "b"))
    share = share / share.sum()
    runs, step, n = 400, 50, 200
    first = np.zeros(12)
    for seed in range(runs):
        batch = next(draw_batches(fitted.tree, fitted.conditionals, n, np.random.default_rng(seed), step=step))
        first += np.bincount(np.ravel_multi_index((batch["a"], batch["b"]), (3, 4)), minlength=12)
    spread = np.sqrt(runs * step * share.ravel())  # binomial; drawing without replacement has a smaller variance
    assert (abs(first - runs * step * share.ravel()) < 6 * spread).all()


def test_quotas_agree_on_what_nodes_share(model):
    fitted = model._calibrated
    tables = quotas(fitted.tree, fitted.conditionals, 999, np.random.default_rng(0))
    for node, table in zip(fitted.tree.nodes, tables, strict=True):
        assert table.min() >= 0
        assert table.sum() == 999
        if node.given:
            parent = fitted.tree.nodes[node.parent]
            above = tables[node.parent].reshape(parent.shape).sum(axis=node.drop).ravel()
            assert np.array_equal(table.sum(axis=1), above)


def test_columns_that_follow_one_another_are_drawn_in_one_run(model):
    nodes = model._calibrated.tree.nodes
    together = runs(nodes)
    assert sorted(node.own for run in together for node in run) == list(range(len(nodes)))
    assert max(map(len, together)) > 1
    known: set[int] = set()
    for run in together:
        assert set(run[0].given) <= known
        for before, node in itertools.pairwise(run):
            assert node.given == (*before.given, before.own)
        known |= {node.own for node in run}


@pytest.mark.nightly
def test_every_place_of_a_batch_is_as_good_as_every_other(model):
    """Quotas are drawn once; then each place in a batch contains each cell as often as they require."""
    fitted, n, step, times = model._calibrated, 30, 10, 1_500
    rng, found, share = np.random.default_rng(0), np.zeros((step, 12)), np.zeros(12)
    for _ in range(times):
        parts = list(draw_batches(fitted.tree, fitted.conditionals, n, rng, step=step))
        cells = [np.ravel_multi_index((part["a"], part["b"]), (3, 4)) for part in parts]
        found[np.arange(step), cells[1]] += 1
        share += np.bincount(np.concatenate(cells), minlength=12) / n
    assert (abs(found - share) < 6 * np.sqrt(share) + 6).all()


@pytest.mark.parametrize("end", ["parquet", "csv"])
def test_files_hold_rows_of_the_schema(model, tmp_path, end):
    schema = Schema(
        (
            Column("a", "categorical", ("=1+1", "x"), missing=True),
            Column("b", "numeric", edges=(0, 10, 20, 30, 41), integer=True),
            Column("c", "categorical", ("u", "v")),
            Column("d", "numeric", edges=(0, 0.5, 2, 1000)),
            Column("e", "categorical", ("only",)),
        )
    )
    path = tmp_path / f"out.{end}"
    rng = np.random.default_rng(0)
    write_rows(model.sample_batches(3_000, rng, even=True), schema, 3_000, path, rng)
    if end == "csv":
        assert b"'=1+1" in path.read_bytes()
        return
    table = parquet.read_table(path)
    assert table.schema.field("b").type == pa.int64()
    assert table["a"].null_count > 0
    back = Table.encode(read_table(path), schema)
    share = model.marginal(("c", "d"))
    assert abs(back.count(("c", "d")) - 3_000 * share / share.sum()).max() < 6


def test_numbers_stay_in_their_bins():
    column = Column("x", "numeric", edges=(0, 1e-7, 0.3, 1e6, 1e15))
    codes = np.repeat(np.arange(4), 5_000)
    drawn = numbers(column, codes, np.random.default_rng(0))
    assert np.array_equal(np.searchsorted(column.edges[1:-1], drawn, side="right"), codes)
    assert all(len(f"{x:.12g}") <= 19 for x in drawn.tolist())
    whole = numbers(
        Column("x", "numeric", edges=(0, 2.5, 4), integer=True), np.repeat([0, 1], 999), np.random.default_rng(0)
    )
    assert sorted(set(whole.tolist())) == [0, 1, 2, 3, 4]
    assert list(itertools.chain(sorted(set(whole[:999].tolist())))) == [0, 1, 2]


@pytest.mark.parametrize("groups", [1, 7, 1 << 17, 1 << 40])
def test_rows_are_shuffled_within_their_groups_and_nowhere_else(groups):
    rng, rows = np.random.default_rng(0), 3_000
    group = None if groups == 1 else rng.integers(0, min(groups, 40), rows)
    orders = [_shuffled(group, groups, rows, rng) for _ in range(200)]
    for order in orders[:5]:
        assert np.array_equal(np.sort(order), np.arange(rows))
        assert group is None or (np.diff(group[order]) >= 0).all()
    size = rows if group is None else int((group == 0).sum())
    places = np.array([order[:size].argmin() for order in orders])  # the position of the group's first row
    assert abs(places.mean() / size - 0.5) < 6 * np.sqrt(1 / 12 / 200)
