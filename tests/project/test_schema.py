"""Columns: their refusals; text → codes → text gives the same text."""

from __future__ import annotations

import datetime
from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from espalier.core.errors import SchemaError, TableError
from espalier.core.project.coarsening import even_bins, group, growing_bins
from espalier.core.project.dates import DateBins
from espalier.core.project.file import Project
from espalier.core.project.plan import Plan
from espalier.core.project.schema import (
    Categories,
    CategoriesToBuy,
    Column,
    Dates,
    HierarchyToBuy,
    LeftOut,
    Numbers,
    NumbersToBuy,
    Schema,
    smallest_unsigned,
    to_buy,
)
from espalier.core.project.schema_json import column_from_json, column_to_json, schema_from_json, schema_to_json
from espalier.core.release.output import numbers
from espalier.core.release.spend import refuse_guessed

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"name": "a"}, "at least one category"),
        ({"name": "a", "kind": "text"}, "categorical, ordinal, numeric, date or identifier"),
        ({"name": "", "kind": "numeric", "edges": [0, 1]}, "name must be text of at least one"),
        ({"name": 3}, "must be text"),
        ({"name": "a", "categories": ["x"], "colour": 1}, "unknown key 'colour'"),
        ({"name": "a", "categories": ["x", "x"]}, "listed twice"),
        ({"name": "a", "categories": ["x", ""]}, "empty string"),
        ({"name": "a", "categories": ["x", 1]}, "list of strings"),
        ({"name": "a", "categories": "xyz"}, "list of strings"),
        ({"name": "a", "categories": ["x"], "missing": "yes"}, "true or false"),
        ({"name": "a", "categories": ["x"], "unknown": "missing"}, 'needs "missing": true'),
        ({"name": "a", "categories": ["x"], "unknown": "drop"}, 'must be "refuse" or'),
        ({"name": "a", "categories": ["x"], "integer": True}, "belong to numeric"),
        ({"name": "a", "categories": ["x"], "decimals": 2}, "belong to numeric"),
        ({"name": "a", "kind": "numeric", "edges": [0, 1], "decimals": True}, "from 1 to 9"),
        ({"name": "a", "kind": "numeric", "edges": [0, 1], "decimals": 0}, "whole numbers set"),
        ({"name": "a", "kind": "numeric", "edges": [0, 1], "decimals": 1, "integer": True}, "no decimals"),
        ({"name": "a", "kind": "numeric", "edges": [0, 0.25], "decimals": 1}, "0.25 has more than 1 decimals"),
        ({"name": "a", "categories": ["x"], "missing_marks": ["?"]}, 'needs "missing": true'),
        ({"name": "a", "categories": ["x"], "missing": True, "missing_marks": ["x"]}, "cannot mark a missing value"),
        ({"name": "a", "categories": ["x"], "missing": True, "missing_marks": "x"}, "list of strings"),
        ({"name": "a", "categories": ["x"], "guessed": ["soul"]}, "not fields that can be guessed"),
        ({"name": "a", "categories": ["x"], "confirmed": ["soul"]}, "not fields that can be guessed"),
        ({"name": "a", "categories": ["x"], "groups": {"y": ["z"]}}, "must be one of the categories"),
        ({"name": "a", "categories": ["x", "z"], "groups": {"x": ["z"]}}, "already in a group"),
        ({"name": "a", "kind": "numeric"}, "two finite edges"),
        ({"name": "a", "kind": "numeric", "edges": [1]}, "two finite edges"),
        ({"name": "a", "kind": "numeric", "edges": [1, 1]}, "must increase"),
        ({"name": "a", "kind": "numeric", "edges": [2, 1]}, "must increase"),
        ({"name": "a", "kind": "numeric", "edges": [0, True]}, "list of numbers"),
        ({"name": "a", "kind": "numeric", "edges": [0, "1"]}, "list of numbers"),
        ({"name": "a", "kind": "numeric", "edges": [0, 10**400]}, "too large"),
        ({"name": "a", "kind": "numeric", "edges": [1e308, 1.2e308, 1.5e308]}, "must lie between -1e\\+307"),
        ({"name": "a", "kind": "numeric", "edges": [0.1, 0.9, 2], "integer": True}, "no whole number"),
        ({"name": "a", "kind": "numeric", "edges": [0, 1], "categories": ["x"]}, "has edges, not categories"),
        ([], "must be an object"),
    ],
)
def test_descriptions_that_cannot_be(data, words):
    with pytest.raises(SchemaError, match=words):
        column_from_json(data)


def test_a_schema_has_columns_each_once():
    with pytest.raises(SchemaError, match="no columns"):
        Schema(())
    with pytest.raises(SchemaError, match="twice"):
        Schema((Column("a", "categorical", ("x",)), Column("a", "categorical", ("x",))))


def test_bins_are_half_open_and_the_last_is_closed_and_outside_is_clipped():
    c = Column("a", "numeric", edges=(0, 10, 20))
    assert c.encode(["0", "9.999", "10", "20", "-5", "99", "1e1", " 7 "]).tolist() == [0, 0, 1, 1, 0, 1, 1, 0]


@pytest.mark.parametrize("text", ["nan", "inf", "1_000", "12a", "", "٣", "0x10", "1e999999x"])
def test_text_that_is_not_a_number_is_refused(text):
    with pytest.raises(TableError, match="column 'a'"):
        Column("a", "numeric", edges=(0, 10)).encode([text])


def test_marks_count_as_empty_cells():
    c = Column("a", "numeric", edges=(0, 10, 20), missing=True, missing_marks=("?", "-9"))
    assert c.encode(["?", "-9", "", "-8", "15"]).tolist() == [2, 2, 2, 0, 1]
    assert np.isnan(c.numbers(["-9", "?"])).all()
    assert column_from_json(column_to_json(c)) == c
    c = Column("a", "categorical", ("x",), missing=True, missing_marks=("?",))
    assert c.encode(["x", "?"]).tolist() == [0, 1]
    with pytest.raises(TableError, match="not among"):
        c.encode(["NA"])


def test_missing_and_unknown():
    c = Column("a", "categorical", ("x", "y"), missing=True, unknown="missing")
    assert c.encode(["x", "", "zzz"]).tolist() == [0, 2, 2]
    assert c.decode(np.array([0, 2]), RNG) == ["x", ""]
    assert c.labels == ("x", "y", "(missing)")
    with pytest.raises(TableError, match="'zzz' is not among") as error:
        Column("a", "categorical", ("x",)).encode(["zzz"])
    assert (error.value.data["column"], error.value.data["value"]) == ("a", "zzz")
    with pytest.raises(TableError, match="empty cells"):
        Column("a", "categorical", ("x",)).encode([""])


def test_text_is_compared_as_written():
    """Except for numbers and truth values, which `tests/project/test_spellings.py` tests."""
    with pytest.raises(TableError):
        Column("a", "categorical", ("1", "x")).encode(["1.0"])


@given(
    edges=st.lists(st.floats(-1e6, 1e6).map(lambda x: round(x, 3)), min_size=2, max_size=8, unique=True).map(sorted),
    missing=st.booleans(),
)
def test_a_decoded_number_lies_in_its_bin(edges, missing):
    c = Column("a", "numeric", edges=tuple(edges), missing=missing)
    codes = np.repeat(np.arange(c.size), 20)
    assert c.encode(c.decode(codes, np.random.default_rng(1))).tolist() == codes.tolist()


def test_numbers_have_the_declared_decimals_and_stay_in_their_bins():
    c = column_from_json({"name": "a", "kind": "numeric", "edges": [0, 0.3, 2.5, 1000], "decimals": 1, "missing": True})
    assert column_from_json(column_to_json(c)) == c
    codes = np.repeat(np.arange(c.size), 400)
    texts = c.decode(codes, np.random.default_rng(3))
    assert c.encode(texts).tolist() == codes.tolist()
    assert {len(t.partition(".")[2]) for t in texts if t} == {1}
    assert set(texts[:400]) == {"0.0", "0.1", "0.2"}
    fast = numbers(c, codes, np.random.default_rng(3))[codes < c.values]
    assert np.allclose(fast, np.round(fast, 1))
    assert c.encode([f"{x:.1f}" for x in fast]).tolist() == codes[codes < c.values].tolist()


def test_decoded_numbers_are_uniform_and_whole_where_declared():
    c = Column("a", "numeric", edges=(0, 3, 10), integer=True)
    drawn = np.array([int(t) for t in c.decode(np.ones(20_000, int), np.random.default_rng(2))])
    assert set(drawn) == set(range(3, 11))
    assert np.bincount(drawn)[3:].std() < 120
    real = Column("a", "numeric", edges=(0.0, 1.0))
    assert np.mean([float(t) for t in real.decode(np.zeros(5000, int), RNG)]) == pytest.approx(0.5, abs=0.03)


def test_json_round_trip():
    columns = (
        Column('q, "ü"', "ordinal", ("A", "B"), missing=True, guessed=("categories",), confirmed=("kind",)),
        Column("n", "numeric", edges=(0, 0.5, 3), integer=False, missing=True, unknown="missing"),
        Column("g", "categorical", ("x", "Other"), groups=(("Other", ("u", "v")),)),
    )
    assert schema_from_json(schema_to_json(Schema(columns))) == Schema(columns)


def test_what_a_guess_left_out_is_unconfirmed_until_somebody_says_so():
    schema = Schema((Column("a", "categorical", ("x",)),), (LeftOut("id"), LeftOut("case", confirmed=True)))
    assert schema.unconfirmed == ("id",)
    project = Project("p", schema, Plan("mst", 1.0, fair=False))
    assert Project.loads(project.dumps()) == project
    old = replace(project, schema=Schema(schema.columns)).to_json()
    assert "left_out" not in old, "old files stay as they are"
    with pytest.raises(SchemaError, match="id: left out"):
        refuse_guessed(project)
    refuse_guessed(replace(project, schema=Schema(schema.columns, schema.left_out[1:])))


@pytest.mark.parametrize(
    "left_out",
    [
        5,
        "id",
        ["id"],
        [{"name": "id"}],
        [{"name": "id", "guessed": False}],
        [{"name": 1, "guessed": True}],
        [{"name": "id", "guessed": True, "confirmed": True}],
        [{"name": "a", "guessed": True}],
        [{"name": "id", "guessed": True}] * 2,
    ],
)
def test_a_list_of_left_out_columns_that_cannot_be_is_refused(left_out):
    with pytest.raises(SchemaError, match="left_out"):
        schema_from_json([{"name": "a", "categories": ["x"]}], left_out)


def test_groups_read_as_written_and_write_the_group():
    c = Column("g", "categorical", ("x", "Other"), groups=(("Other", ("u", "v")),))
    assert c.encode(["u", "v", "Other", "x"]).tolist() == [1, 1, 1, 0]
    assert c.decode(np.array([1]), RNG) == ["Other"]


def test_coarsening_is_public():
    c = Column("a", "numeric", edges=(0, 5, 100_000), integer=True, guessed=("edges", "kind"))
    fine = growing_bins(c, 6)
    assert fine.edges[0] == 0
    assert fine.edges[-1] == 100_000
    assert 4 <= fine.values <= 6
    assert fine.guessed == ("edges", "kind"), "a range that was guessed stays a guess"
    assert even_bins(c, 4).edges == (0, 25_000, 50_000, 75_000, 100_000)
    with pytest.raises(SchemaError):
        growing_bins(Column("a", "numeric", edges=(-1, 5)), 3)
    words = Column("w", "categorical", ("a", "b", "c", "d"))
    once = group(words, ["a", "b"], "rest")
    twice = group(once, ["c", "rest"], "all but d")
    assert twice.categories == ("d", "all but d")
    assert twice.encode(["a", "b", "c", "d"]).tolist() == [1, 1, 1, 0]
    kept = group(words, ["a", "b"], "a")
    assert kept.categories == ("c", "d", "a")
    assert kept.encode(["a", "b"]).tolist() == [2, 2]


@pytest.mark.parametrize(("size", "bits"), [(1, 8), (256, 8), (257, 16), (65536, 16), (65537, 32)])
def test_smallest_type(size, bits):
    assert smallest_unsigned(size).itemsize * 8 == bits


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (Column("a", "categorical", ("x", "y")), Categories),
        (Column("a", "ordinal", ("x", "y"), missing=True, missing_marks=("?",)), Categories),
        (Column("a", "numeric", edges=(0, 1), integer=True, guessed=("edges",)), Numbers),
        (Dates.of("a", DateBins(date(2020, 1, 1), date(2020, 12, 31), "month"), missing=True), Dates),
        (to_buy("a", "categorical", 5), CategoriesToBuy),
        (to_buy("a", "numeric", bins=5, range=(0.0, 9.0)), NumbersToBuy),
        (HierarchyToBuy.of("a", {"x": "g", "y": "g"}, missing=True), HierarchyToBuy),
    ],
)
def test_each_kind_of_column_has_its_type(column, kind):
    """A column prints as its constructor call, is copied and compared by value, and stores its labels if it has any."""
    assert type(column) is kind
    assert eval(repr(column), {**globals(), "datetime": datetime}) == column
    assert hash(replace(column)) == hash(column)
    assert not {"label", "unit", "description", "labels"} & set(column_to_json(column))
    about = {"label": "Age", "unit": "years", "description": "at admission", "value_labels": (("x", "men"),)}
    named = replace(column, **about)
    assert named != column
    assert column_to_json(named)["labels"] == {"x": "men"}
    assert column_from_json(column_to_json(named)) == named


def test_a_column_of_another_kind_has_no_such_field():
    with pytest.raises(TypeError):
        Column("a", "categorical", ("x",), edges=(0, 1))
    with pytest.raises(SchemaError, match="kind is 'text'"):
        Column("a", "text", ("x",))  # type: ignore[arg-type]
