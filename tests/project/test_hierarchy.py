"""Hierarchies: reading them, and what is told apart where the rows are."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest

from core.errors import SchemaError
from core.project.hierarchy import MOST_APART, Hierarchy, descend, expected
from core.project.schema import Column

CODES = tuple(f"{chapter}{block}{i}" for chapter in "AB" for block in "xy" for i in range(3))
GIVEN = {code: code[:2] for code in CODES} | {f"{c}{b}": c for c in "AB" for b in "xy"}
COLUMN = Column("code", "categorical", (*CODES, "none"), missing=True)
TREE = Hierarchy.of(COLUMN, GIVEN)


def exact(weights):
    def ask(cut):
        return np.bincount(cut.groups, weights, minlength=len(cut)), 10.0

    return ask


def test_the_top_and_the_levels():
    assert TREE.depth == 3
    top = TREE.top()
    assert sorted(top.names) == ["(missing)", "A", "B", "none"]
    assert [top.names[g] for g in top.groups] == ["A"] * 6 + ["B"] * 6 + ["none", "(missing)"]


def test_only_what_holds_rows_is_divided():
    rows = np.zeros(14)
    rows[:3] = 1000, 500, 3  # Ax0, Ax1, Ax2
    rows[3] = 30  # Ay
    reached = descend(TREE, exact(rows))
    names = [reached.cut.names[g] for g in reached.cut.groups]
    assert names[:3] == ["Ax0", "Ax1", "Ax2"]
    assert names[3:6] == ["Ay"] * 3
    assert names[6:12] == ["B"] * 6
    assert reached.sizes == (4, 5, 7)
    assert reached.sigmas == (10.0,) * 3


def test_rare_parts_are_put_together_again():
    rows = np.zeros(14)
    rows[0] = 1000
    reached = descend(TREE, exact(rows))
    names = [reached.cut.names[g] for g in reached.cut.groups]
    assert names[:3] == ["Ax0", "other Ax", "other Ax"]
    assert names[6:] == ["B"] * 6 + ["none", "(missing)"]
    assert sorted(set(reached.cut.groups.tolist())) == list(range(len(reached.cut)))


def test_rows_needed_is_where_a_group_is_divided():
    node = TREE.labels.index("Ax")
    for count, divided in ((TREE.rows_needed(node, 10) + 0.1, True), (TREE.rows_needed(node, 10) - 0.1, False)):
        cut = TREE.cut([(node,), (TREE.labels.index("Ay"),), (TREE.labels.index("B"),), (12,), (13,)])
        finer = TREE.divide(cut, np.array([count, 0, 0, 0, 0]), 10.0)
        assert ("Ax0" in finer.names) == divided


def test_no_more_groups_than_allowed_and_the_fullest_first():
    rows = np.full(14, 100.0)
    rows[6:9] = 10_000
    reached = descend(TREE, exact(rows), at_most=8)
    assert len(reached.cut) <= 8
    assert "Bx0" in reached.cut.names
    assert "Ax" in reached.cut.names


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (["A"], "maps texts to texts"),
        ({"Ax0": 3}, "maps texts to texts"),
        ({"nothing": "A"}, "names 'nothing', which is neither"),
        ({"Ax0": "Ax1"}, "'Ax0' cannot belong to 'Ax1', which is a category"),
        ({"Ax0": "A", "A": "B", "B": "A"}, "in a circle"),
    ],
)
def test_what_cannot_be_is_refused(given, text):
    with pytest.raises(SchemaError, match=text):
        Hierarchy.of(COLUMN, given)


def test_a_numeric_column_has_none():
    with pytest.raises(SchemaError, match="numeric"):
        Hierarchy.of(Column("n", "numeric", edges=(0, 1)), {})


def test_without_groups_every_category_is_at_the_top():
    flat = Hierarchy.of(Column("c", "categorical", ("a", "b")), {})
    assert flat.depth == 1
    assert descend(flat, exact(np.array([0.0, 0.0]))).cut.names == ("a", "b")


def test_a_chain_of_single_groups_is_passed_through():
    tree = Hierarchy.of(Column("c", "categorical", ("a", "b")), {"a": "g", "b": "g", "g": "top"})
    assert expected(tree, 1000, 1.0).cut.names == ("a", "b")


def test_five_thousand_categories_take_little_time_and_memory():
    labels = tuple(f"{i:04d}" for i in range(5000))
    given = {text: f"block {text[:3]}" for text in labels} | {
        f"block {b:03d}": f"chapter {b // 10}" for b in range(500)
    }
    tracemalloc.start()
    start = time.process_time()
    tree = Hierarchy.of(Column("code", "categorical", labels), given)
    shares = np.random.default_rng(0).dirichlet(np.full(5000, 0.1))
    plan = expected(tree, 100_000, 60.0)
    reached = descend(tree, exact(100_000 * shares))
    seconds, peak = time.process_time() - start, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seconds < 5
    assert peak < 60e6
    assert len(plan.cut) <= MOST_APART
    assert 50 < len(reached.cut) <= MOST_APART
    assert sorted(set(reached.cut.groups.tolist())) == list(range(len(reached.cut)))
