"""Sensitivities of questions, counts and the choice among questions, by enumeration of neighbouring tables."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from espalier.core.errors import BudgetError, SizeError
from espalier.core.privacy.accounting import Budget
from espalier.core.privacy.curator import PrivateCurator
from espalier.core.privacy.question_recipes.recipes import (
    CHOICE_UNITS,
    UNITS,
    CountHistogram,
    QuestionSums,
    WorstQuestion,
    answers,
)
from espalier.core.privacy.unit import Unit
from espalier.core.project.question_types import Count, Question
from espalier.core.project.schema import Column, Schema
from espalier.core.tables.table import Table

SCHEMA = Schema(tuple(Column(name, "categorical", tuple("xyz")) for name in "abc"))
SIZES = SCHEMA.sizes
COUNT = Count("n", {"a": (1, 2), "b": (0,), "c": (2,)}, 2)
ASKED = (
    Question("one", ({"a": (0,), "b": (1, 2)},)),
    Question("either", ({"a": (1,)}, {"c": (0,)})),
    Question("counted", ({"n": (1, 2), "b": (0, 1)},)),
    Question("many", ({"n": (2,)},)),
    Question("rest", ({"c": (1, 2)},)),
)
ROWS = list(itertools.product(range(3), repeat=3))
UNITS_OF_PRIVACY = [Unit(n, k) for n in ("replace-one", "add-remove") for k in (1, 2)]


def table(rows):
    codes = np.array(rows, dtype=np.uint8).reshape(len(rows), 3)
    return Table(SCHEMA, dict(zip("abc", codes.T, strict=True)), len(rows))


def vectors(recipe):
    """Return the contribution of each row that can be encoded to the sums."""
    return np.array([recipe.sums(table([row])) for row in ROWS])


def furthest(recipe, unit):
    """The largest change of the sums, over all ways in which the rows of one person may change."""
    each = vectors(recipe).astype(float)
    whole = [
        sum(each[i] for i in rows) for rows in itertools.combinations_with_replacement(range(27), unit.rows_per_person)
    ]
    if unit.neighbors == "add-remove":
        return max(np.linalg.norm(v) for v in whole)
    sums = np.array(whole)
    return max(np.linalg.norm(sums - v, axis=1).max() for v in sums)


@pytest.mark.parametrize("unit", UNITS_OF_PRIVACY, ids=str)
@pytest.mark.parametrize(
    "recipe",
    [QuestionSums(ASKED, (COUNT,), SIZES), QuestionSums(ASKED[:1], (COUNT,), SIZES), CountHistogram(COUNT, SIZES)],
)
def test_the_sensitivity_is_reached_and_never_passed(recipe, unit):
    found = furthest(recipe, unit)
    assert found <= recipe.sensitivity(unit) <= found + 1


@pytest.mark.parametrize("unit", UNITS_OF_PRIVACY, ids=str)
def test_the_score_of_a_choice_moves_by_its_sensitivity_at_most(unit):
    """Every score, on both sides, for any expected counts, over all changes of one person's rows in a table of four
    rows.
    """
    asked = QuestionSums(ASKED, (COUNT,), SIZES)
    rng = np.random.default_rng(0)
    recipe = WorstQuestion(asked, rng.normal(2, 3, len(ASKED)))
    each = vectors(asked) // UNITS
    still, moved = each[rng.integers(0, 27, 4)].sum(axis=0), 0
    changed = list(itertools.combinations_with_replacement(range(27), unit.rows_per_person))
    before = [each[list(rows)].sum(axis=0) for rows in changed] if unit.neighbors == "replace-one" else [0 * still]
    scores = np.array([recipe.scores(still + v) for v in before])
    for rows in changed:
        after = np.array(recipe.scores(still + each[list(rows)].sum(axis=0)))
        moved = max(moved, int(np.abs(scores - after).max()))
    assert moved == recipe.sensitivity(unit) == CHOICE_UNITS * unit.rows_per_person
    assert recipe.candidates == len(recipe.scores(still)) == 10
    assert [recipe.question_of(j) for j in (0, 4, 5, 9)] == [(0, 1), (4, 1), (0, -1), (4, -1)]


def test_exact_answers_are_those_of_every_row():
    rng = np.random.default_rng(3)
    rows = [ROWS[i] for i in rng.integers(0, 27, 300)]
    met = [sum([row[0] in (1, 2), row[1] == 0, row[2] == 2]) for row in rows]
    slow = [
        sum(r[0] == 0 and r[1] in (1, 2) for r in rows),
        sum(r[0] == 1 or r[2] == 0 for r in rows),
        sum(m >= 1 and r[1] in (0, 1) for r, m in zip(rows, met, strict=True)),
        sum(m >= 2 for m in met),
        sum(r[2] in (1, 2) for r in rows),
    ]
    assert answers(table(rows), ASKED, (COUNT,), SIZES).tolist() == slow
    assert (CountHistogram(COUNT, SIZES).sums(table(rows)) / UNITS).tolist() == [
        sum(min(m, 2) == v for m in met) for v in range(3)
    ]


def test_a_constant_question_is_noisy_all_the_same():
    always = QuestionSums((Question("all", ({"a": (0, 1, 2)},)),), (), SIZES)
    assert always.sensitivity(Unit("replace-one", 2)) == 2 * UNITS


def test_questions_of_another_table_and_made_up_recipes_are_refused():
    curator = PrivateCurator(table(ROWS), Unit(), Budget(1.0, 1e-6, 0.1), 1000)
    with pytest.raises(ValueError, match="another table"):
        curator.measure_sums(QuestionSums(ASKED[:1], (), {**SIZES, "c": 2}), 0.05)
    with pytest.raises(ValueError, match="another table"):
        curator.choose_question(WorstQuestion(QuestionSums((), (), SIZES), np.empty(0)), 0.05)

    class Louder(WorstQuestion):
        def sensitivity(self, unit):  # noqa: ARG002
            return 1

    with pytest.raises(TypeError, match="proved"):
        curator.choose_question(Louder(QuestionSums(ASKED, (COUNT,), SIZES), np.zeros(5)), 0.05)
    with pytest.raises(BudgetError):
        curator.choose_question(WorstQuestion(QuestionSums(ASKED, (COUNT,), SIZES), np.zeros(5)), 0.2)
    with pytest.raises(ValueError, match="one number for each"):
        curator.choose_question(WorstQuestion(QuestionSums(ASKED, (COUNT,), SIZES), np.zeros(4)), 0.01)
    assert len(curator.spending.draws) == 1


def test_the_noise_has_the_scale_that_is_booked():
    """200 answers to 5 questions: a standard deviation is off by more than 15 % less than once in 10⁶ runs."""
    recipe, rho = QuestionSums(ASKED, (COUNT,), SIZES), 1e-3
    curator = PrivateCurator(table(ROWS), Unit(), Budget(1.0, 1e-6, 1.0), 1000)
    exact = recipe.sums(table(ROWS)) / UNITS
    noise = np.array([curator.measure_sums(recipe, rho).values - exact for _ in range(200)])
    sigma = curator.spending.draws[0].scale
    assert sigma == pytest.approx(math.sqrt(recipe.squared(True) / (2 * rho)), rel=1e-5)
    assert noise.std() == pytest.approx(sigma, rel=0.15)
    assert len(curator.spending.draws) == 200


def test_what_is_too_wide_together_is_refused_before_anything_is_drawn():
    """The family of incidence width 2 that encodes 3-SAT: the paper's parameter is small, the network is not."""
    sizes = {f"c{i}": 6 for i in range(14)}
    asked = [Question("odd", tuple({f"c{i}": (i % 6,), f"c{i + 1}": (2,)} for i in range(13)))]
    asked += [Question(f"p{i}{j}", ({f"c{i}": (1,), f"c{j}": (2,)},)) for i in range(14) for j in range(i)]
    with pytest.raises(SizeError, match="limit is") as error:
        QuestionSums(tuple(asked), (), sizes).sensitivity(Unit())
    assert error.value.data["questions"] or error.value.data["columns"]


def test_the_private_choice_finds_a_question_that_is_far_off():
    """Its score leads by 27 rows, 27 times the scale, so another question is chosen with probability below e⁻²⁵."""
    asked = QuestionSums(ASKED, (COUNT,), SIZES)
    exact = answers(table(ROWS), ASKED, (COUNT,), SIZES).astype(float)
    curator = PrivateCurator(table(ROWS), Unit(), Budget(1.0, 1e-6, 10.0), 1000)
    for j, side in ((1, 1), (4, -1)):
        off = exact.copy()
        off[j] -= side * 30
        assert curator.choose_question(WorstQuestion(asked, off), 0.5) == (j, side)
        assert curator.spending.draws[-1].columns == ASKED[j].columns("abc")
