"""Hierarchies are read, and codes are distinguished where there are enough rows."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest

from espalier.core.errors import SchemaError, TableError
from espalier.core.project.hierarchy import MOST_APART, Hierarchy, descend, expected, read_hierarchy
from espalier.core.project.schema import HierarchyToBuy, Schema
from espalier.core.project.schema_json import column_from_json, column_to_json

CODES = tuple(f"{chapter}{block}{i}" for chapter in "AB" for block in "xy" for i in range(3))
GIVEN = {code: code[:2] for code in CODES} | {f"{c}{b}": c for c in "AB" for b in "xy"}
GIVEN |= {"none": ""}
TREE = Hierarchy.of("code", GIVEN, missing=True)


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
        (["A"], "an object that maps codes to groups"),
        ({}, "must map strings to strings"),
        ({"Ax0": 3}, "must map strings to strings"),
        ({"": "A"}, "empty string"),
        ({"Ax0": "A", "A": "B", "B": "A"}, "form a cycle"),
        ({"A": "B", "B": "A"}, "form a cycle"),
    ],
)
def test_what_cannot_be_is_refused(given, text):
    with pytest.raises(SchemaError, match=text):
        column_from_json({"name": "code", "kind": "categorical", "hierarchy": given})


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"kind": "numeric"}, "kind must be categorical"),
        ({"edges": [0, 1]}, "cannot have 'edges'"),
        ({"at_most": "5"}, "whole number"),
        ({"at_most": 1}, "top of the hierarchy has 2 codes and groups"),
        ({"categories": ["a", "b", "c"], "guessed": ["categories"]}, "guessed categories are not allowed together"),
        ({"categories": ["b"]}, "names 'a', which is neither a category nor a group"),
        ({"categories": ["a", "b", "g"]}, "assigns other values to 'g', which is a category"),
        ({"unknown": "missing"}, "needs .missing.: true"),
    ],
)
def test_columns_that_cannot_be(more, text):
    given = {"name": "c", "kind": "categorical", "hierarchy": {"a": "g", "b": "h"}, **more}
    with pytest.raises(SchemaError, match=text):
        column_from_json(given)


def test_a_column_is_written_as_it_is_read_and_declared_categories_stand_at_the_top():
    given = {"name": "c", "kind": "categorical", "hierarchy": {"a": "g", "b": "g"}, "at_most": 7, "missing": True}
    column = column_from_json(given)
    assert column_to_json(column) == given
    assert column.size == 8
    more = column_from_json({**given, "categories": ["a", "b", "alone"]})
    assert isinstance(more, HierarchyToBuy)
    assert dict(more.hierarchy) == {"a": "g", "b": "g", "alone": ""}
    assert column_from_json(column_to_json(more)) == more


def test_texts_that_are_no_codes_are_refused_or_missing():
    given = {"name": "c", "kind": "categorical", "hierarchy": {"a": "g", "b": "g"}}
    with pytest.raises(TableError, match="'g'.*not among its declared categories"):
        column_from_json(given).encode(["g"])
    with pytest.raises(TableError, match="empty cells"):
        column_from_json(given).encode([""])
    open_ = column_from_json({**given, "missing": True, "unknown": "missing"})
    assert isinstance(open_, HierarchyToBuy)
    assert open_.leaves(["b", "", "else", "a"]).tolist() == [1, 2, 2, 0]


def test_codes_have_the_same_spellings_in_memory_as_in_an_engine():
    """Previously, a table in memory did not read 7.0 as the code 7, although an engine did."""
    column = HierarchyToBuy.of("x", {"1": "low", "5": "low", "7": "high"}, missing=True, unknown="missing")
    texts = ["1", "7.0", "5.00", "x", ""]
    assert column.leaves(texts).tolist() == column.finest().judge(texts).tolist() == [0, 2, 1, 3, 3]


def test_what_is_told_apart_becomes_the_columns_categories():
    column = HierarchyToBuy.of("code", GIVEN, 20, missing=True)
    rows = np.zeros(14)
    rows[0] = 1000
    released = column.expanded(descend(column.tree, exact(rows)).cut)
    assert released.categories == ("Ax0", "other Ax", "Ay", "B", "none")
    assert dict(released.groups)["other Ax"] == ("Ax1", "Ax2")
    assert released.encode(["Ax0", "Ax2", "By1", "none", "", "other Ax"]).tolist() == [0, 1, 3, 4, 5, 1]
    assert not Schema((released,)).undeclared


def test_no_two_values_have_one_name():
    given = {"a": "g", "b": "g", "c": "g", "other g": "", "g": "top"}
    column = HierarchyToBuy.of("code", given, 20)
    rows = np.array([1000.0, 0, 0, 5])
    assert descend(column.tree, exact(rows)).cut.names == ("other g", "a", "other g …")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I21,I20-I25\nI22,I20-I25\n", {"I21": "I20-I25", "I22": "I20-I25"}),
        ("Code;Group\n\nI21;a, b\nI22;\n", {"I21": "a, b", "I22": ""}),
        ('\ufeffchild\tparent\n"I21"\tb\n', {"I21": "b"}),
        ("a,g\na,g\n", {"a": "g"}),
    ],
)
def test_a_table_of_two_columns_is_read(text, found):
    assert read_hierarchy(text) == found


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a,g\nb\n", "line 2 .*two cells"),
        (",g\n", "the first of them empty"),
        ("a,g\nb,g\na,h\n", "line 3 .*assigns 'a' to 'h', but an earlier line assigns it to 'g'"),
        ("code,group\n\n", "is empty"),
    ],
)
def test_a_broken_table_names_the_line(text, error):
    with pytest.raises(SchemaError, match=error):
        read_hierarchy(text)


def test_without_groups_every_category_is_at_the_top():
    flat = Hierarchy.of("c", {"a": "", "b": ""})
    assert flat.depth == 1
    assert descend(flat, exact(np.array([0.0, 0.0]))).cut.names == ("a", "b")


def test_a_chain_of_single_groups_is_passed_through():
    tree = Hierarchy.of("c", {"a": "g", "b": "g", "g": "top"})
    assert expected(tree, 1000, 1.0).cut.names == ("a", "b")


def test_five_thousand_categories_take_little_time_and_memory():
    labels = tuple(f"{i:04d}" for i in range(5000))
    given = {text: f"block {text[:3]}" for text in labels} | {
        f"block {b:03d}": f"chapter {b // 10}" for b in range(500)
    }
    tracemalloc.start()
    start = time.process_time()
    tree = Hierarchy.of("code", given)
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


@pytest.mark.parametrize("mark", ["other A", "A", "a1", "other B … …"])
def test_a_missing_mark_that_may_become_the_name_of_a_group_is_refused(mark):
    """Previously, a release that was paid for could not be finished if the budget merged codes under this name."""
    groups = {**{f"a{i}": "A" for i in range(1, 8)}, "b1": "B", "b2": "B"}
    with pytest.raises(SchemaError, match="cannot mark a missing value"):
        HierarchyToBuy.of("c", groups, 12, missing=True, missing_marks=(mark,))
    assert HierarchyToBuy.of("c", groups, 12, missing=True, missing_marks=("other",)).missing_marks == ("other",)
