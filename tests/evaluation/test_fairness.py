"""Conditional mutual information by enumeration, group rates by hand."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from espalier.core.errors import SizeError
from espalier.core.evaluation import fairness as module
from espalier.core.evaluation.dependence import cmi, link
from espalier.core.evaluation.fairness import fairness_of
from espalier.core.evaluation.utility import ITSELF, Predictions, predict
from espalier.core.graph.separations import Separation
from espalier.core.models.graphical import GraphicalModel
from espalier.core.models.graphical.model import FitSummary
from tests.support.tables import project_of, quiet, random_table, schema_of, table_of


def slow_cmi(table, left, right, given):
    """Σ p(x,y,z) log p(x,y|z) / (p(x|z) p(y|z)) over the whole joint table."""
    names = (*left, *right, *given)
    joint = np.zeros([table.schema[n].size for n in names])
    for row in zip(*(table.codes[n].tolist() for n in names), strict=True):
        joint[row] += 1 / table.rows
    x, y, z = (range(len(left)), range(len(left), len(left + right)), range(len(left + right), len(names)))
    total = 0.0
    for cell in itertools.product(*map(range, joint.shape)):
        if joint[cell] == 0:
            continue
        p_xz = joint.sum(axis=tuple(y), keepdims=True)[tuple(0 if i in y else c for i, c in enumerate(cell))]
        p_yz = joint.sum(axis=tuple(x), keepdims=True)[tuple(0 if i in x else c for i, c in enumerate(cell))]
        p_z = joint.sum(axis=(*x, *y))[tuple(cell[i] for i in z)]
        total += joint[cell] * math.log(joint[cell] * p_z / (p_xz * p_yz))
    return total


@pytest.mark.parametrize(
    ("left", "right", "given"),
    [(("a",), ("b",), ()), (("a",), ("b",), ("c",)), (("a", "d"), ("b",), ("c",)), (("d",), ("a", "c"), ("b", "e"))],
)
def test_conditional_mutual_information_is_that_of_the_whole_joint(left, right, given):
    for seed in range(3):
        table = random_table(schema_of(a=2, b=3, c=4, d=2, e=1), 70, seed)
        assert cmi(table, Separation(left, right, given))[0] == pytest.approx(slow_cmi(table, left, right, given))


def test_exclusive_or_is_seen_only_given_the_third_column():
    schema = schema_of(x=2, y=2, z=2)
    table = table_of(schema, x=[0, 0, 1, 1], y=[0, 1, 0, 1], z=[0, 1, 1, 0])
    assert cmi(table, Separation(("x",), ("y",), ()))[0] == 0
    assert cmi(table, Separation(("x",), ("y",), ("z",)))[0] == pytest.approx(math.log(2))


def test_no_table_is_too_large():
    names = {f"c{i}": 200 for i in range(12)}  # 200¹² cells, beyond 64 bits
    table = table_of(schema_of(**names), **{n: np.arange(300) % 200 for n in names})
    given = tuple(names)[2:]
    assert cmi(table, Separation(("c0",), ("c1",), given))[0] == pytest.approx(0)
    assert cmi(table, Separation(("c0",), tuple(names)[1:], ()))[0] == pytest.approx(slow_entropy(table, "c0"))


def slow_entropy(table, name):
    share = np.bincount(table.codes[name]) / table.rows
    return -(share[share > 0] * np.log(share[share > 0])).sum()


def test_chance_is_what_independent_columns_show_on_average():
    """200 tables: the mean's standard error is about 3 %, so 15 % is a false alarm once in millions of runs."""
    schema, rng = schema_of(x=3, y=4, z=2), np.random.default_rng(1)
    found, chances = [], []
    for _ in range(200):
        table = table_of(schema, **{c.name: rng.integers(0, c.size, 2000) for c in schema.columns})
        value, chance, _ = cmi(table, Separation(("x",), ("y",), ("z",)))
        found.append(value)
        chances.append(chance)
    assert np.mean(found) == pytest.approx(2 * 2 * 3 / (2 * 2000), rel=0.15)
    assert np.mean(chances) == pytest.approx(np.mean(found), rel=0.15)


def test_chance_is_right_where_cells_are_few():
    """A separation holds in a table with two rows per stratum: the figure and chance agree."""
    schema, rng = schema_of(x=2, y=2, z=200), np.random.default_rng(2)
    found = []
    for _ in range(40):
        z = rng.integers(0, 200, 400)
        x, y = ((rng.random(400) < 0.2 + 0.6 * (z % 2)).astype(int) for _ in "xy")
        found.append(cmi(table_of(schema, x=x, y=y, z=z), Separation(("x",), ("y",), ("z",))))
    value, chance, _ = np.mean(found, axis=0)
    assert value > 0.05
    assert chance == pytest.approx(value, rel=0.15)


class Fixed(GraphicalModel):
    """A model of three columns that returns the given distribution."""

    value: Any

    def __init__(self, value, *more):
        cliques = (("y", "a"), ("a", "s"), *more)
        super().__init__(dict.fromkeys("yas", 1), cliques, {}, 1.0, FitSummary(0, 0.0, 0.0, True, "as told"))
        object.__setattr__(self, "value", value)

    def cmi(self, left, right, given, **_: Any):
        assert (left, right, given) == (("y",), ("s",), ("a",))
        if self.value is None:
            raise SizeError("too large")
        return self.value


def small(rows=200, seed=2, **kinds):
    schema = schema_of(**{"y": 2, "a": 3, "s": 2, **kinds})
    return schema, random_table(schema, rows, seed)


def judge(project, real, synthetic, model=None, holdout=None):
    return fairness_of(project, real, synthetic, model, predict(project, real, synthetic, holdout, quiet), quiet)


ROLES = {"outcome": ("y",), "protected": ("s",), "admissible": ("a",)}


def test_the_models_figure_is_the_models():
    schema, table = small()
    assert judge(project_of(schema, **ROLES), table, table, Fixed(0.25)).cmi_model == 0.25


def test_a_model_too_large_to_ask_is_judged_by_its_separation():
    schema, table = small()
    result = judge(project_of(schema, **ROLES), table, table, Fixed(None))
    assert result.cmi_model is None
    assert "the dependence is 0 because of the separation" in result.reasons["cmi_model"]
    open_model = Fixed(None, ("y", "s"))
    assert judge(project_of(schema, **ROLES), table, table, open_model).reasons["cmi_model"].endswith("y – s")


def test_without_a_model_its_figure_has_a_reason():
    schema, table = small()
    shown = judge(project_of(schema, **ROLES), table, table).to_json()
    assert shown["cmi_model"] is None
    assert shown["cmi_model_reason"] == "no model was given with the table"
    assert shown["cmi_real"] == shown["cmi_synthetic"] == pytest.approx(slow_cmi(table, ("y",), ("s",), ("a",)))


@pytest.mark.parametrize("roles", [{}, {"outcome": ("y",)}, {"protected": ("s",)}, {"admissible": ("a",)}])
def test_without_outcome_or_protected_columns_there_is_nothing_to_say(roles):
    schema, table = small()
    assert judge(project_of(schema, "y", **roles), table, table) is None


def test_without_admissible_columns_it_is_the_mutual_information():
    schema, table = small()
    result = judge(project_of(schema, outcome=("y",), protected=("s",)), table, table)
    assert result.cmi_real == pytest.approx(slow_cmi(table, ("y",), ("s",), ()))


def guesses(*codes):
    """Scores of a classifier that makes these guesses."""
    return np.log(np.eye(2)[list(codes)] * 0.8 + 0.1)


def with_guesses(schema, tested, synthetic, real, project=None, table=None):
    p = Predictions(tested, ITSELF, "y", guesses(*synthetic), guesses(*real))
    project = project or project_of(schema, **ROLES)
    return fairness_of(project, tested, table or tested, None, p, quiet)


def test_group_rates_by_hand():
    schema = schema_of(y=2, a=1, s=2)
    tested = table_of(schema, y=[0, 0, 1, 1, 0, 1, 1, 1], a=[0] * 8, s=[0, 0, 0, 0, 1, 1, 1, 1])
    other = table_of(schema, y=[0, 1, 1, 1], a=[0] * 4, s=[0, 0, 1, 1])
    result = with_guesses(schema, tested, [0, 0, 0, 1, 1, 1, 1, 0], [0, 0, 1, 1, 0, 1, 1, 1], table=other)
    # true positive rates ½ and ⅔, false positive rates 0 and 1
    assert result.equalized_odds_difference == 1
    assert result.equalized_odds_difference_real == 0
    assert result.demographic_parity_difference == 0.5
    assert result.demographic_parity_difference_real == 0.25
    assert (result.accuracy_synthetic, result.accuracy_real) == (5 / 8, 1)
    first, second = result.groups
    assert (first.values, first.rows, second.values) == ({"s": "v0"}, 4, {"s": "v1"})
    assert (first.selection_rate_synthetic, second.selection_rate_synthetic) == (0.25, 0.75)
    assert (first.accuracy_synthetic, second.accuracy_synthetic) == (0.75, 0.5)
    assert (first.outcome_rate_real, second.outcome_rate_real) == (0.5, 0.75)
    assert (first.outcome_rate_synthetic, second.outcome_rate_synthetic) == (0.5, 1)
    assert result.positive == "v1"


def slow_odds(truth, guess, groups):
    rates = {}
    for value in (0, 1):
        rates[value] = [guess[(groups == g) & (truth == value)].mean() for g in np.unique(groups)]
    return max(max(r) - min(r) for r in rates.values())


def test_equalized_odds_over_the_intersection_of_protected_columns():
    schema = schema_of(y=2, a=1, s=2, t=3)
    rng = np.random.default_rng(3)
    codes = {c.name: rng.integers(0, c.size, 300) for c in schema.columns}
    tested, guess = table_of(schema, **codes), rng.integers(0, 2, 300)
    project = project_of(schema, outcome=("y",), protected=("t", "s"), admissible=("a",))
    result = with_guesses(schema, tested, guess, guess, project)
    groups = codes["s"] * 3 + codes["t"]
    assert result.equalized_odds_difference == pytest.approx(slow_odds(codes["y"], guess, groups))
    assert [tuple(g.values.values()) for g in result.groups] == list(
        itertools.product(("v0", "v1"), ("v0", "v1", "v2"))
    )
    assert sum(g.rows for g in result.groups) == 300


def test_groups_without_both_values_are_left_out_of_the_odds_and_named():
    schema = schema_of(y=2, a=1, s=3)
    tested = table_of(schema, y=[0, 1, 0, 1, 0], a=[0] * 5, s=[0, 0, 1, 1, 2])
    result = with_guesses(schema, tested, [0, 1, 0, 1, 1], [0, 1, 0, 0, 0])
    assert result.left_out == ({"s": "v2"},)
    assert result.equalized_odds_difference == 0  # with v2's only row it would be 1
    assert result.equalized_odds_difference_real == 1
    assert result.demographic_parity_difference == 0.5
    assert len(result.groups) == 3


def test_reasons_where_there_are_no_odds():
    schema = schema_of(y=2, a=1, s=2)
    apart = table_of(schema, y=[0, 0, 1, 1], a=[0] * 4, s=[0, 0, 1, 1])
    result = with_guesses(schema, apart, [0, 0, 1, 1], [0, 0, 1, 1])
    assert "fewer than two protected groups" in result.reasons["equalized_odds_difference"]
    assert result.demographic_parity_difference == 1
    alone = table_of(schema, y=[0, 0, 1, 1], a=[0] * 4, s=[0] * 4)
    result = with_guesses(schema, alone, [0, 0, 1, 1], [0, 0, 1, 1])
    assert result.reasons["demographic_parity_difference"] == "all tested rows are in one protected group"
    own = project_of(schema, "y", outcome=("s",), protected=("y",))
    result = with_guesses(schema, apart, [0] * 4, [0] * 4, own)
    assert "itself a protected" in result.reasons["equalized_odds_difference"]


def test_very_many_groups_are_not_compared(monkeypatch):
    monkeypatch.setattr(module, "MAX_GROUPS", 2)
    schema, table = small(s=3)
    result = judge(project_of(schema, **ROLES), table, table)
    assert "3 groups" in result.reasons["equalized_odds_difference"]
    assert len(result.groups) == 3


def test_more_than_two_target_values_have_accuracy_but_no_rates():
    schema, table = small(y=3)
    result = judge(project_of(schema, **ROLES), table, table)
    assert "3 declared values" in result.reasons["equalized_odds_difference"]
    assert result.accuracy_synthetic is not None
    assert result.positive is None
    for group in result.groups:
        assert group.selection_rate_synthetic is None
        assert "3 declared values" in group.reasons["outcome_rate_real"]
        assert 0 <= group.accuracy_real <= 1


def test_a_group_that_the_synthetic_table_lost():
    schema, table = small(s=3)
    kept = table.take(table.codes["s"] != 1)
    lost = judge(project_of(schema, **ROLES), table, kept).groups[1].to_json()
    assert lost["group"] == {"s": "v1"}
    assert lost["outcome_rate_synthetic"] is None
    assert lost["outcome_rate_synthetic_reason"] == "no synthetic row is in this group"


def test_a_classifier_that_cannot_be_trained_leaves_the_real_ones_figures():
    schema, table = small()
    flat = table.take(table.codes["y"] == 1)
    result = judge(project_of(schema, **ROLES), table, flat)
    assert "every synthetic row has y = v1" in result.reasons["equalized_odds_difference"]
    assert result.equalized_odds_difference_real is not None
    assert "every synthetic row" in result.groups[0].reasons["selection_rate_synthetic"]
    assert result.groups[0].outcome_rate_synthetic == 1


def test_the_unfair_column_shows_and_the_fair_one_does_not():
    """y depends on s in the unfair table, and is a coin flip in the fair one."""
    schema, rng = schema_of(y=2, a=2, s=2), np.random.default_rng(4)
    a, s = rng.integers(0, 2, 4000), rng.integers(0, 2, 4000)
    unfair = table_of(schema, y=np.where(rng.random(4000) < 0.8, s, a), a=a, s=s)
    fair = table_of(schema, y=np.where(rng.random(4000) < 0.8, a, rng.integers(0, 2, 4000)), a=a, s=s)
    result = judge(project_of(schema, **ROLES), unfair, fair)
    assert result.cmi_real > 0.2
    assert result.cmi_synthetic < 0.002
    assert result.equalized_odds_difference_real > 0.9
    assert result.demographic_parity_difference < 0.1 < result.demographic_parity_difference_real


def test_a_link_is_the_share_of_rows_that_would_have_to_change():
    schema = schema_of(x=2, y=2)
    copied = table_of(schema, x=[0, 0, 1, 1], y=[0, 0, 1, 1])
    unlinked = table_of(schema, x=[0, 0, 1, 1], y=[0, 1, 0, 1])
    between = table_of(schema, x=[0, 0, 0, 1], y=[0, 0, 1, 1])
    assert [link(t, "x", "y") for t in (copied, unlinked)] == [0.5, 0.0]
    assert link(between, "x", "y") == link(between, "y", "x") == pytest.approx(0.25)
