"""Constraints are read, impossible ones are refused, and no row breaks one."""

from __future__ import annotations

import itertools
import json
from datetime import date

import numpy as np
import pytest

from espalier.core.errors import EspalierError, ProjectError, SchemaError, SizeError
from espalier.core.graph.separations import Separation
from espalier.core.models.graphical import Zeros, estimate
from espalier.core.privacy.draws import Measurement
from espalier.core.project.column_types import Dates
from espalier.core.project.constraint_kinds import Determines, Impossible, Monotone, Range
from espalier.core.project.constraints import Constraints
from espalier.core.project.dates import DateBins
from espalier.core.project.schema import Column, Schema
from espalier.core.release.output import arrow_columns, text_cells
from espalier.core.tables.consistency import candidates, settle, violations

SCHEMA = Schema(
    (
        Column("sex", "categorical", ("female", "male")),
        Column("pregnant", "categorical", ("no", "yes"), missing=True),
        Column("age", "numeric", edges=(0, 16, 40, 90), integer=True),
        Column("married", "categorical", ("no", "yes")),
        Column("school", "ordinal", ("none", "basic", "degree")),
        Column("years", "numeric", edges=(0, 1, 10, 20), integer=True),
        Column("first", "numeric", edges=(0, 10, 20, 30)),
        Column("last", "numeric", edges=(0, 10, 20, 30), missing=True),
    )
)
GIVEN = {
    "impossible": [
        {"sex": ["male"], "pregnant": ["yes"]},
        {"age": {"below": 16}, "married": ["yes"]},
        {"values": {"sex": ["female"], "pregnant": [""]}, "guessed": True},
    ],
    "monotone": [["first", "last"]],
    "determines": [{"columns": ["school", "years"], "table": {"none": "0", "basic": "9", "degree": "16"}}],
}
ALL = Constraints.from_json(GIVEN)


def fit(schema: Schema, constraints: Constraints, seed: int = 0, sigma: float = 5.0):
    """A model of noisy pairs of random rows that break every constraint."""
    rng = np.random.default_rng(seed)
    measurements = [Measurement((n,), rng.normal(100, sigma, size), sigma) for n, size in schema.sizes.items()]
    for a, b in itertools.pairwise(schema.names):
        shape = schema.sizes[a], schema.sizes[b]
        measurements.append(Measurement((a, b), rng.normal(300 / np.prod(shape), sigma, shape), sigma))
    zeros = [Zeros(clique, mask) for clique, mask in constraints.masks(schema).items()]
    return estimate(schema.sizes, measurements, 300.0, zeros=zeros, smoothing=0.3)


def decoded(schema: Schema, constraints: Constraints, codes, rng):
    texts = {c.name: c.decode(codes[c.name], rng) for c in schema.columns}
    return settle(constraints, schema, codes, texts)


def test_what_is_read_is_written():
    assert Constraints.from_json(json.loads(json.dumps(ALL.to_json()))) == ALL
    assert ALL.to_json() == GIVEN
    assert Constraints.from_json({}).to_json() == {}
    assert not Constraints()
    assert [str(c) for c in ALL] == [
        "sex = male and pregnant = yes",
        "age < 16 and married = yes",
        "sex = female and pregnant = (missing)",
        "first ≤ last",
        "school determines years",
    ]
    assert ALL.guessed == (ALL.impossible[2],)


@pytest.mark.parametrize("mark", ["guessed", "confirmed"])
def test_marks_round_trip(mark):
    made = Constraints(
        (Impossible({"guessed": ("a",), "values": Range(1, 2.5)}, mark),),
        (Monotone("first", "last", mark),),
        (Determines("school", "years", {"none": "0"}, mark),),
    )
    assert Constraints.from_json(made.to_json()) == made


def test_masks_are_the_forbidden_cells():
    masks = ALL.masks(SCHEMA)
    assert masks["sex", "pregnant"].tolist() == [[False, False, True], [False, True, False]]
    assert masks["age", "married"].tolist() == [[False, True], [False, False], [False, False]]
    assert masks["school", "years"].tolist() == [[False, True, True], [True, False, True], [True, True, False]]
    assert masks["first", "last"].tolist() == [
        [False, False, False, False],
        [True, False, False, False],
        [True, True, False, False],
    ]
    swapped = Constraints(
        determines=(Determines("school", "sex", {"none": "male", "basic": "male", "degree": "female"}),)
    )
    assert swapped.masks(SCHEMA)["sex", "school"].tolist() == [[True, True, False], [False, False, True]]


@pytest.mark.parametrize(
    ("data", "error", "text"),
    [
        ({"impossible": {}}, ProjectError, "impossible: must be a list"),
        ({"impossible": [["a"]]}, ProjectError, "maps columns to values"),
        ({"impossible": [{"sex": "male"}]}, ProjectError, "the values of 'sex' must be a list of strings"),
        ({"impossible": [{"age": {"below": "x"}}]}, ProjectError, "or a range"),
        ({"impossible": [{"values": {"sex": ["male"]}, "guessed": True, "x": 1}]}, ProjectError, "unknown key 'x'"),
        ({"impossible": [{"values": {"sex": ["male"]}, "guessed": True, "confirmed": True}]}, ProjectError, "not both"),
        ({"impossible": [{"sex": ["other"], "married": ["no"]}]}, SchemaError, "'other' is not a category of 'sex'"),
        ({"impossible": [{"sex": [""], "married": ["no"]}]}, SchemaError, "'sex' has no missing cells"),
        ({"impossible": [{"who": ["x"]}]}, SchemaError, "names 'who', which is not a column"),
        ({"impossible": [{"age": {"below": 18}, "married": ["yes"]}]}, SchemaError, "add 18 to the bin edges"),
        ({"impossible": [{"age": {"from": 95}, "married": ["yes"]}]}, SchemaError, "no bin of 'age' is ≥ 95"),
        ({"impossible": [{"age": ["5"], "married": ["yes"]}]}, SchemaError, "'age' is numeric; give a range"),
        ({"impossible": [{"sex": {"below": 3}}]}, SchemaError, "'sex' has categories; list them"),
        ({"impossible": [{"sex": ["male", "female"]}]}, SchemaError, "leaves no possible row"),
        ({"monotone": [["first"]]}, ProjectError, "each entry names two columns"),
        ({"monotone": [["first", "first"]]}, ProjectError, "'first' is listed twice"),
        ({"monotone": [["sex", "married"]]}, SchemaError, "unordered categories"),
        ({"monotone": [["age", "first"]]}, SchemaError, "the same bin edges"),
        ({"monotone": [["first", "price"]]}, SchemaError, "the same precision"),
        ({"monotone": [["first", "last"], ["last", "first"]]}, ProjectError, "first ≤ last ≤ first is a cycle"),
        ({"determines": [["school", "years"]]}, ProjectError, "need their full value table"),
        ({"determines": [{"columns": ["school", "years"], "table": {"none": 3}}]}, ProjectError, "to a string, in"),
        (
            {"determines": [{"columns": ["school", "years"], "table": {"none": "0"}}]},
            SchemaError,
            "has no entry for 'basic'",
        ),
        ({"determines": [{"columns": ["years", "school"], "table": {}}]}, SchemaError, "'years' is numeric"),
        (
            {"determines": [{"columns": ["married", "sex"], "table": {"no": "male", "yes": "x"}}]},
            SchemaError,
            "'x' is not among its declared categories",
        ),
        (
            {
                "determines": [{"columns": ["sex", "first"], "table": {"male": "1", "female": "2"}}],
                "monotone": [["first", "last"]],
            },
            SchemaError,
            "is determined by another column, so it cannot be in a monotone pair",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(data, error, text):
    schema = Schema((*SCHEMA.columns, Column("price", "numeric", edges=SCHEMA["first"].edges, decimals=2)))
    with pytest.raises(error, match="^[^\n]*" + text.replace("(", r"\(").replace(")", r"\)")):
        Constraints.from_json(data).masks(schema)


PRICES = {"edges": (0.0, 10.0, 20.0), "decimals": 1, "number_style": "1234,5"}


@pytest.mark.parametrize(
    ("effect", "right", "wrong"),
    [
        (
            Column("y", "numeric", edges=(0, 1, 10), integer=True, missing=True, missing_marks=("-9",)),
            ["0", "10", ""],
            ["5.0", "5.5", "5e0", " 5", "05", "11", "-1", "1e999", "-9", "x"],
        ),
        (Column("y", "numeric", **PRICES), ["5", "5.5", "20.0"], ["5,5", "5.55", "5e0", "20.1", "", " 5"]),
        (
            Dates.of("y", DateBins(date(2020, 1, 1), date(2020, 12, 31), "month"), date_order="dmy"),
            ["2020-12-31"],
            ["31.12.2020", "2020-12-31T10:00", "2021-01-01", "20201231"],
        ),
        (Column("y", "categorical", ("1", "2"), missing=True, unknown="missing"), ["1", ""], ["1.0", "3"]),
    ],
    ids=["whole numbers", "decimals", "days", "categories"],
)
def test_a_table_has_only_values_that_a_release_can_contain(effect, right, wrong):
    """Previously, "5.0" for whole numbers ended a release with a traceback after its budget was spent."""
    schema = Schema((Column("x", "categorical", ("a", "b")), effect))
    for value in (*right, *wrong):
        determines = Constraints(determines=(Determines("x", "y", {"a": right[0], "b": value}),))
        if value in wrong:
            with pytest.raises(SchemaError, match=r"determines: column 'y': the value .* is not "):
                determines.masks(schema)
        else:
            determines.masks(schema)
            assert arrow_columns(schema).field("y").type == text_cells(effect, [value]).type


def test_a_table_too_large_is_refused():
    with pytest.raises(SizeError, match="12 cells"):
        ALL.masks(SCHEMA, max_cells=8)


def test_a_constraint_that_contradicts_a_separation_is_refused_with_the_path():
    apart = Separation(("sex",), ("married",), ("age",), "the graph says so")
    ALL.check(SCHEMA, [apart])
    joined = Constraints((Impossible({"sex": ("male",), "married": ("yes",)}),))
    with pytest.raises(ProjectError, match=r"“sex = male and married = yes” joins sex and married.*given age: the path sex – married"):  # fmt: skip  # noqa: E501
        joined.check(SCHEMA, [apart])
    # through a column in between, by two constraints, or by one and an edge of the plan
    two = Constraints(
        (
            Impossible({"sex": ("male",), "pregnant": ("yes",)}),
            Impossible({"pregnant": ("yes",), "married": ("no",)}),
        )
    )
    assert "sex – pregnant – married" in two.conflict([apart])[1]
    one = Constraints(two.impossible[:1])
    assert one.conflict([apart]) is None
    assert "sex – pregnant – married" in one.conflict([apart], [("pregnant", "married")])[1]
    # a path that exists without any constraint is not attributed to a constraint
    assert one.conflict([apart], [("sex", "married")]) is None
    # no path passes through a given column
    assert Constraints((Impossible({"sex": ("male",), "age": Range(high=16)}),)).conflict([apart]) is None


@pytest.mark.parametrize("seed", range(3))
def test_no_row_of_the_model_breaks_a_constraint(seed):
    model = fit(SCHEMA, ALL, seed)
    rng = np.random.default_rng(seed)
    assert model.fit.converged
    for clique, mask in ALL.masks(SCHEMA).items():
        assert model.marginal(clique)[mask].sum() == 0
    codes = model.sample(5000, rng)
    texts = decoded(SCHEMA, ALL, codes, rng)
    assert [n for _, n in violations(ALL, SCHEMA, texts)] == [0] * 5
    plain = {c.name: c.decode(codes[c.name], rng) for c in SCHEMA.columns}
    assert violations(ALL, SCHEMA, plain)[3][1] > 100, "two numbers from one bin are not automatically in order"
    for column in SCHEMA.columns:  # the settled values agree with the codes
        assert np.array_equal(column.encode(texts[column.name]), codes[column.name])


def test_violations_are_counted_row_by_row():
    texts = {
        "sex": ["male", "male", "female", "female"],
        "pregnant": ["yes", "", "", "yes"],
        "age": ["15", "16", "3", "50"],
        "married": ["yes", "yes", "no", "yes"],
        "school": ["none", "basic", "degree", "basic"],
        "years": ["0", "9.0", "17", "8"],
        "first": ["1", "5", "9", "10"],
        "last": ["1", "4", "", "9.5"],
    }
    assert [n for _, n in violations(ALL, SCHEMA, texts)] == [1, 1, 1, 2, 2]


@pytest.mark.parametrize(("length", "bins"), [(40, 4), (6, 40)])
def test_long_and_wide_chains_are_fitted_with_a_certificate(length, bins):
    """All pairs of a chain are given, but only neighbours are needed, so the model stays a chain."""
    names = [f"v{i}" for i in range(length)]
    schema = Schema(tuple(Column(n, "numeric", edges=tuple(float(x) for x in range(bins + 1))) for n in names))
    chain = Constraints(monotone=tuple(Monotone(a, b) for a, b in itertools.combinations(names, 2)))
    assert len(chain.masks(schema)) == length - 1
    model = fit(schema, chain)
    assert model.fit.converged
    rng = np.random.default_rng(0)
    texts = decoded(schema, chain, model.sample(300, rng), rng)
    assert sum(n for _, n in violations(chain, schema, texts)) == 0


def test_a_pair_through_a_column_that_may_be_missing_is_kept():
    columns = [Column(n, "numeric", edges=(0, 1, 2), missing=n == "b") for n in "abc"]
    chain = Constraints(monotone=(Monotone("a", "b"), Monotone("b", "c"), Monotone("a", "c")))
    assert ("a", "c") in chain.masks(Schema(tuple(columns)))


def test_constraints_that_leave_no_row_together():
    schema = Schema((Column("a", "categorical", ("x", "y")), Column("b", "categorical", ("x", "y"))))
    every = Constraints(
        (Impossible({"a": ("x",), "b": ("x",)}), Impossible({"a": ("y",)}), Impossible({"a": ("x",), "b": ("y",)}))
    )
    with pytest.raises(EspalierError, match="leave no possible row"):
        fit(schema, every)


def test_settled_numbers_in_one_bin_are_spread_as_the_order_says():
    """Two uniform numbers, given their order, have means 1/3 and 2/3 of the bin; 20,000 rows, seven standard errors."""
    schema = Schema((Column("a", "numeric", edges=(0, 1, 2)), Column("b", "numeric", edges=(0, 1, 2))))
    codes = {name: np.zeros(20_000, dtype=np.uint8) for name in "ab"}
    texts = decoded(schema, Constraints(monotone=(Monotone("a", "b"),)), codes, np.random.default_rng(4))
    means = [np.mean([float(t) for t in texts[name]]) for name in "ab"]
    assert means == pytest.approx([1 / 3, 2 / 3], abs=0.012)


def test_candidates_are_found_and_marked():
    rng = np.random.default_rng(0)
    n = 4000
    sex, school = rng.integers(0, 2, n), rng.integers(0, 3, n)
    first = rng.integers(0, 3, n)
    codes = {
        "sex": sex,
        "pregnant": np.where(sex == 0, rng.integers(0, 2, n), 0),
        "age": rng.integers(0, 3, n),
        "married": rng.integers(0, 2, n),
        "school": school,
        "years": school,
        "first": first,
        "last": np.maximum(first, rng.integers(0, 3, n)),
    }
    schema = Schema((*SCHEMA.columns[:5], Column("years", "ordinal", ("0", "9", "16")), *SCHEMA.columns[6:]))
    found = candidates(schema, codes)
    assert Impossible({"sex": ("male",), "pregnant": ("yes",)}, "guessed") in found.impossible
    assert found.monotone == (Monotone("first", "last", "guessed"),)
    assert {c.columns for c in found.determines} == {("school", "years"), ("years", "school")}
    assert found.guessed == tuple(found)
    assert not any({"age", "married"} <= set(c.columns) for c in found)
    found.masks(schema)
    texts = {c.name: c.decode(np.asarray(codes[c.name]), rng) for c in schema.columns}
    assert sum(m for _, m in violations(found, schema, settle(found, schema, codes, texts))) == 0


@pytest.mark.parametrize(("one", "other"), [({"integer": True}, {}), ({"decimals": 1}, {"decimals": 2})])
def test_ordered_columns_have_the_same_precision(one, other):
    """Previously, a column of whole numbers received fractions of the other column, or the release ended in an error
    after it was paid for.
    """
    columns = [Column(name, "numeric", edges=(0, 5, 10), **more) for name, more in (("a", one), ("b", other))]
    with pytest.raises(SchemaError, match="the same precision"):
        Monotone("a", "b").mask(columns)
