"""Total variation and KL divergence equal those computed cell by cell."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest

from espalier.core.evaluation.fidelity import fidelity_of
from espalier.core.tables import counting
from tests.support.tables import quiet, random_table, schema_of, table_of


def rows_of(table, names):
    return list(zip(*(table.codes[n].tolist() for n in names), strict=True))


def slow(real, synthetic, a, b):
    """Return (tv, kl, tv of the synthetic table's independent columns), computed cell by cell."""
    sizes = real.schema.sizes
    left, right = rows_of(real, (a, b)), rows_of(synthetic, (a, b))
    cells = list(itertools.product(range(sizes[a]), range(sizes[b])))
    tv = kl = independent = 0.0
    for cell in cells:
        r, s = left.count(cell), right.count(cell)
        p, q = r / len(left), s / len(right)
        alone = sum(x == cell[0] for x, _ in right) / len(right) * sum(y == cell[1] for _, y in right) / len(right)
        tv += abs(p - q) / 2
        independent += abs(p - alone) / 2
        p, q = (r + 0.5) / (len(left) + len(cells) / 2), (s + 0.5) / (len(right) + len(cells) / 2)
        kl += p * math.log(p / q)
    return tv, kl, independent


@pytest.mark.parametrize("dense", [True, False])
def test_every_figure_is_what_a_loop_over_the_cells_gives(dense, monkeypatch):
    if not dense:
        monkeypatch.setattr(counting, "DENSE_CELLS", 0)
    schema = schema_of(a=3, b=1, c=5, d=2)
    real, synthetic = random_table(schema, 60, 1), random_table(schema, 35, 2)
    result = fidelity_of(real, synthetic, quiet)
    assert [p.columns for p in result.pairs] == list(itertools.combinations("abcd", 2))
    for pair in result.pairs:
        tv, kl, independent = slow(real, synthetic, *pair.columns)
        assert (pair.tv, pair.kl, pair.tv_independent) == pytest.approx((tv, kl, independent), abs=1e-12)
    assert result.two_way_tv == pytest.approx(np.mean([p.tv for p in result.pairs]))
    assert result.kl == pytest.approx(np.mean([p.kl for p in result.pairs]))
    for column in result.columns:
        left, right = real.codes[column.column].tolist(), synthetic.codes[column.column].tolist()
        gaps = [abs(left.count(v) / 60 - right.count(v) / 35) for v in range(schema[column.column].size)]
        assert column.tv == pytest.approx(sum(gaps) / 2)
    assert result.one_way_tv == pytest.approx(np.mean([c.tv for c in result.columns]))


def test_by_hand():
    schema = schema_of(a=2, b=2)
    real, synthetic = table_of(schema, a=[0, 0, 1, 1], b=[0, 0, 1, 1]), table_of(schema, a=[0, 1], b=[0, 0])
    result = fidelity_of(real, synthetic, quiet)
    (pair,) = result.pairs
    assert result.one_way_tv == 0.25  # a: 0, b: ½
    assert pair.tv == 0.5  # real ½, 0, 0, ½ against ½, 0, ½, 0
    # with ½ added: real (2.5, .5, .5, 2.5)/6, synthetic (1.5, .5, 1.5, .5)/4
    expected = (2.5 * math.log(10 / 9) + 0.5 * math.log(2 / 3) + 0.5 * math.log(2 / 9) + 2.5 * math.log(10 / 3)) / 6
    assert pair.kl == pytest.approx(expected)
    assert result.compared_with == "the table itself"


def test_a_table_is_at_no_distance_from_itself():
    table = random_table(schema_of(a=3, b=4, c=2), 50, 3)
    result = fidelity_of(table, table, quiet)
    assert (result.one_way_tv, result.two_way_tv, result.kl) == (0, 0, 0)
    assert result.worse_than_independence == ()


def test_pairs_that_come_out_worse_than_independence_are_listed_worst_first():
    schema = schema_of(a=2, b=2, c=2)
    rng = np.random.default_rng(4)
    a, flip = rng.integers(0, 2, 20_000), rng.random(20_000) < 0.2
    real = table_of(schema, a=a, b=a ^ flip, c=a)
    turned = table_of(schema, a=a, b=1 - (a ^ flip), c=1 - a)
    listed = fidelity_of(real, turned, quiet).worse_than_independence
    assert [p.columns for p in listed] == [("a", "c"), ("a", "b")]
    assert all(p.tv > p.tv_independent + p.sampling for p in listed)


@pytest.mark.parametrize("size", [2, 30])
def test_independent_columns_are_not_called_worse_than_independence(size):
    """Sampling error is allowed for, however sparse the pair."""
    schema = schema_of(a=size, b=size)
    rng = np.random.default_rng(5)
    for _ in range(20):
        real, other = (table_of(schema, **{n: rng.integers(0, size, 500) for n in "ab"}) for _ in range(2))
        assert fidelity_of(real, other, quiet).worse_than_independence == ()


def test_the_allowance_bounds_what_sampling_does_on_average():
    rng = np.random.default_rng(6)
    qa, qb, rows = np.array([0.7, 0.2, 0.1]), np.array([0.5, 0.4, 0.05, 0.05]), 200
    cells = np.outer(qa, qb).ravel()
    draws = rng.multinomial(rows, cells, size=2000) / rows
    average = np.abs(draws - cells).sum(axis=1).mean() / 2
    allowance = np.sqrt(qa).sum() * np.sqrt(qb).sum() / np.sqrt(rows) / 2
    assert average <= allowance <= 2 * average


def test_a_single_column_has_no_pairs():
    schema = schema_of(a=2)
    shown = fidelity_of(table_of(schema, a=[0, 1]), table_of(schema, a=[0, 0]), quiet).to_json()
    assert shown["one_way_tv"] == 0.5
    assert shown["two_way_tv"] is None
    assert shown["kl_reason"] == "a single column has no pairs"


def test_a_pair_too_large_to_write_out_is_counted_by_its_rows():
    schema = schema_of(a=40_000, b=50_000)
    real, synthetic = table_of(schema, a=[0, 39_999], b=[1, 49_999]), table_of(schema, a=[0, 7], b=[1, 7])
    (pair,) = fidelity_of(real, synthetic, quiet).pairs
    assert (pair.tv, pair.tv_independent) == (0.5, 0.75)
    assert 0 <= pair.kl < 1e-6


def test_a_hundred_columns_stay_quick():
    schema = schema_of(**{f"c{i}": 6 for i in range(100)})
    real, synthetic = random_table(schema, 5000, 7), random_table(schema, 5000, 8)
    start = time.process_time()
    assert len(fidelity_of(real, synthetic, quiet).pairs) == 4950
    assert time.process_time() - start < 8
